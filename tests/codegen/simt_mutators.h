// Ways to make a kernel wrong: one thing changed, at one of the places where it can be.
#ifndef FT_TESTS_CODEGEN_SIMT_MUTATORS_H
#define FT_TESTS_CODEGEN_SIMT_MUTATORS_H

#include "codegen/kir.h"

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

// A branch on data that no input here has: NaN where there was padding. What it does is
// tested in kernel_simt_conv.c.
static bool is_rare(const mutation *m, const ft_kir_stmt *s) {
  if (s->kind != FT_KIR_IF) return false;
  const ft_kir_value *v = &m->kir->value[s->value];
  return v->operand_count && m->kir->value[v->operand[0]].op == FT_KIR_TO_INDEX;
}

static bool walk(mutation *m, ft_kir_block *block, mutator *try) {
  ft_kir_stmt *before = NULL;
  for (ft_kir_stmt *s = block->first; s; before = s, s = s->next) {
    if (is_rare(m, s)) {
      if (walk(m, &s->otherwise, try)) return true;
      continue;
    }
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
  if (!v || v->type.dtype == FT_BOOL) return false;  // whether anything is NaN
  if (!is_site(m)) return false;
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

static void mark(const mutation *m, bool *used, ft_kir_id id) {
  if (used[id]) return;
  used[id] = true;
  const ft_kir_value *v = &m->kir->value[id];
  for (uint32_t i = 0; i < v->operand_count; i++) mark(m, used, v->operand[i]);
}

// Values that some statement uses, but for those of rare branches.
static void mark_used(const mutation *m, bool *used, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    const ft_kir_id ids[] = {s->value, s->begin,        s->end,
                             s->step,  s->source_index, s->index};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) mark(m, used, ids[i]);
    if (!is_rare(m, s)) mark_used(m, used, &s->body);
    mark_used(m, used, &s->otherwise);
  }
}

// A stride: the number that an index is multiplied with.
static bool change_stride(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                          ft_kir_stmt *s) {
  (void)block, (void)before;
  if (s != m->kir->body.first) return false;  // once
  bool *used = FT_NEW_ARRAY(m->kir->arena, bool, m->kir->value_count);
  mark_used(m, used, &m->kir->body);
  for (uint32_t i = 1; i < m->kir->value_count; i++) {
    int64_t number;
    if (m->kir->value[i].op != FT_KIR_IMUL || !used[i]) continue;
    if (!ft_kir_is_number(m->kir, m->kir->value[i].operand[1], &number)) continue;
    if (!is_site(m)) continue;
    ft_kir_id wrong = ft_kir_number(m->kir, number + 1);
    m->kir->value[i].operand[1] = wrong;
    return true;
  }
  return false;
}

// Which block runs what: a branch on the block's index.
static bool move_range(mutation *m, const ft_kir_stmt *s, int64_t by) {
  int64_t end;
  if (s->kind != FT_KIR_IF) return false;
  ft_kir_value *v = &m->kir->value[s->value];
  if (v->op != FT_KIR_ILESS || v->level != FT_KIR_PER_BLOCK ||
      !ft_kir_is_number(m->kir, v->operand[1], &end) || !is_site(m))
    return false;
  ft_kir_id moved = ft_kir_number(m->kir, end + by);  // may move the values
  m->kir->value[s->value].operand[1] = moved;
  return true;
}

static bool lengthen_range(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                           ft_kir_stmt *s) {
  (void)block, (void)before;
  return move_range(m, s, 1);
}

static bool shorten_range(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                          ft_kir_stmt *s) {
  (void)block, (void)before;
  return move_range(m, s, -1);
}

// What turns the block's index into that of one body, off by one.
static bool shift_block(mutation *m, ft_kir_block *block, ft_kir_stmt *before,
                        ft_kir_stmt *s) {
  (void)block, (void)before;
  int64_t first;
  if (s->kind != FT_KIR_LET) return false;
  ft_kir_value *v = &m->kir->value[s->value];
  if (v->op != FT_KIR_ISUB || v->level != FT_KIR_PER_BLOCK ||
      !ft_kir_is_number(m->kir, v->operand[1], &first) || !is_site(m))
    return false;
  ft_kir_id unshifted = ft_kir_number(m->kir, 0);
  m->kir->value[s->value].operand[1] = unshifted;
  return true;
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
  bool *used = FT_NEW_ARRAY(m->kir->arena, bool, m->kir->value_count);
  mark_used(m, used, &m->kir->body);
  for (uint32_t i = 1; i < m->kir->value_count; i++) {
    if (!used[i] || !is_slot(m->kir, &m->kir->value[i]) || !is_site(m)) continue;
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
    {"a range of blocks too long", lengthen_range},
    {"a range of blocks too short", shorten_range},
    {"a body's blocks not shifted", shift_block},
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

#endif
