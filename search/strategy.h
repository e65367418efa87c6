// strategy - a way to divide a graph into groups, given what is known of their costs.
//
// The search asks each strategy again whenever costs have changed; of its answers the
// cheapest is kept. So a strategy is a pure function of the landscape. A baseline is
// asked twice: hopefully, to learn what it would want measured, and soberly, for its
// answer.
#ifndef FT_SEARCH_STRATEGY_H
#define FT_SEARCH_STRATEGY_H

#include "search/catalog.h"
#include "search/dag.h"
#include "search/lattice.h"

typedef struct ft_landscape {
  const ft_graph *graph;
  const ft_dag *dag;
  const ft_lattice *lattice;
  const uint32_t *group_of_set;  // [lattice->set_count] FT_NONE: not legal
  ft_catalog *catalog;           // strategies may judge sets that the lattice lacks
  uint32_t window, span;
  // A merge may be taken because it should gain, so that it gets measured; else only what
  // was measured counts.
  bool is_hopeful;
} ft_landscape;

// Disjoint sets that cover the graph and are legal each; the quotient is acyclic.
typedef struct ft_division {
  uint32_t count;
  const ft_set *set;
  const char *note;  // what people should know of it, "" = nothing
} ft_division;

typedef struct ft_strategy {
  const char *name;
  bool is_baseline, is_tuned;
  // *out in |arena|. Same costs, same answer. Errors: what judging returns.
  ft_status (*divide)(const ft_landscape *land, ft_arena *arena, ft_division *out,
                      ft_error *error);
} ft_strategy;

enum ft_strategy_index {
#define FT_STRATEGY(function, name, is_baseline, is_tuned) FT_STRATEGY_##function,
#include "search/strategies.def"
#undef FT_STRATEGY
  FT_STRATEGY_COUNT
};
extern const ft_strategy ft_strategies[FT_STRATEGY_COUNT];

#define FT_STRATEGY(function, name, is_baseline, is_tuned)                             \
  ft_status ft_strategy_##function##_divide(const ft_landscape *land, ft_arena *arena, \
                                            ft_division *out, ft_error *error);
#include "search/strategies.def"
#undef FT_STRATEGY

#endif
