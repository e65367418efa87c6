// Where a plan's values lie.
//
//  1. Every graph input has a buffer, used or not; constants have one when a group reads
//     them or a graph output is one; every value that a group puts out has one. Views
//     have none: they are their root's.
//  2. A value is live from the position of the group that makes it to that of the last
//     group that reads it, both included: a kernel's outputs never lie on its inputs.
//  3. Two intermediates that are live at one position do not overlap in the workspace.
//  4. The workspace is never larger than all intermediates side by side.
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"

enum { ALIGN = 64 };
#define MAX_BYTES (UINT64_C(1) << 62)

typedef struct layout {
  const ft_graph *graph;
  const ft_partition *partition;
  const ft_workload *workload;
  ft_arena *arena;
  ft_plan *plan;
  uint32_t *owner;   // [primitives] group position
  uint32_t *buffer;  // [values] buffer id of a root, FT_NONE
} layout;

// ---- who owns what

static ft_status find_owners(layout *l, ft_error *error) {
  memset(l->owner, 0xff, l->graph->primitive_count * sizeof *l->owner);
  for (uint32_t g = 0; g < l->partition->group_count; g++) {
    const ft_group *group = &l->partition->group[g];
    for (uint32_t i = 0; i < group->primitive_count; i++)
      l->owner[group->primitive[i]] = g;
  }
  for (uint32_t g = 0; g < l->partition->group_count; g++) {
    const ft_group *made = &l->workload[g].group;
    bool is_same = made->primitive_count == l->partition->group[g].primitive_count;
    for (uint32_t i = 0; is_same && i < made->primitive_count; i++)
      is_same = made->primitive[i] < l->graph->primitive_count &&
                l->owner[made->primitive[i]] == g;
    if (!is_same)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "workload %u is not that of group %u", g, g);
  }
  return FT_OK;
}

// ---- the list of buffers

// The graph holds no value past 2^62 bytes.
static uint64_t value_bytes(const ft_value *value) {
  int64_t elements = ft_shape_elements(&value->shape);
  FT_ASSERT(elements >= 0 &&
            (uint64_t)elements <= MAX_BYTES / ft_dtype_bytes(value->dtype));
  return (uint64_t)elements * ft_dtype_bytes(value->dtype);
}

static void add_buffer(layout *l, uint32_t root, ft_plan_buffer_role role) {
  if (l->buffer[root] != FT_NONE) return;
  l->buffer[root] = l->plan->buffer_count;
  l->plan->buffer[l->plan->buffer_count++] = (ft_plan_buffer){
      .value = root,
      .role = role,
      .bytes = value_bytes(&l->graph->value[root]),
      .offset = UINT64_MAX,
  };
}

// |wanted|: per value, a buffer of |role| is needed.
static void add_wanted(layout *l, const bool *wanted, ft_plan_buffer_role role) {
  for (uint32_t v = 0; v < l->graph->value_count; v++)
    if (wanted[v]) add_buffer(l, v, role);
}

static ft_status add_all(layout *l, ft_error *error) {
  const ft_graph *g = l->graph;
  bool *constant = FT_NEW_ARRAY(l->arena, bool, g->value_count);
  bool *inner = FT_NEW_ARRAY(l->arena, bool, g->value_count);
  FT_OOM_IF(!constant || !inner, error);
  for (uint32_t i = 0; i < l->partition->group_count; i++) {
    const ft_group *group = &l->workload[i].group;
    for (uint32_t k = 0; k < group->input_count; k++)
      if (g->value[group->input[k]].role == FT_ROLE_CONSTANT)
        constant[group->input[k]] = true;
    for (uint32_t k = 0; k < group->output_count; k++) inner[group->output[k]] = true;
  }
  for (uint32_t i = 0; i < g->output_count; i++) {
    uint32_t root = g->value[g->output[i].value].root;
    if (g->value[root].role == FT_ROLE_CONSTANT) constant[root] = true;
  }
  for (uint32_t i = 0; i < g->input_count; i++)
    add_buffer(l, g->value[g->input[i].value].root, FT_PLAN_INPUT);
  add_wanted(l, constant, FT_PLAN_CONSTANT);
  for (uint32_t i = 0; i < g->output_count; i++) {
    uint32_t root = g->value[g->output[i].value].root;
    if (g->value[root].role == FT_ROLE_COMPUTED) add_buffer(l, root, FT_PLAN_OUTPUT);
  }
  add_wanted(l, inner, FT_PLAN_INTERMEDIATE);
  return FT_OK;
}

