// The sampling interpreter: evaluates the elements asked for, and what they need.
//
// Work goes in batches of up to FT_PLANE_CHUNK elements. A frame evaluates one batch of
// one primitive: first it walks the primitives backwards and finds which lists of
// elements of which values are needed, then forwards and computes them, with the same
// kernels as the dense interpreter. Equal lists are one list, so a value that is
// reached by two ways is computed once. A row primitive (reduction, window, contraction)
// is a leaf of the frame: it looks its elements up in its memo and evaluates the missing
// rows in frames of their own. So is a gather whose indices the group computes.
#include <string.h>

#include "graph/gather.h"
#include "graph/interpreter.h"
#include "graph/memo.h"
#include "graph/plane.h"
#include "graph/rows.h"
#include "graph/select.h"

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
  const list **operand;   // [step.count]; NULL where nothing is needed
  const uint32_t *which;  // selections: the operand of each element
  ft_cells column;
} demand;

// A primitive of the group.
typedef struct node {
  ft_step step;
  ft_step_kind kind;
  bool is_leaf;              // its operands are evaluated in frames of their own
  uint32_t *producer;        // [step.count] position in the group, FT_NONE: from outside
  const ft_plane **outside;  // [step.count]
  ft_elementwise *kernel;    // pointwise, with |remap|
  ft_remap remap[3];
  ft_select select;
  ft_gather gather;
  ft_rows rows;
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

static ft_status prepare_pointwise(node *n, ft_error *error) {
  n->kernel = ft_semantics_find(n->step.op, ft_step_operand_dtype(&n->step));
  if (!n->kernel)
    FT_FAIL(error, FT_UNSUPPORTED, "%s of %s has no meaning",
            ft_op_describe(n->step.op)->name,
            ft_dtype_text(ft_step_operand_dtype(&n->step)));
  for (uint32_t i = 0; i < n->step.count; i++) n->remap[i] = ft_step_remap(&n->step, i);
  return FT_OK;
}

static ft_status prepare_kind(evaluation *run, node *n, ft_error *error) {
  switch (n->kind) {
    case FT_STEP_POINTWISE:
      return prepare_pointwise(n, error);
    case FT_STEP_SELECT:
      return ft_select_make(&n->step, run->arena, &n->select, error);
    case FT_STEP_GATHER:
      n->gather = ft_gather_make(&n->step);
      n->is_leaf = n->producer[1] != FT_NONE;
      return FT_OK;
    default:
      n->rows = ft_rows_make(&n->step);
      n->is_leaf = true;
      return FT_OK;
  }
}

static ft_status prepare_node(evaluation *run, node *n, const ft_primitive *primitive,
                              ft_error *error) {
  FT_TRY(ft_step_of(run->group->graph, primitive, run->arena, &n->step, error));
  n->kind = ft_step_kind_of(n->step.op);
  n->producer = FT_NEW_ARRAY(run->arena, uint32_t, n->step.count);
  n->outside = FT_NEW_ARRAY(run->arena, const ft_plane *, n->step.count);
  FT_OOM_IF(!n->producer || !n->outside, error);
  for (uint32_t i = 0; i < n->step.count; i++)
    FT_TRY(find_operand(run, n, i, primitive->input[i], error));
  return prepare_kind(run, n, error);
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
  *out = (ft_cells){0};
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

static ft_status need(frame *f, const node *n, demand *d, uint32_t i, const list *at,
                      ft_error *error) {
  FT_OOM_IF(!at, error);
  d->operand[i] = at;
  return n->producer[i] == FT_NONE ? FT_OK : want(f, n->producer[i], at, error);
}

// Sorts the elements by operand, keeping their order.
static ft_status spread_selection(frame *f, const node *n, demand *d, ft_error *error) {
  size_t count = d->at->count, *used = FT_NEW_ARRAY(f->arena, size_t, n->step.count);
  uint32_t *which = FT_NEW_ARRAY(f->arena, uint32_t, count);
  int64_t *element = FT_NEW_ARRAY(f->arena, int64_t, count);
  int64_t **part = FT_NEW_ARRAY(f->arena, int64_t *, n->step.count);
  FT_OOM_IF(!used || !which || !element || !part, error);
  ft_select_run(&n->select, d->at->index, count, which, element);
  d->which = which;
  for (size_t j = 0; j < count; j++) used[which[j]]++;
  for (uint32_t i = 0; i < n->step.count; i++) {
    if (!used[i]) continue;
    part[i] = FT_NEW_ARRAY(f->arena, int64_t, used[i]);
    FT_OOM_IF(!part[i], error);
    used[i] = 0;
  }
  for (size_t j = 0; j < count; j++) part[which[j]][used[which[j]]++] = element[j];
  for (uint32_t i = 0; i < n->step.count; i++)
    if (used[i]) FT_TRY(need(f, n, d, i, intern(f, part[i], used[i]), error));
  return FT_OK;
}

// The indices are there already.
static ft_status spread_gather(frame *f, const node *n, demand *d, ft_error *error) {
  size_t count = d->at->count;
  ft_cells found = {0};
  int64_t *element = FT_NEW_ARRAY(f->arena, int64_t, count);
  FT_OOM_IF(!element, error);
  FT_TRY(new_cells(f, n->step.operand[1].dtype, count, &found, error));
  ft_remap_list(&n->gather.index, d->at->index, count, element);
  ft_plane_gather(n->outside[1], element, count, &found);
  FT_TRY(ft_gather_run(&n->gather, d->at->index, &found, count, element, error));
  return need(f, n, d, 0, intern(f, element, count), error);
}

// Finds what |d| needs of its operands; leaves look after themselves.
static ft_status spread(frame *f, const node *n, demand *d, ft_error *error) {
  if (n->is_leaf) return FT_OK;
  d->operand = FT_NEW_ARRAY(f->arena, const list *, n->step.count);
  FT_OOM_IF(!d->operand, error);
  if (n->kind == FT_STEP_SELECT) return spread_selection(f, n, d, error);
  if (n->kind == FT_STEP_GATHER) return spread_gather(f, n, d, error);
  for (uint32_t i = 0; i < n->step.count; i++)
    FT_TRY(need(f, n, d, i, mapped(f, &n->remap[i], d->at), error));
  return FT_OK;
}

// What |d| asked for of operand |i|.
static ft_status operand_cells(frame *f, const node *n, const demand *d, uint32_t i,
                               ft_cells *out, ft_error *error) {
  const list *at = d->operand[i];
  if (n->producer[i] != FT_NONE) {
    *out = find_demand(f, n->producer[i], at)->column;
    return FT_OK;
  }
  FT_TRY(new_cells(f, n->step.operand[i].dtype, at->count, out, error));
  ft_plane_gather(n->outside[i], at->index, at->count, out);
  return FT_OK;
}

static void copy_cell(const ft_cells *from, size_t at, ft_cells *to, size_t index) {
  to->scale[index] = from->scale[at];
  if (from->value) to->value[index] = from->value[at];
  if (from->integer) to->integer[index] = from->integer[at];
}

static ft_status compute_selection(frame *f, const node *n, demand *d, ft_error *error) {
  ft_cells *part = FT_NEW_ARRAY(f->arena, ft_cells, n->step.count);
  size_t *next = FT_NEW_ARRAY(f->arena, size_t, n->step.count);
  FT_OOM_IF(!part || !next, error);
  for (uint32_t i = 0; i < n->step.count; i++)
    if (d->operand[i]) FT_TRY(operand_cells(f, n, d, i, &part[i], error));
  for (size_t j = 0; j < d->at->count; j++) {
    uint32_t i = d->which[j];
    copy_cell(&part[i], next[i]++, &d->column, j);
  }
  return FT_OK;
}

static ft_status compute(frame *f, const node *n, demand *d, ft_error *error) {
  if (n->kind == FT_STEP_GATHER) return operand_cells(f, n, d, 0, &d->column, error);
  FT_TRY(new_cells(f, n->step.dtype, d->at->count, &d->column, error));
  if (n->kind == FT_STEP_SELECT) return compute_selection(f, n, d, error);
  ft_semantics_call call = {.from = ft_step_operand_dtype(&n->step),
                            .to = n->step.dtype,
                            .out = d->column,
                            .count = d->at->count};
  for (uint32_t i = 0; i < n->step.count; i++)
    FT_TRY(operand_cells(f, n, d, i, &call.in[i], error));
  n->kernel(&call);
  return FT_OK;
}

static ft_status leaf(frame *f, node *n, demand *d, ft_error *error);

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
      FT_TRY(n->is_leaf ? leaf(f, n, d, error) : compute(f, n, d, error));
    }
  *out = f->wanted[target]->column;
  return FT_OK;
}

