// frame - typed, length-prefixed messages over a stream socket, each with at most one
// descriptor.
//
// A frame is 16 bytes of header {magic, type, length, 0} (u32, little endian) and
// |length| bytes. Neither side trusts the other: the length is checked against the cap
// before anything is allocated, surplus descriptors are closed, and every wait has a
// deadline. EINTR never shows.
#ifndef FT_MEASURE_FRAME_H
#define FT_MEASURE_FRAME_H

#include "core/arena.h"

enum { FT_FRAME_MAX_BYTES = 16 << 20 };

typedef enum ft_frame_result {
  FT_FRAME_OK,
  FT_FRAME_CLOSED,       // the peer is gone
  FT_FRAME_TIMED_OUT,    // the deadline passed
  FT_FRAME_INTERRUPTED,  // *stop was set
  FT_FRAME_BROKEN,       // the peer sent nonsense; see the text
  FT_FRAME_NO_MEMORY,    // ours, for the payload
} ft_frame_result;

// When to give up waiting.
typedef struct ft_deadline {
  uint64_t at_ns;            // of ft_clock_ns; UINT64_MAX: never
  const volatile int *stop;  // NULL: cannot be stopped; looked at every 20 ms
} ft_deadline;

typedef struct ft_frame {
  uint32_t type, bytes;
  const uint8_t *data;  // in the arena given
  int fd;               // yours to close; -1: none
} ft_frame;

// |pass_fd| -1: none; it stays yours. After anything but OK the stream is unusable.
ft_frame_result ft_frame_send(int socket, uint32_t type, const void *data, size_t bytes,
                              int pass_fd, const ft_deadline *deadline,
                              char error_text[128]);
// On anything but OK out->fd is -1 and no descriptor is left open.
ft_frame_result ft_frame_receive(int socket, const ft_deadline *deadline, ft_arena *arena,
                                 ft_frame *out, char error_text[128]);

#endif
