// Values of a nest: in which scope a node is computed, from what, and how it is stored.
#include "codegen/nest_emit.h"

// ---- scopes
// ----------------------------------------------------------------------------

ft_kir_block *ft_nest_here(ft_nest_emitter *e) {
  return e->scope[e->depth].block;
}

void ft_nest_enter(ft_nest_emitter *e, ft_kir_block *block, uint64_t axes) {
  FT_ASSERT(e->depth + 1 < FT_NEST_SCOPES);
  e->scope[e->depth + 1] = (ft_nest_scope){block, e->scope[e->depth].open | axes};
  e->depth++;
}

void ft_nest_leave(ft_nest_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    ft_nest_known *k = &e->known[i];
    if (k->value && k->depth >= e->depth) *k = (ft_nest_known){0};
    if (k->splat && k->splat_depth >= e->depth) k->splat = 0;
  }
  e->depth--;
}

ft_kir_id ft_nest_number(ft_nest_emitter *e, int64_t n) {
  return ft_kir_number(e->kir, n);
}

bool ft_nest_along_vector(const ft_nest_emitter *e, uint64_t mask) {
  return e->nest->has_vector && (mask >> e->nest->vector_axis & 1);
}

static uint32_t outermost_scope(const ft_nest_emitter *e, uint64_t mask) {
  uint32_t depth = 0;
  while (mask & ~e->scope[depth].open) depth++;
  FT_ASSERT(depth <= e->depth);
  return depth;
}

// ---- memory
// ----------------------------------------------------------------------------

// |kept|: the indices of the kept axes.
static ft_kir_id address(ft_nest_emitter *e, const ft_access *access,
                         const ft_kir_id *kept) {
  ft_kir_id sum = ft_nest_number(e, 0);
  for (uint32_t axis = 0; axis < e->ir->axis_count; axis++) {
    if (!access->stride[axis]) continue;
    bool is_kept = e->nest->kept >> axis & 1;
    ft_kir_id stride = ft_nest_number(e, access->stride[axis]);
    ft_kir_id term =
        ft_kir_index(e->kir, FT_KIR_IMUL, is_kept ? kept[axis] : e->index[axis], stride);
    sum = ft_kir_index(e->kir, FT_KIR_IADD, sum, term);
  }
  return sum;
}

static int64_t lane_stride(const ft_nest_emitter *e, const ft_access *access) {
  return e->nest->has_vector ? access->stride[e->nest->vector_axis] : 1;
}

static uint32_t buffer_of(ft_nest_emitter *e, const ft_access *access, bool is_written) {
  uint32_t *id = &e->argument[access->argument];
  if (!*id)
    *id =
        ft_kir_global(e->kir, access->dtype, access->count, access->argument, is_written);
  return *id;
}

static ft_kir_id row_position(ft_nest_emitter *e) {
  return e->index[e->nest->vector_axis];
}

void ft_nest_prefetch(ft_nest_emitter *e) {
  for (uint32_t i = 0; i < e->ir->node_count; i++) {
    const ft_node *n = &e->ir->node[i];
    bool is_row = n->kind == FT_NODE_LOAD && (n->mask & e->nest->kept) &&
                  ft_nest_along_vector(e, n->mask) && lane_stride(e, &n->access) == 1;
    if (is_row)
      ft_kir_prefetch(e->kir, ft_nest_here(e), buffer_of(e, &n->access, false),
                      address(e, &n->access, e->ahead));
  }
}

// ---- nodes
// -----------------------------------------------------------------------------

static ft_kir_id emit(ft_nest_emitter *e, uint32_t node);

// A single element is spread where it was computed.
ft_kir_id ft_nest_emit(ft_nest_emitter *e, uint32_t node, uint16_t lanes) {
  ft_kir_id value = emit(e, node);
  if (e->kir->value[value].type.lanes == lanes) return value;
  ft_nest_known *k = &e->known[node];
  if (!k->splat) {
    k->splat = ft_kir_splat(e->kir, e->scope[k->depth].block, value, lanes);
    k->splat_depth = k->depth;
  }
  return k->splat;
}

