#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>

#include "measure/cpu_target.h"

static ft_arena *arena;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(measure_cpu_target, .init = set_up, .fini = tear_down);

Test(measure_cpu_target, the_isa_is_the_known_vector_extensions_sorted) {
  uint32_t bytes;
  cr_expect_str_eq(ft_cpu_isa("fpu sse4_2 fma avx avx512f avx2 avx512fx", arena, &bytes),
                   "avx avx2 avx512f fma sse4_2");
  cr_expect_eq(bytes, 64);
  cr_expect_str_eq(ft_cpu_isa("fp asimd evtstrm", arena, &bytes), "asimd");
  cr_expect_eq(bytes, 16);
  cr_expect_str_eq(ft_cpu_isa("", arena, &bytes), "");
  cr_expect_eq(bytes, 0);
}

Test(measure_cpu_target, the_device_is_the_model_with_its_numbers) {
  cr_expect_str_eq(
      ft_cpu_device("processor\t: 0\ncpu family\t: 6\nmodel\t\t: 167\nmodel name\t: "
                    "Intel(R) Xeon(R) Processor\nstepping\t: 1\n\nprocessor\t: 1\n",
                    arena),
      "Intel(R) Xeon(R) Processor fam 6 model 167 step 1");
  cr_expect_str_eq(ft_cpu_device("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n", arena),
                   "implementer 0x41 part 0xd40");
  cr_expect_str_eq(ft_cpu_device("", arena), "");
}

Test(measure_cpu_target, sizes_are_read_with_their_unit) {
  cr_expect_eq(ft_cpu_size_bytes("48K"), 48 << 10);
  cr_expect_eq(ft_cpu_size_bytes("2M"), 2 << 20);
  cr_expect_eq(ft_cpu_size_bytes("123"), 123);
  cr_expect_eq(ft_cpu_size_bytes("many"), 0);
  cr_expect_eq(ft_cpu_size_bytes(""), 0);
}

Test(measure_cpu_target, the_setting_in_brackets_is_the_one_that_holds) {
  char text[] = "always [madvise] never", none[] = "";
  cr_expect_str_eq(ft_cpu_bracketed(text), "madvise");
  cr_expect_str_eq(ft_cpu_bracketed(none), "unknown");
}

Test(measure_cpu_target, this_machine_can_be_told_and_sealed) {
  ft_target a, b;
  ft_error error;
  cr_assert_eq(ft_cpu_target_probe(arena, &a, &error), FT_OK, "%s", error.text);
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  cr_expect_eq(a.threads, (uint32_t)CPU_COUNT(&set));
  cr_expect_leq(a.units, a.threads);
  cr_expect_gt(a.memory_bytes, 1 << 20);
  cr_expect(a.device[0] && a.power_class[0]);
  cr_expect_str_eq(a.name, "cpu");
  cr_assert_eq(ft_cpu_target_probe(arena, &b, &error), FT_OK);
  cr_assert_eq(ft_target_seal(&a, &error), FT_OK);
  cr_assert_eq(ft_target_seal(&b, &error), FT_OK);
  cr_expect(ft_hash_equal(&a.signature, &b.signature), "twice the same");
}

Test(measure_cpu_target, threads_follow_the_affinity) {
  cpu_set_t set, one;
  sched_getaffinity(0, sizeof set, &set);
  CPU_ZERO(&one);
  for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
    if (CPU_ISSET(i, &set)) CPU_SET(i, &one);
  cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
  ft_target t;
  ft_error error;
  cr_assert_eq(ft_cpu_target_probe(arena, &t, &error), FT_OK);
  cr_expect_eq(t.threads, 1);
}
