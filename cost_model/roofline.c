#include "cost_model/roofline.h"

#include <math.h>
#include <string.h>

#include "core/log.h"
#include "cost_model/work.h"

// The best ever measured is not the best there is.
static const double HEADROOM = 1.02;
// A median that is less below its bound is noise: the ceiling is raised, but measuring
// all of them anew would tell nothing.
static const double TOLERANCE = 0.97;

enum { TERMS_MOST = 5, RAISES_MOST = 16 };

struct ft_roofline {
  const ft_allocator *allocator;
  ft_arena *scratch;  // reset by each question
  ft_roofline_hooks hooks;
  double launch_ns;  // in every time that a rate comes from; stays (invariant 2)
  uint32_t count;
  ft_ceiling ceiling[FT_CEILINGS_MOST];
};

// ---- making
// -----------------------------------------------------------------------------

static ft_ceiling *find(ft_roofline *r, ft_ceiling_kind kind, uint64_t bytes) {
  for (uint32_t i = 0; i < r->count; i++)
    if (r->ceiling[i].kind == kind && r->ceiling[i].bytes == bytes) return &r->ceiling[i];
  return NULL;
}

static bool is_sane(const ft_ceiling *c) {
  return c->kind < FT_CEILING_KINDS && isfinite(c->best) && c->best > 0;
}

static void add(ft_roofline *r, const ft_ceiling *c) {
  if (is_sane(c) && r->count < FT_CEILINGS_MOST && !find(r, c->kind, c->bytes))
    r->ceiling[r->count++] = *c;
}

static double launch_ns(const ft_roofline *r) {
  for (uint32_t i = 0; i < r->count; i++)
    if (r->ceiling[i].kind == FT_CEILING_LAUNCH) return r->ceiling[i].best / HEADROOM;
  return 0;
}

ft_status ft_roofline_create(const ft_ceiling *ceiling, uint32_t count,
                             const ft_roofline_hooks *hooks,
                             const ft_allocator *allocator, ft_roofline **out,
                             ft_error *error) {
  *out = NULL;
  ft_roofline *r = ft_allocate(allocator, sizeof *r, 0);
  FT_OOM_IF(!r, error);
  memset(r, 0, sizeof *r);
  r->allocator = allocator;
  r->scratch = ft_arena_create(allocator);
  if (!r->scratch) {
    ft_release(allocator, r);
    FT_FAIL(error, FT_OUT_OF_MEMORY, "out of memory in %s", __func__);
  }
  if (hooks) r->hooks = *hooks;
  for (uint32_t i = 0; i < count; i++) add(r, &ceiling[i]);
  r->launch_ns = launch_ns(r);
  *out = r;
  return FT_OK;
}

void ft_roofline_destroy(ft_roofline *r) {
  if (!r) return;
  ft_arena_destroy(r->scratch);
  ft_release(r->allocator, r);
}

const ft_ceiling *ft_roofline_ceilings(const ft_roofline *r, uint32_t *out_count) {
  *out_count = r->count;
  return r->ceiling;
}

// ---- rates
// ------------------------------------------------------------------------------

#define ONE(kind) (1u << FT_CEILING_##kind)
enum {
  READING = ONE(READ),
  WRITING = ONE(WRITE) | ONE(WRITE_STREAMING),
  MOVING = READING | WRITING | ONE(COPY) | ONE(COPY_STREAMING) | ONE(TRIAD) |
           ONE(TRIAD_STREAMING),
  MULTIPLYING = ONE(FMA),
  COMPUTING = ONE(FMA) | ONE(FMA_ADD),
};

// Per nanosecond. A launch was in the time that the rate comes from, and is counted
// apart.
static double rate_of(const ft_roofline *r, const ft_ceiling *c) {
  if (c->bytes == 0) return c->best * HEADROOM * 1e-9;
  double ns = (double)c->bytes * 1e9 / c->best;
  return (double)c->bytes / (ns - fmin(r->launch_ns, ns / 2)) * HEADROOM;
}

// The second-largest size measured that is not above |bytes|; 0 when there are not two.
static uint64_t floor_size(const ft_roofline *r, ft_ceiling_kind kind, double bytes) {
  uint64_t largest = 0, second = 0;
  for (uint32_t i = 0; i < r->count; i++) {
    const ft_ceiling *c = &r->ceiling[i];
    if (c->kind != kind || (double)c->bytes > bytes) continue;
    if (c->bytes > largest) {
      second = largest;
      largest = c->bytes;
    } else if (c->bytes > second) {
      second = c->bytes;
    }
  }
  return second;
}

