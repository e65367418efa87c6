// What the contract tactic takes, and how a choice is worked out.
#include "codegen/contract.h"

#include <math.h>

#include "codegen/contract_emit.h"
#include "codegen/expressions.h"

enum {
  MOST_PRIMITIVES = 64,
  MOST_VISITS = 64,       // of an element of a prologue
  MOST_HEAVY_VISITS = 8,  // when it is expensive
  MOST_ROWS = 16,
  MOST_SUMS = 64,
  MOST_SCRATCH_BYTES = 16 << 20,
};

static const char *name_of(const ft_primitive *p) {
  return ft_op_describe(p->op)->name;
}

static ft_op_class class_of(const ft_primitive *p) {
  return ft_op_describe(p->op)->class;
}

static const ft_primitive *member(const ft_group *group, uint32_t i) {
  return &group->graph->primitive[group->primitive[i]];
}

static const ft_primitive *anchor_of(const ft_group *group) {
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    if (class_of(member(group, i)) == FT_CLASS_M) return member(group, i);
  }
  return NULL;
}

static int64_t elements_of(const ft_graph *graph, uint32_t value) {
  return ft_shape_elements(&graph->value[value].shape);
}

// ---- the problem
// ------------------------------------------------------------------------

static int64_t product(const ft_shape *shape, int from, int to) {
  int64_t p = 1;
  for (int i = from; i < to; i++) p *= shape->dim[i];
  return p;
}

static void matmul_problem(ft_contract *c, const ft_graph *graph) {
  const ft_primitive *p = c->anchor;
  const ft_shape *a = &graph->value[p->input[0]].shape,
                 *b = &graph->value[p->input[1]].shape;
  const ft_shape *out = &graph->value[p->output].shape;
  c->operand[0] = p->input[0];
  c->operand[1] = p->input[1];
  c->batches = product(out, 0, out->rank - 2);
  c->m = out->dim[out->rank - 2];
  c->n = out->dim[out->rank - 1];
  c->k = a->dim[a->rank - 1];
  // Then A has all of the result's batch.
  c->is_folded = product(b, 0, b->rank - 2) == 1;
  if (!c->is_folded) return;
  c->m *= c->batches;
  c->batches = 1;
}

// Output point n reads input point n.
static bool is_pointwise(const ft_primitive *p, const ft_shape *x, const ft_shape *w,
                         const ft_shape *out) {
  for (int i = 2; i < x->rank; i++) {
    if (w->dim[i] != 1 || x->dim[i] != out->dim[i]) return false;
    if (p->attr.start[i - 2] || p->attr.stride[i - 2] != 1) return false;
  }
  return true;
}

static bool has_padding(const ft_primitive *p, const ft_shape *x, const ft_shape *w,
                        const ft_shape *out) {
  for (int i = 2; i < x->rank; i++) {
    const ft_attr *a = &p->attr;
    int64_t reach = (w->dim[i] - 1) * a->dilation[i - 2];
    int64_t last = (out->dim[i] - 1) * a->stride[i - 2] - a->start[i - 2] + reach;
    if (a->start[i - 2] > 0 || last >= x->dim[i]) return true;
  }
  return false;
}

static void conv_problem(ft_contract *c, const ft_graph *graph) {
  const ft_primitive *p = c->anchor;
  const ft_shape *x = &graph->value[p->input[0]].shape,
                 *w = &graph->value[p->input[1]].shape;
  const ft_shape *out = &graph->value[p->output].shape;
  c->operand[0] = p->input[1];
  c->operand[1] = p->input[0];
  c->batches = out->dim[0];
  c->m = out->dim[1];
  c->n = product(out, 2, out->rank);
  c->k = product(w, 1, w->rank);
  c->is_image = !is_pointwise(p, x, w, out);
  c->has_padding = has_padding(p, x, w, out);
}

