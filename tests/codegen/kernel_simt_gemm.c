// Products for GPUs: how wide they read, what they take of a multiprocessor, that long
// sums hold, and random products under random schedules.
#include "codegen/bank_conflicts.h"
#include "codegen/nvrtc.h"
#include "codegen/simt_gemm.h"
#include "codegen/simt_skinny.h"
#include "graphs.h"
#include "simming.h"
#include "simt_draws.h"

// ---- a large product, as layers have it
// ---------------------------------------------------------

static const ft_simt_gemm_choice usual[] = {
    {64, 64, 16, 4, 4, .stages = 1},
    {64, 64, 16, 4, 4, .stages = 2},
    {128, 128, 8, 8, 8, .stages = 1},
    {128, 128, 8, 8, 8, .stages = 2, .shares_sums = true},
    {128, 64, 16, 8, 4, .stages = 1},
    {128, 64, 16, 8, 4, .stages = 2},
    {64, 64, 16, 4, 4, .stages = 2, .splits = 4},
    {64, 64, 16, 4, 4, .stages = 3, .copies = true},
    {128, 128, 8, 8, 8, .stages = 4, .copies = true, .shares_sums = true},
    {128, 64, 16, 8, 4, .stages = 3, .copies = true},
};
enum { USUAL = sizeof usual / sizeof *usual };

// (a b + bias, gelu-like) with |is_turned|: b as a layer's weights, read along the terms.
static ft_workload layer(sketch *s, bool is_turned) {
  *s = sketch_open();
  uint32_t a = input(s, FT_F32, SHAPE(512, 1024)),
           b = input(s, FT_F32, SHAPE(1024, 1024));
  uint32_t y = two(s, FT_OP_MATMUL, a, is_turned ? transpose(s, b) : b);
  y = two(s, FT_OP_ADD, y, input(s, FT_F32, SHAPE(1024)));
  output(s, two(s, FT_OP_MUL, y, one(s, FT_OP_SIGMOID, y)));
  return finish(s);
}

static ft_kir *gemm_of(const ft_workload *w, const ft_simt_gemm_choice *c,
                       ft_arena *arena) {
  ft_error error;
  ft_kir *kir;
  const char *wrong = ft_simt_gemm_refusal(w, c, arena);
  cr_assert_null(wrong, "%s", wrong);
  cr_assert_eq(ft_simt_gemm_build(w, c, arena, &kir, &error), FT_OK, "%s", error.text);
  return kir;
}

// "b7[" at a place where it is read or written by one element: not after "(".
static bool has_narrow(const char *text, uint32_t buffer, ft_arena *arena) {
  return strstr(text, ft_arena_printf(arena, " b%u[", buffer)) != NULL;
}

static bool has_wide(const char *text, uint32_t buffer, bool is_read, ft_arena *arena) {
  return strstr(text, ft_arena_printf(arena, "((%sint4 *)(b%u + ",
                                      is_read ? "const " : "", buffer)) != NULL;
}

// After the declarations.
static const char *code_of(const char *text) {
  const char *at = strstr(text, "__syncthreads");
  cr_assert(at);
  for (; at > text && !strstr(at, "__shared__"); at--) continue;
  return strchr(at + 1, '\n');
}

static void check_widths(ft_kir *kir, const char *text, bool is_turned, ft_arena *arena) {
  uint32_t shared = 0;
  for (uint32_t i = 1; i < kir->buffer_count; i++) {
    const ft_kir_buffer *b = &kir->buffer[i];
    if (b->space == FT_KIR_GLOBAL) {
      cr_assert(has_wide(text, i, !b->is_written, arena), "buffer %u\n%s", i, text);
      cr_assert_not(has_narrow(text, i, arena), "buffer %u\n%s", i, text);
    } else if (b->space == FT_KIR_SHARED) {
      bool is_turned_here = shared++ == 0 || is_turned;
      cr_assert(has_wide(text, i, true, arena), "buffer %u\n%s", i, text);
      // Written by vectors unless the terms are what is contiguous in memory.
      cr_assert_eq(has_wide(text, i, false, arena), !is_turned_here, "buffer %u\n%s", i,
                   text);
    }
  }
}

