#include "graph/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- dtypes ---------------------------------------------------------------------

typedef struct dtype_info {
  const char *text;
  int32_t onnx;
  uint8_t bytes;
  char kind;
} dtype_info;

static const dtype_info dtypes[FT_DTYPE_COUNT] = {
#define FT_DTYPE(name, text, onnx, bytes, kind) \
  [FT_##name] = {text, onnx, bytes, #kind[0]},
#include "graph/dtypes.def"
#undef FT_DTYPE
};

static const dtype_info *describe(ft_dtype dtype) {
  FT_ASSERT((unsigned)dtype < FT_DTYPE_COUNT);
  return &dtypes[dtype];
}

const char *ft_dtype_text(ft_dtype dtype) {
  return describe(dtype)->text;
}
size_t ft_dtype_bytes(ft_dtype dtype) {
  return describe(dtype)->bytes;
}
bool ft_dtype_is_float(ft_dtype dtype) {
  return describe(dtype)->kind == 'F';
}

ft_dtype ft_dtype_from_onnx(int64_t number) {
  for (int i = 0; i < FT_DTYPE_COUNT; i++)
    if (dtypes[i].onnx == number) return (ft_dtype)i;
  return FT_DTYPE_COUNT;
}

ft_dtype ft_dtype_from_text(const char *text) {
  for (int i = 0; i < FT_DTYPE_COUNT; i++)
    if (strcmp(dtypes[i].text, text) == 0) return (ft_dtype)i;
  return FT_DTYPE_COUNT;
}

// ---- shapes ---------------------------------------------------------------------

bool ft_shape_equal(const ft_shape *a, const ft_shape *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i]) return false;
  return true;
}

// Zero dims count as 1 for the limit, so that strides never overflow either.
int64_t ft_shape_elements(const ft_shape *shape) {
  int64_t product = 1;
  bool empty = false;
  for (int i = 0; i < shape->rank; i++) {
    int64_t dim = shape->dim[i];
    empty |= dim == 0;
    if (__builtin_mul_overflow(product, dim ? dim : 1, &product)) return -1;
    if (product < 0 || product > INT64_C(1) << 62) return -1;
  }
  return empty ? 0 : product;
}

static void shape_print(const ft_shape *shape, char out[FT_MAX_RANK * 21 + 8]) {
  size_t used = 0;
  out[0] = '\0';
  if (shape->rank == 0) memcpy(out, "scalar", 7);
  for (int i = 0; i < shape->rank; i++)
    used +=
        (size_t)snprintf(out + used, 22, i ? "x%lld" : "%lld", (long long)shape->dim[i]);
}

ft_status ft_shape_broadcast(const ft_shape *a, const ft_shape *b, ft_shape *out,
                             ft_error *error) {
  ft_shape result = {.rank = a->rank > b->rank ? a->rank : b->rank};
  for (int i = 0; i < result.rank; i++) {
    int from_a = i - (result.rank - a->rank), from_b = i - (result.rank - b->rank);
    int64_t da = from_a >= 0 ? a->dim[from_a] : 1;
    int64_t db = from_b >= 0 ? b->dim[from_b] : 1;
    if (da != db && da != 1 && db != 1) {
      char text_a[FT_MAX_RANK * 21 + 8], text_b[FT_MAX_RANK * 21 + 8];
      shape_print(a, text_a);
      shape_print(b, text_b);
      FT_FAIL(error, FT_INVALID_ARGUMENT, "shapes %s and %s do not broadcast", text_a,
              text_b);
    }
    result.dim[i] = da == 1 ? db : da;
  }
  *out = result;
  return FT_OK;
}

void ft_shape_strides(const ft_shape *shape, int64_t stride[FT_MAX_RANK]) {
  int64_t step = 1;
  memset(stride, 0, FT_MAX_RANK * sizeof stride[0]);
  for (int i = shape->rank - 1; i >= 0; i--) {
    stride[i] = step;
    step *= shape->dim[i];
  }
}

const char *ft_shape_text(const ft_shape *shape, ft_arena *arena) {
  char text[FT_MAX_RANK * 21 + 8];
  shape_print(shape, text);
  const char *copy = ft_arena_strdup(arena, text);
  return copy ? copy : "?";
}

// ---- 16-bit floats --------------------------------------------------------------

typedef struct narrow_format {
  int mantissa_bits, bias;  // the exponent field fills the other bits below the sign
} narrow_format;

static const narrow_format half_format = {10, 15}, bfloat_format = {7, 127};

static double widen(uint16_t code, narrow_format format) {
  int field_max = 0x7fff >> format.mantissa_bits;
  int field = (code & 0x7fff) >> format.mantissa_bits;
  int mantissa = code & ((1 << format.mantissa_bits) - 1);
  double magnitude;
  if (field == field_max)
    magnitude = mantissa ? (double)NAN : (double)INFINITY;
  else if (field == 0)
    magnitude = ldexp(mantissa, 1 - format.bias - format.mantissa_bits);
  else
    magnitude = ldexp(mantissa + (1 << format.mantissa_bits),
                      field - format.bias - format.mantissa_bits);
  return copysign(magnitude, code & 0x8000 ? -1.0 : 1.0);
}

