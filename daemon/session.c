#include "daemon/session.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/arch_target.h"
#include "daemon/measured_runner.h"
#include "db/trial_log.h"
#include "graph/import_json.h"
#include "measure/cpu_target.h"

static const char *default_cache_folder(ft_arena *arena) {
  const char *set = getenv("FUSETUNE_CACHE");
  if (set && *set) return set;
  const char *cache = getenv("XDG_CACHE_HOME");
  if (cache && *cache) return ft_arena_printf(arena, "%s/fusetune", cache);
  const char *home = getenv("HOME");
  return ft_arena_printf(arena, "%s/.cache/fusetune", home && *home ? home : "/tmp");
}

static ft_status limit_threads(ft_target *target, uint32_t threads, ft_error *error) {
  if (!threads) return FT_OK;
  if (target->threads && threads > target->threads)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%u threads, but this process may use %u cpus",
            threads, target->threads);
  target->threads = threads;
  return FT_OK;
}

// What --allow knows, and whether results then may depend on the order of threads.
static const struct {
  const char *name;
  bool is_deterministic;
} relaxations[] = {{"atomics", false}, {"fp16-acc", true}, {"tf32", true}};
enum { RELAXATIONS = sizeof relaxations / sizeof *relaxations };

// Marks what |list| ("tf32,atomics") names.
static ft_status read_allowed(const char *list, bool *allowed, ft_error *error) {
  for (const char *at = list; *at; at += *at == ',') {
    size_t length = strcspn(at, ",");
    bool is_known = false;
    for (int i = 0; i < RELAXATIONS; i++) {
      bool is_it = strlen(relaxations[i].name) == length &&
                   !strncmp(relaxations[i].name, at, length);
      allowed[i] |= is_it;
      is_known |= is_it;
    }
    if (!is_known)
      FT_FAIL(error, FT_INVALID_ARGUMENT,
              "--allow knows atomics, fp16-acc and tf32, not '%.*s'", (int)length, at);
    at += length;
  }
  return FT_OK;
}

// The policy is part of the target, so of every key: what was measured under another one
// is another time.
static ft_status relax_numerics(ft_session *s, const char *list, ft_error *error) {
  bool allowed[RELAXATIONS] = {false}, is_deterministic = true;
  FT_TRY(read_allowed(list, allowed, error));
  const char *names = "";
  for (int i = 0; i < RELAXATIONS; i++) {
    if (!allowed[i]) continue;
    is_deterministic &= relaxations[i].is_deterministic;
    names = ft_arena_printf(s->arena, "%s %s", names, relaxations[i].name);
    FT_OOM_IF(!names, error);
  }
  s->target.numerics = ft_arena_printf(s->arena, "f32-accumulate%s%s",
                                       is_deterministic ? " deterministic" : "", names);
  FT_OOM_IF(!s->target.numerics, error);
  return FT_OK;
}

static ft_status probe_gpu(ft_session *s, const ft_session_options *options,
                           ft_error *error) {
  FT_TRY(ft_arch_target(options->target, s->arena, &s->target, error));
  if (options->threads)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%u threads: target %s has no thread pool",
            options->threads, s->target.name);
  if (options->allow) FT_TRY(relax_numerics(s, options->allow, error));
  s->chip = ft_chip_find(s->target.name);
  return ft_target_seal(&s->target, error);
}

static ft_status probe_target(ft_session *s, const ft_session_options *options,
                              ft_error *error) {
  if (options->target && strcmp(options->target, "cpu") != 0)
    return probe_gpu(s, options, error);
  FT_TRY(ft_cpu_target_probe(s->arena, &s->target, error));
  FT_TRY(limit_threads(&s->target, options->threads, error));
  if (options->allow) FT_TRY(relax_numerics(s, options->allow, error));
  FT_TRY(
      ft_compilers_find(s->arena, s->target.compiler, &s->target.compiler_count, error));
  if (s->target.compiler_count == 0)
    FT_FAIL(error, FT_UNAVAILABLE,
            "no C compiler found in PATH: install clang or gcc, or set FUSETUNE_CC");
  const char *reason;
  FT_TRY(ft_libraries_find(&s->target.compiler[0], s->arena, &s->target.libraries,
                           &reason, error));
  return ft_target_seal(&s->target, error);
}

static ft_status open_outline(ft_session *s, ft_error *error) {
  s->outline = FT_NEW(s->arena, ft_outline_predictor);
  FT_OOM_IF(!s->outline, error);
  FT_TRY(ft_outline_predictor_init(s->outline, s->chip, s->codegen, s->stop, error));
  s->predictor = ft_outline_predictor_table(s->outline);
  return FT_OK;
}

