// The vector math of codegen/vector_math.inc against the C library in double precision.
#include <math.h>

#include "codegen/compile.h"
#include "codegen/prelude.h"
#include "running.h"

typedef struct function {
  const char *name;
  double (*truth)(double);
  double max_ulps, max_absolute;  // an error within either is fine
  double low, high;               // finite arguments are compared in this range
} function;

static double logistic(double x) {
  return 1 / (1 + exp(-x));
}

static const function functions[] = {
    {"exp", exp, 2, 0, -INFINITY, INFINITY},
    {"log", log, 3, 0, 0, INFINITY},
    {"tanh", tanh, 6, 3.7e-7, -INFINITY, INFINITY},
    {"erf", erf, 6, 3.7e-7, -INFINITY, INFINITY},
    {"sigmoid", logistic, 4, 0, -INFINITY, INFINITY},
    {"sin", sin, 3, 0, -INFINITY, INFINITY},
    {"cos", cos, 3, 0, -INFINITY, INFINITY},
    {"sqrt", sqrt, 0.51, 0, 0, INFINITY},
    {"floor", floor, 0, 0, -INFINITY, INFINITY},
    {"ceil", ceil, 0, 0, -INFINITY, INFINITY},
    {"round", rint, 0, 0, -INFINITY, INFINITY},
    {"abs", fabs, 0, 0, -INFINITY, INFINITY},
};

enum { FUNCTIONS = sizeof functions / sizeof *functions, LANES = 16, POINTS = 1 << 20 };

typedef struct bench {
  ft_arena *arena;
  ft_target target;
  const char *folder;
  kernel_entry *entry[FUNCTIONS];
  float *x, *y;
} bench;

static const char *body_of(const function *f, ft_arena *arena) {
  return ft_arena_printf(
      arena,
      "{\n  const float *x = buffers[0];\n  float *y = buffers[1];\n"
      "  for (int64_t i = 0; i < scalars[0]; i += %d)\n"
      "    ft_store_f32x%d(y + i, ft_%s_f32x%d(ft_load_f32x%d(x + i)));\n"
      "  return 0;\n}\n",
      LANES, LANES, f->name, LANES, LANES);
}

static void open_kernel(bench *b, int i, const ft_source *source,
                        const ft_object *object) {
  cr_assert_eq(object->outcome, FT_OUTCOME_OK, "%s: %s", functions[i].name, object->log);
  void *library = dlopen(object->path, RTLD_NOW | RTLD_LOCAL);
  cr_assert(library, "%s", dlerror());
  void *symbol = dlsym(library, source->entry);
  cr_assert(symbol);
  memcpy(&b->entry[i], &symbol, sizeof symbol);
}

static bench bench_open(uint32_t compiler) {
  bench b = {.arena = ft_arena_create(ft_allocator_system())};
  b.target = test_target(b.arena);
  if (compiler >= b.target.compiler_count) cr_skip_test("only %u compilers", compiler);
  b.folder = cache_make(b.arena);
  ft_source source[FUNCTIONS] = {0};
  ft_object object[FUNCTIONS];
  for (int i = 0; i < FUNCTIONS; i++) {
    source[i].body = body_of(&functions[i], b.arena);
    source[i].prelude = ft_prelude_for(source[i].body, b.arena);
    source[i].compiler = &b.target.compiler[compiler];
    cr_assert(ft_source_seal(&source[i], b.arena));
  }
  ft_compile_options options = {
      .folder = b.folder, .target = &b.target, .jobs = 1, .limit_ns = 60000000000ull};
  ft_error error;
  cr_assert_eq(ft_compile(&options, source, FUNCTIONS, b.arena, object, &error), FT_OK,
               "%s", error.text);
  for (int i = 0; i < FUNCTIONS; i++) open_kernel(&b, i, &source[i], &object[i]);
  b.x = FT_NEW_ARRAY(b.arena, float, POINTS);
  b.y = FT_NEW_ARRAY(b.arena, float, POINTS);
  return b;
}

static void bench_close(bench *b) {
  cache_remove(b->folder, b->arena);
  ft_arena_destroy(b->arena);
}

static void run(bench *b, int f, int64_t count) {
  void *buffers[2] = {b->x, b->y};
  int64_t padded = (count + LANES - 1) / LANES * LANES;
  cr_assert_eq(b->entry[f](buffers, &padded, 0, 0, NULL), 0);
}

// Distance in units of the last place of the true value (subnormals: of the smallest).
static double ulps(float got, double truth) {
  int exponent;
  frexp(truth, &exponent);
  double ulp = ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
  return fabs((double)got - truth) / ulp;
}