Test(simt, a_large_product_reads_and_writes_16_bytes_at_a_time) {
  for (int turned = 0; turned < 2; turned++) {
    sketch s;
    ft_workload w = layer(&s, turned);
    for (uint32_t i = 0; i < USUAL; i++) {
      const char *text;
      ft_simt_launch launch;
      ft_error error;
      if (usual[i].shares_sums || usual[i].copies) continue;
      ft_kir *kir = gemm_of(&w, &usual[i], s.arena);
      cr_assert_eq(ft_print_cuda(kir, "k", &text, &launch, &error), FT_OK, "%s",
                   error.text);
      check_widths(kir, code_of(text), turned, s.arena);
    }
    sketch_close(&s);
  }
}

// Slabs are read in one pass, and written in two at most.
Test(simt, the_banks_of_shared_memory_answer_products_at_once) {
  for (int turned = 0; turned < 2; turned++) {
    sketch s;
    ft_workload w = layer(&s, turned);
    for (uint32_t i = 0; i < USUAL; i++) {
      ft_bank_access *access;
      uint32_t count, loads = 0;
      ft_error error;
      ft_kir *kir = gemm_of(&w, &usual[i], s.arena);
      cr_assert_eq(ft_bank_conflicts_count(kir, s.arena, &access, &count, &error), FT_OK,
                   "%s", error.text);
      for (uint32_t a = 0; a < count; a++) {
        loads += !access[a].is_store && access[a].degree > 0;
        cr_assert_leq(access[a].degree, access[a].is_store ? 2 : 1,
                      "choice %u: buffer %u, a %s of %u bytes", i, access[a].buffer,
                      access[a].is_store ? "store" : "load", access[a].bytes);
      }
      cr_assert_geq(loads, 2);
    }
    sketch_close(&s);
  }
}

static void check_resources(ft_nvrtc *nvrtc, ft_kir *kir, const char *arch,
                            const char *label, ft_arena *arena) {
  const char *text;
  ft_simt_launch launch;
  ft_cubin cubin;
  ft_error error;
  cr_assert_eq(ft_print_cuda(kir, "k", &text, &launch, &error), FT_OK, "%s", error.text);
  cr_assert_eq(ft_nvrtc_compile(nvrtc, text, "k", arch, arena, &cubin, &error), FT_OK,
               "%s", error.text);
  cr_assert_eq(cubin.outcome, FT_OUTCOME_OK, "%s: %s", label, cubin.log);
  cr_assert_eq(cubin.facts.spill_store_bytes, 0, "%s", label);
  cr_assert_eq(cubin.facts.spill_load_bytes, 0, "%s", label);
  cr_assert_eq(cubin.facts.stack_bytes, 0, "%s: %lld bytes of stack", label,
               (long long)cubin.facts.stack_bytes);
}

Test(simt, products_and_rows_of_weights_use_no_local_memory) {
  static const char *const archs[] = {"sm_80", "sm_90"};
  ft_nvrtc *nvrtc;
  ft_error error;
  sketch s;
  if (ft_nvrtc_open(ft_allocator_system(), &nvrtc, &error) != FT_OK)
    cr_skip_test("%s", error.text);
  ft_workload w = layer(&s, false);
  for (uint32_t i = 0; i < USUAL; i++)
    for (int a = 0; a < 2; a++)
      check_resources(nvrtc, gemm_of(&w, &usual[i], s.arena), archs[a],
                      ft_arena_printf(s.arena, "choice %u", i), s.arena);
  sketch_close(&s);
  ft_nvrtc_close(nvrtc);
}

// ---- long sums
// ------------------------------------------------------------------------------------

enum { LONG = 16384 };

// Each rounding of a running sum of these goes the same way for long.
static void fill(simmed *c, ft_arena *arena) {
  const ft_group *g = &c->workload->group;
  ft_error error;
  ft_graph *alone;
  for (uint32_t i = 0; i < g->input_count; i++) {
    int64_t count = ft_shape_elements(&c->input[i].shape);
    float *data = FT_NEW_ARRAY(arena, float, (size_t)count);
    for (int64_t k = 0; k < count; k++) data[k] = i ? 1.0f : 0.1f;
    c->input[i].data = (const uint8_t *)data;
  }
  cr_assert_eq(ft_group_extract(g, arena, &alone, &error), FT_OK, "%s", error.text);
  cr_assert_eq(ft_interpret_graph(alone, c->input, arena, c->reference, &error), FT_OK,
               "%s", error.text);
}

