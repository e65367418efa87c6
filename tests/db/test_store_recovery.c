#include <signal.h>

#include "db/owner.h"
#include "tests/support/stores.h"

static sample s;
static void set_up(void) {
  store_set_up();
  store_open();
  sample_store(&s);
  ft_store_close(store);
  store = NULL;
}
TestSuite(db_store_recovery, .init = set_up, .fini = store_tear_down);

// Opens the store, begins a trial of the sample in a run of its own, and dies.
static void die_running(void *ctx) {
  int64_t id;
  store_open();
  ft_run_record run = {s.binding_id, s.target_id, "{}", 1, "v", "h"};
  TEST_OK(ft_store_run_begin(store, &run, &s.run_id, &error));
  TEST_OK(ft_store_trial_begin(store, s.run_id, s.candidate_id, "cold", 0, &id, &error));
  if (ctx) _exit(7);
  raise(SIGKILL);
}

Test(db_store_recovery, a_killed_tuner_leaves_its_trial_interrupted_and_nobody_blamed) {
  cr_assert_eq(in_child(die_running, NULL), 128 + SIGKILL);
  EXPECT_SQL("pending", "SELECT outcome FROM trial");
  store_open();
  EXPECT_SQL("interrupted", "SELECT outcome FROM trial");
  EXPECT_SQL("the tuner died while it ran", "SELECT error FROM trial");
  cr_assert_eq(count_of("quarantine"), 0);
  ft_known_trial k = known(s.candidate_id, "cold");
  cr_assert(!k.is_known && !k.is_quarantined);
  cr_assert_eq(k.trial.outcome, FT_OUTCOME_INTERRUPTED);
}

Test(db_store_recovery, an_exit_in_the_middle_is_a_death_too) {
  cr_assert_eq(in_child(die_running, &s), 7);
  store_open();
  EXPECT_SQL("interrupted", "SELECT outcome FROM trial");
}

Test(db_store_recovery, ten_deaths_in_a_row_blame_nobody_and_best_stays) {
  store_open();
  run_trial(&s, s.candidate_id, FT_OUTCOME_OK, 10);
  for (int i = 0; i < 10; i++) {
    ft_store_close(store);
    in_child(die_running, NULL);
    store_open();
    cr_assert_eq(count_of("quarantine"), 0);
  }
  EXPECT_SQL("10", "SELECT count(*) FROM trial WHERE outcome = 'interrupted'");
  cr_assert_eq(count_of("best"), 1);
  ft_known_trial k = known(s.candidate_id, "cold");
  cr_assert(k.is_known && !k.is_quarantined);
  cr_assert_eq(k.trial.outcome, FT_OUTCOME_OK);
}

Test(db_store_recovery, a_death_and_a_stop_leave_the_strike_of_a_timeout_as_it_was) {
  store_open();
  run_trial(&s, s.candidate_id, FT_OUTCOME_TIMEOUT, 0);
  ft_store_close(store);
  in_child(die_running, NULL);
  store_open();
  run_trial(&s, s.candidate_id, FT_OUTCOME_INTERRUPTED, 0);
  EXPECT_SQL("1", "SELECT strikes FROM quarantine");
}

