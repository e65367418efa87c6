#include "daemon/contest.h"

#include <string.h>

#include "measure/statistics.h"

// ---- claims ---------------------------------------------------------------------------

static uint64_t *column(const ft_contest *c, uint32_t round) {
  return &c->time_ns[(size_t)round * c->count];
}

static double median_of(uint64_t *sample, uint32_t n) {
  return (double)ft_median_ns(sample, n).median_ns;
}

ft_status ft_contest_claim(const ft_contest *c, uint32_t a, uint32_t b, ft_arena *scratch,
                           ft_claim *out, ft_error *error) {
  *out = (ft_claim){.ratio = 1, .p = 1};
  uint64_t *x = FT_NEW_ARRAY(scratch, uint64_t, c->rounds);
  uint64_t *y = FT_NEW_ARRAY(scratch, uint64_t, c->rounds);
  FT_OOM_IF(!x || !y, error);
  uint32_t n = 0;
  for (uint32_t round = 0; round < c->rounds; round++) {
    const uint64_t *time = column(c, round);
    if (!time[a] || !time[b]) continue;
    x[n] = time[a];
    y[n++] = time[b];
  }
  out->rounds = n;
  if (n == 0 || a == b) return FT_OK;
  out->p = ft_sign_test(x, y, n);
  out->ratio = median_of(x, n) / median_of(y, n);
  out->beats = out->ratio < 1 - FT_CONTEST_GAIN && out->p < FT_CONTEST_P;
  return FT_OK;
}

ft_status ft_contest_time(const ft_contest *c, uint32_t contender, ft_arena *scratch,
                          ft_time *out, ft_error *error) {
  uint64_t *sample = FT_NEW_ARRAY(scratch, uint64_t, c->rounds);
  uint8_t *flags = FT_NEW_ARRAY(scratch, uint8_t, c->rounds);
  FT_OOM_IF(!sample || !flags, error);
  uint32_t n = 0;
  for (uint32_t round = 0; round < c->rounds; round++) {
    size_t at = (size_t)round * c->count + contender;
    if (!c->time_ns[at]) continue;
    sample[n] = c->time_ns[at];
    flags[n++] = c->flags[at];
  }
  *out = ft_median_unflagged(sample, flags, n, scratch);
  return FT_OK;
}

// ---- rounds ---------------------------------------------------------------------------

static uint32_t list_present(const ft_contest *c, uint32_t out[FT_CONTEST_MOST]) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->count; i++)
    if (!c->has_left[i]) out[count++] = i;
  return count;
}

static void keep_rounds(ft_contest *c, const uint32_t *contender,
                        const ft_compare_result *r) {
  for (uint32_t i = 0; i < r->rounds && c->rounds < FT_CONTEST_ROUNDS; i++, c->rounds++)
    for (uint32_t k = 0; k < r->programs; k++) {
      size_t from = (size_t)i * r->programs + k;
      size_t to = (size_t)c->rounds * c->count + contender[k];
      c->time_ns[to] = r->time_ns[from];
      c->flags[to] = r->flags[from];
    }
}

// What a round of those present takes: what their medians say.
static ft_status expect_round(const ft_contest *c, ft_arena *scratch, uint64_t *out_ns,
                              ft_error *error) {
  *out_ns = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    if (c->has_left[i]) continue;
    ft_time time;
    FT_TRY(ft_contest_time(c, i, scratch, &time, error));
    *out_ns += time.median_ns;
  }
  return FT_OK;
}

static uint32_t rounds_that_fit(const ft_contest *c, uint64_t left_ns,
                                uint64_t round_ns) {
  uint64_t rounds = round_ns ? left_ns / round_ns : FT_CONTEST_STAGE;
  if (rounds > FT_CONTEST_STAGE) rounds = FT_CONTEST_STAGE;
  if (rounds > FT_CONTEST_ROUNDS - c->rounds) rounds = FT_CONTEST_ROUNDS - c->rounds;
  return (uint32_t)rounds;
}

// Those that somebody beats leave. All claims are judged before anybody goes.
static ft_status eliminate(ft_contest *c, ft_arena *scratch, ft_error *error) {
  bool is_beaten[FT_CONTEST_MOST] = {false};
  for (uint32_t a = 0; a < c->count; a++)
    for (uint32_t b = 0; b < c->count; b++) {
      if (a == b || c->has_left[a] || c->has_left[b] || is_beaten[b]) continue;
      ft_claim claim;
      FT_TRY(ft_contest_claim(c, a, b, scratch, &claim, error));
      is_beaten[b] = claim.beats;
    }
  for (uint32_t i = 0; i < c->count; i++)
    if (i != c->base && i != c->incumbent && is_beaten[i]) c->has_left[i] = true;
  return FT_OK;
}

