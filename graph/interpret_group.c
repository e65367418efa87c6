// The sampling interpreter: evaluates the elements asked for, and what they need.
//
// Work goes in batches of up to FT_PLANE_CHUNK elements. A frame evaluates one batch of
// one primitive: first it walks the primitives backwards and finds which lists of
// elements of which values are needed, then forwards and computes them, with the same
// kernels as the dense interpreter. Equal lists are one list, so a value that is
// reached by two ways is computed once. A reduction is a leaf of the frame: it looks its
// elements up in its memo and evaluates the missing rows in frames of their own.
#include <string.h>

#include "graph/accumulator.h"
#include "graph/dense.h"
#include "graph/interpreter.h"
#include "graph/memo.h"

// Row-major element indices.
typedef struct list {
  struct list *next;
  int64_t *index;
  size_t count;
  uint64_t hash;
} list;

// |at| of one primitive's result.
typedef struct demand {
  struct demand *next;
  const list *at;
  const list *operand[3];
  ft_cells column;
} demand;

// A primitive of the group.
typedef struct node {
  ft_step step;
  ft_elementwise *kernel;  // NULL for reductions
  uint32_t producer[3];    // position in the group, FT_NONE when from outside
  const ft_plane *outside[3];
  ft_remap remap[3];
  ft_remap row_start, row_step;  // reductions
  int64_t row_length;
  ft_memo memo;
} node;

typedef struct evaluation {
  const ft_group *group;
  ft_arena *arena;           // lives through the call
  node *node;                // [primitive_count]
  uint32_t *position;        // [graph primitive_count] in the group, or FT_NONE
  const ft_plane **outside;  // [graph value_count], roots
} evaluation;

typedef struct frame {
  evaluation *run;
  ft_arena *arena;  // reset per batch
  list *lists;
  demand **wanted;  // [target + 1]
} frame;

// ---- setting up -----------------------------------------------------------------

static ft_status add_plane(evaluation *run, uint32_t root, const ft_tensor *tensor,
                           ft_error *error) {
  ft_plane *plane = FT_NEW(run->arena, ft_plane);
  FT_OOM_IF(!plane, error);
  *plane = ft_plane_from_tensor(tensor);
  run->outside[root] = plane;
  return FT_OK;
}

static ft_status add_inputs(evaluation *run, const ft_tensor *input, ft_error *error) {
  const ft_graph *graph = run->group->graph;
  for (uint32_t i = 0; i < run->group->input_count; i++) {
    const ft_value *value = &graph->value[run->group->input[i]];
    size_t bytes =
        (size_t)ft_shape_elements(&value->shape) * ft_dtype_bytes(value->dtype);
    if (input[i].dtype != value->dtype || input[i].bytes != bytes ||
        ft_shape_elements(&input[i].shape) != ft_shape_elements(&value->shape))
      FT_FAIL(error, FT_INVALID_ARGUMENT, "input '%s': a tensor of another dtype or size",
              value->name);
    FT_TRY(add_plane(run, value->root, &input[i], error));
  }
  return FT_OK;
}

static ft_status find_operand(evaluation *run, node *n, uint32_t i, uint32_t value,
                              ft_error *error) {
  const ft_graph *graph = run->group->graph;
  uint32_t root = graph->value[value].root;
  uint32_t producer = graph->value[root].producer;
  n->producer[i] = producer == FT_NONE ? FT_NONE : run->position[producer];
  if (n->producer[i] != FT_NONE) return FT_OK;
  if (!run->outside[root]) {
    if (graph->value[root].role != FT_ROLE_CONSTANT)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "'%s' is no input of the group",
              graph->value[root].name);
    ft_tensor tensor;
    FT_TRY(ft_graph_constant_data(graph, root, run->arena, &tensor, error));
    FT_TRY(add_plane(run, root, &tensor, error));
  }
  n->outside[i] = run->outside[root];
  return FT_OK;
}

static void prepare_rows(node *n) {
  const ft_shape *shape = &n->step.in_shape[0];
  n->row_start = ft_remap_row_start(shape, n->step.attr.axes);
  n->row_step = ft_remap_row_step(shape, n->step.attr.axes);
  n->row_length = 1;
  for (int i = 0; i < shape->rank; i++)
    if (n->step.attr.axes >> i & 1) n->row_length *= shape->dim[i];
}

