#include "tests/support/random/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/inputs.h"
#include "tests/support/random/launch.h"
#include "tests/support/random/random_group.h"

static void must(ft_status status, const char *what, const ft_error *error) {
  if (status == FT_OK) return;
  fprintf(stderr, "trial: %s: %s\n", what, error->text);
  abort();
}

// ---- the bench ----------------------------------------------------------------------

static uint32_t widest(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 64;
  if (__builtin_cpu_supports("avx2")) return 32;
#endif
  return 16;
}

void bench_open(uint64_t seed, const char *folder, uint32_t jobs, ft_arena *arena,
                bench *out) {
  static const uint32_t threads[] = {2, 2, 1, 8}, caches[] = {1 << 14, 1 << 20};
  ft_rng rng = ft_rng_seed(seed);
  uint32_t width = widest();
  if (ft_rng_below(&rng, 3) == 0 && width > 16) width /= 2;
  ft_error error;
  *out = (bench){.arena = arena};
  out->target = (ft_target){.name = "cpu",
                            .kind = "cpu",
                            .device = "test",
                            .isa = "",
                            .threads = threads[ft_rng_below(&rng, 4)],
                            .vector_bytes = width,
                            .l2_bytes = caches[ft_rng_below(&rng, 2)],
                            .driver = "",
                            .toolkit = "",
                            .libraries = "",
                            .numerics = "",
                            .power_class = ""};
  out->target.units = out->target.threads;
  must(
      ft_compilers_find(arena, out->target.compiler, &out->target.compiler_count, &error),
      "compilers", &error);
  ft_codegen_options options = {.cache_folder = folder, .jobs = jobs};
  must(ft_codegen_create(&options, &out->target, ft_allocator_system(), &out->codegen,
                         &error),
       "codegen", &error);
  out->builder = ft_codegen_builder(out->codegen);
}

void bench_close(bench *b) {
  ft_codegen_destroy(b->codegen);
}

// ---- inputs -------------------------------------------------------------------------

static double odd_number(ft_rng *rng) {
  static const double odd[] = {NAN,  INFINITY, -INFINITY, -0.0, 0,   1e-40, -1e-42,
                               3e38, -3e38,    1e30,      -1e9, 100, 1e-30, 65504};
  return odd[ft_rng_below(rng, sizeof odd / sizeof *odd)];
}

static void sprinkle(ft_tensor *t, void *data, int64_t elements, uint64_t count,
                     ft_rng *rng) {
  for (uint64_t i = 0; i < count; i++) {
    int64_t at = (int64_t)ft_rng_below(rng, (uint64_t)elements);
    ft_element_set_f64(t->dtype, data, at, odd_number(rng));
  }
}

// Rows of the last dim that are -inf from some place on, some of them wholly.
static void mask(ft_tensor *t, void *data, int64_t elements, ft_rng *rng) {
  int64_t length = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
  for (int64_t row = 0; row < elements / length; row++) {
    if (ft_rng_below(rng, 4)) continue;
    bool is_whole = ft_rng_below(rng, 2) == 0;
    int64_t from = is_whole ? 0 : (int64_t)ft_rng_below(rng, (uint64_t)length);
    for (int64_t i = from; i < length; i++)
      ft_element_set_f64(t->dtype, data, row * length + i, -(double)INFINITY);
  }
}

static void scale(ft_tensor *t, void *data, int64_t elements, double factor) {
  for (int64_t i = 0; i < elements; i++)
    ft_element_set_f64(t->dtype, data, i, factor * ft_tensor_get_f64(t, i));
}

// Most inputs stay as they are.
static void spoil(ft_tensor *t, ft_rng *rng, ft_arena *arena) {
  int64_t elements = ft_shape_elements(&t->shape);
  uint64_t draw = ft_rng_below(rng, 100);
  if (!ft_dtype_is_float(t->dtype) || !elements || draw < 55) return;
  void *data = ft_arena_memdup(arena, t->data, t->bytes);
  t->data = data;
  if (draw < 70)
    sprinkle(t, data, elements, 1 + ft_rng_below(rng, 6), rng);
  else if (draw < 80)
    sprinkle(t, data, elements, (uint64_t)elements / 30 + 1, rng);
  else if (draw < 88)
    mask(t, data, elements, rng);
  else if (draw < 91)
    scale(t, data, elements, 0);
  else if (draw < 94)
    scale(t, data, elements, 1e-38);
  else
    scale(t, data, elements, draw < 97 ? 1e18 : 1e3);
}

static void make_inputs(bench *b, trial *t) {
  const ft_group *g = &t->workload.group;
  ft_error error;
  t->input = FT_NEW_ARRAY(b->arena, ft_tensor, g->input_count + 1);
  must(ft_group_random_inputs(g, t->seed, b->arena, t->input, &error), "inputs", &error);
  ft_rng rng = ft_rng_seed(t->seed + 7);
  if (ft_rng_below(&rng, 2)) return;
  for (uint32_t i = 0; i < g->input_count; i++)
    if (g->graph->value[g->input[i]].role == FT_ROLE_INPUT)
      spoil(&t->input[i], &rng, b->arena);
}

