// Groups and schedules for the tests of kernels with threads.
#ifndef FT_TESTS_CODEGEN_SIMT_DRAWINGS_H
#define FT_TESTS_CODEGEN_SIMT_DRAWINGS_H

#include "codegen/simt_blocks.h"
#include "codegen/simt_loop.h"
#include "codegen/simt_nest.h"
#include "graphs.h"
#include "simming.h"
#include "simt_conv_drawings.h"
#include "simt_hands.h"
#include "simt_products.h"
#include "simt_turns.h"

static const ft_simt_choice choices[] = {
    {.threads = 32, .vector = 1, .unroll = 1},
    {.threads = 128, .vector = 4, .unroll = 1},
    {.threads = 64, .vector = 2, .unroll = 4},
    {.threads = 128, .vector = 1, .unroll = 2, .blocks = 3},
    {.threads = 256, .vector = 4, .unroll = 1, .streams = true},
    {.threads = 32, .vector = 1, .unroll = 1, .row_threads = 32},
    {.threads = 128, .vector = 4, .unroll = 1, .row_threads = 32},
    {.threads = 128, .vector = 1, .unroll = 1, .row_threads = 128},
    {.threads = 256, .vector = 2, .unroll = 1, .row_threads = 64},
    {.threads = 64, .vector = 1, .unroll = 1, .row_threads = 8},
    {.threads = 1024, .vector = 1, .unroll = 1, .row_threads = 1024},
    // rows in registers and in shared memory, several accumulators
    {.threads = 128,
     .vector = 4,
     .unroll = 1,
     .row_threads = 32,
     .buffer = FT_SIMT_REGISTERS},
    {.threads = 256,
     .vector = 1,
     .unroll = 2,
     .row_threads = 128,
     .buffer = FT_SIMT_REGISTERS,
     .streams = true,
     .loads_once = true},
    {.threads = 128,
     .vector = 1,
     .unroll = 1,
     .row_threads = 64,
     .buffer = FT_SIMT_SHARED},
    {.threads = 64, .vector = 2, .unroll = 4, .row_threads = 16},
    // split rows
    {.threads = 128, .vector = 1, .unroll = 1, .row_threads = 64, .splits = 3},
    {.threads = 128, .vector = 2, .unroll = 2, .row_threads = 32, .splits = 5},
    // columns
    {.threads = 128, .vector = 1, .unroll = 1, .column_threads = 4},
    {.threads = 64, .vector = 4, .unroll = 2, .column_threads = 8, .loads_once = true},
    {.threads = 256,
     .vector = 1,
     .unroll = 1,
     .column_threads = 16,
     .buffer = FT_SIMT_REGISTERS},
    {.threads = 64,
     .vector = 2,
     .unroll = 3,
     .column_threads = 2,
     .buffer = FT_SIMT_SHARED},
    {.threads = 64, .vector = 2, .unroll = 1, .column_threads = 4, .splits = 4},
    {.threads = 32, .vector = 1, .unroll = 2, .column_threads = 1, .splits = 2},
    {.threads = 64, .vector = 8, .unroll = 2},
    {.threads = 64, .vector = 8, .unroll = 1, .row_threads = 32, .streams = true},
};
static const ft_simt_loop_choice loop_choices[] = {
    {.threads = 32, .tile = 1}, {.threads = 128, .tile = 4}, {.threads = 256, .tile = 8}};
// For what falls apart: each part as it is usually done in blocks of that size.
static const struct {
  uint32_t threads;
  ft_kir_order order;
  uint32_t splits;  // of rows, where they have any
} blocks_choices[] = {{64, FT_KIR_CONCAT, 0},
                      {64, FT_KIR_INTERLEAVE, 0},
                      {256, FT_KIR_CONCAT, 0},
                      {32, FT_KIR_INTERLEAVE, 0},
                      {128, FT_KIR_CONCAT, 3}};
