// Turns: what is refused and why, how wide they move memory, how shared memory answers,
// and what ptxas makes of them. simt_drawings.h has the ones that SIM runs.
#include "codegen/bank_conflicts.h"
#include "codegen/nvrtc.h"
#include "simt_drawings.h"

// What a schedule that means to be fast would be, for tensors of 4 bytes.
static const ft_simt_turn_choice sensible[] = {
    {.threads = 128, .tile_near = 32, .tile_far = 32, .vector_near = 1, .vector_far = 1},
    {.threads = 256, .tile_near = 32, .tile_far = 32, .vector_near = 2, .vector_far = 2},
    {.threads = 256, .tile_near = 64, .tile_far = 64, .vector_near = 4, .vector_far = 4},
    {.threads = 128,
     .tile_near = 32,
     .tile_far = 32,
     .vector_near = 4,
     .vector_far = 4,
     .swizzles = true,
     .streams = true},
    {.threads = 256,
     .tile_near = 64,
     .tile_far = 64,
     .vector_near = 4,
     .vector_far = 4,
     .swizzles = true},
    {.threads = 256,
     .tile_near = 32,
     .tile_far = 64,
     .vector_near = 4,
     .vector_far = 4,
     .swizzles = true},
    {.threads = 256,
     .tile_near = 64,
     .tile_far = 32,
     .vector_near = 2,
     .vector_far = 1,
     .swizzles = true},
};
enum { SENSIBLE = sizeof sensible / sizeof *sensible, LARGE = 4 };

// Groups of a size that a GPU would see; nothing runs them.
static void draw_large_turn(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2048, 4096)),
           y = input(s, FT_F32, SHAPE(4096, 2048));
  output(s, two(s, FT_OP_ADD, transpose(s, x), y));
}
static void draw_large_image(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(8, 64, 56, 56)), b = input(s, FT_F32, SHAPE(64));
  uint32_t y = two(s, FT_OP_ADD, permute(s, x, (uint8_t[]){0, 2, 3, 1}, 4), b);
  output(s, two(s, FT_OP_MUL, y, one(s, FT_OP_SIGMOID, y)));
}
static void draw_large_pair(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1024, 1024)),
           y = input(s, FT_F32, SHAPE(1024, 1024));
  uint32_t z = two(s, FT_OP_SUB, x, transpose(s, y));
  output(s, z);
  output(s, transpose(s, one(s, FT_OP_EXP, z)));
}
static void draw_large_odd(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1000, 2056)),
           y = input(s, FT_F32, SHAPE(2056, 1000));
  output(s, two(s, FT_OP_ADD, transpose(s, one(s, FT_OP_TANH, x)), y));
}
static sketcher *const large[LARGE] = {draw_large_turn, draw_large_image, draw_large_pair,
                                       draw_large_odd};

typedef struct drawn {
  sketch sketch;
  ft_workload workload;
  ft_group_ir *ir;
} drawn;

static void draw(drawn *d, sketcher *how) {
  const char *reason;
  ft_error error;
  d->sketch = sketch_open();
  how(&d->sketch);
  d->workload = finish(&d->sketch);
  cr_assert_eq(ft_group_ir_make(&d->workload, d->sketch.arena, &d->ir, &reason, &error),
               FT_OK, "%s", error.text);
  cr_assert(d->ir, "%s", reason);
}

static ft_kir *build(drawn *d, const ft_simt_turn_choice *choice) {
  ft_kir *kir;
  ft_error error;
  const char *wrong = ft_simt_turn_refusal(d->ir, choice, d->sketch.arena);
  cr_assert_null(wrong, "%s", wrong);
  cr_assert_eq(ft_simt_turn_build(d->ir, choice, d->sketch.arena, &kir, &error), FT_OK,
               "%s", error.text);
  return kir;
}

// ---- refusals
// ------------------------------------------------------------------------------

static const ft_simt_turn_choice plain = {
    .threads = 128, .tile_near = 32, .tile_far = 32, .vector_near = 1, .vector_far = 1};

