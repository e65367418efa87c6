// repro - one trial as a C program of its own, with all it needs beside it.
//
//  1. The kernel's text is the stored one, byte for byte (or, when none was stored, what
//     this version emits for the candidate; the result says so).
//  2. Inputs are drawn by the program itself, by the tuner's recipe; it goes on only when
//     they are the ones that the references were made for.
//  3. Whatever the trial ended as shows: a compile error when it is compiled; a crash as
//     its signal, with the buffer and byte where it was near one; a write beside a
//     buffer, an element never written or wrong, a returned code: exit code 1; a slow
//     kernel: its time.
//
// The workload comes back from the store's encoding, so no model is needed. Weights are
// not in a store: without the model, inputs that were its constants are drawn like any
// other.
#ifndef FT_DAEMON_REPRO_H
#define FT_DAEMON_REPRO_H

#include "daemon/session.h"
#include "db/trial_log.h"

typedef struct ft_repro_options {
  const char *trial;    // an id, or the beginning of a source's or body's hash
  const char *folder;   // made when missing; NULL: "repro-ID"
  uint32_t file_count;  // values for "input_0", "input_1", ... of the kernel
  const ft_input_file *file;
  const ft_graph *model;  // NULL, or the model that was tuned: for its constants' bytes
} ft_repro_options;

typedef struct ft_repro_result {
  ft_found_trial trial;
  const char *folder;
  const char *command;  // for a shell in that folder: compiles and runs
  bool is_emitted;      // the store had no source: emitted anew
  uint32_t file_count;
  const char **file;         // [file_count] what was written, names in the folder
  uint64_t checked;          // elements with a reference
  uint32_t drawn_constants;  // inputs that were constants of the model, and are drawn
} ft_repro_result;

// Writes repro.c, README.md and the .bin files into the folder. NOT_FOUND: no such trial,
// or its source is neither stored nor can it be emitted; INVALID_ARGUMENT: a file for no
// input, or of another type, or a model without a constant that the trial read;
// UNSUPPORTED: a dtype that C has not (f16, bf16).
FT_MUST_CHECK ft_status ft_session_repro(ft_session *session,
                                         const ft_repro_options *options, ft_arena *arena,
                                         ft_repro_result *out, ft_error *error);

#endif
