// What other importers got wrong, one small model each with its right answer. The names
// are the symptoms.
#include <stdlib.h>

#include "tests/graph/import_run.h"

TestSuite(graph_import_bugs, .init = setup, .fini = teardown);

static ft_strbuf attributes(void) {
  return ft_strbuf_init(arena);
}

static unsigned count_op(ft_op op) {
  unsigned count = 0;
  for (uint32_t i = 0; i < graph->primitive_count; i++)
    count += graph->primitive[i].op == op;
  return count;
}

// ---- 1: softmax
// ------------------------------------------------------------------------

Test(graph_import_bugs, softmax_before_opset_13_reduces_all_axes_from_axis_1_on) {
  onnx_file file = begin(11, "1,2,2");
  onnx_node(&file, "Softmax", "x", "y", NULL);
  run(&file, FLOATS(1, 1, 1, 1));
  EXPECT(0, "1x2x2", 0.25, 0.25, 0.25, 0.25);
  file = begin(13, "1,2,2");
  onnx_node(&file, "Softmax", "x", "y", NULL);
  run(&file, FLOATS(1, 1, 1, 1));
  EXPECT(0, "1x2x2", 0.5, 0.5, 0.5, 0.5);
}

// ---- 2: auto_pad
// ------------------------------------------------------------------------

static onnx_file conv(const char *auto_pad, const char *dims, const float *weight,
                      size_t count, int64_t stride) {
  onnx_file file = begin(11, dims);
  ft_strbuf a = attributes();
  onnx_attr_text(&a, "auto_pad", auto_pad);
  ATTR_INTS(&a, "strides", stride);
  onnx_floats(&file, "w", ft_arena_printf(arena, "1,1,%zu", count), weight, count);
  onnx_node(&file, "Conv", "x,w", "y", &a);
  return file;
}

Test(graph_import_bugs, same_upper_pads_the_end_and_same_lower_the_begin) {
  onnx_file file = conv("SAME_UPPER", "1,1,3", FLOATS(10, 1), 2, 1);
  run(&file, FLOATS(1, 2, 3));
  EXPECT(0, "1x1x3", 12, 23, 30);
  file = conv("SAME_LOWER", "1,1,3", FLOATS(10, 1), 2, 1);
  run(&file, FLOATS(1, 2, 3));
  EXPECT(0, "1x1x3", 1, 12, 23);
  file = conv("VALID", "1,1,3", FLOATS(10, 1), 2, 1);
  run(&file, FLOATS(1, 2, 3));
  EXPECT(0, "1x1x2", 12, 23);
}

Test(graph_import_bugs, same_padding_is_never_negative) {
  onnx_file file = conv("SAME_LOWER", "1,1,4", FLOATS(10), 1, 2);
  run(&file, FLOATS(1, 2, 3, 4));
  EXPECT(0, "1x1x2", 10, 30);
}

// ---- 3: ceil_mode
// -----------------------------------------------------------------------

static onnx_file pool(const char *op, int64_t opset, const char *dims, int64_t size,
                      int64_t stride, int64_t pad, bool counts_padding) {
  onnx_file file = begin(opset, dims);
  ft_strbuf a = attributes();
  ATTR_INTS(&a, "kernel_shape", size);
  ATTR_INTS(&a, "strides", stride);
  ATTR_INTS(&a, "pads", pad, pad);
  onnx_attr_int(&a, "ceil_mode", 1);
  if (counts_padding) onnx_attr_int(&a, "count_include_pad", 1);
  onnx_node(&file, op, "x", "y", &a);
  return file;
}

Test(graph_import_bugs, ceil_mode_makes_no_window_that_starts_in_the_padding) {
  onnx_file file = pool("MaxPool", 12, "1,1,4", 2, 3, 1, false);
  run(&file, FLOATS(-1, -2, -3, -4));
  EXPECT(0, "1x1x2", -1, -3);
  file = pool("AveragePool", 19, "1,1,4", 2, 3, 1, false);
  run(&file, FLOATS(1, 2, 3, 4));
  EXPECT(0, "1x1x2", 1, 3.5);
}

Test(graph_import_bugs, what_ceil_mode_adds_at_the_edge_is_not_counted_as_padding) {
  onnx_file file = pool("AveragePool", 19, "1,1,4", 3, 2, 0, true);
  run(&file, FLOATS(1, 2, 3, 5));
  EXPECT(0, "1x1x2", 2, 4);
  file = pool("AveragePool", 19, "1,1,4", 3, 2, 1, true);
  run(&file, FLOATS(3, 6, 9, 12));
  EXPECT(0, "1x1x3", 3, 9, 6);
}

// Its windows would be 2^24 numbers of padding each, and the check would never end.
Test(graph_import_bugs, a_pool_of_endless_windows_is_refused_by_name) {
  onnx_file file = pool("MaxPool", 12, "1,1,4", 1 << 24, 1, 1 << 24, false);
  must_fail(&file, FT_REFUSED, "2^36 terms");
  file = pool("AveragePool", 19, "1,1,4", 1 << 24, 1, 1 << 24, true);
  must_fail(&file, FT_REFUSED, "window_sum of");
}

