// Blocks of the operands into the thread's scratch, with what leads to them.
//
// Packed A is a row per row of the block, k along it; |k_lanes| elements lie free in
// front of each, since the last vector of a step may start before the step does. Packed B
// is a row per term, columns along it. Rows are kept from starting at a multiple of 4
// KiB, where they would compete for the same lines of the cache.
#include "codegen/contract_emit.h"

static ft_kir_id number(ft_contract_emitter *m, int64_t n) {
  return ft_contract_number(m, n);
}

static ft_kir_id add(ft_contract_emitter *m, ft_kir_id a, ft_kir_id b) {
  return ft_contract_index(m, FT_KIR_IADD, a, b);
}

static ft_kir_id subtract(ft_contract_emitter *m, ft_kir_id a, ft_kir_id b) {
  return ft_contract_index(m, FT_KIR_ISUB, a, b);
}

static ft_kir_id multiply(ft_contract_emitter *m, ft_kir_id a, int64_t n) {
  return ft_contract_index(m, FT_KIR_IMUL, a, number(m, n));
}

static ft_kir_id named(ft_contract_emitter *m, ft_kir_id a) {
  return ft_loop_named(m->e, a);
}

ft_kir_id ft_contract_packed_a(ft_contract_emitter *m, ft_affine row, ft_kir_id k) {
  ft_places *q = &m->e->places;
  ft_affine at = ft_affine_scale(q, row, m->a_stride);
  at = ft_affine_add(q, at, ft_affine_of(q, subtract(m, k, m->k0)));
  at = ft_affine_add(q, at, ft_affine_number(m->c->k_lanes));
  return ft_affine_index(q, at, 0);
}

ft_kir_id ft_contract_packed_b(ft_contract_emitter *m, ft_kir_id k, ft_affine column) {
  ft_places *q = &m->e->places;
  ft_affine at = ft_affine_of(q, multiply(m, subtract(m, k, m->k0), m->b_stride));
  at = ft_affine_add(q, at, ft_affine_number(m->c->turn_lanes * m->b_stride));
  return ft_affine_index(q, ft_affine_add(q, at, column), 0);
}

// Element of operand |i| (A, B) at |place| to |at| of |buffer|.
static void pack(ft_contract_emitter *m, uint32_t i, const ft_place *place,
                 uint32_t buffer, ft_kir_id at) {
  ft_loop_emitter *e = m->e;
  if (!place) e->kir->failed = true;
  if (e->kir->failed) return;
  ft_kir_id element = ft_loop_value(e, m->c->operand[i], place);
  if (e->kir->failed) return;
  ft_kir_store(e->kir, ft_loop_here(e), buffer, ft_loop_spread(e, element, e->lanes), at,
               1, FT_KIR_CACHED);
}

void ft_contract_pack_a(ft_contract_emitter *m) {
  const ft_contract *c = m->c;
  int64_t lanes = c->k_lanes;
  ft_kir_stmt *rows =
      ft_contract_open_loop(m, FT_KIR_SERIAL, number(m, 0), number(m, c->choice.mc), 1);
  ft_kir_id row = named(m, add(m, m->m0, rows->value));
  ft_kir_stmt *terms = ft_contract_open_loop(m, FT_KIR_VECTOR, m->k0, m->k1, lanes);
  ft_kir_id at = terms->value;
  if (lanes > 1)
    at = named(
        m, ft_contract_index(m, FT_KIR_IMIN, at, subtract(m, m->k1, number(m, lanes))));
  m->e->lanes = (uint16_t)lanes;
  ft_contract_split k = ft_contract_vector(m, at, c->k, c->k_segment);
  const ft_place *place = ft_contract_a_place(m, ft_affine_of(&m->e->places, row), k);
  pack(m, 0, place, m->a,
       ft_contract_packed_a(m, ft_affine_of(&m->e->places, rows->value), at));
  ft_contract_close_loop(m, terms);
  ft_contract_close_loop(m, rows);
}

