// fake - a builder and a runner that invent: legality by simple rules, times from a
// seeded table or a roofline. Graphs are built by the real builder.
#ifndef FT_TESTS_SEARCH_FAKE_H
#define FT_TESTS_SEARCH_FAKE_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/rng.h"
#include "search/search.h"

typedef struct fake {
  // rules
  uint32_t max_reductions;  // in one group; 0: any number
  uint32_t exact_size;      // groups of more than one must have this many; 0: any size
  ft_op forbidden;          // no tactic takes it, when |has_forbidden|
  bool has_forbidden;
  uint32_t schedules, tactics;
  // times
  uint64_t seed;
  bool is_roofline;
  uint32_t slow_above;       // groups with more primitives cost a million; 0: none
  uint32_t fail_percent;     // of candidates end as wrong_result
  bool fail_defaults;        // every first schedule crashes
  bool fail_pairs;           // groups of two never work
  uint32_t interrupt_after;  // trials; 0: never
  uint64_t bad_luck_ns;      // first looks at groups of several are this much too slow,
                             // with an interval that reaches down to the truth
  uint64_t luck_ns;          // first looks at groups of several are this much too fast
  bool fail_confirmations;   // of groups with more than one primitive
  bool empty_spaces;         // of groups with more than one primitive
  // what happened
  uint32_t matches, spaces, calls, trials, beaten, confirmations;
  uint32_t asked[4096];  // primitives of each candidate's group, in order
} fake;

static inline uint32_t count_reductions(const ft_group *group) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    ft_op op = group->graph->primitive[group->primitive[i]].op;
    count += ft_op_describe(op)->class == FT_CLASS_R;
  }
  return count;
}

static inline const char *fake_reason(const fake *f, const ft_group *group) {
  for (uint32_t i = 0; f->has_forbidden && i < group->primitive_count; i++)
    if (group->graph->primitive[group->primitive[i]].op == f->forbidden)
      return "forbidden by the test";
  if (f->max_reductions && count_reductions(group) > f->max_reductions)
    return "reductions: too many for one row";
  if (f->exact_size && group->primitive_count > 1 &&
      group->primitive_count != f->exact_size)
    return "size is not the one";
  return NULL;
}

static inline uint32_t fake_match(void *self, const ft_workload *workload,
                                  ft_arena *arena, const char **out, uint32_t room,
                                  const char **reason) {
  static const char *const name[] = {"one", "two", "three"};
  fake *f = self;
  f->matches++;
  const char *why = fake_reason(f, &workload->group);
  if (why) {
    *reason = ft_arena_strdup(arena, why);
    return 0;
  }
  uint32_t count = f->tactics ? f->tactics : 1;
  cr_assert_leq(count, room);
  for (uint32_t i = 0; i < count; i++) out[i] = name[i];
  return count;
}

static inline ft_status fake_space(void *self, const ft_workload *workload,
                                   const char *tactic, const ft_target *target,
                                   ft_arena *arena, ft_schedule **out,
                                   uint32_t *out_count, ft_error *error) {
  (void)tactic, (void)target;
  fake *f = self;
  f->spaces++;
  *out_count = f->schedules ? f->schedules : 1;
  if (f->empty_spaces && workload->group.primitive_count > 1) *out_count = 0;
  *out = FT_NEW_ARRAY(arena, ft_schedule, *out_count);
  FT_OOM_IF(!*out, error);
  for (uint32_t i = 0; i < *out_count; i++) ft_schedule_set(&(*out)[i], "s", i);
  return FT_OK;
}

// The time of a schedule of a workload; whole numbers, so that sums are exact.
static inline uint64_t fake_ns(const fake *f, const ft_workload *workload,
                               const char *tactic, int64_t schedule) {
  uint64_t hash = ft_hash64(f->seed, workload->hash.byte, sizeof workload->hash.byte);
  uint64_t base = 100 + hash % 1000;
  if (f->is_roofline) base = 1000 + (workload->read_bytes + workload->write_bytes) / 4;
  if (f->slow_above && workload->group.primitive_count > f->slow_above) base += 1000000;
  hash = ft_hash64(hash, tactic, strlen(tactic));
  hash = ft_hash64(hash, &schedule, sizeof schedule);
  return base + (schedule ? hash % 400 : 200) + 1;
}

static inline bool fake_fails(const fake *f, const ft_candidate *candidate) {
  int64_t s = ft_schedule_get(&candidate->schedule, "s", -1);
  uint64_t hash = ft_hash64(f->seed + 1, candidate->workload->hash.byte, 32);
  if (f->fail_defaults && s == 0) return true;
  if (f->fail_pairs && candidate->workload->group.primitive_count == 2) return true;
  return ft_hash64(hash, &s, sizeof s) % 100 < f->fail_percent;
}

