#include "codegen/group_ir.h"

#include <math.h>
#include <string.h>

#include "codegen/domain.h"
#include "codegen/expressions.h"
#include "codegen/kir.h"

#define NO_NODE UINT32_MAX

typedef struct builder {
  const ft_group *group;
  ft_arena *arena;
  ft_domain domain;
  ft_axis_list axes;  // position = axis number until collapsing
  ft_group_ir *ir;
  size_t node_capacity;
  uint32_t *node_of;  // [step]
  const char *reason;
  bool no_memory;
} builder;

static void refuse(builder *b, const char *text) {
  if (!text) b->no_memory = true;
  if (!b->reason) b->reason = text;
}

// ---- axes of dims -----------------------------------------------------------------

static uint32_t axis_number(builder *b, uint32_t leaf) {
  for (uint32_t i = 0; i < b->axes.count; i++) {
    if (b->axes.leaf[i] == leaf) return i;
  }
  if (b->axes.count == FT_MAX_AXES) {
    refuse(b, "needs more than 64 axes");
    return 0;
  }
  b->ir->extent[b->axes.count] = b->domain.axes.axis[leaf].extent;
  b->axes.leaf[b->axes.count] = leaf;
  return b->axes.count++;
}

// The axes of |dims|, and, when |stride| is set, how far apart neighbours lie.
static uint64_t walk(builder *b, const ft_axis_dims *dims, int64_t *stride) {
  ft_axis_list list;
  if (ft_axes_flatten(&b->domain.axes, dims, &list) != FT_AXES_OK) {
    refuse(b, "needs more than 64 axes");
    return 0;
  }
  uint64_t mask = 0;
  int64_t step = 1;
  for (uint32_t i = list.count; i-- > 0;) {
    uint32_t axis = axis_number(b, list.leaf[i]);
    mask |= (uint64_t)1 << axis;
    if (stride) stride[axis] = step;
    step *= b->ir->extent[axis];
  }
  return mask;
}

// ---- nodes --------------------------------------------------------------------------

static uint32_t add_node(builder *b, ft_node node) {
  ft_group_ir *ir = b->ir;
  if (FT_GROW(b->arena, &ir->node, ir->node_count, &b->node_capacity)) {
    b->no_memory = true;
    return 0;
  }
  for (uint32_t i = 0; i < node.operand_count; i++) {
    const ft_node *operand = &ir->node[node.operand[i]];
    if (node.kind == FT_NODE_COMPUTE) node.mask |= operand->mask;
    if (operand->level > node.level) node.level = operand->level;
  }
  if (node.kind == FT_NODE_REDUCE) node.level++;
  ir->node[ir->node_count] = node;
  return ir->node_count++;
}

static uint32_t add_constant(builder *b, ft_dtype dtype, double number, int64_t integer) {
  ft_node node = {.kind = FT_NODE_CONSTANT, .dtype = dtype, .bits = integer};
  if (ft_dtype_is_float(dtype)) memcpy(&node.bits, &number, sizeof number);
  return add_node(b, node);
}

static uint32_t add_compute(builder *b, ft_op op, ft_dtype dtype, uint32_t count,
                            const uint32_t *operand) {
  ft_node node = {
      .kind = FT_NODE_COMPUTE, .op = op, .dtype = dtype, .operand_count = (uint8_t)count};
  memcpy(node.operand, operand, count * sizeof *operand);
  ft_dtype last = b->ir->node[operand[count - 1]].dtype;
  if (!ft_expression_text(op, ft_kir_math_dtype(last)))
    refuse(b, ft_arena_printf(b->arena, "%s of %s has no kernel yet",
                              ft_op_describe(op)->name, ft_dtype_text(last)));
  return add_node(b, node);
}

static uint32_t unary(builder *b, ft_op op, uint32_t a) {
  return add_compute(b, op, b->ir->node[a].dtype, 1, &a);
}

static uint32_t binary(builder *b, ft_op op, ft_dtype dtype, uint32_t x, uint32_t y) {
  return add_compute(b, op, dtype, 2, (uint32_t[]){x, y});
}

static void check_dtype(builder *b, ft_dtype dtype) {
  if (!ft_expression_type(ft_kir_math_dtype(dtype)))
    refuse(b, ft_arena_printf(b->arena, "%s has no kernel yet", ft_dtype_text(dtype)));
}

static uint32_t argument_of(const builder *b, uint32_t root) {
  uint32_t i = 0;
  while (i < b->group->input_count && b->group->input[i] != root) i++;
  FT_ASSERT(i < b->group->input_count);
  return i;
}

