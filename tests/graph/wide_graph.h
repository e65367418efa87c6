// wide_graph - seeded graphs with windows, contractions, gathers and the other primitives
// that have attributes of their own, mixed with those of random_graph.h.
#ifndef FT_TESTS_GRAPH_WIDE_GRAPH_H
#define FT_TESTS_GRAPH_WIDE_GRAPH_H

#include "random_graph.h"

static inline ft_shape shape_of(const random_graph *r, uint32_t value) {
  return r->graph->value[value].shape;
}

static inline int64_t between(random_graph *r, int64_t low, int64_t high) {
  return low + (int64_t)ft_rng_below(&r->rng, (uint64_t)(high - low + 1));
}

static inline uint32_t view(random_graph *r, uint32_t value, ft_shape shape) {
  uint32_t out;
  MUST(ft_graph_view(r->graph, value, &shape, &out, ERR));
  return out;
}

static inline uint32_t slice_of(random_graph *r, uint32_t in) {
  ft_attr attr = {.shape = shape_of(r, in)};
  for (int i = 0; i < attr.shape.rank; i++) {
    int64_t dim = attr.shape.dim[i], step = between(r, 1, 3);
    attr.start[i] = dim ? between(r, 0, dim - 1) : 0;
    int64_t room = dim ? (dim - 1 - attr.start[i]) / step + 1 : 0;
    attr.step[i] = step;
    if (pick(r, 2) && dim) {
      attr.step[i] = -step;
      room = attr.start[i] / step + 1;
    }
    if (pick(r, 3) == 0 && dim) attr.start[i] = 0, attr.step[i] = 1, room = dim;
    attr.shape.dim[i] = pick(r, 30) == 0 ? 0 : room ? between(r, 1, room) : 0;
  }
  return emit(r, FT_OP_SLICE, &in, 1, &attr);
}

static inline void add_slice(random_graph *r) {
  keep(r, slice_of(r, any_value(r)));
}

static inline void add_concat(random_graph *r) {
  uint32_t in[6], count = 1 + pick(r, 5);
  in[0] = any_value(r);
  ft_shape shape = shape_of(r, in[0]);
  if (shape.rank == 0 || ft_shape_elements(&shape) * count > RANDOM_MOST_ELEMENTS) return;
  ft_attr attr = {.axis = (uint8_t)pick(r, shape.rank)};
  for (uint32_t i = 1; i < count; i++) {
    ft_attr part = {.shape = shape};
    for (int d = 0; d < shape.rank; d++) part.step[d] = 1;
    part.shape.dim[attr.axis] = between(r, 0, shape.dim[attr.axis]);
    in[i] = in[pick(r, i)];
    if (ft_shape_equal(&shape, &r->graph->value[in[i]].shape) && pick(r, 2))
      in[i] = emit(r, FT_OP_SLICE, &in[i], 1, &part);
    else
      in[i] = emit(r, FT_OP_SIN, &in[i], 1, NULL);
  }
  keep(r, emit(r, FT_OP_CONCAT, in, count, &attr));
}

// One element of a value, by a whole reduction, as a scalar; or a constant.
static inline uint32_t scalar(random_graph *r) {
  uint32_t in = any_value(r), out;
  if (pick(r, 2)) {
    MUST(ft_graph_add_scalar(r->graph, FT_F32, pick(r, 3) - 1.0, &out, ERR));
    return out;
  }
  ft_attr all = {.axes = (1u << shape_of(r, in).rank) - 1};
  in = emit(r, FT_OP_REDUCE_SUM, &in, 1, &all);
  return view(r, in, (ft_shape){0});
}

static inline void add_pad(random_graph *r) {
  uint32_t in[2] = {any_value(r), scalar(r)};
  ft_attr attr = {.shape = shape_of(r, in[0])};
  for (int i = 0; i < attr.shape.rank; i++) {
    attr.start[i] = between(r, 0, 2);
    attr.shape.dim[i] += attr.start[i] + between(r, 0, 2);
  }
  if (ft_shape_elements(&attr.shape) > RANDOM_MOST_ELEMENTS) return;
  keep(r, emit(r, FT_OP_PAD, in, 2, &attr));
}

static inline uint32_t constant_indices(random_graph *r, ft_shape shape, int64_t limit) {
  ft_tensor tensor;
  void *data;
  uint32_t out;
  ft_dtype dtype = pick(r, 2) ? FT_I32 : FT_I64;
  MUST(ft_tensor_alloc(dtype, &shape, r->graph->arena, &tensor, &data, ERR));
  for (int64_t i = 0; i < ft_shape_elements(&shape); i++)
    ft_element_set_i64(dtype, data, i, between(r, -limit, limit - 1));
  MUST(ft_graph_add_constant(r->graph, "i", &tensor, &out, ERR));
  return out;
}

