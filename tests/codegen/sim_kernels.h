// Small kernels, wrong in one way each, beside right ones: what SIM has to say of them,
// whatever the order of their blocks.
#ifndef FT_TESTS_CODEGEN_SIM_KERNELS_H
#define FT_TESTS_CODEGEN_SIM_KERNELS_H

#include "codegen/sim.h"
#include "simt_hands.h"

enum { ELEMENTS = 1024, THREADS = 32, BLOCKS = 4 };

// A kernel that has |in|, |out| (f32) and a workspace part and counters.
typedef struct frame {
  hand h;
  uint32_t in, out, part, counter;
} frame;

static frame open_frame(ft_arena *arena) {
  frame f = {.h = hand_start(BLOCKS, THREADS, arena)};
  f.in = ft_kir_global(f.h.kir, FT_F32, ELEMENTS, 0, false);
  f.out = ft_kir_global(f.h.kir, FT_F32, ELEMENTS, 1, true);
  f.part = ft_kir_workspace(f.h.kir, FT_F32, BLOCKS * THREADS, 2);
  f.counter = ft_kir_workspace(f.h.kir, FT_I32, 2, 2);
  return f;
}

static ft_kir_id own_place(frame *f) {
  return hand_plus(&f->h, hand_times(&f->h, f->h.block, THREADS), f->h.thread);
}

// ---- the last block

// The body of a grid-done of |blocks|; statements go into it.
static ft_kir_block *last_of(frame *f, ft_kir_id index, int64_t blocks) {
  hand *h = &f->h;
  ft_kir_block *outer = h->here;
  ft_kir_stmt *last = ft_kir_grid_done(h->kir, f->counter, index, hand_number(h, blocks));
  ft_kir_append(h->here, last);
  h->here = &last->body;
  return outer;
}

static void store_part(frame *f) {
  hand_store(&f->h, f->part, hand_load(&f->h, f->in, 1, own_place(f)), own_place(f));
}

// out[block 0's place] = the parts from |first| on
static void load_parts(frame *f, ft_kir_id first) {
  ft_kir_id at = hand_plus(&f->h, first, f->h.thread);
  hand_store(&f->h, f->out, hand_load(&f->h, f->part, 1, at), f->h.thread);
}

static void load_part(frame *f, int64_t number) {
  load_parts(f, hand_number(&f->h, number * THREADS));
}

// Those of the next block: in the last of all it ran before, whatever the order.
static void load_next_part(frame *f) {
  hand *h = &f->h;
  ft_kir_id next =
      ft_kir_index(h->kir, FT_KIR_IMOD, hand_plus(h, h->block, hand_number(h, 1)),
                   hand_number(h, BLOCKS));
  load_parts(f, hand_times(h, next, THREADS));
}

static ft_kir *stored_before(ft_arena *arena) {
  frame f = open_frame(arena);
  store_part(&f);
  last_of(&f, hand_number(&f.h, 0), BLOCKS);
  load_part(&f, 2);
  return hand_end(&f.h);
}

// Each block stores when it was counted already.
static ft_kir *stored_after(ft_arena *arena) {
  frame f = open_frame(arena);
  ft_kir_block *outer = last_of(&f, hand_number(&f.h, 0), BLOCKS);
  load_next_part(&f);
  f.h.here = outer;
  store_part(&f);
  return hand_end(&f.h);
}

// The same, and counted again by another counter, whose last block may read it: the last
// of the |reader|-th counter does.
static ft_kir *counted_twice(ft_arena *arena, int64_t reader) {
  frame f = open_frame(arena);
  for (int64_t i = 0; i < 2; i++) {
    if (i == 1) store_part(&f);
    ft_kir_block *outer = last_of(&f, hand_number(&f.h, i), BLOCKS);
    if (i == reader) load_next_part(&f);
    f.h.here = outer;
  }
  return hand_end(&f.h);
}
static ft_kir *stored_elsewhere(ft_arena *arena) {
  return counted_twice(arena, 0);
}
static ft_kir *stored_between(ft_arena *arena) {
  return counted_twice(arena, 1);
}

