// simt_choice - a skeleton with its knobs, whichever it is: one way to ask and to build.
//
// For who does not care which skeleton a group gets: kernels of several bodies
// (simt_blocks.h), tactics, tests. To add a skeleton: a line in simt_skeletons.def, its
// knobs and its two functions in simt_choice.c.
#ifndef FT_CODEGEN_SIMT_CHOICE_H
#define FT_CODEGEN_SIMT_CHOICE_H

#include "codegen/simt_conv.h"
#include "codegen/simt_gemm.h"
#include "codegen/simt_loop.h"
#include "codegen/simt_nest.h"
#include "codegen/simt_skinny.h"
#include "codegen/simt_turn.h"
#include "codegen/simt_window.h"

typedef enum ft_simt_skeleton {
#define FT_SIMT_SKELETON(NAME, name, choice) FT_SIMT_##NAME,
#include "codegen/simt_skeletons.def"
#undef FT_SIMT_SKELETON
  FT_SIMT_SKELETONS
} ft_simt_skeleton;

// |skeleton| says which member counts. |min_blocks| is a knob of all: how many blocks the
// registers of a multiprocessor must hold, which caps those of a thread; 0 leaves that to
// the compiler.
typedef struct ft_simt_any_choice {
  ft_simt_skeleton skeleton;
  union {
#define FT_SIMT_SKELETON(NAME, name, choice) choice name;
#include "codegen/simt_skeletons.def"
#undef FT_SIMT_SKELETON
  };
  uint32_t min_blocks;
} ft_simt_any_choice;

// NULL, or why the choice cannot work for |workload|: what its skeleton says, that the
// group has no common axes (nests, turns), or more blocks than a multiprocessor holds.
const char *ft_simt_any_refusal(const ft_workload *workload,
                                const ft_simt_any_choice *choice, ft_arena *arena);
// |choice| was not refused.
FT_MUST_CHECK ft_status ft_simt_any_build(const ft_workload *workload,
                                          const ft_simt_any_choice *choice,
                                          ft_arena *arena, ft_kir **out, ft_error *error);

// A usual choice for blocks of |threads|: the first that is not refused of rows,
// products, items, loops. NULL and the choice, or why there is none.
const char *ft_simt_any_choose(const ft_workload *workload, uint32_t threads,
                               ft_arena *arena, ft_simt_any_choice *out);

// "nest", "gemm": static.
const char *ft_simt_skeleton_name(ft_simt_skeleton skeleton);

// Threads of a block. |choice| was not refused.
uint32_t ft_simt_any_threads(const ft_simt_any_choice *choice);
// The min_blocks that caps a thread of such a block at |registers| or a few more.
uint32_t ft_simt_min_blocks(uint32_t threads, uint32_t registers);

// A knob is a member of the choice's struct, or min_blocks, the last of each: an unsigned
// number or a flag (0, 1). NULL: |index| is past the last. Names are static.
const char *ft_simt_knob_name(ft_simt_skeleton skeleton, uint32_t index);
uint32_t ft_simt_knob_get(const ft_simt_any_choice *choice, uint32_t index);
void ft_simt_knob_set(ft_simt_any_choice *choice, uint32_t index, uint32_t value);
// "nest threads=128 vector=4 unroll=1": knobs that are not 0. NULL: out of memory.
const char *ft_simt_any_text(const ft_simt_any_choice *choice, ft_arena *arena);

#endif
