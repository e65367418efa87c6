#include "graph/onnx_tensor.h"

#include <string.h>

#include "graph/wire.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "raw_data is little endian and is used in place");

typedef struct proto {
  ft_span message;
  const uint8_t *file;
  ft_span name, raw;
  int64_t data_type;
  uint32_t rank;  // as the file says; dims from FT_MAX_RANK on are not kept
  ft_shape shape;
  bool has_raw, has_segment, is_external;
  ft_span location;
  bool has_length;
  uint64_t offset, length;
} proto;

static ft_status add_dims(const ft_wire *wire, const ft_wire_field *field, proto *tensor,
                          ft_error *error) {
  ft_wire_scalars dims;
  FT_TRY(ft_wire_scalars_open(wire, field, FT_WIRE_VARINT, &dims, error));
  for (bool more = true;;) {
    uint64_t dim = 0;
    FT_TRY(ft_wire_scalars_next(&dims, &dim, &more, error));
    if (!more) return FT_OK;
    if (tensor->rank < FT_MAX_RANK) tensor->shape.dim[tensor->rank] = (int64_t)dim;
    tensor->rank++;
  }
}

static ft_status parse_decimal(ft_span text, uint64_t *out, ft_error *error) {
  bool is_valid = text.size > 0;
  *out = 0;
  for (size_t i = 0; i < text.size && is_valid; i++) {
    uint64_t digit = (uint64_t)text.data[i] - '0';
    is_valid = digit <= 9 && !__builtin_mul_overflow(*out, 10, out) &&
               !__builtin_add_overflow(*out, digit, out);
  }
  if (!is_valid)
    FT_FAIL(error, FT_REFUSED, "external data: '%.*s' is not a byte count",
            FT_SPAN_SHOW(text));
  return FT_OK;
}

static ft_status add_external(ft_wire wire, proto *tensor, ft_error *error) {
  ft_span key = {0}, value = {0};
  for (;;) {
    ft_wire_field field;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) break;
    if (field.number == 1) key = field.bytes;
    if (field.number == 2) value = field.bytes;
  }
  if (ft_span_is(key, "location")) tensor->location = value;
  if (ft_span_is(key, "offset")) return parse_decimal(value, &tensor->offset, error);
  if (!ft_span_is(key, "length")) return FT_OK;
  tensor->has_length = true;
  return parse_decimal(value, &tensor->length, error);
}

static ft_status add_field(const ft_wire *wire, const ft_wire_field *field, proto *tensor,
                           ft_error *error) {
  ft_wire inner;
  switch (field->number) {
    case 1:
      return add_dims(wire, field, tensor, error);
    case 2:
      tensor->data_type = (int64_t)field->value;
      return FT_OK;
    case 3:
      tensor->has_segment = true;
      return FT_OK;
    case 8:
      tensor->name = field->bytes;
      return FT_OK;
    case 9:
      tensor->has_raw = true;
      tensor->raw = field->bytes;
      return FT_OK;
    case 13:
      FT_TRY(ft_wire_enter(wire, field->bytes, "StringStringEntryProto", &inner, error));
      return add_external(inner, tensor, error);
    case 14:
      tensor->is_external = field->value == 1;
      return FT_OK;
    default:
      return FT_OK;
  }
}

static ft_status read_proto(proto *tensor, ft_error *error) {
  ft_wire wire = ft_wire_open(tensor->message, tensor->file, "TensorProto");
  for (;;) {
    ft_wire_field field;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) return FT_OK;
    FT_TRY(add_field(&wire, &field, tensor, error));
  }
}

static ft_status check_type(proto *tensor, ft_dtype *out_dtype, ft_error *error) {
  *out_dtype = ft_dtype_from_onnx(tensor->data_type);
  if (*out_dtype == FT_DTYPE_COUNT)
    FT_FAIL(error, FT_UNSUPPORTED, "data type %lld", (long long)tensor->data_type);
  if (tensor->rank > FT_MAX_RANK)
    FT_FAIL(error, FT_UNSUPPORTED, "rank %u is more than %d", tensor->rank, FT_MAX_RANK);
  if (tensor->has_segment) FT_FAIL(error, FT_UNSUPPORTED, "only a segment is given");
  tensor->shape.rank = (uint8_t)tensor->rank;
  return FT_OK;
}