static bool is_bounded(const char *name) {
  static const char *const names[] = {"tanh", "erf", "sigmoid", "sin", "cos"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (!strcmp(names[i], name)) return true;
  }
  return false;
}

static void check_point(const function *f, float x, float y, double *worst) {
  if (is_bounded(f->name))
    cr_assert_not(fabsf(y) > 1, "%s(%a) = %a", f->name, (double)x, (double)y);
  double truth = f->truth((double)x);
  if (isnan(truth)) {
    cr_assert(isnan(y), "%s(%a) = %a, not NaN", f->name, (double)x, (double)y);
    return;
  }
  if ((double)x < f->low || (double)x > f->high) return;
  if (isinf((float)truth) || isinf(y)) {
    // Within an ulp of the border either is fine.
    bool is_near = fabs(truth) > (double)3.4028e38f && isfinite(truth);
    cr_assert(is_near || (float)truth == y, "%s(%a) = %a, not %a", f->name, (double)x,
              (double)y, truth);
    return;
  }
  // Below the normal numbers everything is right that is as small.
  double off = ulps(y, truth), error = fabs((double)y - truth);
  if (error <= 0x1p-126) return;
  cr_assert(off <= f->max_ulps || error <= f->max_absolute,
            "%s(%a) = %a, not %a: %.2f ulp", f->name, (double)x, (double)y, truth, off);
  if (off > *worst) *worst = off;
}

static void check_all(uint32_t compiler) {
  bench b = bench_open(compiler);
  for (int f = 0; f < FUNCTIONS; f++) {
    double worst = 0;
    for (uint32_t i = 0; i < POINTS; i++) {
      uint32_t bits = i * 4096u + (i * 2654435761u >> 20);  // every sign and exponent
      memcpy(&b.x[i], &bits, sizeof bits);
    }
    run(&b, f, POINTS);
    for (uint32_t i = 0; i < POINTS; i++)
      check_point(&functions[f], b.x[i], b.y[i], &worst);
    for (uint32_t i = 0; i < POINTS; i++)
      b.x[i] = (float)((double)i * (200.0 / POINTS) - 100);  // where the work is
    run(&b, f, POINTS);
    for (uint32_t i = 0; i < POINTS; i++)
      check_point(&functions[f], b.x[i], b.y[i], &worst);
    if (getenv("FT_SHOW_ULPS"))
      fprintf(stderr, "%s %.2f ulp\n", functions[f].name, worst);
  }
  bench_close(&b);
}

Test(codegen_math, is_within_its_error_bounds_over_all_floats) {
  check_all(0);
}

Test(codegen_math, is_within_its_error_bounds_with_the_second_compiler) {
  check_all(1);
}

typedef struct special {
  const char *name;
  float x, y;
} special;

Test(codegen_math, is_exact_on_special_values) {
  static const special specials[] = {
      {"exp", -INFINITY, 0},
      {"exp", INFINITY, INFINITY},
      {"exp", 0, 1},
      {"exp", -200, 0},
      {"exp", 89, INFINITY},
      {"log", 0, -INFINITY},
      {"log", -0.0f, -INFINITY},
      {"log", 1, 0},
      {"log", INFINITY, INFINITY},
      {"tanh", 0, 0},
      {"tanh", -0.0f, -0.0f},
      {"tanh", INFINITY, 1},
      {"tanh", -INFINITY, -1},
      {"erf", INFINITY, 1},
      {"erf", -INFINITY, -1},
      {"erf", -0.0f, -0.0f},
      {"sigmoid", INFINITY, 1},
      {"sigmoid", -INFINITY, 0},
      {"sigmoid", 0, 0.5f},
      {"sin", -0.0f, -0.0f},
      {"cos", 0, 1},
      {"sqrt", -0.0f, -0.0f},
      {"sqrt", INFINITY, INFINITY},
      {"floor", -0.5f, -1},
      {"floor", 8388609, 8388609},
      {"ceil", -0.5f, -0.0f},
      {"round", 2.5f, 2},
      {"round", -0.5f, -0.0f},
      {"round", 1e30f, 1e30f},
      {"floor", -INFINITY, -INFINITY},
  };
  static const special nans[] = {{"log", -1, 0},
                                 {"sqrt", -1, 0},
                                 {"sin", INFINITY, 0},
                                 {"cos", -INFINITY, 0},
                                 {"log", -INFINITY, 0}};
  bench b = bench_open(0);
  for (int f = 0; f < FUNCTIONS; f++) {
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
      if (strcmp(specials[i].name, functions[f].name)) continue;
      b.x[0] = specials[i].x;
      run(&b, f, 1);
      cr_assert(b.y[0] == specials[i].y && signbit(b.y[0]) == signbit(specials[i].y),
                "%s(%g) = %g, not %g", specials[i].name, (double)specials[i].x,
                (double)b.y[0], (double)specials[i].y);
    }
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
      if (strcmp(nans[i].name, functions[f].name)) continue;
      b.x[0] = nans[i].x;
      run(&b, f, 1);
      cr_assert(isnan(b.y[0]), "%s(%g) = %g", nans[i].name, (double)nans[i].x,
                (double)b.y[0]);
    }
    b.x[0] = NAN;
    run(&b, f, 1);
    cr_assert(isnan(b.y[0]), "%s(NaN) = %g", functions[f].name, (double)b.y[0]);
  }
  bench_close(&b);
}