enum {
  BLOCKS_CHOICES = sizeof blocks_choices / sizeof *blocks_choices,
  NESTS = sizeof choices / sizeof *choices,
  LOOPS = sizeof loop_choices / sizeof *loop_choices,
  TURNS = sizeof turn_choices / sizeof *turn_choices,
  CONVS = sizeof conv_choices / sizeof *conv_choices,
  WINDOWS = sizeof window_choices / sizeof *window_choices,
  FIRST_SKINNIES = NESTS + LOOPS + GEMMS,
  FIRST_TURNS = FIRST_SKINNIES + SKINNIES,
  FIRST_CONVS = FIRST_TURNS + TURNS,
  FIRST_WINDOWS = FIRST_CONVS + CONVS,
  FIRST_BLOCKS = FIRST_WINDOWS + WINDOWS,
  CHOICES = FIRST_BLOCKS + BLOCKS_CHOICES,
  BY_HAND = 1000,  // and from here on: hands[choice - BY_HAND]
};

typedef void sketcher(sketch *s);

static void draw_chain(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(5, 64)), b = input(s, FT_F32, SHAPE(64));
  uint32_t y = one(s, FT_OP_TANH, two(s, FT_OP_ADD, x, b));
  output(s, two(s, FT_OP_MUL, one(s, FT_OP_EXP, y), one(s, FT_OP_SIGMOID, x)));
  output(s, one(s, FT_OP_ERF, y));
}
static void draw_odd_chain(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(7, 131)), b = input(s, FT_F32, SHAPE(7, 1));
  output(s, two(s, FT_OP_DIV, one(s, FT_OP_RELU, x), b));
}
static void draw_transpose(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(12, 20)), y = input(s, FT_F32, SHAPE(20, 12));
  output(s, two(s, FT_OP_SUB, transpose(s, x), y));
}
static void draw_integers(sketch *s) {
  uint32_t x = input(s, FT_I32, SHAPE(9, 16)), y = input(s, FT_I32, SHAPE(9, 16));
  output(s, two(s, FT_OP_DIV, x, y));
  output(s, two(s, FT_OP_LESS, x, y));
  output(s, reduce(s, FT_OP_REDUCE_SUM, x, 2));
  output(s, reduce(s, FT_OP_REDUCE_MAX, y, 2));
}
static void draw_softmax(sketch *s) {
  output(s, softmax(s, input(s, FT_F32, SHAPE(6, 200)), 1));
}
static void draw_softmax_columns(sketch *s) {
  output(s, softmax(s, input(s, FT_F32, SHAPE(37, 24)), 0));
}
static void draw_layer_norm(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(33, 64)), r = input(s, FT_F32, SHAPE(33, 64));
  uint32_t sum = two(s, FT_OP_ADD, x, r);
  output(s, sum);
  output(s, layer_norm(s, sum, input(s, FT_F32, SHAPE(64)), 1));
}
static void draw_all(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(13, 77));
  output(s, reduce(s, FT_OP_REDUCE_SUM, one(s, FT_OP_ABS, x), 3));
  output(s, reduce(s, FT_OP_REDUCE_MIN, x, 3));
}
static void draw_long_row(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 5000));
  output(s, two(s, FT_OP_SUB, x, reduce(s, FT_OP_REDUCE_MAX, x, 2)));
}
static void draw_middle(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(4, 10, 12));
  output(s, reduce(s, FT_OP_REDUCE_SUM, x, 2));
  output(s, reduce(s, FT_OP_REDUCE_PROD, x, 2));
}
static void draw_double(sketch *s) {
  uint32_t x = input(s, FT_F64, SHAPE(8, 66));
  output(s, two(s, FT_OP_MUL, x, reduce(s, FT_OP_REDUCE_SUM, x, 2)));
}

static uint32_t mixture(sketch *s, uint32_t x, uint32_t axis) {
  uint32_t d = two(s, FT_OP_SUB, x, reduce(s, FT_OP_REDUCE_SUM, x, 1u << axis));
  return two(s, FT_OP_DIV, d, reduce(s, FT_OP_REDUCE_SUM, d, 1u << axis));
}
static void draw_mixture(sketch *s) {
  output(s, mixture(s, input(s, FT_F32, SHAPE(10, 300)), 1));
}
static void draw_mixture_columns(sketch *s) {
  output(s, mixture(s, input(s, FT_F32, SHAPE(37, 40)), 0));
}
static void draw_convolution(sketch *s) {
  uint32_t in[2] = {input(s, FT_F32, SHAPE(2, 6, 19, 23)),
                    input(s, FT_F32, SHAPE(9, 2, 3, 2))};
  ft_attr attr = {.shape = SHAPE(2, 9, 10, 26),
                  .groups = 3,
                  .start = {1, 4},
                  .stride = {2, 1},
                  .dilation = {1, 3}};
  output(s, one(s, FT_OP_RELU, apply(s, FT_OP_CONV, 2, in, &attr)));
}
static void draw_pool(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, 3, 8, 8));
  ft_attr attr = {.shape = SHAPE(1, 3, 4, 4),
                  .window = {3, 2},
                  .stride = {2, 2},
                  .dilation = {1, 1},
                  .start = {1, 0}};
  output(s, apply(s, FT_OP_WINDOW_MAX, 1, &x, &attr));
}