static void expect_refusal(sketcher *how, ft_simt_turn_choice choice, const char *text) {
  drawn d;
  draw(&d, how);
  const char *wrong = ft_simt_turn_refusal(d.ir, &choice, d.sketch.arena);
  cr_assert(wrong, "not refused: %s", text);
  cr_assert_str_eq(wrong, text);
  sketch_close(&d.sketch);
}

static void draw_three_axes(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(4, 5, 6)), y = input(s, FT_F32, SHAPE(5, 6, 4)),
           z = input(s, FT_F32, SHAPE(6, 4, 5));
  y = permute(s, y, (uint8_t[]){2, 0, 1}, 3);
  z = permute(s, z, (uint8_t[]){1, 2, 0}, 3);
  output(s, two(s, FT_OP_ADD, two(s, FT_OP_ADD, x, y), z));
}

// Seven along one axis: the eighth comes over, and the sum goes back.
static void draw_many_turns(sketch *s) {
  uint32_t sum = input(s, FT_F32, SHAPE(128, 128));
  for (int i = 0; i < 7; i++) {
    uint32_t x = one(s, FT_OP_EXP, transpose(s, input(s, FT_F32, SHAPE(128, 128))));
    sum = two(s, FT_OP_ADD, x, sum);
  }
  output(s, sum);
}

Test(simt_turn, says_why_a_group_is_no_turn) {
  expect_refusal(draw_chain, plain, "all tensors lie along one axis");
  expect_refusal(draw_kept_heads, plain, "all tensors lie along one axis");
  expect_refusal(draw_softmax, plain, "a reduction");
  expect_refusal(draw_three_axes, plain, "its tensors do not lie along two axes");
}

Test(simt_turn, says_why_a_choice_does_not_fit) {
  ft_simt_turn_choice c = plain;
  c.threads = 96;
  expect_refusal(draw_turned_sum, c, "threads is not a power of two from 32 to 1024");
  c = plain;
  c.tile_far = 48;
  expect_refusal(draw_turned_sum, c, "a tile is not a power of two from 8 to 128");
  c = plain;
  c.vector_near = 3;
  expect_refusal(draw_turned_sum, c, "a vector is not 1, 2, 4 or 8");
  c.vector_near = 8;
  expect_refusal(draw_turned_sum, c, "vectors of 32 bytes are too wide");
  c = plain;
  c.vector_far = 2;
  expect_refusal(draw_odd_turn, c, "an axis of 71 in vectors of 2");
  c = plain;
  c.threads = 32;
  c.tile_near = 128;
  expect_refusal(draw_turned_sum, c,
                 "32 threads do not share rows of 128 vectors evenly");
  c = plain;
  c.threads = 1024;
  c.tile_far = 8;
  expect_refusal(draw_turned_sum, c,
                 "1024 threads do not share rows of 32 vectors evenly");
  c = plain;
  c.tile_near = c.tile_far = 128;
  expect_refusal(draw_many_turns, c,
                 "132096 bytes of shared memory are more than 101376");
}

// ---- memory
// --------------------------------------------------------------------------------

Test(simt_turn, no_sensible_choice_makes_more_than_two_passes_of_an_access) {
  uint32_t seen = 0;
  for (uint32_t g = 0; g < LARGE; g++)
    for (uint32_t i = 0; i < SENSIBLE; i++) {
      drawn d;
      ft_bank_access *access;
      uint32_t count;
      ft_error error;
      draw(&d, large[g]);
      ft_kir *kir = build(&d, &sensible[i]);
      cr_assert_eq(ft_bank_conflicts_count(kir, d.sketch.arena, &access, &count, &error),
                   FT_OK);
      cr_assert_gt(count, 1);
      for (uint32_t a = 0; a < count; a++) {
        cr_assert_leq(access[a].degree, 2,
                      "group %u, choice %u, access %u of %u bytes: %u passes", g, i, a,
                      access[a].bytes, access[a].degree);
        seen += access[a].degree > 0;  // block 0 has no cut tile
      }
      sketch_close(&d.sketch);
    }
  cr_assert_gt(seen, 200);
}

