// Reductions, windows and contractions: loops over the terms of some elements at once.
//
// Float sums of more than SHORT terms add up to SHORT in single precision before they go
// to a double, so that the error does not grow with their number. Float products run in
// double.
#include <math.h>
#include <string.h>

#include "codegen/expressions.h"
#include "codegen/loop_emit.h"

enum { SHORT = 64, LEAST_ACROSS = 4, MAX_LOOPS = FT_MAX_RANK + 1 };

typedef struct anchor {
  ft_loop_emitter *e;
  const ft_primitive *p;
  const ft_place *place[FT_MAX_TILE];
  uint32_t count;
  bool is_flat;   // a convolution of single points: its spatial dims are one
  ft_op combine;  // a reduction
  uint16_t lanes;
  ft_dtype dtype, stored;  // of the terms; what the graph says
  uint32_t loops;
  ft_affine begin[MAX_LOOPS], end[MAX_LOOPS];
  int64_t extent[MAX_LOOPS];  // at most
  int64_t step[MAX_LOOPS];
  ft_affine at[MAX_LOOPS];  // this iteration
  uint32_t total[FT_MAX_TILE], partial[FT_MAX_TILE];
  uint32_t chunk_loop;  // partial sums end with so many steps of this loop
  int64_t chunk;        // 0: no partial sums
} anchor;

bool ft_loop_is_anchor(const ft_primitive *p) {
  ft_op_class class = ft_op_describe(p->op)->class;
  return class == FT_CLASS_R || class == FT_CLASS_S || class == FT_CLASS_M;
}

static const ft_shape *shape_of(const anchor *a, uint32_t value) {
  return &a->e->graph->value[value].shape;
}

double ft_loop_terms(const ft_graph *graph, const ft_primitive *p) {
  const ft_shape *first = &graph->value[p->input[0]].shape;
  double terms = 1;
  if (p->op == FT_OP_MATMUL) return (double)first->dim[first->rank - 1];
  if (p->op == FT_OP_CONV) {
    const ft_shape *w = &graph->value[p->input[1]].shape;
    for (uint8_t i = 1; i < w->rank; i++) terms *= (double)w->dim[i];
    return terms;
  }
  bool is_window = ft_op_describe(p->op)->class == FT_CLASS_S;
  for (uint8_t i = 0; i < first->rank; i++) {
    if (is_window)
      terms *= i < 2 ? 1 : (double)p->attr.window[i - 2];
    else if (p->attr.axes >> i & 1)
      terms *= (double)first->dim[i];
  }
  return terms;
}

// ---- the loops ------------------------------------------------------------------------

static void add_loop(anchor *a, ft_affine begin, ft_affine end, int64_t extent) {
  FT_ASSERT(a->loops < MAX_LOOPS);
  a->begin[a->loops] = begin;
  a->end[a->loops] = end;
  a->step[a->loops] = 1;
  a->extent[a->loops++] = extent;
}

static void add_whole(anchor *a, int64_t extent) {
  add_loop(a, ft_affine_number(0), ft_affine_number(extent), extent);
}

// ceil(max(0, a) / divisor), an index.
static ft_kir_id ceil_of(anchor *a, ft_affine numerator, int64_t divisor) {
  ft_places *q = &a->e->places;
  ft_affine raised = ft_affine_add(q, numerator, ft_affine_number(divisor - 1));
  ft_kir_id index = ft_places_index(q, FT_KIR_IMAX, ft_places_number(q, 0),
                                    ft_loop_index(a->e, raised));
  return ft_places_index(q, FT_KIR_IDIV, index, ft_places_number(q, divisor));
}

// The window positions of spatial axis |i| that lie in the input, for output |o|.
static void add_window(anchor *a, int i, int64_t window, ft_affine o) {
  const ft_attr *attr = &a->p->attr;
  ft_places *q = &a->e->places;
  int64_t in = shape_of(a, a->p->input[0])->dim[i + 2];
  int64_t out = shape_of(a, a->p->output)->dim[i + 2];
  int64_t reach = (window - 1) * attr->dilation[i];
  ft_affine first = ft_affine_add(q, ft_affine_scale(q, o, attr->stride[i]),
                                  ft_affine_number(-attr->start[i]));
  bool is_inside = attr->start[i] == 0 && (out - 1) * attr->stride[i] + reach < in;
  if (is_inside || !window) {
    add_whole(a, window);
    return;
  }
  if (o.coef || !o.rest) {
    // Along the vectors: the whole window inside, or it is the rim.
    if (ft_loop_within(a->e, first, 0, in - reach) == FT_WITHIN) {
      add_whole(a, window);
      return;
    }
    if (o.coef) a->e->wants_rim = true;
  }
  // lo = ceil(-first / d), hi = min(window, ceil((in - first) / d))
  ft_affine back = ft_affine_scale(q, first, -1);
  ft_affine lo = ft_affine_of(q, ceil_of(a, back, attr->dilation[i]));
  ft_kir_id hi =
      ceil_of(a, ft_affine_add(q, back, ft_affine_number(in)), attr->dilation[i]);
  hi = ft_places_index(q, FT_KIR_IMIN, hi, ft_places_number(q, window));
  add_loop(a, lo, ft_affine_of(q, hi), window);
}

