// Elements on demand: elementwise work, remaps and loads.
#include <string.h>

#include "codegen/codegen.h"
#include "codegen/expressions.h"
#include "codegen/loop_emit.h"

typedef struct memo {
  struct memo *next;
  uint32_t root, depth, serial;
  ft_kir_id element;
} memo;

// ---- scopes -------------------------------------------------------------------------

void ft_loop_enter(ft_loop_emitter *e, ft_kir_block *block) {
  FT_ASSERT(e->depth + 1 < FT_LOOP_SCOPES);
  e->depth++;
  e->block[e->depth] = block;
  e->serial_of[e->depth] = ++e->serial;
}

void ft_loop_leave(ft_loop_emitter *e) {
  e->depth--;
}

void ft_loop_close(ft_loop_emitter *e, ft_kir_stmt *stmt) {
  ft_loop_leave(e);
  ft_kir_append(ft_loop_here(e), stmt);
}

ft_kir_id ft_loop_recall(const ft_loop_emitter *e, uint32_t root, const ft_place *place) {
  for (const memo *m = place->memo; m; m = m->next) {
    if (m->root == root && m->depth <= e->depth && e->serial_of[m->depth] == m->serial)
      return m->element;
  }
  return 0;
}

void ft_loop_remember(ft_loop_emitter *e, uint32_t root, const ft_place *place,
                      ft_kir_id element) {
  memo *m = FT_NEW(e->arena, memo);
  if (!m) {
    e->kir->failed = true;
    return;
  }
  ft_place *at = (ft_place *)(uintptr_t)place;  // its memo is ours
  *m = (memo){at->memo, root, e->depth, e->serial_of[e->depth], element};
  at->memo = m;
}

ft_kir_id ft_loop_named(ft_loop_emitter *e, ft_kir_id index) {
  for (const ft_loop_name *n = e->names; n; n = n->next) {
    if (n->index == index && n->depth <= e->depth && e->serial_of[n->depth] == n->serial)
      return index;
  }
  ft_loop_name *n = FT_NEW(e->arena, ft_loop_name);
  if (!n) {
    e->kir->failed = true;
    return index;
  }
  *n = (ft_loop_name){e->names, index, e->depth, e->serial_of[e->depth]};
  e->names = n;
  return ft_kir_let(e->kir, ft_loop_here(e), index);
}

// ---- indices ------------------------------------------------------------------------

ft_kir_id ft_loop_index(ft_loop_emitter *e, ft_affine a) {
  if (a.is_lost) e->is_lost = true;
  return ft_affine_index(&e->places, a, e->inner);
}

static int64_t floor_divide(int64_t a, int64_t b) {  // b > 0
  return a / b - (a % b < 0);
}

// Notes the inner index from which on |a| is on the other side of |limit|.
static void cut_at(ft_loop_emitter *e, ft_affine a, int64_t limit) {
  int64_t at = a.coef > 0 ? -floor_divide(-(limit - a.offset), a.coef)
                          : floor_divide(a.offset - limit, -a.coef) + 1;
  if (at <= e->low || at >= e->high) return;
  for (uint32_t i = 0; i < e->new_cuts; i++) {
    if (e->new_cut[i] == at) return;
  }
  if (e->new_cuts == FT_MAX_CUTS)
    e->is_lost = true;
  else
    e->new_cut[e->new_cuts++] = at;
}

ft_within ft_loop_within(ft_loop_emitter *e, ft_affine a, int64_t low, int64_t high) {
  if (a.is_lost || (a.rest && a.coef)) {
    e->is_lost = true;
    return FT_OUTSIDE;
  }
  if (a.rest) return FT_WITHIN_UNKNOWN;
  int64_t first = a.coef * e->low + a.offset, last = a.coef * (e->high - 1) + a.offset;
  int64_t least = first < last ? first : last, most = first < last ? last : first;
  if (least >= low && most < high) return FT_WITHIN;
  if (most < low || least >= high) return FT_OUTSIDE;
  cut_at(e, a, low);
  cut_at(e, a, high);
  return FT_OUTSIDE;
}

// ---- loads ----------------------------------------------------------------------------

const ft_primitive *ft_loop_producer(const ft_loop_emitter *e, uint32_t root) {
  uint32_t p = e->graph->value[root].producer;
  return p != FT_NONE && e->is_inside[p] ? &e->graph->primitive[p] : NULL;
}

