// sessions - a session and a small model in the test's own folder.
#ifndef FT_TESTS_DAEMON_SESSIONS_H
#define FT_TESTS_DAEMON_SESSIONS_H

#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/hash.h"
#include "daemon/ceilings.h"
#include "daemon/session.h"
#include "tests/support/command.h"
#include "tests/support/onnx_writer.h"
#include "tests/support/quick.h"

static const char *const session_worker[] = {FT_BINARY_DIR "/fusetune", "worker", NULL};

// Where times decide nothing, half the time would go into clearing caches before each
// sample. The ceilings are measured with as little, or bounds would be above the times.
enum { SMALL_FLUSH_BYTES = 4 << 20 };

typedef struct fixture {
  ft_arena *arena;
  ft_session session;
  ft_model model;
  volatile int stop;
  uint32_t stop_after;  // trials; 0: never
} fixture;

// y = exp(x + b) / 2 over [N, 48], with b a weight: three operators.
static inline ft_strbuf chain_model(ft_arena *arena) {
  onnx_file f = onnx_begin(arena, 13);
  float bias[48];
  for (int i = 0; i < 48; i++) bias[i] = (float)(i % 7) * 0.1f - 0.3f;
  onnx_input(&f, "x", ONNX_FLOAT, "N,48");
  onnx_output(&f, "y", ONNX_FLOAT, "N,48");
  onnx_floats(&f, "b", "48", bias, 48);
  onnx_scalar(&f, "half", 0.5f);
  onnx_node(&f, "Add", "x,b", "a", NULL);
  onnx_node(&f, "Exp", "a", "e", NULL);
  onnx_node(&f, "Mul", "e,half", "y", NULL);
  return onnx_end(&f);
}

// One operator: one group, so that each planted fault is tried once.
static inline ft_strbuf relu_model(ft_arena *arena) {
  onnx_file f = onnx_begin(arena, 13);
  onnx_input(&f, "x", ONNX_FLOAT, "N,50");
  onnx_output(&f, "y", ONNX_FLOAT, "N,50");
  onnx_node(&f, "Relu", "x", "y", NULL);
  return onnx_end(&f);
}

// Compilers and libraries are part of the target that ceilings belong to.
static inline const char *lent_path(uint64_t flush_bytes, ft_arena *arena) {
  const char *compiler = getenv("FUSETUNE_CC"), *libraries = getenv("FUSETUNE_LIBRARIES");
  const char *key = ft_arena_printf(arena, "%s %s %d", compiler ? compiler : "any",
                                    libraries ? libraries : "any", flush_bytes != 0);
  return ft_arena_printf(arena, FT_BINARY_DIR "/ceilings_for_tests_%016llx.db",
                         (unsigned long long)ft_hash64(0, key, strlen(key)));
}

// What ceilings this machine has takes seconds to measure, and is not what most tests are
// about: measured for the first one that asks, kept beside the build, and lent to all;
// but not for a compiler of one test.
static inline void lend_ceilings(const char *store, uint64_t flush_bytes,
                                 ft_arena *arena) {
  const char *lent = lent_path(flush_bytes, arena), *compiler = getenv("FUSETUNE_CC");
  if (compiler && strchr(compiler, '/')) return;
  ft_session session;
  ft_error error;
  ft_ceiling ceiling[FT_CEILINGS_MOST];
  uint32_t count;
  ft_bytes bytes;
  if (ft_file_read(lent, 1 << 24, arena, &bytes, &error) != FT_OK) {
    const char *fresh = ft_arena_printf(arena, "%s/ceilings.db", test_folder());
    ft_session_options options = {.store_path = fresh,
                                  .cache_folder = test_folder(),
                                  .worker_argv = session_worker,
                                  .flush_bytes = flush_bytes};
    cr_assert_eq(ft_session_open(&options, &session, &error), FT_OK, "%s", error.text);
    cr_assert_eq(ft_session_ceilings(&session, 0, false, ceiling, &count, &error), FT_OK,
                 "%s", error.text);
    ft_session_close(&session);
    cr_assert_eq(ft_file_read(fresh, 1 << 24, arena, &bytes, &error), FT_OK);
    cr_assert_eq(ft_file_write(lent, bytes.data, bytes.size, &error), FT_OK, "%s",
                 error.text);
  }
  cr_assert_eq(ft_file_write(store, bytes.data, bytes.size, &error), FT_OK);
}

