#include <math.h>

#include "tests/support/stores.h"

TestSuite(db_store_ceilings, .init = store_set_up, .fini = store_tear_down);

static ft_ceiling row_of(ft_ceiling_kind kind, uint64_t bytes, double best) {
  return (ft_ceiling){.kind = kind,
                      .bytes = bytes,
                      .best = best,
                      .median = best / 2,
                      .samples = 9,
                      .measured_at = 77};
}

static void save(int64_t target, ft_ceiling row, bool replaces) {
  TEST_OK(ft_store_ceilings_save(store, target, &row, 1, replaces, &error));
}

static uint32_t load(int64_t target, ft_ceiling out[FT_CEILINGS_MOST]) {
  uint32_t count;
  TEST_OK(ft_store_ceilings(store, target, out, &count, &error));
  return count;
}

Test(db_store_ceilings, come_back_as_they_went_ordered_by_kind_and_size) {
  sample s;
  ft_ceiling out[FT_CEILINGS_MOST];
  store_open();
  sample_store(&s);
  cr_assert_eq(load(s.target_id, out), 0);
  save(s.target_id, row_of(FT_CEILING_WRITE, 64, 3e9), false);
  save(s.target_id, row_of(FT_CEILING_READ, 4096, 5.5e9), false);
  save(s.target_id, row_of(FT_CEILING_READ, 64, 4e9), false);
  save(s.target_id, row_of(FT_CEILING_LAUNCH, 0, 20), false);
  store_reopen();
  cr_assert_eq(load(s.target_id, out), 4);
  cr_expect(out[0].kind == FT_CEILING_READ && out[0].bytes == 64);
  cr_expect(out[1].kind == FT_CEILING_READ && out[1].bytes == 4096);
  cr_expect(out[1].best == 5.5e9 && out[1].median == 2.75e9 && out[1].samples == 9 &&
            out[1].measured_at == 77 && !out[1].is_raised);
  cr_expect_eq(out[2].kind, FT_CEILING_WRITE);
  cr_expect_eq(out[3].kind, FT_CEILING_LAUNCH);
  cr_expect_eq(load(s.target_id + 1, out), 0, "another target has its own");
  EXPECT_SQL("1", "SELECT calibrated_at > 0 FROM target");
}

Test(db_store_ceilings, keep_the_best_ever_until_they_are_replaced) {
  sample s;
  ft_ceiling out[FT_CEILINGS_MOST], raised = row_of(FT_CEILING_READ, 64, 9e9);
  raised.is_raised = true;
  store_open();
  sample_store(&s);
  save(s.target_id, row_of(FT_CEILING_READ, 64, 5e9), false);
  save(s.target_id, row_of(FT_CEILING_READ, 64, 4e9), false);
  save(s.target_id, row_of(FT_CEILING_LAUNCH, 0, 20), false);
  save(s.target_id, row_of(FT_CEILING_LAUNCH, 0, 30), false);
  cr_assert_eq(load(s.target_id, out), 2);
  cr_expect(out[0].best == 5e9 && out[0].median == 2e9, "best ever, last median");
  cr_expect_eq(out[1].best, 20, "less time is better");
  save(s.target_id, raised, false);
  save(s.target_id, row_of(FT_CEILING_READ, 64, 6e9), false);
  cr_assert_eq(load(s.target_id, out), 2);
  cr_expect(out[0].best == 9e9 && out[0].is_raised, "what a trial showed stays");
  save(s.target_id, row_of(FT_CEILING_READ, 64, 6e9), true);
  cr_assert_eq(load(s.target_id, out), 1);
  cr_expect(out[0].best == 6e9 && !out[0].is_raised);
}

