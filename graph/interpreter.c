// The dense interpreter: primitive by primitive over whole values.
#include "graph/interpreter.h"

#include "graph/dense.h"

typedef struct run {
  const ft_graph *graph;
  ft_arena *scratch;  // tables and drawn constants, until the end
  ft_plane *plane;    // [value_count], roots
  uint32_t *readers;  // [value_count] primitives still to read this root
  uint32_t *last;     // [value_count] the primitive that was last seen to read this root
  bool *adopted;      // [value_count] its columns belong to the caller's arena
  ft_plane spare;     // the last float columns freed: fresh pages cost as much as tanh
} run;

static uint32_t root_of(const run *r, uint32_t value) {
  return r->graph->value[value].root;
}

static ft_status check_input(const ft_graph *graph, uint32_t i, const ft_tensor *tensor,
                             ft_error *error) {
  const ft_value *value = &graph->value[graph->input[i].value];
  if (tensor->dtype != value->dtype || !ft_shape_equal(&tensor->shape, &value->shape))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "input '%s': a tensor of another dtype or shape",
            value->name);
  if (tensor->bytes !=
      (size_t)ft_shape_elements(&value->shape) * ft_dtype_bytes(value->dtype))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "input '%s': %zu bytes of data", value->name,
            tensor->bytes);
  return FT_OK;
}

static ft_status start(run *r, const ft_tensor *input, ft_error *error) {
  const ft_graph *graph = r->graph;
  r->plane = FT_NEW_ARRAY(r->scratch, ft_plane, graph->value_count);
  r->readers = FT_NEW_ARRAY(r->scratch, uint32_t, graph->value_count);
  r->last = FT_NEW_ARRAY(r->scratch, uint32_t, graph->value_count);
  r->adopted = FT_NEW_ARRAY(r->scratch, bool, graph->value_count);
  FT_OOM_IF(!r->plane || !r->readers || !r->last || !r->adopted, error);
  for (uint32_t i = 0; i < graph->value_count; i++)
    r->readers[i] = graph->value[i].consumer_count, r->last[i] = FT_NONE;
  for (uint32_t i = 0; i < graph->input_count; i++) {
    FT_TRY(check_input(graph, i, &input[i], error));
    r->plane[graph->input[i].value] = ft_plane_from_tensor(&input[i]);
  }
  return FT_OK;
}

// Constants are read, or drawn, when the first reader asks.
static ft_status fetch(run *r, uint32_t value, const ft_plane **out, ft_error *error) {
  uint32_t root = root_of(r, value);
  ft_plane *plane = &r->plane[root];
  *out = plane;
  bool is_there = plane->tensor.data || plane->value || plane->integer;
  if (r->graph->value[root].role != FT_ROLE_CONSTANT || is_there) return FT_OK;
  ft_tensor tensor;
  FT_TRY(ft_graph_constant_data(r->graph, root, r->scratch, &tensor, error));
  *plane = ft_plane_from_tensor(&tensor);
  return FT_OK;
}

static void recycle(run *r, ft_plane *plane) {
  if (plane->value) {
    ft_plane_release(&r->spare);
    r->spare = *plane;
    plane->value = plane->scale = NULL;
  }
  ft_plane_release(plane);
}

static ft_plane take_spare(run *r, const ft_step *step) {
  ft_plane plane = r->spare;
  if (!plane.value || !ft_dtype_is_float(step->dtype) ||
      plane.elements != ft_shape_elements(&step->shape))
    return (ft_plane){0};
  r->spare = (ft_plane){0};
  plane.dtype = step->dtype;
  return plane;
}

// One primitive counts once, however often it reads.
static void drop_read(run *r, uint32_t primitive) {
  const ft_primitive *p = &r->graph->primitive[primitive];
  for (uint32_t i = 0; i < p->input_count; i++) {
    uint32_t root = root_of(r, p->input[i]);
    if (r->last[root] == primitive) continue;
    r->last[root] = primitive;
    if (--r->readers[root]) continue;
    if (!r->graph->value[root].is_output) recycle(r, &r->plane[root]);
  }
}

