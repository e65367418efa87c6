// Kernels of the tactic onednn against the double-precision interpreter: every layout and
// thread count that it offers. Skips where there is no oneDNN.
#include <math.h>
#include <sys/stat.h>

#include "graphs.h"
#include "trying.h"

// A workload that the tactic must take.
typedef struct trial {
  const char *name;
  uint32_t (*make)(sketch *);
} trial;

// The library's version, or NULL with a line.
static const char *library(ft_arena *arena, const ft_target *target) {
  const char *found, *reason;
  ft_error error;
  cr_assert_eq(ft_libraries_find(&target->compiler[0], arena, &found, &reason, &error),
               FT_OK, "%s", error.text);
  if (!*found) fprintf(stderr, "kernel_onednn: skipped, %s\n", reason);
  return *found ? found : NULL;
}

static bool start(session *s, uint64_t seed) {
  *s = session_open(seed);
  session_start(s);
  const char *found = library(s->arena, &s->target);
  if (!found) return false;
  s->target.libraries = found;
  return true;
}

// Padding of a convolution is zeros to oneDNN, and zero times an infinite weight is NaN:
// no weight of one that pads is made odd.
static bool is_padded_weight(const ft_group *g, uint32_t input) {
  for (uint32_t i = 0; i < g->primitive_count; i++) {
    const ft_primitive *p = &g->graph->primitive[g->primitive[i]];
    if (p->op == FT_OP_CONV && g->graph->value[p->input[1]].root == g->input[input])
      return true;
  }
  return false;
}

static void make_inputs(session *s, test_case *c, uint64_t seed, bool is_odd) {
  const ft_group *g = &c->workload.group;
  ft_error error;
  c->seed = seed;
  c->input = FT_NEW_ARRAY(s->arena, ft_tensor, g->input_count);
  cr_assert_eq(ft_group_random_inputs(g, seed, s->arena, c->input, &error), FT_OK, "%s",
               error.text);
  for (uint32_t i = 0; i < g->input_count && is_odd; i++)
    if (!is_padded_weight(g, i)) sprinkle(s, &c->input[i]);
  ft_graph *alone;
  cr_assert_eq(ft_group_extract(g, s->arena, &alone, &error), FT_OK, "%s", error.text);
  c->reference = FT_NEW_ARRAY(s->arena, ft_reference, g->output_count);
  cr_assert_eq(ft_interpret_graph(alone, c->input, s->arena, c->reference, &error), FT_OK,
               "%s", error.text);
}

// False: the library has nothing but its reference implementation for this layout.
static bool run_one(session *s, const char *name, const test_case *c,
                    const ft_candidate *candidate, const ft_module *module) {
  const ft_group *g = &c->workload.group;
  const char *schedule = ft_schedule_json(&candidate->schedule, s->arena);
  cr_assert_eq(module->outcome, FT_OUTCOME_OK, "%s %s: %s", name, schedule, module->log);
  cr_assert_str_eq(module->link, "dnnl");
  cr_assert_eq(module->grid, 1);
  ft_tensor out;
  int32_t code = run_module(module, g, c->input, c->seed, s->arena, &out);
  if (code == FT_KERNEL_ONEDNN + 3) return false;
  cr_assert_eq(code, 0, "%s %s returned %d", name, schedule, code);
  ft_comparison cmp;
  ft_comparison_init(&cmp);
  ft_compare_tensor(&out, &c->reference[0], &cmp);
  cr_assert(cmp.max_ratio <= 1, "%s %s seed %llu at %lld: got %.9g, expected %.9g, %g",
            name, schedule, (unsigned long long)c->seed, (long long)cmp.worst_index,
            cmp.worst_value, cmp.worst_expected, cmp.max_ratio);
  return true;
}

