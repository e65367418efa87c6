// simt_turn_plan - what a choice decides about a turn. Private to codegen/simt_turn*.c.
#ifndef FT_CODEGEN_SIMT_TURN_PLAN_H
#define FT_CODEGEN_SIMT_TURN_PLAN_H

#include "codegen/simt_turn.h"

typedef enum ft_turn_kind { FT_TURN_NEAR, FT_TURN_FAR, FT_TURN_SIDES } ft_turn_kind;

// How threads walk a tile: |across| vectors next to each other along the axis, then
// the other axis.
typedef struct ft_turn_side {
  uint32_t axis;
  int64_t extent;  // of the axis
  int64_t tile;    // elements of a tile along it
  int64_t tiles;   // along the axis, the last one may be short
  uint16_t lanes;
  int64_t across;  // tile / lanes
  int64_t steps;   // of a thread, over the whole tile
  int64_t stride;  // between a thread's steps, along the other axis
} ft_turn_side;

// A tile in shared memory. Rows are along the writer's axis.
typedef struct ft_turn_tile {
  ft_dtype dtype;
  ft_turn_kind writer;
  int64_t pitch;  // elements
  // Vector c of row r lies at (c + r / rows * turn) % chunks, with |rows| the lanes of
  // the reader; turn 0: where it is.
  int64_t chunks, turn;
  uint32_t node;    // whose value it holds
  uint32_t buffer;  // when it is built
} ft_turn_tile;

enum { FT_TURN_PHASES = 3 };

typedef struct ft_turn_plan {
  const ft_group_ir *ir;
  ft_simt_turn_choice choice;
  ft_turn_side side[FT_TURN_SIDES];
  uint64_t others;  // axes but the two
  uint32_t in_count, out_count;
  ft_turn_tile *in;                     // [in_count] from phase 1 to 2
  ft_turn_tile *out;                    // [out_count] from phase 2 to 3
  uint32_t *phase;                      // [output] 1, 2 or 3: when it is stored
  bool *is_needed[FT_TURN_PHASES + 1];  // [phase][node] what it computes, and from what
  int64_t grid;
  uint64_t shared_bytes;
} ft_turn_plan;

// NULL, or why not.
const char *ft_turn_plan_make(const ft_group_ir *ir, const ft_simt_turn_choice *choice,
                              ft_arena *arena, ft_turn_plan *out);

#endif
