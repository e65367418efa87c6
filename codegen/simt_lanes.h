// simt_lanes - where the threads of a warp go: index expressions evaluated for each of
// them, and what an access costs the memory that serves it.
#ifndef FT_CODEGEN_SIMT_LANES_H
#define FT_CODEGEN_SIMT_LANES_H

#include "codegen/kir.h"

enum { FT_WARP = 32 };

typedef struct ft_simt_lanes {
  const ft_kir *kir;
  ft_kir_id thread;  // the thread loop's variable
  int64_t *value;    // [FT_WARP * value_count]
  uint8_t *is_known;
  ft_kir_id *begin;  // [value_count] of loop variables, as the next two
  double *low, *high;
} ft_simt_lanes;

// OUT_OF_MEMORY. All in |scratch|.
FT_MUST_CHECK ft_status ft_simt_lanes_init(ft_simt_lanes *lanes, const ft_kir *kir,
                                           ft_arena *scratch, ft_error *error);
// |index| for thread |lane| of the first warp; other loops are in their first turn. What
// only data decides is 0 when all threads agree on it, else far apart.
int64_t ft_simt_lanes_at(ft_simt_lanes *lanes, ft_kir_id index, uint32_t lane);

// What an index may be: both ends are reached at most.
typedef struct ft_simt_range {
  double low, high;
} ft_simt_range;
ft_simt_range ft_simt_range_of(const ft_simt_lanes *lanes, ft_kir_id index);
// How often the condition |index| holds, 0 to 1.
double ft_simt_chance_of(const ft_simt_lanes *lanes, ft_kir_id index);

typedef struct ft_simt_access {
  uint32_t buffer;
  ft_kir_id index;
  uint16_t lanes;  // elements of a thread
  int64_t stride;  // between them
} ft_simt_access;
// 32-byte sectors that a warp touches, and turns of the load-store path: one for each 128
// bytes of global memory, or for as many words as the fullest bank of shared memory has.
typedef struct ft_simt_traffic {
  double sectors, turns;
} ft_simt_traffic;
ft_simt_traffic ft_simt_traffic_of(ft_simt_lanes *lanes, const ft_simt_access *access);

#endif
