// Short floats in plain C: every bit pattern through the vector conversions of the
// prelude, with both compilers, held against graph/tensor.c.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "codegen/kir.h"
#include "codegen/prelude.h"
#include "codegen/print_c.h"
#include "halves.h"
#include "running.h"

typedef int32_t entry(void *const *buffers, const int64_t *scalars, uint32_t block,
                      uint32_t thread, void *scratch);

// From buffer 0 to 1 as it is, to 2 rounded to |narrows| (F32: not); |stride| apart.
typedef struct pass {
  ft_dtype from, to, narrows;
  int64_t count, stride;
  uint16_t lanes;
} pass;

static const char *body_of(const pass *p, ft_arena *arena) {
  ft_kir *kir = ft_kir_create(arena);
  uint32_t in = ft_kir_global(kir, p->from, p->count, 0, false);
  uint32_t same = ft_kir_global(kir, p->to, p->count, 1, true);
  uint32_t wide = ft_kir_global(kir, FT_F32, p->count, 2, true);
  ft_kir_id zero = ft_kir_number(kir, 0), one = ft_kir_number(kir, 1);
  // Vectors of elements |stride| apart, from each of the first |stride| on.
  ft_kir_stmt *grid = ft_kir_for(kir, FT_KIR_GRID, zero, one, one);
  ft_kir_stmt *outer = ft_kir_for(kir, FT_KIR_SERIAL, zero, ft_kir_number(kir, p->count),
                                  ft_kir_number(kir, p->stride * p->lanes));
  ft_kir_stmt *inner =
      ft_kir_for(kir, FT_KIR_SERIAL, zero, ft_kir_number(kir, p->stride), one);
  ft_kir_block *at = &inner->body;
  ft_kir_id index = ft_kir_index(kir, FT_KIR_IADD, outer->value, inner->value);
  ft_kir_id value = ft_kir_load(kir, at, in, p->lanes, index, p->stride);
  ft_kir_store(kir, at, same, value, index, p->stride, FT_KIR_STREAMED);
  if (p->narrows != FT_F32)
    value = ft_kir_primitive(kir, at, FT_OP_CAST, p->narrows, &value, 1);
  ft_kir_store(kir, at, wide, value, index, p->stride, FT_KIR_CACHED);
  ft_kir_append(&outer->body, inner);
  ft_kir_append(&grid->body, outer);
  ft_kir_append(&kir->body, grid);
  const char *body;
  ft_error error;
  cr_assert_eq(ft_print_c(kir, &body, &error), FT_OK, "%s", error.text);
  return body;
}

static void run_pass(const pass *p, const char *compiler, void *in, void *same,
                     float *wide, ft_arena *arena) {
  const char *folder = cache_make(arena), *body = body_of(p, arena);
  const char *path = ft_arena_printf(arena, "%s/pass.c", folder);
  FILE *file = fopen(path, "w");
  cr_assert(file);
  fprintf(file,
          "%sint32_t ft_pass(void *const *buffers, const int64_t *scalars, uint32_t "
          "block, uint32_t thread, void *scratch) %s",
          ft_prelude_for(body, arena), body);
  fclose(file);
  const char *command = ft_arena_printf(
      arena, "%s -O2 -march=native -std=gnu11 -w -fPIC -shared -o '%s.so' '%s' -lm",
      compiler, path, path);
  cr_assert_eq(system(command), 0, "%s", command);
  void *library = dlopen(ft_arena_printf(arena, "%s.so", path), RTLD_NOW | RTLD_LOCAL);
  cr_assert(library, "%s", dlerror());
  void *symbol = dlsym(library, "ft_pass");
  entry *run;
  memcpy(&run, &symbol, sizeof run);
  cr_assert_eq(run((void *[]){in, same, wide}, NULL, 0, 0, NULL), 0);
  dlclose(library);
  cache_remove(folder, arena);
}

static void try_pass(ft_dtype dtype, const char *compiler, uint16_t lanes,
                     int64_t stride) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  uint16_t *stored = FT_NEW_ARRAY(arena, uint16_t, TIES);
  float *wide = FT_NEW_ARRAY(arena, float, TIES), *ties = all_ties(dtype, arena);
  pass codes = {dtype, dtype, FT_F32, CODES, stride, lanes};
  run_pass(&codes, compiler, all_codes(arena), stored, wide, arena);
  check_codes(dtype, stored, wide);
  pass narrowing = {FT_F32, dtype, dtype, TIES, stride, lanes};
  run_pass(&narrowing, compiler, ties, stored, wide, arena);
  check_ties(dtype, ties, stored, wide);
  ft_arena_destroy(arena);
}

static void try_all(const char *compiler) {
  static const uint16_t lanes[] = {1, 4, 16, 64};
  char probe[64];
  snprintf(probe, sizeof probe, "%s --version > /dev/null 2>&1", compiler);
  if (system(probe)) cr_skip_test("no %s", compiler);
  for (int d = 0; d < SHORTS; d++) {
    for (int i = 0; i < 4; i++) try_pass(shorts[d], compiler, lanes[i], 1);
    try_pass(shorts[d], compiler, 8, 4);
  }
}

Test(half, gcc_converts_every_bit_pattern_as_tensors_do, .timeout = 200) {
  try_all("gcc");
}
Test(half, clang_converts_every_bit_pattern_as_tensors_do, .timeout = 200) {
  try_all("clang");
}
