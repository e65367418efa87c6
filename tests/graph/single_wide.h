// single_wide - single.h's part for the primitives with attributes of their own. Included
// by it.
#ifndef FT_TESTS_GRAPH_SINGLE_WIDE_H
#define FT_TESTS_GRAPH_SINGLE_WIDE_H

static inline void coordinates(const ft_shape *shape, int64_t index, int64_t *out) {
  for (int i = shape->rank - 1; i >= 0; i--) {
    out[i] = index % shape->dim[i];
    index /= shape->dim[i];
  }
}

static inline int64_t row_major(const ft_shape *shape, const int64_t *at) {
  int64_t index = 0;
  for (int i = 0; i < shape->rank; i++) index = index * shape->dim[i] + at[i];
  return index;
}

static inline const ft_shape *in_shape(const single *s, const ft_primitive *p,
                                       uint32_t i) {
  return &s->graph->value[p->input[i]].shape;
}

static inline double in_element(const single *s, const ft_primitive *p, uint32_t i,
                                const int64_t *at) {
  return s->value[s->graph->value[p->input[i]].root][row_major(in_shape(s, p, i), at)];
}

static inline double single_slice(const single *s, const ft_primitive *p, int64_t *at) {
  for (int i = 0; i < in_shape(s, p, 0)->rank; i++)
    at[i] = p->attr.start[i] + at[i] * p->attr.step[i];
  return in_element(s, p, 0, at);
}

static inline double single_concat(const single *s, const ft_primitive *p, int64_t *at) {
  uint32_t i = 0;
  for (; at[p->attr.axis] >= in_shape(s, p, i)->dim[p->attr.axis]; i++)
    at[p->attr.axis] -= in_shape(s, p, i)->dim[p->attr.axis];
  return in_element(s, p, i, at);
}

static inline double single_pad(const single *s, const ft_primitive *p, int64_t *at) {
  const ft_shape *x = in_shape(s, p, 0);
  for (int i = 0; i < x->rank; i++) {
    at[i] -= p->attr.start[i];
    if (at[i] < 0 || at[i] >= x->dim[i]) return in_element(s, p, 1, at);
  }
  return in_element(s, p, 0, at);
}

static inline double single_gather(const single *s, const ft_primitive *p, int64_t *at) {
  const ft_shape *data = in_shape(s, p, 0), *index = in_shape(s, p, 1);
  int axis = p->attr.axis;
  int64_t found = (int64_t)in_element(s, p, 1, at + axis), from[FT_MAX_RANK];
  for (int i = 0; i < data->rank; i++)
    from[i] = i < axis ? at[i] : i > axis ? at[i + index->rank - 1] : 0;
  from[axis] = found < 0 ? found + data->dim[axis] : found;
  return in_element(s, p, 0, from);
}

static inline double single_gather_elements(const single *s, const ft_primitive *p,
                                            int64_t *at) {
  int64_t found = (int64_t)in_element(s, p, 1, at);
  at[p->attr.axis] = found < 0 ? found + in_shape(s, p, 0)->dim[p->attr.axis] : found;
  return in_element(s, p, 0, at);
}

// Factors of one sum of products; windows have only a.
typedef struct factors {
  float a[1 << 14], b[1 << 14];
  size_t count;
} factors;

static inline void add_factors(factors *f, double a, double b) {
  cr_assert_lt(f->count, 1 << 14);
  f->a[f->count] = (float)a;
  f->b[f->count++] = (float)b;
}

