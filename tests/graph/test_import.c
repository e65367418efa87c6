#include "graph/import.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/data.h"
#include "tests/support/onnx_writer.h"

static ft_arena *arena;
static ft_error error;
static ft_graph *graph;
static ft_import_report report;
static void setup(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void teardown(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_import, .init = setup, .fini = teardown);

static const ft_dim_binding star[] = {{"*", 4}};
static const ft_import_options star_is_four = {.dim_count = 1, .dim = star};

static ft_status import_in(const onnx_file *file, const char *folder) {
  ft_strbuf bytes = onnx_end(file);
  error = (ft_error){0};
  return ft_import_onnx_bytes(bytes.text, bytes.length, folder, &star_is_four, arena,
                              &graph, &report, &error);
}

static void must_import(const onnx_file *file) {
  ft_status status = import_in(file, NULL);
  cr_assert_eq(status, FT_OK, "%s: %s", ft_status_text(status), error.text);
  ft_graph_check(graph);
}

static void must_fail(const onnx_file *file, ft_status status, const char *text) {
  ft_status got = import_in(file, NULL);
  cr_assert_eq(got, status, "%s: %s", ft_status_text(got), error.text);
  cr_assert(strstr(error.text, text), "\"%s\" lacks \"%s\"", error.text, text);
  cr_assert_null(graph);
}

// x -> op -> y, opset 13, x f32 of |dims|.
static onnx_file unary(const char *op, const char *dims, const ft_strbuf *attributes) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, dims);
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_node(&file, op, "x", "y", attributes);
  return file;
}

static const ft_value *output(uint32_t index) {
  return &graph->value[graph->output[index].value];
}

static const char *shape_of(uint32_t index) {
  return ft_shape_text(&output(index)->shape, arena);
}

static unsigned count_op(ft_op op) {
  unsigned count = 0;
  for (uint32_t i = 0; i < graph->primitive_count; i++)
    count += graph->primitive[i].op == op;
  return count;
}

// ---- dims -------------------------------------------------------------------------

static ft_status import_shaped(const char *name, ft_shape shape) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "N,?,3");
  onnx_output(&file, "y", ONNX_FLOAT, "N,?,3");
  onnx_node(&file, "Relu", "x", "y", NULL);
  ft_strbuf bytes = onnx_end(&file);
  ft_input_shape input = {name, shape};
  ft_import_options options = {.input_count = 1, .input = &input};
  error = (ft_error){0};
  return ft_import_onnx_bytes(bytes.text, bytes.length, NULL, &options, arena, &graph,
                              &report, &error);
}

Test(graph_import, an_input_s_whole_shape_binds_named_and_nameless_dims) {
  cr_assert_eq(import_shaped("x", (ft_shape){3, {5, 7, 3}}), FT_OK, "%s", error.text);
  ft_shape got = graph->value[graph->input[0].value].shape;
  cr_assert(ft_shape_equal(&got, &(ft_shape){3, {5, 7, 3}}));
}

Test(graph_import, a_whole_shape_that_contradicts_the_model_is_refused_by_name) {
  cr_assert_eq(import_shaped("x", (ft_shape){3, {5, 7, 4}}), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "dim 2 is 3 in the model, 4 was given"), "%s", error.text);
  cr_assert_eq(import_shaped("x", (ft_shape){2, {5, 7}}), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "has 3 dims, 2 were given"), "%s", error.text);
  cr_assert_eq(import_shaped("z", (ft_shape){3, {5, 7, 3}}), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "no graph input 'z'"), "%s", error.text);
}

Test(graph_import, binds_dims_by_name_and_the_rest_by_star) {
  onnx_file file = unary("Relu", "N,seq,N,3", NULL);
  ft_strbuf bytes = onnx_end(&file);
  ft_dim_binding dims[] = {{"*", 5}, {"N", 8}};
  ft_status status = ft_import_onnx_bytes(
      bytes.text, bytes.length, NULL, &(ft_import_options){.dim_count = 2, .dim = dims},
      arena, &graph, &report, &error);
  cr_assert_eq(status, FT_OK, "%s", error.text);
  cr_assert_str_eq(shape_of(0), "8x5x8x3");
  cr_assert_str_eq(graph->dims_json, "{\"N\":8,\"seq\":5}");
}