static double running_ratio(const simmed *c) {
  volatile float sum = 0;
  ft_comparison cmp;
  for (int i = 0; i < LONG; i++) sum = sum + 0.1f;
  ft_comparison_init(&cmp);
  ft_compare_float(FT_F32, 0, (double)sum, c->reference[0].value[0],
                   c->reference[0].scale[0], &cmp);
  return cmp.max_ratio;
}

Test(simt, a_sum_of_16384_equal_terms_holds_where_a_running_one_does_not) {
  static const ft_simt_gemm_choice gemms[] = {
      {8, 8, 4, 2, 1, .stages = 1},
      {8, 8, 32, 1, 2, .stages = 2, .shares_sums = true},
      {8, 8, 16, 2, 1, .stages = 1, .splits = 3}};
  static const ft_simt_skinny_choice skinny = {
      .threads = 64, .term_threads = 16, .unroll = 1};
  sketch s = sketch_open();
  simmed c[4] = {{0}};
  ft_error error;
  uint32_t a = input(&s, FT_F32, SHAPE(2, LONG)), b = input(&s, FT_F32, SHAPE(LONG, 2));
  output(&s, two(&s, FT_OP_MATMUL, a, b));
  ft_workload w = finish(&s);
  for (uint32_t i = 0; i < 4; i++) {
    ft_kir *kir = NULL;
    c[i] = (simmed){.workload = &w, .label = ft_arena_printf(s.arena, "choice %u", i)};
    if (i < 3)
      kir = gemm_of(&w, &gemms[i], s.arena);
    else
      cr_assert_eq(ft_simt_skinny_build(&w, &skinny, s.arena, &kir, &error), FT_OK);
    simmed_expect(&c[i], 1, s.arena);
    fill(&c[i], s.arena);
    simmed_print(&c[i], kir, i, s.arena);
  }
  cr_assert_gt(running_ratio(&c[0]), 1);
  const char *folder = cache_make(s.arena);
  void *library = simmed_build(c, 4, folder, s.arena);
  for (uint32_t i = 0; i < 4; i++) simmed_check(&c[i], library, s.arena);
  cache_remove(folder, s.arena);
  sketch_close(&s);
}

// ---- random products
// --------------------------------------------------------------------------------

enum { BATCH = 32, TRIES = 200 };

static int64_t extent(ft_rng *rng, int64_t most) {
  int64_t n = 1 + (int64_t)ft_rng_below(rng, (uint64_t)most);
  return ft_rng_below(rng, 2) ? (n + 3) / 4 * 4 : n;
}

// [batch, rows, columns], perhaps turned, without its batch, or computed on the way.
static uint32_t operand(sketch *s, ft_rng *rng, int64_t batch, int64_t rows,
                        int64_t columns) {
  uint64_t how = ft_rng_below(rng, 6);
  if (how == 0) batch = 1;
  if (how == 1) return transpose(s, input(s, FT_F32, SHAPE(columns, rows)));
  uint32_t x = input(s, FT_F32, SHAPE(batch, rows, columns));
  if (how == 2) x = one(s, FT_OP_RELU, x);
  if (how == 3) x = two(s, FT_OP_MUL, x, input(s, FT_F32, SHAPE(1, columns)));
  if (how != 4) return x;
  uint32_t wide = input(s, FT_F32, SHAPE(batch, columns, rows));
  return apply(s, FT_OP_TRANSPOSE, 1, &wide, &(ft_attr){.perm = {0, 2, 1}});
}

static void put_behind(sketch *s, ft_rng *rng, uint32_t y, ft_shape shape) {
  uint64_t how = ft_rng_below(rng, 5);
  if (how == 1)
    y = two(s, FT_OP_ADD, y, input(s, FT_F32, SHAPE(shape.dim[shape.rank - 1])));
  if (how == 2) y = two(s, FT_OP_SUB, y, input(s, FT_F32, shape));
  if (how == 3) y = one(s, FT_OP_ERF, y);
  if (how == 4) output(s, one(s, FT_OP_RELU, y));
  output(s, y);
}

