#include "search/dag.h"

#include <string.h>

// Lists of one end of the edges, grouped by the other end.
typedef struct adjacency {
  uint32_t *at, *item;
} adjacency;

static ft_status check_pairs(uint32_t count, const ft_dag_pair *pair, uint32_t pairs,
                             ft_error *error) {
  for (uint32_t i = 0; i < pairs; i++)
    if (pair[i].a >= pair[i].b || pair[i].b >= count)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "pair %u of %u primitives: %u -> %u", i, count,
              pair[i].a, pair[i].b);
  return FT_OK;
}

// Sorts each (short) list and drops what occurs twice.
static void tidy(adjacency *list, uint32_t count) {
  uint32_t kept = 0;
  for (uint32_t v = 0; v < count; v++) {
    uint32_t first = list->at[v], end = list->at[v + 1], start = kept;
    for (uint32_t i = first; i < end; i++) {
      uint32_t value = list->item[i], at = kept;
      while (at > start && list->item[at - 1] > value) at--;
      if (at > start && list->item[at - 1] == value) continue;
      memmove(&list->item[at + 1], &list->item[at], (kept - at) * sizeof(uint32_t));
      list->item[at] = value;
      kept++;
    }
    list->at[v] = start;
  }
  list->at[count] = kept;
}

static ft_status group_edges(uint32_t count, const ft_dag_pair *edge, uint32_t edges,
                             bool by_consumer, ft_arena *arena, adjacency *out,
                             ft_error *error) {
  out->at = FT_NEW_ARRAY(arena, uint32_t, (size_t)count + 2);
  out->item = FT_NEW_ARRAY(arena, uint32_t, edges);
  FT_OOM_IF(!out->at || !out->item, error);
  for (uint32_t i = 0; i < edges; i++)
    out->at[(by_consumer ? edge[i].b : edge[i].a) + 2]++;
  for (uint32_t v = 2; v <= count; v++) out->at[v] += out->at[v - 1];
  for (uint32_t i = 0; i < edges; i++) {
    uint32_t key = by_consumer ? edge[i].b : edge[i].a;
    out->item[out->at[key + 1]++] = by_consumer ? edge[i].a : edge[i].b;
  }
  tidy(out, count);
  return FT_OK;
}

static void join_near(uint64_t *back, uint64_t *front, uint32_t a, uint32_t b) {
  if (b - a > 64) return;
  back[b] |= 1ull << (64 - (b - a));
  front[a] |= 1ull << (b - a - 1);
}

static void fill_near(const adjacency *producers, uint32_t count, uint64_t *producer_back,
                      uint64_t *ancestor_back, uint64_t *back, uint64_t *front) {
  for (uint32_t v = 0; v < count; v++) {
    for (uint32_t i = producers->at[v]; i < producers->at[v + 1]; i++) {
      uint32_t p = producers->item[i], distance = v - p;
      if (distance > 64) continue;
      producer_back[v] |= 1ull << (64 - distance);
      if (distance < 64) ancestor_back[v] |= ancestor_back[p] >> distance;
      join_near(back, front, p, v);
    }
    ancestor_back[v] |= producer_back[v];
  }
}

ft_status ft_dag_make(uint32_t count, const ft_dag_pair *edge, uint32_t edge_count,
                      const ft_dag_pair *sibling, uint32_t sibling_count, ft_arena *arena,
                      ft_dag *out, ft_error *error) {
  FT_TRY(check_pairs(count, edge, edge_count, error));
  FT_TRY(check_pairs(count, sibling, sibling_count, error));
  adjacency producers, consumers;
  FT_TRY(group_edges(count, edge, edge_count, true, arena, &producers, error));
  FT_TRY(group_edges(count, edge, edge_count, false, arena, &consumers, error));
  uint64_t *word = FT_NEW_ARRAY(arena, uint64_t, (size_t)count * 4);
  FT_OOM_IF(!word, error);
  uint64_t *producer_back = word, *ancestor_back = word + count;
  uint64_t *back = word + (size_t)count * 2, *front = word + (size_t)count * 3;
  fill_near(&producers, count, producer_back, ancestor_back, back, front);
  for (uint32_t i = 0; i < sibling_count; i++)
    join_near(back, front, sibling[i].a, sibling[i].b);
  *out = (ft_dag){.count = count,
                  .producer_at = producers.at,
                  .producer = producers.item,
                  .consumer_at = consumers.at,
                  .consumer = consumers.item,
                  .producer_back = producer_back,
                  .ancestor_back = ancestor_back,
                  .neighbour_back = back,
                  .neighbour_front = front};
  return FT_OK;
}

typedef struct pair_list {
  ft_dag_pair *pair;
  size_t count, capacity;
} pair_list;

static ft_status push(pair_list *list, uint32_t a, uint32_t b, ft_arena *arena,
                      ft_error *error) {
  FT_OOM_IF(FT_GROW(arena, &list->pair, list->count, &list->capacity), error);
  list->pair[list->count++] = (ft_dag_pair){a, b};
  return FT_OK;
}

static ft_status collect_edges(const ft_graph *graph, ft_arena *arena, pair_list *list,
                               ft_error *error) {
  for (uint32_t v = 0; v < graph->primitive_count; v++) {
    const ft_primitive *primitive = &graph->primitive[v];
    for (uint32_t i = 0; i < primitive->input_count; i++) {
      uint32_t producer = graph->value[primitive->input[i]].producer;
      if (producer != FT_NONE) FT_TRY(push(list, producer, v, arena, error));
    }
  }
  return FT_OK;
}

static ft_status collect_siblings(const ft_graph *graph, ft_arena *arena, pair_list *list,
                                  ft_error *error) {
  for (uint32_t r = 0; r < graph->value_count; r++) {
    const ft_value *root = &graph->value[r];
    if (root->root != r || ft_value_is_immediate(graph, r)) continue;
    for (uint32_t i = 0; i < root->consumer_count; i++)
      for (uint32_t j = i + 1; j < root->consumer_count; j++) {
        if (root->consumer[j] - root->consumer[i] > 64) break;
        FT_TRY(push(list, root->consumer[i], root->consumer[j], arena, error));
      }
  }
  return FT_OK;
}

ft_status ft_dag_of_graph(const ft_graph *graph, ft_arena *arena, ft_dag *out,
                          ft_error *error) {
  pair_list edges = {0}, siblings = {0};
  FT_TRY(collect_edges(graph, arena, &edges, error));
  FT_TRY(collect_siblings(graph, arena, &siblings, error));
  return ft_dag_make(graph->primitive_count, edges.pair, (uint32_t)edges.count,
                     siblings.pair, (uint32_t)siblings.count, arena, out, error);
}

bool ft_dag_reaches(const ft_dag *dag, uint32_t from, uint32_t to, uint8_t *seen) {
  if (from >= to) return from == to;
  // Edges go up, so one sweep from |from| to |to| marks all it reaches.
  memset(seen + from, 0, to - from + 1);
  seen[from] = 1;
  for (uint32_t v = from; v < to; v++) {
    if (!seen[v]) continue;
    for (uint32_t i = dag->consumer_at[v]; i < dag->consumer_at[v + 1]; i++)
      if (dag->consumer[i] <= to) seen[dag->consumer[i]] = 1;
  }
  return seen[to];
}
