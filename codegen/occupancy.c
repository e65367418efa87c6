#include "codegen/occupancy.h"

enum {
  WARP = 32,
  SCHEDULERS = 4,
  REGISTER_UNIT = 256,
  SHARED_UNIT = 128,
  MOST_REGISTERS = 255,
  MOST_THREADS = 1024,
};

static uint64_t round_up(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

static uint32_t by_registers(const ft_chip *chip, uint32_t warps, uint32_t registers) {
  if (registers > MOST_REGISTERS) return 0;
  uint64_t per_warp =
      round_up((uint64_t)(registers ? registers : 1) * WARP, REGISTER_UNIT);
  uint64_t resident = chip->registers_per_unit / SCHEDULERS / per_warp * SCHEDULERS;
  return (uint32_t)(resident / warps);
}

static uint32_t by_shared(const ft_chip *chip, uint64_t bytes) {
  if (bytes > chip->shared_per_block) return 0;
  return (uint32_t)(chip->shared_per_unit /
                    round_up(bytes + chip->shared_reserved, SHARED_UNIT));
}

ft_occupancy ft_occupancy_of(const ft_chip *chip, uint32_t threads, uint32_t registers,
                             uint64_t shared_bytes) {
  ft_occupancy o = {0};
  if (!threads || threads > MOST_THREADS) return o;
  uint32_t warps = (threads + WARP - 1) / WARP, most = chip->threads_per_unit / WARP;
  const uint32_t blocks[] = {
      [FT_LIMIT_THREADS] = most / warps,
      [FT_LIMIT_BLOCKS] = chip->blocks_per_unit,
      [FT_LIMIT_REGISTERS] = by_registers(chip, warps, registers),
      [FT_LIMIT_SHARED] = by_shared(chip, shared_bytes),
  };
  for (uint32_t i = 1; i < sizeof blocks / sizeof *blocks; i++)
    if (blocks[i] < blocks[o.limit]) o.limit = (ft_occupancy_limit)i;
  o.blocks = blocks[o.limit];
  o.warps = o.blocks * warps;
  o.share = (double)o.warps / most;
  return o;
}

const char *ft_occupancy_limit_text(ft_occupancy_limit limit) {
  static const char *const texts[] = {"threads", "blocks", "registers", "shared memory"};
  return texts[limit];
}
