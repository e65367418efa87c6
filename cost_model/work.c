#include "cost_model/work.h"

#include <math.h>
#include <string.h>

// Taps of a window that are looked at one by one; of longer ones nothing is counted.
enum { TAPS_MOST = 4096 };

// Floating-point operations per element. Functions: no evaluation that is right to a few
// units in the last place takes fewer than two fused multiply-adds.
static const struct {
  ft_op op;
  double flops;
} weights[] = {
    {FT_OP_ADD, 1},         {FT_OP_SUB, 1},        {FT_OP_MUL, 1},
    {FT_OP_DIV, 1},         {FT_OP_RECIPROCAL, 1}, {FT_OP_SQRT, 1},
    {FT_OP_EXP, 4},         {FT_OP_LOG, 4},        {FT_OP_ERF, 4},
    {FT_OP_TANH, 4},        {FT_OP_SIGMOID, 4},    {FT_OP_SIN, 4},
    {FT_OP_COS, 4},         {FT_OP_POW, 4},        {FT_OP_REDUCE_SUM, 1},
    {FT_OP_REDUCE_PROD, 1}, {FT_OP_WINDOW_SUM, 1}, {FT_OP_MATMUL, 2},
    {FT_OP_CONV, 2},
};

// A value of the group: one of its inputs, or what a primitive makes.
typedef struct node {
  uint32_t root;    // value
  double elements;  // of it
  double needed;    // how many of them the outputs depend on
  uint32_t varies;  // bit per axis of the root's shape along which they may differ
} node;

typedef struct walk {
  const ft_group *group;
  uint32_t count;
  node *node;  // inputs, then primitives in order
} walk;

static double elements_of(const ft_graph *graph, uint32_t value) {
  return (double)ft_shape_elements(&graph->value[value].shape);
}

static const ft_shape *shape_of(const walk *w, uint32_t value) {
  return &w->group->graph->value[value].shape;
}

// NULL: an immediate.
static node *node_of(const walk *w, uint32_t value) {
  uint32_t root = w->group->graph->value[value].root;
  for (uint32_t i = 0; i < w->count; i++)
    if (w->node[i].root == root) return &w->node[i];
  return NULL;
}

static uint32_t all_axes(const ft_shape *shape) {
  return shape->rank >= 32 ? UINT32_MAX : (1u << shape->rank) - 1;
}

// Extents of 1 do not vary, whatever their bit says.
static uint32_t real_axes(const ft_shape *shape, uint32_t axes) {
  for (int i = 0; i < shape->rank; i++)
    if (shape->dim[i] <= 1) axes &= ~(1u << i);
  return axes;
}

static bool varies_fully(const ft_shape *shape, uint32_t axes) {
  return real_axes(shape, axes) == real_axes(shape, all_axes(shape));
}

// As the primitive sees the operand: through a view of another shape only "everywhere"
// and "nowhere" survive.
static uint32_t operand_axes(const walk *w, uint32_t value) {
  const node *n = node_of(w, value);
  const ft_shape *seen = shape_of(w, value);
  if (!n) return 0;
  const ft_shape *own = shape_of(w, n->root);
  if (ft_shape_equal(seen, own)) return real_axes(own, n->varies);
  return varies_fully(own, n->varies) ? real_axes(seen, all_axes(seen)) : 0;
}

static double distinct(const ft_shape *shape, uint32_t axes) {
  double count = ft_shape_elements(shape) > 0;
  for (int i = 0; i < shape->rank; i++)
    if (axes >> i & 1) count *= (double)shape->dim[i];
  return count;
}

// ---- forward: along which axes a value varies
// -------------------------------------------

static uint32_t elementwise_axes(const walk *w, const ft_primitive *p) {
  int rank = shape_of(w, p->output)->rank;
  uint32_t axes = 0;
  for (uint32_t k = 0; k < p->input_count; k++)
    axes |= operand_axes(w, p->input[k]) << (rank - shape_of(w, p->input[k])->rank);
  return axes;
}

static uint32_t transposed_axes(const walk *w, const ft_primitive *p) {
  uint32_t from = operand_axes(w, p->input[0]), axes = 0;
  for (int i = 0; i < shape_of(w, p->output)->rank; i++)
    if (from >> p->attr.perm[i] & 1) axes |= 1u << i;
  return axes;
}

static bool all_vary_fully(const walk *w, const ft_primitive *p) {
  for (uint32_t k = 0; k < p->input_count; k++) {
    const ft_shape *seen = shape_of(w, p->input[k]);
    if (!varies_fully(seen, operand_axes(w, p->input[k]))) return false;
  }
  return true;
}