// The row of |kinds| with the best rate for |bytes|; NULL: none was measured.
static uint32_t best_row(const ft_roofline *r, uint32_t kinds, double bytes,
                         double *out_rate) {
  uint32_t best = FT_NONE;
  *out_rate = 0;
  for (uint32_t i = 0; i < r->count; i++) {
    const ft_ceiling *c = &r->ceiling[i];
    if (!(kinds >> c->kind & 1) || c->bytes < floor_size(r, c->kind, bytes)) continue;
    double rate = rate_of(r, c);
    if (rate <= *out_rate) continue;
    *out_rate = rate;
    best = i;
  }
  return best;
}

// ---- the bound
// --------------------------------------------------------------------------

typedef struct term {
  double amount, ns;
  uint32_t row;  // the ceiling it is divided by; FT_NONE: nothing is known
} term;

static term term_of(const ft_roofline *r, uint32_t kinds, double amount, double bytes) {
  double rate;
  term t = {.amount = amount, .row = best_row(r, kinds, bytes, &rate)};
  if (t.row != FT_NONE) t.ns = amount / rate;
  return t;
}

typedef struct bound {
  double launch, ns;
  term term[TERMS_MOST];
  uint32_t binding;  // term
} bound;

static bound bound_of_work(const ft_roofline *r, const ft_work *w) {
  double launch = launch_ns(r), moved = w->read_bytes + w->write_bytes;
  bound b = {.launch = launch,
             .term = {term_of(r, READING, w->read_bytes, w->read_bytes),
                      term_of(r, WRITING, w->write_bytes, w->write_bytes),
                      term_of(r, MOVING, moved, moved),
                      term_of(r, MULTIPLYING, w->product_flops, 0),
                      term_of(r, COMPUTING, w->flops, 0)}};
  for (uint32_t i = 1; i < TERMS_MOST; i++)
    if (b.term[i].ns > b.term[b.binding].ns) b.binding = i;
  double most = b.term[b.binding].ns;
  b.ns = most > 0 ? launch + most : 0;
  if (!isfinite(b.ns)) b.ns = 0;
  return b;
}

static bound bound_of(ft_roofline *r, const ft_workload *workload) {
  ft_arena_reset(r->scratch);
  ft_work work = ft_work_of(workload, r->scratch);
  return bound_of_work(r, &work);
}

static double bound_ns(void *self, const ft_workload *workload) {
  return bound_of(self, workload).ns;
}

// ---- predictions
// ------------------------------------------------------------------------

// What kernels typically reach of the ceiling, by the class that is hardest on them.
// Contractions are plain loops.
static double reach_of(const ft_group *group) {
  static const double reach[] = {[FT_CLASS_E] = 0.80,
                                 [FT_CLASS_I] = 0.60,
                                 [FT_CLASS_R] = 0.65,
                                 [FT_CLASS_S] = 0.30,
                                 [FT_CLASS_M] = 0.15};
  double least = 1;
  for (uint32_t i = 0; i < group->primitive_count; i++) {
    ft_op op = group->graph->primitive[group->primitive[i]].op;
    least = fmin(least, reach[ft_op_describe(op)->class]);
  }
  return least;
}

static double predict_one(ft_roofline *r, const ft_workload *workload) {
  ft_work stated = {.read_bytes = (double)workload->read_bytes,
                    .write_bytes = (double)workload->write_bytes,
                    .flops = workload->flops};
  double ns = bound_of_work(r, &stated).ns / reach_of(&workload->group);
  ns = fmax(ns, bound_of(r, workload).ns);
  return ns >= 1 && isfinite(ns) ? ns : 1;
}

static ft_status predict(void *self, const ft_candidate *candidate, uint32_t count,
                         double *out_ns, ft_error *error) {
  (void)error;
  for (uint32_t i = 0; i < count; i++)
    out_ns[i] = predict_one(self, candidate[i].workload);
  return FT_OK;
}

// ---- contradictions
// ---------------------------------------------------------------------

// Of the sizes that are there: another one could take the place of a smaller, and bounds
// would rise.
static void take_better(ft_roofline *r, const ft_ceiling *fresh, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    ft_ceiling *old = find(r, fresh[i].kind, fresh[i].bytes);
    if (old && is_sane(&fresh[i]) &&
        ft_ceiling_is_better(old->kind, fresh[i].best, old->best))
      *old = fresh[i];
  }
}

// INTERRUPTED leaves; without a worker the ceilings are only raised.
static ft_status remeasure(ft_roofline *r, ft_roofline_alarm *alarm, ft_error *error) {
  ft_ceiling fresh[FT_CEILINGS_MOST];
  uint32_t count = 0;
  if (!r->hooks.remeasure) return FT_OK;
  ft_error ours;
  ft_status status = r->hooks.remeasure(r->hooks.self, fresh, &count, &ours);
  if (status == FT_INTERRUPTED) {
    if (error) *error = ours;
    return status;
  }
  if (status != FT_OK) {
    ft_log(FT_LOG_WARN, "ceilings were not measured anew: %s", ours.text);
    return FT_OK;
  }
  if (count > FT_CEILINGS_MOST) count = FT_CEILINGS_MOST;
  take_better(r, fresh, count);
  alarm->is_remeasured = count > 0;
  return FT_OK;
}

