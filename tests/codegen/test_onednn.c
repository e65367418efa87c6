// The tactic onednn: what it takes and refuses, and the calls it makes of it. Runs no
// kernel, and needs no oneDNN.
#include "codegen/onednn.h"

#include <math.h>

#include "codegen/codegen.h"
#include "codegen/strided.h"
#include "codegen/unary.h"
#include "core/strbuf.h"
#include "graphs.h"
#include "running.h"

static ft_onednn_call call_of(sketch *s, const ft_workload *w, const char **reason) {
  ft_onednn onednn;
  ft_onednn_call call = {0};
  *reason = ft_onednn_read(&w->group, s->arena, &onednn);
  if (!*reason) *reason = ft_onednn_call_of(&onednn, s->arena, &call);
  return call;
}

// The function that a chain after a product becomes, as text: "tanh", "linear(2 0) elu(0
// 0)".
static const char *posts_of(sketch *s) {
  ft_workload w = finish(s);
  const char *reason;
  ft_onednn_call call = call_of(s, &w, &reason);
  if (reason) return reason;
  ft_strbuf out = ft_strbuf_init(s->arena);
  for (uint32_t i = 0; i < call.post_count; i++) {
    const ft_onednn_post *p = &call.post[i];
    ft_strbuf_printf(&out, "%s%s", i ? " " : "", strrchr(p->algorithm, '_') + 1);
    if (!p->is_binary) ft_strbuf_printf(&out, "(%.4g %.4g)", p->alpha, p->beta);
  }
  return call.post_count ? out.text : "";
}

static uint32_t number(sketch *s, double n) {
  return scalar(s, FT_F32, n);
}

static uint32_t product(sketch *s) {
  return two(s, FT_OP_MATMUL, input(s, FT_F32, SHAPE(6, 5)),
             input(s, FT_F32, SHAPE(5, 4)));
}

// ---- functions of one value ---------------------------------------------------------

static uint32_t gelu_erf(sketch *s, uint32_t x) {
  uint32_t inner = one(s, FT_OP_ERF, two(s, FT_OP_DIV, x, number(s, sqrt(2))));
  uint32_t gate = two(s, FT_OP_ADD, inner, number(s, 1));
  return two(s, FT_OP_MUL, two(s, FT_OP_MUL, x, gate), number(s, 0.5));
}

static uint32_t gelu_erf_half_first(sketch *s, uint32_t x) {
  uint32_t inner = one(s, FT_OP_ERF, two(s, FT_OP_MUL, number(s, M_SQRT1_2), x));
  uint32_t gate = two(s, FT_OP_ADD, number(s, 1), inner);
  return two(s, FT_OP_MUL, gate, two(s, FT_OP_MUL, x, number(s, 0.5)));
}

static uint32_t gelu_tanh(sketch *s, uint32_t x) {
  uint32_t cube = two(s, FT_OP_POW, x, number(s, 3));
  uint32_t sum = two(s, FT_OP_ADD, x, two(s, FT_OP_MUL, cube, number(s, 0.044715)));
  uint32_t t = one(s, FT_OP_TANH, two(s, FT_OP_MUL, sum, number(s, sqrt(M_2_PI))));
  uint32_t half = two(s, FT_OP_MUL, x, number(s, 0.5));
  return two(s, FT_OP_MUL, half, two(s, FT_OP_ADD, t, number(s, 1)));
}

static uint32_t swish(sketch *s, uint32_t x) {
  return two(s, FT_OP_MUL, x,
             one(s, FT_OP_SIGMOID, two(s, FT_OP_MUL, x, number(s, 1.5))));
}

static uint32_t leaky(sketch *s, uint32_t x) {
  uint32_t is_low = two(s, FT_OP_LESS, x, number(s, 0));
  uint32_t low = two(s, FT_OP_MUL, x, number(s, 0.25));
  return apply(s, FT_OP_WHERE, 3, (uint32_t[]){is_low, low, x}, NULL);
}

