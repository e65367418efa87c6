// plane - the elements of one value as the reference sees them: exact bytes of a
// tensor, or computed columns. Private to graph/.
#ifndef FT_GRAPH_PLANE_H
#define FT_GRAPH_PLANE_H

#include "graph/semantics.h"

// How many elements the interpreters take at a time: operands stay in the first cache.
enum { FT_PLANE_CHUNK = 1024 };

typedef struct ft_plane {
  ft_dtype dtype;
  int64_t elements;
  ft_tensor tensor;       // data not NULL: exact, and the columns are NULL
  void *bytes;            // the tensor's, when the plane owns them
  double *value, *scale;  // scale NULL: all 0
  int64_t *integer;
} ft_plane;

ft_plane ft_plane_from_tensor(const ft_tensor *tensor);
// Columns for |elements| of |dtype| from the system allocator, integers without scale;
// release with ft_plane_release (which leaves borrowed tensors alone). OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_plane_create(ft_dtype dtype, int64_t elements, ft_plane *out,
                                        ft_error *error);
void ft_plane_release(ft_plane *plane);
// An exact plane of |shape| with bytes of its own, not initialised. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_plane_create_tensor(ft_dtype dtype, const ft_shape *shape,
                                               ft_plane *out, ft_error *error);

// Space for one chunk.
typedef struct ft_chunk {
  double value[FT_PLANE_CHUNK], scale[FT_PLANE_CHUNK];
  int64_t integer[FT_PLANE_CHUNK];
} ft_chunk;

// Elements [start, start + count), count <= FT_PLANE_CHUNK: columns of the plane
// itself where it has them, else filled into |chunk|.
ft_cells ft_plane_read(const ft_plane *plane, int64_t start, size_t count,
                       ft_chunk *chunk);
// Elements index[0 .. count) into |out|, whose arrays are big enough.
void ft_plane_gather(const ft_plane *plane, const int64_t *index, size_t count,
                     const ft_cells *out);
// Keeps the scales of elements [start, start + count) of an integer plane: it gets a
// scale column only once an element is uncertain. OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_plane_doubt(ft_plane *plane, int64_t start,
                                       const double *scale, size_t count,
                                       ft_error *error);

// Element |index| of an integer or bool tensor; u64 as its bits.
int64_t ft_tensor_integer(const ft_tensor *tensor, int64_t index);
void ft_element_set_integer(ft_dtype dtype, void *data, int64_t index, int64_t value);

#endif