// Loops for the element at |place|, outermost first.
static void find_loops(anchor *a, const ft_place *place) {
  const ft_primitive *p = a->p;
  const ft_shape *first = shape_of(a, p->input[0]);
  ft_op_class class = ft_op_describe(p->op)->class;
  a->loops = 0;
  if (p->op == FT_OP_MATMUL) add_whole(a, first->dim[first->rank - 1]);
  if (p->op == FT_OP_CONV) {
    const ft_shape *w = shape_of(a, p->input[1]);
    add_whole(a, w->dim[1]);
    for (int i = 0; i + 2 < w->rank && !a->is_flat; i++)
      add_window(a, i, w->dim[i + 2], place->dim[i + 2]);
  }
  for (int i = 0; class == FT_CLASS_S && i + 2 < first->rank; i++)
    add_window(a, i, p->attr.window[i], place->dim[i + 2]);
  for (int i = 0; class == FT_CLASS_R && i < first->rank; i++) {
    if (p->attr.axes >> i & 1) add_whole(a, first->dim[i]);
  }
}

// ---- operands
// ---------------------------------------------------------------------------

static const ft_place *reduced_place(anchor *a, const ft_place *place) {
  ft_affine dim[FT_MAX_RANK];
  uint32_t loop = 0;
  for (uint8_t i = 0; i < place->shape.rank; i++)
    dim[i] = a->p->attr.axes >> i & 1 ? a->at[loop++] : place->dim[i];
  return ft_place_make(&a->e->places, shape_of(a, a->p->input[0]), dim);
}

// Operand |i| of a matmul: its batch dims broadcast to the result's.
static const ft_place *matmul_place(anchor *a, uint32_t i, const ft_place *place) {
  const ft_shape *shape = shape_of(a, a->p->input[i]);
  int shift = place->shape.rank - shape->rank, rank = shape->rank;
  ft_affine dim[FT_MAX_RANK];
  for (int k = 0; k < rank - 2; k++) dim[k] = place->dim[k + shift];
  dim[rank - 2] = i ? a->at[0] : place->dim[place->shape.rank - 2];
  dim[rank - 1] = i ? place->dim[place->shape.rank - 1] : a->at[0];
  return ft_place_make(&a->e->places, shape, dim);
}

// Spatial dims of the input, from the output's and those of the window.
static void window_dims(anchor *a, const ft_place *place, const ft_affine *window,
                        ft_affine *dim) {
  ft_places *q = &a->e->places;
  const ft_attr *attr = &a->p->attr;
  for (int i = 0; i + 2 < place->shape.rank; i++) {
    ft_affine at =
        ft_affine_add(q, ft_affine_scale(q, place->dim[i + 2], attr->stride[i]),
                      ft_affine_scale(q, window[i], attr->dilation[i]));
    dim[i + 2] = ft_affine_add(q, at, ft_affine_number(-attr->start[i]));
  }
}

static const ft_place *window_place(anchor *a, const ft_place *place) {
  ft_affine dim[FT_MAX_RANK] = {place->dim[0], place->dim[1]};
  window_dims(a, place, a->at, dim);
  return ft_place_make(&a->e->places, shape_of(a, a->p->input[0]), dim);
}

static const ft_place *conv_place(anchor *a, uint32_t i, const ft_place *place) {
  ft_places *q = &a->e->places;
  const ft_shape *w = shape_of(a, a->p->input[1]);
  ft_affine dim[FT_MAX_RANK] = {{0}};
  if (i == 1) {
    dim[0] = place->dim[1];
    for (int k = 1; k < w->rank && (k < 2 || !a->is_flat); k++) dim[k] = a->at[k - 1];
    return ft_place_make(q, w, dim);
  }
  ft_affine group = ft_affine_number(0);
  if (a->p->attr.groups > 1)
    group = ft_affine_divide(q, place->dim[1], w->dim[0] / a->p->attr.groups);
  dim[0] = place->dim[0];
  dim[1] = ft_affine_add(q, ft_affine_scale(q, group, w->dim[1]), a->at[0]);
  const ft_shape *x = shape_of(a, a->p->input[0]);
  if (!a->is_flat) {
    window_dims(a, place, a->at + 1, dim);
    return ft_place_make(q, x, dim);
  }
  dim[2] = place->dim[2];
  ft_shape flat = {.rank = 3, .dim = {x->dim[0], x->dim[1], place->shape.dim[2]}};
  return ft_place_view(q, ft_place_make(q, &flat, dim), x);
}

