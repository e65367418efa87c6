// The trials as rows: which, in what order, under which names.
#include "db/trial_log.h"

#include <unistd.h>

#include "tests/support/limited.h"
#include "tests/support/stores.h"

static sample s;
static void set_up(void) {
  store_set_up();
  store_open();
  sample_store(&s);
}
TestSuite(db_trial_log, .init = set_up, .fini = store_tear_down);

typedef struct seen {
  int64_t id[64];
  uint64_t median_ns[64];
  uint32_t count, stop_after;
  ft_trial_row last;
  uint64_t first_sample;
} seen;

static ft_status look(void *ctx, const ft_trial_row *row, ft_error *it) {
  seen *all = ctx;
  if (all->stop_after && all->count == all->stop_after)
    FT_FAIL(it, FT_IO, "the disk is full");
  all->id[all->count % 64] = row->trial_id;
  all->median_ns[all->count++ % 64] = row->time.median_ns;
  all->last = *row;
  all->first_sample = row->sample_count ? row->sample_ns[0] : 0;
  return FT_OK;
}

static seen walk(const ft_trial_filter *filter) {
  seen all = {0};
  TEST_OK(ft_store_each_trial(store, filter, look, &all, &error));
  return all;
}

static int64_t run_limited(int64_t candidate, uint64_t median_ns, uint64_t limit_ns) {
  int64_t id;
  TEST_OK(
      ft_store_trial_begin(store, s.run_id, candidate, "cold", limit_ns, &id, &error));
  ft_trial trial = trial_of(FT_OUTCOME_OK, median_ns);
  trial.limit_ns = limit_ns;
  end_as(id, &trial);
  return id;
}

Test(db_trial_log, every_trial_is_there_once_in_order_whatever_its_outcome) {
  for (int i = 0; i < FT_OUTCOME_COUNT; i++) {
    int64_t id = begin(&s, sample_candidate(&s, 100 + i));
    if (i == FT_OUTCOME_PENDING) continue;
    ft_trial trial = trial_of((ft_outcome)i, i == FT_OUTCOME_OK ? 100 : 0);
    end_as(id, &trial);
  }
  seen all = walk(&(ft_trial_filter){0});
  cr_assert_eq(all.count, FT_OUTCOME_COUNT);
  for (uint32_t i = 1; i < all.count; i++) cr_assert_gt(all.id[i], all.id[i - 1]);
}

Test(db_trial_log, a_row_holds_what_the_store_was_told) {
  int64_t id = run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 1234);
  seen all = walk(&(ft_trial_filter){0});
  const ft_trial_row *row = &all.last;
  cr_assert_eq(row->trial_id, id);
  cr_assert_eq(row->time.median_ns, 1234);
  cr_assert_eq(row->time.high_ns, 1239);
  cr_assert(ft_hash_equal(&row->workload, &s.workload.hash));
  cr_assert(ft_hash_equal(&row->target, &s.target.signature));
  cr_assert_eq(row->seed, UINT64_MAX);
  cr_assert_eq(row->sample_count, 3);
  cr_assert_eq(all.first_sample, 0xff);
  cr_assert(ft_hash_is_zero(&row->source));
  cr_assert_eq(row->predicted_ns, -1);
}

Test(db_trial_log, top_k_takes_each_candidate_once_by_the_trial_that_is_believed) {
  int64_t lucky = sample_candidate(&s, 1), steady = sample_candidate(&s, 2),
          slow = sample_candidate(&s, 3), liar = sample_candidate(&s, 4);
  run_limited(lucky, 50, 1000);
  int64_t confirmed = run_limited(lucky, 300, 5000);  // the longest look is believed
  int64_t best = run_limited(steady, 200, 1000);
  run_limited(slow, 400, 1000);
  run_limited(liar, 10, 1000);
  run_trial(&s, liar, FT_OUTCOME_CRASH, 0);  // quarantined: it is nobody's best
  seen all = walk(&(ft_trial_filter){.top_k = 1});
  cr_assert_eq(all.count, 1);
  cr_assert_eq(all.id[0], best);
  all = walk(&(ft_trial_filter){.top_k = 2});
  cr_assert_eq(all.count, 2);
  cr_assert_eq(all.id[0], confirmed);
  cr_assert_eq(all.id[1], best);
}

Test(db_trial_log, since_looks_at_the_end_and_a_model_at_its_runs) {
  run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 5);  // ended_at 22
  cr_assert_eq(walk(&(ft_trial_filter){.since_ns = 22}).count, 1);
  cr_assert_eq(walk(&(ft_trial_filter){.since_ns = 23}).count, 0);
  cr_assert_eq(walk(&(ft_trial_filter){.graph = s.graph}).count, 1);
  ft_graph *other = sample_graph(8, "", arena);
  seen all = {0};
  cr_assert_eq(
      ft_store_each_trial(store, &(ft_trial_filter){.graph = other}, look, &all, &error),
      FT_NOT_FOUND);
  cr_assert(strstr(error.text, "{\"N\":8}"), "%s", error.text);
}

