// Groups whose tensors lie along two axes, and schedules for them.
#ifndef FT_TESTS_CODEGEN_SIMT_TURNS_H
#define FT_TESTS_CODEGEN_SIMT_TURNS_H

#include "codegen/simt_turn.h"
#include "graphs.h"

static const ft_simt_turn_choice turn_choices[] = {
    {.threads = 64, .tile_near = 32, .tile_far = 32, .vector_near = 1, .vector_far = 1},
    {.threads = 256,
     .tile_near = 32,
     .tile_far = 64,
     .vector_near = 1,
     .vector_far = 1,
     .swizzles = true,
     .streams = true},
    {.threads = 128,
     .tile_near = 32,
     .tile_far = 32,
     .vector_near = 4,
     .vector_far = 4,
     .swizzles = true},
    {.threads = 256, .tile_near = 64, .tile_far = 64, .vector_near = 4, .vector_far = 4},
    {.threads = 256,
     .tile_near = 64,
     .tile_far = 32,
     .vector_near = 2,
     .vector_far = 4,
     .swizzles = true},
    {.threads = 64, .tile_near = 16, .tile_far = 8, .vector_near = 2, .vector_far = 1}};
static uint32_t permute(sketch *s, uint32_t a, const uint8_t *perm, int rank) {
  ft_attr attr = {0};
  for (int i = 0; i < rank; i++) attr.perm[i] = perm[i];
  return apply(s, FT_OP_TRANSPOSE, 1, &a, &attr);
}
static void draw_turned_sum(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(96, 128)), y = input(s, FT_F32, SHAPE(128, 96));
  output(s, two(s, FT_OP_ADD, one(s, FT_OP_RELU, transpose(s, x)), y));
}
static void draw_odd_turn(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(3, 37, 71)), b = input(s, FT_F32, SHAPE(71, 1));
  uint32_t y = permute(s, x, (uint8_t[]){0, 2, 1}, 3);
  output(s, two(s, FT_OP_MUL, y, two(s, FT_OP_ADD, b, input(s, FT_F32, SHAPE(37)))));
}
static void draw_kept_heads(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 9, 4, 16));
  output(s, one(s, FT_OP_TANH, permute(s, x, (uint8_t[]){0, 2, 1, 3}, 4)));
}
static void draw_channels_last(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 36, 5, 12)), b = input(s, FT_F32, SHAPE(36));
  output(s, two(s, FT_OP_ADD, permute(s, x, (uint8_t[]){0, 2, 3, 1}, 4), b));
}
static void draw_channels_first(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 5, 9, 34)),
           y = input(s, FT_F32, SHAPE(2, 34, 5, 9)),
           b = input(s, FT_F32, SHAPE(2, 34, 1, 1));
  uint32_t z = permute(s, x, (uint8_t[]){0, 3, 1, 2}, 4);
  output(s, two(s, FT_OP_SUB, two(s, FT_OP_MUL, z, y), b));
}
static void draw_two_layouts(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(40, 68)), y = input(s, FT_F32, SHAPE(68, 40));
  uint32_t z = two(s, FT_OP_SUB, x, transpose(s, y));
  output(s, z);
  output(s, transpose(s, one(s, FT_OP_EXP, z)));
  output(s, one(s, FT_OP_NEG, y));
}
static void draw_two_steps(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(33, 48)), y = input(s, FT_F32, SHAPE(33, 48)),
           z = input(s, FT_F32, SHAPE(48, 33));
  uint32_t d = two(s, FT_OP_SUB, x, y);
  output(s, d);
  output(s, two(s, FT_OP_DIV, transpose(s, one(s, FT_OP_ABS, d)), z));
}
static void draw_turned_dtypes(sketch *s) {
  uint32_t x = input(s, FT_F64, SHAPE(24, 72)), n = input(s, FT_I32, SHAPE(72, 24));
  output(s, two(s, FT_OP_LESS, transpose(s, x),
                apply(s, FT_OP_CAST, 1, &n, &(ft_attr){.to = FT_F64})));
  output(s, two(s, FT_OP_ADD, n, n));
}

#endif
