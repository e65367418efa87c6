// SIM tells a wrong kernel from a right one: kernels with one thing changed, each caught.
#include "simt_drawings.h"

enum { MOST_MUTANTS = 1024, PER_UNIT = 64 };

// The |site|-th place where a kind of mutation applies; false: there are fewer.
typedef struct mutation {
  ft_kir *kir;
  uint32_t site, seen;
  const char *what;
} mutation;

static bool is_site(mutation *m) {
  return m->seen++ == m->site;
}

static ft_kir_id plus(ft_kir *kir, ft_kir_id index, int64_t n) {
  return ft_kir_index(kir, FT_KIR_IADD, index, ft_kir_number(kir, n));
}

// Statements of |block| and below, in order: one function per kind of mutation.
typedef bool mutator(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                     ft_kir_stmt *s);

static bool walk(mutation *m, ft_kir_block *block, mutator *try) {
  ft_kir_stmt *before = NULL;
  for (ft_kir_stmt *s = block->first; s; before = s, s = s->next) {
    if (try(m, block, before, s)) return true;
    if (walk(m, &s->body, try) || walk(m, &s->otherwise, try)) return true;
  }
  return false;
}

static void drop(ft_kir_block *block, ft_kir_stmt *before, const ft_kir_stmt *s) {
  if (before)
    before->next = s->next;
  else
    block->first = s->next;
}

static bool drop_barrier(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                         ft_kir_stmt *s) {
  if (s->kind != FT_KIR_BARRIER || !is_site(m)) return false;
  drop(block, before, s);
  return true;
}

static bool drop_guard(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                       ft_kir_stmt *s) {
  (void)block, (void)before;
  if (s->kind != FT_KIR_IF || !is_site(m)) return false;
  s->value = ft_kir_number(m->kir, 1);
  return true;
}

static bool is_serial(const ft_kir_stmt *s) {
  return s->kind == FT_KIR_FOR && s->loop == FT_KIR_SERIAL;
}

static bool lengthen_loop(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                          ft_kir_stmt *s) {
  (void)block, (void)before;
  if (!is_serial(s) || !is_site(m)) return false;
  s->end = ft_kir_index(m->kir, FT_KIR_IADD, s->end, s->step);
  return true;
}

static bool shorten_loop(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                         ft_kir_stmt *s) {
  (void)block, (void)before;
  if (!is_serial(s) || !is_site(m)) return false;
  s->end = ft_kir_index(m->kir, FT_KIR_ISUB, s->end, s->step);
  return true;
}

static bool start_late(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                       ft_kir_stmt *s) {
  (void)block, (void)before;
  if (!is_serial(s) || !is_site(m)) return false;
  s->begin = plus(m->kir, s->begin, 1);
  return true;
}

static bool never_step(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                       ft_kir_stmt *s) {
  (void)block, (void)before;
  if (!is_serial(s) || !is_site(m)) return false;
  // No number to the verifier, 0 when it runs: no block is below 0.
  ft_kir_id block_index = m->kir->body.first->value;
  s->step = ft_kir_index(m->kir, FT_KIR_ILESS, block_index, ft_kir_number(m->kir, 0));
  return true;
}

static bool is_memory(const mutation *m, uint32_t buffer) {
  return m->kir->buffer[buffer].space != FT_KIR_REGISTER;
}

static bool store_aside(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                        ft_kir_stmt *s) {
  (void)block, (void)before;
  if (s->kind != FT_KIR_STORE || !is_memory(m, s->buffer) || !is_site(m)) return false;
  s->index = plus(m->kir, s->index, 1);
  return true;
}

static bool drop_store(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                       ft_kir_stmt *s) {
  if (s->kind != FT_KIR_STORE || !is_memory(m, s->buffer)) return false;
  if (!before && !s->next) return false;  // a block without statements
  if (!is_site(m)) return false;
  drop(block, before, s);
  return true;
}

static ft_kir_value *let_of(mutation *m, const ft_kir_stmt *s, ft_kir_op op) {
  if (s->kind != FT_KIR_LET) return NULL;
  ft_kir_value *v = &m->kir->value[s->value];
  return v->op == op ? v : NULL;
}

static bool load_aside(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                       ft_kir_stmt *s) {
  (void)block, (void)before;
  ft_kir_value *v = let_of(m, s, FT_KIR_LOAD);
  if (!v || !is_memory(m, v->buffer) || !is_site(m)) return false;
  uint32_t id = s->value;
  ft_kir_id index = plus(m->kir, v->operand[0], 1);  // may move the values
  m->kir->value[id].operand[0] = index;
  return true;
}