static ft_status check_shape(const proto *tensor, ft_dtype dtype, uint64_t *out_bytes,
                             ft_error *error) {
  for (uint32_t i = 0; i < tensor->rank; i++)
    if (tensor->shape.dim[i] < 0)
      FT_FAIL(error, FT_REFUSED, "dim %u is %lld", i, (long long)tensor->shape.dim[i]);
  int64_t elements = ft_shape_elements(&tensor->shape);
  if (elements < 0 ||
      __builtin_mul_overflow((uint64_t)elements, ft_dtype_bytes(dtype), out_bytes))
    FT_FAIL(error, FT_REFUSED, "its dims make more than 2^62 elements");
  return FT_OK;
}

// ---- typed data ---------------------------------------------------------------------
typedef struct storage {
  uint32_t field;  // of TensorProto
  ft_wire_type element;
} storage;

static storage storage_of(ft_dtype dtype) {
  switch (dtype) {
    case FT_F32:
      return (storage){4, FT_WIRE_FIXED32};
    case FT_F64:
      return (storage){10, FT_WIRE_FIXED64};
    case FT_I64:
      return (storage){7, FT_WIRE_VARINT};
    case FT_U32:
    case FT_U64:
      return (storage){11, FT_WIRE_VARINT};
    default:
      return (storage){5, FT_WIRE_VARINT};
  }
}

// The low bytes of the number are the element (F16 and BF16 are bit patterns).
static ft_status store_scalar(ft_dtype dtype, uint64_t value, void *data, int64_t index,
                              ft_error *error) {
  static const int64_t low[FT_DTYPE_COUNT] = {
      [FT_I8] = INT8_MIN, [FT_I16] = INT16_MIN, [FT_I32] = INT32_MIN};
  static const int64_t high[FT_DTYPE_COUNT] = {
      [FT_I8] = INT8_MAX,    [FT_I16] = INT16_MAX,   [FT_I32] = INT32_MAX,
      [FT_U8] = UINT8_MAX,   [FT_U16] = UINT16_MAX,  [FT_U32] = UINT32_MAX,
      [FT_F16] = UINT16_MAX, [FT_BF16] = UINT16_MAX, [FT_BOOL] = 1};
  int64_t number = (int64_t)value;
  if (high[dtype] && (number < low[dtype] || number > high[dtype]))
    FT_FAIL(error, FT_REFUSED, "element %lld is %lld, not a %s", (long long)index,
            (long long)number, ft_dtype_text(dtype));
  size_t size = ft_dtype_bytes(dtype);  // the low bytes of |value| are the element
  memcpy((char *)data + (size_t)index * size, &value, size);
  return FT_OK;
}

// Counts the scalars of the field, or stores them when |data| is given.
static ft_status each_scalar(const proto *tensor, ft_dtype dtype, void *data,
                             uint64_t *out_count, ft_error *error) {
  storage place = storage_of(dtype);
  ft_wire wire = ft_wire_open(tensor->message, tensor->file, "TensorProto");
  *out_count = 0;
  for (;;) {
    ft_wire_field field;
    ft_wire_scalars scalars;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) return FT_OK;
    if (field.number != place.field) continue;
    FT_TRY(ft_wire_scalars_open(&wire, &field, place.element, &scalars, error));
    for (bool more = true;; ++*out_count) {
      uint64_t value = 0;
      FT_TRY(ft_wire_scalars_next(&scalars, &value, &more, error));
      if (!more) break;
      if (data) FT_TRY(store_scalar(dtype, value, data, (int64_t)*out_count, error));
    }
  }
}

