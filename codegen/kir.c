#include "codegen/kir.h"

ft_kir *ft_kir_create(ft_arena *arena) {
  ft_kir *kir = FT_NEW(arena, ft_kir);
  if (!kir) return NULL;
  kir->arena = arena;
  // Value 0 and buffer 0 stand in when memory runs out.
  if (FT_GROW(arena, &kir->value, 0, &kir->value_capacity) ||
      FT_GROW(arena, &kir->buffer, 0, &kir->buffer_capacity))
    return NULL;
  kir->value_count = kir->buffer_count = 1;
  return kir;
}

ft_dtype ft_kir_math_dtype(ft_dtype dtype) {
  return dtype == FT_F16 || dtype == FT_BF16 ? FT_F32 : dtype;
}

// ---- buffers ------------------------------------------------------------------------

static uint32_t add_buffer(ft_kir *kir, ft_kir_buffer buffer) {
  if (FT_GROW(kir->arena, &kir->buffer, kir->buffer_count, &kir->buffer_capacity)) {
    kir->failed = true;
    return 0;
  }
  kir->buffer[kir->buffer_count] = buffer;
  return kir->buffer_count++;
}

uint32_t ft_kir_global(ft_kir *kir, ft_dtype dtype, int64_t count, uint32_t argument,
                       bool is_written) {
  return add_buffer(kir, (ft_kir_buffer){.space = FT_KIR_GLOBAL,
                                         .dtype = dtype,
                                         .count = count,
                                         .argument = argument,
                                         .is_written = is_written});
}

// Reserves |count| elements from |*used| on, at a cache line.
static uint64_t reserve(uint64_t *used, ft_dtype dtype, int64_t count) {
  uint64_t offset = *used;
  *used += ((uint64_t)count * ft_dtype_bytes(dtype) + 63) / 64 * 64;
  return offset;
}

uint32_t ft_kir_scratch(ft_kir *kir, ft_dtype dtype, int64_t count) {
  return add_buffer(
      kir, (ft_kir_buffer){.space = FT_KIR_SCRATCH,
                           .dtype = dtype,
                           .count = count,
                           .is_written = true,
                           .offset = reserve(&kir->scratch_bytes, dtype, count)});
}

uint32_t ft_kir_workspace(ft_kir *kir, ft_dtype dtype, int64_t count, uint32_t argument) {
  return add_buffer(
      kir, (ft_kir_buffer){.space = FT_KIR_WORKSPACE,
                           .dtype = dtype,
                           .count = count,
                           .argument = argument,
                           .is_written = true,
                           .offset = reserve(&kir->workspace_bytes, dtype, count)});
}

static ft_kir_stmt *statement(ft_kir *kir, ft_kir_kind kind) {
  ft_kir_stmt *stmt = FT_NEW(kir->arena, ft_kir_stmt);
  if (!stmt)
    kir->failed = true;
  else
    stmt->kind = kind;
  return stmt;
}

void ft_kir_append(ft_kir_block *at, ft_kir_stmt *stmt) {
  if (!stmt) return;
  if (at->last)
    at->last->next = stmt;
  else
    at->first = stmt;
  at->last = stmt;
}

static uint32_t allocate(ft_kir *kir, ft_kir_block *at, ft_kir_buffer buffer) {
  uint32_t id = add_buffer(kir, buffer);
  ft_kir_stmt *stmt = statement(kir, FT_KIR_ALLOC);
  if (stmt) stmt->buffer = id;
  ft_kir_append(at, stmt);
  return id;
}

uint32_t ft_kir_shared(ft_kir *kir, ft_kir_block *at, ft_dtype dtype, int64_t count) {
  return allocate(
      kir, at,
      (ft_kir_buffer){
          .space = FT_KIR_SHARED, .dtype = dtype, .count = count, .is_written = true});
}

uint32_t ft_kir_register(ft_kir *kir, ft_kir_block *at, ft_kir_type type) {
  return ft_kir_registers(kir, at, type, 1);
}

uint32_t ft_kir_registers(ft_kir *kir, ft_kir_block *at, ft_kir_type type,
                          int64_t count) {
  return allocate(kir, at,
                  (ft_kir_buffer){.space = FT_KIR_REGISTER,
                                  .dtype = ft_kir_math_dtype(type.dtype),
                                  .lanes = type.lanes,
                                  .count = count,
                                  .is_written = true});
}

// ---- values ---------------------------------------------------------------------------

