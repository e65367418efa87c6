#include "measure/ceilings.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "measure/streams.h"

enum { VARIANTS = 3, ROUNDS_MOST = 64, PART_UNIT = 256, PAGE_BYTES = 4096 };
enum { ARITHMETIC_ROUNDS = 50000 };  // a fraction of a millisecond
enum { LAUNCHES = 4 };  // in a row: the code of the first may have left the caches
#define MIB ((uint64_t)1 << 20)

// What one row is measured by. |operands|: into how many parts |bytes| falls.
typedef struct item {
  ft_ceiling_kind kind;
  uint64_t bytes;
  bool is_cold;
  uint32_t operands;
  ft_stream stream[VARIANTS];
  ft_arithmetic arithmetic;
  double flops;      // of one of its rounds
  uint32_t threads;  // of a launch
  double *sample;    // [ROUNDS_MOST]
  uint32_t samples;
} item;

typedef struct ceilings {
  ft_timing *timing;
  const ft_ceiling_plan *plan;
  ft_arena *arena;
  ft_guarded region;
  uint32_t items;
  item item[FT_CEILINGS_MOST];
} ceilings;

// ---- what there is to measure ---------------------------------------------------------

static void copy_anyhow(void *to, const void *a, const void *b, uint64_t bytes) {
  (void)b;
  memcpy(to, a, bytes);
}

static void write_anyhow(void *to, const void *a, const void *b, uint64_t bytes) {
  (void)a, (void)b;
  memset(to, 3, bytes);
}

static item *add(ceilings *c, ft_ceiling_kind kind, uint64_t bytes) {
  FT_ASSERT(c->items < FT_CEILINGS_MOST);
  item *it = &c->item[c->items++];
  *it = (item){.kind = kind, .bytes = bytes};
  return it;
}

static void add_stream(ceilings *c, ft_ceiling_kind kind, uint64_t bytes, bool is_cold,
                       uint32_t operands, const ft_stream stream[VARIANTS]) {
  item *it = add(c, kind, bytes);
  it->is_cold = is_cold;
  it->operands = operands;
  memcpy(it->stream, stream, sizeof it->stream);
}

static void add_cold(ceilings *c) {
  const ft_streams *s = ft_streams_here();
  const struct {
    ft_ceiling_kind kind;
    uint32_t operands;
    ft_stream stream[VARIANTS];
  } patterns[] = {
      {FT_CEILING_READ, 1, {s->read, s->read_four, s->read_ahead}},
      {FT_CEILING_WRITE, 1, {s->write, write_anyhow, s->write}},
      {FT_CEILING_WRITE_STREAMING,
       1,
       {s->write_streaming, s->write_streaming, s->write_streaming}},
      {FT_CEILING_COPY, 2, {s->copy, s->copy_ahead, copy_anyhow}},
      {FT_CEILING_COPY_STREAMING,
       2,
       {s->copy_streaming, s->copy_streaming, s->copy_streaming}},
      {FT_CEILING_TRIAD, 3, {s->triad, s->triad_ahead, s->triad}},
      {FT_CEILING_TRIAD_STREAMING,
       3,
       {s->triad_streaming, s->triad_streaming, s->triad_streaming}},
  };
  const uint64_t sizes[] = {MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB};
  uint64_t largest = c->plan->largest_bytes;
  for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] < largest; i++)
      add_stream(c, patterns[p].kind, sizes[i], true, patterns[p].operands,
                 patterns[p].stream);
    if (largest >= PAGE_BYTES)
      add_stream(c, patterns[p].kind, largest, true, patterns[p].operands,
                 patterns[p].stream);
  }
}

static void add_warm(ceilings *c, uint64_t bytes, ft_ceiling_kind read,
                     ft_ceiling_kind copy, ft_ceiling_kind triad) {
  const ft_streams *s = ft_streams_here();
  if (bytes < PAGE_BYTES || bytes > c->plan->largest_bytes) return;
  add_stream(c, read, bytes, false, 1,
             (const ft_stream[]){s->read, s->read_four, s->read_ahead});
  add_stream(c, copy, bytes, false, 2,
             (const ft_stream[]){s->copy, s->copy_ahead, copy_anyhow});
  add_stream(c, triad, bytes, false, 3,
             (const ft_stream[]){s->triad, s->triad_ahead, s->triad});
}

static void add_arithmetic(ceilings *c, ft_ceiling_kind kind, ft_arithmetic call,
                           double flops) {
  if (!call) return;
  item *it = add(c, kind, 0);
  it->arithmetic = call;
  it->flops = flops;
}

static void list_items(ceilings *c) {
  const ft_streams *s = ft_streams_here();
  uint32_t threads = ft_pool_threads(c->timing->pool);
  uint64_t l2 = c->plan->l2_bytes / 2 * threads, last = c->plan->cache_bytes / 2;
  add_cold(c);
  add_warm(c, l2, FT_CEILING_READ_L2, FT_CEILING_COPY_L2, FT_CEILING_TRIAD_L2);
  if (last > 2 * l2)
    add_warm(c, last, FT_CEILING_READ_LAST, FT_CEILING_COPY_LAST, FT_CEILING_TRIAD_LAST);
  add_arithmetic(c, FT_CEILING_FMA, s->fma, s->fma_flops);
  add_arithmetic(c, FT_CEILING_FMA_ADD, s->fma_add, s->fma_add_flops);
  add(c, FT_CEILING_LAUNCH, 0)->threads = 1;
  add(c, FT_CEILING_LAUNCH_ALL, 0)->threads = threads;
}

