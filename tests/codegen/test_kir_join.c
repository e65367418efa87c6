#include "codegen/kir_join.h"

#include <criterion/criterion.h>

#include "tests/support/limited.h"

// y[i] = exp(x[i]) for |elements| by blocks of |threads|; x is argument 0, y 1, and with
// |has_counter| a workspace is 2.
typedef struct made {
  ft_kir *kir;
  ft_kir_stmt *grid, *thread;
} made;

static made make(ft_arena *arena, int64_t blocks, int64_t threads, bool has_counter) {
  made m = {.kir = ft_kir_create(arena)};
  ft_kir *k = m.kir;
  int64_t count = blocks * threads;
  uint32_t x = ft_kir_global(k, FT_F32, count, 0, false);
  uint32_t y = ft_kir_global(k, FT_F32, count, 1, true);
  ft_kir_id zero = ft_kir_number(k, 0), step = ft_kir_number(k, 1);
  m.grid = ft_kir_for(k, FT_KIR_GRID, zero, ft_kir_number(k, blocks), step);
  m.thread = ft_kir_for(k, FT_KIR_THREAD, zero, ft_kir_number(k, threads), step);
  ft_kir_block *at = &m.thread->body;
  ft_kir_id i = ft_kir_index(k, FT_KIR_IMUL, m.grid->value, ft_kir_number(k, threads));
  i = ft_kir_let(k, at, ft_kir_index(k, FT_KIR_IADD, i, m.thread->value));
  ft_kir_id v = ft_kir_load(k, at, x, 1, i, 1);
  v = ft_kir_primitive(k, at, FT_OP_EXP, FT_F32, &v, 1);
  uint32_t shared = ft_kir_shared(k, at, FT_F32, threads);
  ft_kir_store(k, at, shared, v, m.thread->value, 1, FT_KIR_CACHED);
  ft_kir_barrier(k, at);
  v = ft_kir_load(k, at, shared, 1, m.thread->value, 1);
  ft_kir_store(k, at, y, v, i, 1, FT_KIR_CACHED);
  if (has_counter) {
    uint32_t counter = ft_kir_workspace(k, FT_I32, 20, 2);
    ft_kir_append(at, ft_kir_grid_done(k, counter, zero, ft_kir_number(k, blocks)));
  }
  ft_kir_append(&m.grid->body, m.thread);
  ft_kir_append(&k->body, m.grid);
  cr_assert_null(ft_kir_verify(k));
  return m;
}

// Inputs first, then outputs, then the workspace.
static const uint32_t first_of_two[] = {0, 2, 4}, second_of_two[] = {1, 3, 4};

static ft_kir *join_two(made a, made b, ft_kir_order order, ft_arena *arena,
                        const char **refusal) {
  ft_kir_body body[] = {{a.kir, first_of_two, 3}, {b.kir, second_of_two, 3}};
  ft_error error;
  ft_kir *kir = NULL;
  *refusal = ft_kir_join_refusal(body, 2, order, arena);
  if (*refusal) return NULL;
  cr_assert_eq(ft_kir_join(body, 2, order, arena, &kir, &error), FT_OK, "%s", error.text);
  const char *wrong = ft_kir_verify(kir);
  cr_assert_null(wrong, "%s", wrong);
  return kir;
}

static int64_t grid_of(const ft_kir *kir) {
  int64_t end = 0;
  cr_assert(ft_kir_is_number(kir, kir->body.first->end, &end));
  return end;
}

Test(codegen_kir_join, the_grid_is_the_sum_and_both_orders_are_well_formed) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  const char *wrong;
  made a = make(arena, 3, 64, false), b = make(arena, 6, 64, false);
  ft_kir *kir = join_two(a, b, FT_KIR_CONCAT, arena, &wrong);
  cr_assert_eq(grid_of(kir), 9);
  kir = join_two(a, b, FT_KIR_INTERLEAVE, arena, &wrong);
  cr_assert_eq(grid_of(kir), 9);
  cr_assert_eq(kir->body.first->body.first->body.first->kind, FT_KIR_LET, "the turn");
  ft_arena_destroy(arena);
}

Test(codegen_kir_join, the_bodies_stay_as_they_are) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  const char *wrong;
  made a = make(arena, 3, 64, false), b = make(arena, 6, 64, false);
  uint32_t values = a.kir->value_count, buffers = a.kir->buffer_count;
  join_two(a, b, FT_KIR_CONCAT, arena, &wrong);
  cr_assert_eq(a.kir->value_count, values);
  cr_assert_eq(a.kir->buffer_count, buffers);
  cr_assert_null(ft_kir_verify(a.kir));
  ft_arena_destroy(arena);
}

