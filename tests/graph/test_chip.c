#include "graph/chip.h"

#include <criterion/criterion.h>
#include <string.h>

Test(graph_chip, has_numbers_for_each_architecture_it_names) {
  uint32_t count;
  const ft_chip *chip = ft_chips(&count);
  cr_assert_gt(count, 0);
  for (uint32_t i = 0; i < count; i++) {
    const ft_chip *c = &chip[i];
    cr_assert_eq(ft_chip_find(c->arch), c);
    cr_assert(*c->product && c->units && c->memory_bytes && c->l2_bytes, "%s", c->arch);
    cr_assert(c->dram_bytes_per_s > 1e11 && c->clock_hz > 1e9, "%s", c->arch);
    cr_assert(c->fma >= 64 && c->fma64 && c->special, "%s", c->arch);
  }
}

Test(graph_chip, agrees_with_the_flops_on_the_data_sheets) {
  static const struct {
    const char *arch;
    double tflops;  // fp32, fused multiply-adds as two
  } sheets[] = {{"sm_80", 19.5}, {"sm_86", 35.6}, {"sm_89", 82.6},
                {"sm_90", 66.9}, {"sm_100", 75},  {"sm_120", 104.8}};
  for (size_t i = 0; i < sizeof sheets / sizeof *sheets; i++) {
    const ft_chip *c = ft_chip_find(sheets[i].arch);
    double tflops = 2.0 * c->units * c->fma * c->clock_hz * 1e-12;
    cr_assert(tflops > 0.99 * sheets[i].tflops && tflops < 1.01 * sheets[i].tflops,
              "%s: %g", c->arch, tflops);
  }
}

Test(graph_chip, takes_a_suffix_and_no_other_name) {
  cr_assert_str_eq(ft_chip_find("sm_90a")->arch, "sm_90");
  cr_assert_str_eq(ft_chip_find("sm_100f")->arch, "sm_100");
  cr_assert_null(ft_chip_find("sm_9"));
  cr_assert_null(ft_chip_find("sm_901"));
  cr_assert_null(ft_chip_find("cpu"));
}
