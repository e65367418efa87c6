// gather - which element of the data an element of a GATHER or GATHER_ELEMENTS is.
// Private to graph/.
#ifndef FT_GRAPH_GATHER_H
#define FT_GRAPH_GATHER_H

#include "graph/semantics.h"
#include "graph/step.h"

typedef struct ft_gather {
  const ft_step *step;    // borrowed
  ft_remap index;         // from the result's elements to those of the index operand
  ft_remap base;          // to those of the data at index 0
  int64_t limit, stride;  // of the axis
} ft_gather;

ft_gather ft_gather_make(const ft_step *step);
// element[j]: of the data, for result element at[j]; |found| are the index operand's
// elements where |index| sends at[j]. An uncertain index that is out of range goes to 0
// (its result is uncertain). INVALID_ARGUMENT naming a certain index out of range, where
// it stands and the limit.
FT_MUST_CHECK ft_status ft_gather_run(const ft_gather *gather, const int64_t *at,
                                      const ft_cells *found, size_t count,
                                      int64_t *element, ft_error *error);

#endif
