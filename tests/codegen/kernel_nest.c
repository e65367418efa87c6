// Nests: every form of a row, a column and a split, against the interpreter.
#include "graphs.h"
#include "trying.h"

enum { MAX_FORMS = 24 };

typedef void make_graph(sketch *s);
typedef void fill_inputs(session *s, test_case *c);

typedef struct nest_case {
  const char *name;
  make_graph *make;
  fill_inputs *fill;  // NULL: random
  const char *needs;  // a knob that some candidate must have, "split>1"; NULL: none
} nest_case;

// ---- schedules
// -------------------------------------------------------------------------

static ft_schedule form(const char *compiler, const int64_t *v) {
  ft_schedule s = {0};
  ft_schedule_set(&s, "block", v[0]);
  ft_schedule_set(&s, "buffer", v[1]);
  ft_schedule_set_text(&s, "compiler", compiler);
  ft_schedule_set(&s, "non_temporal", v[2]);
  ft_schedule_set(&s, "prefetch", v[3]);
  ft_schedule_set(&s, "split", v[4]);
  ft_schedule_set(&s, "threads", 2);
  ft_schedule_set(&s, "unroll", v[5]);
  ft_schedule_set(&s, "vector", v[6]);
  return s;
}

// One value of each knob, as |n| counts through all combinations; false when done.
static bool next_form(uint32_t n, int64_t *v) {
  static const int64_t values[7][5] = {{4096, 300000}, {0, 1, 2, 3}, {0, 1},    {0, 2},
                                       {1, 2, 5, 64},  {1, 2, 4},    {16, 8, 1}};
  static const uint32_t counts[7] = {2, 4, 2, 2, 4, 3, 3};
  for (int k = 0; k < 7; k++) {
    v[k] = values[k][n % counts[k]];
    n /= counts[k];
  }
  return n == 0;
}

// A few of the forms that |tactic| accepts: the first of each buffer kind and of a split,
// then others drawn by chance.
static uint32_t choose_forms(session *s, const test_case *c, const char *tactic,
                             ft_candidate *out, uint32_t room) {
  ft_candidate base = {.workload = &c->workload, .target = &s->target, .tactic = tactic};
  ft_candidate *all = FT_NEW_ARRAY(s->arena, ft_candidate, 4096);
  uint32_t count = 0, made = 0;
  int64_t v[7];
  for (uint32_t n = 0; next_form(n, v) && count < 4096; n++) {
    const char *compiler = s->target.compiler[n % s->target.compiler_count].name;
    base.schedule = form(compiler, v);
    if (!s->builder.check(s->builder.self, &base, s->arena)) all[count++] = base;
  }
  static const char *const firsts[] = {"buffer", "buffer", "buffer", "split", "split"};
  static const int64_t wanted[] = {1, 2, 3, 5, 64};
  for (int w = 0; w < 5 && made < room; w++) {
    uint32_t at = 0;
    while (at < count && ft_schedule_get(&all[at].schedule, firsts[w], 0) != wanted[w])
      at++;
    if (at < count) out[made++] = all[at];
  }
  while (count && made < room) out[made++] = all[ft_rng_below(&s->rng, count)];
  return made;
}

// ---- running
// ---------------------------------------------------------------------------

static void refer(session *s, test_case *c) {
  const ft_group *g = &c->workload.group;
  ft_graph *alone;
  ft_error error;
  cr_assert_eq(ft_group_extract(g, s->arena, &alone, &error), FT_OK, "%s", error.text);
  cr_assert_eq(ft_interpret_graph(alone, c->input, s->arena, c->reference, &error), FT_OK,
               "%s", error.text);
}

static bool has_split(const ft_candidate *c) {
  return ft_schedule_get(&c->schedule, "split", 1) > 1;
}

static bool has_online(const ft_candidate *c) {
  return ft_schedule_get(&c->schedule, "buffer", 0) == 3;
}

static void try_case(session *s, const nest_case *n) {
  static const char *const tactics[] = {"row", "column", "pointwise"};
  sketch k = sketch_open();
  n->make(&k);
  cr_assert_eq(ft_graph_finish(k.graph, NULL), FT_OK);
  test_case c;
  cr_assert(make_case(s, k.graph, 0, k.graph->primitive_count, 1, &c), "%s", n->name);
  if (n->fill) {
    n->fill(s, &c);
    refer(s, &c);
  }
  ft_candidate candidate[MAX_FORMS];
  ft_module module[MAX_FORMS];
  uint32_t count = 0, splits = 0, onlines = 0;
  for (int t = 0; t < 3; t++)
    count += choose_forms(s, &c, tactics[t], candidate + count, MAX_FORMS / 3);
  cr_assert_gt(count, 0, "%s", n->name);
  ft_error error;
  cr_assert_eq(s->builder.build(s->builder.self, candidate, count, false, s->arena,
                                module, &error),
               FT_OK, "%s: %s", n->name, error.text);
  for (uint32_t i = 0; i < count; i++) {
    run_case(s, &c, &candidate[i], &module[i]);
    splits += has_split(&candidate[i]);
    onlines += has_online(&candidate[i]);
  }
  if (n->needs && !strcmp(n->needs, "split")) cr_assert_gt(splits, 0, "%s", n->name);
  if (n->needs && !strcmp(n->needs, "online")) cr_assert_gt(onlines, 0, "%s", n->name);
  if (getenv("FT_SHOW_NESTS"))
    fprintf(stderr, "%s: %u kernels, %u split, %u online\n", n->name, count, splits,
            onlines);
  sketch_close(&k);
}

