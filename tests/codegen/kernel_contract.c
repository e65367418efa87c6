// Blocked contractions against the double-precision interpreter.
#include "codegen/contract.h"
#include "contractions.h"
#include "graphs.h"
#include "tests/support/quick.h"
#include "trying.h"

static uint32_t setting(const char *name, uint32_t fallback) {
  const char *text = getenv(name);
  return text ? (uint32_t)strtoul(text, NULL, 10) : fallback;
}

static bool matches(session *s, const ft_workload *w) {
  const char *names[8], *reason;
  uint32_t count = s->builder.match(s->builder.self, w, s->arena, names, 8, &reason);
  for (uint32_t i = 0; i < count; i++) {
    if (!strcmp(names[i], "contract")) return true;
  }
  return false;
}

// ---- schedules
// ----------------------------------------------------------------------------

static ft_schedule schedule_of(const session *s, const ft_contract_choice *c) {
  ft_schedule k = {0};
  ft_schedule_set_text(&k, "compiler", s->target.compiler[0].name);
  ft_schedule_set(&k, "kc", c->kc);
  ft_schedule_set(&k, "mc", c->mc);
  ft_schedule_set(&k, "mr", c->mr);
  ft_schedule_set(&k, "nc", c->nc);
  ft_schedule_set(&k, "nr", c->nr);
  ft_schedule_set(&k, "pack_a", c->packs_a);
  ft_schedule_set(&k, "pack_b", c->packs_b);
  ft_schedule_set(&k, "threads", 2);
  ft_schedule_set(&k, "vector", c->vector);
  return k;
}

// Knobs out of the whole range: most are refused, none may fail later.
static ft_contract_choice random_choice(session *s) {
  static const int64_t columns[] = {1, 2, 4, 8, 16, 32, 48, 64};
  static const int64_t blocks[] = {1, 5, 16, 30, 48, 64, 100, 1000};
  ft_contract_choice c = {.vector = 1u << ft_rng_below(&s->rng, 6)};
  c.mr = 1 + (int64_t)ft_rng_below(&s->rng, 9);
  c.nr = columns[ft_rng_below(&s->rng, 8)];
  c.mc = blocks[ft_rng_below(&s->rng, 8)];
  c.nc = blocks[ft_rng_below(&s->rng, 8)];
  c.kc = blocks[ft_rng_below(&s->rng, 8)];
  c.packs_a = ft_rng_below(&s->rng, 2);
  c.packs_b = ft_rng_below(&s->rng, 2);
  return c;
}

static ft_candidate draw_contract(session *s, const test_case *c) {
  ft_candidate candidate = {&c->workload, &s->target, "contract", {0}};
  for (int i = 0; i < 200 && ft_rng_below(&s->rng, 100); i++) {
    ft_contract_choice choice = random_choice(s);
    candidate.schedule = schedule_of(s, &choice);
    if (!s->builder.check(s->builder.self, &candidate, s->arena)) return candidate;
  }
  ft_schedule *list;
  uint32_t count;
  cr_assert_eq(s->builder.space(s->builder.self, &c->workload, "contract", &s->target,
                                s->arena, &list, &count, NULL),
               FT_OK);
  cr_assert(count > 0 && count <= 24, "seed %llu: %u schedules",
            (unsigned long long)c->seed, count);
  candidate.schedule = list[ft_rng_below(&s->rng, count)];
  return candidate;
}

static void run_contracts(session *s, const test_case *cases, uint32_t count,
                          bool from_space) {
  ft_candidate *candidate = FT_NEW_ARRAY(s->arena, ft_candidate, count);
  ft_module *module = FT_NEW_ARRAY(s->arena, ft_module, count);
  for (uint32_t i = 0; i < count; i++) {
    candidate[i] = draw_contract(s, &cases[i]);
    if (!from_space) continue;
    ft_schedule *list;
    uint32_t schedules;
    cr_assert_eq(s->builder.space(s->builder.self, &cases[i].workload, "contract",
                                  &s->target, s->arena, &list, &schedules, NULL),
                 FT_OK);
    cr_assert(schedules > 0 && schedules <= 24, "%u schedules", schedules);
    candidate[i].schedule = list[ft_rng_below(&s->rng, schedules)];
  }
  ft_error error;
  cr_assert_eq(s->builder.build(s->builder.self, candidate, count, false, s->arena,
                                module, &error),
               FT_OK, "%s", error.text);
  for (uint32_t i = 0; i < count; i++) {
    run_case(s, &cases[i], &candidate[i], &module[i]);
  }
  s->kernels += count;
}