Test(db_store_ceilings, values_that_make_no_sense_are_refused_or_passed_over) {
  sample s;
  ft_ceiling out[FT_CEILINGS_MOST];
  static const double bad[] = {0, -1, NAN, INFINITY};
  store_open();
  sample_store(&s);
  for (int i = 0; i < 4; i++) {
    ft_ceiling row = row_of(FT_CEILING_READ, 64, bad[i]);
    cr_assert_eq(ft_store_ceilings_save(store, s.target_id, &row, 1, false, &error),
                 FT_INVALID_ARGUMENT);
  }
  cr_assert_eq(count_of("ceiling"), 0);
  run_sql("INSERT INTO ceiling VALUES(1,'teleport',0,1.0,'ns',1.0,1,0,1)");
  run_sql("INSERT INTO ceiling VALUES(1,'read',0,9e999,'bytes/s',1.0,1,0,1)");
  cr_assert_eq(load(s.target_id, out), 0);
}

Test(db_store_ceilings, an_alarm_finds_the_trial_that_raised_it) {
  sample s;
  store_open();
  sample_store(&s);
  run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 900);
  int64_t trial = run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 500);
  ft_alarm_record alarm = {.run_id = s.run_id,
                           .candidate_id = s.candidate_id,
                           .median_ns = 500,
                           .bound_ns = 800.5,
                           .kind = FT_CEILING_READ,
                           .bytes = 64,
                           .before = 1e9,
                           .after = 2e9,
                           .is_remeasured = true};
  TEST_OK(ft_store_alarm_save(store, &alarm, &error));
  EXPECT_SQL(
      "read 64 500 800.5 1 0",
      "SELECT kind || ' ' || bytes || ' ' || median_ns || ' ' || bound_ns || ' ' ||"
      " remeasured || ' ' || explained FROM alarm");
  cr_assert_eq(atoll(sql_text("SELECT trial_id FROM alarm")), trial);
  alarm.run_id = 0;
  alarm.median_ns = 1;
  TEST_OK(ft_store_alarm_save(store, &alarm, &error));
  EXPECT_SQL("1", "SELECT count(*) FROM alarm WHERE run_id IS NULL AND trial_id IS NULL");
  alarm.candidate_id = 4711;
  cr_assert_neq(ft_store_alarm_save(store, &alarm, &error), FT_OK);
  cr_assert_eq(count_of("alarm"), 2);
}

// A store as version 1 made it: what version 2 added is taken out again.
static void make_version_1(void) {
  store_open();
  ft_store_close(store);
  store = NULL;
  run_sql("DROP TABLE alarm");
  run_sql("DROP TABLE ceiling");
  run_sql("PRAGMA user_version = 1");
}

static const char *shape_of_all(void) {
  return sql_text(
      "SELECT group_concat(line, ' ') FROM (SELECT t.name || ':' || c.name || ':' ||"
      " c.type || ':' || c.\"notnull\" || ':' || c.pk AS line FROM sqlite_master t,"
      " pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY t.name, c.cid)");
}

Test(db_store_ceilings, a_store_of_version_1_becomes_what_a_new_one_is) {
  store_open();
  const char *fresh = shape_of_all();
  int64_t indexes = atoll(sql_text("SELECT count(*) FROM sqlite_master"));
  ft_store_close(store);
  store = NULL;
  make_version_1();
  store_open();
  EXPECT_SQL("2", "PRAGMA user_version");
  cr_assert_str_eq(shape_of_all(), fresh);
  cr_assert_eq(atoll(sql_text("SELECT count(*) FROM sqlite_master")), indexes);
  sample s;
  sample_store(&s);
  save(s.target_id, row_of(FT_CEILING_READ, 64, 5e9), false);
  TEST_OK(ft_store_check(store, &error));
}

Test(db_store_ceilings, a_migration_that_fails_leaves_version_1) {
  make_version_1();
  run_sql("CREATE TABLE alarm(x INTEGER) STRICT");  // in the way
  cr_assert_neq(ft_store_open(path, ft_allocator_system(), &store, &error), FT_OK);
  EXPECT_SQL("1", "PRAGMA user_version");
  EXPECT_SQL("0", "SELECT count(*) FROM sqlite_master WHERE name = 'ceiling'");
}
