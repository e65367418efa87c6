#include "graph/gemm.h"

// Four doubles; the compiler splits it where registers are shorter.
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));

// 4 x 8 sums stay in registers.
static inline __attribute__((always_inline)) void tile(const double *a, const double *b,
                                                       size_t depth, double *c,
                                                       size_t stride) {
  four sum[FT_GEMM_ROWS][2];
  for (size_t r = 0; r < FT_GEMM_ROWS; r++) {
    sum[r][0] = *(const four *)(c + r * stride);
    sum[r][1] = *(const four *)(c + r * stride + 4);
  }
  for (size_t d = 0; d < depth; d++, a += FT_GEMM_ROWS, b += FT_GEMM_COLUMNS) {
    four low = *(const four *)b, high = *(const four *)(b + 4);
    for (size_t r = 0; r < FT_GEMM_ROWS; r++) {
      sum[r][0] += a[r] * low;
      sum[r][1] += a[r] * high;
    }
  }
  for (size_t r = 0; r < FT_GEMM_ROWS; r++) {
    *(four *)(c + r * stride) = sum[r][0];
    *(four *)(c + r * stride + 4) = sum[r][1];
  }
}

static void tile_plain(const double *a, const double *b, size_t depth, double *c,
                       size_t stride) {
  tile(a, b, depth, c, stride);
}

#if defined(__x86_64__)
// Without "fma", so that nothing is fused.
static __attribute__((target("avx2"))) void tile_avx2(const double *a, const double *b,
                                                      size_t depth, double *c,
                                                      size_t stride) {
  tile(a, b, depth, c, stride);
}
#endif

ft_gemm_tile *ft_gemm_find(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return tile_avx2;
#endif
  return tile_plain;
}
