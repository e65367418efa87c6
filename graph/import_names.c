// Invariants after ft_import_resolve:
//  1. Every name is produced once: by a graph input, an initializer or a node.
//  2. In |order| a node reads only what was produced before it, so there is no cycle.
//     What its subgraphs read from outside counts as read by the node.
//  3. Every graph output is produced.
#include "graph/importer.h"

// Seeded with an address, so that no file can be made whose names all collide. Only
// the time depends on it.
static uint64_t hash_name(const ft_importer *im, ft_span name) {
  uint64_t seed = FT_HASH64_SEED ^ (uint64_t)(uintptr_t)im->slot;
  uint64_t hash = ft_hash64(seed, name.data, name.size);
  return hash ^ hash >> 32;
}

// The slot where |name| is, or would be.
static uint32_t *find_slot(const ft_importer *im, ft_span name) {
  for (uint32_t at = (uint32_t)hash_name(im, name);; at++) {
    uint32_t *slot = &im->slot[at & (im->slot_count - 1)];
    if (*slot == FT_NONE || ft_span_equal(im->name[*slot].name, name)) return slot;
  }
}

static ft_import_name *find_own(const ft_importer *im, ft_span name) {
  uint32_t index = *find_slot(im, name);
  return index == FT_NONE ? NULL : &im->name[index];
}

ft_import_name *ft_import_find(const ft_importer *im, ft_span name) {
  ft_import_name *found = NULL;
  for (; im && !found; im = im->outer) found = find_own(im, name);
  return found;
}

static ft_status allocate(ft_importer *im, ft_error *error) {
  const ft_onnx_model *model = &im->model;
  size_t names = (size_t)model->input_count + model->initializer_count;
  for (uint32_t i = 0; i < model->node_count; i++) names += model->node[i].output_count;
  im->slot_count = 16;
  while (im->slot_count < 2 * names) im->slot_count *= 2;  // names <= FT_ONNX_MAX_ITEMS
  im->name = FT_NEW_ARRAY(im->arena, ft_import_name, names);
  im->slot = FT_NEW_ARRAY(im->arena, uint32_t, im->slot_count);
  im->node_is_live = FT_NEW_ARRAY(im->arena, bool, model->node_count);
  im->order = FT_NEW_ARRAY(im->arena, uint32_t, model->node_count);
  im->capture = FT_NEW_ARRAY(im->arena, ft_import_captures, model->node_count);
  FT_OOM_IF(!im->name || !im->slot || !im->node_is_live || !im->order || !im->capture,
            error);
  for (uint32_t i = 0; i < im->slot_count; i++) im->slot[i] = FT_NONE;
  return FT_OK;
}

static const char *const source_texts[] = {"graph input", "graph input", "initializer",
                                           "node"};

static ft_status add(ft_importer *im, ft_span name, ft_import_source source,
                     uint32_t index, ft_error *error) {
  if (name.size == 0)
    FT_FAIL(error, FT_REFUSED, "%s %u has no name", source_texts[source], index);
  uint32_t *slot = find_slot(im, name);
  if (*slot != FT_NONE)
    FT_FAIL(error, FT_REFUSED, "value '%.*s' is produced twice: by %s %u and %s %u",
            FT_SPAN_SHOW(name), source_texts[im->name[*slot].source],
            im->name[*slot].index, source_texts[source], index);
  *slot = im->name_count++;
  im->name[*slot] = (ft_import_name){.name = name,
                                     .source = source,
                                     .index = index,
                                     .value = FT_NONE,
                                     .code = FT_NONE,
                                     .fallback = FT_NONE};
  return FT_OK;
}

// From IR 4 on an initializer that is also an input is a default that the caller may
// override: it stays an input. Before, every initializer was listed so: a constant.
static ft_status add_initializer(ft_importer *im, uint32_t index, ft_error *error) {
  ft_span name = im->model.initializer[index].name;
  ft_import_name *known = name.size ? find_own(im, name) : NULL;
  if (!known || known->source != FT_SOURCE_INPUT)
    return add(im, name, FT_SOURCE_INITIALIZER, index, error);
  if (im->model.ir_version >= 4) {
    known->fallback = index;
    return FT_OK;
  }
  known->source = FT_SOURCE_INITIALIZER;
  known->index = index;
  return FT_OK;
}