static ft_status name_ends(layout *l, ft_error *error) {
  const ft_graph *g = l->graph;
  uint32_t *input = FT_NEW_ARRAY(l->arena, uint32_t, g->input_count);
  uint32_t *output = FT_NEW_ARRAY(l->arena, uint32_t, g->output_count);
  FT_OOM_IF(!input || !output, error);
  for (uint32_t i = 0; i < g->input_count; i++)
    input[i] = l->buffer[g->value[g->input[i].value].root];
  for (uint32_t i = 0; i < g->output_count; i++)
    output[i] = l->buffer[g->value[g->output[i].value].root];
  l->plan->input_buffer = input;
  l->plan->output_buffer = output;
  return FT_OK;
}

// ---- arguments and order

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static ft_status find_depends(layout *l, ft_plan_group *out, ft_error *error) {
  const ft_group *group = &out->workload.group;
  uint32_t *depend = FT_NEW_ARRAY(l->arena, uint32_t, group->input_count);
  FT_OOM_IF(!depend, error);
  uint32_t found = 0, kept = 0;
  for (uint32_t k = 0; k < group->input_count; k++) {
    uint32_t producer = l->graph->value[group->input[k]].producer;
    if (producer != FT_NONE) depend[found++] = l->owner[producer];
  }
  if (found) qsort(depend, found, sizeof *depend, ascending);
  for (uint32_t k = 0; k < found; k++)
    if (kept == 0 || depend[kept - 1] != depend[k]) depend[kept++] = depend[k];
  out->depend = depend;
  out->depend_count = kept;
  return FT_OK;
}

static ft_status fill_group(layout *l, uint32_t position, ft_error *error) {
  ft_plan_group *out = &l->plan->group[position];
  *out = (ft_plan_group){
      .workload = l->workload[position],
      .predicted_ns = -1,
      .roofline_ns = -1,
      .facts = {-1, -1, -1, -1, -1, -1, -1},
  };
  const ft_group *group = &out->workload.group;
  size_t count = (size_t)group->input_count + group->output_count;
  uint32_t *argument = FT_NEW_ARRAY(l->arena, uint32_t, count);
  FT_OOM_IF(!argument, error);
  for (size_t k = 0; k < count; k++) {
    uint32_t root =
        k < group->input_count ? group->input[k] : group->output[k - group->input_count];
    argument[k] = l->buffer[root];
    if (argument[k] == FT_NONE)
      FT_FAIL(error, FT_INVALID_ARGUMENT,
              "group %u reads '%.200s', which no group puts out", position,
              l->graph->value[root].name);
  }
  out->argument = argument;
  return find_depends(l, out, error);
}

// ---- the workspace

typedef struct block {
  uint32_t buffer, first, last;  // live at positions [first, last]
  uint64_t size, offset;
} block;