static void pack_columns(ft_contract_emitter *m, ft_kir_id k) {
  const ft_contract *c = m->c;
  ft_places *q = &m->e->places;
  int64_t lanes = c->choice.vector;
  ft_kir_stmt *loop = ft_contract_open_loop(m, FT_KIR_VECTOR, number(m, 0),
                                            number(m, c->choice.nc), lanes);
  ft_kir_id column = loop->value;
  if (c->choice.nc % lanes) column = ft_contract_least(m, column, c->choice.nc - lanes);
  ft_kir_id at = named(m, add(m, m->n0, column));
  m->e->lanes = (uint16_t)lanes;
  ft_contract_split split = ft_contract_vector(m, at, c->n, c->segment);
  const ft_place *place = ft_contract_b_place(m, ft_affine_of(q, k), split);
  pack(m, 1, place, m->b, ft_contract_packed_b(m, k, ft_affine_of(q, column)));
  ft_contract_close_loop(m, loop);
}

// Squares of the matrix, turned. The last ones start early, as vectors do.
static void pack_squares(ft_contract_emitter *m) {
  const ft_contract *c = m->c;
  ft_loop_emitter *e = m->e;
  int64_t lanes = c->turn_lanes;
  ft_kir_stmt *columns = ft_contract_open_loop(m, FT_KIR_SERIAL, number(m, 0),
                                               number(m, c->choice.nc), lanes);
  ft_kir_id column = ft_contract_least(m, columns->value, c->choice.nc - lanes);
  ft_kir_id at = named(m, add(m, m->n0, column));
  ft_kir_stmt *terms = ft_contract_open_loop(m, FT_KIR_SERIAL, m->k0, m->k1, lanes);
  ft_kir_id last = subtract(m, m->k1, number(m, lanes));
  ft_kir_id k = named(m, ft_contract_index(m, FT_KIR_IMIN, terms->value, last));
  e->lanes = (uint16_t)lanes;
  ft_contract_split split = ft_contract_vector(m, at, c->n, c->segment);
  uint32_t root;
  ft_affine from = ft_contract_reach(
      m, 1, ft_contract_b_place(m, ft_affine_of(&e->places, k), split), &root);
  ft_kir_square source = {ft_loop_input(e, root), ft_loop_index(e, from), from.coef};
  ft_affine to = ft_affine_of(&e->places, column);
  ft_kir_square target = {m->b, ft_contract_packed_b(m, k, to), m->b_stride};
  ft_kir_turn(e->kir, ft_loop_here(e), source, target, (uint16_t)lanes);
  ft_contract_close_loop(m, terms);
  ft_contract_close_loop(m, columns);
}

// ---- windows of an image -------------------------------------------------------------
//
// Column n is output point n; the points of one row of the output (its last dim) read a
// run of the input, every stride-th element, with padding at its ends.

typedef struct image {
  ft_contract_emitter *m;
  int spatial;  // dims
  const ft_shape *in, *filter, *out;
  const ft_attr *attr;
  ft_kir_id channel, window[FT_MAX_RANK];  // of this term
  ft_affine dim[FT_MAX_RANK];              // of the input
  ft_kir_id target;                        // of output column 0 of the row, may be < 0
} image;

static ft_kir_id divide(ft_contract_emitter *m, ft_kir_id a, int64_t n) {
  return ft_contract_index(m, FT_KIR_IDIV, a, number(m, n));
}

static ft_kir_id modulo(ft_contract_emitter *m, ft_kir_id a, int64_t n) {
  return ft_contract_index(m, FT_KIR_IMOD, a, number(m, n));
}

// k is channel and window position, row-major, as the filter lies.
static void decode_term(image *t, ft_kir_id k) {
  ft_contract_emitter *m = t->m;
  for (int i = t->spatial - 1; i >= 0; i--) {
    t->window[i] = named(m, modulo(m, k, t->filter->dim[i + 2]));
    k = divide(m, k, t->filter->dim[i + 2]);
  }
  t->channel = named(m, k);
}

// Some output point of axis |i| reads padding.
static bool hangs_over(const image *t, int i) {
  const ft_attr *a = t->attr;
  int64_t reach = (t->filter->dim[i + 2] - 1) * a->dilation[i];
  int64_t last = (t->out->dim[i + 2] - 1) * a->stride[i] - a->start[i] + reach;
  return a->start[i] > 0 || last >= t->in->dim[i + 2];
}