static ft_status add_all(ft_importer *im, ft_error *error) {
  const ft_onnx_model *model = &im->model;
  for (uint32_t i = 0; i < model->input_count; i++)
    FT_TRY(add(im, model->input[i].name, FT_SOURCE_INPUT, i, error));
  for (uint32_t i = 0; i < model->initializer_count; i++)
    FT_TRY(add_initializer(im, i, error));
  for (uint32_t i = 0; i < model->node_count; i++) {
    const ft_onnx_node *node = &model->node[i];
    for (uint32_t k = 0; k < node->output_count; k++)
      if (node->output[k].size)
        FT_TRY(add(im, node->output[k], FT_SOURCE_NODE, i, error));
  }
  return FT_OK;
}

// ---- subgraphs ------------------------------------------------------------------------

ft_status ft_import_enter(const ft_importer *outer, const ft_onnx_attribute *attribute,
                          ft_importer *out, ft_error *error) {
  ft_onnx_model from = outer->model;
  *out = (ft_importer){.arena = outer->arena,
                       .graph = outer->graph,
                       .options = outer->options,
                       .files = outer->files,
                       .report = outer->report,
                       .shared = outer->shared,
                       .outer = outer};
  from.items = outer->shared->items;
  FT_TRY(ft_onnx_open_graph(&from, attribute, outer->arena, &out->model, error));
  outer->shared->items = from.items;
  return FT_OK;
}

static ft_status capture(ft_importer *scope, ft_span name, ft_import_captures *out,
                         ft_error *error) {
  if (name.size == 0 || find_own(scope, name)) return FT_OK;
  FT_OOM_IF(FT_GROW(scope->arena, &out->name, out->count, &out->capacity), error);
  out->name[out->count++] = name;
  return FT_OK;
}

static ft_status collect(const ft_importer *im, const ft_onnx_node *node,
                         ft_import_captures *out, ft_error *error);

// What |node| of |scope| and its subgraphs read from outside the scope.
static ft_status capture_node(ft_importer *scope, const ft_onnx_node *node,
                              ft_import_captures *out, ft_error *error) {
  ft_import_captures inner = {0};
  for (uint32_t k = 0; k < node->input_count; k++)
    FT_TRY(capture(scope, node->input[k], out, error));
  FT_TRY(collect(scope, node, &inner, error));
  for (size_t k = 0; k < inner.count; k++)
    FT_TRY(capture(scope, inner.name[k], out, error));
  return FT_OK;
}

static ft_status collect(const ft_importer *im, const ft_onnx_node *node,
                         ft_import_captures *out, ft_error *error) {
  for (uint32_t i = 0; i < node->attribute_count; i++) {
    if (node->attribute[i].type != FT_ONNX_GRAPH) continue;
    ft_importer scope;
    FT_TRY(ft_import_enter(im, &node->attribute[i], &scope, error));
    FT_TRY(allocate(&scope, error));
    FT_TRY(add_all(&scope, error));
    for (uint32_t k = 0; k < scope.model.node_count; k++)
      FT_TRY(capture_node(&scope, &scope.model.node[k], out, error));
    for (uint32_t k = 0; k < scope.model.output_count; k++)
      FT_TRY(capture(&scope, scope.model.output[k].name, out, error));
  }
  return FT_OK;
}

// ---- order ----------------------------------------------------------------------------

typedef struct visit {
  uint32_t node, next;  // next: the operand to look at, captures after inputs
} visit;

enum { NEW, OPEN, DONE };

typedef struct sorter {
  ft_importer *im;
  uint8_t *state;  // of every node
  visit *stack;
  uint32_t depth, done;
} sorter;

// The operand's name, an empty one for an absent operand; false past the last.
static bool operand_at(const ft_importer *im, const visit *at, ft_span *out) {
  const ft_onnx_node *node = &im->model.node[at->node];
  const ft_import_captures *captures = &im->capture[at->node];
  if (at->next >= node->input_count + captures->count) return false;
  *out = at->next < node->input_count ? node->input[at->next]
                                      : captures->name[at->next - node->input_count];
  return true;
}

// The node of this scope that produces |name|, FT_NONE when something else does.
static ft_status producer_of(const ft_importer *im, uint32_t reader, ft_span name,
                             uint32_t *out, ft_error *error) {
  const ft_onnx_node *node = &im->model.node[reader];
  const ft_import_name *own = find_own(im, name);
  *out = own && own->source == FT_SOURCE_NODE ? own->index : FT_NONE;
  if (!own && !ft_import_find(im, name))
    FT_FAIL(error, FT_REFUSED,
            "node %u '%.*s' (%.*s) reads '%.*s', which nothing produces", reader,
            FT_SPAN_SHOW(node->name), FT_SPAN_SHOW(node->op), FT_SPAN_SHOW(name));
  return FT_OK;
}

