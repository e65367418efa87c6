// The rules numbered in kir.h.
#include "codegen/expressions.h"
#include "codegen/kir.h"

enum { MOST_THREADS = 2048 };  // of a multiprocessor, whatever the chip

typedef struct verifier {
  ft_kir *kir;
  bool *is_defined;   // [value_count]
  bool *is_open;      // [buffer_count] allocated and in scope
  bool *is_unrolled;  // [value_count] variables of UNROLL loops
  uint32_t depth;     // loops around
  bool in_grid, in_thread;
  bool diverges;  // threads of a block may disagree on being here
  const char *wrong;
} verifier;

#define FAIL(v, ...) \
  ((v)->wrong = fail((v), ft_arena_printf((v)->kir->arena, __VA_ARGS__)))

static const char *fail(verifier *v, const char *text) {
  if (v->wrong) return v->wrong;
  return text ? text : "out of memory";
}

static bool is_power_of_two(uint32_t n) {
  return n && !(n & (n - 1));
}

// Elements and loop variables must be there; index expressions are walked.
static void check_use(verifier *v, ft_kir_id id) {
  if (id == 0 || id >= v->kir->value_count) {
    FAIL(v, "value %u does not exist", id);
    return;
  }
  const ft_kir_value *value = &v->kir->value[id];
  if (value->type.lanes || value->op == FT_KIR_LOOP) {
    if (!v->is_defined[id]) FAIL(v, "value %u is used out of scope", id);
    return;
  }
  for (uint32_t i = 0; i < value->operand_count; i++) check_use(v, value->operand[i]);
  if (v->wrong || value->op != FT_KIR_TO_INDEX) return;
  ft_kir_type type = v->kir->value[value->operand[0]].type;
  if (type.lanes != 1 || ft_dtype_is_float(type.dtype))
    FAIL(v, "value %u: an index from %u lanes of %s", id, type.lanes,
         ft_dtype_text(type.dtype));
}

static void check_index(verifier *v, ft_kir_id id) {
  check_use(v, id);
  if (!v->wrong && v->kir->value[id].type.lanes) FAIL(v, "value %u is no index", id);
}

static void check_buffer(verifier *v, uint32_t id, ft_kir_type type) {
  const ft_kir *kir = v->kir;
  if (id == 0 || id >= kir->buffer_count) {
    FAIL(v, "buffer %u does not exist", id);
    return;
  }
  const ft_kir_buffer *b = &kir->buffer[id];
  bool is_scoped = b->space == FT_KIR_REGISTER || b->space == FT_KIR_SHARED;
  if (is_scoped && !v->is_open[id]) FAIL(v, "buffer %u is used out of scope", id);
  if (ft_kir_math_dtype(b->dtype) != type.dtype)
    FAIL(v, "buffer %u holds %s, not %s", id, ft_dtype_text(b->dtype),
         ft_dtype_text(type.dtype));
  if (b->space == FT_KIR_REGISTER && b->lanes != type.lanes)
    FAIL(v, "register %u has %u lanes, not %u", id, b->lanes, type.lanes);
}

// Known once UNROLL loops are unrolled.
static bool is_static(const verifier *v, ft_kir_id id) {
  const ft_kir_value *value = &v->kir->value[id];
  if (value->op == FT_KIR_LOOP) return v->is_unrolled[id];
  if (value->type.lanes || value->op == FT_KIR_TO_INDEX) return false;
  for (uint32_t i = 0; i < value->operand_count; i++)
    if (!is_static(v, value->operand[i])) return false;
  return true;
}

static void check_place(verifier *v, uint32_t buffer, ft_kir_id index) {
  const ft_kir_buffer *b = &v->kir->buffer[buffer];
  int64_t number = 0;
  if (v->wrong || b->space != FT_KIR_REGISTER) return;
  if (!is_static(v, index)) FAIL(v, "registers %u: an index that is not known", buffer);
  bool is_number = ft_kir_is_number(v->kir, index, &number);
  if (!v->wrong && is_number && (number < 0 || number >= b->count))
    FAIL(v, "registers %u: %lld of %lld", buffer, (long long)number, (long long)b->count);
}