ft_contract ft_contract_problem(const ft_workload *workload) {
  ft_contract c = {.workload = workload, .anchor = anchor_of(&workload->group)};
  if (c.anchor->op == FT_OP_MATMUL)
    matmul_problem(&c, workload->group.graph);
  else
    conv_problem(&c, workload->group.graph);
  c.is_empty = !c.batches || !c.m || !c.n;
  c.segment = c.n;
  c.k_segment = c.k;
  c.k_lanes = 1;
  return c;
}

// ---- what is taken
// ------------------------------------------------------------------------

// What a value has to do with the anchor.
typedef enum side { NEITHER, BEFORE, AFTER } side;

static bool follows_anchor(ft_op op) {
  return ft_op_describe(op)->class == FT_CLASS_E || op == FT_OP_TRANSPOSE;
}

static bool is_remap_inside(ft_op op) {
  return follows_anchor(op) || op == FT_OP_BROADCAST || op == FT_OP_SLICE;
}

static const char *member_refusal(const ft_group *group, const ft_primitive *p,
                                  const bool *depends, ft_arena *arena) {
  const ft_graph *graph = group->graph;
  const ft_primitive *anchor = anchor_of(group);
  if (p == anchor) return NULL;
  if (class_of(p) == FT_CLASS_M)
    return ft_arena_printf(arena, "%s beside %s: one contraction", name_of(p),
                           name_of(anchor));
  bool is_after = depends[p->output];
  if (!(is_after ? follows_anchor(p->op) : is_remap_inside(p->op)))
    return ft_arena_printf(arena, "%s %s %s is no part of a contraction", name_of(p),
                           is_after ? "after" : "beside", name_of(anchor));
  if (is_after && elements_of(graph, p->output) != elements_of(graph, anchor->output))
    return ft_arena_printf(arena, "%s makes %lld elements of the %lld of %s", name_of(p),
                           (long long)elements_of(graph, p->output),
                           (long long)elements_of(graph, anchor->output),
                           name_of(anchor));
  return NULL;
}

static const char *anchor_refusal(const ft_group *group, const ft_primitive *anchor,
                                  ft_arena *arena) {
  const ft_graph *graph = group->graph;
  ft_dtype dtype = graph->value[anchor->output].dtype;
  if (dtype != FT_F32)
    return ft_arena_printf(arena, "%s of %s is not blocked", name_of(anchor),
                           ft_dtype_text(dtype));
  if (anchor->op == FT_OP_CONV && anchor->attr.groups != 1)
    return ft_arena_printf(arena, "conv in %lld groups is not blocked",
                           (long long)anchor->attr.groups);
  for (int i = 0; i < 2; i++) {
    if (graph->value[anchor->input[i]].shape.rank >= FT_MAX_RANK)
      return ft_arena_printf(arena, "%s of rank %d", name_of(anchor), FT_MAX_RANK);
  }
  return NULL;
}

// [value] whether it comes from the anchor.
static bool *find_dependents(const ft_group *group, ft_arena *arena) {
  bool *depends = FT_NEW_ARRAY(arena, bool, group->graph->value_count);
  for (uint32_t i = 0; depends && i < group->primitive_count; i++) {
    const ft_primitive *p = member(group, i);
    depends[p->output] = p == anchor_of(group);
    for (uint32_t k = 0; k < p->input_count; k++)
      depends[p->output] |= depends[group->graph->value[p->input[k]].root];
  }
  return depends;
}

static const char *shape_refusal(const ft_group *group, ft_arena *arena) {
  bool *depends = find_dependents(group, arena);
  if (!depends) return "out of memory";
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = member(group, i);
    const char *wrong = ft_loop_dtype_refusal(group->graph, p, arena);
    if (!wrong) wrong = member_refusal(group, p, depends, arena);
    if (wrong) return wrong;
  }
  for (uint32_t o = 0; o < group->output_count; o++) {
    if (depends[group->output[o]]) continue;
    uint32_t p = group->graph->value[group->output[o]].producer;
    return ft_arena_printf(arena, "an output comes from %s, not from %s",
                           name_of(&group->graph->primitive[p]),
                           name_of(anchor_of(group)));
  }
  return NULL;
}

