#include "graph/wire.h"

#include <criterion/criterion.h>
#include <string.h>

#include "graph/import.h"

static ft_wire open_bytes(const void *bytes, size_t size) {
  return ft_wire_open((ft_span){bytes, size}, bytes, "Message");
}

#define OPEN(text) open_bytes(text, sizeof(text) - 1)

Test(graph_wire, reads_each_wire_type) {
  ft_wire wire = OPEN(
      "\x08\x96\x01"
      "\x12\x03"
      "abc"
      "\x1d\x01\x02\x03\x04"
      "\x21\x01\x02\x03\x04\x05\x06\x07\x08");
  ft_wire_field field;
  ft_error error;
  cr_assert_eq(ft_wire_next(&wire, &field, &error), FT_OK);
  cr_assert(field.number == 1 && field.type == FT_WIRE_VARINT && field.value == 150);
  cr_assert_eq(ft_wire_next(&wire, &field, &error), FT_OK);
  cr_assert(field.number == 2 && ft_span_is(field.bytes, "abc"));
  cr_assert_eq(ft_wire_next(&wire, &field, &error), FT_OK);
  cr_assert(field.number == 3 && field.value == 0x04030201);
  cr_assert_eq(ft_wire_next(&wire, &field, &error), FT_OK);
  cr_assert(field.number == 4 && field.value == 0x0807060504030201ull);
  cr_assert_eq(ft_wire_next(&wire, &field, &error), FT_OK);
  cr_assert_eq(field.number, 0);
  cr_assert_eq(ft_wire_next(&wire, &field, &error), FT_OK);
  cr_assert_eq(field.number, 0, "the end stays the end");
}

static void refuses(const void *bytes, size_t size, const char *text) {
  ft_wire wire = open_bytes(bytes, size);
  ft_wire_field field;
  ft_error error = {0};
  cr_assert_eq(ft_wire_next(&wire, &field, &error), FT_REFUSED);
  cr_assert(strstr(error.text, text), "\"%s\" lacks \"%s\"", error.text, text);
}

#define REFUSES(bytes, text) refuses(bytes, sizeof(bytes) - 1, text)

Test(graph_wire, takes_a_ten_byte_varint_and_refuses_an_eleventh_or_a_65th_bit) {
  ft_wire wire = OPEN("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  ft_wire_field field;
  cr_assert_eq(ft_wire_next(&wire, &field, NULL), FT_OK);
  cr_assert_eq(field.value, UINT64_MAX);
  REFUSES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "does not fit 64 bits");
  REFUSES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", "does not fit 64 bits");
}

Test(graph_wire, refuses_values_cut_off_at_the_end) {
  REFUSES("\x08\x80", "the number at byte 1 is cut off");
  REFUSES("\x08", "the number at byte 1 is cut off");
  REFUSES("\x1d\x01\x02\x03", "4 bytes are cut off at byte 1");
  REFUSES("\x21\x01\x02\x03", "8 bytes are cut off at byte 1");
  REFUSES(
      "\x12\x04"
      "abc",
      "a length of 4 bytes at byte 2 where only 3 remain");
  REFUSES("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "where only 0 remain");
}

Test(graph_wire, refuses_groups_field_zero_and_huge_field_numbers) {
  REFUSES("\x0b", "field 1 before byte 1 has wire type 3");
  REFUSES("\x0c", "wire type 4");
  REFUSES("\x0e\x01", "wire type 6");
  REFUSES("\x00\x01", "field number 0 at byte 0");
  REFUSES("\x88\x80\x80\x80\x80\x01\x01", "field number 4294967297");
}

Test(graph_wire, enters_64_messages_and_refuses_the_next) {
  ft_wire wire = OPEN("\x08\x01");
  ft_error error = {0};
  for (int depth = 1; depth <= FT_IMPORT_MAX_DEPTH; depth++) {
    ft_wire inner;
    cr_assert_eq(ft_wire_enter(&wire, (ft_span){wire.at, 2}, "Inner", &inner, &error),
                 FT_OK);
    wire = inner;
  }
  ft_wire inner;
  cr_assert_eq(ft_wire_enter(&wire, (ft_span){wire.at, 2}, "Inner", &inner, &error),
               FT_REFUSED);
  cr_assert(strstr(error.text, "Inner at byte 0 is nested deeper than 64"), "%s",
            error.text);
}

static size_t scalars(ft_wire wire, ft_wire_type element, uint64_t *out,
                      ft_status *status) {
  ft_wire_field field;
  ft_wire_scalars list;
  size_t count = 0;
  ft_error error;
  bool more = true;
  if ((*status = ft_wire_next(&wire, &field, &error)) != FT_OK) return 0;
  if ((*status = ft_wire_scalars_open(&wire, &field, element, &list, &error)) != FT_OK)
    return 0;
  while ((*status = ft_wire_scalars_next(&list, &out[count], &more, &error)) == FT_OK &&
         more)
    count++;
  return count;
}

Test(graph_wire, reads_packed_and_single_scalars_alike) {
  uint64_t out[8];
  ft_status status;
  cr_assert_eq(scalars(OPEN("\x0a\x04\x01\x96\x01\x03"), FT_WIRE_VARINT, out, &status),
               3);
  cr_assert(status == FT_OK && out[0] == 1 && out[1] == 150 && out[2] == 3);
  cr_assert_eq(scalars(OPEN("\x08\x07"), FT_WIRE_VARINT, out, &status), 1);
  cr_assert(status == FT_OK && out[0] == 7);
  cr_assert_eq(scalars(OPEN("\x0a\x00"), FT_WIRE_VARINT, out, &status), 0);
  cr_assert_eq(status, FT_OK);
}

Test(graph_wire, refuses_packed_scalars_that_end_in_the_middle_of_one) {
  uint64_t out[8];
  ft_status status;
  scalars(OPEN("\x0a\x02\x01\x96"), FT_WIRE_VARINT, out, &status);
  cr_assert_eq(status, FT_REFUSED);
  scalars(OPEN("\x0a\x05\x01\x02\x03\x04\x05"), FT_WIRE_FIXED32, out, &status);
  cr_assert_eq(status, FT_REFUSED);
  scalars(OPEN("\x0d\x01\x02\x03\x04"), FT_WIRE_VARINT, out, &status);
  cr_assert_eq(status, FT_REFUSED);
}

Test(graph_wire, tells_utf8_from_other_bytes) {
  static const char *const good[] = {"",
                                     "abc",
                                     "\xc3\xa9",
                                     "\xe2\x82\xac",
                                     "\xf0\x9f\x98\x80",
                                     "\xed\x9f\xbf",
                                     "\xf4\x8f\xbf\xbf"};
  static const char *const bad[] = {"\x80",         "\xc3",
                                    "\xc0\xaf",     "\xe0\x9f\xbf",
                                    "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                    "\xff",         "\xf0\x80\x80\x80",
                                    "\xe2\x82"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    cr_assert(ft_span_is_text((ft_span){(const uint8_t *)good[i], strlen(good[i])}),
              "good %zu", i);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    cr_assert_not(ft_span_is_text((ft_span){(const uint8_t *)bad[i], strlen(bad[i])}),
                  "bad %zu", i);
  cr_assert_not(ft_span_is_text((ft_span){(const uint8_t *)"a\0b", 3}));
}