static uint32_t output_axes(const walk *w, const ft_primitive *p) {
  ft_op_class class = ft_op_describe(p->op)->class;
  if (class == FT_CLASS_E || p->op == FT_OP_BROADCAST) return elementwise_axes(w, p);
  if (p->op == FT_OP_TRANSPOSE) return transposed_axes(w, p);
  if (p->op == FT_OP_SLICE) return operand_axes(w, p->input[0]);
  if (class == FT_CLASS_R) return operand_axes(w, p->input[0]) & ~p->attr.axes;
  bool is_gather = p->op == FT_OP_GATHER || p->op == FT_OP_GATHER_ELEMENTS;
  // A table shorter than its reads repeats itself.
  if (is_gather &&
      elements_of(w->group->graph, p->input[0]) < elements_of(w->group->graph, p->output))
    return 0;
  return all_vary_fully(w, p) ? all_axes(shape_of(w, p->output)) : 0;
}

// ---- windows
// ----------------------------------------------------------------------------

typedef struct axis {
  double extent, outputs, taps, stride, dilation, pad;
} axis;

static axis axis_of(const walk *w, const ft_primitive *p, int i) {
  const ft_shape *x = shape_of(w, p->input[0]);
  bool is_conv = p->op == FT_OP_CONV;
  int64_t taps = is_conv ? shape_of(w, p->input[1])->dim[i + 2] : p->attr.window[i];
  return (axis){(double)x->dim[i + 2],
                (double)shape_of(w, p->output)->dim[i + 2],
                (double)taps,
                (double)p->attr.stride[i],
                (double)p->attr.dilation[i],
                (double)p->attr.start[i]};
}

// Places of the axis that some window covers; at least so many.
static double covered(const axis *a) {
  if (a->outputs < 1 || a->taps < 1) return 0;
  double last = (a->outputs - 1) * a->stride - a->pad;  // where the last window begins
  bool is_solid = a->taps == 1 || a->dilation == 1;
  bool touches = is_solid ? a->stride <= a->taps || a->outputs == 1
                          : a->stride == 1 && a->dilation <= a->outputs;
  if (touches) {
    double end = fmin(a->extent, last + (a->taps - 1) * a->dilation + 1);
    return fmax(0, end - fmax(0, -a->pad));
  }
  // Of windows apart, those of solid ones less what is outside; else their first taps.
  double taps = is_solid ? a->taps : 1;
  double outside = fmax(0, a->pad) + fmax(0, last + taps - a->extent);
  return fmax(0, a->outputs * taps - outside);
}

// Pairs of a window and a tap that lie inside; *out_taps: taps that ever do.
static double inside(const axis *a, double *out_taps) {
  double pairs = 0;
  *out_taps = 0;
  if (a->taps > TAPS_MOST) return 0;
  for (double k = 0; k < a->taps; k++) {
    double first = fmax(0, ceil((a->pad - k * a->dilation) / a->stride));
    double last = fmin(a->outputs - 1,
                       floor((a->extent - 1 + a->pad - k * a->dilation) / a->stride));
    if (last < first) continue;
    pairs += last - first + 1;
    *out_taps += 1;
  }
  return pairs;
}

// Multiplications of a convolution, and how much of input and weight they touch.
typedef struct sliding {
  double products, input, weight;
} sliding;

static sliding slide(const walk *w, const ft_primitive *p) {
  const ft_shape *x = shape_of(w, p->input[0]), *out = shape_of(w, p->output);
  bool is_conv = p->op == FT_OP_CONV;
  const ft_shape *f = is_conv ? shape_of(w, p->input[1]) : NULL;
  double filter = is_conv ? (double)f->dim[1] : 1;
  sliding s = {.products = (double)out->dim[0] * (double)out->dim[1] * filter,
               .input = (double)x->dim[0] * (double)x->dim[1],
               .weight = is_conv ? (double)f->dim[0] * filter : 0};
  if (is_conv && (out->dim[0] == 0 || out->dim[1] == 0)) return (sliding){0};
  for (int i = 0; i < out->rank - 2; i++) {
    axis a = axis_of(w, p, i);
    double taps;
    s.products *= inside(&a, &taps);
    s.input *= covered(&a);
    s.weight *= taps;
  }
  return s;
}

// ---- backward: what is needed
// -----------------------------------------------------------

static void need(const walk *w, uint32_t value, double elements) {
  node *n = node_of(w, value);
  if (!n) return;
  n->needed = fmax(n->needed, fmin(elements, n->elements));
}

// Each element of the operand serves as many outputs as every other one.
static double share(const walk *w, const ft_primitive *p, uint32_t value, double needed) {
  double whole = elements_of(w->group->graph, p->output);
  double own = elements_of(w->group->graph, value);
  return whole > 0 ? ceil(needed * (own / whole) * (1 - 1e-12)) : 0;
}

// Those outside the operand's part need nothing of it.
static double rest(const walk *w, const ft_primitive *p, uint32_t value, double needed) {
  double others =
      elements_of(w->group->graph, p->output) - elements_of(w->group->graph, value);
  return fmax(0, needed - fmax(0, others));
}

static void need_window(const walk *w, const ft_primitive *p, double needed) {
  if (needed < elements_of(w->group->graph, p->output)) return;
  sliding s = slide(w, p);
  need(w, p->input[0], s.input);
  if (p->op == FT_OP_CONV) need(w, p->input[1], s.weight);
}