static void run_random(uint64_t seed, uint32_t count, bool from_space) {
  if (!from_space) compile_quickly();
  session s = session_open(seed);
  session_start(&s);
  uint32_t refused = 0;
  test_case *cases = FT_NEW_ARRAY(s.arena, test_case, count);
  for (uint32_t made = 0; made < count; seed++) {
    s.spoil = seed % 3 == 0 ? spoil_mildly : NULL;
    ft_graph *graph = random_contraction(seed, s.arena);
    if (!graph->primitive_count) continue;
    bool is_taken = make_case(&s, graph, 0, graph->primitive_count, seed, &cases[made]) &&
                    matches(&s, &cases[made].workload);
    refused += !is_taken;
    made += is_taken;
  }
  for (uint32_t i = 0; i < count; i += 32)
    run_contracts(&s, cases + i, count - i < 32 ? count - i : 32, from_space);
  fprintf(stderr, "%u kernels, %u graphs refused\n", s.kernels, refused);
  cr_assert_gt(count, refused);
  session_close(&s);
}

Test(codegen_contract, random_groups_with_random_knobs_agree_with_the_interpreter,
     .timeout = 280) {
  run_random(setting("FT_RANDOM_SEED", 9000), setting("FT_RANDOM_KERNELS", 96), false);
}

Test(codegen_contract, random_groups_with_offered_knobs_agree_with_the_interpreter,
     .timeout = 280) {
  run_random(setting("FT_RANDOM_SEED", 77000), setting("FT_RANDOM_KERNELS", 64), true);
}

// ---- one by one
// ---------------------------------------------------------------------------

// Every offered schedule of all of |k|; |seed| a multiple of 3 has NaN and infinities.
static void run_space(sketch *k, uint64_t seed) {
  session s = session_open(1);
  session_start(&s);
  s.spoil = seed % 3 == 0 ? spoil_mildly : NULL;
  finish(k);
  test_case c;
  ft_schedule *list;
  uint32_t count;
  ft_error error;
  cr_assert(make_case(&s, k->graph, 0, k->graph->primitive_count, seed, &c));
  cr_assert_eq(s.builder.space(s.builder.self, &c.workload, "contract", &s.target,
                               s.arena, &list, &count, &error),
               FT_OK, "%s", error.text);
  cr_assert(count > 0 && count <= 24, "%u schedules", count);
  ft_candidate *candidate = FT_NEW_ARRAY(s.arena, ft_candidate, count);
  ft_module *module = FT_NEW_ARRAY(s.arena, ft_module, count);
  for (uint32_t i = 0; i < count; i++)
    candidate[i] = (ft_candidate){&c.workload, &s.target, "contract", list[i]};
  cr_assert_eq(
      s.builder.build(s.builder.self, candidate, count, false, s.arena, module, &error),
      FT_OK, "%s", error.text);
  for (uint32_t i = 0; i < count; i++) run_case(&s, &c, &candidate[i], &module[i]);
  session_close(&s);
  sketch_close(k);
}

static void run_product(int64_t m, int64_t k, int64_t n) {
  sketch s = sketch_open();
  uint32_t a = input(&s, FT_F32, SHAPE(m, k)), b = input(&s, FT_F32, SHAPE(k, n));
  output(&s,
         two(&s, FT_OP_ADD, two(&s, FT_OP_MATMUL, a, b), input(&s, FT_F32, SHAPE(n))));
  run_space(&s, 9);
}

Test(codegen_contract, products_with_one_row_column_or_term_are_right, .timeout = 120) {
  compile_quickly();
  run_product(1, 300, 200);
  run_product(200, 300, 1);
  run_product(33, 1, 49);
  run_product(1, 1, 1);
  run_product(3, 77, 5);
}

Test(codegen_contract, no_terms_give_the_epilogue_of_zeros) {
  run_product(17, 0, 33);
}

Test(codegen_contract, no_elements_give_a_kernel_that_does_nothing) {
  run_product(0, 5, 8);
  run_product(5, 8, 0);
}

