// Rows in registers: what NVRTC makes of a softmax and of a layer norm with a residual.
#include "codegen/nvrtc.h"
#include "codegen/simt_nest.h"
#include "graphs.h"
#include "simming.h"

typedef struct built {
  sketch sketch;
  ft_workload workload;
  ft_group_ir *ir;
} built;

static void draw_softmax(sketch *s, int64_t columns) {
  output(s, softmax(s, input(s, FT_F32, SHAPE(4096, columns)), 1));
}

static void draw_norm(sketch *s, int64_t columns) {
  uint32_t x = input(s, FT_F32, SHAPE(4096, columns));
  uint32_t r = input(s, FT_F32, SHAPE(4096, columns));
  uint32_t sum = two(s, FT_OP_ADD, x, r);
  output(s, sum);
  output(s, layer_norm(s, sum, input(s, FT_F32, SHAPE(columns)), 1));
}

static const struct {
  const char *name;
  void (*draw)(sketch *s, int64_t columns);
  uint32_t inputs;  // that are read at every element
} kinds[] = {{"softmax", draw_softmax, 1}, {"layer norm", draw_norm, 3}};

static built build_group(int kind, int64_t columns) {
  built b = {.sketch = sketch_open()};
  const char *reason;
  ft_error error;
  kinds[kind].draw(&b.sketch, columns);
  b.workload = finish(&b.sketch);
  cr_assert_eq(ft_group_ir_make(&b.workload, b.sketch.arena, &b.ir, &reason, &error),
               FT_OK);
  return b;
}

static uint32_t count_of(const char *text, const char *word) {
  uint32_t count = 0;
  for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) count++;
  return count;
}

// Sixteen bytes at a time, each place in the text once: the loop around it is unrolled.
static void check_reads(const ft_kir *kir, const char *text, uint32_t inputs,
                        const char *label) {
  uint32_t seen = 0;
  for (uint32_t i = 1; i < kir->buffer_count; i++) {
    char wide[64], any[64];
    if (kir->buffer[i].space != FT_KIR_GLOBAL || kir->buffer[i].is_written) continue;
    snprintf(wide, sizeof wide, "((const int4 *)(b%u + ", i);
    snprintf(any, sizeof any, "b%u ", i);
    cr_assert_eq(count_of(text, wide), 1, "%s, buffer %u\n%s", label, i, text);
    cr_assert_eq(count_of(text, any), 1, "%s, buffer %u\n%s", label, i, text);
    seen++;
  }
  cr_assert_eq(seen, inputs, "%s", label);
}

Test(simt_rows, wide_rows_stay_in_registers_and_are_read_once) {
  static const int64_t columns[] = {1024, 2048, 4096, 8192};
  ft_nvrtc *nvrtc;
  ft_error error;
  if (ft_nvrtc_open(ft_allocator_system(), &nvrtc, &error) != FT_OK)
    cr_skip_test("%s", error.text);
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < 4; i++) {
      built b = build_group(k, columns[i]);
      ft_arena *arena = b.sketch.arena;
      uint32_t threads = (uint32_t)columns[i] / 16;
      ft_simt_choice c = {.threads = threads < 128 ? 128 : threads,
                          .vector = 4,
                          .unroll = 1,
                          .row_threads = threads,
                          .buffer = FT_SIMT_REGISTERS,
                          .streams = true,
                          .loads_once = true};
      const char *text, *label = ft_arena_printf(arena, "%s of %lld columns",
                                                 kinds[k].name, (long long)columns[i]);
      ft_kir *kir;
      ft_simt_launch launch;
      ft_cubin cubin;
      cr_assert_null(ft_simt_nest_refusal(b.ir, &c, arena), "%s", label);
      cr_assert_eq(ft_simt_nest_build(b.ir, &c, arena, &kir, &error), FT_OK);
      cr_assert_eq(ft_print_cuda(kir, "k", &text, &launch, &error), FT_OK);
      check_reads(kir, text, kinds[k].inputs, label);
      cr_assert_eq(count_of(text, "double "), 0, "%s: sums in f64\n%s", label, text);
      cr_assert_eq(ft_nvrtc_compile(nvrtc, text, "k", "sm_90", arena, &cubin, &error),
                   FT_OK);
      cr_assert_eq(cubin.outcome, FT_OUTCOME_OK, "%s: %s", label, cubin.log);
      cr_assert_eq(cubin.facts.stack_bytes, 0, "%s", label);
      cr_assert_eq(cubin.facts.spill_store_bytes + cubin.facts.spill_load_bytes, 0, "%s",
                   label);
      fprintf(stderr, "%s: %lld registers\n", label, (long long)cubin.facts.registers);
      sketch_close(&b.sketch);
    }
  ft_nvrtc_close(nvrtc);
}