// Everything after the anchor is at one place per element of it.
static const char *place_refusal(const ft_contract *c, ft_arena *arena) {
  ft_contract_emitter m;
  ft_contract problem = *c;
  if (c->is_empty) return NULL;
  if (ft_contract_open(&problem, arena, &m, NULL) != FT_OK) return "out of memory";
  ft_kir *kir = m.e->kir;
  ft_kir_id zero = ft_kir_number(kir, 0), one = ft_kir_number(kir, 1);
  ft_kir_id at[3];
  for (int i = 0; i < 3; i++)
    at[i] = ft_kir_for(kir, FT_KIR_SERIAL, zero, one, one)->value;
  m.batch = at[0];
  ft_contract_split column = {.rest = ft_affine_of(&m.e->places, at[2])};
  const ft_place *place =
      ft_contract_c_place(&m, ft_affine_of(&m.e->places, at[1]), column);
  ft_contract_places places = ft_contract_follow(&m, place);
  if (kir->failed) return "out of memory";
  return places.wrong ? ft_arena_printf(arena, "%s meets %s at two places",
                                        name_of(places.wrong), name_of(c->anchor))
                      : NULL;
}

const char *ft_contract_refusal(const ft_workload *workload, ft_arena *arena) {
  const ft_group *group = &workload->group;
  const ft_primitive *anchor = anchor_of(group);
  if (!anchor) return "there is no contraction";
  if (group->primitive_count > MOST_PRIMITIVES)
    return ft_arena_printf(arena, "%u primitives are too many", group->primitive_count);
  const char *wrong = anchor_refusal(group, anchor, arena);
  if (!wrong) wrong = shape_refusal(group, arena);
  if (wrong) return wrong;
  ft_contract c = ft_contract_problem(workload);
  wrong = place_refusal(&c, arena);
  if (wrong) return wrong;
  ft_contract_choice plainest;
  if (ft_contract_plainest(&c, arena, &plainest, NULL) != FT_OK ||
      ft_contract_plan(workload, &plainest, arena, &c, &wrong, NULL) != FT_OK)
    return "out of memory";
  return wrong;
}

// ---- what must be packed
// --------------------------------------------------------------------

// What leads to |value|.
typedef struct prologue {
  bool is_plain;  // a tensor in memory, under another shape or order
  bool is_heavy;
} prologue;

// Looks at each primitive once, last ones first.
static ft_status find_prologue(const ft_contract *c, uint32_t i, ft_arena *arena,
                               prologue *out, ft_error *error) {
  const ft_group *group = &c->workload->group;
  const ft_graph *graph = group->graph;
  bool *is_needed = FT_NEW_ARRAY(arena, bool, graph->value_count);
  FT_OOM_IF(!is_needed, error);
  *out = (prologue){.is_plain = true};
  is_needed[graph->value[c->operand[i]].root] = true;
  for (uint32_t k = group->primitive_count; k-- > 0;) {
    const ft_primitive *p = member(group, k);
    if (!is_needed[p->output]) continue;
    out->is_plain &= class_of(p) != FT_CLASS_E;
    out->is_heavy |= ft_expression_is_heavy(p->op);
    for (uint32_t n = 0; n < p->input_count; n++)
      is_needed[graph->value[p->input[n]].root] = true;
  }
  return FT_OK;
}

// How operand |i| moves along k, or along n.
static ft_status find_stride(const ft_contract *c, uint32_t i, bool along_n,
                             ft_arena *arena, ft_affine *out, prologue *how,
                             ft_error *error) {
  ft_contract_emitter m;
  uint32_t root;
  FT_TRY(ft_contract_open(c, arena, &m, error));
  ft_kir *kir = m.e->kir;
  ft_kir_id zero = ft_kir_number(kir, 0), one = ft_kir_number(kir, 1);
  ft_affine other =
      ft_affine_of(&m.e->places, ft_kir_for(kir, FT_KIR_SERIAL, zero, one, one)->value);
  ft_affine moving = {.coef = 1};
  m.batch = zero;
  ft_contract_split split = {.rest = i && !along_n ? other : moving};
  const ft_place *place = i ? ft_contract_b_place(&m, along_n ? other : moving, split)
                            : ft_contract_a_place(&m, other, split);
  FT_OOM_IF(!place, error);
  FT_TRY(find_prologue(c, i, arena, how, error));
  *out = (ft_affine){.is_lost = true};
  if (how->is_plain) *out = ft_contract_reach(&m, i, place, &root);
  FT_OOM_IF(kir->failed, error);
  return FT_OK;
}

