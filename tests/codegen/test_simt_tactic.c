// The tactics for GPUs: who serves what, spaces, checks, text. Needs no NVRTC.
#include "codegen/simt_tactic.h"

#include "gpu_builder.h"

typedef ft_workload drawer(sketch *s);

static ft_workload draw_pointwise(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(64, 96)), b = input(s, FT_F32, SHAPE(96));
  output(s, one(s, FT_OP_ERF, two(s, FT_OP_ADD, x, b)));
  return finish(s);
}
static ft_workload draw_rows(sketch *s) {
  output(s, softmax(s, input(s, FT_F32, SHAPE(33, 200)), 1));
  return finish(s);
}
static ft_workload draw_columns(sketch *s) {
  output(s, reduce(s, FT_OP_REDUCE_SUM, input(s, FT_F32, SHAPE(50, 96)), 1));
  return finish(s);
}
static ft_workload draw_product(sketch *s) {
  uint32_t a = input(s, FT_F32, SHAPE(3, 70, 33)), b = input(s, FT_F32, SHAPE(33, 41));
  output(s, one(s, FT_OP_RELU, two(s, FT_OP_MATMUL, a, b)));
  return finish(s);
}
static ft_workload draw_pool(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(2, 3, 8, 8));
  ft_attr attr = {
      .shape = SHAPE(2, 3, 4, 4), .window = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}};
  output(s, apply(s, FT_OP_WINDOW_MAX, 1, &x, &attr));
  return finish(s);
}
static ft_workload draw_convolution(sketch *s) {
  uint32_t in[2] = {input(s, FT_F32, SHAPE(2, 6, 9, 11)),
                    input(s, FT_F32, SHAPE(5, 6, 3, 3))};
  ft_attr attr = {.shape = SHAPE(2, 5, 9, 11),
                  .groups = 1,
                  .start = {1, 1},
                  .stride = {1, 1},
                  .dilation = {1, 1}};
  output(s, apply(s, FT_OP_CONV, 2, in, &attr));
  return finish(s);
}
static ft_workload draw_slice(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(9, 20));
  ft_attr attr = {.shape = SHAPE(4, 20), .start = {1}, .step = {2, 1}};
  output(s, apply(s, FT_OP_SLICE, 1, &x, &attr));
  return finish(s);
}
static ft_workload draw_turned(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(64, 96)), y = input(s, FT_F32, SHAPE(96, 64));
  output(s, two(s, FT_OP_ADD, transpose(s, x), y));
  return finish(s);
}
static ft_workload draw_half(sketch *s) {
  uint32_t x = input(s, FT_F16, SHAPE(64, 96)), y = input(s, FT_F16, SHAPE(64, 96));
  output(s, two(s, FT_OP_ADD, x, y));
  return finish(s);
}
static ft_workload draw_integers(sketch *s) {
  uint32_t x = input(s, FT_I32, SHAPE(9, 16));
  output(s, reduce(s, FT_OP_REDUCE_MAX, x, 2));
  return finish(s);
}

static ft_workload draw_parts(sketch *s) {
  output(s, softmax(s, input(s, FT_F32, SHAPE(33, 200)), 1));
  uint32_t a = input(s, FT_F32, SHAPE(70, 33)), b = input(s, FT_F32, SHAPE(33, 41));
  output(s, two(s, FT_OP_MATMUL, a, b));
  return finish(s);
}

static const struct {
  drawer *draw;
  const char *tactic;  // the best
} groups[] = {{draw_pointwise, "simt_pointwise"}, {draw_rows, "simt_row"},
              {draw_columns, "simt_column"},      {draw_product, "simt_gemm"},
              {draw_pool, "simt_window"},         {draw_integers, "simt_row"},
              {draw_convolution, "simt_conv"},    {draw_slice, "simt_loop"},
              {draw_turned, "simt_turn"},         {draw_half, "simt_pointwise"},
              {draw_parts, "simt_blocks"}};
enum { GROUPS = sizeof groups / sizeof *groups };

Test(simt_tactic, serves_gpus_where_the_others_serve_cpus) {
  uint32_t count, gpus = 0;
  const ft_tactic *const *list = ft_tactics(&count);
  for (uint32_t i = 0; i < count; i++) {
    bool is_called_so = strncmp(list[i]->name, "simt_", 5) == 0;
    cr_assert_eq(list[i]->is_gpu, is_called_so, "%s", list[i]->name);
    gpus += list[i]->is_gpu;
  }
  cr_assert_geq(gpus, 5);
}

Test(simt_tactic, is_named_best_for_the_group_it_is_made_for) {
  gpu_builder b;
  cr_assert(gpu_builder_open(&b, "sim", false));
  for (int i = 0; i < GROUPS; i++) {
    sketch s = sketch_open();
    ft_workload w = groups[i].draw(&s);
    const char *names[8], *reason;
    uint32_t count = gpu_match(&b, &w, names, &reason);
    cr_assert_geq(count, 1, "%s: %s", groups[i].tactic, reason);
    cr_assert_str_eq(names[0], groups[i].tactic);
    for (uint32_t k = 0; k < count; k++)
      cr_assert(ft_tactic_find(names[k])->is_gpu, "%s", names[k]);
    sketch_close(&s);
  }
  gpu_builder_close(&b);
}