// ---- 4: absent operands
// -----------------------------------------------------------------

Test(graph_import_bugs, an_empty_name_is_an_absent_bound) {
  onnx_file file = begin(13, "3");
  onnx_scalar(&file, "high", 1);
  onnx_node(&file, "Clip", "x,,high", "y", NULL);
  run(&file, FLOATS(-5, 0, 5));
  EXPECT(0, "3", -5, 0, 1);
  file = begin(13, "3");
  onnx_node(&file, "Clip", "x,,", "y", NULL);
  run(&file, FLOATS(-5, 0, 5));
  EXPECT(0, "3", -5, 0, 5);
}

Test(graph_import_bugs, empty_roi_and_scales_mean_absent) {
  onnx_file file = begin(11, "1,1,2");
  onnx_floats(&file, "none", "0", NULL, 0);
  INTS(&file, "sizes", 1, 1, 4);
  ft_strbuf a = attributes();
  onnx_attr_text(&a, "coordinate_transformation_mode", "asymmetric");
  onnx_node(&file, "Resize", "x,none,none,sizes", "y", &a);
  run(&file, FLOATS(1, 2));
  EXPECT(0, "1x1x4", 1, 1, 2, 2);
  file = begin(13, "1,1,2");
  onnx_floats(&file, "none", "0", NULL, 0);
  onnx_node(&file, "Resize", "x,,none", "y", NULL);
  must_fail(&file, FT_REFUSED, "neither of scales and sizes");
}

// ---- 5: Clip
// ----------------------------------------------------------------------------

Test(graph_import_bugs, clip_has_attributes_before_opset_11_and_inputs_after) {
  ft_strbuf a = attributes();
  onnx_attr_float(&a, "max", 6);
  onnx_attr_float(&a, "min", 0);
  onnx_file file = begin(10, "3");
  onnx_node(&file, "Clip", "x", "y", &a);
  run(&file, FLOATS(-1, 3, 9));
  EXPECT(0, "3", 0, 3, 6);
}

Test(graph_import_bugs, a_clip_with_crossed_bounds_gives_the_upper_one) {
  onnx_file file = begin(12, "2");
  onnx_scalar(&file, "low", 4);
  onnx_scalar(&file, "high", 1);
  onnx_node(&file, "Clip", "x,low,high", "y", NULL);
  run(&file, FLOATS(0, 9));
  EXPECT(0, "2", 1, 1);
  file = begin(12, "2");
  onnx_scalar(&file, "low", NAN);
  onnx_node(&file, "Clip", "x,low", "y", NULL);
  run(&file, FLOATS(0, 9));
  EXPECT(0, "2", NAN, NAN);
}

// ---- 6: Resize
// --------------------------------------------------------------------------

static onnx_file resize(const char *dims, int64_t size, const char *mode,
                        const char *coordinates, const char *nearest) {
  onnx_file file = begin(13, dims);
  ft_strbuf a = attributes();
  onnx_attr_text(&a, "mode", mode);
  onnx_attr_text(&a, "coordinate_transformation_mode", coordinates);
  if (nearest) onnx_attr_text(&a, "nearest_mode", nearest);
  INTS(&file, "sizes", size);
  onnx_node(&file, "Resize", "x,,,sizes", "y", &a);
  return file;
}

Test(graph_import_bugs, nearest_resize_maps_coordinates_as_its_modes_say) {
  onnx_file file = resize("4", 8, "nearest", "half_pixel", "floor");
  run(&file, FLOATS(1, 2, 3, 4));  // the first coordinate is -0.25: the edge
  EXPECT(0, "8", 1, 1, 1, 2, 2, 3, 3, 4);
  file = resize("4", 8, "nearest", "asymmetric", "floor");
  run(&file, FLOATS(1, 2, 3, 4));
  EXPECT(0, "8", 1, 1, 2, 2, 3, 3, 4, 4);
  file = resize("4", 2, "nearest", "half_pixel", "round_prefer_floor");
  run(&file, FLOATS(1, 2, 3, 4));  // coordinates 0.5 and 2.5
  EXPECT(0, "2", 1, 3);
  file = resize("4", 2, "nearest", "half_pixel", "round_prefer_ceil");
  run(&file, FLOATS(1, 2, 3, 4));
  EXPECT(0, "2", 2, 4);
}

Test(graph_import_bugs, linear_resize_shrinks_and_aligns_corners) {
  onnx_file file = resize("3", 5, "linear", "align_corners", NULL);
  run(&file, FLOATS(1, 2, 4));
  EXPECT(0, "5", 1, 1.5, 2, 3, 4);
  file = resize("4", 2, "linear", "half_pixel", NULL);
  run(&file, FLOATS(1, 2, 3, 4));
  EXPECT(0, "2", 1.5, 3.5);
}

