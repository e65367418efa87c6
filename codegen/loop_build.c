// Plans sections by trial, and builds the kernel from them.
#include "codegen/expressions.h"
#include "codegen/loop_emit.h"

enum { MAX_WANTED = 1024, PANEL = 64 };

// ---- an emitter ---------------------------------------------------------------------

ft_status ft_loop_open(const ft_workload *workload, ft_arena *arena,
                       ft_loop_emitter **out, ft_error *error) {
  const ft_group *group = &workload->group;
  ft_loop_emitter *e = FT_NEW(arena, ft_loop_emitter);
  FT_OOM_IF(!e, error);
  e->group = group;
  e->graph = group->graph;
  e->arena = arena;
  e->kir = ft_kir_create(arena);
  e->is_inside = FT_NEW_ARRAY(arena, bool, group->graph->primitive_count);
  e->buffer = FT_NEW_ARRAY(arena, uint32_t, group->input_count + group->output_count);
  FT_OOM_IF(!e->kir || !e->is_inside || !e->buffer, error);
  e->places.kir = e->kir;
  for (uint32_t i = 0; i < group->primitive_count; i++)
    e->is_inside[group->primitive[i]] = true;
  *out = e;
  return FT_OK;
}

static ft_kir_id number(ft_loop_emitter *e, int64_t n) {
  return ft_places_number(&e->places, n);
}

static ft_kir_id index_of(ft_loop_emitter *e, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  return ft_places_index(&e->places, op, a, b);
}

// ---- outputs at some rows
// ---------------------------------------------------------------

// Anchors' elements that the outputs need.
typedef struct wanted {
  uint32_t count, seen_count;
  struct {
    const ft_primitive *p;
    const ft_place *place;
  } item[MAX_WANTED], seen[MAX_WANTED];
} wanted;

static void note(wanted *w, const ft_primitive *p, const ft_place *place) {
  if (w->count == MAX_WANTED) return;
  w->item[w->count].p = p;
  w->item[w->count++].place = place;
}

// False when it was, or when there is no room left to know.
static bool is_new(wanted *w, const ft_primitive *p, const ft_place *place) {
  for (uint32_t i = 0; i < w->seen_count; i++) {
    if (w->seen[i].p == p && w->seen[i].place == place) return false;
  }
  if (w->seen_count == MAX_WANTED) return false;
  w->seen[w->seen_count].p = p;
  w->seen[w->seen_count++].place = place;
  return true;
}

// Finds the anchors behind |value| that are certainly needed; those behind choices are
// computed where they are chosen.
static void find_wanted(ft_loop_emitter *e, uint32_t value, const ft_place *place,
                        wanted *w) {
  uint32_t root = e->graph->value[value].root;
  const ft_primitive *p = ft_loop_producer(e, root);
  place = ft_place_view(&e->places, place, &e->graph->value[root].shape);
  if (!p || !place || !is_new(w, p, place)) return;
  if (ft_loop_recall(e, root, place)) return;  // a skeleton of its own computed it
  if (ft_loop_is_anchor(p)) {
    note(w, p, place);
    return;
  }
  for (uint32_t i = 0; i < p->input_count; i++) {
    const ft_place *at = ft_loop_operand(e, p, i, place);
    if (at) find_wanted(e, p->input[i], at, w);
  }
}

static void compute_wanted(ft_loop_emitter *e, const wanted *w) {
  bool *is_done = FT_NEW_ARRAY(e->arena, bool, w->count);
  if (!is_done) {
    e->kir->failed = true;
    return;
  }
  for (uint32_t i = 0; i < w->count; i++) {
    const ft_place *place[FT_MAX_TILE];
    uint32_t count = 0;
    for (uint32_t k = i; k < w->count && count < FT_MAX_TILE; k++) {
      if (is_done[k] || w->item[k].p != w->item[i].p) continue;
      is_done[k] = true;
      place[count++] = w->item[k].place;
    }
    if (count) ft_loop_anchor(e, w->item[i].p, place, count);
  }
}

uint32_t ft_loop_output(ft_loop_emitter *e, uint32_t output) {
  uint32_t at = e->group->input_count + output;
  const ft_value *v = &e->graph->value[e->group->output[output]];
  if (!e->buffer[at])
    e->buffer[at] =
        ft_kir_global(e->kir, v->dtype, ft_shape_elements(&v->shape), at, true);
  return e->buffer[at];
}

