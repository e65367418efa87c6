// The operators that windows, contractions and gathers are made of, against numbers where
// ONNX's node tests have none, and what they refuse.
#include "tests/graph/import_run.h"

TestSuite(graph_lower_wide, .init = setup, .fini = teardown);

static ft_strbuf attributes(void) {
  return ft_strbuf_init(arena);
}

static unsigned count_op(ft_op op) {
  unsigned count = 0;
  for (uint32_t i = 0; i < graph->primitive_count; i++)
    count += graph->primitive[i].op == op;
  return count;
}

static const float eight[] = {1, 2, 3, 4, 5, 6, 7, 8};

// ---- the order of nodes
// -------------------------------------------------------------------

Test(graph_lower_wide, nodes_may_come_in_any_order) {
  onnx_file file = begin(13, "2");
  onnx_node(&file, "Exp", "b", "y", NULL);
  onnx_node(&file, "Mul", "a,c", "b", NULL);
  onnx_node(&file, "Neg", "x", "a", NULL);
  onnx_node(&file, "Abs", "x", "c", NULL);
  run(&file, FLOATS(1, 2));
  EXPECT(0, "2", exp(-1), exp(-4));
  cr_assert_str_eq(graph->operator_[0].type, "Neg");
}

Test(graph_lower_wide, sorted_nodes_keep_their_order) {
  onnx_file file = begin(13, "2");
  onnx_node(&file, "Abs", "x", "c", NULL);
  onnx_node(&file, "Neg", "x", "a", NULL);
  onnx_node(&file, "Mul", "a,c", "y", NULL);
  run(&file, FLOATS(1, 2));
  cr_assert_str_eq(graph->operator_[0].type, "Abs");
  cr_assert_str_eq(graph->operator_[1].type, "Neg");
}

// ---- inputs bound to constants
// ------------------------------------------------------------

static ft_status import_bound(const onnx_file *file, const char *name,
                              const int64_t *values, int64_t count) {
  ft_input_constant constant = {
      name,
      {FT_I64, {.rank = 1, .dim = {count}}, values, (size_t)count * sizeof *values}};
  ft_import_options options = {.constant_count = 1, .constant = &constant};
  ft_strbuf bytes = onnx_end(file);
  return ft_import_onnx_bytes(bytes.text, bytes.length, NULL, &options, arena, &graph,
                              &report, &error);
}

Test(graph_lower_wide, an_input_can_be_bound_to_a_constant) {
  onnx_file file = begin(13, "2,3");
  onnx_input(&file, "shape", ONNX_INT64, "N");
  onnx_node(&file, "Reshape", "x,shape", "y", NULL);
  cr_assert_eq(import_bound(&file, "shape", (int64_t[]){3, 2}, 2), FT_OK, "%s",
               error.text);
  cr_assert_eq(graph->input_count, 1);
  cr_assert_str_eq(ft_shape_text(&graph->value[graph->output[0].value].shape, arena),
                   "3x2");
  cr_assert_eq(import_bound(&file, "ghost", (int64_t[]){3, 2}, 2), FT_INVALID_ARGUMENT);
  cr_assert_eq(import_bound(&file, "x", (int64_t[]){3, 2}, 2), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "input 'x' is f32, the constant for it i64"));
}

// ---- contractions
// -------------------------------------------------------------------------

Test(graph_lower_wide, mat_mul_takes_vectors_on_either_side) {
  onnx_file file = begin(13, "2");
  onnx_output(&file, "z", ONNX_FLOAT, NULL);
  onnx_output(&file, "s", ONNX_FLOAT, NULL);
  onnx_floats(&file, "w", "2,2", FLOATS(1, 2, 3, 4), 4);
  onnx_node(&file, "MatMul", "x,w", "y", NULL);
  onnx_node(&file, "MatMul", "w,x", "z", NULL);
  onnx_node(&file, "MatMul", "x,x", "s", NULL);
  run(&file, FLOATS(1, 10));
  EXPECT(0, "2", 31, 42);
  EXPECT(1, "2", 21, 43);
  EXPECT(2, "scalar", 101);
  file = begin(13, "");
  onnx_node(&file, "MatMul", "x,x", "y", NULL);
  must_fail(&file, FT_REFUSED, "an operand is a scalar");
}

