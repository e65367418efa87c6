#include "daemon/repro.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/strbuf.h"
#include "daemon/repro_bytes.h"
#include "graph/decoding.h"
#include "graph/inputs.h"
#include "measure/check.h"

enum { FULL_ELEMENTS = 1 << 16, DEFAULT_FLUSH = 64 << 20, LOG_SHOWN = 4000 };
static const uint64_t reference_limit_ns = 5000000000u;

typedef struct repro {
  ft_session *session;
  const ft_repro_options *options;
  ft_arena *arena;
  ft_repro_result *out;
  const ft_trial_row *row;
  ft_workload workload;
  ft_schedule schedule;
  const char *source, *entry, *compiler, *flags, *libraries;
  uint32_t blocks, threads;
  uint64_t scratch_bytes, workspace_bytes;
  ft_input_recipe *recipe;  // [inputs]
  ft_tensor *input;         // [inputs]
  bool *is_given;           // [inputs] from a file
  uint32_t *checked;        // [outputs]
} repro;

// ---- the kernel -----------------------------------------------------------------------

// The banner (codegen.c) says how to launch. One body may be many candidates', and is
// stored with the banner of the first: then the launch may be another's.
static bool read_banner(repro *r, const char *source) {
  char hash[FT_HASH_TEXT + 1];
  ft_hash_text(&r->row->workload, hash);
  const char *own =
      ft_arena_printf(r->arena, "\n// workload %s\n// tactic %s, schedule %s\n// blocks ",
                      hash, r->row->tactic, r->row->schedule);
  const char *found = own ? strstr(source, own) : NULL;
  if (!found) return false;
  unsigned long long blocks, scratch, workspace;
  int end = 0;
  sscanf(found + strlen(own), "%10llu, scratch %15llu bytes, workspace %15llu bytes%n",
         &blocks, &scratch, &workspace, &end);
  if (!end || found[strlen(own) + (size_t)end] != '\n') return false;
  r->blocks = (uint32_t)blocks;
  r->scratch_bytes = scratch;
  r->workspace_bytes = workspace;
  uint64_t most = (uint64_t)1 << 40;
  return blocks > 0 && blocks <= UINT32_MAX && scratch <= most && workspace <= most;
}

static bool read_entry(repro *r) {
  static const char before[] = "\nint32_t ft_k";
  const char *found = strstr(r->source, before);
  if (!found) return false;
  found += strlen("\nint32_t ");
  r->entry = ft_arena_strndup(r->arena, found, strcspn(found, "(\n "));
  return r->entry && *r->entry;
}

// The candidate's text as this version prints it, when that is the version it was of.
static ft_status emit(repro *r, ft_error *error) {
  ft_session *s = r->session;
  long long id = (long long)r->row->trial_id;
  if (r->row->codegen_version != FT_CODEGEN_VERSION)
    FT_FAIL(error, FT_NOT_FOUND,
            "trial %lld has no source of its own in the store, and is of codegen version "
            "%u: this fusetune emits version %d",
            id, r->row->codegen_version, FT_CODEGEN_VERSION);
  ft_candidate candidate = {.workload = &r->workload,
                            .target = &s->target,
                            .tactic = r->row->tactic,
                            .schedule = r->schedule};
  const ft_builder *b = &s->builder;
  ft_hash body;
  if (b->emit(b->self, &candidate, r->arena, &r->source, &body, error) != FT_OK) {
    (void)ft_error_prefix(error, "trial %lld has no source of its own in the store", id);
    if (error->code == FT_INVALID_ARGUMENT) error->code = FT_NOT_FOUND;
    return error->code;
  }
  if (!ft_hash_is_zero(&r->row->body) && !ft_hash_equal(&body, &r->row->body))
    FT_FAIL(error, FT_INTERNAL, "trial %lld: the kernel emitted now has another body",
            id);
  r->out->is_emitted = *r->out->trial.source == '\0';
  return FT_OK;
}