// B lies with its terms side by side, and columns apart.
static ft_status choose_turn(ft_contract *c, ft_arena *arena, ft_error *error) {
  ft_affine k, n;
  prologue how;
  uint32_t lanes = c->choice.vector;
  while (lanes > c->choice.kc) lanes /= 2;
  if (!c->choice.packs_b || c->is_image || lanes < 4) return FT_OK;
  FT_TRY(find_stride(c, 1, false, arena, &k, &how, error));
  if (!how.is_plain || k.is_lost || k.coef != 1 || k.offset) return FT_OK;
  FT_TRY(find_stride(c, 1, true, arena, &n, &how, error));
  if (n.is_lost || n.coef > 1) c->turn_lanes = lanes;
  return FT_OK;
}

ft_status ft_contract_must_pack(const ft_contract *problem, uint32_t i, ft_arena *arena,
                                bool *out, ft_error *error) {
  ft_affine k, n = ft_affine_number(0);
  prologue how;
  *out = false;
  if (problem->is_empty || !problem->k) return FT_OK;
  *out = i && problem->is_image;
  if (*out) return FT_OK;
  FT_TRY(find_stride(problem, i, false, arena, &k, &how, error));
  if (i) FT_TRY(find_stride(problem, i, true, arena, &n, &how, error));
  // Vectors of B lie in one piece, or they are put together once.
  *out = !how.is_plain || k.is_lost || (i && !n.is_lost && n.coef > 1);
  return FT_OK;
}

// ---- the plan
// -------------------------------------------------------------------------------

static int64_t parts(int64_t whole, int64_t part) {
  return (whole + part - 1) / part;
}

// Parts of |part| at most, about equal, multiples of |unit|.
static int64_t evened(int64_t whole, int64_t part, int64_t unit) {
  if (part >= whole) return whole;
  int64_t each = parts(parts(whole, parts(whole, part)), unit) * unit;
  return each < whole ? each : whole;
}

static const char *choice_refusal(const ft_contract *c, ft_arena *arena) {
  const ft_contract_choice *t = &c->choice;
  if (!t->vector || t->vector & (t->vector - 1) || t->vector > 64)
    return "vector is not a power of two up to 64";
  if (t->nr < 1 || t->nr % t->vector) return "vector does not divide nr";
  if (t->mr < 1 || t->mr > MOST_ROWS) return "mr is not 1 to 16";
  if (t->mr * (t->nr / t->vector) > MOST_SUMS)
    return ft_arena_printf(arena, "%lld sums at a time",
                           (long long)(t->mr * (t->nr / t->vector)));
  if (t->mc < 1 || t->nc < 1 || t->kc < 1) return "a block is not positive";
  if (c->is_empty) return NULL;
  if (t->mr > c->m || t->nr > c->n)
    return ft_arena_printf(arena, "tiles of %lldx%lld in %lldx%lld", (long long)t->mr,
                           (long long)t->nr, (long long)c->m, (long long)c->n);
  if (t->mc < t->mr || t->nc < t->nr)
    return ft_arena_printf(arena, "blocks of %lldx%lld in tiles of %lldx%lld",
                           (long long)t->mc, (long long)t->nc, (long long)t->mr,
                           (long long)t->nr);
  return NULL;
}

