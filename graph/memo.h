// memo - the results of one reduction by output index. Private to graph/.
#ifndef FT_GRAPH_MEMO_H
#define FT_GRAPH_MEMO_H

#include "graph/semantics.h"

typedef struct ft_memo_entry {
  int64_t index;  // -1: empty
  double value, scale;
  int64_t integer;
} ft_memo_entry;

// Open addressing; all zero is empty. Memory: 64 bytes per kept result at most.
typedef struct ft_memo {
  ft_memo_entry *entry;
  size_t capacity, count;  // capacity is a power of two
} ft_memo;

void ft_memo_fini(ft_memo *memo);
// Makes room for |more| entries; forgets all of them first when there would be too many
// to keep. Entries found before are invalid after this. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_memo_reserve(ft_memo *memo, size_t more, ft_error *error);
// The entry of |index|, made (*is_new) when it is missing; room was reserved.
ft_memo_entry *ft_memo_find(ft_memo *memo, int64_t index, bool *is_new);

#endif
