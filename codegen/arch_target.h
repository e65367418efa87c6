// arch_target - targets without a device: an architecture that NVRTC compiles for, and
// the chip whose numbers stand for it; and SIM, which checks and is never timed.
#ifndef FT_CODEGEN_ARCH_TARGET_H
#define FT_CODEGEN_ARCH_TARGET_H

#include "graph/target.h"

// "cpu sim sm_80 ...": what a target may be called, in |arena|; NULL: out of memory.
const char *ft_target_names(ft_arena *arena);
// The target |name| (not "cpu"), not sealed; strings in |arena|. INVALID_ARGUMENT: no
// such target, the text lists them. UNAVAILABLE: sm_NN without NVRTC, or with one that is
// too old for it; the text says what to install.
FT_MUST_CHECK ft_status ft_arch_target(const char *name, ft_arena *arena, ft_target *out,
                                       ft_error *error);

// One line on NVRTC: its version, what it compiles for, which targets that gives; or why
// there is none. In |arena|; NULL: out of memory.
const char *ft_arch_report(ft_arena *arena);

#endif
