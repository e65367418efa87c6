// Scopes, positions, values and stores of a nest with threads.
#include "codegen/simt_nest_emit.h"

ft_kir_block *ft_simt_nest_here(ft_simt_emitter *e) {
  return e->scope[e->depth].block;
}

void ft_simt_nest_enter(ft_simt_emitter *e, ft_kir_block *block) {
  FT_ASSERT(e->depth + 1 < FT_SIMT_SCOPES);
  e->scope[e->depth + 1] = (ft_simt_scope){block, e->scope[e->depth].open};
  e->depth++;
}

static void forget(ft_simt_emitter *e, ft_simt_known *k) {
  if (k->value && k->depth >= e->depth) k->value = 0;
  if (k->splat && k->splat_depth >= e->depth) k->splat = 0;
}

void ft_simt_nest_leave(ft_simt_emitter *e) {
  for (uint32_t u = 0; u < e->points; u++)
    for (uint32_t i = 0; i < e->ir->node_count; i++) forget(e, &e->point[u].known[i]);
  e->depth--;
}

void ft_simt_nest_open(ft_simt_emitter *e, ft_kir_stmt *stmt) {
  ft_simt_nest_enter(e, &stmt->body);
}

void ft_simt_nest_close(ft_simt_emitter *e, ft_kir_stmt *stmt) {
  ft_simt_nest_leave(e);
  ft_kir_append(ft_simt_nest_here(e), stmt);
}

void ft_simt_nest_when(ft_simt_emitter *e, ft_kir_id condition, ft_simt_body *run) {
  if (!condition) {
    run(e);
    return;
  }
  ft_kir_stmt *branch = ft_kir_if(e->kir, condition);
  ft_simt_nest_open(e, branch);
  run(e);
  ft_simt_nest_close(e, branch);
}

void ft_simt_nest_tell(ft_simt_emitter *e) {
  for (uint32_t u = 1; u < e->points; u++)
    for (uint32_t i = 0; i < e->ir->node_count; i++) {
      const ft_simt_known *k = &e->point[0].known[i];
      if (k->value && k->depth < e->depth) e->point[u].known[i] = *k;
      if (k->splat && k->splat_depth >= e->depth) e->point[u].known[i].splat = 0;
    }
}

ft_simt_known *ft_simt_nest_known(ft_simt_emitter *e, uint32_t node) {
  return &e->point[e->at].known[node];
}

ft_kir_id ft_simt_nest_number(ft_simt_emitter *e, int64_t n) {
  return ft_kir_number(e->kir, n);
}

ft_kir_id ft_simt_nest_index(ft_simt_emitter *e, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  return ft_kir_index(e->kir, op, a, b);
}

ft_kir_id ft_simt_nest_named(ft_simt_emitter *e, ft_kir_id index) {
  return ft_kir_let(e->kir, ft_simt_nest_here(e), index);
}

ft_kir_id ft_simt_nest_plus(ft_simt_emitter *e, ft_kir_id a, ft_kir_id b) {
  ft_kir_id sum = ft_kir_index(e->kir, FT_KIR_IADD, a, b);
  return sum == a || sum == b ? sum : ft_simt_nest_named(e, sum);
}

// ---- positions
// --------------------------------------------------------------------------

static int64_t steps_along(const ft_simt_plan *p, uint32_t axis) {
  int64_t extent = p->ir->extent[axis];
  return p->has_vector && axis == p->vector_axis ? extent / p->lanes : extent;
}

void ft_simt_nest_decode(ft_simt_emitter *e, int set, ft_kir_id at) {
  const ft_simt_plan *p = e->plan;
  int64_t inner = 1;
  for (uint32_t i = p->count[set]; i-- > 0;) {
    uint32_t axis = p->order[set][i];
    ft_kir_id index =
        ft_simt_nest_index(e, FT_KIR_IDIV, at, ft_simt_nest_number(e, inner));
    ft_kir_id steps = ft_simt_nest_number(e, steps_along(p, axis));
    if (i > 0) index = ft_simt_nest_index(e, FT_KIR_IMOD, index, steps);
    if (p->has_vector && axis == p->vector_axis)
      index = ft_simt_nest_index(e, FT_KIR_IMUL, index, ft_simt_nest_number(e, p->lanes));
    // |at| has a name
    e->point[e->at].index[axis] = index == at ? at : ft_simt_nest_named(e, index);
    inner *= steps_along(p, axis);
  }
  e->scope[e->depth].open |= p->set[set];
}

static ft_kir_id address(ft_simt_emitter *e, const ft_access *access) {
  ft_kir_id sum = ft_simt_nest_number(e, 0);
  for (uint32_t axis = 0; axis < e->ir->axis_count; axis++) {
    if (!access->stride[axis]) continue;
    ft_kir_id stride = ft_simt_nest_number(e, access->stride[axis]);
    ft_kir_id index = e->point[e->at].index[axis];
    ft_kir_id term = ft_simt_nest_index(e, FT_KIR_IMUL, index, stride);
    sum = ft_simt_nest_index(e, FT_KIR_IADD, sum, term);
  }
  return sum;
}

static int64_t lane_stride(const ft_simt_emitter *e, const ft_access *access) {
  return e->plan->has_vector ? access->stride[e->plan->vector_axis] : 1;
}

static uint32_t buffer_of(ft_simt_emitter *e, const ft_access *access, bool is_written) {
  uint32_t *id = &e->argument[access->argument];
  if (!*id)
    *id =
        ft_kir_global(e->kir, access->dtype, access->count, access->argument, is_written);
  return *id;
}

// ---- nodes
// --------------------------------------------------------------------------------

