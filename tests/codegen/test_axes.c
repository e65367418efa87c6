#include "codegen/axes.h"

#include <criterion/criterion.h>

static ft_axes make(void) {
  return (ft_axes){.arena = ft_arena_create(ft_allocator_system())};
}

static ft_axis_dims dims(ft_axes *axes, uint8_t rank, const int64_t *dim) {
  ft_shape shape = {.rank = rank};
  for (uint8_t i = 0; i < rank; i++) shape.dim[i] = dim[i];
  ft_axis_dims out;
  cr_assert(ft_axes_add_shape(axes, &shape, &out));
  return out;
}

static ft_axis_list flat(const ft_axes *axes, const ft_axis_dims *d) {
  ft_axis_list list;
  cr_assert_eq(ft_axes_flatten(axes, d, &list), FT_AXES_OK);
  return list;
}

// Shapes with as many elements, and the extents of their common refinement (none:
// uneven).
typedef struct pair {
  uint8_t rank_a, rank_b;
  int64_t a[8], b[8];
  uint32_t leaves;
  int64_t leaf[8];
} pair;

static const pair pairs[] = {
    {1, 1, {6}, {6}, 1, {6}},
    {2, 1, {4, 6}, {24}, 2, {4, 6}},
    {1, 2, {24}, {4, 6}, 2, {4, 6}},
    {2, 2, {4, 6}, {8, 3}, 3, {4, 2, 3}},
    {2, 2, {6, 4}, {8, 3}, 0, {0}},
    {2, 3, {12, 768}, {12, 12, 64}, 3, {12, 12, 64}},
    {3, 4, {2, 6, 35}, {2, 2, 3, 35}, 4, {2, 2, 3, 35}},
    {2, 2, {1, 5}, {5, 1}, 1, {5}},
    {0, 2, {0}, {1, 1}, 0, {0}},
    {3, 3, {2, 9, 4}, {6, 3, 4}, 4, {2, 3, 3, 4}},
    {2, 2, {35, 6}, {5, 42}, 3, {5, 7, 6}},
};

Test(codegen_axes, splits_two_shapes_at_the_borders_of_both) {
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    const pair *p = &pairs[i];
    ft_axes axes = make();
    ft_axis_dims a = dims(&axes, p->rank_a, p->a), b = dims(&axes, p->rank_b, p->b);
    bool is_even = p->leaves || p->rank_a == 0;
    cr_assert_eq(ft_axes_unify(&axes, &a, &b), is_even ? FT_AXES_OK : FT_AXES_UNEVEN,
                 "pair %zu", i);
    ft_axis_list x = flat(&axes, &a), y = flat(&axes, &b);
    cr_assert(!is_even || x.count == p->leaves, "pair %zu: %u leaves", i, x.count);
    for (uint32_t k = 0; k < x.count && is_even; k++) {
      cr_assert_eq(x.leaf[k], y.leaf[k]);
      cr_assert_eq(axes.axis[x.leaf[k]].extent, p->leaf[k], "pair %zu leaf %u", i, k);
    }
    ft_arena_destroy(axes.arena);
  }
}

Test(codegen_axes, a_split_reaches_every_tensor_with_that_axis) {
  ft_axes axes = make();
  ft_axis_dims a = dims(&axes, 1, (int64_t[]){24}), b = dims(&axes, 1, (int64_t[]){24});
  ft_axis_dims c = dims(&axes, 3, (int64_t[]){2, 3, 4});
  cr_assert_eq(ft_axes_unify(&axes, &a, &b), FT_AXES_OK);
  cr_assert_eq(ft_axes_unify(&axes, &b, &c), FT_AXES_OK);
  cr_assert_eq(flat(&axes, &a).count, 3);
  ft_arena_destroy(axes.arena);
}

Test(codegen_axes, a_tensor_made_equal_to_its_transpose_repeats_a_leaf) {
  ft_axes axes = make();
  ft_axis_dims a = dims(&axes, 2, (int64_t[]){5, 5}), t = a;
  t.axis[0] = a.axis[1];
  t.axis[1] = a.axis[0];
  ft_axis_list list = flat(&axes, &a);
  cr_assert_not(ft_axis_list_repeats(&list));
  cr_assert_eq(ft_axes_unify(&axes, &a, &t), FT_AXES_OK);
  list = flat(&axes, &a);
  cr_assert(ft_axis_list_repeats(&list));
  ft_arena_destroy(axes.arena);
}

Test(codegen_axes, a_transpose_of_uneven_dims_ends) {
  ft_axes axes = make();
  ft_axis_dims a = dims(&axes, 2, (int64_t[]){8, 2}), t = a;
  t.axis[0] = a.axis[1];
  t.axis[1] = a.axis[0];
  ft_axes_unify(&axes, &a, &t);
  ft_axis_list list = flat(&axes, &a);
  cr_assert(ft_axis_list_repeats(&list));
  ft_arena_destroy(axes.arena);
}

Test(codegen_axes, a_snapshot_takes_back_a_failed_unification) {
  ft_axes axes = make();
  ft_axis_dims a = dims(&axes, 3, (int64_t[]){6, 4, 5}),
               b = dims(&axes, 3, (int64_t[]){8, 3, 5});
  ft_axes *before = ft_axes_snapshot(&axes);
  cr_assert_eq(ft_axes_unify(&axes, &a, &b), FT_AXES_UNEVEN);
  ft_axes_restore(&axes, before);
  ft_axis_list x = flat(&axes, &a), y = flat(&axes, &b);
  cr_assert_neq(x.leaf[2], y.leaf[2]);
  ft_arena_destroy(axes.arena);
}

Test(codegen_axes, more_leaves_than_a_mask_holds_are_refused) {
  ft_axes axes = make();
  ft_axis_dims big = dims(&axes, 2, (int64_t[]){(int64_t)1 << 31, (int64_t)1 << 31});
  cr_assert_eq(flat(&axes, &big).count, 2);
  // Split each dim into twos, one unification at a time.
  ft_axes_outcome outcome = FT_AXES_OK;
  for (int k = 1; k < 31 && outcome == FT_AXES_OK; k++) {
    ft_axis_dims cut = dims(
        &axes, 3, (int64_t[]){(int64_t)1 << 31, (int64_t)1 << (31 - k), (int64_t)1 << k});
    outcome = ft_axes_unify(&axes, &big, &cut);
  }
  cr_assert_eq(outcome, FT_AXES_OK);
  cr_assert_eq(flat(&axes, &big).count, 32);
  ft_arena_destroy(axes.arena);
}
