#include "graph/encoding.h"

#include <string.h>

#include "graph/attr.h"

void ft_encode_u8(ft_strbuf *out, unsigned value) {
  uint8_t byte = (uint8_t)value;
  ft_strbuf_addn(out, &byte, 1);
}

void ft_encode_u64(ft_strbuf *out, uint64_t value) {
  for (; value >= 128; value >>= 7) ft_encode_u8(out, (unsigned)(value & 127) | 128);
  ft_encode_u8(out, (unsigned)value);
}

void ft_encode_shape(ft_strbuf *out, const ft_shape *shape) {
  ft_encode_u8(out, shape->rank);
  for (int i = 0; i < shape->rank; i++) ft_encode_u64(out, (uint64_t)shape->dim[i]);
}

static void encode_text(ft_strbuf *out, const char *text) {
  ft_encode_u64(out, strlen(text));
  ft_strbuf_add(out, text);
}

void ft_encode_type(ft_strbuf *out, ft_dtype dtype, const ft_shape *shape) {
  encode_text(out, ft_dtype_text(dtype));
  ft_encode_shape(out, shape);
}

static void encode_signed(ft_strbuf *out, int64_t value) {
  uint64_t twice = (uint64_t)value << 1;
  ft_encode_u64(out, value < 0 ? ~twice : twice);
}

void ft_encode_op(ft_strbuf *out, ft_op op, const ft_attr *attr) {
  encode_text(out, ft_op_describe(op)->name);
  encode_text(out, op == FT_OP_CAST ? ft_dtype_text(attr->to) : "");
  ft_encode_u64(out, attr->axes);
  ft_encode_shape(out, &attr->shape);
  ft_strbuf_addn(out, attr->perm, sizeof attr->perm);
  int64_t numbers[FT_ATTR_NUMBERS];  // as many as the op's name says
  int count = ft_attr_numbers(op, attr, numbers);
  for (int i = 0; i < count; i++) encode_signed(out, numbers[i]);
}

void ft_encode_tensor(ft_strbuf *out, const ft_tensor *tensor) {
  ft_encode_type(out, tensor->dtype, &tensor->shape);
  ft_encode_u64(out, tensor->bytes);
  ft_strbuf_addn(out, tensor->data, tensor->bytes);
}
