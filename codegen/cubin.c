#include "codegen/cubin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "codegen/ptxas_log.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/strbuf.h"

enum { MOST_THREADS = 64, LOG_BYTES = 1 << 20 };

typedef struct batch {
  const ft_cubin_options *options;
  const ft_cuda_source *source;
  ft_arena *arena;
  ft_cuda_object *out;
  const char **cubin, **log;  // paths
  uint32_t *todo, todo_count;
  atomic_uint next;
  atomic_bool has_failed;
} batch;

// A thread that compiles, with memory of its own.
typedef struct builder {
  batch *batch;
  ft_arena *arena;
  pthread_t thread;
  bool is_running;
  ft_status status;
  ft_error error;
} builder;

// ---- the cache
// --------------------------------------------------------------------------------

static ft_status name_files(batch *b, uint32_t index, ft_error *error) {
  const ft_cubin_options *o = b->options;
  char hex[FT_HASH_HEX + 1];
  ft_hash_hex(&b->source[index].body_hash, hex);
  const char *key = ft_arena_printf(b->arena, "%s\n%s\nnvrtc %s", hex, o->arch,
                                    ft_nvrtc_version(o->nvrtc));
  FT_OOM_IF(!key, error);
  ft_hash hash = ft_hash_bytes(key, strlen(key));
  ft_hash_hex(&hash, hex);
  b->cubin[index] = ft_arena_printf(b->arena, "%s/%s.cubin", o->folder, hex);
  b->log[index] = ft_arena_printf(b->arena, "%s/%s.ptxas", o->folder, hex);
  FT_OOM_IF(!b->cubin[index] || !b->log[index], error);
  return FT_OK;
}

static bool is_there(const char *path) {
  struct stat info;
  return !stat(path, &info) && S_ISREG(info.st_mode) && info.st_size > 0;
}

// What ptxas always says is no news; times are of one day.
static bool is_news(const char *line, size_t length) {
  static const char *const usual[] = {"ptxas info", "ptxas         ."};
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    if (length >= strlen(usual[i]) && !memcmp(line, usual[i], strlen(usual[i])))
      return false;
  return length > 0;
}

static const char *news_of(const char *log, ft_arena *arena) {
  ft_strbuf text = ft_strbuf_init(arena);
  ft_strbuf_add(&text, "");
  for (const char *at = log; *at;) {
    size_t length = strcspn(at, "\n");
    if (is_news(at, length)) ft_strbuf_printf(&text, "%.*s\n", (int)length, at);
    at += length + (at[length] == '\n');
  }
  return text.failed ? NULL : text.text;
}

// False: not in the cache, or its log does not fit any more.
static bool find(batch *b, uint32_t index) {
  ft_bytes log;
  ft_error ignored;
  ft_cuda_object *out = &b->out[index];
  if (!is_there(b->cubin[index]) ||
      ft_file_read(b->log[index], LOG_BYTES, b->arena, &log, &ignored) != FT_OK)
    return false;
  *out = (ft_cuda_object){.outcome = FT_OUTCOME_OK, .path = b->cubin[index]};
  out->log = news_of(log.data, b->arena);
  return out->log && ft_ptxas_log_read(log.data, b->source[index].entry, &out->facts);
}

// ---- compiling
// --------------------------------------------------------------------------------

// The log first: a cubin is never without.
static ft_status keep(batch *b, uint32_t index, const ft_cubin *cubin, ft_error *error) {
  FT_TRY(ft_file_write(b->log[index], cubin->log, strlen(cubin->log), error));
  return ft_file_write(b->cubin[index], cubin->data, cubin->bytes, error);
}