static uint32_t elu(sketch *s, uint32_t x) {
  uint32_t is_low = two(s, FT_OP_LESS, x, number(s, 0));
  uint32_t low = two(s, FT_OP_ADD, one(s, FT_OP_EXP, x), number(s, -1));
  return apply(s, FT_OP_WHERE, 3,
               (uint32_t[]){is_low, two(s, FT_OP_MUL, low, number(s, 2)), x}, NULL);
}

static uint32_t relu(sketch *s, uint32_t x) {
  return one(s, FT_OP_RELU, x);
}

static uint32_t tanh_of(sketch *s, uint32_t x) {
  return one(s, FT_OP_TANH, x);
}

static uint32_t sigmoid(sketch *s, uint32_t x) {
  return one(s, FT_OP_SIGMOID, x);
}

static uint32_t line(sketch *s, uint32_t x) {
  uint32_t twice = two(s, FT_OP_MUL, x, number(s, 2));
  return two(s, FT_OP_SUB, number(s, 3), twice);
}

static uint32_t there_and_back(sketch *s, uint32_t x) {
  return two(s, FT_OP_DIV, two(s, FT_OP_MUL, x, number(s, 4)), number(s, 4));
}

static uint32_t square(sketch *s, uint32_t x) {
  return two(s, FT_OP_MUL, x, x);
}

static uint32_t root_of_line(sketch *s, uint32_t x) {
  return one(s, FT_OP_SQRT, two(s, FT_OP_ADD, x, number(s, 1)));
}

static uint32_t floor_of(sketch *s, uint32_t x) {
  return one(s, FT_OP_FLOOR, x);
}

static uint32_t exp_of(sketch *s, uint32_t x) {
  return one(s, FT_OP_EXP, x);
}

static uint32_t clip(sketch *s, uint32_t x) {
  return two(s, FT_OP_MIN, x, number(s, 1));
}

static uint32_t erf_of(sketch *s, uint32_t x) {
  return one(s, FT_OP_ERF, x);
}

static uint32_t nearly_gelu(sketch *s, uint32_t x) {
  uint32_t inner = one(s, FT_OP_ERF, two(s, FT_OP_MUL, number(s, 0.7), x));
  uint32_t gate = two(s, FT_OP_ADD, number(s, 1), inner);
  return two(s, FT_OP_MUL, gate, two(s, FT_OP_MUL, x, number(s, 0.5)));
}

static uint32_t one_over(sketch *s, uint32_t x) {
  return two(s, FT_OP_DIV, number(s, 1), x);
}

