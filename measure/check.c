#include "measure/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/rng.h"
#include "graph/reference_cost.h"

enum {
  SAMPLED = 4096,  // random elements of a large output
  EDGE = 64,       // its first and last elements
  ROW_ENDS = 64,   // rows of which both ends are looked at
  FEWEST = 64,     // whatever the time limit says
  POISONED = 64,   // poisoned elements that are looked up
};

typedef struct checked_output {
  ft_tensor shape;  // dtype and shape; no data
  int64_t elements;
  uint32_t count;         // elements with a reference
  int64_t *index;         // ascending; NULL: all of them
  double *value, *scale;  // NULL: all 0
  int64_t *integer;       // NULL: all 0
} checked_output;

struct ft_group_check {
  const ft_group *group;
  const ft_tensor *input;
  ft_arena *arena;
  uint32_t output_count;
  checked_output *output;
};

// What is known of one element that has a reference.
typedef struct known {
  int64_t index;
  double value, scale;
  int64_t integer;
} known;

static known known_of(const checked_output *o, uint32_t i) {
  return (known){.index = o->index ? o->index[i] : i,
                 .value = o->value ? o->value[i] : 0,
                 .scale = o->scale ? o->scale[i] : 0,
                 .integer = o->integer ? o->integer[i] : 0};
}

// ---- which elements -------------------------------------------------------------------

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void add_range(int64_t *index, uint32_t *count, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; i++) index[(*count)++] = i;
}

// Both ends of the first, the last and random rows of the last axis: where a vector
// loop hands over to its remainder.
static void add_row_ends(const ft_shape *shape, int64_t elements, ft_rng *rng,
                         int64_t *index, uint32_t *count) {
  int64_t width = shape->rank ? shape->dim[shape->rank - 1] : 1;
  int64_t rows = elements / width;
  for (int64_t i = 0; i < ROW_ENDS; i++) {
    int64_t row = i == 0   ? 0
                  : i == 1 ? rows - 1
                           : (int64_t)ft_rng_below(rng, (uint64_t)rows);
    index[(*count)++] = row * width;
    index[(*count)++] = row * width + width - 1;
  }
}

static void shuffle(int64_t *index, uint32_t count, ft_rng *rng) {
  for (uint32_t i = count; i > 1; i--) {
    uint64_t j = ft_rng_below(rng, i);
    int64_t swapped = index[i - 1];
    index[i - 1] = index[j];
    index[j] = swapped;
  }
}

static bool is_full(const checked_output *o, int64_t full_elements) {
  return o->elements <= full_elements || o->elements <= SAMPLED;
}

static uint64_t wanted(const checked_output *o, int64_t full_elements) {
  return is_full(o, full_elements) ? (uint64_t)o->elements
                                   : SAMPLED + 2 * EDGE + 2 * ROW_ENDS;
}

static ft_status choose(checked_output *o, int64_t full_elements, ft_rng *rng,
                        ft_arena *arena, ft_error *error) {
  bool is_whole = is_full(o, full_elements);
  uint64_t room = wanted(o, full_elements);
  if (room > UINT32_MAX)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "an output of %llu elements compared whole",
            (unsigned long long)room);
  o->index = FT_NEW_ARRAY(arena, int64_t, room);
  FT_OOM_IF(!o->index, error);
  if (is_whole) {
    add_range(o->index, &o->count, 0, o->elements);
  } else {
    add_range(o->index, &o->count, 0, EDGE);
    add_range(o->index, &o->count, o->elements - EDGE, o->elements);
    add_row_ends(&o->shape.shape, o->elements, rng, o->index, &o->count);
    while (o->count < room)
      o->index[o->count++] = (int64_t)ft_rng_below(rng, (uint64_t)o->elements);
  }
  // Drawn order: whatever the time limit leaves out, the rest is a fair sample. Of a
  // sampled output the edges stay first.
  uint32_t fixed = is_whole ? 0 : 2 * EDGE + 2 * ROW_ENDS;
  shuffle(o->index + fixed, o->count - fixed, rng);
  return FT_OK;
}