static const ft_place *operand_place(anchor *a, uint32_t i, const ft_place *place) {
  if (a->p->op == FT_OP_MATMUL) return matmul_place(a, i, place);
  if (a->p->op == FT_OP_CONV) return conv_place(a, i, place);
  return ft_op_describe(a->p->op)->class == FT_CLASS_S ? window_place(a, place)
                                                       : reduced_place(a, place);
}

// ---- registers
// --------------------------------------------------------------------------

static int64_t identity(ft_op op, ft_dtype dtype) {
  double number = op == FT_OP_REDUCE_PROD ? 1 : 0;
  int64_t integer = op == FT_OP_REDUCE_PROD, bits;
  bool is_wide = dtype == FT_I64, is_bool = dtype == FT_BOOL;
  if (op == FT_OP_REDUCE_MAX) {
    number = -INFINITY;
    integer = is_bool ? 0 : is_wide ? INT64_MIN : INT32_MIN;
  }
  if (op == FT_OP_REDUCE_MIN) {
    number = INFINITY;
    integer = is_bool ? 1 : is_wide ? INT64_MAX : INT32_MAX;
  }
  memcpy(&bits, &number, sizeof bits);
  return ft_dtype_is_float(dtype) ? bits : integer;
}

static uint32_t new_register(anchor *a, ft_dtype dtype) {
  ft_kir *kir = a->e->kir;
  ft_kir_block *here = ft_loop_here(a->e);
  ft_kir_type type = {dtype, a->lanes};
  uint32_t id = ft_kir_register(kir, here, type);
  ft_kir_id zero = ft_kir_element(kir, here, type, identity(a->combine, dtype));
  ft_kir_store(kir, here, id, zero, ft_places_number(&a->e->places, 0), 1, FT_KIR_CACHED);
  return id;
}

static ft_kir_id read_register(anchor *a, uint32_t id) {
  return ft_kir_load(a->e->kir, ft_loop_here(a->e), id, a->lanes,
                     ft_places_number(&a->e->places, 0), 1);
}

static ft_kir_id converted(anchor *a, ft_kir_id value, ft_dtype dtype) {
  if (a->e->kir->value[value].type.dtype == dtype) return value;
  return ft_kir_primitive(a->e->kir, ft_loop_here(a->e), FT_OP_CAST, dtype, &value, 1);
}

static void accumulate(anchor *a, uint32_t id, ft_kir_id value) {
  ft_kir *kir = a->e->kir;
  ft_kir_id old = read_register(a, id);
  ft_kir_id sum = ft_kir_combine(kir, ft_loop_here(a->e), a->combine, old,
                                 converted(a, value, kir->buffer[id].dtype));
  ft_kir_store(kir, ft_loop_here(a->e), id, sum, ft_places_number(&a->e->places, 0), 1,
               FT_KIR_CACHED);
}

// ---- terms
// ------------------------------------------------------------------------------

static ft_kir_id term(anchor *a, const ft_place *place) {
  ft_loop_emitter *e = a->e;
  ft_kir_id factor[2] = {0};
  for (uint32_t i = 0; i < a->p->input_count; i++) {
    const ft_place *at = operand_place(a, i, place);
    if (!at || e->kir->failed) return 0;
    factor[i] = ft_loop_spread(e, ft_loop_value(e, a->p->input[i], at), a->lanes);
  }
  if (a->p->input_count == 1) return factor[0];
  return ft_kir_primitive(e->kir, ft_loop_here(e), FT_OP_MUL, a->dtype, factor, 2);
}

static void add_terms(anchor *a) {
  for (uint32_t r = 0; r < a->count; r++) {
    ft_kir_id value = term(a, a->place[r]);
    if (a->e->kir->failed) return;
    accumulate(a, a->chunk ? a->partial[r] : a->total[r], value);
  }
}

static void run_loops(anchor *a, uint32_t loop);