static void draw_tailed_norm(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(7, 364)), r = input(s, FT_F32, SHAPE(7, 364));
  uint32_t sum = two(s, FT_OP_ADD, x, r);
  output(s, sum);
  output(s, layer_norm(s, sum, input(s, FT_F32, SHAPE(364)), 1));
}
static void draw_tailed_mixture(sketch *s) {
  output(s, mixture(s, input(s, FT_F32, SHAPE(5, 300)), 1));
}
static void draw_few_long_rows(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(7, 402)), y = input(s, FT_F32, SHAPE(7, 402));
  uint32_t sum = reduce(s, FT_OP_REDUCE_SUM, two(s, FT_OP_MUL, x, y), 2);
  output(s, two(s, FT_OP_SUB, sum, reduce(s, FT_OP_REDUCE_SUM, x, 2)));
  output(s, one(s, FT_OP_NEG, sum));
}
static void draw_huge_row(sketch *s) {
  output(s, reduce(s, FT_OP_REDUCE_SUM, input(s, FT_F32, SHAPE(70002)), 1));
}
static void draw_tall_columns(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(131, 44)), w = input(s, FT_F32, SHAPE(131, 1));
  uint32_t sum = reduce(s, FT_OP_REDUCE_SUM, two(s, FT_OP_MUL, x, w), 1);
  output(s, two(s, FT_OP_SUB, sum, reduce(s, FT_OP_REDUCE_SUM, x, 1)));
}
static void draw_uneven_columns(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 50, 37));
  output(s, reduce(s, FT_OP_REDUCE_PROD, x, 2));
  output(s, reduce(s, FT_OP_REDUCE_SUM, x, 2));
}
static void draw_empty_sum(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(6, 0)), y = input(s, FT_F32, SHAPE(6, 40));
  output(s, two(s, FT_OP_ADD, y, reduce(s, FT_OP_REDUCE_SUM, x, 2)));
  output(s, reduce(s, FT_OP_REDUCE_SUM, y, 2));
}
static uint32_t spread(sketch *s, uint32_t x, ft_shape to) {
  return apply(s, FT_OP_BROADCAST, 1, &x, &(ft_attr){.shape = to});
}
// Of what is the same along the row: the lanes of a vector share it, and each counts.
static void draw_equal_terms(sketch *s) {
  ft_shape rows = SHAPE(6, 120);
  uint32_t x = input(s, FT_F32, rows), w = input(s, FT_F32, SHAPE(6, 1));
  uint32_t least = reduce(s, FT_OP_REDUCE_MIN, x, 2);
  output(s, reduce(s, FT_OP_REDUCE_SUM, spread(s, w, rows), 2));
  output(s, reduce(s, FT_OP_REDUCE_PROD, spread(s, one(s, FT_OP_COS, w), rows), 2));
  output(s, reduce(s, FT_OP_REDUCE_MAX, spread(s, w, rows), 2));
  uint32_t equal = spread(s, one(s, FT_OP_SIGMOID, least), rows);
  output(s, spread(s, reduce(s, FT_OP_REDUCE_SUM, equal, 2), rows));
}
// The same along the last of two reduced axes, in one level: splits take it.
static void draw_equal_planes(sketch *s) {
  ft_shape all = SHAPE(5, 9, 40);
  uint32_t x = input(s, FT_F32, all), w = input(s, FT_F32, SHAPE(5, 9, 1));
  output(s, reduce(s, FT_OP_REDUCE_SUM, spread(s, one(s, FT_OP_ABS, w), all), 6));
  output(s, reduce(s, FT_OP_REDUCE_SUM, x, 6));
}
static void draw_equal_integers(sketch *s) {
  ft_shape rows = SHAPE(7, 64);
  uint32_t i = input(s, FT_I32, SHAPE(7, 1)), b = input(s, FT_BF16, SHAPE(7, 1));
  uint32_t x = input(s, FT_I32, rows);
  output(s, reduce(s, FT_OP_REDUCE_SUM, spread(s, i, rows), 2));
  output(s, reduce(s, FT_OP_REDUCE_SUM, spread(s, b, rows), 2));
  output(s, reduce(s, FT_OP_REDUCE_SUM, x, 2));
}

