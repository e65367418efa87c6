// copy - how fast memory is copied: the ceiling of a kernel that moves as many bytes with
// the same kind of store.
#ifndef FT_MEASURE_COPY_H
#define FT_MEASURE_COPY_H

#include <stdint.h>

typedef enum ft_store_kind {
  FT_STORE_ORDINARY,
  FT_STORE_STREAMED,  // non-temporal
  FT_STORES,
} ft_store_kind;

// Bytes read plus written per second.
typedef struct ft_copy_rate {
  uint64_t best, median;
} ft_copy_rate;

#endif
