// plan_json - what the plan's encoder and decoder share. Inside graph/ only.
#ifndef FT_GRAPH_PLAN_JSON_H
#define FT_GRAPH_PLAN_JSON_H

#include "graph/plan.h"

#define FT_PLAN_FORMAT "fusetune-plan/1"

// What plan->hash is the hash of (new reference); NULL when out of memory.
json_t *ft_plan_content_json(const ft_plan *plan);

#endif
