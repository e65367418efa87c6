// A tuner that is killed at any point loses nothing, blames nobody and leaves no process
// behind; the same command goes on. And one that is asked to stop does so soon.
//
// Kill points are drawn from a seed (FT_KILL_SEED, FT_KILLS), by rows written, so that
// they spread over the whole run whatever the machine is doing, and by a short delay.
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "core/clock.h"
#include "core/rng.h"
#include "tests/daemon/sessions.h"
#include "tests/support/processes.h"

enum { MOST_CHILDREN = 128, POLL_US = 2000, PATIENCE = 30000 };

// Softmax in parts with something before and after it, over [N, 48]: enough groups for
// some hundred trials that take microseconds each.
static ft_strbuf parts_model(ft_arena *arena) {
  onnx_file f = onnx_begin(arena, 13);
  float bias[48];
  for (int i = 0; i < 48; i++) bias[i] = (float)(i % 7) * 0.1f - 0.3f;
  onnx_input(&f, "x", ONNX_FLOAT, "N,48");
  onnx_input(&f, "r", ONNX_FLOAT, "N,48");
  onnx_output(&f, "y", ONNX_FLOAT, "N,48");
  onnx_floats(&f, "b", "48", bias, 48);
  onnx_scalar(&f, "half", 0.5f);
  onnx_node(&f, "Add", "x,b", "a", NULL);
  onnx_node(&f, "Tanh", "a", "t", NULL);
  onnx_node(&f, "Softmax", "t", "s", NULL);
  onnx_node(&f, "Mul", "s,half", "m", NULL);
  onnx_node(&f, "Add", "m,r", "p", NULL);
  onnx_node(&f, "Sigmoid", "p", "g", NULL);
  onnx_node(&f, "Mul", "g,p", "y", NULL);
  return onnx_end(&f);
}

static char store_path[300], cache_path[300], model_path[300];

static void set_up(void) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_error error;
  ft_strbuf bytes = parts_model(arena);
  snprintf(store_path, sizeof store_path, "%s/store.db", test_folder());
  snprintf(cache_path, sizeof cache_path, "%s/cache", test_folder());
  snprintf(model_path, sizeof model_path, "%s/model.onnx", test_folder());
  cr_assert_eq(ft_file_write(model_path, bytes.text, bytes.length, &error), FT_OK);
  ft_arena_destroy(arena);
}

// ---- the store, read beside whoever writes it

// The first column of the first row; "" while there is no such file or table.
static void look(const char *sql, char *out, size_t room) {
  sqlite3 *db;
  sqlite3_stmt *row = NULL;
  out[0] = '\0';
  if (sqlite3_open_v2(store_path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK) {
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW && sqlite3_column_text(row, 0))
      snprintf(out, room, "%s", (const char *)sqlite3_column_text(row, 0));
  }
  sqlite3_finalize(row);
  sqlite3_close(db);
}

static long number(const char *sql) {
  char text[64];
  look(sql, text, sizeof text);
  return strtol(text, NULL, 10);
}

#define EXPECT_NUMBER(want, sql) \
  cr_assert_eq(number(sql), want, "%ld: %s", number(sql), sql)

// ---- the tuner

static pid_t start_tuner(const char *option, int *out_fd) {
  char store[320], cache[320];
  int out[2];
  snprintf(store, sizeof store, "FUSETUNE_STORE=%s", store_path);
  snprintf(cache, sizeof cache, "FUSETUNE_CACHE=%s", cache_path);
  cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
  pid_t pid = fork();
  cr_assert_geq(pid, 0);
  if (pid == 0) {
    dup2(out[1], 1);
    dup2(open("/dev/null", O_RDWR), 2);
    putenv(store);
    putenv(cache);
    execl(FT_BINARY_DIR "/fusetune", "fusetune", "tune", model_path, "--dim", "N=37",
          "--time", "20s", "--json", option, (char *)NULL);
    _exit(127);
  }
  close(out[1]);
  *out_fd = out[0];
  return pid;
}