static inline void fake_confirmation(fake *f, const ft_candidate *c, uint64_t ns,
                                     ft_trial *out) {
  bool is_several = c->workload->group.primitive_count > 1;
  if (is_several) ns += f->luck_ns;
  f->confirmations++;
  *out = (ft_trial){
      .outcome = is_several && f->fail_confirmations ? FT_OUTCOME_CRASH : FT_OUTCOME_OK,
      .time = {ns, ns, ns, 30},
      .worst = "",
      .error = "",
      .env = "{}"};
}

static inline void fake_trial(fake *f, const ft_measure_request *request, ft_trial *out) {
  const ft_candidate *c = request->candidate;
  uint64_t ns =
      fake_ns(f, c->workload, c->tactic, ft_schedule_get(&c->schedule, "s", -1));
  if (request->is_confirmation) {
    fake_confirmation(f, c, ns, out);
    return;
  }
  if (f->trials < 4096) f->asked[f->trials] = c->workload->group.primitive_count;
  f->trials++;
  uint64_t low_ns = ns;
  if (c->workload->group.primitive_count > 1) ns += f->bad_luck_ns;
  *out = (ft_trial){.outcome = FT_OUTCOME_OK,
                    .time = {ns, low_ns, ns, 5},
                    .worst = "",
                    .error = "",
                    .env = "{}"};
  if (fake_fails(f, c)) {
    out->outcome = FT_OUTCOME_WRONG_RESULT;
    out->error = "wrong on purpose";
  } else if (request->beaten_ns && ns > request->beaten_ns) {
    out->outcome = FT_OUTCOME_BEATEN;
    f->beaten++;
  }
}

static inline ft_status fake_measure(void *self, const ft_measure_request *request,
                                     uint32_t count, ft_arena *arena, ft_trial *out,
                                     ft_error *error) {
  (void)arena;
  fake *f = self;
  f->calls++;
  for (uint32_t i = 0; i < count; i++) {
    if (f->interrupt_after && f->trials >= f->interrupt_after) {
      for (; i < count; i++) out[i] = (ft_trial){.outcome = FT_OUTCOME_INTERRUPTED};
      return ft_error_set(error, FT_INTERRUPTED, "stopped by the test");
    }
    fake_trial(f, &request[i], &out[i]);
  }
  return FT_OK;
}

// The best of all schedules, as an exhaustive search would find it; infinite when all
// fail or there is none.
static inline double fake_best_ns(const fake *f, const ft_workload *workload) {
  static const char *const name[] = {"one", "two", "three"};
  double best = INFINITY;
  if (f->empty_spaces && workload->group.primitive_count > 1) return best;
  for (uint32_t t = 0; t < (f->tactics ? f->tactics : 1); t++)
    for (uint32_t s = 0; s < (f->schedules ? f->schedules : 1); s++) {
      ft_candidate c = {.workload = workload, .tactic = name[t]};
      ft_schedule_set(&c.schedule, "s", s);
      double ns = (double)fake_ns(f, workload, name[t], s);
      if (!fake_fails(f, &c) && ns < best) best = ns;
    }
  return best;
}

static inline ft_status fake_search(fake *f, const ft_graph *graph,
                                    const ft_search_options *options, ft_arena *arena,
                                    ft_search_result *out, ft_error *error) {
  static const ft_target target = {.name = "fake", .kind = "cpu"};
  ft_builder builder = {.self = f, .match = fake_match, .space = fake_space};
  ft_runner runner = {.self = f, .measure = fake_measure};
  return ft_search_run(graph, &target, &builder, &runner, options, arena, out, error);
}

static inline void search_ok(fake *f, const ft_graph *graph,
                             const ft_search_options *options, ft_arena *arena,
                             ft_search_result *out) {
  ft_error error = {0};
  ft_status status = fake_search(f, graph, options, arena, out, &error);
  cr_assert_eq(status, FT_OK, "%s", error.text);
}

// ---- graphs --------------------------------------------------------------------

static inline ft_arena *new_arena(void) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  cr_assert_not_null(arena);
  return arena;
}

typedef struct sketch {
  ft_arena *arena;
  ft_graph *graph;
} sketch;

#define MUST(call)                                           \
  do {                                                       \
    ft_error must_error = {0};                               \
    ft_status must_status = (call);                          \
    cr_assert_eq(must_status, FT_OK, "%s", must_error.text); \
  } while (0)

static inline sketch sketch_new(ft_arena *arena) {
  sketch s = {.arena = arena};
  MUST(ft_graph_create(arena, "test", &s.graph, &must_error));
  return s;
}

static const ft_shape SHAPE = {.rank = 2, .dim = {64, 32}};

static inline uint32_t input(sketch *s, const char *name) {
  uint32_t value;
  MUST(ft_graph_add_input(s->graph, name, FT_F32, &SHAPE, &value, &must_error));
  return value;
}