static ft_kir *never_stored(ft_arena *arena) {
  frame f = open_frame(arena);
  last_of(&f, hand_number(&f.h, 0), BLOCKS);
  load_part(&f, 2);
  return hand_end(&f.h);
}

static ft_kir *counted_too_far(ft_arena *arena) {
  frame f = open_frame(arena);
  store_part(&f);
  last_of(&f, hand_number(&f.h, 0), BLOCKS + 1);
  load_part(&f, 2);
  return hand_end(&f.h);
}

static ft_kir *counted_out_of_bounds(ft_arena *arena) {
  frame f = open_frame(arena);
  last_of(&f, hand_number(&f.h, 2), BLOCKS);
  load_part(&f, 2);
  return hand_end(&f.h);
}

// Output written by all, read by the last: the same rules.
static ft_kir *output_read_back(ft_arena *arena) {
  frame f = open_frame(arena);
  hand *h = &f.h;
  hand_store(h, f.out, hand_load(h, f.in, 1, own_place(&f)), own_place(&f));
  last_of(&f, hand_number(&f.h, 0), BLOCKS);
  ft_kir_id at = hand_plus(h, h->thread, hand_number(h, 2 * THREADS));
  hand_store(h, f.out, hand_load(h, f.out, 1, at), h->thread);
  return hand_end(h);
}

// All blocks store to the same place.
static ft_kir *stored_by_two_blocks(ft_arena *arena) {
  frame f = open_frame(arena);
  hand_store(&f.h, f.out, hand_load(&f.h, f.in, 1, own_place(&f)), f.h.thread);
  return hand_end(&f.h);
}

// ---- registers

static ft_kir *register_past_the_end(ft_arena *arena) {
  frame f = open_frame(arena);
  hand *h = &f.h;
  uint32_t r = ft_kir_registers(h->kir, h->here, (ft_kir_type){FT_F32, 1}, 4);
  ft_kir_stmt *loop = hand_loop(h, FT_KIR_UNROLL, 4);
  ft_kir_id next = hand_plus(h, loop->value, hand_number(h, 1));
  hand_store(h, r, hand_load(h, f.in, 1, own_place(&f)), next);
  return hand_end(h);
}

// ---- shared memory in a loop

// Each round stores a slab and reads the neighbour's part; |ends|: a barrier behind that.
static ft_kir *rounds(ft_arena *arena, bool ends) {
  frame f = open_frame(arena);
  hand *h = &f.h;
  hand_loop(h, FT_KIR_SERIAL, 2);
  uint32_t slab = ft_kir_shared(h->kir, h->here, FT_F32, THREADS);
  hand_store(h, slab, hand_load(h, f.in, 1, own_place(&f)), h->thread);
  ft_kir_barrier(h->kir, h->here);
  ft_kir_id back =
      ft_kir_index(h->kir, FT_KIR_ISUB, hand_number(h, THREADS - 1), h->thread);
  hand_store(h, f.out, hand_load(h, slab, 1, back), own_place(&f));
  if (ends) ft_kir_barrier(h->kir, h->here);
  return hand_end(h);
}
static ft_kir *rounds_apart(ft_arena *arena) {
  return rounds(arena, true);
}
static ft_kir *rounds_that_overlap(ft_arena *arena) {
  return rounds(arena, false);
}

// The second round reads what only the first one stored.
static ft_kir *slab_of_another_round(ft_arena *arena) {
  frame f = open_frame(arena);
  hand *h = &f.h;
  ft_kir_stmt *round = hand_loop(h, FT_KIR_SERIAL, 2);
  uint32_t slab = ft_kir_shared(h->kir, h->here, FT_F32, THREADS);
  ft_kir_block *outer = h->here;
  ft_kir_stmt *first = ft_kir_if(
      h->kir, ft_kir_index(h->kir, FT_KIR_ILESS, round->value, hand_number(h, 1)));
  ft_kir_append(h->here, first);
  h->here = &first->body;
  hand_store(h, slab, hand_load(h, f.in, 1, own_place(&f)), h->thread);
  h->here = outer;
  ft_kir_barrier(h->kir, h->here);
  hand_store(h, f.out, hand_load(h, slab, 1, h->thread), own_place(&f));
  ft_kir_barrier(h->kir, h->here);
  return hand_end(h);
}

