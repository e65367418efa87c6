#include "codegen/place.h"

#include <string.h>

// ---- indices ----------------------------------------------------------------------

static ft_kir_id known_index(const ft_places *places, ft_place_index key) {
  for (size_t i = 0; i < places->index_count; i++) {
    const ft_place_index *e = &places->index[i];
    if (e->op == key.op && e->a == key.a && e->b == key.b && e->number == key.number)
      return e->id;
  }
  return 0;
}

static ft_kir_id remember(ft_places *places, ft_place_index key) {
  if (FT_GROW(places->kir->arena, &places->index, places->index_count,
              &places->index_capacity))
    places->kir->failed = true;
  else
    places->index[places->index_count++] = key;
  return key.id;
}

ft_kir_id ft_places_number(ft_places *places, int64_t number) {
  ft_place_index key = {.op = FT_KIR_NUMBER, .number = number};
  key.id = known_index(places, key);
  if (key.id) return key.id;
  key.id = ft_kir_number(places->kir, number);
  return remember(places, key);
}

ft_kir_id ft_places_index(ft_places *places, ft_kir_op op, ft_kir_id a, ft_kir_id b) {
  ft_place_index key = {.op = op, .a = a, .b = b};
  key.id = known_index(places, key);
  if (key.id) return key.id;
  int64_t number;
  key.id = ft_kir_index(places->kir, op, a, b);
  if (ft_kir_is_number(places->kir, key.id, &number))
    key.id = ft_places_number(places, number);
  return remember(places, key);
}

// ---- affine indices ---------------------------------------------------------------

ft_affine ft_affine_number(int64_t number) {
  return (ft_affine){.offset = number};
}

ft_affine ft_affine_of(ft_places *places, ft_kir_id index) {
  int64_t number;
  if (ft_kir_is_number(places->kir, index, &number)) return ft_affine_number(number);
  return (ft_affine){.rest = index};
}

ft_affine ft_affine_add(ft_places *places, ft_affine a, ft_affine b) {
  ft_affine sum = {.coef = a.coef + b.coef,
                   .offset = a.offset + b.offset,
                   .rest = a.rest ? a.rest : b.rest,
                   .is_lost = a.is_lost || b.is_lost};
  if (a.rest && b.rest) sum.rest = ft_places_index(places, FT_KIR_IADD, a.rest, b.rest);
  return sum;
}

ft_affine ft_affine_scale(ft_places *places, ft_affine a, int64_t factor) {
  if (!factor) return ft_affine_number(0);
  a.coef *= factor;
  a.offset *= factor;
  if (a.rest)
    a.rest =
        ft_places_index(places, FT_KIR_IMUL, a.rest, ft_places_number(places, factor));
  return a;
}

ft_kir_id ft_affine_index(ft_places *places, ft_affine a, ft_kir_id inner) {
  ft_kir_id sum = ft_places_number(places, 0);
  if (a.coef)
    sum = ft_places_index(places, FT_KIR_IMUL, inner, ft_places_number(places, a.coef));
  if (a.rest) sum = ft_places_index(places, FT_KIR_IADD, sum, a.rest);
  if (a.offset)
    sum = ft_places_index(places, FT_KIR_IADD, sum, ft_places_number(places, a.offset));
  return sum;
}

static ft_affine apart(ft_places *places, ft_kir_op op, ft_affine a, int64_t divisor) {
  if (a.is_lost || a.coef) return (ft_affine){.is_lost = true};
  ft_kir_id index = ft_affine_index(places, a, 0);
  return ft_affine_of(
      places, ft_places_index(places, op, index, ft_places_number(places, divisor)));
}

ft_affine ft_affine_divide(ft_places *places, ft_affine a, int64_t divisor) {
  return divisor == 1 ? a : apart(places, FT_KIR_IDIV, a, divisor);
}

ft_affine ft_affine_modulo(ft_places *places, ft_affine a, int64_t divisor) {
  return divisor == 1 ? ft_affine_number(0) : apart(places, FT_KIR_IMOD, a, divisor);
}

// ---- places -------------------------------------------------------------------------

static bool is_affine_equal(const ft_affine *a, const ft_affine *b) {
  if (a->is_lost || b->is_lost) return a->is_lost == b->is_lost;
  return a->coef == b->coef && a->offset == b->offset && a->rest == b->rest;
}

static bool is_place_equal(const ft_place *a, const ft_place *b) {
  if (!ft_shape_equal(&a->shape, &b->shape) || !is_affine_equal(&a->linear, &b->linear))
    return false;
  for (uint8_t i = 0; i < a->shape.rank; i++) {
    if (!is_affine_equal(&a->dim[i], &b->dim[i])) return false;
  }
  return true;
}

