// What fails leaves the store as it was: no memory, no disk.
#include "db/store_internal.h"
#include "tests/support/limited.h"
#include "tests/support/stores.h"

TestSuite(db_store_faults, .init = store_set_up, .fini = store_tear_down);

// Every table's row count, as text.
static const char *counts(void) {
  return sql_text(
      "SELECT (SELECT count(*) FROM target) || ',' || (SELECT count(*) FROM graph) || ','"
      "|| (SELECT count(*) FROM binding) || ',' || (SELECT count(*) FROM workload) || ','"
      "|| (SELECT count(*) FROM candidate) || ',' || (SELECT count(*) FROM run) || ','"
      "|| (SELECT count(*) FROM trial) || ',' || (SELECT count(*) FROM build) || ','"
      "|| (SELECT count(*) FROM artifact) || ',' || (SELECT count(*) FROM best) || ','"
      "|| (SELECT count(*) FROM quarantine) || ',' || (SELECT count(*) FROM plan) || ','"
      "|| (SELECT count(*) FROM plan_group) || ','"
      "|| (SELECT group_concat(outcome) FROM trial)");
}

// ---- the disk is full

Test(db_store_faults, a_full_disk_is_an_io_error_and_writes_nothing_of_the_step) {
  sample s;
  ft_hash hash;
  store_open();
  sample_store(&s);
  int64_t id = begin(&s, s.candidate_id);
  cr_assert_eq(sqlite3_exec(store->db, "PRAGMA max_page_count = 1", NULL, NULL, NULL), 0);
  const char *before = counts();
  uint8_t *noise = ft_arena_alloc(arena, 1 << 18);
  ft_rng rng = ft_rng_seed(1);
  for (int i = 0; i < 1 << 18; i++) noise[i] = (uint8_t)ft_rng_u64(&rng);
  cr_assert_eq(ft_store_artifact(store, "so", noise, 1 << 18, &hash, &error), FT_IO);
  cr_assert(strstr(error.text, "make room on the disk"), "%s", error.text);
  uint64_t *ns = ft_arena_alloc(arena, 8 << 15);
  ft_trial trial = trial_of(FT_OUTCOME_CRASH, 0);
  trial.sample_count = 1 << 15;
  trial.sample_ns = ns;
  trial.sample_flags = noise;
  cr_assert_eq(ft_store_trial_end(store, id, &trial, NULL, -1, -1, &error), FT_IO);
  cr_assert_str_eq(counts(), before);
  // and it works again when there is room
  cr_assert_eq(
      sqlite3_exec(store->db, "PRAGMA max_page_count = 1000000", NULL, NULL, NULL), 0);
  TEST_OK(ft_store_artifact(store, "so", noise, 1 << 18, &hash, &error));
  TEST_OK(ft_store_trial_end(store, id, &trial, NULL, -1, -1, &error));
  TEST_OK(ft_store_check(store, &error));
}

// ---- our own allocator

Test(db_store_faults, opening_with_any_allocation_failing_leaks_nothing) {
  bool done = false;
  int n = 0;
  for (; !done; n++) {
    limited l = {.left = n};
    ft_allocator allocator = limited_allocator(&l);
    ft_status status = ft_store_open(path, &allocator, &store, &error);
    done = status == FT_OK;
    cr_assert(done || status == FT_OUT_OF_MEMORY, "%s", error.text);
    ft_store_close(store);
    store = NULL;
    cr_assert_eq(l.live, 0, "with %d allocations", n);
  }
  cr_assert_gt(n, 3);
}

// ---- SQLite's allocator

static sqlite3_mem_methods real_memory;
static int memory_left = -1;  // -1: no limit
static bool may_allocate(void) {
  if (memory_left < 0) return true;
  if (memory_left == 0) return false;
  memory_left--;
  return true;
}
static void *faulty_malloc(int size) {
  return may_allocate() ? real_memory.xMalloc(size) : NULL;
}
static void *faulty_realloc(void *block, int size) {
  return may_allocate() ? real_memory.xRealloc(block, size) : NULL;
}

static void limit_sqlite(void) {
  sqlite3_mem_methods faulty;
  cr_assert_eq(sqlite3_shutdown(), SQLITE_OK);
  cr_assert_eq(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory), SQLITE_OK);
  faulty = real_memory;
  faulty.xMalloc = faulty_malloc;
  faulty.xRealloc = faulty_realloc;
  cr_assert_eq(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
  cr_assert_eq(sqlite3_config(SQLITE_CONFIG_MALLOC, &faulty), SQLITE_OK);
  cr_assert_eq(sqlite3_initialize(), SQLITE_OK);
}

