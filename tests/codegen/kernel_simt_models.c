// The groups of real models in the shape of a GPU: each operator, and runs of primitives,
// compiles for three architectures, and SIM agrees with the reference on some blocks.
//   FT_SIMT_MODELS=all  the shared models too (minutes), not only examples/
#include <dirent.h>

#include "codegen/nvrtc.h"
#include "codegen/simt_blocks.h"
#include "graph/import.h"
#include "simming.h"
#include "tests/support/data.h"

enum {
  RUNS = 24,  // of primitives, for each model
  PAIRS = 12,
  MOST_TRIES = 2000,
  LONGEST_RUN = 8,
  BATCH = 24,
  BLOCKS = 4,    // that SIM runs of a kernel
  CHECKED = 24,  // elements of each output that they wrote
  MOST_HASHES = 4096,
};

static const char *const archs[] = {"sm_80", "sm_90", "sm_100"};

typedef struct tally {
  ft_rng rng;
  ft_nvrtc *nvrtc;  // NULL: none here
  uint32_t kernels, refused, elements;
  uint32_t joined;  // kernels of several bodies
  uint32_t of[FT_SIMT_SKELETONS];
  ft_hash seen[MOST_HASHES];
  uint32_t seen_count;
  uint32_t arch;
  bool is_whole;  // the shared models too
} tally;

// ---- kernels of a group
// -----------------------------------------------------------------------

// What is in front is made for fewer groups, and is better where it takes one.
static const ft_simt_any_choice choices[] = {
    {FT_SIMT_TURN, .turn = {256, 32, 32, 4, 4, true, false}},
    {FT_SIMT_TURN, .turn = {256, 32, 32, 1, 4, false, false}},
    {FT_SIMT_TURN, .turn = {256, 32, 32, 4, 1, false, false}},
    {FT_SIMT_TURN, .turn = {256, 32, 32, 2, 2, true, false}},
    {FT_SIMT_TURN, .turn = {256, 32, 32, 1, 1, false, false}},
    {FT_SIMT_NEST, .nest = {.threads = 128,
                            .vector = 4,
                            .unroll = 1,
                            .row_threads = 128,
                            .buffer = FT_SIMT_REGISTERS}},
    {FT_SIMT_NEST, .nest = {.threads = 128,
                            .vector = 1,
                            .unroll = 2,
                            .row_threads = 64,
                            .buffer = FT_SIMT_REGISTERS}},
    {FT_SIMT_NEST, .nest = {.threads = 256,
                            .vector = 4,
                            .unroll = 2,
                            .column_threads = 8,
                            .loads_once = true}},
    {FT_SIMT_NEST, .nest = {.threads = 128, .vector = 4, .unroll = 1, .row_threads = 32}},
    {FT_SIMT_NEST,
     .nest = {.threads = 128, .vector = 1, .unroll = 1, .row_threads = 128}},
    {FT_SIMT_NEST, .nest = {.threads = 256, .vector = 4, .unroll = 2}},
    {FT_SIMT_NEST, .nest = {.threads = 128, .vector = 1, .unroll = 1}},
    {FT_SIMT_SKINNY, .skinny = {256, 32, 2, .streams = true}},
    {FT_SIMT_SKINNY, .skinny = {128, 32, 1, .streams = false}},
    {FT_SIMT_GEMM, .gemm = {64, 64, 16, 4, 4, .stages = 3, .copies = true}, 1},
    {FT_SIMT_GEMM, .gemm = {64, 64, 16, 4, 4, .stages = 2}, 1},
    {FT_SIMT_WINDOW, .window = {128, 8, 32, 1}},
    {FT_SIMT_WINDOW, .window = {64, 1, 32, 4}},
    {FT_SIMT_WINDOW, .window = {32, 1, 1, 32}},
    {FT_SIMT_WINDOW, .window = {32, 1, 1, 1}},
    {FT_SIMT_CONV, .conv = {64, 64, 16, 4, 4, 4}, 1},
    {FT_SIMT_CONV, .conv = {64, 64, 16, 4, 4, 1}, 1},
    {FT_SIMT_LOOP, .loop = {128, 4}},
};

