// MATMUL and CONV of floats in blocks.
//
//  1. Both sums of contraction.h are matrix products over the same blocks: values, and
//     scales with one or two factors per term. What is left to decide (overflow, NaN) is
//     rare and goes through row_reader.h, element by element.
//  2. Each element's terms are added in ascending order, each sum rounded by itself,
//     however blocks are cut: the bits are those of the term-by-term sum.
//  3. Panels are packed in the order in which the tile reads them; what sticks out is
//     zero, and so is the padding: zeros change no sum. Where they do (zero times
//     infinity) the sum is not finite, and 1. applies.
#include <math.h>
#include <string.h>

#include "graph/dense.h"
#include "graph/gemm.h"
#include "graph/image.h"
#include "graph/row_reader.h"

enum {
  BLOCK_DEPTH = 128,
  BLOCK_ROWS = 64,
  BLOCK_COLUMNS = 512,
};

// One packed panel: values, and scales with |factors| numbers per term.
typedef struct panel {
  double *value, *scale;
} panel;

// c [m][n] = a [m][k] b [k][n].
typedef struct product {
  const ft_contraction_rule *rule;
  ft_gemm_tile *tile;
  int64_t m, n, k;
  const ft_plane *a, *b;
  int64_t a_start, b_start;
  const ft_image *image;  // b, when it is not a matrix of the plane
  int64_t image_start;
  bool a_is_first;  // operand of the step
  size_t factors;   // of a term of the scale: 1 when the second operand is exact
  double *value, *scale;
  panel packed_a, packed_b;
  ft_chunk chunk;
} product;

// ---- packing --------------------------------------------------------------------

static inline double factor_of(const ft_contraction_rule *rule, bool is_first, double v,
                               double s, size_t which) {
  if (is_first) return ft_contraction_first(rule, v, s, (int)which);
  return which ? s : fabs(v);
}

// Rows [row, row + ROWS) of a, terms [term, term + depth).
static void pack_a_strip(product *p, int64_t row, int64_t rows, int64_t term,
                         size_t depth, double *value, double *scale) {
  const size_t width = FT_GEMM_ROWS;
  for (size_t r = 0; r < width; r++) {
    if ((int64_t)r >= rows) {
      for (size_t d = 0; d < depth; d++) value[d * width + r] = 0;
      for (size_t d = 0; d < depth * p->factors; d++) scale[d * width + r] = 0;
      continue;
    }
    int64_t start = p->a_start + (row + (int64_t)r) * p->k + term;
    ft_cells from = ft_plane_read(p->a, start, depth, &p->chunk);
    for (size_t d = 0; d < depth; d++) value[d * width + r] = from.value[d];
    for (size_t f = 0; f < p->factors; f++)
      for (size_t d = 0; d < depth; d++)
        scale[(d * p->factors + f) * width + r] =
            factor_of(p->rule, p->a_is_first, from.value[d], from.scale[d], f);
  }
}

static void pack_a(product *p, int64_t row, int64_t rows, int64_t term, size_t depth) {
  for (int64_t r = 0; r < rows; r += FT_GEMM_ROWS)
    pack_a_strip(p, row + r, rows - r, term, depth, p->packed_a.value + (size_t)r * depth,
                 p->packed_a.scale + (size_t)r * depth * p->factors);
}

static ft_cells read_b(product *p, int64_t term, int64_t column, size_t columns) {
  if (p->image) {
    ft_image_row(p->image, p->image_start, term, column, columns, p->chunk.value,
                 p->chunk.scale);
    return (ft_cells){p->chunk.value, p->chunk.scale, NULL};
  }
  return ft_plane_read(p->b, p->b_start + term * p->n + column, columns, &p->chunk);
}

// Eight columns, or what is left of them, of one term.
static inline void pack_b_lane(const product *p, const double *value, const double *scale,
                               size_t columns, double *to_value, double *to_scale) {
  const size_t width = FT_GEMM_COLUMNS;
  for (size_t c = 0; c < columns; c++) to_value[c] = value[c];
  for (size_t c = columns; c < width; c++) to_value[c] = 0;
  for (size_t f = 0; f < p->factors; f++) {
    double *to = to_scale + f * width;
    for (size_t c = 0; c < columns; c++)
      to[c] = factor_of(p->rule, !p->a_is_first, value[c], scale[c], f);
    for (size_t c = columns; c < width; c++) to[c] = 0;
  }
}

