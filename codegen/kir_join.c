#include "codegen/kir_join.h"

enum { ALIGNMENT = 64, POINTER_BYTES = 8, IDLE_SHARE = 16, MOST_EACH = 16 };

// ---- what a body is
// ----------------------------------------------------------------------------

// The loops of a kernel; |wrong| when it has others.
typedef struct frame {
  const ft_kir_stmt *grid, *thread;
  int64_t blocks, threads;
  const char *wrong;
} frame;

static bool counts_up(const ft_kir *kir, const ft_kir_stmt *s, ft_kir_loop loop,
                      int64_t *out_end) {
  int64_t begin = 1, step = 0;
  return s && s->kind == FT_KIR_FOR && s->loop == loop &&
         ft_kir_is_number(kir, s->begin, &begin) && begin == 0 &&
         ft_kir_is_number(kir, s->step, &step) && step == 1 &&
         ft_kir_is_number(kir, s->end, out_end);
}

static bool is_declaration(const ft_kir_stmt *s) {
  return s->kind == FT_KIR_LET || s->kind == FT_KIR_ALLOC;
}

static frame frame_of(const ft_kir *kir) {
  frame f = {.grid = kir->body.first};
  if (!counts_up(kir, f.grid, FT_KIR_GRID, &f.blocks) || f.grid->next) {
    f.wrong = "not one grid loop from 0 by 1";
    return f;
  }
  f.thread = f.grid->body.first;
  while (f.thread && is_declaration(f.thread)) f.thread = f.thread->next;
  if (!counts_up(kir, f.thread, FT_KIR_THREAD, &f.threads) || f.thread->next)
    f.wrong = "not one thread loop from 0 by 1";
  return f;
}

// ---- which block runs what
// ---------------------------------------------------------------------

// Body i has |each| of every |cycle| blocks, from |first| on.
typedef struct turn {
  int64_t first, each, blocks;
} turn;

typedef struct dispatch {
  int64_t rounds, cycle;
  uint32_t count;  // bodies that have blocks
  uint32_t body[FT_KIR_MOST_BODIES];
  turn turn[FT_KIR_MOST_BODIES];
} dispatch;

static int64_t divided_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static bool leaves_few_idle(const int64_t *blocks, uint32_t count, int64_t rounds) {
  for (uint32_t i = 0; i < count; i++)
    if (rounds * divided_up(blocks[i], rounds) - blocks[i] > blocks[i] / IDLE_SHARE)
      return false;
  return true;
}

int64_t ft_kir_join_rounds(const int64_t *blocks, uint32_t count) {
  int64_t best = 1;
  if (count < 2) return 1;
  for (uint32_t i = 0; i < count; i++)
    for (int64_t each = 1; each <= MOST_EACH; each++) {
      int64_t rounds = divided_up(blocks[i], each);
      if (rounds > best && leaves_few_idle(blocks, count, rounds)) best = rounds;
    }
  return best;
}

static dispatch dispatch_of(const ft_kir_body *body, uint32_t count, ft_kir_order order) {
  dispatch d = {.rounds = 1};
  int64_t blocks[FT_KIR_MOST_BODIES];
  for (uint32_t i = 0; i < count; i++) {
    int64_t n = frame_of(body[i].kir).blocks;
    if (n < 1) continue;
    blocks[d.count] = n;
    d.body[d.count++] = i;
  }
  if (order == FT_KIR_INTERLEAVE) d.rounds = ft_kir_join_rounds(blocks, d.count);
  for (uint32_t i = 0; i < d.count; i++) {
    d.turn[i] = (turn){d.cycle, divided_up(blocks[i], d.rounds), blocks[i]};
    d.cycle += d.turn[i].each;
  }
  return d;
}

// ---- refusals
// ----------------------------------------------------------------------------------

static const char *frame_refusal(const ft_kir_body *body, uint32_t count,
                                 ft_arena *arena) {
  for (uint32_t i = 0; i < count; i++) {
    frame f = frame_of(body[i].kir), first = frame_of(body[0].kir);
    if (f.wrong) return ft_arena_printf(arena, "body %u: %s", i, f.wrong);
    if (f.threads != first.threads)
      return ft_arena_printf(arena,
                             "body %u has %lld threads and body 0 %lld: a barrier needs "
                             "all threads of a block",
                             i, (long long)f.threads, (long long)first.threads);
    if (body[i].kir->scratch_bytes)
      return ft_arena_printf(arena, "body %u has memory per thread", i);
  }
  return NULL;
}

