#include <criterion/criterion.h>

#include "codegen/occupancy.h"

// What cuda_occupancy.h of CUDA 13.0 says, in blocks per multiprocessor.
static const struct {
  const char *arch;
  uint32_t threads, registers;
  uint64_t shared;
  uint32_t blocks;
} cases[] = {
    {"sm_80", 256, 31, 64, 8},     {"sm_80", 128, 72, 10240, 7},
    {"sm_86", 128, 64, 10240, 8},  {"sm_89", 128, 64, 10240, 8},
    {"sm_90", 128, 72, 10240, 7},  {"sm_100", 128, 56, 10240, 9},
    {"sm_120", 128, 62, 10240, 8}, {"sm_80", 256, 128, 98304, 1},
    {"sm_90", 256, 128, 98304, 2}, {"sm_90a", 256, 32, 64, 8},
};

Test(codegen_occupancy, agrees_with_the_vendors_header) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const ft_chip *chip = ft_chip_find(cases[i].arch);
    cr_assert(chip, "%s", cases[i].arch);
    ft_occupancy o =
        ft_occupancy_of(chip, cases[i].threads, cases[i].registers, cases[i].shared);
    cr_assert_eq(o.blocks, cases[i].blocks, "case %zu: %u", i, o.blocks);
  }
}

Test(codegen_occupancy, says_what_limits) {
  const ft_chip *chip = ft_chip_find("sm_90");
  cr_assert_eq(ft_occupancy_of(chip, 128, 72, 0).limit, FT_LIMIT_REGISTERS);
  cr_assert_eq(ft_occupancy_of(chip, 256, 32, 100000).limit, FT_LIMIT_SHARED);
  cr_assert_eq(ft_occupancy_of(chip, 32, 16, 0).limit, FT_LIMIT_BLOCKS);
  cr_assert_eq(ft_occupancy_of(chip, 1024, 16, 0).limit, FT_LIMIT_THREADS);
  cr_assert_float_eq(ft_occupancy_of(chip, 128, 72, 0).share, 28.0 / 64, 1e-9);
}

Test(codegen_occupancy, what_cannot_be_launched_has_no_blocks) {
  const ft_chip *chip = ft_chip_find("sm_90");
  cr_assert_eq(ft_occupancy_of(chip, 1024, 255, 0).blocks, 0);
  cr_assert_eq(ft_occupancy_of(chip, 128, 256, 0).blocks, 0);
  cr_assert_eq(ft_occupancy_of(chip, 128, 32, 300000).blocks, 0);
  cr_assert_eq(ft_occupancy_of(chip, 2048, 16, 0).blocks, 0);
  cr_assert_null(ft_chip_find("sm_9"));
  cr_assert_null(ft_chip_find("sm_900"));
  cr_assert_null(ft_chip_find(""));
}
