// Places: views, broadcasts, and what stays affine in the inner index.
#include "codegen/place.h"

#include "graphs.h"

typedef struct fixture {
  ft_arena *arena;
  ft_places places;
  ft_kir_id row;
} fixture;

static fixture open_fixture(void) {
  fixture f = {.arena = ft_arena_create(ft_allocator_system())};
  f.places.kir = ft_kir_create(f.arena);
  ft_kir_id zero = ft_kir_number(f.places.kir, 0), ten = ft_kir_number(f.places.kir, 10);
  f.row = ft_kir_for(f.places.kir, FT_KIR_SERIAL, zero, ten, zero)->value;
  return f;
}

static void close_fixture(fixture *f) {
  ft_arena_destroy(f->arena);
}

static const ft_affine inner = {.coef = 1};

// Element (row, inner) of a matrix.
static const ft_place *element(fixture *f, int64_t rows, int64_t columns) {
  ft_shape shape = SHAPE(rows, columns);
  ft_affine dim[2] = {ft_affine_of(&f->places, f->row), inner};
  return ft_place_make(&f->places, &shape, dim);
}

Test(codegen_place, a_place_is_linear_over_its_strides) {
  fixture f = open_fixture();
  const ft_place *p = element(&f, 10, 24);
  cr_assert_eq(p->linear.coef, 1);
  cr_assert_eq(p->linear.rest, ft_places_index(&f.places, FT_KIR_IMUL, f.row,
                                               ft_places_number(&f.places, 24)));
  close_fixture(&f);
}

Test(codegen_place, equal_places_have_one_address) {
  fixture f = open_fixture();
  cr_assert_eq(element(&f, 10, 24), element(&f, 10, 24));
  cr_assert_neq(element(&f, 10, 24), element(&f, 10, 25));
  close_fixture(&f);
}

Test(codegen_place, merging_dims_keeps_them_affine) {
  fixture f = open_fixture();
  ft_shape flat = SHAPE(240);
  const ft_place *p = ft_place_view(&f.places, element(&f, 10, 24), &flat);
  cr_assert_not(p->dim[0].is_lost);
  cr_assert_eq(p->dim[0].coef, 1);
  close_fixture(&f);
}

Test(codegen_place, splitting_the_inner_dim_loses_it_but_not_the_element) {
  fixture f = open_fixture();
  ft_shape split = SHAPE(10, 4, 6);
  const ft_place *p = ft_place_view(&f.places, element(&f, 10, 24), &split);
  cr_assert_not(p->dim[0].is_lost);
  cr_assert(p->dim[1].is_lost);
  cr_assert(p->dim[2].is_lost);
  cr_assert_not(p->linear.is_lost);
  close_fixture(&f);
}

Test(codegen_place, a_view_back_finds_what_a_split_lost) {
  fixture f = open_fixture();
  ft_shape split = SHAPE(10, 4, 6), other = SHAPE(2, 5, 24);
  const ft_place *p = ft_place_view(&f.places, element(&f, 10, 24), &split);
  const ft_place *q = ft_place_view(&f.places, p, &other);
  cr_assert_not(q->dim[2].is_lost);
  cr_assert_eq(q->dim[2].coef, 1);
  close_fixture(&f);
}

Test(codegen_place, an_inner_dim_that_divides_another_stays_affine_in_it) {
  fixture f = open_fixture();
  ft_shape regrouped = SHAPE(5, 48);  // of 10 x 24
  const ft_place *p = ft_place_view(&f.places, element(&f, 10, 24), &regrouped);
  cr_assert_not(p->dim[1].is_lost);
  cr_assert_eq(p->dim[1].coef, 1);
  cr_assert_eq(p->dim[0].rest, ft_places_index(&f.places, FT_KIR_IDIV, f.row,
                                               ft_places_number(&f.places, 2)));
  close_fixture(&f);
}

Test(codegen_place, a_broadcast_reads_the_one_element) {
  fixture f = open_fixture();
  ft_shape row = SHAPE(24), column = SHAPE(10, 1);
  const ft_place *p = ft_place_broadcast(&f.places, element(&f, 10, 24), &row);
  cr_assert_eq(p->linear.coef, 1);
  cr_assert_eq(p->linear.rest, 0);
  const ft_place *q = ft_place_broadcast(&f.places, element(&f, 10, 24), &column);
  cr_assert_eq(q->linear.coef, 0);
  cr_assert_eq(q->linear.rest, f.row);
  close_fixture(&f);
}

Test(codegen_place, values_without_elements_have_places) {
  fixture f = open_fixture();
  ft_shape empty = SHAPE(0, 3), other = SHAPE(3, 0);
  ft_affine dim[2] = {inner, inner};
  const ft_place *p = ft_place_make(&f.places, &empty, dim);
  cr_assert_not_null(ft_place_view(&f.places, p, &other));
  close_fixture(&f);
}