Test(codegen_onednn, a_function_is_known_however_it_is_spelled) {
  static const struct {
    uint32_t (*make)(sketch *, uint32_t);
    const char *posts;
  } cases[] = {
      {gelu_erf, "erf(0 0)"},
      {gelu_erf_half_first, "erf(0 0)"},
      {gelu_tanh, "tanh(0 0)"},
      {swish, "swish(1.5 0)"},
      {leaky, "relu(0.25 0)"},
      {elu, "elu(2 0)"},
      {relu, "elu(0 0)"},  // oneDNN's relu gives 0 for a NaN
      {tanh_of, "tanh(0 0)"},
      {sigmoid, "logistic(0 0)"},
      {line, "linear(-2 3)"},
      {there_and_back, ""},
      {square, "square(0 0)"},
      {root_of_line, "linear(1 1) sqrt(0 0)"},
      {floor_of, "oneDNN has no post-op for floor"},
      {exp_of, "oneDNN's exp gives infinity for a NaN"},
      {clip, "oneDNN's min drops a NaN"},
      {erf_of, "oneDNN has no post-op for erf"},
      {nearly_gelu, "oneDNN has no post-op for erf"},
      {one_over, "oneDNN has no post-op for div"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sketch s = sketch_open();
    output(&s, cases[i].make(&s, product(&s)));
    cr_expect_str_eq(posts_of(&s), cases[i].posts, "case %zu: %s", i, posts_of(&s));
    sketch_close(&s);
  }
}

Test(codegen_onednn, a_polynomial_of_more_than_three_terms_is_no_form) {
  ft_unary x = ft_unary_x(), pair[2] = {x, x}, square_, cube, out;
  cr_assert(ft_unary_apply(FT_OP_MUL, pair, 2, &square_));
  ft_unary next[2] = {square_, x};
  cr_assert(ft_unary_apply(FT_OP_MUL, next, 2, &cube));
  cr_expect_eq(ft_unary_degree(cube.p), 3);
  ft_unary too_much[2] = {cube, x};
  cr_expect_not(ft_unary_apply(FT_OP_MUL, too_much, 2, &out));
}

// ---- tensors after the anchor ---------------------------------------------------------

Test(codegen_onednn, a_vector_added_first_is_the_bias_and_later_a_post_op) {
  sketch s = sketch_open();
  uint32_t bias = input(&s, FT_F32, SHAPE(4)), more = input(&s, FT_F32, SHAPE(6, 4));
  uint32_t y = two(&s, FT_OP_ADD, two(&s, FT_OP_ADD, product(&s), bias), more);
  output(&s, y);
  ft_workload w = finish(&s);
  const char *reason;
  ft_onednn_call c = call_of(&s, &w, &reason);
  cr_assert_null(reason, "%s", reason);
  cr_assert_eq(c.operand_count, 5);
  cr_expect_str_eq(c.operand[2].role, "DNNL_ARG_BIAS");
  cr_expect_eq(c.operand[2].dim[0], 1);
  cr_expect_eq(c.operand[2].dim[1], 4);
  cr_expect_eq(c.post_count, 1);
  cr_expect_eq(c.operand_of[0], 4);
  sketch_close(&s);
}

Test(codegen_onednn, what_is_subtracted_from_is_added_to_the_negative) {
  sketch s = sketch_open();
  output(&s, two(&s, FT_OP_SUB, input(&s, FT_F32, SHAPE(6, 4)), product(&s)));
  cr_expect_str_eq(posts_of(&s), "linear(-1 0) add");
  sketch_close(&s);
}

static const char *refusal_of(sketch *s) {
  ft_workload w = finish(s);
  const char *reason;
  call_of(s, &w, &reason);
  return reason ? reason : "taken";
}

Test(codegen_onednn, refusals_name_the_cause) {
  sketch s = sketch_open();
  output(&s, two(&s, FT_OP_MAX, product(&s), input(&s, FT_F32, SHAPE(6, 4))));
  cr_expect_str_eq(refusal_of(&s), "oneDNN's max drops a NaN");
  sketch_close(&s);
  s = sketch_open();
  output(&s, two(&s, FT_OP_DIV, input(&s, FT_F32, SHAPE(6, 4)), product(&s)));
  cr_expect_str_eq(refusal_of(&s), "oneDNN cannot divide by the result");
  sketch_close(&s);
  s = sketch_open();
  output(&s, two(&s, FT_OP_ADD, product(&s), input(&s, FT_F32, SHAPE(2, 6, 4))));
  cr_expect_str_eq(refusal_of(&s), "add widens the result");
  sketch_close(&s);
  s = sketch_open();
  uint32_t y = product(&s);
  output(&s, y);
  output(&s, one(&s, FT_OP_RELU, y));
  cr_expect_str_eq(refusal_of(&s), "oneDNN writes one output");
  sketch_close(&s);
  s = sketch_open();
  uint32_t x = one(&s, FT_OP_RELU, input(&s, FT_F32, SHAPE(6, 5)));
  output(&s, two(&s, FT_OP_MATMUL, x, input(&s, FT_F32, SHAPE(5, 4))));
  cr_expect_str_eq(refusal_of(&s), "an operand is computed by relu");
  sketch_close(&s);
  s = sketch_open();
  output(&s, two(&s, FT_OP_MATMUL, input(&s, FT_F64, SHAPE(6, 5)),
                 input(&s, FT_F64, SHAPE(5, 4))));
  cr_expect_str_eq(refusal_of(&s), "oneDNN is offered f32 alone, not f64");
  sketch_close(&s);
  s = sketch_open();
  output(&s, two(&s, FT_OP_MATMUL, input(&s, FT_F32, SHAPE(6, 0)),
                 input(&s, FT_F32, SHAPE(0, 4))));
  cr_expect_str_eq(refusal_of(&s), "oneDNN is not offered an empty tensor");
  sketch_close(&s);
  s = sketch_open();
  output(&s, two(&s, FT_OP_MATMUL, product(&s), input(&s, FT_F32, SHAPE(4, 3))));
  cr_expect_str_eq(refusal_of(&s), "matmul and matmul: oneDNN takes one of them");
  sketch_close(&s);
  s = sketch_open();
  output(&s, one(&s, FT_OP_RELU, input(&s, FT_F32, SHAPE(6, 5))));
  cr_expect(strstr(refusal_of(&s), "none is here"));
  sketch_close(&s);
}

Test(codegen_onednn, a_max_pool_and_a_logistic_after_a_convolution_are_refused) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(1, 3, 8, 8));
  ft_attr window = {
      .shape = SHAPE(1, 3, 4, 4), .window = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}};
  output(&s, apply(&s, FT_OP_WINDOW_MAX, 1, &x, &window));
  cr_expect_str_eq(refusal_of(&s), "oneDNN's max pool drops a NaN");
  sketch_close(&s);
  s = sketch_open();
  uint32_t in[] = {input(&s, FT_F32, SHAPE(1, 3, 8, 8)),
                   input(&s, FT_F32, SHAPE(2, 3, 1, 1))};
  ft_attr conv = {
      .shape = SHAPE(1, 2, 8, 8), .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
  output(&s, one(&s, FT_OP_SIGMOID, apply(&s, FT_OP_CONV, 2, in, &conv)));
  cr_expect_str_eq(refusal_of(&s), "oneDNN's logistic after this gives 0 for a NaN");
  sketch_close(&s);
}