// Builds and runs every schedule of the space, on plain and on odd inputs.
static void try_workload(session *s, const char *name, const ft_workload *w,
                         bool may_be_odd) {
  ft_schedule *list;
  uint32_t count;
  ft_error error;
  cr_assert_eq(s->builder.space(s->builder.self, w, "onednn", &s->target, s->arena, &list,
                                &count, &error),
               FT_OK, "%s: %s", name, error.text);
  cr_assert_gt(count, 0);
  ft_candidate *candidate = FT_NEW_ARRAY(s->arena, ft_candidate, count);
  ft_module *module = FT_NEW_ARRAY(s->arena, ft_module, count);
  for (uint32_t i = 0; i < count; i++)
    candidate[i] = (ft_candidate){w, &s->target, "onednn", list[i]};
  cr_assert_eq(s->builder.build(s->builder.self, candidate, count, false, s->arena,
                                module, &error),
               FT_OK, "%s", error.text);
  for (int odd = 0; odd <= may_be_odd; odd++) {
    test_case c = {.workload = *w};
    make_inputs(s, &c, 7 + (uint64_t)odd, odd);
    uint32_t ran = 0;
    for (uint32_t i = 0; i < count; i++)
      ran += run_one(s, name, &c, &candidate[i], &module[i]);
    cr_assert_gt(ran, 0, "%s: the library has no layout for it", name);
    if (ran < count)
      fprintf(stderr, "kernel_onednn: %s ran %u of %u\n", name, ran, count);
  }
  s->kernels += count;
}

static void try_all(const trial *trials, size_t count, bool may_be_odd) {
  session s;
  if (start(&s, 5)) {
    for (size_t i = 0; i < count; i++) {
      sketch k = sketch_open();
      output(&k, trials[i].make(&k));
      ft_workload w = finish(&k);
      try_workload(&s, trials[i].name, &w, may_be_odd);
      sketch_close(&k);
    }
    fprintf(stderr, "kernel_onednn: %u kernels\n", s.kernels);
  }
  session_close(&s);
}

#define TRY_ALL(trials, may_be_odd) \
  try_all(trials, sizeof(trials) / sizeof *(trials), may_be_odd)

// ---- products -------------------------------------------------------------------------

static uint32_t in(sketch *s, ft_shape shape) {
  return input(s, FT_F32, shape);
}

static uint32_t number(sketch *s, double n) {
  return scalar(s, FT_F32, n);
}

static uint32_t mul(sketch *s, uint32_t a, uint32_t b) {
  return two(s, FT_OP_MATMUL, a, b);
}

static uint32_t odd_sizes(sketch *s) {
  return mul(s, in(s, SHAPE(7, 13)), in(s, SHAPE(13, 5)));
}

static uint32_t one_row(sketch *s) {
  return mul(s, in(s, SHAPE(1, 65)), in(s, SHAPE(65, 33)));
}

static uint32_t one_column(sketch *s) {
  return mul(s, in(s, SHAPE(33, 65)), in(s, SHAPE(65, 1)));
}

static uint32_t one_term(sketch *s) {
  return mul(s, in(s, SHAPE(9, 1)), in(s, SHAPE(1, 17)));
}

static uint32_t one_number(sketch *s) {
  return mul(s, in(s, SHAPE(1, 1)), in(s, SHAPE(1, 1)));
}

static uint32_t batched(sketch *s) {
  return mul(s, in(s, SHAPE(3, 5, 17, 9)), in(s, SHAPE(3, 5, 9, 19)));
}

static uint32_t shared_second(sketch *s) {
  return mul(s, in(s, SHAPE(3, 5, 17, 9)), in(s, SHAPE(9, 19)));
}

static uint32_t shared_first(sketch *s) {
  return mul(s, in(s, SHAPE(17, 9)), in(s, SHAPE(4, 9, 19)));
}

static uint32_t crossed_batches(sketch *s) {
  return mul(s, in(s, SHAPE(3, 1, 17, 9)), in(s, SHAPE(1, 4, 9, 19)));
}

static uint32_t second_transposed(sketch *s) {
  return mul(s, in(s, SHAPE(18, 33)), transpose(s, in(s, SHAPE(21, 33))));
}

static uint32_t first_transposed(sketch *s) {
  return mul(s, transpose(s, in(s, SHAPE(33, 18))), in(s, SHAPE(33, 21)));
}

static uint32_t result_transposed(sketch *s) {
  return transpose(s, mul(s, in(s, SHAPE(18, 33)), in(s, SHAPE(33, 21))));
}

static uint32_t sliced(sketch *s) {
  uint32_t x = in(s, SHAPE(18, 99));
  ft_attr part = {.shape = SHAPE(18, 33), .start = {0, 33}, .step = {1, 1}};
  return mul(s, apply(s, FT_OP_SLICE, 1, &x, &part), in(s, SHAPE(33, 21)));
}

static uint32_t every_other_row(sketch *s) {
  uint32_t x = in(s, SHAPE(18, 33));
  ft_attr part = {.shape = SHAPE(9, 33), .start = {1, 0}, .step = {2, 1}};
  return mul(s, apply(s, FT_OP_SLICE, 1, &x, &part), in(s, SHAPE(33, 21)));
}