static void try_cases(const nest_case *cases, size_t count) {
  session s = session_open(7);
  session_start(&s);
  for (size_t i = 0; i < count; i++) try_case(&s, &cases[i]);
  session_close(&s);
}

#define TRY(cases) try_cases(cases, sizeof(cases) / sizeof *(cases))

// ---- softmax and norms
// -----------------------------------------------------------------

static void softmax_of(sketch *s, int64_t rows, int64_t columns) {
  output(s, softmax(s, input(s, FT_F32, SHAPE(rows, columns)), 1));
}

static void softmax_one_column(sketch *s) {
  softmax_of(s, 7, 1);
}
static void softmax_two_columns(sketch *s) {
  softmax_of(s, 70, 2);
}
static void softmax_short(sketch *s) {
  softmax_of(s, 37, 250);
}
static void softmax_odd(sketch *s) {
  softmax_of(s, 33, 1001);
}
static void softmax_one_row(sketch *s) {
  softmax_of(s, 1, 100003);
}
static void softmax_million(sketch *s) {
  softmax_of(s, 1, 1 << 20);
}
static void softmax_no_row(sketch *s) {
  softmax_of(s, 0, 64);
}

// max and sum(exp(x - max)), the log of the sum, and the shifted values.
static void log_softmax(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(5, 3001)), b = input(s, FT_F32, SHAPE(3001));
  uint32_t sum = two(s, FT_OP_ADD, x, b);
  uint32_t top = reduce(s, FT_OP_REDUCE_MAX, sum, 2);
  uint32_t shifted = two(s, FT_OP_SUB, sum, top);
  uint32_t total = reduce(s, FT_OP_REDUCE_SUM, one(s, FT_OP_EXP, shifted), 2);
  output(s, sum);
  output(s, top);
  output(s, two(s, FT_OP_SUB, shifted, one(s, FT_OP_LOG, total)));
}

static void norm_of(sketch *s, int64_t rows, int64_t columns) {
  uint32_t x = input(s, FT_F32, SHAPE(rows, columns));
  uint32_t r = input(s, FT_F32, SHAPE(rows, columns)),
           g = input(s, FT_F32, SHAPE(columns));
  output(s, layer_norm(s, two(s, FT_OP_ADD, x, r), g, 1));
}

static void norm_short(sketch *s) {
  norm_of(s, 11, 96);
}
static void norm_odd(sketch *s) {
  norm_of(s, 9, 1537);
}

// Rows: all -inf; -inf up to near the end; NaN late; +inf; -inf in the middle; huge
// spread.
static void masks(session *s, test_case *c) {
  ft_tensor *t = &c->input[0];
  int64_t columns = t->shape.dim[1];
  float *x = ft_arena_memdup(s->arena, t->data, t->bytes);
  for (int64_t i = 0; i < columns; i++) {
    x[i] = -INFINITY;
    if (i < columns - 3) x[columns + i] = -INFINITY;
    if (i > 100 && i < 700) x[4 * columns + i] = -INFINITY;
    x[5 * columns + i] = (float)i * 3 - 900;
  }
  x[2 * columns + columns - 2] = NAN;
  x[3 * columns + 5] = INFINITY;
  x[6 * columns] = NAN;
  t->data = x;
}

Test(codegen_nest, softmax_of_any_length_agrees, .timeout = 280) {
  static const nest_case cases[] = {
      {"one column", softmax_one_column, NULL, NULL},
      {"two columns", softmax_two_columns, NULL, NULL},
      {"short", softmax_short, NULL, NULL},
      {"odd", softmax_odd, NULL, "online"},
      {"masked", softmax_odd, masks, "online"},
      {"masked short", softmax_short, masks, NULL},
      {"log softmax", log_softmax, NULL, "online"},
      {"one row", softmax_one_row, NULL, "online"},
      {"no row", softmax_no_row, NULL, NULL},
  };
  TRY(cases);
}

Test(codegen_nest, a_row_of_a_million_agrees, .timeout = 280) {
  static const nest_case cases[] = {{"million", softmax_million, NULL, "online"}};
  TRY(cases);
}

Test(codegen_nest, norms_agree, .timeout = 280) {
  static const nest_case cases[] = {{"short", norm_short, NULL, NULL},
                                    {"odd", norm_odd, NULL, NULL}};
  TRY(cases);
}

// ---- splits
// ----------------------------------------------------------------------------

// sqrt(mean(x * x)) over everything.
static void mean_square(sketch *s, ft_shape shape, uint32_t axes) {
  uint32_t x = input(s, FT_F32, shape);
  uint32_t sum = reduce(s, FT_OP_REDUCE_SUM, two(s, FT_OP_MUL, x, x), axes);
  uint32_t mean = two(s, FT_OP_MUL, sum, scalar(s, FT_F32, 1.0 / 1024));
  output(s, one(s, FT_OP_SQRT, mean));
}

