#include "graph/npy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "graph/tensor_file.h"
#include "tests/support/command.h"
#include "tests/support/onnx_writer.h"

static ft_arena *arena;

static void open_arena(void) {
  arena = ft_arena_create(ft_allocator_system());
}

static void close_arena(void) {
  ft_arena_destroy(arena);
}

TestSuite(graph_npy, .init = open_arena, .fini = close_arena);

// A version 1.0 file with |header| as it is, then |bytes| of data.
static ft_strbuf file_of(const char *header, const void *data, size_t bytes) {
  ft_strbuf file = ft_strbuf_init(arena);
  size_t size = strlen(header);
  uint8_t length[2] = {(uint8_t)size, (uint8_t)(size >> 8)};
  ft_strbuf_addn(&file, "\x93NUMPY\x01\x00", 8);
  ft_strbuf_addn(&file, length, 2);
  ft_strbuf_addn(&file, header, size);
  if (bytes) ft_strbuf_addn(&file, data, bytes);
  return file;
}

static const float six[6] = {1, 2, 3, 4, 5, 6};

static const char *refusal_of(const char *header, size_t bytes) {
  ft_strbuf file = file_of(header, six, bytes);
  ft_tensor tensor;
  ft_error error;
  cr_assert_neq(ft_npy_parse(file.text, file.length, &tensor, &error), FT_OK, "%s",
                header);
  return ft_arena_strdup(arena, error.text);
}

Test(graph_npy, numpys_own_header_is_read) {
  ft_strbuf file =
      file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n",
              six, sizeof six);
  ft_tensor t;
  ft_error error;
  cr_assert_eq(ft_npy_parse(file.text, file.length, &t, &error), FT_OK, "%s", error.text);
  cr_assert_eq(t.dtype, FT_F32);
  cr_assert(t.shape.rank == 2 && t.shape.dim[0] == 2 && t.shape.dim[1] == 3);
  cr_assert_eq(ft_tensor_get_f64(&t, 5), 6.0);
}

Test(graph_npy, what_is_written_is_read_again_for_each_rank_and_dtype) {
  static const ft_dtype dtypes[] = {FT_F32, FT_F64, FT_I64, FT_I32, FT_BOOL, FT_U8};
  static const ft_shape shapes[] = {{0, {0}}, {1, {5}}, {2, {0, 3}}, {3, {2, 1, 4}}};
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
      ft_tensor t, again;
      void *data;
      ft_error error;
      ft_strbuf file = ft_strbuf_init(arena);
      cr_assert_eq(ft_tensor_alloc(dtypes[d], &shapes[s], arena, &t, &data, &error),
                   FT_OK);
      for (int64_t i = 0; i < ft_shape_elements(&shapes[s]); i++)
        ft_element_set_f64(dtypes[d], data, i, (double)(i % 2));
      cr_assert_eq(ft_npy_write(&t, &file, &error), FT_OK);
      cr_assert_eq(file.length - t.bytes, (file.length - t.bytes) / 64 * 64);
      cr_assert_eq(ft_npy_parse(file.text, file.length, &again, &error), FT_OK, "%s",
                   error.text);
      cr_assert_eq(again.dtype, t.dtype);
      cr_assert(ft_shape_equal(&again.shape, &t.shape));
      cr_assert_eq(again.bytes, t.bytes);
      cr_assert(t.bytes == 0 || memcmp(again.data, t.data, t.bytes) == 0);
    }
}

Test(graph_npy, version_two_has_a_header_length_of_four_bytes) {
  const char *header = "{'descr': '<i8', 'fortran_order': False, 'shape': ()}\n";
  ft_strbuf file = ft_strbuf_init(arena);
  uint8_t length[4] = {(uint8_t)strlen(header), 0, 0, 0};
  int64_t value = 42;
  ft_strbuf_addn(&file, "\x93NUMPY\x02\x00", 8);
  ft_strbuf_addn(&file, length, 4);
  ft_strbuf_add(&file, header);
  ft_strbuf_addn(&file, &value, sizeof value);
  ft_tensor t;
  ft_error error;
  cr_assert_eq(ft_npy_parse(file.text, file.length, &t, &error), FT_OK, "%s", error.text);
  cr_assert_eq(ft_tensor_get_i64(&t, 0), 42);
}

Test(graph_npy, fortran_order_and_big_endian_are_refused_by_name) {
  cr_assert(
      strstr(refusal_of("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", 24),
             "Fortran order"));
  cr_assert(
      strstr(refusal_of("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}", 24),
             "big endian"));
  cr_assert(strstr(
      refusal_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", 4),
      "structured"));
}

Test(graph_npy, lengths_that_do_not_add_up_are_refused) {
  static const char *const shapes[] = {"(2, 4)",
                                       "(1,)",
                                       "(9223372036854775807, 3)",
                                       "(99999999999999999999,)",
                                       "(4611686018427387904, 4611686018427387904)",
                                       "(-1,)",
                                       "(2, 3",
                                       "(2 3)",
                                       "2"};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    char header[160];
    snprintf(header, sizeof header,
             "{'descr': '<f4', 'fortran_order': False, 'shape': %s}", shapes[i]);
    (void)refusal_of(header, sizeof six);
  }
}

Test(graph_npy, every_cut_of_a_file_is_refused) {
  ft_tensor t = {FT_F32, {1, {6}}, six, sizeof six}, again;
  ft_error error;
  ft_strbuf file = ft_strbuf_init(arena);
  cr_assert_eq(ft_npy_write(&t, &file, &error), FT_OK);
  for (size_t size = 0; size < file.length; size++) {
    char *exact = ft_arena_memdup(arena, file.text, size);
    cr_assert_neq(ft_npy_parse(exact, size, &again, &error), FT_OK, "%zu", size);
  }
}

Test(graph_npy, a_bool_of_two_is_refused) {
  ft_strbuf file =
      file_of("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\x01\x02", 2);
  ft_tensor t;
  ft_error error;
  cr_assert_eq(ft_npy_parse(file.text, file.length, &t, &error), FT_REFUSED);
}

Test(graph_npy, a_tensor_proto_is_told_from_an_array_by_its_content) {
  ft_strbuf proto = onnx_tensor(arena, "x", ONNX_FLOAT, "2,3", six, sizeof six);
  ft_tensor t;
  ft_error error;
  cr_assert_eq(ft_tensor_file_parse(proto.text, proto.length, arena, &t, &error), FT_OK,
               "%s", error.text);
  cr_assert_eq(t.shape.dim[1], 3);
  char path[256];
  snprintf(path, sizeof path, "%s/t.npy", test_folder());
  cr_assert_eq(ft_tensor_file_write(path, &t, &error), FT_OK, "%s", error.text);
  cr_assert_eq(ft_tensor_file_read(path, arena, &t, &error), FT_OK, "%s", error.text);
  cr_assert_eq(ft_tensor_get_f64(&t, 4), 5.0);
  snprintf(path, sizeof path, "%s/absent.npy", test_folder());
  cr_assert_eq(ft_tensor_file_read(path, arena, &t, &error), FT_NOT_FOUND);
}
