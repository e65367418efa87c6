#include "graph/inputs.h"

#include <math.h>
#include <string.h>

#include "core/rng.h"

// ---- filling --------------------------------------------------------------------

static void fill_f32(float *data, int64_t elements, double low, double high,
                     ft_rng *rng) {
  float below = nextafterf((float)high, -INFINITY);
  for (int64_t i = 0; i < elements; i++) {
    float x = (float)(low + (high - low) * ft_rng_f64(rng));
    data[i] = (double)x < high ? x : below;  // rounding can reach |high|
  }
}

// The largest value of |dtype| below |high|, found from |high| downwards.
static double highest_below(ft_dtype dtype, double low, double high) {
  double step = fabs(high) * 0x1p-60 + 0x1p-160, x = high;
  uint64_t element = 0;
  ft_tensor tensor = {.dtype = dtype, .data = &element, .bytes = sizeof element};
  do {
    x = high - step;
    ft_element_set_f64(dtype, &element, 0, x);
    step *= 2;
  } while (ft_tensor_get_f64(&tensor, 0) >= high && x > low);
  return ft_tensor_get_f64(&tensor, 0);
}

static void fill_float(ft_dtype dtype, void *data, int64_t elements, double low,
                       double high, ft_rng *rng) {
  double below = highest_below(dtype, low, high);
  for (int64_t i = 0; i < elements; i++) {
    double x = low + (high - low) * ft_rng_f64(rng);
    ft_element_set_f64(dtype, data, i, fmin(x, below));
  }
}

static void fill_integer(ft_dtype dtype, void *data, int64_t elements, double low,
                         double high, ft_rng *rng) {
  double first = floor(low), count = ceil(high) - first;
  uint64_t choices = count >= 1 ? (uint64_t)count : 1;
  for (int64_t i = 0; i < elements; i++)
    ft_element_set_i64(dtype, data, i,
                       (int64_t)first + (int64_t)ft_rng_below(rng, choices));
}

void ft_fill_random(ft_dtype dtype, void *data, int64_t elements, double low, double high,
                    uint64_t seed) {
  ft_rng rng = ft_rng_seed(seed);
  if (dtype == FT_F32)
    fill_f32(data, elements, low, high, &rng);
  else if (ft_dtype_is_float(dtype))
    fill_float(dtype, data, elements, low, high, &rng);
  else if (dtype == FT_BOOL)
    fill_integer(dtype, data, elements, 0, 2, &rng);
  else
    fill_integer(dtype, data, elements, low, high, &rng);
}

// ---- who needs which numbers   -------------------------------------------------

static bool exponent_is_whole(const ft_graph *graph, uint32_t value) {
  const ft_tensor *data = graph->value[value].data;
  if (!data) return false;
  int64_t elements = ft_shape_elements(&data->shape);
  for (int64_t i = 0; i < elements; i++) {
    double exponent = ft_tensor_get_f64(data, i);
    if (exponent != rint(exponent)) return false;
  }
  return true;
}

static bool needs_positive(const ft_graph *graph, const ft_primitive *primitive) {
  if (primitive->op == FT_OP_SQRT || primitive->op == FT_OP_LOG) return true;
  return primitive->op == FT_OP_POW && !exponent_is_whole(graph, primitive->input[1]);
}

// What the readers of a root want of it.
typedef struct wish {
  bool positive;
  int64_t limit;  // of indices: drawn from [0, limit); 0 = no index
} wish;

static void want_below(const ft_graph *graph, wish *wishes, uint32_t value,
                       int64_t limit) {
  wish *w = &wishes[graph->value[value].root];
  if (limit && (!w->limit || limit < w->limit)) w->limit = limit;
}

// What gives out values that it was given: an index there is one here.
static bool chooses(ft_op op) {
  return ft_op_describe(op)->class == FT_CLASS_I || op == FT_OP_COPY ||
         op == FT_OP_CAST || op == FT_OP_MIN || op == FT_OP_MAX || op == FT_OP_WHERE;
}