Test(graph_import, lists_the_dims_that_nobody_bound) {
  onnx_file file = unary("Relu", "N,?,seq", NULL);
  ft_strbuf bytes = onnx_end(&file);
  ft_dim_binding dims[] = {{"N", 8}};
  ft_status status = ft_import_onnx_bytes(
      bytes.text, bytes.length, NULL, &(ft_import_options){.dim_count = 1, .dim = dims},
      arena, &graph, &report, &error);
  cr_assert_eq(status, FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "2 dims are not bound: x[1] seq"), "%s", error.text);
  cr_assert_eq(report.unbound_count, 2);
  cr_assert_str_eq(report.unbound[1], "seq");
}

Test(graph_import, refuses_bindings_that_are_negative_contradictory_or_of_no_dim) {
  onnx_file file = unary("Relu", "N,seq", NULL);
  ft_strbuf bytes = onnx_end(&file);
  const struct {
    ft_dim_binding dims[2];
    const char *text;
  } cases[] = {{{{"N", -1}, {"*", 4}}, "dim N=-1 is negative"},
               {{{"M", 1}, {"*", 4}}, "the model has no dim 'M'; it has: N seq"},
               {{{"N", 1}, {"N", 2}}, "dim N is bound to 1 and to 2"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ft_status status =
        ft_import_onnx_bytes(bytes.text, bytes.length, NULL,
                             &(ft_import_options){.dim_count = 2, .dim = cases[i].dims},
                             arena, &graph, &report, &error);
    cr_assert_eq(status, FT_INVALID_ARGUMENT);
    cr_assert(strstr(error.text, cases[i].text), "%s", error.text);
  }
}

Test(graph_import, takes_zero_dims_and_refuses_negative_and_huge_ones) {
  onnx_file file = unary("Relu", "0,3", NULL);
  must_import(&file);
  cr_assert_str_eq(shape_of(0), "0x3");
  file = unary("Relu", "2,-3", NULL);
  must_fail(&file, FT_REFUSED, "graph input 'x': dim 1 is -3");
  file = unary("Relu", "4611686018427387905", NULL);
  must_fail(&file, FT_REFUSED, "2^62");
  file = unary("Relu", "0,4611686018427387904,4611686018427387904", NULL);
  must_fail(&file, FT_REFUSED, "2^62");
}

// ---- values -----------------------------------------------------------------------

Test(graph_import, refuses_a_cycle_and_names_both_nodes) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "3");
  onnx_output(&file, "b", ONNX_FLOAT, "3");
  onnx_node(&file, "Add", "x,b", "a", NULL);
  onnx_node(&file, "Relu", "a", "b", NULL);
  must_fail(&file, FT_REFUSED,
            "node 1 'n_b' (Relu) reads 'a', which node 0 'n_a' produces: a cycle");
  file = unary("Relu", "3", NULL);
  onnx_node(&file, "Relu", "self", "self", NULL);
  must_fail(&file, FT_REFUSED, "node 1 'n_self' (Relu) reads 'self'");
}

Test(graph_import, refuses_names_that_nothing_or_two_things_produce) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "3");
  onnx_output(&file, "y", ONNX_FLOAT, "3");
  onnx_node(&file, "Add", "x,ghost", "y", NULL);
  must_fail(&file, FT_REFUSED, "reads 'ghost', which nothing produces");
  file = unary("Relu", "3", NULL);
  onnx_node(&file, "Neg", "x", "y", NULL);
  must_fail(&file, FT_REFUSED, "value 'y' is produced twice: by node 0 and node 1");
  file = unary("Relu", "3", NULL);
  onnx_input(&file, "x", ONNX_FLOAT, "3");
  must_fail(&file, FT_REFUSED,
            "'x' is produced twice: by graph input 0 and graph input 1");
  file = unary("Relu", "3", NULL);
  onnx_scalar(&file, "y", 1);
  must_fail(&file, FT_REFUSED, "'y' is produced twice: by initializer 0 and node 0");
  file = unary("Relu", "3", NULL);
  onnx_output(&file, "z", ONNX_FLOAT, "3");
  must_fail(&file, FT_REFUSED, "graph output 1 'z' is produced by nothing");
  file = unary("Relu", "3", NULL);
  onnx_output(&file, "y", ONNX_FLOAT, "3");
  must_fail(&file, FT_REFUSED, "'y' is a graph output twice");
}