// For groups that fall apart; turns where they can be taken.
static ft_kir *blocks_of(const ft_workload *w, ft_arena *arena) {
  static const ft_kir_order orders[] = {FT_KIR_INTERLEAVE, FT_KIR_CONCAT};
  ft_simt_blocks_choice c;
  ft_error error;
  ft_kir *kir = NULL;
  for (int i = 0; i < 2 && !kir; i++)
    if (!ft_simt_blocks_choose(w, 128, orders[i], arena, &c) &&
        !ft_simt_blocks_refusal(w, &c, arena))
      cr_assert_eq(ft_simt_blocks_build(w, &c, arena, &kir, &error), FT_OK, "%s",
                   error.text);
  return kir;
}

// The skeleton made for it, else the one that takes everything; NULL: none does.
static ft_kir *kernel_of(tally *t, const ft_workload *w, ft_arena *arena) {
  ft_error error;
  ft_kir *kir = blocks_of(w, arena);
  t->joined += kir != NULL;
  for (size_t i = 0; i < sizeof choices / sizeof *choices && !kir; i++) {
    if (ft_simt_any_refusal(w, &choices[i], arena)) continue;
    cr_assert_eq(ft_simt_any_build(w, &choices[i], arena, &kir, &error), FT_OK, "%s",
                 error.text);
    t->of[choices[i].skeleton]++;
  }
  return kir;
}

// ---- checking
// ------------------------------------------------------------------------------------

static void compile_for(tally *t, const simmed *c, const char *text, const char *arch,
                        ft_arena *arena) {
  ft_cubin cubin;
  ft_error error;
  cr_assert_eq(ft_nvrtc_compile(t->nvrtc, text, "kernel", arch, arena, &cubin, &error),
               FT_OK, "%s", error.text);
  cr_assert_eq(cubin.outcome, FT_OUTCOME_OK, "%s for %s: %s\n%s", c->label, arch,
               cubin.log, text);
}

// For each architecture in turn; for all of them with the shared models.
static void compile(tally *t, const simmed *c, ft_kir *kir, ft_arena *arena) {
  const char *text;
  ft_simt_launch launch;
  ft_error error;
  cr_assert_eq(ft_print_cuda(kir, "kernel", &text, &launch, &error), FT_OK, "%s",
               error.text);
  for (int i = 0; t->nvrtc && i < (t->is_whole ? 3 : 1); i++)
    compile_for(t, c, text, archs[t->arch++ % 3], arena);
}

typedef struct launched {
  void **buffer;
  int64_t *count;
  ft_sim_cell **cell;
  uint32_t inputs, all;  // with the workspace, the last
} launched;

// Memory of output |i|, or of the workspace behind them. Shadows from calloc: pages that
// no block touches cost nothing.
static void make_written(launched *l, uint32_t i, int64_t count, size_t bytes) {
  l->buffer[i] = calloc((size_t)count + 1, bytes);
  l->cell[i] = calloc((size_t)count + 1, sizeof(ft_sim_cell));
  cr_assert(l->buffer[i] && l->cell[i]);
}

static launched make_buffers(const simmed *c, ft_arena *arena) {
  const ft_group *g = &c->workload->group;
  launched l = {.inputs = g->input_count, .all = g->input_count + g->output_count + 1};
  l.buffer = FT_NEW_ARRAY(arena, void *, l.all);
  l.count = FT_NEW_ARRAY(arena, int64_t, l.all);
  l.cell = FT_NEW_ARRAY(arena, ft_sim_cell *, l.all);
  for (uint32_t i = 0; i + 1 < l.all; i++) {
    const ft_value *v =
        &g->graph->value[i < l.inputs ? g->input[i] : g->output[i - l.inputs]];
    l.count[i] = ft_shape_elements(&v->shape);
    if (i < l.inputs)
      l.buffer[i] = (void *)(uintptr_t)c->input[i].data;
    else
      make_written(&l, i, l.count[i], ft_dtype_bytes(v->dtype));
  }
  make_written(&l, l.all - 1, (int64_t)c->launch.workspace_bytes, 1);
  return l;
}