static bool is_same_load(const ft_node *a, const ft_node *b) {
  return a->kind == FT_NODE_LOAD && a->access.argument == b->access.argument &&
         !memcmp(a->access.stride, b->access.stride, sizeof a->access.stride);
}

static uint32_t add_load(builder *b, const ft_domain_step *s, uint32_t i) {
  const ft_value *value = &b->group->graph->value[s->primitive->input[i]];
  ft_node node = {.kind = FT_NODE_LOAD, .dtype = value->dtype};
  check_dtype(b, value->dtype);
  node.access.argument = argument_of(b, value->root);
  node.access.dtype = value->dtype;
  node.access.count = ft_shape_elements(&value->shape);
  node.mask = walk(b, &s->input[i], node.access.stride);
  for (uint32_t n = 0; n < b->ir->node_count; n++) {
    if (is_same_load(&b->ir->node[n], &node)) return n;
  }
  return add_node(b, node);
}

static uint32_t add_immediate(builder *b, uint32_t value) {
  ft_tensor tensor;
  ft_status status =
      ft_graph_constant_data(b->group->graph, value, b->arena, &tensor, NULL);
  if (status != FT_OK) {
    b->no_memory = true;
    return 0;
  }
  check_dtype(b, tensor.dtype);
  return add_constant(b, tensor.dtype, ft_tensor_get_f64(&tensor, 0),
                      ft_tensor_get_i64(&tensor, 0));
}

static uint32_t operand_node(builder *b, const ft_domain_step *s, uint32_t i) {
  uint32_t value = s->primitive->input[i];
  if (!s->is_external[i])
    return b->node_of[ft_domain_find(&b->domain, b->group->graph->value[value].root)];
  if (ft_value_is_immediate(b->group->graph, value)) return add_immediate(b, value);
  return add_load(b, s, i);
}

// ---- reductions -----------------------------------------------------------------------

static uint32_t add_identity(builder *b, ft_op op, ft_dtype dtype) {
  bool is_wide = dtype == FT_I64;
  int64_t low = is_wide ? INT64_MIN : INT32_MIN, high = is_wide ? INT64_MAX : INT32_MAX;
  switch (op) {
    case FT_OP_REDUCE_MAX:
      return add_constant(b, dtype, -INFINITY, low);
    case FT_OP_REDUCE_MIN:
      return add_constant(b, dtype, INFINITY, high);
    case FT_OP_REDUCE_PROD:
      return add_constant(b, dtype, 1, 1);
    default:
      return add_constant(b, dtype, 0, 0);
  }
}

static uint32_t add_reduce(builder *b, const ft_domain_step *s, uint32_t operand) {
  uint64_t domain = walk(b, &s->input[0], NULL);
  uint64_t reduced = domain & ~walk(b, &s->output, NULL);
  if (!reduced) return operand;  // of one element each
  ft_node node = {.kind = FT_NODE_REDUCE,
                  .op = s->primitive->op,
                  .dtype = b->ir->node[operand].dtype,
                  .operand_count = 1,
                  .operand = {operand},
                  .reduced = reduced,
                  .domain = domain};
  node.mask = b->ir->node[operand].mask & ~reduced;
  if (!ft_expression_text(node.op, ft_kir_math_dtype(node.dtype)))
    refuse(b, ft_arena_printf(b->arena, "%s of %s has no kernel yet",
                              ft_op_describe(node.op)->name, ft_dtype_text(node.dtype)));
  return add_node(b, node);
}

// ---- powers by known exponents
// ----------------------------------------------------------

// The square root that pow means: +0 for -0 and +inf for -inf.
static uint32_t half_power(builder *b, uint32_t a) {
  ft_dtype dtype = b->ir->node[a].dtype;
  uint32_t plus = binary(b, FT_OP_ADD, dtype, a, add_constant(b, dtype, 0, 0));
  uint32_t low = add_constant(b, dtype, -INFINITY, 0);
  uint32_t is_low = binary(b, FT_OP_EQUAL, FT_BOOL, a, low);
  uint32_t choice[3] = {is_low, add_constant(b, dtype, INFINITY, 0),
                        unary(b, FT_OP_SQRT, plus)};
  return add_compute(b, FT_OP_WHERE, dtype, 3, choice);
}

