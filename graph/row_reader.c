#include "graph/row_reader.h"

struct ft_row_reader {
  const ft_rows *rows;
  const ft_plane *const *in;
  ft_accumulator reduced;
  ft_contraction contracted;
  int64_t index[2][FT_PLANE_CHUNK];
  int64_t slot[FT_PLANE_CHUNK];  // all 0
  ft_chunk cells[2];
};

ft_status ft_row_reader_create(const ft_rows *rows, const ft_plane *const *in,
                               ft_row_reader **out, ft_error *error) {
  ft_row_reader *reader = ft_allocate(ft_allocator_system(), sizeof *reader, 64);
  FT_OOM_IF(!reader, error);
  reader->rows = rows;
  reader->in = in;
  for (size_t j = 0; j < FT_PLANE_CHUNK; j++) reader->slot[j] = 0;
  *out = reader;
  return FT_OK;
}

void ft_row_reader_destroy(ft_row_reader *reader) {
  ft_release(ft_allocator_system(), reader);
}

// Leaves out the terms in the padding; returns how many stay.
static size_t drop_padding(int64_t *index, int64_t *other, size_t count) {
  size_t kept = 0;
  for (size_t j = 0; j < count; j++) {
    if (index[j] < 0) continue;
    index[kept] = index[j];
    other[kept++] = other[j];
  }
  return kept;
}

static void add_terms(ft_row_reader *r, const ft_row_sums *sums, size_t count) {
  ft_cells cells[2];
  for (uint32_t i = 0; i < r->rows->operands; i++) {
    cells[i] = (ft_cells){r->cells[i].value, r->cells[i].scale, r->cells[i].integer};
    ft_plane_gather(r->in[i], r->index[i], count, &cells[i]);
  }
  ft_rows_add(r->rows, sums, r->slot, &cells[0], &cells[1], count);
}

void ft_row_reader_run(ft_row_reader *reader, int64_t element, ft_cells *out) {
  const ft_rows *rows = reader->rows;
  ft_row_sums sums = {&reader->reduced, &reader->contracted};
  int64_t *const index[2] = {reader->index[0], reader->index[1]};
  ft_rows_init(rows, &sums, 1);
  for (int64_t at = 0; at < rows->length; at += FT_PLANE_CHUNK) {
    int64_t left = rows->length - at;
    size_t count = left < FT_PLANE_CHUNK ? (size_t)left : FT_PLANE_CHUNK;
    ft_rows_terms(rows, element, at, count, index);
    if (rows->has_window) count = drop_padding(index[0], index[1], count);
    add_terms(reader, &sums, count);
  }
  ft_rows_finish(rows, &sums, 0, 0, out);
}