// ---- layouts --------------------------------------------------------------------------

static bool is_operand(const ft_onednn_operand *o, int rank, const int64_t *dim,
                       const int64_t *stride) {
  return o->rank == rank && !memcmp(o->dim, dim, sizeof(int64_t) * (size_t)rank) &&
         !memcmp(o->stride, stride, sizeof(int64_t) * (size_t)rank);
}

#define IS_OPERAND(o, rank, dims, strides) \
  cr_expect(is_operand(o, rank, (int64_t[])dims, (int64_t[])strides), #dims)
#define L(...) \
  { __VA_ARGS__ }

Test(codegen_onednn, batches_that_share_the_second_operand_are_rows) {
  sketch s = sketch_open();
  output(&s, two(&s, FT_OP_MATMUL, input(&s, FT_F32, SHAPE(2, 3, 6, 5)),
                 input(&s, FT_F32, SHAPE(5, 4))));
  ft_workload w = finish(&s);
  const char *reason;
  ft_onednn_call c = call_of(&s, &w, &reason);
  cr_assert_null(reason, "%s", reason);
  IS_OPERAND(&c.operand[0], 2, L(36, 5), L(5, 1));
  IS_OPERAND(&c.operand[1], 2, L(5, 4), L(4, 1));
  IS_OPERAND(&c.operand[2], 2, L(36, 4), L(4, 1));
  sketch_close(&s);
}

// Attention: heads are split off a row of 4 x 8, and the result goes back into one.
Test(codegen_onednn, split_and_merged_heads_are_strides) {
  sketch s = sketch_open();
  static const ft_attr heads = {.perm = {0, 2, 1, 3}}, columns = {.perm = {0, 2, 3, 1}};
  uint32_t q = view(&s, input(&s, FT_F32, SHAPE(1, 6, 32)), SHAPE(1, 6, 4, 8));
  uint32_t k = view(&s, input(&s, FT_F32, SHAPE(1, 5, 32)), SHAPE(1, 5, 4, 8));
  q = apply(&s, FT_OP_TRANSPOSE, 1, &q, &heads);
  k = apply(&s, FT_OP_TRANSPOSE, 1, &k, &columns);
  uint32_t y = two(&s, FT_OP_MATMUL, q, k);
  output(&s, apply(&s, FT_OP_TRANSPOSE, 1, &y, &heads));
  ft_workload w = finish(&s);
  const char *reason;
  ft_onednn_call c = call_of(&s, &w, &reason);
  cr_assert_null(reason, "%s", reason);
  uint32_t a = w.group.graph->value[w.group.input[0]].shape.dim[1] == 6 ? 0 : 1;
  cr_expect_eq(c.operand[0].argument, a);
  IS_OPERAND(&c.operand[0], 3, L(4, 6, 8), L(8, 32, 1));
  IS_OPERAND(&c.operand[1], 3, L(4, 8, 5), L(8, 1, 32));
  IS_OPERAND(&c.operand[2], 3, L(4, 6, 5), L(5, 20, 1));
  sketch_close(&s);
}

Test(codegen_onednn, an_output_in_columns_is_the_transposed_product) {
  sketch s = sketch_open();
  output(&s, transpose(&s, product(&s)));
  ft_workload w = finish(&s);
  const char *reason;
  ft_onednn_call c = call_of(&s, &w, &reason);
  cr_assert_null(reason, "%s", reason);
  IS_OPERAND(&c.operand[0], 2, L(4, 5), L(1, 4));
  IS_OPERAND(&c.operand[1], 2, L(5, 6), L(1, 5));
  IS_OPERAND(&c.operand[2], 2, L(4, 6), L(6, 1));
  sketch_close(&s);
}

Test(codegen_onednn, a_result_split_into_heads_has_no_strides) {
  sketch s = sketch_open();
  uint32_t y = view(&s, product(&s), SHAPE(6, 2, 2));
  y = apply(&s, FT_OP_TRANSPOSE, 1, &y, &(ft_attr){.perm = {1, 0, 2}});
  output(&s, y);
  cr_expect_str_eq(refusal_of(&s), "the result viewed as 6x2x2 has no strides");
  sketch_close(&s);
}

Test(codegen_onednn, a_slice_is_an_offset) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(6, 15));
  ft_attr part = {.shape = SHAPE(6, 5), .start = {0, 5}, .step = {1, 2}};
  output(&s, two(&s, FT_OP_MATMUL, apply(&s, FT_OP_SLICE, 1, &x, &part),
                 input(&s, FT_F32, SHAPE(5, 4))));
  ft_workload w = finish(&s);
  const char *reason;
  ft_onednn_call c = call_of(&s, &w, &reason);
  cr_assert_null(reason, "%s", reason);
  cr_expect_eq(c.operand[0].offset, 5);
  IS_OPERAND(&c.operand[0], 2, L(6, 5), L(15, 2));
  sketch_close(&s);
}

