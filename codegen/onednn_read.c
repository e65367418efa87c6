// From a group to its anchor and post-ops. The values after the anchor are cut where only
// one of them is still needed; each piece between two cuts must be a transpose, one
// binary operation with a tensor from outside, or a function of one value (unary.h).
#include <math.h>

#include "codegen/onednn.h"
#include "codegen/unary.h"

enum { MOST = 64, MOST_MOVES = 8 };

// How the current value's dims came from those of the anchor's output.
typedef struct move {
  bool is_view;
  uint8_t perm[FT_MAX_RANK];
  ft_shape from;  // view: the shape before
} move;

typedef struct reader {
  const ft_group *group;
  const ft_graph *graph;
  ft_arena *arena;
  ft_onednn *out;
  bool is_used[MOST];      // primitive i of the group has its place in the call
  bool is_after[MOST];     // it depends on the anchor, or is it
  uint32_t readers[MOST];  // operands that still read what it makes
  uint32_t current;        // value
  ft_shape shape;          // as it is read
  uint32_t move_count;
  move move[MOST_MOVES];
} reader;

static const ft_primitive *primitive(const reader *r, uint32_t i) {
  return &r->graph->primitive[r->group->primitive[i]];
}

static const char *name_of(const ft_primitive *p) {
  return ft_op_describe(p->op)->name;
}

// Which primitive of the group makes |value|; FT_NONE: it comes from outside.
static uint32_t maker_of(const reader *r, uint32_t value) {
  uint32_t producer = r->graph->value[value].producer;
  for (uint32_t i = 0; i < r->group->primitive_count && producer != FT_NONE; i++)
    if (r->group->primitive[i] == producer) return i;
  return FT_NONE;
}

static bool is_of_chain(const reader *r, uint32_t value) {
  uint32_t maker = maker_of(r, value);
  return maker != FT_NONE && r->is_after[maker];
}

// ---- the anchor -----------------------------------------------------------------------

static const char *anchor_refusal(const reader *r, uint32_t *out_at) {
  *out_at = FT_NONE;
  for (uint32_t i = 0; i < r->group->primitive_count; i++) {
    const ft_primitive *p = primitive(r, i);
    ft_op_class class = ft_op_describe(p->op)->class;
    if (p->op == FT_OP_WINDOW_MAX) return "oneDNN's max pool drops a NaN";
    if (class != FT_CLASS_M && class != FT_CLASS_S) continue;
    if (*out_at != FT_NONE)
      return ft_arena_printf(r->arena, "%s and %s: oneDNN takes one of them",
                             name_of(primitive(r, *out_at)), name_of(p));
    *out_at = i;
  }
  return *out_at == FT_NONE ? "oneDNN is for matmul, conv and window_sum: none is here"
                            : NULL;
}

// LESS is looked at where a function is recognised.
static const char *type_refusal(const reader *r, const ft_primitive *p) {
  for (uint32_t i = 0; i <= p->input_count; i++) {
    uint32_t value = i < p->input_count ? p->input[i] : p->output;
    const ft_value *v = &r->graph->value[value];
    if (v->dtype == FT_BOOL) continue;
    if (v->dtype != FT_F32)
      return ft_arena_printf(r->arena, "oneDNN is offered f32 alone, not %s",
                             ft_dtype_text(v->dtype));
    int64_t elements = ft_shape_elements(&v->shape);
    if (!elements) return "oneDNN is not offered an empty tensor";
    if (elements > INT32_MAX) return "a tensor has more than 2^31 elements";
  }
  return NULL;
}

static const char *read_anchor(reader *r, uint32_t at) {
  const ft_primitive *p = primitive(r, at);
  r->out->anchor = p;
  r->is_used[at] = true;
  const char *reason =
      ft_strided_find(r->group, p->input[0], r->is_used, r->arena, &r->out->a);
  if (!reason && p->input_count == 2)
    reason = ft_strided_find(r->group, p->input[1], r->is_used, r->arena, &r->out->b);
  r->current = p->output;
  r->shape = r->graph->value[p->output].shape;
  return reason;
}

// ---- post-ops -------------------------------------------------------------------------

static const char *push(reader *r, const ft_onednn_post *post) {
  if (r->out->post_count == FT_ONEDNN_POSTS) return "too many post-ops for one primitive";
  if (!isfinite((float)post->alpha) || !isfinite((float)post->beta))
    return "a constant is not finite";
  r->out->post[r->out->post_count++] = *post;
  return NULL;
}

static const char *push_function(reader *r, const char *name, double alpha, double beta) {
  return push(r, &(ft_onednn_post){.algorithm = name, .alpha = alpha, .beta = beta});
}

