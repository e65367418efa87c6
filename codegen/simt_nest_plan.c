#include "codegen/simt_nest_plan.h"

#include "codegen/nest.h"

enum { MOST_REGISTERS = 255, REGISTERS_OF_BLOCK = 65536, OTHER_REGISTERS = 12 };
enum { MOST_SHARED_BYTES = 227 << 10 };

static uint64_t bit(uint32_t axis) {
  return (uint64_t)1 << axis;
}

static bool is_power_of_two(uint32_t n) {
  return n && !(n & (n - 1));
}

static const char *share_refusal(const ft_simt_choice *c) {
  bool is_row = c->row_threads != 0, is_column = c->column_threads != 0;
  if (is_row && is_column) return "row_threads and column_threads exclude each other";
  if (is_row && (!is_power_of_two(c->row_threads) || c->threads % c->row_threads))
    return "row_threads does not divide threads";
  if (is_column &&
      (!is_power_of_two(c->column_threads) || c->threads % c->column_threads))
    return "column_threads does not divide threads";
  if ((is_row || is_column) && c->blocks) return "rows and columns take one turn";
  if (!is_row && !is_column && c->splits > 1) return "splits takes rows or columns";
  if (!is_row && !is_column && c->buffer) return "buffer takes rows or columns";
  return NULL;
}

static const char *launch_refusal(const ft_simt_choice *c) {
  if (c->threads < FT_SIMT_WARP || c->threads > 1024 || c->threads % FT_SIMT_WARP)
    return "threads is not a multiple of 32 up to 1024";
  if (!is_power_of_two(c->vector) || c->vector > 8) return "vector is not 1, 2, 4 or 8";
  if (c->unroll < 1 || c->unroll > FT_SIMT_MOST_UNROLL) return "unroll is not 1 to 8";
  if ((uint32_t)c->buffer > FT_SIMT_SHARED) return "buffer is not 0, 1 or 2";
  return share_refusal(c);
}

// ---- axes
// ----------------------------------------------------------------------------------

static void list_axes(ft_simt_plan *p) {
  for (uint32_t axis = 0; axis < p->ir->axis_count; axis++) {
    int which = p->set[FT_SIMT_REDUCED] & bit(axis) ? FT_SIMT_REDUCED : FT_SIMT_KEPT;
    if (!p->has_vector || axis != p->vector_axis)
      p->order[which][p->count[which]++] = axis;
  }
  if (!p->has_vector) return;
  int which =
      p->set[FT_SIMT_REDUCED] & bit(p->vector_axis) ? FT_SIMT_REDUCED : FT_SIMT_KEPT;
  p->order[which][p->count[which]++] = p->vector_axis;
}

static void choose_axes(ft_simt_plan *p) {
  const ft_group_ir *ir = p->ir;
  uint64_t all = ir->axis_count == 64 ? UINT64_MAX : bit(ir->axis_count) - 1;
  p->set[FT_SIMT_REDUCED] = ir->reduced;
  p->set[FT_SIMT_KEPT] = all & ~ir->reduced;
  uint64_t along = p->set[ft_simt_plan_is_row(p) ? FT_SIMT_REDUCED : FT_SIMT_KEPT];
  uint32_t axis = ft_nest_best_axis(ir, along);
  p->has_vector = axis != FT_MAX_AXES;
  p->vector_axis = p->has_vector ? axis : 0;
  p->lanes = 1;
  if (p->has_vector && ir->extent[axis] % p->choice.vector == 0)
    p->lanes = (uint16_t)p->choice.vector;
  list_axes(p);
  for (int which = 0; which < 2; which++)
    p->steps[which] = ft_group_ir_points(ir, p->set[which]);
  if (p->has_vector) p->steps[ft_simt_plan_is_row(p)] /= p->lanes;
}

// ---- who does what
// ---------------------------------------------------------------------------

static int64_t over(int64_t n, int64_t by) {
  return (n + by - 1) / by;
}

static const char *split_refusal(const ft_simt_plan *p) {
  if (p->ir->levels != 1) return "splits takes one level of reductions";
  for (uint32_t i = 0; i < p->ir->output_count; i++)
    if (p->ir->output[i].domain & p->ir->reduced)
      return "splits takes no output over the reduced axes";
  if (p->part * (p->parts - 1) >= p->steps[FT_SIMT_REDUCED])
    return "splits leaves nothing for some blocks";
  return NULL;
}