static ft_status build_one(builder *me, uint32_t index, ft_error *error) {
  batch *b = me->batch;
  const ft_cubin_options *o = b->options;
  ft_cubin cubin;
  uint64_t start = ft_clock_ns();
  FT_TRY(ft_nvrtc_compile_within(o->nvrtc, b->source[index].text, b->source[index].entry,
                                 o->arch, o->limit_ns, o->stop, me->arena, &cubin,
                                 error));
  ft_cuda_object *out = &b->out[index];
  bool is_ok = cubin.outcome == FT_OUTCOME_OK;
  *out = (ft_cuda_object){.outcome = cubin.outcome,
                          .path = is_ok ? b->cubin[index] : "",
                          .log = is_ok ? news_of(cubin.log, me->arena) : cubin.log,
                          .build_ns = ft_clock_ns() - start,
                          .facts = cubin.facts};
  FT_OOM_IF(!out->log, error);
  return is_ok ? keep(b, index, &cubin, error) : FT_OK;
}

static void *work(void *arg) {
  builder *me = arg;
  batch *b = me->batch;
  while (!atomic_load(&b->has_failed)) {
    uint32_t at = atomic_fetch_add(&b->next, 1);
    if (at >= b->todo_count) break;
    me->status = build_one(me, b->todo[at], &me->error);
    if (me->status != FT_OK) atomic_store(&b->has_failed, true);
  }
  return NULL;
}

static ft_status start(builder *list, uint32_t count, batch *b, ft_error *error) {
  for (uint32_t i = 0; i < count; i++) {
    list[i] = (builder){.batch = b, .arena = ft_arena_create(ft_allocator_system())};
    FT_OOM_IF(!list[i].arena, error);
  }
  for (uint32_t i = 1; i < count; i++)
    list[i].is_running = pthread_create(&list[i].thread, NULL, work, &list[i]) == 0;
  work(&list[0]);
  return FT_OK;
}

// What the threads' memory holds must outlive them.
static ft_status take_logs(batch *b, ft_error *error) {
  for (uint32_t i = 0; i < b->todo_count; i++) {
    ft_cuda_object *out = &b->out[b->todo[i]];
    if (out->log) out->log = ft_arena_strdup(b->arena, out->log);
    FT_OOM_IF(!out->log, error);
  }
  return FT_OK;
}

static ft_status build_missing(batch *b, ft_error *error) {
  uint32_t jobs = b->options->jobs ? b->options->jobs : 1;
  if (jobs > MOST_THREADS) jobs = MOST_THREADS;
  if (jobs > b->todo_count) jobs = b->todo_count;
  builder list[MOST_THREADS] = {{0}};
  ft_status status = start(list, jobs, b, error);
  for (uint32_t i = 0; i < jobs; i++) {
    if (list[i].is_running) pthread_join(list[i].thread, NULL);
    if (status != FT_OK || list[i].status == FT_OK) continue;
    status = list[i].status;
    if (error) *error = list[i].error;
  }
  if (status == FT_OK) status = take_logs(b, error);
  for (uint32_t i = 0; i < jobs; i++) ft_arena_destroy(list[i].arena);
  return status;
}

// ---- a batch
// --------------------------------------------------------------------------------------

static uint32_t first_like(const batch *b, uint32_t index) {
  uint32_t i = 0;
  while (strcmp(b->cubin[i], b->cubin[index])) i++;
  return i;
}

ft_status ft_cubins_build(const ft_cubin_options *options, const ft_cuda_source *source,
                          uint32_t count, ft_arena *arena, ft_cuda_object *out,
                          ft_error *error) {
  batch b = {.options = options, .source = source, .arena = arena, .out = out};
  b.cubin = FT_NEW_ARRAY(arena, const char *, count);
  b.log = FT_NEW_ARRAY(arena, const char *, count);
  b.todo = FT_NEW_ARRAY(arena, uint32_t, count);
  FT_OOM_IF(!b.cubin || !b.log || !b.todo, error);
  for (uint32_t i = 0; i < count; i++) {
    FT_TRY(name_files(&b, i, error));
    out[i] = (ft_cuda_object){.outcome = FT_OUTCOME_COMPILE_ERROR, .path = ""};
    if (first_like(&b, i) == i && !find(&b, i)) b.todo[b.todo_count++] = i;
  }
  if (b.todo_count) FT_TRY(build_missing(&b, error));
  for (uint32_t i = 0; i < count; i++) out[i] = out[first_like(&b, i)];
  return FT_OK;
}