static uint32_t heads_of(sketch *s, ft_shape split, const uint8_t *perm) {
  ft_attr attr = {.perm = {perm[0], perm[1], perm[2], perm[3]}};
  ft_shape rows = SHAPE(split.dim[0], split.dim[1], split.dim[2] * split.dim[3]);
  uint32_t x = view(s, in(s, rows), split);
  return apply(s, FT_OP_TRANSPOSE, 1, &x, &attr);
}

static uint32_t scores(sketch *s) {
  uint32_t q = heads_of(s, SHAPE(2, 17, 4, 16), (uint8_t[]){0, 2, 1, 3});
  uint32_t k = heads_of(s, SHAPE(2, 17, 4, 16), (uint8_t[]){0, 2, 3, 1});
  return two(s, FT_OP_MUL, mul(s, q, k), number(s, 0.25));
}

static uint32_t context(sketch *s) {
  uint32_t v = heads_of(s, SHAPE(2, 17, 4, 16), (uint8_t[]){0, 2, 1, 3});
  uint32_t y = mul(s, in(s, SHAPE(2, 4, 17, 17)), v);
  return apply(s, FT_OP_TRANSPOSE, 1, &y, &(ft_attr){.perm = {0, 2, 1, 3}});
}

Test(codegen_onednn, products_of_any_layout_are_right) {
  static const trial trials[] = {
      {"odd_sizes", odd_sizes},
      {"one_row", one_row},
      {"one_column", one_column},
      {"one_term", one_term},
      {"one_number", one_number},
      {"batched", batched},
      {"shared_second", shared_second},
      {"shared_first", shared_first},
      {"crossed_batches", crossed_batches},
      {"second_transposed", second_transposed},
      {"first_transposed", first_transposed},
      {"result_transposed", result_transposed},
      {"sliced", sliced},
      {"every_other_row", every_other_row},
      {"scores", scores},
      {"context", context},
  };
  TRY_ALL(trials, true);
}

// ---- post-ops after a product
// -----------------------------------------------------------

static uint32_t product(sketch *s) {
  return mul(s, in(s, SHAPE(19, 13)), in(s, SHAPE(13, 21)));
}

static uint32_t gelu_erf(sketch *s, uint32_t x) {
  uint32_t inner = one(s, FT_OP_ERF, two(s, FT_OP_DIV, x, number(s, sqrt(2))));
  uint32_t gate = two(s, FT_OP_ADD, inner, number(s, 1));
  return two(s, FT_OP_MUL, two(s, FT_OP_MUL, x, gate), number(s, 0.5));
}

static uint32_t gelu_tanh(sketch *s, uint32_t x) {
  uint32_t cube = two(s, FT_OP_MUL, two(s, FT_OP_MUL, x, x), x);
  uint32_t sum = two(s, FT_OP_ADD, x, two(s, FT_OP_MUL, cube, number(s, 0.044715)));
  uint32_t t = one(s, FT_OP_TANH, two(s, FT_OP_MUL, sum, number(s, sqrt(M_2_PI))));
  uint32_t half = two(s, FT_OP_MUL, x, number(s, 0.5));
  return two(s, FT_OP_MUL, half, two(s, FT_OP_ADD, t, number(s, 1)));
}

static uint32_t swish(sketch *s, uint32_t x) {
  return two(s, FT_OP_MUL, x, one(s, FT_OP_SIGMOID, x));
}

static uint32_t leaky(sketch *s, uint32_t x) {
  uint32_t is_low = two(s, FT_OP_LESS, x, number(s, 0));
  uint32_t low = two(s, FT_OP_MUL, x, number(s, 0.25));
  return apply(s, FT_OP_WHERE, 3, (uint32_t[]){is_low, low, x}, NULL);
}

static uint32_t elu(sketch *s, uint32_t x) {
  uint32_t is_low = two(s, FT_OP_LESS, x, number(s, 0));
  uint32_t low = two(s, FT_OP_ADD, one(s, FT_OP_EXP, x), number(s, -1));
  return apply(s, FT_OP_WHERE, 3, (uint32_t[]){is_low, low, x}, NULL);
}

static uint32_t with_bias(sketch *s) {
  return two(s, FT_OP_ADD, product(s), in(s, SHAPE(21)));
}

static uint32_t with_gelu(sketch *s) {
  return gelu_erf(s, with_bias(s));
}

