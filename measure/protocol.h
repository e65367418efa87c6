// protocol - what runner and worker say to each other: requests by the runner, one reply
// each. Payloads are ft_wire bytes, in the order given here; docs: this file.
//
//   HELLO    u32 version, u32 pid of the runner, u32 threads (0: all), u64 flush_bytes,
//            u64 cap_bytes; descriptor: the board
//            -> u32 version, u32 threads
//   LOAD     u32 n, n programs -> u32 m, m x (u32 program, u32 buffer): inputs to FILL
//   FILL     m x u64 offset; descriptor: exchange -> nothing
//   CHECK    outputs of program 0, in order: u64 offset; descriptor: exchange -> nothing
//   TIME     u8 warm, u32 min, u32 max, u64 limit_ns, u64 beaten_ns; on the board:
//   samples
//            -> u32 ft_stop, u32 samples
//   COMPARE  u32 max rounds, u64 limit_ns, u64 seed; samples on the board -> u32 rounds
//   COPY     u64 bytes (0: the default) -> for each ft_store_kind u64 best, u64 median:
//            bytes per second
//   CEILINGS u64 limit_ns, u64 largest_bytes, u64 l2_bytes, u64 cache_bytes
//            -> u32 n, n x (u32 kind, u64 bytes, u64 best, u64 median, u32 samples); best
//            and median are the bits of a double
//
// The reply is DONE with that payload, or FAILED: u32 ft_outcome, u8 damaged, text.
// |damaged|: a kernel wrote where it must not; the worker should be replaced.
#ifndef FT_MEASURE_PROTOCOL_H
#define FT_MEASURE_PROTOCOL_H

#define FT_WORKER_VERSION 2

#define FT_REQUEST_MAP(X) \
  X(HELLO, hello)         \
  X(LOAD, load)           \
  X(FILL, fill)           \
  X(CHECK, check)         \
  X(TIME, time)           \
  X(COMPARE, compare)     \
  X(COPY, copy)           \
  X(CEILINGS, ceilings)

typedef enum ft_frame_type {
  FT_FRAME_NONE,
#define X(name, handler) FT_FRAME_##name,
  FT_REQUEST_MAP(X)
#undef X
      FT_FRAME_DONE,
  FT_FRAME_FAILED,
} ft_frame_type;

// Exchange offsets are multiples of this.
#define FT_EXCHANGE_ALIGN 64u

#endif
