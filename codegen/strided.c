#include "codegen/strided.h"

ft_strided ft_strided_whole(uint32_t argument, const ft_shape *shape) {
  ft_strided s = {.argument = argument, .shape = *shape};
  ft_shape_strides(shape, s.stride);
  return s;
}

void ft_strided_permute(ft_strided *s, const uint8_t *perm) {
  ft_strided from = *s;
  for (int i = 0; i < s->shape.rank; i++) {
    s->shape.dim[i] = from.shape.dim[perm[i]];
    s->stride[i] = from.stride[perm[i]];
  }
}

void ft_strided_unpermute(ft_strided *s, const uint8_t *perm) {
  ft_strided from = *s;
  for (int i = 0; i < s->shape.rank; i++) {
    s->shape.dim[perm[i]] = from.shape.dim[i];
    s->stride[perm[i]] = from.stride[i];
  }
}

bool ft_strided_broadcast(ft_strided *s, const ft_shape *shape) {
  ft_strided from = *s;
  int missing = shape->rank - from.shape.rank;
  if (missing < 0) return false;
  s->shape = *shape;
  for (int i = 0; i < shape->rank; i++) {
    int64_t dim = i < missing ? 1 : from.shape.dim[i - missing];
    if (dim != 1 && dim != shape->dim[i]) return false;
    s->stride[i] = dim == 1 ? 0 : from.stride[i - missing];
  }
  return true;
}

// Dims of more than one element.
typedef struct dims {
  int count;
  int64_t dim[FT_MAX_RANK], stride[FT_MAX_RANK];
} dims;

static dims long_dims(const ft_strided *s) {
  dims d = {0};
  for (int i = 0; i < s->shape.rank; i++) {
    if (s->shape.dim[i] == 1) continue;
    d.dim[d.count] = s->shape.dim[i];
    d.stride[d.count++] = s->stride[i];
  }
  return d;
}

// Dims [from, end) that can be walked as one.
static bool is_one_walk(const dims *d, int from, int end) {
  for (int i = from; i + 1 < end; i++)
    if (d->stride[i] != d->stride[i + 1] * d->dim[i + 1]) return false;
  return true;
}

// As NumPy's reshape without a copy: runs of old and new dims with equal products, each
// old run walked as one.
bool ft_strided_view(ft_strided *s, const ft_shape *shape) {
  dims old = long_dims(s);
  int64_t stride[FT_MAX_RANK] = {0};
  int at = 0;
  for (int i = 0; i < shape->rank;) {
    if (shape->dim[i] == 1) {
      i++;
      continue;
    }
    if (at == old.count) return false;
    int end = i + 1, old_end = at + 1;
    int64_t product = shape->dim[i], old_product = old.dim[at];
    while (product != old_product) {
      if (product < old_product && end < shape->rank)
        product *= shape->dim[end++];
      else if (product > old_product && old_end < old.count)
        old_product *= old.dim[old_end++];
      else
        return false;
    }
    if (!is_one_walk(&old, at, old_end)) return false;
    int64_t step = old.stride[old_end - 1];
    for (int k = end - 1; k >= i; k--) {
      stride[k] = step;
      step *= shape->dim[k];
    }
    i = end;
    at = old_end;
  }
  s->shape = *shape;
  for (int i = 0; i < FT_MAX_RANK; i++) s->stride[i] = stride[i];
  return at == old.count;
}

// ---- finding a value ------------------------------------------------------------------

static bool slice(ft_strided *s, const ft_attr *attr) {
  for (int i = 0; i < s->shape.rank; i++) {
    if (attr->step[i] < 1) return false;
    s->offset += attr->start[i] * s->stride[i];
    s->stride[i] *= attr->step[i];
  }
  s->shape = attr->shape;
  return true;
}

static const char *move(const ft_primitive *p, ft_strided *s, ft_arena *arena) {
  const char *name = ft_op_describe(p->op)->name;
  bool is_done = p->op == FT_OP_SLICE       ? slice(s, &p->attr)
                 : p->op == FT_OP_BROADCAST ? ft_strided_broadcast(s, &p->attr.shape)
                                            : p->op == FT_OP_TRANSPOSE;
  if (!is_done) return ft_arena_printf(arena, "%s has no strides", name);
  if (p->op == FT_OP_TRANSPOSE) ft_strided_permute(s, p->attr.perm);
  return NULL;
}

static const char *find_outside(const ft_group *group, uint32_t value, ft_arena *arena,
                                ft_strided *out) {
  const ft_value *v = &group->graph->value[value];
  for (uint32_t i = 0; i < group->input_count; i++) {
    if (group->input[i] != v->root) continue;
    *out = ft_strided_whole(i, &v->shape);
    return NULL;
  }
  return ft_arena_printf(arena, "an operand is the number %g, not a buffer",
                         v->data ? ft_tensor_get_f64(v->data, 0) : 0.0);
}

const char *ft_strided_find(const ft_group *group, uint32_t value, bool *is_used,
                            ft_arena *arena, ft_strided *out) {
  const ft_value *v = &group->graph->value[value];
  uint32_t at = 0;
  while (at < group->primitive_count && group->primitive[at] != v->producer) at++;
  if (v->producer == FT_NONE || at == group->primitive_count)
    return find_outside(group, value, arena, out);
  const ft_primitive *p = &group->graph->primitive[v->producer];
  if (p->op != FT_OP_TRANSPOSE && p->op != FT_OP_BROADCAST && p->op != FT_OP_SLICE)
    return ft_arena_printf(arena, "an operand is computed by %s",
                           ft_op_describe(p->op)->name);
  const char *reason = ft_strided_find(group, p->input[0], is_used, arena, out);
  if (!reason) reason = move(p, out, arena);
  if (!reason && !ft_shape_equal(&out->shape, &v->shape) &&
      !ft_strided_view(out, &v->shape))
    reason = ft_arena_printf(arena, "an operand viewed as %s has no strides",
                             ft_shape_text(&v->shape, arena));
  is_used[at] = true;
  return reason;
}