static void pack_b(product *p, int64_t term, size_t depth, int64_t column,
                   size_t columns) {
  const size_t width = FT_GEMM_COLUMNS;
  for (size_t d = 0; d < depth; d++) {
    ft_cells from = read_b(p, term + (int64_t)d, column, columns);
    for (size_t c = 0; c < columns; c += width) {
      double *value = p->packed_b.value + c * depth + d * width;
      double *scale = p->packed_b.scale + (c * depth + d * width) * p->factors;
      if (columns - c >= width)
        pack_b_lane(p, from.value + c, from.scale + c, width, value, scale);
      else
        pack_b_lane(p, from.value + c, from.scale + c, columns - c, value, scale);
    }
  }
}

// ---- blocks ---------------------------------------------------------------------

// A tile that sticks out of c goes through a whole one beside it.
static void run_tile(const product *p, const double *a, const double *b, size_t depth,
                     double *c, int64_t rows, int64_t columns) {
  if (rows >= FT_GEMM_ROWS && columns >= FT_GEMM_COLUMNS) {
    p->tile(a, b, depth, c, (size_t)p->n);
    return;
  }
  double whole[FT_GEMM_ROWS * FT_GEMM_COLUMNS] = {0};
  for (int64_t r = 0; r < rows && r < FT_GEMM_ROWS; r++)
    for (int64_t j = 0; j < columns && j < FT_GEMM_COLUMNS; j++)
      whole[r * FT_GEMM_COLUMNS + j] = c[r * p->n + j];
  p->tile(a, b, depth, whole, FT_GEMM_COLUMNS);
  for (int64_t r = 0; r < rows && r < FT_GEMM_ROWS; r++)
    for (int64_t j = 0; j < columns && j < FT_GEMM_COLUMNS; j++)
      c[r * p->n + j] = whole[r * FT_GEMM_COLUMNS + j];
}

static void run_block(const product *p, const double *a, const double *b, size_t depth,
                      double *c, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < columns; j += FT_GEMM_COLUMNS)
    for (int64_t r = 0; r < rows; r += FT_GEMM_ROWS)
      run_tile(p, a + (size_t)r * depth, b + (size_t)j * depth, depth, c + r * p->n + j,
               rows - r, columns - j);
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static void run_product(product *p) {
  size_t elements = (size_t)p->m * (size_t)p->n;
  memset(p->value, 0, elements * sizeof *p->value);
  memset(p->scale, 0, elements * sizeof *p->scale);
  for (int64_t column = 0; column < p->n; column += BLOCK_COLUMNS) {
    int64_t columns = least(BLOCK_COLUMNS, p->n - column);
    for (int64_t term = 0; term < p->k; term += BLOCK_DEPTH) {
      size_t depth = (size_t)least(BLOCK_DEPTH, p->k - term);
      pack_b(p, term, depth, column, (size_t)columns);
      for (int64_t row = 0; row < p->m; row += BLOCK_ROWS) {
        int64_t rows = least(BLOCK_ROWS, p->m - row), at = row * p->n + column;
        pack_a(p, row, rows, term, depth);
        run_block(p, p->packed_a.value, p->packed_b.value, depth, p->value + at, rows,
                  columns);
        run_block(p, p->packed_a.scale, p->packed_b.scale, depth * p->factors,
                  p->scale + at, rows, columns);
      }
    }
  }
}

// ---- which products -------------------------------------------------------------

static bool is_exact(const ft_plane *plane) {
  if (plane->tensor.data || !plane->scale) return true;
  for (int64_t i = 0; i < plane->elements; i++)
    if (!(plane->scale[i] == 0)) return false;
  return true;
}