static void all_axes(sketch *s) {
  mean_square(s, SHAPE(1000, 1000), 3);
}
static void few_long_rows(sketch *s) {
  mean_square(s, SHAPE(2, 150007), 2);
}
static void tall_columns(sketch *s) {
  mean_square(s, SHAPE(100003, 3), 1);
}
static void wide_columns(sketch *s) {
  mean_square(s, SHAPE(3000, 70), 1);
}
static void middle_axis(sketch *s) {
  mean_square(s, SHAPE(4, 5000, 7), 2);
}
static void outer_and_inner(sketch *s) {
  mean_square(s, SHAPE(200, 5, 300), 5);
}

// Three reductions at once, a value stored on the way, and one that they give together.
static void several(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(3, 40001)), b = input(s, FT_F32, SHAPE(3, 1));
  uint32_t y = two(s, FT_OP_MUL, x, b);
  uint32_t high = reduce(s, FT_OP_REDUCE_MAX, y, 2),
           low = reduce(s, FT_OP_REDUCE_MIN, y, 2);
  output(s, y);
  output(s, two(s, FT_OP_SUB, high, low));
  output(s, reduce(s, FT_OP_REDUCE_SUM, y, 2));
}

static void integers(sketch *s) {
  uint32_t x = input(s, FT_I32, SHAPE(2, 70001)), y = input(s, FT_I64, SHAPE(2, 70001));
  output(s, reduce(s, FT_OP_REDUCE_SUM, x, 2));
  output(s, reduce(s, FT_OP_REDUCE_MAX, x, 2));
  output(s, reduce(s, FT_OP_REDUCE_MIN, y, 2));
  output(s, reduce(s, FT_OP_REDUCE_PROD, y, 2));
}

static void products(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 30000));
  uint32_t near = two(s, FT_OP_ADD, two(s, FT_OP_MUL, x, scalar(s, FT_F32, 1e-4)),
                      scalar(s, FT_F32, 1));
  output(s, reduce(s, FT_OP_REDUCE_PROD, near, 2));
}

static void doubles(sketch *s) {
  uint32_t x = input(s, FT_F64, SHAPE(50000, 2));
  output(s, reduce(s, FT_OP_REDUCE_SUM, x, 1));
}

static void odd_values(session *s, test_case *c) {
  ft_tensor *t = &c->input[0];
  float *x = ft_arena_memdup(s->arena, t->data, t->bytes);
  size_t count = t->bytes / sizeof *x;
  x[count - 1] = NAN;
  x[1] = INFINITY;
  t->data = x;
}

Test(codegen_nest, split_reductions_agree_launch_after_launch, .timeout = 280) {
  static const nest_case cases[] = {
      {"all axes", all_axes, NULL, "split"},
      {"few long rows", few_long_rows, NULL, "split"},
      {"odd values", few_long_rows, odd_values, "split"},
      {"tall columns", tall_columns, NULL, "split"},
      {"wide columns", wide_columns, NULL, "split"},
      {"middle axis", middle_axis, NULL, "split"},
      {"outer and inner", outer_and_inner, NULL, "split"},
      {"several", several, NULL, "split"},
      {"several odd", several, odd_values, "split"},
      {"integers", integers, NULL, "split"},
      {"products", products, NULL, "split"},
      {"doubles", doubles, NULL, "split"},
  };
  TRY(cases);
}

// ---- division: exact quotients are exact
// ------------------------------------------------

static void divide(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(64, 100)), d = input(s, FT_F32, SHAPE(64, 1));
  output(s, two(s, FT_OP_DIV, x, d));
  output(s, two(s, FT_OP_DIV, x, scalar(s, FT_F32, 3)));
  output(s, two(s, FT_OP_DIV, x, scalar(s, FT_F32, 1e-39)));
  output(s, two(s, FT_OP_DIV, x, scalar(s, FT_F32, 0)));
}

// Divisors and dividends of every size, zeros, infinities and NaN.
static void sizes(session *s, test_case *c) {
  for (uint32_t i = 0; i < c->workload.group.input_count; i++) {
    ft_tensor *t = &c->input[i];
    float *x = ft_arena_memdup(s->arena, t->data, t->bytes);
    int64_t count = ft_shape_elements(&t->shape);
    static const float odd[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, 3.4e38f};
    for (int64_t k = 0; k < count; k++) {
      int exponent = (int)(k * 37 % 276) - 149;
      x[k] = ldexpf(1 + (float)(k % 13) / 16, exponent) * (k % 3 ? 1 : -1);
      if (k % 9 == 8) x[k] = odd[k / 9 % 7];
    }
    t->data = x;
  }
}

Test(codegen_nest, division_by_a_row_value_is_right_at_every_size, .timeout = 280) {
  static const nest_case cases[] = {{"divide", divide, NULL, NULL},
                                    {"sizes", divide, sizes, NULL}};
  TRY(cases);
}
