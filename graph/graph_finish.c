// ft_graph_finish: drop what is dead, renumber, list consumers, hash.
#include <string.h>

#include "graph/builder.h"
#include "graph/encoding.h"

enum { HASHED_CONSTANT_ELEMENTS = 64 };

// ---- dropping -------------------------------------------------------------------

// Old index -> new index; FT_NONE = dropped. Before renumbering: 0 = kept.
typedef struct renumbering {
  uint32_t *value, *primitive;
} renumbering;

static void keep_value(const ft_graph *graph, renumbering *map, uint32_t value) {
  const ft_value *v = &graph->value[value];
  map->value[value] = 0;
  map->value[v->root] = 0;
  if (v->producer != FT_NONE) map->primitive[v->producer] = 0;
}

// Producers come before their readers, so one pass from the end sees all that is live.
static void mark(const ft_graph *graph, renumbering *map) {
  memset(map->value, 0xff, graph->value_count * sizeof map->value[0]);
  memset(map->primitive, 0xff, graph->primitive_count * sizeof map->primitive[0]);
  for (uint32_t i = 0; i < graph->input_count; i++)
    keep_value(graph, map, graph->input[i].value);
  for (uint32_t i = 0; i < graph->output_count; i++)
    keep_value(graph, map, graph->output[i].value);
  for (uint32_t i = graph->primitive_count; i-- > 0;) {
    const ft_primitive *p = &graph->primitive[i];
    if (map->primitive[i] == FT_NONE) continue;
    for (uint32_t k = 0; k < p->input_count; k++) keep_value(graph, map, p->input[k]);
  }
}

static uint32_t number(uint32_t *map, uint32_t count) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < count; i++)
    if (map[i] != FT_NONE) map[i] = next++;
  return next;
}

static void move_values(ft_graph *graph, const renumbering *map, uint32_t kept) {
  for (uint32_t i = 0; i < graph->value_count; i++) {
    if (map->value[i] == FT_NONE) continue;
    ft_value *v = &graph->value[map->value[i]];
    *v = graph->value[i];
    v->root = map->value[v->root];
    if (v->producer != FT_NONE) v->producer = map->primitive[v->producer];
  }
  graph->value_count = kept;
  for (uint32_t i = 0; i < graph->input_count; i++)
    graph->input[i].value = map->value[graph->input[i].value];
  for (uint32_t i = 0; i < graph->output_count; i++)
    graph->output[i].value = map->value[graph->output[i].value];
}

// The list is ft_graph_emit's own, so it may be written until the graph is finished.
static void renumber_inputs(const ft_primitive *p, const renumbering *map) {
  uint32_t *input = (uint32_t *)(uintptr_t)p->input;
  for (uint32_t k = 0; k < p->input_count; k++) input[k] = map->value[input[k]];
}

static void move_primitives(ft_graph *graph, const renumbering *map, uint32_t kept) {
  for (uint32_t i = 0; i < graph->primitive_count; i++) {
    if (map->primitive[i] == FT_NONE) continue;
    ft_primitive *p = &graph->primitive[map->primitive[i]];
    *p = graph->primitive[i];
    p->output = map->value[p->output];
    renumber_inputs(p, map);
  }
  graph->primitive_count = kept;
}

static ft_status drop_dead(ft_graph *graph, ft_error *error) {
  renumbering map = {FT_NEW_ARRAY(graph->arena, uint32_t, graph->value_count),
                     FT_NEW_ARRAY(graph->arena, uint32_t, graph->primitive_count)};
  FT_OOM_IF(!map.value || !map.primitive, error);
  mark(graph, &map);
  uint32_t values = number(map.value, graph->value_count);
  uint32_t primitives = number(map.primitive, graph->primitive_count);
  move_values(graph, &map, values);
  move_primitives(graph, &map, primitives);
  return FT_OK;
}

// ---- filling --------------------------------------------------------------------

// Primitives were appended operator by operator, so runs are contiguous as they are.
static void find_runs(ft_graph *graph) {
  uint32_t at = 0;
  graph->live_operators = 0;
  for (uint32_t i = 0; i < graph->operator_count; i++) {
    ft_operator *op = &graph->operator_[i];
    op->first = at;
    while (at < graph->primitive_count && graph->primitive[at].op_index == i) at++;
    op->count = at - op->first;
    graph->live_operators += op->count > 0;
  }
  FT_ASSERT(at == graph->primitive_count);
}

