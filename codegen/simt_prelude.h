// simt_prelude - the scalar functions that printed SIMT kernels call, one per primitive
// and element type, in the common part of C11 and CUDA C++.
#ifndef FT_CODEGEN_SIMT_PRELUDE_H
#define FT_CODEGEN_SIMT_PRELUDE_H

#include "core/strbuf.h"
#include "graph/tensor.h"

// Appends those that |body| names (ft_max_f32), and what they call. FT_FN must be
// defined before them.
void ft_simt_prelude_for(const char *body, ft_strbuf *out);
// Of a value: "float" (F16 and BF16 as well), "long long"; NULL: no kernels for this
// dtype.
const char *ft_simt_c_type(ft_dtype dtype);
// Of an element in memory: "unsigned short" for F16 and BF16.
const char *ft_simt_stored_type(ft_dtype dtype);

#endif
