#include "graph/import_json.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/strbuf.h"
#include "tests/support/command.h"
#include "tests/support/onnx_writer.h"

static ft_arena *arena;

static void open_arena(void) {
  arena = ft_arena_create(ft_allocator_system());
}

static void close_arena(void) {
  ft_arena_destroy(arena);
}

TestSuite(graph_import_json, .init = open_arena, .fini = close_arena);

static const ft_dim_binding star = {"*", 3};
static const ft_import_options options = {.dim_count = 1, .dim = &star};

static ft_status try_json(const char *text, const char *folder, ft_graph **out,
                          ft_error *error) {
  ft_import_report report;
  *error = (ft_error){0};
  return ft_import_json_bytes(text, strlen(text), folder, &options, arena, out, &report,
                              error);
}

static ft_graph *from_json(const char *text) {
  ft_graph *graph;
  ft_error error;
  cr_assert_eq(try_json(text, NULL, &graph, &error), FT_OK, "%s", error.text);
  ft_graph_check(graph);
  return graph;
}

static ft_graph *from_onnx(const onnx_file *file) {
  ft_graph *graph;
  ft_import_report report;
  ft_error error;
  ft_strbuf bytes = onnx_end(file);
  cr_assert_eq(ft_import_onnx_bytes(bytes.text, bytes.length, NULL, &options, arena,
                                    &graph, &report, &error),
               FT_OK, "%s", error.text);
  return graph;
}

// The file is named with the names of |text|, which prove nothing: others would do.
static void assert_same(const onnx_file *file, const char *text) {
  ft_graph *a = from_onnx(file), *b = from_json(text);
  cr_assert_eq(a->symbolic_encoding_bytes, b->symbolic_encoding_bytes);
  cr_assert(memcmp(a->symbolic_encoding, b->symbolic_encoding,
                   a->symbolic_encoding_bytes) == 0);
  cr_assert(ft_hash_equal(&a->symbolic_hash, &b->symbolic_hash));
  cr_assert(ft_hash_equal(&a->bound_hash, &b->bound_hash));
  cr_assert_str_eq(a->dims_json, b->dims_json);
}

static const char *refusal_of(const char *text) {
  ft_graph *graph;
  ft_error error;
  ft_status status = try_json(text, NULL, &graph, &error);
  cr_assert_eq(status, FT_REFUSED, "%s: %s: %s", ft_status_text(status), error.text,
               text);
  cr_assert_null(graph);
  return ft_arena_strdup(arena, error.text);
}

#define HEAD "{\"format\":\"fusetune-graph/1\",\"opset\":17,"
#define X4 "\"inputs\":[{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[4]}],"
#define RELU "\"nodes\":[{\"op\":\"Relu\",\"inputs\":[\"x\"],\"outputs\":[\"y\"]}]"
#define OUT_Y "\"outputs\":[\"y\"],"

// ---- the same graph by either road --------------------------------------------------

Test(graph_import_json, a_softmax_with_a_symbolic_dim_hashes_as_its_onnx_twin) {
  onnx_file f = onnx_begin(arena, 17);
  onnx_input(&f, "a", ONNX_FLOAT, "batch,8");
  onnx_output(&f, "b", ONNX_FLOAT, "batch,8");
  ft_strbuf attributes = ft_strbuf_init(arena);
  onnx_attr_int(&attributes, "axis", -1);
  onnx_node(&f, "Softmax", "a", "b", &attributes);
  assert_same(&f, HEAD
              "\"name\":\"s\",\"dims\":[\"batch\"],"
              "\"inputs\":[{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[\"batch\",8]}],"
              "\"outputs\":[\"y\"],\"constants\":[],"
              "\"nodes\":[{\"name\":\"n\",\"op\":\"Softmax\",\"domain\":\"\","
              "\"inputs\":[\"x\"],\"outputs\":[\"y\"],\"attributes\":{\"axis\":-1}}]}");
}

