#include "codegen/bank_conflicts.h"

#include "codegen/print_simt_parts.h"

enum { WARP = 32, BANKS = 32, WORD_BYTES = 4, ALL_LANES = -1 };

// An index at each lane of a warp.
typedef struct lanes {
  uint64_t stamp;  // of the variables that it was computed with
  bool is_known;
  int64_t at[WARP];
} lanes;

typedef struct counter {
  const ft_kir *kir;
  lanes *memo;      // [value]
  uint64_t stamp;   // changes with each loop variable
  uint32_t active;  // lanes that are here, a bit each
  ft_simt_printer widths;
  ft_bank_access *access;
  const ft_kir_stmt **stmt;  // [access]
  uint32_t count;
} counter;

// ---- addresses
// -----------------------------------------------------------------------------

static const lanes *evaluate(counter *c, ft_kir_id id) {
  lanes *m = &c->memo[id];
  const ft_kir_value *v = &c->kir->value[id];
  if (v->op == FT_KIR_LOOP || m->stamp == c->stamp) return m;
  m->stamp = c->stamp;
  m->is_known = v->op != FT_KIR_TO_INDEX;
  if (v->op == FT_KIR_NUMBER)
    for (int i = 0; i < WARP; i++) m->at[i] = v->imm;
  if (v->operand_count != 2) return m;
  const lanes *a = evaluate(c, v->operand[0]), *b = evaluate(c, v->operand[1]);
  m->is_known = a->is_known && b->is_known;
  for (int i = 0; m->is_known && i < WARP; i++)
    m->at[i] = ft_kir_calculate(v->op, a->at[i], b->at[i]);
  return m;
}

static bool is_active(const counter *c, int lane) {
  return (c->active >> lane) & 1;
}

// ---- banks
// ---------------------------------------------------------------------------------

// Of lanes [first, first + count): most distinct words in one bank.
static uint32_t degree_of_part(const counter *c, const int64_t *byte, int first,
                               int count, uint32_t bytes) {
  int64_t word[WARP];
  uint32_t words = 0, in_bank[BANKS] = {0}, most = 0;
  for (int lane = first; lane < first + count; lane++) {
    for (int64_t w = byte[lane] / WORD_BYTES;
         is_active(c, lane) && w * WORD_BYTES < byte[lane] + (int64_t)bytes; w++) {
      uint32_t i = 0;
      while (i < words && word[i] != w) i++;
      if (i < words) continue;  // the word is handed to both
      word[words++] = w;
      uint32_t n = ++in_bank[w & (BANKS - 1)];
      if (n > most) most = n;
    }
  }
  return most;
}

static uint32_t degree_of(const counter *c, const int64_t *byte, uint32_t bytes) {
  int part = bytes == 16 ? WARP / 4 : bytes == 8 ? WARP / 2 : WARP;
  uint32_t worst = 0;
  for (int first = 0; first < WARP; first += part) {
    uint32_t degree = degree_of_part(c, byte, first, part, bytes);
    if (degree > worst) worst = degree;
  }
  return worst;
}

// ---- accesses
// ------------------------------------------------------------------------------

typedef struct place {
  uint32_t buffer;
  ft_kir_id index;
  int64_t stride;
  uint32_t lanes;
  bool is_store, is_copy;
} place;

// False: |s| does not touch shared memory.
static bool place_of(const ft_kir *kir, const ft_kir_stmt *s, place *out) {
  const ft_kir_value *v = &kir->value[s->value];
  if (s->kind == FT_KIR_LET && v->op == FT_KIR_LOAD)
    *out = (place){v->buffer, v->operand[0], v->imm, v->type.lanes, false, false};
  else if (s->kind == FT_KIR_STORE)
    *out = (place){s->buffer, s->index, s->stride, v->type.lanes, true, false};
  else if (s->kind == FT_KIR_COPY)
    *out = (place){s->buffer, s->index, 1, s->lanes, true, true};
  else
    return false;
  return kir->buffer[out->buffer].space == FT_KIR_SHARED;
}

static ft_bank_access *access_at(counter *c, const ft_kir_stmt *s) {
  uint32_t i = 0;
  while (c->stmt[i] != s) i++;
  return &c->access[i];
}

static void note(counter *c, const ft_kir_stmt *s, const place *p) {
  const lanes *index = evaluate(c, p->index);
  ft_bank_access *a = access_at(c, s);
  if (!index->is_known) return;
  int64_t size = (int64_t)ft_dtype_bytes(c->kir->buffer[p->buffer].dtype);
  int64_t step = a->bytes > size ? (int64_t)a->bytes : p->stride * size;
  for (uint32_t i = 0; i < a->count; i++) {
    int64_t byte[WARP];
    for (int lane = 0; lane < WARP; lane++)
      byte[lane] = index->at[lane] * size + i * step;
    uint32_t degree = degree_of(c, byte, a->bytes);
    if (degree > a->degree) a->degree = degree;
  }
}

// ---- the walk
// ------------------------------------------------------------------------------

static void visit(counter *c, const ft_kir_block *block);

static void set(counter *c, ft_kir_id variable, const lanes *to) {
  c->memo[variable] = *to;
  c->stamp++;
}

static uint32_t lanes_below(const counter *c, const lanes *at, const lanes *end) {
  uint32_t mask = 0;
  for (int i = 0; i < WARP; i++)
    if (is_active(c, i) && at->at[i] < end->at[i]) mask |= 1u << i;
  return mask;
}

