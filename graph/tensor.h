// tensor - element types, shapes, and dense row-major arrays.
#ifndef FT_GRAPH_TENSOR_H
#define FT_GRAPH_TENSOR_H

#include "core/arena.h"
#include "core/status.h"

enum { FT_MAX_RANK = 8 };

typedef enum ft_dtype {
#define FT_DTYPE(name, text, onnx, bytes, kind) FT_##name,
#include "graph/dtypes.def"
#undef FT_DTYPE
  FT_DTYPE_COUNT
} ft_dtype;

const char *ft_dtype_text(ft_dtype dtype);  // "f32"
size_t ft_dtype_bytes(ft_dtype dtype);
bool ft_dtype_is_float(ft_dtype dtype);
// The dtype of an ONNX data_type number; FT_DTYPE_COUNT when we have none.
ft_dtype ft_dtype_from_onnx(int64_t number);
ft_dtype ft_dtype_from_text(const char *text);  // FT_DTYPE_COUNT when unknown

typedef struct ft_shape {
  uint8_t rank;
  int64_t dim[FT_MAX_RANK];  // >= 0; unused entries are 0
} ft_shape;

bool ft_shape_equal(const ft_shape *a, const ft_shape *b);
// Product of the dims (1 for rank 0), or -1 when it passes 2^62 with zero dims counted
// as 1 (else strides could overflow). A shape in a graph never passes it: ft_graph_*
// refuses such shapes.
int64_t ft_shape_elements(const ft_shape *shape);
// NumPy broadcast of a and b; INVALID_ARGUMENT naming both shapes otherwise.
FT_MUST_CHECK ft_status ft_shape_broadcast(const ft_shape *a, const ft_shape *b,
                                           ft_shape *out, ft_error *error);
// Row-major strides in elements.
void ft_shape_strides(const ft_shape *shape, int64_t stride[FT_MAX_RANK]);
// "4x128x768" ("scalar" for rank 0) into |arena|; "?" when out of memory.
const char *ft_shape_text(const ft_shape *shape, ft_arena *arena);

// Dense, row-major. |data| may be unaligned (it can point into a mapped file): read
// it with memcpy or ft_tensor_get_*. Element sizes are ft_dtype_bytes; bool is one
// byte, 0 or 1.
typedef struct ft_tensor {
  ft_dtype dtype;
  ft_shape shape;
  const void *data;
  size_t bytes;
} ft_tensor;

// Element |index| (row-major) as double or int64. Floats convert to int64 by
// truncation (saturating; NaN gives 0); u64 past INT64_MAX gives INT64_MAX.
double ft_tensor_get_f64(const ft_tensor *tensor, int64_t index);
int64_t ft_tensor_get_i64(const ft_tensor *tensor, int64_t index);
// A new tensor in |arena| with 64-byte aligned, zeroed, writable data (*out_data).
FT_MUST_CHECK ft_status ft_tensor_alloc(ft_dtype dtype, const ft_shape *shape,
                                        ft_arena *arena, ft_tensor *out, void **out_data,
                                        ft_error *error);
// Stores |value| as element |index| of |data| of |dtype|: rounds once, half to even;
// integers saturate and NaN gives 0 there; bool is value != 0.
void ft_element_set_f64(ft_dtype dtype, void *data, int64_t index, double value);
void ft_element_set_i64(ft_dtype dtype, void *data, int64_t index, int64_t value);

#endif