static bool has_ended(pid_t pid) {
  siginfo_t info = {0};
  return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

// What the process printed before it ended; *out_state as waitpid has it.
static char *finish(pid_t pid, int fd, int *out_state) {
  size_t length = 0, room = 1 << 20;
  char *text = malloc(room);
  for (ssize_t n; (n = read(fd, text + length, room - length - 1)) > 0;)
    length += (size_t)n;
  text[length] = '\0';
  close(fd);
  cr_assert_eq(waitpid(pid, out_state, 0), pid);
  return text;
}

// ---- its children and theirs

static long parent_of(long pid) {
  char path[64];
  long parent = 0;
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  FILE *file = fopen(path, "re");
  if (file && fscanf(file, "%*d (%*[^)]) %*c %ld", &parent) != 1) parent = 0;
  if (file) fclose(file);
  return parent;
}

static bool descends(long pid, long from) {
  for (int depth = 0; pid > 1 && depth < 8; depth++) {
    pid = parent_of(pid);
    if (pid == from) return true;
  }
  return false;
}

static uint32_t list_children(pid_t tuner, long out[MOST_CHILDREN]) {
  uint32_t count = 0;
  DIR *dir = opendir("/proc");
  cr_assert(dir);
  for (struct dirent *entry; (entry = readdir(dir)) && count < MOST_CHILDREN;) {
    long pid = strtol(entry->d_name, NULL, 10);
    if (pid > 0 && descends(pid, tuner)) out[count++] = pid;
  }
  closedir(dir);
  return count;
}

static void expect_gone(const long *child, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    cr_assert(process_ends(child[i]), "process %ld outlived its tuner", child[i]);
}

// ---- kills

typedef struct tally {
  ft_rng rng;
  uint32_t kills, ends;    // runs that came to their end before their kill point
  uint32_t with_children;  // kills while a compiler or a worker was there
} tally;

// Waits for some trials more than there were, then a little. Once a run came to its end
// there are no more trials, but plans to compare and to save.
static void wait_for_kill_point(tally *t, pid_t pid, uint32_t kind) {
  long rows = number("SELECT count(*) FROM trial"), more = 0;
  uint64_t delay_us = ft_rng_below(&t->rng, 40000);
  if (t->ends > 0)
    delay_us = ft_rng_below(&t->rng, 1200000);
  else if (kind % 4 == 0)
    delay_us = ft_rng_below(&t->rng, 400000);  // while it starts, or right after
  else
    more = 1 + (long)ft_rng_below(&t->rng, 6);
  if (kind % 4 == 3) delay_us += ft_rng_below(&t->rng, 300000);  // into the next build
  for (int i = 0; i < PATIENCE && !has_ended(pid); i++) {
    if (number("SELECT count(*) FROM trial") >= rows + more) break;
    usleep(POLL_US);
  }
  for (uint64_t us = 0; us < delay_us && !has_ended(pid); us += POLL_US) usleep(POLL_US);
}

#define FINISHED "outcome NOT IN ('pending','interrupted')"

static void kill_one(tally *t, uint32_t kind) {
  static char before[1 << 16], after[1 << 16], sql[(1 << 16) + 200];
  long child[MOST_CHILDREN];
  int fd, state;
  pid_t pid = start_tuner(NULL, &fd);
  wait_for_kill_point(t, pid, kind);
  look(
      "SELECT group_concat(id || outcome || ifnull(median_ns, ''))"
      " FROM (SELECT * FROM trial WHERE " FINISHED " ORDER BY id)",
      before, sizeof before);
  long last = number("SELECT max(id) FROM trial WHERE " FINISHED);
  uint32_t children = list_children(pid, child);
  kill(pid, SIGKILL);
  free(finish(pid, fd, &state));
  t->kills += WIFSIGNALED(state);
  t->ends += WIFEXITED(state);
  t->with_children += WIFSIGNALED(state) && children > 0;
  if (WIFEXITED(state)) cr_assert_eq(WEXITSTATUS(state), 0);
  expect_gone(child, children);
  snprintf(sql, sizeof sql,
           "SELECT group_concat(id || outcome || ifnull(median_ns, '')) FROM (SELECT *"
           " FROM trial WHERE id <= %ld AND " FINISHED " ORDER BY id)",
           last);
  look(sql, after, sizeof after);
  cr_assert_eq(strncmp(before, after, strlen(before)), 0, "a finished row changed");
}

// ---- to the end, and what must hold then

static json_t *run_to_the_end(void) {
  int fd, state;
  pid_t pid = start_tuner(NULL, &fd);
  char *text = finish(pid, fd, &state);
  cr_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0, "%s", text);
  json_t *answer = json_loads(text, 0, NULL);
  cr_assert_not_null(answer, "%s", text);
  free(text);
  return answer;
}

