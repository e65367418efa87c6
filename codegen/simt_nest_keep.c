// What each pass over the reduced axes needs, and which values wait for later passes.
//
//  1. A pass starts from its reductions' operands and from the outputs it stores. What is
//     reached from there without crossing a reduction is its cone.
//  2. Only what varies along a reduced axis is computed in a pass; the rest stands
//  outside.
//  3. A value that a pass takes from an earlier one was in that one's cone, so it is
//     computed there; whatever lies under it is not needed again for its sake.
#include "codegen/simt_nest_plan.h"

typedef struct keeping {
  const ft_simt_plan *plan;
  bool *is_needed, *is_kept;
  uint32_t *last;     // [node] pass that needs it last, of those that take it from others
  bool keeps_values;  // else inputs alone
} keeping;

uint32_t ft_simt_plan_store_pass(const ft_simt_plan *p, uint32_t output) {
  return p->ir->node[p->ir->output[output].node].level + 1;
}

static bool is_inner(const ft_simt_plan *p, const ft_output *out) {
  return (out->domain & p->ir->reduced) != 0;
}

// Whether the node is computed in passes: invariant 2.
static bool is_walked(const ft_simt_plan *p, uint32_t node) {
  const ft_node *n = &p->ir->node[node];
  bool computes = n->kind == FT_NODE_LOAD || n->kind == FT_NODE_COMPUTE;
  return computes && (n->mask & p->ir->reduced);
}

static bool waits(const keeping *k, uint32_t node, uint32_t pass) {
  uint32_t first = k->plan->first[node];
  if (!k->plan->choice.buffer || !first || first >= pass) return false;
  return k->keeps_values || k->plan->ir->node[node].kind == FT_NODE_LOAD;
}

// What |node| takes in |pass|: marked in is_needed, or kept.
static void take(keeping *k, uint32_t node, uint32_t pass) {
  const ft_simt_plan *p = k->plan;
  bool *needed = &k->is_needed[(size_t)pass * p->ir->node_count];
  if (!is_walked(p, node) || needed[node]) return;
  if (waits(k, node, pass)) {
    k->is_kept[node] = true;
    k->last[node] = pass;
    return;
  }
  needed[node] = true;
  const ft_node *n = &p->ir->node[node];
  for (uint32_t i = 0; i < n->operand_count; i++) take(k, n->operand[i], pass);
}

static void take_roots(keeping *k, uint32_t pass) {
  const ft_group_ir *ir = k->plan->ir;
  for (uint32_t i = 0; i < ir->node_count; i++)
    if (ir->node[i].kind == FT_NODE_REDUCE && ir->node[i].level == pass)
      take(k, ir->node[i].operand[0], pass);
  for (uint32_t i = 0; i < ir->output_count; i++)
    if (is_inner(k->plan, &ir->output[i]) && ft_simt_plan_store_pass(k->plan, i) == pass)
      take(k, ir->output[i].node, pass);
}

static bool keeping_open(keeping *k, const ft_simt_plan *p, ft_arena *arena) {
  uint32_t nodes = p->ir->node_count;
  *k = (keeping){.plan = p};
  k->is_needed = FT_NEW_ARRAY(arena, bool, (size_t)(p->passes + 1) * nodes);
  k->is_kept = FT_NEW_ARRAY(arena, bool, nodes);
  k->last = FT_NEW_ARRAY(arena, uint32_t, nodes);
  return k->is_needed && k->is_kept && k->last;
}

static void take_all(keeping *k, bool keeps_values) {
  k->keeps_values = keeps_values;
  for (uint32_t pass = 1; pass <= k->plan->passes; pass++) take_roots(k, pass);
}

static int64_t words(const ft_simt_plan *p, uint32_t node) {
  const ft_node *n = &p->ir->node[node];
  size_t bytes = ft_dtype_bytes(ft_kir_math_dtype(n->dtype));
  return (int64_t)(bytes + 3) / 4 * (ft_simt_plan_varies(p, n->mask) ? p->lanes : 1);
}

// The most that waits between two passes.
static int64_t most_words(const keeping *k) {
  int64_t most = 0;
  for (uint32_t pass = 1; pass < k->plan->passes; pass++) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < k->plan->ir->node_count; i++)
      if (k->is_kept[i] && k->plan->first[i] <= pass && k->last[i] > pass)
        sum += words(k->plan, i);
    if (sum > most) most = sum;
  }
  return most;
}

// The first pass that has each value, nothing kept.
static void note_first(ft_simt_plan *p, const keeping *k) {
  for (uint32_t pass = p->passes; pass >= 1; pass--)
    for (uint32_t i = 0; i < p->ir->node_count; i++)
      if (k->is_needed[(size_t)pass * p->ir->node_count + i]) p->first[i] = pass;
}

static bool fits(const ft_simt_plan *p, uint32_t node, uint32_t place) {
  const ft_node *a = &p->ir->node[node], *b = &p->ir->node[place];
  return ft_kir_math_dtype(a->dtype) == ft_kir_math_dtype(b->dtype) &&
         ft_simt_plan_varies(p, a->mask) == ft_simt_plan_varies(p, b->mask);
}

// A step of a pass takes all it needs before it leaves anything, so a place is free again
// in the last pass that needs it. |last| of a node with a place becomes the place's.
static void find_home(ft_simt_plan *p, keeping *k, uint32_t node) {
  p->home[node] = node;
  for (uint32_t i = 0; i < p->ir->node_count; i++) {
    bool is_place = i != node && k->is_kept[i] && p->home[i] == i;
    bool is_free =
        is_place && p->first[i] < p->first[node] && k->last[i] <= p->first[node];
    if (!is_free || !fits(p, node, i)) continue;
    p->home[node] = i;
    k->last[i] = k->last[node];
    return;
  }
}

static void find_homes(ft_simt_plan *p, keeping *k) {
  for (uint32_t pass = 1; pass <= p->passes; pass++)
    for (uint32_t i = 0; i < p->ir->node_count; i++)
      if (k->is_kept[i] && p->first[i] == pass) find_home(p, k, i);
}

const char *ft_simt_plan_passes(ft_simt_plan *p, ft_arena *arena) {
  keeping all, values, inputs;
  p->first = FT_NEW_ARRAY(arena, uint32_t, p->ir->node_count);
  p->home = FT_NEW_ARRAY(arena, uint32_t, p->ir->node_count);
  if (!p->first || !p->home || !keeping_open(&all, p, arena) ||
      !keeping_open(&values, p, arena) || !keeping_open(&inputs, p, arena))
    return "out of memory";
  take_all(&all, false);  // nothing waits: |first| is empty
  note_first(p, &all);
  take_all(&values, true);
  take_all(&inputs, false);
  keeping *less = most_words(&values) <= most_words(&inputs) ? &values : &inputs;
  p->kept_words = most_words(less);
  p->is_needed = less->is_needed;
  p->is_kept = less->is_kept;
  find_homes(p, less);
  if (p->choice.buffer && !p->kept_words) return "no pass needs a value of another";
  return NULL;
}
