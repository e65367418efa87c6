#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "db/store_internal.h"
#include "tests/support/stores.h"

TestSuite(db_store_open, .init = store_set_up, .fini = store_tear_down);

static void expect_open(ft_status want, const char *text) {
  ft_store *out = (ft_store *)&out;
  cr_assert_eq(ft_store_open(path, ft_allocator_system(), &out, &error), want, "%s",
               error.text);
  cr_assert_null(out);
  cr_assert(strstr(error.text, text), "'%s' does not say '%s'", error.text, text);
  cr_assert(strstr(error.text, path), "'%s' does not name the file", error.text);
}

static void write_file(const char *name, const void *data, size_t size) {
  FILE *file = fopen(name, "wb");
  cr_assert(file);
  cr_assert_eq(fwrite(data, 1, size, file), size);
  fclose(file);
}

static mode_t mode_of(const char *name) {
  struct stat st;
  cr_assert_eq(stat(name, &st), 0, "%s", name);
  return st.st_mode & 0777;
}

Test(db_store_open, creates_its_folder_and_a_file_only_its_owner_reads) {
  char deep[256];
  umask(0);
  snprintf(deep, sizeof deep, "%s/a/b/store.db", folder);
  TEST_OK(ft_store_open(deep, ft_allocator_system(), &store, &error));
  cr_assert_eq(mode_of(deep), 0600);
  snprintf(deep, sizeof deep, "%s/a/b/store.db-wal", folder);
  cr_assert_eq(mode_of(deep), 0600);
  snprintf(deep, sizeof deep, "%s/a", folder);
  cr_assert_eq(mode_of(deep), 0700);
}

Test(db_store_open, opening_again_keeps_the_rows) {
  sample s;
  store_open();
  sample_store(&s);
  store_reopen();
  cr_assert_eq(count_of("run"), 1);
  cr_assert_eq(count_of("candidate"), 1);
}

Test(db_store_open, an_empty_file_becomes_a_store) {
  write_file(path, "", 0);
  store_open();
  cr_assert_eq(count_of("trial"), 0);
}

