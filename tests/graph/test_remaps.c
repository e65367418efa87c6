// SLICE, CONCAT, PAD, GATHER, GATHER_ELEMENTS: values.
#include "one_primitive.h"
#include "tests/support/graphs.h"

static ft_arena *arena;
static one_primitive o;
static void start(void) {
  arena = ft_arena_create(ft_allocator_system());
  o = one_open(arena);
}
static void stop(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_remaps, .init = start, .fini = stop);

#define WANT(...) ((const double[]){__VA_ARGS__})

// ---- slice ----------------------------------------------------------------------

Test(graph_remaps, a_slice_steps_forwards_and_backwards) {
  one_input(&o, FT_F32, SHAPE(3, 5), NULL);
  ft_attr attr = {.start = {2, 0}, .step = {-2, 3}, .shape = SHAPE(2, 2)};
  ft_reference y = one_run(&o, FT_OP_SLICE, &attr);
  one_expect(&y, SHAPE(2, 2), WANT(10, 13, 0, 3));
}

Test(graph_remaps, a_slice_of_integers_is_exact) {
  one_input(&o, FT_I64, SHAPE(4), WANT(7, -9e15, 3, 1));
  ft_attr attr = {.start = {3}, .step = {-1}, .shape = SHAPE(4)};
  ft_reference y = one_run(&o, FT_OP_SLICE, &attr);
  one_expect(&y, SHAPE(4), WANT(1, 3, -9e15, 7));
  cr_assert_null(y.scale);
}

Test(graph_remaps, a_slice_keeps_nan_and_infinity) {
  one_input(&o, FT_F32, SHAPE(3), WANT(NAN, 1, -INFINITY));
  ft_attr attr = {.start = {0}, .step = {2}, .shape = SHAPE(2)};
  ft_reference y = one_run(&o, FT_OP_SLICE, &attr);
  one_expect(&y, SHAPE(2), WANT(NAN, -INFINITY));
}

Test(graph_remaps, a_slice_of_nothing_is_empty) {
  one_input(&o, FT_F32, SHAPE(3, 0), NULL);
  ft_attr attr = {.start = {1, 99}, .step = {1, -5}, .shape = SHAPE(2, 0)};
  ft_reference y = one_run(&o, FT_OP_SLICE, &attr);
  one_expect(&y, SHAPE(2, 0), NULL);
}

// ---- transpose ------------------------------------------------------------------

// Larger than a tile each way, in every order and for every size of element.
Test(graph_remaps, a_transpose_of_a_tensor_moves_every_element_to_its_place) {
  static const uint8_t orders[][4] = {{3, 2, 1, 0}, {0, 3, 1, 2}, {2, 3, 0, 1},
                                      {1, 0, 2, 3}, {0, 1, 3, 2}, {3, 0, 2, 1}};
  static const ft_dtype dtypes[] = {FT_F32, FT_I64, FT_U8, FT_F16};
  const ft_shape from = SHAPE(3, 37, 2, 41);
  for (size_t k = 0; k < 24; k++) {
    ft_attr attr = {0};
    for (int i = 0; i < 4; i++) attr.perm[i] = orders[k / 4][i];
    o = one_open(arena);
    one_input(&o, dtypes[k % 4], from, NULL);
    ft_reference y = one_run(&o, FT_OP_TRANSPOSE, &attr);
    for (int64_t i = 0; i < ft_shape_elements(&from); i++) {
      int64_t rest = i, at[4], index = 0;
      for (int d = 3; d >= 0; d--) {
        at[attr.perm[d]] = rest % y.shape.dim[d];
        rest /= y.shape.dim[d];
      }
      for (int d = 0; d < 4; d++) index = index * from.dim[d] + at[d];
      double want = ft_tensor_get_f64(&o.in[0], index);
      cr_assert_eq(y.value ? y.value[i] : (double)y.integer[i], want);
    }
  }
}

// ---- concat ---------------------------------------------------------------------

Test(graph_remaps, a_concat_puts_parts_side_by_side) {
  one_input(&o, FT_F32, SHAPE(2, 1), WANT(1, 2));
  one_input(&o, FT_F32, SHAPE(2, 0), NULL);
  one_input(&o, FT_F32, SHAPE(2, 3), WANT(3, 4, 5, NAN, 7, 8));
  one_input(&o, FT_F32, SHAPE(2, 1), WANT(9, 10));
  ft_reference y = one_run(&o, FT_OP_CONCAT, &(ft_attr){.axis = 1});
  one_expect(&y, SHAPE(2, 5), WANT(1, 3, 4, 5, 9, 2, NAN, 7, 8, 10));
}

