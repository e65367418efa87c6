#include "codegen/kir.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "codegen/print_c.h"

typedef struct kernel {
  ft_kir *kir;
  ft_kir_stmt *grid, *loop;
  uint32_t in, out;
} kernel;

static ft_kir_id num(kernel *k, int64_t n) {
  return ft_kir_number(k->kir, n);
}

// for block in [0, 2): for i in [0, 32) step 16: {}
static kernel start(void) {
  kernel k = {.kir = ft_kir_create(ft_arena_create(ft_allocator_system()))};
  k.in = ft_kir_global(k.kir, FT_F32, 32, 0, false);
  k.out = ft_kir_global(k.kir, FT_F32, 32, 1, true);
  k.grid = ft_kir_for(k.kir, FT_KIR_GRID, num(&k, 0), num(&k, 2), num(&k, 1));
  k.loop = ft_kir_for(k.kir, FT_KIR_VECTOR, num(&k, 0), num(&k, 32), num(&k, 16));
  return k;
}

static const char *end(kernel *k) {
  ft_kir_append(&k->grid->body, k->loop);
  ft_kir_append(&k->kir->body, k->grid);
  return ft_kir_verify(k->kir);
}

static void stop(kernel *k) {
  ft_arena_destroy(k->kir->arena);
}

static kernel exponential(void) {
  kernel k = start();
  ft_kir_id x = ft_kir_load(k.kir, &k.loop->body, k.in, 16, k.loop->value, 1);
  ft_kir_id y = ft_kir_primitive(k.kir, &k.loop->body, FT_OP_EXP, FT_F32, &x, 1);
  ft_kir_store(k.kir, &k.loop->body, k.out, y, k.loop->value, 1, FT_KIR_CACHED);
  return k;
}

Test(codegen_kir, a_simple_kernel_is_well_formed) {
  kernel k = exponential();
  cr_assert_null(end(&k));
  stop(&k);
}

Test(codegen_kir, prints_this_text) {
  kernel k = exponential();
  cr_assert_null(end(&k));
  const char *text;
  cr_assert_eq(ft_print_c(k.kir, &text, NULL), FT_OK);
  cr_assert_str_eq(
      text,
      "{\n"
      "  (void)buffers, (void)scalars, (void)block, (void)thread, (void)scratch;\n"
      "  const float *restrict b1 = buffers[0];\n"
      "  float *restrict b2 = buffers[1];\n"
      "  {\n"
      "    const int64_t v4 = block;\n"
      "    for (int64_t v8 = 0; v8 < 32; v8 += 16) {\n"
      "      const f32x16 v9 = ft_load_f32x16(b1 + v8);\n"
      "      const f32x16 v10 = ft_exp_f32x16(v9);\n"
      "      ft_store_f32x16(b2 + v8, v10);\n"
      "    }\n"
      "  }\n"
      "  return 0;\n"
      "}\n");
  stop(&k);
}

Test(codegen_kir, prints_equal_kernels_as_equal_bytes) {
  kernel a = exponential(), b = exponential();
  cr_assert(!end(&a) && !end(&b));
  const char *x, *y;
  cr_assert_eq(ft_print_c(a.kir, &x, NULL), FT_OK);
  cr_assert_eq(ft_print_c(b.kir, &y, NULL), FT_OK);
  cr_assert_str_eq(x, y);
  stop(&a);
  stop(&b);
}

Test(codegen_kir, folds_indices_that_are_known) {
  kernel k = start();
  int64_t n;
  ft_kir_id seven = ft_kir_index(k.kir, FT_KIR_IADD, num(&k, 3), num(&k, 4));
  cr_assert(ft_kir_is_number(k.kir, seven, &n) && n == 7);
  cr_assert_eq(ft_kir_index(k.kir, FT_KIR_IMUL, k.loop->value, num(&k, 1)),
               k.loop->value);
  cr_assert_eq(ft_kir_index(k.kir, FT_KIR_IADD, num(&k, 0), k.loop->value),
               k.loop->value);
  stop(&k);
}