// The flags go into a command line: nothing in them may mean something to a shell.
static bool is_plain(const char *text) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_=+,./:";
  return strspn(text, plain) == strlen(text);
}

// oneDNN (-ldnnl) brings OpenMP, which a program must name too.
static void add_library(repro *r, ft_strbuf *libraries, const char *word) {
  ft_strbuf_printf(libraries, " %s", word);
  if (strcmp(word, "-ldnnl") == 0) ft_strbuf_add(libraries, " -l:libgomp.so.1");
  r->threads = 1;  // the library has threads of its own
}

// What builds a program, not a library; libraries go to the end of the line.
static ft_status program_flags(repro *r, ft_error *error) {
  static const char *const dropped[] = {"-fPIC", "-shared", "-s"};
  const char *compiler = r->row->compiler, *flags = r->row->flags;
  if (!*compiler) {
    compiler = ft_schedule_get_text(&r->schedule, "compiler");
    flags = "-O3 -march=native -std=c11 -w";
  }
  if (!compiler) compiler = "cc";
  if (!is_plain(compiler) || !is_plain(flags))
    FT_FAIL(error, FT_CORRUPT, "trial %lld was built by '%.80s' with '%.200s'",
            (long long)r->row->trial_id, compiler, flags);
  char *copy = ft_arena_strdup(r->arena, flags);
  FT_OOM_IF(!copy, error);
  ft_strbuf kept = ft_strbuf_init(r->arena), libraries = ft_strbuf_init(r->arena);
  for (char *save = NULL, *word = strtok_r(copy, " ", &save); word;
       word = strtok_r(NULL, " ", &save)) {
    bool drop = false;
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
      drop |= strcmp(word, dropped[i]) == 0;
    if (strncmp(word, "-l", 2) == 0)
      add_library(r, &libraries, word);
    else if (!drop)
      ft_strbuf_printf(&kept, "%s ", word);
  }
  FT_OOM_IF(kept.failed || libraries.failed, error);
  r->libraries = libraries.text;
  r->compiler = compiler;
  r->flags = kept.text;
  return FT_OK;
}

static ft_status find_kernel(repro *r, ft_error *error) {
  FT_TRY(ft_schedule_parse(r->row->schedule, r->arena, &r->schedule, error));
  r->source = r->out->trial.source;
  if (!read_banner(r, r->source)) {
    FT_TRY(emit(r, error));
    if (!read_banner(r, r->source))
      FT_FAIL(error, FT_INTERNAL, "the banner of trial %lld says no launch",
              (long long)r->row->trial_id);
  }
  if (!read_entry(r))
    FT_FAIL(error, FT_CORRUPT, "the source of trial %lld has no entry",
            (long long)r->row->trial_id);
  int64_t threads = ft_schedule_get(&r->schedule, "threads", 1);
  r->threads = threads >= 1 && threads <= 256 ? (uint32_t)threads : 1;
  return program_flags(r, error);
}

// ---- inputs ---------------------------------------------------------------------------

static ft_status use_file(repro *r, const ft_input_file *file, ft_error *error) {
  const ft_graph *graph = r->workload.group.graph;
  for (uint32_t i = 0; i < r->workload.group.input_count; i++) {
    const ft_value *v = &graph->value[r->workload.group.input[i]];
    if (strcmp(v->name, file->name) != 0) continue;
    if (file->tensor.dtype != v->dtype || !ft_shape_equal(&file->tensor.shape, &v->shape))
      FT_FAIL(error, FT_INVALID_ARGUMENT, "'%s' is %s %s, the file has %s %s", file->name,
              ft_dtype_text(v->dtype), ft_shape_text(&v->shape, r->arena),
              ft_dtype_text(file->tensor.dtype),
              ft_shape_text(&file->tensor.shape, r->arena));
    r->input[i] = file->tensor;
    r->is_given[i] = true;
    return FT_OK;
  }
  FT_FAIL(error, FT_INVALID_ARGUMENT, "the kernel has no input '%s': they are input_0 ..",
          file->name);
}