// alpha x + beta; one after another is one, and nothing is none.
static const char *push_line(reader *r, double alpha, double beta) {
  static const char *const name = "dnnl_eltwise_linear";
  ft_onednn *o = r->out;
  ft_onednn_post *last = o->post_count ? &o->post[o->post_count - 1] : NULL;
  if (last && last->algorithm == name) {
    beta += alpha * last->beta;
    alpha *= last->alpha;
    o->post_count--;
  }
  bool is_nothing = (float)alpha == 1 && (float)beta == 0;
  return is_nothing ? NULL : push_function(r, name, alpha, beta);
}

// From the dims of the current value back to those of the anchor's output.
static const char *move_back(const reader *r, ft_strided *s) {
  for (uint32_t i = r->move_count; i-- > 0;) {
    const move *m = &r->move[i];
    if (!m->is_view) {
      ft_strided_unpermute(s, m->perm);
    } else if (!ft_strided_view(s, &m->from)) {
      return ft_arena_printf(r->arena, "the result viewed as %s has no strides",
                             ft_shape_text(&s->shape, r->arena));
    }
  }
  return NULL;
}

static const char *push_move(reader *r, const ft_primitive *transpose,
                             const ft_shape *view) {
  if (r->move_count == MOST_MOVES) return "the result is moved too often";
  move *m = &r->move[r->move_count++];
  *m = (move){.is_view = view != NULL, .from = r->shape};
  for (int i = 0; transpose && i < FT_MAX_RANK; i++) m->perm[i] = transpose->attr.perm[i];
  r->shape = view ? *view : r->graph->value[transpose->output].shape;
  return NULL;
}

// Post-ops with a tensor. oneDNN's max and min give the other operand for a NaN.
static const struct {
  ft_op op;
  const char *algorithm, *refusal;
  bool commutes;
} binaries[] = {
    {FT_OP_ADD, "dnnl_binary_add", NULL, true},
    {FT_OP_SUB, "dnnl_binary_sub", NULL, false},
    {FT_OP_MUL, "dnnl_binary_mul", NULL, true},
    {FT_OP_DIV, "dnnl_binary_div", NULL, false},
    {FT_OP_MAX, NULL, "oneDNN's max drops a NaN", true},
    {FT_OP_MIN, NULL, "oneDNN's min drops a NaN", true},
};

static const char *no_post_op(const reader *r, const ft_primitive *p) {
  for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
    if (binaries[i].op == p->op && binaries[i].refusal) return binaries[i].refusal;
  return ft_arena_printf(r->arena, "oneDNN has no post-op for %s", name_of(p));
}

static const char *read_binary(reader *r, const ft_primitive *p, uint32_t other) {
  size_t i = 0, count = sizeof binaries / sizeof *binaries;
  while (i < count && binaries[i].op != p->op) i++;
  if (i == count || binaries[i].refusal) return no_post_op(r, p);
  ft_onednn_post post = {.algorithm = binaries[i].algorithm, .is_binary = true};
  const char *reason = NULL;
  if (other == 0 && !binaries[i].commutes) {
    if (p->op != FT_OP_SUB) return "oneDNN cannot divide by the result";
    reason = push_line(r, -1, 0);  // b - x = -x + b
    post.algorithm = "dnnl_binary_add";
  }
  if (!reason)
    reason =
        ft_strided_find(r->group, p->input[other], r->is_used, r->arena, &post.operand);
  if (reason) return reason;
  if (!ft_strided_broadcast(&post.operand, &r->shape))
    return ft_arena_printf(r->arena, "%s widens the result", name_of(p));
  reason = move_back(r, &post.operand);
  return reason ? reason : push(r, &post);
}

// ---- functions of one value -----------------------------------------------------------

static bool is_like(const double p[FT_UNARY_TERMS], double c0, double c1, double c2,
                    double c3) {
  const double c[FT_UNARY_TERMS] = {c0, c1, c2, c3};
  for (int i = 0; i < FT_UNARY_TERMS; i++)
    if (!ft_unary_is_near(p[i], c[i])) return false;
  return true;
}

// x/2 (1 + erf(x / sqrt 2)), its approximation with tanh, x sigmoid(k x).
static const char *gated_name(const ft_unary *u, double *out_scale, double *out_alpha) {
  if (ft_unary_degree(u->p) != 1 || u->p[0] != 0) return NULL;
  const double k = sqrt(M_2_PI);
  *out_alpha = 0;
  *out_scale = 2 * u->p[1] * u->a;
  bool is_half = ft_unary_is_near(u->a, u->b);
  if (is_half && u->f == FT_OP_ERF && is_like(u->q, 0, M_SQRT1_2, 0, 0))
    return "dnnl_eltwise_gelu_erf";
  if (is_half && u->f == FT_OP_TANH && is_like(u->q, 0, k, 0, k * 0.044715))
    return "dnnl_eltwise_gelu_tanh";
  *out_alpha = u->q[1];
  *out_scale = u->p[1] * u->a;
  bool is_swish = u->f == FT_OP_SIGMOID && u->b == 0 && is_like(u->q, 0, u->q[1], 0, 0);
  return is_swish ? "dnnl_eltwise_swish" : NULL;
}