static bool is_argument(const ft_kir_buffer *b) {
  return b->space == FT_KIR_GLOBAL || b->space == FT_KIR_WORKSPACE;
}

static uint32_t arguments_of(const ft_kir_body *body, uint32_t count) {
  uint32_t all = 0;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < body[i].arguments; k++)
      if (body[i].argument[k] >= all) all = body[i].argument[k] + 1;
  return all;
}

// What is known about a position of the joined kernel.
typedef struct use {
  const ft_kir_buffer *buffer;  // NULL: not used yet
  uint32_t body;
} use;

static const char *use_refusal(use *u, uint32_t argument, const ft_kir_buffer *b,
                               uint32_t body, ft_arena *arena) {
  if (!u->buffer) {
    *u = (use){b, body};
    return NULL;
  }
  if (b->space == FT_KIR_WORKSPACE && u->buffer->space == b->space) return NULL;
  if (u->body != body && (b->is_written || u->buffer->is_written))
    return ft_arena_printf(arena,
                           "argument %u is written by body %u or %u, and both use it",
                           argument, u->body, body);
  if (b->space != u->buffer->space || b->dtype != u->buffer->dtype ||
      b->count != u->buffer->count || b->is_written != u->buffer->is_written)
    return ft_arena_printf(arena, "argument %u is not the same to bodies %u and %u",
                           argument, u->body, body);
  return NULL;
}

static const char *argument_refusal(const ft_kir_body *body, uint32_t count,
                                    ft_arena *arena) {
  uint32_t all = arguments_of(body, count);
  use *table = FT_NEW_ARRAY(arena, use, (size_t)all + 1);
  if (!table) return "out of memory";
  if (((uint64_t)all + 1) * POINTER_BYTES > FT_KIR_PARAMETER_BYTES)
    return ft_arena_printf(arena, "%u arguments are more than %d bytes of parameters",
                           all, FT_KIR_PARAMETER_BYTES);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 1; k < body[i].kir->buffer_count; k++) {
      const ft_kir_buffer *b = &body[i].kir->buffer[k];
      if (!is_argument(b)) continue;
      if (b->argument >= body[i].arguments)
        return ft_arena_printf(arena, "body %u: argument %u has no place", i,
                               b->argument);
      uint32_t at = body[i].argument[b->argument];
      const char *wrong = use_refusal(&table[at], at, b, i, arena);
      if (wrong) return wrong;
    }
  return NULL;
}

static const char *grid_refusal(const ft_kir_body *body, uint32_t count,
                                ft_kir_order order, ft_arena *arena) {
  dispatch d = dispatch_of(body, count, order);
  int64_t blocks = d.rounds * d.cycle;
  if (blocks > INT32_MAX)
    return ft_arena_printf(arena, "%lld blocks are too many", (long long)blocks);
  if (order == FT_KIR_INTERLEAVE && d.rounds == 1)
    return ft_arena_printf(arena, "bodies of %lld blocks in all cannot take turns",
                           (long long)blocks);
  return NULL;
}

const char *ft_kir_join_refusal(const ft_kir_body *body, uint32_t count,
                                ft_kir_order order, ft_arena *arena) {
  if (count < 1 || count > FT_KIR_MOST_BODIES)
    return ft_arena_printf(arena, "%u bodies: 1 to %d", count, FT_KIR_MOST_BODIES);
  const char *wrong = frame_refusal(body, count, arena);
  if (!wrong) wrong = argument_refusal(body, count, arena);
  return wrong ? wrong : grid_refusal(body, count, order, arena);
}

// ---- copying a body
// ----------------------------------------------------------------------------

typedef struct joiner {
  ft_kir *to;
  uint32_t *global;  // [joined ABI position] buffer; 0: none yet
  ft_kir_id block, cycle_at, round, thread;
  // the body that is being copied
  const ft_kir_body *body;
  ft_kir_id *value;  // [its value_count] the copies
  uint32_t *buffer;  // [its buffer_count]
} joiner;