uint32_t ft_loop_input(ft_loop_emitter *e, uint32_t root) {
  uint32_t at = 0;
  while (at < e->group->input_count && e->group->input[at] != root) at++;
  FT_ASSERT(at < e->group->input_count);
  const ft_value *v = &e->graph->value[root];
  if (!e->buffer[at])
    e->buffer[at] =
        ft_kir_global(e->kir, v->dtype, ft_shape_elements(&v->shape), at, false);
  return e->buffer[at];
}

static ft_kir_id immediate(ft_loop_emitter *e, uint32_t root) {
  ft_tensor tensor;
  if (ft_graph_constant_data(e->graph, root, e->arena, &tensor, NULL) != FT_OK) {
    e->kir->failed = true;
    return 0;
  }
  int64_t bits = ft_tensor_get_i64(&tensor, 0);
  double number = ft_tensor_get_f64(&tensor, 0);
  if (ft_dtype_is_float(tensor.dtype)) memcpy(&bits, &number, sizeof bits);
  return ft_kir_element(e->kir, ft_loop_here(e), (ft_kir_type){tensor.dtype, 1}, bits);
}

static ft_kir_id load(ft_loop_emitter *e, uint32_t root, const ft_place *place) {
  if (ft_value_is_immediate(e->graph, root)) return immediate(e, root);
  uint32_t buffer = ft_loop_input(e, root);
  uint16_t lanes = place->linear.coef && !place->linear.is_lost ? e->lanes : 1;
  e->strided += lanes > 1 && place->linear.coef != 1;
  return ft_kir_load_hinted(e->kir, ft_loop_here(e), buffer, lanes,
                            ft_loop_index(e, place->linear), place->linear.coef,
                            e->load_hint);
}

ft_kir_id ft_loop_spread(ft_loop_emitter *e, ft_kir_id element, uint16_t lanes) {
  return ft_kir_splat(e->kir, ft_loop_here(e), element, lanes);
}

static uint16_t lanes_of(const ft_loop_emitter *e, ft_kir_id element) {
  return e->kir->value[element].type.lanes;
}

// ---- remaps without a choice
// ------------------------------------------------------------

static const ft_shape *shape_of(const ft_loop_emitter *e, uint32_t value) {
  return &e->graph->value[value].shape;
}

static const ft_place *sliced(ft_loop_emitter *e, const ft_primitive *p,
                              const ft_place *place) {
  ft_affine dim[FT_MAX_RANK];
  for (uint8_t i = 0; i < place->shape.rank; i++)
    dim[i] = ft_affine_add(&e->places,
                           ft_affine_scale(&e->places, place->dim[i], p->attr.step[i]),
                           ft_affine_number(p->attr.start[i]));
  const ft_shape *from = shape_of(e, p->input[0]);
  return ft_place_make(&e->places, from, dim);
}

// |shape| with the dims from |axis| on as one.
static ft_shape merged(const ft_shape *shape, int axis) {
  ft_shape s = {.rank = (uint8_t)(axis + 1)};
  s.dim[axis] = 1;
  for (int i = 0; i < shape->rank; i++) {
    if (i < axis)
      s.dim[i] = shape->dim[i];
    else
      s.dim[axis] *= shape->dim[i];
  }
  return s;
}

// The last axis that |p|, a slice or a pad, changes; -1: none.
static int last_changed(const ft_loop_emitter *e, const ft_primitive *p) {
  const ft_shape *from = shape_of(e, p->input[0]), *to = shape_of(e, p->output);
  int last = -1;
  for (int i = 0; i < to->rank; i++) {
    bool steps = p->op == FT_OP_SLICE && p->attr.step[i] != 1;
    if (from->dim[i] != to->dim[i] || steps) last = i;
  }
  return last;
}

// A slice by steps of 1 along its last axis takes runs of whole inner dims.
static const ft_place *sliced_in_runs(ft_loop_emitter *e, const ft_primitive *p,
                                      const ft_place *place) {
  int axis = last_changed(e, p);
  if (axis < 0 || p->attr.step[axis] != 1) return sliced(e, p, place);
  const ft_shape *from = shape_of(e, p->input[0]);
  ft_shape out = merged(&place->shape, axis), in = merged(from, axis);
  int64_t run = out.dim[axis] / place->shape.dim[axis];
  const ft_place *at = ft_place_view(&e->places, place, &out);
  if (!at) return NULL;
  ft_affine dim[FT_MAX_RANK];
  for (int i = 0; i <= axis; i++) {
    int64_t step = i < axis ? p->attr.step[i] : 1;
    int64_t start = p->attr.start[i] * (i < axis ? 1 : run);
    dim[i] = ft_affine_add(&e->places, ft_affine_scale(&e->places, at->dim[i], step),
                           ft_affine_number(start));
  }
  return ft_place_view(&e->places, ft_place_make(&e->places, &in, dim), from);
}