static int64_t elements_of(const ft_group *group, uint32_t output) {
  return ft_shape_elements(&group->graph->value[group->output[output]].shape);
}

void ft_loop_store(ft_loop_emitter *e, const ft_loop_section *section,
                   const ft_place *const *place, uint32_t count) {
  wanted *w = FT_NEW(e->arena, wanted);
  if (!w) {
    e->kir->failed = true;
    return;
  }
  for (uint32_t o = 0; o < e->group->output_count; o++) {
    for (uint32_t r = 0; r < count && elements_of(e->group, o) == section->elements; r++)
      find_wanted(e, e->group->output[o], place[r], w);
  }
  compute_wanted(e, w);
  for (uint32_t o = 0; o < e->group->output_count; o++) {
    if (elements_of(e->group, o) != section->elements) continue;
    for (uint32_t r = 0; r < count && !e->kir->failed; r++) {
      ft_kir_id value = ft_loop_value(e, e->group->output[o], place[r]);
      if (e->kir->failed) return;
      ft_kir_store(e->kir, ft_loop_here(e), ft_loop_output(e, o),
                   ft_loop_spread(e, value, e->lanes), ft_loop_index(e, place[r]->linear),
                   1, FT_KIR_CACHED);
    }
  }
}

// ---- segments
// ---------------------------------------------------------------------------

static uint16_t fitting_lanes(uint32_t most, int64_t extent) {
  uint32_t lanes = 1;
  while (2 * lanes <= most && 2 * (int64_t)lanes <= extent) lanes *= 2;
  return (uint16_t)lanes;
}

// The rows of one step: |outer| with the tile's dim replaced.
static void step_body(ft_loop_emitter *e, const ft_loop_section *s,
                      const ft_affine *outer, ft_affine inner) {
  const ft_place *place[FT_MAX_TILE];
  for (int64_t r = 0; r < s->tile; r++) {
    ft_affine dim[FT_MAX_RANK];
    for (int i = 0; i + 1 < s->domain.rank; i++) dim[i] = outer[i];
    if (s->tile_axis >= 0)
      dim[s->tile_axis] =
          ft_affine_add(&e->places, outer[s->tile_axis], ft_affine_number(r));
    dim[s->domain.rank - 1] = inner;
    place[r] = ft_place_make(&e->places, &s->domain, dim);
    if (!place[r]) return;
  }
  ft_loop_store(e, s, place, (uint32_t)s->tile);
}

// Segment |i| of the inner dim, what [begin, end) has of it.
static void segment(ft_loop_emitter *e, const ft_loop_section *s, uint32_t vector,
                    uint32_t i, const ft_affine *outer, ft_kir_id begin, ft_kir_id end) {
  bool is_scalar = s->is_scalar || s->is_rim[i];
  e->low = s->cut[i];
  e->high = s->cut[i + 1];
  e->lanes = is_scalar ? 1 : fitting_lanes(vector, e->high - e->low);
  begin = index_of(e, FT_KIR_IMAX, begin, number(e, e->low));
  end = index_of(e, FT_KIR_IMIN, end, number(e, e->high));
  ft_kir_stmt *loop = ft_kir_for(e->kir, e->lanes > 1 ? FT_KIR_VECTOR : FT_KIR_SERIAL,
                                 begin, end, number(e, e->lanes));
  ft_loop_enter(e, &loop->body);
  e->inner = loop->value;
  if (e->lanes > 1)
    e->inner = ft_loop_named(
        e, index_of(e, FT_KIR_IMIN, loop->value, number(e, e->high - e->lanes)));
  step_body(e, s, outer,
            is_scalar ? ft_affine_of(&e->places, e->inner) : (ft_affine){.coef = 1});
  ft_loop_close(e, loop);
}

// ---- rows and blocks
// --------------------------------------------------------------------

static int64_t steps_along(const ft_loop_section *s, int axis) {
  int64_t extent = s->domain.dim[axis];
  return axis == s->tile_axis ? (extent + s->tile - 1) / s->tile : extent;
}