static bool shuffle_wrongly(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                            ft_kir_stmt *s) {
  (void)block, (void)before;
  ft_kir_value *v = let_of(m, s, FT_KIR_SHUFFLE);
  if (!v || !is_site(m)) return false;
  v->imm = v->imm == 1 ? 2 : 1;
  return true;
}

static bool combine_wrongly(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                            ft_kir_stmt *s) {
  (void)block, (void)before;
  ft_kir_value *v = let_of(m, s, FT_KIR_COMBINE);
  if (!v || !is_site(m)) return false;
  v->primitive = v->primitive == FT_OP_REDUCE_SUM ? FT_OP_REDUCE_MAX : FT_OP_REDUCE_MIN;
  return true;
}

static bool swap_operands(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                          ft_kir_stmt *s) {
  (void)block, (void)before;
  ft_kir_value *v = let_of(m, s, FT_KIR_PRIMITIVE);
  if (!v || (v->primitive != FT_OP_SUB && v->primitive != FT_OP_DIV) || !is_site(m))
    return false;
  ft_kir_id a = v->operand[0];
  v->operand[0] = v->operand[1];
  v->operand[1] = a;
  return true;
}

// A stride: the number that an index is multiplied with.
static bool change_stride(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                          ft_kir_stmt *s) {
  (void)block, (void)before;
  if (s != m->kir->body.first) return false;  // once
  for (uint32_t i = 1; i < m->kir->value_count; i++) {
    int64_t number;
    if (m->kir->value[i].op != FT_KIR_IMUL) continue;
    if (!ft_kir_is_number(m->kir, m->kir->value[i].operand[1], &number)) continue;
    if (!is_site(m)) continue;
    ft_kir_id wrong = ft_kir_number(m->kir, number + 1);
    m->kir->value[i].operand[1] = wrong;
    return true;
  }
  return false;
}

// Every block finishes: what others store is not there yet, or is stored twice.
static bool finish_always(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                          ft_kir_stmt *s) {
  (void)block, (void)before;
  if (s->kind != FT_KIR_GRID_DONE || !is_site(m)) return false;
  s->kind = FT_KIR_IF;
  s->value = ft_kir_number(m->kir, 1);
  return true;
}

static bool count_wrongly(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                          ft_kir_stmt *s) {
  (void)block, (void)before;
  if (s->kind != FT_KIR_GRID_DONE) return false;
  int64_t by = is_site(m) ? 1 : is_site(m) ? -1 : 0;
  if (!by) return false;
  s->end = plus(m->kir, s->end, by);
  return true;
}

// The index of an access to one of several registers; NULL: no such access.
static ft_kir_id *register_index(mutation *m, ft_kir_stmt *s, int64_t *count) {
  ft_kir_value *v = let_of(m, s, FT_KIR_LOAD);
  if (!v && s->kind != FT_KIR_STORE) return NULL;
  const ft_kir_buffer *b = &m->kir->buffer[v ? v->buffer : s->buffer];
  *count = b->count;
  if (b->space != FT_KIR_REGISTER || b->count == 1) return NULL;
  return v ? &v->operand[0] : &s->index;
}

// Registers from the other end.
static bool swap_registers(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                           ft_kir_stmt *s) {
  (void)block, (void)before;
  int64_t count;
  if (!register_index(m, s, &count) || !is_site(m)) return false;
  ft_kir_id last = ft_kir_number(m->kir, count - 1);  // may move the values
  ft_kir_id index = *register_index(m, s, &count);
  index = ft_kir_index(m->kir, FT_KIR_ISUB, last, index);
  *register_index(m, s, &count) = index;
  return true;
}

static bool register_aside(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                           ft_kir_stmt *s) {
  (void)block, (void)before;
  int64_t count;
  if (!register_index(m, s, &count) || !is_site(m)) return false;
  ft_kir_id index = plus(m->kir, *register_index(m, s, &count), 1);
  *register_index(m, s, &count) = index;
  return true;
}

// The slot of a step: the remainder of a loop's variable, or of the next.
static bool is_slot(const ft_kir *kir, const ft_kir_value *v) {
  int64_t slots;
  if (v->op != FT_KIR_IMOD || !ft_kir_is_number(kir, v->operand[1], &slots)) return false;
  const ft_kir_value *step = &kir->value[v->operand[0]];
  return slots <= 4 && (step->op == FT_KIR_LOOP || step->op == FT_KIR_IADD) &&
         step->level == FT_KIR_SAME;
}

