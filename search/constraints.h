// constraints - what a user forbids or demands of every partition.
//
//  keep x              value x is materialised: a group that computes it hands it out
//  no_fuse a, b        no group has primitives of both operators
//  fuse a, b           in every partition some group has all primitives of both
//  from .. to          only operators on a way between the two are regrouped; elsewhere
//  no
//                      two operators share a kernel
//  deterministic       no schedule whose result depends on the order of threads
//  max_workspace_bytes  candidates that need more are refused; whoever builds them knows
//
// A set that breaks one is not legal, for any strategy; the reason begins with the rule.
#ifndef FT_SEARCH_CONSTRAINTS_H
#define FT_SEARCH_CONSTRAINTS_H

#include "graph/candidate.h"
#include "search/set.h"

enum { FT_MAX_CONSTRAINTS = 64 };  // of each kind

typedef struct ft_name_pair {
  const char *a, *b;
} ft_name_pair;

// As asked for, by name; all 0 is none. Operators are named as ft_operator.name has it,
// values as ft_value.name.
typedef struct ft_constraint_spec {
  uint32_t keep_count, no_fuse_count, fuse_count;
  const char *keep[FT_MAX_CONSTRAINTS];
  ft_name_pair no_fuse[FT_MAX_CONSTRAINTS], fuse[FT_MAX_CONSTRAINTS];
  ft_name_pair between;  // NULL, NULL: everywhere
  bool is_deterministic;
  uint64_t max_workspace_bytes;  // 0: no limit
} ft_constraint_spec;

typedef struct ft_constraints ft_constraints;

bool ft_constraint_spec_is_empty(const ft_constraint_spec *spec);
// {"fuse":[["a","b"]],"keep":["x"]}: sorted, compact; the same for the same constraints
// in any order. "" when there are none, NULL: out of memory.
const char *ft_constraint_spec_text(const ft_constraint_spec *spec, ft_arena *arena);

// Looks the names up; |spec| is borrowed. *out in |arena|, NULL when there are none.
// INVALID_ARGUMENT: a name that no operator or value has, with those most like it; a pair
// of one; nothing on the way from |from| to |to|; operators that must both share and not
// share a kernel.
FT_MUST_CHECK ft_status ft_constraints_make(const ft_graph *graph,
                                            const ft_constraint_spec *spec,
                                            ft_arena *arena, const ft_constraints **out,
                                            ft_error *error);

// NULL when |set| keeps to all of them, else the reason (lives as long as they do).
const char *ft_constraints_refuse(const ft_constraints *constraints, ft_set set);
bool ft_constraints_admit(const ft_constraints *constraints,
                          const ft_candidate *candidate);

// Operators that must share a kernel, taken together: a class is all that fuse pairs
// chain to one another. Its primitives, ascending.
uint32_t ft_constraints_classes(const ft_constraints *constraints);
const uint32_t *ft_constraints_class(const ft_constraints *constraints, uint32_t index,
                                     uint32_t *out_count);
// "fuse: 'a' and 'b' must share a kernel".
const char *ft_constraints_class_text(const ft_constraints *constraints, uint32_t index);

#endif
