#include "codegen/simt_product.h"

#include <math.h>

enum { VECTOR_BYTES = 16, ALWAYS_SUMMED = 32 };  // terms that no rounding spoils

// ---- what is taken
// ---------------------------------------------------------------------------

static const ft_primitive *product_of(const ft_group *group) {
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    if (p->op == FT_OP_MATMUL) return p;
  }
  return NULL;
}

static const char *name_of(const ft_primitive *p) {
  return ft_op_describe(p->op)->name;
}

// What depends on the product keeps its shape and is elementwise.
static const char *behind_refusal(const ft_group *group, const ft_primitive *product,
                                  ft_arena *arena) {
  const ft_graph *graph = group->graph;
  const ft_shape *shape = &graph->value[product->output].shape;
  bool *depends = FT_NEW_ARRAY(arena, bool, graph->value_count);
  if (!depends) return "out of memory";
  depends[product->output] = true;
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &graph->primitive[group->primitive[i]];
    bool is_behind = false;
    for (uint32_t k = 0; k < p->input_count; k++) {
      const ft_value *v = &graph->value[p->input[k]];
      if (!depends[v->root]) continue;
      is_behind = true;
      if (!ft_shape_equal(&v->shape, shape))
        return ft_arena_printf(arena, "%s sees the product in another shape", name_of(p));
    }
    if (!is_behind || p == product) continue;
    depends[p->output] = true;
    if (ft_op_describe(p->op)->class != FT_CLASS_E ||
        !ft_shape_equal(&graph->value[p->output].shape, shape))
      return ft_arena_printf(arena, "%s behind the product is not elementwise",
                             name_of(p));
  }
  for (uint32_t o = 0; o < group->output_count; o++)
    if (!depends[group->output[o]]) return "an output that is not behind the product";
  return NULL;
}

const char *ft_simt_product_refusal(const ft_workload *workload, ft_arena *arena) {
  const ft_group *group = &workload->group;
  const char *wrong = ft_loop_refusal(workload, arena);
  if (wrong) return wrong;
  const ft_primitive *p = product_of(group);
  if (!p) return "no matrix product";
  const ft_value *y = &group->graph->value[p->output];
  if (!ft_dtype_is_float(y->dtype)) return "a product of integers";
  if (y->shape.rank < 2) return "a product without rows";
  if (!ft_shape_elements(&y->shape)) return "a product without elements";
  return behind_refusal(group, p, arena);
}

ft_simt_product ft_simt_product_of(const ft_workload *workload) {
  const ft_group *group = &workload->group;
  const ft_primitive *p = product_of(group);
  const ft_shape *a = &group->graph->value[p->input[0]].shape;
  ft_simt_product q = {.workload = workload,
                       .p = p,
                       .shape = group->graph->value[p->output].shape,
                       .dtype = group->graph->value[p->output].dtype,
                       .batches = 1};
  q.m = q.shape.dim[q.shape.rank - 2];
  q.n = q.shape.dim[q.shape.rank - 1];
  q.k = a->dim[a->rank - 1];
  for (int i = 0; i + 2 < q.shape.rank; i++) q.batches *= q.shape.dim[i];
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *other = &group->graph->primitive[group->primitive[i]];
    q.has_other_anchor |= other != p && ft_loop_is_anchor(other);
  }
  return q;
}

double ft_simt_product_most_terms(const ft_simt_product *q) {
  if (q->dtype != FT_F32) return (double)INFINITY;
  return fmax(4 * sqrt((double)q->k), ALWAYS_SUMMED);
}

// ---- places
// --------------------------------------------------------------------------------

static ft_kir_id number(ft_simt_product *q, int64_t n) {
  return ft_places_number(&q->e->places, n);
}

void ft_simt_product_enter_batch(ft_simt_product *q, ft_kir_id batch) {
  ft_places *places = &q->e->places;
  int64_t inner = 1;
  for (int i = q->shape.rank - 3; i >= 0; i--) {
    int64_t extent = q->shape.dim[i];
    ft_kir_id at = ft_places_index(places, FT_KIR_IDIV, batch, number(q, inner));
    if (i > 0) at = ft_places_index(places, FT_KIR_IMOD, at, number(q, extent));
    q->batch[i] =
        extent == 1 ? ft_affine_number(0) : ft_affine_of(places, ft_loop_named(q->e, at));
    inner *= extent;
  }
}