Test(codegen_kir, refuses_a_value_outside_its_scope) {
  kernel k = exponential();
  ft_kir_id inside = k.loop->body.first->value;
  ft_kir_append(&k.grid->body, k.loop);
  ft_kir_store(k.kir, &k.grid->body, k.out, inside, num(&k, 0), 1, FT_KIR_CACHED);
  ft_kir_append(&k.kir->body, k.grid);
  cr_assert(strstr(ft_kir_verify(k.kir), "out of scope"));
  stop(&k);
}

Test(codegen_kir, refuses_mixed_lanes) {
  kernel k = start();
  ft_kir_id x = ft_kir_load(k.kir, &k.loop->body, k.in, 16, k.loop->value, 1);
  ft_kir_id y = ft_kir_load(k.kir, &k.loop->body, k.in, 8, k.loop->value, 1);
  ft_kir_primitive(k.kir, &k.loop->body, FT_OP_ADD, FT_F32, (ft_kir_id[]){x, y}, 2);
  cr_assert(strstr(end(&k), "lanes"));
  stop(&k);
}

Test(codegen_kir, refuses_a_store_of_another_dtype_and_one_to_an_input) {
  kernel k = start();
  ft_kir_id i = ft_kir_element(k.kir, &k.loop->body, (ft_kir_type){FT_I32, 16}, 1);
  ft_kir_store(k.kir, &k.loop->body, k.out, i, k.loop->value, 1, FT_KIR_CACHED);
  cr_assert(strstr(end(&k), "holds f32"));
  stop(&k);
  k = start();
  ft_kir_id x = ft_kir_load(k.kir, &k.loop->body, k.in, 16, k.loop->value, 1);
  ft_kir_store(k.kir, &k.loop->body, k.in, x, k.loop->value, 1, FT_KIR_CACHED);
  cr_assert(strstr(end(&k), "read-only"));
  stop(&k);
}

Test(codegen_kir, refuses_a_primitive_that_its_dtype_lacks) {
  kernel k = start();
  ft_kir_id b = ft_kir_element(k.kir, &k.loop->body, (ft_kir_type){FT_BOOL, 16}, 1);
  ft_kir_primitive(k.kir, &k.loop->body, FT_OP_EXP, FT_BOOL, &b, 1);
  cr_assert(strstr(end(&k), "no exp of bool"));
  stop(&k);
}

Test(codegen_kir, refuses_a_grid_loop_inside_a_loop) {
  kernel k = start();
  ft_kir_append(&k.loop->body, k.grid);
  ft_kir_append(&k.kir->body, k.loop);
  cr_assert(strstr(ft_kir_verify(k.kir), "grid loop inside"));
  stop(&k);
}

// A thread loop of |threads| in the grid loop; |fill| puts statements into it.
static const char *with_threads(kernel *k, int64_t threads,
                                void (*fill)(kernel *k, ft_kir_stmt *loop)) {
  ft_kir_stmt *t =
      ft_kir_for(k->kir, FT_KIR_THREAD, num(k, 0), num(k, threads), num(k, 1));
  fill(k, t);
  ft_kir_append(&k->grid->body, t);
  ft_kir_append(&k->kir->body, k->grid);
  return ft_kir_verify(k->kir);
}

static void together(kernel *k, ft_kir_stmt *t) {
  uint32_t shared = ft_kir_shared(k->kir, &t->body, FT_F32, 32);
  ft_kir_id x = ft_kir_load(k->kir, &t->body, k->in, 1, t->value, 1);
  ft_kir_store(k->kir, &t->body, shared, x, t->value, 1, FT_KIR_CACHED);
  ft_kir_barrier(k->kir, &t->body);
  ft_kir_shuffle(k->kir, &t->body, x, 1);
}

static void apart(kernel *k, ft_kir_stmt *t) {
  ft_kir_stmt *some =
      ft_kir_if(k->kir, ft_kir_index(k->kir, FT_KIR_ILESS, t->value, num(k, 5)));
  ft_kir_barrier(k->kir, &some->body);
  ft_kir_append(&t->body, some);
}

Test(codegen_kir, takes_a_barrier_where_threads_meet_and_refuses_it_where_not) {
  kernel k = start();
  cr_assert_null(with_threads(&k, 32, together));
  stop(&k);
  k = start();
  cr_assert(strstr(with_threads(&k, 32, apart), "barrier"));
  stop(&k);
}