static ft_status run_primitive(run *r, uint32_t index, ft_error *error) {
  const ft_primitive *primitive = &r->graph->primitive[index];
  ft_step step;
  FT_TRY(ft_step_of(r->graph, primitive, r->scratch, &step, error));
  const ft_plane **in = FT_NEW_ARRAY(r->scratch, const ft_plane *, step.count);
  FT_OOM_IF(!in, error);
  for (uint32_t i = 0; i < step.count; i++)
    FT_TRY(fetch(r, primitive->input[i], &in[i], error));
  r->plane[primitive->output] = take_spare(r, &step);
  FT_TRY(ft_dense_run(&step, in, &r->plane[primitive->output], error));
  drop_read(r, index);
  return FT_OK;
}

static ft_status run_primitives(run *r, ft_error *error) {
  for (uint32_t p = 0; p < r->graph->primitive_count; p++)
    FT_TRY(run_primitive(r, p, error));
  return FT_OK;
}

// ---- outputs --------------------------------------------------------------------

static void release_block(void *block) {
  ft_release(ft_allocator_system(), block);
}

// The arena takes over a computed column, or it is freed.
static bool adopt(ft_arena *arena, void *column) {
  if (!column || ft_arena_defer(arena, release_block, column) == 0) return true;
  release_block(column);
  return false;
}

static ft_status adopt_plane(ft_plane *plane, ft_arena *arena, ft_error *error) {
  bool value = adopt(arena, plane->value), scale = adopt(arena, plane->scale);
  bool integer = adopt(arena, plane->integer);
  if (value && scale && integer) return FT_OK;
  plane->value = plane->scale = NULL;
  plane->integer = NULL;
  FT_OOM_IF(true, error);
}

// Outputs that are inputs or constants get columns of their own.
static ft_status materialise(ft_plane *plane, ft_error *error) {
  ft_plane copy;
  FT_TRY(ft_plane_create(plane->dtype, plane->elements, &copy, error));
  for (int64_t i = 0; i < plane->elements; i++) {
    if (copy.value) {
      copy.value[i] = ft_tensor_get_f64(&plane->tensor, i);
      copy.scale[i] = 0;
    } else {
      copy.integer[i] = ft_tensor_integer(&plane->tensor, i);
    }
  }
  ft_plane_release(plane);
  *plane = copy;
  return FT_OK;
}

static ft_status emit_outputs(run *r, ft_arena *arena, ft_reference *out,
                              ft_error *error) {
  for (uint32_t i = 0; i < r->graph->output_count; i++) {
    const ft_value *value = &r->graph->value[r->graph->output[i].value];
    const ft_plane *fetched;
    FT_TRY(fetch(r, r->graph->output[i].value, &fetched, error));
    ft_plane *plane = &r->plane[value->root];
    if (!r->adopted[value->root]) {
      if (!plane->value && !plane->integer) FT_TRY(materialise(plane, error));
      FT_TRY(adopt_plane(plane, arena, error));
      r->adopted[value->root] = true;
    }
    out[i] = (ft_reference){.dtype = value->dtype,
                            .shape = value->shape,
                            .value = plane->value,
                            .scale = plane->scale,
                            .integer = plane->integer};
  }
  return FT_OK;
}

ft_status ft_interpret_graph(const ft_graph *graph, const ft_tensor *input,
                             ft_arena *arena, ft_reference *out, ft_error *error) {
  run r = {.graph = graph, .scratch = ft_arena_create(ft_allocator_system())};
  FT_OOM_IF(!r.scratch, error);
  ft_status status = start(&r, input, error);
  if (status == FT_OK) status = run_primitives(&r, error);
  if (status == FT_OK) status = emit_outputs(&r, arena, out, error);
  for (uint32_t i = 0; r.adopted && i < graph->value_count; i++)
    if (!r.adopted[i]) ft_plane_release(&r.plane[i]);
  ft_plane_release(&r.spare);
  ft_arena_destroy(r.scratch);
  return status;
}