// The inner index is 0 and the position is in the rest, so that each has its own places.
ft_affine ft_simt_product_position(ft_simt_product *q, ft_kir_id at, uint16_t lanes) {
  ft_affine a = ft_affine_of(&q->e->places, at);
  if (lanes > 1) a.coef = 1;
  return a;
}

const ft_place *ft_simt_product_operand(ft_simt_product *q, int which, ft_affine outer,
                                        ft_affine term) {
  const ft_shape *shape = &q->e->graph->value[q->p->input[which]].shape;
  int shift = q->shape.rank - shape->rank, rank = shape->rank;
  ft_affine dim[FT_MAX_RANK];
  for (int i = 0; i + 2 < rank; i++)
    dim[i] = shape->dim[i] == 1 ? ft_affine_number(0) : q->batch[i + shift];
  dim[rank - 2] = which == 0 ? outer : term;
  dim[rank - 1] = which == 0 ? term : outer;
  return ft_place_make(&q->e->places, shape, dim);
}

static void set_lanes(ft_simt_product *q, uint16_t lanes) {
  q->e->lanes = lanes;
  q->e->inner = number(q, 0);
  q->e->low = 0;
  q->e->high = 1;
}

ft_kir_id ft_simt_product_load(ft_simt_product *q, int which, ft_affine outer,
                               ft_affine term, uint16_t lanes) {
  set_lanes(q, lanes);
  const ft_place *place = ft_simt_product_operand(q, which, outer, term);
  if (!place) return 0;
  ft_kir_id value = ft_loop_value(q->e, q->p->input[which], place);
  return q->e->kir->failed ? 0 : ft_loop_spread(q->e, value, lanes);
}

void ft_simt_product_store(ft_simt_product *q, ft_kir_id sum, ft_kir_id m, ft_kir_id n,
                           uint16_t lanes) {
  ft_loop_section section = {.elements = ft_shape_elements(&q->shape),
                             .domain = q->shape};
  ft_affine dim[FT_MAX_RANK];
  set_lanes(q, lanes);
  for (int i = 0; i + 2 < q->shape.rank; i++) dim[i] = q->batch[i];
  dim[q->shape.rank - 2] = ft_simt_product_position(q, m, 1);
  dim[q->shape.rank - 1] = ft_simt_product_position(q, n, lanes);
  const ft_place *place = ft_place_make(&q->e->places, &q->shape, dim);
  if (!place) return;
  if (ft_kir_math_dtype(q->dtype) != q->dtype)
    sum = ft_kir_primitive(q->e->kir, ft_loop_here(q->e), FT_OP_CAST, q->dtype, &sum, 1);
  ft_loop_remember(q->e, q->p->output, place, sum);
  ft_loop_store(q->e, &section, &place, 1);
}

// ---- plain operands
// --------------------------------------------------------------------------

// Whether the operand is memory that is only looked at differently; then its root and
// place there.
static bool find_source(ft_simt_product *q, uint32_t value, const ft_place *place,
                        uint32_t *out_root, const ft_place **out) {
  ft_loop_emitter *e = q->e;
  for (;;) {
    uint32_t root = e->graph->value[value].root;
    place = ft_place_view(&e->places, place, &e->graph->value[root].shape);
    const ft_primitive *p = ft_loop_producer(e, root);
    *out_root = root;
    *out = place;
    if (!place || !p) return place && !ft_value_is_immediate(e->graph, root);
    if (p->op != FT_OP_TRANSPOSE && p->op != FT_OP_BROADCAST) return false;
    place = ft_loop_operand(e, p, 0, place);
    value = p->input[0];
  }
}

uint32_t ft_simt_product_source(ft_simt_product *q, int which, ft_affine outer,
                                ft_affine term, ft_kir_id *out_index) {
  uint32_t root;
  const ft_place *place = ft_simt_product_operand(q, which, outer, term);
  if (!place || !find_source(q, q->p->input[which], place, &root, &place)) {
    q->e->kir->failed = true;
    return 0;
  }
  *out_index = ft_loop_index(q->e, place->linear);
  return ft_loop_input(q->e, root);
}

