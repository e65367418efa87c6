// default_plan - the plan of a model that was never tuned.
#ifndef FT_DAEMON_DEFAULT_PLAN_H
#define FT_DAEMON_DEFAULT_PLAN_H

#include "daemon/session.h"

// One kernel per operator where a tactic takes it whole, else one per primitive, with
// default schedules; nothing is built. Of tactics only our own: a library may have
// nothing for a layout, and an unmeasured plan must run. UNSUPPORTED when no tactic takes
// a primitive.
FT_MUST_CHECK ft_status ft_plan_default(ft_session *session, const ft_graph *graph,
                                        ft_arena *arena, ft_plan *out, ft_error *error);

#endif