static void check_shuffle(verifier *v, const ft_kir_value *value) {
  if (!v->in_thread || v->diverges || value->imm < 1)
    FAIL(v, "a shuffle where not all threads of a block meet");
}

static void check_primitive(verifier *v, ft_kir_id id) {
  const ft_kir_value *value = &v->kir->value[id];
  const ft_op_info *info = ft_op_describe(value->primitive);
  if (info->class != FT_CLASS_E || info->arity != value->operand_count) {
    FAIL(v, "value %u: %s on %u operands", id, info->name, value->operand_count);
    return;
  }
  const ft_kir_value *last = &v->kir->value[value->operand[info->arity - 1]];
  if (!ft_expression_text(value->primitive, last->type.dtype))
    FAIL(v, "value %u: no %s of %s", id, info->name, ft_dtype_text(last->type.dtype));
}

static void check_element(verifier *v, ft_kir_id id) {
  const ft_kir_value *value = &v->kir->value[id];
  if (!is_power_of_two(value->type.lanes))
    FAIL(v, "value %u has %u lanes", id, value->type.lanes);
  if (value->op == FT_KIR_LOAD) {
    check_index(v, value->operand[0]);
    if (!v->wrong) check_buffer(v, value->buffer, value->type);
    check_place(v, value->buffer, value->operand[0]);
    return;
  }
  for (uint32_t i = 0; i < value->operand_count; i++) {
    check_use(v, value->operand[i]);
    uint32_t lanes = v->kir->value[value->operand[i]].type.lanes;
    bool changes =
        value->op == FT_KIR_SPLAT || value->op == FT_KIR_FOLD || value->op == FT_KIR_LANE;
    if (!v->wrong && (lanes == 0 || (!changes && lanes != value->type.lanes)))
      FAIL(v, "value %u: operand %u has %u lanes, not %u", id, i, lanes,
           value->type.lanes);
  }
  if (v->wrong) return;
  if (value->op == FT_KIR_LANE &&
      value->imm >= v->kir->value[value->operand[0]].type.lanes)
    FAIL(v, "value %u: no lane %lld", id, (long long)value->imm);
  if (value->op == FT_KIR_PRIMITIVE) check_primitive(v, id);
  if (value->op == FT_KIR_SHUFFLE) check_shuffle(v, value);
}

static void check_let(verifier *v, ft_kir_id id) {
  if (id == 0 || id >= v->kir->value_count) {
    FAIL(v, "value %u does not exist", id);
  } else if (v->kir->value[id].type.lanes) {
    check_element(v, id);
  } else {
    check_use(v, id);
  }
  if (v->wrong) return;
  if (v->is_defined[id]) FAIL(v, "value %u is defined twice", id);
  v->is_defined[id] = true;
}

static void check_store(verifier *v, const ft_kir_stmt *s) {
  check_index(v, s->index);
  check_use(v, s->value);
  if (v->wrong) return;
  check_buffer(v, s->buffer, v->kir->value[s->value].type);
  if (!v->wrong && !v->kir->buffer[s->buffer].is_written)
    FAIL(v, "buffer %u is read-only", s->buffer);
  check_place(v, s->buffer, s->index);
}

static void check_turn(verifier *v, const ft_kir_stmt *s) {
  check_index(v, s->index);
  check_index(v, s->source_index);
  if (v->wrong) return;
  if (!is_power_of_two(s->lanes) || s->lanes < 4)
    FAIL(v, "a square of %u lanes", s->lanes);
  if (s->source == 0 || s->source >= v->kir->buffer_count)
    FAIL(v, "buffer %u does not exist", s->source);
  if (v->wrong) return;
  ft_kir_type type = {FT_F32, s->lanes};
  if (v->kir->buffer[s->source].dtype != FT_F32)
    FAIL(v, "a square of %s", ft_dtype_text(v->kir->buffer[s->source].dtype));
  if (!v->wrong) check_buffer(v, s->source, type);
  check_buffer(v, s->buffer, type);
  if (!v->wrong && !v->kir->buffer[s->buffer].is_written)
    FAIL(v, "buffer %u is read-only", s->buffer);
  if (!v->wrong && (v->kir->buffer[s->source].space == FT_KIR_REGISTER ||
                    v->kir->buffer[s->buffer].space == FT_KIR_REGISTER))
    FAIL(v, "a register holds no square");
}

