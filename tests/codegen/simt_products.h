// Products and their schedules, for the tests of kernels with threads.
#ifndef FT_TESTS_CODEGEN_SIMT_PRODUCTS_H
#define FT_TESTS_CODEGEN_SIMT_PRODUCTS_H

#include "codegen/simt_gemm.h"
#include "codegen/simt_skinny.h"
#include "graphs.h"

static const ft_simt_gemm_choice gemm_choices[] = {
    // Whose parts all matter (kernel_simt_mutants.c): each thread has all its pieces.
    {16, 16, 8, 4, 2, .stages = 1},
    {16, 16, 8, 4, 2, .stages = 2},
    {16, 16, 8, 4, 2, .stages = 3, .copies = true},
    {16, 16, 8, 4, 2, .stages = 1, .splits = 3},
    {64, 64, 16, 4, 4, .stages = 1},
    {8, 32, 32, 1, 4, .stages = 1},
    {128, 64, 8, 8, 8, .stages = 1},
    {16, 16, 8, 2, 2, .stages = 2},
    {32, 64, 8, 2, 8, .stages = 2, .copies = true},
    {16, 32, 4, 2, 4, .stages = 4, .copies = true, .splits = 3},
    {32, 32, 8, 4, 2, .stages = 1, .splits = 2, .shares_sums = true},
};

static const ft_simt_skinny_choice skinny_choices[] = {
    // Two warps an output: whose parts all matter (kernel_simt_mutants.c).
    {.threads = 128, .term_threads = 64, .unroll = 1},
    {.threads = 256, .term_threads = 64, .unroll = 2, .streams = true},
    {.threads = 32, .term_threads = 8, .unroll = 1},
};
enum {
  GEMMS = sizeof gemm_choices / sizeof *gemm_choices,
  SKINNIES = sizeof skinny_choices / sizeof *skinny_choices,
};

static void draw_product(sketch *s) {
  uint32_t a = input(s, FT_F32, SHAPE(3, 12, 33)), b = input(s, FT_F32, SHAPE(33, 20));
  uint32_t y = two(s, FT_OP_MATMUL, a, b);
  output(s, one(s, FT_OP_RELU, two(s, FT_OP_ADD, y, input(s, FT_F32, SHAPE(20)))));
}
static void draw_even_product(sketch *s) {
  uint32_t a = input(s, FT_F32, SHAPE(64, 32)), b = input(s, FT_F32, SHAPE(64, 32));
  uint32_t y = two(s, FT_OP_MATMUL, one(s, FT_OP_NEG, a), transpose(s, b));
  output(s, y);
  output(s, one(s, FT_OP_ERF, y));
}
// Sums of sums, a residual and a bias, two outputs.
static void draw_long_product(sketch *s) {
  uint32_t a = input(s, FT_F32, SHAPE(9, 132)), b = input(s, FT_F32, SHAPE(132, 36));
  uint32_t y = two(s, FT_OP_ADD, two(s, FT_OP_MATMUL, a, b), input(s, FT_F32, SHAPE(36)));
  output(s, one(s, FT_OP_TANH, y));
  output(s, two(s, FT_OP_ADD, y, input(s, FT_F32, SHAPE(9, 36))));
}
// Both operands turned, and odd.
static void draw_turned_product(sketch *s) {
  uint32_t a = input(s, FT_F32, SHAPE(13, 24)), b = input(s, FT_F32, SHAPE(17, 13));
  output(s, two(s, FT_OP_MATMUL, transpose(s, a), transpose(s, b)));
}
// One term; batches that one operand has one of, and does not have.
static void draw_outer_products(sketch *s) {
  uint32_t a = input(s, FT_F32, SHAPE(1, 3, 18, 1)),
           b = input(s, FT_F32, SHAPE(2, 1, 1, 12));
  output(s, two(s, FT_OP_MATMUL, a, b));
}
static void draw_double_product(sketch *s) {
  uint32_t a = input(s, FT_F64, SHAPE(10, 70)), b = input(s, FT_F64, SHAPE(70, 14));
  output(s, two(s, FT_OP_MATMUL, a, b));
}
// A few rows, weights as a layer's (along the terms) and turned (along the columns).
static void draw_few_rows(sketch *s) {
  uint32_t a = input(s, FT_F32, SHAPE(3, 300)), b = input(s, FT_F32, SHAPE(41, 300));
  uint32_t y = two(s, FT_OP_MATMUL, a, transpose(s, b));
  output(s, one(s, FT_OP_RELU, two(s, FT_OP_ADD, y, input(s, FT_F32, SHAPE(41)))));
}
static void draw_one_row(sketch *s) {
  uint32_t a = input(s, FT_F32, SHAPE(1, 203)), b = input(s, FT_F32, SHAPE(203, 52));
  output(s, one(s, FT_OP_TANH, two(s, FT_OP_MATMUL, a, b)));
}
// A few columns, batched; the second operand is the same for all batches.
static void draw_few_columns(sketch *s) {
  uint32_t a = input(s, FT_F32, SHAPE(2, 19, 130)), b = input(s, FT_F32, SHAPE(130, 2));
  output(s, two(s, FT_OP_MATMUL, one(s, FT_OP_ABS, a), b));
}
static void draw_turned_columns(sketch *s) {
  uint32_t a = input(s, FT_F32, SHAPE(40, 24)), b = input(s, FT_F32, SHAPE(40, 5));
  output(s, two(s, FT_OP_MATMUL, transpose(s, a), b));
}
static void draw_heads(sketch *s) {
  uint32_t q = input(s, FT_F32, SHAPE(2, 3, 20, 16)),
           k = input(s, FT_F32, SHAPE(3, 16, 21));
  output(s, two(s, FT_OP_MUL, two(s, FT_OP_MATMUL, q, k), scalar(s, FT_F32, 0.125)));
}

#endif
