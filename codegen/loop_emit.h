// loop_emit - what the loop and contract tactics share. Private to codegen/loop*.c and
// codegen/contract*.c.
#ifndef FT_CODEGEN_LOOP_EMIT_H
#define FT_CODEGEN_LOOP_EMIT_H

#include "codegen/loop.h"
#include "codegen/place.h"

enum { FT_LOOP_SCOPES = 96 };

// An index that has a name while its block is open.
typedef struct ft_loop_name {
  struct ft_loop_name *next;
  ft_kir_id index;
  uint32_t depth, serial;
} ft_loop_name;

// A section on its way into a kernel. Trial runs find out what the section needs: then
// |is_lost|, |new_cuts| and |wants_rim| say why the code is not to be used.
typedef struct ft_loop_emitter {
  const ft_group *group;
  const ft_graph *graph;
  ft_arena *arena;
  ft_kir *kir;
  ft_places places;
  bool *is_inside;   // [primitive]
  uint32_t *buffer;  // [ABI position], 0: not declared
  // open blocks, and a number that no other block has
  uint32_t depth, serial;
  ft_kir_block *block[FT_LOOP_SCOPES];
  uint32_t serial_of[FT_LOOP_SCOPES];
  ft_loop_name *names;
  // the segment
  uint16_t lanes;
  ft_kir_id inner;
  int64_t low, high;
  uint16_t across;  // lanes along the terms of an anchor; 0: along the inner dim
  bool ran_across;
  uint32_t strided;       // vectors loaded one element at a time
  ft_kir_hint load_hint;  // of what is loaded from memory
  bool is_lost;
  bool wants_rim;
  uint32_t new_cuts;
  int64_t new_cut[FT_MAX_CUTS];
} ft_loop_emitter;

// An emitter for |workload| with an empty kernel, in |arena|.
FT_MUST_CHECK ft_status ft_loop_open(const ft_workload *workload, ft_arena *arena,
                                     ft_loop_emitter **out, ft_error *error);
// The kernel's buffer for |root|, a value from outside that is no immediate.
uint32_t ft_loop_input(ft_loop_emitter *e, uint32_t root);
// The kernel's buffer for output |output| of the group.
uint32_t ft_loop_output(ft_loop_emitter *e, uint32_t output);

typedef enum ft_within { FT_WITHIN, FT_OUTSIDE, FT_WITHIN_UNKNOWN } ft_within;

static inline ft_kir_block *ft_loop_here(ft_loop_emitter *e) {
  return e->block[e->depth];
}
void ft_loop_enter(ft_loop_emitter *e, ft_kir_block *block);
void ft_loop_leave(ft_loop_emitter *e);
// Leaves the body of |stmt|, and puts it behind what is here.
void ft_loop_close(ft_loop_emitter *e, ft_kir_stmt *stmt);

// Gives an index a name, once.
ft_kir_id ft_loop_named(ft_loop_emitter *e, ft_kir_id index);

// Whether |a| is in [low, high) all over the segment. Where that changes within the
// segment, a cut is noted and the answer means nothing.
ft_within ft_loop_within(ft_loop_emitter *e, ft_affine a, int64_t low, int64_t high);
ft_kir_id ft_loop_index(ft_loop_emitter *e, ft_affine a);

// ---- sections
// All outputs of |section| at the |count| places.
void ft_loop_store(ft_loop_emitter *e, const ft_loop_section *section,
                   const ft_place *const *place, uint32_t count);
// Rows that share operands, |tile| at most: those of a product, the channels of a
// convolution. Sets tile_axis and tile.
void ft_loop_choose_tile(const ft_group *group, ft_loop_section *section, uint32_t tile);

// ---- values --------------------------------------------------------------------------
// Element of |value| (a graph value) at |place|: one lane, or the segment's lanes.
ft_kir_id ft_loop_value(ft_loop_emitter *e, uint32_t value, const ft_place *place);
ft_kir_id ft_loop_spread(ft_loop_emitter *e, ft_kir_id element, uint16_t lanes);
// Values known at a place while the block that holds them is open; 0: none.
ft_kir_id ft_loop_recall(const ft_loop_emitter *e, uint32_t root, const ft_place *place);
void ft_loop_remember(ft_loop_emitter *e, uint32_t root, const ft_place *place,
                      ft_kir_id element);
// Where operand |i| of |p| is read for the result at |place|, when that needs no
// statement and no choice: NULL for gathers, and for concats and pads that must ask.
const ft_place *ft_loop_operand(ft_loop_emitter *e, const ft_primitive *p, uint32_t i,
                                const ft_place *place);
// The primitive that computes |root| in the group, or NULL.
const ft_primitive *ft_loop_producer(const ft_loop_emitter *e, uint32_t root);

// ---- anchors
// ---------------------------------------------------------------------------
bool ft_loop_is_anchor(const ft_primitive *p);
// Elements of the anchor's result at |count| places, side by side; remembered there.
void ft_loop_anchor(ft_loop_emitter *e, const ft_primitive *p,
                    const ft_place *const *place, uint32_t count);
// How many terms one element of the anchor has.
double ft_loop_terms(const ft_graph *graph, const ft_primitive *p);

#endif