Test(graph_import_bugs, upsample_is_asymmetric_not_half_pixel) {
  onnx_file file = begin(9, "2");
  ft_strbuf a = attributes();
  onnx_attr_text(&a, "mode", "linear");
  onnx_floats(&file, "scales", "1", FLOATS(2), 1);
  onnx_node(&file, "Upsample", "x,scales", "y", &a);
  run(&file, FLOATS(1, 3));
  EXPECT(0, "4", 1, 2, 3, 3);
}

// ---- 7: Reshape
// -------------------------------------------------------------------------

Test(graph_import_bugs, a_zero_in_a_shape_copies_the_dim_unless_allowzero) {
  onnx_file file = begin(13, "2,3");
  INTS(&file, "shape", 0, -1, 1);
  onnx_node(&file, "Reshape", "x,shape", "y", NULL);
  run(&file, FLOATS(1, 2, 3, 4, 5, 6));
  EXPECT(0, "2x3x1", 1, 2, 3, 4, 5, 6);
  file = begin(14, "0,3");
  ft_strbuf a = attributes();
  onnx_attr_int(&a, "allowzero", 1);
  INTS(&file, "shape", 3, 0);
  onnx_node(&file, "Reshape", "x,shape", "y", &a);
  run(&file, FLOATS(0));
  EXPECT(0, "3x0", 0);
}

Test(graph_import_bugs, a_shape_that_two_reshapes_share_stays_as_it_is) {
  onnx_file file = begin(13, "2,3");
  onnx_output(&file, "z", ONNX_FLOAT, NULL);
  INTS(&file, "shape", -1, 2);
  INTS(&file, "start", 0);
  INTS(&file, "end", 1);
  onnx_node(&file, "Reshape", "x,shape", "y", NULL);
  onnx_node(&file, "Slice", "y,start,end", "row", NULL);
  onnx_node(&file, "Reshape", "row,shape", "z", NULL);
  run(&file, FLOATS(1, 2, 3, 4, 5, 6));
  EXPECT(0, "3x2", 1, 2, 3, 4, 5, 6);
  EXPECT(1, "1x2", 1, 2);
}

// ---- 8: zero-size dims
// --------------------------------------------------------------------

Test(graph_import_bugs, zero_size_dims_are_sizes_not_unknowns) {
  onnx_file file = begin(13, "2,3");
  onnx_output(&file, "z", ONNX_FLOAT, NULL);
  ft_strbuf a = attributes();
  onnx_attr_int(&a, "axis", 0);
  INTS(&file, "start", 2);
  INTS(&file, "end", 2);
  onnx_node(&file, "Slice", "x,start,end", "z", NULL);
  onnx_node(&file, "Concat", "z,x,z", "y", &a);
  run(&file, FLOATS(1, 2, 3, 4, 5, 6));
  EXPECT(0, "2x3", 1, 2, 3, 4, 5, 6);
  EXPECT(1, "0x3", 0);
  file = begin(13, "0,3");
  onnx_node(&file, "ReduceSum", "x", "y", NULL);
  run(&file, FLOATS(0));
  EXPECT(0, "1x1", 0);
}

Test(graph_import_bugs, minus_one_is_an_unknown_dim_and_zero_is_a_size) {
  onnx_file file = begin(13, "-1,2");
  onnx_node(&file, "Relu", "x", "y", NULL);
  must_fail(&file, FT_INVALID_ARGUMENT, "1 dims are not bound: x[0]");
}

// ---- 9 and 10: Slice
// ----------------------------------------------------------------------

static onnx_file slice(int64_t start, int64_t end, int64_t step) {
  onnx_file file = begin(13, "4");
  INTS(&file, "start", start);
  INTS(&file, "end", end);
  INTS(&file, "axes", 0);
  INTS(&file, "step", step);
  onnx_node(&file, "Slice", "x,start,end,axes,step", "y", NULL);
  return file;
}

static const float four[] = {1, 2, 3, 4};

Test(graph_import_bugs, sentinels_of_64_bits_mean_the_end_and_the_begin) {
  onnx_file file = slice(1, INT64_MAX, 1);
  run(&file, four);
  EXPECT(0, "3", 2, 3, 4);
  file = slice(INT64_MIN, INT64_MAX, 3);
  run(&file, four);
  EXPECT(0, "2", 1, 4);
  file = slice(0, INT64_MAX, INT64_MAX);
  run(&file, four);
  EXPECT(0, "1", 1);
  file = slice(INT64_MAX, INT64_MIN, INT64_MIN);
  run(&file, four);
  EXPECT(0, "1", 4);
}