// ---- pow: two operands --------------------------------------------------------------

enum { POW_EDGES = 26, POW_POINTS = 1 << 18 };

static const float pow_edges[POW_EDGES] = {
    0,         -0.0f, 1,     -1,   2,        -2,     3,      -3,      0.5f,
    -0.5f,     1.5f,  -1.5f, 4,    1e30f,    -1e30f, 1e-30f, -1e-30f, INFINITY,
    -INFINITY, NAN,   127,   -149, 16777216, 1e-40f, 10,     -7};

static void check_power(float a, float b, float got) {
  double truth = pow((double)a, (double)b);
  if (isnan(truth)) {
    cr_assert(isnan(got), "pow(%a, %a) = %a, not NaN", (double)a, (double)b, (double)got);
    return;
  }
  float nearest = (float)truth;
  bool is_exact = isinf(nearest) || nearest == 0;
  if (is_exact)
    cr_assert(got == nearest && signbit(got) == signbit(nearest),
              "pow(%a, %a) = %a, not %a", (double)a, (double)b, (double)got, truth);
  else
    cr_assert(ulps(got, truth) <= 1, "pow(%a, %a) = %a, not %a", (double)a, (double)b,
              (double)got, truth);
}

Test(codegen_math, pow_is_right_on_edges_and_within_an_ulp_elsewhere) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_target target = test_target(arena);
  const char *folder = cache_make(arena);
  ft_source source = {.compiler = &target.compiler[0]};
  source.body =
      "{\n  const float *a = buffers[0];\n  const float *b = buffers[1];\n"
      "  float *y = buffers[2];\n  for (int64_t i = 0; i < scalars[0]; i += 16)\n"
      "    ft_store_f32x16(y + i, ft_pow_f32x16(ft_load_f32x16(a + i), ft_load_f32x16(b "
      "+ i)));\n"
      "  return 0;\n}\n";
  source.prelude = ft_prelude_for(source.body, arena);
  cr_assert(ft_source_seal(&source, arena));
  ft_compile_options options = {
      .folder = folder, .target = &target, .jobs = 1, .limit_ns = 60000000000ull};
  ft_object object;
  cr_assert_eq(ft_compile(&options, &source, 1, arena, &object, NULL), FT_OK);
  cr_assert_eq(object.outcome, FT_OUTCOME_OK, "%s", object.log);
  void *library = dlopen(object.path, RTLD_NOW | RTLD_LOCAL);
  cr_assert(library, "%s", dlerror());
  void *symbol = dlsym(library, source.entry);
  kernel_entry *entry;
  memcpy(&entry, &symbol, sizeof entry);
  float *a = FT_NEW_ARRAY(arena, float, POW_POINTS),
        *b = FT_NEW_ARRAY(arena, float, POW_POINTS);
  float *y = FT_NEW_ARRAY(arena, float, POW_POINTS);
  ft_rng rng = ft_rng_seed(5);
  for (uint32_t i = 0; i < POW_POINTS; i++) {
    a[i] = pow_edges[i / POW_EDGES % POW_EDGES];
    b[i] = pow_edges[i % POW_EDGES];
    if (i < POW_EDGES * POW_EDGES) continue;
    uint32_t bits = (uint32_t)ft_rng_u64(&rng) >> 1;  // any positive float
    memcpy(&a[i], &bits, sizeof bits);
    b[i] = (float)(ft_rng_f64(&rng) * 8 - 4);
    if (i % 3 == 0) b[i] = rintf(b[i]) * 7, a[i] = -a[i];
  }
  int64_t count = POW_POINTS;
  cr_assert_eq(entry((void *[]){a, b, y}, &count, 0, 0, NULL), 0);
  for (uint32_t i = 0; i < POW_POINTS; i++) check_power(a[i], b[i], y[i]);
  cache_remove(folder, arena);
  ft_arena_destroy(arena);
}