// b transposed in memory, k not a multiple of anything
Test(codegen_contract, a_transposed_matrix_is_turned_while_it_is_packed, .timeout = 60) {
  sketch s = sketch_open();
  uint32_t a = input(&s, FT_F32, SHAPE(50, 333)), b = input(&s, FT_F32, SHAPE(101, 333));
  output(&s, two(&s, FT_OP_MATMUL, a, transpose(&s, b)));
  run_space(&s, 9);
}

static uint32_t permuted(sketch *s, uint32_t a, ft_attr attr) {
  return apply(s, FT_OP_TRANSPOSE, 1, &a, &attr);
}

Test(codegen_contract, attention_scores_and_context_keep_their_heads, .timeout = 120) {
  compile_quickly();
  sketch s = sketch_open();
  uint32_t q = view(&s, input(&s, FT_F32, SHAPE(1, 37, 96)), SHAPE(1, 37, 3, 32));
  uint32_t k = view(&s, input(&s, FT_F32, SHAPE(1, 37, 96)), SHAPE(1, 37, 3, 32));
  q = permuted(&s, q, (ft_attr){.perm = {0, 2, 1, 3}});
  k = permuted(&s, k, (ft_attr){.perm = {0, 2, 3, 1}});
  uint32_t y = two(&s, FT_OP_MUL, two(&s, FT_OP_MATMUL, q, k), scalar(&s, FT_F32, 0.125));
  output(&s, two(&s, FT_OP_ADD, y, input(&s, FT_F32, SHAPE(1, 1, 37, 37))));
  run_space(&s, 9);
  s = sketch_open();
  uint32_t p = input(&s, FT_F32, SHAPE(1, 3, 37, 37));
  uint32_t v = view(&s, input(&s, FT_F32, SHAPE(1, 37, 96)), SHAPE(1, 37, 3, 32));
  v = permuted(&s, v, (ft_attr){.perm = {0, 2, 1, 3}});
  y = permuted(&s, two(&s, FT_OP_MATMUL, p, v), (ft_attr){.perm = {0, 2, 1, 3}});
  output(&s, view(&s, y, SHAPE(1, 37, 96)));
  run_space(&s, 9);
}

Test(codegen_contract, several_outputs_with_heavy_functions_are_right, .timeout = 60) {
  compile_quickly();
  sketch s = sketch_open();
  uint32_t a = input(&s, FT_F32, SHAPE(20, 64)), b = input(&s, FT_F32, SHAPE(64, 70));
  uint32_t y = two(&s, FT_OP_MATMUL, one(&s, FT_OP_TANH, a), b);
  output(&s, y);
  output(&s, one(&s, FT_OP_ERF, y));
  output(&s, two(&s, FT_OP_LESS, y, scalar(&s, FT_F32, 0)));
  output(&s, transpose(&s, one(&s, FT_OP_SIGMOID, y)));
  run_space(&s, 10);
}

typedef struct image {
  int64_t count, channels, height, width, filters, window, stride, pad, dilation;
} image;

static uint32_t convolve(sketch *s, image i, uint32_t *out_x) {
  int64_t reach = (i.window - 1) * i.dilation;
  int64_t height = (i.height + 2 * i.pad - reach - 1) / i.stride + 1;
  int64_t width = (i.width + 2 * i.pad - reach - 1) / i.stride + 1;
  ft_attr attr = {.shape = SHAPE(i.count, i.filters, height, width),
                  .groups = 1,
                  .start = {i.pad, i.pad},
                  .stride = {i.stride, i.stride},
                  .dilation = {i.dilation, i.dilation}};
  uint32_t in[2] = {input(s, FT_F32, SHAPE(i.count, i.channels, i.height, i.width)),
                    input(s, FT_F32, SHAPE(i.filters, i.channels, i.window, i.window))};
  *out_x = in[0];
  return apply(s, FT_OP_CONV, 2, in, &attr);
}

Test(codegen_contract, convolutions_of_a_residual_network_are_right, .timeout = 240) {
  compile_quickly();
  static const image cases[] = {
      {1, 20, 14, 14, 20, 3, 1, 1, 1},  // 3x3
      {2, 20, 15, 13, 9, 3, 2, 1, 1},   // 3x3, every second
      {1, 40, 7, 7, 24, 1, 1, 0, 1},    // 1x1
      {1, 12, 14, 14, 17, 1, 2, 0, 1},  // 1x1, every second
      {1, 3, 23, 23, 16, 7, 2, 3, 1},   // 7x7
      {1, 5, 18, 31, 8, 3, 1, 2, 2},    // dilated
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (uint64_t seed = 9; seed < 11; seed++) {  // 9: NaN and infinities, filters too
      sketch s = sketch_open();
      uint32_t x, y = convolve(&s, cases[i], &x);
      y = two(&s, FT_OP_ADD, y, input(&s, FT_F32, SHAPE(cases[i].filters, 1, 1)));
      ft_shape shape = s.graph->value[y].shape;
      y = two(&s, FT_OP_ADD, y, input(&s, FT_F32, shape));
      output(&s, one(&s, FT_OP_RELU, y));
      run_space(&s, seed);
    }
  }
}