// Parts are whole turns of all threads, but for the last one.
static const char *share_out(ft_simt_plan *p, ft_arena *arena) {
  const ft_simt_choice *c = &p->choice;
  p->walkers = c->row_threads + c->column_threads;
  p->accumulators = ft_simt_plan_is_item(p) ? 1 : c->unroll;
  p->each = c->threads * c->unroll;
  if (p->walkers) p->each = c->threads / p->walkers;
  if (!p->walkers) p->walkers = 1;
  p->parts = c->splits ? c->splits : 1;
  int64_t turn = (int64_t)p->walkers * p->accumulators;
  p->part = over(over(p->steps[FT_SIMT_REDUCED], p->parts), turn) * turn;
  if (p->parts == 1) p->part = p->steps[FT_SIMT_REDUCED];
  p->share = over(p->part, p->walkers);
  int64_t needed = over(p->steps[FT_SIMT_KEPT], p->each);
  p->grid = c->blocks && c->blocks < needed ? c->blocks : needed;
  if (p->grid > INT32_MAX / p->parts)
    return ft_arena_printf(arena, "%lld x %u blocks are too many", (long long)p->grid,
                           p->parts);
  p->grid *= p->parts;
  return p->parts > 1 ? split_refusal(p) : NULL;
}

// ---- room
// -----------------------------------------------------------------------------------

static const char *register_refusal(const ft_simt_plan *p, ft_arena *arena) {
  int64_t limit = REGISTERS_OF_BLOCK / p->choice.threads;
  if (limit > MOST_REGISTERS) limit = MOST_REGISTERS;
  double need = 1.5 * (double)p->share * (double)p->kept_words + OTHER_REGISTERS;
  if (need <= (double)limit) return NULL;
  return ft_arena_printf(arena, "registers: %lld kept by a thread are about %.0f of %lld",
                         (long long)(p->share * p->kept_words), need, (long long)limit);
}

// Of what waits, and of what reductions exchange.
static int64_t shared_bytes(const ft_simt_plan *p) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < p->ir->node_count; i++) {
    const ft_node *n = &p->ir->node[i];
    int64_t size = (int64_t)ft_dtype_bytes(ft_kir_math_dtype(n->dtype));
    int64_t lanes = ft_simt_plan_varies(p, n->mask) ? p->lanes : 1;
    if (p->is_kept[i] && p->home[i] == i && p->choice.buffer == FT_SIMT_SHARED)
      bytes += over(size * lanes * p->steps[FT_SIMT_REDUCED] * p->each, 16) * 16;
    if (n->kind != FT_NODE_REDUCE || p->walkers == 1) continue;
    int64_t meet = (int64_t)ft_dtype_bytes(ft_simt_plan_sum(p, i).meet);
    int64_t slots = ft_simt_plan_is_row(p) ? p->choice.threads / FT_SIMT_WARP
                                           : p->choice.threads * lanes;
    bytes += (over(meet * slots, 16) * 16) * (p->parts > 1 ? 2 : 1);
  }
  return bytes;
}

static const char *room_refusal(const ft_simt_plan *p, ft_arena *arena) {
  if (p->choice.buffer == FT_SIMT_REGISTERS) {
    const char *wrong = register_refusal(p, arena);
    if (wrong) return wrong;
  }
  int64_t bytes = shared_bytes(p);
  if (bytes <= MOST_SHARED_BYTES) return NULL;
  return ft_arena_printf(arena, "%lld bytes of shared memory are more than %d",
                         (long long)bytes, MOST_SHARED_BYTES);
}

const char *ft_simt_plan_make(const ft_group_ir *ir, const ft_simt_choice *choice,
                              ft_arena *arena, ft_simt_plan *out) {
  *out = (ft_simt_plan){.ir = ir, .choice = *choice, .passes = ir->levels + 1};
  const char *wrong = launch_refusal(choice);
  if (!wrong) wrong = ft_nest_refusal(ir, arena);
  if (wrong) return wrong;
  if (choice->row_threads && !ir->reduced) return "no reduction, so no rows";
  if (choice->column_threads && !ir->reduced) return "no reduction, so no columns";
  choose_axes(out);
  if (out->lanes < choice->vector)
    return ft_arena_printf(arena, "no axis that %u divides", choice->vector);
  wrong = share_out(out, arena);
  if (!wrong) wrong = ft_simt_plan_passes(out, arena);
  return wrong ? wrong : room_refusal(out, arena);
}
