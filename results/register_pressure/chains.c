// Registers, spills and occupancy of pointwise chains, as ptxas and the occupancy rules
// give them, one CSV row each on stdout. Nothing is run.
#include <stdio.h>
#include <stdlib.h>

#include "codegen/nvrtc.h"
#include "codegen/occupancy.h"
#include "codegen/print_simt.h"
#include "codegen/simt_nest.h"

enum { DEPTHS = 16, ROWS = 4096, COLUMNS = 4096, THREADS = 256 };

static ft_arena *arena;
static ft_error error;

static void must(ft_status status) {
  if (status == FT_OK) return;
  fprintf(stderr, "chains: %s\n", error.text);
  exit(1);
}

// ---- chains ---------------------------------------------------------------------------------

static uint32_t input(ft_graph *g) {
  uint32_t value;
  ft_shape shape = {.rank = 2, .dim = {ROWS, COLUMNS}};
  const char *name = ft_arena_printf(arena, "x%u", g->input_count);
  must(ft_graph_add_input(g, name, FT_F32, &shape, &value, &error));
  return value;
}

static uint32_t apply(ft_graph *g, ft_op op, uint32_t a, uint32_t b) {
  uint32_t value, in[2] = {a, b};
  must(ft_graph_emit(g, op, in, ft_op_describe(op)->arity, NULL, &value, &error));
  return value;
}

// One value is alive at a time.
static uint32_t unary(ft_graph *g, uint32_t depth) {
  uint32_t v = input(g);
  for (uint32_t i = 0; i < depth; i++)
    v = apply(g, i % 2 ? FT_OP_SIGMOID : FT_OP_TANH, v, v);
  return v;
}

// Each layer reads a tensor more.
static uint32_t reading(ft_graph *g, uint32_t depth) {
  uint32_t v = input(g);
  for (uint32_t i = 0; i < depth; i++)
    v = apply(g, FT_OP_ADD, apply(g, FT_OP_TANH, v, v), input(g));
  return v;
}

// Every layer's result is used again after the last.
static uint32_t keeping(ft_graph *g, uint32_t depth) {
  uint32_t layer[DEPTHS + 1] = {input(g)};
  for (uint32_t i = 0; i < depth; i++)
    layer[i + 1] = apply(g, i % 2 ? FT_OP_SIGMOID : FT_OP_TANH, layer[i], layer[i]);
  uint32_t v = layer[depth];
  for (uint32_t i = depth; i-- > 0;) v = apply(g, FT_OP_MUL, v, layer[i]);
  return v;
}

static const struct {
  const char *name;
  uint32_t (*draw)(ft_graph *g, uint32_t depth);
} kinds[] = {{"unary", unary}, {"reading", reading}, {"keeping", keeping}};

static ft_workload *draw(uint32_t kind, uint32_t depth) {
  ft_graph *g;
  must(ft_graph_create(arena, "chain", &g, &error));
  must(ft_graph_begin_operator(g, "chain", "Chain", "", &error));
  uint32_t v = kinds[kind].draw(g, depth);
  must(ft_graph_add_output(g, "y", v, &error));
  must(ft_graph_finish(g, &error));
  uint32_t *list = FT_NEW_ARRAY(arena, uint32_t, g->primitive_count);
  for (uint32_t i = 0; i < g->primitive_count; i++) list[i] = i;
  ft_group group;
  ft_workload *workload = FT_NEW(arena, ft_workload);
  must(ft_group_make(g, list, g->primitive_count, arena, &group, &error));
  must(ft_workload_make(&group, arena, workload, &error));
  return workload;
}

// ---- a row -----------------------------------------------------------------------------------

static void compile(ft_nvrtc *nvrtc, const ft_group_ir *ir, uint32_t kind, uint32_t depth,
                    uint32_t vector, uint32_t unroll, const char *arch) {
  ft_simt_choice choice = {.threads = THREADS, .vector = vector, .unroll = unroll};
  ft_kir *kir;
  const char *text;
  ft_simt_launch launch;
  ft_cubin cubin;
  must(ft_simt_nest_build(ir, &choice, arena, &kir, &error));
  must(ft_print_cuda(kir, "chain", &text, &launch, &error));
  must(ft_nvrtc_compile(nvrtc, text, "chain", arch, arena, &cubin, &error));
  if (cubin.outcome != FT_OUTCOME_OK) {
    fprintf(stderr, "chains: %s\n%s\n", cubin.log, text);
    exit(1);
  }
  const ft_static_facts *f = &cubin.facts;
  ft_occupancy o = ft_occupancy_of(ft_chip_find(arch), THREADS, (uint32_t)f->registers,
                                   (uint64_t)f->shared_bytes);
  printf("%s,%u,%s,%u,%u,%d,%lld,%lld,%lld,%lld,%.4f,%s\n", kinds[kind].name, depth, arch,
         vector, unroll, THREADS, (long long)f->registers, (long long)f->stack_bytes,
         (long long)f->spill_store_bytes, (long long)f->spill_load_bytes, o.share,
         ft_occupancy_limit_text(o.limit));
}

int main(void) {
  static const char *const archs[] = {"sm_80", "sm_90"};
  static const uint32_t shapes[][2] = {{1, 1}, {4, 1}, {4, 4}, {8, 4}};
  ft_nvrtc *nvrtc;
  arena = ft_arena_create(ft_allocator_system());
  must(ft_nvrtc_open(ft_allocator_system(), &nvrtc, &error));
  printf("kind,depth,arch,vector,unroll,threads,registers,stack_bytes,spill_store_bytes,"
         "spill_load_bytes,occupancy,limit\n");
  for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (uint32_t depth = 1; depth <= DEPTHS; depth++) {
      ft_group_ir *ir;
      const char *reason;
      must(ft_group_ir_make(draw(k, depth), arena, &ir, &reason, &error));
      for (uint32_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (uint32_t a = 0; a < sizeof archs / sizeof *archs; a++)
          compile(nvrtc, ir, k, depth, shapes[s][0], shapes[s][1], archs[a]);
    }
  ft_nvrtc_close(nvrtc);
  return 0;
}
