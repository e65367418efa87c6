// Windows and contractions over whole planes, one term after the other.
#include "graph/dense.h"
#include "graph/row_reader.h"

ft_status ft_dense_rows(const ft_step *step, const ft_plane *const *in, ft_plane *out,
                        ft_error *error) {
  ft_rows rows = ft_rows_make(step);
  ft_row_reader *reader;
  FT_TRY(ft_row_reader_create(&rows, in, &reader, error));
  ft_status status = FT_OK;
  for (int64_t i = 0; status == FT_OK && i < out->elements; i++) {
    double scale;
    ft_cells cell = {out->value ? out->value + i : NULL, &scale,
                     out->integer ? out->integer + i : NULL};
    ft_row_reader_run(reader, i, &cell);
    if (out->value)
      out->scale[i] = scale;
    else
      status = ft_plane_doubt(out, i, &scale, 1, error);
  }
  ft_row_reader_destroy(reader);
  return status;
}