Test(db_store_open, an_empty_path_is_an_invalid_argument) {
  ft_store *out;
  cr_assert_eq(ft_store_open("", ft_allocator_system(), &out, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(ft_store_open(NULL, ft_allocator_system(), &out, &error),
               FT_INVALID_ARGUMENT);
}

Test(db_store_open, a_newer_version_is_refused_with_both_numbers_and_left_alone) {
  store_open();
  ft_store_close(store);
  store = NULL;
  run_sql("PRAGMA user_version = 7");
  expect_open(FT_REFUSED, "has version 7, this fusetune knows 2: use a newer fusetune");
  EXPECT_SQL("7", "PRAGMA user_version");
  run_sql("PRAGMA user_version = -1");
  expect_open(FT_REFUSED, "has version -1");
}

Test(db_store_open, another_programs_database_is_refused_and_left_alone) {
  run_sql("CREATE TABLE notes(text TEXT)");
  expect_open(FT_REFUSED, "another program's database");
  EXPECT_SQL("1", "SELECT count(*) FROM sqlite_master");
  EXPECT_SQL("delete", "PRAGMA journal_mode");
}

Test(db_store_open, a_file_that_is_no_database_is_corrupt) {
  char text[4096];
  memset(text, 'x', sizeof text);
  write_file(path, text, sizeof text);
  expect_open(FT_CORRUPT, "not a database");
  cr_assert(strstr(error.text, "move the file away"), "%s", error.text);
}

Test(db_store_open, a_truncated_file_is_corrupt) {
  struct stat st;
  store_open();
  ft_store_close(store);
  store = NULL;
  cr_assert_eq(stat(path, &st), 0);
  cr_assert_gt(st.st_size, 40000);
  for (off_t size = st.st_size - 4096; size > 0; size = size / 2 - 1) {
    cr_assert_eq(truncate(path, size), 0);
    ft_status status = ft_store_open(path, ft_allocator_system(), &store, &error);
    cr_assert_eq(status, FT_CORRUPT, "%lld bytes: %s", (long long)size, error.text);
    cr_assert(strstr(error.text, path));
  }
}

Test(db_store_open, flipped_bytes_are_found_by_check_or_by_open) {
  struct stat st;
  sample s;
  store_open();
  sample_store(&s);
  ft_store_close(store);
  store = NULL;
  cr_assert_eq(stat(path, &st), 0);
  int fd = open(path, O_RDWR), found = 0;
  char zero[200] = {0};
  // The first page's header stays; every other page's is wiped in turn.
  for (off_t at = 4096; at < st.st_size; at += 4096) {
    char kept[sizeof zero];
    cr_assert_eq(pread(fd, kept, sizeof kept, at), sizeof kept);
    cr_assert_eq(pwrite(fd, zero, sizeof zero, at), sizeof zero);
    ft_status status = ft_store_open(path, ft_allocator_system(), &store, &error);
    if (status == FT_OK) status = ft_store_check(store, &error);
    found += status == FT_CORRUPT;
    cr_assert(status == FT_CORRUPT, "page at %lld: %s", (long long)at, error.text);
    ft_store_close(store);
    store = NULL;
    cr_assert_eq(pwrite(fd, kept, sizeof kept, at), sizeof kept);
  }
  close(fd);
  cr_assert_gt(found, 10);
}

Test(db_store_open, a_missing_parent_row_is_named_by_check) {
  sample s;
  store_open();
  sample_store(&s);
  TEST_OK(ft_store_check(store, &error));
  run_sql("PRAGMA foreign_keys = OFF; DELETE FROM workload");
  cr_assert_eq(ft_store_check(store, &error), FT_CORRUPT);
  cr_assert(strstr(error.text, "candidate row 1 points to a missing row of workload"),
            "%s", error.text);
}

// Root may write anything, so the test becomes nobody where it can.
Test(db_store_open, a_read_only_file_is_refused_by_name) {
  store_open();
  ft_store_close(store);
  store = NULL;
  cr_assert_eq(chmod(path, 0444), 0);
  cr_assert_eq(chmod(folder, 0777), 0);
  char lock[288];
  snprintf(lock, sizeof lock, "%s.lock", path);
  cr_assert_eq(chmod(lock, 0666), 0);
  if (geteuid() == 0) cr_assert_eq(seteuid(65534), 0);
  expect_open(FT_IO, "read-only");
  if (getuid() == 0) cr_assert_eq(seteuid(0), 0);
}

Test(db_store_open, a_folder_that_cannot_be_made_is_named) {
  char under[288];
  write_file(path, "x", 1);
  snprintf(under, sizeof under, "%s/sub/store.db", path);
  cr_assert_eq(ft_store_open(under, ft_allocator_system(), &store, &error), FT_IO);
  cr_assert(strstr(error.text, path), "%s", error.text);
}

Test(db_store_open, the_path_may_be_relative_and_a_bare_name) {
  cr_assert_eq(chdir(folder), 0);
  TEST_OK(ft_store_open("here.db", ft_allocator_system(), &store, &error));
  ft_store_close(store);
  TEST_OK(ft_store_open("./sub/here.db", ft_allocator_system(), &store, &error));
  cr_assert_eq(access("here.db", F_OK), 0);
  cr_assert_eq(access("sub/here.db", F_OK), 0);
}

// ---- several processes

typedef struct racer {
  int start;
} racer;

static void race(void *ctx) {
  const racer *r = ctx;
  char byte;
  sample s;
  if (read(r->start, &byte, 1) < 0) _exit(3);  // returns when the parent closes its end
  sample_init(&s);
  if (ft_store_open(path, ft_allocator_system(), &store, &error) != FT_OK) {
    fprintf(stderr, "%s\n", error.text);
    _exit(1);
  }
  if (ft_store_target(store, &s.target, &s.target_id, &error) != FT_OK ||
      ft_store_graph(store, s.graph, &s.graph_id, &s.binding_id, &error) != FT_OK ||
      ft_store_candidate(store, &s.candidate, s.target_id, 1, &s.candidate_id, &error) !=
          FT_OK) {
    fprintf(stderr, "%s\n", error.text);
    _exit(2);
  }
  ft_store_close(store);
}

Test(db_store_open, processes_that_open_a_new_store_together_all_succeed) {
  enum { RACERS = 8, ROUNDS = 6 };
  for (int round = 0; round < ROUNDS; round++) {
    int ends[2], status;
    pid_t pid[RACERS];
    snprintf(path, sizeof path, "%s/race%d/store.db", folder, round);
    cr_assert_eq(pipe(ends), 0);
    for (int i = 0; i < RACERS; i++) {
      pid[i] = fork();
      cr_assert_geq(pid[i], 0);
      if (pid[i] != 0) continue;
      close(ends[1]);
      race(&(racer){ends[0]});
      _exit(0);
    }
    close(ends[0]);
    close(ends[1]);  // go
    for (int i = 0; i < RACERS; i++) {
      cr_assert_eq(waitpid(pid[i], &status, 0), pid[i]);
      cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "racer %d: %d", i, status);
    }
    store_open();
    cr_assert_eq(count_of("target"), 1);
    cr_assert_eq(count_of("graph"), 1);
    cr_assert_eq(count_of("candidate"), 1);
    ft_store_close(store);
    store = NULL;
  }
}

// A process that dies while it creates leaves nothing or everything.
static void die_creating(void *ctx) {
  (void)ctx;
  alarm(0);
  if (fork() == 0) {
    ft_store *out;
    _exit(ft_store_open(path, ft_allocator_system(), &out, &error) != FT_OK);
  }
  usleep(500);
  kill(0, SIGKILL);
}

Test(db_store_open, a_creator_that_is_killed_leaves_a_store_that_opens) {
  for (int i = 0; i < 10; i++) {
    snprintf(path, sizeof path, "%s/kill%d.db", folder, i);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
      setpgid(0, 0);
      die_creating(NULL);
      _exit(0);
    }
    waitpid(pid, NULL, 0);
    store_open();
    cr_assert_eq(count_of("trial"), 0);
    ft_store_close(store);
    store = NULL;
  }
}