// The key was taken of the bytes that the trial read (measured_runner.c).
static ft_status find_constant(repro *r, uint32_t i, const char *name, const char *key,
                               ft_error *error) {
  const ft_graph *model = r->options->model;
  const ft_value *want = &r->workload.group.graph->value[r->workload.group.input[i]];
  for (uint32_t k = 0; k < model->value_count; k++) {
    const ft_value *v = &model->value[k];
    char text[17];
    ft_tensor data;
    if (v->role != FT_ROLE_CONSTANT || v->root != k || v->dtype != want->dtype ||
        !ft_shape_equal(&v->shape, &want->shape))
      continue;
    FT_TRY(ft_graph_constant_data(model, k, r->arena, &data, error));
    snprintf(text, sizeof text, "%016llx",
             (unsigned long long)ft_content_key(data.data, data.bytes));
    if (strcmp(text, key) != 0) continue;
    r->input[i] = data;
    r->is_given[i] = true;
    return FT_OK;
  }
  FT_FAIL(error, FT_INVALID_ARGUMENT,
          "the model has no constant with the bytes of '%.80s', which trial %lld read",
          name, (long long)r->row->trial_id);
}

static ft_status use_constants(repro *r, const json_t *list, ft_error *error) {
  size_t at;
  json_t *item;
  json_array_foreach(list, at, item) {
    json_int_t i = json_integer_value(json_object_get(item, "input"));
    const char *name = json_string_value(json_object_get(item, "name")),
               *key = json_string_value(json_object_get(item, "key"));
    if (i < 0 || i >= (json_int_t)r->workload.group.input_count || !key) continue;
    if (r->options->model)
      FT_TRY(find_constant(r, (uint32_t)i, name ? name : "?", key, error));
    else
      r->out->drawn_constants++;
  }
  return FT_OK;
}

static ft_status read_constants(repro *r, ft_error *error) {
  json_t *env = json_loads(r->row->env, 0, NULL);
  ft_status status = use_constants(r, json_object_get(env, "constants"), error);
  json_decref(env);
  return status;
}

static ft_status check_dtype(const ft_graph *graph, uint32_t value, ft_error *error) {
  ft_dtype dtype = graph->value[value].dtype;
  if (dtype != FT_F16 && dtype != FT_BF16) return FT_OK;
  FT_FAIL(error, FT_UNSUPPORTED, "'%s' is %s, which C has not", graph->value[value].name,
          ft_dtype_text(dtype));
}

static ft_status make_inputs(repro *r, ft_error *error) {
  const ft_group *group = &r->workload.group;
  for (uint32_t i = 0; i < group->input_count; i++)
    FT_TRY(check_dtype(group->graph, group->input[i], error));
  for (uint32_t i = 0; i < group->output_count; i++)
    FT_TRY(check_dtype(group->graph, group->output[i], error));
  r->recipe = FT_NEW_ARRAY(r->arena, ft_input_recipe, group->input_count);
  r->input = FT_NEW_ARRAY(r->arena, ft_tensor, group->input_count);
  r->is_given = FT_NEW_ARRAY(r->arena, bool, group->input_count);
  FT_OOM_IF(!r->recipe || !r->input || !r->is_given, error);
  FT_TRY(ft_group_input_recipes(group, r->row->seed, r->arena, r->recipe, error));
  FT_TRY(ft_group_random_inputs(group, r->row->seed, r->arena, r->input, error));
  FT_TRY(read_constants(r, error));
  for (uint32_t i = 0; i < r->options->file_count; i++)
    FT_TRY(use_file(r, &r->options->file[i], error));
  return FT_OK;
}

// ---- files ----------------------------------------------------------------------------

static ft_status write_file(repro *r, const char *name, const void *data, size_t size,
                            ft_error *error) {
  const char *path = ft_arena_printf(r->arena, "%s/%s", r->out->folder, name);
  FT_OOM_IF(!path, error);
  r->out->file[r->out->file_count++] = name;
  return ft_file_write(path, data, size, error);
}

