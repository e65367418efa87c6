#include "graph/rows.h"

// ---- where the terms are --------------------------------------------------------

static ft_remap line(int64_t length, int64_t stride) {
  ft_shape shape = {.rank = 1, .dim = {length}};
  return ft_remap_affine(&shape, 0, &stride);
}

static void make_reduction(ft_rows *r, const ft_step *step) {
  const ft_shape *shape = &step->operand[0].shape;
  r->first[0] = ft_remap_row_start(shape, step->attr->axes);
  r->next[0] = ft_remap_row_step(shape, step->attr->axes);
  r->length = 1;
  for (int i = 0; i < shape->rank; i++)
    if (step->attr->axes >> i & 1) r->length *= shape->dim[i];
}

// Strides of a matrix operand over the result's batch dims; 0 where it is repeated.
static void batch_strides(const ft_shape *from, const ft_shape *to, int64_t *out) {
  int64_t stride[FT_MAX_RANK];
  ft_shape_strides(from, stride);
  for (int i = 0; i < to->rank - 2; i++) {
    int axis = i - (to->rank - from->rank);
    out[i] = axis < 0 || from->dim[axis] == 1 ? 0 : stride[axis];
  }
}

static void make_matmul(ft_rows *r, const ft_step *step) {
  const ft_shape *a = &step->operand[0].shape, *b = &step->operand[1].shape;
  int64_t k = a->dim[a->rank - 1], n = b->dim[b->rank - 1], stride[FT_MAX_RANK];
  int rank = step->shape.rank;
  batch_strides(a, &step->shape, stride);
  stride[rank - 2] = k, stride[rank - 1] = 0;
  r->first[0] = ft_remap_affine(&step->shape, 0, stride);
  batch_strides(b, &step->shape, stride);
  stride[rank - 2] = 0, stride[rank - 1] = 1;
  r->first[1] = ft_remap_affine(&step->shape, 0, stride);
  r->next[0] = line(k, 1);
  r->next[1] = line(k, n);
  r->length = k;
}

static void make_window(ft_rows *r, const ft_step *step) {
  const ft_shape *x = &step->operand[0].shape;
  r->has_window = true;
  r->channels = 1;
  r->outputs_per_group = 1;
  ft_shape_strides(x, r->stride);
  r->window.rank = (uint8_t)(x->rank - 2);
  r->length = 1;
  for (int i = 0; i < r->window.rank; i++) {
    r->window.dim[i] = step->op == FT_OP_CONV ? step->operand[1].shape.dim[i + 2]
                                              : step->attr->window[i];
    r->length *= r->window.dim[i];
  }
}

static void make_conv(ft_rows *r, const ft_step *step) {
  const ft_shape *w = &step->operand[1].shape;
  int64_t stride[FT_MAX_RANK] = {0};
  make_window(r, step);
  r->channels = w->dim[1];
  r->outputs_per_group = w->dim[0] / step->attr->groups;
  r->length *= w->dim[1];
  stride[1] = r->length;
  r->first[1] = ft_remap_affine(&step->shape, 0, stride);
  r->next[1] = line(r->length, 1);
}

ft_rows ft_rows_make(const ft_step *step) {
  ft_rows rows = {.step = step, .operands = step->count};
  switch (step->op) {
    case FT_OP_MATMUL:
      make_matmul(&rows, step);
      break;
    case FT_OP_CONV:
      make_conv(&rows, step);
      break;
    case FT_OP_WINDOW_MAX:
    case FT_OP_WINDOW_SUM:
      make_window(&rows, step);
      break;
    default:
      make_reduction(&rows, step);
      break;
  }
  if (rows.operands == 2) rows.rule = ft_contraction_rule_of(step->dtype, rows.length);
  return rows;
}

// ---- windows --------------------------------------------------------------------

// Where the window of one element lies in operand 0.
typedef struct place {
  int64_t base;                 // of the first channel
  int64_t origin[FT_MAX_RANK];  // per spatial axis, before the padding is left out
  int64_t at[FT_MAX_RANK];      // position in the window
  int64_t channel;
} place;

