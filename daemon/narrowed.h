// narrowed - a builder that offers only what another key knows to be fast.
//
// A group is legal when a stored plan of the old key uses its workload (or it is a single
// primitive, so that every partition stays possible); its space is the old key's fastest
// schedules, as far as they are possible here. Everything else is the session's builder.
#ifndef FT_DAEMON_NARROWED_H
#define FT_DAEMON_NARROWED_H

#include "daemon/session.h"

typedef struct ft_narrowed {
  ft_session *session;  // borrowed
  ft_old_key key;
  uint32_t top;  // candidates per workload
} ft_narrowed;

// Valid as long as |narrowed| and its session.
ft_builder ft_narrowed_builder(ft_narrowed *narrowed);

// |schedule| with a compiler that this target has: the same, else the first of its family
// (clang, gcc), else the first. False when it needed no change.
bool ft_schedule_translate(ft_schedule *schedule, const ft_target *target);

#endif
