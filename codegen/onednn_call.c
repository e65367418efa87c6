// Folds what was read into the dims of a library call.
#include <string.h>

#include "codegen/onednn.h"

static const char *anchor_name(const ft_onednn *o) {
  return ft_op_describe(o->anchor->op)->name;
}

static ft_onednn_operand *add_operand(ft_onednn_call *c, const char *role,
                                      const ft_strided *s) {
  ft_onednn_operand *o = &c->operand[c->operand_count++];
  *o = (ft_onednn_operand){.role = role, .argument = s->argument, .offset = s->offset};
  return o;
}

static void add_dim(ft_onednn_operand *o, int64_t dim, int64_t stride) {
  o->dim[o->rank] = stride ? dim : 1;  // what is broadcast has one
  o->stride[o->rank++] = stride;
}

// Dims of one element get the stride that a row-major tensor would have: the library
// looks for known layouts.
static void tidy(ft_onednn_operand *o) {
  int64_t extent = 1;
  for (int i = o->rank - 1; i >= 0; i--) {
    if (o->dim[i] == 1) o->stride[i] = extent;
    if (o->dim[i] * o->stride[i] > extent) extent = o->dim[i] * o->stride[i];
  }
}

// ---- products: a [batch, m, k], b [batch, k, n], the rest [batch, m, n] ---------------

enum { AXES = FT_MAX_RANK, PARTS = FT_ONEDNN_POSTS + 3 };

typedef struct part {
  const ft_strided *from;
  int64_t stride[AXES];  // of the output's axes
} part;

typedef struct product {
  int axes;  // batch axes, then m, then n
  int64_t extent[AXES];
  int parts;
  part part[PARTS];  // a, b, out, binary operands
  int64_t k, a_step, b_step;
} product;

static void read_part(product *p, const ft_strided *from, int skip_m, int skip_n) {
  part *q = &p->part[p->parts++];
  *q = (part){.from = from};
  int missing = p->axes - from->shape.rank;
  for (int i = missing; i < p->axes; i++) {
    bool is_k = (i == p->axes - 2 && skip_m) || (i == p->axes - 1 && skip_n);
    bool is_one = from->shape.dim[i - missing] == 1;
    q->stride[i] = is_k || is_one ? 0 : from->stride[i - missing];
  }
}

static int64_t stride_at(const ft_strided *s, int from_end) {
  int i = s->shape.rank - from_end;
  return s->shape.dim[i] == 1 ? 1 : s->stride[i];
}

static void read_product(const ft_onednn *o, product *p) {
  *p = (product){.axes = o->out.shape.rank};
  for (int i = 0; i < p->axes; i++) p->extent[i] = o->out.shape.dim[i];
  read_part(p, &o->a, false, true);
  read_part(p, &o->b, true, false);
  read_part(p, &o->out, false, false);
  for (uint32_t i = 0; i < o->post_count; i++)
    if (o->post[i].is_binary) read_part(p, &o->post[i].operand, false, false);
  p->k = o->a.shape.dim[o->a.shape.rank - 1];
  p->a_step = stride_at(&o->a, 1);
  p->b_step = stride_at(&o->b, 2);
}

static void drop_axis(product *p, int axis) {
  p->axes--;
  for (int i = axis; i < p->axes; i++) {
    p->extent[i] = p->extent[i + 1];
    for (int k = 0; k < p->parts; k++) p->part[k].stride[i] = p->part[k].stride[i + 1];
  }
}

// Axis and the next can be walked as one by all.
static bool is_one_walk(const product *p, int axis) {
  for (int k = 0; k < p->parts; k++) {
    const int64_t *stride = p->part[k].stride;
    if (p->extent[axis] != 1 && stride[axis] != stride[axis + 1] * p->extent[axis + 1])
      return false;
  }
  return true;
}

// Fewer batch axes; those that the second operand does not have become rows.
static void fold(product *p) {
  for (int axis = p->axes - 3; axis >= 0; axis--) {
    if (p->extent[axis + 1] != 1 && !is_one_walk(p, axis)) continue;
    bool is_taken = p->extent[axis + 1] == 1;
    // An axis of one element gives its place to the other.
    if (is_taken && axis + 1 == p->axes - 2 && p->part[1].stride[axis]) continue;
    p->extent[axis + 1] *= p->extent[axis];
    for (int k = 0; is_taken && k < p->parts; k++)
      p->part[k].stride[axis + 1] = p->part[k].stride[axis];
    drop_axis(p, axis);
  }
}