static ft_status open_rooms(ft_session *s, const ft_session_options *options,
                            ft_error *error) {
  const ft_allocator *heap = ft_allocator_system();
  s->store_path =
      options->store_path ? options->store_path : ft_store_default_path(s->arena);
  s->cache_folder =
      options->cache_folder ? options->cache_folder : default_cache_folder(s->arena);
  FT_OOM_IF(!s->store_path || !s->cache_folder, error);
  FT_TRY(probe_target(s, options, error));
  FT_TRY(ft_store_open(s->store_path, heap, &s->store, error));
  ft_store_expect_codegen(s->store, FT_CODEGEN_VERSION);
  ft_codegen_options codegen = {.cache_folder = s->cache_folder,
                                .jobs = options->jobs,
                                .stop = options->stop,
                                .test_tactics = options->test_tactics};
  FT_TRY(ft_codegen_create(&codegen, &s->target, heap, &s->codegen, error));
  s->builder = ft_codegen_builder(s->codegen);
  s->check_limit_ns = options->check_limit_ns ? options->check_limit_ns : 10000000000u;
  if (ft_target_is_gpu(&s->target)) return s->chip ? open_outline(s, error) : FT_OK;
  ft_runner_options runner = {.worker_argv = options->worker_argv,
                              .check_limit_ns = s->check_limit_ns,
                              .flush_bytes = options->flush_bytes,
                              .stop = options->stop};
  return ft_cpu_runner_create(&runner, &s->target, heap, &s->runner, error);
}

ft_status ft_session_open(const ft_session_options *options, ft_session *out,
                          ft_error *error) {
  memset(out, 0, sizeof *out);
  out->arena = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!out->arena, error);
  out->stop = options->stop;
  return open_rooms(out, options, error);
}

void ft_session_close(ft_session *s) {
  ft_roofline_destroy(s->roofline);
  if (s->outline) ft_outline_predictor_fini(s->outline);
  ft_cpu_runner_destroy(s->runner);
  ft_codegen_destroy(s->codegen);
  ft_store_close(s->store);
  ft_arena_destroy(s->arena);
  memset(s, 0, sizeof *s);
}

// By content: a brace after blanks, which begins no ModelProto that we read (field 1 as a
// varint comes first); by name when the content does not tell.
static bool is_json(const char *path) {
  size_t length = strlen(path);
  if (length > 5 && strcmp(path + length - 5, ".json") == 0) return true;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  char start[64];
  ssize_t size = read(fd, start, sizeof start), i = 0;
  close(fd);
  while (i < size && strchr(" \n\r\t", start[i]) && start[i]) i++;
  return i < size && start[i] == '{';
}

ft_status ft_model_load(const char *path, const ft_import_options *options,
                        ft_arena *arena, ft_model *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  out->path = path;
  if (is_json(path))
    return ft_import_json(path, options, arena, &out->graph, &out->report, error);
  return ft_import_onnx(path, options, arena, &out->graph, &out->report, error);
}

ft_status ft_model_constrain(ft_model *model, const ft_constraint_spec *spec,
                             ft_arena *arena, ft_error *error) {
  const ft_constraints *known;
  FT_TRY(ft_constraints_make(model->graph, spec, arena, &known, error));
  if (ft_constraint_spec_is_empty(spec)) return FT_OK;
  const char *text = ft_constraint_spec_text(spec, arena);
  FT_OOM_IF(!text, error);
  const char *dims = model->graph->dims_json;
  bool has_dims = dims && dims[0] == '{' && dims[1] != '}';
  dims = ft_arena_printf(arena, "{\"#constraints\":%s%s%s", text, has_dims ? "," : "",
                         has_dims ? dims + 1 : "}");
  FT_OOM_IF(!dims, error);
  model->graph->dims_json = dims;
  model->constraints = spec;
  return FT_OK;
}

const char *ft_plan_kind_text(ft_plan_kind kind) {
  static const char *const text[] = {"tuned",  "unfused",   "primitive",
                                     "greedy", "incumbent", "kbest"};
  return text[kind < FT_PLAN_KBEST ? kind : FT_PLAN_KBEST];
}

const char *ft_plan_kind_strategy(ft_plan_kind kind) {
  static const char *const text[] = {"ideals", "unfused", "primitive",
                                     "horizontal-vertical"};
  return text[kind];
}

ft_status ft_session_plan_trials(ft_session *s, const ft_plan *plan, ft_arena *arena,
                                 const ft_group_trial **out, ft_error *error) {
  ft_group_trial *trial = FT_NEW_ARRAY(arena, ft_group_trial, plan->group_count);
  FT_OOM_IF(!trial, error);
  for (uint32_t i = 0; i < plan->group_count; i++) {
    ft_candidate candidate = {.workload = &plan->group[i].workload,
                              .target = &s->target,
                              .tactic = plan->group[i].tactic,
                              .schedule = plan->group[i].schedule};
    FT_TRY(ft_store_trial_of(s->store, &candidate, FT_CODEGEN_VERSION, &trial[i].id,
                             &trial[i].source, error));
  }
  *out = trial;
  return FT_OK;
}

ft_status ft_session_query(ft_session *s, const ft_model *model, ft_arena *arena,
                           ft_answer *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  const char *body;
  FT_TRY(ft_store_served_plan(s->store, model->graph, &s->target, arena, &body, error));
  ft_plan *plan = FT_NEW(arena, ft_plan);
  FT_OOM_IF(!plan, error);
  FT_TRY(ft_plan_parse(body, model->graph, &s->target, arena, plan, error));
  out->model = model->path;
  out->graph = model->graph;
  out->plan = plan;
  out->match = "exact";
  FT_TRY(ft_session_plan_trials(s, plan, arena, &out->trial, error));
  ft_refusal_record *refusal;
  FT_TRY(ft_store_served_refusals(s->store, model->graph, &s->target, arena, &refusal,
                                  &out->refusal_count, error));
  out->refusal = refusal;
  return FT_OK;
}
