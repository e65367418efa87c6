// searches FOLDER SECONDS MODEL...: predicts a plan of each model for sm_90 in a store of its
// own, for that many seconds, with and without the floors of candidates. Rows on stdout.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "daemon/session.h"

static ft_error error;

static void must(ft_status status) {
  if (status == FT_OK) return;
  fprintf(stderr, "searches: %s\n", error.text);
  exit(1);
}

static const char *name_of(const char *path, ft_arena *arena) {
  const char *slash = strrchr(path, '/');
  char *name = ft_arena_strdup(arena, slash ? slash + 1 : path);
  char *dot = strrchr(name, '.');
  if (dot) *dot = '\0';
  return name;
}

static void search(const char *path, const char *folder, uint64_t seconds,
                   bool has_floors) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  const char *name = name_of(path, arena);
  ft_session_options options = {
      .target = "sm_90",
      .store_path = ft_arena_printf(arena, "%s/%s-%d.db", folder, name, has_floors),
      .cache_folder = ft_arena_printf(arena, "%s/%s-%d", folder, name, has_floors)};
  ft_dim_binding star = {"*", 1};
  ft_import_options import = {.dim_count = 1, .dim = &star};
  ft_tune_options tune = {.limit_ns = seconds * 1000000000u};
  ft_session session;
  ft_model model;
  ft_answer answer;
  must(ft_session_open(&options, &session, &error));
  if (!has_floors) session.predictor.floors = NULL;
  must(ft_model_load(path, &import, arena, &model, &error));
  uint64_t start = ft_clock_ns();
  must(ft_session_tune(&session, &model, &tune, arena, &answer, &error));
  const ft_search_result *s = answer.search;
  printf("%s,%s,%llu,%.1f,%u,%u,%u,%.3f,%.3f,%.4f,%s\n", name,
         has_floors ? "floors" : "quotas", (unsigned long long)seconds,
         (double)(ft_clock_ns() - start) * 1e-9, s->trials, s->measured_count,
         s->group_count, answer.predicted_ns[FT_PLAN_TUNED] * 1e-3,
         answer.predicted_ns[FT_PLAN_UNFUSED] * 1e-3, answer.plan->times.gap,
         s->stop_reason);
  fflush(stdout);
  ft_session_close(&session);
  ft_arena_destroy(arena);
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: searches FOLDER SECONDS MODEL...\n");
    return 2;
  }
  printf("model,way,limit_s,took_s,built,groups_built,groups_unique,tuned_us,unfused_us,gap,"
         "ended\n");
  for (int i = 3; i < argc; i++)
    for (int has_floors = 0; has_floors < 2; has_floors++)
      search(argv[i], argv[1], strtoull(argv[2], NULL, 10), has_floors);
  return 0;
}
