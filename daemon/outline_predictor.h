// outline_predictor - the predictor of targets without a device: bounds of workloads from
// what is published of the chip (cost_model/gpu_roofline.h), floors of candidates from
// their kernels as they stand before any compiler sees them (ft_codegen_outline).
#ifndef FT_DAEMON_OUTLINE_PREDICTOR_H
#define FT_DAEMON_OUTLINE_PREDICTOR_H

#include "codegen/codegen.h"
#include "cost_model/gpu_roofline.h"

typedef struct ft_outline_predictor {
  ft_gpu_bounds bounds;  // first: the table's functions get its address
  const ft_codegen *codegen;
  const volatile int *stop;  // set: floors leave with INTERRUPTED; NULL: never
  ft_arena *scratch;         // reset by each candidate
} ft_outline_predictor;

// Borrows |chip|, |codegen| and |stop|; |predictor| stays where it is until
// ft_outline_predictor_fini, which ends it in any case.
FT_MUST_CHECK ft_status ft_outline_predictor_init(ft_outline_predictor *predictor,
                                                  const ft_chip *chip,
                                                  const ft_codegen *codegen,
                                                  const volatile int *stop,
                                                  ft_error *error);
void ft_outline_predictor_fini(ft_outline_predictor *predictor);
ft_predictor ft_outline_predictor_table(ft_outline_predictor *predictor);

#endif