// ---- parts that do not need each other

static void draw_strangers(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(21, 33)), y = input(s, FT_F32, SHAPE(83, 40));
  output(s, two(s, FT_OP_MUL, one(s, FT_OP_TANH, x), x));
  output(s, two(s, FT_OP_SUB, y, reduce(s, FT_OP_REDUCE_SUM, y, 2)));
}
// One in batches: the number of a block matters, not only what it leaves of a division.
static void draw_two_products(sketch *s) {
  output(s, two(s, FT_OP_MATMUL, input(s, FT_F32, SHAPE(2, 37, 24)),
                input(s, FT_F32, SHAPE(24, 38))));
  uint32_t y = two(s, FT_OP_MATMUL, input(s, FT_F32, SHAPE(66, 19)),
                   input(s, FT_F32, SHAPE(19, 40)));
  output(s, one(s, FT_OP_RELU, y));
}
static void draw_three_kinds(sketch *s) {
  draw_product(s);
  draw_softmax(s);
  draw_pool(s);
}
static void draw_shared_input(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(40, 52));
  output(s, two(s, FT_OP_SUB, one(s, FT_OP_EXP, x), x));
  output(s, reduce(s, FT_OP_REDUCE_SUM, x, 2));
  output(s, two(s, FT_OP_DIV, transpose(s, x), input(s, FT_F32, SHAPE(52, 40))));
}
static void draw_two_sums(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(5, 700)), y = input(s, FT_F32, SHAPE(9, 520));
  output(s, reduce(s, FT_OP_REDUCE_SUM, one(s, FT_OP_NEG, x), 2));
  output(s, reduce(s, FT_OP_REDUCE_SUM, y, 2));
  output(s, one(s, FT_OP_RELU, input(s, FT_F32, SHAPE(11, 23))));
}
static void draw_partly_empty(sketch *s) {
  output(s, one(s, FT_OP_EXP, input(s, FT_F32, SHAPE(0, 8))));
  draw_odd_chain(s);
}