// Rounds once, half to even. A carry out of the mantissa moves into the exponent field
// by itself, up to infinity.
static uint16_t narrow(double value, narrow_format format) {
  unsigned sign = signbit(value) ? 0x8000 : 0;
  unsigned infinity = 0x7fffu >> format.mantissa_bits << format.mantissa_bits;
  if (isnan(value)) return (uint16_t)(sign | infinity | 1u << (format.mantissa_bits - 1));
  if (isinf(value)) return (uint16_t)(sign | infinity);
  if (value == 0) return (uint16_t)sign;
  int exponent;
  double magnitude = fabs(value);
  frexp(magnitude, &exponent);
  exponent--;
  if (exponent > format.bias) return (uint16_t)(sign | infinity);
  int lowest = 1 - format.bias;
  bool normal = exponent >= lowest;
  int quantum = (normal ? exponent : lowest) - format.mantissa_bits;
  unsigned code = (unsigned)nearbyint(ldexp(magnitude, -quantum));
  if (normal) code += (unsigned)(exponent + format.bias - 1) << format.mantissa_bits;
  return (uint16_t)(sign | code);
}

// ---- elements -------------------------------------------------------------------

// LOAD(type) reads element |index| as that type, alignment or not.
#define LOAD(type, into) \
  type into;             \
  memcpy(&into, (const char *)tensor->data + (size_t)index * sizeof into, sizeof into)

static int64_t saturate(double value) {
  if (isnan(value)) return 0;
  if (value >= 0x1p63) return INT64_MAX;
  if (value <= -0x1p63) return INT64_MIN;
  return (int64_t)value;
}

double ft_tensor_get_f64(const ft_tensor *tensor, int64_t index) {
  switch (tensor->dtype) {
    case FT_F32: {
      LOAD(float, x);
      return (double)x;
    }
    case FT_F64: {
      LOAD(double, x);
      return x;
    }
    case FT_F16: {
      LOAD(uint16_t, x);
      return widen(x, half_format);
    }
    case FT_BF16: {
      LOAD(uint16_t, x);
      return widen(x, bfloat_format);
    }
    case FT_U64: {
      LOAD(uint64_t, x);
      return (double)x;
    }
    default:
      return (double)ft_tensor_get_i64(tensor, index);
  }
}

#define INTEGER_CASE(name, type) \
  case FT_##name: {              \
    LOAD(type, x);               \
    return (int64_t)x;           \
  }

int64_t ft_tensor_get_i64(const ft_tensor *tensor, int64_t index) {
  switch (tensor->dtype) {
    INTEGER_CASE(U8, uint8_t)
    INTEGER_CASE(I8, int8_t)
    INTEGER_CASE(U16, uint16_t)
    INTEGER_CASE(I16, int16_t)
    INTEGER_CASE(I32, int32_t)
    INTEGER_CASE(I64, int64_t)
    INTEGER_CASE(U32, uint32_t)
    case FT_BOOL: {
      LOAD(uint8_t, x);
      return x != 0;
    }
    case FT_U64: {
      LOAD(uint64_t, x);
      return x > INT64_MAX ? INT64_MAX : (int64_t)x;
    }
    default:
      return saturate(ft_tensor_get_f64(tensor, index));
  }
}

#define STORE(type, from)                                                         \
  do {                                                                            \
    type stored = (type)(from);                                                   \
    memcpy((char *)data + (size_t)index * sizeof stored, &stored, sizeof stored); \
  } while (0)

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

void ft_element_set_f64(ft_dtype dtype, void *data, int64_t index, double value) {
  switch (dtype) {
    case FT_F32:
      STORE(float, value);
      return;
    case FT_F64:
      STORE(double, value);
      return;
    case FT_F16:
      STORE(uint16_t, narrow(value, half_format));
      return;
    case FT_BF16:
      STORE(uint16_t, narrow(value, bfloat_format));
      return;
    case FT_BOOL:
      STORE(uint8_t, value != 0);
      return;
    case FT_U64:
      if (value >= 0x1p64)
        STORE(uint64_t, UINT64_MAX);
      else
        STORE(uint64_t, value > 0 ? nearbyint(value) : 0);
      return;
    default:
      ft_element_set_i64(dtype, data, index, saturate(nearbyint(value)));
      return;
  }
}

void ft_element_set_i64(ft_dtype dtype, void *data, int64_t index, int64_t value) {
  switch (dtype) {
    case FT_U8:
      STORE(uint8_t, clamp(value, 0, UINT8_MAX));
      return;
    case FT_I8:
      STORE(int8_t, clamp(value, INT8_MIN, INT8_MAX));
      return;
    case FT_U16:
      STORE(uint16_t, clamp(value, 0, UINT16_MAX));
      return;
    case FT_I16:
      STORE(int16_t, clamp(value, INT16_MIN, INT16_MAX));
      return;
    case FT_I32:
      STORE(int32_t, clamp(value, INT32_MIN, INT32_MAX));
      return;
    case FT_I64:
      STORE(int64_t, value);
      return;
    case FT_U32:
      STORE(uint32_t, clamp(value, 0, UINT32_MAX));
      return;
    case FT_U64:
      STORE(uint64_t, value < 0 ? 0 : value);
      return;
    case FT_BOOL:
      STORE(uint8_t, value != 0);
      return;
    case FT_F32:
      STORE(float, value);
      return;  // double first would round twice
    default:
      ft_element_set_f64(dtype, data, index, (double)value);
      return;
  }
}

ft_status ft_tensor_alloc(ft_dtype dtype, const ft_shape *shape, ft_arena *arena,
                          ft_tensor *out, void **out_data, ft_error *error) {
  int64_t elements = ft_shape_elements(shape);
  int overflow = elements < 0;
  size_t bytes = ft_checked_mul((size_t)elements, ft_dtype_bytes(dtype), &overflow);
  void *data = overflow ? NULL : ft_arena_alloc_aligned(arena, bytes, 64);
  if (!data)
    FT_FAIL(error, FT_OUT_OF_MEMORY, "no memory for a tensor of %zu bytes", bytes);
  *out = (ft_tensor){dtype, *shape, data, bytes};
  *out_data = data;
  return FT_OK;
}
