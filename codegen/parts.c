#include "codegen/parts.h"

// Primitives by their position in the group; |owner| is a forest of them, each pointing
// to an earlier one of its part or to itself.
typedef struct forest {
  const ft_group *group;
  uint32_t *owner;  // [primitive_count]
  uint32_t *at;     // [graph's primitives] position in the group, FT_NONE: outside
} forest;

static uint32_t root_of(const forest *f, uint32_t i) {
  while (f->owner[i] != i) i = f->owner[i];
  return i;
}

static void unite(forest *f, uint32_t a, uint32_t b) {
  uint32_t x = root_of(f, a), y = root_of(f, b);
  f->owner[x > y ? x : y] = x < y ? x : y;
}

static void unite_with_operands(forest *f, uint32_t i) {
  const ft_graph *graph = f->group->graph;
  const ft_primitive *p = &graph->primitive[f->group->primitive[i]];
  for (uint32_t k = 0; k < p->input_count; k++) {
    uint32_t producer = graph->value[graph->value[p->input[k]].root].producer;
    if (producer != FT_NONE && f->at[producer] != FT_NONE) unite(f, i, f->at[producer]);
  }
}

static ft_status grow_forest(const ft_group *group, ft_arena *arena, forest *out,
                             ft_error *error) {
  *out = (forest){.group = group};
  out->owner = FT_NEW_ARRAY(arena, uint32_t, group->primitive_count);
  out->at = FT_NEW_ARRAY(arena, uint32_t, group->graph->primitive_count);
  FT_OOM_IF(!out->owner || !out->at, error);
  for (uint32_t i = 0; i < group->graph->primitive_count; i++) out->at[i] = FT_NONE;
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    out->owner[i] = i;
    out->at[group->primitive[i]] = i;
  }
  for (uint32_t i = 0; i < group->primitive_count; i++) unite_with_operands(out, i);
  return FT_OK;
}

static uint32_t count_roots(const forest *f) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < f->group->primitive_count; i++) count += f->owner[i] == i;
  return count;
}

ft_status ft_parts_count(const ft_workload *workload, ft_arena *arena, uint32_t *out,
                         ft_error *error) {
  forest f;
  FT_TRY(grow_forest(&workload->group, arena, &f, error));
  *out = count_roots(&f);
  return FT_OK;
}

static uint32_t position_in(const uint32_t *list, uint32_t count, uint32_t root) {
  uint32_t i = 0;
  while (i < count && list[i] != root) i++;
  FT_ASSERT(i < count);
  return i;
}

// A part's inputs and outputs are the whole's: no edge leads from part to part.
static ft_status map_arguments(const ft_group *whole, ft_part *part, ft_arena *arena,
                               ft_error *error) {
  const ft_group *own = &part->workload.group;
  uint32_t inputs = own->input_count, all = inputs + own->output_count;
  part->argument = FT_NEW_ARRAY(arena, uint32_t, all + 1);
  FT_OOM_IF(!part->argument, error);
  for (uint32_t i = 0; i < inputs; i++)
    part->argument[i] = position_in(whole->input, whole->input_count, own->input[i]);
  for (uint32_t i = inputs; i < all; i++)
    part->argument[i] =
        whole->input_count +
        position_in(whole->output, whole->output_count, own->output[i - inputs]);
  part->argument[all] = whole->input_count + whole->output_count;
  return FT_OK;
}

static ft_status make_part(const forest *f, uint32_t root, ft_arena *arena, ft_part *out,
                           ft_error *error) {
  const ft_group *whole = f->group;
  ft_group group;
  uint32_t count = 0;
  uint32_t *list = FT_NEW_ARRAY(arena, uint32_t, whole->primitive_count);
  FT_OOM_IF(!list, error);
  for (uint32_t i = root; i < whole->primitive_count; i++)
    if (root_of(f, i) == root) list[count++] = whole->primitive[i];
  FT_TRY(ft_group_make(whole->graph, list, count, arena, &group, error));
  FT_TRY(ft_workload_make(&group, arena, &out->workload, error));
  return map_arguments(whole, out, arena, error);
}

ft_status ft_parts_make(const ft_workload *workload, ft_arena *arena, ft_parts *out,
                        ft_error *error) {
  forest f;
  *out = (ft_parts){0};
  FT_TRY(grow_forest(&workload->group, arena, &f, error));
  for (uint32_t i = 0; i < workload->group.primitive_count; i++) {
    if (f.owner[i] != i) continue;
    if (out->count < FT_MOST_PARTS)
      FT_TRY(make_part(&f, i, arena, &out->part[out->count], error));
    out->count++;
  }
  return FT_OK;
}