// Short floats: in memory only.
static void draw_half_chain(sketch *s) {
  uint32_t x = input(s, FT_F16, SHAPE(5, 64)), b = input(s, FT_F16, SHAPE(64));
  uint32_t y = one(s, FT_OP_TANH, two(s, FT_OP_ADD, x, b));
  output(s, two(s, FT_OP_MUL, one(s, FT_OP_EXP, y), one(s, FT_OP_SIGMOID, x)));
  output(s, two(s, FT_OP_LESS, y, x));
}
static void draw_bfloat_chain(sketch *s) {
  uint32_t x = input(s, FT_BF16, SHAPE(7, 131)), b = input(s, FT_BF16, SHAPE(7, 1));
  output(s, two(s, FT_OP_DIV, one(s, FT_OP_RELU, x), b));
}
static uint32_t cast(sketch *s, uint32_t x, ft_dtype to) {
  return apply(s, FT_OP_CAST, 1, &x, &(ft_attr){.to = to});
}
static void draw_casts(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(3, 40)), h = input(s, FT_F16, SHAPE(3, 40)),
           b = input(s, FT_BF16, SHAPE(40));
  uint32_t i = input(s, FT_I32, SHAPE(3, 40)), d = input(s, FT_F64, SHAPE(3, 40));
  output(s, two(s, FT_OP_ADD, cast(s, x, FT_F16), h));
  output(s, two(s, FT_OP_MUL, cast(s, h, FT_F32), cast(s, cast(s, x, FT_BF16), FT_F32)));
  output(s, two(s, FT_OP_ADD, cast(s, h, FT_BF16), b));
  output(s, cast(s, two(s, FT_OP_MUL, h, scalar(s, FT_F16, 100)), FT_I32));
  output(s, cast(s, i, FT_F16));
  output(s, cast(s, two(s, FT_OP_LESS, h, cast(s, d, FT_F16)), FT_BF16));
}
static void draw_half_transpose(sketch *s) {
  uint32_t x = input(s, FT_F16, SHAPE(12, 24)), y = input(s, FT_F16, SHAPE(24, 12));
  output(s, two(s, FT_OP_SUB, transpose(s, x), y));
}
static void draw_half_softmax(sketch *s) {
  output(s, softmax(s, input(s, FT_F16, SHAPE(6, 200)), 1));
  output(s, reduce(s, FT_OP_REDUCE_PROD, input(s, FT_BF16, SHAPE(6, 200)), 2));
}
static void draw_bfloat_layer_norm(sketch *s) {
  uint32_t x = input(s, FT_BF16, SHAPE(33, 64)), r = input(s, FT_BF16, SHAPE(33, 64));
  uint32_t sum = two(s, FT_OP_ADD, x, r);
  output(s, sum);
  output(s, layer_norm(s, sum, input(s, FT_BF16, SHAPE(64)), 1));
}
static void draw_half_product(sketch *s) {
  uint32_t a = input(s, FT_F16, SHAPE(3, 12, 33)), b = input(s, FT_F16, SHAPE(33, 20));
  uint32_t y = two(s, FT_OP_MATMUL, a, b);
  output(s, one(s, FT_OP_RELU, two(s, FT_OP_ADD, y, input(s, FT_F16, SHAPE(20)))));
}
static void draw_bfloat_product(sketch *s) {
  uint32_t a = input(s, FT_BF16, SHAPE(64, 32)), b = input(s, FT_BF16, SHAPE(64, 32));
  uint32_t y = two(s, FT_OP_MATMUL, one(s, FT_OP_NEG, a), transpose(s, b));
  output(s, cast(s, y, FT_F32));
}
static void draw_half_convolution(sketch *s) {
  uint32_t in[2] = {input(s, FT_F16, SHAPE(2, 6, 19, 23)),
                    input(s, FT_F16, SHAPE(9, 2, 3, 2))};
  ft_attr attr = {.shape = SHAPE(2, 9, 10, 26),
                  .groups = 3,
                  .start = {1, 4},
                  .stride = {2, 1},
                  .dilation = {1, 3}};
  output(s, one(s, FT_OP_RELU, apply(s, FT_OP_CONV, 2, in, &attr)));
}

static const struct {
  const char *name;
  sketcher *draw;
} drawings[] = {
    {"chain", draw_chain},
    {"odd chain", draw_odd_chain},
    {"transpose", draw_transpose},
    {"integers", draw_integers},
    {"softmax", draw_softmax},
    {"softmax of columns", draw_softmax_columns},
    {"layer norm", draw_layer_norm},
    {"all", draw_all},
    {"long row", draw_long_row},
    {"middle", draw_middle},
    {"double", draw_double},
    {"product", draw_product},
    {"even product", draw_even_product},
    {"long product", draw_long_product},
    {"turned product", draw_turned_product},
    {"outer products", draw_outer_products},
    {"double product", draw_double_product},
    {"few rows", draw_few_rows},
    {"one row", draw_one_row},
    {"few columns", draw_few_columns},
    {"turned columns", draw_turned_columns},
    {"heads", draw_heads},
    {"mixture", draw_mixture},
    {"mixture of columns", draw_mixture_columns},
    {"convolution", draw_convolution},
    {"pool", draw_pool},
    {"strangers", draw_strangers},
    {"two products", draw_two_products},
    {"three kinds", draw_three_kinds},
    {"shared input", draw_shared_input},
    {"two sums", draw_two_sums},
    {"partly empty", draw_partly_empty},
    {"tailed norm", draw_tailed_norm},
    {"tailed mixture", draw_tailed_mixture},
    {"few long rows", draw_few_long_rows},
    {"huge row", draw_huge_row},
    {"tall columns", draw_tall_columns},
    {"uneven columns", draw_uneven_columns},
    {"empty sum", draw_empty_sum},
    {"f16 chain", draw_half_chain},
    {"odd bf16 chain", draw_bfloat_chain},
    {"casts of short floats", draw_casts},
    {"f16 transpose", draw_half_transpose},
    {"f16 softmax", draw_half_softmax},
    {"bf16 layer norm", draw_bfloat_layer_norm},
    {"f16 product", draw_half_product},
    {"bf16 product", draw_bfloat_product},
    {"f16 convolution", draw_half_convolution},
    {"split sum", draw_split_sum},
    {"held rows", draw_held_rows},
    {"turned sum", draw_turned_sum},
    {"odd turn", draw_odd_turn},
    {"kept heads", draw_kept_heads},
    {"channels last", draw_channels_last},
    {"channels first", draw_channels_first},
    {"two layouts", draw_two_layouts},
    {"two steps", draw_two_steps},
    {"turned dtypes", draw_turned_dtypes},
    {"conv block", draw_conv_block},
    {"conv strided", draw_conv_strided},
    {"conv pointwise", draw_conv_pointwise},
    {"conv even", draw_conv_even},
    {"conv stem", draw_conv_stem},
    {"conv line", draw_conv_line},
    {"conv volume", draw_conv_volume},
    {"conv double", draw_conv_double},
    {"pool max", draw_pool_max},
    {"pool global", draw_pool_global},
    {"pool sum", draw_pool_sum},
    {"pool line", draw_pool_line},
    {"depthwise", draw_depthwise},
    {"depthwise strided", draw_depthwise_strided},
    {"depthwise line", draw_depthwise_line},
    {"staged sum", draw_staged_sum},
    {"turned rows", draw_turned_rows},
    {"equal terms", draw_equal_terms},
    {"equal planes", draw_equal_planes},
    {"equal integers", draw_equal_integers},
};
enum { DRAWINGS = sizeof drawings / sizeof *drawings };