// The field's bytes, when they are the tensor as they lie: one packed run of floats.
static ft_status find_packed(const proto *tensor, ft_dtype dtype, uint64_t bytes,
                             const void **out, ft_error *error) {
  storage place = storage_of(dtype);
  ft_wire wire = ft_wire_open(tensor->message, tensor->file, "TensorProto");
  *out = NULL;
  if (place.element == FT_WIRE_VARINT) return FT_OK;
  for (;;) {
    ft_wire_field field;
    FT_TRY(ft_wire_next(&wire, &field, error));
    if (!field.number) return FT_OK;
    if (field.number != place.field) continue;
    bool fits = field.type == FT_WIRE_BYTES && field.bytes.size == bytes && !*out;
    if (!fits) {
      *out = NULL;
      return FT_OK;
    }
    *out = field.bytes.data;
  }
}

static ft_status load_typed(const proto *tensor, ft_tensor *out, ft_arena *arena,
                            ft_error *error) {
  FT_TRY(find_packed(tensor, out->dtype, out->bytes, &out->data, error));
  if (out->data) return FT_OK;
  uint64_t count = 0, elements = (uint64_t)ft_shape_elements(&out->shape);
  FT_TRY(each_scalar(tensor, out->dtype, NULL, &count, error));
  if (count != elements)
    FT_FAIL(error, FT_REFUSED, "%llu elements where %s needs %llu",
            (unsigned long long)count, ft_shape_text(&out->shape, arena),
            (unsigned long long)elements);
  void *data;
  FT_TRY(ft_tensor_alloc(out->dtype, &out->shape, arena, out, &data, error));
  return each_scalar(tensor, out->dtype, data, &count, error);
}

// ---- all of it ----------------------------------------------------------------------

static ft_status load_external(const proto *tensor, ft_external_files *files,
                               ft_tensor *out, ft_error *error) {
  if (tensor->has_length && tensor->length != out->bytes)
    FT_FAIL(
        error, FT_REFUSED, "external data '%.*s': length %llu where the dims need %zu",
        FT_SPAN_SHOW(tensor->location), (unsigned long long)tensor->length, out->bytes);
  return ft_external_map(files, tensor->location, tensor->offset, out->bytes, &out->data,
                         error);
}

static ft_status load_raw(const proto *tensor, ft_arena *arena, ft_tensor *out,
                          ft_error *error) {
  if (tensor->raw.size != out->bytes)
    FT_FAIL(error, FT_REFUSED, "%zu bytes where %s of %s needs %zu", tensor->raw.size,
            ft_shape_text(&out->shape, arena), ft_dtype_text(out->dtype), out->bytes);
  out->data = tensor->raw.data;
  return FT_OK;
}

// A bool is 0 or 1 for all who read it; in a file it is any byte.
static ft_status check_bools(ft_tensor *out, ft_error *error) {
  const uint8_t *bytes = out->data;
  for (size_t i = 0; i < out->bytes; i++)
    if (bytes[i] > 1)
      FT_FAIL(error, FT_REFUSED, "element %zu is %u, not a bool", i, bytes[i]);
  return FT_OK;
}

static ft_status load(proto *tensor, ft_external_files *files, ft_arena *arena,
                      ft_tensor *out, ft_error *error) {
  ft_dtype dtype;
  uint64_t bytes = 0;
  FT_TRY(check_type(tensor, &dtype, error));
  FT_TRY(check_shape(tensor, dtype, &bytes, error));
  *out = (ft_tensor){.dtype = dtype, .shape = tensor->shape, .bytes = bytes};
  if (tensor->is_external)
    FT_TRY(load_external(tensor, files, out, error));
  else if (tensor->has_raw)
    FT_TRY(load_raw(tensor, arena, out, error));
  else
    FT_TRY(load_typed(tensor, out, arena, error));
  return dtype == FT_BOOL ? check_bools(out, error) : FT_OK;
}

ft_status ft_onnx_load_tensor(ft_span message, const uint8_t *file,
                              ft_external_files *files, ft_arena *arena, ft_tensor *out,
                              ft_error *error) {
  proto tensor = {.message = message, .file = file};
  ft_status status = read_proto(&tensor, error);
  if (status == FT_OK) status = load(&tensor, files, arena, out, error);
  if (status != FT_OK) ft_error_prefix(error, "tensor '%.*s'", FT_SPAN_SHOW(tensor.name));
  return status;
}
