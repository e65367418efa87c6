#include "daemon/export_plan.h"

#include <string.h>

#include "core/file.h"

typedef struct writer {
  ft_session *session;
  const char *folder;
  ft_arena *arena;
  uint32_t files;
} writer;

static ft_status put(writer *w, const char *name, const void *data, size_t size,
                     ft_error *error) {
  const char *path = ft_arena_printf(w->arena, "%s/%s", w->folder, name);
  FT_OOM_IF(!path, error);
  FT_TRY(ft_file_write(path, data, size, error));
  w->files++;
  return FT_OK;
}

// Nothing for a zero hash: it was never made.
static ft_status put_artifact(writer *w, uint32_t group, const char *ending,
                              const ft_hash *hash, ft_error *error) {
  const void *data;
  size_t size;
  if (ft_hash_is_zero(hash)) return FT_OK;
  FT_TRY(ft_store_artifact_read(w->session->store, hash, w->arena, &data, &size, error));
  const char *name = ft_arena_printf(w->arena, "kernel_%02u.%s", group, ending);
  FT_OOM_IF(!name, error);
  return put(w, name, data, size, error);
}

static ft_status put_kernels(writer *w, const ft_plan *plan, ft_error *error) {
  bool is_gpu = ft_target_is_gpu(plan->target);
  for (uint32_t i = 0; i < plan->group_count; i++) {
    const ft_plan_group *g = &plan->group[i];
    FT_TRY(put_artifact(w, i, is_gpu ? "cu" : "c", &g->source_hash, error));
    FT_TRY(put_artifact(w, i, is_gpu ? "cubin" : "so", &g->binary_hash, error));
  }
  return FT_OK;
}

ft_status ft_export_plan(ft_session *s, const ft_model *model, const char *folder,
                         ft_arena *arena, uint32_t *out_files, ft_error *error) {
  writer w = {.session = s, .folder = folder, .arena = arena};
  const char *body;
  ft_plan plan;
  *out_files = 0;
  FT_TRY(ft_store_served_plan(s->store, model->graph, &s->target, arena, &body, error));
  FT_TRY(ft_plan_parse(body, model->graph, &s->target, arena, &plan, error));
  FT_TRY(ft_folder_make(folder, error));
  FT_TRY(put_kernels(&w, &plan, error));
  FT_TRY(put(&w, "plan.json", body, strlen(body), error));
  *out_files = w.files;
  return FT_OK;
}
