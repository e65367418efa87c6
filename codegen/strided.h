// strided - where the elements of a value lie in a buffer of the kernel, as an offset and
// a stride per dim. Views, transposes, broadcasts and slices of a buffer have one; what
// was computed has none. For tactics that hand operands to a library instead of reading
// them.
#ifndef FT_CODEGEN_STRIDED_H
#define FT_CODEGEN_STRIDED_H

#include "graph/group.h"

typedef struct ft_strided {
  uint32_t argument;  // position in the ABI's buffers
  int64_t offset;     // elements
  ft_shape shape;
  int64_t
      stride[FT_MAX_RANK];  // elements; 0 where the dim is broadcast; any where it is 1
} ft_strided;

// A whole buffer, row-major.
ft_strided ft_strided_whole(uint32_t argument, const ft_shape *shape);
// Finds where |value| of |group| lies, through the primitives inside that only move it;
// is_used[i] is set for each such primitive i of the group. NULL, or why it has no such
// place, in |arena|.
const char *ft_strided_find(const ft_group *group, uint32_t value, bool *is_used,
                            ft_arena *arena, ft_strided *out);
// The same elements, row-major, under another shape. False: no strides can say that.
bool ft_strided_view(ft_strided *strided, const ft_shape *shape);
// NumPy broadcast; false when it does not.
bool ft_strided_broadcast(ft_strided *strided, const ft_shape *shape);
// Dim i of the result was dim perm[i], and back.
void ft_strided_permute(ft_strided *strided, const uint8_t *perm);
void ft_strided_unpermute(ft_strided *strided, const uint8_t *perm);

#endif