// ---- loops

static ft_kir *loop_without_a_step(ft_arena *arena) {
  frame f = open_frame(arena);
  hand *h = &f.h;
  // No number to the verifier, 0 when it runs: no block is below 0.
  ft_kir_id none = ft_kir_index(h->kir, FT_KIR_ILESS, h->block, hand_number(h, 0));
  ft_kir_stmt *loop =
      ft_kir_for(h->kir, FT_KIR_SERIAL, hand_number(h, 0), hand_number(h, 1), none);
  hand_store(h, f.out, hand_load(h, f.in, 1, own_place(&f)), own_place(&f));
  ft_kir_append(h->here, loop);
  h->here = &loop->body;
  hand_store(h, f.out, hand_load(h, f.in, 1, h->thread), own_place(&f));
  return hand_end(h);
}

// ---- copies

enum { OWN, OTHER };  // whose part of the slab is read

typedef struct plan {
  int32_t batches;  // to wait for; -1: no wait
  bool has_commit, has_barrier, stores_first;
  int reads;
} plan;

static ft_kir *copy_by(ft_arena *arena, plan p) {
  frame f = open_frame(arena);
  hand *h = &f.h;
  uint32_t slab = ft_kir_shared(h->kir, h->here, FT_F32, THREADS);
  if (p.stores_first) {
    hand_store(h, slab, hand_load(h, f.in, 1, h->thread), h->thread);
    ft_kir_barrier(h->kir, h->here);
  }
  ft_kir_copy(h->kir, h->here, f.in, own_place(&f), slab, h->thread, 1, 0);
  if (p.has_commit) ft_kir_commit(h->kir, h->here);
  if (p.batches >= 0) ft_kir_wait(h->kir, h->here, p.batches);
  if (p.has_barrier) ft_kir_barrier(h->kir, h->here);
  ft_kir_id back =
      ft_kir_index(h->kir, FT_KIR_ISUB, hand_number(h, THREADS - 1), h->thread);
  ft_kir_id x = hand_load(h, slab, 1, p.reads == OWN ? h->thread : back);
  hand_store(h, f.out, x, own_place(&f));
  return hand_end(h);
}

static ft_kir *copy_awaited(ft_arena *arena) {
  return copy_by(arena, (plan){.has_commit = true, .has_barrier = true, .reads = OTHER});
}
static ft_kir *copy_of_its_own(ft_arena *arena) {
  return copy_by(arena, (plan){.has_commit = true});
}
static ft_kir *copy_over_its_own(ft_arena *arena) {
  return copy_by(arena, (plan){.has_commit = true, .stores_first = true});
}
static ft_kir *copy_without_a_barrier(ft_arena *arena) {
  return copy_by(arena, (plan){.has_commit = true, .stores_first = true, .reads = OTHER});
}
static ft_kir *copy_without_a_wait(ft_arena *arena) {
  return copy_by(arena, (plan){.batches = -1, .has_commit = true});
}
static ft_kir *copy_without_a_commit(ft_arena *arena) {
  return copy_by(arena, (plan){.has_barrier = true, .reads = OTHER});
}
static ft_kir *copy_still_under_way(ft_arena *arena) {
  return copy_by(arena, (plan){.batches = 1, .has_commit = true});
}

// Each thread waits when the barrier is past, and reads what the one before it copied.
static ft_kir *copy_awaited_late(ft_arena *arena) {
  frame f = open_frame(arena);
  hand *h = &f.h;
  uint32_t slab = ft_kir_shared(h->kir, h->here, FT_F32, THREADS);
  ft_kir_copy(h->kir, h->here, f.in, own_place(&f), slab, h->thread, 1, 0);
  ft_kir_commit(h->kir, h->here);
  ft_kir_barrier(h->kir, h->here);
  ft_kir_wait(h->kir, h->here, 0);
  ft_kir_id before = ft_kir_index(h->kir, FT_KIR_ISUB, h->thread, hand_number(h, 1));
  before = ft_kir_index(h->kir, FT_KIR_IMAX, before, hand_number(h, 0));
  hand_store(h, f.out, hand_load(h, slab, 1, before), own_place(&f));
  return hand_end(h);
}