Test(graph_import, refuses_a_declared_output_that_is_not_what_comes_out) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "2,3");
  onnx_output(&file, "y", ONNX_FLOAT, "M,4,1");
  onnx_node(&file, "Relu", "x", "y", NULL);
  must_fail(&file, FT_REFUSED, "graph output 'y' is declared with rank 3, but is 2x3");
  file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "2,3");
  onnx_output(&file, "y", ONNX_INT64, "M,3");
  onnx_node(&file, "Relu", "x", "y", NULL);
  must_fail(&file, FT_REFUSED, "graph output 'y' is declared i64, but is f32");
}

Test(graph_import, takes_the_dims_that_come_out_not_those_declared_for_an_output) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "2,3");
  onnx_output(&file, "y", ONNX_FLOAT, "M,768");
  onnx_node(&file, "Relu", "x", "y", NULL);
  must_import(&file);
  cr_assert_str_eq(shape_of(0), "2x3");
}

Test(graph_import, refuses_shapes_that_do_not_broadcast_and_names_the_node) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "2,3");
  onnx_input(&file, "z", ONNX_FLOAT, "4");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_node(&file, "Add", "x,z", "y", NULL);
  must_fail(&file, FT_REFUSED, "node 'n_y' (Add): add: 'z' (f32 4) does not broadcast");
}

Test(graph_import, refuses_more_operands_than_the_operator_has) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "2");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_node(&file, "Add", "x,x,x", "y", NULL);
  must_fail(&file, FT_REFUSED, "has 3 inputs, but takes 2");
  file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "2");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_node(&file, "Add", "x,", "y", NULL);
  must_fail(&file, FT_REFUSED, "node 'n_y' (Add): input 1 is missing");
}

Test(graph_import, keeps_overridable_initializers_as_inputs_from_ir_4_on) {
  for (int64_t ir = 3; ir <= 4; ir++) {
    onnx_file file = onnx_begin(arena, 13);
    file.ir_version = ir;
    onnx_input(&file, "x", ONNX_FLOAT, "2");
    onnx_input(&file, "w", ONNX_FLOAT, "");
    onnx_output(&file, "y", ONNX_FLOAT, NULL);
    onnx_scalar(&file, "w", 2);
    onnx_node(&file, "Mul", "x,w", "y", NULL);
    must_import(&file);
    cr_assert_eq(graph->input_count, ir < 4 ? 1u : 2u);
  }
}

Test(graph_import, ignores_what_no_output_needs) {
  onnx_file file = unary("Relu", "3", NULL);
  onnx_import_domain(&file, "com.microsoft", 1);
  onnx_node(&file, "com.microsoft::Attention", "x", "dead", NULL);
  ft_strbuf text = onnx_tensor(arena, "unused", 8, "1", NULL, 0);
  onnx_initializer(&file, &text);
  must_import(&file);
  cr_assert_eq(graph->primitive_count, 1);
}

// ---- unsupported ------------------------------------------------------------------

Test(graph_import, lists_everything_unsupported_at_once) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "3");
  onnx_input(&file, "h", 10, "3");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_import_domain(&file, "my", 2);
  onnx_node(&file, "my::Foo", "x", "a", NULL);
  onnx_node(&file, "Relu", "a", "b", NULL);
  onnx_node(&file, "Gelu", "b", "c", NULL);
  onnx_node(&file, "my::Foo", "c", "d", NULL);
  onnx_node(&file, "Sum", "d,x,h", "y", NULL);
  must_fail(&file, FT_UNSUPPORTED,
            "4 unsupported: input 'h': dtype f16; my::Foo (opset 2) 'n_a' and 1 more: "
            "unknown operator; Gelu (opset 13) 'n_c': known from opset 20 on");
  cr_assert_eq(report.unsupported_count, 4);
  cr_assert_str_eq(report.unsupported[3].node, "n_d");
}