// ---- trials
// ------------------------------------------------------------------------------------

// |q| with an emitter of its own, inside a loop whose variable is returned.
static ft_status open_trial(ft_simt_product *q, ft_arena *arena, ft_kir_id *out,
                            ft_error *error) {
  FT_TRY(ft_loop_open(q->workload, arena, &q->e, error));
  ft_kir_stmt *grid = ft_kir_for(q->e->kir, FT_KIR_GRID, number(q, 0),
                                 number(q, INT32_MAX), number(q, 1));
  ft_loop_enter(q->e, &grid->body);
  *out = grid->value;
  ft_simt_product_enter_batch(q, grid->value);
  return FT_OK;
}

static bool is_vector(const ft_loop_emitter *e) {
  return !e->is_lost && !e->new_cuts && !e->strided;
}

// Whether operand |which| can be read in vectors along the terms, or along the others;
// the code is thrown away.
static ft_status try_axis(const ft_simt_product *product, int which, ft_arena *arena,
                          ft_simt_reach *r, bool *works, ft_error *error) {
  ft_simt_product q = *product;
  ft_kir_id at;
  uint32_t root;
  FT_TRY(open_trial(&q, arena, &at, error));
  ft_affine outer = ft_simt_product_position(&q, at, r->is_along_terms ? 1 : 2);
  ft_affine term = ft_simt_product_position(&q, at, r->is_along_terms ? 2 : 1);
  set_lanes(&q, 2);
  const ft_place *place = ft_simt_product_operand(&q, which, outer, term);
  FT_OOM_IF(!place, error);
  ft_kir_id value = ft_loop_value(q.e, q.p->input[which], place);
  FT_OOM_IF(q.e->kir->failed, error);
  *works = is_vector(q.e) && q.e->kir->value[value].type.lanes == 2;
  r->is_plain = *works && find_source(&q, q.p->input[which], place, &root, &place) &&
                !place->linear.is_lost && place->linear.coef == 1;
  FT_OOM_IF(q.e->kir->failed, error);
  return FT_OK;
}

static uint16_t lanes_for(ft_dtype dtype, int64_t extent) {
  uint32_t lanes = VECTOR_BYTES / (uint32_t)ft_dtype_bytes(dtype);
  while (extent % lanes) lanes /= 2;
  return (uint16_t)lanes;
}

ft_status ft_simt_product_reach(const ft_simt_product *q, int which, ft_arena *arena,
                                ft_simt_reach *out, ft_error *error) {
  bool works = false;
  *out = (ft_simt_reach){.is_along_terms = which == 0, .lanes = 1};
  if (q->has_other_anchor) return FT_OK;
  FT_TRY(try_axis(q, which, arena, out, &works, error));
  if (!works) {
    out->is_along_terms = which != 0;
    FT_TRY(try_axis(q, which, arena, out, &works, error));
  }
  if (!works) {
    *out = (ft_simt_reach){.is_along_terms = which == 0, .lanes = 1};
    return FT_OK;
  }
  int64_t outer = which == 0 ? q->m : q->n;
  out->lanes = lanes_for(q->dtype, out->is_along_terms ? q->k : outer);
  return FT_OK;
}

ft_status ft_simt_product_store_lanes(const ft_simt_product *product, uint16_t most,
                                      ft_arena *arena, uint16_t *out, ft_error *error) {
  ft_simt_product q = *product;
  ft_kir_id at;
  *out = 1;
  if (q.has_other_anchor || most == 1 || q.n % most) return FT_OK;
  FT_TRY(open_trial(&q, arena, &at, error));
  ft_kir_type type = {q.dtype, most};
  ft_kir_id sum = ft_kir_element(q.e->kir, ft_loop_here(q.e), type, 0);
  ft_simt_product_store(&q, sum, at, at, most);
  FT_OOM_IF(q.e->kir->failed, error);
  if (is_vector(q.e)) *out = most;
  return FT_OK;
}
