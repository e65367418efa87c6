#include "graph/dense.h"

#include <string.h>

#include "graph/accumulator.h"

ft_step ft_step_of(const ft_graph *graph, const ft_primitive *primitive) {
  const ft_value *result = &graph->value[primitive->output];
  ft_step step = {.op = primitive->op,
                  .attr = primitive->attr,
                  .count = primitive->input_count,
                  .dtype = result->dtype,
                  .shape = result->shape};
  for (uint32_t i = 0; i < step.count; i++) {
    step.in_shape[i] = graph->value[primitive->input[i]].shape;
    step.in_dtype[i] = graph->value[primitive->input[i]].dtype;
  }
  return step;
}

ft_dtype ft_step_operand_dtype(const ft_step *step) {
  return step->in_dtype[step->count - 1];
}

ft_remap ft_step_remap(const ft_step *step, uint32_t i) {
  return step->op == FT_OP_TRANSPOSE
             ? ft_remap_transpose(&step->in_shape[i], step->attr.perm)
             : ft_remap_broadcast(&step->in_shape[i], &step->shape);
}

// ---- elementwise and remaps -----------------------------------------------------

typedef struct workspace {
  ft_chunk operand[3];
  double scale[FT_PLANE_CHUNK];
  int64_t index[FT_PLANE_CHUNK];
} workspace;

static ft_cells read_operand(const ft_plane *plane, const ft_remap *remap, int64_t start,
                             size_t count, ft_chunk *chunk, int64_t *index) {
  if (remap->is_identity) return ft_plane_read(plane, start, count, chunk);
  ft_cells cells = {chunk->value, chunk->scale, chunk->integer};
  ft_remap_run(remap, start, count, index);
  ft_plane_gather(plane, index, count, &cells);
  return cells;
}

// Integer planes have a scale column only once an element is uncertain.
static ft_status keep_doubts(ft_plane *out, int64_t start, const double *scale,
                             size_t count, ft_error *error) {
  bool any = out->scale != NULL;
  for (size_t j = 0; j < count && !any; j++) any = scale[j] > 0;
  if (!any) return FT_OK;
  if (!out->scale) {
    size_t bytes = (size_t)out->elements * sizeof *out->scale;
    out->scale = ft_allocate(ft_allocator_system(), bytes, 64);
    FT_OOM_IF(!out->scale, error);
    memset(out->scale, 0, bytes);
  }
  memcpy(out->scale + start, scale, count * sizeof *scale);
  return FT_OK;
}

static ft_status run_chunks(const ft_step *step, const ft_plane *const *in,
                            workspace *work, ft_plane *out, ft_error *error) {
  ft_elementwise *kernel = ft_semantics_find(step->op, ft_step_operand_dtype(step));
  ft_semantics_call call = {.from = ft_step_operand_dtype(step), .to = step->dtype};
  bool is_float = ft_dtype_is_float(step->dtype);
  ft_remap remap[3];
  for (uint32_t i = 0; i < step->count; i++) remap[i] = ft_step_remap(step, i);
  for (int64_t start = 0; start < out->elements; start += FT_PLANE_CHUNK) {
    int64_t left = out->elements - start;
    call.count = left < FT_PLANE_CHUNK ? (size_t)left : FT_PLANE_CHUNK;
    for (uint32_t i = 0; i < step->count; i++)
      call.in[i] = read_operand(in[i], &remap[i], start, call.count, &work->operand[i],
                                work->index);
    call.out = is_float ? (ft_cells){out->value + start, out->scale + start, NULL}
                        : (ft_cells){NULL, work->scale, out->integer + start};
    kernel(&call);
    if (!is_float) FT_TRY(keep_doubts(out, start, work->scale, call.count, error));
  }
  return FT_OK;
}

// ---- reductions -----------------------------------------------------------------

static void accumulate(const ft_step *step, const ft_plane *in, workspace *work,
                       ft_accumulator *accumulator) {
  ft_remap remap = ft_remap_reduce(&step->in_shape[0], step->attr.axes);
  for (int64_t start = 0; start < in->elements; start += FT_PLANE_CHUNK) {
    int64_t left = in->elements - start;
    size_t count = left < FT_PLANE_CHUNK ? (size_t)left : FT_PLANE_CHUNK;
    ft_cells cells = ft_plane_read(in, start, count, &work->operand[0]);
    ft_remap_run(&remap, start, count, work->index);
    ft_accumulator_add(step->op, step->dtype, accumulator, work->index, &cells, count);
  }
}

static int64_t row_length(const ft_step *step) {
  int64_t length = 1;
  for (int i = 0; i < step->in_shape[0].rank; i++)
    if (step->attr.axes >> i & 1) length *= step->in_shape[0].dim[i];
  return length;
}

static ft_status finish_all(const ft_step *step, const ft_accumulator *accumulator,
                            ft_plane *out, ft_error *error) {
  int64_t terms = row_length(step);
  for (int64_t i = 0; i < out->elements; i++) {
    double scale;
    ft_cells cells = {out->value ? out->value + i : NULL, &scale,
                      out->integer ? out->integer + i : NULL};
    ft_accumulator_finish(step->op, step->dtype, &accumulator[i], terms, 0, &cells);
    if (ft_dtype_is_float(step->dtype))
      out->scale[i] = scale;
    else
      FT_TRY(keep_doubts(out, i, &scale, 1, error));
  }
  return FT_OK;
}

static ft_status run_reduction(const ft_step *step, const ft_plane *in, workspace *work,
                               ft_plane *out, ft_error *error) {
  int overflow = 0;
  size_t bytes = ft_checked_mul((size_t)out->elements, sizeof(ft_accumulator), &overflow);
  ft_accumulator *accumulator =
      overflow ? NULL : ft_allocate(ft_allocator_system(), bytes ? bytes : 1, 64);
  FT_OOM_IF(!accumulator, error);
  ft_accumulator_init(step->op, step->dtype, accumulator, (size_t)out->elements);
  accumulate(step, in, work, accumulator);
  ft_status status = finish_all(step, accumulator, out, error);
  ft_release(ft_allocator_system(), accumulator);
  return status;
}

// ---- both -----------------------------------------------------------------------

static bool is_reduction(ft_op op) {
  return ft_op_describe(op)->class == FT_CLASS_R;
}

static ft_status refuse(const ft_step *step, ft_plane *out, ft_error *error) {
  ft_plane_release(out);
  FT_FAIL(error, FT_UNSUPPORTED, "%s of %s has no meaning",
          ft_op_describe(step->op)->name, ft_dtype_text(ft_step_operand_dtype(step)));
}

ft_status ft_dense_run(const ft_step *step, const ft_plane *const *in, ft_plane *out,
                       ft_error *error) {
  if (!is_reduction(step->op) &&
      !ft_semantics_find(step->op, ft_step_operand_dtype(step)))
    return refuse(step, out, error);
  workspace *work = ft_allocate(ft_allocator_system(), sizeof *work, 64);
  if (!work) ft_plane_release(out);
  FT_OOM_IF(!work, error);
  ft_status status = FT_OK;
  if (!out->value)
    status = ft_plane_create(step->dtype, ft_shape_elements(&step->shape), out, error);
  if (status == FT_OK)
    status = is_reduction(step->op) ? run_reduction(step, in[0], work, out, error)
                                    : run_chunks(step, in, work, out, error);
  ft_release(ft_allocator_system(), work);
  if (status != FT_OK) ft_plane_release(out);
  return status;
}
