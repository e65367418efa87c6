// proto_write - protobuf's wire format, written. Sticky like ft_strbuf: check
// out->failed once at the end.
#ifndef FT_GRAPH_PROTO_WRITE_H
#define FT_GRAPH_PROTO_WRITE_H

#include "core/strbuf.h"

void ft_proto_put_varint(ft_strbuf *out, uint32_t field, uint64_t value);
void ft_proto_put_float(ft_strbuf *out, uint32_t field, float value);
void ft_proto_put_bytes(ft_strbuf *out, uint32_t field, const void *data, size_t size);
void ft_proto_put_text(ft_strbuf *out, uint32_t field, const char *text);
void ft_proto_put_message(ft_strbuf *out, uint32_t field, const ft_strbuf *message);

#endif