static place place_of(const ft_rows *r, int64_t element, int64_t term) {
  const ft_step *step = r->step;
  place p = {0};
  for (int i = r->window.rank - 1; i >= 0; i--) {
    int64_t dim = step->shape.dim[i + 2];
    p.origin[i] = element % dim * step->attr->stride[i] - step->attr->start[i];
    element /= dim;
    p.at[i] = term % r->window.dim[i];
    term /= r->window.dim[i];
  }
  int64_t channel = element % step->shape.dim[1], batch = element / step->shape.dim[1];
  if (step->op == FT_OP_CONV) channel = channel / r->outputs_per_group * r->channels;
  p.base = batch * r->stride[0] + channel * r->stride[1];
  p.channel = term;
  return p;
}

static int64_t position(const ft_rows *r, const place *p) {
  const ft_shape *x = &r->step->operand[0].shape;
  int64_t to = p->base + p->channel * r->stride[1];
  for (int i = 0; i < r->window.rank; i++) {
    int64_t at = p->origin[i] + p->at[i] * r->step->attr->dilation[i];
    if (at < 0 || at >= x->dim[i + 2]) return -1;
    to += at * r->stride[i + 2];
  }
  return to;
}

static void advance(const ft_rows *r, place *p) {
  for (int i = r->window.rank - 1; i >= 0; i--) {
    if (++p->at[i] < r->window.dim[i]) return;
    p->at[i] = 0;
  }
  p->channel++;
}

static void run_window(const ft_rows *r, int64_t element, int64_t start, size_t count,
                       int64_t *index) {
  place p = place_of(r, element, start);
  for (size_t j = 0; j < count; j++, advance(r, &p)) index[j] = position(r, &p);
}

static void run_remaps(const ft_rows *r, uint32_t operand, int64_t element, int64_t start,
                       size_t count, int64_t *index) {
  int64_t first;
  ft_remap_list(&r->first[operand], &element, 1, &first);
  ft_remap_run(&r->next[operand], start, count, index);
  for (size_t j = 0; j < count; j++) index[j] += first;
}

void ft_rows_terms(const ft_rows *rows, int64_t element, int64_t start, size_t count,
                   int64_t *const index[2]) {
  if (rows->has_window)
    run_window(rows, element, start, count, index[0]);
  else
    run_remaps(rows, 0, element, start, count, index[0]);
  if (rows->operands == 2) run_remaps(rows, 1, element, start, count, index[1]);
}

// ---- what comes of them ---------------------------------------------------------

static ft_op reduction_of(ft_op op) {
  if (op == FT_OP_WINDOW_SUM) return FT_OP_REDUCE_SUM;
  return op == FT_OP_WINDOW_MAX ? FT_OP_REDUCE_MAX : op;
}

void ft_rows_init(const ft_rows *rows, const ft_row_sums *sums, size_t count) {
  if (rows->operands == 2)
    ft_contraction_init(sums->contracted, count);
  else
    ft_accumulator_init(reduction_of(rows->step->op), rows->step->dtype, sums->reduced,
                        count);
}

void ft_rows_add(const ft_rows *rows, const ft_row_sums *sums, const int64_t *slot,
                 const ft_cells *a, const ft_cells *b, size_t count) {
  if (rows->operands == 2)
    ft_contraction_add(&rows->rule, sums->contracted, slot, a, b, count);
  else
    ft_accumulator_add(reduction_of(rows->step->op), rows->step->dtype, sums->reduced,
                       slot, a, count);
}

void ft_rows_finish(const ft_rows *rows, const ft_row_sums *sums, size_t row,
                    size_t index, ft_cells *out) {
  if (rows->operands == 2)
    ft_contraction_finish(&rows->rule, &sums->contracted[row], index, out);
  else
    ft_accumulator_finish(reduction_of(rows->step->op), rows->step->dtype,
                          &sums->reduced[row], rows->length, index, out);
}