static uint32_t with_gelu_tanh(sketch *s) {
  return gelu_tanh(s, with_bias(s));
}

static uint32_t with_swish(sketch *s) {
  return swish(s, product(s));
}

static uint32_t with_leaky(sketch *s) {
  return leaky(s, product(s));
}

static uint32_t with_elu(sketch *s) {
  return elu(s, product(s));
}

static uint32_t with_relu(sketch *s) {
  return one(s, FT_OP_RELU, with_bias(s));
}

static uint32_t with_tanh(sketch *s) {
  return one(s, FT_OP_TANH, product(s));
}

static uint32_t with_sigmoid(sketch *s) {
  return one(s, FT_OP_SIGMOID, product(s));
}

static uint32_t with_abs(sketch *s) {
  return one(s, FT_OP_ABS, product(s));
}

static uint32_t with_sqrt(sketch *s) {
  return one(s, FT_OP_SQRT, one(s, FT_OP_ABS, product(s)));
}

static uint32_t with_square(sketch *s) {
  uint32_t y = product(s);
  return two(s, FT_OP_MUL, y, y);
}

static uint32_t with_line(sketch *s) {
  return two(s, FT_OP_SUB, number(s, 3), two(s, FT_OP_MUL, product(s), number(s, 0.5)));
}

static uint32_t with_residual(sketch *s) {
  return two(s, FT_OP_ADD, with_relu(s), in(s, SHAPE(19, 21)));
}

static uint32_t with_tensors(sketch *s) {
  uint32_t y = two(s, FT_OP_SUB, product(s), in(s, SHAPE(19, 21)));
  y = two(s, FT_OP_MUL, in(s, SHAPE(21)), y);
  return two(s, FT_OP_DIV, y, in(s, SHAPE(19, 21)));
}

static uint32_t with_difference(sketch *s) {
  return two(s, FT_OP_SUB, in(s, SHAPE(19, 21)), product(s));
}

static uint32_t batched_residual(sketch *s) {
  uint32_t y = mul(s, in(s, SHAPE(2, 3, 17, 9)), in(s, SHAPE(9, 21)));
  y = two(s, FT_OP_ADD, y, in(s, SHAPE(21)));
  return two(s, FT_OP_ADD, y, in(s, SHAPE(2, 3, 17, 21)));
}

Test(codegen_onednn, functions_and_tensors_after_a_product_are_right) {
  static const trial trials[] = {
      {"with_bias", with_bias},
      {"with_gelu", with_gelu},
      {"with_gelu_tanh", with_gelu_tanh},
      {"with_swish", with_swish},
      {"with_leaky", with_leaky},
      {"with_elu", with_elu},
      {"with_relu", with_relu},
      {"with_tanh", with_tanh},
      {"with_sigmoid", with_sigmoid},
      {"with_abs", with_abs},
      {"with_sqrt", with_sqrt},
      {"with_square", with_square},
      {"with_line", with_line},
      {"with_residual", with_residual},
      {"with_tensors", with_tensors},
      {"with_difference", with_difference},
      {"batched_residual", batched_residual},
  };
  TRY_ALL(trials, true);
}

// ---- convolutions
// -----------------------------------------------------------------------

typedef struct convolution {
  ft_shape x, w;
  int64_t before, after, stride, dilation, groups;
} convolution;

static uint32_t conv(sketch *s, const convolution *c) {
  ft_attr attr = {.groups = c->groups, .shape = c->x};
  attr.shape.dim[1] = c->w.dim[0];
  for (int i = 0; i < c->x.rank - 2; i++) {
    int64_t reach = (c->w.dim[i + 2] - 1) * c->dilation + 1;
    attr.start[i] = c->before;
    attr.stride[i] = c->stride;
    attr.dilation[i] = c->dilation;
    attr.shape.dim[i + 2] =
        (c->x.dim[i + 2] + c->before + c->after - reach) / c->stride + 1;
  }
  uint32_t operands[] = {in(s, c->x), in(s, c->w)};
  return apply(s, FT_OP_CONV, 2, operands, &attr);
}

#define CONV(name, shape_x, shape_w, ...)                          \
  static uint32_t name(sketch *s) {                                \
    return conv(s, &(convolution){shape_x, shape_w, __VA_ARGS__}); \
  }

