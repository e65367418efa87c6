// S2 and S3 on a GPU: reductions along a contiguous axis, a row for some threads.
//
// The space: about two to four vectors of a row for each thread first, which is enough to
// have in flight and leaves registers; then fewer and more threads a row.
#include "codegen/nest.h"
#include "codegen/simt_tactic.h"

enum { FEW_ROWS = 512, SHARE = 2048 };  // rows; elements that each of the blocks gets

static uint64_t all_axes(const ft_group_ir *ir) {
  return ir->axis_count == 64 ? UINT64_MAX : ((uint64_t)1 << ir->axis_count) - 1;
}

static bool is_contiguous(const ft_group_ir *ir, uint32_t axis) {
  for (uint32_t i = 0; i < ir->node_count; i++) {
    const ft_node *n = &ir->node[i];
    if (n->kind == FT_NODE_LOAD && n->access.stride[axis] == 1) return true;
  }
  return false;
}

static double match(const ft_group_ir *ir, ft_arena *arena, const char **reason) {
  *reason = ft_simt_refusal(ir->workload, arena);
  if (!*reason)
    *reason = ir->reduced || ir->refusal ? ft_nest_refusal(ir, arena)
                                         : "simt_row needs a reduction";
  if (*reason) return -1;
  if (ir->reduced >> ft_nest_best_axis(ir, all_axes(ir)) & 1) return 2;
  if (is_contiguous(ir, ft_nest_best_axis(ir, ir->reduced))) return 0;
  *reason = "simt_row needs a contiguous reduced axis";
  return -1;
}

typedef struct row_choice {
  uint32_t threads, row_threads, vector, unroll, splits;
  ft_simt_buffer buffer;
  uint32_t registers;  // that a thread is held to; 0: as the compiler likes
} row_choice;

static void offer(const ft_group_ir *ir, ft_schedules *out, row_choice c) {
  if (c.row_threads == 0 || c.row_threads > 1024) return;
  ft_simt_any_choice choice = {
      FT_SIMT_NEST,
      .nest = {.threads = c.threads > c.row_threads ? c.threads : c.row_threads,
               .vector = c.vector,
               .unroll = c.unroll,
               .row_threads = c.row_threads,
               .splits = c.splits,
               .buffer = c.buffer}};
  if (c.registers)
    choice.min_blocks = ft_simt_min_blocks(choice.nest.threads, c.registers);
  ft_simt_offer(ir, &choice, out);
}

// The power of two that gives each thread about two vectors of a row of |length|.
static uint32_t usual_threads(int64_t length, uint32_t vector) {
  uint32_t threads = 1;
  while (threads < 1024 && (int64_t)threads * vector * 2 < length) threads *= 2;
  return threads;
}

// Each in the ways that keep a row between passes: registers first, which read it once.
static void offer_kept(const ft_group_ir *ir, ft_schedules *out, row_choice c) {
  static const ft_simt_buffer buffers[] = {FT_SIMT_REGISTERS, FT_SIMT_REREAD,
                                           FT_SIMT_SHARED};
  for (int i = 0; i < 3; i++) {
    c.buffer = buffers[i];
    offer(ir, out, c);
  }
}

// A row in registers, in fewer of them: more blocks fit, unless the row spills.
static void offer_capped(const ft_group_ir *ir, ft_schedules *out, row_choice c) {
  static const uint32_t caps[] = {64, 40};
  c.buffer = FT_SIMT_REGISTERS;
  for (int i = 0; i < 2; i++) {
    c.registers = caps[i];
    offer(ir, out, c);
  }
}

// A few long rows leave most of the chip idle: blocks share them.
static void offer_split(const ft_group_ir *ir, ft_schedules *out, uint32_t vector) {
  static const uint32_t splits[] = {8, 32, 128};
  int64_t length = ft_group_ir_points(ir, ir->reduced);
  int64_t rows = ft_group_ir_points(ir, all_axes(ir) & ~ir->reduced);
  for (int i = 0; i < 3; i++)
    if (rows < FEW_ROWS && length / splits[i] >= SHARE)
      offer(ir, out, (row_choice){256, 256, vector, 2, splits[i], FT_SIMT_REREAD, 0});
}

static void space(const ft_group_ir *ir, const ft_target *target, ft_schedules *out) {
  static const uint32_t vectors[] = {4, 2, 1};
  int64_t length = ft_group_ir_points(ir, ir->reduced);
  (void)target;
  for (int v = 0; v < 3; v++) {
    uint32_t usual = usual_threads(length, vectors[v]);
    const uint32_t row_threads[] = {usual, usual / 2, usual * 2, 32, 128};
    offer_split(ir, out, vectors[v]);
    for (int r = 0; r < 5; r++) {
      offer_kept(ir, out, (row_choice){128, row_threads[r], vectors[v], 1, 0, 0, 0});
      offer_kept(ir, out, (row_choice){256, row_threads[r], vectors[v], 2, 0, 0, 0});
    }
    if (v == 0)
      offer_capped(
          ir, out,
          (row_choice){
              .threads = 256, .row_threads = usual, .vector = vectors[v], .unroll = 1});
  }
}

FT_SIMT_TACTIC(simt_row, FT_SIMT_NEST);
