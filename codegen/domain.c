// Equalities between axes come from three places, in this order:
//  1. each primitive relates its inputs' dims to its output's; a view relates its dims to
//     its root's, row-major;
//  2. two reads of one outside tensor want to run together;
//  3. tensors of one size that a kernel walks from end to end (outputs, what is reduced)
//     want to run together.
// The first must hold. The others are wishes: they are taken back when they would put a
// tensor on its own diagonal.
#include "codegen/domain.h"

typedef struct builder {
  const ft_group *group;
  ft_arena *arena;
  ft_domain *domain;
  const char *reason;
  bool no_memory;
} builder;

uint32_t ft_domain_find(const ft_domain *domain, uint32_t value) {
  for (uint32_t i = 0; i < domain->count; i++) {
    if (domain->step[i].primitive->output == value) return i;
  }
  return UINT32_MAX;
}

static bool refuse(builder *b, const char *text) {
  if (!b->reason) b->reason = text;
  if (!b->reason) b->no_memory = true;
  return false;
}

static const char *shape_text(const builder *b, const ft_shape *shape) {
  return ft_shape_text(shape, b->arena);
}

static bool took(builder *b, ft_axes_outcome outcome, const ft_shape *x,
                 const ft_shape *y) {
  if (outcome == FT_AXES_OK) return true;
  if (outcome == FT_AXES_NO_MEMORY) {
    b->no_memory = true;
    return false;
  }
  const char *why =
      outcome == FT_AXES_UNEVEN ? "have no common axes" : "need too many axes";
  return refuse(b, ft_arena_printf(b->arena, "%s and %s %s", shape_text(b, x),
                                   shape_text(b, y), why));
}

static bool add_shape(builder *b, const ft_shape *shape, ft_axis_dims *out) {
  if (ft_axes_add_shape(&b->domain->axes, shape, out)) return true;
  b->no_memory = true;
  return false;
}

// ---- what primitives say ------------------------------------------------------------

// The dims that input i is read with.
static bool add_input(builder *b, ft_domain_step *s, uint32_t i) {
  const ft_graph *graph = b->group->graph;
  const ft_value *value = &graph->value[s->primitive->input[i]];
  uint32_t from = ft_domain_find(b->domain, value->root);
  s->is_external[i] = from == UINT32_MAX;
  if (!ft_shape_elements(&value->shape)) return true;
  if (!add_shape(b, &value->shape, &s->input[i])) return false;
  if (s->is_external[i]) return true;
  const ft_shape *root = &graph->value[value->root].shape;
  return took(
      b, ft_axes_unify(&b->domain->axes, &b->domain->step[from].output, &s->input[i]),
      root, &value->shape);
}

static bool relate_one(builder *b, ft_domain_step *s, uint32_t i, uint32_t in,
                       uint32_t out) {
  uint32_t x = s->input[i].axis[in], y = s->output.axis[out];
  if (x == FT_AXIS_NONE || y == FT_AXIS_NONE) return true;  // broadcast, or reduced
  const ft_graph *graph = b->group->graph;
  return took(b, ft_axes_unify_one(&b->domain->axes, x, y),
              &graph->value[s->primitive->input[i]].shape,
              &graph->value[s->primitive->output].shape);
}

static bool relate_input(builder *b, ft_domain_step *s, uint32_t i) {
  const ft_primitive *p = s->primitive;
  for (uint32_t in = 0; in < s->input[i].rank; in++) {
    uint32_t out = s->output.rank - s->input[i].rank + in;  // right-aligned
    if (p->op == FT_OP_TRANSPOSE) {
      for (out = 0; p->attr.perm[out] != in;) out++;
    }
    if (!relate_one(b, s, i, in, out)) return false;
  }
  return true;
}

static bool add_step(builder *b, uint32_t primitive) {
  const ft_graph *graph = b->group->graph;
  ft_domain_step *s = &b->domain->step[b->domain->count];
  s->primitive = &graph->primitive[primitive];
  const ft_shape *shape = &graph->value[s->primitive->output].shape;
  s->is_empty = !ft_shape_elements(shape);
  for (uint32_t i = 0; i < s->primitive->input_count; i++) {
    const ft_value *value = &graph->value[s->primitive->input[i]];
    if (!ft_shape_elements(&value->shape) && !s->is_empty) s->is_constant = true;
    if (!s->is_empty && !add_input(b, s, i)) return false;
  }
  if (!s->is_empty) {
    if (!add_shape(b, shape, &s->output)) return false;
    for (uint32_t i = 0; i < s->primitive->input_count && !s->is_constant; i++) {
      if (!relate_input(b, s, i)) return false;
    }
  }
  b->domain->count++;
  return true;
}

// ---- what would be good
// -----------------------------------------------------------------

// -1: out of memory, 0: fine, 1: a value sits on its own diagonal.
static int has_diagonal(const builder *b) {
  for (uint32_t i = 0; i < b->domain->count; i++) {
    const ft_domain_step *s = &b->domain->step[i];
    ft_axis_list list;
    for (uint32_t k = 0; k <= s->primitive->input_count; k++) {
      const ft_axis_dims *dims = k ? &s->input[k - 1] : &s->output;
      if (ft_axes_flatten(&b->domain->axes, dims, &list) != FT_AXES_OK) return 1;
      if (ft_axis_list_repeats(&list)) return 1;
    }
  }
  return 0;
}