Test(codegen_kir, plain_c_refuses_more_than_one_thread_per_block) {
  kernel k = start();
  cr_assert_null(with_threads(&k, 32, together));
  const char *text;
  ft_error error;
  cr_assert_eq(ft_print_c(k.kir, &text, &error), FT_UNSUPPORTED);
  stop(&k);
}

Test(codegen_kir, registers_end_with_their_block) {
  kernel k = start();
  uint32_t r = ft_kir_register(k.kir, &k.loop->body, (ft_kir_type){FT_F32, 16});
  ft_kir_append(&k.grid->body, k.loop);
  ft_kir_load(k.kir, &k.grid->body, r, 16, num(&k, 0), 1);
  ft_kir_append(&k.kir->body, k.grid);
  cr_assert(strstr(ft_kir_verify(k.kir), "out of scope"));
  stop(&k);
}

Test(codegen_kir, scratch_buffers_start_on_cache_lines) {
  kernel k = start();
  uint32_t a = ft_kir_scratch(k.kir, FT_F32, 3), b = ft_kir_scratch(k.kir, FT_BOOL, 1);
  cr_assert_eq(k.kir->buffer[a].offset, 0);
  cr_assert_eq(k.kir->buffer[b].offset, 64);
  cr_assert_eq(k.kir->scratch_bytes, 128);
  stop(&k);
}

Test(codegen_kir, an_index_can_come_from_memory_and_end_the_kernel) {
  kernel k = start();
  uint32_t at = ft_kir_global(k.kir, FT_I32, 2, 2, false);
  ft_kir_id element = ft_kir_load(k.kir, &k.loop->body, at, 1, num(&k, 1), 1);
  ft_kir_id index = ft_kir_let(k.kir, &k.loop->body, ft_kir_to_index(k.kir, element));
  ft_kir_id raised = ft_kir_index(k.kir, FT_KIR_IMAX, index, num(&k, 3));
  ft_kir_stmt *wrong =
      ft_kir_if(k.kir, ft_kir_index(k.kir, FT_KIR_ILESS, num(&k, 31), raised));
  ft_kir_fail(k.kir, &wrong->body, 2);
  ft_kir_append(&k.loop->body, wrong);
  cr_assert_null(end(&k));
  const char *text;
  cr_assert_eq(ft_print_c(k.kir, &text, NULL), FT_OK);
  cr_assert(strstr(text, "[0];\n"), "%s", text);
  cr_assert(strstr(text, "return 2;\n"), "%s", text);
  stop(&k);
}

Test(codegen_kir, a_float_or_a_vector_is_no_index) {
  kernel k = start();
  ft_kir_id x = ft_kir_load(k.kir, &k.loop->body, k.in, 1, num(&k, 0), 1);
  ft_kir_let(k.kir, &k.loop->body, ft_kir_to_index(k.kir, x));
  cr_assert(strstr(end(&k), "an index from 1 lanes of f32"));
  stop(&k);
}

// ---- the last block of a grid
// -----------------------------------------------------------

// Each block counts in |counter|; the last one stores 1 to out[0].
static const char *counting(kernel *k, uint32_t counter) {
  ft_kir_stmt *last = ft_kir_grid_done(k->kir, counter, num(k, 0), num(k, 2));
  ft_kir_id one = ft_kir_element(k->kir, &last->body, (ft_kir_type){FT_F32, 1}, 1);
  ft_kir_store(k->kir, &last->body, k->out, one, num(k, 0), 1, FT_KIR_CACHED);
  ft_kir_append(&k->grid->body, last);
  ft_kir_append(&k->kir->body, k->grid);
  return ft_kir_verify(k->kir);
}

Test(codegen_kir, the_last_block_counts_in_the_workspace_and_resets_it) {
  kernel k = start();
  uint32_t parts = ft_kir_workspace(k.kir, FT_F32, 3, 2);
  uint32_t counter = ft_kir_workspace(k.kir, FT_I32, 1, 2);
  cr_assert_eq(k.kir->buffer[parts].offset, 0);
  cr_assert_eq(k.kir->buffer[counter].offset, 64);
  cr_assert_eq(k.kir->workspace_bytes, 128);
  cr_assert_null(counting(&k, counter));
  const char *text;
  cr_assert_eq(ft_print_c(k.kir, &text, NULL), FT_OK);
  cr_assert(strstr(text, "int32_t *b4 = (int32_t *)((char *)buffers[2] + 64);\n"), "%s",
            text);
  cr_assert(strstr(text, "if (__atomic_add_fetch(b4, 1, __ATOMIC_ACQ_REL) == 2) {\n"),
            "%s", text);
  cr_assert(strstr(text, "__atomic_store_n(b4, 0, __ATOMIC_RELAXED);\n"), "%s", text);
  stop(&k);
}