CONV(conv_plain, SHAPE(2, 3, 9, 11), SHAPE(4, 3, 3, 3), 0, 0, 1, 1, 1)
CONV(conv_padded, SHAPE(1, 16, 9, 11), SHAPE(32, 16, 3, 3), 1, 1, 1, 1, 1)
CONV(conv_strided, SHAPE(1, 3, 15, 14), SHAPE(8, 3, 5, 5), 2, 1, 2, 1, 1)
CONV(conv_dilated, SHAPE(1, 8, 15, 14), SHAPE(8, 8, 3, 3), 2, 2, 1, 2, 1)
CONV(conv_grouped, SHAPE(1, 32, 9, 9), SHAPE(32, 16, 3, 3), 1, 1, 1, 1, 2)
CONV(conv_depthwise, SHAPE(2, 24, 9, 9), SHAPE(24, 1, 3, 3), 1, 1, 1, 1, 24)
CONV(conv_pointwise, SHAPE(1, 33, 7, 7), SHAPE(17, 33, 1, 1), 0, 0, 1, 1, 1)
CONV(conv_1d, SHAPE(2, 5, 31), SHAPE(6, 5, 3), 1, 1, 2, 1, 1)
CONV(conv_3d, SHAPE(1, 4, 5, 6, 7), SHAPE(8, 4, 3, 3, 3), 1, 1, 1, 1, 1)

static uint32_t conv_bias_relu(sketch *s) {
  uint32_t y = two(s, FT_OP_ADD, conv_padded(s), in(s, SHAPE(1, 32, 1, 1)));
  return one(s, FT_OP_RELU, y);
}

static uint32_t conv_block(sketch *s) {
  uint32_t y = two(s, FT_OP_ADD, conv_padded(s), in(s, SHAPE(1, 32, 1, 1)));
  y = two(s, FT_OP_ADD, y, in(s, SHAPE(1, 32, 9, 11)));
  return one(s, FT_OP_RELU, y);
}

static uint32_t conv_norm(sketch *s) {
  uint32_t y = two(s, FT_OP_MUL, conv_padded(s), in(s, SHAPE(1, 32, 1, 1)));
  y = two(s, FT_OP_ADD, y, in(s, SHAPE(1, 32, 1, 1)));
  return leaky(s, y);
}

static uint32_t conv_swish(sketch *s) {
  return swish(s, conv_pointwise(s));
}

static uint32_t conv_gelu(sketch *s) {
  return gelu_erf(s, conv_depthwise(s));
}

static uint32_t conv_of_channels_last(sketch *s) {
  uint32_t x = in(s, SHAPE(1, 9, 11, 16));
  x = apply(s, FT_OP_TRANSPOSE, 1, &x, &(ft_attr){.perm = {0, 3, 1, 2}});
  ft_attr attr = {.shape = SHAPE(1, 8, 9, 11),
                  .start = {1, 1},
                  .stride = {1, 1},
                  .dilation = {1, 1},
                  .groups = 1};
  uint32_t operands[] = {x, in(s, SHAPE(8, 16, 3, 3))};
  return apply(s, FT_OP_CONV, 2, operands, &attr);
}

static const trial convolutions[] = {
    {"conv_plain", conv_plain},
    {"conv_padded", conv_padded},
    {"conv_strided", conv_strided},
    {"conv_dilated", conv_dilated},
    {"conv_grouped", conv_grouped},
    {"conv_depthwise", conv_depthwise},
    {"conv_pointwise", conv_pointwise},
    {"conv_1d", conv_1d},
    {"conv_3d", conv_3d},
    {"conv_bias_relu", conv_bias_relu},
    {"conv_block", conv_block},
    {"conv_norm", conv_norm},
    {"conv_swish", conv_swish},
    {"conv_gelu", conv_gelu},
    {"conv_of_channels_last", conv_of_channels_last},
};

Test(codegen_onednn, convolutions_with_what_follows_are_right) {
  TRY_ALL(convolutions, false);
}

Test(codegen_onednn, odd_numbers_pass_through_convolutions) {
  TRY_ALL(convolutions, true);
}

// ---- pools
// ------------------------------------------------------------------------------

static uint32_t pool(sketch *s, int64_t channels, int64_t before, int64_t size,
                     int64_t stride, double by) {
  uint32_t x = in(s, SHAPE(2, channels, 13, 12));
  ft_attr attr = {.shape = SHAPE(2, channels, 0, 0)};
  for (int i = 0; i < 2; i++) {
    attr.window[i] = size;
    attr.stride[i] = stride;
    attr.start[i] = before;
    attr.dilation[i] = 1;
    attr.shape.dim[i + 2] = (13 - i + 2 * before - size) / stride + 1;
  }
  uint32_t sum = apply(s, FT_OP_WINDOW_SUM, 1, &x, &attr);
  return by == 1 ? sum : two(s, FT_OP_MUL, sum, number(s, by));
}