// ---- references, by demand
// -----------------------------------------------------------------

static ft_status interpret(const ft_group_check *check, uint32_t output, uint32_t from,
                           uint32_t count, ft_error *error) {
  checked_output *o = &check->output[output];
  qsort(o->index + from, count, sizeof *o->index, ascending);
  return ft_interpret_group(check->group, check->input, output, o->index + from, count,
                            o->value + from, o->scale + from, o->integer + from, error);
}

// In growing chunks, as many as fit in the time; each chunk's cost is foretold by the
// last one's.
static ft_status reference(const ft_group_check *check, uint32_t output,
                           uint64_t limit_ns, ft_error *error) {
  checked_output *o = &check->output[output];
  o->value = FT_NEW_ARRAY(check->arena, double, o->count);
  o->scale = FT_NEW_ARRAY(check->arena, double, o->count);
  o->integer = FT_NEW_ARRAY(check->arena, int64_t, o->count);
  FT_OOM_IF(!o->value || !o->scale || !o->integer, error);
  uint64_t start = ft_clock_ns();
  uint32_t done = 0, chunk = FEWEST;
  while (done < o->count) {
    uint64_t before = ft_clock_ns();
    if (chunk > o->count - done) chunk = o->count - done;
    FT_TRY(interpret(check, output, done, chunk, error));
    done += chunk;
    uint64_t now = ft_clock_ns(), spent = now - start;
    double each = (double)(now - before) / (double)chunk;
    if (spent >= limit_ns) break;
    double fits = (double)(limit_ns - spent) / (each + 1.0);
    if (fits < 1.0) break;
    double next = 4.0 * (double)chunk < fits ? 4.0 * (double)chunk : fits;
    chunk = next < 1e9 ? (uint32_t)next : 1000000000u;
  }
  o->count = done;
  return FT_OK;
}

// Of drawn elements of each output.
static ft_status refer_by_demand(const ft_group_check *check, uint64_t seed,
                                 int64_t full_elements, uint64_t limit_ns,
                                 ft_error *error) {
  ft_rng rng = ft_rng_seed(seed);
  for (uint32_t i = 0; i < check->output_count; i++) {
    checked_output *o = &check->output[i];
    if (o->elements == 0) continue;
    FT_TRY(choose(o, full_elements, &rng, check->arena, error));
    FT_TRY(reference(check, i, limit_ns / check->output_count, error));
  }
  return FT_OK;
}

// ---- references, densely
// -------------------------------------------------------------------

static bool is_dense_shorter(const ft_group_check *check, const ft_graph *graph,
                             int64_t full_elements, uint64_t limit_ns, ft_arena *arena) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < check->output_count; i++) {
    const checked_output *o = &check->output[i];
    if (o->elements > UINT32_MAX) return false;
    uint64_t count = wanted(o, full_elements);
    if (count > most) most = count;
  }
  double limit_s = (double)limit_ns * 1e-9;
  double fewest_s = ft_reference_demand_seconds(graph, FEWEST, arena);
  double dense_s = ft_reference_dense_seconds(graph);
  return dense_s <= fmax(limit_s, fewest_s) &&
         dense_s < ft_reference_demand_seconds(graph, (int64_t)most, arena);
}

// Of every element of each output.
static ft_status refer_densely(const ft_group_check *check, const ft_graph *graph,
                               ft_error *error) {
  ft_reference *found = FT_NEW_ARRAY(check->arena, ft_reference, check->output_count);
  FT_OOM_IF(!found, error);
  FT_TRY(ft_interpret_graph(graph, check->input, check->arena, found, error));
  for (uint32_t i = 0; i < check->output_count; i++) {
    checked_output *o = &check->output[i];
    o->count = (uint32_t)o->elements;
    o->value = found[i].value;
    o->scale = found[i].scale;
    o->integer = found[i].integer;
  }
  return FT_OK;
}