static const ft_place *transposed(ft_loop_emitter *e, const ft_primitive *p,
                                  const ft_place *place) {
  ft_affine dim[FT_MAX_RANK];
  for (uint8_t i = 0; i < place->shape.rank; i++) dim[p->attr.perm[i]] = place->dim[i];
  return ft_place_make(&e->places, shape_of(e, p->input[0]), dim);
}

// ---- concat ---------------------------------------------------------------------------

// One operand of a concat: [from, from + length) of the merged axis.
typedef struct part {
  const ft_place *at;  // of the result, axis and inner dims as one
  int axis;
  int64_t from, length;
} part;

static part part_of(ft_loop_emitter *e, const ft_primitive *p, uint32_t i,
                    const ft_place *place) {
  ft_shape out = merged(&place->shape, p->attr.axis);
  part q = {.at = ft_place_view(&e->places, place, &out), .axis = p->attr.axis};
  for (uint32_t k = 0; k <= i; k++) {
    ft_shape in = merged(shape_of(e, p->input[k]), p->attr.axis);
    q.from += k < i ? in.dim[p->attr.axis] : 0;
    q.length = in.dim[p->attr.axis];
  }
  return q;
}

static const ft_place *in_part(ft_loop_emitter *e, const ft_primitive *p, uint32_t i,
                               const part *q) {
  const ft_shape *shape = shape_of(e, p->input[i]);
  ft_shape in = merged(shape, q->axis);
  ft_affine dim[FT_MAX_RANK];
  for (int k = 0; k <= q->axis; k++) dim[k] = q->at->dim[k];
  dim[q->axis] = ft_affine_add(&e->places, dim[q->axis], ft_affine_number(-q->from));
  return ft_place_view(&e->places, ft_place_make(&e->places, &in, dim), shape);
}

static const ft_place *concat_operand(ft_loop_emitter *e, const ft_primitive *p,
                                      uint32_t i, const ft_place *place) {
  part q = part_of(e, p, i, place);
  if (!q.at || !q.length) return NULL;
  bool is_here =
      ft_loop_within(e, q.at->dim[q.axis], q.from, q.from + q.length) == FT_WITHIN;
  return is_here ? in_part(e, p, i, &q) : NULL;
}

// ---- pad ------------------------------------------------------------------------------

// Where a pad reads its input, and which axes are in doubt.
typedef struct padding {
  const ft_place *place;  // in the input; NULL when it is certainly padding
  uint32_t doubts;
  ft_affine doubt[FT_MAX_RANK];
  int64_t limit[FT_MAX_RANK];
} padding;

static padding unpadded(ft_loop_emitter *e, const ft_primitive *p,
                        const ft_place *place) {
  padding q = {0};
  const ft_shape *from = shape_of(e, p->input[0]);
  int axis = last_changed(e, p);
  if (!ft_shape_elements(from)) return q;
  if (axis < 0) axis = place->shape.rank - 1;
  if (axis < 0) return (padding){.place = place};
  ft_shape out = merged(&place->shape, axis), in = merged(from, axis);
  int64_t run = out.dim[axis] / place->shape.dim[axis];
  const ft_place *at = ft_place_view(&e->places, place, &out);
  if (!at) return q;
  ft_affine dim[FT_MAX_RANK];
  bool is_out = false;
  for (int i = 0; i <= axis; i++) {
    int64_t start = p->attr.start[i] * (i < axis ? 1 : run);
    dim[i] = ft_affine_add(&e->places, at->dim[i], ft_affine_number(-start));
    if (in.dim[i] == out.dim[i]) continue;
    ft_within within = ft_loop_within(e, dim[i], 0, in.dim[i]);
    is_out |= within == FT_OUTSIDE;
    if (within != FT_WITHIN_UNKNOWN) continue;
    q.doubt[q.doubts] = dim[i];
    q.limit[q.doubts++] = in.dim[i];
  }
  if (!is_out)
    q.place = ft_place_view(&e->places, ft_place_make(&e->places, &in, dim), from);
  return q;
}

const ft_place *ft_loop_operand(ft_loop_emitter *e, const ft_primitive *p, uint32_t i,
                                const ft_place *place) {
  const ft_shape *shape = shape_of(e, p->input[i]);
  if (ft_op_describe(p->op)->class == FT_CLASS_E || p->op == FT_OP_BROADCAST)
    return ft_place_broadcast(&e->places, place, shape);
  if (p->op == FT_OP_TRANSPOSE) return transposed(e, p, place);
  if (p->op == FT_OP_SLICE) return sliced_in_runs(e, p, place);
  if (p->op == FT_OP_CONCAT) return concat_operand(e, p, i, place);
  if (p->op != FT_OP_PAD) return NULL;
  padding q = unpadded(e, p, place);
  if (q.doubts) return NULL;
  if (i == 0) return q.place;
  return q.place ? NULL : ft_place_make(&e->places, shape, NULL);
}