// The outer dims of row |row|. The last tile starts early.
static void decode_row(ft_loop_emitter *e, const ft_loop_section *s, ft_kir_id row,
                       ft_affine *outer) {
  int64_t inner = 1;
  for (int i = s->domain.rank - 2; i >= 0; i--) {
    ft_kir_id index = index_of(e, FT_KIR_IDIV, row, number(e, inner));
    if (i > 0) index = index_of(e, FT_KIR_IMOD, index, number(e, steps_along(s, i)));
    if (i == s->tile_axis) {
      index = index_of(e, FT_KIR_IMUL, index, number(e, s->tile));
      index = index_of(e, FT_KIR_IMIN, index, number(e, s->domain.dim[i] - s->tile));
    }
    outer[i] = s->domain.dim[i] == 1 ? ft_affine_number(0)
                                     : ft_affine_of(&e->places, ft_loop_named(e, index));
    inner *= steps_along(s, i);
  }
}

static void section_body(ft_loop_emitter *e, const ft_loop_section *s, uint32_t vector,
                         ft_kir_id block) {
  int64_t extent = s->domain.dim[s->domain.rank - 1];
  ft_kir_id group = index_of(e, FT_KIR_IDIV, block, number(e, s->chunks));
  ft_kir_id first =
      ft_loop_named(e, index_of(e, FT_KIR_IMUL, group, number(e, s->rows_per_block)));
  ft_kir_id last = index_of(e, FT_KIR_IADD, first, number(e, s->rows_per_block));
  last = ft_loop_named(e, index_of(e, FT_KIR_IMIN, last, number(e, s->rows)));
  ft_kir_id begin = number(e, 0), end = number(e, extent);
  if (s->chunks > 1) {
    ft_kir_id part = index_of(e, FT_KIR_IMOD, block, number(e, s->chunks));
    begin = ft_loop_named(e, index_of(e, FT_KIR_IMUL, part, number(e, s->chunk)));
    end = index_of(e, FT_KIR_IADD, begin, number(e, s->chunk));
    end = ft_loop_named(e, index_of(e, FT_KIR_IMIN, end, number(e, extent)));
  }
  ft_kir_stmt *loop = ft_kir_for(e->kir, FT_KIR_SERIAL, first, last, number(e, 1));
  ft_loop_enter(e, &loop->body);
  ft_affine outer[FT_MAX_RANK];
  decode_row(e, s, loop->value, outer);
  for (uint32_t i = 0; i + 1 < s->cuts && !e->kir->failed; i++)
    segment(e, s, vector, i, outer, begin, end);
  ft_loop_close(e, loop);
}

// ---- planning
// -----------------------------------------------------------------------------

static void insert_cut(ft_loop_section *s, int64_t at) {
  if (s->cuts == FT_MAX_CUTS + 2) return;
  uint32_t i = s->cuts++;
  for (; s->cut[i - 1] > at; i--) s->cut[i] = s->cut[i - 1];
  s->cut[i] = at;
}

// What a trial run of one segment says. The row is row 0 of unknown indices.
typedef enum verdict { FINE, CUT, LOST } verdict;

static verdict try_segment(ft_loop_emitter *e, ft_loop_section *s, uint32_t vector,
                           uint32_t i) {
  ft_affine outer[FT_MAX_RANK];
  ft_kir_stmt *grid =
      ft_kir_for(e->kir, FT_KIR_GRID, number(e, 0), number(e, 1), number(e, 1));
  e->is_lost = e->wants_rim = false;
  e->new_cuts = 0;
  ft_loop_enter(e, &grid->body);
  decode_row(e, s, grid->value, outer);
  segment(e, s, vector, i, outer, number(e, 0),
          number(e, s->domain.dim[s->domain.rank - 1]));
  ft_loop_leave(e);
  if (e->is_lost) return LOST;
  if (e->across) return e->ran_across && !e->new_cuts ? FINE : LOST;
  s->strided += e->strided;
  if (!e->new_cuts) {
    s->is_rim[i] |= e->wants_rim;
    return FINE;
  }
  for (uint32_t k = 0; k < e->new_cuts; k++) insert_cut(s, e->new_cut[k]);
  return s->cuts == FT_MAX_CUTS + 2 ? LOST : CUT;
}

// Cuts the inner dim of |s| until every segment is of one kind. *works says whether all
// of it runs in vectors.
static ft_status try_section(const ft_workload *workload, ft_loop_section *s,
                             const ft_loop_choice *choice, ft_arena *arena, bool *works,
                             ft_error *error) {
  s->cuts = 2;
  s->cut[0] = 0;
  s->cut[1] = s->domain.dim[s->domain.rank - 1];
  s->strided = 0;
  *works = true;
  for (uint32_t i = 0; i + 1 < s->cuts && *works;) {
    ft_loop_emitter *e;
    FT_TRY(ft_loop_open(workload, arena, &e, error));
    s->is_rim[i] = false;
    e->across = choice->across ? (uint16_t)choice->vector : 0;
    verdict v = try_segment(e, s, choice->vector, i);
    FT_OOM_IF(e->kir->failed, error);
    *works = v != LOST;
    if (v == FINE) i++;
  }
  return FT_OK;
}