static bool take_wrong_slot(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                            ft_kir_stmt *s) {
  (void)block, (void)before;
  if (s != m->kir->body.first) return false;  // once
  for (uint32_t i = 1; i < m->kir->value_count; i++) {
    if (!is_slot(m->kir, &m->kir->value[i]) || !is_site(m)) continue;
    int64_t slots = 0;
    ft_kir_is_number(m->kir, m->kir->value[i].operand[1], &slots);
    ft_kir_id wrong = ft_kir_number(m->kir, slots - 1);
    m->kir->value[i].operand[1] = wrong;
    return true;
  }
  return false;
}

static bool drop_wait(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                      ft_kir_stmt *s) {
  if (s->kind != FT_KIR_WAIT || !is_site(m)) return false;
  drop(block, before, s);
  return true;
}

static bool wait_less(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                      ft_kir_stmt *s) {
  (void)block, (void)before;
  if (s->kind != FT_KIR_WAIT || !is_site(m)) return false;
  s->code++;
  return true;
}

static bool drop_commit(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                        ft_kir_stmt *s) {
  if (s->kind != FT_KIR_COMMIT || !is_site(m)) return false;
  drop(block, before, s);
  return true;
}

static bool copy_always(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                        ft_kir_stmt *s) {
  (void)block, (void)before;
  if (s->kind != FT_KIR_COPY || !s->value || !is_site(m)) return false;
  s->value = 0;
  return true;
}

// By a whole copy, so that it stays aligned: from somewhere else, then to.
static bool copy_aside(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                       ft_kir_stmt *s) {
  (void)block, (void)before;
  if (s->kind != FT_KIR_COPY) return false;
  bool is_source = is_site(m);
  if (!is_source && !is_site(m)) return false;
  if (is_source)
    s->source_index = plus(m->kir, s->source_index, s->lanes);
  else
    s->index = plus(m->kir, s->index, s->lanes);
  return true;
}

static const struct {
  const char *name;
  mutator *try;
} mutators[] = {
    {"a barrier dropped", drop_barrier},
    {"a guard dropped", drop_guard},
    {"a loop too long", lengthen_loop},
    {"a loop too short", shorten_loop},
    {"a loop that starts late", start_late},
    {"a loop without a step", never_step},
    {"a store off by one", store_aside},
    {"a store dropped", drop_store},
    {"a load off by one", load_aside},
    {"a shuffle with a wrong mask", shuffle_wrongly},
    {"a wrong combination", combine_wrongly},
    {"operands swapped", swap_operands},
    {"a wrong stride", change_stride},
    {"a last block that is any block", finish_always},
    {"a count of blocks off by one", count_wrongly},
    {"a wrong slot", take_wrong_slot},
    {"a wait dropped", drop_wait},
    {"a wait for a batch too few", wait_less},
    {"a commit dropped", drop_commit},
    {"a copy without a condition", copy_always},
    {"a copy aside", copy_aside},
    {"registers swapped", swap_registers},
    {"a register off by one", register_aside},
};
enum { MUTATORS = sizeof mutators / sizeof *mutators };

// Kernels in which every part matters: odd extents, several rows a block, two warps a
// row, several steps a thread, and a result that depends on each reduction (a softmax
// does not depend on its maximum).
static const struct {
  const char *drawing;
  uint32_t choice;
} victims[] = {
    {"odd chain", 0},
    {"mixture", 8},
    {"mixture", 6},
    {"mixture of columns", 0},
    {"product", NESTS + 1},
    {"long product", NESTS + LOOPS},
    {"long product", NESTS + LOOPS + 1},
    {"long product", NESTS + LOOPS + 2},
    {"long product", NESTS + LOOPS + 3},
    {"one row", NESTS + LOOPS + GEMMS + 2},
    {"split sum", BY_HAND},
    {"held rows", BY_HAND + 1},
    {"staged sum", BY_HAND + 2},
    {"staged sum", BY_HAND + 3},
};
enum { VICTIMS = sizeof victims / sizeof *victims };

