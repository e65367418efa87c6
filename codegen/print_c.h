// print_c - a kernel as plain C: one thread per block, wide vectors.
#ifndef FT_CODEGEN_PRINT_C_H
#define FT_CODEGEN_PRINT_C_H

#include "codegen/kir.h"

// The function's body, braces included, of a verified kernel, in the kernel's arena: what
// follows "int32_t NAME(void *const *buffers, const int64_t *scalars, uint32_t block,
// uint32_t thread, void *scratch)". Equal kernels give equal bytes.
// UNSUPPORTED: more than one thread per block. INTERNAL: not well formed.
FT_MUST_CHECK ft_status ft_print_c(ft_kir *kir, const char **out_body, ft_error *error);

#endif
