// program_wire - a program as bytes, and what makes one acceptable.
#ifndef FT_MEASURE_PROGRAM_WIRE_H
#define FT_MEASURE_PROGRAM_WIRE_H

#include "graph/program.h"
#include "measure/wire.h"

// INVALID_ARGUMENT naming the buffer or step: kinds and dtypes in range, arguments that
// exist, offsets inside the workspace and multiples of 64, modules that were built. Run
// by the runner (the caller's mistake) and by the worker (a hostile frame).
FT_MUST_CHECK ft_status ft_program_validate(const ft_program *program, ft_error *error);

void ft_program_encode(const ft_program *program, ft_strbuf *out);
// What the worker needs: names, sizes, entries, paths, launches. No data, source or log.
// REFUSED when the bytes do not hold a program; also validates.
FT_MUST_CHECK ft_status ft_program_decode(ft_wire_reader *reader, ft_arena *arena,
                                          ft_program *out, ft_error *error);

// The number of |kind| buffers before |index|: the "1" of "output 1".
uint32_t ft_program_ordinal(const ft_program *program, uint32_t index);
const char *ft_buffer_kind_text(ft_buffer_kind kind);  // "output"

#endif
