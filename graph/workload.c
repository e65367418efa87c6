// The canonical form of a group. Two groups get one encoding only when position i of one
// can stand for position i of the other: everything a kernel depends on is written down,
// and colours only choose the order in which.
#include <stdlib.h>
#include <string.h>

#include "graph/attr.h"
#include "graph/encoding.h"
#include "graph/group.h"

typedef enum source_kind { FROM_INSIDE, FROM_INPUT, FROM_IMMEDIATE } source_kind;

typedef struct operand {
  source_kind kind;
  uint32_t index;  // local primitive or input
  uint32_t value;
  uint64_t label;  // of the view: how the operand is seen, without who made it
} operand;

typedef struct node {
  const ft_primitive *primitive;
  uint32_t id;  // in the graph
  bool is_output;
  operand *operand;  // [primitive->input_count]
  uint64_t colour, readers;
  uint32_t position;  // canonical; FT_NONE = not placed yet
} node;

typedef struct external {
  uint32_t root;
  uint64_t colour, readers;
  uint32_t position;
} external;

typedef struct canon {
  const ft_graph *graph;
  uint32_t node_count, input_count, placed, inputs_placed;
  node *node;  // in graph order, hence topological
  external *input;
  uint32_t *order;  // canonical position -> node
} canon;

// ---- colours --------------------------------------------------------------------

// splitmix64's finaliser: independent of byte order, as keys are stored.
static uint64_t mix(uint64_t hash, uint64_t value) {
  uint64_t z = (hash ^ value) + 0x9e3779b97f4a7c15ull + (hash << 6);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

static uint64_t mix_type(uint64_t hash, ft_dtype dtype, const ft_shape *shape) {
  hash = mix(mix(hash, (uint64_t)dtype), shape->rank);
  for (int i = 0; i < shape->rank; i++) hash = mix(hash, (uint64_t)shape->dim[i]);
  return hash;
}

static uint64_t node_label(const canon *c, const node *n) {
  const ft_primitive *p = n->primitive;
  const ft_value *out = &c->graph->value[p->output];
  uint64_t hash = mix((uint64_t)p->op, (uint64_t)p->attr.to);
  hash = mix_type(mix(hash, p->attr.axes), FT_F32, &p->attr.shape);
  for (int i = 0; i < FT_MAX_RANK; i++) hash = mix(hash, p->attr.perm[i]);
  int64_t numbers[FT_ATTR_NUMBERS];
  int count = ft_attr_numbers(p->op, &p->attr, numbers);
  for (int i = 0; i < count; i++) hash = mix(hash, (uint64_t)numbers[i]);
  return mix(mix_type(hash, out->dtype, &out->shape), n->is_output);
}

static uint64_t operand_colour(const canon *c, const operand *o) {
  uint64_t hash = mix(o->label, (uint64_t)o->kind);
  if (o->kind == FROM_IMMEDIATE) return hash;
  return mix(hash, o->kind == FROM_INSIDE ? c->node[o->index].colour
                                          : c->input[o->index].colour);
}

static void sweep_forward(canon *c) {
  for (uint32_t i = 0; i < c->node_count; i++) {
    node *n = &c->node[i];
    for (uint32_t k = 0; k < n->primitive->input_count; k++)
      n->colour = mix(n->colour, operand_colour(c, &n->operand[k]));
    n->readers = 0;
  }
}

// Readers are a multiset: their colours are added, so their order does not matter.
static void sweep_backward(canon *c) {
  for (uint32_t e = 0; e < c->input_count; e++) c->input[e].readers = 0;
  for (uint32_t i = c->node_count; i-- > 0;) {
    node *n = &c->node[i];
    n->colour = mix(n->colour, n->readers);
    for (uint32_t k = 0; k < n->primitive->input_count; k++) {
      const operand *o = &n->operand[k];
      uint64_t seen = mix(mix(n->colour, o->label), k);
      if (o->kind == FROM_INSIDE) c->node[o->index].readers += seen;
      if (o->kind == FROM_INPUT) c->input[o->index].readers += seen;
    }
  }
  for (uint32_t e = 0; e < c->input_count; e++)
    c->input[e].colour = mix(c->input[e].colour, c->input[e].readers);
}

static int compare_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static uint32_t count_colours(const canon *c, uint64_t *scratch) {
  uint32_t count = 0, distinct = 0;
  for (uint32_t i = 0; i < c->node_count; i++) scratch[count++] = c->node[i].colour;
  for (uint32_t e = 0; e < c->input_count; e++) scratch[count++] = c->input[e].colour;
  qsort(scratch, count, sizeof *scratch, compare_u64);
  for (uint32_t i = 0; i < count; i++) distinct += i == 0 || scratch[i] != scratch[i - 1];
  return distinct;
}

// Both sweeps carry news across the whole group; a round that splits no class is last.
static ft_status colour(canon *c, ft_arena *arena, ft_error *error) {
  uint64_t *scratch = FT_NEW_ARRAY(arena, uint64_t, c->node_count + c->input_count);
  FT_OOM_IF(!scratch, error);
  uint32_t before, now = 0;
  do {
    before = now;
    sweep_forward(c);
    sweep_backward(c);
    now = count_colours(c, scratch);
  } while (now > before);
  return FT_OK;
}

// ---- reading the group ----------------------------------------------------------

static int by_id(const void *a, const void *b) {
  uint32_t x = ((const node *)a)->id, y = ((const node *)b)->id;
  return (x > y) - (x < y);
}

static node *find_node(canon *c, uint32_t id) {
  node key = {.id = id};
  return bsearch(&key, c->node, c->node_count, sizeof key, by_id);
}

static uint32_t find_input(const canon *c, uint32_t root) {
  for (uint32_t e = 0; e < c->input_count; e++)
    if (c->input[e].root == root) return e;
  return FT_NONE;
}

static ft_status read_operand(canon *c, uint32_t value, operand *out, ft_error *error) {
  const ft_value *v = &c->graph->value[value];
  *out = (operand){.value = value, .label = mix_type(0, v->dtype, &v->shape)};
  node *inside = v->producer == FT_NONE ? NULL : find_node(c, v->producer);
  if (inside) {
    out->kind = FROM_INSIDE;
    out->index = (uint32_t)(inside - c->node);
  } else if (ft_value_is_immediate(c->graph, value)) {
    out->kind = FROM_IMMEDIATE;
    out->label =
        mix(out->label, ft_hash64(FT_HASH64_SEED, v->data->data, v->data->bytes));
  } else {
    out->kind = FROM_INPUT;
    out->index = find_input(c, v->root);
    if (out->index == FT_NONE)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "the group reads '%s', which is not an input",
              v->name);
  }
  return FT_OK;
}