Test(graph_remaps, a_concat_may_name_one_value_twice) {
  one_input(&o, FT_BOOL, SHAPE(2), WANT(0, 1));
  o.value[1] = o.value[0], o.count = 2;
  ft_reference y = one_run(&o, FT_OP_CONCAT, &(ft_attr){.axis = 0});
  one_expect(&y, SHAPE(4), WANT(0, 1, 0, 1));
}

Test(graph_remaps, a_concat_of_nothing_but_empty_parts_is_empty) {
  one_input(&o, FT_F32, SHAPE(2, 0), NULL);
  one_input(&o, FT_F32, SHAPE(2, 0), NULL);
  ft_reference y = one_run(&o, FT_OP_CONCAT, &(ft_attr){.axis = 1});
  one_expect(&y, SHAPE(2, 0), NULL);
}

// ---- pad ------------------------------------------------------------------------

Test(graph_remaps, a_pad_surrounds_with_the_scalar) {
  one_input(&o, FT_F32, SHAPE(1, 2), WANT(1, 2));
  one_input(&o, FT_F32, (ft_shape){0}, WANT(-INFINITY));
  ft_attr attr = {.start = {1, 0}, .shape = SHAPE(2, 4)};
  ft_reference y = one_run(&o, FT_OP_PAD, &attr);
  one_expect(
      &y, SHAPE(2, 4),
      WANT(-INFINITY, -INFINITY, -INFINITY, -INFINITY, 1, 2, -INFINITY, -INFINITY));
}

Test(graph_remaps, a_pad_of_nothing_is_all_scalar) {
  one_input(&o, FT_I32, SHAPE(0), NULL);
  one_input(&o, FT_I32, (ft_shape){0}, WANT(-3));
  ft_reference y = one_run(&o, FT_OP_PAD, &(ft_attr){.start = {1}, .shape = SHAPE(3)});
  one_expect(&y, SHAPE(3), WANT(-3, -3, -3));
}

// ---- gather ---------------------------------------------------------------------

Test(graph_remaps, a_gather_takes_slabs_and_counts_from_the_end) {
  one_input(&o, FT_F32, SHAPE(2, 3, 2), NULL);
  one_input(&o, FT_I64, SHAPE(2, 2), WANT(2, -3, 0, -1));
  ft_reference y = one_run(&o, FT_OP_GATHER, &(ft_attr){.axis = 1});
  one_expect(&y, SHAPE(2, 2, 2, 2),
             WANT(4, 5, 0, 1, 0, 1, 4, 5, 10, 11, 6, 7, 6, 7, 10, 11));
}

Test(graph_remaps, a_gather_at_a_scalar_drops_the_axis) {
  one_input(&o, FT_F32, SHAPE(2, 3), NULL);
  one_input(&o, FT_I32, (ft_shape){0}, WANT(-2));
  ft_reference y = one_run(&o, FT_OP_GATHER, &(ft_attr){.axis = 1});
  one_expect(&y, SHAPE(2), WANT(1, 4));
}

Test(graph_remaps, a_gather_out_of_range_names_the_index_its_place_and_the_limit) {
  one_input(&o, FT_F32, SHAPE(5, 2), NULL);
  one_input(&o, FT_I64, SHAPE(3), WANT(0, 4, -6));
  ft_reference y;
  cr_assert_eq(one_try(&o, FT_OP_GATHER, &(ft_attr){.axis = 0}, &y), FT_INVALID_ARGUMENT);
  cr_assert(strstr(o.error.text, "index -6"), "%s", o.error.text);
  cr_assert(strstr(o.error.text, "element 2"), "%s", o.error.text);
  cr_assert(strstr(o.error.text, "[-5, 5)"), "%s", o.error.text);
}

