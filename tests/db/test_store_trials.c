#include <math.h>
#include <zlib.h>

#include "tests/support/stores.h"

static sample s;
static void set_up(void) {
  store_set_up();
  store_open();
  sample_store(&s);
}
TestSuite(db_store_trials, .init = set_up, .fini = store_tear_down);

Test(db_store_trials, a_run_keeps_its_request_its_seeds_bits_and_its_end) {
  EXPECT_SQL("-1", "SELECT seed FROM run");
  EXPECT_SQL("{\"window\":16}", "SELECT request FROM run");
  EXPECT_SQL("(null)", "SELECT ended_at FROM run");
  TEST_OK(ft_store_run_end(store, s.run_id, "complete", &error));
  EXPECT_SQL("complete", "SELECT stop_reason FROM run");
  EXPECT_SQL("1", "SELECT ended_at >= started_at FROM run");
  cr_assert_eq(ft_store_run_end(store, 99, "complete", &error), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "no run 99"), "%s", error.text);
}

Test(db_store_trials, a_trial_is_pending_for_everyone_before_it_runs) {
  int64_t id = begin(&s, s.candidate_id);
  EXPECT_SQL("pending", "SELECT outcome FROM trial");
  EXPECT_SQL("1000000", "SELECT limit_ns FROM trial");
  ft_known_trial k = known(s.candidate_id, "cold");
  cr_assert(!k.is_known && !k.is_quarantined);
  cr_assert_eq(k.trial_id, 0);
  cr_assert_gt(id, 0);
}

Test(db_store_trials, attempts_are_counted_per_run_candidate_and_mode) {
  int64_t id;
  run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 10);
  run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 11);
  TEST_OK(ft_store_trial_begin(store, s.run_id, s.candidate_id, "warm", 0, &id, &error));
  EXPECT_SQL("1,2,1",
             "SELECT group_concat(attempt) FROM (SELECT attempt FROM trial"
             " ORDER BY id)");
  EXPECT_SQL("(null)", "SELECT limit_ns FROM trial WHERE mode = 'warm'");
}