static void wish(builder *b, const ft_axis_dims *x, const ft_axis_dims *y) {
  ft_axes *axes = &b->domain->axes;
  ft_axes *before = ft_axes_snapshot(axes);
  if (!before) {
    b->no_memory = true;
    return;
  }
  ft_axes_outcome outcome = ft_axes_unify(axes, x, y);
  if (outcome == FT_AXES_NO_MEMORY) b->no_memory = true;
  if (outcome != FT_AXES_OK || has_diagonal(b)) ft_axes_restore(axes, before);
}

static bool is_same(const builder *b, const ft_axis_dims *x, const ft_axis_dims *y) {
  ft_axis_list p, q;
  if (ft_axes_flatten(&b->domain->axes, x, &p) != FT_AXES_OK ||
      ft_axes_flatten(&b->domain->axes, y, &q) != FT_AXES_OK || p.count != q.count)
    return false;
  for (uint32_t i = 0; i < p.count; i++) {
    if (p.leaf[i] != q.leaf[i]) return false;
  }
  return true;
}

// A tensor that is walked: dims, and what makes two of them partners.
typedef struct walk {
  const ft_axis_dims *dims;
  uint32_t root;
  int64_t elements;
} walk;

static void join_reads(builder *b, const walk *w, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < i; k++) {
      if (w[i].root == w[k].root && !is_same(b, w[i].dims, w[k].dims))
        wish(b, w[i].dims, w[k].dims);
    }
  }
}

static void join_walks(builder *b, const walk *w, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < i; k++) {
      if (w[i].elements == w[k].elements && !is_same(b, w[i].dims, w[k].dims))
        wish(b, w[i].dims, w[k].dims);
    }
  }
}

static bool is_output(const ft_group *group, uint32_t value) {
  for (uint32_t i = 0; i < group->output_count; i++) {
    if (group->output[i] == value) return true;
  }
  return false;
}

static void join(builder *b) {
  const ft_graph *graph = b->group->graph;
  walk *reads = FT_NEW_ARRAY(b->arena, walk, 3 * (size_t)b->domain->count);
  walk *walks = FT_NEW_ARRAY(b->arena, walk, 4 * (size_t)b->domain->count);
  uint32_t read_count = 0, walk_count = 0;
  if (!reads || !walks) {
    b->no_memory = true;
    return;
  }
  for (uint32_t i = 0; i < b->domain->count; i++) {
    const ft_domain_step *s = &b->domain->step[i];
    if (s->is_empty || s->is_constant) continue;
    bool reduces = ft_op_describe(s->primitive->op)->class == FT_CLASS_R;
    for (uint32_t k = 0; k < s->primitive->input_count; k++) {
      const ft_value *value = &graph->value[s->primitive->input[k]];
      walk w = {&s->input[k], value->root, ft_shape_elements(&value->shape)};
      if (w.elements < 2) continue;
      if (s->is_external[k]) reads[read_count++] = w;
      if (reduces) walks[walk_count++] = w;
    }
    const ft_value *output = &graph->value[s->primitive->output];
    if (is_output(b->group, s->primitive->output))
      walks[walk_count++] =
          (walk){&s->output, s->primitive->output, ft_shape_elements(&output->shape)};
  }
  join_reads(b, reads, read_count);
  join_walks(b, walks, walk_count);
}

// Elementwise work, reductions, and the remaps that are strides.
static bool has_axes(const ft_primitive *p) {
  ft_op_class class = ft_op_describe(p->op)->class;
  return class == FT_CLASS_E || class == FT_CLASS_R || p->op == FT_OP_BROADCAST ||
         p->op == FT_OP_TRANSPOSE;
}

static bool check_primitives(builder *b) {
  for (uint32_t i = 0; i < b->group->primitive_count; i++) {
    const ft_primitive *p = &b->group->graph->primitive[b->group->primitive[i]];
    if (!has_axes(p))
      return refuse(b, ft_arena_printf(b->arena, "%s is no loops over common axes",
                                       ft_op_describe(p->op)->name));
  }
  return true;
}

ft_status ft_domain_make(const ft_group *group, ft_arena *arena, ft_domain *out,
                         const char **reason, ft_error *error) {
  *out = (ft_domain){.axes = {.arena = arena}};
  *reason = NULL;
  builder b = {.group = group, .arena = arena, .domain = out};
  out->step = FT_NEW_ARRAY(arena, ft_domain_step, group->primitive_count);
  FT_OOM_IF(!out->step, error);
  bool ok = check_primitives(&b);
  for (uint32_t i = 0; ok && i < group->primitive_count; i++) {
    ok = add_step(&b, group->primitive[i]);
  }
  if (ok && has_diagonal(&b)) {
    refuse(&b, "reads one of its own values in two orders");
    ok = false;
  }
  if (ok) join(&b);
  FT_OOM_IF(b.no_memory, error);
  *reason = b.reason;
  return FT_OK;
}