// The partition that the last run's search liked best, by its candidates.
static void best_partition(char *out, size_t room) {
  look(
      "SELECT group_concat(candidate_id) FROM (SELECT candidate_id FROM plan_group"
      " WHERE plan_id = (SELECT id FROM plan WHERE strategy = 'ideals' AND run_id ="
      " (SELECT max(id) FROM run) ORDER BY additive_ns, id LIMIT 1) ORDER BY position)",
      out, room);
}

static long long run_and_count(char *partition, size_t room) {
  json_t *answer = run_to_the_end();
  long long ran = json_integer_value(json_object_get(answer, "new_trials"));
  best_partition(partition, room);
  json_decref(answer);
  return ran;
}

// What a plan is: which primitives share a kernel, and how each is made.
static json_t *kernels_of(json_t *plan) {
  json_t *list = json_array(), *group;
  size_t i;
  json_array_foreach(json_object_get(plan, "groups"), i, group) json_array_append_new(
      list,
      json_pack("{s:O, s:O, s:O}", "primitives", json_object_get(group, "primitives"),
                "tactic", json_object_get(group, "tactic"), "schedule",
                json_object_get(group, "schedule")));
  cr_assert_gt(json_array_size(list), 0);
  return list;
}

// The run that is fed the same times and was never disturbed: a search in one process
// over what the store knows. It must find what the killed ones came to.
static void expect_the_plan_of_a_replay(void) {
  static char body[1 << 18];
  look(
      "SELECT body FROM plan WHERE strategy = 'ideals' AND run_id ="
      " (SELECT max(id) FROM run) ORDER BY additive_ns, id LIMIT 1",
      body, sizeof body);
  json_t *stored = json_loads(body, 0, NULL);
  cr_assert_not_null(stored, "%.200s", body);
  int fd, state;
  pid_t pid = start_tuner("--from-store", &fd);
  char *text = finish(pid, fd, &state);
  cr_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0, "%s", text);
  json_t *replayed = json_loads(text, 0, NULL);
  cr_assert_not_null(replayed, "%s", text);
  json_t *one = kernels_of(stored), *two = kernels_of(replayed);
  char *shown = json_dumps(two, JSON_COMPACT | JSON_SORT_KEYS);
  cr_assert(json_equal(one, two), "replayed: %s", shown);
  free(shown);
  free(text);
  json_decref(one);
  json_decref(two);
  json_decref(stored);
  json_decref(replayed);
}

static void check_store(const tally *t) {
  char text[400];
  look("PRAGMA integrity_check", text, sizeof text);
  cr_assert_str_eq(text, "ok");
  look("SELECT * FROM pragma_foreign_key_check", text, sizeof text);
  cr_assert_str_eq(text, "");
  EXPECT_NUMBER(0, "SELECT count(*) FROM trial WHERE outcome = 'pending'");
  EXPECT_NUMBER(0, "SELECT count(*) FROM quarantine");
  EXPECT_NUMBER(0,
                "SELECT count(*) FROM trial WHERE outcome IN('crash','timeout',"
                "'wrong_result','launch_error','compile_error')");
  // A look of one length is taken once of each candidate, however often it was begun.
  EXPECT_NUMBER(0,
                "SELECT count(*) FROM (SELECT 1 FROM trial WHERE outcome = 'ok'"
                " GROUP BY candidate_id, mode, limit_ns HAVING count(*) > 1)");
  EXPECT_NUMBER(0,
                "SELECT count(*) FROM trial WHERE outcome = 'ok' AND (samples = 0 OR"
                " length(sample_ns) <> 8 * length(sample_flags))");
  EXPECT_NUMBER(0,
                "SELECT count(*) FROM best b JOIN trial x ON x.id = b.trial_id JOIN"
                " candidate c ON c.workload_id = b.workload_id JOIN trial y ON"
                " y.candidate_id = c.id AND y.outcome = 'ok' AND"
                " y.median_ns < x.median_ns");
  EXPECT_NUMBER(1, "SELECT count(*) FROM plan WHERE served");
  long interrupted = number("SELECT count(*) FROM trial WHERE outcome = 'interrupted'");
  cr_assert_leq(interrupted, (long)t->kills, "%ld interrupted by %u kills", interrupted,
                t->kills);
}

