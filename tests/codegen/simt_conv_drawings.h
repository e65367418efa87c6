// Convolutions and windows for the tests of kernels with threads.
#ifndef FT_TESTS_CODEGEN_SIMT_CONV_DRAWINGS_H
#define FT_TESTS_CODEGEN_SIMT_CONV_DRAWINGS_H

#include "codegen/simt_conv.h"
#include "codegen/simt_window.h"
#include "graphs.h"

static const ft_simt_conv_choice conv_choices[] = {{.tile_channels = 8,
                                                    .tile_positions = 16,
                                                    .slab = 4,
                                                    .thread_channels = 2,
                                                    .thread_positions = 2,
                                                    .vector = 1},
                                                   {.tile_channels = 64,
                                                    .tile_positions = 64,
                                                    .slab = 16,
                                                    .thread_channels = 8,
                                                    .thread_positions = 8,
                                                    .vector = 4},
                                                   {.tile_channels = 16,
                                                    .tile_positions = 64,
                                                    .slab = 8,
                                                    .thread_channels = 4,
                                                    .thread_positions = 4,
                                                    .vector = 2},
                                                   {.tile_channels = 32,
                                                    .tile_positions = 32,
                                                    .slab = 32,
                                                    .thread_channels = 1,
                                                    .thread_positions = 4,
                                                    .vector = 1}};

static const ft_simt_window_choice window_choices[] = {
    {.threads = 32, .tile_rows = 1, .tile_columns = 16, .tile_planes = 2},
    {.threads = 128, .tile_rows = 8, .tile_columns = 32, .tile_planes = 1},
    {.threads = 64, .tile_rows = 1, .tile_columns = 1, .tile_planes = 32},
    {.threads = 32, .tile_rows = 4, .tile_columns = 8, .tile_planes = 4}};

// x [N, C, spatial...] with filters |w|; the rest of |attr| as the graph has it, strides
// and dilations of 1 where it has 0.
static inline uint32_t convolve(sketch *s, uint32_t x, uint32_t w, ft_attr attr) {
  uint32_t in[2] = {x, w};
  if (!attr.groups) attr.groups = 1;
  for (int i = 0; i + 2 < attr.shape.rank; i++) {
    if (!attr.stride[i]) attr.stride[i] = 1;
    if (!attr.dilation[i]) attr.dilation[i] = 1;
  }
  return apply(s, FT_OP_CONV, 2, in, &attr);
}

static inline uint32_t pool(sketch *s, ft_op op, uint32_t x, ft_attr attr) {
  for (int i = 0; i + 2 < attr.shape.rank; i++) {
    if (!attr.stride[i]) attr.stride[i] = 1;
    if (!attr.dilation[i]) attr.dilation[i] = 1;
  }
  return apply(s, op, 1, &x, &attr);
}

// 3x3, padding all around, odd extents, two images; batch norm and relu before, bias,
// residual and relu behind.
static inline void draw_conv_block(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 5, 9, 11));
  uint32_t w = input(s, FT_F32, SHAPE(10, 5, 3, 3));
  x = two(s, FT_OP_MUL, x, input(s, FT_F32, SHAPE(1, 5, 1, 1)));
  x = one(s, FT_OP_RELU, two(s, FT_OP_ADD, x, input(s, FT_F32, SHAPE(1, 5, 1, 1))));
  uint32_t y =
      convolve(s, x, w, (ft_attr){.shape = SHAPE(2, 10, 9, 11), .start = {1, 1}});
  y = two(s, FT_OP_ADD, y, input(s, FT_F32, SHAPE(1, 10, 1, 1)));
  y = two(s, FT_OP_ADD, y, input(s, FT_F32, SHAPE(2, 10, 9, 11)));
  output(s, one(s, FT_OP_RELU, y));
}
// 3x3, every second point, padding in front only.
static inline void draw_conv_strided(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, 4, 12, 10));
  uint32_t w = input(s, FT_F32, SHAPE(17, 4, 3, 3));
  output(s,
         convolve(
             s, x, w,
             (ft_attr){.shape = SHAPE(1, 17, 6, 5), .start = {1, 1}, .stride = {2, 2}}));
}
// The image as it is, in vectors; so many channels that sums are in parts; two outputs.
static inline void draw_conv_pointwise(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 72, 2, 17));
  uint32_t w = input(s, FT_F32, SHAPE(18, 72, 1, 1));
  uint32_t y =
      convolve(s, one(s, FT_OP_RELU, x), w, (ft_attr){.shape = SHAPE(2, 18, 2, 17)});
  output(s, y);
  output(s, two(s, FT_OP_ADD, y, input(s, FT_F32, SHAPE(18, 1, 1))));
}
// The same, and the kernel has nothing to ask: all tiles are full.
static inline void draw_conv_even(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, 16, 8, 16));
  uint32_t w = input(s, FT_F32, SHAPE(64, 16, 1, 1));
  uint32_t y = convolve(s, x, w, (ft_attr){.shape = SHAPE(1, 64, 8, 16)});
  output(s, one(s, FT_OP_RELU, y));
}
// The first layer of a network for images: few channels, a large window.
static inline void draw_conv_stem(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, 3, 15, 17));
  uint32_t w = input(s, FT_F32, SHAPE(16, 3, 7, 7));
  uint32_t y = convolve(
      s, x, w, (ft_attr){.shape = SHAPE(1, 16, 8, 9), .start = {3, 3}, .stride = {2, 2}});
  output(s, one(s, FT_OP_RELU, y));
}
// Along one axis, in groups, dilated, more padding behind than in front.
static inline void draw_conv_line(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 10, 21)), w = input(s, FT_F32, SHAPE(12, 5, 3));
  output(s,
         convolve(
             s, x, w,
             (ft_attr){
                 .shape = SHAPE(2, 12, 22), .start = {1}, .dilation = {2}, .groups = 2}));
}
// Along three axes.
static inline void draw_conv_volume(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, 3, 5, 6, 7));
  uint32_t w = input(s, FT_F32, SHAPE(4, 3, 2, 3, 3));
  output(s, convolve(s, x, w,
                     (ft_attr){.shape = SHAPE(1, 4, 4, 6, 4),
                               .start = {0, 1, 1},
                               .stride = {1, 1, 2}}));
}
static inline void draw_conv_double(sketch *s) {
  uint32_t x = input(s, FT_F64, SHAPE(1, 7, 5, 8)),
           w = input(s, FT_F64, SHAPE(3, 7, 1, 3));
  output(s, convolve(s, x, w, (ft_attr){.shape = SHAPE(1, 3, 5, 8), .start = {0, 1}}));
}