static ft_status read_nodes(canon *c, const ft_group *group, ft_arena *arena,
                            ft_error *error) {
  for (uint32_t i = 0; i < c->node_count; i++) {
    uint32_t id = group->primitive[i];
    c->node[i] =
        (node){.primitive = &c->graph->primitive[id], .id = id, .position = FT_NONE};
  }
  qsort(c->node, c->node_count, sizeof *c->node, by_id);
  for (uint32_t i = 0; i < group->output_count; i++) {
    uint32_t producer = c->graph->value[group->output[i]].producer;
    node *n = producer == FT_NONE ? NULL : find_node(c, producer);
    if (!n)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "the group does not make its output '%s'",
              c->graph->value[group->output[i]].name);
    n->is_output = true;
  }
  for (uint32_t i = 0; i < c->node_count; i++) {
    node *n = &c->node[i];
    n->colour = node_label(c, n);
    n->operand = FT_NEW_ARRAY(arena, operand, n->primitive->input_count);
    FT_OOM_IF(!n->operand, error);
    for (uint32_t k = 0; k < n->primitive->input_count; k++)
      FT_TRY(read_operand(c, n->primitive->input[k], &n->operand[k], error));
  }
  return FT_OK;
}

static ft_status read_group(canon *c, const ft_group *group, ft_arena *arena,
                            ft_error *error) {
  *c = (canon){.graph = group->graph,
               .node_count = group->primitive_count,
               .input_count = group->input_count};
  c->node = FT_NEW_ARRAY(arena, node, c->node_count);
  c->input = FT_NEW_ARRAY(arena, external, c->input_count);
  c->order = FT_NEW_ARRAY(arena, uint32_t, c->node_count);
  FT_OOM_IF(!c->node || !c->input || !c->order, error);
  for (uint32_t e = 0; e < c->input_count; e++) {
    const ft_value *v = &c->graph->value[group->input[e]];
    c->input[e] = (external){.root = group->input[e],
                             .position = FT_NONE,
                             .colour = mix_type(1, v->dtype, &v->shape)};
  }
  return read_nodes(c, group, arena, error);
}

