// print_simt_half - F16 and BF16 in memory: how both SIMT prints convert them.
//
// Values are F32 (kir.h), memory holds unsigned shorts. CUDA: one conversion instruction
// a value, or for two neighbours where memory is written in vectors; none for a bf16 that
// is read. SIM: the same to the last bit in integer arithmetic, for any C compiler. Both
// round half to even, keep denormals, and make a quiet NaN of any NaN.
#ifndef FT_CODEGEN_PRINT_SIMT_HALF_H
#define FT_CODEGEN_PRINT_SIMT_HALF_H

#include "core/strbuf.h"
#include "graph/tensor.h"

// "f16" or "bf16", which the functions below end with; NULL: no short float.
//   float ft_widen_f16(unsigned short)
//   unsigned short ft_narrow_f16(float)
//   float ft_round_f16(float)                     what a stored value is read as
//   unsigned ft_narrow2_f16(float low, float high)   CUDA only: two neighbours
const char *ft_simt_half_name(ft_dtype dtype);
// The functions that |body| names.
void ft_simt_half_prelude(const char *body, bool is_sim, ft_strbuf *out);

#endif