static void interpret(bench *b, trial *t) {
  ft_graph *alone;
  ft_error error;
  must(ft_group_extract(&t->workload.group, b->arena, &alone, &error), "extract", &error);
  t->reference = FT_NEW_ARRAY(b->arena, ft_reference, t->workload.group.output_count + 1);
  must(ft_interpret_graph(alone, t->input, b->arena, t->reference, &error), "interpret",
       &error);
}

// ---- the group ----------------------------------------------------------------------

const char *trial_of(bench *b, const ft_graph *graph, const uint32_t *primitive,
                     uint32_t count, uint64_t seed, trial *out,
                     const char **out_refusal) {
  ft_group group;
  ft_error error;
  *out = (trial){.seed = seed};
  must(ft_group_make(graph, primitive, count, b->arena, &group, &error), "group", &error);
  must(ft_workload_make(&group, b->arena, &out->workload, &error), "workload", &error);
  const char *reason = "";
  out->tactic_count = b->builder.match(b->builder.self, &out->workload, b->arena,
                                       out->tactic, 8, &reason);
  *out_refusal = out->tactic_count ? NULL : reason;
  if (!out->tactic_count) {
    if (!*reason) return "refused without a reason";
    return count == 1 ? ft_arena_printf(b->arena, "one primitive refused: %s", reason)
                      : NULL;
  }
  make_inputs(b, out);
  interpret(b, out);
  return NULL;
}

// Whole graphs where a tactic takes them, else a run of primitives that shrinks until one
// does.
const char *trial_make(bench *b, uint64_t seed, trial *out) {
  ft_graph *graph = random_graph(seed, b->arena);
  uint32_t *list = FT_NEW_ARRAY(b->arena, uint32_t, graph->primitive_count);
  for (uint32_t i = 0; i < graph->primitive_count; i++) list[i] = i;
  const char *refusal;
  const char *wrong =
      trial_of(b, graph, list, graph->primitive_count, seed, out, &refusal);
  if (wrong || !refusal) return wrong;
  ft_rng rng = ft_rng_seed(seed + 3);
  uint32_t first = (uint32_t)ft_rng_below(&rng, graph->primitive_count);
  uint32_t rest = graph->primitive_count - first;
  uint32_t length = 1 + (uint32_t)ft_rng_below(&rng, rest);
  do wrong = trial_of(b, graph, list + first, length--, seed, out, &refusal);
  while (!wrong && refusal);
  out->is_part = true;
  return wrong;
}

// ---- schedules ----------------------------------------------------------------------

static int64_t mutated(int64_t value, ft_rng *rng) {
  static const int64_t extremes[] = {0,         1,  2,         16,
                                     64,        65, 1 << 20,   INT32_MAX,
                                     INT64_MAX, -1, INT64_MIN, (int64_t)1 << 40};
  uint64_t bits = (uint64_t)value;  // what passes the range wraps
  switch (ft_rng_below(rng, 5)) {
    case 0:
      return value > INT64_MAX / 2 ? INT64_MAX : (int64_t)(bits * 2);
    case 1:
      return value / 2;
    case 2:
      return (int64_t)(bits + 1);
    case 3:
      return (int64_t)(bits - 1);
    default:
      return extremes[ft_rng_below(rng, sizeof extremes / sizeof *extremes)];
  }
}

static void mutate(bench *b, ft_schedule *s, ft_rng *rng) {
  ft_knob *knob = &s->knob[ft_rng_below(rng, s->count)];
  if (!knob->text) {
    knob->value = mutated(knob->value, rng);
  } else if (!strcmp(knob->name, "compiler")) {
    uint64_t at = ft_rng_below(rng, b->target.compiler_count);
    knob->text = b->target.compiler[at].name;
  }
}

static bool is_in(const ft_schedule *s, const ft_schedule *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (ft_schedule_equal(s, &list[i])) return true;
  return false;
}

// Knobs near |list| that are not in it and pass check; false when none was found.
static bool wander(bench *b, const ft_schedule *list, uint32_t count, ft_rng *rng,
                   ft_candidate *candidate) {
  for (int tries = 0; tries < 24; tries++) {
    candidate->schedule = list[ft_rng_below(rng, count)];
    if (!candidate->schedule.count) return false;
    for (uint64_t n = 1 + ft_rng_below(rng, 3); n > 0; n--)
      mutate(b, &candidate->schedule, rng);
    if (!is_in(&candidate->schedule, list, count) &&
        !b->builder.check(b->builder.self, candidate, b->arena))
      return true;
  }
  return false;
}

