// The codes of short floats, and what graph/tensor.c makes of them.
#ifndef FT_TESTS_CODEGEN_HALVES_H
#define FT_TESTS_CODEGEN_HALVES_H

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "graph/tensor.h"

static const ft_dtype shorts[] = {FT_F16, FT_BF16};
enum { SHORTS = sizeof shorts / sizeof *shorts, CODES = 1 << 16, TIES = 8 * CODES };

static inline double decoded(ft_dtype dtype, uint16_t code) {
  return ft_tensor_get_f64(&(ft_tensor){.dtype = dtype, .data = &code, .bytes = 2}, 0);
}

static inline uint16_t encoded(ft_dtype dtype, float value) {
  uint16_t code;
  ft_element_set_f64(dtype, &code, 0, (double)value);
  return code;
}

static inline bool is_nan(ft_dtype dtype, uint16_t code) {
  return isnan(decoded(dtype, code));
}

static inline uint16_t *all_codes(ft_arena *arena) {
  uint16_t *code = FT_NEW_ARRAY(arena, uint16_t, CODES);
  for (uint32_t i = 0; i < CODES; i++) code[i] = (uint16_t)i;
  return code;
}

// |stored|, |wide|: what loading all codes and storing them again, as |dtype| and as f32,
// gave.
static inline void check_codes(ft_dtype dtype, const uint16_t *stored,
                               const float *wide) {
  const char *name = ft_dtype_text(dtype);
  for (uint32_t i = 0; i < CODES; i++) {
    float expected = (float)decoded(dtype, (uint16_t)i);
    if (isnan(expected)) {
      cr_assert(is_nan(dtype, stored[i]) && isnan(wide[i]), "%s %04x", name, i);
      continue;
    }
    cr_assert_eq(stored[i], i, "%s %04x came back as %04x", name, i, stored[i]);
    cr_assert(!memcmp(&wide[i], &expected, sizeof expected), "%s %04x is %a, not %a",
              name, i, (double)wide[i], (double)expected);
  }
}

// Each code, half way to the next one, and the neighbours of that; then any bits.
static inline float *all_ties(ft_dtype dtype, ft_arena *arena) {
  float *out = FT_NEW_ARRAY(arena, float, TIES);
  int n = 0;
  ft_rng rng = ft_rng_seed(3);
  for (uint32_t code = 0; code < CODES; code++) {
    double a = decoded(dtype, (uint16_t)code);
    bool is_finite = isfinite(a);
    double b = is_finite ? decoded(dtype, (uint16_t)(code + 1)) : a;
    // Past the largest finite code, what would be the next.
    if (is_finite && !isfinite(b)) b = a + (a - decoded(dtype, (uint16_t)(code - 1)));
    float tie = (float)((a + b) / 2);
    out[n++] = (float)a;
    out[n++] = tie;
    out[n++] = nextafterf(tie, INFINITY);
    out[n++] = nextafterf(tie, -INFINITY);
  }
  while (n < TIES) {
    uint32_t bits = (uint32_t)ft_rng_u64(&rng);
    memcpy(&out[n++], &bits, sizeof bits);
  }
  return out;
}

// |stored|, |rounded|: what storing |in| as |dtype|, and casting it, gave.
static inline void check_ties(ft_dtype dtype, const float *in, const uint16_t *stored,
                              const float *rounded) {
  const char *name = ft_dtype_text(dtype);
  for (int i = 0; i < TIES; i++) {
    uint16_t expected = encoded(dtype, in[i]);
    float wide = (float)decoded(dtype, expected);
    if (isnan(in[i])) {
      cr_assert(is_nan(dtype, stored[i]) && isnan(rounded[i]), "%s", name);
      continue;
    }
    cr_assert_eq(stored[i], expected, "%s: %a stored as %04x, not %04x", name,
                 (double)in[i], stored[i], expected);
    cr_assert(!memcmp(&rounded[i], &wide, sizeof wide), "%s: %a rounded to %a, not %a",
              name, (double)in[i], (double)rounded[i], (double)wide);
  }
}

#endif