static void run_loop(anchor *a, uint32_t loop, ft_kir_id begin, ft_kir_id end) {
  ft_loop_emitter *e = a->e;
  bool is_across = a->step[loop] > 1;
  ft_kir_stmt *stmt = ft_kir_for(e->kir, is_across ? FT_KIR_VECTOR : FT_KIR_SERIAL, begin,
                                 end, ft_places_number(&e->places, a->step[loop]));
  ft_loop_enter(e, &stmt->body);
  a->at[loop] =
      is_across ? (ft_affine){.coef = 1} : ft_affine_of(&e->places, stmt->value);
  if (is_across) e->inner = stmt->value;
  run_loops(a, loop + 1);
  ft_loop_close(e, stmt);
}

// |chunk| steps at a time into partial sums.
static void run_chunks(anchor *a, uint32_t loop, ft_kir_id begin, ft_kir_id end) {
  ft_loop_emitter *e = a->e;
  ft_kir_id step = ft_places_number(&e->places, a->chunk * a->step[loop]);
  ft_kir_stmt *stmt = ft_kir_for(e->kir, FT_KIR_SERIAL, begin, end, step);
  ft_loop_enter(e, &stmt->body);
  for (uint32_t r = 0; r < a->count; r++) a->partial[r] = new_register(a, a->dtype);
  ft_kir_id last = ft_places_index(&e->places, FT_KIR_IADD, stmt->value, step);
  last = ft_places_index(&e->places, FT_KIR_IMIN, last, end);
  run_loop(a, loop, stmt->value, last);
  for (uint32_t r = 0; r < a->count; r++)
    accumulate(a, a->total[r], read_register(a, a->partial[r]));
  ft_loop_close(e, stmt);
}

static void run_loops(anchor *a, uint32_t loop) {
  if (loop == a->loops) {
    add_terms(a);
    return;
  }
  ft_kir_id begin = ft_loop_index(a->e, a->begin[loop]);
  ft_kir_id end = ft_loop_index(a->e, a->end[loop]);
  if (a->chunk && loop == a->chunk_loop)
    run_chunks(a, loop, begin, end);
  else
    run_loop(a, loop, begin, end);
}

// Which loop partial sums end in, when there are many terms.
static void choose_chunk(anchor *a) {
  double all = 1, inner = 1;
  for (uint32_t i = 0; i < a->loops; i++) all *= (double)a->extent[i];
  bool is_float_sum = a->combine == FT_OP_REDUCE_SUM && a->stored == FT_F32;
  if (!is_float_sum || all <= SHORT) return;
  a->chunk_loop = a->loops - 1;
  while (inner * (double)a->extent[a->chunk_loop] <= SHORT)
    inner *= (double)a->extent[a->chunk_loop--];
  a->chunk = (int64_t)(SHORT / inner);
}

static bool is_empty(const anchor *a) {
  for (uint32_t i = 0; i < a->loops; i++) {
    if (!a->extent[i]) return true;
  }
  return false;
}

static bool varies(const ft_place *place) {
  for (uint8_t i = 0; i < place->shape.rank; i++) {
    if (place->dim[i].coef) return true;
  }
  return false;
}

static ft_op combining(ft_op op) {
  if (op == FT_OP_WINDOW_MAX) return FT_OP_REDUCE_MAX;
  return ft_op_describe(op)->class == FT_CLASS_R ? op : FT_OP_REDUCE_SUM;
}

// Every output point reads one input point, the same.
static bool is_pointwise_conv(const anchor *a) {
  if (a->p->op != FT_OP_CONV) return false;
  const ft_shape *x = shape_of(a, a->p->input[0]), *w = shape_of(a, a->p->input[1]);
  const ft_shape *y = shape_of(a, a->p->output);
  for (int i = 2; i < x->rank; i++) {
    if (w->dim[i] != 1 || x->dim[i] != y->dim[i] || a->p->attr.start[i - 2]) return false;
    if (a->p->attr.stride[i - 2] != 1) return false;
  }
  return x->rank > 2;
}

static const ft_place *flattened(anchor *a, const ft_place *place) {
  ft_shape flat = {.rank = 3, .dim = {place->shape.dim[0], place->shape.dim[1], 1}};
  for (int i = 2; i < place->shape.rank; i++) flat.dim[2] *= place->shape.dim[i];
  return ft_place_view(&a->e->places, place, &flat);
}

static void open_totals(anchor *a) {
  ft_dtype wide = a->dtype;
  choose_chunk(a);
  // Products overflow on the way where the result does not: those of f16 not in f32.
  bool is_product = a->combine == FT_OP_REDUCE_PROD && a->stored != FT_F16;
  if (a->dtype == FT_F32 && (a->chunk || is_product)) wide = FT_F64;
  for (uint32_t r = 0; r < a->count; r++) a->total[r] = new_register(a, wide);
}

