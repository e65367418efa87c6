#include "codegen/simt_grid.h"

static ft_kir_stmt *open_loop(ft_loop_emitter *e, ft_kir_loop kind, int64_t end) {
  ft_places *places = &e->places;
  ft_kir_stmt *loop =
      ft_kir_for(e->kir, kind, ft_places_number(places, 0), ft_places_number(places, end),
                 ft_places_number(places, 1));
  ft_loop_enter(e, &loop->body);
  return loop;
}

ft_simt_grid ft_simt_grid_open(ft_loop_emitter *e, int64_t blocks, uint32_t threads) {
  ft_simt_grid grid;
  grid.blocks = open_loop(e, FT_KIR_GRID, blocks);
  grid.threads = open_loop(e, FT_KIR_THREAD, threads);
  return grid;
}

ft_status ft_simt_grid_close(ft_loop_emitter *e, const ft_simt_grid *grid, ft_kir **out,
                             ft_error *error) {
  ft_loop_close(e, grid->threads);
  ft_loop_leave(e);
  ft_kir_append(&e->kir->body, grid->blocks);
  FT_OOM_IF(e->kir->failed, error);
  if (e->is_lost || e->new_cuts)
    FT_FAIL(error, FT_INTERNAL, "a thread asks for a vector");
  *out = e->kir;
  return FT_OK;
}
