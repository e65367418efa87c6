// ptxas_log - what `ptxas -v` says of a kernel, read from NVRTC's program log.
//
// Spill bytes are in no other place than this log. A device function that was not inlined
// has lines of its own after its entry; its spills and frame are added to the entry's.
// Source of the lines: CUDA 13.0, sm_75 to sm_121 (shared memory and constant parts
// differ).
#ifndef FT_CODEGEN_PTXAS_LOG_H
#define FT_CODEGEN_PTXAS_LOG_H

#include <stdbool.h>

#include "graph/module.h"

// Facts of the entry function |name|; false (and all -1) when the log does not have it.
// Any text is fine. max_threads and occupancy stay -1.
bool ft_ptxas_log_read(const char *log, const char *name, ft_static_facts *out);

#endif
