// What SIM says of small wrong kernels, by name, in several orders of their blocks.
#include "sim_kernels.h"
#include "simming.h"

enum { SEEDS = 12, FUEL = 1 << 12 };

typedef struct memory {
  float in[ELEMENTS], out[ELEMENTS];
  uint8_t workspace[4096];
} memory;

static ft_sim_result run(const simmed *c, void *library, memory *m,
                         ft_sim_landing landing, uint64_t seed, ft_arena *arena) {
  void *buffers[] = {m->in, m->out, m->workspace};
  const int64_t count[] = {ELEMENTS, ELEMENTS};
  ft_sim_call call = {.entry = simmed_entry(c, library),
                      .grid = c->launch.grid,
                      .buffers = buffers,
                      .count = count,
                      .inputs = 1,
                      .outputs = 1,
                      .workspace_bytes = c->launch.workspace_bytes,
                      .fuel = FUEL,
                      .landing = landing,
                      .seed = seed};
  ft_sim_result result;
  ft_error error;
  cr_assert_leq(call.workspace_bytes, sizeof m->workspace);
  cr_assert_eq(ft_sim_run(&call, arena, &result, &error), FT_OK, "%s", error.text);
  return result;
}

static void build_all(simmed *c, ft_arena *arena) {
  for (uint32_t i = 0; i < CASES; i++) {
    c[i] = (simmed){.label = cases[i].name};
    simmed_print(&c[i], cases[i].build(arena), i, arena);
  }
}

Test(codegen_sim, names_what_is_wrong_with_a_kernel) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  simmed c[CASES];
  build_all(c, arena);
  const char *folder = cache_make(arena);
  void *library = simmed_build(c, CASES, folder, arena);
  for (uint32_t i = 0; i < CASES; i++)
    for (uint64_t n = 0; n < (uint64_t)SEEDS * FT_SIM_LANDINGS; n++) {
      memory *m = FT_NEW(arena, memory);
      uint64_t seed = n / FT_SIM_LANDINGS;
      ft_sim_landing landing = (ft_sim_landing)(n % FT_SIM_LANDINGS);
      ft_sim_result r = run(&c[i], library, m, landing, seed, arena);
      cr_expect_eq(r.fault, cases[i].fault, "%s, landing %d, seed %d: %s\n%s", c[i].label,
                   landing, (int)seed, r.text, c[i].text);
    }
  cache_remove(folder, arena);
  ft_arena_destroy(arena);
}

static const simmed *find(const simmed *c, const char *name) {
  for (uint32_t i = 0; i < CASES; i++)
    if (!strcmp(c[i].label, name)) return &c[i];
  cr_assert_fail("no case %s", name);
  return NULL;
}

// Block 2's parts go to the start of the output, whichever block is last.
Test(codegen_sim, the_last_block_reads_what_others_stored_launch_after_launch) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  simmed c[CASES];
  build_all(c, arena);
  const char *folder = cache_make(arena);
  void *library = simmed_build(c, CASES, folder, arena);
  memory *m = FT_NEW(arena, memory);
  for (int launch = 0; launch < 3; launch++) {
    for (int i = 0; i < ELEMENTS; i++) m->in[i] = (float)(i + 1000 * launch);
    ft_sim_result r = run(find(c, "stored before it is counted"), library, m,
                          FT_SIM_EARLY, (uint64_t)launch, arena);
    cr_assert_eq(r.fault, FT_SIM_FINE, "%s", r.text);
    for (int t = 0; t < THREADS; t++)
      cr_assert_eq(m->out[t], (float)(2 * THREADS + t + 1000 * launch));
  }
  // A launch that leaves its counter behind: SIM says so, and memory has it.
  run(find(c, "one block more than there are"), library, m, FT_SIM_EARLY, 3, arena);
  int32_t left;
  memcpy(&left, m->workspace + 512, sizeof left);
  cr_assert_eq(left, BLOCKS);
  cache_remove(folder, arena);
  ft_arena_destroy(arena);
}

Test(codegen_sim, copies_arrive_and_zeros_where_their_condition_is_0) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  simmed c[CASES];
  build_all(c, arena);
  const char *folder = cache_make(arena);
  void *library = simmed_build(c, CASES, folder, arena);
  for (int landing = 0; landing < FT_SIM_LANDINGS; landing++) {
    memory *m = FT_NEW(arena, memory);
    for (int i = 0; i < ELEMENTS; i++) m->in[i] = (float)(i + 1);
    run(find(c, "zeros past the end"), library, m, (ft_sim_landing)landing, 3, arena);
    for (int t = 0; t < BLOCKS * THREADS; t++)
      cr_assert_eq(m->out[t], t < 8 ? (float)(ELEMENTS - 8 + t + 1) : 0);
  }
  cache_remove(folder, arena);
  ft_arena_destroy(arena);
}