static ft_status prepare_node(evaluation *run, node *n, const ft_primitive *primitive,
                              ft_error *error) {
  n->step = ft_step_of(run->group->graph, primitive);
  for (uint32_t i = 0; i < n->step.count; i++)
    FT_TRY(find_operand(run, n, i, primitive->input[i], error));
  if (ft_op_describe(n->step.op)->class == FT_CLASS_R) {
    prepare_rows(n);
    return FT_OK;
  }
  n->kernel = ft_semantics_find(n->step.op, ft_step_operand_dtype(&n->step));
  if (!n->kernel)
    FT_FAIL(error, FT_UNSUPPORTED, "%s of %s has no meaning",
            ft_op_describe(n->step.op)->name,
            ft_dtype_text(ft_step_operand_dtype(&n->step)));
  for (uint32_t i = 0; i < n->step.count; i++) n->remap[i] = ft_step_remap(&n->step, i);
  return FT_OK;
}

static ft_status prepare(evaluation *run, const ft_tensor *input, ft_error *error) {
  const ft_group *group = run->group;
  const ft_graph *graph = group->graph;
  run->node = FT_NEW_ARRAY(run->arena, node, group->primitive_count);
  run->position = FT_NEW_ARRAY(run->arena, uint32_t, graph->primitive_count);
  run->outside = FT_NEW_ARRAY(run->arena, const ft_plane *, graph->value_count);
  FT_OOM_IF(!run->node || !run->position || !run->outside, error);
  memset(run->position, 0xff, graph->primitive_count * sizeof *run->position);
  FT_TRY(add_inputs(run, input, error));
  for (uint32_t p = 0; p < group->primitive_count; p++) {
    run->position[group->primitive[p]] = p;
    FT_TRY(
        prepare_node(run, &run->node[p], &graph->primitive[group->primitive[p]], error));
  }
  return FT_OK;
}

// ---- lists ----------------------------------------------------------------------

static uint64_t hash_indices(const int64_t *index, size_t count) {
  uint64_t hash = FT_HASH64_SEED;
  for (size_t j = 0; j < count; j++)
    hash = (hash ^ (uint64_t)index[j]) * 0x9e3779b97f4a7c15ull;
  return hash;
}

// The list with these indices, new or old; |index| lives as long as the frame's batch.
static const list *intern(frame *f, int64_t *index, size_t count) {
  uint64_t hash = hash_indices(index, count);
  for (const list *l = f->lists; l; l = l->next)
    if (l->hash == hash && l->count == count &&
        memcmp(l->index, index, count * sizeof *index) == 0)
      return l;
  list *l = FT_NEW(f->arena, list);
  if (!l) return NULL;
  *l = (list){f->lists, index, count, hash};
  f->lists = l;
  return l;
}

static const list *mapped(frame *f, const ft_remap *remap, const list *from) {
  if (remap->is_identity) return from;
  int64_t *index = FT_NEW_ARRAY(f->arena, int64_t, from->count);
  if (!index) return NULL;
  ft_remap_list(remap, from->index, from->count, index);
  return intern(f, index, from->count);
}

// ---- demands --------------------------------------------------------------------

static ft_status new_cells(frame *f, ft_dtype dtype, size_t count, ft_cells *out,
                           ft_error *error) {
  bool is_float = ft_dtype_is_float(dtype);
  out->scale = FT_NEW_ARRAY(f->arena, double, count);
  if (is_float)
    out->value = FT_NEW_ARRAY(f->arena, double, count);
  else
    out->integer = FT_NEW_ARRAY(f->arena, int64_t, count);
  FT_OOM_IF(!out->scale || !(is_float ? (void *)out->value : (void *)out->integer),
            error);
  return FT_OK;
}

static demand *find_demand(const frame *f, uint32_t position, const list *at) {
  demand *d = f->wanted[position];
  while (d && d->at != at) d = d->next;
  return d;
}

static ft_status want(frame *f, uint32_t position, const list *at, ft_error *error) {
  if (find_demand(f, position, at)) return FT_OK;
  demand *d = FT_NEW(f->arena, demand);
  FT_OOM_IF(!d, error);
  d->at = at;
  d->next = f->wanted[position];
  f->wanted[position] = d;
  return FT_OK;
}

// Finds what |d| needs of its operands; reductions look after themselves.
static ft_status spread(frame *f, const node *n, demand *d, ft_error *error) {
  for (uint32_t i = 0; n->kernel && i < n->step.count; i++) {
    d->operand[i] = mapped(f, &n->remap[i], d->at);
    FT_OOM_IF(!d->operand[i], error);
    if (n->producer[i] != FT_NONE) FT_TRY(want(f, n->producer[i], d->operand[i], error));
  }
  return FT_OK;
}

