// Builds groups with every tactic and schedule, runs them, and compares with the
// double-precision interpreter.
#ifndef FT_TESTS_CODEGEN_TRYING_H
#define FT_TESTS_CODEGEN_TRYING_H

#include <math.h>

#include "core/clock.h"
#include "graph/inputs.h"
#include "graphs.h"
#include "running.h"

typedef struct test_case {
  uint64_t seed;
  ft_workload workload;
  ft_tensor *input;
  ft_reference *reference;
} test_case;

typedef struct session session;
struct session {
  ft_arena *arena;
  ft_target target;
  ft_codegen *codegen;
  ft_builder builder;
  const char *folder;
  ft_rng rng;
  uint32_t kernels;
  // Changes input |i| of |group| before the reference is computed; NULL: none.
  void (*spoil)(session *s, const ft_group *group, uint32_t i, ft_tensor *input);
  const void *how;  // for |spoil|
};

// NaN, infinities and more, of a size whose products may cancel in any order.
static inline void sprinkle(session *s, ft_tensor *input) {
  static const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-40, 1e9, -1e8, 100};
  if (!ft_dtype_is_float(input->dtype) || !input->bytes) return;
  uint64_t elements = (uint64_t)ft_shape_elements(&input->shape);
  void *data = ft_arena_memdup(s->arena, input->data, input->bytes);
  for (int i = 0; i < 6; i++)
    ft_element_set_f64(input->dtype, data, (int64_t)ft_rng_below(&s->rng, elements),
                       odd[ft_rng_below(&s->rng, 8)]);
  input->data = data;
}

static inline void spoil_mildly(session *s, const ft_group *group, uint32_t i,
                                ft_tensor *input) {
  (void)group, (void)i;
  sprinkle(s, input);
}

static inline session session_open(uint64_t seed) {
  session s = {.arena = ft_arena_create(ft_allocator_system()), .rng = ft_rng_seed(seed)};
  s.folder = cache_make(s.arena);
  return s;
}

static inline void session_start(session *s) {
  s->target = test_target(s->arena);
  ft_codegen_options options = {.cache_folder = s->folder, .jobs = 2};
  ft_error error;
  cr_assert_eq(
      ft_codegen_create(&options, &s->target, ft_allocator_system(), &s->codegen, &error),
      FT_OK, "%s", error.text);
  s->builder = ft_codegen_builder(s->codegen);
}

static inline void session_close(session *s) {
  ft_codegen_destroy(s->codegen);
  cache_remove(s->folder, s->arena);
  ft_arena_destroy(s->arena);
}

// The workload of primitives [first, first + count) of |graph|, with inputs and what they
// give. False when no tactic takes it.
static inline bool make_case(session *s, const ft_graph *graph, uint32_t first,
                             uint32_t count, uint64_t seed, test_case *out) {
  uint32_t *list = FT_NEW_ARRAY(s->arena, uint32_t, count);
  for (uint32_t i = 0; i < count; i++) list[i] = first + i;
  ft_group group;
  ft_error error;
  cr_assert_eq(ft_group_make(graph, list, count, s->arena, &group, &error), FT_OK, "%s",
               error.text);
  out->seed = seed;
  cr_assert_eq(ft_workload_make(&group, s->arena, &out->workload, &error), FT_OK, "%s",
               error.text);
  const char *names[8], *reason;
  if (!s->builder.match(s->builder.self, &out->workload, s->arena, names, 8, &reason)) {
    cr_assert(*reason, "no reason");
    cr_assert_gt(count, 1, "seed %llu: single primitive %u refused: %s",
                 (unsigned long long)seed, first, reason);
    if (getenv("FT_SHOW_REFUSALS"))
      fprintf(stderr, "%llu: %s\n", (unsigned long long)seed, reason);
    return false;
  }
  const ft_group *g = &out->workload.group;
  out->input = FT_NEW_ARRAY(s->arena, ft_tensor, g->input_count);
  cr_assert_eq(ft_group_random_inputs(g, seed, s->arena, out->input, &error), FT_OK, "%s",
               error.text);
  for (uint32_t i = 0; i < g->input_count && s->spoil; i++)
    s->spoil(s, g, i, &out->input[i]);
  ft_graph *alone;
  cr_assert_eq(ft_group_extract(g, s->arena, &alone, &error), FT_OK, "%s", error.text);
  out->reference = FT_NEW_ARRAY(s->arena, ft_reference, g->output_count);
  cr_assert_eq(ft_interpret_graph(alone, out->input, s->arena, out->reference, &error),
               FT_OK, "%s", error.text);
  return true;
}