// Mutants that are as right as the kernel, and why.
static const struct {
  const char *label;
} harmless[] = {
    // Sums put aside at every step.
    {"long product, product 0: a guard dropped, 2"},
    {"long product, product 1: a guard dropped, 5"},
    {"long product, product 2: a guard dropped, 1"},
    {"long product, product 3: a guard dropped, 2"},
    // Columns past the end: it reads the next row, and what comes of it is not stored.
    {"long product, product 1: a guard dropped, 1"},
    {"long product, product 2: a copy without a condition, 4"},
    {"long product, product 2: a copy without a condition, 9"},
    // Rows that are there, of terms that are, or meet zeros of the other operand.
    {"long product, product 2: a copy without a condition, 0"},
    {"long product, product 2: a copy without a condition, 1"},
    {"long product, product 2: a copy without a condition, 5"},
    {"long product, product 2: a copy without a condition, 6"},
    {"long product, product 2: a copy without a condition, 10"},
    {"long product, product 2: a copy without a condition, 11"},
    // Rows past the end are zeros, wherever they would come from.
    {"long product, product 2: a copy aside, 6"},
    {"long product, product 2: a copy aside, 16"},
    {"long product, product 2: a copy aside, 26"},
    // A step past the end, of zeros, that nothing multiplies or that adds nothing.
    {"long product, product 1: a guard dropped, 2"},
    {"long product, product 1: a guard dropped, 6"},
    {"long product, product 2: a guard dropped, 0"},
    {"long product, product 0: a loop too long, 0"},
    // Slots one element further apart: the last row's padding has room for it.
    {"long product, product 2: a wrong stride, 7"},
    // A slab past the end is zeros, and the first one is whole.
    {"staged sum, choice 1002: a loop too long, 0"},
    {"staged sum, choice 1003: a loop too long, 0"},
    {"staged sum, choice 1002: a copy without a condition, 0"},
    {"staged sum, choice 1003: a copy without a condition, 0"},
};

static bool is_harmless(const char *label) {
  for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
    if (!strcmp(harmless[i].label, label)) return true;
  return false;
}

static uint32_t drawing_of(const char *name) {
  for (uint32_t d = 0; d < DRAWINGS; d++)
    if (!strcmp(drawings[d].name, name)) return d;
  cr_assert_fail("no drawing %s", name);
  return 0;
}

static bool is_printed(ft_kir *kir) {
  const char *text;
  ft_simt_launch launch;
  ft_error error;
  return ft_print_sim(kir, "mutant", &text, &launch, &error) == FT_OK;
}

// Appends the mutants of victim |v| by mutator |k|.
static void mutate(const bench *b, uint32_t v, uint32_t k, ft_arena *arena, simmed *out,
                   uint32_t *count) {
  uint32_t d = drawing_of(victims[v].drawing);
  for (uint32_t site = 0;; site++) {
    const char *label;
    ft_kir *kir = build_one(b, d, victims[v].choice, &label);
    cr_assert(kir, "%s is refused", label);
    mutation m = {.kir = kir, .site = site};
    if (!walk(&m, &kir->body, mutators[k].try)) return;
    if (!is_printed(kir)) continue;  // SIM never sees it
    cr_assert_lt(*count, MOST_MUTANTS);
    simmed *c = &out[*count];
    *c = (simmed){
        .workload = &b->workload[d],
        .label = ft_arena_printf(arena, "%s: %s, %u", label, mutators[k].name, site)};
    simmed_expect(c, d + 1, b->sketch[d].arena);
    simmed_print(c, kir, *count, arena);
    (*count)++;
  }
}

Test(simt, every_mutant_of_a_kernel_is_caught, .timeout = 900) {
  bench b;
  simmed *c = calloc(MOST_MUTANTS, sizeof *c);
  uint32_t count = 0, missed = 0, per_kind[MUTATORS] = {0};
  open_bench(&b);
  ft_arena *arena = b.sketch[0].arena;
  for (uint32_t k = 0; k < MUTATORS; k++) {
    uint32_t before = count;
    for (uint32_t v = 0; v < VICTIMS; v++) mutate(&b, v, k, arena, c, &count);
    per_kind[k] = count - before;
  }
  const char *folder = cache_make(arena);
  for (uint32_t at = 0; at < count; at += PER_UNIT) {
    uint32_t n = count - at < PER_UNIT ? count - at : PER_UNIT;
    void *library = simmed_build(c + at, n, folder, arena);
    for (uint32_t i = at; i < at + n; i++) {
      bool is_caught = simmed_wrong(&c[i], library, arena) != NULL;
      if (is_caught != is_harmless(c[i].label)) continue;
      missed++;
      fprintf(stderr, "missed: %s\n", c[i].label);
    }
  }
  cache_remove(folder, arena);
  fprintf(stderr, "%u mutants\n", count);
  for (uint32_t k = 0; k < MUTATORS; k++)
    cr_assert_gt(per_kind[k], 0, "%s", mutators[k].name);
  cr_assert_geq(count, 30);
  cr_assert_eq(missed, 0);
  free(c);
  close_bench(&b);
}
