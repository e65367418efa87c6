#include "measure/streams.h"

#include <string.h>

enum { AHEAD = 256 };  // floats: 16 lines, past what a hardware prefetcher is behind

#if defined(__x86_64__)
#include <immintrin.h>

#define NAME(x) x##_sse2
#define TARGET
#define VECTOR __m128
#define LANES 4
#define LOAD(p) _mm_load_ps(p)
#define STORE(p, v) _mm_store_ps(p, v)
#define STREAM(p, v) _mm_stream_ps(p, v)
#define ADD(a, b) _mm_add_ps(a, b)
#define MUL(a, b) _mm_mul_ps(a, b)
#define OR(a, b) _mm_or_ps(a, b)
#define SET(x) _mm_set1_ps(x)
#define ZERO _mm_setzero_ps()
#include "measure/streams.inc"

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR __m256
#define LANES 8
#define LOAD(p) _mm256_load_ps(p)
#define STORE(p, v) _mm256_store_ps(p, v)
#define STREAM(p, v) _mm256_stream_ps(p, v)
#define ADD(a, b) _mm256_add_ps(a, b)
#define MUL(a, b) _mm256_mul_ps(a, b)
#define OR(a, b) _mm256_or_ps(a, b)
#define SET(x) _mm256_set1_ps(x)
#define ZERO _mm256_setzero_ps()
#include "measure/streams.inc"

// avx512dq: the bitwise or of floats.
#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f,avx512dq")))
#define VECTOR __m512
#define LANES 16
#define LOAD(p) _mm512_load_ps(p)
#define STORE(p, v) _mm512_store_ps(p, v)
#define STREAM(p, v) _mm512_stream_ps(p, v)
#define ADD(a, b) _mm512_add_ps(a, b)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define OR(a, b) _mm512_or_ps(a, b)
#define SET(x) _mm512_set1_ps(x)
#define ZERO _mm512_setzero_ps()
#include "measure/streams.inc"

// ---- arithmetic
// ------------------------------------------------------------------------- In assembly:
// a compiler sees through any loop whose results nobody needs. Eight fused multiply-adds
// fill two units of latency four; six additions fill two of latency three. The operand is
// 0.001, so that sums stay finite.

#define FMA8(r)                                                                      \
  "vfmadd231ps %%" r "15,%%" r "15,%%" r "0\n\tvfmadd231ps %%" r "15,%%" r "15,%%" r \
  "1\n\tvfmadd231ps %%" r "15,%%" r "15,%%" r "2\n\tvfmadd231ps %%" r "15,%%" r      \
  "15,%%" r "3\n\tvfmadd231ps %%" r "15,%%" r "15,%%" r "4\n\tvfmadd231ps %%" r      \
  "15,%%" r "15,%%" r "5\n\tvfmadd231ps %%" r "15,%%" r "15,%%" r                    \
  "6\n\tvfmadd231ps %%" r "15,%%" r "15,%%" r "7\n\t"
#define FMA4(r)                                                                      \
  "vfmadd231ps %%" r "15,%%" r "15,%%" r "8\n\tvfmadd231ps %%" r "15,%%" r "15,%%" r \
  "9\n\tvfmadd231ps %%" r "15,%%" r "15,%%" r "10\n\tvfmadd231ps %%" r "15,%%" r     \
  "15,%%" r "11\n\t"
#define ADD6(r)                                                                          \
  "vaddps %%" r "15,%%" r "8,%%" r "8\n\tvaddps %%" r "15,%%" r "9,%%" r                 \
  "9\n\tvaddps "                                                                         \
  "%%" r "15,%%" r "10,%%" r "10\n\tvaddps %%" r "15,%%" r "11,%%" r "11\n\tvaddps %%" r \
  "15,%%" r "12,%%" r "12\n\tvaddps %%" r "15,%%" r "13,%%" r "13\n\t"
