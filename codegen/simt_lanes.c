#include "codegen/simt_lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  SECTOR_BYTES = 32,
  LINE_BYTES = 128,
  BANK_BYTES = 4,
  BANKS = 32,
  MOST_LANES = 16,
  FAR_APART = 4099,  // elements: no two in one line
};

ft_status ft_simt_lanes_init(ft_simt_lanes *l, const ft_kir *kir, ft_arena *scratch,
                             ft_error *error) {
  size_t count = kir->value_count;
  *l = (ft_simt_lanes){.kir = kir,
                       .value = FT_NEW_ARRAY(scratch, int64_t, count * FT_WARP),
                       .is_known = FT_NEW_ARRAY(scratch, uint8_t, count * FT_WARP),
                       .begin = FT_NEW_ARRAY(scratch, ft_kir_id, count),
                       .low = FT_NEW_ARRAY(scratch, double, count),
                       .high = FT_NEW_ARRAY(scratch, double, count)};
  FT_OOM_IF(!l->value || !l->is_known || !l->begin || !l->low || !l->high, error);
  return FT_OK;
}

// ---- a thread's value
// -------------------------------------------------------------------

static int64_t evaluate(ft_simt_lanes *l, const ft_kir_value *v, ft_kir_id id,
                        uint32_t lane) {
  if (v->op == FT_KIR_NUMBER) return v->imm;
  if (v->op == FT_KIR_LOOP && id == l->thread) return lane;
  if (v->op == FT_KIR_LOOP)
    return l->begin[id] ? ft_simt_lanes_at(l, l->begin[id], lane) : 0;
  if (v->op == FT_KIR_TO_INDEX)
    return v->level == FT_KIR_PER_THREAD ? (int64_t)lane * FAR_APART : 0;
  int64_t a = ft_simt_lanes_at(l, v->operand[0], lane),
          b = ft_simt_lanes_at(l, v->operand[1], lane);
  return v->operand_count == 2 ? ft_kir_calculate(v->op, a, b) : 0;
}

int64_t ft_simt_lanes_at(ft_simt_lanes *l, ft_kir_id id, uint32_t lane) {
  size_t at = (size_t)id * FT_WARP + lane;
  if (!l->is_known[at]) {
    l->value[at] = evaluate(l, &l->kir->value[id], id, lane);
    l->is_known[at] = 1;
  }
  return l->value[at];
}

// ---- ranges and chances
// -----------------------------------------------------------------