Test(db_store_recovery, a_live_owners_trial_is_left_alone_until_it_dies) {
  int ready[2], status;
  char byte;
  cr_assert_eq(pipe(ready), 0);
  pid_t pid = fork();
  cr_assert_geq(pid, 0);
  if (pid == 0) {
    store_open();
    ft_run_record run = {s.binding_id, s.target_id, "{}", 1, "v", "h"};
    TEST_OK(ft_store_run_begin(store, &run, &s.run_id, &error));
    begin(&s, s.candidate_id);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  cr_assert_eq(read(ready[0], &byte, 1), 1);
  store_open();
  EXPECT_SQL("pending", "SELECT outcome FROM trial");
  cr_assert_eq(count_of("quarantine"), 0);
  kill(pid, SIGKILL);
  // Not waited for: a zombie is dead.
  siginfo_t info;
  cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
  store_reopen();
  EXPECT_SQL("interrupted", "SELECT outcome FROM trial");
  cr_assert_eq(waitpid(pid, &status, 0), pid);
}

Test(db_store_recovery, the_dead_do_not_take_the_living_with_them) {
  store_open();
  int64_t mine = begin(&s, s.candidate_id);
  in_child(die_running, NULL);
  store_reopen();
  EXPECT_SQL("interrupted", "SELECT outcome FROM trial WHERE id <> 1");
  EXPECT_SQL("pending", "SELECT outcome FROM trial WHERE id = 1");
  ft_trial trial = trial_of(FT_OUTCOME_OK, 10);
  end_as(mine, &trial);
}

Test(db_store_recovery, every_pending_trial_of_the_dead_is_found) {
  store_open();
  for (int64_t i = 0; i < 40; i++) begin(&s, sample_candidate(&s, i));
  run_sql("UPDATE run SET owner = '00000000-0000-0000-0000-000000000000:1:1:1'");
  store_reopen();
  EXPECT_SQL("40", "SELECT count(*) FROM trial WHERE outcome = 'interrupted'");
  cr_assert_eq(count_of("quarantine"), 0);
}

Test(db_store_recovery, a_damaged_file_after_a_death_is_corrupt_before_it_is_written) {
  in_child(die_running, NULL);
  // What the process wrote is in the -wal; put it into the file, then damage an index.
  run_sql("PRAGMA wal_checkpoint(TRUNCATE)");
  int page =
      atoi(sql_text("SELECT rootpage FROM sqlite_master WHERE name = 'model_active'"));
  FILE *file = fopen(path, "r+b");
  cr_assert(file && page > 1);
  cr_assert_eq(fseek(file, (page - 1) * 4096, SEEK_SET), 0);
  cr_assert_eq(fwrite("damage", 1, 6, file), 6);
  fclose(file);
  cr_assert_eq(ft_store_open(path, ft_allocator_system(), &store, &error), FT_CORRUPT);
  EXPECT_SQL("pending", "SELECT outcome FROM trial");
}

// ---- owners

Test(db_owner, this_process_is_alive) {
  char self[FT_OWNER_TEXT];
  TEST_OK(ft_owner_self(self, &error));
  cr_assert_eq(ft_owner_look(self, self), FT_OWNER_ALIVE);
}

Test(db_owner, what_is_not_this_boot_pid_and_start_is_dead_or_unknown) {
  char self[FT_OWNER_TEXT], other[FT_OWNER_TEXT + 32], boot[40];
  unsigned long long space, start;
  int pid;
  TEST_OK(ft_owner_self(self, &error));
  cr_assert_eq(sscanf(self, "%39[^:]:%llu:%d:%llu", boot, &space, &pid, &start), 4);
  snprintf(other, sizeof other, "%s:%llu:%d:%llu", boot, space, pid, start + 1);
  cr_assert_eq(ft_owner_look(other, self), FT_OWNER_DEAD,
               "the process id was used again");
  snprintf(other, sizeof other, "%s:%llu:%d:%llu", boot, space, 0x7ffffff0, start);
  cr_assert_eq(ft_owner_look(other, self), FT_OWNER_DEAD);
  snprintf(other, sizeof other, "x%s:%llu:%d:%llu", boot + 1, space + 1, pid, start);
  cr_assert_eq(ft_owner_look(other, self), FT_OWNER_DEAD, "another boot");
  snprintf(other, sizeof other, "%s:%llu:%d:%llu", boot, space + 1, 0x7ffffff0, start);
  cr_assert_eq(ft_owner_look(other, self), FT_OWNER_UNKNOWN, "another container");
  cr_assert_eq(ft_owner_look("", self), FT_OWNER_UNKNOWN);
  cr_assert_eq(ft_owner_look("a:b:c:d", self), FT_OWNER_UNKNOWN);
  snprintf(other, sizeof other, "%s ", self);
  cr_assert_eq(ft_owner_look(other, self), FT_OWNER_UNKNOWN);
}
