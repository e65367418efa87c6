// The builder: what it accepts, what it prints, how it builds.
#include "codegen/codegen.h"

#include <dirent.h>
#include <sys/stat.h>

#include "graphs.h"
#include "running.h"

typedef struct fixture {
  ft_arena *arena;
  ft_target *target;  // the codegen borrows it
  const char *folder;
  ft_codegen *codegen;
  ft_builder builder;
} fixture;

static void reopen(fixture *f, bool test_tactics, uint64_t limit_ns) {
  ft_codegen_destroy(f->codegen);
  ft_codegen_options options = {.cache_folder = f->folder,
                                .jobs = 2,
                                .compile_limit_ns = limit_ns,
                                .test_tactics = test_tactics};
  ft_error error;
  cr_assert_eq(
      ft_codegen_create(&options, f->target, ft_allocator_system(), &f->codegen, &error),
      FT_OK, "%s", error.text);
  f->builder = ft_codegen_builder(f->codegen);
}

static fixture open_fixture(void) {
  fixture f = {.arena = ft_arena_create(ft_allocator_system())};
  f.target = FT_NEW(f.arena, ft_target);
  *f.target = test_target(f.arena);
  f.folder = cache_make(f.arena);
  reopen(&f, false, 0);
  return f;
}

static void close_fixture(fixture *f) {
  ft_codegen_destroy(f->codegen);
  cache_remove(f->folder, f->arena);
  ft_arena_destroy(f->arena);
}

static uint32_t match(fixture *f, const ft_workload *w, const char **names,
                      const char **reason) {
  return f->builder.match(f->builder.self, w, f->arena, names, 8, reason);
}

static uint32_t space(fixture *f, const ft_workload *w, const char *tactic,
                      ft_schedule **out) {
  uint32_t count;
  ft_error error;
  cr_assert_eq(f->builder.space(f->builder.self, w, tactic, f->target, f->arena, out,
                                &count, &error),
               FT_OK, "%s", error.text);
  return count;
}

static ft_candidate candidate_of(fixture *f, const ft_workload *w, const char *tactic,
                                 uint32_t at) {
  ft_schedule *list;
  cr_assert_lt(at, space(f, w, tactic, &list));
  return (ft_candidate){w, f->target, tactic, list[at]};
}

static ft_workload sum_of(sketch *s, ft_op op, uint32_t axes) {
  uint32_t x = input(s, FT_F32, SHAPE(32, 48, 20));
  output(s, reduce(s, op, x, axes));
  return finish(s);
}

static ft_workload scaled(sketch *s, double by) {
  uint32_t x = input(s, FT_F32, SHAPE(1000));
  output(s, two(s, FT_OP_MUL, x, scalar(s, FT_F32, by)));
  return finish(s);
}

// ---- what is accepted
// -------------------------------------------------------------------

Test(codegen_match, names_the_tactic_that_fits_first) {
  static const struct {
    uint32_t axes;
    const char *tactic;
  } cases[] = {{4, "row"},    {6, "row"},    {7, "row"},
               {1, "column"}, {2, "column"}, {3, "column"}};
  fixture f = open_fixture();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sketch s = sketch_open();
    ft_workload w = sum_of(&s, FT_OP_REDUCE_SUM, cases[i].axes);
    const char *names[8], *reason;
    cr_assert_geq(match(&f, &w, names, &reason), 1, "axes %u: %s", cases[i].axes, reason);
    cr_assert_str_eq(names[0], cases[i].tactic, "axes %u", cases[i].axes);
    sketch_close(&s);
  }
  close_fixture(&f);
}

Test(codegen_match, says_which_reductions_do_not_go_together) {
  fixture f = open_fixture();
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(6, 10));
  output(&s, reduce(&s, FT_OP_REDUCE_SUM, x, 1));
  output(&s, reduce(&s, FT_OP_REDUCE_SUM, x, 2));
  ft_workload w = finish(&s);
  const char *names[8], *reason;
  cr_assert_eq(match(&f, &w, names, &reason), 0);
  cr_assert(strstr(reason, "reduces"), "%s", reason);
  sketch_close(&s);
  close_fixture(&f);
}

Test(codegen_match, says_which_outputs_do_not_go_together) {
  fixture f = open_fixture();
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(6, 1)), y = input(&s, FT_F32, SHAPE(6, 10));
  uint32_t e = one(&s, FT_OP_EXP, x);
  output(&s, e);
  output(&s, two(&s, FT_OP_ADD, e, y));
  ft_workload w = finish(&s);
  const char *names[8], *reason;
  cr_assert_eq(match(&f, &w, names, &reason), 0);
  cr_assert(strstr(reason, "output over 6"), "%s", reason);
  sketch_close(&s);
  close_fixture(&f);
}

