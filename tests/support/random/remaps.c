// Steps that move elements: slices, concats, pads, gathers.
#include "tests/support/random/maker.h"

static void add_slice(maker *m, uint32_t v) {
  ft_attr attr = {.shape = maker_value(m, v)->shape};
  for (uint8_t i = 0; i < attr.shape.rank; i++) {
    int64_t n = attr.shape.dim[i];
    attr.step[i] = 1;
    if (!n || maker_chance(m, 40)) continue;
    if (maker_chance(m, 50)) attr.step[i] = maker_between(m, -3, 3);
    if (!attr.step[i]) attr.step[i] = -1;
    attr.start[i] = maker_between(m, 0, n - 1);
    int64_t room = attr.step[i] > 0 ? n - 1 - attr.start[i] : attr.start[i];
    int64_t step = attr.step[i] > 0 ? attr.step[i] : -attr.step[i];
    int64_t least = maker_chance(m, 4) ? 0 : 1;
    attr.shape.dim[i] = maker_between(m, least, room / step + 1);
  }
  maker_emit(m, FT_OP_SLICE, 1, &v, &attr);
}

static void add_concat(maker *m, uint32_t v) {
  ft_shape shape = maker_value(m, v)->shape;
  if (!shape.rank) return;
  ft_attr attr = {.axis = (uint8_t)maker_below(m, shape.rank)};
  ft_dtype dtype = maker_value(m, v)->dtype;
  uint32_t in[5], count = 1 + (uint32_t)maker_below(m, 4);
  uint32_t at = (uint32_t)maker_below(m, count);
  for (uint32_t i = 0; i < count; i++) {
    ft_shape part = shape;
    part.dim[attr.axis] = maker_between(m, 1, 20);
    if (maker_chance(m, 8)) part.dim[attr.axis] = 0;
    bool repeats = i && maker_chance(m, 20);
    in[i] = i == at ? v : repeats ? in[0] : maker_input(m, dtype, part);
  }
  maker_emit(m, FT_OP_CONCAT, count, in, &attr);
}

static void add_pad(maker *m, uint32_t v) {
  ft_attr attr = {.shape = maker_value(m, v)->shape};
  for (uint8_t i = 0; i < attr.shape.rank; i++) {
    if (maker_chance(m, 50)) continue;
    attr.start[i] = maker_between(m, 0, 3);
    attr.shape.dim[i] += attr.start[i] + maker_between(m, 0, 3);
  }
  uint32_t in[2] = {v, maker_scalar(m, maker_value(m, v)->dtype)};
  maker_emit(m, FT_OP_PAD, 2, in, &attr);
}

// Indices into |limit| elements: known ones from both ends, or an input in [0, limit).
static uint32_t new_indices(maker *m, ft_shape shape, int64_t limit) {
  ft_dtype dtype = maker_chance(m, 50) ? FT_I64 : FT_I32;
  if (limit && maker_chance(m, 30)) return maker_input(m, dtype, shape);
  ft_tensor tensor;
  ft_error error;
  void *data;
  uint32_t value;
  maker_must(ft_tensor_alloc(dtype, &shape, m->arena, &tensor, &data, &error), "indices",
             &error);
  for (int64_t i = 0; i < ft_shape_elements(&shape); i++)
    ft_element_set_i64(dtype, data, i, maker_between(m, -limit, limit - 1));
  const char *name = ft_arena_printf(m->arena, "i%u", m->names++);
  maker_must(ft_graph_add_constant(m->graph, name, &tensor, &value, &error), "indices",
             &error);
  return value;
}

static void add_gather(maker *m, uint32_t v) {
  ft_shape data = maker_value(m, v)->shape;
  if (!data.rank) return;
  ft_attr attr = {.axis = (uint8_t)maker_below(m, data.rank)};
  int64_t limit = data.dim[attr.axis];
  uint8_t rank = (uint8_t)maker_below(m, 3);
  ft_shape index = maker_shape(m, rank, 81);
  for (uint8_t i = 0; i < index.rank; i++)
    if (index.dim[i] > 9 || !limit) index.dim[i] = limit ? 9 : 0;
  if (data.rank - 1 + index.rank > FT_MAX_RANK || (!limit && !index.rank)) return;
  uint32_t in[2] = {v, new_indices(m, index, limit)};
  maker_emit(m, FT_OP_GATHER, 2, in, &attr);
}

static void add_gather_elements(maker *m, uint32_t v) {
  ft_shape shape = maker_value(m, v)->shape;
  if (!shape.rank) return;
  ft_attr attr = {.axis = (uint8_t)maker_below(m, shape.rank)};
  int64_t limit = shape.dim[attr.axis];
  for (uint8_t i = 0; i < shape.rank; i++)
    if (shape.dim[i] && maker_chance(m, 50))
      shape.dim[i] = maker_between(m, 1, shape.dim[i]);
  if (limit) shape.dim[attr.axis] = maker_between(m, 1, 12);
  uint32_t in[2] = {v, new_indices(m, shape, limit)};
  maker_emit(m, FT_OP_GATHER_ELEMENTS, 2, in, &attr);
}

void maker_remap(maker *m, uint32_t v) {
  static maker_step *const steps[] = {add_slice, add_slice,  add_concat,
                                      add_pad,   add_gather, add_gather_elements};
  uint64_t draw = maker_below(m, sizeof steps / sizeof *steps);
  if (ft_shape_elements(&maker_value(m, v)->shape) > MAKER_ELEMENTS) v = m->pool[0];
  steps[draw](m, v);
}
