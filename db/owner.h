// owner - which process wrote a row, and whether it still lives.
//
// A process id alone is reused; boot id, process id and start time together are not. The
// process-id namespace is kept too: from inside a container another's processes cannot be
// seen, and "not seen" must not become "dead".
#ifndef FT_DB_OWNER_H
#define FT_DB_OWNER_H

#include "core/status.h"

enum { FT_OWNER_TEXT = 128 };

typedef enum ft_owner_state {
  FT_OWNER_ALIVE,
  FT_OWNER_DEAD,
  FT_OWNER_UNKNOWN,  // of another namespace of this boot, or text we cannot read
} ft_owner_state;

// "BOOT:NAMESPACE:PID:START" of this process, NUL-terminated. UNAVAILABLE without /proc.
FT_MUST_CHECK ft_status ft_owner_self(char out[FT_OWNER_TEXT], ft_error *error);
// |self| as ft_owner_self wrote it. A zombie is dead.
ft_owner_state ft_owner_look(const char *owner, const char *self);

#endif