static void need_operands(const walk *w, const ft_primitive *p, double needed) {
  ft_op_class class = ft_op_describe(p->op)->class;
  if (p->op == FT_OP_AND || p->op == FT_OP_OR) return;
  if (class == FT_CLASS_S || p->op == FT_OP_CONV) {
    need_window(w, p, needed);
  } else if (p->op == FT_OP_SLICE) {
    need(w, p->input[0], needed);
  } else if (p->op == FT_OP_PAD) {
    need(w, p->input[0], rest(w, p, p->input[0], needed));
  } else if (p->op == FT_OP_CONCAT) {
    for (uint32_t k = 0; k < p->input_count; k++)
      need(w, p->input[k], rest(w, p, p->input[k], needed));
  } else if (p->op == FT_OP_GATHER || p->op == FT_OP_GATHER_ELEMENTS) {
    need(w, p->input[1], share(w, p, p->input[1], needed));
  } else if (p->op == FT_OP_WHERE) {
    need(w, p->input[0], share(w, p, p->input[0], needed));
  } else {
    for (uint32_t k = 0; k < p->input_count; k++)
      need(w, p->input[k], share(w, p, p->input[k], needed));
  }
}

// ---- operations
// -------------------------------------------------------------------------

static double weight_of(ft_op op) {
  for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
    if (weights[i].op == op) return weights[i].flops;
  return 0;
}

// How many combinations of a reduction or a window: inputs that differ, less the results.
static double combinations(const walk *w, const ft_primitive *p, const node *out) {
  const node *in = node_of(w, p->input[0]);
  if (!in) return 0;
  double differ = distinct(shape_of(w, p->input[0]), operand_axes(w, p->input[0]));
  return fmax(0, fmin(in->needed, differ) - out->needed);
}

static double products(const walk *w, const ft_primitive *p, const node *out) {
  if (!all_vary_fully(w, p) || out->needed < out->elements) return 0;
  if (p->op == FT_OP_CONV) return slide(w, p).products;
  const ft_shape *a = shape_of(w, p->input[0]);
  return out->elements * (double)a->dim[a->rank - 1];
}

static void count(const walk *w, const ft_primitive *p, const node *out, ft_work *work) {
  ft_dtype dtype = w->group->graph->value[p->output].dtype;
  double weight = weight_of(p->op);
  if (weight == 0 || (dtype != FT_F32 && dtype != FT_F64)) return;
  ft_op_class class = ft_op_describe(p->op)->class;
  if (class == FT_CLASS_M) {
    double flops = weight * products(w, p, out);
    work->product_flops += flops;
    work->flops += flops;
  } else if (class == FT_CLASS_R || class == FT_CLASS_S) {
    work->flops += weight * combinations(w, p, out);
  } else {
    work->flops +=
        weight * fmin(out->needed, distinct(shape_of(w, p->output), out->varies));
  }
}

// ---- all of it
// --------------------------------------------------------------------------

static bool begin(walk *w, const ft_group *group, ft_arena *scratch) {
  const ft_graph *graph = group->graph;
  *w = (walk){.group = group};
  w->node = FT_NEW_ARRAY(scratch, node, group->input_count + group->primitive_count);
  if (!w->node) return false;
  for (uint32_t i = 0; i < group->input_count; i++) {
    uint32_t value = group->input[i];
    w->node[w->count++] = (node){.root = value,
                                 .elements = elements_of(graph, value),
                                 .varies = all_axes(&graph->value[value].shape)};
  }
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = &graph->primitive[group->primitive[i]];
    uint32_t axes = output_axes(w, p);
    w->node[w->count++] = (node){
        .root = p->output, .elements = elements_of(graph, p->output), .varies = axes};
  }
  return true;
}

static double value_bytes(const walk *w, uint32_t value, double elements) {
  return elements * (double)ft_dtype_bytes(w->group->graph->value[value].dtype);
}

ft_work ft_work_of(const ft_workload *workload, ft_arena *scratch) {
  const ft_group *g = &workload->group;
  ft_work work = {0};
  walk w;
  if (!begin(&w, g, scratch)) return work;
  for (uint32_t i = 0; i < g->output_count; i++) {
    need(&w, g->output[i], HUGE_VAL);
    work.write_bytes +=
        value_bytes(&w, g->output[i], elements_of(g->graph, g->output[i]));
  }
  for (uint32_t i = g->primitive_count; i-- > 0;) {
    const node *out = &w.node[g->input_count + i];
    need_operands(&w, &g->graph->primitive[g->primitive[i]], out->needed);
  }
  for (uint32_t i = 0; i < g->primitive_count; i++)
    count(&w, &g->graph->primitive[g->primitive[i]], &w.node[g->input_count + i], &work);
  for (uint32_t i = 0; i < g->input_count; i++)
    work.read_bytes += value_bytes(&w, g->input[i], w.node[i].needed);
  return work;
}