typedef struct bench {
  sketch sketch[DRAWINGS];
  ft_workload workload[DRAWINGS];
  ft_group_ir *ir[DRAWINGS];
} bench;

static inline void open_bench(bench *b) {
  for (uint32_t d = 0; d < DRAWINGS; d++) {
    const char *reason;
    ft_error error;
    b->sketch[d] = sketch_open();
    drawings[d].draw(&b->sketch[d]);
    b->workload[d] = finish(&b->sketch[d]);
    cr_assert_eq(
        ft_group_ir_make(&b->workload[d], b->sketch[d].arena, &b->ir[d], &reason, &error),
        FT_OK, "%s", error.text);
    (void)reason;
  }
}

static inline void close_bench(bench *b) {
  for (uint32_t d = 0; d < DRAWINGS; d++) sketch_close(&b->sketch[d]);
}

static inline ft_kir *build_loop(const bench *b, uint32_t d, uint32_t c) {
  ft_arena *arena = b->sketch[d].arena;
  ft_kir *kir;
  ft_error error;
  if (ft_simt_loop_refusal(&b->workload[d], &loop_choices[c], arena)) return NULL;
  cr_assert_eq(ft_simt_loop_build(&b->workload[d], &loop_choices[c], arena, &kir, &error),
               FT_OK, "%s, loop %u: %s", drawings[d].name, c, error.text);
  return kir;
}

static inline ft_kir *build_gemm(const bench *b, uint32_t d, uint32_t c) {
  ft_arena *arena = b->sketch[d].arena;
  ft_kir *kir;
  ft_error error;
  if (ft_simt_gemm_refusal(&b->workload[d], &gemm_choices[c], arena)) return NULL;
  cr_assert_eq(ft_simt_gemm_build(&b->workload[d], &gemm_choices[c], arena, &kir, &error),
               FT_OK, "%s, gemm %u: %s", drawings[d].name, c, error.text);
  return kir;
}

static inline ft_kir *build_turn(const bench *b, uint32_t d, uint32_t c) {
  ft_arena *arena = b->sketch[d].arena;
  ft_kir *kir;
  ft_error error;
  if (!b->ir[d] || ft_simt_turn_refusal(b->ir[d], &turn_choices[c], arena)) return NULL;
  cr_assert_eq(ft_simt_turn_build(b->ir[d], &turn_choices[c], arena, &kir, &error), FT_OK,
               "%s, turn %u: %s", drawings[d].name, c, error.text);
  return kir;
}

static inline ft_kir *build_skinny(const bench *b, uint32_t d, uint32_t c) {
  ft_arena *arena = b->sketch[d].arena;
  ft_kir *kir;
  ft_error error;
  if (ft_simt_skinny_refusal(&b->workload[d], &skinny_choices[c], arena)) return NULL;
  cr_assert_eq(
      ft_simt_skinny_build(&b->workload[d], &skinny_choices[c], arena, &kir, &error),
      FT_OK, "%s, skinny %u: %s", drawings[d].name, c, error.text);
  return kir;
}

