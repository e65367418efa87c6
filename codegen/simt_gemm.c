// Decides how a choice works out for a product, and lays out a block.
#include "codegen/simt_gemm.h"

#include <math.h>

#include "codegen/simt_gemm_emit.h"
#include "codegen/simt_grid.h"

enum {
  WARP = 32,
  VECTOR_BYTES = 16,
  MOST_HELD = 32,           // elements of a slab that a thread holds
  MOST_SHARED = 160 << 10,  // bytes: what a block of sm_80 can have
};

// ---- what it takes
// ---------------------------------------------------------------------------

uint32_t ft_simt_gemm_threads(const ft_simt_gemm_choice *c) {
  return c->block_m / c->thread_m * (c->block_n / c->thread_n);
}

static uint32_t splits_of(const ft_simt_gemm_choice *c) {
  return c->splits ? c->splits : 1;
}

static const char *tile_refusal(const ft_simt_gemm_choice *c) {
  if (!ft_simt_is_power(c->block_m, 8, 128) || !ft_simt_is_power(c->block_n, 8, 128))
    return "block_m or block_n is not a power of two from 8 to 128";
  if (!ft_simt_is_power(c->block_k, 4, 32)) return "block_k is not 4, 8, 16 or 32";
  if (!ft_simt_is_power(c->thread_m, 1, FT_GEMM_THREAD) ||
      !ft_simt_is_power(c->thread_n, 1, FT_GEMM_THREAD))
    return "thread_m or thread_n is not 1, 2, 4 or 8";
  uint32_t threads = ft_simt_gemm_threads(c);
  if (threads < WARP || threads > 1024)
    return "a block of less than 32 or over 1024 threads";
  return NULL;
}

static const char *choice_refusal(const ft_simt_gemm_choice *c) {
  const char *wrong = tile_refusal(c);
  if (wrong) return wrong;
  if (c->stages < 1 || c->stages > 4) return "stages is not 1 to 4";
  if (c->copies && c->stages == 1) return "copies need 2 stages";
  if (!c->copies && c->stages > 2) return "registers hold one slab: 2 stages";
  if (c->splits > 64) return "splits is not 1 to 64";
  return NULL;
}

// ---- slabs
// -------------------------------------------------------------------------------------

static uint32_t chunk_of(ft_dtype math, uint32_t thread) {
  uint32_t most = math == FT_F64 ? 2 : 4;
  return thread < most ? thread : most;
}

// Neighbouring terms of one operand would be in one bank without the padding.
static void plan_slab(ft_gemm *g, int which) {
  const ft_simt_gemm_choice *c = g->choice;
  ft_gemm_slab *s = &g->slab[which];
  uint32_t size = (uint32_t)ft_dtype_bytes(g->q.dtype);
  s->block = which == 0 ? c->block_m : c->block_n;
  s->extent = which == 0 ? g->q.m : g->q.n;
  uint32_t along = s->reach.is_along_terms ? c->block_k : s->block;
  while (s->reach.lanes > along) s->reach.lanes /= 2;
  uint32_t copied = s->reach.is_along_terms ? 1 : s->reach.lanes;
  s->is_copied = c->copies && s->reach.is_plain && copied * size >= 4;
  if (s->is_copied) s->reach.lanes = (uint16_t)copied;
  s->pitch = s->block + (s->reach.is_along_terms ? VECTOR_BYTES / size : 0);
  s->pieces = s->block * c->block_k / s->reach.lanes;
  s->rounds = (s->pieces + g->threads - 1) / g->threads;
  s->slots = s->is_copied ? c->stages : c->stages > 1 ? 2 : 1;
}

// Terms that one sum may have, in steps; 0: all.
static int64_t sum_steps(const ft_gemm *g) {
  double steps = floor(ft_simt_product_most_terms(&g->q) / g->choice->block_k);
  return steps < (double)g->split_steps ? (int64_t)steps : 0;
}

static ft_status plan(const ft_workload *workload, const ft_simt_gemm_choice *choice,
                      ft_arena *arena, ft_gemm *g, ft_error *error) {
  *g = (ft_gemm){.q = ft_simt_product_of(workload),
                 .choice = choice,
                 .threads = ft_simt_gemm_threads(choice)};
  g->math = ft_kir_math_dtype(g->q.dtype);
  g->tile_count = g->q.batches * ft_simt_tiles(g->q.m, choice->block_m);
  g->tile_count *= ft_simt_tiles(g->q.n, choice->block_n);
  g->steps = ft_simt_tiles(g->q.k, choice->block_k);
  g->split_steps = ft_simt_tiles(g->steps, splits_of(choice));
  g->sum_steps = sum_steps(g);
  g->chunk[0] = chunk_of(g->math, choice->thread_m);
  g->chunk[1] = chunk_of(g->math, choice->thread_n);
  for (int i = 0; i < 2; i++) {
    FT_TRY(ft_simt_product_reach(&g->q, i, arena, &g->slab[i].reach, error));
    plan_slab(g, i);
  }
  return ft_simt_product_store_lanes(&g->q, (uint16_t)g->chunk[1], arena, &g->store_lanes,
                                     error);
}