static uint32_t add_pow(builder *b, uint32_t a, uint32_t exponent) {
  ft_dtype dtype = b->ir->node[a].dtype;
  const ft_node *e = &b->ir->node[exponent];
  double number = NAN;
  if (e->kind == FT_NODE_CONSTANT && ft_dtype_is_float(dtype))
    memcpy(&number, &e->bits, sizeof number);
  if (number == 0) return add_constant(b, dtype, 1, 1);
  if (number == 1) return a;
  if (number == 2) return binary(b, FT_OP_MUL, dtype, a, a);
  if (number == 3)
    return binary(b, FT_OP_MUL, dtype, binary(b, FT_OP_MUL, dtype, a, a), a);
  if (number == -1) return unary(b, FT_OP_RECIPROCAL, a);
  if (number == 0.5) return half_power(b, a);
  if (number == -0.5) return unary(b, FT_OP_RECIPROCAL, half_power(b, a));
  return binary(b, FT_OP_POW, dtype, a, exponent);
}

// ---- primitives
// ---------------------------------------------------------------------------

static uint32_t add_primitive(builder *b, const ft_domain_step *s) {
  const ft_primitive *p = s->primitive;
  ft_dtype dtype = b->group->graph->value[p->output].dtype;
  check_dtype(b, dtype);
  if (s->is_constant) return add_identity(b, p->op, dtype);
  uint32_t operand[3] = {0};
  for (uint32_t i = 0; i < p->input_count; i++) operand[i] = operand_node(b, s, i);
  if (b->no_memory || b->reason) return 0;
  ft_op_class class = ft_op_describe(p->op)->class;
  if (class == FT_CLASS_R) return add_reduce(b, s, operand[0]);
  if (class == FT_CLASS_I || p->op == FT_OP_COPY) return operand[0];
  if (p->op == FT_OP_CAST && b->ir->node[operand[0]].dtype == dtype) return operand[0];
  if (p->op == FT_OP_POW) return add_pow(b, operand[0], operand[1]);
  return add_compute(b, p->op, dtype, p->input_count, operand);
}

static void add_outputs(builder *b) {
  const ft_group *group = b->group;
  for (uint32_t i = 0; i < group->output_count; i++) {
    const ft_domain_step *s =
        &b->domain.step[ft_domain_find(&b->domain, group->output[i])];
    if (s->is_empty) continue;
    const ft_value *value = &group->graph->value[group->output[i]];
    ft_output *out = &b->ir->output[b->ir->output_count++];
    out->node = b->node_of[ft_domain_find(&b->domain, group->output[i])];
    out->access.argument = group->input_count + i;
    out->access.dtype = value->dtype;
    out->access.count = ft_shape_elements(&value->shape);
    out->domain = walk(b, &s->output, out->access.stride);
  }
}

// ---- collapsing
// -------------------------------------------------------------------------------

static bool both_or_neither(uint64_t mask, uint32_t a, uint32_t b) {
  return (mask >> a & 1) == (mask >> b & 1);
}

static bool runs_on(const ft_group_ir *ir, const ft_access *access, uint32_t outer,
                    uint32_t inner) {
  return access->stride[outer] == access->stride[inner] * ir->extent[inner];
}

static bool can_merge(const ft_group_ir *ir, uint32_t outer, uint32_t inner) {
  for (uint32_t i = 0; i < ir->node_count; i++) {
    const ft_node *n = &ir->node[i];
    if (n->kind == FT_NODE_LOAD && !runs_on(ir, &n->access, outer, inner)) return false;
    if (n->kind == FT_NODE_REDUCE && (!both_or_neither(n->reduced, outer, inner) ||
                                      !both_or_neither(n->domain, outer, inner)))
      return false;
    if (!both_or_neither(n->mask, outer, inner)) return false;
  }
  for (uint32_t i = 0; i < ir->output_count; i++) {
    if (!runs_on(ir, &ir->output[i].access, outer, inner)) return false;
  }
  return true;
}

static uint64_t without_bit(uint64_t mask, uint32_t bit) {
  uint64_t low = ((uint64_t)1 << bit) - 1;
  return (mask & low) | (mask >> 1 & ~low);
}

static void drop_stride(ft_access *access, uint32_t axis) {
  memmove(access->stride + axis, access->stride + axis + 1,
          (FT_MAX_AXES - 1 - axis) * sizeof *access->stride);
  access->stride[FT_MAX_AXES - 1] = 0;
}

static void drop_axis(ft_group_ir *ir, uint32_t axis) {
  for (uint32_t i = 0; i < ir->node_count; i++) {
    ft_node *n = &ir->node[i];
    n->mask = without_bit(n->mask, axis);
    n->reduced = without_bit(n->reduced, axis);
    n->domain = without_bit(n->domain, axis);
    drop_stride(&n->access, axis);
  }
  for (uint32_t i = 0; i < ir->output_count; i++) {
    ir->output[i].domain = without_bit(ir->output[i].domain, axis);
    drop_stride(&ir->output[i].access, axis);
  }
  ir->axis_count--;
  memmove(ir->extent + axis, ir->extent + axis + 1,
          (ir->axis_count - axis) * sizeof *ir->extent);
}

