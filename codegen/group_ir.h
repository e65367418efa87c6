// group_ir - a workload as loops: axes with extents, operations over them, and where each
// tensor lies in memory. What every skeleton starts from.
//
// Axes are factorised (codegen/axes.h) and then collapsed: neighbours that every access
// walks as one become one. Views, transposes and broadcasts leave no node; they are
// strides. A node has one value per point of the axes in its |mask|. Axes have at least
// two iterations; values without elements leave no node, an empty reduction is a
// constant.
//
// Nodes are in topological order: operands come first.
#ifndef FT_CODEGEN_GROUP_IR_H
#define FT_CODEGEN_GROUP_IR_H

#include "graph/group.h"

enum { FT_MAX_AXES = 64 };  // a bit each in a mask

typedef enum ft_node_kind {
  FT_NODE_LOAD,
  FT_NODE_CONSTANT,
  FT_NODE_COMPUTE,
  FT_NODE_REDUCE,
} ft_node_kind;

// A tensor in memory.
typedef struct ft_access {
  uint32_t argument;  // position in the ABI's buffers
  ft_dtype dtype;
  int64_t count;                // elements of the buffer
  int64_t stride[FT_MAX_AXES];  // elements per step of each axis; 0: does not depend
} ft_access;

typedef struct ft_node {
  ft_node_kind kind;
  ft_op op;
  ft_dtype dtype;
  uint64_t mask;  // axes that the value depends on, a bit each
  uint8_t operand_count;
  uint32_t operand[3];
  ft_access access;  // LOAD
  int64_t bits;      // CONSTANT: of the double for floats, the integer for others
  uint64_t reduced;  // REDUCE: axes
  uint64_t domain;   // REDUCE: axes of the operand's shape; |mask| is within it
  uint32_t level;    // reductions on the longest way here, itself included
} ft_node;

typedef struct ft_output {
  uint32_t node;
  uint64_t domain;  // axes of its shape
  ft_access access;
} ft_output;

typedef struct ft_group_ir {
  const ft_workload *workload;
  const char *refusal;  // why the group is no loops over common axes: the rest is empty;
                        // NULL from ft_group_ir_make
  uint32_t axis_count, node_count, output_count;
  int64_t extent[FT_MAX_AXES];
  ft_node *node;
  ft_output *output;  // those with elements
  uint64_t reduced;   // union over the reductions
  uint32_t levels;    // of the deepest reduction
  uint64_t bytes;     // read and written
} ft_group_ir;

// Builds the IR of |workload| in |arena|. *out is NULL when it has none; then *reason
// says why ("6x4 viewed as 8x3 has no common axes"). OUT_OF_MEMORY.
FT_MUST_CHECK ft_status ft_group_ir_make(const ft_workload *workload, ft_arena *arena,
                                         ft_group_ir **out, const char **reason,
                                         ft_error *error);

// Product of the extents of the axes in |mask|.
int64_t ft_group_ir_points(const ft_group_ir *ir, uint64_t mask);
// "4x8" of the axes in |mask|, "1" for none.
const char *ft_group_ir_text(const ft_group_ir *ir, uint64_t mask, ft_arena *arena);

#endif