// Where the window's position lies along axis |i| of the input, for output point |o|.
static ft_affine input_dim(image *t, int i, ft_affine o) {
  ft_places *q = &t->m->e->places;
  ft_affine at = ft_affine_scale(q, ft_affine_of(q, t->window[i]), t->attr->dilation[i]);
  at = ft_affine_add(q, at, ft_affine_scale(q, o, t->attr->stride[i]));
  return ft_affine_add(q, at, ft_affine_number(-t->attr->start[i]));
}

// 0 or 1: the row lies in the input. Decodes |row| into all dims but the last.
static ft_kir_id decode_row(image *t, ft_kir_id row) {
  ft_contract_emitter *m = t->m;
  ft_kir_id is_inside = number(m, 1);
  for (int i = t->spatial - 2; i >= 0; i--) {
    ft_kir_id o = named(m, modulo(m, row, t->out->dim[i + 2]));
    row = divide(m, row, t->out->dim[i + 2]);
    t->dim[i + 2] = input_dim(t, i, ft_affine_of(&m->e->places, o));
    if (!hangs_over(t, i)) continue;
    ft_kir_id at = named(m, ft_loop_index(m->e, t->dim[i + 2]));
    ft_kir_id above = ft_contract_index(m, FT_KIR_ILESS, number(m, -1), at);
    ft_kir_id below =
        ft_contract_index(m, FT_KIR_ILESS, at, number(m, t->in->dim[i + 2]));
    is_inside = ft_contract_index(m, FT_KIR_IMUL, is_inside,
                                  ft_contract_index(m, FT_KIR_IMUL, above, below));
  }
  return is_inside;
}

static void fill_zero(image *t, ft_kir_id from, ft_kir_id to) {
  ft_contract_emitter *m = t->m;
  ft_loop_emitter *e = m->e;
  ft_kir_stmt *loop = ft_contract_open_loop(m, FT_KIR_SERIAL, from, to, 1);
  ft_kir_type type = {FT_F32, 1};
  ft_kir_id zero = ft_kir_element(e->kir, ft_loop_here(e), type, 0);
  ft_kir_store(e->kir, ft_loop_here(e), m->b, zero, add(m, t->target, loop->value), 1,
               FT_KIR_CACHED);
  ft_contract_close_loop(m, loop);
}

static void copy_run(image *t, ft_kir_id from, ft_kir_id to, uint16_t lanes) {
  ft_contract_emitter *m = t->m;
  int last = t->spatial - 1;
  ft_kir_stmt *loop = ft_contract_open_loop(m, lanes > 1 ? FT_KIR_VECTOR : FT_KIR_SERIAL,
                                            from, to, lanes);
  m->e->lanes = lanes;
  m->e->inner = loop->value;
  t->dim[last + 2] = input_dim(t, last, (ft_affine){.coef = 1});
  pack(m, 1, ft_place_make(&m->e->places, t->in, t->dim), m->b,
       add(m, t->target, loop->value));
  ft_contract_close_loop(m, loop);
}

// Points [from, to) of the row, in vectors as far as they go.
static void copy(image *t, ft_kir_id from, ft_kir_id to) {
  ft_contract_emitter *m = t->m;
  int64_t lanes = m->c->choice.vector;
  while (lanes > t->out->dim[t->spatial + 1]) lanes /= 2;
  if (lanes > 1) {
    ft_kir_id whole = multiply(m, divide(m, subtract(m, to, from), lanes), lanes);
    ft_kir_id middle = named(m, add(m, from, whole));
    copy_run(t, from, middle, (uint16_t)lanes);
    from = middle;
  }
  copy_run(t, from, to, 1);
}

// ceil(max(0, n - window * dilation) / stride)
static ft_kir_id first_from(image *t, int i, int64_t n) {
  ft_contract_emitter *m = t->m;
  ft_kir_id back = multiply(m, t->window[i], t->attr->dilation[i]);
  ft_kir_id room = subtract(m, number(m, n), back);
  room = ft_contract_index(m, FT_KIR_IMAX, room, number(m, 0));
  return divide(m, add(m, room, number(m, t->attr->stride[i] - 1)), t->attr->stride[i]);
}

