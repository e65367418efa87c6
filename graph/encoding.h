// encoding - canonical bytes: what graphs and workloads are hashed and compared by.
// Private to graph/. Little-endian whatever the machine; every item says its length.
#ifndef FT_GRAPH_ENCODING_H
#define FT_GRAPH_ENCODING_H

#include "core/strbuf.h"
#include "graph/graph.h"

void ft_encode_u8(ft_strbuf *out, unsigned value);
void ft_encode_u64(ft_strbuf *out, uint64_t value);  // LEB128: 1 byte below 128
void ft_encode_shape(ft_strbuf *out, const ft_shape *shape);
void ft_encode_type(ft_strbuf *out, ft_dtype dtype, const ft_shape *shape);
// The op's name is written, not its number: a new line in primitives.def changes no key.
void ft_encode_op(ft_strbuf *out, ft_op op, const ft_attr *attr);
// Dtype, shape and bytes.
void ft_encode_tensor(ft_strbuf *out, const ft_tensor *tensor);

#endif
