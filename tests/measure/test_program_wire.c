#include <criterion/criterion.h>
#include <string.h>

#include "core/rng.h"
#include "measure/program_wire.h"

static const int64_t scalars[] = {-1, INT64_MAX};
static const uint32_t arguments[] = {0, 2, 1};

static ft_arena *arena;
static ft_error error;
static ft_module module;
static ft_program_buffer buffers[3];
static ft_program_step steps[2];
static ft_program program;

static void set_up(void) {
  if (!arena) arena = ft_arena_create(ft_allocator_system());
  module = (ft_module){.outcome = FT_OUTCOME_OK,
                       .entry = "ft_g0",
                       .path = "k.so",
                       .link = "dnnl",
                       .grid = 7,
                       .threads = 2,
                       .scratch_bytes = 64,
                       .workspace_bytes = 128,
                       .scalar_count = 2,
                       .scalar = scalars};
  buffers[0] = (ft_program_buffer){
      .kind = FT_BUFFER_INPUT, .dtype = FT_F32, .bytes = 12, .key = 99, .offset = 3};
  buffers[1] = (ft_program_buffer){
      .kind = FT_BUFFER_OUTPUT, .dtype = FT_BOOL, .bytes = 3, .offset = UINT64_MAX};
  buffers[2] = (ft_program_buffer){
      .kind = FT_BUFFER_INTERMEDIATE, .dtype = FT_F64, .bytes = 64, .offset = 64};
  steps[0] = (ft_program_step){&module, 3, arguments};
  steps[1] = (ft_program_step){&module, 0, NULL};
  program = (ft_program){.name = "two",
                         .buffer_count = 3,
                         .step_count = 2,
                         .buffer = buffers,
                         .step = steps,
                         .workspace_bytes = 128};
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(measure_program_wire, .init = set_up, .fini = tear_down);

static ft_strbuf encode(void) {
  ft_strbuf out = ft_strbuf_init(arena);
  ft_program_encode(&program, &out);
  cr_assert_not(out.failed);
  return out;
}

Test(measure_program_wire, a_program_comes_back_as_it_was) {
  ft_strbuf bytes = encode();
  ft_wire_reader in = ft_wire_read(bytes.text, bytes.length);
  ft_program p;
  cr_assert_eq(ft_program_decode(&in, arena, &p, &error), FT_OK, "%s", error.text);
  cr_expect(ft_wire_done(&in));
  cr_expect_str_eq(p.name, "two");
  cr_assert(p.buffer_count == 3 && p.step_count == 2 && p.workspace_bytes == 128);
  cr_expect(p.buffer[0].key == 99 && p.buffer[1].dtype == FT_BOOL &&
            p.buffer[2].offset == 64);
  const ft_module *m = p.step[0].module;
  cr_expect_str_eq(m->entry, "ft_g0");
  cr_expect_str_eq(m->link, "dnnl");
  cr_expect(m->grid == 7 && m->threads == 2 && m->scratch_bytes == 64 &&
            m->workspace_bytes == 128 && m->scalar[1] == INT64_MAX && m->scalar[0] == -1);
  cr_expect(p.step[0].argument_count == 3 && p.step[0].argument[1] == 2);
  cr_expect_eq(p.step[1].argument_count, 0);
}

Test(measure_program_wire, any_cut_is_refused) {
  ft_strbuf bytes = encode();
  for (size_t length = 0; length < bytes.length; length++) {
    ft_wire_reader in = ft_wire_read(bytes.text, length);
    ft_program p;
    cr_assert_neq(ft_program_decode(&in, arena, &p, &error), FT_OK, "%zu bytes", length);
  }
}

Test(measure_program_wire, hostile_bytes_neither_crash_nor_allocate_much) {
  ft_strbuf bytes = encode();
  ft_rng rng = ft_rng_seed(5);
  for (int round = 0; round < 20000; round++) {
    char copy[512];
    cr_assert_leq(bytes.length, sizeof copy);
    memcpy(copy, bytes.text, bytes.length);
    for (uint64_t n = 1 + ft_rng_below(&rng, 4); n > 0; n--)
      copy[ft_rng_below(&rng, bytes.length)] = (char)ft_rng_u64(&rng);
    ft_arena *scratch = ft_arena_create(ft_allocator_system());
    ft_wire_reader in = ft_wire_read(copy, bytes.length);
    ft_program p;
    if (ft_program_decode(&in, scratch, &p, &error) == FT_OK)
      cr_assert_eq(ft_program_validate(&p, &error), FT_OK);
    cr_assert_lt(ft_arena_bytes(scratch), 1 << 20);
    ft_arena_destroy(scratch);
  }
}

static void refused(const char *words) {
  cr_expect_eq(ft_program_validate(&program, &error), FT_INVALID_ARGUMENT, "%s", words);
  cr_expect(strstr(error.text, words), "%s", error.text);
}

Test(measure_program_wire, what_is_wrong_is_named) {
  cr_assert_eq(ft_program_validate(&program, &error), FT_OK, "%s", error.text);
  buffers[2].offset = 128;
  refused("buffer 2, 64 bytes at offset 128");
  buffers[2].offset = 32;
  refused("buffer 2");
  buffers[2].offset = UINT64_MAX - 63;
  refused("buffer 2");
  set_up();
  buffers[1].kind = (ft_buffer_kind)3;
  refused("buffer 1 has kind 3");
  set_up();
  module.grid = 0;
  refused("step 0 has grid 0");
  set_up();
  module.outcome = FT_OUTCOME_COMPILE_ERROR;
  refused("step 0 has no built module");
  set_up();
  program.buffer_count = 2;
  refused("step 0, argument 1 is buffer 2 of 2");
}

Test(measure_program_wire, buffers_are_counted_by_kind) {
  buffers[2].kind = FT_BUFFER_INPUT;
  cr_expect(ft_program_ordinal(&program, 0) == 0 &&
            ft_program_ordinal(&program, 1) == 0 && ft_program_ordinal(&program, 2) == 1);
  cr_expect_str_eq(ft_buffer_kind_text(FT_BUFFER_INTERMEDIATE), "intermediate");
}
