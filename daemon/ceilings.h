// ceilings - the session's ceilings and its predictor: measured once per target, kept in
// the store, raised when a trial breaks through one.
#ifndef FT_DAEMON_CEILINGS_H
#define FT_DAEMON_CEILINGS_H

#include "daemon/session.h"

// The target's ceilings, into |out| (room for FT_CEILINGS_MOST): from the store; measured
// and stored when it has none, or only of a hasty measurement and |limit_ns| allows for a
// better one. |limit_ns|: as ft_cpu_runner_ceilings has it. |anew|: measured in any case,
// and what was stored is forgotten, contradictions included.
FT_MUST_CHECK ft_status ft_session_ceilings(ft_session *session, uint64_t limit_ns,
                                            bool anew, ft_ceiling *out,
                                            uint32_t *out_count, ft_error *error);

// Opens session->predictor over them; nothing when it is open. Stored ones that are a
// minute old get a few more rounds (0.5 s) when |limit_ns| is 2 s or more. When they
// cannot be measured, a line is logged and there is none: no bounds, but all else works.
// Contradictions measure anew once per session, and go to the store as those of |run_id|.
FT_MUST_CHECK ft_status ft_session_predictor_open(ft_session *session, int64_t run_id,
                                                  uint64_t limit_ns, ft_error *error);

// NULL: none is open.
const ft_predictor *ft_session_predictor(const ft_session *session);
// What it says; -1: nothing.
double ft_session_bound_ns(const ft_session *session, const ft_workload *workload);
double ft_session_predicted_ns(const ft_session *session, const ft_candidate *candidate);
// Looks at a trial that was just answered: one that is faster than 97 % of its bound
// contradicts the predictor. INTERRUPTED, or what the store returns.
FT_MUST_CHECK ft_status ft_session_watch_bound(ft_session *session,
                                               const ft_candidate *candidate,
                                               const ft_trial *trial, ft_error *error);

#endif
