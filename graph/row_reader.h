// row_reader - one element of a row primitive from whole planes. Private to graph/.
#ifndef FT_GRAPH_ROW_READER_H
#define FT_GRAPH_ROW_READER_H

#include "graph/plane.h"
#include "graph/rows.h"

typedef struct ft_row_reader ft_row_reader;

// Borrows |rows| and |in|. Reductions are not for it. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_row_reader_create(const ft_rows *rows,
                                             const ft_plane *const *in,
                                             ft_row_reader **out, ft_error *error);
void ft_row_reader_destroy(ft_row_reader *reader);
// Element |element| of the result into element 0 of |out|.
void ft_row_reader_run(ft_row_reader *reader, int64_t element, ft_cells *out);

#endif