static ft_kir_id add_value(ft_kir *kir, ft_kir_value value) {
  if (FT_GROW(kir->arena, &kir->value, kir->value_count, &kir->value_capacity)) {
    kir->failed = true;
    return 0;
  }
  for (uint32_t i = 0; i < value.operand_count; i++) {
    ft_kir_level level = kir->value[value.operand[i]].level;
    if (level > value.level) value.level = level;
  }
  kir->value[kir->value_count] = value;
  return kir->value_count++;
}

static const ft_kir_type index_type = {FT_I64, 0};

ft_kir_id ft_kir_number(ft_kir *kir, int64_t number) {
  return add_value(
      kir, (ft_kir_value){.op = FT_KIR_NUMBER, .type = index_type, .imm = number});
}

bool ft_kir_is_number(const ft_kir *kir, ft_kir_id id, int64_t *out) {
  if (kir->value[id].op != FT_KIR_NUMBER) return false;
  *out = kir->value[id].imm;
  return true;
}

int64_t ft_kir_calculate(ft_kir_op op, int64_t a, int64_t b) {
  if ((op == FT_KIR_IDIV || op == FT_KIR_IMOD) && b <= 0) return 0;
  switch (op) {
    case FT_KIR_IADD:
      return a + b;
    case FT_KIR_ISUB:
      return a - b;
    case FT_KIR_IMUL:
      return a * b;
    case FT_KIR_IDIV:
      return a / b;
    case FT_KIR_IMOD:
      return a % b;
    case FT_KIR_IMIN:
      return a < b ? a : b;
    case FT_KIR_IMAX:
      return a > b ? a : b;
    default:
      return a < b;
  }
}

ft_kir_id ft_kir_index(ft_kir *kir, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  int64_t x = 0, y = 0;
  bool has_x = ft_kir_is_number(kir, a, &x), has_y = ft_kir_is_number(kir, b, &y);
  if (has_x && has_y) return ft_kir_number(kir, ft_kir_calculate(op, x, y));
  bool adds = op == FT_KIR_IADD || (op == FT_KIR_ISUB && has_y);
  if (adds && has_y && y == 0) return a;
  if (op == FT_KIR_IADD && has_x && x == 0) return b;
  if ((op == FT_KIR_IMUL || op == FT_KIR_IDIV) && has_y && y == 1) return a;
  if (op == FT_KIR_IMUL && has_x && x == 1) return b;
  if (op == FT_KIR_IMOD && has_y && y == 1) return ft_kir_number(kir, 0);
  return add_value(
      kir, (ft_kir_value){
               .op = op, .type = index_type, .operand = {a, b}, .operand_count = 2});
}

ft_kir_id ft_kir_to_index(ft_kir *kir, ft_kir_id a) {
  return add_value(
      kir,
      (ft_kir_value){
          .op = FT_KIR_TO_INDEX, .type = index_type, .operand = {a}, .operand_count = 1});
}

ft_kir_id ft_kir_let(ft_kir *kir, ft_kir_block *at, ft_kir_id index) {
  ft_kir_op op = kir->value[index].op;
  if (op == FT_KIR_NUMBER || op == FT_KIR_LOOP) return index;
  ft_kir_stmt *stmt = statement(kir, FT_KIR_LET);
  if (stmt) stmt->value = index;
  ft_kir_append(at, stmt);
  return index;
}

static ft_kir_id let(ft_kir *kir, ft_kir_block *at, ft_kir_value value) {
  return ft_kir_let(kir, at, add_value(kir, value));
}

ft_kir_id ft_kir_element(ft_kir *kir, ft_kir_block *at, ft_kir_type type, int64_t bits) {
  type.dtype = ft_kir_math_dtype(type.dtype);
  return let(kir, at, (ft_kir_value){.op = FT_KIR_ELEMENT, .type = type, .imm = bits});
}

static ft_kir_id narrow(ft_kir *kir, ft_kir_block *at, ft_kir_id a, ft_dtype dtype) {
  return let(kir, at,
             (ft_kir_value){.op = FT_KIR_NARROW,
                            .type = kir->value[a].type,
                            .operand = {a},
                            .operand_count = 1,
                            .imm = dtype});
}