static void check_block(verifier *v, const ft_kir_block *block);

static void check_loop_place(verifier *v, const ft_kir_stmt *s) {
  int64_t step = 1;
  if (ft_kir_is_number(v->kir, s->step, &step) && step < 1)
    FAIL(v, "a loop with step %lld", (long long)step);
  int64_t n;
  bool is_known = ft_kir_is_number(v->kir, s->begin, &n) &&
                  ft_kir_is_number(v->kir, s->end, &n) &&
                  ft_kir_is_number(v->kir, s->step, &n);
  if (s->loop == FT_KIR_UNROLL && !is_known) FAIL(v, "an unrolled loop of unknown steps");
  if (s->loop == FT_KIR_GRID && (v->depth || v->in_grid)) FAIL(v, "a grid loop inside");
  if (s->loop == FT_KIR_THREAD && (!v->in_grid || v->depth != 1))
    FAIL(v, "a thread loop that is not directly in the grid loop");
  if (s->loop != FT_KIR_THREAD || !ft_kir_is_number(v->kir, s->end, &n)) return;
  const char *wrong = ft_kir_min_blocks_refusal(v->kir->min_blocks, n);
  if (wrong) FAIL(v, "%s", wrong);
}

const char *ft_kir_min_blocks_refusal(uint32_t min_blocks, int64_t threads) {
  if (min_blocks > FT_KIR_MOST_BLOCKS) return "min_blocks is not 0 to 32";
  if (min_blocks && threads > MOST_THREADS / min_blocks)
    return "min_blocks of so many threads are over the 2048 of a multiprocessor";
  return NULL;
}

static void check_for(verifier *v, const ft_kir_stmt *s) {
  check_index(v, s->begin);
  check_index(v, s->end);
  check_index(v, s->step);
  if (!v->wrong) check_loop_place(v, s);
  if (v->wrong) return;
  verifier inner = *v;
  inner.depth++;
  if (s->loop == FT_KIR_GRID) inner.in_grid = true;
  if (s->loop == FT_KIR_THREAD)
    inner.in_thread = true;
  else if (v->kir->value[s->value].level == FT_KIR_PER_THREAD)
    inner.diverges = true;
  v->is_defined[s->value] = true;
  v->is_unrolled[s->value] = s->loop == FT_KIR_UNROLL;
  check_block(&inner, &s->body);
  v->is_defined[s->value] = false;
  v->wrong = inner.wrong;
}

static void check_if(verifier *v, const ft_kir_stmt *s) {
  check_index(v, s->value);
  if (v->wrong) return;
  verifier inner = *v;
  inner.depth++;
  if (v->kir->value[s->value].level == FT_KIR_PER_THREAD) inner.diverges = true;
  check_block(&inner, &s->body);
  if (!inner.wrong) check_block(&inner, &s->otherwise);
  v->wrong = inner.wrong;
}

static void check_grid_done(verifier *v, const ft_kir_stmt *s) {
  check_index(v, s->index);
  check_index(v, s->end);
  if (v->wrong) return;
  check_buffer(v, s->buffer, (ft_kir_type){FT_I32, 1});
  if (!v->wrong && v->kir->buffer[s->buffer].space != FT_KIR_WORKSPACE)
    FAIL(v, "buffer %u counts blocks outside the workspace", s->buffer);
  if (!v->in_grid || v->diverges)
    FAIL(v, "a grid-done where not all threads of a block meet");
  if (v->wrong) return;
  verifier inner = *v;
  inner.depth++;
  check_block(&inner, &s->body);
  v->wrong = inner.wrong;
}