// ---- refusals
// ----------------------------------------------------------------------------------

static const char *slab_refusal(const ft_gemm *g, ft_arena *arena) {
  int64_t bytes = 0;
  for (int i = 0; i < 2; i++) {
    const ft_gemm_slab *s = &g->slab[i];
    bytes += ft_gemm_slab_elements(g, i) * (int64_t)ft_dtype_bytes(g->q.dtype);
    if (g->choice->stages > 1 && !s->is_copied && s->rounds * s->reach.lanes > MOST_HELD)
      return ft_arena_printf(arena, "a thread would hold %u elements of operand %d",
                             s->rounds * s->reach.lanes, i);
  }
  if (g->choice->copies && !g->slab[0].is_copied && !g->slab[1].is_copied)
    return "no operand can be copied";
  if (g->choice->shares_sums && !g->sum_steps) return "no sums wait";
  if (g->choice->shares_sums)
    bytes += ft_gemm_tile_elements(g) * (int64_t)ft_dtype_bytes(g->math);
  if (bytes > MOST_SHARED)
    return ft_arena_printf(arena, "%lld bytes of shared memory", (long long)bytes);
  return NULL;
}

const char *ft_simt_gemm_refusal(const ft_workload *workload,
                                 const ft_simt_gemm_choice *choice, ft_arena *arena) {
  ft_gemm g;
  const char *wrong = choice_refusal(choice);
  if (!wrong) wrong = ft_simt_product_refusal(workload, arena);
  if (wrong) return wrong;
  if (plan(workload, choice, arena, &g, NULL) != FT_OK) return "out of memory";
  int64_t splits = splits_of(choice);
  if (splits > 1 && (splits - 1) * g.split_steps >= g.steps)
    return ft_arena_printf(arena, "%lld splits of %lld steps", (long long)splits,
                           (long long)g.steps);
  if (g.tile_count > INT32_MAX / splits) return "too many blocks";
  return slab_refusal(&g, arena);
}

// ---- steps
// -------------------------------------------------------------------------------------

static void meet(ft_gemm *g) {
  ft_kir_barrier(g->q.e->kir, ft_loop_here(g->q.e));
}

static ft_kir_stmt *open_steps(ft_gemm *g) {
  ft_kir_stmt *loop = ft_kir_for(g->q.e->kir, FT_KIR_SERIAL, ft_gemm_number(g, 0),
                                 g->step_count, ft_gemm_number(g, 1));
  ft_loop_enter(g->q.e, &loop->body);
  return loop;
}

static void walk_one_stage(ft_gemm *g) {
  ft_kir_stmt *loop = open_steps(g);
  ft_gemm_fill_slab(g, 0, loop->value);
  ft_gemm_fill_slab(g, 1, loop->value);
  meet(g);
  ft_gemm_multiply_slab(g, loop->value);
  ft_gemm_set_aside(g, loop->value);
  meet(g);
  ft_loop_close(g->q.e, loop);
}

typedef void slab_step(ft_gemm *g, int which, ft_kir_id step);

static void of_slabs(ft_gemm *g, bool is_copied, slab_step *what, ft_kir_id step) {
  for (int i = 0; i < 2; i++)
    if (g->slab[i].is_copied == is_copied) what(g, i, step);
}

// |what| for the slabs that are copied, or for those that are not, if there is such a
// step.
static void ahead(ft_gemm *g, bool is_copied, slab_step *what, ft_kir_id step) {
  bool any = g->slab[0].is_copied == is_copied || g->slab[1].is_copied == is_copied;
  int64_t known;
  if (!any) return;
  ft_kir_id is_there = ft_gemm_index(g, FT_KIR_ILESS, step, g->step_count);
  if (ft_kir_is_number(g->q.e->kir, is_there, &known)) {
    if (known) of_slabs(g, is_copied, what, step);
    return;
  }
  ft_kir_stmt *branch = ft_kir_if(g->q.e->kir, is_there);
  ft_loop_enter(g->q.e, &branch->body);
  of_slabs(g, is_copied, what, step);
  ft_loop_close(g->q.e, branch);
}

static bool has_copies(const ft_gemm *g) {
  return g->slab[0].is_copied || g->slab[1].is_copied;
}

static void commit(ft_gemm *g) {
  if (has_copies(g)) ft_kir_commit(g->q.e->kir, ft_loop_here(g->q.e));
}

// All but the newest copies have arrived, here and, behind the barrier, everywhere.
static void await(ft_gemm *g) {
  if (has_copies(g))
    ft_kir_wait(g->q.e->kir, ft_loop_here(g->q.e), (int32_t)g->choice->stages - 2);
  meet(g);
}