Test(graph_import_bugs, a_negative_step_walks_back_to_the_first_element) {
  onnx_file file = slice(-1, INT64_MIN, -1);
  run(&file, four);
  EXPECT(0, "4", 4, 3, 2, 1);
  file = slice(3, -5, -2);  // -5 is before the first
  run(&file, four);
  EXPECT(0, "2", 4, 2);
  file = slice(3, -1, -1);  // -1 is the last: nothing between
  run(&file, four);
  EXPECT(0, "0", 0);
  file = slice(0, 4, 0);
  must_fail(&file, FT_REFUSED, "step 0");
}

// ---- 11: Squeeze
// --------------------------------------------------------------------------

Test(graph_import_bugs, squeeze_takes_only_the_axes_of_its_attribute) {
  onnx_file file = begin(11, "1,2,1");
  ft_strbuf a = attributes();
  ATTR_INTS(&a, "axes", -1);
  onnx_node(&file, "Squeeze", "x", "y", &a);
  run(&file, FLOATS(1, 2));
  EXPECT(0, "1x2", 1, 2);
  file = begin(13, "1,2,1");
  INTS(&file, "axes", 1);
  onnx_node(&file, "Squeeze", "x,axes", "y", NULL);
  must_fail(&file, FT_REFUSED, "axis 1 has extent 2, not 1");
}

// ---- 12: negative indices
// -------------------------------------------------------------------

Test(graph_import_bugs, negative_indices_count_from_the_end) {
  onnx_file file = begin(13, "4");
  INTS(&file, "at", -1, 0, -4);
  onnx_node(&file, "Gather", "x,at", "y", NULL);
  run(&file, four);
  EXPECT(0, "3", 4, 1, 1);
  file = begin(13, "2,2");
  onnx_ints(&file, "at", "2,2", (int64_t[]){-1, 0, 0, -1}, 4);
  onnx_node(&file, "GatherND", "x,at", "y", NULL);
  run(&file, four);
  EXPECT(0, "2", 3, 2);
  file = begin(13, "2");
  INTS(&file, "depth", 3);
  onnx_floats(&file, "values", "2", FLOATS(0, 5), 2);
  onnx_node(&file, "OneHot", "x,depth,values", "y", NULL);
  run(&file, FLOATS(-1, 7));
  EXPECT(0, "2x3", 0, 0, 5, 0, 0, 0);
}

Test(graph_import_bugs, an_index_outside_is_refused) {
  for (int i = 0; i < 2; i++) {
    onnx_file file = begin(13, "4");
    INTS(&file, "at", 0, i ? 4 : -5);
    onnx_node(&file, "Gather", "x,at", "y", NULL);
    must_fail(&file, FT_REFUSED, "is outside an axis of 4");
  }
  onnx_file file = begin(13, "2,2");
  onnx_ints(&file, "at", "1,2", (int64_t[]){0, 2}, 2);
  onnx_node(&file, "GatherND", "x,at", "y", NULL);
  must_fail(&file, FT_REFUSED, "index 2 is outside an axis of 2");
}

Test(graph_import_bugs, unsorted_negative_axes_reduce_without_keepdims) {
  onnx_file file = begin(13, "2,1,2");
  ft_strbuf a = attributes();
  onnx_attr_int(&a, "keepdims", 0);
  INTS(&file, "axes", -1, 0);
  onnx_node(&file, "ReduceSum", "x,axes", "y", &a);
  run(&file, four);
  EXPECT(0, "1", 10);
}

// ---- 13: broadcasting
// -----------------------------------------------------------------------

Test(graph_import_bugs, slopes_and_minima_broadcast) {
  onnx_file file = begin(16, "2,2");
  onnx_floats(&file, "slope", "2,1", FLOATS(10, 100), 2);
  onnx_node(&file, "PRelu", "x,slope", "y", NULL);
  run(&file, FLOATS(-1, 2, -3, 4));
  EXPECT(0, "2x2", -10, 2, -300, 4);
  file = begin(13, "2,1");
  onnx_floats(&file, "row", "2", FLOATS(2, 0), 2);
  onnx_node(&file, "Min", "x,row", "y", NULL);
  run(&file, FLOATS(1, 3));
  EXPECT(0, "2x2", 1, 0, 2, 0);
}

// ---- 14: NaN
// --------------------------------------------------------------------------------

static void expect_of_nan(const char *op, double first, double second) {
  onnx_file file = begin(13, "2");
  onnx_node(&file, op, "x", "y", NULL);
  run(&file, FLOATS(NAN, -1));
  EXPECT(0, "2", first, second);
}

Test(graph_import_bugs, nan_comes_through) {
  expect_of_nan("Relu", NAN, 0);
  expect_of_nan("Sign", NAN, -1);
  expect_of_nan("HardSigmoid", NAN, 0.3);
  onnx_file file = begin(13, "3");
  onnx_output(&file, "z", ONNX_FLOAT, NULL);
  onnx_scalar(&file, "two", 2);
  onnx_node(&file, "Min", "two,x", "y", NULL);
  onnx_node(&file, "ReduceMax", "x", "z", NULL);
  run(&file, FLOATS(1, NAN, 3));
  EXPECT(0, "3", 1, NAN, 2);
  EXPECT(1, "1", NAN);
}