// ---- leaves ---------------------------------------------------------------------

// Elements of operand |i|; *out lives until the inner frame's arena is reset.
static ft_status fetch(frame *inner, const node *n, uint32_t i, int64_t *index,
                       size_t count, ft_cells *out, ft_error *error) {
  if (n->producer[i] != FT_NONE)
    return evaluate(inner, n->producer[i], index, count, out, error);
  FT_TRY(new_cells(inner, n->step.operand[i].dtype, count, out, error));
  ft_plane_gather(n->outside[i], index, count, out);
  return FT_OK;
}

// Terms on their way through a frame.
typedef struct batch {
  int64_t index[2][FT_PLANE_CHUNK], slot[FT_PLANE_CHUNK];
  size_t count;
} batch;

static ft_status flush(frame *inner, const node *n, batch *b, const ft_row_sums *sums,
                       ft_error *error) {
  ft_cells cells[2] = {{0}};
  if (b->count == 0) return FT_OK;
  ft_arena_reset(inner->arena);
  for (uint32_t i = 0; i < n->rows.operands; i++)
    FT_TRY(fetch(inner, n, i, b->index[i], b->count, &cells[i], error));
  ft_rows_add(&n->rows, sums, b->slot, &cells[0], &cells[1], b->count);
  b->count = 0;
  return FT_OK;
}