static ft_status write_text(repro *r, const char *name, const ft_strbuf *text,
                            ft_error *error) {
  FT_OOM_IF(text->failed, error);
  return write_file(r, name, text->text, text->length, error);
}

static ft_status write_inputs(repro *r, ft_error *error) {
  for (uint32_t i = 0; i < r->workload.group.input_count; i++) {
    if (!r->is_given[i]) continue;
    const char *name = ft_arena_printf(r->arena, "input_%u.bin", i);
    FT_OOM_IF(!name, error);
    FT_TRY(write_file(r, name, r->input[i].data, r->input[i].bytes, error));
  }
  return FT_OK;
}

// As repro_element of the program reads them: this machine's own layout.
static ft_status write_expected(repro *r, ft_error *error) {
  const ft_group *group = &r->workload.group;
  ft_group_check *check;
  FT_TRY(ft_group_check_create(group, r->input, r->row->seed, FULL_ELEMENTS,
                               reference_limit_ns, r->arena, &check, error));
  for (uint32_t i = 0; i < group->output_count; i++) {
    ft_checked_element *element;
    FT_TRY(ft_group_check_elements(check, i, r->arena, &element, &r->checked[i], error));
    const char *name = ft_arena_printf(r->arena, "expected_%u.bin", i);
    FT_OOM_IF(!name, error);
    FT_TRY(write_file(r, name, element, r->checked[i] * sizeof *element, error));
    r->out->checked += r->checked[i];
  }
  return FT_OK;
}

// ---- the program ----------------------------------------------------------------------

// One line of a comment: nothing that could end it or begin another.
static const char *comment_text(repro *r, const char *text) {
  char *copy = ft_arena_strdup(r->arena, text);
  for (char *p = copy; p && *p; p++)
    if ((unsigned char)*p < ' ' || *p == '\\') *p = ' ';
  return copy ? copy : "?";
}

static char kind_letter(ft_dtype dtype) {
  const char *text = ft_dtype_text(dtype);
  return text[0];  // f, i, u, b
}

static void add_tensor(repro *r, ft_strbuf *text, bool is_input, uint32_t i) {
  const ft_group *group = &r->workload.group;
  const ft_value *v = &group->graph->value[is_input ? group->input[i] : group->output[i]];
  ft_input_recipe recipe = {.elements = 0};
  uint64_t hash = 0;
  if (is_input) {
    recipe = r->recipe[i];
    hash = ft_hash64(FT_HASH64_SEED, r->input[i].data, r->input[i].bytes);
  }
  const char *kind = is_input ? "input" : "output";
  ft_strbuf_printf(text, "    {\"%s %u\", '%c', %d, %lld, %a, %a, %lluu, 0x%llxu, ", kind,
                   i, kind_letter(v->dtype), (int)ft_dtype_bytes(v->dtype),
                   (long long)ft_shape_elements(&v->shape), recipe.low, recipe.high,
                   (unsigned long long)recipe.seed, (unsigned long long)hash);
  if (!is_input)
    ft_strbuf_printf(text, "\"expected_%u.bin\", %u},", i, r->checked[i]);
  else if (r->is_given[i])
    ft_strbuf_printf(text, "\"input_%u.bin\", 0},", i);
  else
    ft_strbuf_add(text, "NULL, 0},");
  ft_strbuf_printf(text, "  // %s %s\n", ft_dtype_text(v->dtype),
                   ft_shape_text(&v->shape, r->arena));
}

static uint64_t flush_bytes(const repro *r) {
  json_t *env = json_loads(r->row->env, 0, NULL);
  json_int_t bytes = json_integer_value(json_object_get(env, "flush_bytes"));
  json_decref(env);
  return bytes > 0 && bytes <= 1 << 30 ? (uint64_t)bytes : DEFAULT_FLUSH;
}