static void expect_arg(const char *op, bool is_last, double want) {
  onnx_file file = onnx_begin(arena, 13);
  ft_strbuf a = attributes();
  if (is_last) onnx_attr_int(&a, "select_last_index", 1);
  onnx_input(&file, "x", ONNX_FLOAT, "5");
  onnx_output(&file, "y", ONNX_INT64, NULL);
  onnx_node(&file, op, "x", "y", &a);
  run(&file, FLOATS(3, NAN, 1, NAN, 9));
  EXPECT(0, "1", want);
  run(&file, FLOATS(2, 7, 2, 7, 3));
  EXPECT(0, "1", strcmp(op, "ArgMax") == 0 ? (is_last ? 3 : 1) : (is_last ? 2 : 0));
}

Test(graph_import_bugs, arg_max_and_arg_min_find_the_first_nan_or_the_last) {
  expect_arg("ArgMax", false, 1);
  expect_arg("ArgMin", false, 1);
  expect_arg("ArgMax", true, 3);
  expect_arg("ArgMin", true, 3);
}

// ---- 15: external data
// ------------------------------------------------------------------------

Test(graph_import_bugs, external_data_stays_beneath_the_models_folder) {
  static const char *const places[] = {"../w.bin", "/etc/passwd", "a/../../w.bin"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    onnx_file file = begin(13, "3");
    ft_strbuf tensor = onnx_tensor(arena, "w", ONNX_FLOAT, "3", NULL, 0);
    ft_strbuf entry = ft_strbuf_init(arena);
    pb_text(&entry, 1, "location");
    pb_text(&entry, 2, places[i]);
    pb_message(&tensor, 13, &entry);
    pb_int(&tensor, 14, 1);
    onnx_initializer(&file, &tensor);
    onnx_node(&file, "Add", "x,w", "y", NULL);
    ft_strbuf bytes = onnx_end(&file);
    ft_status status = ft_import_onnx_bytes(bytes.text, bytes.length, "/tmp", NULL, arena,
                                            &graph, &report, &error);
    cr_assert_eq(status, FT_REFUSED, "%s: %s", places[i], error.text);
  }
}

// ---- 16: empty axes
// ---------------------------------------------------------------------------

Test(graph_import_bugs, empty_axes_reduce_all_or_nothing) {
  for (int is_noop = 0; is_noop < 2; is_noop++) {
    onnx_file file = begin(13, "2,2");
    ft_strbuf a = attributes();
    onnx_attr_int(&a, "noop_with_empty_axes", is_noop);
    onnx_ints(&file, "axes", "0", NULL, 0);
    onnx_node(&file, "ReduceSum", "x,axes", "y", &a);
    run(&file, four);
    if (is_noop)
      EXPECT(0, "2x2", 1, 2, 3, 4);
    else
      EXPECT(0, "1x1", 10);
  }
  onnx_file file = begin(13, "2,2");
  onnx_node(&file, "ReduceSum", "x", "y", NULL);
  run(&file, four);
  EXPECT(0, "1x1", 10);
}

// ---- 17: integers
// -----------------------------------------------------------------------------

static void expect_integers(const char *op, const ft_strbuf *a, double p, double q,
                            double r, double s) {
  onnx_file file = begin_constant(13, ONNX_INT64);
  INTS(&file, "a", -7, 7, -7, 6);
  INTS(&file, "b", 3, -3, -3, 3);
  onnx_node(&file, op, "a,b", "y", a);
  run(&file, NULL);
  EXPECT(0, "4", p, q, r, s);
}

Test(graph_import_bugs, integers_divide_toward_zero_and_mod_follows_the_divisor) {
  ft_strbuf a = attributes();
  expect_integers("Div", NULL, -2, -2, 2, 2);
  expect_integers("Mod", NULL, 2, -2, -1, 0);
  onnx_attr_int(&a, "fmod", 1);
  expect_integers("Mod", &a, -1, 1, -1, 0);
  onnx_file file = begin(13, "4");
  onnx_floats(&file, "b", "4", FLOATS(3, -3, 2.5f, 4), 4);
  onnx_node(&file, "Mod", "x,b", "y", &a);
  run(&file, FLOATS(-7, 7, -6, 4));
  EXPECT(0, "4", -1, 1, -1, 0);
  file = begin(13, "4");
  onnx_node(&file, "Mod", "x,x", "y", NULL);
  must_fail(&file, FT_REFUSED, "fmod is 0");
}

// ---- 18: ties
// -----------------------------------------------------------------------------------

Test(graph_import_bugs, ties_round_to_even) {
  onnx_file file = begin(11, "6");
  onnx_node(&file, "Round", "x", "y", NULL);
  run(&file, FLOATS(0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.4f));
  EXPECT(0, "6", 0, 2, 2, 0, -2, 2);
}

