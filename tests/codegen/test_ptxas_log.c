#include <criterion/criterion.h>

#include "codegen/ptxas_log.h"

static const char spiller[] =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'spiller' for 'sm_80'\n"
    "ptxas info    : Function properties for spiller\n"
    "ptxas         .     672 bytes stack frame, 1076 bytes spill stores, 1244 bytes "
    "spill "
    "loads\n"
    "ptxas info    : Used 32 registers, used 0 barriers, 672 bytes cumulative stack "
    "size, "
    "376 bytes cmem[0]\n"
    "ptxas info    : Compile time = 253.997 ms\n"
    "ptxas info    : Compiling entry function 'spill' for 'sm_80'\n"
    "ptxas info    : Function properties for spill\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 31 registers, used 1 barriers, 64 bytes smem, 372 bytes "
    "cmem[0]\n"
    "ptxas info    : Function properties for _Z4slowfi\n"
    "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill "
    "loads\n";

Test(codegen_ptxas_log, reads_the_kernel_that_is_asked_for) {
  ft_static_facts f;
  cr_assert(ft_ptxas_log_read(spiller, "spiller", &f));
  cr_assert_eq(f.registers, 32);
  cr_assert_eq(f.stack_bytes, 672);
  cr_assert_eq(f.spill_store_bytes, 1076);
  cr_assert_eq(f.spill_load_bytes, 1244);
  cr_assert_eq(f.shared_bytes, 0);
}

Test(codegen_ptxas_log, a_called_functions_spills_count) {
  ft_static_facts f;
  cr_assert(ft_ptxas_log_read(spiller, "spill", &f));
  cr_assert_eq(f.registers, 31);
  cr_assert_eq(f.shared_bytes, 64);
  cr_assert_eq(f.stack_bytes, 8);
  cr_assert_eq(f.spill_store_bytes, 4);
  cr_assert_eq(f.spill_load_bytes, 12);
}

Test(codegen_ptxas_log, what_is_not_there_is_unknown) {
  static const char *const texts[] = {
      "",
      "\n\n",
      "ptxas info : Used 9 registers",
      "Compiling entry function '",
      "Compiling entry function 'k' for\nUsed 99999999999999999999 registers\n",
      "Compiling entry function 'kernel' for\nUsed 3 registers\n",
      "Compiling entry function 'k' for\n8 bytes stack frame, 4 bytes spill stores\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    ft_static_facts f;
    cr_assert_not(ft_ptxas_log_read(texts[i], "k", &f), "text %zu", i);
    cr_assert_eq(f.registers, -1);
    cr_assert_eq(f.spill_store_bytes, -1);
  }
}