Test(db_trial_log, an_error_of_the_visitor_ends_the_walk_and_the_store_goes_on) {
  for (int i = 0; i < 5; i++) run_trial(&s, sample_candidate(&s, i), FT_OUTCOME_OK, 9);
  seen all = {.stop_after = 2};
  cr_assert_eq(ft_store_each_trial(store, &(ft_trial_filter){0}, look, &all, &error),
               FT_IO);
  cr_assert_eq(all.count, 2);
  cr_assert_eq(walk(&(ft_trial_filter){0}).count, 5);
}

// A writer of its own, in the middle of a transaction: the reader neither waits nor sees
// it.
Test(db_trial_log, reads_while_another_process_writes) {
  run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 5);
  sqlite3 *db;
  cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(db, "BEGIN IMMEDIATE; UPDATE trial SET median_ns = 777", NULL,
                            NULL, NULL),
               SQLITE_OK);
  seen all = walk(&(ft_trial_filter){.top_k = 3});
  cr_assert_eq(all.count, 1);
  cr_assert_eq(all.median_ns[0], 5);
  cr_assert_eq(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  cr_assert_eq(walk(&(ft_trial_filter){0}).median_ns[0], 777);
}

Test(db_trial_log, a_walk_allocates_nothing_however_many_trials_there_are) {
  for (int i = 0; i < 500; i++) run_trial(&s, sample_candidate(&s, i), FT_OUTCOME_OK, 9);
  ft_store_close(store);
  static limited l = {.left = 1000};  // outlives the test: the store is closed after it
  static ft_allocator allocator;
  allocator = limited_allocator(&l);
  TEST_OK(ft_store_open(path, &allocator, &store, &error));
  l.left = 0;
  cr_assert_eq(walk(&(ft_trial_filter){0}).count, 500);
}

// ---- names

static int64_t run_built(int64_t candidate, const char *source) {
  int64_t id = begin(&s, candidate);
  ft_hash hash = ft_hash_bytes(source, strlen(source));
  ft_module module = {.outcome = FT_OUTCOME_OK,
                      .body_hash = ft_hash_bytes(source + 1, strlen(source + 1)),
                      .source_hash = hash,
                      .source = source,
                      .compiler = "clang-14",
                      .flags = "-O3",
                      .log = "a warning",
                      .facts = {-1, -1, -1, -1, -1, -1, -1}};
  ft_trial trial = trial_of(FT_OUTCOME_OK, 100);
  TEST_OK(ft_store_trial_end(store, id, &trial, &module, -1, -1, &error));
  return id;
}

Test(db_trial_log, a_trial_is_found_by_id_and_by_the_start_of_its_source_or_body) {
  int64_t one = run_built(sample_candidate(&s, 1), "int one;");
  run_built(sample_candidate(&s, 2), "int two;");
  char hex[FT_HASH_HEX + 1], text[FT_HASH_TEXT + 1];
  ft_hash source = ft_hash_bytes("int one;", 8), body = ft_hash_bytes("nt one;", 7);
  ft_hash_hex(&source, hex);
  ft_hash_text(&body, text);
  const char *names[] = {ft_arena_printf(arena, "%lld", (long long)one),
                         ft_arena_printf(arena, "%.8s", hex), hex,
                         ft_arena_printf(arena, "%.14s", text), text};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    ft_found_trial found;
    cr_assert_eq(ft_store_trial_named(store, names[i], arena, &found, &error), FT_OK,
                 "%s: %s", names[i], error.text);
    cr_assert_eq(found.row.trial_id, one, "%s", names[i]);
    cr_assert_str_eq(found.source, "int one;");
    cr_assert_str_eq(found.log, "a warning");
    cr_assert_str_eq(found.row.compiler, "clang-14");
    cr_assert_eq(found.encoding_bytes, s.workload.encoding_bytes);
  }
}

Test(db_trial_log, a_name_that_fits_nothing_or_is_none_says_so) {
  static const struct {
    const char *name;
    ft_status status;
  } cases[] = {{"7", FT_NOT_FOUND},
               {"0", FT_INVALID_ARGUMENT},
               {"abcdef", FT_NOT_FOUND},
               {"123456", FT_NOT_FOUND},
               {"abcde", FT_INVALID_ARGUMENT},
               {"sha256:", FT_INVALID_ARGUMENT},
               {"xyzxyzxyz", FT_INVALID_ARGUMENT},
               {"", FT_INVALID_ARGUMENT},
               {"99999999999999999999999", FT_NOT_FOUND}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ft_found_trial found;
    cr_assert_eq(ft_store_trial_named(store, cases[i].name, arena, &found, &error),
                 cases[i].status, "'%s': %s", cases[i].name, error.text);
  }
}

Test(db_trial_log, a_candidate_names_its_trial_and_an_unknown_one_adds_nothing) {
  int64_t id;
  ft_hash source;
  TEST_OK(ft_store_trial_of(store, &s.candidate, 1, &id, &source, &error));
  cr_assert_eq(id, 0);
  int64_t built = run_built(s.candidate_id, "int one;");
  TEST_OK(ft_store_trial_of(store, &s.candidate, 1, &id, &source, &error));
  cr_assert_eq(id, built);
  ft_hash expected = ft_hash_bytes("int one;", 8);
  cr_assert(ft_hash_equal(&source, &expected));
  TEST_OK(ft_store_trial_of(store, &s.candidate, 2, &id, &source, &error));
  cr_assert_eq(id, 0);
  cr_assert_eq(count_of("candidate"), 1);
}