// The first |outer| dims of |shape|, the others as one; no trailing dims of 1.
static ft_shape domain_of(const ft_shape *shape, int outer) {
  ft_shape s = {.rank = (uint8_t)(outer + 1)};
  s.dim[outer] = 1;
  for (int i = 0; i < shape->rank; i++) {
    if (i < outer)
      s.dim[i] = shape->dim[i];
    else
      s.dim[outer] *= shape->dim[i];
  }
  while (s.rank > 1 && s.dim[s.rank - 1] == 1) s.dim[--s.rank] = 0;
  return s;
}

// The anchor that the outputs of |s| come from; NULL: none.
static const ft_primitive *anchor_of(const ft_group *group) {
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    if (ft_loop_is_anchor(p)) return p;
  }
  return NULL;
}

void ft_loop_choose_tile(const ft_group *group, ft_loop_section *s, uint32_t tile) {
  const ft_primitive *p = anchor_of(group);
  s->tile_axis = -1;
  s->tile = 1;
  int axis = -1;
  if (p && p->op == FT_OP_MATMUL) axis = s->domain.rank - 2;
  if (p && p->op == FT_OP_CONV && s->domain.rank > 2) axis = 1;
  if (axis < 0 || s->domain.dim[axis] < 2) return;
  s->tile_axis = axis;
  s->tile = s->domain.dim[axis] < tile ? s->domain.dim[axis] : tile;
}

// Each element by itself: the inner dim is none of theirs.
static ft_status choose_points(const ft_workload *workload, const ft_shape *shape,
                               const ft_loop_choice *choice, ft_arena *arena,
                               ft_loop_section *s, const char **reason, ft_error *error) {
  bool works = false;
  s->domain = domain_of(shape, shape->rank ? shape->rank - 1 : 0);
  s->tile_axis = s->domain.rank - 1;
  s->tile = s->domain.dim[s->tile_axis] < choice->tile ? s->domain.dim[s->tile_axis]
                                                       : choice->tile;
  s->is_scalar = true;
  if (s->domain.rank < FT_MAX_RANK) {
    s->domain.dim[s->domain.rank++] = 1;
    FT_TRY(try_section(workload, s, choice, arena, &works, error));
  }
  if (!works) *reason = "no vectors along the terms";
  return FT_OK;
}

static ft_status choose_domain(const ft_workload *workload, const ft_shape *shape,
                               const ft_loop_choice *choice, ft_arena *arena,
                               ft_loop_section *s, ft_error *error) {
  int rank = shape->rank ? shape->rank : 1;
  for (int outer = 0; outer < rank; outer++) {
    bool works;
    s->domain = domain_of(shape, outer);
    ft_loop_choose_tile(&workload->group, s, choice->tile);
    FT_TRY(try_section(workload, s, choice, arena, &works, error));
    if (works) return FT_OK;
  }
  s->is_scalar = true;
  s->cuts = 2;
  s->cut[1] = s->domain.dim[s->domain.rank - 1];
  s->is_rim[0] = false;
  return FT_OK;
}

static const char *count_blocks(ft_loop_section *s, const ft_loop_choice *choice,
                                bool is_product, ft_arena *arena) {
  int64_t extent = s->domain.dim[s->domain.rank - 1];
  s->rows = 1;
  for (int i = 0; i + 1 < s->domain.rank; i++) s->rows *= steps_along(s, i);
  int64_t most = choice->block < extent ? choice->block : extent;
  int64_t chunk = is_product ? PANEL : (most + PANEL - 1) / PANEL * PANEL;
  s->chunk = chunk < extent ? chunk : extent;
  s->chunks = (extent + s->chunk - 1) / s->chunk;
  s->rows_per_block = choice->block / (s->chunk * s->tile);
  if (s->rows_per_block < 1) s->rows_per_block = 1;
  if (s->rows_per_block > s->rows) s->rows_per_block = s->rows;
  int64_t row_blocks = (s->rows + s->rows_per_block - 1) / s->rows_per_block;
  if (row_blocks > INT32_MAX / s->chunks)
    return ft_arena_printf(arena, "%lld x %lld blocks are too many",
                           (long long)row_blocks, (long long)s->chunks);
  s->grid = (uint32_t)(row_blocks * s->chunks);
  return NULL;
}