Test(codegen_onednn, strides_of_a_view_are_those_of_a_reshape_without_a_copy) {
  ft_shape shape = SHAPE(2, 3, 4), flat = SHAPE(6, 4), cut = SHAPE(2, 12);
  ft_strided s = ft_strided_whole(0, &shape);
  cr_expect(ft_strided_view(&s, &flat));
  cr_expect_eq(s.stride[0], 4);
  s = ft_strided_whole(0, &shape);
  ft_strided_permute(&s, (uint8_t[]){1, 0, 2});
  cr_expect_not(ft_strided_view(&s, &flat), "rows that do not follow each other");
  s = ft_strided_whole(0, &shape);
  s.stride[0] = 100;  // rows apart
  cr_expect(ft_strided_view(&s, &cut));
  cr_expect_eq(s.stride[0], 100);
  cr_expect_eq(s.stride[1], 1);
}

Test(codegen_onednn, windows_have_paddings_and_groups) {
  sketch s = sketch_open();
  uint32_t in[] = {input(&s, FT_F32, SHAPE(2, 6, 9, 9)),
                   input(&s, FT_F32, SHAPE(4, 3, 3, 3))};
  ft_attr attr = {.shape = SHAPE(2, 4, 5, 4),
                  .start = {1, 0},
                  .stride = {2, 2},
                  .dilation = {1, 1},
                  .groups = 2};
  uint32_t y = apply(&s, FT_OP_CONV, 2, in, &attr);
  output(&s, two(&s, FT_OP_ADD, y, input(&s, FT_F32, SHAPE(1, 4, 1, 1))));
  ft_workload w = finish(&s);
  const char *reason;
  ft_onednn_call c = call_of(&s, &w, &reason);
  cr_assert_null(reason, "%s", reason);
  IS_OPERAND(&c.operand[1], 5, L(2, 2, 3, 3, 3), L(54, 27, 9, 3, 1));
  cr_expect_str_eq(c.operand[2].role, "DNNL_ARG_BIAS");
  cr_expect_eq(c.post_count, 0);
  cr_expect_eq(c.before[0], 1);
  cr_expect_eq(c.after[0], 1);
  cr_expect_eq(c.before[1], 0);
  cr_expect_eq(c.after[1], 0);
  sketch_close(&s);
}

