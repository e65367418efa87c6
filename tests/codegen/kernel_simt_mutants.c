// SIM tells a wrong kernel from a right one: kernels with one thing changed, each caught.
//   FT_SIMT_VICTIM=conv  only drawings with this in their name
//   FT_SIMT_MUTANTS=6    of a victim and a kind of change (2), spread over its places;
//                        all: each place (scripts/soak.sh)
#include "simt_mutators.h"
#include "simt_victims.h"

enum { MOST_MUTANTS = 8192, USUAL_MUTANTS = 2, PER_UNIT = 64, FUEL = 1 << 20 };

static uint32_t drawing_of(const char *name) {
  for (uint32_t d = 0; d < DRAWINGS; d++)
    if (!strcmp(drawings[d].name, name)) return d;
  cr_assert_fail("no drawing %s", name);
  return 0;
}

static bool is_printed(ft_kir *kir) {
  const char *text;
  ft_simt_launch launch;
  ft_error error;
  return ft_print_sim(kir, "mutant", &text, &launch, &error) == FT_OK;
}

typedef struct mutants {
  bench bench;
  uint32_t count, per_kind[MUTATORS];
  simmed *list;
} mutants;

// |v| changed by mutator |k| at |site|; |out_seen|: places that there are before it, all
// when there are no more. NULL: no such place, or SIM never sees it.
static ft_kir *changed(const mutants *m, const victim *v, uint32_t k, uint32_t site,
                       const char **out_label, uint32_t *out_seen) {
  ft_kir *kir = build_one(&m->bench, drawing_of(v->drawing), v->choice, out_label);
  cr_assert(kir, "%s is refused", *out_label);
  mutation change = {.kir = kir, .site = site};
  bool is_changed = walk(&change, &kir->body, mutators[k].try);
  *out_seen = change.seen;
  return is_changed && is_printed(kir) ? kir : NULL;
}

// Appends the mutants of |v| by mutator |k|, |most| of them.
static void mutate(mutants *m, const victim *v, uint32_t k, uint32_t most) {
  uint32_t d = drawing_of(v->drawing), all, seen;
  ft_arena *arena = m->bench.sketch[d].arena;
  const char *label;
  changed(m, v, k, UINT32_MAX, &label, &all);
  uint32_t step = (all + most - 1) / most;
  for (uint32_t site = 0; site < all; site += step) {
    ft_kir *kir = changed(m, v, k, site, &label, &seen);
    if (!kir) continue;
    cr_assert_lt(m->count, MOST_MUTANTS, "too many mutants");
    simmed *c = &m->list[m->count];
    *c = (simmed){
        .workload = &m->bench.workload[d],
        .fuel = FUEL,
        .label = ft_arena_printf(arena, "%s: %s, %u", label, mutators[k].name, site)};
    simmed_print(c, kir, m->count, arena);
    m->count++;
    m->per_kind[k]++;
  }
}

static bool is_wanted(const victim *v) {
  const char *only = getenv("FT_SIMT_VICTIM");
  return !only || strstr(v->drawing, only);
}

static void add_family(mutants *m, uint32_t f, uint32_t most) {
  for (uint32_t v = 0; v < families[f].count; v++)
    for (uint32_t k = 0; k < MUTATORS && is_wanted(&families[f].victim[v]); k++)
      mutate(m, &families[f].victim[v], k, most);
}

static void open_mutants(mutants *m) {
  *m = (mutants){.list = calloc(MOST_MUTANTS, sizeof(simmed))};
  cr_assert(m->list);
  open_bench(&m->bench);
}

static void close_mutants(mutants *m) {
  close_bench(&m->bench);
  free(m->list);
}

// The drawing's inputs and reference, which its mutants share.
static void expect_all(mutants *m) {
  for (uint32_t i = 0; i < m->count; i++) {
    simmed *c = &m->list[i];
    uint32_t d = (uint32_t)(c->workload - m->bench.workload);
    if (i > 0 && c[-1].workload == c->workload)
      c->input = c[-1].input, c->reference = c[-1].reference;
    else
      simmed_expect(c, d + 1, m->bench.sketch[d].arena);
  }
}

static bool is_harmless(const char *label) {
  for (size_t i = 0; i < HARMLESS; i++)
    if (!strcmp(harmless[i], label)) return true;
  return false;
}

// How many were missed, or are caught though they are listed as harmless.
static uint32_t count_missed(const mutants *m) {
  uint32_t missed = 0;
  ft_arena *arena = m->bench.sketch[0].arena;
  const char *folder = cache_make(arena);
  for (uint32_t at = 0; at < m->count; at += PER_UNIT) {
    uint32_t n = m->count - at < PER_UNIT ? m->count - at : PER_UNIT;
    void *library = simmed_build(m->list + at, n, folder, arena);
    for (uint32_t i = at; i < at + n; i++) {
      bool is_caught = simmed_wrong(&m->list[i], library, arena) != NULL;
      if (is_caught != is_harmless(m->list[i].label)) continue;
      missed++;
      fprintf(stderr, "%s: %s\n", is_caught ? "not harmless" : "missed",
              m->list[i].label);
    }
  }
  cache_remove(folder, arena);
  return missed;
}

static uint32_t most_mutants(void) {
  const char *most = getenv("FT_SIMT_MUTANTS");
  if (!most) return USUAL_MUTANTS;
  return strcmp(most, "all") ? (uint32_t)strtoul(most, NULL, 10) : MOST_MUTANTS;
}

static void check_family(family_name f) {
  mutants m;
  open_mutants(&m);
  add_family(&m, f, most_mutants());
  expect_all(&m);
  cr_assert_eq(count_missed(&m), 0);
  fprintf(stderr, "%u mutants\n", m.count);
  close_mutants(&m);
}

Test(simt, every_mutant_of_a_nest_is_caught, .timeout = 1200) {
  check_family(NEST_FAMILY);
}
Test(simt, every_mutant_of_a_nest_that_keeps_or_splits_is_caught, .timeout = 1200) {
  check_family(KEPT_FAMILY);
}
Test(simt, every_mutant_of_a_product_is_caught, .timeout = 1200) {
  check_family(PRODUCT_FAMILY);
}
Test(simt, every_mutant_of_a_convolution_or_window_is_caught, .timeout = 1200) {
  check_family(WINDOW_FAMILY);
}
Test(simt, every_mutant_of_a_turn_is_caught, .timeout = 1200) {
  check_family(TURN_FAMILY);
}
Test(simt, every_mutant_of_joined_kernels_is_caught, .timeout = 1200) {
  check_family(BLOCK_FAMILY);
}
Test(simt, every_mutant_of_kernels_by_hand_is_caught, .timeout = 1200) {
  check_family(HAND_FAMILY);
}

Test(simt, every_kind_of_mutation_has_mutants_and_what_is_harmless_is_one) {
  mutants m;
  if (getenv("FT_SIMT_VICTIM")) cr_skip_test("some victims only");
  open_mutants(&m);
  for (uint32_t f = 0; f < FAMILIES; f++) add_family(&m, f, MOST_MUTANTS);
  for (uint32_t k = 0; k < MUTATORS; k++)
    cr_assert_gt(m.per_kind[k], 0, "%s", mutators[k].name);
  for (uint32_t i = 0; i < HARMLESS; i++) {
    uint32_t at = 0;
    while (at < m.count && strcmp(m.list[at].label, harmless[i])) at++;
    cr_assert_lt(at, m.count, "no mutant %s", harmless[i]);
  }
  close_mutants(&m);
}