static ft_status refer(const ft_group_check *check, uint64_t seed, int64_t full_elements,
                       uint64_t limit_ns, ft_arena *scratch, ft_error *error) {
  ft_graph *graph;
  FT_OOM_IF(!scratch, error);
  FT_TRY(ft_group_extract(check->group, scratch, &graph, error));
  return is_dense_shorter(check, graph, full_elements, limit_ns, scratch)
             ? refer_densely(check, graph, error)
             : refer_by_demand(check, seed, full_elements, limit_ns, error);
}

ft_status ft_group_check_create(const ft_group *group, const ft_tensor *input,
                                uint64_t seed, int64_t full_elements, uint64_t limit_ns,
                                ft_arena *arena, ft_group_check **out, ft_error *error) {
  *out = NULL;
  ft_group_check *check = FT_NEW(arena, ft_group_check);
  FT_OOM_IF(!check, error);
  *check = (ft_group_check){.group = group,
                            .input = input,
                            .arena = arena,
                            .output_count = group->output_count};
  check->output = FT_NEW_ARRAY(arena, checked_output, group->output_count);
  FT_OOM_IF(!check->output, error);
  for (uint32_t i = 0; i < group->output_count; i++) {
    checked_output *o = &check->output[i];
    const ft_value *v = &group->graph->value[group->output[i]];
    o->elements = ft_shape_elements(&v->shape);
    o->shape = (ft_tensor){.dtype = v->dtype,
                           .shape = v->shape,
                           .bytes = (size_t)o->elements * ft_dtype_bytes(v->dtype)};
  }
  ft_arena *scratch = ft_arena_create(ft_allocator_system());
  ft_status status = refer(check, seed, full_elements, limit_ns, scratch, error);
  ft_arena_destroy(scratch);
  if (status == FT_OK) *out = check;
  return status;
}

// ---- comparing ------------------------------------------------------------------------

static void compare_known(const checked_output *o, const ft_tensor *actual,
                          ft_comparison *found) {
  for (uint32_t i = 0; i < o->count; i++) {
    known k = known_of(o, i);
    ft_compare_element(actual, k.index, k.value, k.scale, k.integer, found);
  }
}

// The first |room| elements that are all poison; *total counts every one.
static uint32_t find_poison(const ft_tensor *actual, int64_t elements, int64_t *index,
                            uint32_t room, int64_t *total) {
  size_t size = ft_dtype_bytes(actual->dtype);
  uint8_t poison[8];
  memset(poison, ft_poison_byte(actual->dtype), sizeof poison);
  const uint8_t *at = actual->data;
  uint32_t count = 0;
  *total = 0;
  for (int64_t i = 0; i < elements; i++, at += size) {
    if (at[0] != poison[0] || memcmp(at, poison, size) != 0) continue;
    if (count < room) index[count++] = i;
    ++*total;
  }
  return count;
}

// Poison may be the right answer (a byte of 251, a NaN that was passed through), so the
// elements that hold it are looked up like any other.
static ft_status compare_poison(const ft_group_check *check, uint32_t output,
                                const ft_tensor *actual, ft_comparison *found,
                                int64_t *unwritten, ft_error *error) {
  int64_t index[POISONED], integer[POISONED];
  double value[POISONED], scale[POISONED];
  *unwritten = 0;
  int64_t total;
  uint32_t n =
      find_poison(actual, check->output[output].elements, index, POISONED, &total);
  if (n == 0) return FT_OK;
  FT_TRY(ft_interpret_group(check->group, check->input, output, index, n, value, scale,
                            integer, error));
  ft_comparison poisoned;
  ft_comparison_init(&poisoned);
  for (uint32_t i = 0; i < n; i++)
    ft_compare_element(actual, index[i], value[i], scale[i], integer[i], &poisoned);
  if (poisoned.max_ratio <= 1.0) return FT_OK;
  *unwritten = total;
  *found = poisoned;
  return FT_OK;
}