ft_kir_id ft_kir_primitive(ft_kir *kir, ft_kir_block *at, ft_op op, ft_dtype dtype,
                           const ft_kir_id *operand, uint32_t count) {
  ft_dtype math = ft_kir_math_dtype(dtype);
  ft_kir_value value = {.op = FT_KIR_PRIMITIVE,
                        .type = {math, kir->value[operand[0]].type.lanes},
                        .primitive = op,
                        .operand_count = (uint8_t)count};
  for (uint32_t i = 0; i < count; i++) value.operand[i] = operand[i];
  bool is_rounding = op == FT_OP_CAST && math != dtype;
  if (!is_rounding) return let(kir, at, value);
  bool is_wide = kir->value[operand[0]].type.dtype == math;
  return narrow(kir, at, is_wide ? operand[0] : let(kir, at, value), dtype);
}

ft_kir_id ft_kir_splat(ft_kir *kir, ft_kir_block *at, ft_kir_id a, uint16_t lanes) {
  ft_kir_type type = kir->value[a].type;
  if (type.lanes == lanes) return a;
  type.lanes = lanes;
  return let(kir, at,
             (ft_kir_value){
                 .op = FT_KIR_SPLAT, .type = type, .operand = {a}, .operand_count = 1});
}

ft_kir_id ft_kir_keep(ft_kir *kir, ft_kir_block *at, ft_kir_id a, ft_kir_id other,
                      uint16_t first) {
  return let(kir, at,
             (ft_kir_value){.op = FT_KIR_KEEP,
                            .type = kir->value[a].type,
                            .operand = {a, other},
                            .operand_count = 2,
                            .imm = first});
}

ft_kir_id ft_kir_combine(ft_kir *kir, ft_kir_block *at, ft_op reduction, ft_kir_id a,
                         ft_kir_id b) {
  return let(kir, at,
             (ft_kir_value){.op = FT_KIR_COMBINE,
                            .type = kir->value[a].type,
                            .primitive = reduction,
                            .operand = {a, b},
                            .operand_count = 2});
}

ft_kir_id ft_kir_fold(ft_kir *kir, ft_kir_block *at, ft_op reduction, ft_kir_id a) {
  if (kir->value[a].type.lanes == 1) return a;
  return let(kir, at,
             (ft_kir_value){.op = FT_KIR_FOLD,
                            .type = {kir->value[a].type.dtype, 1},
                            .primitive = reduction,
                            .operand = {a},
                            .operand_count = 1});
}

ft_kir_id ft_kir_lane(ft_kir *kir, ft_kir_block *at, ft_kir_id a, uint16_t lane) {
  if (kir->value[a].type.lanes == 1) return a;
  return let(kir, at,
             (ft_kir_value){.op = FT_KIR_LANE,
                            .type = {kir->value[a].type.dtype, 1},
                            .operand = {a},
                            .operand_count = 1,
                            .imm = lane});
}

ft_kir_id ft_kir_load(ft_kir *kir, ft_kir_block *at, uint32_t buffer, uint16_t lanes,
                      ft_kir_id index, int64_t stride) {
  return ft_kir_load_hinted(kir, at, buffer, lanes, index, stride, FT_KIR_CACHED);
}

ft_kir_id ft_kir_load_hinted(ft_kir *kir, ft_kir_block *at, uint32_t buffer,
                             uint16_t lanes, ft_kir_id index, int64_t stride,
                             ft_kir_hint hint) {
  ft_kir_space space = kir->buffer[buffer].space;
  bool is_private = space == FT_KIR_REGISTER || space == FT_KIR_SCRATCH;
  return let(kir, at,
             (ft_kir_value){.op = FT_KIR_LOAD,
                            .type = {ft_kir_math_dtype(kir->buffer[buffer].dtype), lanes},
                            .operand = {index},
                            .operand_count = 1,
                            .buffer = buffer,
                            .imm = stride,
                            .hint = hint,
                            .level = is_private ? FT_KIR_PER_THREAD : FT_KIR_PER_BLOCK});
}

ft_kir_id ft_kir_shuffle(ft_kir *kir, ft_kir_block *at, ft_kir_id a, int64_t mask) {
  return let(kir, at,
             (ft_kir_value){.op = FT_KIR_SHUFFLE,
                            .type = kir->value[a].type,
                            .operand = {a},
                            .operand_count = 1,
                            .imm = mask,
                            .level = FT_KIR_PER_THREAD});
}

// ---- statements
// -------------------------------------------------------------------------

void ft_kir_store(ft_kir *kir, ft_kir_block *at, uint32_t buffer, ft_kir_id value,
                  ft_kir_id index, int64_t stride, ft_kir_hint hint) {
  ft_kir_stmt *stmt = statement(kir, FT_KIR_STORE);
  if (!stmt) return;
  stmt->buffer = buffer;
  stmt->value = value;
  stmt->index = index;
  stmt->stride = stride;
  stmt->hint = hint;
  ft_kir_append(at, stmt);
}

