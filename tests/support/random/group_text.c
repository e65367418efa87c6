// A group as lines of text, for reports.
#include "core/strbuf.h"
#include "tests/support/random/random_group.h"

static void put_list(ft_strbuf *out, const char *name, const int64_t *list, int count) {
  ft_strbuf_printf(out, " %s", name);
  for (int i = 0; i < count; i++)
    ft_strbuf_printf(out, "%c%lld", i ? ',' : '=', (long long)list[i]);
}

// The attributes that the class of |p| can have; zeros say nothing and are left out.
static void put_attr(ft_strbuf *out, const ft_primitive *p, int rank, ft_arena *arena) {
  const ft_attr *a = &p->attr;
  if (p->op == FT_OP_CAST) ft_strbuf_printf(out, " to=%s", ft_dtype_text(a->to));
  if (a->axes) ft_strbuf_printf(out, " axes=%x", a->axes);
  if (a->shape.rank) ft_strbuf_printf(out, " shape=%s", ft_shape_text(&a->shape, arena));
  if (a->axis) ft_strbuf_printf(out, " axis=%u", a->axis);
  if (a->groups) ft_strbuf_printf(out, " groups=%lld", (long long)a->groups);
  int64_t perm[FT_MAX_RANK];
  for (int i = 0; i < rank; i++) perm[i] = a->perm[i];
  if (p->op == FT_OP_TRANSPOSE) put_list(out, "perm", perm, rank);
  if (p->op == FT_OP_SLICE || p->op == FT_OP_PAD) put_list(out, "start", a->start, rank);
  if (p->op == FT_OP_SLICE) put_list(out, "step", a->step, rank);
  if (!a->stride[0]) return;
  put_list(out, "start", a->start, rank - 2);
  put_list(out, "stride", a->stride, rank - 2);
  put_list(out, "dilation", a->dilation, rank - 2);
  if (a->window[0]) put_list(out, "window", a->window, rank - 2);
}

static void put_operand(ft_strbuf *out, const ft_graph *g, uint32_t v, ft_arena *arena) {
  const ft_value *value = &g->value[v];
  if (ft_value_is_immediate(g, v))
    ft_strbuf_printf(out, "%.9g", ft_tensor_get_f64(g->value[value->root].data, 0));
  else if (value->root != v)
    ft_strbuf_printf(out, "v%u as %s", value->root, ft_shape_text(&value->shape, arena));
  else
    ft_strbuf_printf(out, "v%u", v);
}

static void put_value(ft_strbuf *out, const ft_graph *g, uint32_t v, ft_arena *arena) {
  const ft_value *value = &g->value[v];
  ft_strbuf_printf(out, "  v%u %s %s", v, ft_dtype_text(value->dtype),
                   ft_shape_text(&value->shape, arena));
}

const char *group_text(const ft_group *group, ft_arena *arena) {
  ft_strbuf out = ft_strbuf_init(arena);
  const ft_graph *g = group->graph;
  for (uint32_t i = 0; i < group->input_count; i++) {
    put_value(&out, g, group->input[i], arena);
    bool is_known = g->value[group->input[i]].role == FT_ROLE_CONSTANT;
    ft_strbuf_printf(&out, is_known ? " constant\n" : " input\n");
  }
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &g->primitive[group->primitive[i]];
    put_value(&out, g, p->output, arena);
    ft_strbuf_printf(&out, " = %s(", ft_op_describe(p->op)->name);
    for (uint32_t k = 0; k < p->input_count; k++) {
      ft_strbuf_add(&out, k ? ", " : "");
      put_operand(&out, g, p->input[k], arena);
    }
    ft_strbuf_add(&out, ")");
    put_attr(&out, p, g->value[p->input[0]].shape.rank, arena);
    for (uint32_t o = 0; o < group->output_count; o++)
      if (group->output[o] == p->output) ft_strbuf_printf(&out, " -> output %u", o);
    ft_strbuf_add(&out, "\n");
  }
  return out.text;
}