Test(graph_import_json, constants_and_absent_operands_hash_as_their_onnx_twins) {
  onnx_file f = onnx_begin(arena, 17);
  float scale[4] = {1, 2, 3, 4.5f};
  int64_t axes[1] = {0};
  onnx_input(&f, "x", ONNX_FLOAT, "4");
  onnx_output(&f, "y", ONNX_FLOAT, "1,4");
  onnx_floats(&f, "w", "4", scale, 4);
  onnx_scalar(&f, "six", 6.0f);
  onnx_ints(&f, "axes", "1", axes, 1);
  onnx_node(&f, "Mul", "x,w", "t", NULL);
  onnx_node(&f, "Clip", "t,,six", "c", NULL);
  onnx_node(&f, "Unsqueeze", "c,axes", "y", NULL);
  assert_same(&f, HEAD X4 OUT_Y
              "\"constants\":["
              "{\"name\":\"w\",\"dtype\":\"f32\",\"shape\":[4],"
              "\"data\":{\"values\":[1,2.0,3,4.5]}},"
              "{\"name\":\"six\",\"dtype\":\"f32\",\"shape\":[],"
              "\"data\":{\"base64\":\"AADAQA==\"}},"
              "{\"name\":\"axes\",\"dtype\":\"i64\",\"shape\":[1],"
              "\"data\":{\"values\":[0]}}],\"nodes\":["
              "{\"op\":\"Mul\",\"inputs\":[\"x\",\"w\"],\"outputs\":[\"t\"]},"
              "{\"op\":\"Clip\",\"inputs\":[\"t\",\"\",\"six\"],\"outputs\":[\"c\"]},"
              "{\"op\":\"Unsqueeze\",\"inputs\":[\"c\",\"axes\"],\"outputs\":[\"y\"]}]}");
}

Test(graph_import_json, attributes_of_each_kind_hash_as_their_onnx_twins) {
  onnx_file f = onnx_begin(arena, 17);
  static const int64_t perm[2] = {1, 0};
  static const float numbers[2] = {1.0f, 2.5f};
  onnx_input(&f, "x", ONNX_FLOAT, "2,2");
  onnx_output(&f, "y", ONNX_FLOAT, "2,2");
  ft_strbuf a = ft_strbuf_init(arena), b = a, c = a, d = a;
  onnx_attr_ints(&a, "perm", perm, 2);
  onnx_attr_float(&b, "alpha", 1.0f);
  onnx_attr_text(&c, "approximate", "tanh");
  onnx_attr_floats(&d, "value_floats", numbers, 2);
  f.opset = 20;
  onnx_node(&f, "Transpose", "x", "t", &a);
  onnx_node(&f, "Elu", "t", "e", &b);
  onnx_node(&f, "Gelu", "e", "g", &c);
  onnx_node(&f, "Constant", "", "k", &d);
  onnx_node(&f, "Add", "g,k", "y", NULL);
  assert_same(&f,
              "{\"format\":\"fusetune-graph/1\",\"opset\":20,"
              "\"inputs\":[{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[2,2]}]," OUT_Y
              "\"nodes\":["
              "{\"op\":\"Transpose\",\"inputs\":[\"x\"],\"outputs\":[\"t\"],"
              "\"attributes\":{\"perm\":[1,0]}},"
              "{\"op\":\"Elu\",\"inputs\":[\"t\"],\"outputs\":[\"e\"],"
              "\"attributes\":{\"alpha\":{\"float\":1}}},"
              "{\"op\":\"Gelu\",\"inputs\":[\"e\"],\"outputs\":[\"g\"],"
              "\"attributes\":{\"approximate\":\"tanh\"}},"
              "{\"op\":\"Constant\",\"inputs\":[],\"outputs\":[\"k\"],"
              "\"attributes\":{\"value_floats\":[1,2.5]}},"
              "{\"op\":\"Add\",\"inputs\":[\"g\",\"k\"],\"outputs\":[\"y\"]}]}");
}

// if c then relu(x * w) else x + 1, with a weight inside a branch.
static onnx_file branches(ft_strbuf *attributes) {
  onnx_file f = onnx_begin(arena, 17), a = f, b = f;
  const uint8_t yes = 1;
  const float w[1] = {2};
  a.graph = b.graph = ft_strbuf_init(arena);
  onnx_output(&a, "p", ONNX_FLOAT, NULL);
  onnx_floats(&a, "w", "1", w, 1);
  onnx_node(&a, "Mul", "x,w", "t", NULL);
  onnx_node(&a, "Relu", "t", "p", NULL);
  onnx_output(&b, "q", ONNX_FLOAT, NULL);
  onnx_scalar(&b, "one", 1.0f);
  onnx_node(&b, "Add", "x,one", "q", NULL);
  *attributes = ft_strbuf_init(arena);
  const char *names[2] = {"then_branch", "else_branch"};
  const ft_strbuf *graphs[2] = {&a.graph, &b.graph};
  for (int i = 0; i < 2; i++) {
    ft_strbuf one = ft_strbuf_init(arena);
    pb_text(&one, 1, names[i]);
    pb_message(&one, 6, graphs[i]);
    pb_int(&one, 20, 5);
    pb_message(attributes, 5, &one);
  }
  ft_strbuf condition = onnx_tensor(arena, "c", ONNX_BOOL, "", &yes, 1);
  onnx_input(&f, "x", ONNX_FLOAT, "4");
  onnx_output(&f, "y", ONNX_FLOAT, "4");
  onnx_initializer(&f, &condition);
  return f;
}