Test(codegen_onednn, a_mean_of_windows_needs_no_factor) {
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(1, 3, 9, 9));
  ft_attr window = {
      .shape = SHAPE(1, 3, 3, 3), .window = {3, 3}, .stride = {3, 3}, .dilation = {1, 1}};
  uint32_t sum = apply(&s, FT_OP_WINDOW_SUM, 1, &x, &window);
  output(&s, two(&s, FT_OP_MUL, sum, number(&s, 1.0 / 9)));
  cr_expect_str_eq(posts_of(&s), "");
  sketch_close(&s);
}

// ---- the tactic -----------------------------------------------------------------------

typedef struct builder {
  ft_arena *arena;
  ft_target target;
  const char *folder;
  ft_codegen *codegen;
  ft_builder table;
} builder;

static void builder_open(builder *b, const char *libraries) {
  *b = (builder){.arena = ft_arena_create(ft_allocator_system())};
  b->target = test_target(b->arena);
  b->target.libraries = libraries;
  b->folder = cache_make(b->arena);
  ft_codegen_options options = {.cache_folder = b->folder, .jobs = 1};
  ft_error error;
  cr_assert_eq(
      ft_codegen_create(&options, &b->target, ft_allocator_system(), &b->codegen, &error),
      FT_OK, "%s", error.text);
  b->table = ft_codegen_builder(b->codegen);
}

static void builder_close(builder *b) {
  ft_codegen_destroy(b->codegen);
  cache_remove(b->folder, b->arena);
  ft_arena_destroy(b->arena);
}

static bool is_offered(builder *b, const ft_workload *w) {
  const char *names[8], *reason;
  uint32_t count = b->table.match(b->table.self, w, b->arena, names, 8, &reason);
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(names[i], "onednn")) return true;
  return false;
}

Test(codegen_onednn, without_the_library_nothing_is_offered_and_the_rest_works) {
  static const char *const without[] = {"", "onednnx-1", "mkl-1 xonednn"};
  sketch s = sketch_open();
  output(&s, product(&s));
  ft_workload w = finish(&s);
  for (int i = 0; i < 3; i++) {
    builder b;
    builder_open(&b, without[i]);
    cr_expect_not(is_offered(&b, &w), "%s", without[i]);
    ft_candidate c = {.workload = &w, .target = &b.target, .tactic = "onednn"};
    cr_expect_str_eq(b.table.check(b.table.self, &c, b.arena), "no tactic onednn");
    const char *names[8], *reason;
    cr_expect_gt(b.table.match(b.table.self, &w, b.arena, names, 8, &reason), 0);
    builder_close(&b);
  }
  sketch_close(&s);
}