Test(db_store_trials, beginning_for_a_row_that_is_not_there_is_an_invalid_argument) {
  int64_t id;
  cr_assert_eq(ft_store_trial_begin(store, 99, s.candidate_id, "cold", 0, &id, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_store_trial_begin(store, s.run_id, 99, "cold", 0, &id, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(
      ft_store_trial_begin(store, s.run_id, s.candidate_id, "hot", 0, &id, &error),
      FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_store_trial_begin(store, s.run_id, s.candidate_id, "cold", UINT64_MAX,
                                    &id, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(count_of("trial"), 0);
}

Test(db_store_trials, every_sample_and_flag_comes_back) {
  int64_t id = run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 100);
  ft_known_trial k = known(s.candidate_id, "cold");
  cr_assert(k.is_known && !k.is_quarantined);
  cr_assert_eq(k.trial_id, id);
  cr_assert_eq(k.trial.outcome, FT_OUTCOME_OK);
  cr_assert_eq(k.trial.time.median_ns, 100);
  cr_assert_eq(k.trial.time.high_ns, 105);
  cr_assert_eq(k.trial.time.samples, 2);
  cr_assert_eq(k.trial.sample_count, 3);
  ft_trial want = trial_of(FT_OUTCOME_OK, 100);
  cr_assert_arr_eq(k.trial.sample_ns, want.sample_ns, 3 * sizeof *want.sample_ns);
  cr_assert_arr_eq(k.trial.sample_flags, want.sample_flags, 3);
  cr_assert_eq(k.trial.max_error_ratio, 0.25);
  cr_assert_str_eq(k.trial.env, "{\"load\":0.5}");
  cr_assert_eq(k.trial.limit_ns, 1000000);
  cr_assert_eq(k.trial.started_at, 11);
  cr_assert_eq(k.trial.ended_at, 22);
  EXPECT_SQL("FFFFFFFFFFFFFF7F01000000000000000807060504030201",
             "SELECT hex(sample_ns) FROM trial");
  EXPECT_SQL("010004", "SELECT hex(sample_flags) FROM trial");
}

Test(db_store_trials, predictions_are_kept_and_none_is_null) {
  ft_trial trial = trial_of(FT_OUTCOME_OK, 100);
  int64_t id = begin(&s, s.candidate_id);
  TEST_OK(ft_store_trial_end(store, id, &trial, NULL, 0.5, -1, &error));
  EXPECT_SQL("0.5", "SELECT predicted_ns FROM trial");
  EXPECT_SQL("(null)", "SELECT roofline_ns FROM trial");
  trial.max_error_ratio = -1;
  end_as(begin(&s, s.candidate_id), &trial);
  EXPECT_SQL("(null)", "SELECT max_error_ratio FROM trial WHERE id = 2");
}

Test(db_store_trials, what_is_no_time_does_not_enter) {
  ft_trial bad[] = {trial_of(FT_OUTCOME_OK, 0),           trial_of(FT_OUTCOME_OK, 5),
                    trial_of(FT_OUTCOME_OK, 5),           trial_of(FT_OUTCOME_OK, 5),
                    trial_of(FT_OUTCOME_OK, 5),           trial_of(FT_OUTCOME_PENDING, 5),
                    trial_of(FT_OUTCOME_COUNT, 5),        trial_of(FT_OUTCOME_BEATEN, 5),
                    trial_of(FT_OUTCOME_WRONG_RESULT, 5), trial_of(FT_OUTCOME_OK, 5)};
  bad[1].max_error_ratio = NAN;
  bad[2].max_error_ratio = INFINITY;
  bad[3].time.low_ns = 6;
  bad[4].time.high_ns = UINT64_MAX;
  bad[7].time.high_ns = 4;
  bad[8].max_error_ratio = NAN;
  bad[9].time.samples = 4;
  int64_t id = begin(&s, s.candidate_id);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    cr_assert_eq(ft_store_trial_end(store, id, &bad[i], NULL, -1, -1, &error),
                 FT_INVALID_ARGUMENT, "case %zu", i);
    cr_assert(strstr(error.text, "trial 1: "), "%s", error.text);
  }
  static const double none[] = {NAN, INFINITY, -INFINITY};
  ft_trial good = trial_of(FT_OUTCOME_OK, 5);
  for (int i = 0; i < 3; i++) {
    cr_assert_eq(ft_store_trial_end(store, id, &good, NULL, none[i], 1, &error),
                 FT_INVALID_ARGUMENT);
    cr_assert_eq(ft_store_trial_end(store, id, &good, NULL, 1, none[i], &error),
                 FT_INVALID_ARGUMENT);
  }
  EXPECT_SQL("pending", "SELECT outcome FROM trial");
  end_as(id, &good);
}

Test(db_store_trials, a_result_may_be_infinitely_wrong) {
  int64_t id = begin(&s, s.candidate_id);
  ft_trial trial = trial_of(FT_OUTCOME_WRONG_RESULT, 0);
  trial.max_error_ratio = INFINITY;
  trial.worst = "output 0 at 3: got nan, expected 1";
  end_as(id, &trial);
  ft_known_trial k = known(s.candidate_id, "cold");
  cr_assert(isinf(k.trial.max_error_ratio));
  cr_assert_str_eq(k.trial.worst, trial.worst);
  cr_assert_str_eq(k.trial.error, "wrong_result: output 0 at 3: got nan, expected 1");
}

Test(db_store_trials, a_trial_ends_once) {
  int64_t id = run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 10);
  ft_trial trial = trial_of(FT_OUTCOME_CRASH, 0);
  cr_assert_eq(ft_store_trial_end(store, id, &trial, NULL, -1, -1, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "trial 1 has ended as ok"), "%s", error.text);
  cr_assert_eq(ft_store_trial_end(store, 99, &trial, NULL, -1, -1, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "no trial 99"), "%s", error.text);
  cr_assert_eq(count_of("quarantine"), 0);
}

Test(db_store_trials, each_outcome_is_known_or_retried_as_the_design_says) {
  static const struct {
    ft_outcome outcome;
    bool is_known, is_quarantined;
  } table[] = {{FT_OUTCOME_OK, true, false},
               {FT_OUTCOME_WRONG_RESULT, true, true},
               {FT_OUTCOME_COMPILE_ERROR, true, false},
               {FT_OUTCOME_LAUNCH_ERROR, true, true},
               {FT_OUTCOME_CRASH, true, true},
               {FT_OUTCOME_TIMEOUT, false, false},
               {FT_OUTCOME_OUT_OF_MEMORY, true, false},
               {FT_OUTCOME_RESOURCE_LIMIT, true, false},
               {FT_OUTCOME_BEATEN, true, false},
               {FT_OUTCOME_UNSTABLE, false, false},
               {FT_OUTCOME_INTERRUPTED, false, false}};
  cr_assert_eq(sizeof table / sizeof *table, FT_OUTCOME_COUNT - 1);
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    int64_t candidate = sample_candidate(&s, (int64_t)i);
    int64_t id = run_trial(&s, candidate, table[i].outcome, 10);
    ft_known_trial k = known(candidate, "cold");
    const char *name = ft_outcome_text(table[i].outcome);
    cr_assert_eq(k.is_known, table[i].is_known, "%s", name);
    cr_assert_eq(k.is_quarantined, table[i].is_quarantined, "%s", name);
    cr_assert_eq(k.trial_id, id);
    cr_assert_eq(k.trial.outcome, table[i].outcome);
    // What the candidate did in one mode it would do in another.
    bool in_all = table[i].is_known && ft_outcome_blames(table[i].outcome);
    cr_assert_eq(known(candidate, "warm").is_known, in_all, "%s", name);
  }
}

// The fastest of many looks is a lucky one: the longest look is believed.
Test(db_store_trials, the_ok_trial_of_the_longest_look_is_known_of_equals_the_latest) {
  run_trial(&s, s.candidate_id, FT_OUTCOME_UNSTABLE, 0);
  run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 10);
  int64_t latest = run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 20);
  cr_assert_eq(known(s.candidate_id, "cold").trial_id, latest);
  ft_trial shorter = trial_of(FT_OUTCOME_OK, 5);
  shorter.limit_ns = 1;
  end_as(begin(&s, s.candidate_id), &shorter);
  run_trial(&s, s.candidate_id, FT_OUTCOME_INTERRUPTED, 0);
  cr_assert_eq(known(s.candidate_id, "cold").trial_id, latest);
}

