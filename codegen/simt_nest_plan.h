// simt_nest_plan - what a choice decides about a nest with threads. Private to
// codegen/simt_nest*.c.
#ifndef FT_CODEGEN_SIMT_NEST_PLAN_H
#define FT_CODEGEN_SIMT_NEST_PLAN_H

#include "codegen/simt_nest.h"

enum { FT_SIMT_WARP = 32, FT_SIMT_MOST_UNROLL = 8 };
enum { FT_SIMT_KEPT, FT_SIMT_REDUCED };  // sets of axes

typedef struct ft_simt_plan {
  const ft_group_ir *ir;
  ft_simt_choice choice;
  uint64_t set[2];  // axes, a bit each
  bool has_vector;
  uint32_t vector_axis;
  uint16_t lanes;
  uint32_t order[2][FT_MAX_AXES], count[2];  // outermost first, the vector axis last
  int64_t steps[2];                          // products; a vector is one step
  uint32_t walkers;                          // threads that share a row; 1 for items
  uint32_t each;                             // rows of a block; items: of a turn
  uint32_t parts;                            // blocks that share a row
  int64_t part;           // steps of a part; the last one may have less
  int64_t share;          // most steps of a thread
  uint32_t accumulators;  // of a reduction in a thread
  int64_t grid;
  // passes 1 to levels + 1
  uint32_t passes;
  bool *is_needed;     // [pass * node_count + node] the pass loads or computes it
  bool *is_kept;       // [node] waits for later passes
  uint32_t *home;      // [node] of one kept: the node whose place it takes, when that
                       // waits no more; itself: a place of its own
  uint32_t *first;     // [node] the pass that has it first; 0: none
  int64_t kept_words;  // 4 bytes, that a thread keeps of a step, at most at a time
} ft_simt_plan;

// NULL, or why not. |arena| exhausted: "out of memory".
const char *ft_simt_plan_make(const ft_group_ir *ir, const ft_simt_choice *choice,
                              ft_arena *arena, ft_simt_plan *out);

static inline bool ft_simt_plan_is_row(const ft_simt_plan *p) {
  return p->choice.row_threads != 0;
}
static inline bool ft_simt_plan_is_item(const ft_simt_plan *p) {
  return !p->choice.row_threads && !p->choice.column_threads;
}
static inline bool ft_simt_plan_varies(const ft_simt_plan *p, uint64_t mask) {
  return p->has_vector && (mask >> p->vector_axis & 1);
}

// ---- simt_nest_keep.c: what passes need, and what waits for later ones
// The pass that stores output |output|, one over the reduced axes.
uint32_t ft_simt_plan_store_pass(const ft_simt_plan *p, uint32_t output);
// Fills what depends on passes; NULL, or why |buffer| cannot work.
const char *ft_simt_plan_passes(ft_simt_plan *p, ft_arena *arena);

// ---- simt_nest_sum.c: how a reduction adds up
typedef struct ft_simt_sum {
  ft_dtype part;  // dtype of a thread's accumulators
  ft_dtype meet;  // of what threads and blocks exchange
  int64_t chunk;  // turns of |accumulators| steps until accumulators go to a total of
                  // dtype |meet|; 0: they are the total
} ft_simt_sum;
ft_simt_sum ft_simt_plan_sum(const ft_simt_plan *p, uint32_t node);

#endif