// Calls |visit| with each root that a primitive reads, once per primitive, ascending.
// |last| [value_count] is scratch.
static void visit_roots(ft_graph *graph, uint32_t *last,
                        void (*visit)(ft_value *root, uint32_t primitive)) {
  memset(last, 0xff, graph->value_count * sizeof *last);
  for (uint32_t i = 0; i < graph->primitive_count; i++) {
    const ft_primitive *p = &graph->primitive[i];
    for (uint32_t k = 0; k < p->input_count; k++) {
      uint32_t root = graph->value[p->input[k]].root;
      if (last[root] == i) continue;
      last[root] = i;
      visit(&graph->value[root], i);
    }
  }
}

static void count_consumer(ft_value *root, uint32_t primitive) {
  (void)primitive;
  root->consumer_count++;
}

static void add_consumer(ft_value *root, uint32_t primitive) {
  uint32_t *list = (uint32_t *)(uintptr_t)root->consumer;  // list_consumers' own
  list[root->consumer_count++] = primitive;
}

static ft_status list_consumers(ft_graph *graph, ft_error *error) {
  size_t reads = 0;
  for (uint32_t i = 0; i < graph->primitive_count; i++)
    reads += graph->primitive[i].input_count;
  uint32_t *list = FT_NEW_ARRAY(graph->arena, uint32_t, reads);
  uint32_t *last = FT_NEW_ARRAY(graph->arena, uint32_t, graph->value_count);
  FT_OOM_IF(!list || !last, error);
  for (uint32_t i = 0; i < graph->value_count; i++) graph->value[i].consumer_count = 0;
  visit_roots(graph, last, count_consumer);
  for (uint32_t i = 0; i < graph->value_count; i++) {
    graph->value[i].consumer = list;
    list += graph->value[i].consumer_count;
    graph->value[i].consumer_count = 0;
  }
  visit_roots(graph, last, add_consumer);
  return FT_OK;
}

static ft_status name_all(ft_graph *graph, ft_error *error) {
  for (uint32_t i = 0; i < graph->value_count; i++) {
    if (graph->value[i].name[0]) continue;
    graph->value[i].name = ft_arena_printf(graph->arena, "_%u", i);
    FT_OOM_IF(!graph->value[i].name, error);
  }
  for (uint32_t i = 0; i < graph->operator_count; i++) {
    ft_operator *op = &graph->operator_[i];
    if (op->name[0]) continue;
    op->name = op->count
                   ? graph->value[graph->primitive[op->first + op->count - 1].output].name
                   : op->type;
  }
  return FT_OK;
}

// ---- bound_hash -----------------------------------------------------------------

typedef struct encoder {
  ft_strbuf out;
  const ft_graph *graph;
  uint32_t *number;  // per root: 1 + order of first mention; 0 = not yet
  uint32_t next;
} encoder;

static void encode_constant(ft_strbuf *out, const ft_value *v) {
  bool has_bytes = v->data && (ft_shape_elements(&v->shape) <= HASHED_CONSTANT_ELEMENTS ||
                               !ft_dtype_is_float(v->dtype));
  ft_encode_u8(out, has_bytes ? 'C' : 'W');
  if (has_bytes)
    ft_encode_tensor(out, v->data);
  else
    ft_encode_type(out, v->dtype, &v->shape);
}

// Roots are numbered as they are mentioned; a constant brings its content along.
static void encode_reference(encoder *e, uint32_t value) {
  const ft_value *v = &e->graph->value[value];
  uint32_t root = v->root;
  bool is_new = e->number[root] == 0;
  if (is_new) e->number[root] = ++e->next;
  ft_encode_u64(&e->out, e->number[root]);
  if (is_new && v->role == FT_ROLE_CONSTANT)
    encode_constant(&e->out, &e->graph->value[root]);
  ft_encode_shape(&e->out, &v->shape);
}

static void encode_primitive(encoder *e, const ft_primitive *p) {
  const ft_value *out = &e->graph->value[p->output];
  ft_encode_op(&e->out, p->op, &p->attr);
  for (uint32_t k = 0; k < p->input_count; k++) encode_reference(e, p->input[k]);
  ft_encode_type(&e->out, out->dtype, &out->shape);
  e->number[p->output] = ++e->next;
}