Test(db_store_trials, without_an_ok_trial_the_last_is_known) {
  int64_t other = sample_candidate(&s, 16);
  run_trial(&s, other, FT_OUTCOME_COMPILE_ERROR, 0);
  run_trial(&s, other, FT_OUTCOME_INTERRUPTED, 0);
  ft_known_trial k = known(other, "cold");
  cr_assert(k.is_known);
  cr_assert_eq(k.trial.outcome, FT_OUTCOME_COMPILE_ERROR);
}

Test(db_store_trials, a_candidate_that_crashed_is_never_known_as_ok) {
  run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 10);
  ft_trial trial = trial_of(FT_OUTCOME_CRASH, 0);
  trial.error = "signal 11";
  end_as(begin(&s, s.candidate_id), &trial);
  ft_known_trial k = known(s.candidate_id, "cold");
  cr_assert(k.is_quarantined);
  cr_assert_eq(k.trial.outcome, FT_OUTCOME_CRASH);
  cr_assert_str_eq(k.trial.error, "crash: signal 11");
  EXPECT_SQL("2", "SELECT strikes FROM quarantine");
}

static void begin_run(void) {
  ft_run_record run = {s.binding_id, s.target_id, "{}", 1, "v", "h"};
  TEST_OK(ft_store_run_begin(store, &run, &s.run_id, &error));
}

Test(db_store_trials, a_timeout_quarantines_only_when_another_run_sees_it_too) {
  for (int i = 0; i < 3; i++) run_trial(&s, s.candidate_id, FT_OUTCOME_TIMEOUT, 0);
  ft_known_trial k = known(s.candidate_id, "cold");
  cr_assert(!k.is_known && !k.is_quarantined);
  cr_assert_eq(k.timeout_run, s.run_id);
  EXPECT_SQL("1", "SELECT strikes FROM quarantine");
  begin_run();
  run_trial(&s, s.candidate_id, FT_OUTCOME_TIMEOUT, 0);
  k = known(s.candidate_id, "cold");
  cr_assert(k.is_known && k.is_quarantined);
  cr_assert_str_eq(k.trial.error, "timeout, twice");
}

