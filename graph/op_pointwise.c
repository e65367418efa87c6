// Operators that are one primitive, or nearly: arithmetic, comparison, logic.
#include <math.h>

#include "graph/lower.h"

ft_status ft_lower_unary(ft_lowering *l) {
  return ft_lower_return(l, ft_emit1(l, l->primitive, ft_lower_input(l, 0)));
}

ft_status ft_lower_ternary(ft_lowering *l) {
  uint32_t input[3];
  for (uint32_t i = 0; i < 3; i++) input[i] = ft_lower_input(l, i);
  return ft_lower_return(l, ft_emit(l, l->primitive, input, 3, NULL));
}

// Before opset 7 the second operand broadcasts only when |broadcast| is 1, and its
// first axis lies on |axis| of the first operand.
static uint32_t align_legacy(ft_lowering *l, uint32_t a, uint32_t b) {
  ft_shape left = ft_lower_shape_of(l, a), right = ft_lower_shape_of(l, b);
  if (ft_lower_int(l, "broadcast", 0) == 0) {
    if (!ft_shape_equal(&left, &right))
      ft_lower_fail(l, FT_REFUSED, "shapes differ and broadcast is 0 (opset %lld)",
                    (long long)l->opset);
    return b;
  }
  int64_t axis = ft_lower_int(l, "axis", left.rank - right.rank);
  if (axis < 0) axis += left.rank;
  if (axis < 0 || axis + right.rank > left.rank) {
    ft_lower_fail(l, FT_REFUSED, "axis %lld does not place rank %d in rank %d",
                  (long long)axis, right.rank, left.rank);
    return b;
  }
  for (int64_t end = axis + right.rank; end < left.rank; end++)
    right.dim[right.rank++] = 1;
  return ft_emit_view(l, b, &right);
}

static void read_operands(ft_lowering *l, uint32_t *a, uint32_t *b) {
  *a = ft_lower_input(l, 0);
  *b = ft_lower_input(l, 1);
  if (l->status == FT_OK && l->opset < 7) *b = align_legacy(l, *a, *b);
}

ft_status ft_lower_binary(ft_lowering *l) {
  uint32_t a, b;
  read_operands(l, &a, &b);
  return ft_lower_return(l, ft_emit2(l, l->primitive, a, b));
}

ft_status ft_lower_swapped(ft_lowering *l) {
  uint32_t a, b;
  read_operands(l, &a, &b);
  return ft_lower_return(l, ft_emit2(l, l->primitive, b, a));
}

ft_status ft_lower_xor(ft_lowering *l) {
  uint32_t a, b;
  read_operands(l, &a, &b);
  if (l->status == FT_OK &&
      (ft_lower_dtype(l, a) != FT_BOOL || ft_lower_dtype(l, b) != FT_BOOL))
    return ft_lower_fail(l, FT_REFUSED, "operands are %s and %s, not bool",
                         ft_dtype_text(ft_lower_dtype(l, a)),
                         ft_dtype_text(ft_lower_dtype(l, b)));
  return ft_lower_return(l, ft_emit1(l, FT_OP_NOT, ft_emit2(l, FT_OP_EQUAL, a, b)));
}

// The remainder has the sign of the dividend (fmod = 1) or of the divisor: then it is
// moved by one divisor where the signs differ.
ft_status ft_lower_mod(ft_lowering *l) {
  uint32_t a = ft_lower_input(l, 0), b = ft_lower_input(l, 1);
  bool is_fmod = ft_lower_int(l, "fmod", 0) != 0;
  if (l->status == FT_OK && !is_fmod && ft_dtype_is_float(ft_lower_dtype(l, a)))
    return ft_lower_fail(l, FT_REFUSED, "fmod is 0 for %s",
                         ft_dtype_text(ft_lower_dtype(l, a)));
  uint32_t rest = ft_emit2(l, FT_OP_FMOD, a, b);
  if (is_fmod) return ft_lower_return(l, rest);
  uint32_t zero = ft_emit_scalar(l, a, 0);
  uint32_t exact = ft_emit2(l, FT_OP_EQUAL, rest, zero);
  uint32_t same_sign = ft_emit2(l, FT_OP_EQUAL, ft_emit2(l, FT_OP_LESS, rest, zero),
                                ft_emit2(l, FT_OP_LESS, b, zero));
  uint32_t stays = ft_emit2(l, FT_OP_OR, exact, same_sign);
  uint32_t moved = ft_emit2(l, FT_OP_ADD, rest, b);
  return ft_lower_return(l, ft_emit_where(l, stays, rest, moved));
}

ft_status ft_lower_variadic(ft_lowering *l) {
  uint32_t value = ft_lower_input(l, 0);
  for (uint32_t i = 1; i < l->input_count; i++)
    value = ft_emit2(l, l->primitive, value, ft_lower_input(l, i));
  return ft_lower_return(l, value);
}

ft_status ft_lower_mean(ft_lowering *l) {
  if (ft_lower_variadic(l) != FT_OK) return l->status;
  uint32_t count = ft_emit_scalar(l, l->output[0], 1.0 / l->input_count);
  return ft_lower_return(l, ft_emit2(l, FT_OP_MUL, l->output[0], count));
}

