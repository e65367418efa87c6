// place - which element of a value is meant: an index per dim, as affine as possible.
//
// Kernels that remap indices compute values on demand: an output's element at a place
// needs its operands' elements at other places, and so on down to the buffers. The index
// along the innermost loop, the inner index, is kept apart, because vectors lie along it:
// a value whose indices are all affine in it can be loaded as a vector.
//
// Equal index expressions have one id and equal places one address, so that what is
// computed at a place can be remembered there.
#ifndef FT_CODEGEN_PLACE_H
#define FT_CODEGEN_PLACE_H

#include "codegen/kir.h"

// coef * inner + rest + offset.
typedef struct ft_affine {
  int64_t coef, offset;
  ft_kir_id rest;  // does not depend on the inner index; 0: nothing
  bool is_lost;    // not affine in the inner index: unknown
} ft_affine;

typedef struct ft_place {
  ft_shape shape;                 // of the value
  ft_affine linear;               // row-major
  ft_affine dim[FT_MAX_RANK];     // may be lost where |linear| is not
  const struct ft_place *origin;  // the same element under the shape it came from
  struct ft_place *next;          // list of all
  void *memo;                     // of whoever evaluates there
} ft_place;

typedef struct ft_place_index {
  ft_kir_op op;
  ft_kir_id a, b, id;
  int64_t number;
} ft_place_index;

typedef struct ft_places {
  ft_kir *kir;
  ft_place *first;
  ft_place_index *index;
  size_t index_count, index_capacity;
} ft_places;

// ---- indices, each once; out of memory marks the kernel failed -----------------------
ft_kir_id ft_places_number(ft_places *places, int64_t number);
ft_kir_id ft_places_index(ft_places *places, ft_kir_op op, ft_kir_id a, ft_kir_id b);

ft_affine ft_affine_number(int64_t number);
ft_affine ft_affine_of(ft_places *places, ft_kir_id index);
ft_affine ft_affine_add(ft_places *places, ft_affine a, ft_affine b);
ft_affine ft_affine_scale(ft_places *places, ft_affine a, int64_t factor);
// Floor division and remainder of a >= 0; lost when |a| moves with the inner index.
ft_affine ft_affine_divide(ft_places *places, ft_affine a, int64_t divisor);
ft_affine ft_affine_modulo(ft_places *places, ft_affine a, int64_t divisor);
// Its value where the inner index is |inner|; |a| is not lost.
ft_kir_id ft_affine_index(ft_places *places, ft_affine a, ft_kir_id inner);

// ---- places ---------------------------------------------------------------------------
// All return NULL when out of memory.
const ft_place *ft_place_make(ft_places *places, const ft_shape *shape,
                              const ft_affine *dim);
// The same element of the same elements under another shape.
const ft_place *ft_place_view(ft_places *places, const ft_place *place,
                              const ft_shape *shape);
// The element that a NumPy broadcast of |shape| shows there.
const ft_place *ft_place_broadcast(ft_places *places, const ft_place *place,
                                   const ft_shape *shape);

#endif