Test(graph_import_json, the_branches_of_an_if_hash_as_their_onnx_twins) {
  ft_strbuf attributes;
  onnx_file f = branches(&attributes);
  onnx_node(&f, "If", "c", "y", &attributes);
  static const char text[] = HEAD X4 OUT_Y
      "\"constants\":[{\"name\":\"c\",\"dtype\":\"bool\",\"shape\":[],"
      "\"data\":{\"values\":[true]}}],\"nodes\":[{\"op\":\"If\",\"inputs\":[\"c\"],"
      "\"outputs\":[\"y\"],\"attributes\":{\"then_branch\":{\"graph\":{"
      "\"outputs\":[\"o\"],\"constants\":[{\"name\":\"k\",\"dtype\":\"f32\","
      "\"shape\":[1],\"data\":{\"values\":[%d]}}],\"nodes\":["
      "{\"op\":\"Mul\",\"inputs\":[\"x\",\"k\"],\"outputs\":[\"m\"]},"
      "{\"op\":\"Relu\",\"inputs\":[\"m\"],\"outputs\":[\"o\"]}]}},"
      "\"else_branch\":{\"graph\":{\"outputs\":[\"o\"],\"constants\":[{\"name\":\"k\","
      "\"dtype\":\"f32\",\"shape\":[],\"data\":{\"values\":[%d]}}],\"nodes\":["
      "{\"op\":\"Add\",\"inputs\":[\"x\",\"k\"],\"outputs\":[\"o\"]}]}}}}]}";
  assert_same(&f, ft_arena_printf(arena, text, 2, 1));
  ft_graph *taken = from_json(ft_arena_printf(arena, text, 3, 1));
  ft_graph *other = from_json(ft_arena_printf(arena, text, 2, 7));
  ft_graph *onnx = from_onnx(&f);
  cr_assert(!ft_hash_equal(&onnx->symbolic_hash, &taken->symbolic_hash));
  cr_assert(!ft_hash_equal(&onnx->symbolic_hash, &other->symbolic_hash));
  cr_assert(ft_hash_equal(&onnx->bound_hash, &other->bound_hash));
}

Test(graph_import_json, a_large_weight_hashes_the_same_from_a_file_and_from_a_seed) {
  static float weight[128];
  char folder[256], path[300];
  ft_error error;
  snprintf(folder, sizeof folder, "%s", test_folder());
  snprintf(path, sizeof path, "%s/w.bin", folder);
  cr_assert_eq(ft_file_write(path, weight, sizeof weight, &error), FT_OK);
  onnx_file f = onnx_begin(arena, 17);
  onnx_input(&f, "x", ONNX_FLOAT, "128");
  onnx_output(&f, "y", ONNX_FLOAT, "128");
  onnx_floats(&f, "w", "128", weight, 128);
  onnx_node(&f, "Add", "x,w", "y", NULL);
  ft_graph *onnx = from_onnx(&f), *json;
  static const char *const sources[] = {
      "\"data\":{\"file\":\"w.bin\",\"offset\":0,\"bytes\":512}", "\"data\":{\"seed\":7}",
      NULL};
  for (int i = 0; i < 3; i++) {
    const char *text = ft_arena_printf(
        arena,
        HEAD "\"inputs\":[{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[128]}]," OUT_Y
             "\"constants\":[{\"name\":\"w\",\"dtype\":\"f32\",\"shape\":[128]%s%s}],"
             "\"nodes\":[{\"op\":\"Add\",\"inputs\":[\"x\",\"w\"],\"outputs\":[\"y\"]}]}",
        sources[i] ? "," : "", sources[i] ? sources[i] : "");
    cr_assert_eq(try_json(text, folder, &json, &error), FT_OK, "%s", error.text);
    cr_assert(ft_hash_equal(&onnx->symbolic_hash, &json->symbolic_hash));
    cr_assert(ft_hash_equal(&onnx->bound_hash, &json->bound_hash));
    cr_assert_eq(json->value[json->primitive[0].input[1]].data == NULL, i > 0);
  }
}