static ft_workload random_product(sketch *s, ft_rng *rng) {
  bool is_skinny = ft_rng_below(rng, 3) == 0;
  int64_t batch = 1 + (int64_t)ft_rng_below(rng, 3), m = extent(rng, is_skinny ? 8 : 70),
          n = extent(rng, 90), k = extent(rng, ft_rng_below(rng, 3) ? 40 : 400);
  *s = sketch_open();
  if (is_skinny && ft_rng_below(rng, 3) == 0) {
    int64_t swap = m;
    m = n;
    n = swap;
  }
  uint32_t a = operand(s, rng, batch, m, k), b = operand(s, rng, batch, k, n);
  uint32_t y = two(s, FT_OP_MATMUL, a, b);
  put_behind(s, rng, y, s->graph->value[y].shape);
  return finish(s);
}

typedef struct kinds {
  uint32_t gemms, copies, splits, skinny;
} kinds;

// A kernel of a random product that some choice takes.
static ft_kir *random_kernel(const ft_workload *w, ft_rng *rng, ft_arena *arena,
                             const char **label, kinds *n) {
  static const ft_simt_skeleton skeletons[] = {FT_SIMT_GEMM, FT_SIMT_SKINNY};
  for (int i = 0; i < TRIES; i++) {
    ft_simt_any_choice c;
    ft_kir *kir;
    ft_error error;
    ft_simt_skeleton skeleton = skeletons[ft_rng_below(rng, 2)];
    if (!draw_taken(rng, skeleton, draw_power(rng, 32, 256), w, arena, &c)) continue;
    *label = ft_simt_any_text(&c, arena);
    cr_assert_eq(ft_simt_any_build(w, &c, arena, &kir, &error), FT_OK, "%s: %s", *label,
                 error.text);
    bool is_gemm = skeleton == FT_SIMT_GEMM;
    n->skinny += !is_gemm;
    n->gemms += is_gemm;
    n->copies += is_gemm && c.gemm.copies;
    n->splits += is_gemm && c.gemm.splits > 1;
    return kir;
  }
  cr_assert_fail("no schedule takes a product");
  return NULL;
}

static void check_batch(uint64_t seed, kinds *n) {
  sketch s[BATCH];
  ft_workload w[BATCH];
  simmed c[BATCH] = {{0}};
  for (uint32_t i = 0; i < BATCH; i++) {
    ft_rng rng = ft_rng_seed(seed + i);
    const char *label = NULL, *text;
    ft_simt_launch launch;
    ft_error error;
    w[i] = random_product(&s[i], &rng);
    ft_kir *kir = random_kernel(&w[i], &rng, s[i].arena, &label, n);
    c[i] = (simmed){.workload = &w[i],
                    .label = ft_arena_printf(s[i].arena, "case %llu, %s",
                                             (unsigned long long)(seed + i), label)};
    simmed_expect(&c[i], seed + i, s[i].arena);
    simmed_print(&c[i], kir, i, s[i].arena);
    cr_assert_eq(ft_print_cuda(kir, "k", &text, &launch, &error), FT_OK, "%s: %s",
                 c[i].label, error.text);
  }
  const char *folder = cache_make(s[0].arena);
  void *library = simmed_build(c, BATCH, folder, s[0].arena);
  for (uint32_t i = 0; i < BATCH; i++) simmed_check(&c[i], library, s[i].arena);
  dlclose(library);
  cache_remove(folder, s[0].arena);
  for (uint32_t i = 0; i < BATCH; i++) sketch_close(&s[i]);
}

Test(simt, random_products_agree_with_the_reference, .timeout = 7200) {
  const char *cases = getenv("FT_SIMT_CASES"), *seed = getenv("FT_RANDOM_SEED");
  uint64_t count = cases ? strtoull(cases, NULL, 10) : 160,
           first = seed ? strtoull(seed, NULL, 10) : 1;
  kinds n = {0};
  for (uint64_t at = 0; at < count; at += BATCH) check_batch(first + at, &n);
  fprintf(stderr, "%u gemms (%u with copies, %u split), %u skinny\n", n.gemms, n.copies,
          n.splits, n.skinny);
  cr_assert_gt(n.gemms, count / 4);
  cr_assert_gt(n.skinny, count / 8);
}