static void free_buffers(launched *l) {
  for (uint32_t i = l->inputs; i < l->all; i++) {
    free(l->buffer[i]);
    free(l->cell[i]);
  }
}

static void run_block(const simmed *c, ft_sim_state *state, uint64_t block) {
  cr_assert_eq(ft_sim_block(state, block), 0, "%s", c->label);
  cr_assert_eq(state->fault, 0, "%s: %s at buffer %u[%lld], block %llu, thread %llu\n%s",
               c->label, ft_sim_fault_text((ft_sim_fault)state->fault), state->buffer,
               (long long)state->index, (unsigned long long)block,
               (unsigned long long)state->thread, c->text);
}

static void run_blocks(tally *t, const simmed *c, ft_sim_entry *entry, const launched *l,
                       ft_arena *arena) {
  int64_t grid = c->launch.grid;
  ft_sim_call call = {.entry = entry,
                      .grid = grid,
                      .buffers = l->buffer,
                      .count = l->count,
                      .fuel = UINT64_C(1) << 28};
  ft_sim_state *state;
  ft_error error;
  cr_assert_eq(ft_sim_open(&call, l->cell, arena, &state, &error), FT_OK, "%s",
               error.text);
  for (int i = 0; i < BLOCKS && i < grid; i++) {
    // The last one has the guards.
    uint64_t block = i == 0 ? (uint64_t)grid - 1 : ft_rng_below(&t->rng, (uint64_t)grid);
    run_block(c, state, grid <= BLOCKS ? (uint64_t)i : block);
  }
}

// Elements of output |o| that were written, spread over it.
static uint32_t choose_written(const launched *l, uint32_t o, int64_t *index) {
  const ft_sim_cell *cell = l->cell[l->inputs + o];
  int64_t written = 0, count = l->count[l->inputs + o], at = 0;
  uint32_t chosen = 0;
  for (int64_t i = 0; i < count; i++) written += cell[i].is_set;
  int64_t stride = written / CHECKED + 1;
  for (int64_t i = 0; i < count && chosen < CHECKED; i++)
    if (cell[i].is_set && at++ % stride == 0) index[chosen++] = i;
  return chosen;
}

static void compare(tally *t, const simmed *c, const launched *l) {
  const ft_group *g = &c->workload->group;
  ft_error error;
  for (uint32_t o = 0; o < g->output_count; o++) {
    int64_t index[CHECKED], integer[CHECKED];
    double value[CHECKED], scale[CHECKED];
    const ft_value *v = &g->graph->value[g->output[o]];
    ft_tensor actual = {v->dtype, v->shape, l->buffer[l->inputs + o], simmed_bytes(v)};
    uint32_t count = choose_written(l, o, index);
    cr_assert_eq(
        ft_interpret_group(g, c->input, o, index, count, value, scale, integer, &error),
        FT_OK, "%s: %s", c->label, error.text);
    ft_comparison cmp;
    ft_comparison_init(&cmp);
    for (uint32_t i = 0; i < count; i++)
      ft_compare_element(&actual, index[i], value[i], scale[i], integer[i], &cmp);
    cr_assert(cmp.max_ratio <= 1, "%s: output %u at %lld: got %.9g, expected %.9g\n%s",
              c->label, o, (long long)cmp.worst_index, cmp.worst_value,
              cmp.worst_expected, c->text);
    t->elements += count;
  }
}

