// Invariants:
//  1. ft_onnx_open has accepted the file's structure before anything here runs.
//  2. Names are resolved before anything is lowered: produced once, and ordered.
//  3. Shapes are concrete from the first value on; no shape or count from the file is
//     used for an allocation that the file's own size does not pay for.
//  4. What is unsupported is collected to the end; what is wrong ends the import.
#include "graph/import.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/strbuf.h"
#include "graph/importer.h"

enum { MIN_OPSET = 6, MAX_OPSET = 24, MIN_IR_VERSION = 3, MAX_KINDS_SHOWN = 24 };

// ---- what is unsupported, as text ---------------------------------------------------

static bool same_kind(const ft_unsupported *a, const ft_unsupported *b) {
  return strcmp(a->op, b->op) == 0 && strcmp(a->domain, b->domain) == 0 &&
         strcmp(a->reason, b->reason) == 0 && a->opset == b->opset;
}

static void describe_kind(ft_strbuf *text, const ft_unsupported *first, uint32_t count) {
  if (text->length) ft_strbuf_add(text, "; ");
  ft_strbuf_printf(text, "%s%s%s", first->domain, first->domain[0] ? "::" : "",
                   first->op);
  if (first->opset) ft_strbuf_printf(text, " (opset %lld)", (long long)first->opset);
  ft_strbuf_printf(text, " '%s'", first->node);
  if (count > 1) ft_strbuf_printf(text, " and %u more", count - 1);
  ft_strbuf_printf(text, ": %s", first->reason);
}

// Nodes of one kind are one entry of the text; the report has each.
static ft_status fail_unsupported(const ft_importer *im, ft_error *error) {
  const ft_unsupported *list = im->report->unsupported;
  uint32_t total = im->report->unsupported_count, kinds[MAX_KINDS_SHOWN], kind_count = 0;
  uint32_t counts[MAX_KINDS_SHOWN] = {0}, shown = 0;
  for (uint32_t i = 0; i < total; i++) {
    uint32_t k = 0;
    while (k < kind_count && !same_kind(&list[kinds[k]], &list[i])) k++;
    if (k == MAX_KINDS_SHOWN) continue;
    if (k == kind_count) kinds[kind_count++] = i;
    counts[k]++;
    shown++;
  }
  ft_strbuf text = ft_strbuf_init(im->arena);
  for (uint32_t k = 0; k < kind_count; k++)
    describe_kind(&text, &list[kinds[k]], counts[k]);
  if (shown < total) ft_strbuf_printf(&text, "; and %u more", total - shown);
  FT_FAIL(error, FT_UNSUPPORTED, "%u unsupported: %s", total, text.text);
}

// ---- versions -----------------------------------------------------------------------

static bool uses_default_domain(const ft_onnx_model *model) {
  for (uint32_t i = 0; i < model->node_count; i++)
    if (model->node[i].domain.size == 0) return true;
  return false;
}

static ft_status check_versions(const ft_onnx_model *model, ft_error *error) {
  if (model->ir_version < MIN_IR_VERSION)
    FT_FAIL(error, FT_UNSUPPORTED, "IR version %lld: %d or newer is read",
            (long long)model->ir_version, MIN_IR_VERSION);
  if (model->sparse_count)
    FT_FAIL(error, FT_UNSUPPORTED, "%u sparse initializers", model->sparse_count);
  for (uint32_t i = 0; i < model->opset_count; i++)
    for (uint32_t k = 0; k < i && model->opset_count < 1000; k++)
      if (ft_span_equal(model->opset[i].domain, model->opset[k].domain) &&
          model->opset[i].version != model->opset[k].version)
        FT_FAIL(error, FT_REFUSED, "domain '%.*s' is imported at opset %lld and %lld",
                FT_SPAN_SHOW(model->opset[i].domain), (long long)model->opset[k].version,
                (long long)model->opset[i].version);
  int64_t opset = ft_onnx_opset_of(model, (ft_span){0});
  if (opset && uses_default_domain(model) && (opset < MIN_OPSET || opset > MAX_OPSET))
    FT_FAIL(error, FT_UNSUPPORTED, "opset %lld of ai.onnx: %d to %d are read",
            (long long)opset, MIN_OPSET, MAX_OPSET);
  return FT_OK;
}

// ---- the import ---------------------------------------------------------------------