static ft_status compute(frame *f, const node *n, demand *d, ft_error *error) {
  ft_semantics_call call = {.from = ft_step_operand_dtype(&n->step),
                            .to = n->step.dtype,
                            .count = d->at->count};
  for (uint32_t i = 0; i < n->step.count; i++) {
    if (n->producer[i] != FT_NONE) {
      call.in[i] = find_demand(f, n->producer[i], d->operand[i])->column;
      continue;
    }
    FT_TRY(new_cells(f, n->step.in_dtype[i], call.count, &call.in[i], error));
    ft_plane_gather(n->outside[i], d->operand[i]->index, call.count, &call.in[i]);
  }
  FT_TRY(new_cells(f, n->step.dtype, call.count, &d->column, error));
  call.out = d->column;
  n->kernel(&call);
  return FT_OK;
}

static ft_status reduce(frame *f, node *n, demand *d, ft_error *error);

// Elements index[0 .. count) of primitive |target|; *out lives until the next batch.
static ft_status evaluate(frame *f, uint32_t target, int64_t *index, size_t count,
                          ft_cells *out, ft_error *error) {
  f->lists = NULL;
  f->wanted = FT_NEW_ARRAY(f->arena, demand *, (size_t)target + 1);
  const list *at = intern(f, index, count);
  FT_OOM_IF(!f->wanted || !at, error);
  FT_TRY(want(f, target, at, error));
  for (uint32_t p = target + 1; p-- > 0;)
    for (demand *d = f->wanted[p]; d; d = d->next)
      FT_TRY(spread(f, &f->run->node[p], d, error));
  for (uint32_t p = 0; p <= target; p++)
    for (demand *d = f->wanted[p]; d; d = d->next) {
      node *n = &f->run->node[p];
      FT_TRY(n->kernel ? compute(f, n, d, error) : reduce(f, n, d, error));
    }
  *out = f->wanted[target]->column;
  return FT_OK;
}

// ---- reductions -----------------------------------------------------------------

// Rows on their way through a frame.
typedef struct batch {
  int64_t index[FT_PLANE_CHUNK], slot[FT_PLANE_CHUNK];
  size_t count;
} batch;

static ft_status flush(frame *inner, const node *n, batch *b, ft_accumulator *accumulator,
                       ft_error *error) {
  ft_cells cells = {0};
  if (b->count == 0) return FT_OK;
  ft_arena_reset(inner->arena);
  if (n->producer[0] != FT_NONE) {
    FT_TRY(evaluate(inner, n->producer[0], b->index, b->count, &cells, error));
  } else {
    FT_TRY(new_cells(inner, n->step.in_dtype[0], b->count, &cells, error));
    ft_plane_gather(n->outside[0], b->index, b->count, &cells);
  }
  ft_accumulator_add(n->step.op, n->step.dtype, accumulator, b->slot, &cells, b->count);
  b->count = 0;
  return FT_OK;
}

static ft_status add_rows(frame *inner, const node *n, const list *rows, batch *b,
                          ft_accumulator *accumulator, ft_error *error) {
  for (size_t r = 0; r < rows->count; r++) {
    int64_t first;
    ft_remap_list(&n->row_start, &rows->index[r], 1, &first);
    for (int64_t at = 0; at < n->row_length;) {
      size_t room = FT_PLANE_CHUNK - b->count;
      int64_t left = n->row_length - at;
      size_t take = (uint64_t)left < room ? (size_t)left : room;
      ft_remap_run(&n->row_step, at, take, b->index + b->count);
      for (size_t j = b->count; j < b->count + take; j++) {
        b->index[j] += first;
        b->slot[j] = (int64_t)r;
      }
      b->count += take;
      at += (int64_t)take;
      if (b->count == FT_PLANE_CHUNK) FT_TRY(flush(inner, n, b, accumulator, error));
    }
  }
  return flush(inner, n, b, accumulator, error);
}

// Reduces the rows of the elements |rows|, which are in the memo but not yet known.
static ft_status reduce_rows(frame *f, node *n, const list *rows, ft_error *error) {
  batch *b = FT_NEW(f->arena, batch);
  ft_accumulator *accumulator = FT_NEW_ARRAY(f->arena, ft_accumulator, rows->count);
  FT_OOM_IF(!b || !accumulator, error);
  ft_accumulator_init(n->step.op, n->step.dtype, accumulator, rows->count);
  frame inner = {.run = f->run, .arena = ft_arena_create(ft_allocator_system())};
  FT_OOM_IF(!inner.arena, error);
  ft_status status = add_rows(&inner, n, rows, b, accumulator, error);
  ft_arena_destroy(inner.arena);
  for (size_t r = 0; status == FT_OK && r < rows->count; r++) {
    bool is_new;
    ft_memo_entry *entry = ft_memo_find(&n->memo, rows->index[r], &is_new);
    ft_cells cells = {&entry->value, &entry->scale, &entry->integer};
    ft_accumulator_finish(n->step.op, n->step.dtype, &accumulator[r], n->row_length, 0,
                          &cells);
  }
  return status;
}