static ft_simt_range product(ft_simt_range a, ft_simt_range b) {
  double ends[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  ft_simt_range r = {ends[0], ends[0]};
  for (int i = 1; i < 4; i++) {
    r.low = fmin(r.low, ends[i]);
    r.high = fmax(r.high, ends[i]);
  }
  return r;
}

static ft_simt_range remainder_of(ft_simt_range a, ft_simt_range b) {
  if (a.low >= 0 && a.high < b.low) return a;
  return (ft_simt_range){0, b.high > 1 ? b.high - 1 : 0};
}

static ft_simt_range combine(ft_kir_op op, ft_simt_range a, ft_simt_range b) {
  switch (op) {
    case FT_KIR_IADD:
      return (ft_simt_range){a.low + b.low, a.high + b.high};
    case FT_KIR_ISUB:
      return (ft_simt_range){a.low - b.high, a.high - b.low};
    case FT_KIR_IMUL:
      return product(a, b);
    case FT_KIR_IDIV:
      return (ft_simt_range){floor(a.low / fmax(b.high, 1)),
                             floor(a.high / fmax(b.low, 1))};
    case FT_KIR_IMOD:
      return remainder_of(a, b);
    case FT_KIR_IMIN:
      return (ft_simt_range){fmin(a.low, b.low), fmin(a.high, b.high)};
    case FT_KIR_IMAX:
      return (ft_simt_range){fmax(a.low, b.low), fmax(a.high, b.high)};
    default:
      return (ft_simt_range){0, 1};
  }
}

// Expressions are small trees; what many share is a loop's variable.
ft_simt_range ft_simt_range_of(const ft_simt_lanes *l, ft_kir_id id) {
  const ft_kir_value *v = &l->kir->value[id];
  if (v->op == FT_KIR_NUMBER) return (ft_simt_range){(double)v->imm, (double)v->imm};
  if (v->op == FT_KIR_LOOP) return (ft_simt_range){l->low[id], l->high[id]};
  if (v->op == FT_KIR_TO_INDEX) return (ft_simt_range){0, INT32_MAX};
  return combine(v->op, ft_simt_range_of(l, v->operand[0]),
                 ft_simt_range_of(l, v->operand[1]));
}

static double chance_less(ft_simt_range a, ft_simt_range b) {
  if (a.high < b.low) return 1;
  if (a.low >= b.high) return 0;
  double share = ((b.low + b.high) / 2 - a.low) / (a.high - a.low + 1);
  return share < 0 ? 0 : share > 1 ? 1 : share;
}

double ft_simt_chance_of(const ft_simt_lanes *l, ft_kir_id id) {
  const ft_kir_value *v = &l->kir->value[id];
  if (v->op == FT_KIR_NUMBER) return v->imm != 0;
  if (v->op == FT_KIR_ILESS)
    return chance_less(ft_simt_range_of(l, v->operand[0]),
                       ft_simt_range_of(l, v->operand[1]));
  if (v->op == FT_KIR_IMUL || v->op == FT_KIR_IMIN)  // and
    return ft_simt_chance_of(l, v->operand[0]) * ft_simt_chance_of(l, v->operand[1]);
  return 1;
}

// ---- accesses
// ---------------------------------------------------------------------------

static int by_value(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t floor_to(int64_t bytes, int64_t unit) {
  return (bytes - (bytes % unit + unit) % unit) / unit;
}

// Sorted in place; how many differ in units of |unit| bytes.
static uint32_t distinct(const int64_t *byte, uint32_t count, int64_t unit) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++)
    found += i == 0 || floor_to(byte[i], unit) != floor_to(byte[i - 1], unit);
  return found;
}

static double fullest_bank(const int64_t *byte, uint32_t count, int64_t size) {
  uint32_t words[BANKS] = {0}, most = 1;
  for (uint32_t i = 0; i < count; i++) {
    int64_t word = floor_to(byte[i], BANK_BYTES);
    if (i > 0 && word == floor_to(byte[i - 1], BANK_BYTES)) continue;
    for (int64_t w = 0; w < (size > BANK_BYTES ? size / BANK_BYTES : 1); w++) {
      uint32_t *n = &words[(word + w) & (BANKS - 1)];
      if (++*n > most) most = *n;
    }
  }
  return most;
}

ft_simt_traffic ft_simt_traffic_of(ft_simt_lanes *l, const ft_simt_access *access) {
  const ft_kir_buffer *b = &l->kir->buffer[access->buffer];
  int64_t byte[FT_WARP * MOST_LANES], size = (int64_t)ft_dtype_bytes(b->dtype);
  uint32_t count = 0, lanes = access->lanes < MOST_LANES ? access->lanes : MOST_LANES;
  if (lanes == 0) lanes = 1;
  for (uint32_t t = 0; t < FT_WARP; t++)
    for (uint32_t i = 0; i < lanes; i++)
      byte[count++] =
          (ft_simt_lanes_at(l, access->index, t) + (int64_t)i * access->stride) * size;
  qsort(byte, count, sizeof *byte, by_value);
  if (b->space == FT_KIR_SHARED)
    return (ft_simt_traffic){.turns = fullest_bank(byte, count, size)};
  return (ft_simt_traffic){.sectors = distinct(byte, count, SECTOR_BYTES),
                           .turns = distinct(byte, count, LINE_BYTES)};
}
