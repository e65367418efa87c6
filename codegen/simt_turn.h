// simt_turn - S4: pointwise work over tensors that lie in memory along two different
// axes, turned a tile at a time in shared memory.
//
// Two axes, near and far: each tensor that depends on both is contiguous along one of
// them. A block owns a tile of |tile_near| x |tile_far| of them, at one index of all
// other axes, and its threads walk it three times:
//   1  along the far axis: what is contiguous there is read, and what the other side
//   needs
//      of it put down in shared memory, as read or with the work done that needs nothing
//      else, whichever is fewer bytes. Outputs along the far axis that are known are
//      stored at once;
//   2  along the near axis: everything else is read, computed and stored;
//   3  along the far axis, when an output there was not known in 1: through shared memory
//      the other way.
// Global memory is touched in vectors on both sides. Which of two axes is the near one is
// decided by the bytes that cross.
//
// In shared memory a row is what the writing side walks; the other side reads columns. To
// keep the lanes of a warp in different banks (codegen/bank_conflicts.h) rows are padded
// by a word, or, with |swizzles|, the vectors of a row are rotated: then rows are written
// 16 bytes at a time. Tiles hold the dtype of what crosses: a transpose of f16 moves 2
// bytes per element.
#ifndef FT_CODEGEN_SIMT_TURN_H
#define FT_CODEGEN_SIMT_TURN_H

#include "codegen/group_ir.h"
#include "codegen/kir.h"

typedef struct ft_simt_turn_choice {
  uint32_t threads;                  // of a block: a power of two, 32 to 1024
  uint32_t tile_near, tile_far;      // powers of two, 8 to 128
  uint32_t vector_near, vector_far;  // 1, 2, 4, 8: elements of a thread and step, 16
                                     // bytes at most of the narrowest tensor there
  bool swizzles;                     // else rows are padded
  bool streams;                      // stores will not be read soon
} ft_simt_turn_choice;

// NULL, or why the choice cannot work for |ir|: a reduction, no two inner axes or more
// than two, extents that the vectors do not divide, a tile that the threads cannot share
// evenly or that does not fit shared memory.
const char *ft_simt_turn_refusal(const ft_group_ir *ir, const ft_simt_turn_choice *choice,
                                 ft_arena *arena);
// |choice| was not refused.
FT_MUST_CHECK ft_status ft_simt_turn_build(const ft_group_ir *ir,
                                           const ft_simt_turn_choice *choice,
                                           ft_arena *arena, ft_kir **out,
                                           ft_error *error);

#endif