Test(codegen_kir, refuses_to_count_blocks_elsewhere) {
  kernel k = start();
  cr_assert(strstr(counting(&k, ft_kir_scratch(k.kir, FT_I32, 1)), "workspace"));
  stop(&k);
  k = start();
  cr_assert(strstr(counting(&k, ft_kir_workspace(k.kir, FT_F32, 1, 2)), "holds f32"));
  stop(&k);
  k = start();
  uint32_t counter = ft_kir_workspace(k.kir, FT_I32, 1, 2);
  ft_kir_append(&k.kir->body, ft_kir_grid_done(k.kir, counter, num(&k, 0), num(&k, 2)));
  cr_assert(strstr(ft_kir_verify(k.kir), "grid-done"));
  stop(&k);
}

static void some_count(kernel *k, ft_kir_stmt *t) {
  uint32_t counter = ft_kir_workspace(k->kir, FT_I32, 1, 2);
  ft_kir_stmt *some =
      ft_kir_if(k->kir, ft_kir_index(k->kir, FT_KIR_ILESS, t->value, num(k, 5)));
  ft_kir_append(&some->body, ft_kir_grid_done(k->kir, counter, num(k, 0), num(k, 2)));
  ft_kir_append(&t->body, some);
}

Test(codegen_kir, refuses_a_grid_done_where_threads_part) {
  kernel k = start();
  cr_assert(strstr(with_threads(&k, 32, some_count), "grid-done"));
  stop(&k);
}

Test(codegen_kir, prefetches_global_buffers_only) {
  kernel k = start();
  ft_kir_prefetch(k.kir, &k.loop->body, k.in, k.loop->value);
  cr_assert_null(end(&k));
  const char *text;
  cr_assert_eq(ft_print_c(k.kir, &text, NULL), FT_OK);
  cr_assert(strstr(text, "__builtin_prefetch(b1 + v8);\n"), "%s", text);
  stop(&k);
  k = start();
  ft_kir_prefetch(k.kir, &k.loop->body, ft_kir_scratch(k.kir, FT_F32, 1), num(&k, 0));
  cr_assert(strstr(end(&k), "not global"));
  stop(&k);
}

// ---- squares
// ------------------------------------------------------------------------------

static const char *turned(uint32_t lanes, bool into_input) {
  kernel k = start();
  ft_kir_square from = {k.in, k.loop->value, 5}, to = {k.out, k.loop->value, 7};
  if (into_input) to.buffer = k.in;
  ft_kir_turn(k.kir, &k.loop->body, from, to, (uint16_t)lanes);
  const char *wrong = end(&k), *text = NULL;
  if (!wrong) cr_assert_eq(ft_print_c(k.kir, &text, NULL), FT_OK);
  static char copy[512];
  snprintf(copy, sizeof copy, "%s", wrong ? wrong : text);
  stop(&k);
  return copy;
}

Test(codegen_kir, a_square_is_turned_by_one_call) {
  cr_assert(strstr(turned(8, false), "ft_turn_f32x8(b1 + v"));
}

Test(codegen_kir, a_square_has_four_lanes_or_more_and_goes_where_it_may) {
  cr_assert(strstr(turned(2, false), "a square of 2 lanes"));
  cr_assert(strstr(turned(12, false), "a square of 12 lanes"));
  cr_assert(strstr(turned(8, true), "read-only"));
}

// ---- register arrays
// -------------------------------------------------------------------------------