// The library wants rows of the output: of one that lies in columns it computes the
// transpose, b^T a^T.
static bool lies_in_columns(const product *p) {
  const int64_t *out = p->part[2].stride;
  int m = p->axes - 2, n = p->axes - 1;
  return p->extent[n] > 1 && out[n] != 1 && (p->extent[m] == 1 || out[m] == 1);
}

static void swap(int64_t *a, int64_t *b) {
  int64_t kept = *a;
  *a = *b;
  *b = kept;
}

static void transpose(product *p) {
  int m = p->axes - 2, n = p->axes - 1;
  swap(&p->extent[m], &p->extent[n]);
  for (int k = 0; k < p->parts; k++) swap(&p->part[k].stride[m], &p->part[k].stride[n]);
  part kept = p->part[0];
  p->part[0] = p->part[1];
  p->part[1] = kept;
  swap(&p->a_step, &p->b_step);
}

static void put_part(const product *p, int index, const char *role, ft_onednn_call *c) {
  const part *q = &p->part[index];
  ft_onednn_operand *o = add_operand(c, role, q->from);
  int m = p->axes - 2, n = p->axes - 1;
  for (int i = 0; i < p->axes; i++) {
    if (index == 0 && i == n)
      add_dim(o, p->k, p->a_step);
    else if (index == 1 && i == m)
      add_dim(o, p->k, p->b_step);
    else
      add_dim(o, p->extent[i], q->stride[i]);
  }
  tidy(o);
}

static bool is_row(const product *p, int index) {
  const int64_t *stride = p->part[index].stride;
  for (int i = 0; i + 1 < p->axes; i++)
    if (stride[i]) return false;
  return stride[p->axes - 1] == 1;
}

// An addition right after the anchor that |is_bias| is the primitive's own.
static void put_posts(const ft_onednn *o, bool is_bias, ft_onednn_call *c) {
  for (uint32_t i = is_bias; i < o->post_count; i++) {
    c->operand_of[c->post_count] = -1;
    c->post[c->post_count++] = o->post[i];
  }
}

static bool starts_with_addition(const ft_onednn *o) {
  return o->post_count && !strcmp(o->post[0].algorithm, "dnnl_binary_add");
}

static const char *broadcast_refusal(const product *p) {
  bool is_repeated = p->k > 1 && (!p->a_step || !p->b_step);
  int m = p->axes - 2, n = p->axes - 1;
  is_repeated |= p->extent[m] > 1 && !p->part[0].stride[m];
  is_repeated |= p->extent[n] > 1 && !p->part[1].stride[n];
  return is_repeated ? "an operand is broadcast within the product" : NULL;
}

static const char *fold_product(const ft_onednn *o, ft_onednn_call *c) {
  product p;
  read_product(o, &p);
  const char *reason = broadcast_refusal(&p);
  if (reason) return reason;
  fold(&p);
  if (lies_in_columns(&p)) transpose(&p);
  bool is_bias = starts_with_addition(o) && is_row(&p, 3);
  c->primitive = "dnnl_matmul";
  put_part(&p, 0, "DNNL_ARG_SRC", c);
  put_part(&p, 1, "DNNL_ARG_WEIGHTS", c);
  if (is_bias) put_part(&p, 3, "DNNL_ARG_BIAS", c);
  put_part(&p, 2, "DNNL_ARG_DST", c);
  put_posts(o, is_bias, c);
  int at = 3 + is_bias;
  for (uint32_t i = 0; i < c->post_count; i++) {
    if (!c->post[i].is_binary) continue;
    c->operand_of[i] = (int)c->operand_count;
    put_part(&p, at++, "", c);
  }
  return NULL;
}

// ---- convolutions and pools -----------------------------------------------------------

