// tuning_record - what a tuning run leaves in the store beside its trials.
#ifndef FT_DAEMON_TUNING_RECORD_H
#define FT_DAEMON_TUNING_RECORD_H

#include "daemon/session.h"

// Writes target, graph and the run's row; sets session->target_id. |options| as they will
// be used.
FT_MUST_CHECK ft_status ft_tuning_begin(ft_session *session, const ft_model *model,
                                        const ft_tune_options *options, ft_arena *arena,
                                        int64_t *out_binding_id, int64_t *out_run_id,
                                        ft_error *error);
// The rows of |plan|'s candidates: (*out)[group_count] in |arena|.
FT_MUST_CHECK ft_status ft_tuning_candidates(ft_session *session, const ft_plan *plan,
                                             ft_arena *arena, int64_t **out,
                                             ft_error *error);
// Why neighbours do not share a kernel.
FT_MUST_CHECK ft_status ft_tuning_refusals(ft_session *session, int64_t run_id,
                                           const ft_search_result *search,
                                           ft_error *error);

#endif
