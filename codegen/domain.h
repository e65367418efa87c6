// domain - the axes of a group's values, from its data flow. Private to group_ir.c.
#ifndef FT_CODEGEN_DOMAIN_H
#define FT_CODEGEN_DOMAIN_H

#include "codegen/axes.h"
#include "graph/group.h"

// One primitive of the group. Values without elements have |is_empty| and no axes.
typedef struct ft_domain_step {
  const ft_primitive *primitive;
  bool is_empty;     // its output has no elements
  bool is_constant;  // a reduction of nothing
  ft_axis_dims output;
  ft_axis_dims input[3];  // as read, before broadcasting to the output
  bool is_external[3];    // input i comes from outside (immediates included)
} ft_domain_step;

typedef struct ft_domain {
  ft_axes axes;
  uint32_t count;
  ft_domain_step *step;  // in the group's order
} ft_domain;

// *reason is set (in |arena|) when the shapes have no common axes.
FT_MUST_CHECK ft_status ft_domain_make(const ft_group *group, ft_arena *arena,
                                       ft_domain *out, const char **reason,
                                       ft_error *error);
// The step that computes root value |value|; UINT32_MAX when it is not in the group.
uint32_t ft_domain_find(const ft_domain *domain, uint32_t value);

#endif