Test(db_store_trials, a_clean_end_takes_the_strike_of_a_timeout_back) {
  static const ft_outcome ends[] = {FT_OUTCOME_OK, FT_OUTCOME_BEATEN,
                                    FT_OUTCOME_UNSTABLE};
  for (size_t i = 0; i < 3; i++) {
    run_trial(&s, s.candidate_id, FT_OUTCOME_TIMEOUT, 0);
    cr_assert_eq(count_of("quarantine"), 1);
    begin_run();
    run_trial(&s, s.candidate_id, ends[i], 10);
    cr_assert_eq(count_of("quarantine"), 0);
  }
}

Test(db_store_trials, interruptions_are_no_strikes_however_many) {
  for (int i = 0; i < 5; i++) {
    begin_run();
    run_trial(&s, s.candidate_id, FT_OUTCOME_INTERRUPTED, 0);
  }
  cr_assert_eq(count_of("quarantine"), 0);
  run_trial(&s, s.candidate_id, FT_OUTCOME_TIMEOUT, 0);
  for (int i = 0; i < 5; i++) {
    begin_run();
    run_trial(&s, s.candidate_id, FT_OUTCOME_INTERRUPTED, 0);
  }
  EXPECT_SQL("1", "SELECT strikes FROM quarantine");
  cr_assert(!known(s.candidate_id, "cold").is_quarantined);
}

Test(db_store_trials, strikes_end_with_the_compiler_and_with_the_codegen_version) {
  for (int i = 0; i < 2; i++) {
    begin_run();
    run_trial(&s, s.candidate_id, FT_OUTCOME_TIMEOUT, 0);
  }
  cr_assert(known(s.candidate_id, "cold").is_quarantined);
  int64_t newer, other, target_id;
  TEST_OK(ft_store_candidate(store, &s.candidate, s.target_id, 2, &newer, &error));
  cr_assert(!known(newer, "cold").is_known && !known(newer, "cold").timeout_run);
  ft_target upgraded = s.target;
  upgraded.compiler[0].version = "99.0.1";
  TEST_OK(ft_target_seal(&upgraded, &error));
  TEST_OK(ft_store_target(store, &upgraded, &target_id, &error));
  cr_assert_neq(target_id, s.target_id);
  TEST_OK(ft_store_candidate(store, &s.candidate, target_id, 1, &other, &error));
  cr_assert(!known(other, "cold").is_known && !known(other, "cold").timeout_run);
  run_trial(&s, other, FT_OUTCOME_OK, 10);
  cr_assert(known(other, "cold").is_known);
}

Test(db_store_trials, a_quarantine_with_an_end_lets_go_then) {
  run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 10);
  run_trial(&s, s.candidate_id, FT_OUTCOME_CRASH, 0);
  run_sql("UPDATE quarantine SET until_at = 9223372036854775807");
  cr_assert(known(s.candidate_id, "cold").is_quarantined);
  run_sql("UPDATE quarantine SET until_at = 1");
  cr_assert(!known(s.candidate_id, "cold").is_quarantined);
  cr_assert_eq(known(s.candidate_id, "cold").trial.outcome, FT_OUTCOME_OK);
}

Test(db_store_trials, best_follows_the_fastest_ok_trial_of_the_workload) {
  int64_t other = sample_candidate(&s, 16);
  run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 20);
  EXPECT_SQL("1", "SELECT trial_id FROM best");
  run_trial(&s, other, FT_OUTCOME_OK, 30);
  EXPECT_SQL("1", "SELECT trial_id FROM best");
  run_trial(&s, other, FT_OUTCOME_OK, 20);  // ties keep the older
  EXPECT_SQL("1", "SELECT trial_id FROM best");
  run_trial(&s, other, FT_OUTCOME_OK, 10);
  EXPECT_SQL("4", "SELECT trial_id FROM best");
  run_trial(&s, other, FT_OUTCOME_BEATEN, 5);
  EXPECT_SQL("4", "SELECT trial_id FROM best");
  cr_assert_eq(count_of("best"), 1);
  run_trial(&s, other, FT_OUTCOME_WRONG_RESULT, 0);
  EXPECT_SQL("1", "SELECT trial_id FROM best");
  run_trial(&s, other, FT_OUTCOME_OK, 1);  // a quarantined candidate does not come back
  EXPECT_SQL("1", "SELECT trial_id FROM best");
  run_trial(&s, s.candidate_id, FT_OUTCOME_CRASH, 0);
  cr_assert_eq(count_of("best"), 0);
}

