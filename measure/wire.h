// wire - numbers and strings in a byte buffer, little endian, every read bounded.
//
// Writing: into an ft_strbuf; check its |failed| once at the end. Reading: past the
// end, or a length that does not fit, gives zeros and sets |failed|; check it once, and
// before using a count (ft_wire_count does).
#ifndef FT_MEASURE_WIRE_H
#define FT_MEASURE_WIRE_H

#include "core/strbuf.h"

void ft_wire_put_u8(ft_strbuf *out, uint8_t value);
void ft_wire_put_u32(ft_strbuf *out, uint32_t value);
void ft_wire_put_u64(ft_strbuf *out, uint64_t value);
void ft_wire_put_text(ft_strbuf *out, const char *text);

typedef struct ft_wire_reader {
  const uint8_t *cursor, *end;
  bool failed;
} ft_wire_reader;

ft_wire_reader ft_wire_read(const void *data, size_t bytes);
uint8_t ft_wire_u8(ft_wire_reader *reader);
uint32_t ft_wire_u32(ft_wire_reader *reader);
uint64_t ft_wire_u64(ft_wire_reader *reader);
// A count of items of at least |item_bytes| each: 0 and failed when the rest of the
// buffer cannot hold that many, so a hostile count never sizes an allocation.
uint32_t ft_wire_count(ft_wire_reader *reader, size_t item_bytes);
// The text where it lies, *out_length bytes without a NUL; "" on failure.
const char *ft_wire_text_view(ft_wire_reader *reader, uint32_t *out_length);
// A copy in |arena|, never NULL ("" on failure). Text with a NUL inside is
// refused.
const char *ft_wire_text(ft_wire_reader *reader, ft_arena *arena);
// True when everything was read and nothing failed.
bool ft_wire_done(const ft_wire_reader *reader);

#endif