// Large ones first: they are the hard ones to place (Pisarchyk and Lee, "Efficient Memory
// Management for Deep Neural Net Inference", 2020).
static int by_size(const void *a, const void *b) {
  const block *x = a, *y = b;
  if (x->size != y->size) return x->size < y->size ? 1 : -1;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

// The lowest offset where |it| fits between those of |placed| (by offset) that live
// together with it.
static uint64_t first_fit(const block *placed, uint32_t count, const block *it) {
  uint64_t offset = 0;
  for (uint32_t i = 0; i < count; i++) {
    const block *other = &placed[i];
    if (other->last < it->first || it->last < other->first) continue;
    if (offset + it->size <= other->offset) break;
    if (other->offset + other->size > offset) offset = other->offset + other->size;
  }
  return offset;
}

static void place(block *placed, uint32_t count, block it) {
  uint32_t at = count;
  while (at > 0 && placed[at - 1].offset > it.offset) at--;
  memmove(&placed[at + 1], &placed[at], (count - at) * sizeof *placed);
  placed[at] = it;
}

static uint32_t last_reader(const layout *l, uint32_t root) {
  const ft_value *value = &l->graph->value[root];
  uint32_t last = l->owner[value->producer];
  for (uint32_t i = 0; i < value->consumer_count; i++)
    if (l->owner[value->consumer[i]] > last) last = l->owner[value->consumer[i]];
  return last;
}

static ft_status fill_workspace(layout *l, ft_error *error) {
  ft_plan *plan = l->plan;
  block *block_ = FT_NEW_ARRAY(l->arena, block, plan->buffer_count);
  block *placed = FT_NEW_ARRAY(l->arena, block, plan->buffer_count);
  FT_OOM_IF(!block_ || !placed, error);
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const ft_plan_buffer *b = &plan->buffer[i];
    if (b->role != FT_PLAN_INTERMEDIATE) continue;
    block_[count++] = (block){.buffer = i,
                              .first = l->owner[l->graph->value[b->value].producer],
                              .last = last_reader(l, b->value),
                              .size = (b->bytes + ALIGN - 1) / ALIGN * ALIGN};
  }
  qsort(block_, count, sizeof *block_, by_size);
  for (uint32_t i = 0; i < count; i++) {
    block *it = &block_[i];
    it->offset = first_fit(placed, i, it);
    if (it->offset + it->size > MAX_BYTES)
      FT_FAIL(error, FT_REFUSED, "the intermediates take more than 2^62 bytes");
    place(placed, i, *it);
    plan->buffer[it->buffer].offset = it->offset;
    if (it->offset + it->size > plan->workspace_bytes)
      plan->workspace_bytes = it->offset + it->size;
  }
  return FT_OK;
}

static ft_status fill_peak(ft_plan *plan, ft_error *error) {
  plan->peak_bytes = plan->workspace_bytes;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (plan->buffer[i].role == FT_PLAN_INTERMEDIATE) continue;
    plan->peak_bytes += plan->buffer[i].bytes;
    if (plan->peak_bytes > MAX_BYTES)
      FT_FAIL(error, FT_REFUSED, "the buffers take more than 2^62 bytes");
  }
  return FT_OK;
}

static ft_status lay_out(layout *l, ft_error *error) {
  FT_TRY(find_owners(l, error));
  FT_TRY(add_all(l, error));
  FT_TRY(name_ends(l, error));
  for (uint32_t i = 0; i < l->plan->group_count; i++) FT_TRY(fill_group(l, i, error));
  FT_TRY(fill_workspace(l, error));
  return fill_peak(l->plan, error);
}

ft_status ft_plan_make(const ft_partition *partition, const ft_workload *workload,
                       const ft_target *target, ft_arena *arena, ft_plan *out,
                       ft_error *error) {
  const ft_graph *g = partition->graph;
  *out = (ft_plan){.graph = g,
                   .target = target,
                   .strategy = "",
                   .group_count = partition->group_count,
                   .buffer = FT_NEW_ARRAY(arena, ft_plan_buffer, g->value_count),
                   .group = FT_NEW_ARRAY(arena, ft_plan_group, partition->group_count)};
  layout l = {.graph = g,
              .partition = partition,
              .workload = workload,
              .arena = arena,
              .plan = out,
              .owner = FT_NEW_ARRAY(arena, uint32_t, g->primitive_count),
              .buffer = FT_NEW_ARRAY(arena, uint32_t, g->value_count)};
  FT_OOM_IF(!out->buffer || !out->group || !l.owner || !l.buffer, error);
  memset(l.buffer, 0xff, g->value_count * sizeof *l.buffer);
  return lay_out(&l, error);
}
