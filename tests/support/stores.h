// stores - a store in a folder of its own, and a second look at its file.
#ifndef FT_TESTS_SUPPORT_STORES_H
#define FT_TESTS_SUPPORT_STORES_H

#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/store.h"
#include "tests/support/plans.h"

static ft_arena *arena;
static ft_error error;
static ft_store *store;
static char folder[200], path[256];

static inline void store_open(void) {
  TEST_OK(ft_store_open(path, ft_allocator_system(), &store, &error));
}
static inline void store_reopen(void) {
  ft_store_close(store);
  store_open();
}
// Each test has a folder; the store is opened by the test.
static inline void store_set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
  const char *parent = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%.150s/ft-store-XXXXXX", parent ? parent : P_tmpdir);
  cr_assert(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/store.db", folder);
}
static inline void store_tear_down(void) {
  char command[256];
  ft_store_close(store);
  ft_arena_destroy(arena);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command) != 0) perror(command);
}

// Runs |sql| over a connection of its own; the result code.
static inline int try_sql(const char *sql) {
  sqlite3 *db;
  cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
  sqlite3_busy_timeout(db, 5000);
  sqlite3_exec(db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL);
  int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
  sqlite3_close(db);
  return code;
}
static inline void run_sql(const char *sql) {
  cr_assert_eq(try_sql(sql), SQLITE_OK, "%s", sql);
}

// The first column of the first row as text in |arena|; "(null)", "(no row)".
static inline const char *sql_text(const char *sql) {
  sqlite3 *db;
  sqlite3_stmt *row;
  cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
  sqlite3_busy_timeout(db, 5000);
  cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK, "%s: %s", sql,
               sqlite3_errmsg(db));
  const char *text = "(no row)";
  if (sqlite3_step(row) == SQLITE_ROW) {
    text = (const char *)sqlite3_column_text(row, 0);
    text = text ? ft_arena_strdup(arena, text) : "(null)";
  }
  sqlite3_finalize(row);
  sqlite3_close(db);
  return text;
}
#define EXPECT_SQL(want, sql) cr_assert_str_eq(sql_text(sql), want, "%s", sql)

static inline int64_t count_of(const char *table) {
  int64_t count;
  TEST_OK(ft_store_count(store, table, &count, &error));
  return count;
}

// What a test of trials needs first: ids of the sample graph, target, candidate and run.
typedef struct sample {
  ft_target target;
  ft_graph *graph;
  ft_workload workload;
  ft_candidate candidate;
  int64_t target_id, graph_id, binding_id, candidate_id, run_id;
} sample;

static inline void sample_init(sample *s) {
  ft_group group;
  s->target = sample_target(4);
  s->graph = sample_graph(4, "", arena);
  TEST_OK(ft_group_make(s->graph, (const uint32_t[]){0, 1}, 2, arena, &group, &error));
  TEST_OK(ft_workload_make(&group, arena, &s->workload, &error));
  s->candidate =
      (ft_candidate){.workload = &s->workload, .target = &s->target, .tactic = "S1"};
  ft_schedule_set(&s->candidate.schedule, "vector", 8);
}

// The candidate of the sample with |vector| as its knob.
static inline int64_t sample_candidate(sample *s, int64_t vector) {
  int64_t id;
  ft_candidate candidate = s->candidate;
  candidate.schedule = (ft_schedule){0};
  ft_schedule_set(&candidate.schedule, "vector", vector);
  TEST_OK(ft_store_candidate(store, &candidate, s->target_id, 1, &id, &error));
  return id;
}

static inline void sample_store(sample *s) {
  sample_init(s);
  TEST_OK(ft_store_target(store, &s->target, &s->target_id, &error));
  TEST_OK(ft_store_graph(store, s->graph, &s->graph_id, &s->binding_id, &error));
  s->candidate_id = sample_candidate(s, 8);
  ft_run_record run = {s->binding_id, s->target_id, "{\"window\":16}",
                       UINT64_MAX,    "0.1.0",      "host"};
  TEST_OK(ft_store_run_begin(store, &run, &s->run_id, &error));
}

static inline int64_t begin(const sample *s, int64_t candidate_id) {
  int64_t id;
  TEST_OK(
      ft_store_trial_begin(store, s->run_id, candidate_id, "cold", 1000000, &id, &error));
  return id;
}

static inline ft_trial trial_of(ft_outcome outcome, uint64_t median_ns) {
  static const uint64_t ns[] = {UINT64_MAX / 2, 1, 0x0102030405060708};
  static const uint8_t flags[] = {FT_SAMPLE_WARM_UP, 0, FT_SAMPLE_DRIFT};
  return (ft_trial){.outcome = outcome,
                    .time = {median_ns, median_ns, median_ns + 5, median_ns ? 2 : 0},
                    .sample_count = 3,
                    .sample_ns = ns,
                    .sample_flags = flags,
                    .max_error_ratio = 0.25,
                    .worst = "",
                    .error = "",
                    .env = "{\"load\":0.5}",
                    .started_at = 11,
                    .ended_at = 22};
}

static inline void end_as(int64_t trial_id, const ft_trial *trial) {
  TEST_OK(ft_store_trial_end(store, trial_id, trial, NULL, -1, -1, &error));
}
static inline int64_t run_trial(const sample *s, int64_t candidate_id, ft_outcome outcome,
                                uint64_t median_ns) {
  int64_t id = begin(s, candidate_id);
  ft_trial trial = trial_of(outcome, median_ns);
  end_as(id, &trial);
  return id;
}

static inline ft_known_trial known(int64_t candidate_id, const char *mode) {
  ft_known_trial out;
  TEST_OK(ft_store_find_trial(store, candidate_id, mode, arena, &out, &error));
  return out;
}

// Runs |body| in another process that has no store yet; its exit code, or 128 + signal.
static inline int in_child(void (*body)(void *ctx), void *ctx) {
  int status;
  pid_t pid = fork();
  cr_assert_geq(pid, 0);
  if (pid == 0) {
    body(ctx);
    _exit(0);
  }
  cr_assert_eq(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