// The terms just written behind the batch, as far as they are not in the padding.
static void take_terms(batch *b, size_t count, size_t row) {
  size_t end = b->count + count;
  for (size_t j = b->count; j < end; j++) {
    if (b->index[0][j] < 0) continue;
    b->index[0][b->count] = b->index[0][j];
    b->index[1][b->count] = b->index[1][j];
    b->slot[b->count++] = (int64_t)row;
  }
}

static ft_status add_rows(frame *inner, const node *n, const list *rows, batch *b,
                          const ft_row_sums *sums, ft_error *error) {
  for (size_t r = 0; r < rows->count; r++) {
    for (int64_t at = 0; at < n->rows.length;) {
      size_t room = FT_PLANE_CHUNK - b->count;
      int64_t left = n->rows.length - at;
      size_t take = (uint64_t)left < room ? (size_t)left : room;
      int64_t *const end[2] = {b->index[0] + b->count, b->index[1] + b->count};
      ft_rows_terms(&n->rows, rows->index[r], at, take, end);
      take_terms(b, take, r);
      at += (int64_t)take;
      if (b->count == FT_PLANE_CHUNK) FT_TRY(flush(inner, n, b, sums, error));
    }
  }
  return flush(inner, n, b, sums, error);
}

static ft_status new_sums(frame *f, const node *n, size_t count, ft_row_sums *out,
                          ft_error *error) {
  *out = (ft_row_sums){0};
  if (n->rows.operands == 2)
    out->contracted = FT_NEW_ARRAY(f->arena, ft_contraction, count);
  else
    out->reduced = FT_NEW_ARRAY(f->arena, ft_accumulator, count);
  FT_OOM_IF(!out->contracted && !out->reduced, error);
  ft_rows_init(&n->rows, out, count);
  return FT_OK;
}

