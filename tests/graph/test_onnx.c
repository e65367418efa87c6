#include "graph/onnx.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/onnx_writer.h"

static ft_arena *arena;
static ft_error error;
static void setup(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void teardown(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_onnx, .init = setup, .fini = teardown);

static ft_span span_of(const ft_strbuf *bytes) {
  return (ft_span){(const uint8_t *)bytes->text, bytes->length};
}

static ft_strbuf small_model(void) {
  onnx_file file = onnx_begin(arena, 13);
  ft_strbuf attributes = ft_strbuf_init(arena);
  int64_t axes[] = {-1, 2};
  float floats[] = {0.5f, -1.0f};
  onnx_attr_ints(&attributes, "axes", axes, 2);
  onnx_attr_floats(&attributes, "scales", floats, 2);
  onnx_attr_float(&attributes, "alpha", 0.25f);
  onnx_attr_int(&attributes, "keepdims", 0);
  onnx_attr_text(&attributes, "mode", "tanh");
  onnx_input(&file, "x", ONNX_FLOAT, "N,?,3");
  onnx_output(&file, "y", ONNX_FLOAT, NULL);
  onnx_scalar(&file, "two", 2.0f);
  onnx_node(&file, "my.domain::Foo", "x,,two", "y,z", &attributes);
  onnx_import_domain(&file, "my.domain", 3);
  return onnx_end(&file);
}

Test(graph_onnx, lists_nodes_operands_attributes_and_opsets) {
  ft_strbuf bytes = small_model();
  ft_onnx_model model;
  cr_assert_eq(ft_onnx_open(span_of(&bytes), arena, &model, &error), FT_OK, "%s",
               error.text);
  cr_assert(model.ir_version == 8 && model.node_count == 1 && model.input_count == 1 &&
            model.output_count == 1 && model.initializer_count == 1);
  const ft_onnx_node *node = &model.node[0];
  cr_assert(ft_span_is(node->op, "Foo") && ft_span_is(node->domain, "my.domain"));
  cr_assert(node->input_count == 3 && ft_span_is(node->input[0], "x") &&
            node->input[1].size == 0 && ft_span_is(node->input[2], "two"));
  cr_assert(node->output_count == 2 && ft_span_is(node->output[1], "z"));
  cr_assert_eq(ft_onnx_opset_of(&model, (ft_span){0}), 13);
  cr_assert_eq(ft_onnx_opset_of(&model, node->domain), 3);
  cr_assert_eq(ft_onnx_find_attribute(node, "alpha")->f, 0.25f);
  cr_assert_eq(ft_onnx_find_attribute(node, "keepdims")->i, 0);
  cr_assert(ft_span_is(ft_onnx_find_attribute(node, "mode")->s, "tanh"));
  cr_assert_null(ft_onnx_find_attribute(node, "axis"));
}

Test(graph_onnx, reads_lists_of_numbers) {
  ft_strbuf bytes = small_model();
  ft_onnx_model model;
  cr_assert_eq(ft_onnx_open(span_of(&bytes), arena, &model, &error), FT_OK);
  const int64_t *ints;
  const float *floats;
  size_t count;
  const ft_onnx_node *node = &model.node[0];
  cr_assert_eq(ft_onnx_read_ints(ft_onnx_find_attribute(node, "axes"), arena, &ints,
                                 &count, &error),
               FT_OK);
  cr_assert(count == 2 && ints[0] == -1 && ints[1] == 2);
  cr_assert_eq(ft_onnx_read_floats(ft_onnx_find_attribute(node, "scales"), arena, &floats,
                                   &count, &error),
               FT_OK);
  cr_assert(count == 2 && floats[0] == 0.5f && floats[1] == -1.0f);
}

Test(graph_onnx, tells_known_named_and_unknown_dims_apart) {
  ft_strbuf bytes = small_model();
  ft_onnx_model model;
  ft_onnx_type type;
  cr_assert_eq(ft_onnx_open(span_of(&bytes), arena, &model, &error), FT_OK);
  cr_assert_eq(ft_onnx_read_type(model.input[0].message, model.file, &type, &error),
               FT_OK);
  cr_assert(type.is_tensor && type.has_shape && type.element == ONNX_FLOAT &&
            type.rank == 3);
  cr_assert(type.dim[0].kind == FT_DIM_NAMED && ft_span_is(type.dim[0].name, "N"));
  cr_assert_eq(type.dim[1].kind, FT_DIM_UNKNOWN);
  cr_assert(type.dim[2].kind == FT_DIM_VALUE && type.dim[2].value == 3);
  cr_assert_eq(ft_onnx_read_type(model.output[0].message, model.file, &type, &error),
               FT_OK);
  cr_assert(type.is_tensor && !type.has_shape);
}

Test(graph_onnx, last_one_wins_for_a_field_given_twice) {
  ft_strbuf bytes = small_model();
  pb_int(&bytes, 1, 9);
  ft_onnx_model model;
  cr_assert_eq(ft_onnx_open(span_of(&bytes), arena, &model, &error), FT_OK);
  cr_assert_eq(model.ir_version, 9);
}

Test(graph_onnx, skips_fields_it_does_not_know) {
  ft_strbuf bytes = small_model();
  pb_text(&bytes, 999, "from the future");
  pb_text(&bytes, 12, "\x0b");
  ft_onnx_model model;
  cr_assert_eq(ft_onnx_open(span_of(&bytes), arena, &model, &error), FT_OK);
}

// A node whose attribute holds a graph with a node whose attribute ..., |depth| times.
// Built from the inside out, so the prefixes are computed first.
static ft_strbuf nested_model(size_t depth) {
  // lengths[i]: bytes of the i-th message from the inside.
  static const uint8_t keys[] = {0x0a, 0x2a, 0x32};  // graph.node, node.attribute, attr.g
  size_t levels = depth * 3, *lengths = FT_NEW_ARRAY(arena, size_t, levels + 1);
  for (size_t i = 1; i <= levels; i++) {
    size_t digits = 1;
    for (size_t rest = lengths[i - 1] >> 7; rest; rest >>= 7) digits++;
    lengths[i] = 1 + digits + lengths[i - 1];
  }
  ft_strbuf out = ft_strbuf_init(arena);
  pb_int(&out, 1, 8);
  ft_strbuf_addn(&out, "\x3a", 1);
  pb_varint(&out, lengths[levels]);
  for (size_t i = levels; i > 0; i--) {
    ft_strbuf_addn(&out, &keys[(levels - i) % 3], 1);
    pb_varint(&out, lengths[i - 1]);
  }
  return out;
}

Test(graph_onnx, refuses_a_hundred_thousand_nested_graphs_in_little_memory) {
  ft_strbuf bytes = nested_model(100000);
  cr_assert_gt(bytes.length, 900000u);
  size_t before = ft_arena_bytes(arena);
  ft_onnx_model model;
  cr_assert_eq(ft_onnx_open(span_of(&bytes), arena, &model, &error), FT_REFUSED);
  cr_assert(strstr(error.text, "is nested deeper than 64 messages"), "%s", error.text);
  cr_assert_eq(ft_arena_bytes(arena), before);
}

Test(graph_onnx, takes_nesting_below_the_cap) {
  ft_strbuf bytes = nested_model(20);
  ft_onnx_model model;
  cr_assert_eq(ft_onnx_open(span_of(&bytes), arena, &model, &error), FT_OK, "%s",
               error.text);
}

Test(graph_onnx, refuses_more_listed_things_than_it_has_room_for) {
  ft_strbuf graph = ft_strbuf_init(arena), model_bytes = graph;
  for (int i = 0; i <= FT_ONNX_MAX_ITEMS; i++) ft_strbuf_addn(&graph, "\x0a\x00", 2);
  pb_message(&model_bytes, 7, &graph);
  size_t before = ft_arena_bytes(arena);
  ft_onnx_model model;
  cr_assert_eq(ft_onnx_open(span_of(&model_bytes), arena, &model, &error), FT_REFUSED);
  cr_assert(strstr(error.text, "the model lists more than 524288 things"), "%s",
            error.text);
  cr_assert_lt(ft_arena_bytes(arena) - before, 1u << 20);
}

Test(graph_onnx, refuses_a_known_field_of_another_wire_type_and_names_that_are_not_text) {
  ft_strbuf node = ft_strbuf_init(arena), graph = node, bytes = node;
  pb_int(&node, 4, 1);  // op_type as a number
  pb_message(&graph, 1, &node);
  pb_message(&bytes, 7, &graph);
  ft_onnx_model model;
  cr_assert_eq(ft_onnx_open(span_of(&bytes), arena, &model, &error), FT_REFUSED);
  cr_assert(strstr(error.text, "NodeProto: field 4"), "%s", error.text);
  node = graph = bytes = ft_strbuf_init(arena);
  pb_text(&node, 4, "\xff\xfe");
  pb_message(&graph, 1, &node);
  pb_message(&bytes, 7, &graph);
  cr_assert_eq(ft_onnx_open(span_of(&bytes), arena, &model, &error), FT_REFUSED);
  cr_assert(strstr(error.text, "NodeProto: the string in field 4"), "%s", error.text);
}

Test(graph_onnx, survives_a_model_cut_at_every_byte) {
  ft_strbuf bytes = small_model();
  size_t refused = 0;
  for (size_t size = 0; size < bytes.length; size++) {
    // A copy of its own, so that a sanitizer sees a read past the end.
    const uint8_t *copy = ft_arena_memdup(arena, bytes.text, size);
    ft_onnx_model model;
    ft_status status = ft_onnx_open((ft_span){copy, size}, arena, &model, &error);
    refused += status == FT_REFUSED;
    cr_assert(status == FT_OK || status == FT_REFUSED, "cut at %zu", size);
  }
  cr_assert_gt(refused, bytes.length / 2);
}
