// axes - axis factorisation: which dims of which tensors are the same loop.
//
// Every dim above 1 starts as an axis of its own. Data flow then says which are equal:
// ft_axes_unify walks two row-major lists of axes from the inside and, where their
// boundaries differ, splits the longer axis, so that both become the common refinement.
// Reshapes disappear that way; broadcast dims (extent 1) have no axis at all.
//
// Invariants:
//  1. An axis is a leaf, merged into another (find() leads there), or split in two.
//  2. Only leaves of equal extent are merged.
//  3. The product of a list's extents never changes.
#ifndef FT_CODEGEN_AXES_H
#define FT_CODEGEN_AXES_H

#include "core/arena.h"
#include "graph/tensor.h"

#define FT_AXIS_NONE UINT32_MAX

enum { FT_MAX_LEAVES = 64 };  // leaves of one list; a bit each in an axis mask

typedef struct ft_axis {
  int64_t extent;         // >= 2
  uint32_t parent;        // itself unless merged
  uint32_t outer, inner;  // FT_AXIS_NONE unless split
} ft_axis;

typedef struct ft_axes {
  ft_arena *arena;
  uint32_t count;
  size_t capacity;
  ft_axis *axis;
} ft_axes;

// The axis of each dim, FT_AXIS_NONE where the dim is 1.
typedef struct ft_axis_dims {
  uint8_t rank;
  uint32_t axis[FT_MAX_RANK];
} ft_axis_dims;

// Leaves, outermost first.
typedef struct ft_axis_list {
  uint32_t count;
  uint32_t leaf[FT_MAX_LEAVES];
} ft_axis_list;

// How a unification ended.
typedef enum ft_axes_outcome {
  FT_AXES_OK,
  FT_AXES_UNEVEN,    // the boundaries have no common refinement: [6,4] against [8,3]
  FT_AXES_TOO_MANY,  // more than FT_MAX_LEAVES leaves in a list
  FT_AXES_NO_MEMORY,
} ft_axes_outcome;

// A new leaf, or FT_AXIS_NONE when out of memory.
uint32_t ft_axes_add(ft_axes *axes, int64_t extent);
// Fresh axes for |shape| (all dims >= 1); false when out of memory.
bool ft_axes_add_shape(ft_axes *axes, const ft_shape *shape, ft_axis_dims *out);

// The leaves that |dims| consists of now.
ft_axes_outcome ft_axes_flatten(const ft_axes *axes, const ft_axis_dims *dims,
                                ft_axis_list *out);
// Makes a and b (products must be equal) the same loops. After an error other than OK
// the axes may be half unified: restore a snapshot.
ft_axes_outcome ft_axes_unify(ft_axes *axes, const ft_axis_dims *a,
                              const ft_axis_dims *b);
// The same for one axis of each.
ft_axes_outcome ft_axes_unify_one(ft_axes *axes, uint32_t a, uint32_t b);
// True when a leaf occurs twice: the tensor was forced onto its own diagonal.
bool ft_axis_list_repeats(const ft_axis_list *list);

// A copy of the table (NULL: out of memory), and the way back to it.
ft_axes *ft_axes_snapshot(const ft_axes *axes);
void ft_axes_restore(ft_axes *axes, const ft_axes *snapshot);

#endif