// Invariant 2 of contract.h.
static const char *choose_chunk(ft_contract *c, ft_arena *arena) {
  enum { ALWAYS = 32 };
  double root = sqrt((double)c->k);
  int64_t most = (int64_t)(4 * root);
  if (most < ALWAYS) most = ALWAYS;
  int64_t kc = c->choice.kc;
  c->chunk = kc <= most ? kc : parts(kc, parts(kc, most));
  if (c->k_blocks > 1 && (double)c->chunk < root / 5)
    return ft_arena_printf(arena, "%lld sums of %lld terms drift",
                           (long long)parts(c->k, c->chunk), (long long)c->chunk);
  return NULL;
}

static const char *count_blocks(ft_contract *c, ft_arena *arena) {
  ft_contract_choice *t = &c->choice;
  t->mc = evened(c->m, t->mc, t->mr);
  t->nc = evened(c->n, t->nc, t->nr);
  t->kc = c->k <= t->kc ? c->k : t->kc;
  if (!t->kc) t->kc = 1;
  c->m_blocks = parts(c->m, t->mc);
  c->n_blocks = parts(c->n, t->nc);
  c->k_blocks = c->k ? parts(c->k, t->kc) : 1;
  double blocks = (double)c->m_blocks * (double)c->n_blocks * (double)c->batches;
  if (blocks > INT32_MAX)
    return ft_arena_printf(arena, "%.0f blocks are too many", blocks);
  c->grid = (uint32_t)blocks;
  return choose_chunk(c, arena);
}

static const char *visit_refusal(const ft_contract *c, uint32_t i, prologue how,
                                 ft_arena *arena) {
  const ft_graph *graph = c->workload->group.graph;
  double elements = (double)elements_of(graph, c->operand[i]);
  int64_t side = i ? c->choice.nc : c->choice.mc;
  double visits = (double)c->grid * (double)side * (double)c->k / elements;
  double most = how.is_heavy ? MOST_HEAVY_VISITS : MOST_VISITS;
  if (how.is_plain || visits <= most) return NULL;
  return ft_arena_printf(arena, "operand %u would be computed %.0f times", i, visits);
}

static const char *pack_refusal(const ft_contract *c, uint32_t i, ft_arena *arena) {
  bool must, packs = i ? c->choice.packs_b : c->choice.packs_a;
  prologue how;
  if (ft_contract_must_pack(c, i, arena, &must, NULL) != FT_OK ||
      find_prologue(c, i, arena, &how, NULL) != FT_OK)
    return "out of memory";
  if (must && !packs) return ft_arena_printf(arena, "operand %u must be packed", i);
  return visit_refusal(c, i, how, arena);
}

// The part of |whole| that a side of a block is at least, when |how| leads to the operand
// that is visited for each block along it.
static int64_t widest(int64_t whole, prologue how) {
  int64_t visits = how.is_heavy ? MOST_HEAVY_VISITS : MOST_VISITS;
  int64_t part = how.is_plain ? 64 : parts(whole, visits);
  return part < 64 ? 64 : part;
}

ft_status ft_contract_plainest(const ft_contract *problem, ft_arena *arena,
                               ft_contract_choice *out, ft_error *error) {
  prologue a, b;
  FT_TRY(find_prologue(problem, 0, arena, &a, error));
  FT_TRY(find_prologue(problem, 1, arena, &b, error));
  int64_t root = (int64_t)sqrt((double)problem->k);
  *out = (ft_contract_choice){.vector = 1,
                              .mr = 1,
                              .nr = 1,
                              .mc = widest(problem->m, b),
                              .nc = widest(problem->n, a),
                              .kc = root < 64 ? 64 : root,
                              .packs_a = true,
                              .packs_b = true};
  return FT_OK;
}

static const char *scratch_refusal(ft_contract *c, ft_arena *arena) {
  const ft_contract_choice *t = &c->choice;
  double a = t->packs_a ? (double)t->mc * (double)(t->kc + 96) : 0;
  double b = t->packs_b ? (double)t->kc * (double)(t->nc + 16) : 0;
  double tile = c->k_blocks > 1 ? (double)(t->mc + t->mr) * (double)(t->nc + t->nr) : 0;
  double bytes = 4 * (a + b + tile);
  if (bytes <= MOST_SCRATCH_BYTES) return NULL;
  return ft_arena_printf(arena, "%.0f bytes of scratch a thread", bytes);
}