Test(graph_import, names_the_opset_it_does_not_read) {
  onnx_file file = unary("Relu", "3", NULL);
  file.opset = 25;
  must_fail(&file, FT_UNSUPPORTED, "opset 25 of ai.onnx: 6 to 24 are read");
  file.opset = 5;
  must_fail(&file, FT_UNSUPPORTED, "opset 5 of ai.onnx");
  file.opset = 13;
  file.ir_version = 2;
  must_fail(&file, FT_UNSUPPORTED, "IR version 2");
}

Test(graph_import, takes_a_double_constant_that_is_cast_and_no_other_double) {
  onnx_file file = onnx_begin(arena, 13);
  ft_strbuf to_float = ft_strbuf_init(arena);
  onnx_attr_int(&to_float, "to", ONNX_FLOAT);
  onnx_input(&file, "x", ONNX_FLOAT, "3");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  double eps = 1e-5;
  ft_strbuf tensor = onnx_tensor(arena, "eps", ONNX_DOUBLE, "", &eps, sizeof eps);
  onnx_initializer(&file, &tensor);
  onnx_node(&file, "Cast", "eps", "e", &to_float);
  onnx_node(&file, "Add", "x,e", "y", NULL);
  must_import(&file);
  ft_strbuf to_double = ft_strbuf_init(arena);
  onnx_attr_int(&to_double, "to", ONNX_DOUBLE);
  file = unary("Cast", "3", &to_double);
  must_fail(&file, FT_UNSUPPORTED, "Cast (opset 13) 'n_y': the result is f64");
}

// ---- hostile tensors --------------------------------------------------------------

static onnx_file with_weight(const ft_strbuf *tensor) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, "x", ONNX_FLOAT, "3");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_initializer(&file, tensor);
  onnx_node(&file, "Add", "x,w", "y", NULL);
  return file;
}

