// `export` while a tuner writes: whole lines, ids in order, nothing blocked.
#include <string.h>
#include <unistd.h>

#include "daemon/export.h"
#include "tests/daemon/sessions.h"

static uint32_t count_lines(const char *text) {
  uint32_t lines = 0;
  json_int_t last = 0;
  for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
    json_t *row = json_loadb(text, (size_t)(end - text), 0, NULL);
    cr_assert_not_null(row, "%.200s", text);
    json_int_t id = json_integer_value(json_object_get(row, "trial"));
    cr_assert_gt(id, last);
    last = id;
    json_decref(row);
    lines++;
  }
  cr_assert_str_empty(text, "a half line");
  return lines;
}

typedef struct watcher {
  fixture *f;
  ft_store *store;
  const char *file;
  uint32_t exports, largest, smallest;
} watcher;

// Another connection, as another process would have, in the middle of the tuner's work.
static void export_now(void *ctx, const ft_search_progress *progress) {
  watcher *w = ctx;
  (void)progress;
  ft_error error;
  ft_output output;
  ft_bytes bytes;
  uint64_t count;
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_export_options options = {.samples = true};
  cr_assert_eq(ft_output_open(w->file, arena, &output, &error), FT_OK);
  cr_assert_eq(ft_export_trials(w->store, &options, &output, &count, &error), FT_OK, "%s",
               error.text);
  cr_assert_eq(ft_output_commit(&output, &error), FT_OK);
  cr_assert_eq(ft_file_read(w->file, 1 << 24, arena, &bytes, &error), FT_OK);
  uint32_t lines = count_lines(bytes.data);
  cr_assert_eq(lines, count);
  cr_assert_geq(lines, w->largest, "trials went away");
  w->largest = lines;
  if (w->exports++ == 0) w->smallest = lines;
  ft_arena_destroy(arena);
}

Test(daemon_export, lines_are_whole_and_grow_while_a_tuner_writes, .timeout = 120) {
  fixture f = fixture_open(chain_model, false);
  ft_error error;
  ft_answer answer;
  watcher w = {.f = &f, .file = ft_arena_printf(f.arena, "%s/x.jsonl", test_folder())};
  cr_assert_eq(
      ft_store_open(f.session.store_path, ft_allocator_system(), &w.store, &error), FT_OK,
      "%s", error.text);
  ft_tune_options options = {
      .limit_ns = 60000000000u, .progress = export_now, .progress_ctx = &w};
  cr_assert_eq(ft_session_tune(&f.session, &f.model, &options, f.arena, &answer, &error),
               FT_OK, "%s", error.text);
  cr_assert_gt(w.exports, 2);
  cr_assert_gt(w.largest, w.smallest);
  ft_store_close(w.store);
  fixture_close(&f);
}