// Stores to registers 0 to 3 of 4, by |index| of the unrolled variable.
static const char *indexed(ft_kir_id (*index)(kernel *k, ft_kir_id i)) {
  static char copy[256];
  kernel k = start();
  uint32_t r = ft_kir_registers(k.kir, &k.loop->body, (ft_kir_type){FT_F32, 1}, 4);
  ft_kir_stmt *unrolled =
      ft_kir_for(k.kir, FT_KIR_UNROLL, num(&k, 0), num(&k, 4), num(&k, 1));
  ft_kir_id one = ft_kir_element(k.kir, &unrolled->body, (ft_kir_type){FT_F32, 1}, 1);
  ft_kir_store(k.kir, &unrolled->body, r, one, index(&k, unrolled->value), 1,
               FT_KIR_CACHED);
  ft_kir_append(&k.loop->body, unrolled);
  const char *wrong = end(&k);
  snprintf(copy, sizeof copy, "%s", wrong ? wrong : "");
  stop(&k);
  return copy;
}

static ft_kir_id by_unrolled(kernel *k, ft_kir_id i) {
  return ft_kir_index(k->kir, FT_KIR_ISUB, num(k, 3), i);
}
static ft_kir_id by_serial(kernel *k, ft_kir_id i) {
  return ft_kir_index(k->kir, FT_KIR_IADD, k->loop->value, i);
}
static ft_kir_id by_memory(kernel *k, ft_kir_id i) {
  (void)i;
  uint32_t at = ft_kir_global(k->kir, FT_I32, 2, 2, false);
  return ft_kir_to_index(k->kir,
                         ft_kir_load(k->kir, &k->loop->body, at, 1, num(k, 0), 1));
}
static ft_kir_id past_the_end(kernel *k, ft_kir_id i) {
  (void)i;
  return num(k, 4);
}

Test(codegen_kir, registers_are_indexed_by_what_unrolling_knows) {
  cr_assert_str_eq(indexed(by_unrolled), "");
  cr_assert(strstr(indexed(by_serial), "an index that is not known"));
  cr_assert(strstr(indexed(by_memory), "an index that is not known"));
  cr_assert(strstr(indexed(past_the_end), "4 of 4"));
}

// ---- asynchronous copies
// -------------------------------------------------------------------------------

typedef struct copying {
  ft_dtype from, to;
  bool is_written, is_private;  // the source; the destination is no shared memory
  uint16_t lanes;
} copying;

static const char *copied(copying c) {
  static char copy[256];
  kernel k = start();
  ft_kir_stmt *t = ft_kir_for(k.kir, FT_KIR_THREAD, num(&k, 0), num(&k, 32), num(&k, 1));
  uint32_t from = ft_kir_global(k.kir, c.from, 512, 2, c.is_written);
  uint32_t to = c.is_private ? ft_kir_scratch(k.kir, c.to, 512)
                             : ft_kir_shared(k.kir, &t->body, c.to, 512);
  ft_kir_id at = ft_kir_index(k.kir, FT_KIR_IMUL, t->value, num(&k, c.lanes));
  ft_kir_copy(k.kir, &t->body, from, at, to, at, c.lanes, 0);
  ft_kir_commit(k.kir, &t->body);
  ft_kir_wait(k.kir, &t->body, 0);
  ft_kir_append(&k.grid->body, t);
  ft_kir_append(&k.kir->body, k.grid);
  const char *wrong = ft_kir_verify(k.kir);
  snprintf(copy, sizeof copy, "%s", wrong ? wrong : "");
  stop(&k);
  return copy;
}

Test(codegen_kir, copies_go_from_what_is_only_read_to_shared_memory) {
  copying fine = {.from = FT_F32, .to = FT_F32, .lanes = 4}, c = fine;
  cr_assert_str_eq(copied(fine), "");
  c.is_written = true;
  cr_assert(strstr(copied(c), "not from read-only global"));
  c = fine;
  c.is_private = true;
  cr_assert(strstr(copied(c), "to shared memory"));
  c = fine;
  c.to = FT_I32;
  cr_assert(strstr(copied(c), "a copy of f32 as i32"));
}

