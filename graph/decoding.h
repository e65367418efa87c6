// decoding - a workload from its encoding alone: the group as a graph of its own.
//
// The store keeps encodings, so whatever was once tried can be built and checked again
// without the model (repro). Bytes from a store are not trusted: every length is checked,
// and what comes out is encoded again and compared byte for byte.
#ifndef FT_GRAPH_DECODING_H
#define FT_GRAPH_DECODING_H

#include "graph/group.h"

// The graph, in |arena|, of the group that |encoding| describes (finished, inputs in the
// group's order), and that group as a workload whose encoding has the very same bytes.
// REFUSED: malformed, an op or dtype that this version does not have, or bytes that no
// group of primitives encodes to.
FT_MUST_CHECK ft_status ft_workload_decode(const void *encoding, size_t bytes,
                                           ft_arena *arena, ft_graph **out_graph,
                                           ft_workload *out, ft_error *error);

#endif