static void check_batch(tally *t, const simmed *c, uint32_t count, ft_arena *arena) {
  if (!count) return;
  const char *folder = cache_make(arena);
  void *library = simmed_build(c, count, folder, arena);
  for (uint32_t i = 0; i < count; i++) {
    ft_arena *own = ft_arena_create(ft_allocator_system());
    simmed one = c[i];
    ft_error error;
    one.input = FT_NEW_ARRAY(own, ft_tensor, one.workload->group.input_count);
    cr_assert_eq(ft_group_random_inputs(&one.workload->group, 1, own, one.input, &error),
                 FT_OK, "%s", error.text);
    launched l = make_buffers(&one, own);
    run_blocks(t, &one, simmed_entry(&one, library), &l, own);
    compare(t, &one, &l);
    free_buffers(&l);
    ft_arena_destroy(own);
  }
  dlclose(library);
  cache_remove(folder, arena);
}

// ---- the groups of a model
// ---------------------------------------------------------------------

static bool is_new(tally *t, const ft_hash *hash) {
  for (uint32_t i = 0; i < t->seen_count; i++)
    if (ft_hash_equal(&t->seen[i], hash)) return false;
  cr_assert_lt(t->seen_count, MOST_HASHES);
  t->seen[t->seen_count++] = *hash;
  return true;
}

// Primitives [first, first + count); false: seen before, or no skeleton takes it.
static bool take(tally *t, const ft_graph *graph, uint32_t first, uint32_t count,
                 const char *model, uint32_t number, ft_arena *arena, simmed *out) {
  uint32_t list[LONGEST_RUN + 56];
  ft_group group;
  ft_error error;
  ft_workload *w = FT_NEW(arena, ft_workload);
  for (uint32_t i = 0; i < count; i++) list[i] = first + i;
  cr_assert_eq(ft_group_make(graph, list, count, arena, &group, &error), FT_OK, "%s",
               error.text);
  cr_assert_eq(ft_workload_make(&group, arena, w, &error), FT_OK, "%s", error.text);
  if (!is_new(t, &w->hash)) return false;
  ft_kir *kir = kernel_of(t, w, arena);
  if (!kir) {
    t->refused++;
    return false;
  }
  *out = (simmed){.workload = w,
                  .label = ft_arena_printf(arena, "%s, primitives %u to %u", model, first,
                                           first + count - 1)};
  simmed_print(out, kir, number, arena);
  compile(t, out, kir, arena);
  t->kernels++;
  return true;
}

static void check_operators(tally *t, const ft_graph *graph, const char *model,
                            ft_arena *arena) {
  simmed c[BATCH];
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->operator_count; i++) {
    const ft_operator *op = &graph->operator_[i];
    if (!op->count || op->count > LONGEST_RUN + 56) continue;
    count += take(t, graph, op->first, op->count, model, count, arena, &c[count]);
    for (uint32_t k = 0; k < op->count && op->count > 1 && count < BATCH - 1; k++)
      count += take(t, graph, op->first + k, 1, model, count, arena, &c[count]);
    if (count < BATCH - 2) continue;
    check_batch(t, c, count, arena);
    count = 0;
  }
  check_batch(t, c, count, arena);
}

// No primitive of the second operator reads what the first computes.
static bool is_apart(const ft_graph *graph, const ft_operator *a, const ft_operator *b) {
  for (uint32_t i = b->first; i < b->first + b->count; i++)
    for (uint32_t k = 0; k < graph->primitive[i].input_count; k++) {
      uint32_t producer = graph->value[graph->primitive[i].input[k]].producer;
      if (producer != FT_NONE && producer >= a->first && producer < a->first + a->count)
        return false;
    }
  return true;
}

