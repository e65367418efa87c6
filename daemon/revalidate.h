// revalidate - after a new compiler, driver or codegen version: what was fast under the
// old key is measured again under the new one, instead of a new night.
#ifndef FT_DAEMON_REVALIDATE_H
#define FT_DAEMON_REVALIDATE_H

#include "daemon/session.h"

typedef struct ft_revalidate_options {
  uint32_t top;          // candidates per workload of the old plans; 0: 8
  ft_tune_options tune;  // budget, seed, progress
} ft_revalidate_options;

typedef struct ft_revalidation {
  ft_answer answer;
  ft_old_key from;
  uint32_t top;
} ft_revalidation;

// A tuning run over the workloads of the old key's stored plans, each with its fastest
// candidates: the partition is solved anew from times of the new key, compared end to end
// and served as by ft_session_tune. NOT_FOUND when no other key has a served plan.
FT_MUST_CHECK ft_status ft_session_revalidate(ft_session *session, const ft_model *model,
                                              const ft_revalidate_options *options,
                                              ft_arena *arena, ft_revalidation *out,
                                              ft_error *error);

// As `revalidate --json` prints it (new reference; NULL: out of memory).
json_t *ft_revalidation_json(const ft_revalidation *revalidation);

#endif
