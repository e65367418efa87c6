#include "codegen/bank_conflicts.h"

#include <criterion/criterion.h>

// One block of |threads| that touches |count| elements of shared memory.
typedef struct kernel {
  ft_arena *arena;
  ft_kir *kir;
  ft_kir_stmt *grid, *threads;
  uint32_t shared;
  ft_kir_id thread;
} kernel;

static kernel start(ft_dtype dtype, int64_t threads, int64_t count) {
  kernel k = {.arena = ft_arena_create(ft_allocator_system())};
  k.kir = ft_kir_create(k.arena);
  ft_kir_id zero = ft_kir_number(k.kir, 0), one = ft_kir_number(k.kir, 1);
  k.grid = ft_kir_for(k.kir, FT_KIR_GRID, zero, ft_kir_number(k.kir, 3), one);
  k.threads = ft_kir_for(k.kir, FT_KIR_THREAD, zero, ft_kir_number(k.kir, threads), one);
  k.shared = ft_kir_shared(k.kir, &k.threads->body, dtype, count);
  k.thread = k.threads->value;
  return k;
}

static ft_kir_id calculate(kernel *k, ft_kir_op op, ft_kir_id a, int64_t b) {
  return ft_kir_index(k->kir, op, a, ft_kir_number(k->kir, b));
}

static ft_kir_id sum(kernel *k, ft_kir_id a, ft_kir_id b) {
  return ft_kir_index(k->kir, FT_KIR_IADD, a, b);
}

// thread % width, thread / width
static ft_kir_id column(kernel *k, int64_t width) {
  return calculate(k, FT_KIR_IMOD, k->thread, width);
}
static ft_kir_id row(kernel *k, int64_t width) {
  return calculate(k, FT_KIR_IDIV, k->thread, width);
}

static void load(kernel *k, ft_kir_block *at, uint16_t lanes, ft_kir_id index,
                 int64_t stride) {
  ft_kir_load(k->kir, at, k->shared, lanes, index, stride);
}

// The |n|-th access of the kernel; ends it when |n| is 0.
static ft_bank_access access_of(kernel *k, uint32_t n) {
  ft_bank_access *list;
  uint32_t count;
  ft_error error;
  if (n == 0) {
    ft_kir_append(&k->grid->body, k->threads);
    ft_kir_append(&k->kir->body, k->grid);
  }
  cr_assert_null(ft_kir_verify(k->kir), "%s", ft_kir_verify(k->kir));
  cr_assert_eq(ft_bank_conflicts_count(k->kir, k->arena, &list, &count, &error), FT_OK);
  cr_assert_lt(n, count);
  return list[n];
}

static void stop(kernel *k) {
  ft_arena_destroy(k->arena);
}

// What one load of |lanes| elements by all of |threads| takes.
static ft_bank_access one_load(kernel *k, uint16_t lanes, ft_kir_id index,
                               int64_t stride) {
  load(k, &k->threads->body, lanes, index, stride);
  ft_bank_access a = access_of(k, 0);
  stop(k);
  return a;
}

static uint32_t column_degree(int64_t pitch) {
  kernel k = start(FT_F32, 32, 32 * pitch);
  return one_load(&k, 1, calculate(&k, FT_KIR_IMUL, k.thread, pitch), 1).degree;
}

Test(codegen_bank_conflicts, neighbours_have_a_bank_each) {
  kernel k = start(FT_F32, 128, 128);
  ft_bank_access a = one_load(&k, 1, k.thread, 1);
  cr_assert_eq(a.degree, 1);
  cr_assert_eq(a.bytes, 4);
  cr_assert_eq(a.count, 1);
  cr_assert(!a.is_store);
}

Test(codegen_bank_conflicts, a_column_of_a_tile_of_32_takes_32_passes) {
  cr_assert_eq(column_degree(32), 32);
}

Test(codegen_bank_conflicts, a_column_of_a_padded_tile_takes_one) {
  cr_assert_eq(column_degree(33), 1);
  cr_assert_eq(column_degree(34), 2);
  cr_assert_eq(column_degree(36), 4);
}

Test(codegen_bank_conflicts, a_word_for_all_lanes_takes_one_pass) {
  kernel k = start(FT_F32, 64, 64);
  cr_assert_eq(one_load(&k, 1, ft_kir_number(k.kir, 7), 1).degree, 1);
}

Test(codegen_bank_conflicts, halves_of_a_word_are_one_word) {
  kernel k = start(FT_F16, 32, 64);
  ft_bank_access a = one_load(&k, 1, k.thread, 1);
  cr_assert_eq(a.degree, 1);
  cr_assert_eq(a.bytes, 2);
  k = start(FT_F16, 32, 32 * 64);
  cr_assert_eq(one_load(&k, 1, calculate(&k, FT_KIR_IMUL, k.thread, 64), 1).degree, 32);
  k = start(FT_F16, 32, 32 * 66);
  cr_assert_eq(one_load(&k, 1, calculate(&k, FT_KIR_IMUL, k.thread, 66), 1).degree, 1);
}

Test(codegen_bank_conflicts, a_double_is_two_words_for_half_a_warp) {
  kernel k = start(FT_F64, 32, 32);
  cr_assert_eq(one_load(&k, 1, k.thread, 1).degree, 1);
  k = start(FT_F64, 32, 32 * 32);
  cr_assert_eq(one_load(&k, 1, calculate(&k, FT_KIR_IMUL, k.thread, 32), 1).degree, 16);
}