Test(graph_import, refuses_tensors_whose_data_are_not_what_their_dims_say) {
  float data[3] = {1, 2, 3};
  const struct {
    const char *dims, *text;
  } cases[] = {
      {"4", "tensor 'w': 12 bytes where 4 of f32 needs 16"},
      {"1000000,1000000,1000", "tensor 'w': 12 bytes where"},
      {"4611686018427387904,4", "tensor 'w': its dims make more than 2^62 elements"},
      {"3037000500,3037000500", "tensor 'w': its dims make more than 2^62 elements"},
      {"-3", "tensor 'w': dim 0 is -3"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ft_strbuf w = onnx_tensor(arena, "w", ONNX_FLOAT, cases[i].dims, data, sizeof data);
    onnx_file file = with_weight(&w);
    size_t before = ft_arena_bytes(arena);
    must_fail(&file, FT_REFUSED, cases[i].text);
    cr_assert_lt(ft_arena_bytes(arena) - before, 1u << 20);
  }
  ft_strbuf w = onnx_tensor(arena, "w", ONNX_FLOAT, "1000000000", NULL, 0);
  onnx_file file = with_weight(&w);
  must_fail(&file, FT_REFUSED,
            "tensor 'w': 0 elements where 1000000000 needs 1000000000");
}

Test(graph_import, reads_typed_data_packed_or_not_and_checks_their_range) {
  float values[3] = {1, 2, 3};
  for (int packed = 0; packed < 2; packed++) {
    ft_strbuf w = onnx_tensor(arena, "w", ONNX_FLOAT, "3", NULL, 0);
    if (packed) pb_bytes(&w, 4, values, sizeof values);
    for (int i = 0; !packed && i < 3; i++) pb_float(&w, 4, values[i]);
    onnx_file file = with_weight(&w);
    must_import(&file);
    const ft_value *constant = &graph->value[graph->primitive[0].input[1]];
    cr_assert_eq(ft_tensor_get_f64(constant->data, 2), 3.0);
  }
  ft_strbuf w = onnx_tensor(arena, "w", ONNX_BOOL, "1", NULL, 0);
  pb_int(&w, 5, 2);
  onnx_file file = with_weight(&w);
  must_fail(&file, FT_REFUSED, "tensor 'w': element 0 is 2, not a bool");
  w = onnx_tensor(arena, "w", ONNX_INT32, "1", NULL, 0);
  pb_int(&w, 5, INT64_C(1) << 40);
  file = with_weight(&w);
  must_fail(&file, FT_REFUSED, "tensor 'w': element 0 is 1099511627776, not a i32");
}

Test(graph_import, names_the_tensor_whose_dtype_it_does_not_have) {
  ft_strbuf w = onnx_tensor(arena, "w", 8, "3", NULL, 0);
  onnx_file file = with_weight(&w);
  must_fail(&file, FT_UNSUPPORTED, "1 unsupported: initializer 'w'");
}

// ---- external data ----------------------------------------------------------------

static const char *make_folder(void) {
  char *folder = ft_arena_printf(arena, FT_BINARY_DIR "/ft_import_XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  float values[6] = {0, 0, 0, 1, 2, 3};
  const char *sub = ft_arena_printf(arena, "%s/model", folder);
  cr_assert_eq(mkdir(sub, 0700), 0);
  FILE *out = fopen(ft_arena_printf(arena, "%s/w.bin", sub), "wb");
  cr_assert_eq(fwrite(values, 1, sizeof values, out), sizeof values);
  fclose(out);
  cr_assert_eq(link(ft_arena_printf(arena, "%s/w.bin", sub),
                    ft_arena_printf(arena, "%s/outside.bin", folder)),
               0);
  cr_assert_eq(symlink("w.bin", ft_arena_printf(arena, "%s/link.bin", sub)), 0);
  cr_assert_eq(symlink("..", ft_arena_printf(arena, "%s/up", sub)), 0);
  cr_assert_eq(mkfifo(ft_arena_printf(arena, "%s/fifo", sub), 0600), 0);
  return sub;
}

static void remove_folder(const char *sub) {
  static const char *const names[] = {"w.bin", "link.bin", "up", "fifo",
                                      "../outside.bin"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    unlink(ft_arena_printf(arena, "%s/%s", sub, names[i]));
  rmdir(sub);
  *strrchr((char *)sub, '/') = 0;
  rmdir(sub);
}

static void add_entry(ft_strbuf *tensor, const char *key, const char *value) {
  ft_strbuf entry = ft_strbuf_init(arena);
  pb_text(&entry, 1, key);
  pb_text(&entry, 2, value);
  pb_message(tensor, 13, &entry);
}

static onnx_file external(const char *location, const char *offset, const char *length) {
  ft_strbuf w = onnx_tensor(arena, "w", ONNX_FLOAT, "3", NULL, 0);
  pb_int(&w, 14, 1);
  add_entry(&w, "location", location);
  if (offset) add_entry(&w, "offset", offset);
  if (length) add_entry(&w, "length", length);
  return with_weight(&w);
}

Test(graph_import, reads_external_data_beneath_the_folder) {
  const char *folder = make_folder();
  onnx_file file = external("w.bin", "12", "12");
  ft_status status = import_in(&file, folder);
  cr_assert_eq(status, FT_OK, "%s", error.text);
  const ft_value *constant = &graph->value[graph->primitive[0].input[1]];
  cr_assert_eq(ft_tensor_get_f64(constant->data, 0), 1.0);
  cr_assert_eq(ft_tensor_get_f64(constant->data, 2), 3.0);
  remove_folder(folder);
}

Test(graph_import, refuses_external_data_outside_the_folder_or_past_its_end) {
  const char *folder = make_folder();
  const struct {
    const char *location, *offset, *length, *text;
    ft_status status;
  } cases[] = {
      {"../outside.bin", NULL, NULL, "'../outside.bin' leaves the model's folder",
       FT_REFUSED},
      {"model/../../outside.bin", NULL, NULL, "leaves the model's folder", FT_REFUSED},
      {"/etc/passwd", NULL, NULL, "'/etc/passwd' is an absolute path", FT_REFUSED},
      {"link.bin", NULL, NULL, "'link.bin' is reached through a link", FT_REFUSED},
      {"up/outside.bin", NULL, NULL, "'up/outside.bin' is reached through", FT_REFUSED},
      {"fifo", NULL, NULL, "'fifo' is not a regular file", FT_REFUSED},
      {".", NULL, NULL, "'.' is not a regular file", FT_REFUSED},
      {"", NULL, NULL, "without a usable location", FT_REFUSED},
      {"none.bin", NULL, NULL, "'none.bin': No such file", FT_IO},
      {"w.bin", "13", "12", "'w.bin' has 24 bytes: 12 at offset 13", FT_REFUSED},
      {"w.bin", "18446744073709551615", "12", "pass its end", FT_REFUSED},
      {"w.bin", "18446744073709551616", "12", "is not a byte count", FT_REFUSED},
      {"w.bin", "0x0", "12", "'0x0' is not a byte count", FT_REFUSED},
      {"w.bin", "0", "16", "length 16 where the dims need 12", FT_REFUSED}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    onnx_file file = external(cases[i].location, cases[i].offset, cases[i].length);
    ft_status status = import_in(&file, folder);
    cr_assert_eq(status, cases[i].status, "%s: %s", cases[i].location, error.text);
    cr_assert(strstr(error.text, cases[i].text), "\"%s\" lacks \"%s\"", error.text,
              cases[i].text);
    cr_assert(strstr(error.text, "tensor 'w'"), "%s", error.text);
  }
  onnx_file file = external("w.bin", NULL, NULL);
  must_fail(&file, FT_REFUSED, "without a folder it may read from");
  remove_folder(folder);
}

// ---- whole files ------------------------------------------------------------------

static onnx_file layer_norm_model(void) {
  onnx_file file = onnx_begin(arena, 13);
  ft_strbuf axes = ft_strbuf_init(arena);
  int64_t last = -1;
  float gamma[4] = {1, 2, 3, 4};
  onnx_attr_ints(&axes, "axes", &last, 1);
  onnx_input(&file, "x", ONNX_FLOAT, "N,4");
  onnx_output(&file, "y", ONNX_FLOAT, "N,4");
  onnx_scalar(&file, "two", 2);
  onnx_scalar(&file, "eps", 1e-5f);
  onnx_floats(&file, "gamma", "4", gamma, 4);
  onnx_node(&file, "ReduceMean", "x", "m", &axes);
  onnx_node(&file, "Sub", "x,m", "d", NULL);
  onnx_node(&file, "Pow", "d,two", "p", NULL);
  onnx_node(&file, "ReduceMean", "p", "v", &axes);
  onnx_node(&file, "Add", "v,eps", "ve", NULL);
  onnx_node(&file, "Sqrt", "ve", "s", NULL);
  onnx_node(&file, "Div", "d,s", "q", NULL);
  onnx_node(&file, "Mul", "q,gamma", "y", NULL);
  return file;
}

Test(graph_import, imports_a_layer_norm_as_its_primitives) {
  onnx_file file = layer_norm_model();
  must_import(&file);
  cr_assert_eq(count_op(FT_OP_REDUCE_SUM), 2);
  cr_assert_eq(count_op(FT_OP_POW), 0, "a square is a multiplication");
  cr_assert_eq(graph->live_operators, 8);
  cr_assert_str_eq(graph->output[0].name, "y");
}

Test(graph_import, survives_a_model_cut_at_every_byte) {
  onnx_file file = layer_norm_model();
  ft_strbuf bytes = onnx_end(&file);
  for (size_t size = 0; size < bytes.length; size++) {
    ft_arena *scratch = ft_arena_create(ft_allocator_system());
    const void *copy = ft_arena_memdup(scratch, bytes.text, size);
    ft_status status = ft_import_onnx_bytes(copy, size, NULL, &star_is_four, scratch,
                                            &graph, &report, &error);
    cr_assert_eq(status, FT_REFUSED, "cut at %zu: %s", size, ft_status_text(status));
    cr_assert_neq(error.text[0], 0);
    ft_arena_destroy(scratch);
  }
}

Test(graph_import, survives_a_flipped_bit_anywhere) {
  onnx_file file = layer_norm_model();
  ft_strbuf bytes = onnx_end(&file);
  unsigned imported = 0;
  for (size_t bit = 0; bit < bytes.length * 8; bit++) {
    ft_arena *scratch = ft_arena_create(ft_allocator_system());
    uint8_t *copy = ft_arena_memdup(scratch, bytes.text, bytes.length);
    copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    imported += ft_import_onnx_bytes(copy, bytes.length, NULL, &star_is_four, scratch,
                                     &graph, &report, &error) == FT_OK;
    cr_assert_lt(ft_arena_bytes(scratch), 1u << 20);
    ft_arena_destroy(scratch);
  }
  cr_assert_gt(imported, 100u, "flips in weights change no structure");
}

static int failing_calls, calls;
static void *failing_allocate(void *ctx, size_t size, size_t align) {
  (void)ctx;
  if (calls++ == failing_calls) return NULL;
  return ft_allocate(ft_allocator_system(), size, align);
}
static void pass_release(void *ctx, void *block) {
  (void)ctx;
  ft_release(ft_allocator_system(), block);
}

Test(graph_import, ends_with_out_of_memory_at_each_allocation_in_turn) {
  static const ft_allocator failing = {.allocate = failing_allocate,
                                       .release = pass_release};
  onnx_file file = layer_norm_model();
  ft_strbuf bytes = onnx_end(&file);
  ft_status status = FT_OUT_OF_MEMORY;
  for (failing_calls = 1; failing_calls < 200 && status != FT_OK; failing_calls++) {
    calls = 0;
    ft_arena *scratch = ft_arena_create(&failing);
    status = ft_import_onnx_bytes(bytes.text, bytes.length, NULL, &star_is_four, scratch,
                                  &graph, &report, &error);
    cr_assert(status == FT_OK || status == FT_OUT_OF_MEMORY, "%s", error.text);
    ft_arena_destroy(scratch);
  }
  cr_assert_eq(status, FT_OK);
  cr_assert_gt(failing_calls, 2);
}

// ---- identity ---------------------------------------------------------------------

static ft_hash hash_of(const onnx_file *file) {
  must_import(file);
  return graph->symbolic_hash;
}

static onnx_file scaled(const char *dims, const char *x, const char *w, float value) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_input(&file, x, ONNX_FLOAT, dims);
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_scalar(&file, w, value);
  onnx_node(&file, "Mul", ft_arena_printf(arena, "%s,%s", x, w), "y", NULL);
  return file;
}

Test(graph_import, hashes_the_model_without_its_names_or_bindings) {
  onnx_file file = scaled("N,3", "x", "w", 2), other;
  ft_hash hash = hash_of(&file), same;
  other = scaled("batch,3", "input", "weight", 2);
  same = hash_of(&other);
  cr_assert(ft_hash_equal(&hash, &same), "names");
  other = scaled("N,3", "x", "w", 3);
  same = hash_of(&other);
  cr_assert_not(ft_hash_equal(&hash, &same), "small constants");
  other = scaled("N,4", "x", "w", 2);
  same = hash_of(&other);
  cr_assert_not(ft_hash_equal(&hash, &same), "known dims");
  other = scaled("4,3", "x", "w", 2);
  same = hash_of(&other);
  cr_assert_not(ft_hash_equal(&hash, &same), "a bound dim is not a symbolic one");
  other = scaled("N,3", "x", "w", 2);
  other.opset = 14;
  same = hash_of(&other);
  cr_assert_not(ft_hash_equal(&hash, &same), "opset");
  cr_assert_gt(graph->symbolic_encoding_bytes, 0u);
  same = ft_hash_bytes(graph->symbolic_encoding, graph->symbolic_encoding_bytes);
  cr_assert(ft_hash_equal(&graph->symbolic_hash, &same));
}

Test(graph_import, tells_one_symbol_used_twice_from_two) {
  onnx_file file = unary("Relu", "N,N", NULL), other = unary("Relu", "N,M", NULL);
  ft_hash a = hash_of(&file), b = hash_of(&other);
  cr_assert_not(ft_hash_equal(&a, &b));
  other = unary("Relu", "K,K", NULL);
  b = hash_of(&other);
  cr_assert(ft_hash_equal(&a, &b));
}

Test(graph_import, hashes_a_constant_node_like_an_initializer) {
  onnx_file file = scaled("N,3", "x", "w", 2), other = onnx_begin(arena, 13);
  ft_hash a = hash_of(&file);
  ft_strbuf attributes = ft_strbuf_init(arena);
  onnx_attr_float(&attributes, "value_float", 2);
  onnx_input(&other, "x", ONNX_FLOAT, "N,3");
  onnx_output(&other, "y", ONNX_FLOAT, NULL);
  onnx_node(&other, "Constant", "", "c", &attributes);
  onnx_node(&other, "Mul", "x,c", "y", NULL);
  ft_hash b = hash_of(&other);
  cr_assert(ft_hash_equal(&a, &b));
}

Test(graph_import, leaves_the_bytes_of_weights_out_of_the_hash) {
  float data[2][65] = {{1}, {2}};
  ft_hash hash[2];
  for (int i = 0; i < 2; i++) {
    onnx_file file = onnx_begin(arena, 13);
    onnx_input(&file, "x", ONNX_FLOAT, "65");
    onnx_output(&file, "y", ONNX_FLOAT, NULL);
    onnx_floats(&file, "w", "65", data[i], 65);
    onnx_node(&file, "Mul", "x,w", "y", NULL);
    hash[i] = hash_of(&file);
  }
  cr_assert(ft_hash_equal(&hash[0], &hash[1]));
}

// ---- exported graphs --------------------------------------------------------------

static ft_status import_exported(const char *name) {
  char path[512];
  cr_assert_eq(
      test_data_path(ft_arena_printf(arena, "onnx/fusion/%s", name), path, sizeof path),
      0);
  error = (ft_error){0};
  return ft_import_onnx(path, &star_is_four, arena, &graph, &report, &error);
}

Test(graph_import, imports_the_exported_gelus_and_layer_norms) {
  TEST_NEEDS_DATA();
  static const char *const names[] = {"gelu",
                                      "gelu_opset20",
                                      "gelu_format2_0",
                                      "gelu_format2_1",
                                      "gelu_format2_1_use_graph_input",
                                      "bias_gelu_fusion_format_2",
                                      "layer_norm_shared_input",
                                      "layer_norm_sub_dup",
                                      "layer_norm_with_cast"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    ft_status status = import_exported(ft_arena_printf(arena, "%s.onnx", names[i]));
    cr_assert_eq(status, FT_OK, "%s: %s", names[i], error.text);
    ft_graph_check(graph);
    cr_assert_gt(graph->primitive_count, 3u);
  }
}

Test(graph_import, imports_or_refuses_by_name_every_exported_graph) {
  TEST_NEEDS_DATA();
  char folder[512];
  cr_assert_eq(test_data_path("onnx/fusion", folder, sizeof folder), 0);
  DIR *dir = opendir(folder);
  cr_assert_not_null(dir);
  unsigned imported = 0, refused = 0;
  for (struct dirent *entry; (entry = readdir(dir));) {
    const char *dot = strrchr(entry->d_name, '.');
    if (!dot || strcmp(dot, ".onnx") != 0) continue;
    ft_status status = import_exported(entry->d_name);
    imported += status == FT_OK;
    refused += status == FT_UNSUPPORTED || status == FT_REFUSED;
    if (status == FT_OK) {
      ft_graph_check(graph);
      continue;
    }
    cr_assert(status == FT_UNSUPPORTED || status == FT_REFUSED, "%s: %s", entry->d_name,
              error.text);
    cr_assert(strchr(error.text, '\'') || strstr(error.text, "the graph has no outputs"),
              "%s names nothing: %s", entry->d_name, error.text);
    if (getenv("FT_TEST_VERBOSE")) fprintf(stderr, "%s\n", error.text);
  }
  closedir(dir);
  cr_assert_eq(imported + refused, 181u);
  cr_assert_geq(imported, 9u, "%u", imported);
}

// ---- the fuzzer's corpus ----------------------------------------------------------

Test(graph_import, imports_or_refuses_each_file_the_fuzzer_starts_from) {
  static const char folder[] = FT_SOURCE_DIR "/tests/fuzz/corpus/onnx";
  DIR *dir = opendir(folder);
  cr_assert_not_null(dir);
  unsigned imported = 0, refused = 0;
  for (struct dirent *entry; (entry = readdir(dir));) {
    if (entry->d_name[0] == '.') continue;
    error = (ft_error){0};
    ft_status status =
        ft_import_onnx(ft_arena_printf(arena, "%s/%s", folder, entry->d_name),
                       &star_is_four, arena, &graph, &report, &error);
    imported += status == FT_OK;
    refused += status == FT_REFUSED || status == FT_UNSUPPORTED;
    cr_assert(status == FT_OK || strchr(error.text, '\''), "%s: %s", entry->d_name,
              error.text);
  }
  closedir(dir);
  cr_assert_geq(imported, 28u);
  cr_assert_geq(refused, 5u);
}