static void put_tensor(const ft_strided *s, const char *role, int64_t groups,
                       ft_onednn_call *c) {
  ft_onednn_operand *o = add_operand(c, role, s);
  int64_t stride = s->shape.dim[0] == 1 ? 0 : s->stride[0];
  if (groups > 1) {  // weights [groups, maps / groups, ...]
    int64_t maps = s->shape.dim[0] / groups;
    o->dim[o->rank] = groups;
    o->stride[o->rank++] = maps * s->stride[0];
    o->dim[o->rank] = maps;
    o->stride[o->rank++] = s->stride[0];
  } else {
    add_dim(o, s->shape.dim[0], stride);
  }
  for (int i = 1; i < s->shape.rank; i++)
    add_dim(o, s->shape.dim[i], s->shape.dim[i] == 1 ? 0 : s->stride[i]);
  tidy(o);
}

static bool is_per_map(const ft_strided *s) {
  for (int i = 0; i < s->shape.rank; i++)
    if (i != 1 && s->shape.dim[i] != 1 && s->stride[i]) return false;
  return s->shape.dim[1] == 1 || s->stride[1] == 1;
}

static void put_bias(const ft_strided *s, ft_onednn_call *c) {
  ft_onednn_operand *o = add_operand(c, "DNNL_ARG_BIAS", s);
  o->rank = 1;
  o->dim[0] = s->shape.dim[1];
  o->stride[0] = 1;
}

static bool is_broadcast(const ft_strided *s) {
  for (int i = 0; i < s->shape.rank; i++)
    if (s->shape.dim[i] > 1 && !s->stride[i]) return true;
  return false;
}

// |after|: what the windows reach past the end; none when they leave some of it out.
static const char *put_window(const ft_onednn *o, ft_onednn_call *c) {
  const ft_attr *attr = &o->anchor->attr;
  bool is_conv = o->anchor->op == FT_OP_CONV;
  c->spatial = o->a.shape.rank - 2;
  if (c->spatial < 1 || c->spatial > 3) return "oneDNN has windows over 1 to 3 axes";
  for (int i = 0; i < c->spatial; i++) {
    c->window[i] = is_conv ? o->b.shape.dim[i + 2] : attr->window[i];
    c->stride[i] = attr->stride[i];
    c->dilation[i] = attr->dilation[i] - 1;
    c->before[i] = attr->start[i];
    int64_t reach = (o->out.shape.dim[i + 2] - 1) * attr->stride[i] +
                    (c->window[i] - 1) * attr->dilation[i] + 1;
    int64_t after = reach - attr->start[i] - o->a.shape.dim[i + 2];
    if (after <= -attr->stride[i]) return "the windows leave out part of the input";
    c->after[i] = after > 0 ? after : 0;
    if (!is_conv && (c->before[i] >= c->window[i] || c->after[i] >= c->window[i]))
      return "a window lies in the padding";
  }
  return NULL;
}

static const char *fold_window(const ft_onednn *o, ft_onednn_call *c) {
  bool is_conv = o->anchor->op == FT_OP_CONV;
  if (is_broadcast(&o->a) || (is_conv && is_broadcast(&o->b)))
    return "an operand is broadcast within the windows";
  const char *reason = put_window(o, c);
  if (reason) return reason;
  bool is_bias = is_conv && starts_with_addition(o) && is_per_map(&o->post[0].operand);
  c->primitive = is_conv ? "dnnl_convolution" : "dnnl_pooling_v2";
  put_tensor(&o->a, "DNNL_ARG_SRC", 1, c);
  if (is_conv) put_tensor(&o->b, "DNNL_ARG_WEIGHTS", o->anchor->attr.groups, c);
  if (is_bias) put_bias(&o->post[0].operand, c);
  put_tensor(&o->out, "DNNL_ARG_DST", 1, c);
  put_posts(o, is_bias, c);
  for (uint32_t i = 0; i < c->post_count; i++) {
    if (!c->post[i].is_binary) continue;
    c->operand_of[i] = (int)c->operand_count;
    put_tensor(&c->post[i].operand, "", 1, c);
  }
  return NULL;
}

const char *ft_onednn_call_of(const ft_onednn *o, ft_arena *arena, ft_onednn_call *out) {
  *out = (ft_onednn_call){0};
  const char *reason =
      o->anchor->op == FT_OP_MATMUL ? fold_product(o, out) : fold_window(o, out);
  return reason ? ft_arena_printf(arena, "%s: %s", anchor_name(o), reason) : NULL;
}