static bool has_section(const ft_loop *loop, int64_t elements) {
  for (uint32_t i = 0; i < loop->section_count; i++) {
    if (loop->section[i].elements == elements) return true;
  }
  return false;
}

static ft_status plan_section(ft_loop *loop, uint32_t output, ft_arena *arena,
                              const char **reason, ft_error *error) {
  const ft_group *group = &loop->workload->group;
  int64_t elements = elements_of(group, output);
  if (!elements || has_section(loop, elements)) return FT_OK;
  ft_loop_section *s = &loop->section[loop->section_count];
  *s = (ft_loop_section){.elements = elements};
  const ft_shape *shape = &group->graph->value[group->output[output]].shape;
  if (loop->choice.across)
    FT_TRY(choose_points(loop->workload, shape, &loop->choice, arena, s, reason, error));
  else
    FT_TRY(choose_domain(loop->workload, shape, &loop->choice, arena, s, error));
  if (*reason) return FT_OK;
  const ft_primitive *p = anchor_of(group);
  *reason = count_blocks(s, &loop->choice, p && p->op == FT_OP_MATMUL, arena);
  if (*reason) return FT_OK;
  if (s->grid > INT32_MAX - loop->grid) *reason = "too many blocks";
  loop->grid += s->grid;
  loop->section_count++;
  return FT_OK;
}

ft_status ft_loop_plan(const ft_workload *workload, const ft_loop_choice *choice,
                       ft_arena *arena, ft_loop *out, const char **reason,
                       ft_error *error) {
  const ft_group *group = &workload->group;
  *out = (ft_loop){.workload = workload, .choice = *choice};
  *reason = NULL;
  if (!choice->vector || choice->vector & (choice->vector - 1) || choice->vector > 64)
    *reason = "vector is not a power of two up to 64";
  if (choice->tile < 1 || choice->tile > FT_MAX_TILE) *reason = "tile is not 1 to 16";
  if (choice->block < 1) *reason = "block is not positive";
  out->section = FT_NEW_ARRAY(arena, ft_loop_section, group->output_count);
  FT_OOM_IF(!out->section, error);
  for (uint32_t o = 0; o < group->output_count && !*reason; o++)
    FT_TRY(plan_section(out, o, arena, reason, error));
  if (!out->grid) out->grid = 1;
  return FT_OK;
}

// ---- the kernel -----------------------------------------------------------------------

// Sections take the blocks one after the other.
static void build_sections(ft_loop_emitter *e, const ft_loop *loop, uint32_t i,
                           ft_kir_id block) {
  if (i == loop->section_count) return;
  const ft_loop_section *s = &loop->section[i];
  if (i + 1 == loop->section_count) {
    section_body(e, s, loop->choice.vector, block);
    return;
  }
  ft_kir_stmt *branch =
      ft_kir_if(e->kir, index_of(e, FT_KIR_ILESS, block, number(e, s->grid)));
  ft_loop_enter(e, &branch->body);
  section_body(e, s, loop->choice.vector, block);
  ft_loop_leave(e);
  ft_loop_enter(e, &branch->otherwise);
  build_sections(e, loop, i + 1,
                 ft_loop_named(e, index_of(e, FT_KIR_ISUB, block, number(e, s->grid))));
  ft_loop_close(e, branch);
}

ft_status ft_loop_build(const ft_loop *loop, ft_arena *arena, ft_kir **out,
                        ft_error *error) {
  ft_loop_emitter *e;
  FT_TRY(ft_loop_open(loop->workload, arena, &e, error));
  e->across = loop->choice.across ? (uint16_t)loop->choice.vector : 0;
  ft_kir_stmt *grid =
      ft_kir_for(e->kir, FT_KIR_GRID, number(e, 0), number(e, loop->grid), number(e, 1));
  ft_loop_enter(e, &grid->body);
  build_sections(e, loop, 0, grid->value);
  ft_loop_leave(e);
  ft_kir_append(&e->kir->body, grid);
  FT_OOM_IF(e->kir->failed, error);
  if (e->is_lost || e->new_cuts) FT_FAIL(error, FT_INTERNAL, "a loop planned too little");
  *out = e->kir;
  return FT_OK;
}