#define START(r)                                                         \
  "vbroadcastss %1,%%" r                                                 \
  "15\n\t"                                                               \
  "vxorps %%xmm0,%%xmm0,%%xmm0\n\tvxorps %%xmm1,%%xmm1,%%xmm1\n\t"       \
  "vxorps %%xmm2,%%xmm2,%%xmm2\n\tvxorps %%xmm3,%%xmm3,%%xmm3\n\t"       \
  "vxorps %%xmm4,%%xmm4,%%xmm4\n\tvxorps %%xmm5,%%xmm5,%%xmm5\n\t"       \
  "vxorps %%xmm6,%%xmm6,%%xmm6\n\tvxorps %%xmm7,%%xmm7,%%xmm7\n\t"       \
  "vxorps %%xmm8,%%xmm8,%%xmm8\n\tvxorps %%xmm9,%%xmm9,%%xmm9\n\t"       \
  "vxorps %%xmm10,%%xmm10,%%xmm10\n\tvxorps %%xmm11,%%xmm11,%%xmm11\n\t" \
  "vxorps %%xmm12,%%xmm12,%%xmm12\n\tvxorps %%xmm13,%%xmm13,%%xmm13\n\t"

#define ARITHMETIC(name, isa, r, body)                                               \
  __attribute__((target(isa))) static void name(uint64_t rounds) {                   \
    static const float step = 0.001f;                                                \
    __asm__ volatile(START(r) "1:\n\t" body "dec %0\n\tjnz 1b\n\tvzeroupper"         \
                     : "+r"(rounds)                                                  \
                     : "m"(step)                                                     \
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", \
                       "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",   \
                       "xmm15");                                                     \
  }
ARITHMETIC(fma_avx2, "avx2,fma", "ymm", FMA8("ymm") FMA4("ymm"))
ARITHMETIC(fma_add_avx2, "avx2,fma", "ymm", FMA8("ymm") ADD6("ymm"))
ARITHMETIC(fma_avx512, "avx512f", "zmm", FMA8("zmm") FMA4("zmm"))
ARITHMETIC(fma_add_avx512, "avx512f", "zmm", FMA8("zmm") ADD6("zmm"))

#define STREAMS(x)                                                              \
  .read = read_##x, .read_four = read_four_##x, .read_ahead = read_ahead_##x,   \
  .write = write_##x, .write_streaming = write_streaming_##x, .copy = copy_##x, \
  .copy_ahead = copy_ahead_##x, .copy_streaming = copy_streaming_##x,           \
  .triad = triad_##x, .triad_ahead = triad_ahead_##x,                           \
  .triad_streaming = triad_streaming_##x

enum { FMA_TERMS = 12 * 2, FMA_ADD_TERMS = 8 * 2 + 6 };
static const ft_streams sse2 = {.isa = "sse2", STREAMS(sse2)};
static const ft_streams avx2 = {.isa = "avx2",
                                STREAMS(avx2),
                                .fma = fma_avx2,
                                .fma_add = fma_add_avx2,
                                .fma_flops = FMA_TERMS * 8,
                                .fma_add_flops = FMA_ADD_TERMS * 8};
static const ft_streams avx512 = {.isa = "avx512f",
                                  STREAMS(avx512),
                                  .fma = fma_avx512,
                                  .fma_add = fma_add_avx512,
                                  .fma_flops = FMA_TERMS * 16,
                                  .fma_add_flops = FMA_ADD_TERMS * 16};

const ft_streams *ft_streams_here(void) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    return &avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2;
  return &sse2;
}

#else

static void read_words(void *to, const void *a, const void *b, uint64_t bytes) {
  (void)to, (void)b;
  const uint64_t *p = a;
  uint64_t x = 0, y = 0;
  for (uint64_t i = 0; i < bytes / 8; i += 2) {
    x |= p[i];
    y |= p[i + 1];
  }
  __asm__ volatile("" : : "r"(x | y));
}

static void write_words(void *to, const void *a, const void *b, uint64_t bytes) {
  (void)a, (void)b;
  memset(to, 1, bytes);
}

static void copy_words(void *to, const void *a, const void *b, uint64_t bytes) {
  (void)b;
  memcpy(to, a, bytes);
}

static void triad_words(void *to, const void *a, const void *b, uint64_t bytes) {
  float *q = to;
  const float *p = a, *r = b;
  for (uint64_t i = 0; i < bytes / 4; i++) q[i] = p[i] + 3 * r[i];
}

static const ft_streams plain = {.isa = "",
                                 .read = read_words,
                                 .read_four = read_words,
                                 .read_ahead = read_words,
                                 .write = write_words,
                                 .write_streaming = write_words,
                                 .copy = copy_words,
                                 .copy_ahead = copy_words,
                                 .copy_streaming = copy_words,
                                 .triad = triad_words,
                                 .triad_ahead = triad_words,
                                 .triad_streaming = triad_words};

const ft_streams *ft_streams_here(void) {
  return &plain;
}

#endif