static uint32_t outermost_scope(const ft_simt_emitter *e, uint64_t mask) {
  uint32_t depth = 1;
  while (mask & ~e->scope[depth].open) depth++;
  FT_ASSERT(depth <= e->depth);
  return depth;
}

ft_kir_id ft_simt_nest_emit_lanes(ft_simt_emitter *e, uint32_t node, uint16_t lanes) {
  ft_kir_id value = ft_simt_nest_emit(e, node);
  if (e->kir->value[value].type.lanes == lanes) return value;
  ft_simt_known *k = ft_simt_nest_known(e, node);
  if (!k->splat) {
    k->splat = ft_kir_splat(e->kir, e->scope[k->depth].block, value, lanes);
    k->splat_depth = k->depth;
  }
  return k->splat;
}

static ft_kir_id emit_compute(ft_simt_emitter *e, const ft_node *n, uint16_t lanes,
                              uint32_t *depth) {
  ft_kir_id operand[3] = {0};
  for (uint32_t i = 0; i < n->operand_count; i++) {
    operand[i] = ft_simt_nest_emit_lanes(e, n->operand[i], lanes);
    uint32_t at = ft_simt_nest_known(e, n->operand[i])->depth;
    if (at > *depth) *depth = at;
  }
  return ft_kir_primitive(e->kir, e->scope[*depth].block, n->op, n->dtype, operand,
                          n->operand_count);
}

// Of what one pass reads, once: an input over all axes.
static ft_kir_hint load_hint(const ft_simt_emitter *e, uint32_t node) {
  const ft_simt_plan *p = e->plan;
  uint64_t all = p->set[FT_SIMT_KEPT] | p->set[FT_SIMT_REDUCED];
  uint32_t passes = 0;
  if (!p->choice.loads_once || e->ir->node[node].mask != all) return FT_KIR_CACHED;
  for (uint32_t pass = 1; pass <= p->passes; pass++)
    passes += p->is_needed[(size_t)pass * e->ir->node_count + node];
  return passes > 1 ? FT_KIR_CACHED : FT_KIR_STREAMED;
}

static ft_kir_id emit_new(ft_simt_emitter *e, uint32_t node, uint32_t *depth) {
  const ft_node *n = &e->ir->node[node];
  uint16_t lanes = ft_simt_plan_varies(e->plan, n->mask) ? e->plan->lanes : 1;
  ft_kir_block *block = e->scope[*depth].block;
  if (ft_simt_nest_is_waiting(e, node)) return ft_simt_nest_fetch(e, node, block);
  if (n->kind == FT_NODE_CONSTANT)
    return ft_kir_element(e->kir, block, (ft_kir_type){n->dtype, 1}, n->bits);
  if (n->kind == FT_NODE_LOAD)
    return ft_kir_load_hinted(e->kir, block, buffer_of(e, &n->access, false), lanes,
                              address(e, &n->access), lane_stride(e, &n->access),
                              load_hint(e, node));
  FT_ASSERT(n->kind == FT_NODE_COMPUTE);  // reductions are known when they are needed
  return emit_compute(e, n, lanes, depth);
}

ft_kir_id ft_simt_nest_emit(ft_simt_emitter *e, uint32_t node) {
  ft_simt_known *k = ft_simt_nest_known(e, node);
  if (k->value) return k->value;
  uint32_t depth = outermost_scope(e, e->ir->node[node].mask);
  k->value = emit_new(e, node, &depth);
  k->depth = depth;
  return k->value;
}

void ft_simt_nest_load_all(ft_simt_emitter *e) {
  const bool *needed = &e->plan->is_needed[(size_t)e->pass * e->ir->node_count];
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    bool is_walked = (e->ir->node[i].mask & e->ir->reduced) != 0;
    if (e->ir->node[i].kind == FT_NODE_LOAD && (!is_walked || needed[i]))
      ft_simt_nest_emit(e, i);
  }
}

// ---- stores
// -------------------------------------------------------------------------------

void ft_simt_nest_store(ft_simt_emitter *e, const ft_output *out) {
  bool varies = ft_simt_plan_varies(e->plan, out->domain);
  ft_kir_id value = ft_simt_nest_emit_lanes(e, out->node, varies ? e->plan->lanes : 1);
  ft_kir_store(e->kir, ft_simt_nest_here(e), buffer_of(e, &out->access, true), value,
               address(e, &out->access), lane_stride(e, &out->access),
               e->plan->choice.streams ? FT_KIR_STREAMED : FT_KIR_CACHED);
}

static bool is_inner(const ft_simt_emitter *e, uint32_t output) {
  return (e->ir->output[output].domain & e->ir->reduced) != 0;
}

static bool belongs_here(const ft_simt_emitter *e, uint32_t output) {
  return is_inner(e, output) && ft_simt_plan_store_pass(e->plan, output) == e->pass;
}

void ft_simt_nest_store_outer(ft_simt_emitter *e) {
  for (uint32_t i = 0; i < e->ir->output_count; i++)
    if (!is_inner(e, i)) ft_simt_nest_store(e, &e->ir->output[i]);
}

void ft_simt_nest_store_inner(ft_simt_emitter *e) {
  for (uint32_t i = 0; i < e->ir->output_count; i++)
    if (belongs_here(e, i)) ft_simt_nest_store(e, &e->ir->output[i]);
}

bool ft_simt_nest_has_outer(const ft_simt_emitter *e) {
  for (uint32_t i = 0; i < e->ir->output_count; i++)
    if (!is_inner(e, i)) return true;
  return false;
}

bool ft_simt_nest_has_inner(const ft_simt_emitter *e) {
  for (uint32_t i = 0; i < e->ir->output_count; i++)
    if (belongs_here(e, i)) return true;
  return false;
}
