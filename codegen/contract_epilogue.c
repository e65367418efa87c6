// What happens to a finished tile: the places of everything that depends on the anchor
// follow from the place of its element, forwards; other operands are found there,
// backwards, as the loop tactic finds them.
#include "codegen/contract_emit.h"

// ---- forwards -------------------------------------------------------------------------

static const ft_shape *shape_of(const ft_contract_emitter *m, uint32_t value) {
  return &m->e->graph->value[value].shape;
}

static bool is_same(const ft_affine *a, const ft_affine *b) {
  if (a->is_lost || b->is_lost) return a->is_lost == b->is_lost;
  return a->coef == b->coef && a->offset == b->offset && a->rest == b->rest;
}

// Where the result of |p| lies when operand |i| lies at |at|.
static const ft_place *result_place(ft_contract_emitter *m, const ft_primitive *p,
                                    uint32_t i, const ft_place *at) {
  ft_places *q = &m->e->places;
  at = ft_place_view(q, at, shape_of(m, p->input[i]));
  if (!at || p->op != FT_OP_TRANSPOSE)
    return at ? ft_place_view(q, at, shape_of(m, p->output)) : NULL;
  ft_affine dim[FT_MAX_RANK];
  for (uint8_t k = 0; k < at->shape.rank; k++) dim[k] = at->dim[p->attr.perm[k]];
  return ft_place_make(q, shape_of(m, p->output), dim);
}

static bool is_one_place(const ft_place *a, const ft_place *b) {
  if (a == b) return true;
  for (uint8_t i = 0; i < a->shape.rank; i++) {
    if (!is_same(&a->dim[i], &b->dim[i])) return false;
  }
  return true;
}

ft_contract_places ft_contract_follow(ft_contract_emitter *m, const ft_place *place) {
  const ft_group *group = m->e->group;
  const ft_graph *graph = group->graph;
  ft_contract_places r = {
      .of = FT_NEW_ARRAY(m->e->arena, const ft_place *, graph->value_count)};
  if (!r.of || !place) {
    m->e->kir->failed = true;
    return r;
  }
  r.of[m->c->anchor->output] = place;
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &graph->primitive[group->primitive[i]];
    for (uint32_t k = 0; k < p->input_count; k++) {
      const ft_place *at = r.of[graph->value[p->input[k]].root];
      if (!at) continue;
      const ft_place *to = result_place(m, p, k, at);
      if (!to) return r;
      if (r.of[p->output] && !is_one_place(r.of[p->output], to)) r.wrong = p;
      if (!r.of[p->output]) r.of[p->output] = to;
    }
  }
  return r;
}

// ---- one vector -----------------------------------------------------------------------

// The operands of |p| that depend on the anchor are known where |p| will look for them.
static void show_operands(ft_contract_emitter *m, const ft_contract_places *places,
                          const ft_primitive *p, const ft_kir_id *element) {
  ft_loop_emitter *e = m->e;
  for (uint32_t i = 0; i < p->input_count; i++) {
    uint32_t root = e->graph->value[p->input[i]].root;
    if (!places->of[root]) continue;
    const ft_place *at = ft_loop_operand(e, p, i, places->of[p->output]);
    at = ft_place_view(&e->places, at, shape_of(m, root));
    if (!at) e->kir->failed = true;
    if (e->kir->failed) return;
    if (!ft_loop_recall(e, root, at)) ft_loop_remember(e, root, at, element[root]);
  }
}

static void compute_all(ft_contract_emitter *m, const ft_contract_places *places,
                        ft_kir_id *element) {
  const ft_group *group = m->e->group;
  for (uint32_t i = 0; i < group->primitive_count && !m->e->kir->failed; i++) {
    const ft_primitive *p = &group->graph->primitive[group->primitive[i]];
    if (p == m->c->anchor || !places->of[p->output]) continue;
    show_operands(m, places, p, element);
    if (m->e->kir->failed) return;
    element[p->output] = ft_loop_value(m->e, p->output, places->of[p->output]);
  }
}

static void store_all(ft_contract_emitter *m, const ft_contract_places *places,
                      const ft_kir_id *element) {
  ft_loop_emitter *e = m->e;
  for (uint32_t o = 0; o < e->group->output_count && !e->kir->failed; o++) {
    uint32_t root = e->group->output[o];
    ft_affine at = places->of[root]->linear;
    ft_kir_store(e->kir, ft_loop_here(e), ft_loop_output(e, o),
                 ft_loop_spread(e, element[root], e->lanes), ft_loop_index(e, at),
                 e->lanes > 1 ? at.coef : 1, FT_KIR_CACHED);
  }
}

// The outputs' elements that come from |element| of the anchor at |place|.
static void finish_vector(ft_contract_emitter *m, const ft_place *place,
                          ft_kir_id element) {
  ft_loop_emitter *e = m->e;
  ft_kir_id *of = FT_NEW_ARRAY(e->arena, ft_kir_id, e->graph->value_count);
  ft_contract_places places = ft_contract_follow(m, place);
  if (!of) e->kir->failed = true;
  if (e->kir->failed) return;
  of[m->c->anchor->output] = element;
  ft_loop_remember(e, m->c->anchor->output, place, element);
  compute_all(m, &places, of);
  store_all(m, &places, of);
}