Test(graph_import_json, values_that_are_not_finite_are_words) {
  ft_graph *g = from_json(
      HEAD X4 OUT_Y
      "\"constants\":[{\"name\":\"w\",\"dtype\":\"f32\",\"shape\":[4],"
      "\"data\":{\"values\":[\"nan\",\"inf\",\"-inf\",1e-45]}}],"
      "\"nodes\":[{\"op\":\"Add\",\"inputs\":[\"x\",\"w\"],\"outputs\":[\"y\"]}]}");
  const ft_tensor *w = g->value[g->primitive[0].input[1]].data;
  cr_assert(__builtin_isnan(ft_tensor_get_f64(w, 0)));
  cr_assert_eq(ft_tensor_get_f64(w, 1), (double)__builtin_inff());
  cr_assert_eq(ft_tensor_get_f64(w, 2), -(double)__builtin_inff());
  cr_assert_gt(ft_tensor_get_f64(w, 3), 0);
}

// ---- refused, by name -----------------------------------------------------------------

Test(graph_import_json, duplicates_cycles_and_missing_producers_are_refused_by_name) {
  cr_assert(strstr(refusal_of(HEAD X4 OUT_Y "\"nodes\":["
                                            "{\"op\":\"Relu\",\"inputs\":[\"x\"],"
                                            "\"outputs\":[\"y\"]},"
                                            "{\"op\":\"Abs\",\"inputs\":[\"x\"],"
                                            "\"outputs\":[\"y\"]}]}"),
                   "'y' is produced twice"));
  cr_assert(strstr(refusal_of(HEAD X4 OUT_Y "\"nodes\":["
                                            "{\"op\":\"Relu\",\"inputs\":[\"b\"],"
                                            "\"outputs\":[\"a\"]},"
                                            "{\"op\":\"Abs\",\"inputs\":[\"a\"],"
                                            "\"outputs\":[\"b\"]},"
                                            "{\"op\":\"Abs\",\"inputs\":[\"b\"],"
                                            "\"outputs\":[\"y\"]}]}"),
                   "a cycle"));
  cr_assert(strstr(refusal_of(HEAD X4 OUT_Y "\"nodes\":[{\"op\":\"Relu\",\"inputs\":["
                                            "\"z\"],\"outputs\":[\"y\"]}]}"),
                   "'z', which nothing produces"));
  cr_assert(
      strstr(refusal_of(HEAD X4 OUT_Y "\"constants\":[{\"name\":\"x\",\"dtype\":\"f32\","
                                      "\"shape\":[4],\"data\":{\"seed\":1}}]," RELU "}"),
             "'x' is an input too"));
  cr_assert(strstr(refusal_of(HEAD X4 OUT_Y "\"name\":\"a\",\"name\":\"b\"," RELU "}"),
                   "duplicate"));
}

Test(graph_import_json, the_place_of_a_mistake_is_named) {
  static const struct {
    const char *text, *said;
  } cases[] = {
      {"[]", "no JSON object"},
      {"{", "no JSON"},
      {"{\"opset\":17}", "has no 'format'"},
      {"{\"format\":\"fusetune-graph/2\"}", "fusetune-graph/2"},
      {HEAD X4 OUT_Y RELU ",\"extra\":1}", "unknown member 'extra'"},
      {"{\"format\":\"fusetune-graph/1\"," X4 OUT_Y RELU "}", "opset: is no opset"},
      {HEAD OUT_Y RELU ",\"inputs\":[{\"name\":\"x\",\"dtype\":\"f32\","
                       "\"shape\":[\"N\"]}]}",
       "inputs[0].shape[0]: dim 'N' is not in 'dims'"},
      {HEAD OUT_Y RELU ",\"inputs\":[{\"name\":\"x\",\"dtype\":\"float\","
                       "\"shape\":[]}]}",
       "inputs[0].dtype: unknown dtype 'float'"},
      {HEAD X4 OUT_Y "\"nodes\":[{\"inputs\":[\"x\"],\"outputs\":[\"y\"]}]}",
       "nodes[0]: has no 'op'"},
      {HEAD X4 OUT_Y "\"nodes\":[{\"op\":\"Relu\",\"inputs\":[\"x\"],"
                     "\"outputs\":[\"y\"],\"attributes\":{\"a\":[]}}]}",
       "nodes[0].attributes.a: has no type"},
      {HEAD X4 OUT_Y "\"nodes\":[{\"op\":\"Relu\",\"inputs\":[\"x\"],"
                     "\"outputs\":[\"y\"],\"attributes\":{\"a\":[1,\"b\"]}}]}",
       "nodes[0].attributes.a[1]: is no integer"},
      {HEAD X4 OUT_Y RELU ",\"constants\":[{\"name\":\"w\",\"dtype\":\"f32\","
                          "\"shape\":[3],\"data\":{\"values\":[1,2]}}]}",
       "constants[0].data.values: has 2 values where 3 needs 3"},
      {HEAD X4 OUT_Y RELU ",\"constants\":[{\"name\":\"w\",\"dtype\":\"i32\","
                          "\"shape\":[1],\"data\":{\"values\":[2147483648]}}]}",
       "constants[0].data.values[0]: is no i32"},
      {HEAD X4 OUT_Y RELU ",\"constants\":[{\"name\":\"w\",\"dtype\":\"f32\","
                          "\"shape\":[1],\"data\":{\"base64\":\"AAA*\"}}]}",
       "base64"},
      {HEAD X4 OUT_Y RELU ",\"constants\":[{\"name\":\"w\",\"dtype\":\"f32\","
                          "\"shape\":[1],\"data\":{\"seed\":1,\"values\":[1]}}]}",
       "exactly one of"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *said = refusal_of(cases[i].text);
    cr_assert(strstr(said, cases[i].said), "'%s' does not say '%s'", said, cases[i].said);
  }
}

Test(graph_import_json, data_files_stay_beneath_the_folder) {
  static const char *const files[] = {"../w.bin", "/etc/passwd", "a/../../w.bin", ""};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    const char *text = ft_arena_printf(
        arena,
        HEAD X4 OUT_Y
        "\"constants\":[{\"name\":\"w\",\"dtype\":\"f32\",\"shape\":[4],"
        "\"data\":{\"file\":\"%s\"}}],"
        "\"nodes\":[{\"op\":\"Add\",\"inputs\":[\"x\",\"w\"],\"outputs\":[\"y\"]}]}",
        files[i]);
    ft_graph *graph;
    ft_error error;
    cr_assert_eq(try_json(text, test_folder(), &graph, &error), FT_REFUSED, "%s: %s",
                 files[i], error.text);
  }
}