// Computes the rows of the elements |rows|, which are in the memo but not yet known.
static ft_status compute_rows(frame *f, node *n, const list *rows, ft_error *error) {
  batch *b = FT_NEW(f->arena, batch);
  ft_row_sums sums;
  FT_OOM_IF(!b, error);
  FT_TRY(new_sums(f, n, rows->count, &sums, error));
  frame inner = {.run = f->run, .arena = ft_arena_create(ft_allocator_system())};
  FT_OOM_IF(!inner.arena, error);
  ft_status status = add_rows(&inner, n, rows, b, &sums, error);
  ft_arena_destroy(inner.arena);
  for (size_t r = 0; status == FT_OK && r < rows->count; r++) {
    bool is_new;
    ft_memo_entry *entry = ft_memo_find(&n->memo, rows->index[r], &is_new);
    ft_cells cells = {&entry->value, &entry->scale, &entry->integer};
    ft_rows_finish(&n->rows, &sums, r, 0, &cells);
  }
  return status;
}

static ft_status look_up(frame *f, node *n, demand *d, ft_error *error) {
  FT_TRY(ft_memo_reserve(&n->memo, d->at->count, error));
  list missing = {.index = FT_NEW_ARRAY(f->arena, int64_t, d->at->count)};
  FT_OOM_IF(!missing.index, error);
  bool is_new;
  for (size_t j = 0; j < d->at->count; j++) {
    ft_memo_find(&n->memo, d->at->index[j], &is_new);
    if (is_new) missing.index[missing.count++] = d->at->index[j];
  }
  if (missing.count) FT_TRY(compute_rows(f, n, &missing, error));
  FT_TRY(new_cells(f, n->step.dtype, d->at->count, &d->column, error));
  for (size_t j = 0; j < d->at->count; j++) {
    const ft_memo_entry *entry = ft_memo_find(&n->memo, d->at->index[j], &is_new);
    if (d->column.value) d->column.value[j] = entry->value;
    if (d->column.integer) d->column.integer[j] = entry->integer;
    d->column.scale[j] = entry->scale;
  }
  return FT_OK;
}

static ft_status gather_in(frame *inner, const node *n, demand *d, ft_error *error) {
  size_t count = d->at->count;
  int64_t *element = FT_NEW_ARRAY(inner->arena, int64_t, count);
  ft_cells found, data;
  FT_OOM_IF(!element, error);
  ft_remap_list(&n->gather.index, d->at->index, count, element);
  FT_TRY(fetch(inner, n, 1, element, count, &found, error));
  int64_t *chosen = FT_NEW_ARRAY(inner->arena, int64_t, count);
  FT_OOM_IF(!chosen, error);
  FT_TRY(ft_gather_run(&n->gather, d->at->index, &found, count, chosen, error));
  FT_TRY(fetch(inner, n, 0, chosen, count, &data, error));
  for (size_t j = 0; j < count; j++) {
    copy_cell(&data, j, &d->column, j);
    if (found.scale[j] > 0) d->column.scale[j] = found.scale[j];
  }
  return FT_OK;
}

static ft_status gather_computed(frame *f, const node *n, demand *d, ft_error *error) {
  FT_TRY(new_cells(f, n->step.dtype, d->at->count, &d->column, error));
  frame inner = {.run = f->run, .arena = ft_arena_create(ft_allocator_system())};
  FT_OOM_IF(!inner.arena, error);
  ft_status status = gather_in(&inner, n, d, error);
  ft_arena_destroy(inner.arena);
  return status;
}

static ft_status leaf(frame *f, node *n, demand *d, ft_error *error) {
  return n->kind == FT_STEP_ROWS ? look_up(f, n, d, error)
                                 : gather_computed(f, n, d, error);
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