static void set_best(ft_ceiling *c, double best) {
  c->best = best;
  c->is_raised = true;
}

// Half of the median is left to the work, whatever a launch took so far.
static void raise_launch(ft_roofline *r, double median_ns) {
  ft_ceiling *launch = find(r, FT_CEILING_LAUNCH, 0);
  if (launch && launch->best / HEADROOM > median_ns / 2)
    set_best(launch, median_ns / 2 * HEADROOM);
}

// Per second, a hair more than what makes |t| as short as |ns|: the sum must not round
// up.
static double needed_rate(const term *t, double ns) {
  return t->amount / ns * 1e9 / HEADROOM * (1 + 1e-9);
}

// Invariant 3: each turn takes the binding term down to the median. The row that was
// raised first, or FT_NONE.
static uint32_t raise_until(ft_roofline *r, const ft_workload *workload,
                            double median_ns) {
  uint32_t first = FT_NONE;
  if (bound_of(r, workload).ns > median_ns) raise_launch(r, median_ns);
  for (int turn = 0; turn < RAISES_MOST; turn++) {
    bound b = bound_of(r, workload);
    if (b.ns <= median_ns) break;
    const term *t = &b.term[b.binding];
    set_best(&r->ceiling[t->row], needed_rate(t, median_ns - b.launch));
    if (first == FT_NONE) first = t->row;
  }
  return first;
}

static void report(const ft_roofline_alarm *a) {
  ft_log(FT_LOG_WARN,
         "bound alarm: a %s kernel took %llu ns, its bound was %.0f ns: the %s ceiling "
         "goes from %.4g to %.4g %s, %s",
         a->candidate->tactic, (unsigned long long)a->trial->time.median_ns, a->bound_ns,
         ft_ceiling_name(a->kind), a->before, a->after,
         ft_ceiling_unit_text(ft_ceiling_unit_of(a->kind)),
         a->is_explained    ? "as measured anew"
         : a->is_remeasured ? "raised beyond what was measured anew"
                            : "raised");
}

// Measures anew and raises what still binds; *out_row is the ceiling that gave way.
static ft_status give_way(ft_roofline *r, const ft_workload *workload,
                          ft_roofline_alarm *alarm, uint32_t *out_row, ft_error *error) {
  double median = (double)alarm->trial->time.median_ns;
  bound before = bound_of(r, workload);
  *out_row = before.term[before.binding].row;
  ft_status status = median < TOLERANCE * before.ns ? remeasure(r, alarm, error) : FT_OK;
  alarm->is_explained = alarm->is_remeasured && bound_of(r, workload).ns <= median;
  uint32_t raised = raise_until(r, workload, median);
  if (raised != FT_NONE) *out_row = raised;
  return status;
}

// |row|, or when that one stayed as it was, one that did not: the bound may have fallen
// by another size or kind.
static uint32_t changed_row(const ft_roofline *r, const ft_ceiling *old, uint32_t row) {
  for (uint32_t i = 0; i < r->count && r->ceiling[row].best == old[row].best; i++)
    if ((MOVING | COMPUTING) >> old[i].kind & 1 && r->ceiling[i].best != old[i].best)
      return i;
  return row;
}

static ft_status contradict(void *self, const ft_candidate *candidate,
                            const ft_trial *trial, double said_ns, ft_error *error) {
  ft_roofline *r = self;
  if (trial->outcome != FT_OUTCOME_OK || trial->time.median_ns == 0)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "a trial that ended %s contradicts nothing",
            ft_outcome_text(trial->outcome));
  if (bound_of(r, candidate->workload).ns <= (double)trial->time.median_ns) return FT_OK;
  ft_roofline_alarm alarm = {.candidate = candidate, .trial = trial, .bound_ns = said_ns};
  ft_ceiling old[FT_CEILINGS_MOST];
  memcpy(old, r->ceiling, sizeof old);
  uint32_t row;
  ft_status status = give_way(r, candidate->workload, &alarm, &row, error);
  row = changed_row(r, old, row);
  alarm.kind = old[row].kind;
  alarm.bytes = old[row].bytes;
  alarm.before = old[row].best;
  alarm.after = r->ceiling[row].best;
  report(&alarm);
  if (!r->hooks.keep) return status;
  ft_error ours;
  ft_status kept = r->hooks.keep(r->hooks.self, &alarm, r->ceiling, r->count, &ours);
  if (status == FT_OK && kept != FT_OK && error) *error = ours;
  return status == FT_OK ? kept : status;
}

ft_predictor ft_roofline_predictor(ft_roofline *roofline) {
  return (ft_predictor){.self = roofline,
                        .predict = predict,
                        .bound_ns = bound_ns,
                        .contradict = contradict};
}
