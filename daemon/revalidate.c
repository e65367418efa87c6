#include "daemon/revalidate.h"

#include <string.h>

#include "daemon/narrowed.h"

enum { DEFAULT_TOP = 8 };

ft_status ft_session_revalidate(ft_session *session, const ft_model *model,
                                const ft_revalidate_options *options, ft_arena *arena,
                                ft_revalidation *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  out->top = options->top ? options->top : DEFAULT_TOP;
  FT_TRY(ft_store_old_key(session->store, model->graph, &session->target,
                          FT_CODEGEN_VERSION, arena, &out->from, error));
  ft_narrowed narrowed = {session, out->from, out->top};
  ft_builder builder = ft_narrowed_builder(&narrowed);
  ft_tune_options tune = options->tune;
  tune.builder = &builder;
  return ft_session_tune(session, model, &tune, arena, &out->answer, error);
}

json_t *ft_revalidation_json(const ft_revalidation *r) {
  json_t *o = ft_answer_json(&r->answer);
  if (!o) return NULL;
  json_object_set_new(
      o, "revalidated",
      json_pack("{s:s, s:s, s:I, s:I}", "target", r->from.target, "differs",
                r->from.differs, "codegen", (json_int_t)r->from.codegen_version, "top",
                (json_int_t)r->top));
  return o;
}