static ft_status hash_bound(ft_graph *graph, ft_error *error) {
  encoder e = {ft_strbuf_init(graph->arena), graph,
               FT_NEW_ARRAY(graph->arena, uint32_t, graph->value_count), 0};
  FT_OOM_IF(!e.number, error);
  ft_strbuf_add(&e.out, "ft-graph-1");
  ft_encode_u64(&e.out, graph->input_count);
  for (uint32_t i = 0; i < graph->input_count; i++) {
    const ft_value *v = &graph->value[graph->input[i].value];
    ft_encode_type(&e.out, v->dtype, &v->shape);
    encode_reference(&e, graph->input[i].value);
  }
  ft_encode_u64(&e.out, graph->primitive_count);
  for (uint32_t i = 0; i < graph->primitive_count; i++)
    encode_primitive(&e, &graph->primitive[i]);
  ft_encode_u64(&e.out, graph->output_count);
  for (uint32_t i = 0; i < graph->output_count; i++)
    encode_reference(&e, graph->output[i].value);
  FT_OOM_IF(e.out.failed, error);
  graph->bound_hash = ft_hash_bytes(e.out.text, e.out.length);
  return FT_OK;
}

ft_status ft_graph_finish(ft_graph *graph, ft_error *error) {
  if (!graph->builder) FT_FAIL(error, FT_INVALID_ARGUMENT, "the graph is finished");
  FT_TRY(drop_dead(graph, error));
  find_runs(graph);
  FT_TRY(list_consumers(graph, error));
  FT_TRY(name_all(graph, error));
  FT_TRY(hash_bound(graph, error));
  graph->builder = NULL;
  return FT_OK;
}

// ---- invariants -----------------------------------------------------------------

static void check_value(const ft_graph *graph, uint32_t index) {
  const ft_value *v = &graph->value[index];
  FT_ASSERT(v->name && v->root < graph->value_count);
  const ft_value *root = &graph->value[v->root];
  FT_ASSERT(root->root == v->root && root->dtype == v->dtype && root->role == v->role);
  FT_ASSERT(root->producer == v->producer);
  FT_ASSERT(ft_shape_elements(&v->shape) >= 0);
  FT_ASSERT(ft_shape_elements(&v->shape) == ft_shape_elements(&root->shape));
  FT_ASSERT(!v->data || v->role == FT_ROLE_CONSTANT);
  FT_ASSERT((v->role == FT_ROLE_COMPUTED) == (v->producer != FT_NONE));
  if (v->producer != FT_NONE)
    FT_ASSERT(v->producer < graph->primitive_count &&
              graph->primitive[v->producer].output == v->root);
  uint32_t previous = FT_NONE;
  for (uint32_t i = 0; i < v->consumer_count; i++) {
    FT_ASSERT(v->root == index && v->consumer[i] < graph->primitive_count);
    FT_ASSERT(i == 0 || v->consumer[i] > previous);
    previous = v->consumer[i];
  }
}

static bool consumes(const ft_value *root, uint32_t primitive) {
  uint32_t low = 0, high = root->consumer_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (root->consumer[middle] < primitive)
      low = middle + 1;
    else
      high = middle;
  }
  return low < root->consumer_count && root->consumer[low] == primitive;
}

static void check_primitive(const ft_graph *graph, uint32_t index) {
  const ft_primitive *p = &graph->primitive[index];
  uint32_t arity = ft_op_describe(p->op)->arity;
  FT_ASSERT(arity ? p->input_count == arity : p->input_count > 0);
  FT_ASSERT(p->output < graph->value_count && graph->value[p->output].root == p->output);
  FT_ASSERT(graph->value[p->output].producer == index);
  FT_ASSERT(graph->value[p->output].is_output || graph->value[p->output].consumer_count);
  for (uint32_t k = 0; k < p->input_count; k++) {
    FT_ASSERT(p->input[k] < graph->value_count);
    const ft_value *in = &graph->value[p->input[k]];
    FT_ASSERT(in->producer == FT_NONE || in->producer < index);
    FT_ASSERT(consumes(&graph->value[in->root], index));
  }
  FT_ASSERT(p->op_index < graph->operator_count);
  const ft_operator *op = &graph->operator_[p->op_index];
  FT_ASSERT(index >= op->first && index - op->first < op->count);
}

void ft_graph_check(const ft_graph *graph) {
  FT_ASSERT(!graph->builder);
  for (uint32_t i = 0; i < graph->value_count; i++) check_value(graph, i);
  for (uint32_t i = 0; i < graph->primitive_count; i++) check_primitive(graph, i);
  for (uint32_t i = 0; i < graph->output_count; i++) {
    FT_ASSERT(graph->output[i].value < graph->value_count);
    FT_ASSERT(graph->value[graph->value[graph->output[i].value].root].is_output);
  }
  uint32_t owned = 0;
  for (uint32_t i = 0; i < graph->operator_count; i++) owned += graph->operator_[i].count;
  FT_ASSERT(owned == graph->primitive_count);
}
