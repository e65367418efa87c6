#include "daemon/outline_predictor.h"

#include <math.h>

static ft_status floors(void *self, const ft_candidate *candidate, uint32_t count,
                        double *out_ns, ft_error *error) {
  ft_outline_predictor *p = self;
  for (uint32_t i = 0; i < count; i++) {
    ft_module module;
    if (p->stop && *p->stop) FT_FAIL(error, FT_INTERRUPTED, "interrupted");
    ft_arena_reset(p->scratch);
    FT_TRY(ft_codegen_outline(p->codegen, &candidate[i], p->scratch, &module, error));
    out_ns[i] =
        module.outcome != FT_OUTCOME_OK
            ? INFINITY
            : ft_gpu_floor_ns(p->bounds.chip, candidate[i].workload, &module, p->scratch);
  }
  return FT_OK;
}

ft_status ft_outline_predictor_init(ft_outline_predictor *p, const ft_chip *chip,
                                    const ft_codegen *codegen, const volatile int *stop,
                                    ft_error *error) {
  *p = (ft_outline_predictor){.bounds = {chip, ft_arena_create(ft_allocator_system())},
                              .codegen = codegen,
                              .stop = stop,
                              .scratch = ft_arena_create(ft_allocator_system())};
  FT_OOM_IF(!p->bounds.scratch || !p->scratch, error);
  return FT_OK;
}

void ft_outline_predictor_fini(ft_outline_predictor *p) {
  ft_arena_destroy(p->bounds.scratch);
  ft_arena_destroy(p->scratch);
  *p = (ft_outline_predictor){0};
}

ft_predictor ft_outline_predictor_table(ft_outline_predictor *p) {
  ft_predictor table = ft_gpu_predictor(&p->bounds);
  table.floors = floors;
  return table;
}