Test(graph_remaps, a_gather_from_nothing_fails_unless_nothing_is_asked_for) {
  one_input(&o, FT_F32, SHAPE(0, 2), NULL);
  one_input(&o, FT_I64, SHAPE(1), WANT(0));
  ft_reference y;
  cr_assert_eq(one_try(&o, FT_OP_GATHER, &(ft_attr){.axis = 0}, &y), FT_INVALID_ARGUMENT);
  o = one_open(arena);
  one_input(&o, FT_F32, SHAPE(0, 2), NULL);
  one_input(&o, FT_I64, SHAPE(0), NULL);
  y = one_run(&o, FT_OP_GATHER, &(ft_attr){.axis = 0});
  one_expect(&y, SHAPE(0, 2), NULL);
}

Test(graph_remaps, gather_elements_follows_one_axis) {
  one_input(&o, FT_F32, SHAPE(3, 2), WANT(1, 2, 3, NAN, 5, 6));
  one_input(&o, FT_I32, SHAPE(2, 2), WANT(-1, 1, 0, 2));
  ft_reference y = one_run(&o, FT_OP_GATHER_ELEMENTS, &(ft_attr){.axis = 0});
  one_expect(&y, SHAPE(2, 2), WANT(5, NAN, 1, 6));
}

Test(graph_remaps, gather_elements_out_of_range_names_the_index_its_place_and_the_limit) {
  one_input(&o, FT_F32, SHAPE(2, 3), NULL);
  one_input(&o, FT_I64, SHAPE(2, 2), WANT(0, 1, 3, 0));
  ft_reference y;
  cr_assert_eq(one_try(&o, FT_OP_GATHER_ELEMENTS, &(ft_attr){.axis = 1}, &y),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(o.error.text, "index 3 at element 2"), "%s", o.error.text);
  cr_assert(strstr(o.error.text, "[-3, 3)"), "%s", o.error.text);
}

// An index that a rounding could change makes its element uncertain, not wrong.
Test(graph_remaps, a_gather_at_an_uncertain_index_is_uncertain) {
  uint32_t x = one_input(&o, FT_F32, SHAPE(4), WANT(10, 20, 30, 40));
  uint32_t f = one_input(&o, FT_F32, SHAPE(2), WANT(0.9, 2.0000002)), third, y;
  ft_attr to_int = {.to = FT_I32};
  cr_assert_eq(ft_graph_add_scalar(o.graph, FT_F32, 1.0 / 3, &third, &o.error), FT_OK);
  uint32_t in[2] = {f, third};
  cr_assert_eq(ft_graph_emit(o.graph, FT_OP_DIV, in, 2, NULL, in, &o.error), FT_OK);
  cr_assert_eq(ft_graph_emit(o.graph, FT_OP_MUL, in, 2, NULL, in, &o.error), FT_OK);
  cr_assert_eq(ft_graph_emit(o.graph, FT_OP_CAST, in, 1, &to_int, in, &o.error), FT_OK);
  in[1] = in[0], in[0] = x;
  cr_assert_eq(ft_graph_emit(o.graph, FT_OP_GATHER, in, 2, NULL, &y, &o.error), FT_OK);
  cr_assert_eq(ft_graph_add_output(o.graph, "y", y, &o.error), FT_OK);
  cr_assert_eq(ft_graph_finish(o.graph, &o.error), FT_OK);
  ft_reference out;
  cr_assert_eq(ft_interpret_graph(o.graph, o.in, arena, &out, &o.error), FT_OK);
  cr_assert(out.value[0] == 10 && out.scale[0] == 0);
  cr_assert(isinf(out.scale[1]));
}

// ---- fmod -----------------------------------------------------------------------

Test(graph_remaps, fmod_has_the_sign_of_the_dividend) {
  one_input(&o, FT_F32, SHAPE(6), WANT(7, -7, 7, 0.5, INFINITY, 3));
  one_input(&o, FT_F32, SHAPE(6), WANT(3, 3, -3, INFINITY, 2, 0));
  ft_reference y = one_run(&o, FT_OP_FMOD, NULL);
  one_expect(&y, SHAPE(6), WANT(1, -1, 1, 0.5, NAN, NAN));
}

Test(graph_remaps, fmod_of_integers_is_the_remainder_and_zero_by_zero) {
  one_input(&o, FT_I32, SHAPE(4), WANT(7, -7, 5, INT32_MIN));
  one_input(&o, FT_I32, SHAPE(4), WANT(-4, 4, 0, -1));
  ft_reference y = one_run(&o, FT_OP_FMOD, NULL);
  one_expect(&y, SHAPE(4), WANT(3, -3, 0, 0));
}
