// The blocked contractions against the term-by-term ones, bit for bit, on odd sizes that
// cross every block.
#include <math.h>

#include "core/rng.h"
#include "graph/dense.h"
#include "tests/support/graphs.h"

static ft_arena *arena;
static ft_error error;
static ft_rng rng;
static void start(void) {
  arena = ft_arena_create(ft_allocator_system());
  rng = ft_rng_seed(1);
}
static void stop(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_contract, .init = start, .fini = stop);

// Numbers in [-1, 1) as a plane: a tensor when exact, else columns with scales. With
// |spice|, a few that are huge, infinite, NaN, or of infinite scale.
static ft_plane random_plane(ft_shape shape, bool exact, bool spice) {
  static const double odd[] = {NAN, INFINITY, -INFINITY, 3e38, -3e38, 0, -0.0};
  int64_t elements = ft_shape_elements(&shape);
  ft_tensor tensor;
  void *data;
  ft_plane plane;
  if (exact) {
    cr_assert_eq(ft_tensor_alloc(FT_F32, &shape, arena, &tensor, &data, &error), FT_OK);
    plane = ft_plane_from_tensor(&tensor);
  } else {
    cr_assert_eq(ft_plane_create(FT_F32, elements, &plane, &error), FT_OK);
  }
  for (int64_t i = 0; i < elements; i++) {
    double x = (double)(float)(2 * ft_rng_f64(&rng) - 1), s = 3 * ft_rng_f64(&rng);
    if (spice && ft_rng_below(&rng, 40) == 0) x = odd[ft_rng_below(&rng, 7)];
    if (spice && ft_rng_below(&rng, 200) == 0) s = INFINITY;
    if (!exact)
      plane.value[i] = x, plane.scale[i] = isfinite(x) ? s * fabs(x) : 0;
    else
      ft_element_set_f64(FT_F32, data, i, x);
    if (!exact && isinf(s)) plane.scale[i] = INFINITY;
  }
  return plane;
}

static void compare(ft_op op, const ft_attr *attr, ft_shape a, ft_shape b, ft_shape out,
                    unsigned exact, bool spice) {
  ft_operand operand[2] = {{FT_F32, a}, {FT_F32, b}};
  ft_step step = {.op = op,
                  .name = "y",
                  .attr = attr,
                  .count = 2,
                  .operand = operand,
                  .dtype = FT_F32,
                  .shape = out};
  ft_plane in[2] = {random_plane(a, exact & 1, spice), random_plane(b, exact & 2, spice)};
  const ft_plane *const both[2] = {&in[0], &in[1]};
  ft_plane blocked, plain;
  int64_t elements = ft_shape_elements(&out);
  cr_assert_eq(ft_plane_create(FT_F32, elements, &blocked, &error), FT_OK);
  cr_assert_eq(ft_plane_create(FT_F32, elements, &plain, &error), FT_OK);
  cr_assert_eq(ft_dense_contract(&step, both, &blocked, &error), FT_OK);
  cr_assert_eq(ft_dense_rows(&step, both, &plain, &error), FT_OK);
  for (int64_t i = 0; i < elements; i++) {
    bool same_value = blocked.value[i] == plain.value[i] ||
                      (isnan(blocked.value[i]) && isnan(plain.value[i]));
    cr_assert(same_value, "element %lld: %.17g and %.17g", (long long)i, blocked.value[i],
              plain.value[i]);
    cr_assert(blocked.scale[i] == plain.scale[i], "element %lld: scales %.17g and %.17g",
              (long long)i, blocked.scale[i], plain.scale[i]);
  }
  ft_plane *planes[4] = {&in[0], &in[1], &blocked, &plain};
  for (int i = 0; i < 4; i++) ft_plane_release(planes[i]);
}

static void compare_matmul(int64_t m, int64_t k, int64_t n, unsigned exact, bool spice) {
  compare(FT_OP_MATMUL, &(ft_attr){0}, SHAPE(m, k), SHAPE(k, n), SHAPE(m, n), exact,
          spice);
}