Test(db_store_trials, best_agrees_with_a_scan_of_all_trials) {
  static const ft_outcome outcomes[] = {
      FT_OUTCOME_OK, FT_OUTCOME_OK,     FT_OUTCOME_OK,    FT_OUTCOME_OK,
      FT_OUTCOME_OK, FT_OUTCOME_BEATEN, FT_OUTCOME_CRASH, FT_OUTCOME_COMPILE_ERROR};
  ft_rng rng = ft_rng_seed(3);
  int64_t candidate[12];
  for (int i = 0; i < 12; i++) candidate[i] = sample_candidate(&s, i);
  for (int i = 0; i < 120; i++) {
    int64_t id;
    const char *mode = ft_rng_below(&rng, 2) ? "cold" : "warm";
    ft_trial trial =
        trial_of(outcomes[ft_rng_below(&rng, 8)], 1000 + ft_rng_below(&rng, 1000));
    TEST_OK(ft_store_trial_begin(store, s.run_id, candidate[ft_rng_below(&rng, 12)], mode,
                                 0, &id, &error));
    end_as(id, &trial);
    EXPECT_SQL(
        "1",
        "SELECT (SELECT ifnull(group_concat(x), '') FROM (SELECT b.mode || t.median_ns"
        "  AS x FROM best b JOIN trial t ON t.id = b.trial_id ORDER BY b.mode))"
        " = (SELECT ifnull(group_concat(x), '') FROM (SELECT mode || min(median_ns)"
        "  AS x FROM trial WHERE outcome = 'ok' AND candidate_id NOT IN"
        "  (SELECT candidate_id FROM quarantine) GROUP BY mode ORDER BY mode))");
  }
}

Test(db_store_trials, a_run_that_ends_interrupts_its_pending_trials_and_blames_nobody) {
  begin(&s, s.candidate_id);
  TEST_OK(ft_store_run_end(store, s.run_id, "interrupted", &error));
  EXPECT_SQL("interrupted", "SELECT outcome FROM trial");
  cr_assert_eq(count_of("quarantine"), 0);
}

// ---- builds and artifacts

static ft_module module_of(ft_outcome outcome, const char *source) {
  return (ft_module){.outcome = outcome,
                     .body_hash = ft_hash_bytes(source, strlen(source)),
                     .source_hash = ft_hash_bytes(source, strlen(source)),
                     .source = source,
                     .entry = "k",
                     .path = "",
                     .compiler = "clang-14",
                     .flags = "-O3",
                     .log = outcome == FT_OUTCOME_OK ? "" : "line 1: error",
                     .build_ns = 7,
                     .grid = 1,
                     .threads = 1,
                     .facts = {-1, -1, 0, 48, -1, -1, -1}};
}

Test(db_store_trials, a_build_is_kept_once_with_its_source_and_log) {
  ft_module module = module_of(FT_OUTCOME_COMPILE_ERROR, "int k(void) { return x; }");
  ft_trial trial = trial_of(FT_OUTCOME_COMPILE_ERROR, 0);
  for (int i = 0; i < 2; i++)
    TEST_OK(ft_store_trial_end(store, begin(&s, s.candidate_id), &trial, &module, -1, -1,
                               &error));
  cr_assert_eq(count_of("build"), 1);
  cr_assert_eq(count_of("artifact"), 2);
  EXPECT_SQL("1,1", "SELECT group_concat(build_id) FROM trial");
  EXPECT_SQL("compile_error", "SELECT outcome FROM build");
  EXPECT_SQL("(null)", "SELECT registers FROM build");
  EXPECT_SQL("0", "SELECT spill_load_bytes FROM build");
  EXPECT_SQL("48", "SELECT stack_bytes FROM build");
  EXPECT_SQL("1", "SELECT body_hash = (SELECT body_hash FROM candidate) FROM build");
  module.flags = "-O2";
  TEST_OK(ft_store_trial_end(store, begin(&s, s.candidate_id), &trial, &module, -1, -1,
                             &error));
  cr_assert_eq(count_of("build"), 2);
  cr_assert_eq(count_of("artifact"), 2);
}