static inline ft_kir *build_conv(const bench *b, uint32_t d, uint32_t c) {
  ft_arena *arena = b->sketch[d].arena;
  ft_kir *kir;
  ft_error error;
  if (ft_simt_conv_refusal(&b->workload[d], &conv_choices[c], arena)) return NULL;
  cr_assert_eq(ft_simt_conv_build(&b->workload[d], &conv_choices[c], arena, &kir, &error),
               FT_OK, "%s, conv %u: %s", drawings[d].name, c, error.text);
  return kir;
}

static inline ft_kir *build_window(const bench *b, uint32_t d, uint32_t c) {
  ft_arena *arena = b->sketch[d].arena;
  ft_kir *kir;
  ft_error error;
  if (ft_simt_window_refusal(&b->workload[d], &window_choices[c], arena)) return NULL;
  cr_assert_eq(
      ft_simt_window_build(&b->workload[d], &window_choices[c], arena, &kir, &error),
      FT_OK, "%s, window %u: %s", drawings[d].name, c, error.text);
  return kir;
}

static inline ft_kir *build_nest(const bench *b, uint32_t d, uint32_t c) {
  ft_arena *arena = b->sketch[d].arena;
  ft_kir *kir;
  ft_error error;
  if (!b->ir[d] || b->ir[d]->refusal) return NULL;
  if (ft_simt_nest_refusal(b->ir[d], &choices[c], arena)) return NULL;
  cr_assert_eq(ft_simt_nest_build(b->ir[d], &choices[c], arena, &kir, &error), FT_OK,
               "%s, choice %u: %s", drawings[d].name, c, error.text);
  return kir;
}

// Knobs of each part; false: no usual choice.
static inline bool choose_blocks(const ft_workload *w, uint32_t c, ft_arena *arena,
                                 ft_simt_blocks_choice *out) {
  if (ft_simt_blocks_choose(w, blocks_choices[c].threads, blocks_choices[c].order, arena,
                            out))
    return false;
  for (uint32_t i = 0; i < out->count && blocks_choices[c].splits; i++) {
    ft_simt_blocks_choice split = *out;
    if (out->part[i].skeleton != FT_SIMT_NEST) continue;
    split.part[i].nest.splits = blocks_choices[c].splits;
    if (!ft_simt_blocks_refusal(w, &split, arena)) *out = split;
  }
  return !ft_simt_blocks_refusal(w, out, arena);
}

static inline ft_kir *build_blocks(const bench *b, uint32_t d, uint32_t c) {
  ft_arena *arena = b->sketch[d].arena;
  ft_simt_blocks_choice choice;
  ft_kir *kir;
  ft_error error;
  if (!choose_blocks(&b->workload[d], c, arena, &choice)) return NULL;
  cr_assert_eq(ft_simt_blocks_build(&b->workload[d], &choice, arena, &kir, &error), FT_OK,
               "%s, blocks %u: %s", drawings[d].name, c, error.text);
  return kir;
}

static inline ft_kir *build_hand(const bench *b, uint32_t d, uint32_t c) {
  if (c >= HANDS || strcmp(hands[c].drawing, drawings[d].name)) return NULL;
  return hands[c].build(b->sketch[d].arena);
}

// Choices by number: kinds one after the other.
static const struct {
  const char *name;
  uint32_t first;
  ft_kir *(*build)(const bench *b, uint32_t d, uint32_t c);
} kinds[] = {
    {"nest", 0, build_nest},
    {"loop", NESTS, build_loop},
    {"gemm", NESTS + LOOPS, build_gemm},
    {"skinny", FIRST_SKINNIES, build_skinny},
    {"turn", FIRST_TURNS, build_turn},
    {"conv", FIRST_CONVS, build_conv},
    {"window", FIRST_WINDOWS, build_window},
    {"blocks", FIRST_BLOCKS, build_blocks},
    {"by hand", BY_HAND, build_hand},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

// NULL: the choice does not fit the drawing.
static inline ft_kir *build_one(const bench *b, uint32_t d, uint32_t c,
                                const char **label) {
  uint32_t k = KINDS - 1;
  while (c < kinds[k].first) k--;
  c -= kinds[k].first;
  // "softmax, nest 3"
  *label = ft_arena_printf(b->sketch[d].arena, "%s, %s %u", drawings[d].name,
                           kinds[k].name, c);
  return kinds[k].build(b, d, c);
}

#endif