static void add_tables(repro *r, ft_strbuf *text) {
  const ft_group *group = &r->workload.group;
  bool hangs = strcmp(r->row->outcome, ft_outcome_text(FT_OUTCOME_TIMEOUT)) == 0;
  ft_strbuf_printf(
      text,
      "\n// ---- its launch and its buffers "
      "---------------------------------------------------\n"
      "#include <stddef.h>\n#define REPRO_ENTRY %s\n"
      "#define REPRO_TRIAL_NS %llu\n"
      "#define REPRO_SCRATCH ((size_t)%llu)\n#define REPRO_WORKSPACE ((size_t)%llu)\n"
      "#define REPRO_FLUSH ((size_t)%llu)\n"
      "enum {\n  REPRO_INPUTS = %u,\n  REPRO_OUTPUTS = %u,\n"
      "  REPRO_THREADS = %u,\n  REPRO_LIMIT_S = %d,\n};\n"
      "#define REPRO_BLOCKS %uu\n\n",
      r->entry, (unsigned long long)r->row->time.median_ns,
      (unsigned long long)r->scratch_bytes, (unsigned long long)r->workspace_bytes,
      (unsigned long long)flush_bytes(r), group->input_count, group->output_count,
      r->threads, hangs ? 5 : 60, r->blocks);
  ft_strbuf_add(
      text,
      "typedef struct repro_tensor {\n  const char *name;\n"
      "  char kind;  // f, i, u, b\n  int size;   // bytes of an element\n"
      "  int64_t elements;\n  double low, high;  // drawn from [low, high)\n"
      "  uint64_t seed, hash;\n  const char *file;  // its bytes, or what is expected\n"
      "  int64_t checked;\n} repro_tensor;\n\n"
      "static const repro_tensor repro_input[] = {\n");
  for (uint32_t i = 0; i < group->input_count; i++) add_tensor(r, text, true, i);
  if (group->input_count == 0) ft_strbuf_add(text, "    {0},\n");
  ft_strbuf_add(text, "};\nstatic const repro_tensor repro_output[] = {\n");
  for (uint32_t i = 0; i < group->output_count; i++) add_tensor(r, text, false, i);
  ft_strbuf_add(text, "};\n");
}

static ft_status write_program(repro *r, ft_error *error) {
  ft_strbuf text = ft_strbuf_init(r->arena);
  ft_strbuf_printf(&text,
                   "// Trial %lld of fusetune " FT_VERSION
                   ", as a program of its own: %s, %s.\n// %s\n#define _GNU_SOURCE\n"
                   "// ---- the kernel, as %s "
                   "-----------------------------------------------------------\n",
                   (long long)r->row->trial_id, comment_text(r, r->row->tactic),
                   comment_text(r, r->row->outcome), comment_text(r, r->out->command),
                   r->out->is_emitted ? "emitted" : "stored");
  ft_strbuf_add(&text, r->source);
  add_tables(r, &text);
  ft_strbuf_addn(&text, ft_repro_harness, sizeof ft_repro_harness - 1);
  return write_text(r, "repro.c", &text, error);
}

// ---- what people read -----------------------------------------------------------------

static void add_quoted(ft_strbuf *text, const char *title, const char *quoted) {
  if (!*quoted) return;
  ft_strbuf_printf(text, "\n%s:\n\n", title);
  size_t shown = 0;
  for (const char *line = quoted; *line && shown < LOG_SHOWN;) {
    size_t length = strcspn(line, "\n");
    ft_strbuf_printf(text, "    %.*s\n", (int)(length < 400 ? length : 400), line);
    shown += length + 1;
    line += length + (line[length] == '\n');
  }
}

static void add_inputs(repro *r, ft_strbuf *text) {
  const ft_group *group = &r->workload.group;
  for (uint32_t i = 0; i < group->input_count; i++) {
    const ft_value *v = &group->graph->value[group->input[i]];
    ft_strbuf_printf(text, "- input %u: %s %s, ", i, ft_dtype_text(v->dtype),
                     ft_shape_text(&v->shape, r->arena));
    if (r->is_given[i])
      ft_strbuf_printf(text, "from input_%u.bin\n", i);
    else
      ft_strbuf_printf(text, "uniform in [%g, %g), seed %llu\n", r->recipe[i].low,
                       r->recipe[i].high, (unsigned long long)r->recipe[i].seed);
  }
  for (uint32_t i = 0; i < group->output_count; i++) {
    const ft_value *v = &group->graph->value[group->output[i]];
    ft_strbuf_printf(text, "- output %u: %s %s, %u elements compared\n", i,
                     ft_dtype_text(v->dtype), ft_shape_text(&v->shape, r->arena),
                     r->checked[i]);
  }
}

