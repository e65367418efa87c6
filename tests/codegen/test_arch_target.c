#include "codegen/arch_target.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static ft_arena *arena;
static ft_error error;
static ft_target target;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(arch_target, .init = set_up, .fini = tear_down);

Test(arch_target, an_unknown_name_is_refused_with_the_list) {
  static const char *const names[] = {"sm_91", "sm_90a", "gpu", "", "sm_"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    cr_assert_eq(ft_arch_target(names[i], arena, &target, &error), FT_INVALID_ARGUMENT);
    cr_assert(strstr(error.text, "cpu sim sm_80") && strstr(error.text, "sm_90"), "%s",
              error.text);
  }
}

Test(arch_target, sim_needs_nothing) {
  setenv("FUSETUNE_NVRTC", "none", 1);
  cr_assert_eq(ft_arch_target("sim", arena, &target, &error), FT_OK);
  cr_assert_str_eq(target.kind, "sim");
  cr_assert(ft_target_is_gpu(&target));
  cr_assert_eq(ft_target_seal(&target, &error), FT_OK);
}

Test(arch_target, without_nvrtc_the_text_says_what_to_install) {
  setenv("FUSETUNE_NVRTC", "none", 1);
  cr_assert_eq(ft_arch_target("sm_90", arena, &target, &error), FT_UNAVAILABLE);
  cr_assert(strstr(error.text, "sm_90") && strstr(error.text, "install NVRTC"), "%s",
            error.text);
  cr_assert(strstr(ft_arch_report(arena), "none: FUSETUNE_NVRTC is none"));
}

Test(arch_target, two_architectures_have_two_signatures) {
  ft_target other;
  if (ft_arch_target("sm_80", arena, &target, &error) == FT_UNAVAILABLE)
    cr_skip_test("%s", error.text);
  cr_assert_eq(ft_arch_target("sm_90", arena, &other, &error), FT_OK, "%s", error.text);
  cr_assert_eq(ft_target_seal(&target, &error), FT_OK);
  cr_assert_eq(ft_target_seal(&other, &error), FT_OK);
  cr_assert_not(ft_hash_equal(&target.signature, &other.signature));
  cr_assert_str_eq(other.kind, "arch");
  cr_assert_str_eq(other.device, "H100 SXM");
  cr_assert(strncmp(other.toolkit, "nvrtc-", 6) == 0);
  cr_assert(strstr(ft_arch_report(arena), "targets sm_80"));
}
