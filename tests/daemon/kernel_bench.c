// `bench` on a small model: what it measures, what it leaves alone.
#include "daemon/bench.h"

#include <string.h>

#include "tests/daemon/sessions.h"

static ft_bench_result bench(fixture *f, uint32_t rounds) {
  ft_bench_result result;
  ft_error error;
  ft_bench_options options = {.rounds = rounds, .limit_ns = 30000000000u};
  cr_assert_eq(
      ft_session_bench(&f->session, &f->model, &options, f->arena, &result, &error),
      FT_OK, "%s", error.text);
  return result;
}

Test(daemon_bench, without_a_stored_plan_nothing_is_found) {
  fixture f = fixture_open(chain_model, false);
  ft_bench_result result;
  ft_error error;
  cr_assert_eq(ft_session_bench(&f.session, &f.model, &(ft_bench_options){0}, f.arena,
                                &result, &error),
               FT_NOT_FOUND);
  cr_assert(strstr(error.text, "never tuned"), "%s", error.text);
  fixture_close(&f);
}

Test(daemon_bench, times_all_four_plans_and_changes_no_plan, .timeout = 120) {
  static const char plans[] =
      "select group_concat(id||role||hex(hash)||run_id||served||e2e_median_ns||body)"
      " from plan";
  fixture f = fixture_open(chain_model, false);
  (void)fixture_tune(&f);
  const char *before = fixture_sql(&f, plans);
  const char *trials = fixture_sql(&f, "select count(*) from trial");
  ft_bench_result r = bench(&f, 11);
  cr_assert_eq(r.rounds, 11);
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++)
    cr_assert(r.side[kind].is_present, "%s: %s", ft_plan_kind_text((ft_plan_kind)kind),
              r.side[kind].absence);
  cr_assert(r.side[r.served].is_served_plan);
  cr_assert_eq(r.side[r.served].ratio.median, 1);
  cr_assert_gt(r.answer.plan->times.unfused.median_ns, 0);
  cr_assert_str_eq(before, fixture_sql(&f, plans));
  cr_assert_str_eq(trials, fixture_sql(&f, "select count(*) from trial"));
  cr_assert_str_eq(
      fixture_sql(&f,
                  "select count(distinct round) from comparison where run_id ="
                  " (select max(id) from run where request like '%\"bench\"%'"
                  " and stop_reason='complete')"),
      "11");
  json_t *o = ft_bench_json(&r);
  static const char *const fields[] = {"tuned",  "unfused", "primitive", "greedy",
                                       "ratios", "plan_id", "rounds",    "served"};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    cr_assert(json_object_get(o, fields[i]), "no %s", fields[i]);
  json_decref(o);
  fixture_close(&f);
}

// A second run after bench must still find the four plans of the tuning run.
Test(daemon_bench, a_quarantined_plan_is_out_and_says_why, .timeout = 120) {
  fixture f = fixture_open(chain_model, false);
  (void)fixture_tune(&f);
  (void)bench(&f, 9);
  sqlite3 *db;
  cr_assert_eq(sqlite3_open(f.session.store_path, &db), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(db,
                            "update plan set quarantined='crash: planted' where served=0"
                            " and hash<>(select hash from plan where served=1)",
                            NULL, NULL, NULL),
               SQLITE_OK);
  sqlite3_close(db);
  ft_bench_result r = bench(&f, 9);
  uint32_t out = 0;
  for (int kind = 0; kind < FT_PLAN_KINDS; kind++)
    if (!r.side[kind].is_present) {
      out++;
      cr_assert(strstr(r.side[kind].absence, "crash: planted"), "%s",
                r.side[kind].absence);
    }
  cr_assert_gt(out, 0);
  fixture_close(&f);
}