Test(db_store_open, a_locked_store_waits_for_the_other_writer) {
  sqlite3 *other;
  sample s;
  store_open();
  cr_assert_eq(sqlite3_open(path, &other), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_busy_timeout(store->db, 20);
  sample_init(&s);
  cr_assert_eq(ft_store_target(store, &s.target, &s.target_id, &error), FT_UNAVAILABLE);
  cr_assert(strstr(error.text, "another process holds it"), "%s", error.text);
  cr_assert_eq(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
  TEST_OK(ft_store_target(store, &s.target, &s.target_id, &error));
  sqlite3_close(other);
}

// ---- where it is

Test(db_store_open, the_default_path_follows_the_environment) {
  setenv("HOME", "/home/u", 1);
  unsetenv("XDG_DATA_HOME");
  unsetenv("FUSETUNE_STORE");
  cr_assert_str_eq(ft_store_default_path(arena),
                   "/home/u/.local/share/fusetune/store.db");
  setenv("XDG_DATA_HOME", "relative", 1);
  cr_assert_str_eq(ft_store_default_path(arena),
                   "/home/u/.local/share/fusetune/store.db");
  setenv("XDG_DATA_HOME", "/data", 1);
  cr_assert_str_eq(ft_store_default_path(arena), "/data/fusetune/store.db");
  setenv("FUSETUNE_STORE", "x.db", 1);
  cr_assert_str_eq(ft_store_default_path(arena), "x.db");
}