Test(db_store_trials, a_module_that_was_never_printed_leaves_no_build) {
  ft_module module = {.outcome = FT_OUTCOME_COMPILE_ERROR};
  ft_trial trial = trial_of(FT_OUTCOME_COMPILE_ERROR, 0);
  TEST_OK(ft_store_trial_end(store, begin(&s, s.candidate_id), &trial, &module, -1, -1,
                             &error));
  cr_assert_eq(count_of("build"), 0);
  EXPECT_SQL("(null)", "SELECT build_id FROM trial");
}

Test(db_store_trials, artifacts_come_back_byte_for_byte_and_are_kept_once) {
  ft_rng rng = ft_rng_seed(1);
  for (size_t size = 0; size < 70000; size = size * 3 + 1) {
    uint8_t *data = ft_arena_alloc(arena, size);
    for (size_t i = 0; i < size; i++) data[i] = (uint8_t)ft_rng_below(&rng, 5);
    ft_hash hash, again;
    const void *back;
    size_t back_size;
    TEST_OK(ft_store_artifact(store, "so", data, size, &hash, &error));
    TEST_OK(ft_store_artifact(store, "so", data, size, &again, &error));
    cr_assert(ft_hash_equal(&hash, &again));
    TEST_OK(ft_store_artifact_read(store, &hash, arena, &back, &back_size, &error));
    cr_assert_eq(back_size, size);
    cr_assert(size == 0 || memcmp(back, data, size) == 0);
  }
  cr_assert_eq(count_of("artifact"), 11);
  EXPECT_SQL("1", "SELECT length(zbytes) < size FROM artifact ORDER BY size DESC");
}

Test(db_store_trials, a_wrong_kind_or_an_unknown_hash_is_said) {
  ft_hash hash = {{1}};
  const void *data;
  size_t size;
  cr_assert_eq(ft_store_artifact(store, "exe", "x", 1, &hash, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_store_artifact_read(store, &hash, arena, &data, &size, &error),
               FT_NOT_FOUND);
  cr_assert(strstr(error.text, "no artifact sha256:"), "%s", error.text);
}

Test(db_store_trials, an_artifact_that_lies_about_its_size_or_bytes_is_corrupt) {
  static const char *const lies[] = {"UPDATE artifact SET size = 1000000000000",
                                     "UPDATE artifact SET size = -1",
                                     "UPDATE artifact SET size = 3",
                                     "UPDATE artifact SET size = 5",
                                     "UPDATE artifact SET size = 4, zbytes = x'00'",
                                     "UPDATE artifact SET zbytes = zeroblob(0)"};
  ft_hash hash;
  const void *data;
  size_t size;
  TEST_OK(ft_store_artifact(store, "log", "text", 4, &hash, &error));
  TEST_OK(ft_store_artifact_read(store, &hash, arena, &data, &size, &error));
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    run_sql(lies[i]);
    cr_assert_eq(ft_store_artifact_read(store, &hash, arena, &data, &size, &error),
                 FT_CORRUPT, "%s", lies[i]);
  }
  // another's bytes under this hash
  unsigned char packed[64];
  uLongf length = sizeof packed;
  cr_assert_eq(compress(packed, &length, (const Bytef *)"tExt", 4), Z_OK);
  char sql[256] = "UPDATE artifact SET size = 4, zbytes = x'";
  for (uLongf i = 0; i < length; i++) sprintf(sql + strlen(sql), "%02x", packed[i]);
  strcat(sql, "'");
  run_sql(sql);
  cr_assert_eq(ft_store_artifact_read(store, &hash, arena, &data, &size, &error),
               FT_CORRUPT);
  run_sql("UPDATE artifact SET size = 9");
  cr_assert_eq(ft_store_artifact(store, "log", "text", 4, &hash, &error), FT_INTERNAL);
}

Test(db_store_trials, samples_that_were_cut_are_corrupt) {
  ft_known_trial out;
  run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 10);
  run_sql("UPDATE trial SET sample_ns = x'0102'");
  cr_assert_eq(ft_store_find_trial(store, s.candidate_id, "cold", arena, &out, &error),
               FT_CORRUPT);
  cr_assert(strstr(error.text, "trial 1 has 2 bytes of samples and 3 flags"), "%s",
            error.text);
}