// ---- choices at run time
// ----------------------------------------------------------------

// 0 or 1: |a| in [0, limit).
static ft_kir_id is_within(ft_loop_emitter *e, ft_affine a, int64_t limit) {
  ft_places *q = &e->places;
  ft_kir_id index = ft_loop_index(e, a);
  ft_kir_id above = ft_places_index(q, FT_KIR_ILESS, ft_places_number(q, -1), index);
  ft_kir_id below = ft_places_index(q, FT_KIR_ILESS, index, ft_places_number(q, limit));
  return ft_places_index(q, FT_KIR_IMUL, above, below);
}

static void keep_in(ft_loop_emitter *e, uint32_t result, uint32_t value,
                    const ft_place *place) {
  ft_kir_id element =
      ft_loop_spread(e, ft_loop_value(e, value, place), e->kir->buffer[result].lanes);
  ft_kir_store(e->kir, ft_loop_here(e), result, element, ft_places_number(&e->places, 0),
               1, FT_KIR_CACHED);
}

static uint32_t new_result(ft_loop_emitter *e, const ft_primitive *p) {
  ft_kir_type type = {e->graph->value[p->output].dtype, e->lanes};
  return ft_kir_register(e->kir, ft_loop_here(e), type);
}

static ft_kir_id result_of(ft_loop_emitter *e, uint32_t result) {
  return ft_kir_load(e->kir, ft_loop_here(e), result, e->kir->buffer[result].lanes,
                     ft_places_number(&e->places, 0), 1);
}

// One if after the other: no deeper for many parts.
static void choose_part(ft_loop_emitter *e, const ft_primitive *p, const ft_place *place,
                        uint32_t result) {
  for (uint32_t i = 0; i < p->input_count && !e->kir->failed; i++) {
    part q = part_of(e, p, i, place);
    if (!q.at || !q.length) continue;
    ft_affine at =
        ft_affine_add(&e->places, q.at->dim[q.axis], ft_affine_number(-q.from));
    ft_kir_stmt *branch = ft_kir_if(e->kir, is_within(e, at, q.length));
    ft_loop_enter(e, &branch->body);
    keep_in(e, result, p->input[i], in_part(e, p, i, &q));
    ft_loop_close(e, branch);
  }
}

static ft_kir_id concat(ft_loop_emitter *e, const ft_primitive *p,
                        const ft_place *place) {
  for (uint32_t i = 0; i < p->input_count; i++) {
    const ft_place *at = concat_operand(e, p, i, place);
    if (at) return ft_loop_value(e, p->input[i], at);
  }
  uint32_t result = new_result(e, p);
  choose_part(e, p, place, result);
  return result_of(e, result);
}

static ft_kir_id pad(ft_loop_emitter *e, const ft_primitive *p, const ft_place *place) {
  padding q = unpadded(e, p, place);
  const ft_place *scalar = ft_place_make(&e->places, shape_of(e, p->input[1]), NULL);
  if (!scalar || e->kir->failed) return 0;
  if (!q.place) return ft_loop_value(e, p->input[1], scalar);
  if (!q.doubts) return ft_loop_value(e, p->input[0], q.place);
  uint32_t result = new_result(e, p);
  keep_in(e, result, p->input[1], scalar);
  ft_kir_id all = is_within(e, q.doubt[0], q.limit[0]);
  for (uint32_t i = 1; i < q.doubts; i++)
    all = ft_places_index(&e->places, FT_KIR_IMUL, all,
                          is_within(e, q.doubt[i], q.limit[i]));
  ft_kir_stmt *branch = ft_kir_if(e->kir, all);
  ft_loop_enter(e, &branch->body);
  keep_in(e, result, p->input[0], q.place);
  ft_loop_close(e, branch);
  return result_of(e, result);
}

// ---- gather
// -----------------------------------------------------------------------------