static inline void operator_(sketch *s, const char *name, const char *type) {
  MUST(ft_graph_begin_operator(s->graph, ft_arena_strdup(s->arena, name), type, "",
                               &must_error));
}

// A primitive of the operator begun last.
static inline uint32_t emit(sketch *s, ft_op op, uint32_t a, uint32_t b) {
  uint32_t in[2] = {a, b}, value;
  // Rows first; what is a column already is reduced the other way.
  ft_attr attr = {.axes = s->graph->value[a].shape.dim[1] > 1 ? 2 : 1};
  uint8_t arity = ft_op_describe(op)->arity;
  bool reduces = ft_op_describe(op)->class == FT_CLASS_R;
  MUST(ft_graph_emit(s->graph, op, in, arity, reduces ? &attr : NULL, &value,
                     &must_error));
  return value;
}

// An operator of one primitive.
static inline uint32_t op1(sketch *s, ft_op op, uint32_t a, uint32_t b) {
  char name[32];
  snprintf(name, sizeof name, "n%u", s->graph->operator_count);
  operator_(s, name, ft_op_describe(op)->name);
  return emit(s, op, a, b);
}

static inline void output(sketch *s, uint32_t value) {
  char *name = ft_arena_printf(s->arena, "out%u", s->graph->output_count);
  MUST(ft_graph_add_output(s->graph, name, value, &must_error));
}

static inline const ft_graph *finish(sketch *s) {
  MUST(ft_graph_finish(s->graph, &must_error));
  return s->graph;
}

// Unary operators one after another; no two of the first fourteen are alike.
static inline const ft_graph *chain(ft_arena *arena, uint32_t length) {
  static const ft_op unary[] = {FT_OP_EXP,   FT_OP_TANH, FT_OP_NEG,   FT_OP_SQRT,
                                FT_OP_ABS,   FT_OP_ERF,  FT_OP_SIN,   FT_OP_COS,
                                FT_OP_LOG,   FT_OP_RELU, FT_OP_FLOOR, FT_OP_CEIL,
                                FT_OP_ROUND, FT_OP_SIGN};
  sketch s = sketch_new(arena);
  uint32_t value = input(&s, "x");
  for (uint32_t i = 0; i < length; i++) value = op1(&s, unary[i % 14], value, 0);
  output(&s, value);
  return finish(&s);
}

// A layer: mean-free normalisation with a residual, 7 primitives.
static inline uint32_t layer(sketch *s, uint32_t x) {
  uint32_t sum = op1(s, FT_OP_REDUCE_SUM, x, 0);
  uint32_t centred = op1(s, FT_OP_SUB, x, sum);
  uint32_t square = op1(s, FT_OP_MUL, centred, centred);
  uint32_t var = op1(s, FT_OP_REDUCE_SUM, square, 0);
  uint32_t root = op1(s, FT_OP_SQRT, var, 0);
  uint32_t normal = op1(s, FT_OP_DIV, centred, root);
  return op1(s, FT_OP_ADD, normal, x);
}

static inline const ft_graph *layers(ft_arena *arena, uint32_t count) {
  sketch s = sketch_new(arena);
  uint32_t x = input(&s, "x");
  for (uint32_t i = 0; i < count; i++) x = layer(&s, x);
  output(&s, x);
  return finish(&s);
}

// |count| primitives over earlier values, every loose end an output; some operators
// have several primitives.
static inline const ft_graph *random_graph(ft_arena *arena, ft_rng *rng, uint32_t count) {
  static const ft_op ops[] = {FT_OP_ADD, FT_OP_MUL,  FT_OP_SUB,
                              FT_OP_EXP, FT_OP_TANH, FT_OP_NEG,
                              FT_OP_ABS, FT_OP_SQRT, FT_OP_REDUCE_SUM};
  sketch s = sketch_new(arena);
  uint32_t value[64] = {input(&s, "x"), input(&s, "y")}, values = 2;
  bool used[64] = {0};
  while (values < count + 2) {
    uint32_t a = (uint32_t)ft_rng_below(rng, values),
             b = (uint32_t)ft_rng_below(rng, values);
    ft_op op = ops[ft_rng_below(rng, sizeof ops / sizeof *ops)];
    uint32_t before = s.graph->primitive_count;
    uint32_t made = ft_rng_below(rng, 3) && s.graph->operator_count
                        ? emit(&s, op, value[a], value[b])
                        : op1(&s, op, value[a], value[b]);
    used[a] = true;
    if (ft_op_describe(op)->arity == 2) used[b] = true;
    if (s.graph->primitive_count != before) value[values++] = made;
  }
  for (uint32_t i = 2; i < values; i++)
    if (!used[i] || ft_rng_below(rng, 6) == 0) output(&s, value[i]);
  return finish(&s);
}

#endif