// Its relu gives 0 for a NaN; elu with alpha 0 is the same function and hands it on. exp
// gives infinity for a NaN, and logistic 0 where a convolution applies it by the element.
// log is right to 1e-6 near 1 only.
static const char *function_name(const reader *r, const ft_unary *u, double *out_alpha) {
  *out_alpha = u->f == FT_OP_WHERE ? u->slope : 0;
  if (u->f == FT_OP_WHERE)
    return u->is_exponential ? "dnnl_eltwise_elu" : "dnnl_eltwise_relu";
  if (u->f == FT_OP_RELU) return "dnnl_eltwise_elu";
  if (u->f == FT_OP_TANH) return "dnnl_eltwise_tanh";
  if (u->f == FT_OP_ABS) return "dnnl_eltwise_abs";
  if (u->f == FT_OP_SQRT) return "dnnl_eltwise_sqrt";
  if (u->f == FT_OP_SIGMOID && r->out->anchor->op == FT_OP_MATMUL)
    return "dnnl_eltwise_logistic";
  return NULL;
}

static const char *function_refusal(const reader *r, const ft_unary *u) {
  if (u->f == FT_OP_EXP) return "oneDNN's exp gives infinity for a NaN";
  if (u->f == FT_OP_LOG) return "oneDNN's log is wrong in the sixth digit";
  if (u->f == FT_OP_SIGMOID) return "oneDNN's logistic after this gives 0 for a NaN";
  return ft_arena_printf(r->arena, "oneDNN has no post-op for %s",
                         ft_op_describe(u->f)->name);
}

static const char *push_polynomial(reader *r, const double p[FT_UNARY_TERMS]) {
  int degree = ft_unary_degree(p);
  if (degree <= 1) return push_line(r, p[1], p[0]);
  if (degree > 2 || p[0] != 0 || p[1] != 0)
    return "oneDNN has no post-op for a polynomial";
  const char *reason = push_function(r, "dnnl_eltwise_square", 0, 0);
  return reason ? reason : push_line(r, p[2], 0);
}

static const char *push_unary(reader *r, const ft_unary *u) {
  if (u->f == FT_OP_COUNT) return push_polynomial(r, u->p);
  double scale, alpha;
  const char *name = gated_name(u, &scale, &alpha), *reason;
  if (name) {
    reason = push_function(r, name, alpha, 0);
    return reason ? reason : push_line(r, scale, 0);
  }
  name = function_name(r, u, &alpha);
  if (!name) return function_refusal(r, u);
  if (ft_unary_degree(u->p) || ft_unary_degree(u->q) > 1)
    return "oneDNN has no post-op for a function of a polynomial";
  reason = push_line(r, u->q[1], u->q[0]);
  if (!reason) reason = push_function(r, name, alpha, 0);
  return reason ? reason : push_line(r, u->a * u->p[0], u->b * u->p[0]);
}

// One piece: primitives |at[count]| from the current value to the next.
typedef struct piece {
  uint32_t count, at[MOST];
  ft_unary form[MOST];
} piece;

static bool operand_form(const reader *r, const piece *run, uint32_t value,
                         ft_unary *out) {
  if (r->graph->value[value].root == r->graph->value[r->current].root) {
    *out = ft_unary_x();
    return true;
  }
  if (ft_value_is_immediate(r->graph, value)) {
    *out = ft_unary_number(ft_tensor_get_f64(r->graph->value[value].data, 0));
    return true;
  }
  uint32_t maker = maker_of(r, value);
  for (uint32_t i = 0; i < run->count; i++) {
    if (run->at[i] != maker) continue;
    *out = run->form[i];
    return true;
  }
  return false;
}

static const char *read_function(reader *r, piece *run) {
  uint32_t count = run->count;
  for (run->count = 0; run->count < count; run->count++) {
    const ft_primitive *p = primitive(r, run->at[run->count]);
    ft_unary operand[3];
    bool is_known = ft_op_describe(p->op)->class == FT_CLASS_E && p->input_count <= 3;
    for (uint32_t i = 0; is_known && i < p->input_count; i++)
      is_known = operand_form(r, run, p->input[i], &operand[i]);
    if (!ft_shape_equal(&r->graph->value[p->output].shape, &r->shape)) is_known = false;
    if (!is_known ||
        !ft_unary_apply(p->op, operand, p->input_count, &run->form[run->count]))
      return no_post_op(r, p);
  }
  return push_unary(r, &run->form[count - 1]);
}

