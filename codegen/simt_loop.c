#include "codegen/simt_loop.h"

#include "codegen/simt_grid.h"

typedef struct layout {
  const ft_workload *workload;
  const ft_simt_loop_choice *choice;
  uint32_t count;
  ft_loop_section *section;
  int64_t grid;
} layout;

static ft_kir_id number(ft_loop_emitter *e, int64_t n) {
  return ft_places_number(&e->places, n);
}

static ft_kir_id calculate(ft_loop_emitter *e, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  return ft_places_index(&e->places, op, a, b);
}

// ---- sections
// -----------------------------------------------------------------------------

static bool has_section(const layout *l, int64_t elements) {
  for (uint32_t i = 0; i < l->count; i++)
    if (l->section[i].elements == elements) return true;
  return false;
}

// Tiles do not overlap: two threads would write the same element.
static void fit_tile(ft_loop_section *s) {
  if (s->tile_axis < 0) return;
  while (s->domain.dim[s->tile_axis] % s->tile) s->tile--;
}

static void add_section(layout *l, const ft_shape *shape, int64_t elements) {
  ft_loop_section *s = &l->section[l->count++];
  *s = (ft_loop_section){.elements = elements, .domain = *shape, .is_scalar = true};
  if (!s->domain.rank) s->domain = (ft_shape){.rank = 1, .dim = {1}};
  ft_loop_choose_tile(&l->workload->group, s, l->choice->tile);
  fit_tile(s);
  s->rows = elements / s->tile;
  int64_t blocks = (s->rows + l->choice->threads - 1) / l->choice->threads;
  l->grid += blocks;
  s->grid = (uint32_t)blocks;
}

static ft_status lay_out(const ft_workload *workload, const ft_simt_loop_choice *choice,
                         ft_arena *arena, layout *out, ft_error *error) {
  const ft_group *group = &workload->group;
  *out = (layout){.workload = workload, .choice = choice};
  out->section = FT_NEW_ARRAY(arena, ft_loop_section, group->output_count);
  FT_OOM_IF(!out->section, error);
  for (uint32_t o = 0; o < group->output_count; o++) {
    const ft_shape *shape = &group->graph->value[group->output[o]].shape;
    int64_t elements = ft_shape_elements(shape);
    if (elements && !has_section(out, elements)) add_section(out, shape, elements);
  }
  return FT_OK;
}

// ---- the kernel
// ------------------------------------------------------------------------------

static int64_t steps_along(const ft_loop_section *s, int axis) {
  int64_t extent = s->domain.dim[axis];
  return axis == s->tile_axis ? extent / s->tile : extent;
}

static void decode(ft_loop_emitter *e, const ft_loop_section *s, ft_kir_id item,
                   ft_affine *dim) {
  int64_t inner = 1;
  for (int i = s->domain.rank - 1; i >= 0; i--) {
    ft_kir_id index = calculate(e, FT_KIR_IDIV, item, number(e, inner));
    if (i > 0) index = calculate(e, FT_KIR_IMOD, index, number(e, steps_along(s, i)));
    if (i == s->tile_axis) index = calculate(e, FT_KIR_IMUL, index, number(e, s->tile));
    dim[i] = s->domain.dim[i] == 1 ? ft_affine_number(0)
                                   : ft_affine_of(&e->places, ft_loop_named(e, index));
    inner *= steps_along(s, i);
  }
}

static void put_item(ft_loop_emitter *e, const ft_loop_section *s, ft_kir_id item) {
  ft_affine dim[FT_MAX_RANK];
  const ft_place *place[FT_MAX_TILE];
  decode(e, s, item, dim);
  e->lanes = 1;
  e->inner = number(e, 0);
  e->low = 0;
  e->high = s->domain.dim[s->domain.rank - 1];
  for (int64_t r = 0; r < s->tile; r++) {
    ft_affine here[FT_MAX_RANK];
    for (int i = 0; i < s->domain.rank; i++) here[i] = dim[i];
    if (s->tile_axis >= 0)
      here[s->tile_axis] =
          ft_affine_add(&e->places, dim[s->tile_axis], ft_affine_number(r));
    place[r] = ft_place_make(&e->places, &s->domain, here);
    if (!place[r]) return;
  }
  ft_loop_store(e, s, place, (uint32_t)s->tile);
}

static void put_section(ft_loop_emitter *e, const layout *l, const ft_loop_section *s,
                        ft_kir_id block, ft_kir_id thread) {
  ft_kir_id item = calculate(e, FT_KIR_IMUL, block, number(e, l->choice->threads));
  item = ft_loop_named(e, calculate(e, FT_KIR_IADD, item, thread));
  ft_kir_stmt *branch =
      ft_kir_if(e->kir, calculate(e, FT_KIR_ILESS, item, number(e, s->rows)));
  ft_loop_enter(e, &branch->body);
  put_item(e, s, item);
  ft_loop_close(e, branch);
}

static void put_sections(ft_loop_emitter *e, const layout *l, uint32_t i, ft_kir_id block,
                         ft_kir_id thread) {
  const ft_loop_section *s = &l->section[i];
  if (i == l->count) return;
  if (i + 1 == l->count) {
    put_section(e, l, s, block, thread);
    return;
  }
  ft_kir_stmt *branch =
      ft_kir_if(e->kir, calculate(e, FT_KIR_ILESS, block, number(e, s->grid)));
  ft_loop_enter(e, &branch->body);
  put_section(e, l, s, block, thread);
  ft_loop_leave(e);
  ft_loop_enter(e, &branch->otherwise);
  ft_kir_id rest = calculate(e, FT_KIR_ISUB, block, number(e, s->grid));
  put_sections(e, l, i + 1, ft_loop_named(e, rest), thread);
  ft_loop_close(e, branch);
}

const char *ft_simt_loop_refusal(const ft_workload *workload,
                                 const ft_simt_loop_choice *choice, ft_arena *arena) {
  layout l;
  if (choice->threads < 32 || choice->threads > 1024 || choice->threads % 32)
    return "threads is not a multiple of 32 up to 1024";
  if (choice->tile < 1 || choice->tile > FT_MAX_TILE) return "tile is not 1 to 16";
  const char *wrong = ft_loop_refusal(workload, arena);
  if (wrong) return wrong;
  if (lay_out(workload, choice, arena, &l, NULL) != FT_OK) return "out of memory";
  if (l.grid > INT32_MAX)
    return ft_arena_printf(arena, "%lld blocks are too many", (long long)l.grid);
  return NULL;
}

ft_status ft_simt_loop_build(const ft_workload *workload,
                             const ft_simt_loop_choice *choice, ft_arena *arena,
                             ft_kir **out, ft_error *error) {
  layout l;
  ft_loop_emitter *e;
  FT_TRY(lay_out(workload, choice, arena, &l, error));
  FT_TRY(ft_loop_open(workload, arena, &e, error));
  int64_t grid_size = l.grid ? l.grid : 1;
  ft_simt_grid grid = ft_simt_grid_open(e, grid_size, choice->threads);
  put_sections(e, &l, 0, grid.blocks->value, grid.threads->value);
  return ft_simt_grid_close(e, &grid, out, error);
}
