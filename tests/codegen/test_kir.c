#include "codegen/kir.h"

#include <criterion/criterion.h>
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
