// npy - NumPy's array files: one tensor each.
//
// Read: versions 1.0 and 2.0, little endian, C order, a plain dtype of ours (f16, f32,
// f64, bool, i8..i64, u8..u64). Written: version 1.0 (the header always fits).
// Source: numpy.lib.format, "NEP 1". Thread-safe.
#ifndef FT_GRAPH_NPY_H
#define FT_GRAPH_NPY_H

#include "core/strbuf.h"
#include "graph/tensor.h"

// True when |data| begins as every NPY file does.
bool ft_npy_is(const void *data, size_t size);
// *out borrows |data|. Nothing is allocated, whatever the header asks for: the shape must
// account for each byte that follows it. REFUSED (malformed, big endian, Fortran order,
// too short or too long), UNSUPPORTED (another version, dtype or rank).
FT_MUST_CHECK ft_status ft_npy_parse(const void *data, size_t size, ft_tensor *out,
                                     ft_error *error);
// Appends the whole file. UNSUPPORTED for bf16, which NumPy has not; OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_npy_write(const ft_tensor *tensor, ft_strbuf *out,
                                     ft_error *error);

#endif