Test(codegen_match, offers_misbehaving_kernels_only_to_tests) {
  fixture f = open_fixture();
  sketch s = sketch_open();
  ft_workload w = scaled(&s, 2);
  const char *names[8], *reason;
  cr_assert_eq(match(&f, &w, names, &reason), 1);
  reopen(&f, true, 0);
  cr_assert_eq(match(&f, &w, names, &reason), 2);
  cr_assert_str_eq(names[1], "fault");
  sketch_close(&s);
  close_fixture(&f);
}

Test(codegen_space, is_small_and_passes_its_own_check) {
  fixture f = open_fixture();
  for (int big = 0; big < 2; big++) {
    sketch s = sketch_open();
    uint32_t x = input(&s, FT_F32, SHAPE(big ? 4096 : 4, 64));
    output(&s, softmax(&s, x, 1));
    ft_workload w = finish(&s);
    ft_schedule *list;
    uint32_t count = space(&f, &w, "row", &list);
    cr_assert(count >= 1 && count <= 24, "%u", count);
    for (uint32_t i = 0; i < count; i++) {
      ft_candidate c = {&w, f.target, "row", list[i]};
      cr_assert_null(f.builder.check(f.builder.self, &c, f.arena));
      for (uint32_t k = 0; k < i; k++)
        cr_assert_not(ft_schedule_equal(&list[i], &list[k]));
    }
    sketch_close(&s);
  }
  close_fixture(&f);
}