static const ft_place *intern(ft_places *places, const ft_place *key) {
  for (ft_place *p = places->first; p; p = p->next) {
    if (is_place_equal(p, key)) return p;
  }
  ft_place *place = FT_NEW(places->kir->arena, ft_place);
  if (!place) {
    places->kir->failed = true;
    return NULL;
  }
  *place = *key;
  place->memo = NULL;
  place->next = places->first;
  return places->first = place;
}

const ft_place *ft_place_make(ft_places *places, const ft_shape *shape,
                              const ft_affine *dim) {
  ft_place key = {.shape = *shape, .linear = ft_affine_number(0)};
  int64_t stride[FT_MAX_RANK];
  ft_shape_strides(shape, stride);
  for (uint8_t i = 0; i < shape->rank; i++) {
    key.dim[i] = shape->dim[i] > 1 ? dim[i] : ft_affine_number(0);
    key.linear =
        ft_affine_add(places, key.linear, ft_affine_scale(places, key.dim[i], stride[i]));
  }
  return intern(places, &key);
}

// Two shapes walked from the inside; |have| of |given| and |want| of |out| are left.
typedef struct seam {
  ft_places *places;
  const ft_place *from;
  const ft_shape *to;
  int have, want;
  ft_affine given;
  int64_t given_extent, out_extent, out_step;
  ft_affine *out;
} seam;

static void take_given(seam *s, bool joins) {
  ft_affine next = s->from->dim[--s->have];
  int64_t extent = s->from->shape.dim[s->have];
  if (joins)
    s->given = ft_affine_add(s->places, s->given,
                             ft_affine_scale(s->places, next, s->given_extent));
  else
    s->given = next;
  s->given_extent = joins ? s->given_extent * extent : extent;
}

static void put_out(seam *s, ft_affine piece, int64_t extent) {
  ft_affine *out = &s->out[s->want];
  *out = ft_affine_add(s->places, *out, ft_affine_scale(s->places, piece, s->out_step));
  s->out_step *= extent;
  s->out_extent /= extent;
}

// The dims of |from| as dims of |to|: both have the same elements, at least one.
static void reshape(seam *s) {
  s->have = s->from->shape.rank;
  s->want = s->to->rank;
  s->given_extent = s->out_extent = 1;
  for (;;) {
    while (s->given_extent == 1 && s->have > 0) take_given(s, false);
    while (s->out_extent == 1 && s->want > 0) {
      s->out_extent = s->to->dim[--s->want];
      s->out[s->want] = ft_affine_number(0);
      s->out_step = 1;
    }
    if (s->given_extent == 1 || s->out_extent == 1) return;
    if (s->out_extent % s->given_extent == 0) {
      put_out(s, s->given, s->given_extent);
      s->given_extent = 1;
    } else if (s->given_extent % s->out_extent == 0) {
      int64_t extent = s->out_extent;
      put_out(s, ft_affine_modulo(s->places, s->given, extent), extent);
      s->given = ft_affine_divide(s->places, s->given, extent);
      s->given_extent /= extent;
    } else {
      take_given(s, true);
    }
  }
}

static uint32_t lost_dims(const ft_place *place) {
  uint32_t lost = 0;
  for (uint8_t i = 0; i < place->shape.rank; i++) lost += place->dim[i].is_lost;
  return lost;
}

static ft_place viewed(ft_places *places, const ft_place *from, const ft_shape *shape) {
  ft_place key = {.shape = *shape, .linear = from->linear};
  key.origin = from->origin ? from->origin : from;
  if (ft_shape_elements(shape))
    reshape(&(seam){.places = places, .from = from, .to = shape, .out = key.dim});
  return key;
}

const ft_place *ft_place_view(ft_places *places, const ft_place *place,
                              const ft_shape *shape) {
  if (!place || ft_shape_equal(&place->shape, shape)) return place;
  ft_place key = viewed(places, place, shape);
  if (lost_dims(&key) && place->origin) {
    ft_place other = viewed(places, place->origin, shape);
    if (lost_dims(&other) < lost_dims(&key)) key = other;
  }
  return intern(places, &key);
}

const ft_place *ft_place_broadcast(ft_places *places, const ft_place *place,
                                   const ft_shape *shape) {
  if (!place || ft_shape_equal(&place->shape, shape)) return place;
  return ft_place_make(places, shape, place->dim + (place->shape.rank - shape->rank));
}