Test(codegen_bank_conflicts, vectors_side_by_side_take_one_pass_a_quarter) {
  kernel k = start(FT_F32, 64, 256);
  ft_bank_access a = one_load(&k, 4, calculate(&k, FT_KIR_IMUL, k.thread, 4), 1);
  cr_assert_eq(a.degree, 1);
  cr_assert_eq(a.bytes, 16);
  cr_assert_eq(a.count, 1);
}

Test(codegen_bank_conflicts, eight_floats_a_lane_are_two_accesses_that_collide) {
  kernel k = start(FT_F32, 32, 256);
  ft_bank_access a = one_load(&k, 8, calculate(&k, FT_KIR_IMUL, k.thread, 8), 1);
  cr_assert_eq(a.bytes, 16);
  cr_assert_eq(a.count, 2);
  cr_assert_eq(a.degree, 2);  // lanes 0 and 4 of a quarter
}

Test(codegen_bank_conflicts, an_index_of_unproven_alignment_is_taken_one_by_one) {
  kernel k = start(FT_F32, 32, 160);
  ft_bank_access a = one_load(&k, 4, calculate(&k, FT_KIR_IMUL, k.thread, 5), 1);
  cr_assert_eq(a.bytes, 4);
  cr_assert_eq(a.count, 4);
  cr_assert_eq(a.degree, 1);
}

// Four elements down a column: 8 lanes next to each other, 4 rows of 4.
Test(codegen_bank_conflicts, lanes_that_stride_are_counted_one_after_the_other) {
  kernel k = start(FT_F32, 32, 32 * 32);
  ft_kir_id first = calculate(&k, FT_KIR_IMUL, column(&k, 8), 4 * 32);
  ft_bank_access a = one_load(&k, 4, sum(&k, first, row(&k, 8)), 32);
  cr_assert_eq(a.bytes, 4);
  cr_assert_eq(a.count, 4);
  cr_assert_eq(a.degree, 8);
}

Test(codegen_bank_conflicts, lanes_behind_a_guard_do_not_count) {
  kernel k = start(FT_F32, 32, 32 * 32);
  ft_kir_stmt *branch = ft_kir_if(k.kir, calculate(&k, FT_KIR_ILESS, k.thread, 5));
  load(&k, &branch->body, 1, calculate(&k, FT_KIR_IMUL, k.thread, 32), 1);
  load(&k, &branch->otherwise, 1, calculate(&k, FT_KIR_IMUL, k.thread, 32), 1);
  ft_kir_append(&k.threads->body, branch);
  cr_assert_eq(access_of(&k, 0).degree, 5);
  cr_assert_eq(access_of(&k, 1).degree, 27);
  stop(&k);
}

// The first iteration is fine, the second is not.
Test(codegen_bank_conflicts, later_iterations_and_later_warps_are_looked_at) {
  kernel k = start(FT_F32, 64, 64 * 33);
  ft_kir_id one = ft_kir_number(k.kir, 1);
  ft_kir_stmt *loop =
      ft_kir_for(k.kir, FT_KIR_SERIAL, one, ft_kir_number(k.kir, 40), one);
  load(&k, &loop->body, 1, ft_kir_index(k.kir, FT_KIR_IMUL, k.thread, loop->value), 1);
  ft_kir_append(&k.threads->body, loop);
  // Warp 0: thread * 1; warp 1: thread * 2.
  ft_kir_id warp = calculate(&k, FT_KIR_IADD, row(&k, 32), 1);
  load(&k, &k.threads->body, 1, ft_kir_index(k.kir, FT_KIR_IMUL, k.thread, warp), 1);
  cr_assert_eq(access_of(&k, 0).degree, 4);  // strides 1 to 4
  cr_assert_eq(access_of(&k, 1).degree, 2);
  stop(&k);
}

Test(codegen_bank_conflicts, stores_and_copies_count_and_global_memory_does_not) {
  kernel k = start(FT_F32, 32, 32 * 32);
  ft_kir_block *at = &k.threads->body;
  uint32_t from = ft_kir_global(k.kir, FT_F32, 32 * 32, 0, false);
  ft_kir_id far = calculate(&k, FT_KIR_IMUL, k.thread, 32);
  ft_kir_id value = ft_kir_load(k.kir, at, from, 1, far, 1);
  ft_kir_store(k.kir, at, k.shared, value, calculate(&k, FT_KIR_IMUL, k.thread, 2), 1,
               FT_KIR_CACHED);
  ft_kir_copy(k.kir, at, from, far, k.shared, far, 4, 0);
  ft_bank_access store = access_of(&k, 0), copy = access_of(&k, 1);
  cr_assert(store.is_store && copy.is_store);
  cr_assert_eq(store.degree, 2);
  cr_assert_eq(copy.bytes, 16);
  cr_assert_eq(copy.degree, 8);
  stop(&k);
}

Test(codegen_bank_conflicts, an_address_from_data_is_unknown) {
  kernel k = start(FT_I32, 32, 32);
  ft_kir_id read = ft_kir_load(k.kir, &k.threads->body, k.shared, 1, k.thread, 1);
  load(&k, &k.threads->body, 1, ft_kir_to_index(k.kir, read), 1);
  cr_assert_eq(access_of(&k, 0).degree, 1);
  cr_assert_eq(access_of(&k, 1).degree, 0);
  stop(&k);
}
