// The shape rules of windows and contractions.
#include "graph/infer.h"

static const ft_shape *shape_of(const ft_inference *in, uint32_t i) {
  return &in->graph->value[in->input[i]].shape;
}

static const char *text_of(const ft_inference *in, uint32_t i) {
  return ft_value_text(in->graph, in->input[i]);
}

static const char *name_of(const ft_inference *in) {
  return ft_op_describe(in->op)->name;
}

// Positions in the input are o * stride + w * dilation - start: they must not overflow,
// and neither may what is computed from them.
static bool positions_fit(int64_t count, int64_t stride, int64_t window, int64_t dilation,
                          int64_t start) {
  const int64_t limit = INT64_C(1) << 60;
  int64_t across, inside;
  return !__builtin_mul_overflow(count, stride, &across) && across <= limit &&
         !__builtin_mul_overflow(window, dilation, &inside) && inside <= limit &&
         start <= limit;
}

static ft_status check_spatial(const ft_inference *in, int i, int64_t window,
                               ft_error *error) {
  const ft_attr *a = in->attr;
  int64_t count = in->attr->shape.dim[i + 2];
  if (a->stride[i] < 1 || a->dilation[i] < 1 || a->start[i] < 0 || window < 0)
    FT_FAIL(error, FT_INVALID_ARGUMENT,
            "%s of %s: spatial axis %d has window %lld, stride %lld, dilation %lld, %lld "
            "before",
            name_of(in), text_of(in, 0), i, (long long)window, (long long)a->stride[i],
            (long long)a->dilation[i], (long long)a->start[i]);
  if (!positions_fit(count, a->stride[i], window, a->dilation[i], a->start[i]))
    FT_FAIL(error, FT_REFUSED,
            "%s of %s: spatial axis %d, %lld windows of %lld with stride %lld, dilation "
            "%lld and %lld before, passes 2^60",
            name_of(in), text_of(in, 0), i, (long long)count, (long long)window,
            (long long)a->stride[i], (long long)a->dilation[i], (long long)a->start[i]);
  return FT_OK;
}

static void clear_from(ft_attr *attr, int spatial) {
  for (int i = spatial; i < FT_MAX_RANK; i++)
    attr->start[i] = attr->stride[i] = attr->dilation[i] = attr->window[i] = 0;
}

// The result's shape is given; it has |channels| and the input's batch.
static ft_status take_shape(const ft_inference *in, int64_t channels, ft_error *error) {
  const ft_shape *x = shape_of(in, 0);
  ft_shape *to = &in->attr->shape;
  bool fits = ft_infer_is_shape(to) && x->rank >= 2 && to->rank == x->rank &&
              to->dim[0] == x->dim[0] && to->dim[1] == channels;
  if (!fits)
    FT_FAIL(
        error, FT_INVALID_ARGUMENT, "%s of %s to %s with %lld channels", name_of(in),
        text_of(in, 0),
        ft_infer_is_shape(to) ? ft_shape_text(to, in->graph->arena) : "an invalid shape",
        (long long)channels);
  for (int i = to->rank; i < FT_MAX_RANK; i++) to->dim[i] = 0;
  *in->out = *to;
  return FT_OK;
}

// No pool of a model comes near; a hostile one could keep the reference busy for years,
// with windows that mostly lie in the padding.
enum { MAX_TERMS_LOG2 = 36 };

static ft_status check_terms(const ft_inference *in, const ft_shape *window,
                             ft_error *error) {
  int64_t each = ft_shape_elements(window), outputs = ft_shape_elements(in->out), terms;
  if (each < 0 || outputs < 0 || __builtin_mul_overflow(each, outputs, &terms) ||
      terms > INT64_C(1) << MAX_TERMS_LOG2)
    FT_FAIL(error, FT_REFUSED, "%s of %s: %s windows of %s pass 2^%d terms", name_of(in),
            text_of(in, 0), ft_shape_text(in->out, in->graph->arena),
            ft_shape_text(window, in->graph->arena), MAX_TERMS_LOG2);
  return FT_OK;
}

ft_status ft_infer_window(const ft_inference *in, ft_error *error) {
  const ft_shape *x = shape_of(in, 0);
  FT_TRY(take_shape(in, x->rank >= 2 ? x->dim[1] : 0, error));
  int spatial = x->rank - 2;
  ft_shape window = {.rank = (uint8_t)spatial};
  for (int i = 0; i < spatial; i++) {
    FT_TRY(check_spatial(in, i, in->attr->window[i], error));
    window.dim[i] = in->attr->window[i];
  }
  FT_TRY(check_terms(in, &window, error));
  clear_from(in->attr, spatial);
  return FT_OK;
}

// ---- matmul ---------------------------------------------------------------------

static ft_shape batch_of(const ft_shape *shape) {
  ft_shape batch = *shape;
  batch.rank = (uint8_t)(shape->rank - 2);
  return batch;
}

ft_status ft_infer_matmul(const ft_inference *in, ft_error *error) {
  const ft_shape *a = shape_of(in, 0), *b = shape_of(in, 1);
  ft_shape batch_a, batch_b;
  bool fits = a->rank >= 2 && b->rank >= 2;
  if (fits) {
    batch_a = batch_of(a), batch_b = batch_of(b);
    fits = a->dim[a->rank - 1] == b->dim[b->rank - 2] &&
           ft_shape_broadcast(&batch_a, &batch_b, in->out, NULL) == FT_OK;
  }
  if (!fits)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "matmul of %s and %s", text_of(in, 0),
            text_of(in, 1));
  in->out->dim[in->out->rank++] = a->dim[a->rank - 2];
  in->out->dim[in->out->rank++] = b->dim[b->rank - 1];
  return FT_OK;
}

// ---- conv -----------------------------------------------------------------------

static ft_status check_groups(const ft_inference *in, ft_error *error) {
  const ft_shape *x = shape_of(in, 0), *w = shape_of(in, 1);
  int64_t groups = in->attr->groups, channels;
  if (x->rank < 2 || w->rank != x->rank)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "conv of %s with %s", text_of(in, 0),
            text_of(in, 1));
  if (groups < 1 || w->dim[0] % groups != 0 ||
      __builtin_mul_overflow(w->dim[1], groups, &channels) || channels != x->dim[1])
    FT_FAIL(error, FT_INVALID_ARGUMENT, "conv of %s with %s in %lld groups",
            text_of(in, 0), text_of(in, 1), (long long)groups);
  return FT_OK;
}

ft_status ft_infer_conv(const ft_inference *in, ft_error *error) {
  const ft_shape *w = shape_of(in, 1);
  FT_TRY(check_groups(in, error));
  FT_TRY(take_shape(in, w->dim[0], error));
  for (int i = 0; i < w->rank - 2; i++)
    FT_TRY(check_spatial(in, i, w->dim[i + 2], error));
  clear_from(in->attr, w->rank - 2);
  return FT_OK;
}
