// parts - a workload that falls apart: parts that share inputs at most, none of which
// needs what another computes.
//
// Search makes such groups of siblings that read one buffer, and of imported operators
// that are not connected. Each part is a workload of its own, with its own canonical
// order and hash, so that equal parts of different groups are known as equal.
#ifndef FT_CODEGEN_PARTS_H
#define FT_CODEGEN_PARTS_H

#include "graph/group.h"

enum { FT_MOST_PARTS = 8 };

typedef struct ft_part {
  ft_workload workload;
  // [inputs + outputs + 1] position in the whole's ABI of each position in the part's;
  // the last is the workspace.
  uint32_t *argument;
} ft_part;

typedef struct ft_parts {
  uint32_t count;  // of all; only the first FT_MOST_PARTS are in |part|
  ft_part part[FT_MOST_PARTS];
} ft_parts;

// How many parts |workload| has: 1 when it hangs together. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_parts_count(const ft_workload *workload, ft_arena *arena,
                                       uint32_t *out, ft_error *error);
// The parts, by their first primitive in the workload's order; in |arena|, over the
// workload's graph. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_parts_make(const ft_workload *workload, ft_arena *arena,
                                      ft_parts *out, ft_error *error);

#endif
