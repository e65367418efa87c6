// image - the input of a CONV as the matrix that its filters are multiplied with: one row
// per term (channel and position in the window), one column per position of the result.
// Never stored as a whole. Private to graph/.
#ifndef FT_GRAPH_IMAGE_H
#define FT_GRAPH_IMAGE_H

#include "graph/plane.h"
#include "graph/rows.h"

typedef struct ft_image {
  const ft_rows *rows;          // borrowed
  const double *value, *scale;  // of the whole input; scale NULL: all 0
  int64_t positions;
} ft_image;

// Borrows the plane's columns; those of a tensor are made in |arena|. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_image_make(const ft_rows *rows, const ft_plane *x,
                                      ft_arena *arena, ft_image *out, ft_error *error);
// Row |term|, positions [first, first + count) of the image whose first channel begins at
// element |start| of the input; zeros in the padding.
void ft_image_row(const ft_image *image, int64_t start, int64_t term, int64_t first,
                  size_t count, double *value, double *scale);

#endif