// Floats of another value of that many elements, cut off and kept within [-limit, limit).
static inline uint32_t computed_indices(random_graph *r, ft_shape shape, int64_t limit) {
  int64_t count = ft_shape_elements(&shape);
  uint32_t in[2];
  ft_shape flat = {1, {count}};
  ft_attr broadcast = {.shape = flat}, to_int = {.to = FT_I32};
  in[0] = view(r, emit(r, FT_OP_BROADCAST, (uint32_t[]){scalar(r)}, 1, &broadcast), flat);
  for (int tries = 0; tries < 10; tries++) {
    uint32_t other = any_value(r);
    ft_shape all = shape_of(r, other);
    if (ft_shape_elements(&all) == count) in[0] = view(r, other, shape);
  }
  in[0] = emit(r, FT_OP_CAST, in, 1, &to_int);
  MUST(ft_graph_add_scalar(r->graph, FT_I32, (double)limit - 1, &in[1], ERR));
  in[0] = emit(r, FT_OP_MIN, in, 2, NULL);
  MUST(ft_graph_add_scalar(r->graph, FT_I32, -(double)limit, &in[1], ERR));
  in[0] = emit(r, FT_OP_MAX, in, 2, NULL);
  return view(r, in[0], shape);
}

static inline uint32_t indices(random_graph *r, ft_shape shape, int64_t limit) {
  uint32_t kind = pick(r, 3), out;
  if (kind == 0) return constant_indices(r, shape, limit);
  if (kind == 1) return computed_indices(r, shape, limit);
  MUST(
      ft_graph_add_input(r->graph, "i", pick(r, 2) ? FT_I32 : FT_I64, &shape, &out, ERR));
  return out;
}

static inline void add_gather(random_graph *r) {
  uint32_t in[2] = {any_value(r)};
  ft_shape data = shape_of(r, in[0]), shape = {.rank = (uint8_t)pick(r, 3)};
  if (data.rank == 0 || data.rank > 4) return;
  ft_attr attr = {.axis = (uint8_t)pick(r, data.rank)};
  int64_t limit = data.dim[attr.axis];
  for (int i = 0; i < shape.rank; i++) shape.dim[i] = between(r, limit > 0, 4);
  if (limit == 0 && ft_shape_elements(&shape)) return;
  if (ft_shape_elements(&data) * 16 > RANDOM_MOST_ELEMENTS * 4) return;
  in[1] = indices(r, shape, limit);
  keep(r, emit(r, FT_OP_GATHER, in, 2, &attr));
}

static inline void add_gather_elements(random_graph *r) {
  uint32_t in[2] = {any_value(r)};
  ft_shape data = shape_of(r, in[0]), shape = data;
  if (data.rank == 0) return;
  ft_attr attr = {.axis = (uint8_t)pick(r, data.rank)};
  for (int i = 0; i < data.rank; i++)
    if (data.dim[i]) shape.dim[i] = between(r, 1, data.dim[i]);
  if (ft_shape_elements(&data) == 0) return;
  in[1] = indices(r, shape, data.dim[attr.axis]);
  keep(r, emit(r, FT_OP_GATHER_ELEMENTS, in, 2, &attr));
}

// A value as [N, C, D...]: as it is, or with two axes in front.
static inline uint32_t image_of(random_graph *r) {
  uint32_t in = any_value(r);
  ft_shape shape = shape_of(r, in);
  if (shape.rank >= 2 && shape.rank <= 4 && pick(r, 2)) return in;
  ft_shape wide = {.rank = (uint8_t)(shape.rank + 1), .dim = {1}};
  if (shape.rank == 0 || shape.rank > 4) return FT_NONE;
  for (int i = 0; i < shape.rank; i++) wide.dim[i + 1] = shape.dim[i];
  return view(r, in, wide);
}

static inline void window_attr(random_graph *r, ft_shape x, int64_t channels,
                               ft_attr *attr) {
  attr->shape = (ft_shape){.rank = x.rank, .dim = {x.dim[0], channels}};
  for (int i = 0; i < x.rank - 2; i++) {
    attr->window[i] = between(r, 1, 3);
    attr->stride[i] = between(r, 1, 2);
    attr->dilation[i] = between(r, 1, 2);
    attr->start[i] = between(r, 0, 2);
    int64_t end = x.dim[i + 2] + attr->start[i] + between(r, 0, 2);
    int64_t room = end - (attr->window[i] - 1) * attr->dilation[i];
    attr->shape.dim[i + 2] = room < 1 ? 0 : (room - 1) / attr->stride[i] + 1;
  }
}