// Lines that touch |buffer| 16 bytes at a time, or otherwise.
static uint32_t lines_with(const char *text, uint32_t buffer, bool is_wide) {
  char wide[32], narrow[32];
  uint32_t count = 0;
  snprintf(wide, sizeof wide, "int4 *)(b%u + ", buffer);
  snprintf(narrow, sizeof narrow, "b%u[", buffer);
  for (const char *at = strstr(text, is_wide ? wide : narrow); at;
       at = strstr(at + 1, is_wide ? wide : narrow))
    count++;
  return count;
}

// Global memory on both sides, and what goes down into shared memory.
static void expect_wide(sketcher *how, uint32_t choice) {
  drawn d;
  const char *text;
  ft_simt_launch launch;
  ft_error error;
  draw(&d, how);
  ft_kir *kir = build(&d, &sensible[choice]);
  cr_assert_eq(ft_print_cuda(kir, "kernel", &text, &launch, &error), FT_OK, "%s",
               error.text);
  for (uint32_t b = 1; b < kir->buffer_count; b++) {
    bool is_global = kir->buffer[b].space == FT_KIR_GLOBAL;
    cr_assert_gt(lines_with(text, b, true), 0, "buffer %u:\n%s", b, text);
    if (is_global) cr_assert_eq(lines_with(text, b, false), 0, "buffer %u:\n%s", b, text);
  }
  sketch_close(&d.sketch);
}

Test(simt_turn, even_extents_move_16_bytes_on_both_sides) {
  expect_wide(draw_large_turn, 3);
  expect_wide(draw_large_turn, 4);
  expect_wide(draw_large_turn, 5);
  expect_wide(draw_large_pair, 4);
  expect_wide(draw_large_odd, 4);  // 1000 and 2056: cut tiles, whole vectors
}

// Each element of a tile is 4 bytes: nothing else is in shared memory.
Test(simt_turn, tiles_hold_what_crosses_and_no_more) {
  drawn d;
  draw(&d, draw_large_turn);
  ft_kir *kir = build(&d, &sensible[4]);
  uint32_t shared = 0;
  for (uint32_t b = 1; b < kir->buffer_count; b++) {
    if (kir->buffer[b].space != FT_KIR_SHARED) continue;
    cr_assert_eq(kir->buffer[b].count, 64 * 64);
    cr_assert_eq(kir->buffer[b].dtype, FT_F32);
    shared++;
  }
  cr_assert_eq(shared, 1);
  sketch_close(&d.sketch);
}

// ---- ptxas
// ---------------------------------------------------------------------------------

Test(simt_turn, no_sensible_choice_spills_or_takes_many_registers) {
  static const char *const archs[] = {"sm_80", "sm_90", "sm_100"};
  ft_nvrtc *nvrtc;
  ft_error error;
  if (ft_nvrtc_open(ft_allocator_system(), &nvrtc, &error) != FT_OK)
    cr_skip_test("%s", error.text);
  for (uint32_t g = 0; g < LARGE; g++)
    for (uint32_t i = 0; i < SENSIBLE; i++) {
      drawn d;
      const char *text;
      ft_simt_launch launch;
      ft_cubin cubin;
      draw(&d, large[g]);
      ft_kir *kir = build(&d, &sensible[i]);
      cr_assert_eq(ft_print_cuda(kir, "kernel", &text, &launch, &error), FT_OK, "%s",
                   error.text);
      cr_assert_eq(ft_nvrtc_compile(nvrtc, text, "kernel", archs[(g + i) % 3],
                                    d.sketch.arena, &cubin, &error),
                   FT_OK, "%s", error.text);
      cr_assert_eq(cubin.outcome, FT_OUTCOME_OK, "%s\n%s", cubin.log, text);
      const ft_static_facts *f = &cubin.facts;
      fprintf(stderr, "group %u, choice %u: %lld registers, %lld bytes shared\n", g, i,
              (long long)f->registers, (long long)f->shared_bytes);
      cr_assert_eq(f->spill_store_bytes + f->spill_load_bytes, 0);
      cr_assert_eq(f->stack_bytes, 0, "group %u, choice %u", g, i);
      cr_assert_leq(f->registers, 64, "group %u, choice %u", g, i);
      sketch_close(&d.sketch);
    }
  ft_nvrtc_close(nvrtc);
}
