#include "graph/dense.h"

#include "graph/accumulator.h"
#include "graph/gather.h"
#include "graph/select.h"

// ---- elementwise and remaps -----------------------------------------------------

typedef struct workspace {
  ft_chunk operand[3];
  double scale[FT_PLANE_CHUNK];
  int64_t index[FT_PLANE_CHUNK], at[FT_PLANE_CHUNK];
  uint32_t which[FT_PLANE_CHUNK];
} workspace;

static ft_cells read_operand(const ft_plane *plane, const ft_remap *remap, int64_t start,
                             size_t count, ft_chunk *chunk, int64_t *index) {
  if (remap->is_identity) return ft_plane_read(plane, start, count, chunk);
  ft_cells cells = {chunk->value, chunk->scale, chunk->integer};
  ft_remap_run(remap, start, count, index);
  ft_plane_gather(plane, index, count, &cells);
  return cells;
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
    if (!is_float) FT_TRY(ft_plane_doubt(out, start, work->scale, call.count, error));
  }
  return FT_OK;
}

// ---- selections and gathers -----------------------------------------------------

static ft_cells window_of(ft_plane *out, workspace *work, int64_t start) {
  return out->value ? (ft_cells){out->value + start, out->scale + start, NULL}
                    : (ft_cells){NULL, work->scale, out->integer + start};
}

static ft_cells cells_from(const ft_cells *cells, size_t start) {
  return (ft_cells){cells->value ? cells->value + start : NULL, cells->scale + start,
                    cells->integer ? cells->integer + start : NULL};
}

static size_t chunk_at(const ft_plane *out, int64_t start, workspace *work) {
  int64_t left = out->elements - start;
  size_t count = left < FT_PLANE_CHUNK ? (size_t)left : FT_PLANE_CHUNK;
  for (size_t j = 0; j < count; j++) work->at[j] = start + (int64_t)j;
  return count;
}

// Stretches of one operand at a time.
static void copy_selected(const ft_plane *const *in, const workspace *work, size_t count,
                          const ft_cells *to) {
  for (size_t j = 0, next; j < count; j = next) {
    for (next = j + 1; next < count && work->which[next] == work->which[j];) next++;
    ft_cells part = cells_from(to, j);
    ft_plane_gather(in[work->which[j]], work->index + j, next - j, &part);
  }
}

static ft_status copy_all(const ft_select *select, const ft_plane *const *in,
                          workspace *work, ft_plane *out, ft_error *error) {
  for (int64_t start = 0; start < out->elements; start += FT_PLANE_CHUNK) {
    size_t count = chunk_at(out, start, work);
    ft_cells to = window_of(out, work, start);
    ft_select_run(select, work->at, count, work->which, work->index);
    copy_selected(in, work, count, &to);
    if (!out->value) FT_TRY(ft_plane_doubt(out, start, to.scale, count, error));
  }
  return FT_OK;
}

static ft_status run_select(const ft_step *step, const ft_plane *const *in,
                            workspace *work, ft_plane *out, ft_error *error) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!arena, error);
  ft_select select;
  ft_status status = ft_select_make(step, arena, &select, error);
  if (status == FT_OK) status = copy_all(&select, in, work, out, error);
  ft_arena_destroy(arena);
  return status;
}

static ft_status run_gather(const ft_step *step, const ft_plane *const *in,
                            workspace *work, ft_plane *out, ft_error *error) {
  ft_gather gather = ft_gather_make(step);
  for (int64_t start = 0; start < out->elements; start += FT_PLANE_CHUNK) {
    size_t count = chunk_at(out, start, work);
    ft_cells found = {NULL, work->operand[1].scale, work->operand[1].integer};
    ft_cells to = window_of(out, work, start);
    ft_remap_list(&gather.index, work->at, count, work->index);
    ft_plane_gather(in[1], work->index, count, &found);
    FT_TRY(ft_gather_run(&gather, work->at, &found, count, work->index, error));
    ft_plane_gather(in[0], work->index, count, &to);
    for (size_t j = 0; j < count; j++)
      if (found.scale[j] > 0) to.scale[j] = found.scale[j];
    if (!out->value) FT_TRY(ft_plane_doubt(out, start, to.scale, count, error));
  }
  return FT_OK;
}

// ---- reductions -----------------------------------------------------------------

static void accumulate(const ft_step *step, const ft_plane *in, workspace *work,
                       ft_accumulator *accumulator) {
  ft_remap remap = ft_remap_reduce(&step->operand[0].shape, step->attr->axes);
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
  for (int i = 0; i < step->operand[0].shape.rank; i++)
    if (step->attr->axes >> i & 1) length *= step->operand[0].shape.dim[i];
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
      FT_TRY(ft_plane_doubt(out, i, &scale, 1, error));
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

// ---- all of them ----------------------------------------------------------------

static ft_status refuse(const ft_step *step, ft_plane *out, ft_error *error) {
  ft_plane_release(out);
  FT_FAIL(error, FT_UNSUPPORTED, "%s of %s has no meaning",
          ft_op_describe(step->op)->name, ft_dtype_text(ft_step_operand_dtype(step)));
}

static ft_status run_rows(const ft_step *step, const ft_plane *const *in, workspace *work,
                          ft_plane *out, ft_error *error) {
  ft_op_class class = ft_op_describe(step->op)->class;
  if (class == FT_CLASS_R) return run_reduction(step, in[0], work, out, error);
  return class == FT_CLASS_M && ft_dtype_is_float(step->dtype)
             ? ft_dense_contract(step, in, out, error)
             : ft_dense_rows(step, in, out, error);
}

static ft_status run_kind(const ft_step *step, const ft_plane *const *in, workspace *work,
                          ft_plane *out, ft_error *error) {
  switch (ft_step_kind_of(step->op)) {
    case FT_STEP_POINTWISE:
      return run_chunks(step, in, work, out, error);
    case FT_STEP_SELECT:
      return run_select(step, in, work, out, error);
    case FT_STEP_GATHER:
      return run_gather(step, in, work, out, error);
    default:
      return run_rows(step, in, work, out, error);
  }
}

static ft_status run_copy(const ft_step *step, const ft_plane *in, ft_plane *out,
                          ft_error *error) {
  ft_status status = ft_dense_copy(step, in, out, error);
  if (status != FT_OK) ft_plane_release(out);
  return status;
}

ft_status ft_dense_run(const ft_step *step, const ft_plane *const *in, ft_plane *out,
                       ft_error *error) {
  bool copies = ft_op_describe(step->op)->class == FT_CLASS_I && step->count == 1;
  if (copies && step->op != FT_OP_CONCAT) return run_copy(step, in[0], out, error);
  if (ft_step_kind_of(step->op) == FT_STEP_POINTWISE &&
      !ft_semantics_find(step->op, ft_step_operand_dtype(step)))
    return refuse(step, out, error);
  workspace *work = ft_allocate(ft_allocator_system(), sizeof *work, 64);
  if (!work) ft_plane_release(out);
  FT_OOM_IF(!work, error);
  ft_status status = FT_OK;
  if (!out->value)
    status = ft_plane_create(step->dtype, ft_shape_elements(&step->shape), out, error);
  if (status == FT_OK) status = run_kind(step, in, work, out, error);
  ft_release(ft_allocator_system(), work);
  if (status != FT_OK) ft_plane_release(out);
  return status;
}
