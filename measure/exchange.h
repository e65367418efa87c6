// exchange - shared memory in which bulk data crosses from runner to worker and back.
#ifndef FT_MEASURE_EXCHANGE_H
#define FT_MEASURE_EXCHANGE_H

#include "core/status.h"

typedef struct ft_exchange {
  uint8_t *data;
  uint64_t bytes;  // page multiple; 0: nothing mapped
  int fd;          // -1: none
} ft_exchange;

// Zeroed shared memory of |bytes| whose size is sealed: the other side cannot shrink it
// under us. OUT_OF_MEMORY, IO.
FT_MUST_CHECK ft_status ft_exchange_create(const char *name, uint64_t bytes,
                                           ft_exchange *out, ft_error *error);
// Maps what was received; takes |fd| (closed on failure too). REFUSED when the memory
// is not sealed or smaller than |bytes|.
FT_MUST_CHECK ft_status ft_exchange_open(int fd, uint64_t bytes, ft_exchange *out,
                                         ft_error *error);
void ft_exchange_close(ft_exchange *exchange);  // a zeroed one with fd -1 is fine

#endif
