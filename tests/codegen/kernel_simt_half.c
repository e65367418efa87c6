// Short floats in memory: every bit pattern through the conversions of the SIM print,
// held against graph/tensor.c, and what NVRTC makes of vectors of them.
#include <math.h>

#include "codegen/nvrtc.h"
#include "core/rng.h"
#include "simt_drawings.h"

enum { CODES = 1 << 16, PER_BLOCK = 128, WIDTH = 8 };

static const ft_dtype dtypes[] = {FT_F16, FT_BF16};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

// A kernel over |count| elements of buffer 0: vectors of WIDTH to buffers 1 and 2.
typedef struct pass {
  ft_dtype from, to[2];
  ft_dtype narrows;  // what goes to buffer 2 is rounded to it; FT_F32: is not
  int64_t count;
} pass;

static ft_kir *build_pass(const pass *p, ft_arena *arena) {
  ft_kir *kir = ft_kir_create(arena);
  uint32_t in = ft_kir_global(kir, p->from, p->count, 0, false), out[2];
  for (uint32_t i = 0; i < 2; i++)
    out[i] = ft_kir_global(kir, p->to[i], p->count, i + 1, true);
  int64_t blocks = p->count / (PER_BLOCK * WIDTH);
  cr_assert_eq(blocks * PER_BLOCK * WIDTH, p->count);
  ft_kir_id zero = ft_kir_number(kir, 0), step = ft_kir_number(kir, 1);
  ft_kir_stmt *grid =
      ft_kir_for(kir, FT_KIR_GRID, zero, ft_kir_number(kir, blocks), step);
  ft_kir_stmt *threads =
      ft_kir_for(kir, FT_KIR_THREAD, zero, ft_kir_number(kir, PER_BLOCK), step);
  ft_kir_block *at = &threads->body;
  ft_kir_id index =
      ft_kir_index(kir, FT_KIR_IMUL, grid->value, ft_kir_number(kir, PER_BLOCK));
  index = ft_kir_index(kir, FT_KIR_IADD, index, threads->value);
  index = ft_kir_index(kir, FT_KIR_IMUL, index, ft_kir_number(kir, WIDTH));
  ft_kir_id value = ft_kir_load(kir, at, in, WIDTH, index, 1);
  ft_kir_store(kir, at, out[0], value, index, 1, FT_KIR_CACHED);
  if (p->narrows != FT_F32)
    value = ft_kir_primitive(kir, at, FT_OP_CAST, p->narrows, &value, 1);
  ft_kir_store(kir, at, out[1], value, index, 1, FT_KIR_CACHED);
  ft_kir_append(&grid->body, threads);
  ft_kir_append(&kir->body, grid);
  return kir;
}

// Runs |p| in SIM on |in|; out[0] and out[1] get its results.
static void run_pass(const pass *p, const void *in, void *out[2], ft_arena *arena) {
  simmed c = {.label = "pass"};
  simmed_print(&c, build_pass(p, arena), 0, arena);
  const char *folder = cache_make(arena);
  void *library = simmed_build(&c, 1, folder, arena);
  void *buffers[3] = {(void *)(uintptr_t)in};
  for (uint32_t i = 0; i < 2; i++)
    buffers[i + 1] = out[i] =
        FT_NEW_ARRAY(arena, uint8_t, (size_t)p->count * ft_dtype_bytes(p->to[i]));
  int64_t counts[3] = {p->count, p->count, p->count};
  void *symbol = dlsym(library, c.name);
  ft_sim_entry *entry;
  memcpy(&entry, &symbol, sizeof entry);
  ft_sim_result result;
  ft_error error;
  ft_sim_call call = {.entry = entry,
                      .grid = c.launch.grid,
                      .buffers = buffers,
                      .count = counts,
                      .inputs = 1,
                      .outputs = 2,
                      .seed = 1};
  cr_assert_eq(ft_sim_run(&call, arena, &result, &error), FT_OK, "%s", error.text);
  cr_assert_eq(result.fault, FT_SIM_FINE, "%s", result.text);
  cr_assert_eq(result.code, 0);
  dlclose(library);
  cache_remove(folder, arena);
}

static double decoded(ft_dtype dtype, uint16_t code) {
  return ft_tensor_get_f64(&(ft_tensor){.dtype = dtype, .data = &code, .bytes = 2}, 0);
}

static uint16_t encoded(ft_dtype dtype, float value) {
  uint16_t code;
  ft_element_set_f64(dtype, &code, 0, (double)value);
  return code;
}

static bool is_nan(ft_dtype dtype, uint16_t code) {
  return isnan(decoded(dtype, code));
}

Test(half, every_bit_pattern_is_loaded_and_stored_as_tensors_say) {
  for (int d = 0; d < DTYPES; d++) {
    ft_arena *arena = ft_arena_create(ft_allocator_system());
    uint16_t *code = FT_NEW_ARRAY(arena, uint16_t, CODES);
    for (uint32_t i = 0; i < CODES; i++) code[i] = (uint16_t)i;
    pass p = {
        .from = dtypes[d], .to = {dtypes[d], FT_F32}, .narrows = FT_F32, .count = CODES};
    void *out[2];
    run_pass(&p, code, out, arena);
    const uint16_t *stored = out[0];
    const float *wide = out[1];
    for (uint32_t i = 0; i < CODES; i++) {
      float expected = (float)decoded(dtypes[d], code[i]);
      if (is_nan(dtypes[d], code[i])) {
        cr_assert(is_nan(dtypes[d], stored[i]) && isnan(wide[i]), "%s %04x",
                  ft_dtype_text(dtypes[d]), i);
        continue;
      }
      cr_assert_eq(stored[i], code[i], "%s %04x came back as %04x",
                   ft_dtype_text(dtypes[d]), i, stored[i]);
      cr_assert(!memcmp(&wide[i], &expected, sizeof expected), "%s %04x is %a, not %a",
                ft_dtype_text(dtypes[d]), i, (double)expected, (double)wide[i]);
    }
    ft_arena_destroy(arena);
  }
}

