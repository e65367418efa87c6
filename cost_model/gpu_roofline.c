#include "cost_model/gpu_roofline.h"

#include <math.h>

#include "cost_model/work.h"

static const double NEEDED_NS = 9.5, CACHE_FACTOR = 2.5;
enum { SECTOR_BYTES = 32, LANES = 128 };

const char *ft_gpu_roof_text(ft_gpu_roof roof) {
  static const char *const text[] = {
      "DRAM", "cache", "accesses", "operations", "fp64 operations", "special functions"};
  return text[roof];
}

// ---- how much of the chip works
// ------------------------------------------------------------

typedef struct fill {
  double units;    // multiprocessors that have a block
  double threads;  // on each of them at a time
  double waves;    // share of those multiprocessors' time in which they have blocks
} fill;

static fill fill_of(const ft_chip *chip, const ft_module *m) {
  double grid = m->grid ? m->grid : 1;
  double resident = m->launch.resident_blocks ? m->launch.resident_blocks : 1;
  double each = grid / chip->units;  // blocks of a multiprocessor; some get one more
  double wave = each > resident ? resident : 1;
  fill f = {.units = fmin(grid, chip->units), .waves = 1};
  f.threads = m->launch.block_threads * fmin(resident, ceil(each));
  if (each > 1) f.waves = each / wave / ceil(each / wave);
  return f;
}

static double dram_efficiency(const ft_chip *chip, const ft_module *m, const fill *f) {
  double flying = f->units * f->threads * m->work.bytes_in_flight;
  double needed = chip->units * NEEDED_NS * 1e-9 * chip->dram_bytes_per_s;
  return fmin(1, flying / needed) * f->waves;
}

// Of all the chip's lanes.
static double lane_efficiency(const ft_chip *chip, const fill *f) {
  return f->units / chip->units * fmin(1, f->threads / LANES) * f->waves;
}

static double unit_efficiency(const ft_chip *chip, const fill *f) {
  return f->units / chip->units * f->waves;
}

// ---- the roofs
// ---------------------------------------------------------------------------------

static double ns_of(double work, double per_second, double efficiency) {
  if (work <= 0) return 0;
  return work / (per_second * fmax(efficiency, 1e-6)) * 1e9;
}

// Words of local memory that a thread spills and fetches back, once each.
static double spill_sectors(const ft_module *m) {
  const ft_static_facts *facts = &m->facts;
  double bytes = fmax((double)facts->spill_store_bytes, 0) +
                 fmax((double)facts->spill_load_bytes, 0);
  return bytes * m->grid * m->launch.block_threads / SECTOR_BYTES;
}

static ft_gpu_prediction predict_with(const fill *f, const ft_chip *chip,
                                      const ft_workload *workload, const ft_module *m,
                                      ft_arena *scratch) {
  const ft_kernel_work *w = &m->work;
  double clock = chip->units * chip->clock_hz, lanes = lane_efficiency(chip, f),
         units = unit_efficiency(chip, f), spilled = spill_sectors(m);
  double moved = (double)workload->read_bytes + (double)workload->write_bytes;
  double asked = (w->load_sectors + w->store_sectors + spilled) * SECTOR_BYTES;
  ft_gpu_prediction p = {
      .roof_ns = {
          [FT_ROOF_DRAM] =
              ns_of(moved, chip->dram_bytes_per_s, dram_efficiency(chip, m, f)),
          [FT_ROOF_CACHE] = ns_of(asked, CACHE_FACTOR * chip->dram_bytes_per_s, units),
          [FT_ROOF_ACCESS] = ns_of(w->wavefronts + spilled / 4, clock, units),
          [FT_ROOF_OPERATIONS] = ns_of(w->operations, clock * chip->fma, lanes),
          [FT_ROOF_OPERATIONS64] = ns_of(w->operations64, clock * chip->fma64, lanes),
          [FT_ROOF_SPECIALS] = ns_of(w->specials, clock * chip->special, lanes),
      }};
  for (int i = 1; i < FT_ROOFS; i++)
    if (p.roof_ns[i] > p.roof_ns[p.binding]) p.binding = (ft_gpu_roof)i;
  p.ns = FT_GPU_LAUNCH_NS + p.roof_ns[p.binding];
  p.ns = fmax(p.ns, ft_gpu_bound_ns(chip, workload, scratch));
  return p;
}

ft_gpu_prediction ft_gpu_predict(const ft_chip *chip, const ft_workload *workload,
                                 const ft_module *m, ft_arena *scratch) {
  fill f = fill_of(chip, m);
  return predict_with(&f, chip, workload, m, scratch);
}

// Fewer resident blocks mean fewer threads and may mean fuller waves: all full, then.
double ft_gpu_floor_ns(const ft_chip *chip, const ft_workload *workload,
                       const ft_module *m, ft_arena *scratch) {
  fill f = fill_of(chip, m);
  f.waves = 1;
  return predict_with(&f, chip, workload, m, scratch).ns;
}

// ---- the bound
// ---------------------------------------------------------------------------------

// Writes may still be in the cache when the kernel ends. Operations: a fused pair is one
// instruction, and counts two. Special functions can be computed without their units.
double ft_gpu_bound_ns(const ft_chip *chip, const ft_workload *workload,
                       ft_arena *scratch) {
  ft_work w = ft_work_of(workload, scratch);
  double dram = w.read_bytes + fmax(0, w.write_bytes - (double)chip->l2_bytes);
  double peak = 2.0 * chip->units * chip->clock_hz * chip->fma;
  double most = fmax(ns_of(dram, chip->dram_bytes_per_s, 1), ns_of(w.flops, peak, 1));
  bool moves = w.read_bytes + w.write_bytes > 0;
  return moves && isfinite(most) ? FT_GPU_LAUNCH_NS + most : 0;
}

static double bound_ns(void *self, const ft_workload *workload) {
  ft_gpu_bounds *b = self;
  ft_arena_reset(b->scratch);
  return ft_gpu_bound_ns(b->chip, workload, b->scratch);
}

static ft_status predict(void *self, const ft_candidate *candidate, uint32_t count,
                         double *out_ns, ft_error *error) {
  (void)error;
  for (uint32_t i = 0; i < count; i++)
    out_ns[i] = fmax(bound_ns(self, candidate[i].workload), 1);
  return FT_OK;
}

// Nothing is measured, so nothing contradicts.
static ft_status contradict(void *self, const ft_candidate *candidate,
                            const ft_trial *trial, double bound, ft_error *error) {
  (void)self;
  (void)trial;
  (void)bound;
  FT_FAIL(error, FT_INTERNAL, "a measured trial (%s) on a target without a device",
          candidate->tactic);
}

ft_predictor ft_gpu_predictor(ft_gpu_bounds *bounds) {
  return (ft_predictor){
      .self = bounds, .predict = predict, .bound_ns = bound_ns, .contradict = contradict};
}
