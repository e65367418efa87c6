// Loops over the axes of a nest, unrolled: several steps in one body, in ascending order,
// each in a scope of its own. Vectors wider than a register would do the same, but
// compilers take them apart from the far end, which caches and streamed stores punish.
#include "codegen/nest_emit.h"

static uint64_t bit(uint32_t axis) {
  return (uint64_t)1 << axis;
}

ft_kir_stmt *ft_nest_open(ft_nest_emitter *e, ft_kir_loop kind, ft_kir_id begin,
                          ft_kir_id end, int64_t step) {
  ft_kir_stmt *loop = ft_kir_for(e->kir, kind, begin, end, ft_nest_number(e, step));
  ft_nest_enter(e, &loop->body, 0);
  return loop;
}

void ft_nest_close(ft_nest_emitter *e, ft_kir_stmt *stmt) {
  ft_nest_leave(e);
  ft_kir_append(ft_nest_here(e), stmt);
}

static void run_at(ft_nest_emitter *e, uint32_t axis, ft_kir_id at, uint32_t step,
                   uint16_t first, ft_nest_body *run) {
  ft_nest_enter(e, ft_nest_here(e), bit(axis));
  e->index[axis] = at;
  e->step = step;
  run(e, first);
  e->step = 0;
  ft_nest_leave(e);
}

// |count| steps of the body of a loop over |axis|.
static void run_steps(ft_nest_emitter *e, uint32_t axis, ft_kir_id at, int64_t step,
                      uint32_t count, ft_nest_body *run) {
  for (uint32_t u = 0; u < count; u++) {
    ft_kir_id here = ft_kir_index(e->kir, FT_KIR_IADD, at, ft_nest_number(e, u * step));
    run_at(e, axis, here, u, 0, run);
  }
}

static void loop_over(ft_nest_emitter *e, uint32_t axis, ft_kir_id begin, ft_kir_id end,
                      int64_t step, uint32_t unroll, ft_nest_body *run) {
  bool is_vector = e->nest->has_vector && axis == e->nest->vector_axis;
  ft_kir_stmt *loop = ft_nest_open(e, is_vector ? FT_KIR_VECTOR : FT_KIR_SERIAL, begin,
                                   end, step * unroll);
  run_steps(e, axis, loop->value, step, unroll, run);
  ft_nest_close(e, loop);
}

// The last multiple of |span| from |begin| on that is not past |end|.
static ft_kir_id last_whole(ft_nest_emitter *e, ft_kir_id begin, ft_kir_id end,
                            int64_t span) {
  ft_kir_id length = ft_kir_index(e->kir, FT_KIR_ISUB, end, begin);
  ft_kir_id spans = ft_kir_index(e->kir, FT_KIR_IDIV, length, ft_nest_number(e, span));
  ft_kir_id whole = ft_kir_index(e->kir, FT_KIR_IMUL, spans, ft_nest_number(e, span));
  return ft_kir_let(e->kir, ft_nest_here(e),
                    ft_kir_index(e->kir, FT_KIR_IADD, begin, whole));
}

static bool is_same(const ft_nest_emitter *e, ft_kir_id a, ft_kir_id b) {
  int64_t x, y;
  return a == b ||
         (ft_kir_is_number(e->kir, a, &x) && ft_kir_is_number(e->kir, b, &y) && x == y);
}

void ft_nest_walk(ft_nest_emitter *e, uint32_t axis, ft_kir_id begin, ft_kir_id end,
                  int64_t step, bool is_whole, ft_nest_body *run) {
  uint32_t unroll = e->nest->unroll;
  ft_kir_id middle = end;
  if (unroll > 1 && !is_whole) middle = last_whole(e, begin, end, step * unroll);
  if (!is_same(e, begin, middle)) loop_over(e, axis, begin, middle, step, unroll, run);
  if (!is_same(e, middle, end)) loop_over(e, axis, middle, end, step, 1, run);
}

// ---- all of the vector axis
// ------------------------------------------------------------

// The tail is the last step of the loop, moved back.
static void walk_twice(ft_nest_emitter *e, ft_kir_id begin, ft_kir_id end,
                       ft_nest_body *run) {
  uint32_t axis = e->nest->vector_axis;
  int64_t lanes = e->nest->lanes, extent = e->ir->extent[axis];
  ft_kir_stmt *loop = ft_nest_open(e, FT_KIR_VECTOR, begin, end, lanes);
  ft_kir_id at = loop->value;
  if (extent % lanes) {
    ft_kir_id last = ft_kir_index(e->kir, FT_KIR_ISUB, end, ft_nest_number(e, lanes));
    at = ft_kir_let(e->kir, ft_nest_here(e), ft_kir_index(e->kir, FT_KIR_IMIN, at, last));
  }
  run_at(e, axis, at, 0, extent % lanes ? 1 : 0, run);
  ft_nest_close(e, loop);
}

static void walk_tail(ft_nest_emitter *e, ft_kir_id end, ft_nest_body *run) {
  uint32_t axis = e->nest->vector_axis;
  int64_t lanes = e->nest->lanes, extent = e->ir->extent[axis];
  ft_kir_id is_last =
      ft_kir_index(e->kir, FT_KIR_ILESS, ft_nest_number(e, extent - 1), end);
  ft_kir_stmt *tail = ft_kir_if(e->kir, is_last);
  ft_nest_enter(e, &tail->body, 0);
  run_at(e, axis, ft_nest_number(e, extent - lanes), 0, 1, run);
  ft_nest_close(e, tail);
}

// True when some block has vectors that fill no unrolled step.
static bool has_rest(const ft_nest_emitter *e, int64_t span) {
  const ft_nest *nest = e->nest;
  bool is_cut = nest->chunks > 1 && nest->chunk % span;
  return is_cut || e->ir->extent[nest->vector_axis] % span >= nest->lanes;
}

// The tail apart, so that all other steps are aligned.
static void walk_aligned(ft_nest_emitter *e, ft_kir_id begin, ft_kir_id end,
                         uint32_t unroll, ft_nest_body *run) {
  int64_t lanes = e->nest->lanes, span = lanes * unroll;
  uint32_t axis = e->nest->vector_axis;
  ft_kir_id rest = begin;
  if (unroll > 1) {
    rest = last_whole(e, begin, end, span);
    loop_over(e, axis, begin, rest, lanes, unroll, run);
  }
  ft_kir_id last = ft_kir_index(e->kir, FT_KIR_ISUB, end, ft_nest_number(e, lanes - 1));
  if (unroll == 1 || has_rest(e, span)) loop_over(e, axis, rest, last, lanes, 1, run);
  if (e->ir->extent[axis] % lanes) walk_tail(e, end, run);
}

void ft_nest_walk_vector(ft_nest_emitter *e, ft_kir_id begin, ft_kir_id end,
                         uint32_t unroll, ft_nest_body *run) {
  if (e->nest->streams || unroll > 1)
    walk_aligned(e, begin, end, unroll, run);
  else
    walk_twice(e, begin, end, run);
}

void ft_nest_walk_steps(ft_nest_emitter *e, ft_nest_body *run) {
  uint32_t axis = e->nest->vector_axis;
  int64_t lanes = e->nest->lanes, extent = e->ir->extent[axis];
  for (uint32_t s = 0; s < e->nest->steps; s++) {
    int64_t at = s * lanes, last = extent - lanes;
    uint16_t first = at > last ? (uint16_t)(at - last) : 0;
    run_at(e, axis, ft_nest_number(e, at > last ? last : at), s, first, run);
  }
}