// ---- the canonical order --------------------------------------------------------

static bool is_ready(const canon *c, const node *n) {
  for (uint32_t k = 0; k < n->primitive->input_count; k++)
    if (n->operand[k].kind == FROM_INSIDE &&
        c->node[n->operand[k].index].position == FT_NONE)
      return false;
  return true;
}

static uint32_t operand_position(const canon *c, const operand *o) {
  if (o->kind == FROM_IMMEDIATE) return 0;
  return o->kind == FROM_INSIDE ? c->node[o->index].position
                                : c->input[o->index].position;
}

// Equal colours: twins stay together with what was placed before them.
static bool goes_before(const canon *c, const node *a, const node *b) {
  if (a->colour != b->colour) return a->colour < b->colour;
  for (uint32_t k = 0; k < a->primitive->input_count; k++) {
    uint32_t x = operand_position(c, &a->operand[k]);
    uint32_t y = operand_position(c, &b->operand[k]);
    if (x != y) return x < y;
  }
  return false;
}

static void place(canon *c, uint32_t index) {
  node *n = &c->node[index];
  c->order[c->placed] = index;
  n->position = c->placed++;
  for (uint32_t k = 0; k < n->primitive->input_count; k++) {
    if (n->operand[k].kind != FROM_INPUT) continue;
    external *e = &c->input[n->operand[k].index];
    if (e->position == FT_NONE) e->position = c->inputs_placed++;
  }
}

// Quadratic in the group, which a window bounds.
static void sort_nodes(canon *c) {
  while (c->placed < c->node_count) {
    uint32_t best = FT_NONE;
    for (uint32_t i = 0; i < c->node_count; i++) {
      const node *n = &c->node[i];
      if (n->position != FT_NONE || !is_ready(c, n)) continue;
      if (best == FT_NONE || goes_before(c, n, &c->node[best])) best = i;
    }
    FT_ASSERT(best != FT_NONE);
    place(c, best);
  }
}

static ft_status fill_group(const canon *c, ft_arena *arena, ft_group *out,
                            ft_error *error) {
  uint32_t *primitive = FT_NEW_ARRAY(arena, uint32_t, c->node_count);
  uint32_t *input = FT_NEW_ARRAY(arena, uint32_t, c->input_count);
  uint32_t *output = FT_NEW_ARRAY(arena, uint32_t, c->node_count);
  FT_OOM_IF(!primitive || !input || !output, error);
  *out = (ft_group){.graph = c->graph,
                    .primitive_count = c->node_count,
                    .input_count = c->input_count,
                    .primitive = primitive,
                    .input = input,
                    .output = output};
  for (uint32_t i = 0; i < c->node_count; i++) {
    const node *n = &c->node[c->order[i]];
    primitive[i] = n->id;
    if (n->is_output) output[out->output_count++] = n->primitive->output;
  }
  for (uint32_t e = 0; e < c->input_count; e++) {
    if (c->input[e].position == FT_NONE)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "the group does not read its input '%s'",
              c->graph->value[c->input[e].root].name);
    input[c->input[e].position] = c->input[e].root;
  }
  return FT_OK;
}

// ---- encoding -------------------------------------------------------------------

static void encode_operand(const canon *c, const operand *o, ft_strbuf *out) {
  static const char kinds[] = {
      [FROM_INSIDE] = 'P', [FROM_INPUT] = 'I', [FROM_IMMEDIATE] = 'C'};
  const ft_value *v = &c->graph->value[o->value];
  ft_encode_u8(out, (unsigned char)kinds[o->kind]);
  if (o->kind == FROM_IMMEDIATE) {
    ft_encode_tensor(out, v->data);
    return;
  }
  ft_encode_u64(out, operand_position(c, o));
  ft_encode_shape(out, &v->shape);
}