static ft_status write_readme(repro *r, ft_error *error) {
  char hash[FT_HASH_TEXT + 1];
  ft_hash_text(&r->row->workload, hash);
  ft_strbuf text = ft_strbuf_init(r->arena);
  ft_strbuf_printf(
      &text,
      "# Trial %lld: %s\n\nTactic %s, schedule `%s`, workload %s.\n\n"
      "In this folder:\n\n    %s\n\n"
      "Exit code 0: right, and its time; 1: wrong, and where; a crash ends it by "
      "its signal.\nWhat the trial could not compile, this command cannot either.\n"
      "%s\n",
      (long long)r->row->trial_id, r->row->outcome, r->row->tactic, r->row->schedule,
      hash, r->out->command,
      r->out->is_emitted ? "\nThe store has no source of this trial: the kernel "
                           "was emitted anew.\n"
                         : "");
  add_inputs(r, &text);
  if (r->out->drawn_constants)
    ft_strbuf_printf(
        &text,
        "\n%u of the inputs were constants of the model. Their bytes are not in "
        "the store, so they are\ndrawn; `fusetune repro %lld --model MODEL` takes "
        "them from the model.\n",
        r->out->drawn_constants, (long long)r->row->trial_id);
  ft_strbuf_add(&text,
                "\nexpected_N.bin: per element index (int64), value and tolerance "
                "(double), value of an\ninteger (int64).\n");
  add_quoted(&text, "The trial ended with", r->row->error);
  add_quoted(&text, "Its worst element", r->row->worst);
  add_quoted(&text, "The compiler said", r->out->trial.log);
  return write_text(r, "README.md", &text, error);
}

// ---- all of it ------------------------------------------------------------------------

static ft_status name_folder(repro *r, ft_error *error) {
  enum { PROGRAM_AND_README = 2 };
  r->out->folder = r->options->folder ? r->options->folder
                                      : ft_arena_printf(r->arena, "repro-%lld",
                                                        (long long)r->row->trial_id);
  r->out->command =
      ft_arena_printf(r->arena, "%s %s-g -pthread -o repro repro.c -lm%s && ./repro",
                      r->compiler, r->flags, r->libraries);
  const ft_group *group = &r->workload.group;
  r->checked = FT_NEW_ARRAY(r->arena, uint32_t, group->output_count);
  r->out->file =
      FT_NEW_ARRAY(r->arena, const char *,
                   group->input_count + group->output_count + PROGRAM_AND_README);
  FT_OOM_IF(!r->out->folder || !r->out->command || !r->checked || !r->out->file, error);
  return ft_folder_make(r->out->folder, error);
}

ft_status ft_session_repro(ft_session *session, const ft_repro_options *options,
                           ft_arena *arena, ft_repro_result *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  repro r = {.session = session,
             .options = options,
             .arena = arena,
             .out = out,
             .row = &out->trial.row};
  ft_graph *graph;
  FT_TRY(ft_store_trial_named(session->store, options->trial, arena, &out->trial, error));
  FT_TRY(ft_workload_decode(out->trial.encoding, out->trial.encoding_bytes, arena, &graph,
                            &r.workload, error));
  FT_TRY(find_kernel(&r, error));
  FT_TRY(make_inputs(&r, error));
  FT_TRY(name_folder(&r, error));
  FT_TRY(write_inputs(&r, error));
  FT_TRY(write_expected(&r, error));
  FT_TRY(write_program(&r, error));
  return write_readme(&r, error);
}