Test(graph_contract, blocked_matmuls_have_the_bits_of_plain_ones) {
  static const int64_t sizes[][3] = {{1, 1, 1},     {1, 300, 7},  {67, 5, 9},
                                     {3, 129, 521}, {65, 257, 8}, {4, 128, 8},
                                     {66, 131, 13}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (unsigned exact = 0; exact < 4; exact++)
      compare_matmul(sizes[i][0], sizes[i][1], sizes[i][2], exact, false);
}

Test(graph_contract, blocked_matmuls_agree_on_nan_infinity_and_overflow) {
  for (unsigned exact = 0; exact < 4; exact++) {
    compare_matmul(9, 5, 17, exact, true);
    compare_matmul(33, 40, 11, exact, true);
    compare_matmul(5, 140, 9, exact, true);
  }
}

Test(graph_contract, batches_with_and_without_broadcasting_agree) {
  const ft_attr none = {0};
  compare(FT_OP_MATMUL, &none, SHAPE(2, 3, 5, 7), SHAPE(7, 4), SHAPE(2, 3, 5, 4), 2,
          false);
  compare(FT_OP_MATMUL, &none, SHAPE(2, 1, 5, 7), SHAPE(3, 7, 4), SHAPE(2, 3, 5, 4), 0,
          false);
  compare(FT_OP_MATMUL, &none, SHAPE(5, 7), SHAPE(3, 7, 4), SHAPE(3, 5, 4), 1, false);
  compare(FT_OP_MATMUL, &none, SHAPE(5, 7), SHAPE(1, 7, 4), SHAPE(1, 5, 4), 1, false);
}

static void random_conv(bool spice) {
  int spatial = (int)ft_rng_below(&rng, 4);
  int64_t groups = 1 + (int64_t)ft_rng_below(&rng, 3),
          c = 1 + (int64_t)ft_rng_below(&rng, 9);
  ft_attr attr = {.groups = groups};
  ft_shape x = {.rank = (uint8_t)(spatial + 2), .dim = {2, groups * c}}, w = x, y = x;
  w.dim[0] = y.dim[1] = groups * (1 + (int64_t)ft_rng_below(&rng, 9));
  w.dim[1] = c;
  for (int i = 0; i < spatial; i++) {
    x.dim[i + 2] = 1 + (int64_t)ft_rng_below(&rng, spatial == 1 ? 700 : 13);
    w.dim[i + 2] = 1 + (int64_t)ft_rng_below(&rng, 3);
    attr.stride[i] = 1 + (int64_t)ft_rng_below(&rng, 3);
    attr.dilation[i] = 1 + (int64_t)ft_rng_below(&rng, 3);
    attr.start[i] = (int64_t)ft_rng_below(&rng, 4);
    y.dim[i + 2] = x.dim[i + 2] / attr.stride[i] + (int64_t)ft_rng_below(&rng, 3);
  }
  attr.shape = y;
  compare(FT_OP_CONV, &attr, x, w, y, (unsigned)ft_rng_below(&rng, 4), spice);
}

Test(graph_contract, blocked_convs_have_the_bits_of_plain_ones) {
  for (int i = 0; i < 40; i++) random_conv(false);
}

Test(graph_contract, blocked_convs_agree_on_nan_infinity_and_overflow) {
  for (int i = 0; i < 25; i++) random_conv(true);
}

// The plain sum against one written down here.
Test(graph_contract, a_blocked_matmul_is_the_sum_of_its_products) {
  enum { M = 6, K = 150, N = 19 };
  ft_plane a = random_plane(SHAPE(M, K), false, false);
  ft_plane b = random_plane(SHAPE(K, N), false, false), out;
  ft_operand operand[2] = {{FT_F32, SHAPE(M, K)}, {FT_F32, SHAPE(K, N)}};
  const ft_attr none = {0};
  ft_step step = {FT_OP_MATMUL, "y", &none, 2, operand, FT_F32, SHAPE(M, N)};
  const ft_plane *const in[2] = {&a, &b};
  cr_assert_eq(ft_plane_create(FT_F32, M * N, &out, &error), FT_OK);
  cr_assert_eq(ft_dense_contract(&step, in, &out, &error), FT_OK);
  for (int i = 0; i < M * N; i++) {
    double value = 0, magnitude = 0, carried = 0;
    for (int k = 0; k < K; k++) {
      int p = i / N * K + k, q = k * N + i % N;
      value += a.value[p] * b.value[q];
      magnitude += fabs(a.value[p] * b.value[q]);
      carried += fabs(a.value[p]) * b.scale[q] + a.scale[p] * fabs(b.value[q]);
    }
    double drift = sqrt(K) / 4, scale = carried + magnitude + drift * magnitude;
    cr_assert_float_eq(out.value[i], value, 1e-12);
    cr_assert_float_eq(out.scale[i], scale, 1e-4 * scale, "%g, not %g", out.scale[i],
                       scale);
  }
  ft_plane_release(&a);
  ft_plane_release(&b);
  ft_plane_release(&out);
}