// ---- limits
// -----------------------------------------------------------------------------

Test(graph_import_json, nesting_is_refused_before_the_parser_sees_it) {
  size_t depth = 2000000;
  char *text = malloc(depth + 1);
  memset(text, '[', depth);
  text[depth] = '\0';
  cr_assert(strstr(refusal_of(text), "nested deeper than 16 at byte 16"));
  free(text);
  // Braces in a text are no nesting.
  (void)from_json(HEAD X4 OUT_Y RELU
                  ",\"name\":\"[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[[[[[[[[[[[[[[\"}");
}

Test(graph_import_json, a_text_of_more_than_four_kib_is_refused) {
  char *name = ft_arena_alloc(arena, 4098);
  memset(name, 'a', 4096);
  const char *format = HEAD X4 OUT_Y RELU ",\"name\":\"%s\"}";
  (void)from_json(ft_arena_printf(arena, format, name));
  name[4096] = 'a';
  cr_assert(
      strstr(refusal_of(ft_arena_printf(arena, format, name)), "a text of 4097 bytes"));
}

Test(graph_import_json, base64_of_more_than_64_kib_is_refused) {
  size_t digits = (65536 / 3 + 2) * 4;
  char *text = ft_arena_alloc(arena, digits + 1);
  memset(text, 'A', digits);
  cr_assert(
      strstr(refusal_of(ft_arena_printf(
                 arena,
                 HEAD X4 OUT_Y RELU
                 ",\"constants\":[{\"name\":\"w\",\"dtype\":\"u8\",\"shape\":[65540],"
                 "\"data\":{\"base64\":\"%s\"}}]}",
                 text)),
             "more than 65536 bytes"));
}

Test(graph_import_json, every_cut_of_a_model_is_refused) {
  const char *whole = HEAD X4 OUT_Y RELU "}";
  for (size_t size = 0; size < strlen(whole); size++) {
    ft_graph *graph;
    ft_import_report report;
    ft_error error;
    char *cut = ft_arena_memdup(arena, whole, size);
    cr_assert_eq(
        ft_import_json_bytes(cut, size, NULL, &options, arena, &graph, &report, &error),
        FT_REFUSED, "%zu", size);
  }
}

Test(graph_import_json, an_unknown_operator_is_listed_as_on_the_onnx_road) {
  ft_graph *graph;
  ft_import_report report;
  ft_error error;
  const char *text = HEAD X4 OUT_Y
      "\"nodes\":[{\"name\":\"n\",\"op\":\"Frobnicate\",\"inputs\":[\"x\"],"
      "\"outputs\":[\"y\"]}]}";
  cr_assert_eq(ft_import_json_bytes(text, strlen(text), NULL, &options, arena, &graph,
                                    &report, &error),
               FT_UNSUPPORTED);
  cr_assert_eq(report.unsupported_count, 1);
  cr_assert_str_eq(report.unsupported[0].op, "Frobnicate");
  cr_assert_str_eq(report.unsupported[0].node, "n");
}
