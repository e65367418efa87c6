// Which values of a row a pass leaves in scratch memory for later ones: those that cost
// more to compute again than to store and load.
#include "codegen/expressions.h"
#include "codegen/nest.h"

enum { MAX_BUFFERED_BYTES = 1 << 20, HEAVY = 4, WORTH = 2 };

typedef struct keeping {
  const ft_nest *nest;
  const ft_group_ir *ir;
  bool *cone;              // [node] of the walk at hand
  uint32_t *first, *last;  // [node] passes that need it, 0: none
  bool *is_kept;           // [node]
  bool *is_used;           // [node] a later pass reaches it
} keeping;

// Marks what |pass| computes |node| from, itself included: not what reductions are
// computed from, nor what values are that earlier passes keep.
static void mark_cone(keeping *k, uint32_t node, uint32_t pass) {
  for (uint32_t i = 0; i < k->ir->node_count; i++) k->cone[i] = i == node;
  for (uint32_t i = node + 1; i-- > 0;) {
    const ft_node *n = &k->ir->node[i];
    if (!k->cone[i] || n->kind == FT_NODE_REDUCE) continue;
    if (i != node && k->is_kept[i] && k->first[i] < pass) continue;
    for (uint32_t o = 0; o < n->operand_count; o++) k->cone[n->operand[o]] = true;
  }
}

typedef void visit(keeping *k, uint32_t node, uint32_t pass);

// Calls |see| for every value that a pass computes from: of reductions and of outputs.
static void each_root(keeping *k, visit *see) {
  for (uint32_t i = 0; i < k->ir->node_count; i++) {
    const ft_node *n = &k->ir->node[i];
    if (n->kind == FT_NODE_REDUCE) see(k, n->operand[0], n->level);
  }
  for (uint32_t i = 0; i < k->ir->output_count; i++) {
    if (k->ir->output[i].domain & k->nest->reduced)
      see(k, k->ir->output[i].node, ft_nest_store_pass(k->nest, i));
  }
}

static void note_pass(keeping *k, uint32_t node, uint32_t pass) {
  mark_cone(k, node, 0);
  for (uint32_t i = 0; i < k->ir->node_count; i++) {
    if (!k->cone[i]) continue;
    if (!k->first[i] || pass < k->first[i]) k->first[i] = pass;
    if (pass > k->last[i]) k->last[i] = pass;
  }
}

// Kept values that |pass| loads, not computed in it.
static void note_use(keeping *k, uint32_t node, uint32_t pass) {
  bool is_loaded = k->is_kept[node] && k->first[node] < pass;
  mark_cone(k, node, pass);
  for (uint32_t i = is_loaded ? node : 0; i <= node; i++) {
    if (k->cone[i] && k->is_kept[i] && k->first[i] < pass) k->is_used[i] = true;
  }
}

// Loads over the row that it would take to compute |node| again, heavy steps as several.
static uint32_t cost(keeping *k, uint32_t node) {
  uint32_t sum = 0;
  mark_cone(k, node, UINT32_MAX);
  for (uint32_t i = 0; i <= node; i++) {
    const ft_node *n = &k->ir->node[i];
    if (!k->cone[i] || !(n->mask & k->nest->reduced)) continue;
    bool is_read = n->kind == FT_NODE_LOAD || (i != node && k->is_kept[i]);
    bool is_heavy = n->kind == FT_NODE_COMPUTE && ft_expression_is_heavy(n->op);
    sum += is_read ? 1 : is_heavy ? HEAVY : 0;
  }
  return sum;
}

static bool is_candidate(keeping *k, uint32_t node) {
  const ft_node *n = &k->ir->node[node];
  int64_t extent = k->ir->extent[k->nest->vector_axis];
  return n->kind == FT_NODE_COMPUTE && (n->mask & k->nest->reduced) && k->first[node] &&
         k->last[node] > k->first[node] &&
         extent * (int64_t)ft_dtype_bytes(ft_kir_math_dtype(n->dtype)) <=
             MAX_BUFFERED_BYTES;
}

void ft_nest_choose_kept(ft_nest *nest, const char **wrong, ft_arena *arena) {
  uint32_t nodes = nest->ir->node_count;
  keeping k = {.nest = nest, .ir = nest->ir};
  k.cone = FT_NEW_ARRAY(arena, bool, nodes);
  k.first = FT_NEW_ARRAY(arena, uint32_t, nodes);
  k.last = FT_NEW_ARRAY(arena, uint32_t, nodes);
  k.is_kept = FT_NEW_ARRAY(arena, bool, nodes);
  k.is_used = FT_NEW_ARRAY(arena, bool, nodes);
  *wrong = "out of memory";
  if (!k.cone || !k.first || !k.last || !k.is_kept || !k.is_used) return;
  each_root(&k, note_pass);
  for (uint32_t i = 0; i < nodes; i++)
    k.is_kept[i] = is_candidate(&k, i) && cost(&k, i) >= WORTH;
  each_root(&k, note_use);
  *wrong = "nothing is worth a buffer";
  for (uint32_t i = 0; i < nodes; i++) {
    if (k.is_used[i]) *wrong = NULL;
  }
  nest->is_buffered = k.is_used;
}