// Two copies to the same place before a wait.
static ft_kir *copy_twice(ft_arena *arena) {
  frame f = open_frame(arena);
  hand *h = &f.h;
  uint32_t slab = ft_kir_shared(h->kir, h->here, FT_F32, THREADS);
  for (int i = 0; i < 2; i++) {
    ft_kir_copy(h->kir, h->here, f.in, own_place(&f), slab, h->thread, 1, 0);
    ft_kir_commit(h->kir, h->here);
  }
  ft_kir_wait(h->kir, h->here, 0);
  return hand_end(h);
}

static ft_kir *copy_from(ft_arena *arena, int64_t first, int64_t most) {
  frame f = open_frame(arena);
  hand *h = &f.h;
  uint32_t slab = ft_kir_shared(h->kir, h->here, FT_F32, THREADS);
  ft_kir_id at = hand_plus(h, own_place(&f), hand_number(h, first));
  ft_kir_id inside = ft_kir_index(h->kir, FT_KIR_ILESS, at, hand_number(h, most));
  ft_kir_copy(h->kir, h->here, f.in, at, slab, h->thread, 1, inside);
  ft_kir_commit(h->kir, h->here);
  ft_kir_wait(h->kir, h->here, 0);
  hand_store(h, f.out, hand_load(h, slab, 1, h->thread), own_place(&f));
  return hand_end(h);
}
static ft_kir *copy_past_the_end(ft_arena *arena) {
  return copy_from(arena, ELEMENTS - 8, ELEMENTS + 1);
}
static ft_kir *copy_of_zeros_past_the_end(ft_arena *arena) {
  return copy_from(arena, ELEMENTS - 8, ELEMENTS);
}

static const struct {
  const char *name;
  ft_kir *(*build)(ft_arena *arena);
  ft_sim_fault fault;
} cases[] = {
    {"stored before it is counted", stored_before, FT_SIM_FINE},
    {"stored after it is counted", stored_after, FT_SIM_RACE},
    {"stored before another counter counts it", stored_elsewhere, FT_SIM_RACE},
    {"stored between two counters, read by the later", stored_between, FT_SIM_FINE},
    {"never stored", never_stored, FT_SIM_UNINITIALISED},
    {"one block more than there are", counted_too_far, FT_SIM_UNCOUNTED},
    {"a counter that is not there", counted_out_of_bounds, FT_SIM_BOUNDS},
    {"an output read by the last block", output_read_back, FT_SIM_FINE},
    {"two blocks that store to one place", stored_by_two_blocks, FT_SIM_RACE},
    {"a register past the end", register_past_the_end, FT_SIM_BOUNDS},
    {"a loop without a step", loop_without_a_step, FT_SIM_ENDLESS},
    {"rounds apart", rounds_apart, FT_SIM_FINE},
    {"rounds that overlap", rounds_that_overlap, FT_SIM_RACE},
    {"a slab of another round", slab_of_another_round, FT_SIM_UNINITIALISED},
    {"a copy that is awaited", copy_awaited, FT_SIM_FINE},
    {"a copy of the thread's own", copy_of_its_own, FT_SIM_FINE},
    {"a copy over what the thread stored", copy_over_its_own, FT_SIM_FINE},
    {"a copy that others read without a barrier", copy_without_a_barrier, FT_SIM_RACE},
    {"a wait behind the barrier", copy_awaited_late, FT_SIM_RACE},
    {"a copy without a wait", copy_without_a_wait, FT_SIM_UNWAITED},
    {"a copy without a commit", copy_without_a_commit, FT_SIM_UNWAITED},
    {"a wait for one batch too few", copy_still_under_way, FT_SIM_UNWAITED},
    {"two copies to one place", copy_twice, FT_SIM_UNWAITED},
    {"a copy past the end", copy_past_the_end, FT_SIM_BOUNDS},
    {"zeros past the end", copy_of_zeros_past_the_end, FT_SIM_FINE},
};
enum { CASES = sizeof cases / sizeof *cases };

#endif