// Bounds that depend on data: all lanes, one iteration, an unknown variable.
static void visit_loop(counter *c, const ft_kir_stmt *s) {
  lanes at = *evaluate(c, s->begin), end = *evaluate(c, s->end);
  lanes step = *evaluate(c, s->step);
  bool is_known = at.is_known && end.is_known && step.is_known;
  uint32_t outside = c->active;
  at.is_known = is_known;
  for (int turn = 0; turn < (is_known ? FT_BANK_TURNS : 1) && c->active; turn++) {
    if (is_known) c->active = lanes_below(c, &at, &end);
    set(c, s->value, &at);
    visit(c, &s->body);
    for (int i = 0; is_known && i < WARP; i++) at.at[i] += step.at[i];
  }
  c->active = outside;
}

static void visit_threads(counter *c, const ft_kir_stmt *s) {
  int64_t threads = 1;
  ft_kir_is_number(c->kir, s->end, &threads);
  uint32_t outside = c->active;
  for (int64_t first = 0; first < threads; first += WARP) {
    lanes own = {.is_known = true}, end = *evaluate(c, s->end);
    for (int i = 0; i < WARP; i++) own.at[i] = first + i;
    set(c, s->value, &own);
    c->active = lanes_below(c, &own, &end);
    visit(c, &s->body);
    c->active = outside;
  }
}

static void visit_for(counter *c, const ft_kir_stmt *s) {
  if (s->loop == FT_KIR_THREAD) {
    visit_threads(c, s);
  } else if (s->loop == FT_KIR_GRID) {
    lanes zero = {.is_known = true};
    set(c, s->value, &zero);
    visit(c, &s->body);
  } else {
    visit_loop(c, s);
  }
}

// A condition that depends on data lets all lanes into both branches.
static void visit_if(counter *c, const ft_kir_stmt *s) {
  const lanes *condition = evaluate(c, s->value);
  uint32_t outside = c->active, yes = 0;
  for (int i = 0; i < WARP; i++)
    if (condition->at[i]) yes |= 1u << i;
  bool is_known = condition->is_known;
  c->active = is_known ? outside & yes : outside;
  visit(c, &s->body);
  c->active = is_known ? outside & ~yes : outside;
  visit(c, &s->otherwise);
  c->active = outside;
}

static void visit(counter *c, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s && c->active; s = s->next) {
    place p;
    if (place_of(c->kir, s, &p)) note(c, s, &p);
    if (s->kind == FT_KIR_FOR) visit_for(c, s);
    if (s->kind == FT_KIR_IF) visit_if(c, s);
    if (s->kind == FT_KIR_GRID_DONE) visit(c, &s->body);
  }
}

// ---- what there is
// -------------------------------------------------------------------------

static uint32_t count_stmts(const ft_kir_block *block) {
  uint32_t count = 0;
  for (const ft_kir_stmt *s = block->first; s; s = s->next)
    count += 1 + count_stmts(&s->body) + count_stmts(&s->otherwise);
  return count;
}

static void note_loops(counter *c, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    if (s->kind == FT_KIR_FOR) c->widths.loop_of[s->value] = s;
    note_loops(c, &s->body);
    note_loops(c, &s->otherwise);
  }
}

// As wide as the printer makes it.
static void add_access(counter *c, const ft_kir_stmt *s, const place *p) {
  ft_dtype dtype = c->kir->buffer[p->buffer].dtype;
  uint32_t size = (uint32_t)ft_dtype_bytes(dtype);
  uint32_t bytes =
      p->is_copy ? p->lanes * size
                 : ft_simt_access_bytes(&c->widths, dtype, p->lanes, p->index, p->stride);
  if (!bytes) bytes = size;
  c->stmt[c->count] = s;
  c->access[c->count++] = (ft_bank_access){.buffer = p->buffer,
                                           .is_store = p->is_store,
                                           .bytes = bytes,
                                           .count = p->lanes * size / bytes};
}

static void list_accesses(counter *c, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    place p;
    if (place_of(c->kir, s, &p)) add_access(c, s, &p);
    list_accesses(c, &s->body);
    list_accesses(c, &s->otherwise);
  }
}

ft_status ft_bank_conflicts_count(const ft_kir *kir, ft_arena *arena,
                                  ft_bank_access **out, uint32_t *out_count,
                                  ft_error *error) {
  counter c = {.kir = kir, .stamp = 1, .active = (uint32_t)ALL_LANES};
  uint32_t stmts = count_stmts(&kir->body);
  *out = NULL;
  *out_count = 0;
  c.memo = FT_NEW_ARRAY(arena, lanes, kir->value_count);
  c.widths = (ft_simt_printer){.kir = (ft_kir *)(uintptr_t)kir};  // only looked at
  c.widths.loop_of = FT_NEW_ARRAY(arena, const ft_kir_stmt *, kir->value_count);
  c.access = FT_NEW_ARRAY(arena, ft_bank_access, stmts);
  c.stmt = FT_NEW_ARRAY(arena, const ft_kir_stmt *, stmts);
  FT_OOM_IF(kir->failed || !c.memo || !c.widths.loop_of || !c.access || !c.stmt, error);
  note_loops(&c, &kir->body);
  list_accesses(&c, &kir->body);
  visit(&c, &kir->body);
  *out = c.access;
  *out_count = c.count;
  return FT_OK;
}