Test(graph_lower_wide, mat_mul_broadcasts_its_batches) {
  onnx_file file = begin(13, "2,1,1,2");
  onnx_floats(&file, "w", "2,2,1", FLOATS(1, 0, 0, 1), 4);
  onnx_node(&file, "MatMul", "x,w", "y", NULL);
  run(&file, FLOATS(1, 2, 3, 4));
  EXPECT(0, "2x2x1x1", 1, 2, 3, 4);
}

Test(graph_lower_wide, gemm_requires_c_before_opset_11) {
  onnx_file file = begin(9, "1,1");
  onnx_node(&file, "Gemm", "x,x", "y", NULL);
  must_fail(&file, FT_REFUSED, "input 2 is missing");
  file = begin(11, "1,1");
  onnx_node(&file, "Gemm", "x,x", "y", NULL);
  run(&file, FLOATS(3));
  EXPECT(0, "1x1", 9);
  file = begin(11, "1,1");
  onnx_floats(&file, "c", "2,1", FLOATS(1, 2), 2);
  onnx_node(&file, "Gemm", "x,x,c", "y", NULL);
  must_fail(&file, FT_REFUSED, "C does not broadcast to the product");
}

static onnx_file conv(const ft_strbuf *a, const char *dims, const char *kernel) {
  onnx_file file = begin(11, dims);
  size_t count = 1;
  static const float ones[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  for (const char *at = kernel; *at; at++)
    if (*at != ',') count *= (size_t)(*at - '0');
  onnx_floats(&file, "w", kernel, ones, count);
  onnx_node(&file, "Conv", "x,w", "y", a);
  return file;
}

Test(graph_lower_wide, conv_spreads_groups_dilations_and_asymmetric_pads) {
  ft_strbuf a = attributes();
  onnx_attr_int(&a, "group", 2);
  onnx_file file = conv(&a, "1,2,4", "2,1,2");
  run(&file, eight);
  EXPECT(0, "1x2x3", 3, 5, 7, 11, 13, 15);
  a = attributes();
  ATTR_INTS(&a, "dilations", 2);
  ATTR_INTS(&a, "pads", 0, 1);
  file = conv(&a, "1,1,4", "1,1,2");
  run(&file, eight);
  EXPECT(0, "1x1x3", 4, 6, 3);
}

Test(graph_lower_wide, conv_refuses_what_does_not_fit) {
  ft_strbuf a = attributes();
  onnx_attr_int(&a, "group", 3);
  onnx_file file = conv(&a, "1,2,4", "2,1,2");
  must_fail(&file, FT_REFUSED, "do not make 3 groups");
  file = conv(NULL, "1,1,1", "1,1,2");
  must_fail(&file, FT_REFUSED, "the window spans 2 of spatial axis 0, which has 1");
  file = conv(NULL, "1,1,4,4", "1,1,2");
  must_fail(&file, FT_REFUSED, "the weight has rank 3, the input 4");
  a = attributes();
  ATTR_INTS(&a, "kernel_shape", 3);
  file = conv(&a, "1,1,4", "1,1,2");
  must_fail(&file, FT_REFUSED, "kernel_shape[0] is 3, the weight's is 2");
  a = attributes();
  ATTR_INTS(&a, "pads", -1, 0);
  file = conv(&a, "1,1,4", "1,1,2");
  must_fail(&file, FT_REFUSED, "pads has -1");
  a = attributes();
  ATTR_INTS(&a, "strides", 0);
  file = conv(&a, "1,1,4", "1,1,2");
  must_fail(&file, FT_REFUSED, "strides has 0");
}

// ---- pools
// ----------------------------------------------------------------------------------

Test(graph_lower_wide, lp_pools_take_roots_of_sums_of_powers) {
  ft_strbuf a = attributes();
  ATTR_INTS(&a, "kernel_shape", 2);
  onnx_file file = begin(18, "1,1,3");
  onnx_node(&file, "LpPool", "x", "y", &a);
  run(&file, FLOATS(3, -4, 0));
  EXPECT(0, "1x1x2", 5, 4);
  onnx_attr_int(&a, "p", 3);
  file = begin(18, "1,1,3");
  onnx_node(&file, "LpPool", "x", "y", &a);
  run(&file, FLOATS(3, -4, 0));
  EXPECT(0, "1x1x2", cbrt(91), 4);
  file = begin(18, "1,1,2,2");
  onnx_node(&file, "GlobalLpPool", "x", "y", NULL);
  run(&file, FLOATS(1, -1, 1, 1));
  EXPECT(0, "1x1x1x1", 2);
}

Test(graph_lower_wide, pools_refuse_indices_and_missing_kernels) {
  ft_strbuf a = attributes();
  onnx_file file = begin(12, "1,1,3");
  onnx_node(&file, "MaxPool", "x", "y", NULL);
  must_fail(&file, FT_REFUSED, "kernel_shape is missing");
  ATTR_INTS(&a, "kernel_shape", 2);
  file = begin(12, "1,1,3");
  onnx_output(&file, "at", ONNX_INT64, NULL);
  onnx_node(&file, "MaxPool", "x", "y,at", &a);
  must_fail(&file, FT_UNSUPPORTED, "output 1 is used");
}

Test(graph_lower_wide, lrn_sums_the_channels_around) {
  ft_strbuf a = attributes();
  onnx_attr_int(&a, "size", 2);  // this channel and the next
  onnx_attr_float(&a, "alpha", 2);
  onnx_attr_float(&a, "beta", 1);
  onnx_file file = begin(13, "1,3,1");
  onnx_node(&file, "LRN", "x", "y", &a);
  run(&file, FLOATS(1, 2, 3));
  EXPECT(0, "1x3x1", 1. / 6, 2. / 14, 3. / 10);
}

// ---- normalizations
// ---------------------------------------------------------------------------

static onnx_file group_norm(int64_t opset, const float *scale, size_t count) {
  onnx_file file = begin(opset, "1,4,1");
  ft_strbuf a = attributes();
  onnx_attr_int(&a, "num_groups", 2);
  onnx_attr_float(&a, "epsilon", 0);
  onnx_floats(&file, "s", ft_arena_printf(arena, "%zu", count), scale, count);
  onnx_node(&file, "GroupNormalization", "x,s,s", "y", &a);
  return file;
}

Test(graph_lower_wide, group_norm_scales_groups_at_opset_18_and_channels_at_21) {
  onnx_file file = group_norm(18, FLOATS(1, 10), 2);
  run(&file, FLOATS(1, 3, 5, 9));
  EXPECT(0, "1x4x1", 0, 2, 0, 20);
  file = group_norm(21, FLOATS(1, 2, 3, 4), 4);
  run(&file, FLOATS(1, 3, 5, 9));
  EXPECT(0, "1x4x1", 0, 4, 0, 8);
  file = group_norm(21, FLOATS(1, 10), 2);
  must_fail(&file, FT_REFUSED, "input 1 is 2, not 4");
}

Test(graph_lower_wide, batch_norm_folds_into_one_scale_and_one_shift) {
  onnx_file file = begin(15, "1,2,1");
  ft_strbuf a = attributes();
  onnx_attr_float(&a, "epsilon", 0);
  onnx_floats(&file, "scale", "2", FLOATS(2, 3), 2);
  onnx_floats(&file, "bias", "2", FLOATS(1, 0), 2);
  onnx_floats(&file, "mean", "2", FLOATS(1, 2), 2);
  onnx_floats(&file, "variance", "2", FLOATS(4, 9), 2);
  onnx_node(&file, "BatchNormalization", "x,scale,bias,mean,variance", "y", &a);
  run(&file, FLOATS(3, 4));
  EXPECT(0, "1x2x1", 3, 2);
  cr_assert_eq(graph->primitive_count, 2);
}

Test(graph_lower_wide, batch_norm_refuses_training) {
  static const struct {
    int64_t opset;
    const char *attribute, *text;
    int64_t value;
  } cases[] = {{6, "is_test", "training mode", 0},
               {8, "spatial", "spatial is 0", 0},
               {14, "training_mode", "training mode", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    onnx_file file = begin(cases[i].opset, "1,1,1");
    ft_strbuf a = attributes();
    onnx_attr_int(&a, cases[i].attribute, cases[i].value);
    onnx_floats(&file, "s", "1", FLOATS(1), 1);
    onnx_node(&file, "BatchNormalization", "x,s,s,s,s", "y", &a);
    must_fail(&file, FT_UNSUPPORTED, cases[i].text);
  }
}

Test(graph_lower_wide, lp_normalization_of_zeros_is_zeros) {
  onnx_file file = begin(22, "2,2");
  onnx_node(&file, "LpNormalization", "x", "y", NULL);
  run(&file, FLOATS(3, -4, 0, 0));
  EXPECT(0, "2x2", 0.6, -0.8, 0, 0);
}

Test(graph_lower_wide, instance_norm_standardizes_each_channel) {
  onnx_file file = begin(6, "1,2,2");
  ft_strbuf a = attributes();
  onnx_attr_float(&a, "epsilon", 0);
  onnx_floats(&file, "s", "2", FLOATS(1, 10), 2);
  onnx_node(&file, "InstanceNormalization", "x,s,s", "y", &a);
  run(&file, FLOATS(1, 3, 5, 9));
  EXPECT(0, "1x2x2", 0, 2, 0, 20);
}

// ---- places
// -----------------------------------------------------------------------------------

Test(graph_lower_wide, slices_before_opset_10_have_attributes) {
  onnx_file file = begin(9, "2,4");
  ft_strbuf a = attributes();
  ATTR_INTS(&a, "starts", -3);
  ATTR_INTS(&a, "ends", 1000);
  ATTR_INTS(&a, "axes", 1);
  onnx_node(&file, "Slice", "x", "y", &a);
  run(&file, eight);
  EXPECT(0, "2x3", 2, 3, 4, 6, 7, 8);
}

Test(graph_lower_wide, split_makes_a_smaller_last_part_from_opset_18_on) {
  for (int64_t opset = 17; opset <= 18; opset++) {
    onnx_file file = begin(opset, "5");
    ft_strbuf a = attributes();
    if (opset == 18) onnx_attr_int(&a, "num_outputs", 2);
    onnx_output(&file, "z", ONNX_FLOAT, NULL);
    onnx_node(&file, "Split", "x", "y,z", &a);
    if (opset == 17) {
      must_fail(&file, FT_REFUSED, "5 elements do not make 2 equal parts");
      continue;
    }
    run(&file, eight);
    EXPECT(0, "3", 1, 2, 3);
    EXPECT(1, "2", 4, 5);
  }
}

Test(graph_lower_wide, a_gather_of_one_known_index_is_a_slice) {
  onnx_file file = begin(13, "2,4");
  ft_strbuf a = attributes();
  onnx_attr_int(&a, "axis", 1);
  onnx_ints(&file, "at", "", (int64_t[]){-1}, 1);
  onnx_node(&file, "Gather", "x,at", "y", &a);
  run(&file, eight);
  EXPECT(0, "2", 4, 8);
  cr_assert_eq(count_op(FT_OP_GATHER), 0);
}

Test(graph_lower_wide, gathers_by_indices_known_at_run_time_only) {
  onnx_file file = begin(13, "4");
  ft_strbuf a = attributes();
  onnx_attr_int(&a, "to", ONNX_INT64);
  onnx_node(&file, "Cast", "x", "i", &a);
  onnx_node(&file, "Gather", "x,i", "y", NULL);
  run(&file, FLOATS(3, 0, -1, 1));
  EXPECT(0, "4", 1, 3, 1, 0);
}

Test(graph_lower_wide, tile_repeats_axes_and_makes_empty_ones) {
  onnx_file file = begin(13, "2,1");
  INTS(&file, "repeats", 2, 3);
  onnx_node(&file, "Tile", "x,repeats", "y", NULL);
  run(&file, eight);
  EXPECT(0, "4x3", 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2);
  file = begin(13, "2,1");
  INTS(&file, "repeats", 0, 1);
  onnx_node(&file, "Tile", "x,repeats", "y", NULL);
  run(&file, eight);
  EXPECT(0, "0x1", 0);
  file = begin(13, "2,1");
  INTS(&file, "repeats", INT64_MAX, 1);
  onnx_node(&file, "Tile", "x,repeats", "y", NULL);
  must_fail(&file, FT_REFUSED, "repeats[0]");
}

// ---- Resize
// -------------------------------------------------------------------------------------

Test(graph_lower_wide, resize_keeps_the_aspect_ratio) {
  static const char *const policies[] = {"not_larger", "not_smaller"};
  static const char *const shapes[] = {"3x6", "5x10"};
  for (int i = 0; i < 2; i++) {
    onnx_file file = begin(18, "2,4");
    ft_strbuf a = attributes();
    onnx_attr_text(&a, "keep_aspect_ratio_policy", policies[i]);
    INTS(&file, "sizes", 5, 6);
    onnx_node(&file, "Resize", "x,,,sizes", "y", &a);
    run(&file, eight);
    cr_assert_str_eq(ft_shape_text(&result[0].shape, arena), shapes[i]);
  }
}

Test(graph_lower_wide, resize_touches_only_its_axes) {
  onnx_file file = begin(18, "2,2");
  ft_strbuf a = attributes();
  ATTR_INTS(&a, "axes", -1);
  onnx_floats(&file, "scales", "1", FLOATS(2), 1);
  onnx_node(&file, "Resize", "x,,scales", "y", &a);
  run(&file, eight);
  EXPECT(0, "2x4", 1, 1, 2, 2, 3, 3, 4, 4);
}

Test(graph_lower_wide, resize_refuses_scales_that_make_no_shape) {
  static const float scales[] = {0, -1, NAN, INFINITY, 1e30f};
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
    onnx_file file = begin(13, "4");
    onnx_floats(&file, "scales", "1", &scales[i], 1);
    onnx_node(&file, "Resize", "x,,scales", "y", NULL);
    must_fail(&file, FT_REFUSED, "scale");
  }
  onnx_file file = begin(13, "4");
  INTS(&file, "sizes", INT32_MAX);
  onnx_node(&file, "Resize", "x,,,sizes", "y", NULL);
  must_fail(&file, FT_UNSUPPORTED, "too large");
}

// ---- positions
// ------------------------------------------------------------------------------------

Test(graph_lower_wide, hardmax_marks_the_first_maximum_of_a_matrix_before_opset_13) {
  onnx_file file = begin(11, "1,2,2");
  onnx_node(&file, "Hardmax", "x", "y", NULL);
  run(&file, FLOATS(1, 7, 7, 2));
  EXPECT(0, "1x2x2", 0, 1, 0, 0);
  file = begin(13, "1,2,2");
  onnx_node(&file, "Hardmax", "x", "y", NULL);
  run(&file, FLOATS(7, 7, 1, 2));
  EXPECT(0, "1x2x2", 1, 0, 0, 1);
}

Test(graph_lower_wide, sums_that_run_keep_infinities_where_they_are) {
  onnx_file file = begin(14, "3");
  onnx_ints(&file, "axis", "", (int64_t[]){-1}, 1);
  onnx_node(&file, "CumSum", "x,axis", "y", NULL);
  run(&file, FLOATS(1, INFINITY, 2));
  EXPECT(0, "3", 1, INFINITY, INFINITY);
}

Test(graph_lower_wide, what_would_make_a_huge_constant_is_unsupported) {
  onnx_file file = begin(14, "100000");
  onnx_ints(&file, "axis", "", (int64_t[]){0}, 1);
  onnx_node(&file, "CumSum", "x,axis", "y", NULL);
  must_fail(&file, FT_UNSUPPORTED, "a constant of 1x100000x100000x1, which is too large");
}

Test(graph_lower_wide, range_and_non_zero_fold) {
  onnx_file file = begin_constant(13, ONNX_INT64);
  onnx_ints(&file, "from", "", (int64_t[]){5}, 1);
  onnx_ints(&file, "to", "", (int64_t[]){-4}, 1);
  onnx_ints(&file, "by", "", (int64_t[]){-3}, 1);
  onnx_node(&file, "Range", "from,to,by", "y", NULL);
  run(&file, NULL);
  EXPECT(0, "3", 5, 2, -1);
  file = begin_constant(13, ONNX_INT64);
  onnx_ints(&file, "m", "2,2", (int64_t[]){0, 7, 7, 0}, 4);
  onnx_node(&file, "NonZero", "m", "y", NULL);
  run(&file, NULL);
  EXPECT(0, "2x2", 0, 1, 1, 0);
  file = begin_constant(13, ONNX_INT64);
  onnx_ints(&file, "a", "", (int64_t[]){INT64_MIN}, 1);
  onnx_ints(&file, "b", "", (int64_t[]){INT64_MAX}, 1);
  onnx_ints(&file, "c", "", (int64_t[]){1}, 1);
  onnx_node(&file, "Range", "a,b,c", "y", NULL);
  must_fail(&file, FT_REFUSED, "from -9223372036854775808");
}