// The space of |candidate|'s tactic, all of which passes check.
static const char *space_of(bench *b, const trial *t, ft_candidate *candidate,
                            ft_schedule **list, uint32_t *count) {
  ft_error error;
  must(b->builder.space(b->builder.self, &t->workload, candidate->tactic, &b->target,
                        b->arena, list, count, &error),
       "space", &error);
  if (!*count) return "no schedule";
  for (uint32_t i = 0; i < *count; i++) {
    candidate->schedule = (*list)[i];
    const char *wrong = b->builder.check(b->builder.self, candidate, b->arena);
    if (wrong) return ft_arena_printf(b->arena, "check refuses its space: %s", wrong);
  }
  return NULL;
}

// Numbers of its own for each tactic and purpose: what one of them draws changes nothing
// for the others, so |both| tries all that is tried without.
static ft_rng draws_of(const trial *t, uint32_t tactic, uint64_t purpose) {
  return ft_rng_seed(t->seed * 64 + tactic * 4 + purpose + 11);
}

// One or two candidates of tactic |i| into |out|.
static uint32_t draw_of(bench *b, const trial *t, uint32_t i, bool both,
                        ft_candidate *out, const char **out_wrong) {
  ft_candidate c = {
      .workload = &t->workload, .target = &b->target, .tactic = t->tactic[i]};
  ft_schedule *list;
  uint32_t count, made = 0;
  out[0] = c;
  *out_wrong = space_of(b, t, &out[0], &list, &count);
  if (*out_wrong) return 1;
  ft_rng choice = draws_of(t, i, 0), knobs = draws_of(t, i, 1), pick = draws_of(t, i, 2);
  bool wanders = ft_rng_below(&choice, 2) == 0;
  if ((both || wanders) && wander(b, list, count, &knobs, &c)) out[made++] = c;
  if (made && !both) return made;
  bool is_first = ft_rng_below(&pick, 3) == 0;
  c.schedule = list[is_first ? 0 : ft_rng_below(&pick, count)];
  out[made++] = c;
  return made;
}

uint32_t trial_draw(bench *b, const trial *t, bool both, ft_candidate *out,
                    const char **out_wrong) {
  uint32_t made = 0;
  *out_wrong = NULL;
  for (uint32_t i = 0; i < t->tactic_count && !*out_wrong; i++)
    made += draw_of(b, t, i, both, out + made, out_wrong);
  return made;
}

// ---- running ------------------------------------------------------------------------

static const char *compare(bench *b, const trial *t, const ft_tensor *out,
                           trial_counts *counts) {
  for (uint32_t i = 0; i < t->workload.group.output_count; i++) {
    ft_comparison cmp;
    ft_comparison_init(&cmp);
    ft_compare_tensor(&out[i], &t->reference[i], &cmp);
    counts->elements += (uint64_t)cmp.compared;
    counts->uncertain += (uint64_t)cmp.uncertain;
    if (cmp.max_ratio > 1)
      return ft_arena_printf(
          b->arena, "output %u at %lld: got %.9g, expected %.9g, error ratio %g", i,
          (long long)cmp.worst_index, cmp.worst_value, cmp.worst_expected, cmp.max_ratio);
  }
  return NULL;
}

static bool is_same(const trial *t, const ft_tensor *a, const ft_tensor *b) {
  for (uint32_t i = 0; i < t->workload.group.output_count; i++)
    if (a[i].bytes && memcmp(a[i].data, b[i].data, a[i].bytes)) return false;
  return true;
}

const char *trial_run(bench *b, const trial *t, const ft_module *module,
                      trial_counts *counts) {
  if (module->outcome != FT_OUTCOME_OK)
    return ft_arena_printf(b->arena, "check accepted it, and building ended in %s: %s",
                           ft_outcome_text(module->outcome), module->log);
  const ft_group *g = &t->workload.group;
  ft_tensor *out = FT_NEW_ARRAY(b->arena, ft_tensor, 2 * g->output_count + 1);
  int32_t code;
  const char *wrong = launch(module, g, t->input, t->seed, b->arena, out, &code);
  if (!wrong && code) return ft_arena_printf(b->arena, "the entry returned %d", code);
  if (!wrong) wrong = compare(b, t, out, counts);
  if (wrong || module->grid == 1) return wrong;
  wrong =
      launch(module, g, t->input, t->seed + 1, b->arena, out + g->output_count, &code);
  if (!wrong && !is_same(t, out, out + g->output_count))
    return "another order of its blocks gives other bytes";
  return wrong;
}

const char *trial_report(bench *b, const trial *t, const ft_candidate *candidate,
                         const char *wrong) {
  const char *none = "";
  return ft_arena_printf(
      b->arena,
      "case %llu: %s %s: %s\n%s  target: %u-byte vectors, %u threads, %llu bytes of L2\n"
      "  rerun: scripts/soak.sh --case %llu, or FT_RANDOM_CASE=%llu\n",
      (unsigned long long)t->seed, candidate ? candidate->tactic : none,
      candidate && candidate->schedule.count
          ? ft_schedule_json(&candidate->schedule, b->arena)
          : none,
      wrong, group_text(&t->workload.group, b->arena), b->target.vector_bytes,
      b->target.threads, (unsigned long long)b->target.l2_bytes,
      (unsigned long long)t->seed, (unsigned long long)t->seed);
}
