// Invariants after ft_import_resolve:
//  1. Every name is produced once: by a graph input, an initializer or a node.
//  2. A node reads only what was produced before it, so there is no cycle.
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

ft_import_name *ft_import_find(const ft_importer *im, ft_span name) {
  uint32_t index = *find_slot(im, name);
  return index == FT_NONE ? NULL : &im->name[index];
}

bool ft_import_is_constant(const ft_importer *im, const ft_import_name *name) {
  if (name->source == FT_SOURCE_INITIALIZER) return true;
  if (name->source != FT_SOURCE_NODE) return false;
  const ft_onnx_node *node = &im->model.node[name->index];
  return node->domain.size == 0 && ft_span_is(node->op, "Constant");
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
  FT_OOM_IF(!im->name || !im->slot || !im->node_is_live, error);
  for (uint32_t i = 0; i < im->slot_count; i++) im->slot[i] = FT_NONE;
  return FT_OK;
}

static const char *const source_texts[] = {"graph input", "initializer", "node"};

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
  im->name[*slot] = (ft_import_name){
      .name = name, .source = source, .index = index, .value = FT_NONE, .code = FT_NONE};
  return FT_OK;
}

// From IR 4 on an initializer that is also an input is a default that the caller may
// override: it stays an input. Before, every initializer was listed so: a constant.
static ft_status add_initializer(ft_importer *im, uint32_t index, ft_error *error) {
  ft_span name = im->model.initializer[index].name;
  ft_import_name *known = name.size ? ft_import_find(im, name) : NULL;
  if (!known || known->source != FT_SOURCE_INPUT)
    return add(im, name, FT_SOURCE_INITIALIZER, index, error);
  if (im->model.ir_version >= 4) return FT_OK;
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

static ft_status check_operand(const ft_importer *im, uint32_t reader, ft_span name,
                               ft_error *error) {
  const ft_onnx_node *nodes = im->model.node;
  const ft_import_name *found = ft_import_find(im, name);
  if (!found)
    FT_FAIL(error, FT_REFUSED,
            "node %u '%.*s' (%.*s) reads '%.*s', which nothing produces", reader,
            FT_SPAN_SHOW(nodes[reader].name), FT_SPAN_SHOW(nodes[reader].op),
            FT_SPAN_SHOW(name));
  if (found->source != FT_SOURCE_NODE || found->index < reader) return FT_OK;
  FT_FAIL(
      error, FT_REFUSED,
      "node %u '%.*s' (%.*s) reads '%.*s', which node %u '%.*s' produces: a cycle, or "
      "nodes that are not sorted",
      reader, FT_SPAN_SHOW(nodes[reader].name), FT_SPAN_SHOW(nodes[reader].op),
      FT_SPAN_SHOW(name), found->index, FT_SPAN_SHOW(nodes[found->index].name));
}

static ft_status check_order(const ft_importer *im, ft_error *error) {
  for (uint32_t i = 0; i < im->model.node_count; i++) {
    const ft_onnx_node *node = &im->model.node[i];
    for (uint32_t k = 0; k < node->input_count; k++)
      if (node->input[k].size) FT_TRY(check_operand(im, i, node->input[k], error));
  }
  return FT_OK;
}

static ft_status mark_outputs(ft_importer *im, ft_error *error) {
  if (im->model.output_count == 0) FT_FAIL(error, FT_REFUSED, "the graph has no outputs");
  for (uint32_t i = 0; i < im->model.output_count; i++) {
    ft_span name = im->model.output[i].name;
    ft_import_name *found = ft_import_find(im, name);
    if (!found)
      FT_FAIL(error, FT_REFUSED, "graph output %u '%.*s' is produced by nothing", i,
              FT_SPAN_SHOW(name));
    // is_unknown marks outputs seen, for this loop only.
    if (found->is_unknown)
      FT_FAIL(error, FT_REFUSED, "'%.*s' is a graph output twice", FT_SPAN_SHOW(name));
    found->is_live = found->is_unknown = true;
  }
  for (uint32_t i = 0; i < im->model.output_count; i++)
    ft_import_find(im, im->model.output[i].name)->is_unknown = false;
  return FT_OK;
}

// Nodes are sorted, so one sweep from the last to the first finds what is needed.
static void mark_live(ft_importer *im) {
  for (uint32_t i = im->model.node_count; i-- > 0;) {
    const ft_onnx_node *node = &im->model.node[i];
    for (uint32_t k = 0; k < node->output_count; k++)
      if (node->output[k].size && ft_import_find(im, node->output[k])->is_live)
        im->node_is_live[i] = true;
    for (uint32_t k = 0; k < node->input_count && im->node_is_live[i]; k++)
      if (node->input[k].size) ft_import_find(im, node->input[k])->is_live = true;
  }
}

ft_status ft_import_resolve(ft_importer *im, ft_error *error) {
  FT_TRY(allocate(im, error));
  FT_TRY(add_all(im, error));
  FT_TRY(check_order(im, error));
  FT_TRY(mark_outputs(im, error));
  mark_live(im);
  return FT_OK;
}