// ---- 19: Pad
// ------------------------------------------------------------------------------------

static onnx_file pad(int64_t opset, const char *mode, const int64_t *pads, size_t count,
                     const int64_t *axes) {
  onnx_file file = begin(opset, "2,2");
  ft_strbuf a = attributes();
  onnx_attr_text(&a, "mode", mode);
  add_ints(&file, "pads", count, pads);
  onnx_scalar(&file, "value", 9);
  if (axes) add_ints(&file, "axes", count / 2, axes);
  onnx_node(&file, "Pad", axes ? "x,pads,value,axes" : "x,pads,value", "y", &a);
  return file;
}

Test(graph_import_bugs, pads_are_all_begins_then_all_ends) {
  onnx_file file = pad(13, "constant", (int64_t[]){1, 0, 0, 2}, 4, NULL);
  run(&file, four);
  EXPECT(0, "3x4", 9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9, 9);
  file = begin(10, "2,2");
  ft_strbuf a = attributes();
  ATTR_INTS(&a, "pads", 1, 0, 0, 0);
  onnx_attr_float(&a, "value", 7);
  onnx_node(&file, "Pad", "x", "y", &a);
  run(&file, four);
  EXPECT(0, "3x2", 7, 7, 1, 2, 3, 4);
}

Test(graph_import_bugs, pads_obey_their_axes_and_may_be_negative) {
  onnx_file file = pad(18, "constant", (int64_t[]){1, 0}, 2, (int64_t[]){-1});
  run(&file, four);
  EXPECT(0, "2x3", 9, 1, 2, 9, 3, 4);
  file = pad(13, "constant", (int64_t[]){-1, 0, 0, 1}, 4, NULL);
  run(&file, four);
  EXPECT(0, "1x3", 3, 4, 9);
  file = pad(13, "constant", (int64_t[]){-2, 0, -1, 0}, 4, NULL);
  must_fail(&file, FT_REFUSED, "cut more than axis 0 has");
}

Test(graph_import_bugs, pads_reflect_repeat_and_wrap) {
  onnx_file file = pad(13, "reflect", (int64_t[]){0, 1, 0, 2}, 4, NULL);
  run(&file, four);
  EXPECT(0, "2x5", 2, 1, 2, 1, 2, 4, 3, 4, 3, 4);
  file = pad(13, "edge", (int64_t[]){0, 1, 0, 2}, 4, NULL);
  run(&file, four);
  EXPECT(0, "2x5", 1, 1, 2, 2, 2, 3, 3, 4, 4, 4);
  file = pad(19, "wrap", (int64_t[]){0, 1, 0, 2}, 4, NULL);
  run(&file, four);
  EXPECT(0, "2x5", 2, 1, 2, 1, 2, 4, 3, 4, 3, 4);
  file = pad(13, "wrap", (int64_t[]){0, 1, 0, 2}, 4, NULL);
  must_fail(&file, FT_REFUSED, "mode is 'wrap'");
}

// ---- 20: half precision
// -------------------------------------------------------------------------

Test(graph_import_bugs, half_precision_is_refused_by_name_not_overflowed) {
  for (int type = 10; type <= 16; type += 6) {
    onnx_file file = onnx_begin(arena, 17);
    onnx_input(&file, "x", type, "2");
    onnx_output(&file, "y", type, NULL);
    onnx_node(&file, "Relu", "x", "y", NULL);
    must_fail(&file, FT_UNSUPPORTED, type == 10 ? "dtype f16" : "dtype bf16");
  }
  // 256 * 256 is past the largest half, not past the largest float.
  onnx_file file = begin(17, "1,2");
  onnx_floats(&file, "one", "2", FLOATS(1, 1), 2);
  onnx_node(&file, "LayerNormalization", "x,one", "y", NULL);
  run(&file, FLOATS(256, -256));
  EXPECT(0, "1x2", 1, -1);
}

// ---- 21: guards
// ---------------------------------------------------------------------------------

Test(graph_import_bugs, a_value_that_is_read_and_an_output_stays_both) {
  onnx_file file = begin(13, "2");
  onnx_output(&file, "z", ONNX_FLOAT, NULL);
  onnx_node(&file, "Relu", "x", "z", NULL);
  onnx_node(&file, "Neg", "z", "y", NULL);
  run(&file, FLOATS(-1, 2));
  EXPECT(0, "2", 0, -2);
  EXPECT(1, "2", 0, 2);
}

Test(graph_import_bugs, gemm_scales_its_bias_by_beta) {
  onnx_file file = begin(13, "1,2");
  ft_strbuf a = attributes();
  onnx_attr_float(&a, "alpha", 2);
  onnx_attr_float(&a, "beta", 0.5f);
  onnx_attr_int(&a, "transB", 1);
  onnx_floats(&file, "w", "2,2", FLOATS(1, 2, 3, 4), 4);
  onnx_floats(&file, "c", "2", FLOATS(10, 100), 2);
  onnx_node(&file, "Gemm", "x,w,c", "y", &a);
  run(&file, FLOATS(1, 1));
  EXPECT(0, "1x2", 11, 64);
}