static void hand_on_index(const ft_graph *graph, const ft_primitive *p, wish *wishes) {
  int64_t limit = wishes[p->output].limit;
  if (p->op == FT_OP_GATHER || p->op == FT_OP_GATHER_ELEMENTS) {
    int64_t n = graph->value[p->input[0]].shape.dim[p->attr.axis];
    want_below(graph, wishes, p->input[1], n > 0 ? n : 1);
    want_below(graph, wishes, p->input[0], limit);
    return;
  }
  for (uint32_t k = 0; chooses(p->op) && k < p->input_count; k++)
    want_below(graph, wishes, p->input[k], limit);
}

// Marks, per root, what primitives want that read it directly or through unary ones.
// |primitive| is in topological order.
static wish *find_wishes(const ft_graph *graph, const uint32_t *primitive, uint32_t count,
                         ft_arena *arena) {
  wish *wishes = FT_NEW_ARRAY(arena, wish, graph->value_count);
  for (uint32_t i = count; wishes && i-- > 0;) {
    const ft_primitive *p = &graph->primitive[primitive ? primitive[i] : i];
    const ft_op_info *info = ft_op_describe(p->op);
    bool passes =
        info->class == FT_CLASS_E && info->arity == 1 && wishes[p->output].positive;
    if (needs_positive(graph, p) || passes)
      wishes[graph->value[p->input[0]].root].positive = true;
    hand_on_index(graph, p, wishes);
  }
  return wishes;
}

// ---- drawing --------------------------------------------------------------------

static ft_input_recipe recipe_of(const ft_value *value, const wish *want, uint64_t seed) {
  ft_input_recipe r = {value->dtype, ft_shape_elements(&value->shape), -2, 2, seed};
  if (!ft_dtype_is_float(value->dtype)) {
    r.low = 0;
    r.high = want->limit ? (double)want->limit : 4;
  } else if (want->positive) {
    r.low = 0.25;
    r.high = 2.25;
  }
  return r;
}

static ft_status draw(const ft_value *value, const ft_input_recipe *recipe,
                      ft_arena *arena, ft_tensor *out, ft_error *error) {
  void *data;
  FT_TRY(ft_tensor_alloc(value->dtype, &value->shape, arena, out, &data, error));
  ft_fill_random(recipe->dtype, data, recipe->elements, recipe->low, recipe->high,
                 recipe->seed);
  return FT_OK;
}

ft_status ft_graph_random_inputs(const ft_graph *graph, uint64_t seed, ft_arena *arena,
                                 ft_tensor *out, ft_error *error) {
  wish *wishes = find_wishes(graph, NULL, graph->primitive_count, arena);
  FT_OOM_IF(!wishes, error);
  for (uint32_t i = 0; i < graph->input_count; i++) {
    const ft_value *value = &graph->value[graph->input[i].value];
    ft_input_recipe recipe = recipe_of(value, &wishes[graph->input[i].value], seed + i);
    FT_TRY(draw(value, &recipe, arena, &out[i], error));
  }
  return FT_OK;
}

ft_status ft_group_input_recipes(const ft_group *group, uint64_t seed, ft_arena *arena,
                                 ft_input_recipe *out, ft_error *error) {
  const ft_graph *graph = group->graph;
  wish *wishes = find_wishes(graph, group->primitive, group->primitive_count, arena);
  FT_OOM_IF(!wishes, error);
  for (uint32_t i = 0; i < group->input_count; i++) {
    const ft_value *value = &graph->value[group->input[i]];
    out[i] = recipe_of(value, &wishes[group->input[i]], seed + i);
    if (value->role == FT_ROLE_CONSTANT) out[i].elements = -1;
  }
  return FT_OK;
}

ft_status ft_group_random_inputs(const ft_group *group, uint64_t seed, ft_arena *arena,
                                 ft_tensor *out, ft_error *error) {
  const ft_graph *graph = group->graph;
  ft_input_recipe *recipe = FT_NEW_ARRAY(arena, ft_input_recipe, group->input_count);
  FT_OOM_IF(!recipe, error);
  FT_TRY(ft_group_input_recipes(group, seed, arena, recipe, error));
  for (uint32_t i = 0; i < group->input_count; i++) {
    if (recipe[i].elements < 0)
      FT_TRY(ft_graph_constant_data(graph, group->input[i], arena, &out[i], error));
    else
      FT_TRY(draw(&graph->value[group->input[i]], &recipe[i], arena, &out[i], error));
  }
  return FT_OK;
}
