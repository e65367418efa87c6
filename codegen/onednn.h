// onednn - a group as one oneDNN primitive: a product, a convolution or an average pool,
// its operands as strided tensors, and what follows it as post-ops. Of the library's
// functions only those are offered that treat NaN and infinity as IEEE 754 says.
//
// Two steps: ft_onednn_read finds the parts in the group's own shapes; ft_onednn_call_of
// folds them into the ranks that the library is fast at. onednn_runtime.inc has the C
// text that runs a call.
#ifndef FT_CODEGEN_ONEDNN_H
#define FT_CODEGEN_ONEDNN_H

#include "codegen/strided.h"

enum { FT_ONEDNN_POSTS = 12, FT_ONEDNN_OPERANDS = FT_ONEDNN_POSTS + 4 };

typedef struct ft_onednn_post {
  const char *algorithm;  // "dnnl_eltwise_tanh", "dnnl_binary_add"
  double alpha, beta;     // eltwise
  bool is_binary;
  ft_strided operand;  // binary: in the shape of the anchor's output
} ft_onednn_post;

typedef struct ft_onednn {
  const ft_primitive *anchor;  // MATMUL, CONV, WINDOW_SUM
  const ft_graph *graph;
  ft_strided a, b;  // pools have no |b|
  ft_strided out;   // in the shape of the anchor's output
  uint32_t post_count;
  ft_onednn_post post[FT_ONEDNN_POSTS];
} ft_onednn;

// NULL, or why oneDNN has no primitive for |group|, in |arena|.
const char *ft_onednn_read(const ft_group *group, ft_arena *arena, ft_onednn *out);

typedef struct ft_onednn_operand {
  const char *role;  // "DNNL_ARG_SRC"; of binary post-ops ""
  uint32_t argument;
  int64_t offset;
  int rank;
  int64_t dim[FT_MAX_RANK + 1], stride[FT_MAX_RANK + 1];
} ft_onednn_operand;

// Post-op i reads operand[operand_of[i]]; -1: none.
typedef struct ft_onednn_call {
  const char *primitive;  // "dnnl_matmul"
  uint32_t operand_count, post_count;
  ft_onednn_operand operand[FT_ONEDNN_OPERANDS];
  ft_onednn_post post[FT_ONEDNN_POSTS];
  int operand_of[FT_ONEDNN_POSTS];
  int spatial;
  int64_t window[FT_MAX_RANK], stride[FT_MAX_RANK], dilation[FT_MAX_RANK];
  int64_t before[FT_MAX_RANK], after[FT_MAX_RANK];
} ft_onednn_call;

const char *ft_onednn_call_of(const ft_onednn *onednn, ft_arena *arena,
                              ft_onednn_call *out);

// The body of the kernel; NULL: out of memory.
const char *ft_onednn_text(const ft_onednn_call *call, int64_t threads, bool is_packed,
                           ft_arena *arena);

#endif