static bool merge_some(ft_group_ir *ir) {
  for (uint32_t outer = 0; outer < ir->axis_count; outer++) {
    for (uint32_t inner = 0; inner < ir->axis_count; inner++) {
      if (outer == inner || !can_merge(ir, outer, inner)) continue;
      ir->extent[inner] *= ir->extent[outer];
      drop_axis(ir, outer);
      return true;
    }
  }
  return false;
}

// ---- the whole
// -------------------------------------------------------------------------------

// Keeps what an output needs, in order.
static void prune(builder *b, bool *is_live, uint32_t *renumbered) {
  ft_group_ir *ir = b->ir;
  for (uint32_t i = 0; i < ir->output_count; i++) is_live[ir->output[i].node] = true;
  for (uint32_t i = ir->node_count; i-- > 0;) {
    for (uint32_t k = 0; is_live[i] && k < ir->node[i].operand_count; k++)
      is_live[ir->node[i].operand[k]] = true;
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < ir->node_count; i++) {
    if (!is_live[i]) continue;
    renumbered[i] = kept;
    ir->node[kept] = ir->node[i];
    for (uint32_t k = 0; k < ir->node[kept].operand_count; k++)
      ir->node[kept].operand[k] = renumbered[ir->node[kept].operand[k]];
    kept++;
  }
  ir->node_count = kept;
  for (uint32_t i = 0; i < ir->output_count; i++)
    ir->output[i].node = renumbered[ir->output[i].node];
}

static void summarise(ft_group_ir *ir) {
  for (uint32_t i = 0; i < ir->node_count; i++) {
    const ft_node *n = &ir->node[i];
    ir->reduced |= n->reduced;
    if (n->level > ir->levels) ir->levels = n->level;
  }
  ir->bytes = ir->workload->read_bytes + ir->workload->write_bytes;
}

static bool finish(builder *b) {
  ft_group_ir *ir = b->ir;
  bool *is_live = FT_NEW_ARRAY(b->arena, bool, ir->node_count);
  uint32_t *renumbered = FT_NEW_ARRAY(b->arena, uint32_t, ir->node_count);
  if (!is_live || !renumbered) return false;
  prune(b, is_live, renumbered);
  ir->axis_count = b->axes.count;
  while (merge_some(ir)) {
  }
  summarise(ir);
  return true;
}

ft_status ft_group_ir_make(const ft_workload *workload, ft_arena *arena,
                           ft_group_ir **out, const char **reason, ft_error *error) {
  const ft_group *group = &workload->group;
  builder b = {.group = group, .arena = arena, .ir = FT_NEW(arena, ft_group_ir)};
  *out = NULL;
  FT_OOM_IF(!b.ir, error);
  FT_TRY(ft_domain_make(group, arena, &b.domain, reason, error));
  if (*reason) return FT_OK;
  b.ir->workload = workload;
  b.ir->output = FT_NEW_ARRAY(arena, ft_output, group->output_count);
  b.node_of = FT_NEW_ARRAY(arena, uint32_t, group->primitive_count);
  FT_OOM_IF(!b.ir->output || !b.node_of, error);
  for (uint32_t i = 0; i < b.domain.count && !b.reason; i++) {
    const ft_domain_step *s = &b.domain.step[i];
    b.node_of[i] = s->is_empty ? NO_NODE : add_primitive(&b, s);
  }
  if (!b.reason) add_outputs(&b);
  FT_OOM_IF(b.no_memory || (!b.reason && !finish(&b)), error);
  *reason = b.reason;
  if (!b.reason) *out = b.ir;
  return FT_OK;
}

int64_t ft_group_ir_points(const ft_group_ir *ir, uint64_t mask) {
  int64_t points = 1;
  for (uint32_t i = 0; i < ir->axis_count; i++) {
    if (mask >> i & 1) points *= ir->extent[i];
  }
  return points;
}

const char *ft_group_ir_text(const ft_group_ir *ir, uint64_t mask, ft_arena *arena) {
  const char *text = "";
  for (uint32_t i = 0; i < ir->axis_count && text; i++) {
    if (!(mask >> i & 1)) continue;
    text = ft_arena_printf(arena, "%s%s%lld", text, *text ? "x" : "",
                           (long long)ir->extent[i]);
  }
  return !text ? "?" : *text ? text : "1";
}