// ---- one sample
// ------------------------------------------------------------------------

typedef struct turn {
  const ceilings *c;
  const item *it;
  ft_stream stream;
  uint64_t stride, part;  // between operands; of one thread in each
} turn;

static void run_part(void *ctx, uint32_t thread) {
  const turn *t = ctx;
  if (t->it->arithmetic) {
    t->it->arithmetic(ARITHMETIC_ROUNDS);
    return;
  }
  // Last what is written: reads come first where there is no second operand.
  uint8_t *first = t->c->region.data + thread * t->part;
  uint8_t *last = first + (t->it->operands - 1) * t->stride;
  t->stream(last, first, first + (t->it->operands == 3) * t->stride, t->part);
}

static turn turn_of(const ceilings *c, const item *it) {
  turn t = {c, it, it->stream[it->samples % VARIANTS], 0, 0};
  if (!it->operands) return t;
  uint64_t each = it->bytes / it->operands;
  t.part = each / ft_pool_threads(c->timing->pool) / PART_UNIT * PART_UNIT;
  t.stride = (each + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  return t;
}

static double moved_bytes(const turn *t) {
  return (double)t->part * t->it->operands * ft_pool_threads(t->c->timing->pool);
}

static int32_t do_nothing(void *const *buffers, const int64_t *scalars, uint32_t block,
                          uint32_t thread, void *scratch) {
  (void)buffers, (void)scalars, (void)block, (void)thread, (void)scratch;
  return 0;
}

static uint64_t time_launch(ft_pool *pool, uint32_t threads) {
  void *const none[1] = {NULL};
  const ft_launch launch = {
      .entry = do_nothing, .buffers = none, .grid = threads, .threads = threads};
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < LAUNCHES; i++) {
    uint64_t start = ft_clock_ns();
    (void)ft_pool_launch(pool, &launch);
    uint64_t ns = ft_clock_ns() - start;
    if (ns < best) best = ns;
  }
  return best;
}

static uint64_t time_parts(ft_pool *pool, turn *t) {
  uint64_t start = ft_clock_ns();
  ft_pool_each(pool, run_part, t);
  return ft_clock_ns() - start;
}

static double amount(const turn *t) {
  double threads = ft_pool_threads(t->c->timing->pool);
  return t->it->arithmetic ? t->it->flops * ARITHMETIC_ROUNDS * threads : moved_bytes(t);
}

static ft_status take_sample(ceilings *c, item *it, ft_error *error) {
  ft_pool *pool = c->timing->pool;
  turn t = turn_of(c, it);
  bool is_launch = it->threads > 0;
  if (it->is_cold || is_launch) {
    FT_TRY(ft_timing_flush_make(c->timing, error));
    ft_timing_displace(c->timing);
  }
  // Warm: twice for the caches (what one pass evicts, the next brings back).
  for (int pass = 0; pass < 2 && it->operands && !it->is_cold; pass++)
    ft_pool_each(pool, run_part, &t);
  uint64_t ns = is_launch ? time_launch(pool, it->threads) : time_parts(pool, &t);
  if (ns == 0) ns = 1;
  it->sample[it->samples++] = is_launch ? (double)ns : amount(&t) * 1e9 / (double)ns;
  return FT_OK;
}

// ---- all of it
// -------------------------------------------------------------------------

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static ft_ceiling row_of(item *it) {
  qsort(it->sample, it->samples, sizeof *it->sample, ascending);
  bool is_time = ft_ceiling_unit_of(it->kind) == FT_UNIT_TIME;
  return (ft_ceiling){.kind = it->kind,
                      .bytes = it->bytes,
                      .best = it->sample[is_time ? 0 : it->samples - 1],
                      .median = it->sample[it->samples / 2],
                      .samples = it->samples};
}

static ft_status make_room(ceilings *c, ft_error *error) {
  for (uint32_t i = 0; i < c->items; i++) {
    c->item[i].sample = FT_NEW_ARRAY(c->arena, double, ROUNDS_MOST);
    FT_OOM_IF(!c->item[i].sample, error);
  }
  // Operands begin at pages of their own.
  FT_TRY(ft_guarded_create(c->plan->largest_bytes + 4 * PAGE_BYTES, &c->region, error));
  memset(c->region.data, 1, c->region.bytes);
  return FT_OK;
}

static ft_status run_rounds(ceilings *c, ft_error *error) {
  uint64_t start = ft_clock_ns();
  for (uint32_t round = 0; round < ROUNDS_MOST; round++) {
    if (round >= FT_CEILING_ROUNDS && ft_clock_ns() - start >= c->plan->limit_ns) break;
    for (uint32_t i = 0; i < c->items; i++) FT_TRY(take_sample(c, &c->item[i], error));
  }
  return FT_OK;
}

ft_status ft_ceilings_measure(ft_timing *timing, const ft_ceiling_plan *plan,
                              ft_arena *arena, ft_ceiling *out, uint32_t *out_count,
                              ft_error *error) {
  *out_count = 0;
  ceilings *c = FT_NEW(arena, ceilings);
  FT_OOM_IF(!c, error);
  c->timing = timing;
  c->plan = plan;
  c->arena = arena;
  list_items(c);
  ft_status status = make_room(c, error);
  if (status == FT_OK) status = run_rounds(c, error);
  ft_guarded_destroy(&c->region);
  if (status != FT_OK) return status;
  for (uint32_t i = 0; i < c->items; i++) out[(*out_count)++] = row_of(&c->item[i]);
  return FT_OK;
}
