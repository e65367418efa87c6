// gemm - the innermost loop of contractions. Private to graph/.
#ifndef FT_GRAPH_GEMM_H
#define FT_GRAPH_GEMM_H

#include <stddef.h>

enum { FT_GEMM_ROWS = 4, FT_GEMM_COLUMNS = 8 };

// c[row * stride + column] += the sum over d of a[d * ROWS + row] * b[d * COLUMNS +
// column], d ascending, each product and each sum rounded by itself (no fused multiply-
// add: the same bits on every machine).
typedef void ft_gemm_tile(const double *a, const double *b, size_t depth, double *c,
                          size_t stride);

// The fastest one for this machine. Thread-safe.
ft_gemm_tile *ft_gemm_find(void);

#endif
