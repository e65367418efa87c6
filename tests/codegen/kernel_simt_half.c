// Short floats in memory: every bit pattern through the conversions of the SIM print,
// held against graph/tensor.c, and what NVRTC makes of vectors of them.
#include "codegen/nvrtc.h"
#include "halves.h"
#include "simt_drawings.h"

enum { PER_BLOCK = 128, WIDTH = 8 };

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

Test(half, every_bit_pattern_is_loaded_and_stored_as_tensors_say) {
  for (int d = 0; d < SHORTS; d++) {
    ft_arena *arena = ft_arena_create(ft_allocator_system());
    pass p = {
        .from = shorts[d], .to = {shorts[d], FT_F32}, .narrows = FT_F32, .count = CODES};
    void *out[2];
    run_pass(&p, all_codes(arena), out, arena);
    check_codes(shorts[d], out[0], out[1]);
    ft_arena_destroy(arena);
  }
}

Test(half, stores_and_casts_round_half_to_even_as_tensors_do) {
  for (int d = 0; d < SHORTS; d++) {
    ft_arena *arena = ft_arena_create(ft_allocator_system());
    pass p = {
        .from = FT_F32, .to = {shorts[d], FT_F32}, .narrows = shorts[d], .count = TIES};
    float *in = all_ties(shorts[d], arena);
    void *out[2];
    run_pass(&p, in, out, arena);
    check_ties(shorts[d], in, out[0], out[1]);
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
  for (int d = 0; d < SHORTS; d++) {
    sketch s = sketch_open();
    const char *text;
    ft_simt_launch launch;
    ft_kir *kir = build_chain(shorts[d], &s);
    cr_assert_eq(ft_print_cuda(kir, "chain", &text, &launch, &error), FT_OK, "%s",
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
