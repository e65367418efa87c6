#include "codegen/simt_nest.h"

#include "codegen/simt_nest_emit.h"

const char *ft_simt_nest_refusal(const ft_group_ir *ir, const ft_simt_choice *choice,
                                 ft_arena *arena) {
  ft_simt_plan plan;
  return ft_simt_plan_make(ir, choice, arena, &plan);
}

static ft_status open_emitter(const ft_simt_plan *plan, ft_arena *arena,
                              ft_simt_emitter *e, ft_error *error) {
  const ft_group_ir *ir = plan->ir;
  uint32_t nodes = ir->node_count;
  uint32_t arguments = ir->workload->group.input_count + ir->workload->group.output_count;
  *e = (ft_simt_emitter){.plan = plan, .ir = ir, .arena = arena, .points = 1};
  e->kir = ft_kir_create(arena);
  ft_simt_known *table =
      FT_NEW_ARRAY(arena, ft_simt_known, (size_t)nodes * FT_SIMT_MOST_UNROLL);
  e->argument = FT_NEW_ARRAY(arena, uint32_t, arguments);
  uint32_t *ids = FT_NEW_ARRAY(arena, uint32_t, (size_t)nodes * 5);
  e->value = FT_NEW_ARRAY(arena, ft_kir_id, nodes);
  FT_OOM_IF(!e->kir || !table || !e->argument || !ids || !e->value, error);
  uint32_t **lists[] = {&e->part, &e->total, &e->kept, &e->slot, &e->result};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) *lists[i] = ids + i * nodes;
  for (uint32_t u = 0; u < FT_SIMT_MOST_UNROLL; u++)
    e->point[u].known = table + (size_t)u * nodes;
  return FT_OK;
}

ft_status ft_simt_nest_build(const ft_group_ir *ir, const ft_simt_choice *choice,
                             ft_arena *arena, ft_kir **out, ft_error *error) {
  ft_simt_plan plan;
  ft_simt_emitter e;
  const char *wrong = ft_simt_plan_make(ir, choice, arena, &plan);
  if (wrong) FT_FAIL(error, FT_INVALID_ARGUMENT, "a choice that was refused: %s", wrong);
  FT_TRY(open_emitter(&plan, arena, &e, error));
  ft_kir_id zero = ft_simt_nest_number(&e, 0), one = ft_simt_nest_number(&e, 1);
  ft_kir_stmt *grid =
      ft_kir_for(e.kir, FT_KIR_GRID, zero, ft_simt_nest_number(&e, plan.grid), one);
  ft_kir_stmt *threads = ft_kir_for(e.kir, FT_KIR_THREAD, zero,
                                    ft_simt_nest_number(&e, choice->threads), one);
  e.thread = threads->value;
  e.lane = e.begin = zero;
  e.end = ft_simt_nest_number(&e, plan.steps[FT_SIMT_REDUCED]);
  ft_simt_nest_enter(&e, &threads->body);
  if (ft_simt_plan_is_item(&plan))
    ft_simt_nest_items(&e, grid->value);
  else
    ft_simt_nest_rows(&e, grid->value);
  ft_simt_nest_leave(&e);
  ft_kir_append(&grid->body, threads);
  ft_kir_append(&e.kir->body, grid);
  FT_OOM_IF(e.kir->failed, error);
  *out = e.kir;
  return FT_OK;
}