Test(graph_import_bugs, a_transpose_that_moves_nothing_does_not_transpose_the_weight) {
  onnx_file file = begin(13, "1,2");
  ft_strbuf a = attributes();
  ATTR_INTS(&a, "perm", 0, 1);
  onnx_floats(&file, "w", "2,2", FLOATS(1, 2, 3, 4), 4);
  onnx_node(&file, "Transpose", "w", "t", &a);
  onnx_node(&file, "MatMul", "x,t", "y", NULL);
  run(&file, FLOATS(1, 10));
  EXPECT(0, "1x2", 31, 42);
}

Test(graph_import_bugs, a_scale_that_would_widen_the_input_is_refused) {
  onnx_file file = begin(17, "1,2");
  onnx_floats(&file, "gamma", "3,2", FLOATS(1, 1, 1, 1, 1, 1), 6);
  onnx_node(&file, "LayerNormalization", "x,gamma", "y", NULL);
  must_fail(&file, FT_REFUSED, "does not broadcast to the input");
}

// ---- 22: initializers and subgraphs
// ---------------------------------------------------------------

Test(graph_import_bugs, an_overridable_initializer_is_not_folded) {
  for (int64_t ir = 3; ir <= 4; ir++) {
    onnx_file file = begin(13, "2");
    file.ir_version = ir;
    onnx_input(&file, "w", ONNX_FLOAT, "2");
    onnx_floats(&file, "w", "2", FLOATS(1, 2), 2);
    onnx_node(&file, "Exp", "w", "e", NULL);
    onnx_node(&file, "Mul", "x,e", "y", NULL);
    cr_assert_eq(import(&file), FT_OK, "%s", error.text);
    cr_assert_eq(count_op(FT_OP_EXP), ir < 4 ? 0u : 1u);
  }
}

Test(graph_import_bugs, the_default_of_an_overridable_shape_is_taken) {
  onnx_file file = begin(13, "2,3");
  onnx_input(&file, "shape", ONNX_INT64, "1");
  INTS(&file, "shape", -1);
  onnx_node(&file, "Reshape", "x,shape", "y", NULL);
  cr_assert_eq(import(&file), FT_OK, "%s", error.text);
  cr_assert_str_eq(ft_shape_text(&graph->value[graph->output[0].value].shape, arena),
                   "6");
  cr_assert_eq(graph->input_count, 2);
}

static onnx_file branch(const char *op, const char *operands, const char *output) {
  onnx_file file = onnx_begin(arena, 13);
  onnx_node(&file, op, operands, output, NULL);
  onnx_output(&file, output, ONNX_FLOAT, NULL);
  return file;
}

// Both branches name their result "r", and read names from outside.
static onnx_file choice(bool condition) {
  onnx_file then = branch("Add", "x,late", "r"), otherwise = branch("Sub", "x,late", "r");
  onnx_scalar(&otherwise, "unused", 1);
  onnx_file file = begin(13, "2");
  ft_strbuf a = attributes();
  onnx_attr_graph(&a, "then_branch", &then);
  onnx_attr_graph(&a, "else_branch", &otherwise);
  ft_strbuf tensor = onnx_tensor(arena, "if", ONNX_BOOL, "", &condition, 1);
  onnx_initializer(&file, &tensor);
  onnx_node(&file, "If", "if", "r2", &a);
  onnx_node(&file, "Neg", "r2", "y", NULL);
  onnx_node(&file, "Relu", "x", "late", NULL);  // after its reader: nodes are sorted
  return file;
}

Test(graph_import_bugs, an_if_with_a_known_condition_becomes_its_branch) {
  onnx_file file = choice(true);
  run(&file, FLOATS(-1, 2));
  EXPECT(0, "2", 1, -4);
  ft_hash taken = graph->symbolic_hash;
  file = choice(false);
  run(&file, FLOATS(-1, 2));
  EXPECT(0, "2", 1, 0);
  cr_assert_neq(memcmp(&taken, &graph->symbolic_hash, sizeof taken), 0);
}

Test(graph_import_bugs, an_if_on_a_run_time_value_lists_what_its_branches_lack) {
  onnx_file then = branch("LSTM", "x", "r"), otherwise = branch("Relu", "x", "r");
  onnx_file file = begin(13, "2");
  ft_strbuf a = attributes();
  onnx_attr_graph(&a, "then_branch", &then);
  onnx_attr_graph(&a, "else_branch", &otherwise);
  onnx_input(&file, "if", ONNX_BOOL, "");
  onnx_node(&file, "If", "if", "y", &a);
  must_fail(&file, FT_UNSUPPORTED, "the condition is not a constant");
  cr_assert(strstr(error.text, "LSTM"));
  cr_assert_eq(report.unsupported_count, 2);
}

