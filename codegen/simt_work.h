// simt_work - what a kernel with threads does, counted from its statements: accesses of
// memory as the warps make them, and operations. For predictions where nothing can run.
//
// Exact for loops with known bounds and indices that only data could change; else an
// estimate. Each access is looked at for the first warp, in the first turn of the loops
// around it: the 32-byte sectors its 32 threads touch together, and the turns that shared
// memory's banks need. A branch is taken as often as its condition holds for the indices
// in question; of two ways, both count. A multiplication that only an addition uses
// counts with it. Index arithmetic, and what an optimiser makes of all this, are not
// counted.
#ifndef FT_CODEGEN_SIMT_WORK_H
#define FT_CODEGEN_SIMT_WORK_H

#include "codegen/kir.h"
#include "graph/module.h"

// |kir| is verified, with a thread loop. About a millisecond. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_simt_work_of(const ft_kir *kir, ft_kernel_work *out,
                                        ft_error *error);

#endif