static uint64_t setting(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

Test(cli_kills, twenty_kills_lose_nothing_and_blame_nobody, .timeout = 400) {
  uint64_t kills = setting("FT_KILLS", 20), seed = setting("FT_KILL_SEED", 1);
  uint64_t start = ft_clock_ns();
  tally t = {.rng = ft_rng_seed(seed)};
  set_up();
  for (uint32_t i = 0; t.kills < kills && i < 3 * kills; i++) kill_one(&t, i);
  cr_assert_eq(t.kills, kills, "%u runs ended before their kill point", t.ends);
  cr_assert_gt(t.with_children, 0);
  char first[4096], second[4096];
  int runs = 1;
  while (run_and_count(first, sizeof first) > 0 && runs < 8) runs++;
  cr_assert_eq(run_and_count(second, sizeof second), 0, "after %d runs", runs);
  cr_assert_gt(strlen(first), 0);
  cr_assert_str_eq(first, second);
  expect_the_plan_of_a_replay();
  check_store(&t);
  fprintf(stderr,
          "kills: %u (%u with children alive), %u runs ended first, %ld trials, %ld of"
          " them interrupted, %d runs to the end, %.1f s\n",
          t.kills, t.with_children, t.ends, number("SELECT count(*) FROM trial"),
          number("SELECT count(*) FROM trial WHERE outcome = 'interrupted'"), runs,
          (double)(ft_clock_ns() - start) * 1e-9);
}

// ---- Ctrl-C

// Interrupts a run after |rows| trials and |delay_us|; true when it was there to be
// interrupted.
static bool interrupt(int number_of_signals, long rows, useconds_t delay_us) {
  long child[MOST_CHILDREN];
  int fd, state;
  long had = number("SELECT count(*) FROM trial");
  pid_t pid = start_tuner(NULL, &fd);
  for (int i = 0; i < PATIENCE && !has_ended(pid); i++) {
    if (number("SELECT count(*) FROM trial") >= had + rows) break;
    usleep(POLL_US);
  }
  usleep(delay_us);
  uint32_t children = list_children(pid, child);
  uint64_t start = ft_clock_ns();
  for (int i = 0; i < number_of_signals; i++) kill(pid, i % 2 ? SIGTERM : SIGINT);
  char *text = finish(pid, fd, &state);
  double took_ms = (double)(ft_clock_ns() - start) * 1e-6;
  expect_gone(child, children);
  cr_assert(WIFEXITED(state), "signal %d", WTERMSIG(state));
  bool is_interrupted = WEXITSTATUS(state) == 130;
  cr_assert(is_interrupted || WEXITSTATUS(state) == 0, "%d: %s", WEXITSTATUS(state),
            text);
  fprintf(stderr,
          "%d signals after %ld rows and %u ms: exit code %d after %.0f ms, %u"
          " children gone\n",
          number_of_signals, rows, delay_us / 1000, WEXITSTATUS(state), took_ms,
          children);
  if (is_interrupted && number_of_signals == 1) {
    json_t *answer = json_loads(text, 0, NULL);
    const char *code =
        json_string_value(json_object_get(json_object_get(answer, "error"), "code"));
    cr_assert(code && strcmp(code, "interrupted") == 0, "%s", text);
    json_decref(answer);
  }
  free(text);
  return is_interrupted;
}

Test(cli_kills, ctrl_c_saves_leaves_with_130_and_takes_its_processes_along,
     .timeout = 200) {
  set_up();
  uint32_t interrupted = 0;
  interrupted += interrupt(1, 0, 300000);  // before the first row: compilers run
  interrupted += interrupt(1, 1, 0);       // during a trial
  interrupted += interrupt(1, 5, 200000);
  interrupted += interrupt(2, 3, 0);  // impatient
  cr_assert_eq(interrupted, 4);
  EXPECT_NUMBER(0, "SELECT count(*) FROM quarantine");
  json_t *answer = run_to_the_end();
  cr_assert_gt(json_integer_value(json_object_get(answer, "trials")), 0);
  json_decref(answer);
  EXPECT_NUMBER(0, "SELECT count(*) FROM trial WHERE outcome = 'pending'");
  EXPECT_NUMBER(0, "SELECT count(*) FROM quarantine");
  cr_assert_geq(number("SELECT count(*) FROM run WHERE stop_reason = 'interrupted'"), 1);
}