static ft_schedule *space_of(builder *b, const ft_workload *w, uint32_t *count) {
  ft_schedule *list;
  ft_error error;
  cr_assert_eq(b->table.space(b->table.self, w, "onednn", &b->target, b->arena, &list,
                              count, &error),
               FT_OK, "%s", error.text);
  return list;
}

Test(codegen_onednn, the_space_has_threads_and_layouts_and_check_agrees) {
  sketch s = sketch_open();
  output(&s, product(&s));
  ft_workload w = finish(&s);
  builder b;
  builder_open(&b, "onednn-2.6.3");
  cr_assert(is_offered(&b, &w));
  uint32_t count;
  ft_schedule *list = space_of(&b, &w, &count);
  cr_assert_eq(count, 3);
  for (uint32_t i = 0; i < count; i++) {
    ft_candidate c = {&w, &b.target, "onednn", list[i]};
    cr_expect_null(b.table.check(b.table.self, &c, b.arena));
  }
  ft_schedule bad = {0};
  ft_schedule_set_text(&bad, "compiler", b.target.compiler[0].name);
  ft_schedule_set_text(&bad, "layout", "loose");
  ft_schedule_set(&bad, "threads", 1);
  ft_candidate c = {&w, &b.target, "onednn", bad};
  cr_expect_str_eq(b.table.check(b.table.self, &c, b.arena),
                   "layout is not plain or packed");
  builder_close(&b);
  sketch_close(&s);
}

static const char *source_of(builder *b, sketch *s, uint32_t at) {
  ft_workload *w = FT_NEW(s->arena, ft_workload);
  uint32_t bias = input(s, FT_F32, SHAPE(4));
  output(s, gelu_erf(s, two(s, FT_OP_ADD, product(s), bias)));
  *w = finish(s);
  uint32_t count;
  ft_candidate c = {w, &b->target, "onednn", space_of(b, w, &count)[at]};
  const char *source;
  ft_hash hash;
  ft_error error;
  cr_assert_eq(b->table.emit(b->table.self, &c, b->arena, &source, &hash, &error), FT_OK,
               "%s", error.text);
  return source;
}

Test(codegen_onednn, equal_candidates_give_equal_text_that_names_all_it_does) {
  builder b;
  builder_open(&b, "onednn-2.6.3");
  sketch s = sketch_open(), again = sketch_open();
  const char *text = source_of(&b, &s, 0);
  cr_expect_str_eq(text, source_of(&b, &again, 0));
  sketch other = sketch_open();
  cr_expect_str_neq(text, source_of(&b, &other, 1));
  static const char *const parts[] = {"#include <dnnl.h>",
                                      "{DNNL_ARG_SRC, ",
                                      ", {6, 5}, {5, 1}},",
                                      "{DNNL_ARG_BIAS, ",
                                      ", {1, 4}, {4, 1}},",
                                      ".kind = dnnl_matmul,",
                                      "{dnnl_eltwise_gelu_erf, 0, 0, -1},",
                                      ".threads = 1,",
                                      ".packed = 0,",
                                      "dnnl_fpmath_mode_strict"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    cr_expect(strstr(text, parts[i]), "%s", parts[i]);
  sketch_close(&s);
  sketch_close(&again);
  sketch_close(&other);
  builder_close(&b);
}

Test(codegen_onednn, what_is_found_here_has_a_version_or_a_reason) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_target target = test_target(arena);
  const char *found, *reason;
  ft_error error;
  cr_assert_eq(ft_libraries_find(&target.compiler[0], arena, &found, &reason, &error),
               FT_OK, "%s", error.text);
  cr_expect_eq(*found == '\0', *reason != '\0');
  if (*found) cr_expect_eq(strncmp(found, "onednn-2.", 9), 0, "%s", found);
  setenv("FUSETUNE_LIBRARIES", "none", 1);
  cr_assert_eq(ft_libraries_find(&target.compiler[0], arena, &found, &reason, &error),
               FT_OK);
  cr_expect_str_eq(found, "");
  cr_expect_str_eq(reason, "FUSETUNE_LIBRARIES is none");
  ft_arena_destroy(arena);
}
