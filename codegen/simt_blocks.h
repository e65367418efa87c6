// simt_blocks - S9: independent parts of a group in one launch, a range of blocks each.
//
// Each part (parts.h) is built by a skeleton and choice of its own, as if it were alone;
// kir_join.h makes one kernel of them. A launch is saved, and small parts run beside each
// other: what a part alone leaves idle of the chip another may use. All parts have blocks
// of one size; registers are about the most that any part needs, and so is, for every
// block, what it waits for.
#ifndef FT_CODEGEN_SIMT_BLOCKS_H
#define FT_CODEGEN_SIMT_BLOCKS_H

#include "codegen/kir_join.h"
#include "codegen/parts.h"
#include "codegen/simt_choice.h"

typedef struct ft_simt_blocks_choice {
  ft_kir_order order;
  uint32_t min_blocks;                     // as in simt_choice.h; those of parts are 0
  uint32_t count;                          // of parts
  ft_simt_any_choice part[FT_MOST_PARTS];  // in the order of ft_parts_make
} ft_simt_blocks_choice;

// NULL, or why the choice cannot work: a group that hangs together or has more than
// FT_MOST_PARTS parts, choices for another number of parts, "part 1: " and what its
// skeleton says, or what ft_kir_join_refusal says. Builds the parts to know.
const char *ft_simt_blocks_refusal(const ft_workload *workload,
                                   const ft_simt_blocks_choice *choice, ft_arena *arena);
// |choice| was not refused.
FT_MUST_CHECK ft_status ft_simt_blocks_build(const ft_workload *workload,
                                             const ft_simt_blocks_choice *choice,
                                             ft_arena *arena, ft_kir **out,
                                             ft_error *error);

// For each part what ft_simt_any_choose gives for blocks of |threads|. NULL and the
// choice, which may still be refused, or why there is none.
const char *ft_simt_blocks_choose(const ft_workload *workload, uint32_t threads,
                                  ft_kir_order order, ft_arena *arena,
                                  ft_simt_blocks_choice *out);

#endif