// Both factors wherever they may be needed: the second one adds exact zeros otherwise.
static ft_status start(const ft_rows *rows, const ft_plane *const *in, ft_arena *arena,
                       product **out, ft_error *error) {
  product *p = ft_arena_alloc_aligned(arena, sizeof *p, 64);
  FT_OOM_IF(!p, error);
  *p = (product){.rule = &rows->rule,
                 .tile = ft_gemm_find(),
                 .k = rows->length,
                 .factors = is_exact(in[1]) ? 1 : 2};
  size_t a = BLOCK_ROWS * BLOCK_DEPTH * sizeof(double);
  size_t b = BLOCK_COLUMNS * BLOCK_DEPTH * sizeof(double);
  p->packed_a = (panel){ft_arena_alloc_aligned(arena, a, 64),
                        ft_arena_alloc_aligned(arena, a * p->factors, 64)};
  p->packed_b = (panel){ft_arena_alloc_aligned(arena, b, 64),
                        ft_arena_alloc_aligned(arena, b * p->factors, 64)};
  FT_OOM_IF(!p->packed_a.value || !p->packed_a.scale || !p->packed_b.value ||
                !p->packed_b.scale,
            error);
  *out = p;
  return FT_OK;
}

// One product per batch; the rows of all batches together when b is one matrix.
static void run_matmul(const ft_rows *rows, product *p, ft_plane *out) {
  const ft_step *step = rows->step;
  const ft_shape *a = &step->operand[0].shape, *b = &step->operand[1].shape;
  int64_t rows_of_a = a->dim[a->rank - 2];
  p->n = b->dim[b->rank - 1];
  p->a_is_first = true;
  bool is_one = p->n && p->k && ft_shape_elements(b) == p->k * p->n &&
                ft_shape_elements(a) / p->k == out->elements / p->n;
  p->m = is_one ? out->elements / p->n : rows_of_a;
  int64_t each = p->m * p->n;
  for (int64_t at = 0; each && at < out->elements; at += each) {
    ft_remap_list(&rows->first[0], &at, 1, &p->a_start);
    ft_remap_list(&rows->first[1], &at, 1, &p->b_start);
    p->value = out->value + at;
    p->scale = out->scale + at;
    run_product(p);
  }
}

// One product per image and group: filters by positions.
static ft_status run_conv(const ft_rows *rows, product *p, const ft_plane *x,
                          ft_arena *arena, ft_plane *out, ft_error *error) {
  const ft_step *step = rows->step;
  ft_image image;
  FT_TRY(ft_image_make(rows, x, arena, &image, error));
  p->image = &image;
  p->n = image.positions;
  p->m = rows->outputs_per_group;
  int64_t each = p->m * p->n, groups = step->attr->groups;
  for (int64_t i = 0; each && i * each < out->elements; i++) {
    p->image_start =
        i / groups * rows->stride[0] + i % groups * rows->channels * rows->stride[1];
    p->a_start = i % groups * p->m * p->k;
    p->value = out->value + i * each;
    p->scale = out->scale + i * each;
    run_product(p);
  }
  return FT_OK;
}

// A weight that may be anything spoils the blocks' scale in the padding too, where it is
// not used.
static bool is_plain(const ft_rows *rows, double value, double scale, bool exact) {
  return ft_contraction_is_plain(&rows->rule, value, scale) &&
         (isfinite(scale) || exact || !rows->has_window);
}

static ft_status finish(const ft_rows *rows, const ft_plane *const *in, ft_plane *out,
                        ft_error *error) {
  bool exact = is_exact(in[1]);
  ft_row_reader *reader;
  FT_TRY(ft_row_reader_create(rows, in, &reader, error));
  for (int64_t i = 0; i < out->elements; i++) {
    if (is_plain(rows, out->value[i], out->scale[i], exact)) {
      out->scale[i] = ft_contraction_plain(&rows->rule, out->value[i], out->scale[i]);
    } else {
      ft_cells cell = {out->value + i, out->scale + i, NULL};
      ft_row_reader_run(reader, i, &cell);
    }
  }
  ft_row_reader_destroy(reader);
  return FT_OK;
}

ft_status ft_dense_contract(const ft_step *step, const ft_plane *const *in, ft_plane *out,
                            ft_error *error) {
  ft_rows rows = ft_rows_make(step);
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!arena, error);
  product *p;
  ft_status status = start(&rows, in, arena, &p, error);
  if (status == FT_OK) {
    p->a = step->op == FT_OP_MATMUL ? in[0] : in[1];
    p->b = in[1];
    if (step->op == FT_OP_MATMUL)
      run_matmul(&rows, p, out);
    else
      status = run_conv(&rows, p, in[0], arena, out, error);
  }
  ft_arena_destroy(arena);
  return status == FT_OK ? finish(&rows, in, out, error) : status;
}
