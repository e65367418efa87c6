// Random pointwise groups along two axes, with random knobs: what SIM runs of their turns
// agrees with the reference, and prints as CUDA too.
//   FT_SIMT_TURNS   how many;  FT_RANDOM_SEED  other cases
#include "codegen/simt_turn.h"
#include "core/rng.h"
#include "graphs.h"
#include "simming.h"

enum { BATCH = 40, MOST_VALUES = 16, TRIES = 400 };

typedef struct pool {
  sketch sketch;
  ft_rng rng;
  int64_t batch, near, far;
  uint32_t value[MOST_VALUES];  // of shape batch x near x far
  uint32_t count;
} pool;

static uint32_t below(pool *p, uint32_t n) {
  return (uint32_t)ft_rng_below(&p->rng, n);
}

// Odd ones, multiples of 4 and of 32, tiny ones.
static int64_t draw_extent(pool *p) {
  static const int64_t even[] = {8, 12, 32, 40, 64, 68, 96};
  if (below(p, 2)) return even[below(p, sizeof even / sizeof *even)];
  return 2 + below(p, 78);
}

static uint32_t turned(pool *p, uint32_t value) {
  return apply(&p->sketch, FT_OP_TRANSPOSE, 1, &value, &(ft_attr){.perm = {0, 2, 1}});
}

// A tensor over all axes, in one of the two layouts.
static uint32_t draw_tensor(pool *p) {
  if (below(p, 2)) return input(&p->sketch, FT_F32, SHAPE(p->batch, p->near, p->far));
  return turned(p, input(&p->sketch, FT_F32, SHAPE(p->batch, p->far, p->near)));
}

static uint32_t draw_operand(pool *p) {
  sketch *s = &p->sketch;
  switch (below(p, 7)) {
    case 0:
      return input(s, FT_F32, SHAPE(p->far));
    case 1:
      return input(s, FT_F32, SHAPE(p->near, 1));
    case 2:
      return input(s, FT_F32, SHAPE(p->batch, 1, 1));
    case 3:
      return scalar(s, FT_F32, 0.75);
    case 4:
      return draw_tensor(p);
    default:
      return p->value[below(p, p->count)];
  }
}

static void draw_step(pool *p) {
  static const ft_op ones[] = {FT_OP_TANH, FT_OP_NEG, FT_OP_ABS, FT_OP_RELU};
  static const ft_op twos[] = {FT_OP_ADD, FT_OP_SUB, FT_OP_MUL, FT_OP_MAX};
  uint32_t a = p->value[below(p, p->count)];
  uint32_t value = below(p, 3) ? two(&p->sketch, twos[below(p, 4)], a, draw_operand(p))
                               : one(&p->sketch, ones[below(p, 4)], a);
  p->value[p->count++] = value;
}

static bool is_plain(const pool *p, uint32_t value) {
  return p->sketch.graph->value[value].role == FT_ROLE_COMPUTED;
}

// The last value, and some that came before, in either layout.
static void draw_outputs(pool *p) {
  for (uint32_t i = p->count; i-- > 0;) {
    bool is_wanted = i + 1 == p->count || below(p, 4) == 0;
    uint32_t value = p->value[i];
    if (!is_wanted || !is_plain(p, value)) continue;
    if (below(p, 3) == 0) value = turned(p, one(&p->sketch, FT_OP_NEG, value));
    output(&p->sketch, value);
  }
}

static void draw_group(pool *p, uint64_t seed) {
  *p = (pool){.sketch = sketch_open(), .rng = ft_rng_seed(seed)};
  p->batch = 1 + below(p, 3);
  p->near = draw_extent(p);
  p->far = draw_extent(p);
  p->value[p->count++] = draw_tensor(p);
  p->value[p->count++] = draw_tensor(p);
  p->value[p->count] = two(&p->sketch, FT_OP_ADD, p->value[0], p->value[1]);
  p->count++;
  for (uint32_t steps = 1 + below(p, 6); steps > 0; steps--) draw_step(p);
  draw_outputs(p);
}

static uint32_t power(pool *p, uint32_t low, uint32_t steps) {
  return low << below(p, steps);
}

static bool draw_choice(pool *p, const ft_group_ir *ir, ft_simt_turn_choice *c) {
  for (int i = 0; i < TRIES; i++) {
    *c = (ft_simt_turn_choice){.threads = power(p, 32, 5),
                               .tile_near = power(p, 8, 5),
                               .tile_far = power(p, 8, 5),
                               .vector_near = power(p, 1, 3),
                               .vector_far = power(p, 1, 3),
                               .swizzles = below(p, 2),
                               .streams = below(p, 2)};
    if (!ft_simt_turn_refusal(ir, c, p->sketch.arena)) return true;
  }
  return false;
}

// False: all tensors came out along one axis.
static bool make(pool *p, uint64_t seed, uint32_t number, ft_workload *w, simmed *out) {
  ft_group_ir *ir;
  const char *reason, *text;
  ft_error error;
  ft_kir *kir;
  ft_simt_launch launch;
  ft_simt_turn_choice c;
  draw_group(p, seed);
  ft_arena *arena = p->sketch.arena;
  *w = finish(&p->sketch);
  cr_assert_eq(ft_group_ir_make(w, arena, &ir, &reason, &error), FT_OK, "%s", error.text);
  if (!ir || !draw_choice(p, ir, &c)) return false;
  cr_assert_eq(ft_simt_turn_build(ir, &c, arena, &kir, &error), FT_OK, "%s", error.text);
  *out = (simmed){
      .workload = w,
      .label = ft_arena_printf(
          arena, "case %llu, %lld x %lld x %lld, threads %u, tile %ux%u, vector %ux%u%s",
          (unsigned long long)seed, (long long)p->batch, (long long)p->near,
          (long long)p->far, c.threads, c.tile_near, c.tile_far, c.vector_near,
          c.vector_far, c.swizzles ? ", swizzles" : "")};
  simmed_expect(out, seed, arena);
  simmed_print(out, kir, number, arena);
  cr_assert_eq(ft_print_cuda(kir, "kernel", &text, &launch, &error), FT_OK, "%s: %s",
               out->label, error.text);
  cr_assert_eq(launch.grid, out->launch.grid);
  return true;
}

static uint32_t run_batch(uint64_t first) {
  pool *p = calloc(BATCH, sizeof *p);
  simmed c[BATCH];
  ft_workload w[BATCH];
  uint32_t count = 0;
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  for (uint32_t i = 0; i < BATCH; i++)
    count += make(&p[i], first + i, count, &w[i], &c[count]);
  cr_assert_gt(count, 0);
  const char *folder = cache_make(arena);
  void *library = simmed_build(c, count, folder, arena);
  for (uint32_t i = 0; i < count; i++) simmed_check(&c[i], library, arena);
  dlclose(library);
  cache_remove(folder, arena);
  ft_arena_destroy(arena);
  for (uint32_t i = 0; i < BATCH; i++) sketch_close(&p[i].sketch);
  free(p);
  return count;
}

static uint32_t setting(const char *name, uint32_t fallback) {
  const char *text = getenv(name);
  return text ? (uint32_t)strtoul(text, NULL, 10) : fallback;
}

Test(simt_turn, random_groups_along_two_axes_agree_with_the_reference, .timeout = 7200) {
  uint32_t cases = setting("FT_SIMT_TURNS", 160), turns = 0;
  uint64_t seed = setting("FT_RANDOM_SEED", 1);
  for (uint32_t at = 0; at < cases; at += BATCH) turns += run_batch(seed + at);
  fprintf(stderr, "%u turns\n", turns);
  cr_assert_gt(4 * turns, cases);
}