// 3x3, every second point, padding all around: as ResNet has it. Some of the input is
// NaN.
static inline void draw_pool_max(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 3, 13, 21));
  uint32_t nan = one(s, FT_OP_SQRT, two(s, FT_OP_ADD, x, scalar(s, FT_F32, 1.9)));
  uint32_t y = pool(s, FT_OP_WINDOW_MAX, two(s, FT_OP_SUB, nan, x),
                    (ft_attr){.shape = SHAPE(2, 3, 7, 11),
                              .window = {3, 3},
                              .start = {1, 1},
                              .stride = {2, 2}});
  output(s, one(s, FT_OP_NEG, y));
}
// All of an image: a mean, with a heavy function before it.
static inline void draw_pool_global(sketch *s) {
  uint32_t x = one(s, FT_OP_SIGMOID, input(s, FT_F32, SHAPE(2, 20, 9, 8)));
  uint32_t y = pool(s, FT_OP_WINDOW_SUM, x,
                    (ft_attr){.shape = SHAPE(2, 20, 1, 1), .window = {9, 8}});
  output(s, two(s, FT_OP_MUL, y, scalar(s, FT_F32, 1.0 / 72)));
}
// Dilated, more padding behind than in front, odd extents.
static inline void draw_pool_sum(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, 5, 11, 35));
  uint32_t y = pool(s, FT_OP_WINDOW_SUM, x,
                    (ft_attr){.shape = SHAPE(1, 5, 9, 18),
                              .window = {2, 3},
                              .start = {0, 1},
                              .stride = {1, 2},
                              .dilation = {3, 2}});
  output(s, y);
  output(s, two(s, FT_OP_MUL, y, input(s, FT_F32, SHAPE(9, 1))));
}
static inline void draw_pool_line(sketch *s) {
  uint32_t x = input(s, FT_I32, SHAPE(3, 4, 29));
  output(s,
         pool(s, FT_OP_WINDOW_MAX, x,
              (ft_attr){
                  .shape = SHAPE(3, 4, 14), .window = {4}, .start = {1}, .stride = {2}}));
}
// Two filters for each channel.
static inline void draw_depthwise(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 6, 10, 19));
  uint32_t w = input(s, FT_F32, SHAPE(12, 1, 3, 3));
  x = one(s, FT_OP_RELU, two(s, FT_OP_ADD, x, input(s, FT_F32, SHAPE(6, 1, 1))));
  uint32_t y = convolve(
      s, x, w, (ft_attr){.shape = SHAPE(2, 12, 10, 19), .start = {1, 1}, .groups = 6});
  y = two(s, FT_OP_ADD, y, input(s, FT_F32, SHAPE(12, 1, 1)));
  output(s, two(s, FT_OP_MUL, y, one(s, FT_OP_SIGMOID, y)));
}
static inline void draw_depthwise_strided(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, 9, 17, 15)),
           w = input(s, FT_F32, SHAPE(9, 1, 5, 9));
  output(s, convolve(s, x, w,
                     (ft_attr){.shape = SHAPE(1, 9, 7, 6),
                               .start = {0, 2},
                               .stride = {2, 2},
                               .groups = 9}));
}
static inline void draw_depthwise_line(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 7, 40)), w = input(s, FT_F32, SHAPE(7, 1, 4));
  output(s, convolve(s, x, w,
                     (ft_attr){.shape = SHAPE(2, 7, 40), .start = {3}, .groups = 7}));
}

#endif