static ft_status push(sorter *s, uint32_t reader, ft_span name, uint32_t node,
                      ft_error *error) {
  const ft_onnx_node *nodes = s->im->model.node;
  if (s->state[node] == DONE) return FT_OK;
  if (s->state[node] == OPEN)
    FT_FAIL(error, FT_REFUSED,
            "node %u '%.*s' (%.*s) reads '%.*s', which node %u '%.*s' produces: a cycle",
            reader, FT_SPAN_SHOW(nodes[reader].name), FT_SPAN_SHOW(nodes[reader].op),
            FT_SPAN_SHOW(name), node, FT_SPAN_SHOW(nodes[node].name));
  s->state[node] = OPEN;
  s->stack[s->depth++] = (visit){node, 0};
  return FT_OK;
}

// Depth first from each node in file order: what it needs comes before it, and a file
// that is sorted keeps its order.
static ft_status drain(sorter *s, ft_error *error) {
  while (s->depth) {
    visit *top = &s->stack[s->depth - 1];
    ft_span name;
    uint32_t producer, reader = top->node;
    if (!operand_at(s->im, top, &name)) {
      s->state[reader] = DONE;
      s->im->order[s->done++] = reader;
      s->depth--;
      continue;
    }
    top->next++;
    if (name.size == 0) continue;
    FT_TRY(producer_of(s->im, reader, name, &producer, error));
    if (producer != FT_NONE) FT_TRY(push(s, reader, name, producer, error));
  }
  return FT_OK;
}

static ft_status sort(ft_importer *im, ft_error *error) {
  uint32_t count = im->model.node_count;
  sorter s = {.im = im,
              .state = FT_NEW_ARRAY(im->arena, uint8_t, count),
              .stack = FT_NEW_ARRAY(im->arena, visit, count)};
  FT_OOM_IF(!s.state || !s.stack, error);
  for (uint32_t i = 0; i < count; i++) {
    FT_TRY(push(&s, i, (ft_span){0}, i, error));
    FT_TRY(drain(&s, error));
  }
  return FT_OK;
}

// ---- what is needed -------------------------------------------------------------------

// A branch may hand on a name from outside, twice even; the model may not.
static ft_status mark_output(ft_importer *im, uint32_t output, ft_error *error) {
  ft_span name = im->model.output[output].name;
  ft_import_name *found = ft_import_find(im, name);
  if (!found)
    FT_FAIL(error, FT_REFUSED, "graph output %u '%.*s' is produced by nothing", output,
            FT_SPAN_SHOW(name));
  // Nothing else is live yet: it was an output before.
  if (found->is_live && !im->outer)
    FT_FAIL(error, FT_REFUSED, "'%.*s' is a graph output twice", FT_SPAN_SHOW(name));
  found->is_live = true;
  return FT_OK;
}

static ft_status mark_outputs(ft_importer *im, ft_error *error) {
  if (im->model.output_count == 0) FT_FAIL(error, FT_REFUSED, "the graph has no outputs");
  for (uint32_t i = 0; i < im->model.output_count; i++) FT_TRY(mark_output(im, i, error));
  return FT_OK;
}

static void mark_operands(ft_importer *im, uint32_t node) {
  visit at = {node, 0};
  for (ft_span name; operand_at(im, &at, &name); at.next++)
    if (name.size) ft_import_find(im, name)->is_live = true;
}

// One sweep from the last to the first finds what is needed.
static void mark_live(ft_importer *im) {
  for (uint32_t i = im->model.node_count; i-- > 0;) {
    uint32_t index = im->order[i];
    const ft_onnx_node *node = &im->model.node[index];
    for (uint32_t k = 0; k < node->output_count; k++)
      if (node->output[k].size && find_own(im, node->output[k])->is_live)
        im->node_is_live[index] = true;
    if (im->node_is_live[index]) mark_operands(im, index);
  }
}

ft_status ft_import_resolve(ft_importer *im, ft_error *error) {
  FT_TRY(allocate(im, error));
  FT_TRY(add_all(im, error));
  for (uint32_t i = 0; i < im->model.node_count; i++)
    FT_TRY(collect(im, &im->model.node[i], &im->capture[i], error));
  FT_TRY(sort(im, error));
  FT_TRY(mark_outputs(im, error));
  mark_live(im);
  return FT_OK;
}