static uint32_t pool_mean(sketch *s) {
  return pool(s, 5, 0, 3, 2, 1.0 / 9);
}

static uint32_t pool_padded(sketch *s) {
  return pool(s, 16, 1, 3, 2, 1.0 / 9);
}

static uint32_t pool_sum(sketch *s) {
  return pool(s, 16, 0, 2, 2, 1);
}

static uint32_t pool_relu(sketch *s) {
  return one(s, FT_OP_RELU, pool(s, 16, 1, 2, 2, 0.25));
}

Test(codegen_onednn, means_and_sums_of_windows_are_right) {
  static const trial trials[] = {{"pool_mean", pool_mean},
                                 {"pool_padded", pool_padded},
                                 {"pool_sum", pool_sum},
                                 {"pool_relu", pool_relu}};
  TRY_ALL(trials, true);
}

// ---- when the library says no
// -----------------------------------------------------------

// A column of the result's own: only the slow reference implementation would take it.
static uint32_t unfit(sketch *s) {
  uint32_t y = mul(s, in(s, SHAPE(2, 9, 5)), in(s, SHAPE(2, 5, 7)));
  return apply(s, FT_OP_TRANSPOSE, 1, &y, &(ft_attr){.perm = {1, 2, 0}});
}

Test(codegen_onednn, what_the_library_cannot_do_is_a_code_and_leaves_nothing_behind) {
  session s;
  if (start(&s, 5)) {
    sketch k = sketch_open();
    output(&k, unfit(&k));
    ft_workload w = finish(&k);
    ft_schedule *list;
    uint32_t count;
    ft_error error;
    cr_assert_eq(s.builder.space(s.builder.self, &w, "onednn", &s.target, s.arena, &list,
                                 &count, &error),
                 FT_OK, "%s", error.text);
    ft_candidate c = {&w, &s.target, "onednn", list[0]};
    ft_module module;
    cr_assert_eq(s.builder.build(s.builder.self, &c, 1, true, s.arena, &module, &error),
                 FT_OK, "%s", error.text);
    cr_assert_eq(module.outcome, FT_OUTCOME_OK, "%s", module.log);
    test_case t = {.workload = w};
    make_inputs(&s, &t, 3, false);
    ft_tensor out;
    for (int i = 0; i < 3; i++)
      cr_expect_eq(run_module(&module, &w.group, t.input, 1, s.arena, &out),
                   FT_KERNEL_ONEDNN + 3);
    sketch_close(&k);
  }
  session_close(&s);
}

static ino_t inode_of(const char *path) {
  struct stat info;
  cr_assert_eq(stat(path, &info), 0, "%s", path);
  return info.st_ino;
}

Test(codegen_onednn, kernels_of_our_own_are_packed_apart_from_those_that_link_a_library) {
  session s;
  if (start(&s, 5)) {
    sketch k = sketch_open();
    output(&k, odd_sizes(&k));
    ft_workload w = finish(&k);
    static const char *const tactics[] = {"loop", "onednn"};
    ft_candidate candidate[4];
    ft_module module[4];
    ft_error error;
    for (int i = 0; i < 4; i++) {
      ft_schedule *list;
      uint32_t count;
      cr_assert_eq(s.builder.space(s.builder.self, &w, tactics[i % 2], &s.target, s.arena,
                                   &list, &count, &error),
                   FT_OK, "%s", error.text);
      candidate[i] = (ft_candidate){&w, &s.target, tactics[i % 2], list[i / 2]};
    }
    cr_assert_eq(
        s.builder.build(s.builder.self, candidate, 4, false, s.arena, module, &error),
        FT_OK, "%s", error.text);
    for (int i = 0; i < 4; i++) {
      bool is_linked = strstr(module[i].flags, " -ldnnl") != NULL;
      cr_expect_eq(is_linked, i % 2 == 1);
      cr_expect_eq(module[i].link != NULL, i % 2 == 1);
      for (int j = 0; j < i; j++)
        if ((i - j) % 2)
          cr_expect_neq(inode_of(module[i].path), inode_of(module[j].path));
    }
    sketch_close(&k);
  }
  session_close(&s);
}