ft_status ft_lower_is_nan(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  return ft_lower_return(l, ft_emit1(l, FT_OP_NOT, ft_emit2(l, FT_OP_EQUAL, x, x)));
}

ft_status ft_lower_is_inf(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  bool negative = ft_lower_int(l, "detect_negative", 1) != 0;
  bool positive = ft_lower_int(l, "detect_positive", 1) != 0;
  if (!negative && !positive)
    return ft_lower_return(l, ft_emit2(l, FT_OP_LESS, x, x));  // false everywhere
  if (negative && positive) x = ft_emit1(l, FT_OP_ABS, x);
  uint32_t bound = ft_emit_scalar(l, x, positive ? INFINITY : -INFINITY);
  return ft_lower_return(l, ft_emit2(l, FT_OP_EQUAL, x, bound));
}

// ---- Pow --------------------------------------------------------------------------

// x to a known power by cheaper primitives; FT_NONE when none fits.
static uint32_t known_power(ft_lowering *l, uint32_t x, double power) {
  if (power == 1) return x;
  if (power == 2) return ft_emit2(l, FT_OP_MUL, x, x);
  if (power == 3) return ft_emit2(l, FT_OP_MUL, ft_emit2(l, FT_OP_MUL, x, x), x);
  if (!ft_dtype_is_float(ft_lower_dtype(l, x))) return FT_NONE;
  if (power == 0.5) return ft_emit1(l, FT_OP_SQRT, x);
  if (power == -0.5) return ft_emit1(l, FT_OP_RECIPROCAL, ft_emit1(l, FT_OP_SQRT, x));
  if (power == -1) return ft_emit1(l, FT_OP_RECIPROCAL, x);
  return FT_NONE;
}

// The exponent may have another dtype from opset 12 on; the result has the base's.
static uint32_t general_power(ft_lowering *l, uint32_t x, uint32_t y) {
  ft_dtype base = ft_lower_dtype(l, x), exponent = ft_lower_dtype(l, y);
  if (base == exponent || ft_dtype_is_float(base))
    return ft_emit2(l, FT_OP_POW, x, ft_emit_cast(l, y, base));
  uint32_t wide = ft_emit_cast(l, x, exponent);
  return ft_emit_cast(l, ft_emit2(l, FT_OP_POW, wide, y), base);
}

ft_status ft_lower_pow(ft_lowering *l) {
  uint32_t x, y, result = FT_NONE;
  read_operands(l, &x, &y);
  if (l->status != FT_OK) return l->status;
  if (ft_value_is_immediate(l->graph, y))
    result = known_power(l, x, ft_tensor_get_f64(l->graph->value[y].data, 0));
  if (result == FT_NONE || l->status != FT_OK)
    return ft_lower_return(l, general_power(l, x, y));
  ft_shape shape = ft_lower_shape_of(l, x), exponent = ft_lower_shape_of(l, y), out;
  l->status = ft_shape_broadcast(&shape, &exponent, &out, l->error);
  return ft_lower_return(l, ft_emit_view(l, result, &out));  // y may add axes of 1
}

// ---- Cast -------------------------------------------------------------------------

ft_status ft_lower_cast(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  int64_t to = ft_lower_int(l, "to", 0);
  if (l->status != FT_OK) return l->status;
  ft_dtype dtype = ft_dtype_from_onnx(to);
  if (dtype == FT_DTYPE_COUNT)
    return ft_lower_fail(l, FT_UNSUPPORTED, "cast to ONNX data type %lld", (long long)to);
  return ft_lower_return(l, ft_emit_cast(l, x, dtype));
}

ft_status ft_lower_cast_like(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0), like = ft_lower_input(l, 1);
  return ft_lower_return(l, ft_emit_cast(l, x, ft_lower_dtype(l, like)));
}

// ---- Clip -------------------------------------------------------------------------

// From opset 11 the bounds are inputs; FT_NONE means no bound.
static uint32_t bound(ft_lowering *l, uint32_t x, const char *attribute, uint32_t index) {
  static const ft_shape scalar = {0};
  if (l->opset < 11) {
    if (!ft_onnx_find_attribute(l->node, attribute)) return FT_NONE;
    float value = ft_lower_float(l, attribute, 0);
    return ft_emit_scalar(l, x, (double)value);
  }
  uint32_t input = ft_lower_optional(l, index);
  if (input == FT_NONE) return FT_NONE;
  ft_shape shape = ft_lower_shape_of(l, input);
  if (ft_shape_elements(&shape) != 1)
    ft_lower_fail(l, FT_REFUSED, "%s is not a scalar", attribute);
  return ft_emit_view(l, input, &scalar);
}

// Max first: where min > max the result is max. A NaN bound gives NaN.
ft_status ft_lower_clip(ft_lowering *l) {
  uint32_t x = ft_lower_input(l, 0);
  if (l->status != FT_OK) return l->status;
  uint32_t low = bound(l, x, "min", 1), high = bound(l, x, "max", 2);
  if (low != FT_NONE) x = ft_emit2(l, FT_OP_MAX, x, low);
  if (high != FT_NONE) x = ft_emit2(l, FT_OP_MIN, x, high);
  return ft_lower_return(l, x);
}