// What a test asks of its session; names in its own folder.
typedef struct fixture_wish {
  const char *store, *cache;  // NULL: store.db, cache
  const char *target;
  bool test_tactics;
  bool is_cold;  // caches are cleared: times decide something
  uint32_t jobs;
} fixture_wish;

static inline void fixture_start(fixture *f, const fixture_wish *wish) {
  ft_error error;
  const char *store = wish->store ? wish->store : "store.db";
  const char *cache = wish->cache ? wish->cache : "cache";
  ft_session_options options = {
      .target = wish->target,
      .store_path = ft_arena_printf(f->arena, "%s/%s", test_folder(), store),
      .cache_folder = ft_arena_printf(f->arena, "%s/%s", test_folder(), cache),
      .worker_argv = session_worker,
      .check_limit_ns = wish->test_tactics ? 2000000000u : 0,  // one hangs
      .flush_bytes = wish->is_cold ? 0 : SMALL_FLUSH_BYTES,
      .test_tactics = wish->test_tactics,
      .jobs = wish->jobs};
  if (!wish->target && access(options.store_path, F_OK))
    lend_ceilings(options.store_path, options.flush_bytes, f->arena);
  cr_assert_eq(ft_session_open(&options, &f->session, &error), FT_OK, "%s", error.text);
  // Without time: a hasty look where none were lent, and the run does not look again.
  if (!wish->target)
    cr_assert_eq(ft_session_predictor_open(&f->session, 0, 1, &error), FT_OK, "%s",
                 error.text);
}

static inline fixture fixture_open_as(ft_strbuf (*make)(ft_arena *), fixture_wish wish) {
  fixture f = {.arena = ft_arena_create(ft_allocator_system())};
  ft_error error;
  compile_quickly();
  setenv("FUSETUNE_CC", "clang", 0);  // half the schedules
  const char *path = ft_arena_printf(f.arena, "%s/model.onnx", test_folder());
  ft_strbuf bytes = make(f.arena);
  cr_assert_eq(ft_file_write(path, bytes.text, bytes.length, &error), FT_OK, "%s",
               error.text);
  ft_dim_binding dim = {"N", 37};
  ft_import_options import = {.dim_count = 1, .dim = &dim};
  cr_assert_eq(ft_model_load(path, &import, f.arena, &f.model, &error), FT_OK, "%s",
               error.text);
  fixture_start(&f, &wish);
  return f;
}

static inline fixture fixture_open(ft_strbuf (*make)(ft_arena *), bool test_tactics) {
  return fixture_open_as(make, (fixture_wish){.test_tactics = test_tactics});
}

static inline void fixture_close(fixture *f) {
  ft_session_close(&f->session);
  ft_arena_destroy(f->arena);
}

static inline ft_answer fixture_tune(fixture *f) {
  ft_answer answer;
  ft_error error;
  ft_tune_options options = {.limit_ns = 60000000000u};
  cr_assert_eq(
      ft_session_tune(&f->session, &f->model, &options, f->arena, &answer, &error), FT_OK,
      "%s", error.text);
  return answer;
}

// The first column of the first row as text in the fixture's arena; "" when NULL.
static inline const char *fixture_sql(fixture *f, const char *sql) {
  sqlite3 *db;
  sqlite3_stmt *row;
  cr_assert_eq(sqlite3_open_v2(f->session.store_path, &db, SQLITE_OPEN_READONLY, NULL),
               SQLITE_OK);
  cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK, "%s: %s", sql,
               sqlite3_errmsg(db));
  cr_assert_eq(sqlite3_step(row), SQLITE_ROW, "%s", sql);
  const char *text = (const char *)sqlite3_column_text(row, 0);
  text = ft_arena_strdup(f->arena, text ? text : "");
  sqlite3_finalize(row);
  sqlite3_close(db);
  return text;
}

#endif