Test(codegen_kir_join, workspaces_follow_each_other) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  const char *wrong;
  made a = make(arena, 2, 32, true), b = make(arena, 2, 32, true);
  ft_kir *kir = join_two(a, b, FT_KIR_CONCAT, arena, &wrong);
  uint64_t offset[2], count = 0;
  for (uint32_t i = 1; i < kir->buffer_count; i++) {
    if (kir->buffer[i].space != FT_KIR_WORKSPACE) continue;
    cr_assert_lt(count, 2);
    cr_assert_eq(kir->buffer[i].argument, 4);
    offset[count++] = kir->buffer[i].offset;
  }
  cr_assert_eq(count, 2);
  cr_assert_eq(offset[0], 0);
  cr_assert_eq(offset[1], 128, "20 numbers of 4 bytes, at a cache line");
  cr_assert_eq(kir->workspace_bytes, 256);
  ft_arena_destroy(arena);
}

Test(codegen_kir_join, a_shared_input_is_one_buffer) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  made a = make(arena, 2, 32, false), b = make(arena, 2, 32, false);
  static const uint32_t left[] = {0, 1}, right[] = {0, 2};
  ft_kir_body body[] = {{a.kir, left, 2}, {b.kir, right, 2}};
  ft_kir *kir;
  ft_error error;
  cr_assert_null(ft_kir_join_refusal(body, 2, FT_KIR_CONCAT, arena));
  cr_assert_eq(ft_kir_join(body, 2, FT_KIR_CONCAT, arena, &kir, &error), FT_OK);
  uint32_t count = 0;
  for (uint32_t i = 1; i < kir->buffer_count; i++)
    count += kir->buffer[i].space == FT_KIR_GLOBAL && kir->buffer[i].argument == 0;
  cr_assert_eq(count, 1);
  ft_arena_destroy(arena);
}

Test(codegen_kir_join, refuses_a_body_that_writes_what_another_has) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  made a = make(arena, 2, 32, false), b = make(arena, 2, 32, false);
  static const uint32_t left[] = {0, 1}, chain[] = {1, 2}, over[] = {0, 1};
  ft_kir_body body[] = {{a.kir, left, 2}, {b.kir, chain, 2}};
  cr_assert_str_eq(ft_kir_join_refusal(body, 2, FT_KIR_CONCAT, arena),
                   "argument 1 is written by body 0 or 1, and both use it");
  body[1].argument = over;
  cr_assert_str_eq(ft_kir_join_refusal(body, 2, FT_KIR_CONCAT, arena),
                   "argument 1 is written by body 0 or 1, and both use it");
  made c = make(arena, 3, 32, false);
  static const uint32_t other[] = {0, 2};
  body[1] = (ft_kir_body){c.kir, other, 2};
  cr_assert_str_eq(ft_kir_join_refusal(body, 2, FT_KIR_CONCAT, arena),
                   "argument 0 is not the same to bodies 0 and 1");
  body[1].arguments = 1;
  cr_assert_str_eq(ft_kir_join_refusal(body, 2, FT_KIR_CONCAT, arena),
                   "argument 0 is not the same to bodies 0 and 1");
  body[0].arguments = 1;
  cr_assert_str_eq(ft_kir_join_refusal(body, 1, FT_KIR_CONCAT, arena),
                   "body 0: argument 1 has no place");
  ft_arena_destroy(arena);
}

Test(codegen_kir_join, refuses_by_name_what_blocks_cannot_do) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  const char *wrong;
  made a = make(arena, 2, 64, false), b = make(arena, 2, 32, false);
  join_two(a, b, FT_KIR_CONCAT, arena, &wrong);
  cr_assert_str_eq(wrong,
                   "body 1 has 32 threads and body 0 64: a barrier needs all threads of "
                   "a block");
  made odd = make(arena, 7, 64, false), even = make(arena, 5, 64, false);
  join_two(odd, even, FT_KIR_INTERLEAVE, arena, &wrong);
  cr_assert_str_eq(wrong, "bodies of 12 blocks in all cannot take turns");
  made large = make(arena, 1 << 30, 64, false);
  join_two(large, large, FT_KIR_CONCAT, arena, &wrong);
  cr_assert_str_eq(wrong, "2147483648 blocks are too many");
  ft_kir_body many[FT_KIR_MOST_BODIES + 1] = {{0}};
  cr_assert_str_eq(ft_kir_join_refusal(many, 9, FT_KIR_CONCAT, arena),
                   "9 bodies: 1 to 8");
  cr_assert_str_eq(ft_kir_join_refusal(many, 0, FT_KIR_CONCAT, arena),
                   "0 bodies: 1 to 8");
  ft_arena_destroy(arena);
}

