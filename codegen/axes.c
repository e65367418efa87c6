#include "codegen/axes.h"

#include <string.h>

// Axes still to be walked, innermost on top.
typedef struct stack {
  uint32_t count;
  uint32_t axis[2 * FT_MAX_LEAVES];
} stack;

static uint32_t find(const ft_axes *axes, uint32_t axis) {
  while (axes->axis[axis].parent != axis) axis = axes->axis[axis].parent;
  return axis;
}

static bool is_split(const ft_axes *axes, uint32_t axis) {
  return axes->axis[axis].outer != FT_AXIS_NONE;
}

uint32_t ft_axes_add(ft_axes *axes, int64_t extent) {
  if (FT_GROW(axes->arena, &axes->axis, axes->count, &axes->capacity))
    return FT_AXIS_NONE;
  uint32_t id = axes->count++;
  axes->axis[id] = (ft_axis){extent, id, FT_AXIS_NONE, FT_AXIS_NONE};
  return id;
}

bool ft_axes_add_shape(ft_axes *axes, const ft_shape *shape, ft_axis_dims *out) {
  *out = (ft_axis_dims){.rank = shape->rank};
  for (uint8_t i = 0; i < shape->rank; i++) {
    out->axis[i] = FT_AXIS_NONE;
    if (shape->dim[i] == 1) continue;
    out->axis[i] = ft_axes_add(axes, shape->dim[i]);
    if (out->axis[i] == FT_AXIS_NONE) return false;
  }
  return true;
}

static ft_axes_outcome append_leaves(const ft_axes *axes, uint32_t axis,
                                     ft_axis_list *out) {
  axis = find(axes, axis);
  if (is_split(axes, axis)) {  // depth is at most log2 of the extent: 62
    ft_axes_outcome outcome = append_leaves(axes, axes->axis[axis].outer, out);
    if (outcome != FT_AXES_OK) return outcome;
    return append_leaves(axes, axes->axis[axis].inner, out);
  }
  if (out->count == FT_MAX_LEAVES) return FT_AXES_TOO_MANY;
  out->leaf[out->count++] = axis;
  return FT_AXES_OK;
}

ft_axes_outcome ft_axes_flatten(const ft_axes *axes, const ft_axis_dims *dims,
                                ft_axis_list *out) {
  out->count = 0;
  for (uint8_t i = 0; i < dims->rank; i++) {
    if (dims->axis[i] == FT_AXIS_NONE) continue;
    ft_axes_outcome outcome = append_leaves(axes, dims->axis[i], out);
    if (outcome != FT_AXES_OK) return outcome;
  }
  return FT_AXES_OK;
}

// Takes the innermost leaf off the stack. Splits made since it was pushed show up here.
static uint32_t pop(const ft_axes *axes, stack *s) {
  uint32_t axis = find(axes, s->axis[--s->count]);
  while (is_split(axes, axis)) {
    s->axis[s->count++] = axes->axis[axis].outer;
    axis = find(axes, axes->axis[axis].inner);
  }
  return axis;
}

// Splits |axis| so that its inner part has |extent|, which it pushes back outermost
// first; returns the inner part, FT_AXIS_NONE when out of memory.
static uint32_t split(ft_axes *axes, uint32_t axis, int64_t extent, stack *s) {
  uint32_t outer = ft_axes_add(axes, axes->axis[axis].extent / extent);
  uint32_t inner = outer == FT_AXIS_NONE ? FT_AXIS_NONE : ft_axes_add(axes, extent);
  if (inner == FT_AXIS_NONE) return FT_AXIS_NONE;
  axes->axis[axis].outer = outer;
  axes->axis[axis].inner = inner;
  s->axis[s->count++] = outer;
  return inner;
}

static ft_axes_outcome unify_stacks(ft_axes *axes, stack *a, stack *b) {
  while (a->count && b->count) {
    if (a->count > FT_MAX_LEAVES || b->count > FT_MAX_LEAVES) return FT_AXES_TOO_MANY;
    uint32_t x = pop(axes, a), y = pop(axes, b);
    if (x == y) continue;
    int64_t p = axes->axis[x].extent, q = axes->axis[y].extent;
    if (p % q && q % p) return FT_AXES_UNEVEN;
    if (p > q) x = split(axes, x, q, a);
    if (q > p) y = split(axes, y, p, b);
    if (x == FT_AXIS_NONE || y == FT_AXIS_NONE) return FT_AXES_NO_MEMORY;
    if (x < y)
      axes->axis[y].parent = x;
    else
      axes->axis[x].parent = y;
  }
  return a->count == b->count ? FT_AXES_OK : FT_AXES_UNEVEN;
}

static stack stack_of(const ft_axis_dims *dims) {
  stack s = {0};
  for (uint8_t i = 0; i < dims->rank; i++) {
    if (dims->axis[i] != FT_AXIS_NONE) s.axis[s.count++] = dims->axis[i];
  }
  return s;
}

ft_axes_outcome ft_axes_unify(ft_axes *axes, const ft_axis_dims *a,
                              const ft_axis_dims *b) {
  stack s = stack_of(a), t = stack_of(b);
  return unify_stacks(axes, &s, &t);
}

ft_axes_outcome ft_axes_unify_one(ft_axes *axes, uint32_t a, uint32_t b) {
  stack s = {1, {a}}, t = {1, {b}};
  return unify_stacks(axes, &s, &t);
}

bool ft_axis_list_repeats(const ft_axis_list *list) {
  for (uint32_t i = 0; i < list->count; i++) {
    for (uint32_t k = 0; k < i; k++) {
      if (list->leaf[i] == list->leaf[k]) return true;
    }
  }
  return false;
}

ft_axes *ft_axes_snapshot(const ft_axes *axes) {
  ft_axes *copy = FT_NEW(axes->arena, ft_axes);
  ft_axis *axis = copy ? FT_NEW_ARRAY(axes->arena, ft_axis, axes->capacity) : NULL;
  if (!axis) return NULL;
  *copy = *axes;
  copy->axis = axis;
  if (axes->count) memcpy(axis, axes->axis, axes->count * sizeof *axis);
  return copy;
}

void ft_axes_restore(ft_axes *axes, const ft_axes *snapshot) {
  axes->count = snapshot->count;
  if (snapshot->count) {
    memcpy(axes->axis, snapshot->axis, snapshot->count * sizeof *axes->axis);
  }
}