// The last loop in vectors, one term a lane: the inner index is that loop's meanwhile.
static void run_across(anchor *a, uint16_t lanes) {
  ft_loop_emitter *e = a->e;
  uint32_t last = a->loops - 1;
  int64_t extent = a->extent[last], full = extent / lanes * lanes;
  e->low = 0;
  e->high = extent;
  a->lanes = e->lanes = lanes;
  a->step[last] = lanes;
  a->extent[last] = extent / lanes;
  a->end[last] = ft_affine_number(full);
  open_totals(a);
  run_loops(a, 0);
  a->lanes = e->lanes = 1;
  for (uint32_t r = 0; r < a->count; r++) {
    ft_kir_id all = ft_kir_load(e->kir, ft_loop_here(e), a->total[r], lanes,
                                ft_places_number(&e->places, 0), 1);
    all = ft_kir_fold(e->kir, ft_loop_here(e), a->combine, all);
    a->total[r] = new_register(a, e->kir->value[all].type.dtype);
    accumulate(a, a->total[r], all);
  }
  // What is left of it, one by one.
  a->step[last] = 1;
  a->chunk = 0;
  a->begin[last] = ft_affine_number(full);
  a->end[last] = ft_affine_number(extent);
  if (full < extent) run_loops(a, 0);
  e->ran_across = true;
}

// Only a loop over the whole axis: the rim of a window has fewer terms.
static bool is_whole(const anchor *a, uint32_t loop) {
  const ft_affine *begin = &a->begin[loop], *end = &a->end[loop];
  return !begin->rest && !begin->offset && !end->rest && end->offset == a->extent[loop];
}

static uint16_t lanes_across(const anchor *a) {
  uint16_t lanes = a->e->across;
  if (!lanes || !a->loops || !is_whole(a, a->loops - 1)) return 1;
  while (lanes > a->extent[a->loops - 1]) lanes /= 2;
  return lanes < LEAST_ACROSS ? 1 : lanes;
}

static void run(anchor *a, const ft_place *const *result) {
  find_loops(a, a->place[0]);
  uint16_t lanes = is_empty(a) ? 1 : lanes_across(a);
  if (lanes > 1) {
    run_across(a, lanes);
  } else {
    open_totals(a);
    if (!is_empty(a)) run_loops(a, 0);
  }
  uint32_t root = a->p->output;
  for (uint32_t r = 0; r < a->count && !a->e->kir->failed; r++)
    ft_loop_remember(a->e, root, result[r],
                     converted(a, read_register(a, a->total[r]), a->dtype));
}

// True when the element at |place| has the same loops as the first.
static bool has_loops(anchor *a, const ft_place *place) {
  anchor other = *a;
  find_loops(&other, place);
  for (uint32_t i = 0; i < a->loops; i++) {
    if (other.begin[i].rest != a->begin[i].rest || other.end[i].rest != a->end[i].rest ||
        other.begin[i].offset != a->begin[i].offset ||
        other.end[i].offset != a->end[i].offset)
      return false;
  }
  return true;
}

static void take_places(anchor *a, const ft_place *const *place) {
  a->is_flat = is_pointwise_conv(a);
  for (uint32_t r = 0; r < a->count; r++) {
    a->place[r] = a->is_flat ? flattened(a, place[r]) : place[r];
    if (!a->place[r]) return;
    if (varies(a->place[r])) a->lanes = a->e->lanes;
    for (uint8_t i = 0; i < a->place[r]->shape.rank; i++)
      a->e->is_lost |= a->place[r]->dim[i].is_lost;
  }
  if (a->e->is_lost) a->lanes = a->e->lanes;
}

void ft_loop_anchor(ft_loop_emitter *e, const ft_primitive *p,
                    const ft_place *const *place, uint32_t count) {
  FT_ASSERT(count <= FT_MAX_TILE);
  anchor a = {.e = e,
              .p = p,
              .count = count,
              .combine = combining(p->op),
              .lanes = 1,
              .stored = e->graph->value[p->output].dtype};
  a.dtype = ft_kir_math_dtype(a.stored);
  take_places(&a, place);
  if (e->kir->failed) return;
  bool is_joint = true;
  find_loops(&a, a.place[0]);
  for (uint32_t r = 1; r < count; r++) is_joint &= has_loops(&a, a.place[r]);
  if (is_joint) {
    run(&a, place);
    return;
  }
  for (uint32_t r = 0; r < count; r++) ft_loop_anchor(e, p, place + r, 1);
}