static void encode_node(const canon *c, const node *n, ft_strbuf *out) {
  const ft_value *result = &c->graph->value[n->primitive->output];
  ft_encode_op(out, n->primitive->op, &n->primitive->attr);
  ft_encode_type(out, result->dtype, &result->shape);
  ft_encode_u8(out, n->is_output);
  for (uint32_t k = 0; k < n->primitive->input_count; k++)
    encode_operand(c, &n->operand[k], out);
}

static ft_status encode(const canon *c, ft_arena *arena, ft_workload *out,
                        ft_error *error) {
  ft_strbuf text = ft_strbuf_init(arena);
  ft_strbuf_add(&text, "ft-workload-1");
  ft_encode_u64(&text, out->group.input_count);
  for (uint32_t i = 0; i < out->group.input_count; i++) {
    const ft_value *v = &c->graph->value[out->group.input[i]];
    ft_encode_type(&text, v->dtype, &v->shape);
  }
  ft_encode_u64(&text, c->node_count);
  for (uint32_t i = 0; i < c->node_count; i++)
    encode_node(c, &c->node[c->order[i]], &text);
  FT_OOM_IF(text.failed, error);
  out->encoding = (const uint8_t *)text.text;
  out->encoding_bytes = text.length;
  out->hash = ft_hash_bytes(out->encoding, out->encoding_bytes);
  return FT_OK;
}

// ---- size of the work -----------------------------------------------------------

static uint64_t sum_bytes(const ft_graph *graph, const uint32_t *value, uint32_t count) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    const ft_value *v = &graph->value[value[i]];
    uint64_t bytes = (uint64_t)ft_shape_elements(&v->shape) * ft_dtype_bytes(v->dtype);
    if (__builtin_add_overflow(sum, bytes, &sum)) return UINT64_MAX;
  }
  return sum;
}

// Multiplications and additions of one element of a contraction.
static double count_terms(const ft_graph *graph, const ft_primitive *p) {
  const ft_shape *b = &graph->value[p->input[1]].shape;
  if (p->op == FT_OP_MATMUL) return 2 * (double)b->dim[b->rank - 2];
  double terms = 2;  // CONV: one filter
  for (int i = 1; i < b->rank; i++) terms *= (double)b->dim[i];
  return terms;
}

static double count_window(const ft_graph *graph, const ft_primitive *p) {
  int spatial = graph->value[p->output].shape.rank - 2;
  double elements = 1;
  for (int i = 0; i < spatial; i++) elements *= (double)p->attr.window[i];
  return elements;
}

// What moves or converts is no arithmetic; a reduction works once per element it reads,
// a window once per element in it.
static double count_flops(const ft_graph *graph, const ft_primitive *p) {
  ft_op_class class = ft_op_describe(p->op)->class;
  if (class == FT_CLASS_I || p->op == FT_OP_COPY || p->op == FT_OP_CAST) return 0;
  uint32_t domain = class == FT_CLASS_R ? p->input[0] : p->output;
  double elements = (double)ft_shape_elements(&graph->value[domain].shape);
  if (class == FT_CLASS_M) return elements * count_terms(graph, p);
  return class == FT_CLASS_S ? elements * count_window(graph, p) : elements;
}

ft_status ft_workload_make(const ft_group *group, ft_arena *arena, ft_workload *out,
                           ft_error *error) {
  canon c;
  FT_TRY(read_group(&c, group, arena, error));
  FT_TRY(colour(&c, arena, error));
  sort_nodes(&c);
  *out = (ft_workload){0};
  FT_TRY(fill_group(&c, arena, &out->group, error));
  FT_TRY(encode(&c, arena, out, error));
  out->read_bytes = sum_bytes(c.graph, out->group.input, out->group.input_count);
  out->write_bytes = sum_bytes(c.graph, out->group.output, out->group.output_count);
  for (uint32_t i = 0; i < c.node_count; i++)
    out->flops += count_flops(c.graph, c.node[i].primitive);
  return FT_OK;
}

bool ft_workload_equal(const ft_workload *a, const ft_workload *b) {
  return a->encoding_bytes == b->encoding_bytes &&
         memcmp(a->encoding, b->encoding, a->encoding_bytes) == 0;
}
