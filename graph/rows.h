// rows - elements made of many terms: reductions, windows and contractions. Private to
// graph/. Which elements of the operands the terms are, in their order, and how a
// result comes of them; one order for both interpreters.
#ifndef FT_GRAPH_ROWS_H
#define FT_GRAPH_ROWS_H

#include "graph/contraction.h"
#include "graph/step.h"

// Terms of a row go in row-major order: over the reduced axes; over the window's
// positions (CONV: channel first); over k.
typedef struct ft_rows {
  const ft_step *step;        // borrowed
  int64_t length;             // terms of each row, those in the padding too
  uint32_t operands;          // 1 or 2
  ft_remap first[2];          // from an element of the result to its first term's element
  ft_remap next[2];           // from a term to its distance from the first
  bool has_window;            // operand 0 is found by these, not by remaps:
  int64_t channels;           // per row
  int64_t outputs_per_group;  // CONV
  ft_shape window;            // spatial
  int64_t stride[FT_MAX_RANK];  // of operand 0
  ft_contraction_rule rule;     // contractions
} ft_rows;

// Rows in the making: contractions have |contracted|, others |reduced|.
typedef struct ft_row_sums {
  ft_accumulator *reduced;
  ft_contraction *contracted;
} ft_row_sums;

ft_rows ft_rows_make(const ft_step *step);
// Elements of the operands for terms [start, start + count) of the row of |element|; -1
// in index[0] where the term is in the padding, and adds nothing. index[1] is written
// for contractions only.
void ft_rows_terms(const ft_rows *rows, int64_t element, int64_t start, size_t count,
                   int64_t *const index[2]);

// Starts |count| rows in |sums|, which has room for them.
void ft_rows_init(const ft_rows *rows, const ft_row_sums *sums, size_t count);
// Adds term j (a[j], and b[j] for contractions) to row slot[j]; count <= 1024.
void ft_rows_add(const ft_rows *rows, const ft_row_sums *sums, const int64_t *slot,
                 const ft_cells *a, const ft_cells *b, size_t count);
// Row |row| becomes element |index| of |out|.
void ft_rows_finish(const ft_rows *rows, const ft_row_sums *sums, size_t row,
                    size_t index, ft_cells *out);

#endif