// Every early allocation, then each fifth: all of them would take half a minute.
static int later(int n) {
  return n < 64 ? n + 1 : n + 5;
}

typedef ft_status (*step)(void);
static sample s;
static int64_t trial_id, ids[2];
static ft_plan plan;

static ft_status end_step(void) {
  ft_module module = {.outcome = FT_OUTCOME_OK,
                      .body_hash = ft_hash_bytes("b", 1),
                      .source = "int k;",
                      .compiler = "cc",
                      .flags = "-O3",
                      .log = "warning",
                      .facts = {-1, -1, -1, -1, -1, -1, -1}};
  ft_trial trial = trial_of(FT_OUTCOME_CRASH, 0);
  return ft_store_trial_end(store, trial_id, &trial, &module, 1, 1, &error);
}
static ft_status begin_step(void) {
  int64_t id;
  return ft_store_trial_begin(store, s.run_id, ids[1], "cold", 0, &id, &error);
}
static ft_status plan_step(void) {
  int64_t id;
  ft_plan_record record = {.run_id = s.run_id,
                           .binding_id = s.binding_id,
                           .target_id = s.target_id,
                           .role = "tuned",
                           .is_served = true,
                           .candidate_id = ids};
  return ft_store_plan_save(store, &plan, &record, &id, &error);
}
static ft_status target_step(void) {
  int64_t id;
  ft_target other = sample_target(8);
  return ft_store_target(store, &other, &id, &error);
}
static ft_status find_step(void) {
  ft_known_trial out;
  return ft_store_find_trial(store, ids[0], "cold", arena, &out, &error);
}
static ft_status served_step(void) {
  const char *body;
  return ft_store_served_plan(store, s.graph, &s.target, arena, &body, &error);
}

// Fails SQLite's allocations one by one in |it| with fresh statements each time.
static void fail_each(step it, const char *name) {
  const char *before = counts();
  for (int n = 0;; n = later(n)) {
    store_reopen();
    memory_left = n;
    ft_status status = it();
    bool was_short = memory_left == 0;
    memory_left = -1;
    if (status == FT_OK) {
      // SQLite does without some caches; the step is done and whole.
      if (!was_short) return;
      before = counts();
      continue;
    }
    cr_assert_eq(status, FT_OUT_OF_MEMORY, "%s, allocation %d: %s", name, n, error.text);
    cr_assert_str_eq(counts(), before, "%s, allocation %d", name, n);
    cr_assert_lt(n, 5000);
  }
}

Test(db_store_faults, failing_allocations_of_sqlite_leave_the_store_as_it_was) {
  limit_sqlite();
  store_open();
  sample_store(&s);
  ids[0] = s.candidate_id;
  ids[1] = sample_candidate(&s, 16);
  plan = sample_plan(s.graph, &s.target, arena);
  trial_id = begin(&s, s.candidate_id);
  fail_each(target_step, "target");
  fail_each(plan_step, "plan");
  fail_each(served_step, "served");
  fail_each(begin_step, "begin");
  fail_each(find_step, "find");
  TEST_OK(ft_store_check(store, &error));
}

// A trial ends once, so each try needs its own.
Test(db_store_faults, a_trial_that_could_not_end_is_still_pending) {
  limit_sqlite();
  store_open();
  sample_store(&s);
  trial_id = begin(&s, s.candidate_id);
  for (int n = 0;; n = later(n)) {
    store_reopen();
    const char *before = counts();
    memory_left = n;
    ft_status status = end_step();
    memory_left = -1;
    if (status == FT_OK) break;
    cr_assert_eq(status, FT_OUT_OF_MEMORY, "allocation %d: %s", n, error.text);
    cr_assert_str_eq(counts(), before, "allocation %d", n);
    EXPECT_SQL("pending", "SELECT outcome FROM trial");
  }
  EXPECT_SQL("crash", "SELECT outcome FROM trial");
  cr_assert_eq(count_of("artifact"), 2);
  cr_assert_eq(count_of("quarantine"), 1);
}

Test(db_store_faults, opening_with_an_allocation_of_sqlite_failing_is_clean) {
  limit_sqlite();
  int n = 0;
  for (;; n = later(n)) {
    memory_left = n;
    ft_status status = ft_store_open(path, ft_allocator_system(), &store, &error);
    memory_left = -1;
    if (status == FT_OK) break;
    cr_assert_eq(status, FT_OUT_OF_MEMORY, "allocation %d: %s", n, error.text);
    cr_assert_null(store);
  }
  cr_assert_gt(n, 50);
  TEST_OK(ft_store_check(store, &error));
}