Test(codegen_kir_join, refuses_more_parameters_than_a_launch_has) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  made a = make(arena, 2, 64, false);
  // The status is one more pointer.
  uint32_t place[] = {0, FT_KIR_PARAMETER_BYTES / 8 - 2};
  ft_kir_body body = {a.kir, place, 2};
  cr_assert_null(ft_kir_join_refusal(&body, 1, FT_KIR_CONCAT, arena));
  place[1]++;
  cr_assert_str_eq(ft_kir_join_refusal(&body, 1, FT_KIR_CONCAT, arena),
                   "512 arguments are more than 4096 bytes of parameters");
  ft_arena_destroy(arena);
}

Test(codegen_kir_join, refuses_kernels_of_another_shape) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  made a = make(arena, 2, 64, false);
  static const uint32_t place[] = {0, 1};
  ft_kir_body body = {a.kir, place, 2};
  a.grid->step = ft_kir_number(a.kir, 2);
  cr_assert_str_eq(ft_kir_join_refusal(&body, 1, FT_KIR_CONCAT, arena),
                   "body 0: not one grid loop from 0 by 1");
  a = make(arena, 2, 64, false);
  body.kir = a.kir;
  ft_kir_barrier(a.kir, &a.grid->body);
  cr_assert_str_eq(ft_kir_join_refusal(&body, 1, FT_KIR_CONCAT, arena),
                   "body 0: not one thread loop from 0 by 1");
  ft_arena_destroy(arena);
}

Test(codegen_kir_join, turns_leave_few_blocks_idle) {
  static const struct {
    int64_t blocks[3];
    uint32_t count;
    int64_t rounds;
  } cases[] = {
      {{8, 8}, 2, 8},       {{3, 6}, 2, 3},      {{128, 33}, 2, 33}, {{7, 5}, 2, 1},
      {{6, 4, 2}, 3, 2},    {{100}, 1, 1},       {{65, 64}, 2, 65},  {{1, 1, 1}, 3, 1},
      {{1000000, 1}, 2, 1}, {{64, 64, 1}, 3, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    cr_expect_eq(ft_kir_join_rounds(cases[i].blocks, cases[i].count), cases[i].rounds,
                 "case %zu: %lld", i,
                 (long long)ft_kir_join_rounds(cases[i].blocks, cases[i].count));
}

Test(codegen_kir_join, a_body_of_no_blocks_is_left_out) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  const char *wrong;
  made a = make(arena, 0, 32, false), b = make(arena, 4, 32, false);
  ft_kir *kir = join_two(a, b, FT_KIR_CONCAT, arena, &wrong);
  cr_assert_eq(grid_of(kir), 4);
  cr_assert_neq(kir->body.first->body.first->body.first->kind, FT_KIR_IF);
  kir = join_two(a, a, FT_KIR_CONCAT, arena, &wrong);
  cr_assert_eq(grid_of(kir), 1);
  cr_assert_null(kir->body.first->body.first->body.first);
  ft_arena_destroy(arena);
}

// An arena with |room| bytes left of one block (core/arena.c), and no other.
static ft_arena *small_arena(const ft_allocator *allocator, size_t room) {
  ft_arena *arena = ft_arena_create(allocator);
  size_t filler = 4096;
  cr_assert(arena);
  for (size_t left = (64 << 10) - 64 - room; left >= 16; left -= filler) {
    if (filler > left) filler = left;
    cr_assert(ft_arena_alloc(arena, filler));
  }
  return arena;
}

Test(codegen_kir_join, without_memory_says_so) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  made a = make(arena, 4, 32, true), b = make(arena, 4, 32, true);
  ft_kir_body body[] = {{a.kir, first_of_two, 3}, {b.kir, second_of_two, 3}};
  ft_status status = FT_OUT_OF_MEMORY;
  uint32_t failures = 0;
  for (size_t room = 0; status != FT_OK; room += 64) {
    limited l = {.left = 2};
    ft_allocator allocator = limited_allocator(&l);
    ft_arena *small = small_arena(&allocator, room);
    ft_kir *kir;
    status = ft_kir_join(body, 2, FT_KIR_INTERLEAVE, small, &kir, NULL);
    if (status != FT_OK) cr_assert_eq(status, FT_OUT_OF_MEMORY, "room %zu", room);
    failures += status != FT_OK;
    ft_arena_destroy(small);
    cr_assert_eq(l.live, 0);
    cr_assert_lt(room, 60 << 10);
  }
  cr_assert_gt(failures, 50);
  ft_arena_destroy(arena);
}
