#include <stdio.h>

#include "cli/cli.h"
#include "core/file.h"
#include "graph/tensor_file.h"

// ---- printing -------------------------------------------------------------------------

static json_t *shape_json(const ft_shape *shape) {
  json_t *list = json_array();
  for (int k = 0; k < shape->rank; k++)
    json_array_append_new(list, json_integer((json_int_t)shape->dim[k]));
  return list;
}

// JSON has no infinity: null says "not a number of the kind JSON can hold".
static json_t *real(double value) {
  json_t *json = json_real(value);
  return json ? json : json_null();
}

static json_t *output_json(const ft_cli_context *c, const ft_run_result *r, uint32_t i) {
  json_t *o = json_pack("{s:s, s:s, s:o}", "name", c->model.graph->output[i].name,
                        "dtype", ft_dtype_text(r->output[i].dtype), "shape",
                        shape_json(&r->output[i].shape));
  if (!o || i >= r->dense_count) return o;
  const ft_comparison *found = &r->dense[i].comparison;
  json_object_set_new(o, "max_abs_error", real(found->max_abs_error));
  json_object_set_new(o, "max_error_ratio", real(found->max_ratio));
  json_object_set_new(o, "uncertain", json_integer((json_int_t)found->uncertain));
  json_object_set_new(o, "drift", real(ft_comparison_drift(found)));
  return o;
}

static json_t *outputs_json(const ft_cli_context *c, const ft_run_result *r) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < r->output_count; i++)
    json_array_append_new(list, output_json(c, r, i));
  return list;
}

static json_t *verified_json(const ft_verified *verified, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; i++) {
    const ft_comparison *found = &verified[i].comparison;
    json_array_append_new(
        list, json_pack("{s:s, s:o, s:o, s:I, s:I, s:o}", "name", verified[i].name,
                        "max_abs_error", real(found->max_abs_error), "max_error_ratio",
                        real(found->max_ratio), "compared", (json_int_t)found->compared,
                        "uncertain", (json_int_t)found->uncertain, "drift",
                        real(ft_comparison_drift(found))));
  }
  return list;
}

static json_t *run_json(const ft_cli_context *c, const ft_run_result *r) {
  json_t *o = json_pack("{s:s, s:b, s:s, s:s, s:o}", "model", c->options.model, "tuned",
                        (int)r->is_plan_tuned, "outcome", ft_outcome_text(r->outcome),
                        "failure", r->failure, "outputs", outputs_json(c, r));
  if (!o || r->method == FT_VERIFY_NONE) return o;
  json_object_set_new(o, "verified", json_boolean(r->is_verified));
  json_object_set_new(o, "method", json_string(ft_verify_method_text(r->method)));
  json_object_set_new(o, "kernels", verified_json(r->kernel, r->kernel_count));
  return o;
}

static void print_verified(const ft_verified *v) {
  const ft_comparison *found = &v->comparison;
  printf("  %s: %lld elements, max abs error %.3g, %.3g of the tolerance: %s\n", v->name,
         (long long)found->compared, found->max_abs_error, found->max_ratio,
         found->max_ratio <= 1 ? "right" : "WRONG");
  if (found->uncertain)
    printf("    %lld of them too deep for an error bound: within %.2g of the RMS\n",
           (long long)found->uncertain, ft_comparison_drift(found));
}

// Of the kernels the worst, and all that are wrong.
static void print_kernels(const ft_run_result *r) {
  uint32_t worst = 0;
  for (uint32_t i = 0; i < r->kernel_count; i++) {
    double ratio = r->kernel[i].comparison.max_ratio;
    if (ratio > r->kernel[worst].comparison.max_ratio) worst = i;
    if (!(ratio <= 1)) print_verified(&r->kernel[i]);
  }
  if (r->kernel_count == 0) return;
  printf("  %u kernels on what they read; the worst:\n", r->kernel_count);
  print_verified(&r->kernel[worst]);
}

static void print_run(const ft_cli_context *c, const ft_run_result *r) {
  printf("ran %s: %s%s%s\n",
         r->is_plan_tuned ? "the stored plan" : "unfused (no stored plan)",
         ft_outcome_text(r->outcome), *r->failure ? ": " : "", r->failure);
  for (uint32_t i = 0; i < r->output_count; i++)
    printf("  output '%s': %s %s\n", c->model.graph->output[i].name,
           ft_dtype_text(r->output[i].dtype),
           ft_shape_text(&r->output[i].shape, c->arena));
  if (r->method == FT_VERIFY_NONE || r->outcome != FT_OUTCOME_OK) return;
  printf("%s, %s:\n", r->is_verified ? "verified" : "WRONG",
         ft_verify_method_text(r->method));
  for (uint32_t i = 0; i < r->dense_count; i++) print_verified(&r->dense[i]);
  print_kernels(r);
}

// ---- the verb -------------------------------------------------------------------------

static ft_status write_outputs(const ft_cli_context *c, const ft_run_result *r,
                               ft_error *error) {
  if (!c->options.outputs || r->output_count == 0) return FT_OK;
  FT_TRY(ft_folder_make(c->options.outputs, error));
  for (uint32_t i = 0; i < r->output_count; i++) {
    const char *path =
        ft_arena_printf(c->arena, "%s/out_%02u.npy", c->options.outputs, i);
    FT_OOM_IF(!path, error);
    FT_TRY(ft_tensor_file_write(path, &r->output[i], error));
  }
  return FT_OK;
}

static int run(ft_cli_context *c) {
  ft_run_options options = {.seed = c->options.seed,
                            .file_count = c->options.file_count,
                            .file = c->file,
                            .range_count = c->options.range_count,
                            .range = c->options.range,
                            .verify = c->options.verify};
  ft_run_result result;
  ft_error error;
  ft_status status =
      ft_session_run(&c->session, &c->model, &options, c->arena, &result, &error);
  if (status == FT_OK) status = write_outputs(c, &result, &error);
  if (status != FT_OK) return ft_cli_fail(&c->options, &c->model, &error);
  bool is_right = result.outcome == FT_OUTCOME_OK &&
                  (result.method == FT_VERIFY_NONE || result.is_verified);
  int code = is_right ? FT_EXIT_OK : FT_EXIT_FAILED;
  if (!c->options.json) {
    print_run(c, &result);
    return code;
  }
  int printed = ft_cli_print_json(run_json(c, &result));
  return printed == FT_EXIT_OK ? code : printed;
}

int ft_verb_run(int argc, char **argv) {
  ft_cli_context c = {0};
  int code =
      ft_cli_parse("run",
                   "verify dim input input-file input-range outputs " FT_CONSTRAINTS
                   " seed target threads allow store cache json",
                   true, argc, argv, &c.options);
  if (code >= 0) return code;
  code = ft_cli_open(&c);
  if (code < 0) code = ft_target_is_gpu(&c.session.target) ? ft_cli_run_sim(&c) : run(&c);
  ft_cli_close(&c);
  return code;
}