static inline void add_window(random_graph *r) {
  uint32_t in = image_of(r);
  if (in == FT_NONE) return;
  ft_attr attr = {0};
  window_attr(r, shape_of(r, in), shape_of(r, in).dim[1], &attr);
  if (ft_shape_elements(&attr.shape) > RANDOM_MOST_ELEMENTS) return;
  keep(r, emit(r, pick(r, 2) ? FT_OP_WINDOW_MAX : FT_OP_WINDOW_SUM, &in, 1, &attr));
}

// Exact, or the sine of something exact.
static inline uint32_t weight(random_graph *r, ft_shape shape) {
  uint32_t out;
  MUST(ft_graph_add_weight(r->graph, "w", FT_F32, &shape, ft_rng_below(&r->rng, 1 << 20),
                           &out, ERR));
  return pick(r, 2) ? out : emit(r, FT_OP_SIN, &out, 1, NULL);
}

static inline void add_conv(random_graph *r) {
  uint32_t in[2] = {image_of(r)};
  if (in[0] == FT_NONE) return;
  ft_shape x = shape_of(r, in[0]), w = {.rank = x.rank};
  ft_attr attr = {.groups = pick(r, 2) && x.dim[1] ? x.dim[1] : 1};
  w.dim[0] = attr.groups * between(r, 1, 5);
  w.dim[1] = x.dim[1] / attr.groups;
  window_attr(r, x, w.dim[0], &attr);
  for (int i = 0; i < x.rank - 2; i++) w.dim[i + 2] = attr.window[i];
  if (ft_shape_elements(&attr.shape) > RANDOM_MOST_ELEMENTS) return;
  in[1] = weight(r, w);
  keep(r, emit(r, FT_OP_CONV, in, 2, &attr));
}

static inline void add_matmul(random_graph *r) {
  uint32_t in[2] = {any_value(r)};
  ft_shape a = shape_of(r, in[0]), b = a;
  if (a.rank < 2 || a.rank > 4) return;
  if (pick(r, 3) == 0) {  // with itself, the other way round
    ft_attr attr = {0};
    for (int i = 0; i < a.rank; i++) attr.perm[i] = (uint8_t)i;
    attr.perm[a.rank - 1]--, attr.perm[a.rank - 2]++;
    in[1] = emit(r, FT_OP_TRANSPOSE, in, 1, &attr);
  } else {
    if (pick(r, 2)) b = (ft_shape){.rank = 2};
    for (int i = 0; i < b.rank - 2; i++)
      if (pick(r, 3) == 0) b.dim[i] = 1;
    b.dim[b.rank - 2] = a.dim[a.rank - 1];
    b.dim[b.rank - 1] = between(r, 1, 9);
    in[1] = weight(r, b);
  }
  if (ft_shape_elements(&a) * 9 > 4 * RANDOM_MOST_ELEMENTS) return;
  keep(r, emit(r, FT_OP_MATMUL, in, 2, NULL));
}

static inline void add_fmod(random_graph *r) {
  uint32_t a = any_value(r);
  uint32_t in[2] = {a, partner(r, a)};
  keep(r, emit(r, FT_OP_FMOD, in, 2, NULL));
}

// A finished graph of about |steps| primitives; its last values are outputs.
static inline ft_graph *wide_graph_make(uint64_t seed, int steps, bool with_empty,
                                        ft_arena *arena) {
  static void (*const kinds[])(random_graph *) = {
      add_unary,  add_binary,          add_binary,    add_choice, add_remap,  add_view,
      add_slice,  add_concat,          add_reduction, add_pad,    add_gather, add_gather,
      add_window, add_gather_elements, add_conv,      add_conv,   add_matmul, add_matmul,
      add_fmod,
  };
  random_graph r = {.rng = ft_rng_seed(seed)};
  MUST(ft_graph_create(arena, "wide", &r.graph, ERR));
  MUST(ft_graph_begin_operator(r.graph, "node", "Random", "", ERR));
  add_inputs(&r, with_empty);
  for (int i = 0; i < steps; i++) kinds[pick(&r, sizeof kinds / sizeof kinds[0])](&r);
  for (uint32_t i = r.count > 3 ? r.count - 3 : 0; i < r.count; i++)
    MUST(ft_graph_add_output(r.graph, "y", r.value[i], ERR));
  MUST(ft_graph_finish(r.graph, ERR));
  ft_graph_check(r.graph);
  return r.graph;
}

#endif