// The index that |element| holds, from the end when negative, checked against |limit|.
static ft_kir_id checked_index(ft_loop_emitter *e, ft_kir_id element, int64_t limit) {
  ft_places *q = &e->places;
  if (lanes_of(e, element) != 1) {  // each lane elsewhere
    e->is_lost = true;
    return ft_places_number(q, 0);
  }
  ft_kir_id zero = ft_places_number(q, 0), end = ft_places_number(q, limit);
  ft_kir_id raw = ft_loop_named(e, ft_kir_to_index(e->kir, element));
  ft_kir_id wrap =
      ft_places_index(q, FT_KIR_IMUL, ft_places_index(q, FT_KIR_ILESS, raw, zero), end);
  ft_kir_id index = ft_loop_named(e, ft_places_index(q, FT_KIR_IADD, raw, wrap));
  ft_kir_id below = ft_places_index(q, FT_KIR_ILESS, index, zero);
  ft_kir_id above =
      ft_places_index(q, FT_KIR_ILESS, ft_places_number(q, limit - 1), index);
  ft_kir_stmt *branch = ft_kir_if(e->kir, ft_places_index(q, FT_KIR_IADD, below, above));
  ft_kir_fail(e->kir, &branch->body, FT_KERNEL_BAD_INDEX);
  ft_kir_append(ft_loop_here(e), branch);
  return index;
}

// GATHER puts the dims of the indices where |axis| was; GATHER_ELEMENTS has them all.
static ft_kir_id gather(ft_loop_emitter *e, const ft_primitive *p,
                        const ft_place *place) {
  const ft_shape *data = shape_of(e, p->input[0]), *index = shape_of(e, p->input[1]);
  uint8_t axis = p->attr.axis;
  bool is_whole = p->op == FT_OP_GATHER_ELEMENTS;
  uint8_t skip = is_whole ? 0 : axis, rest = is_whole ? 1 : index->rank;
  const ft_place *at = ft_place_make(&e->places, index, place->dim + skip);
  if (!at) return 0;
  ft_kir_id chosen = checked_index(e, ft_loop_value(e, p->input[1], at), data->dim[axis]);
  ft_affine dim[FT_MAX_RANK];
  for (uint8_t i = 0; i < data->rank; i++)
    dim[i] = i < axis   ? place->dim[i]
             : i > axis ? place->dim[i + rest - 1]
                        : ft_affine_of(&e->places, chosen);
  const ft_place *from = ft_place_make(&e->places, data, dim);
  return from ? ft_loop_value(e, p->input[0], from) : 0;
}

// ---- elementwise
// ------------------------------------------------------------------------

static ft_kir_id compute(ft_loop_emitter *e, const ft_primitive *p,
                         const ft_place *place) {
  ft_kir_id operand[3] = {0};
  uint16_t lanes = 1;
  for (uint32_t i = 0; i < p->input_count; i++) {
    operand[i] = ft_loop_value(e, p->input[i], ft_loop_operand(e, p, i, place));
    if (e->kir->failed) return 0;
    if (lanes_of(e, operand[i]) > lanes) lanes = lanes_of(e, operand[i]);
  }
  ft_dtype dtype = e->graph->value[p->output].dtype;
  if (p->op == FT_OP_COPY) return operand[0];
  if (p->op == FT_OP_CAST && e->kir->value[operand[0]].type.dtype == dtype)
    return operand[0];
  for (uint32_t i = 0; i < p->input_count; i++)
    operand[i] = ft_loop_spread(e, operand[i], lanes);
  return ft_kir_primitive(e->kir, ft_loop_here(e), p->op, dtype, operand, p->input_count);
}

static ft_kir_id produce(ft_loop_emitter *e, const ft_primitive *p,
                         const ft_place *place) {
  switch (p->op) {
    case FT_OP_CONCAT:
      return concat(e, p, place);
    case FT_OP_PAD:
      return pad(e, p, place);
    case FT_OP_GATHER:
    case FT_OP_GATHER_ELEMENTS:
      return gather(e, p, place);
    default:
      break;
  }
  if (ft_op_describe(p->op)->class == FT_CLASS_E) return compute(e, p, place);
  return ft_loop_value(e, p->input[0], ft_loop_operand(e, p, 0, place));
}

ft_kir_id ft_loop_value(ft_loop_emitter *e, uint32_t value, const ft_place *place) {
  uint32_t root = e->graph->value[value].root;
  place = ft_place_view(&e->places, place, shape_of(e, root));
  if (!place || e->kir->failed) return 0;
  ft_kir_id element = ft_loop_recall(e, root, place);
  if (element) return element;
  const ft_primitive *p = ft_loop_producer(e, root);
  if (p && ft_loop_is_anchor(p)) {
    ft_loop_anchor(e, p, &place, 1);
    return ft_loop_recall(e, root, place);
  }
  element = p ? produce(e, p, place) : load(e, root, place);
  ft_loop_remember(e, root, place, element);
  return element;
}