static ft_kir_id emit_compute(ft_nest_emitter *e, const ft_node *n, uint16_t lanes,
                              uint32_t *depth) {
  ft_kir_id operand[3] = {0};
  for (uint32_t i = 0; i < n->operand_count; i++) {
    operand[i] = ft_nest_emit(e, n->operand[i], lanes);
    uint32_t at = e->known[n->operand[i]].depth;
    if (at > *depth) *depth = at;
  }
  return ft_kir_primitive(e->kir, e->scope[*depth].block, n->op, n->dtype, operand,
                          n->operand_count);
}

static ft_kir_id emit_new(ft_nest_emitter *e, uint32_t node, uint32_t *depth) {
  const ft_node *n = &e->ir->node[node];
  uint16_t lanes = ft_nest_along_vector(e, n->mask) ? e->nest->lanes : 1;
  ft_kir_block *block = e->scope[*depth].block;
  if (e->row_buffer[node] && e->is_in_row[node])
    return ft_kir_load(e->kir, block, e->row_buffer[node], lanes, row_position(e), 1);
  if (n->kind == FT_NODE_CONSTANT)
    return ft_kir_element(e->kir, block, (ft_kir_type){n->dtype, 1}, n->bits);
  if (n->kind == FT_NODE_LOAD)
    return ft_kir_load(e->kir, block, buffer_of(e, &n->access, false), lanes,
                       address(e, &n->access, e->index), lane_stride(e, &n->access));
  FT_ASSERT(n->kind == FT_NODE_COMPUTE);  // reductions are known when they are needed
  ft_kir_id value = emit_compute(e, n, lanes, depth);
  if (e->row_buffer[node]) {
    ft_kir_store(e->kir, e->scope[*depth].block, e->row_buffer[node], value,
                 row_position(e), 1, FT_KIR_CACHED);
    e->is_filling[node] = true;
  }
  return value;
}

// Where a row in registers keeps this step of |node|; NULL: not kept.
static ft_kir_id *held_value(ft_nest_emitter *e, uint32_t node) {
  if (!e->held || !ft_nest_along_vector(e, e->ir->node[node].mask)) return NULL;
  return &e->held[node * e->nest->steps + e->step];
}

static ft_kir_id emit(ft_nest_emitter *e, uint32_t node) {
  ft_nest_known *k = &e->known[node];
  if (k->value) return k->value;
  uint32_t depth = outermost_scope(e, e->ir->node[node].mask);
  ft_kir_id *held = held_value(e, node);
  k->value = held && *held ? *held : emit_new(e, node, &depth);
  k->depth = depth;
  if (held) *held = k->value;
  return k->value;
}

// ---- stores
// ----------------------------------------------------------------------------

void ft_nest_store(ft_nest_emitter *e, const ft_output *out, bool is_aligned) {
  bool is_vector = ft_nest_along_vector(e, out->domain);
  ft_kir_id value = ft_nest_emit(e, out->node, is_vector ? e->nest->lanes : 1);
  bool streams = e->nest->streams && is_aligned && !e->is_overlapping &&
                 ft_nest_can_stream(e->nest, &out->access);
  ft_kir_store(e->kir, ft_nest_here(e), buffer_of(e, &out->access, true), value,
               address(e, &out->access, e->index), lane_stride(e, &out->access),
               streams ? FT_KIR_STREAMED : FT_KIR_CACHED);
}

void ft_nest_store_all(ft_nest_emitter *e, uint32_t pass, bool is_aligned) {
  for (uint32_t i = 0; i < e->ir->output_count; i++) {
    const ft_output *out = &e->ir->output[i];
    if ((out->domain & e->nest->reduced) && ft_nest_store_pass(e->nest, i) == pass)
      ft_nest_store(e, out, is_aligned);
  }
}
