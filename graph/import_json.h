// import_json - the same models as import.h, written by hand or by other tools:
// docs/graph_format.md, "fusetune-graph/1".
//
// The text is rewritten as an ONNX model in memory and takes the ONNX road from there:
// the same graph by either road has the same symbolic_hash and bound_hash, the same
// errors, the same confinement of data files.
#ifndef FT_GRAPH_IMPORT_JSON_H
#define FT_GRAPH_IMPORT_JSON_H

#include "graph/import.h"

// Reads the JSON graph at |path| (up to 2 GiB). Errors and *report as ft_import_onnx has
// them; REFUSED also for more than 16 levels of nesting, texts of more than 4 KiB, more
// than 1e6 nodes, unknown members and names that are used twice.
FT_MUST_CHECK ft_status ft_import_json(const char *path, const ft_import_options *options,
                                       ft_arena *arena, ft_graph **out,
                                       ft_import_report *report, ft_error *error);
// The same from |size| bytes of memory, which may go afterwards. |folder| is where data
// files may lie (NULL: none allowed).
FT_MUST_CHECK ft_status ft_import_json_bytes(const void *data, size_t size,
                                             const char *folder,
                                             const ft_import_options *options,
                                             ft_arena *arena, ft_graph **out,
                                             ft_import_report *report, ft_error *error);

#endif
