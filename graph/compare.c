// Comparing what a kernel wrote with the reference.
#include <math.h>

#include "graph/interpreter.h"
#include "graph/plane.h"

void ft_comparison_init(ft_comparison *out) {
  *out = (ft_comparison){.worst_index = -1};
}

static void record(int64_t index, double actual, double expected, double error,
                   double ratio, ft_comparison *out) {
  if (error > out->max_abs_error) out->max_abs_error = error;
  if (out->worst_index >= 0 && !(ratio > out->max_ratio)) return;
  out->max_ratio = ratio;
  out->worst_index = index;
  out->worst_value = actual;
  out->worst_expected = expected;
}

void ft_compare_float(ft_dtype dtype, int64_t index, double actual, double value,
                      double scale, ft_comparison *out) {
  double expected = ft_dtype_round(dtype, value);
  out->compared++;
  if (isfinite(expected)) {
    out->square_sum += expected * expected;
    out->finite++;
  }
  if (isinf(scale)) {  // any answer is right
    out->uncertain++;
    double error = fabs(actual - expected);
    if (isfinite(error)) out->max_uncertain_error = fmax(out->max_uncertain_error, error);
    return;
  }
  bool same = actual == expected || (isnan(actual) && isnan(expected));
  if (same)
    record(index, actual, expected, 0, 0, out);
  else if (!isfinite(actual) || !isfinite(expected))
    record(index, actual, expected, (double)INFINITY, (double)INFINITY, out);
  else {
    double error = fabs(actual - expected);
    record(index, actual, expected, error, error / ft_dtype_tolerance(dtype, scale), out);
  }
}

ft_acceptance ft_reference_accepts(ft_dtype dtype, double value, double scale) {
  return (ft_acceptance){
      ft_dtype_round(dtype, value),
      isinf(scale) ? (double)INFINITY : ft_dtype_tolerance(dtype, scale)};
}

double ft_comparison_drift(const ft_comparison *c) {
  if (c->max_uncertain_error == 0) return 0;
  double rms = c->finite > 0 ? sqrt(c->square_sum / (double)c->finite) : 0;
  return rms > 0 ? c->max_uncertain_error / rms : (double)INFINITY;
}

void ft_compare_integer(int64_t index, int64_t actual, int64_t expected,
                        ft_comparison *out) {
  out->compared++;
  double a = (double)actual, e = (double)expected;
  if (actual == expected)
    record(index, a, e, 0, 0, out);
  else  // neighbours past 2^53 are equal as doubles
    record(index, a, e, fmax(1, fabs(a - e)), (double)INFINITY, out);
}

void ft_compare_element(const ft_tensor *actual, int64_t index, double value,
                        double scale, int64_t integer, ft_comparison *out) {
  if (ft_dtype_is_float(actual->dtype))
    ft_compare_float(actual->dtype, index, ft_tensor_get_f64(actual, index), value, scale,
                     out);
  else if (isinf(scale))
    out->compared++;
  else
    ft_compare_integer(index, ft_tensor_integer(actual, index), integer, out);
}

void ft_compare_tensor(const ft_tensor *actual, const ft_reference *reference,
                       ft_comparison *out) {
  int64_t elements = ft_shape_elements(&reference->shape);
  for (int64_t i = 0; i < elements; i++)
    ft_compare_element(actual, i, reference->value ? reference->value[i] : 0,
                       reference->scale ? reference->scale[i] : 0,
                       reference->integer ? reference->integer[i] : 0, out);
}