void ft_kir_turn(ft_kir *kir, ft_kir_block *at, ft_kir_square from, ft_kir_square to,
                 uint16_t lanes) {
  ft_kir_stmt *stmt = statement(kir, FT_KIR_TURN);
  if (!stmt) return;
  stmt->buffer = to.buffer;
  stmt->index = to.index;
  stmt->stride = to.stride;
  stmt->source = from.buffer;
  stmt->source_index = from.index;
  stmt->source_stride = from.stride;
  stmt->lanes = lanes;
  ft_kir_append(at, stmt);
}

void ft_kir_barrier(ft_kir *kir, ft_kir_block *at) {
  ft_kir_append(at, statement(kir, FT_KIR_BARRIER));
}

void ft_kir_fence(ft_kir *kir, ft_kir_block *at) {
  ft_kir_append(at, statement(kir, FT_KIR_FENCE));
}

void ft_kir_prefetch(ft_kir *kir, ft_kir_block *at, uint32_t buffer, ft_kir_id index) {
  ft_kir_stmt *stmt = statement(kir, FT_KIR_PREFETCH);
  if (!stmt) return;
  stmt->buffer = buffer;
  stmt->index = index;
  ft_kir_append(at, stmt);
}

void ft_kir_copy(ft_kir *kir, ft_kir_block *at, uint32_t from, ft_kir_id from_index,
                 uint32_t to, ft_kir_id to_index, uint16_t lanes, ft_kir_id condition) {
  ft_kir_stmt *stmt = statement(kir, FT_KIR_COPY);
  if (!stmt) return;
  stmt->buffer = to;
  stmt->index = to_index;
  stmt->source = from;
  stmt->source_index = from_index;
  stmt->lanes = lanes;
  stmt->value = condition;
  ft_kir_append(at, stmt);
}

void ft_kir_commit(ft_kir *kir, ft_kir_block *at) {
  ft_kir_append(at, statement(kir, FT_KIR_COMMIT));
}

void ft_kir_wait(ft_kir *kir, ft_kir_block *at, int32_t batches) {
  ft_kir_stmt *stmt = statement(kir, FT_KIR_WAIT);
  if (stmt) stmt->code = batches;
  ft_kir_append(at, stmt);
}

void ft_kir_fail(ft_kir *kir, ft_kir_block *at, int32_t code) {
  ft_kir_stmt *stmt = statement(kir, FT_KIR_FAIL);
  if (stmt) stmt->code = code;
  ft_kir_append(at, stmt);
}

static ft_kir_level loop_level(const ft_kir *kir, ft_kir_loop loop, ft_kir_id begin,
                               ft_kir_id end) {
  if (loop == FT_KIR_GRID) return FT_KIR_PER_BLOCK;
  if (loop == FT_KIR_THREAD) return FT_KIR_PER_THREAD;
  ft_kir_level a = kir->value[begin].level, b = kir->value[end].level;
  return a > b ? a : b;
}

ft_kir_stmt *ft_kir_for(ft_kir *kir, ft_kir_loop loop, ft_kir_id begin, ft_kir_id end,
                        ft_kir_id step) {
  ft_kir_stmt *stmt = statement(kir, FT_KIR_FOR);
  if (!stmt) return &kir->spare;
  stmt->loop = loop;
  stmt->begin = begin;
  stmt->end = end;
  stmt->step = step;
  stmt->value =
      add_value(kir, (ft_kir_value){.op = FT_KIR_LOOP,
                                    .type = index_type,
                                    .level = loop_level(kir, loop, begin, end)});
  return stmt;
}

ft_kir_stmt *ft_kir_if(ft_kir *kir, ft_kir_id condition) {
  ft_kir_stmt *stmt = statement(kir, FT_KIR_IF);
  if (!stmt) return &kir->spare;
  stmt->value = condition;
  return stmt;
}

ft_kir_stmt *ft_kir_grid_done(ft_kir *kir, uint32_t counter, ft_kir_id index,
                              ft_kir_id blocks) {
  ft_kir_stmt *stmt = statement(kir, FT_KIR_GRID_DONE);
  if (!stmt) return &kir->spare;
  stmt->buffer = counter;
  stmt->index = index;
  stmt->end = blocks;
  return stmt;
}