Test(codegen_check, refuses_what_cannot_work_before_it_is_built) {
  fixture f = open_fixture();
  sketch s = sketch_open();
  ft_workload w = scaled(&s, 2);
  static const struct {
    const char *knob;
    int64_t value;
    const char *text, *says;
  } cases[] = {
      {"vector", 3, NULL, "power of two"},  {"vector", 128, NULL, "power of two"},
      {"vector", -8, NULL, "power of two"}, {"block", 0, NULL, "block"},
      {"block", -1, NULL, "block"},         {"threads", 0, NULL, "threads"},
      {"threads", 3, NULL, "3 threads"},    {"buffer", 4, NULL, "buffer"},
      {"buffer", 1, NULL, "buffer"},        {"non_temporal", 9, NULL, "non_temporal"},
      {"compiler", 0, "tcc", "tcc"},        {"compiler", 0, NULL, "compiler"},
      {"split", 0, NULL, "split"},          {"split", 2, NULL, "split"},
      {"split", -3, NULL, "split"},         {"split", 1 << 20, NULL, "split"},
      {"unroll", 3, NULL, "unroll"},        {"unroll", 16, NULL, "unroll"},
      {"unroll", 0, NULL, "unroll"},        {"prefetch", 65, NULL, "prefetch"},
      {"prefetch", -1, NULL, "prefetch"},   {"prefetch", 2, NULL, "prefetch"},
      {"zeal", 1, NULL, "zeal is unknown"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ft_candidate c = candidate_of(&f, &w, "pointwise", 0);
    ft_schedule changed = {0};
    for (uint32_t k = 0; k < c.schedule.count; k++) {
      const ft_knob *knob = &c.schedule.knob[k];
      if (!strcmp(knob->name, cases[i].knob)) continue;
      if (knob->text)
        ft_schedule_set_text(&changed, knob->name, knob->text);
      else
        ft_schedule_set(&changed, knob->name, knob->value);
    }
    if (cases[i].text)
      ft_schedule_set_text(&changed, cases[i].knob, cases[i].text);
    else
      ft_schedule_set(&changed, cases[i].knob, cases[i].value);
    c.schedule = changed;
    const char *why = f.builder.check(f.builder.self, &c, f.arena);
    cr_assert(why && strstr(why, cases[i].says), "%s %lld: %s", cases[i].knob,
              (long long)cases[i].value, why ? why : "accepted");
  }
  sketch_close(&s);
  close_fixture(&f);
}

// ---- what is printed
// -----------------------------------------------------------------------

Test(codegen_emit, prints_equal_candidates_as_equal_bytes_with_key_and_no_names) {
  fixture f = open_fixture();
  const char *text[2];
  ft_hash hash[2];
  for (int i = 0; i < 2; i++) {
    sketch s = sketch_open();
    ft_workload w = scaled(&s, 2);
    ft_candidate c = candidate_of(&f, &w, "pointwise", 0);
    cr_assert_eq(f.builder.emit(f.builder.self, &c, f.arena, &text[i], &hash[i], NULL),
                 FT_OK);
    sketch_close(&s);
  }
  cr_assert_str_eq(text[0], text[1]);
  cr_assert(ft_hash_equal(&hash[0], &hash[1]));
  cr_assert(strstr(text[0], "workload sha256:") && strstr(text[0], "\"vector\":"));
  close_fixture(&f);
}

Test(codegen_emit, the_body_hash_leaves_out_the_banner) {
  fixture f = open_fixture();
  sketch s = sketch_open();
  ft_workload w = scaled(&s, 2);
  ft_candidate a = candidate_of(&f, &w, "pointwise", 0), b = a;
  b.schedule = (ft_schedule){0};
  for (uint32_t k = 0; k < a.schedule.count; k++) {
    const ft_knob *knob = &a.schedule.knob[k];
    if (!strcmp(knob->name, "threads"))
      ft_schedule_set(&b.schedule, "threads", 2);
    else if (knob->text)
      ft_schedule_set_text(&b.schedule, knob->name, knob->text);
    else
      ft_schedule_set(&b.schedule, knob->name, knob->value);
  }
  const char *x, *y;
  ft_hash p, q;
  cr_assert_eq(f.builder.emit(f.builder.self, &a, f.arena, &x, &p, NULL), FT_OK);
  cr_assert_eq(f.builder.emit(f.builder.self, &b, f.arena, &y, &q, NULL), FT_OK);
  cr_assert_str_neq(x, y);
  cr_assert(ft_hash_equal(&p, &q));
  sketch_close(&s);
  close_fixture(&f);
}

// ---- how it builds
// -----------------------------------------------------------------------------

static uint32_t objects_in(const char *folder) {
  DIR *dir = opendir(folder);
  cr_assert(dir);
  uint32_t n = 0;
  for (struct dirent *e; (e = readdir(dir));) n += strstr(e->d_name, ".so") != NULL;
  closedir(dir);
  return n;
}

static void build(fixture *f, const ft_candidate *c, uint32_t count, bool alone,
                  ft_module *out) {
  ft_error error;
  cr_assert_eq(f->builder.build(f->builder.self, c, count, alone, f->arena, out, &error),
               FT_OK, "%s", error.text);
}

Test(codegen_build, finds_a_cached_kernel_without_running_a_compiler) {
  fixture f = open_fixture();
  sketch s = sketch_open();
  ft_workload w = scaled(&s, 2);
  ft_candidate c = candidate_of(&f, &w, "pointwise", 0);
  ft_module first, second;
  build(&f, &c, 1, false, &first);
  cr_assert_eq(first.outcome, FT_OUTCOME_OK, "%s", first.log);
  cr_assert_gt(first.build_ns, 0);
  for (uint32_t i = 0; i < f.target->compiler_count; i++)
    f.target->compiler[i].path = "/nonexistent/cc";
  reopen(&f, false, 0);
  build(&f, &c, 1, false, &second);
  cr_assert_eq(second.outcome, FT_OUTCOME_OK);
  cr_assert_eq(second.build_ns, 0);
  cr_assert_str_eq(first.path, second.path);
  sketch_close(&s);
  close_fixture(&f);
}

Test(codegen_build, a_compiler_that_is_gone_is_our_own_fault) {
  fixture f = open_fixture();
  sketch s = sketch_open();
  ft_workload w = scaled(&s, 2);
  ft_candidate c = candidate_of(&f, &w, "pointwise", 0);
  for (uint32_t i = 0; i < f.target->compiler_count; i++)
    f.target->compiler[i].path = "/nonexistent/cc";
  ft_module m;
  ft_error error;
  cr_assert_eq(f.builder.build(f.builder.self, &c, 1, false, f.arena, &m, &error),
               FT_UNAVAILABLE);
  cr_assert(strstr(error.text, "/nonexistent/cc"));
  sketch_close(&s);
  close_fixture(&f);
}

static uint32_t fault_at(fixture *f, const ft_workload *w, const char *name) {
  ft_schedule *list;
  uint32_t count = space(f, w, "fault", &list);
  for (uint32_t i = 0; i < count; i++) {
    if (!strcmp(ft_schedule_get_text(&list[i], "fault"), name)) return i;
  }
  cr_assert(false, "no fault %s", name);
  return 0;
}

Test(codegen_build, a_kernel_that_does_not_compile_takes_no_other_with_it) {
  fixture f = open_fixture();
  reopen(&f, true, 0);
  sketch s[4];
  ft_workload w[4];
  ft_candidate c[4];
  for (uint32_t i = 0; i < 4; i++) {
    s[i] = sketch_open();
    w[i] = scaled(&s[i], i + 2);
    c[i] = candidate_of(&f, &w[i], "pointwise", 0);
  }
  c[1] = candidate_of(&f, &w[1], "fault", fault_at(&f, &w[1], "no_compile"));
  ft_module m[4];
  build(&f, c, 4, false, m);
  for (uint32_t i = 0; i < 4; i++) {
    cr_assert_eq(m[i].outcome, i == 1 ? FT_OUTCOME_COMPILE_ERROR : FT_OUTCOME_OK,
                 "%u: %s", i, m[i].log);
  }
  cr_assert(strstr(m[1].log, "error"), "%s", m[1].log);
  cr_assert_str_eq(m[1].path, "");
  for (uint32_t i = 0; i < 4; i++) sketch_close(&s[i]);
  close_fixture(&f);
}

Test(codegen_build, a_refused_candidate_is_an_outcome_with_its_reason) {
  fixture f = open_fixture();
  sketch s = sketch_open();
  ft_workload w = scaled(&s, 2);
  ft_candidate c[2] = {candidate_of(&f, &w, "pointwise", 0),
                       candidate_of(&f, &w, "pointwise", 0)};
  c[1].tactic = "row";
  ft_module m[2];
  build(&f, c, 2, false, m);
  cr_assert_eq(m[0].outcome, FT_OUTCOME_OK);
  cr_assert_eq(m[1].outcome, FT_OUTCOME_COMPILE_ERROR);
  cr_assert_str_eq(m[1].log, "row needs a reduction");
  sketch_close(&s);
  close_fixture(&f);
}

Test(codegen_build, a_compiler_that_hangs_is_stopped) {
  fixture f = open_fixture();
  char *script = ft_arena_printf(f.arena, "%s/cc", f.folder);
  FILE *file = fopen(script, "w");
  cr_assert(file);
  fputs("#!/bin/sh\nsleep 30\n", file);
  fclose(file);
  cr_assert_eq(chmod(script, 0700), 0);
  f.target->compiler[0].path = script;
  reopen(&f, false, 100000000);
  sketch s = sketch_open();
  ft_workload w = scaled(&s, 2);
  ft_candidate c = candidate_of(&f, &w, "pointwise", 0);
  ft_module m;
  build(&f, &c, 1, false, &m);
  cr_assert_eq(m.outcome, FT_OUTCOME_TIMEOUT);
  sketch_close(&s);
  close_fixture(&f);
}

Test(codegen_build, equal_kernels_are_built_once_and_nothing_is_left_behind) {
  fixture f = open_fixture();
  sketch s = sketch_open();
  ft_workload w = scaled(&s, 2);
  ft_candidate c[3];
  for (int i = 0; i < 3; i++) c[i] = candidate_of(&f, &w, "pointwise", 0);
  ft_module m[3];
  build(&f, c, 3, false, m);
  cr_assert_str_eq(m[0].path, m[2].path);
  cr_assert_eq(objects_in(f.folder), 1);
  DIR *dir = opendir(f.folder);
  for (struct dirent *e; (e = readdir(dir));) cr_assert_not(strstr(e->d_name, "tmp"));
  closedir(dir);
  sketch_close(&s);
  close_fixture(&f);
}

static char *bytes_of(const char *path, size_t *size, ft_arena *arena) {
  FILE *file = fopen(path, "rb");
  cr_assert(file);
  char *bytes = ft_arena_alloc(arena, 1 << 20);
  *size = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return bytes;
}

Test(codegen_build, alone_gives_the_same_object_bytes_in_another_cache) {
  fixture f = open_fixture(), g = open_fixture();
  sketch s = sketch_open();
  ft_workload w = scaled(&s, 2);
  ft_candidate c = candidate_of(&f, &w, "pointwise", 0), d = c;
  d.target = g.target;
  ft_module m, n, packed;
  build(&f, &c, 1, true, &m);
  build(&g, &d, 1, true, &n);
  build(&f, &c, 1, false, &packed);
  cr_assert_str_neq(m.path, packed.path);
  size_t x, y;
  char *a = bytes_of(m.path, &x, f.arena), *b = bytes_of(n.path, &y, f.arena);
  cr_assert(x == y && x > 0 && !memcmp(a, b, x));
  sketch_close(&s);
  close_fixture(&f);
  close_fixture(&g);
}

// ---- when memory runs out
// -------------------------------------------------------------------------

typedef struct failing {
  ft_allocator allocator;
  long left;
} failing;

static void *take(void *ctx, size_t size, size_t align) {
  failing *f = ctx;
  return f->left-- > 0 ? ft_allocate(ft_allocator_system(), size, align) : NULL;
}

static void give(void *ctx, void *block) {
  (void)ctx;
  ft_release(ft_allocator_system(), block);
}

Test(codegen_emit, fails_each_allocation_with_out_of_memory) {
  fixture f = open_fixture();
  sketch s = sketch_open();
  uint32_t x = input(&s, FT_F32, SHAPE(40, 64)), g = input(&s, FT_F32, SHAPE(64));
  output(&s, layer_norm(&s, x, g, 1));
  ft_workload w = finish(&s);
  ft_candidate c = candidate_of(&f, &w, "row", 0);
  ft_status status = FT_OUT_OF_MEMORY;
  long n = 0;
  for (; status != FT_OK && n < 1000; n++) {
    failing fail = {{.allocate = take, .release = give}, n + 1};
    fail.allocator.ctx = &fail;
    ft_arena *arena = ft_arena_create(&fail.allocator);
    cr_assert(arena);
    const char *text;
    ft_hash hash;
    status = f.builder.emit(f.builder.self, &c, arena, &text, &hash, NULL);
    cr_assert(status == FT_OK || status == FT_OUT_OF_MEMORY, "%ld: %s", n,
              ft_status_text(status));
    ft_arena_destroy(arena);
  }
  cr_assert(n > 3 && n < 1000, "%ld", n);
  sketch_close(&s);
  close_fixture(&f);
}

// ---- which compilers there are
// ------------------------------------------------------------------------

Test(codegen_compilers, come_with_a_version_and_clang_first) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_target target = test_target(arena);
  for (uint32_t i = 0; i < target.compiler_count; i++) {
    const ft_compiler *c = &target.compiler[i];
    cr_assert(strchr(c->version, '.'), "%s", c->version);
    cr_assert_eq(access(c->path, X_OK), 0);
    cr_assert_not(strncmp(c->name, c->is_clang ? "clang-" : "gcc-", 4));
    cr_assert(i == 0 || c->is_clang <= target.compiler[i - 1].is_clang);
    for (uint32_t k = 0; k < i; k++) cr_assert_str_neq(c->name, target.compiler[k].name);
  }
  ft_arena_destroy(arena);
}