// ---- padding that met an infinite filter (invariant 4)
// -----------------------------------

static ft_kir_id has_nan(ft_contract_emitter *m, ft_kir_id element) {
  ft_kir *kir = m->e->kir;
  ft_kir_block *here = ft_loop_here(m->e);
  ft_kir_id same = ft_kir_primitive(kir, here, FT_OP_EQUAL, FT_BOOL,
                                    (ft_kir_id[]){element, element}, 2);
  ft_kir_id all = ft_kir_to_index(kir, ft_kir_fold(kir, here, FT_OP_REDUCE_MIN, same));
  return ft_contract_index(m, FT_KIR_ILESS, all, ft_contract_number(m, 1));
}

// Computes the element of the tile at |at| again, term by term.
static void compute_exactly(ft_contract_emitter *m, ft_kir_id row, ft_kir_id column,
                            ft_kir_id at) {
  ft_loop_emitter *e = m->e;
  ft_contract_split point = ft_contract_point(m, column, m->c->n, m->c->segment);
  const ft_place *place = ft_contract_c_place(m, ft_affine_of(&e->places, row), point);
  if (place) ft_loop_anchor(e, m->c->anchor, &place, 1);
  if (!place || e->kir->failed) return;
  ft_kir_store(e->kir, ft_loop_here(e), m->tile,
               ft_loop_recall(e, m->c->anchor->output, place), at, 1, FT_KIR_CACHED);
}

static ft_kir_stmt *open_branch(ft_contract_emitter *m, ft_kir_id condition) {
  ft_kir_stmt *branch = ft_kir_if(m->e->kir, condition);
  ft_loop_enter(m->e, &branch->body);
  return branch;
}

// Those of |element|, the vector of the tile at |at|, that are NaN. Others stay as they
// are, whatever lies beside them (invariant 1).
static void mend(ft_contract_emitter *m, ft_kir_id element, ft_kir_id row,
                 ft_kir_id column, ft_kir_id at) {
  ft_loop_emitter *e = m->e;
  uint16_t lanes = e->lanes;
  ft_kir_stmt *vector = open_branch(m, has_nan(m, element));
  ft_kir_stmt *loop = ft_contract_open_loop(m, FT_KIR_SERIAL, ft_contract_number(m, 0),
                                            ft_contract_number(m, lanes), 1);
  e->lanes = 1;
  ft_kir_id here = ft_loop_named(e, ft_contract_index(m, FT_KIR_IADD, at, loop->value));
  ft_kir_id one = ft_kir_load(e->kir, ft_loop_here(e), m->tile, 1, here, 1);
  ft_kir_stmt *single = open_branch(m, has_nan(m, one));
  compute_exactly(
      m, row, ft_loop_named(e, ft_contract_index(m, FT_KIR_IADD, column, loop->value)),
      here);
  ft_contract_close_loop(m, single);
  ft_contract_close_loop(m, loop);
  ft_contract_close_loop(m, vector);
  e->lanes = lanes;
}

// ---- the tile -------------------------------------------------------------------------

static void finish_at(ft_contract_emitter *m, ft_kir_id row, ft_kir_id column,
                      ft_kir_id at) {
  ft_loop_emitter *e = m->e;
  ft_kir_block *here = ft_loop_here(e);
  e->lanes = (uint16_t)m->c->choice.vector;
  ft_kir_id element = ft_kir_load(e->kir, here, m->tile, e->lanes, at, 1);
  if (m->c->has_padding) {
    mend(m, element, row, column, at);
    element = ft_kir_load(e->kir, here, m->tile, e->lanes, at, 1);
  }
  ft_contract_split split = ft_contract_vector(m, column, m->c->n, m->c->segment);
  const ft_place *place = ft_contract_c_place(m, ft_affine_of(&e->places, row), split);
  if (place) finish_vector(m, place, element);
}

void ft_contract_epilogue(ft_contract_emitter *m, ft_kir_id row, ft_kir_id column,
                          ft_kir_id base) {
  const ft_contract_choice *choice = &m->c->choice;
  ft_kir_id zero = ft_contract_number(m, 0);
  ft_kir_stmt *rows =
      ft_contract_open_loop(m, FT_KIR_SERIAL, zero, ft_contract_number(m, choice->mr), 1);
  ft_kir_id here =
      ft_loop_named(m->e, ft_contract_index(m, FT_KIR_IADD, row, rows->value));
  ft_kir_id first =
      ft_contract_index(m, FT_KIR_IMUL, rows->value, ft_contract_number(m, choice->nr));
  first = ft_loop_named(m->e, ft_contract_index(m, FT_KIR_IADD, base, first));
  ft_kir_stmt *vectors = ft_contract_open_loop(
      m, FT_KIR_VECTOR, zero, ft_contract_number(m, choice->nr), choice->vector);
  ft_kir_id at =
      ft_loop_named(m->e, ft_contract_index(m, FT_KIR_IADD, column, vectors->value));
  finish_at(
      m, here, at,
      ft_loop_named(m->e, ft_contract_index(m, FT_KIR_IADD, first, vectors->value)));
  ft_contract_close_loop(m, vectors);
  ft_contract_close_loop(m, rows);
}
