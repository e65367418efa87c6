// Kernels of several bodies: what the chip is asked for, on top of what every kernel in
// GPU shape is tested for (kernel_simt.c).
#include "codegen/nvrtc.h"
#include "simt_drawings.h"

// ptxas may give a kernel of several bodies fewer registers than one of them alone, and
// keep a word or two in memory; told that one block a multiprocessor is enough, it does
// not, and may take many more. One of the two schedules stays within this.
enum { MOST_MORE_REGISTERS = 16 };

static const char *const archs[] = {"sm_80", "sm_90", "sm_100"};
enum { ARCHS = sizeof archs / sizeof *archs };

typedef struct facts {
  int64_t registers, stack_bytes;
  ft_simt_launch launch;
} facts;

static facts facts_of(ft_nvrtc *nvrtc, ft_kir *kir, const char *arch, ft_arena *arena) {
  facts f;
  const char *text;
  ft_error error;
  ft_cubin cubin;
  cr_assert_eq(ft_print_cuda(kir, "ft_kernel", &text, &f.launch, &error), FT_OK, "%s",
               error.text);
  cr_assert_eq(ft_nvrtc_compile(nvrtc, text, "ft_kernel", arch, arena, &cubin, &error),
               FT_OK, "%s", error.text);
  cr_assert_eq(cubin.outcome, FT_OUTCOME_OK, "%s\n%s", cubin.log, text);
  f.registers = cubin.facts.registers;
  f.stack_bytes = cubin.facts.stack_bytes;
  return f;
}

// The most that any part takes, and the sum of their blocks.
static facts facts_of_parts(ft_nvrtc *nvrtc, const ft_workload *workload,
                            const ft_simt_blocks_choice *choice, const char *arch,
                            ft_arena *arena) {
  facts all = {0};
  ft_parts parts;
  ft_error error;
  cr_assert_eq(ft_parts_make(workload, arena, &parts, &error), FT_OK);
  for (uint32_t i = 0; i < parts.count; i++) {
    ft_kir *kir;
    cr_assert_eq(
        ft_simt_any_build(&parts.part[i].workload, &choice->part[i], arena, &kir, &error),
        FT_OK);
    facts f = facts_of(nvrtc, kir, arch, arena);
    if (f.registers > all.registers) all.registers = f.registers;
    if (f.stack_bytes > all.stack_bytes) all.stack_bytes = f.stack_bytes;
    all.launch.grid += f.launch.grid;
    all.launch.threads = f.launch.threads;
  }
  return all;
}

static facts facts_joined(ft_nvrtc *nvrtc, const bench *b, uint32_t d, uint32_t c,
                          uint32_t min_blocks, const char *arch) {
  ft_kir *kir = build_blocks(b, d, c);
  kir->min_blocks = min_blocks;
  return facts_of(nvrtc, kir, arch, b->sketch[d].arena);
}

static bool is_modest(const facts *joined, const facts *part) {
  return joined->registers <= part->registers + MOST_MORE_REGISTERS &&
         joined->stack_bytes <= part->stack_bytes;
}

// true: the choice fits the drawing.
static bool check_costs(ft_nvrtc *nvrtc, const bench *b, uint32_t d, uint32_t c,
                        const char *arch) {
  ft_simt_blocks_choice choice;
  ft_arena *arena = b->sketch[d].arena;
  if (!choose_blocks(&b->workload[d], c, arena, &choice)) return false;
  facts most = facts_of_parts(nvrtc, &b->workload[d], &choice, arch, arena);
  facts free = facts_joined(nvrtc, b, d, c, 0, arch);
  facts roomy = free;
  if (!is_modest(&free, &most)) roomy = facts_joined(nvrtc, b, d, c, 1, arch);
  cr_assert(is_modest(&roomy, &most),
            "%s, blocks %u, %s: registers and stack of the parts at most %lld, %lld; "
            "joined %lld, %lld; one block each %lld, %lld",
            drawings[d].name, c, arch, (long long)most.registers,
            (long long)most.stack_bytes, (long long)free.registers,
            (long long)free.stack_bytes, (long long)roomy.registers,
            (long long)roomy.stack_bytes);
  cr_assert_eq(free.launch.threads, most.launch.threads);
  cr_assert_geq(free.launch.grid, most.launch.grid);
  cr_assert_leq(free.launch.grid, most.launch.grid + most.launch.grid / 16);
  return true;
}

Test(simt, a_joined_kernel_takes_about_the_registers_of_one_part, .timeout = 300) {
  bench b;
  ft_nvrtc *nvrtc;
  ft_error error;
  if (ft_nvrtc_open(ft_allocator_system(), &nvrtc, &error) != FT_OK)
    cr_skip_test("%s", error.text);
  uint32_t count = 0;
  open_bench(&b);
  for (uint32_t d = 0; d < DRAWINGS; d++)
    for (uint32_t c = 0; c < BLOCKS_CHOICES; c++)
      count += check_costs(nvrtc, &b, d, c, archs[(d + c) % ARCHS]);
  cr_assert_geq(count, 15);
  close_bench(&b);
  ft_nvrtc_close(nvrtc);
}

static uint32_t drawing_of(const char *name) {
  for (uint32_t d = 0; d < DRAWINGS; d++)
    if (!strcmp(drawings[d].name, name)) return d;
  cr_assert_fail("no drawing %s", name);
  return 0;
}

static const char *refusal_of(const bench *b, const char *name, ft_kir_order order,
                              void (*change)(ft_simt_blocks_choice *)) {
  uint32_t d = drawing_of(name);
  ft_arena *arena = b->sketch[d].arena;
  ft_simt_blocks_choice c;
  const char *wrong = ft_simt_blocks_choose(&b->workload[d], 64, order, arena, &c);
  if (wrong) return wrong;
  if (change) change(&c);
  return ft_simt_blocks_refusal(&b->workload[d], &c, arena);
}

static void widen_second(ft_simt_blocks_choice *c) {
  c->part[1].nest.threads = 128;
}

static void spoil_second(ft_simt_blocks_choice *c) {
  c->part[1].nest.threads = 65;
}

static void drop_second(ft_simt_blocks_choice *c) {
  c->count = 1;
}

Test(simt, what_cannot_be_joined_is_refused_by_name) {
  bench b;
  open_bench(&b);
  cr_assert_null(refusal_of(&b, "strangers", FT_KIR_CONCAT, NULL));
  cr_assert_str_eq(refusal_of(&b, "softmax", FT_KIR_CONCAT, NULL),
                   "the group hangs together");
  cr_assert_str_eq(refusal_of(&b, "strangers", FT_KIR_CONCAT, widen_second),
                   "body 1 has 128 threads and body 0 64: a barrier needs all threads "
                   "of a block");
  cr_assert_str_eq(refusal_of(&b, "strangers", FT_KIR_CONCAT, spoil_second),
                   "part 1: threads is not a multiple of 32 up to 1024");
  cr_assert_str_eq(refusal_of(&b, "strangers", FT_KIR_CONCAT, drop_second),
                   "choices for 1 of 2 parts");
  close_bench(&b);
}

// Equal candidates, equal bytes.
Test(simt, joining_twice_gives_the_same_text) {
  bench b;
  open_bench(&b);
  uint32_t d = drawing_of("three kinds");
  const char *text[2];
  for (int i = 0; i < 2; i++) {
    ft_simt_launch launch;
    ft_error error;
    cr_assert_eq(ft_print_cuda(build_blocks(&b, d, 0), "k", &text[i], &launch, &error),
                 FT_OK, "%s", error.text);
  }
  cr_assert_str_eq(text[0], text[1]);
  close_bench(&b);
}