Test(codegen_kir, copies_move_4_8_or_16_bytes) {
  static const struct {
    ft_dtype dtype;
    uint16_t lanes;
    const char *wrong;
  } cases[] = {{FT_F32, 1, ""},  {FT_F32, 2, ""}, {FT_F32, 8, "a copy of 32 bytes"},
               {FT_F64, 1, ""},  {FT_F16, 2, ""}, {FT_F16, 1, "a copy of 2 bytes"},
               {FT_BOOL, 16, ""}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    cr_assert_str_eq(
        copied((copying){
            .from = cases[i].dtype, .to = cases[i].dtype, .lanes = cases[i].lanes}),
        cases[i].wrong, "case %zu", i);
}

Test(codegen_kir, copies_are_made_and_awaited_by_threads) {
  kernel k = start();
  ft_kir_commit(k.kir, &k.loop->body);
  cr_assert(strstr(end(&k), "outside the thread loop"));
  stop(&k);
  k = start();
  ft_kir_wait(k.kir, &k.loop->body, 0);
  cr_assert(strstr(end(&k), "outside the thread loop"));
  stop(&k);
}

static void wait_for_less_than_none(kernel *k, ft_kir_stmt *t) {
  ft_kir_wait(k->kir, &t->body, -1);
}

Test(codegen_kir, a_wait_leaves_no_negative_number_under_way) {
  kernel k = start();
  cr_assert(strstr(with_threads(&k, 32, wait_for_less_than_none), "a wait for -1"));
  stop(&k);
}

// ---- short floats
// -------------------------------------------------------------------------------

Test(codegen_kir, short_floats_are_for_memory_and_f32_is_computed_with) {
  kernel k = start();
  uint32_t in = ft_kir_global(k.kir, FT_F16, 32, 2, false);
  uint32_t out = ft_kir_global(k.kir, FT_BF16, 32, 3, true);
  ft_kir_block *here = &k.loop->body;
  ft_kir_id x = ft_kir_load(k.kir, here, in, 16, k.loop->value, 1);
  ft_kir_id half = ft_kir_element(k.kir, here, (ft_kir_type){FT_F16, 16}, 0);
  ft_kir_id y =
      ft_kir_primitive(k.kir, here, FT_OP_ADD, FT_F16, (ft_kir_id[]){x, half}, 2);
  ft_kir_store(k.kir, here, out, y, k.loop->value, 1, FT_KIR_CACHED);
  cr_assert_eq(k.kir->value[x].type.dtype, FT_F32);
  cr_assert_eq(k.kir->value[half].type.dtype, FT_F32);
  cr_assert_eq(k.kir->value[y].type.dtype, FT_F32);
  uint32_t r = ft_kir_register(k.kir, here, (ft_kir_type){FT_BF16, 16});
  cr_assert_eq(k.kir->buffer[r].dtype, FT_F32);
  cr_assert_eq(k.kir->buffer[in].dtype, FT_F16);
  cr_assert_null(end(&k));
  stop(&k);
}

Test(codegen_kir, a_cast_to_a_short_float_rounds_and_stays_f32) {
  kernel k = start();
  ft_kir_block *here = &k.loop->body;
  ft_kir_id x = ft_kir_load(k.kir, here, k.in, 16, k.loop->value, 1);
  ft_kir_id y = ft_kir_primitive(k.kir, here, FT_OP_CAST, FT_BF16, &x, 1);
  cr_assert_eq(k.kir->value[y].op, FT_KIR_NARROW);
  cr_assert_eq(k.kir->value[y].imm, FT_BF16);
  cr_assert_eq(k.kir->value[y].type.dtype, FT_F32);
  ft_kir_id whole = ft_kir_element(k.kir, here, (ft_kir_type){FT_I32, 16}, 3);
  ft_kir_id z = ft_kir_primitive(k.kir, here, FT_OP_CAST, FT_F16, &whole, 1);
  cr_assert_eq(k.kir->value[z].op, FT_KIR_NARROW);
  cr_assert_eq(k.kir->value[k.kir->value[z].operand[0]].primitive, FT_OP_CAST);
  cr_assert_null(end(&k));
  stop(&k);
}

Test(codegen_kir, what_is_stored_to_a_short_float_is_f32) {
  kernel k = start();
  uint32_t out = ft_kir_global(k.kir, FT_F16, 32, 2, true);
  ft_kir_id i = ft_kir_element(k.kir, &k.loop->body, (ft_kir_type){FT_I32, 16}, 1);
  ft_kir_store(k.kir, &k.loop->body, out, i, k.loop->value, 1, FT_KIR_CACHED);
  cr_assert(strstr(end(&k), "holds f16, not i32"));
  stop(&k);
}