// Step t writes the slots of steps t + 1 (through registers) and t + stages - 1 (copies,
// the slot of step t - 1): neither has a reader between the barriers around step t. Each
// step has a batch of copies, maybe empty, so that the count of those under way is known.
static void walk_stages(ft_gemm *g) {
  int64_t stages = g->choice->stages;
  for (int64_t i = 0; i + 1 < stages; i++) {
    ahead(g, true, ft_gemm_copy_slab, ft_gemm_number(g, i));
    commit(g);
  }
  ahead(g, false, ft_gemm_take_slab, ft_gemm_number(g, 0));
  ahead(g, false, ft_gemm_put_slab, ft_gemm_number(g, 0));
  await(g);
  ft_kir_stmt *loop = open_steps(g);
  ft_kir_id next = ft_gemm_named(g, ft_gemm_plus(g, loop->value, ft_gemm_number(g, 1)));
  ft_kir_id far = ft_gemm_plus(g, loop->value, ft_gemm_number(g, stages - 1));
  ahead(g, true, ft_gemm_copy_slab, ft_gemm_named(g, far));
  commit(g);
  ahead(g, false, ft_gemm_take_slab, next);
  ft_gemm_multiply_slab(g, loop->value);
  ft_gemm_set_aside(g, loop->value);
  ahead(g, false, ft_gemm_put_slab, next);
  await(g);
  ft_loop_close(g->q.e, loop);
}

// ---- the block
// --------------------------------------------------------------------------------------

static void enter_split(ft_gemm *g, ft_kir_id block) {
  uint32_t splits = splits_of(g->choice);
  g->tile =
      ft_gemm_named(g, ft_gemm_index(g, FT_KIR_IDIV, block, ft_gemm_number(g, splits)));
  g->split = ft_gemm_index(g, FT_KIR_IMOD, block, ft_gemm_number(g, splits));
  g->first_step = ft_gemm_named(g, ft_gemm_times(g, g->split, g->split_steps));
  ft_kir_id rest =
      ft_gemm_index(g, FT_KIR_ISUB, ft_gemm_number(g, g->steps), g->first_step);
  g->step_count = ft_gemm_named(
      g, ft_gemm_index(g, FT_KIR_IMIN, rest, ft_gemm_number(g, g->split_steps)));
}

static void enter_block(ft_gemm *g, ft_kir_id block) {
  int64_t across = ft_simt_tiles(g->q.n, g->choice->block_n),
          down = ft_simt_tiles(g->q.m, g->choice->block_m);
  enter_split(g, block);
  ft_kir_id column = ft_gemm_index(g, FT_KIR_IMOD, g->tile, ft_gemm_number(g, across));
  ft_kir_id rest = ft_gemm_index(g, FT_KIR_IDIV, g->tile, ft_gemm_number(g, across));
  ft_kir_id row = ft_gemm_index(g, FT_KIR_IMOD, rest, ft_gemm_number(g, down));
  ft_kir_id batch = ft_gemm_index(g, FT_KIR_IDIV, rest, ft_gemm_number(g, down));
  g->first[1] = ft_gemm_named(g, ft_gemm_times(g, column, g->choice->block_n));
  g->first[0] = ft_gemm_named(g, ft_gemm_times(g, row, g->choice->block_m));
  ft_simt_product_enter_batch(&g->q, batch);
}

static void put_thread(ft_gemm *g, ft_kir_id block) {
  ft_kir_id across = ft_gemm_number(g, g->choice->block_n / g->choice->thread_n);
  g->place[0] = ft_gemm_named(g, ft_gemm_index(g, FT_KIR_IDIV, g->thread, across));
  g->place[1] = ft_gemm_named(g, ft_gemm_index(g, FT_KIR_IMOD, g->thread, across));
  enter_block(g, block);
  for (int i = 0; i < 2; i++) ft_gemm_open_slab(g, i);
  ft_gemm_open_totals(g);
  if (g->choice->stages == 1)
    walk_one_stage(g);
  else
    walk_stages(g);
  ft_gemm_finish_sums(g);
  if (splits_of(g->choice) > 1)
    ft_gemm_store_split(g);
  else
    ft_gemm_store_tile(g);
}

ft_status ft_simt_gemm_build(const ft_workload *workload,
                             const ft_simt_gemm_choice *choice, ft_arena *arena,
                             ft_kir **out, ft_error *error) {
  ft_gemm g;
  FT_TRY(plan(workload, choice, arena, &g, error));
  FT_TRY(ft_loop_open(workload, arena, &g.q.e, error));
  ft_loop_emitter *e = g.q.e;
  ft_simt_grid grid = ft_simt_grid_open(e, g.tile_count * splits_of(choice), g.threads);
  g.thread = grid.threads->value;
  put_thread(&g, grid.blocks->value);
  return ft_simt_grid_close(e, &grid, out, error);
}
