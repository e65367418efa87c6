// prelude - the helper functions a kernel's text needs, and no others.
//
// codegen/vector_math.inc holds them as templates over lane counts and element types; a
// kernel's text names what it uses (ft_exp_f32x16), and the prelude is the closure.
#ifndef FT_CODEGEN_PRELUDE_H
#define FT_CODEGEN_PRELUDE_H

#include "core/strbuf.h"

// The text that must stand before |body| (one kernel or several), in |arena|; NULL when
// out of memory. Depends on nothing else: equal bodies give equal bytes. Asserts that
// every ft_..xN name in |body| exists.
const char *ft_prelude_for(const char *body, ft_arena *arena);

#endif
