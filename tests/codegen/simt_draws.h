// Random choices for kernels in the shape of a GPU: any skeleton, knobs inside and
// outside what its tactic offers. Many are refused.
#ifndef FT_TESTS_CODEGEN_SIMT_DRAWS_H
#define FT_TESTS_CODEGEN_SIMT_DRAWS_H

#include "codegen/simt_choice.h"
#include "core/rng.h"

// A power of two.
static inline uint32_t draw_power(ft_rng *rng, uint32_t low, uint32_t high) {
  uint32_t steps = 0;
  while (low << (steps + 1) <= high) steps++;
  return low << ft_rng_below(rng, steps + 1);
}

static inline bool draw_flag(ft_rng *rng, uint32_t one_in) {
  return ft_rng_below(rng, one_in) == 0;
}

// Items, rows or columns.
static inline void draw_nest(ft_rng *rng, ft_simt_any_choice *out) {
  ft_simt_choice *c = &out->nest;
  c->vector = draw_power(rng, 1, 8);
  c->unroll = 1 + (uint32_t)ft_rng_below(rng, 8);
  c->streams = draw_flag(rng, 2);
  c->loads_once = draw_flag(rng, 2);
  uint64_t shape = ft_rng_below(rng, 4);
  if (shape == 0) {
    if (draw_flag(rng, 3)) c->blocks = 1 + (uint32_t)ft_rng_below(rng, 4);
    return;
  }
  if (shape == 1)
    c->column_threads = draw_power(rng, 1, c->threads);
  else
    c->row_threads = draw_power(rng, 1, c->threads);
  c->buffer = (ft_simt_buffer)ft_rng_below(rng, 3);
  if (draw_flag(rng, 3)) c->splits = 1 + (uint32_t)ft_rng_below(rng, 6);
}

static inline void draw_gemm(ft_rng *rng, ft_simt_any_choice *out) {
  out->gemm = (ft_simt_gemm_choice){.block_m = draw_power(rng, 8, 128),
                                    .block_n = draw_power(rng, 8, 128),
                                    .block_k = draw_power(rng, 4, 32),
                                    .thread_m = draw_power(rng, 1, 8),
                                    .thread_n = draw_power(rng, 1, 8),
                                    .stages = 1 + (uint32_t)ft_rng_below(rng, 4),
                                    .splits = 1 + (uint32_t)ft_rng_below(rng, 3),
                                    .copies = draw_flag(rng, 2),
                                    .shares_sums = draw_flag(rng, 4)};
}

static inline void draw_loop(ft_rng *rng, ft_simt_any_choice *out) {
  out->loop.tile = 1 + (uint32_t)ft_rng_below(rng, 16);
}

static inline void draw_turn(ft_rng *rng, ft_simt_any_choice *out) {
  ft_simt_turn_choice *c = &out->turn;
  c->tile_near = draw_power(rng, 8, 128);
  c->tile_far = draw_power(rng, 8, 128);
  c->vector_near = draw_power(rng, 1, 8);
  c->vector_far = draw_power(rng, 1, 8);
  c->swizzles = draw_flag(rng, 2);
  c->streams = draw_flag(rng, 2);
}

static inline void draw_skinny(ft_rng *rng, ft_simt_any_choice *out) {
  ft_simt_skinny_choice *c = &out->skinny;
  c->term_threads = draw_power(rng, 1, c->threads);
  c->unroll = draw_power(rng, 1, 4);
  c->streams = draw_flag(rng, 2);
}

static inline void draw_conv(ft_rng *rng, ft_simt_any_choice *out) {
  out->conv = (ft_simt_conv_choice){.tile_channels = draw_power(rng, 1, 64),
                                    .tile_positions = draw_power(rng, 8, 128),
                                    .slab = draw_power(rng, 4, 32),
                                    .thread_channels = draw_power(rng, 1, 8),
                                    .thread_positions = draw_power(rng, 1, 8),
                                    .vector = draw_power(rng, 1, 4)};
}

static inline void draw_window(ft_rng *rng, ft_simt_any_choice *out) {
  ft_simt_window_choice *c = &out->window;
  c->tile_rows = draw_power(rng, 1, 16);
  c->tile_columns = draw_power(rng, 1, 32);
  c->tile_planes = draw_power(rng, 1, 16);
}

// Half of the kernels are told how many blocks a multiprocessor must hold.
static inline void draw_min_blocks(ft_rng *rng, ft_simt_any_choice *c) {
  uint32_t most = 2048 / ft_simt_any_threads(c);
  if (draw_flag(rng, 2)) c->min_blocks = draw_power(rng, 1, most > 32 ? 32 : most);
}

// |threads| of a block, where the skeleton has that knob.
static inline ft_simt_any_choice draw_choice(ft_rng *rng, ft_simt_skeleton skeleton,
                                             uint32_t threads) {
  static void (*const draw[])(ft_rng *, ft_simt_any_choice *) = {
#define FT_SIMT_SKELETON(NAME, name, choice) draw_##name,
#include "codegen/simt_skeletons.def"
#undef FT_SIMT_SKELETON
  };
  ft_simt_any_choice c = {.skeleton = skeleton};
  const char *name;
  for (uint32_t i = 0; (name = ft_simt_knob_name(skeleton, i)); i++)
    if (!strcmp(name, "threads")) ft_simt_knob_set(&c, i, threads);
  draw[skeleton](rng, &c);
  return c;
}

// The first of some choices of |skeleton| that takes the group. A group is rarely turned,
// so that is tried more often.
static inline bool draw_taken(ft_rng *rng, ft_simt_skeleton skeleton, uint32_t threads,
                              const ft_workload *w, ft_arena *arena,
                              ft_simt_any_choice *out) {
  for (int tries = skeleton == FT_SIMT_TURN ? 40 : 1; tries > 0; tries--) {
    *out = draw_choice(rng, skeleton, threads);
    if (!ft_simt_any_refusal(w, out, arena)) return true;
  }
  return false;
}

#endif