// Neighbours that do not need each other, PAIRS of them spread over the model.
static void check_pairs(tally *t, const ft_graph *graph, const char *model,
                        ft_arena *arena) {
  simmed c[PAIRS];
  uint32_t count = 0, tries = graph->operator_count;
  for (uint32_t i = 0; i < tries && i < MOST_TRIES && count < PAIRS; i++) {
    uint32_t at = (uint32_t)((uint64_t)i * 7919 % tries);
    const ft_operator *a = &graph->operator_[at];
    const ft_operator *b = at + 1 < tries ? a + 1 : NULL;
    if (!b || !a->count || !b->count || a->count + b->count > LONGEST_RUN) continue;
    if (b->first != a->first + a->count) continue;
    if (!is_apart(graph, a, b)) continue;
    count +=
        take(t, graph, a->first, a->count + b->count, model, count, arena, &c[count]);
  }
  check_batch(t, c, count, arena);
}

static void check_runs(tally *t, const ft_graph *graph, const char *model,
                       ft_arena *arena) {
  simmed c[RUNS];
  uint32_t count = 0;
  for (int i = 0; i < RUNS && graph->primitive_count > 1; i++) {
    uint32_t first = (uint32_t)ft_rng_below(&t->rng, graph->primitive_count - 1);
    uint32_t length = 2 + (uint32_t)ft_rng_below(&t->rng, LONGEST_RUN - 1);
    if (first + length > graph->primitive_count) length = graph->primitive_count - first;
    count += take(t, graph, first, length, model, count, arena, &c[count]);
  }
  check_batch(t, c, count, arena);
}

static void check_model(tally *t, const char *path, const char *name) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_dim_binding all = {"*", 1};
  ft_import_options options = {.dim = &all, .dim_count = 1};
  ft_import_report report;
  ft_graph *graph;
  ft_error error;
  uint32_t before = t->kernels;
  if (ft_import_onnx(path, &options, arena, &graph, &report, &error) == FT_OK) {
    check_operators(t, graph, name, arena);
    check_pairs(t, graph, name, arena);
    check_runs(t, graph, name, arena);
    fprintf(stderr, "%s: %u kernels\n", name, t->kernels - before);
  } else {
    fprintf(stderr, "%s: not imported: %s\n", name, error.text);
  }
  ft_arena_destroy(arena);
}

static int is_model(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return length > 5 && strcmp(entry->d_name + length - 5, ".onnx") == 0;
}

static void check_folder(tally *t, const char *folder) {
  struct dirent **entry;
  int count = scandir(folder, &entry, is_model, alphasort);
  cr_assert_gt(count, 0, "no models in %s", folder);
  for (int i = 0; i < count; i++) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
    check_model(t, path, entry[i]->d_name);
    free(entry[i]);
  }
  free(entry);
}

Test(simt, groups_of_real_models_compile_and_agree, .timeout = 3600) {
  tally *t = calloc(1, sizeof *t);
  char shared[1024];
  ft_error error;
  const char *which = getenv("FT_SIMT_MODELS");
  t->rng = ft_rng_seed(7);
  if (ft_nvrtc_open(ft_allocator_system(), &t->nvrtc, &error) != FT_OK)
    fprintf(stderr, "not compiled: %s\n", error.text);
  t->is_whole = which && strcmp(which, "all") == 0;
  check_folder(t, FT_SOURCE_DIR "/examples");
  if (t->is_whole && !test_data_path("onnx/models", shared, 1024))
    check_folder(t, shared);
  fprintf(stderr, "%u kernels, %u groups refused, %u elements compared: blocks %u",
          t->kernels, t->refused, t->elements, t->joined);
  for (int i = 0; i < FT_SIMT_SKELETONS; i++)
    fprintf(stderr, " %s %u", ft_simt_skeleton_name((ft_simt_skeleton)i), t->of[i]);
  fprintf(stderr, "\n");
  cr_assert_gt(t->joined, 10);
  cr_assert_gt(t->of[FT_SIMT_CONV], 0);
  cr_assert_gt(t->kernels, 100);
  cr_assert_gt(t->kernels, 4 * t->refused);
  ft_nvrtc_close(t->nvrtc);
  free(t);
}