static inline void run_case(session *s, const test_case *c, const ft_candidate *candidate,
                            const ft_module *module) {
  const char *schedule = ft_schedule_json(&candidate->schedule, s->arena);
  cr_assert_eq(module->outcome, FT_OUTCOME_OK, "seed %llu %s %s: %s\n%s",
               (unsigned long long)c->seed, candidate->tactic, schedule, module->log,
               module->source);
  const ft_group *g = &c->workload.group;
  ft_tensor *out = FT_NEW_ARRAY(s->arena, ft_tensor, g->output_count);
  int32_t code = run_module(module, g, c->input, c->seed, s->arena, out);
  cr_assert_eq(code, 0);
  for (uint32_t i = 0; i < g->output_count; i++) {
    ft_comparison cmp;
    ft_comparison_init(&cmp);
    ft_compare_tensor(&out[i], &c->reference[i], &cmp);
    cr_assert(cmp.max_ratio <= 1,
              "seed %llu %s %s output %u at %lld: got %.9g, expected %.9g, ratio %g\n%s",
              (unsigned long long)c->seed, candidate->tactic, schedule, i,
              (long long)cmp.worst_index, cmp.worst_value, cmp.worst_expected,
              cmp.max_ratio, module->source);
  }
}

enum { MOST_CANDIDATES = 512 };

// Every schedule of the space of every tactic that takes |c|. Returns how many.
static inline uint32_t list_candidates(session *s, const test_case *c,
                                       ft_candidate *out) {
  const char *names[8], *reason;
  uint32_t made = 0, tactics = s->builder.match(s->builder.self, &c->workload, s->arena,
                                                names, 8, &reason);
  for (uint32_t t = 0; t < tactics; t++) {
    ft_schedule *list;
    uint32_t count;
    ft_error error;
    cr_assert_eq(s->builder.space(s->builder.self, &c->workload, names[t], &s->target,
                                  s->arena, &list, &count, &error),
                 FT_OK, "%s", error.text);
    cr_assert(count > 0, "%s has no schedule", names[t]);
    for (uint32_t i = 0; i < count && made < MOST_CANDIDATES; i++)
      out[made++] = (ft_candidate){&c->workload, &s->target, names[t], list[i]};
  }
  return made;
}

// Builds all of them at once and compares each.
static inline void run_candidates(session *s, const test_case *c) {
  ft_candidate *candidate = FT_NEW_ARRAY(s->arena, ft_candidate, MOST_CANDIDATES);
  uint32_t count = list_candidates(s, c, candidate);
  cr_assert_gt(count, 0);
  ft_module *module = FT_NEW_ARRAY(s->arena, ft_module, count);
  ft_error error;
  cr_assert_eq(s->builder.build(s->builder.self, candidate, count, false, s->arena,
                                module, &error),
               FT_OK, "%s", error.text);
  for (uint32_t i = 0; i < count; i++) run_case(s, c, &candidate[i], &module[i]);
  s->kernels += count;
}

// The group of all of |k| on every tactic and schedule, against the interpreter.
static inline void run_everything(sketch *k) {
  session s = session_open(1);
  session_start(&s);
  test_case c;
  cr_assert_eq(ft_graph_finish(k->graph, NULL), FT_OK);
  cr_assert(make_case(&s, k->graph, 0, k->graph->primitive_count, 9, &c));
  run_candidates(&s, &c);
  session_close(&s);
  sketch_close(k);
}

#endif
