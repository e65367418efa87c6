#include "codegen/expressions.h"

// The three columns of expressions.def.
static const char *const texts[FT_OP_COUNT][3] = {
#define FT_EXPRESSION(id, on_float, on_integer, on_bool) \
  [FT_OP_##id] = {on_float, on_integer, on_bool},
#include "codegen/expressions.def"
#undef FT_EXPRESSION
};

static const struct {
  const char *vector, *c;
} types[FT_DTYPE_COUNT] = {
    [FT_F32] = {"f32", "float"},    [FT_F64] = {"f64", "double"},
    [FT_I32] = {"i32", "int32_t"},  [FT_I64] = {"i64", "int64_t"},
    [FT_BOOL] = {"b8", "uint8_t"},  [FT_F16] = {NULL, "uint16_t"},
    [FT_BF16] = {NULL, "uint16_t"},
};

const char *ft_expression_type(ft_dtype dtype) {
  return types[dtype].vector;
}

const char *ft_expression_c_type(ft_dtype dtype) {
  return types[dtype].c;
}

const char *ft_expression_text(ft_op op, ft_dtype dtype) {
  if (!types[dtype].vector) return NULL;
  int column = ft_dtype_is_float(dtype) ? 0 : dtype == FT_BOOL ? 2 : 1;
  return texts[op][column];
}

bool ft_expression_is_heavy(ft_op op) {
  static const bool heavy[FT_OP_COUNT] = {
      [FT_OP_EXP] = true,     [FT_OP_LOG] = true, [FT_OP_ERF] = true, [FT_OP_TANH] = true,
      [FT_OP_SIGMOID] = true, [FT_OP_SIN] = true, [FT_OP_COS] = true, [FT_OP_POW] = true,
  };
  return heavy[op];
}