// The shape under which the piece reads the current value: one, or it is no chain.
static const char *read_view(reader *r, const piece *run) {
  const ft_shape *seen = NULL;
  for (uint32_t i = 0; i < run->count; i++) {
    const ft_primitive *p = primitive(r, run->at[i]);
    for (uint32_t k = 0; k < p->input_count; k++) {
      const ft_value *v = &r->graph->value[p->input[k]];
      if (!is_of_chain(r, p->input[k])) continue;
      if (seen && !ft_shape_equal(seen, &v->shape))
        return "the result is read under two shapes";
      seen = &v->shape;
    }
  }
  if (!seen || ft_shape_equal(seen, &r->shape)) return NULL;
  return push_move(r, NULL, seen);
}

static const char *read_piece(reader *r, piece *run) {
  const char *reason = read_view(r, run);
  if (reason) return reason;
  const ft_primitive *p = primitive(r, run->at[0]);
  if (run->count > 1 || p->op == FT_OP_TRANSPOSE) {
    if (p->op == FT_OP_TRANSPOSE && run->count == 1) return push_move(r, p, NULL);
    return read_function(r, run);
  }
  for (uint32_t i = 0; i < p->input_count && p->input_count == 2; i++)
    if (!is_of_chain(r, p->input[i]) && !ft_value_is_immediate(r->graph, p->input[i]))
      return read_binary(r, p, i);
  return read_function(r, run);
}

// ---- the chain ------------------------------------------------------------------------

static void mark_chain(reader *r, uint32_t anchor) {
  r->is_after[anchor] = true;
  for (uint32_t i = anchor + 1; i < r->group->primitive_count; i++) {
    const ft_primitive *p = primitive(r, i);
    for (uint32_t k = 0; k < p->input_count; k++) {
      if (!is_of_chain(r, p->input[k])) continue;
      r->is_after[i] = true;
      r->readers[maker_of(r, p->input[k])]++;
    }
  }
}

// True when what primitive |at| makes is all that is still needed.
static bool is_cut(const reader *r, uint32_t at) {
  for (uint32_t i = 0; i < at; i++)
    if (r->is_after[i] && r->readers[i]) return false;
  return true;
}

static const char *read_chain(reader *r, uint32_t anchor) {
  piece *next = FT_NEW(r->arena, piece);
  if (!next) return "out of memory";
  for (uint32_t i = anchor + 1; i < r->group->primitive_count; i++) {
    if (!r->is_after[i]) continue;
    const ft_primitive *p = primitive(r, i);
    for (uint32_t k = 0; k < p->input_count; k++)
      if (is_of_chain(r, p->input[k])) r->readers[maker_of(r, p->input[k])]--;
    next->at[next->count++] = i;
    r->is_used[i] = true;
    if (!is_cut(r, i)) continue;
    const char *reason = read_piece(r, next);
    if (reason) return reason;
    r->current = p->output;
    next->count = 0;
  }
  return next->count ? "the result is used twice" : NULL;
}

static const char *read_output(reader *r) {
  if (r->group->output[0] != r->current) return "the result is needed halfway, too";
  for (uint32_t i = 0; i < r->group->primitive_count; i++)
    if (!r->is_used[i])
      return ft_arena_printf(r->arena, "%s is no part of the call",
                             name_of(primitive(r, i)));
  r->out->out = ft_strided_whole(r->group->input_count,
                                 &r->graph->value[r->group->output[0]].shape);
  return move_back(r, &r->out->out);
}

const char *ft_onednn_read(const ft_group *group, ft_arena *arena, ft_onednn *out) {
  *out = (ft_onednn){.graph = group->graph};
  if (group->primitive_count > MOST) return "too many primitives for one call";
  reader *r = FT_NEW(arena, reader);
  if (!r) return "out of memory";
  *r = (reader){.group = group, .graph = group->graph, .arena = arena, .out = out};
  uint32_t anchor;
  const char *reason = anchor_refusal(r, &anchor);
  if (reason) return reason;
  if (group->output_count != 1) return "oneDNN writes one output";
  for (uint32_t i = 0; i < group->primitive_count; i++)
    if ((reason = type_refusal(r, primitive(r, i)))) return reason;
  if ((reason = read_anchor(r, anchor))) return reason;
  if (out->anchor->op == FT_OP_WINDOW_SUM) {
    double terms = 1;
    for (int i = 0; i < out->a.shape.rank - 2; i++)
      terms *= (double)out->anchor->attr.window[i];
    reason = push_line(r, terms, 0);  // it gives the mean
  }
  mark_chain(r, anchor);
  if (!reason) reason = read_chain(r, anchor);
  return reason ? reason : read_output(r);
}