Test(codegen_compilers, only_the_one_that_the_environment_names) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_target all = test_target(arena);
  ft_compiler found[FT_MAX_COMPILERS];
  uint32_t count;
  const char *last = all.compiler[all.compiler_count - 1].path;
  setenv("FUSETUNE_CC", last, 1);
  cr_assert_eq(ft_compilers_find(arena, found, &count, NULL), FT_OK);
  cr_assert_eq(count, 1);
  cr_assert_str_eq(found[0].name, all.compiler[all.compiler_count - 1].name);
  setenv("FUSETUNE_CC", "/nonexistent/cc", 1);
  ft_error error;
  cr_assert_eq(ft_compilers_find(arena, found, &count, &error), FT_UNAVAILABLE);
  cr_assert(strstr(error.text, "/nonexistent/cc"));
  unsetenv("FUSETUNE_CC");
  ft_arena_destroy(arena);
}

Test(codegen_space, offers_a_split_first_where_rows_are_fewer_than_threads) {
  fixture f = open_fixture();
  static const struct {
    int64_t rows, columns;
    bool splits;
  } cases[] = {
      {1, 1000000, true}, {2, 300000, true}, {4096, 1024, false}, {1, 500, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sketch s = sketch_open();
    uint32_t x = input(&s, FT_F32, SHAPE(cases[i].rows, cases[i].columns));
    output(&s, reduce(&s, FT_OP_REDUCE_SUM, x, 2));
    ft_workload w = finish(&s);
    ft_schedule *list;
    uint32_t count = space(&f, &w, "row", &list), splits = 0;
    for (uint32_t k = 0; k < count; k++)
      splits += ft_schedule_get(&list[k], "split", 0) > 1;
    cr_assert_eq(ft_schedule_get(&list[0], "split", 0) > 1, cases[i].splits, "%zu", i);
    cr_assert_eq(splits > 0, cases[i].splits, "%zu", i);
    cr_assert_leq(count, 24);
    sketch_close(&s);
  }
  close_fixture(&f);
}