// ---- segments
// ---------------------------------------------------------------------------------

static ft_status is_affine(const ft_contract *c, bool only_a, ft_arena *arena, bool *out,
                           ft_error *error) {
  ft_loop_emitter *e;
  FT_TRY(ft_contract_emit(c, only_a, arena, &e, error));
  *out = !e->is_lost;
  return FT_OK;
}

// The largest product of trailing dims of some value of the group that divides |extent|
// into more parts than |segment| does; 0: none.
static int64_t next_segment(const ft_group *group, int64_t extent, int64_t segment) {
  int64_t best = 0;
  const ft_graph *graph = group->graph;
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    const ft_primitive *p = member(group, i);
    for (uint32_t k = 0; k <= p->input_count; k++) {
      const ft_shape *s =
          &graph->value[k < p->input_count ? p->input[k] : p->output].shape;
      int64_t run = 1;
      for (int d = s->rank - 1; d >= 0; d--) {
        run *= s->dim[d];
        if (run > best && run < segment && run > 1 && extent % run == 0) best = run;
        int64_t one = s->dim[d];
        if (one > best && one < segment && one > 1 && extent % one == 0) best = one;
      }
    }
  }
  return best;
}

static ft_status choose_segment(ft_contract *c, ft_arena *arena, const char **reason,
                                ft_error *error) {
  int64_t lanes = c->choice.vector;
  bool works = false;
  for (c->segment = c->n; c->segment;
       c->segment = next_segment(&c->workload->group, c->n, c->segment)) {
    bool fits =
        c->segment == c->n || (c->segment % lanes == 0 && c->choice.nc % lanes == 0);
    if (fits) FT_TRY(is_affine(c, false, arena, &works, error));
    if (works) return FT_OK;
  }
  *reason = ft_arena_printf(arena, "vectors of %lld columns do not stay together",
                            (long long)lanes);
  return FT_OK;
}

static ft_status choose_k_segment(ft_contract *c, ft_arena *arena, ft_error *error) {
  for (uint32_t lanes = c->choice.vector; lanes > 1; lanes /= 2) {
    if (lanes > c->choice.kc) continue;  // the first step must hold one
    c->k_lanes = lanes;
    for (c->k_segment = c->k; c->k_segment;
         c->k_segment = next_segment(&c->workload->group, c->k, c->k_segment)) {
      bool fits =
          c->k_segment == c->k ||
          (c->k_segment % lanes == 0 && (c->k_blocks == 1 || c->choice.kc % lanes == 0));
      bool works = false;
      if (fits) FT_TRY(is_affine(c, true, arena, &works, error));
      if (works) return FT_OK;
    }
  }
  c->k_lanes = 1;
  c->k_segment = c->k;
  return FT_OK;
}

static const char *find_refusal(ft_contract *c, ft_arena *arena) {
  const char *wrong = choice_refusal(c, arena);
  if (wrong || c->is_empty) return wrong;
  wrong = count_blocks(c, arena);
  if (!wrong) wrong = scratch_refusal(c, arena);
  if (wrong || !c->k) return wrong;
  for (uint32_t i = 0; i < 2 && !wrong; i++) wrong = pack_refusal(c, i, arena);
  return wrong;
}

ft_status ft_contract_plan(const ft_workload *workload, const ft_contract_choice *choice,
                           ft_arena *arena, ft_contract *out, const char **reason,
                           ft_error *error) {
  *out = ft_contract_problem(workload);
  out->choice = *choice;
  out->grid = 1;
  *reason = find_refusal(out, arena);
  if (*reason || out->is_empty) return FT_OK;
  if (out->k) FT_TRY(choose_turn(out, arena, error));
  if (out->choice.packs_a && out->k) FT_TRY(choose_k_segment(out, arena, error));
  return choose_segment(out, arena, reason, error);
}