// Each code, half way to the next one, and the neighbours of that; then any bits.
static int64_t fill_ties(ft_dtype dtype, float *out, int64_t room) {
  int64_t n = 0;
  ft_rng rng = ft_rng_seed(3);
  for (uint32_t code = 0; code < CODES; code++) {
    double a = decoded(dtype, (uint16_t)code);
    bool is_finite = isfinite(a);
    // Past the largest finite code, what would be the next.
    uint16_t down = (uint16_t)(code - 1);
    double b = is_finite ? decoded(dtype, (uint16_t)(code + 1)) : a;
    if (is_finite && !isfinite(b)) b = a + (a - decoded(dtype, down));
    float tie = (float)((a + b) / 2);
    out[n++] = (float)a;
    out[n++] = tie;
    out[n++] = nextafterf(tie, INFINITY);
    out[n++] = nextafterf(tie, -INFINITY);
  }
  while (n < room) {
    uint32_t bits = (uint32_t)ft_rng_u64(&rng);
    memcpy(&out[n++], &bits, sizeof bits);
  }
  return n;
}

Test(half, stores_and_casts_round_half_to_even_as_tensors_do) {
  for (int d = 0; d < DTYPES; d++) {
    ft_arena *arena = ft_arena_create(ft_allocator_system());
    pass p = {.from = FT_F32,
              .to = {dtypes[d], FT_F32},
              .narrows = dtypes[d],
              .count = 8 * CODES};
    float *in = FT_NEW_ARRAY(arena, float, (size_t)p.count);
    cr_assert_eq(fill_ties(dtypes[d], in, p.count), p.count);
    void *out[2];
    run_pass(&p, in, out, arena);
    const uint16_t *stored = out[0];
    const float *rounded = out[1];
    for (int64_t i = 0; i < p.count; i++) {
      uint16_t expected = encoded(dtypes[d], in[i]);
      float wide = (float)decoded(dtypes[d], expected);
      if (isnan(in[i])) {
        cr_assert(is_nan(dtypes[d], stored[i]) && isnan(rounded[i]), "%s",
                  ft_dtype_text(dtypes[d]));
        continue;
      }
      cr_assert_eq(stored[i], expected, "%s: %a stored as %04x, not %04x",
                   ft_dtype_text(dtypes[d]), (double)in[i], stored[i], expected);
      cr_assert(!memcmp(&rounded[i], &wide, sizeof wide), "%s: %a rounded to %a, not %a",
                ft_dtype_text(dtypes[d]), (double)in[i], (double)rounded[i],
                (double)wide);
    }
    ft_arena_destroy(arena);
  }
}

static uint32_t occurrences(const char *text, const char *what) {
  uint32_t n = 0;
  for (const char *at = text; (at = strstr(at, what)); at++) n++;
  return n;
}

// y = x y for |dtype|, eight a thread.
static ft_kir *build_chain(ft_dtype dtype, sketch *s) {
  static const ft_simt_choice choice = {.threads = 128, .vector = 8, .unroll = 1};
  uint32_t x = input(s, dtype, SHAPE(64, 1024)), b = input(s, dtype, SHAPE(1024));
  output(s, two(s, FT_OP_MUL, two(s, FT_OP_ADD, x, b), x));
  ft_workload *w = FT_NEW(s->arena, ft_workload);
  *w = finish(s);
  ft_group_ir *ir;
  ft_kir *kir;
  const char *reason;
  ft_error error;
  cr_assert_eq(ft_group_ir_make(w, s->arena, &ir, &reason, &error), FT_OK);
  cr_assert(ir, "%s", reason);
  cr_assert_null(ft_simt_nest_refusal(ir, &choice, s->arena));
  cr_assert_eq(ft_simt_nest_build(ir, &choice, s->arena, &kir, &error), FT_OK);
  return kir;
}

Test(half, eight_neighbours_are_one_access_and_stay_in_registers) {
  static const char *const archs[] = {"sm_80", "sm_90", "sm_100"};
  ft_nvrtc *nvrtc;
  ft_error error;
  bool has_nvrtc = ft_nvrtc_open(ft_allocator_system(), &nvrtc, &error) == FT_OK;
  for (int d = 0; d < DTYPES; d++) {
    sketch s = sketch_open();
    const char *text;
    ft_simt_launch launch;
    ft_kir *kir = build_chain(dtypes[d], &s);
    cr_assert_eq(ft_print_cuda(kir, "chain", 0, &text, &launch, &error), FT_OK, "%s",
                 error.text);
    cr_assert_eq(occurrences(text, "const int4 *)(b"), 2, "%s", text);
    cr_assert_eq(occurrences(text, ")[l] = ((const int4 *)h"), 1, "%s", text);
    for (uint32_t a = 0; has_nvrtc && a < 3; a++) {
      ft_cubin cubin;
      cr_assert_eq(
          ft_nvrtc_compile(nvrtc, text, "chain", archs[a], s.arena, &cubin, &error),
          FT_OK, "%s", error.text);
      cr_assert_eq(cubin.outcome, FT_OUTCOME_OK, "%s\n%s", cubin.log, text);
      cr_assert_eq(cubin.facts.stack_bytes, 0, "%s: %lld bytes of local memory", archs[a],
                   (long long)cubin.facts.stack_bytes);
      cr_assert_lt(cubin.facts.registers, 40);
    }
    sketch_close(&s);
  }
  if (has_nvrtc) ft_nvrtc_close(nvrtc);
}
