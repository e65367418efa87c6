// predict - ft_session_tune on a target without a device.
#ifndef FT_DAEMON_PREDICT_H
#define FT_DAEMON_PREDICT_H

#include "daemon/session.h"

// As ft_session_tune says of targets sm_NN. The served plan's sources and cubins are in
// the store. INVALID_ARGUMENT: target sim.
FT_MUST_CHECK ft_status ft_session_predict(ft_session *session, const ft_model *model,
                                           const ft_tune_options *options,
                                           ft_arena *arena, ft_answer *out,
                                           ft_error *error);

#endif