Test(codegen_contract, padding_adds_nothing_to_an_infinite_filter) {
  session s = session_open(1);
  session_start(&s);
  sketch k = sketch_open();
  uint32_t x, y = convolve(&k, (image){1, 1, 6, 20, 1, 3, 1, 1, 1}, &x);
  output(&k, y);
  ft_workload w = finish(&k);
  ft_tensor given[2], out;
  for (uint32_t i = 0; i < 2; i++) {
    void *data;
    const ft_value *v = &k.graph->value[w.group.input[i]];
    cr_assert_eq(ft_tensor_alloc(FT_F32, &v->shape, s.arena, &given[i], &data, NULL),
                 FT_OK);
    int64_t elements = ft_shape_elements(&v->shape);
    for (int64_t e = 0; e < elements; e++) ft_element_set_f64(FT_F32, data, e, 1);
    if (elements == 9) ft_element_set_f64(FT_F32, data, 0, (double)INFINITY);
  }
  ft_schedule *list;
  uint32_t count;
  cr_assert_eq(s.builder.space(s.builder.self, &w, "contract", &s.target, s.arena, &list,
                               &count, NULL),
               FT_OK);
  ft_candidate candidate = {&w, &s.target, "contract", list[0]};
  ft_module module;
  cr_assert_eq(
      s.builder.build(s.builder.self, &candidate, 1, false, s.arena, &module, NULL),
      FT_OK);
  cr_assert_eq(run_module(&module, &w.group, given, 1, s.arena, &out), 0);
  cr_assert_eq(ft_tensor_get_f64(&out, 0), 4);    // the corner never meets it
  cr_assert_eq(ft_tensor_get_f64(&out, 5), 6);    // nor does the upper edge
  cr_assert_eq(ft_tensor_get_f64(&out, 20), 6);   // nor the left one
  cr_assert(isinf(ft_tensor_get_f64(&out, 21)));  // inside
  sketch_close(&k);
  session_close(&s);
}

Test(codegen_contract, a_long_sum_of_equal_products_does_not_drift, .timeout = 60) {
  session s = session_open(1);
  session_start(&s);
  sketch k = sketch_open();
  uint32_t in[2] = {input(&k, FT_F32, SHAPE(9, 100003)),
                    input(&k, FT_F32, SHAPE(100003, 16))};
  output(&k, two(&k, FT_OP_MATMUL, in[0], in[1]));
  ft_workload w = finish(&k);
  ft_tensor given[2], out;
  for (int i = 0; i < 2; i++) {
    void *data;
    const ft_shape *shape = &k.graph->value[w.group.input[i]].shape;
    cr_assert_eq(ft_tensor_alloc(FT_F32, shape, s.arena, &given[i], &data, NULL), FT_OK);
    for (int64_t e = 0; e < ft_shape_elements(shape); e++)
      ft_element_set_f64(FT_F32, data, e, 1.1);
  }
  ft_schedule *list;
  uint32_t count;
  cr_assert_eq(s.builder.space(s.builder.self, &w, "contract", &s.target, s.arena, &list,
                               &count, NULL),
               FT_OK);
  ft_candidate candidate = {&w, &s.target, "contract", list[0]};
  ft_module module;
  cr_assert_eq(
      s.builder.build(s.builder.self, &candidate, 1, false, s.arena, &module, NULL),
      FT_OK);
  cr_assert_eq(run_module(&module, &w.group, given, 1, s.arena, &out), 0);
  double factor = (double)1.1f, exact = 100003 * factor * factor;
  double bound = FT_TOLERANCE_ULPS * sqrt(100003) / 4 / (1 << 24);
  for (int64_t i = 0; i < 9 * 16; i++)
    cr_assert_leq(fabs(ft_tensor_get_f64(&out, i) / exact - 1), bound);
  sketch_close(&k);
  session_close(&s);
}