static void check_space(gpu_builder *b, const ft_workload *w, const char *tactic) {
  ft_schedule *list;
  uint32_t count = gpu_space(b, w, tactic, &list);
  cr_assert(count >= 1 && count <= FT_SIMT_SPACE, "%s: %u", tactic, count);
  for (uint32_t i = 0; i < count; i++) {
    ft_candidate c = {w, &b->target, tactic, list[i]};
    const char *wrong = b->builder.check(b->builder.self, &c, b->arena), *text;
    ft_hash hash;
    ft_error error;
    cr_assert_null(wrong, "%s: %s", tactic, wrong);
    cr_assert_eq(b->builder.emit(b->builder.self, &c, b->arena, &text, &hash, &error),
                 FT_OK, "%s", error.text);
    cr_assert(strstr(text, "ABI ft-cuda-1") && strstr(text, "__global__"), "%s", text);
    for (uint32_t k = 0; k < i; k++)
      cr_assert_not(ft_schedule_equal(&list[i], &list[k]), "%s: %u and %u", tactic, i, k);
  }
}

Test(simt_tactic, every_space_is_small_distinct_and_prints) {
  gpu_builder b;
  cr_assert(gpu_builder_open(&b, "sim", false));
  for (int i = 0; i < GROUPS; i++) {
    sketch s = sketch_open();
    ft_workload w = groups[i].draw(&s);
    const char *names[8], *reason;
    uint32_t count = gpu_match(&b, &w, names, &reason);
    for (uint32_t k = 0; k < count; k++) check_space(&b, &w, names[k]);
    sketch_close(&s);
  }
  gpu_builder_close(&b);
}

static const char *checked(gpu_builder *b, const ft_workload *w, ft_schedule schedule) {
  ft_candidate c = {w, &b->target, "simt_pointwise", schedule};
  return b->builder.check(b->builder.self, &c, b->arena);
}

Test(simt_tactic, refuses_schedules_that_are_not_its_own) {
  gpu_builder b;
  cr_assert(gpu_builder_open(&b, "sim", false));
  sketch s = sketch_open();
  ft_workload w = draw_pointwise(&s);
  ft_schedule *list;
  gpu_space(&b, &w, "simt_pointwise", &list);
  ft_schedule good = list[0], none = {0}, more = good, less = good, flag = good,
              word = good, odd = good;
  cr_assert_null(checked(&b, &w, good));
  ft_schedule_set(&more, "zeal", 1);
  less.count--;
  for (uint32_t i = 0; i < good.count; i++) {
    if (!strcmp(good.knob[i].name, "streams")) flag.knob[i].value = 2;
    if (!strcmp(good.knob[i].name, "threads")) odd.knob[i].value = 33;
    if (!strcmp(good.knob[i].name, "threads")) word.knob[i].text = "many";
  }
  cr_assert(strstr(checked(&b, &w, none), "is missing"));
  cr_assert(strstr(checked(&b, &w, more), "knobs"));
  cr_assert(strstr(checked(&b, &w, less), "missing"));
  cr_assert(strstr(checked(&b, &w, flag), "is not 0 or 1"));
  cr_assert(strstr(checked(&b, &w, odd), "multiple of 32"));
  cr_assert(strstr(checked(&b, &w, word), "no number"));
  sketch_close(&s);
  gpu_builder_close(&b);
}

Test(simt_tactic, cpu_tactics_are_no_candidates_for_a_gpu_nor_the_reverse) {
  gpu_builder b;
  cr_assert(gpu_builder_open(&b, "sim", false));
  sketch s = sketch_open();
  ft_workload w = draw_pointwise(&s);
  ft_schedule *list;
  uint32_t count;
  ft_error error;
  cr_assert_eq(b.builder.space(b.builder.self, &w, "pointwise", &b.target, b.arena, &list,
                               &count, &error),
               FT_INVALID_ARGUMENT);
  ft_target cpu = test_target(b.arena);
  ft_codegen_options options = {.cache_folder = b.folder};
  ft_codegen *codegen;
  cr_assert_eq(ft_codegen_create(&options, &cpu, ft_allocator_system(), &codegen, &error),
               FT_OK);
  ft_builder other = ft_codegen_builder(codegen);
  cr_assert_eq(
      other.space(other.self, &w, "simt_pointwise", &cpu, b.arena, &list, &count, &error),
      FT_INVALID_ARGUMENT);
  ft_codegen_destroy(codegen);
  sketch_close(&s);
  gpu_builder_close(&b);
}

Test(simt_tactic, equal_candidates_give_equal_text) {
  gpu_builder b;
  cr_assert(gpu_builder_open(&b, "sim", false));
  sketch s = sketch_open();
  ft_workload w = draw_rows(&s);
  ft_schedule *list;
  gpu_space(&b, &w, "simt_row", &list);
  ft_candidate c = {&w, &b.target, "simt_row", list[0]};
  const char *first, *second;
  ft_hash a, d;
  ft_error error;
  cr_assert_eq(b.builder.emit(b.builder.self, &c, b.arena, &first, &a, &error), FT_OK);
  cr_assert_eq(b.builder.emit(b.builder.self, &c, b.arena, &second, &d, &error), FT_OK);
  cr_assert_str_eq(first, second);
  cr_assert(ft_hash_equal(&a, &d));
  sketch_close(&s);
  gpu_builder_close(&b);
}

Test(simt_tactic, sim_builds_no_cubins) {
  gpu_builder b;
  cr_assert(gpu_builder_open(&b, "sim", false));
  sketch s = sketch_open();
  ft_workload w = draw_rows(&s);
  ft_schedule *list;
  gpu_space(&b, &w, "simt_row", &list);
  ft_candidate c = {&w, &b.target, "simt_row", list[0]};
  ft_module m;
  ft_error error;
  cr_assert_eq(b.builder.build(b.builder.self, &c, 1, true, b.arena, &m, &error),
               FT_UNAVAILABLE);
  cr_assert(strstr(error.text, "sim"), "%s", error.text);
  sketch_close(&s);
  gpu_builder_close(&b);
}