// The last that need not stay; false: there is none.
static bool drop_last(ft_contest *c) {
  for (uint32_t i = c->count; i-- > 0;) {
    if (c->has_left[i] || i == c->base || i == c->incumbent) continue;
    c->has_left[i] = true;
    return true;
  }
  return false;
}

// Many large plans may not fit into the worker together; fewer do.
static ft_status run_stage(const ft_contest_runner *runner, ft_contest *c,
                           uint32_t rounds, ft_arena *arena, ft_error *error) {
  uint32_t present[FT_CONTEST_MOST], count;
  ft_compare_result result;
  do {
    count = list_present(c, present);
    FT_TRY(runner->run(runner->ctx, present, count, rounds, arena, &result, error));
  } while (result.outcome == FT_OUTCOME_OUT_OF_MEMORY && count > 1 && drop_last(c));
  if (result.outcome != FT_OUTCOME_OK)
    FT_FAIL(error, FT_INTERNAL, "contender %u ended as %s in the comparison",
            result.culprit < count ? present[result.culprit] : 0,
            ft_outcome_text(result.outcome));
  if (result.rounds == 0) FT_FAIL(error, FT_INTERNAL, "a comparison without a round");
  keep_rounds(c, present, &result);
  return FT_OK;
}

ft_status ft_contest_run(const ft_contest_runner *runner, uint32_t count, uint32_t base,
                         uint32_t incumbent, uint64_t round_ns, ft_arena *arena,
                         ft_contest *out, ft_error *error) {
  FT_ASSERT(count > 0 && count <= FT_CONTEST_MOST && base < count);
  *out = (ft_contest){.count = count, .base = base, .incumbent = incumbent, .ended = ""};
  out->time_ns = FT_NEW_ARRAY(arena, uint64_t, FT_CONTEST_ROUNDS * (size_t)count);
  out->flags = FT_NEW_ARRAY(arena, uint8_t, FT_CONTEST_ROUNDS * (size_t)count);
  FT_OOM_IF(!out->time_ns || !out->flags, error);
  for (;;) {
    uint32_t rounds = rounds_that_fit(out, runner->left_ns(runner->ctx), round_ns);
    if (out->rounds == FT_CONTEST_ROUNDS) out->ended = "rounds";
    if (rounds == 0 && out->rounds > 0) break;
    FT_TRY(run_stage(runner, out, rounds ? rounds : 1, arena, error));
    FT_TRY(eliminate(out, arena, error));
    FT_TRY(expect_round(out, arena, &round_ns, error));
  }
  if (!*out->ended) out->ended = "time";
  return FT_OK;
}

// ---- the decision ---------------------------------------------------------------------

static ft_status find_challenger(const ft_contest *c, ft_arena *scratch, uint32_t *out,
                                 bool *out_is_open, ft_error *error) {
  uint64_t best_ns = 0;
  *out = c->base;
  *out_is_open = false;
  for (uint32_t i = 0; i < c->count; i++) {
    if (i == c->base || c->has_left[i]) continue;
    ft_claim claim;
    ft_time time;
    FT_TRY(ft_contest_claim(c, i, c->base, scratch, &claim, error));
    FT_TRY(ft_contest_time(c, i, scratch, &time, error));
    bool is_unsure = !claim.beats && claim.ratio < 1 - FT_CONTEST_GAIN;
    *out_is_open = *out_is_open || is_unsure;
    if (!claim.beats || (best_ns && time.median_ns >= best_ns)) continue;
    best_ns = time.median_ns;
    *out = i;
  }
  return FT_OK;
}

ft_status ft_contest_decide(const ft_contest *c, ft_arena *scratch,
                            ft_contest_verdict *out, ft_error *error) {
  *out = (ft_contest_verdict){.over_incumbent = {.ratio = 1, .p = 1}};
  FT_TRY(find_challenger(c, scratch, &out->challenger, &out->is_open, error));
  out->served = out->challenger;
  if (c->incumbent != FT_CONTEST_NOBODY && out->challenger != c->incumbent) {
    FT_TRY(ft_contest_claim(c, out->challenger, c->incumbent, scratch,
                            &out->over_incumbent, error));
    if (!out->over_incumbent.beats) {
      out->served = c->incumbent;
      out->is_open = out->is_open || out->over_incumbent.ratio < 1 - FT_CONTEST_GAIN;
    }
  }
  out->is_open = out->is_open && strcmp(c->ended, "time") == 0;
  return ft_contest_claim(c, out->served, c->base, scratch, &out->over_base, error);
}