// Points [from, to) of a row that lies in the input.
static void copy_row(image *t, ft_kir_id from, ft_kir_id to) {
  ft_contract_emitter *m = t->m;
  int last = t->spatial - 1;
  if (!hangs_over(t, last)) {
    copy(t, from, to);
    return;
  }
  ft_kir_id low = first_from(t, last, t->attr->start[last]);
  ft_kir_id high = first_from(t, last, t->attr->start[last] + t->in->dim[last + 2]);
  low =
      ft_contract_index(m, FT_KIR_IMIN, ft_contract_index(m, FT_KIR_IMAX, low, from), to);
  low = named(m, low);
  high =
      ft_contract_index(m, FT_KIR_IMAX, ft_contract_index(m, FT_KIR_IMIN, high, to), low);
  high = named(m, high);
  fill_zero(t, from, low);
  copy(t, low, high);
  fill_zero(t, high, to);
}

// Row |row| of the output, what [n0, n0 + nc) has of it.
static void pack_row(image *t, ft_kir_id k, ft_kir_id row) {
  ft_contract_emitter *m = t->m;
  int64_t length = t->out->dim[t->spatial + 1];
  ft_kir_id begin = named(m, subtract(m, multiply(m, row, length), m->n0));
  ft_kir_id from = ft_contract_index(m, FT_KIR_ISUB, number(m, 0), begin);
  from = named(m, ft_contract_index(m, FT_KIR_IMAX, from, number(m, 0)));
  ft_kir_id to = subtract(m, number(m, m->c->choice.nc), begin);
  to = ft_contract_least(m, to, length);
  t->target = named(m, add(m, ft_contract_packed_b(m, k, ft_affine_number(0)), begin));
  ft_kir_id is_inside = decode_row(t, row);
  int64_t known;
  if (ft_kir_is_number(m->e->kir, is_inside, &known)) {
    copy_row(t, from, to);
    return;
  }
  ft_kir_stmt *branch = ft_kir_if(m->e->kir, is_inside);
  ft_loop_enter(m->e, &branch->body);
  copy_row(t, from, to);
  ft_loop_leave(m->e);
  ft_loop_enter(m->e, &branch->otherwise);
  fill_zero(t, from, to);
  ft_loop_close(m->e, branch);
}

static void pack_windows(ft_contract_emitter *m, ft_kir_id k) {
  const ft_graph *graph = m->e->graph;
  const ft_primitive *p = m->c->anchor;
  image t = {.m = m,
             .in = &graph->value[p->input[0]].shape,
             .filter = &graph->value[p->input[1]].shape,
             .out = &graph->value[p->output].shape,
             .attr = &p->attr};
  t.spatial = t.in->rank - 2;
  int64_t length = t.out->dim[t.spatial + 1];
  decode_term(&t, k);
  t.dim[0] = ft_affine_of(&m->e->places, m->batch);
  t.dim[1] = ft_affine_of(&m->e->places, t.channel);
  ft_kir_id first = named(m, divide(m, m->n0, length));
  ft_kir_id end = add(m, m->n0, number(m, m->c->choice.nc - 1));
  end = named(m, add(m, divide(m, end, length), number(m, 1)));
  ft_kir_stmt *rows = ft_contract_open_loop(m, FT_KIR_SERIAL, first, end, 1);
  pack_row(&t, k, rows->value);
  ft_contract_close_loop(m, rows);
}

void ft_contract_pack_b(ft_contract_emitter *m) {
  if (m->c->turn_lanes) {
    pack_squares(m);
    return;
  }
  ft_kir_stmt *terms = ft_contract_open_loop(m, FT_KIR_SERIAL, m->k0, m->k1, 1);
  if (m->c->is_image)
    pack_windows(m, terms->value);
  else
    pack_columns(m, terms->value);
  ft_contract_close_loop(m, terms);
}