static uint32_t add_buffer(joiner *j, ft_kir_buffer buffer) {
  ft_kir *to = j->to;
  if (FT_GROW(to->arena, &to->buffer, to->buffer_count, &to->buffer_capacity)) {
    to->failed = true;
    return 0;
  }
  to->buffer[to->buffer_count] = buffer;
  return to->buffer_count++;
}

static uint32_t copy_buffer(joiner *j, ft_kir_buffer b) {
  if (!is_argument(&b)) return add_buffer(j, b);
  b.argument = j->body->argument[b.argument];
  if (b.space == FT_KIR_WORKSPACE) {
    b.offset += j->to->workspace_bytes;
    return add_buffer(j, b);
  }
  uint32_t *known = &j->global[b.argument];
  if (!*known) *known = add_buffer(j, b);
  return *known;
}

static void copy_buffers(joiner *j) {
  const ft_kir *from = j->body->kir;
  for (uint32_t i = 1; i < from->buffer_count; i++)
    j->buffer[i] = copy_buffer(j, from->buffer[i]);
  uint64_t bytes = from->workspace_bytes;
  j->to->workspace_bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void add_value(joiner *j, ft_kir_value v) {
  ft_kir *to = j->to;
  if (FT_GROW(to->arena, &to->value, to->value_count, &to->value_capacity)) {
    to->failed = true;
    return;
  }
  for (uint32_t i = 0; i < v.operand_count; i++) v.operand[i] = j->value[v.operand[i]];
  v.buffer = v.op == FT_KIR_LOAD ? j->buffer[v.buffer] : 0;
  to->value[to->value_count++] = v;
}

// All of them, in their order; the variables of the two loops stand for |block| and
// the joined kernel's thread, and leave numbers behind that nobody uses.
static void copy_values(joiner *j, const frame *f, ft_kir_id block) {
  const ft_kir *from = j->body->kir;
  uint32_t base = j->to->value_count;
  for (uint32_t i = 1; i < from->value_count; i++) j->value[i] = base + i - 1;
  j->value[f->grid->value] = block;
  j->value[f->thread->value] = j->thread;
  for (uint32_t i = 1; i < from->value_count && !j->to->failed; i++) {
    bool is_replaced = i == f->grid->value || i == f->thread->value;
    ft_kir_value number = {.op = FT_KIR_NUMBER, .type = from->value[i].type};
    add_value(j, is_replaced ? number : from->value[i]);
  }
}

static ft_kir_block copy_block(joiner *j, const ft_kir_stmt *first,
                               const ft_kir_stmt *end);

// Fields that a statement does not have are 0, and stay so.
static ft_kir_stmt *copy_stmt(joiner *j, const ft_kir_stmt *s) {
  ft_kir_stmt *copy = FT_NEW(j->to->arena, ft_kir_stmt);
  if (!copy) {
    j->to->failed = true;
    return NULL;
  }
  *copy = *s;
  copy->next = NULL;
  copy->value = j->value[s->value];
  copy->begin = j->value[s->begin];
  copy->end = j->value[s->end];
  copy->step = j->value[s->step];
  copy->index = j->value[s->index];
  copy->source_index = j->value[s->source_index];
  copy->buffer = j->buffer[s->buffer];
  copy->source = j->buffer[s->source];
  copy->body = copy_block(j, s->body.first, NULL);
  copy->otherwise = copy_block(j, s->otherwise.first, NULL);
  return copy;
}

static ft_kir_block copy_block(joiner *j, const ft_kir_stmt *first,
                               const ft_kir_stmt *end) {
  ft_kir_block block = {NULL, NULL};
  for (const ft_kir_stmt *s = first; s != end; s = s->next)
    ft_kir_append(&block, copy_stmt(j, s));
  return block;
}

static void append_all(ft_kir_block *at, ft_kir_block more) {
  if (!more.first) return;
  if (at->last)
    at->last->next = more.first;
  else
    at->first = more.first;
  at->last = more.last;
}

// ---- the joined kernel
// -------------------------------------------------------------------------

static ft_kir_id number(joiner *j, int64_t n) {
  return ft_kir_number(j->to, n);
}

static ft_kir_id calculate(joiner *j, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  return ft_kir_index(j->to, op, a, b);
}

// The body's own block index, named at |at|.
static ft_kir_id own_block(joiner *j, const turn *t, ft_kir_block *at) {
  ft_kir_id index = calculate(j, FT_KIR_ISUB, j->cycle_at, number(j, t->first));
  if (j->round) {
    ft_kir_id before = calculate(j, FT_KIR_IMUL, j->round, number(j, t->each));
    index = calculate(j, FT_KIR_IADD, before, index);
  }
  return index == j->cycle_at ? index : ft_kir_let(j->to, at, index);
}

static void put_body(joiner *j, const turn *t, int64_t rounds, ft_kir_block *at) {
  frame f = frame_of(j->body->kir);
  ft_kir_id block = own_block(j, t, at);
  if (rounds * t->each != t->blocks) {
    ft_kir_stmt *guard =
        ft_kir_if(j->to, calculate(j, FT_KIR_ILESS, block, number(j, t->blocks)));
    ft_kir_append(at, guard);
    at = &guard->body;
  }
  j->value = FT_NEW_ARRAY(j->to->arena, ft_kir_id, j->body->kir->value_count);
  j->buffer = FT_NEW_ARRAY(j->to->arena, uint32_t, j->body->kir->buffer_count);
  if (!j->value || !j->buffer) {
    j->to->failed = true;
    return;
  }
  copy_buffers(j);
  copy_values(j, &f, block);
  append_all(at, copy_block(j, f.grid->body.first, f.thread));
  append_all(at, copy_block(j, f.thread->body.first, NULL));
}

// The bodies from |i| on: a branch for each but the last.
static void put_chain(joiner *j, const ft_kir_body *body, const dispatch *d, uint32_t i,
                      ft_kir_block *at) {
  if (i == d->count || j->to->failed) return;
  const turn *t = &d->turn[i];
  ft_kir_block *own = at, *rest = NULL;
  if (i + 1 < d->count) {
    ft_kir_id end = number(j, t->first + t->each);
    ft_kir_stmt *branch = ft_kir_if(j->to, calculate(j, FT_KIR_ILESS, j->cycle_at, end));
    ft_kir_append(at, branch);
    own = &branch->body;
    rest = &branch->otherwise;
  }
  j->body = &body[d->body[i]];
  put_body(j, t, d->rounds, own);
  if (rest) put_chain(j, body, d, i + 1, rest);
}

static void put_position(joiner *j, const dispatch *d, ft_kir_block *at) {
  j->cycle_at = j->block;
  if (d->rounds == 1) return;
  ft_kir_id cycle = number(j, d->cycle);
  j->round = ft_kir_let(j->to, at, calculate(j, FT_KIR_IDIV, j->block, cycle));
  j->cycle_at = ft_kir_let(j->to, at, calculate(j, FT_KIR_IMOD, j->block, cycle));
}

ft_status ft_kir_join(const ft_kir_body *body, uint32_t count, ft_kir_order order,
                      ft_arena *arena, ft_kir **out, ft_error *error) {
  dispatch d = dispatch_of(body, count, order);
  int64_t blocks = d.rounds * d.cycle, threads = frame_of(body[0].kir).threads;
  joiner j = {.to = ft_kir_create(arena)};
  j.global = FT_NEW_ARRAY(arena, uint32_t, (size_t)arguments_of(body, count) + 1);
  FT_OOM_IF(!j.to || !j.global, error);
  ft_kir_stmt *grid = ft_kir_for(j.to, FT_KIR_GRID, number(&j, 0),
                                 number(&j, blocks ? blocks : 1), number(&j, 1));
  ft_kir_stmt *thread =
      ft_kir_for(j.to, FT_KIR_THREAD, number(&j, 0), number(&j, threads), number(&j, 1));
  j.block = grid->value;
  j.thread = thread->value;
  put_position(&j, &d, &thread->body);
  put_chain(&j, body, &d, 0, &thread->body);
  ft_kir_append(&grid->body, thread);
  ft_kir_append(&j.to->body, grid);
  FT_OOM_IF(j.to->failed, error);
  *out = j.to;
  return FT_OK;
}