Test(graph_import_bugs, a_taken_branch_is_listed_with_what_it_lacks) {
  onnx_file then = branch("Foo", "x", "r"), otherwise = branch("Bar", "x", "r");
  onnx_file file = begin(13, "2");
  ft_strbuf a = attributes();
  bool condition = true;
  onnx_attr_graph(&a, "then_branch", &then);
  onnx_attr_graph(&a, "else_branch", &otherwise);
  ft_strbuf tensor = onnx_tensor(arena, "if", ONNX_BOOL, "", &condition, 1);
  onnx_initializer(&file, &tensor);
  onnx_node(&file, "If", "if", "r2", &a);
  onnx_node(&file, "Relu", "r2", "y", NULL);
  must_fail(&file, FT_UNSUPPORTED, "1 unsupported: Foo");
}

// The inner If's names are its own; what it reads is two scopes out.
Test(graph_import_bugs, an_if_inside_an_if_reads_names_of_the_outermost_scope) {
  bool condition = false;
  onnx_file inner_then = branch("Add", "x,a", "r"),
            inner_else = branch("Mul", "x,a", "r");
  ft_strbuf attrs = attributes(),
            tensor = onnx_tensor(arena, "if", ONNX_BOOL, "", &condition, 1);
  onnx_attr_graph(&attrs, "then_branch", &inner_then);
  onnx_attr_graph(&attrs, "else_branch", &inner_else);
  onnx_file outer = onnx_begin(arena, 13);
  onnx_node(&outer, "If", "if", "q", &attrs);
  onnx_node(&outer, "Neg", "q", "r", NULL);
  onnx_output(&outer, "r", ONNX_FLOAT, NULL);
  onnx_file same = outer, file = begin(13, "2");
  ft_strbuf a = attributes();
  onnx_attr_graph(&a, "then_branch", &outer);
  onnx_attr_graph(&a, "else_branch", &same);
  onnx_initializer(&file, &tensor);
  onnx_node(&file, "If", "if", "y", &a);
  onnx_node(&file, "Exp", "x", "a", NULL);
  run(&file, FLOATS(1, 2));
  EXPECT(0, "2", -exp(1), -2 * exp(2));
}

Test(graph_import_bugs, a_branch_that_reads_an_unknown_name_is_refused) {
  onnx_file then = branch("Add", "x,ghost", "r"), otherwise = branch("Relu", "x", "r");
  onnx_file file = begin(13, "2");
  ft_strbuf a = attributes();
  onnx_attr_graph(&a, "then_branch", &then);
  onnx_attr_graph(&a, "else_branch", &otherwise);
  onnx_input(&file, "if", ONNX_BOOL, "");
  onnx_node(&file, "If", "if", "y", &a);
  must_fail(&file, FT_REFUSED, "reads 'ghost', which nothing produces");
}

// ---- 23: shapes of shapes
// -------------------------------------------------------------------------

Test(graph_import_bugs, a_dim_gathered_from_a_shape_is_a_scalar) {
  onnx_file file = begin(13, "2,3");
  ft_strbuf a = attributes();
  onnx_attr_int(&a, "axis", 0);
  onnx_ints(&file, "one", "", (int64_t[]){1}, 1);
  INTS(&file, "zero", 0);
  INTS(&file, "two", 2);
  onnx_node(&file, "Shape", "x", "s", NULL);
  onnx_node(&file, "Gather", "s,one", "d", NULL);
  onnx_node(&file, "Unsqueeze", "d,zero", "u", NULL);
  onnx_node(&file, "Concat", "u,two", "to", &a);
  onnx_node(&file, "Reshape", "x,to", "y", NULL);
  run(&file, FLOATS(1, 2, 3, 4, 5, 6));
  EXPECT(0, "3x2", 1, 2, 3, 4, 5, 6);
}

Test(graph_import_bugs, shapes_need_no_value_info) {
  onnx_file file = begin(13, "4,1");
  ft_strbuf a = attributes();
  onnx_attr_int(&a, "axis", 1);
  INTS(&file, "parts", 1, 3);
  onnx_node(&file, "Split", "x,parts", "p,q", NULL);
  onnx_node(&file, "Concat", "q,q", "y", &a);
  run(&file, four);
  EXPECT(0, "3x2", 2, 2, 3, 3, 4, 4);
}

// ---- 24: nesting
// ----------------------------------------------------------------------------------

Test(graph_import_bugs, deep_nesting_is_refused_not_followed) {
  onnx_file inner = branch("Relu", "x", "r");
  for (int depth = 0; depth < 400; depth++) {
    ft_strbuf a = attributes();
    onnx_attr_graph(&a, "then_branch", &inner);
    onnx_file outer = onnx_begin(arena, 13);
    onnx_node(&outer, "If", "x", "r", &a);
    inner = outer;
  }
  onnx_output(&inner, "r", ONNX_FLOAT, NULL);
  must_fail(&inner, FT_REFUSED, "deep");
}
