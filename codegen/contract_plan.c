// What an operand needs, and how a choice is worked out.
#include <math.h>

#include "codegen/contract_emit.h"
#include "codegen/expressions.h"

enum {
  MOST_VISITS = 64,       // of an element of a prologue
  MOST_HEAVY_VISITS = 8,  // when it is expensive
  MOST_ROWS = 16,
  MOST_SUMS = 64,
  MOST_SCRATCH_BYTES = 16 << 20,
};

static const ft_primitive *member(const ft_group *group, uint32_t i) {
  return &group->graph->primitive[group->primitive[i]];
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
    out->is_plain &= ft_op_describe(p->op)->class != FT_CLASS_E;
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
  double elements = (double)ft_shape_elements(&graph->value[c->operand[i]].shape);
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