static void describe(const checked_output *o, uint32_t output, const ft_tensor *actual,
                     const ft_comparison *found, int64_t unwritten, char worst[256]) {
  if (unwritten) {
    snprintf(worst, 256, "output %u at %lld: not written (nor %lld more of %lld)", output,
             (long long)found->worst_index, (long long)(unwritten - 1),
             (long long)o->elements);
  } else if (ft_dtype_is_float(actual->dtype)) {
    snprintf(worst, 256, "output %u at %lld: got %.9g, expected %.9g", output,
             (long long)found->worst_index, found->worst_value, found->worst_expected);
  } else {
    snprintf(worst, 256, "output %u at %lld: got %.17g, expected %.17g", output,
             (long long)found->worst_index, found->worst_value, found->worst_expected);
  }
}

static ft_status compare_output(const ft_group_check *check, uint32_t i, const void *data,
                                ft_comparison *found, char worst[256], ft_error *error) {
  const checked_output *o = &check->output[i];
  ft_tensor actual = o->shape;
  actual.data = data;
  int64_t unwritten;
  ft_comparison_init(found);
  if (o->elements == 0) return FT_OK;
  FT_TRY(compare_poison(check, i, &actual, found, &unwritten, error));
  if (!unwritten) compare_known(o, &actual, found);
  if (!(found->max_ratio <= 1.0)) describe(o, i, &actual, found, unwritten, worst);
  return FT_OK;
}

static void add_up(ft_comparison *sum, const ft_comparison *found) {
  sum->compared += found->compared;
  sum->max_abs_error = fmax(sum->max_abs_error, found->max_abs_error);
  sum->uncertain += found->uncertain;
  sum->max_uncertain_error = fmax(sum->max_uncertain_error, found->max_uncertain_error);
  sum->square_sum += found->square_sum;
  sum->finite += found->finite;
}

// Of the outputs together: the worst decides, the rest adds up.
static ft_status compare(void *ctx, const void *const *output, ft_comparison *out,
                         char worst[256], ft_error *error) {
  const ft_group_check *check = ctx;
  ft_comparison sum;
  ft_comparison_init(&sum);
  worst[0] = '\0';
  for (uint32_t i = 0; i < check->output_count; i++) {
    ft_comparison found;
    char text[256] = "";
    FT_TRY(compare_output(check, i, output[i], &found, text, error));
    add_up(&sum, &found);
    if (i > 0 && found.max_ratio <= sum.max_ratio) continue;
    sum.max_ratio = found.max_ratio;
    sum.worst_index = found.worst_index;
    sum.worst_value = found.worst_value;
    sum.worst_expected = found.worst_expected;
    memcpy(worst, text, sizeof text);
  }
  *out = sum;
  return FT_OK;
}

ft_output_check ft_group_check_outputs(ft_group_check *check) {
  return (ft_output_check){check, compare};
}

// ---- what is compared, for others
// ------------------------------------------------------

static int by_index(const void *a, const void *b) {
  return ascending(&((const ft_checked_element *)a)->index,
                   &((const ft_checked_element *)b)->index);
}

ft_status ft_group_check_elements(const ft_group_check *check, uint32_t output,
                                  ft_arena *arena, ft_checked_element **out,
                                  uint32_t *out_count, ft_error *error) {
  const checked_output *o = &check->output[output];
  *out_count = o->count;
  *out = FT_NEW_ARRAY(arena, ft_checked_element, o->count);
  FT_OOM_IF(!*out, error);
  for (uint32_t i = 0; i < o->count; i++) {
    known k = known_of(o, i);
    ft_checked_element *e = &(*out)[i];
    *e = (ft_checked_element){.index = k.index};
    if (ft_dtype_is_float(o->shape.dtype)) {
      ft_acceptance accepts = ft_reference_accepts(o->shape.dtype, k.value, k.scale);
      e->expected = accepts.expected;
      e->tolerance = accepts.tolerance;
    } else {
      e->integer = k.integer;
      e->tolerance = isinf(k.scale) ? (double)INFINITY : 0;
    }
  }
  if (o->count) qsort(*out, o->count, sizeof **out, by_index);
  return FT_OK;
}