static inline void matmul_factors(const single *s, const ft_primitive *p,
                                  const ft_shape *out, const int64_t *at, factors *f) {
  int64_t from[2][FT_MAX_RANK];
  for (uint32_t i = 0; i < 2; i++) {
    const ft_shape *shape = in_shape(s, p, i);
    for (int d = 0; d < shape->rank; d++)
      from[i][d] = shape->dim[d] == 1 ? 0 : at[d + out->rank - shape->rank];
  }
  int a = in_shape(s, p, 0)->rank, b = in_shape(s, p, 1)->rank;
  from[0][a - 2] = at[out->rank - 2];
  from[1][b - 1] = at[out->rank - 1];
  for (int64_t k = 0; k < in_shape(s, p, 0)->dim[a - 1]; k++) {
    from[0][a - 1] = from[1][b - 2] = k;
    add_factors(f, in_element(s, p, 0, from[0]), in_element(s, p, 1, from[1]));
  }
}

// Every position of the window, and every channel of the group for CONV.
static inline void window_factors(const single *s, const ft_primitive *p,
                                  const int64_t *at, factors *f) {
  const ft_shape *x = in_shape(s, p, 0);
  bool conv = p->op == FT_OP_CONV;
  ft_shape window = {.rank = (uint8_t)(x->rank - 1), .dim = {1}};
  if (conv) window.dim[0] = in_shape(s, p, 1)->dim[1];
  for (int i = 2; i < x->rank; i++)
    window.dim[i - 1] = conv ? in_shape(s, p, 1)->dim[i] : p->attr.window[i - 2];
  int64_t group =
      conv ? at[1] / (in_shape(s, p, 1)->dim[0] / p->attr.groups) * window.dim[0] : at[1];
  for (int64_t t = 0; t < ft_shape_elements(&window); t++) {
    int64_t in[FT_MAX_RANK], from[FT_MAX_RANK] = {at[0]}, w[FT_MAX_RANK] = {at[1]};
    bool inside = true;
    coordinates(&window, t, in);
    from[1] = group + in[0];
    for (int i = 2; i < x->rank; i++) {
      from[i] = at[i] * p->attr.stride[i - 2] + in[i - 1] * p->attr.dilation[i - 2] -
                p->attr.start[i - 2];
      inside &= from[i] >= 0 && from[i] < x->dim[i];
    }
    for (int i = 0; i < window.rank; i++) w[i + 1] = in[i];
    if (inside)
      add_factors(f, in_element(s, p, 0, from), conv ? in_element(s, p, 1, w) : 1);
  }
}

// Rounded products in any order, or fused multiply-adds in this one.
static inline double sum_factors(single *s, factors *f) {
  float sum = 0;
  if (ft_rng_below(&s->rng, 2)) {
    for (size_t i = 0; i < f->count; i++) f->a[i] *= f->b[i];
    return (double)combine_all(s, FT_OP_REDUCE_SUM, f->a, f->count);
  }
  for (size_t i = 0; i < f->count; i++) sum = fmaf(f->a[i], f->b[i], sum);
  return (double)sum;
}

static inline double single_sum(single *s, const ft_primitive *p, const ft_shape *out,
                                const int64_t *at) {
  static factors f;
  f.count = 0;
  if (p->op == FT_OP_MATMUL)
    matmul_factors(s, p, out, at, &f);
  else
    window_factors(s, p, at, &f);
  if (p->op == FT_OP_WINDOW_MAX)
    return (double)combine_all(s, FT_OP_REDUCE_MAX, f.a, f.count);
  return sum_factors(s, &f);
}

static inline bool is_wide(ft_op op) {
  return op >= FT_OP_SLICE;
}

static inline double single_wide(single *s, const ft_primitive *p, const ft_shape *out,
                                 int64_t index) {
  int64_t at[FT_MAX_RANK] = {0};
  coordinates(out, index, at);
  switch (p->op) {
    case FT_OP_SLICE:
      return single_slice(s, p, at);
    case FT_OP_CONCAT:
      return single_concat(s, p, at);
    case FT_OP_PAD:
      return single_pad(s, p, at);
    case FT_OP_GATHER:
      return single_gather(s, p, at);
    case FT_OP_GATHER_ELEMENTS:
      return single_gather_elements(s, p, at);
    default:
      return single_sum(s, p, out, at);
  }
}

#endif