static ft_status import(ft_importer *im, ft_span file, ft_error *error) {
  FT_TRY(ft_onnx_open(file, im->arena, &im->model, error));
  FT_TRY(check_versions(&im->model, error));
  im->shared->items = im->model.items;
  FT_TRY(ft_import_resolve(im, error));
  char *name = ft_span_copy(im->model.name, im->arena);
  FT_OOM_IF(!name, error);
  FT_TRY(ft_graph_create(im->arena, name, &im->graph, error));
  FT_TRY(ft_import_inputs(im, error));
  FT_TRY(ft_import_nodes(im, error));
  FT_TRY(ft_import_outputs(im, error));
  if (im->report->unsupported_count) return fail_unsupported(im, error);
  FT_TRY(ft_import_encode(im, error));
  return ft_graph_finish(im->graph, error);
}

void ft_import_clean_text(ft_error *error) {
  if (!error) return;
  for (char *at = error->text; *at; at++)
    if ((unsigned char)*at < 0x20 || *at == 0x7f) *at = '?';
}

ft_status ft_import_model_read(const ft_import_model *source,
                               const ft_import_options *options, ft_arena *arena,
                               ft_graph **out, ft_import_report *report,
                               ft_error *error) {
  static const ft_import_options none = {0};
  ft_external_files files = ft_external_files_init(source->folder, arena);
  ft_import_shared shared = {0};
  ft_importer im = {.arena = arena,
                    .options = options ? options : &none,
                    .files = &files,
                    .weight = source->weight,
                    .report = report,
                    .shared = &shared};
  *out = NULL;
  *report = (ft_import_report){0};
  if (source->size == 0) FT_FAIL(error, FT_REFUSED, "the model is empty");
  ft_status status = import(&im, (ft_span){source->data, source->size}, error);
  if (status == FT_OK)
    *out = im.graph;
  else
    ft_import_clean_text(error);
  return status;
}

ft_status ft_import_onnx_bytes(const void *data, size_t size, const char *folder,
                               const ft_import_options *options, ft_arena *arena,
                               ft_graph **out, ft_import_report *report,
                               ft_error *error) {
  ft_import_model source = {.data = data, .size = size, .folder = folder};
  return ft_import_model_read(&source, options, arena, out, report, error);
}

// ---- files --------------------------------------------------------------------------

typedef struct mapping {
  void *data;
  size_t size;
} mapping;

static void unmap(void *ctx) {
  mapping *map = ctx;
  if (map->data) munmap(map->data, map->size);
}

static ft_status map_descriptor(int fd, const char *path, mapping *map, ft_error *error) {
  struct stat st;
  if (fstat(fd, &st) != 0) FT_FAIL(error, FT_IO, "'%s': %s", path, strerror(errno));
  if (!S_ISREG(st.st_mode)) FT_FAIL(error, FT_IO, "'%s' is not a regular file", path);
  if (st.st_size == 0) FT_FAIL(error, FT_REFUSED, "'%s' is empty", path);
  void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) FT_FAIL(error, FT_IO, "'%s': %s", path, strerror(errno));
  *map = (mapping){data, (size_t)st.st_size};
  return FT_OK;
}

static ft_status map_file(const char *path, ft_arena *arena, mapping **out,
                          ft_error *error) {
  mapping *map = FT_NEW(arena, mapping);
  FT_OOM_IF(!map || ft_arena_defer(arena, unmap, map), error);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    FT_FAIL(error, errno == ENOENT ? FT_NOT_FOUND : FT_IO, "'%s': %s", path,
            strerror(errno));
  ft_status status = map_descriptor(fd, path, map, error);
  close(fd);
  *out = map;
  return status;
}

const char *ft_import_folder_of(const char *path, ft_arena *arena) {
  const char *slash = strrchr(path, '/');
  if (!slash) return ".";
  return ft_arena_strndup(arena, path, slash == path ? 1 : (size_t)(slash - path));
}

ft_status ft_import_onnx(const char *path, const ft_import_options *options,
                         ft_arena *arena, ft_graph **out, ft_import_report *report,
                         ft_error *error) {
  *out = NULL;
  *report = (ft_import_report){0};
  mapping *map;
  FT_TRY(map_file(path, arena, &map, error));
  const char *folder = ft_import_folder_of(path, arena);
  FT_OOM_IF(!folder, error);
  ft_status status = ft_import_onnx_bytes(map->data, map->size, folder, options, arena,
                                          out, report, error);
  if (status != FT_OK) ft_error_prefix(error, "%s", path);
  return status;
}