// Of a global buffer: the hint goes to memory that other levels share.
static void check_prefetch(verifier *v, const ft_kir_stmt *s) {
  check_index(v, s->index);
  if (v->wrong) return;
  bool is_known = s->buffer && s->buffer < v->kir->buffer_count;
  if (!is_known || v->kir->buffer[s->buffer].space != FT_KIR_GLOBAL)
    FAIL(v, "a prefetch of buffer %u, which is not global", s->buffer);
}

static void check_copy(verifier *v, const ft_kir_stmt *s) {
  const ft_kir *kir = v->kir;
  check_index(v, s->index);
  check_index(v, s->source_index);
  if (s->value) check_index(v, s->value);
  if (v->wrong) return;
  bool is_known = s->source && s->source < kir->buffer_count && s->buffer &&
                  s->buffer < kir->buffer_count;
  if (!is_known) {
    FAIL(v, "a copy from buffer %u to %u, which does not exist", s->source, s->buffer);
    return;
  }
  const ft_kir_buffer *from = &kir->buffer[s->source], *to = &kir->buffer[s->buffer];
  size_t bytes = s->lanes * ft_dtype_bytes(from->dtype);
  if (from->space != FT_KIR_GLOBAL || from->is_written || to->space != FT_KIR_SHARED)
    FAIL(v, "a copy from buffer %u to %u: not from read-only global to shared memory",
         s->source, s->buffer);
  else if (!v->is_open[s->buffer])
    FAIL(v, "buffer %u is used out of scope", s->buffer);
  else if (from->dtype != to->dtype)
    FAIL(v, "a copy of %s as %s", ft_dtype_text(from->dtype), ft_dtype_text(to->dtype));
  else if (bytes != 4 && bytes != 8 && bytes != 16)
    FAIL(v, "a copy of %zu bytes", bytes);
}

static void check_copying(verifier *v, const ft_kir_stmt *s) {
  if (!v->in_thread) FAIL(v, "copies outside the thread loop");
  if (!v->wrong && s->kind == FT_KIR_COPY) check_copy(v, s);
  if (!v->wrong && s->kind == FT_KIR_WAIT && s->code < 0)
    FAIL(v, "a wait for %d batches", (int)s->code);
}

static void check_stmt(verifier *v, const ft_kir_stmt *s) {
  switch (s->kind) {
    case FT_KIR_LET:
      check_let(v, s->value);
      break;
    case FT_KIR_FOR:
      check_for(v, s);
      break;
    case FT_KIR_IF:
      check_if(v, s);
      break;
    case FT_KIR_STORE:
      check_store(v, s);
      break;
    case FT_KIR_TURN:
      check_turn(v, s);
      break;
    case FT_KIR_ALLOC:
      v->is_open[s->buffer] = true;
      break;
    case FT_KIR_BARRIER:
      if (!v->in_thread || v->diverges)
        FAIL(v, "a barrier where not all threads of a block meet");
      break;
    case FT_KIR_GRID_DONE:
      check_grid_done(v, s);
      break;
    case FT_KIR_PREFETCH:
      check_prefetch(v, s);
      break;
    case FT_KIR_COPY:
    case FT_KIR_COMMIT:
    case FT_KIR_WAIT:
      check_copying(v, s);
      break;
    case FT_KIR_FAIL:
    case FT_KIR_FENCE:
      break;
  }
}

static void check_block(verifier *v, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s && !v->wrong; s = s->next) check_stmt(v, s);
  // What the block defined ends with it.
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    if (s->kind == FT_KIR_LET && s->value < v->kir->value_count)
      v->is_defined[s->value] = false;
    if (s->kind == FT_KIR_ALLOC) v->is_open[s->buffer] = false;
  }
}

const char *ft_kir_verify(ft_kir *kir) {
  verifier v = {.kir = kir};
  v.is_defined = FT_NEW_ARRAY(kir->arena, bool, kir->value_count);
  v.is_open = FT_NEW_ARRAY(kir->arena, bool, kir->buffer_count);
  v.is_unrolled = FT_NEW_ARRAY(kir->arena, bool, kir->value_count);
  if (kir->failed || !v.is_defined || !v.is_open || !v.is_unrolled)
    return "out of memory";
  check_block(&v, &kir->body);
  return v.wrong;
}