static ft_status reduce(frame *f, node *n, demand *d, ft_error *error) {
  FT_TRY(ft_memo_reserve(&n->memo, d->at->count, error));
  list missing = {.index = FT_NEW_ARRAY(f->arena, int64_t, d->at->count)};
  FT_OOM_IF(!missing.index, error);
  bool is_new;
  for (size_t j = 0; j < d->at->count; j++) {
    ft_memo_find(&n->memo, d->at->index[j], &is_new);
    if (is_new) missing.index[missing.count++] = d->at->index[j];
  }
  if (missing.count) FT_TRY(reduce_rows(f, n, &missing, error));
  FT_TRY(new_cells(f, n->step.dtype, d->at->count, &d->column, error));
  for (size_t j = 0; j < d->at->count; j++) {
    const ft_memo_entry *entry = ft_memo_find(&n->memo, d->at->index[j], &is_new);
    if (d->column.value) d->column.value[j] = entry->value;
    if (d->column.integer) d->column.integer[j] = entry->integer;
    d->column.scale[j] = entry->scale;
  }
  return FT_OK;
}

// ---- the call -------------------------------------------------------------------

// Where results go; each may be NULL.
typedef struct sink {
  double *value, *scale;
  int64_t *integer;
} sink;

static void deliver(const ft_cells *cells, size_t count, size_t at, const sink *to) {
  if (to->value && cells->value)
    memcpy(to->value + at, cells->value, count * sizeof *to->value);
  if (to->scale) memcpy(to->scale + at, cells->scale, count * sizeof *to->scale);
  if (to->integer && cells->integer)
    memcpy(to->integer + at, cells->integer, count * sizeof *to->integer);
}

static ft_status check_indices(const ft_value *value, const int64_t *index,
                               uint32_t count, ft_error *error) {
  int64_t elements = ft_shape_elements(&value->shape);
  for (uint32_t i = 0; i < count; i++)
    if (index[i] < 0 || index[i] >= elements)
      FT_FAIL(error, FT_INVALID_ARGUMENT, "element %lld of '%s', which has %lld",
              (long long)index[i], value->name, (long long)elements);
  return FT_OK;
}

static ft_status sample(frame *f, uint32_t target, const int64_t *index, uint32_t count,
                        const sink *to, ft_error *error) {
  for (size_t at = 0; at < count; at += FT_PLANE_CHUNK) {
    size_t left = count - at, take = left < FT_PLANE_CHUNK ? left : FT_PLANE_CHUNK;
    ft_arena_reset(f->arena);
    int64_t *batch_index =
        ft_arena_memdup(f->arena, index + at, take * sizeof *batch_index);
    FT_OOM_IF(!batch_index, error);
    ft_cells cells;
    FT_TRY(evaluate(f, target, batch_index, take, &cells, error));
    deliver(&cells, take, at, to);
  }
  return FT_OK;
}

static ft_status interpret(evaluation *run, frame *f, const ft_tensor *input,
                           uint32_t output, const int64_t *index, uint32_t count,
                           const sink *to, ft_error *error) {
  FT_TRY(prepare(run, input, error));
  const ft_graph *graph = run->group->graph;
  if (output >= run->group->output_count)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "output %u of a group with %u", output,
            run->group->output_count);
  const ft_value *value = &graph->value[run->group->output[output]];
  uint32_t producer = value->producer;
  uint32_t target = producer == FT_NONE ? FT_NONE : run->position[producer];
  if (target == FT_NONE)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "'%s' is not computed in the group", value->name);
  FT_TRY(check_indices(value, index, count, error));
  return sample(f, target, index, count, to, error);
}

ft_status ft_interpret_group(const ft_group *group, const ft_tensor *input,
                             uint32_t output, const int64_t *index, uint32_t count,
                             double *value, double *scale, int64_t *integer,
                             ft_error *error) {
  evaluation run = {.group = group, .arena = ft_arena_create(ft_allocator_system())};
  frame f = {.run = &run, .arena = ft_arena_create(ft_allocator_system())};
  ft_status status = FT_OUT_OF_MEMORY;
  if (run.arena && f.arena)
    status = interpret(&run, &f, input, output, index, count,
                       &(sink){value, scale, integer}, error);
  else
    ft_error_set(error, status, "out of memory in %s", __func__);
  for (uint32_t p = 0; run.node && p < group->primitive_count; p++)
    ft_memo_fini(&run.node[p].memo);
  ft_arena_destroy(f.arena);
  ft_arena_destroy(run.arena);
  return status;
}
