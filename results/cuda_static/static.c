// Static facts of GPU kernels by skeleton and knobs: one CSV row each on stdout, one cubin
// each in the folder given. Nothing is run.
#include <stdio.h>
#include <stdlib.h>

#include "codegen/nest.h"
#include "codegen/nvrtc.h"
#include "codegen/occupancy.h"
#include "codegen/print_simt.h"
#include "codegen/simt_gemm.h"
#include "codegen/simt_loop.h"
#include "codegen/simt_nest.h"
#include "codegen/simt_skinny.h"

#define ARCH "sm_90"

static ft_arena *arena;
static ft_error error;

static void must(ft_status status) {
  if (status == FT_OK) return;
  fprintf(stderr, "static: %s\n", error.text);
  exit(1);
}

// ---- groups ----------------------------------------------------------------------------------

static uint32_t input(ft_graph *g, ft_shape shape) {
  uint32_t value;
  const char *name = ft_arena_printf(arena, "x%u", g->input_count);
  must(ft_graph_add_input(g, name, FT_F32, &shape, &value, &error));
  return value;
}

static uint32_t apply(ft_graph *g, ft_op op, uint32_t a, uint32_t b, uint32_t axes) {
  ft_attr attr = {.axes = axes};
  uint32_t value, in[2] = {a, b};
  must(ft_graph_emit(g, op, in, ft_op_describe(op)->arity, &attr, &value, &error));
  return value;
}

static uint32_t number(ft_graph *g, double n) {
  uint32_t value;
  must(ft_graph_add_scalar(g, FT_F32, n, &value, &error));
  return value;
}

static const ft_shape matrix = {.rank = 2, .dim = {8192, 4096}};
static const ft_shape row = {.rank = 1, .dim = {4096}};
static const ft_shape square = {.rank = 2, .dim = {4096, 4096}};
static const ft_shape few = {.rank = 2, .dim = {2, 4096}};

static uint32_t copy(ft_graph *g) {
  return apply(g, FT_OP_RELU, input(g, matrix), 0, 0);
}
static uint32_t add(ft_graph *g) {
  return apply(g, FT_OP_ADD, input(g, matrix), input(g, matrix), 0);
}
static uint32_t bias_gelu(ft_graph *g) {
  uint32_t x = apply(g, FT_OP_ADD, input(g, matrix), input(g, row), 0);
  uint32_t e = apply(g, FT_OP_ERF, apply(g, FT_OP_DIV, x, number(g, 1.41421356), 0), 0, 0);
  uint32_t half = apply(g, FT_OP_MUL, x, apply(g, FT_OP_ADD, e, number(g, 1), 0), 0);
  return apply(g, FT_OP_MUL, half, number(g, 0.5), 0);
}
static uint32_t softmax(ft_graph *g) {
  uint32_t x = input(g, matrix);
  uint32_t d = apply(g, FT_OP_SUB, x, apply(g, FT_OP_REDUCE_MAX, x, 0, 2), 0);
  uint32_t e = apply(g, FT_OP_EXP, d, 0, 0);
  return apply(g, FT_OP_DIV, e, apply(g, FT_OP_REDUCE_SUM, e, 0, 2), 0);
}
static uint32_t layer_norm(ft_graph *g) {
  uint32_t x = apply(g, FT_OP_ADD, input(g, matrix), input(g, matrix), 0);
  uint32_t n = number(g, 1.0 / 4096);
  uint32_t mean = apply(g, FT_OP_MUL, apply(g, FT_OP_REDUCE_SUM, x, 0, 2), n, 0);
  uint32_t d = apply(g, FT_OP_SUB, x, mean, 0);
  uint32_t square_sum = apply(g, FT_OP_REDUCE_SUM, apply(g, FT_OP_MUL, d, d, 0), 0, 2);
  uint32_t variance = apply(g, FT_OP_MUL, square_sum, n, 0);
  uint32_t root = apply(g, FT_OP_SQRT, apply(g, FT_OP_ADD, variance, number(g, 1e-5), 0), 0, 0);
  return apply(g, FT_OP_MUL, apply(g, FT_OP_DIV, d, root, 0), input(g, row), 0);
}
static uint32_t column_sum(ft_graph *g) {
  return apply(g, FT_OP_REDUCE_SUM, input(g, matrix), 0, 1);
}
static uint32_t product(ft_graph *g) {
  uint32_t y = apply(g, FT_OP_MATMUL, input(g, square), input(g, square), 0);
  return apply(g, FT_OP_RELU, apply(g, FT_OP_ADD, y, input(g, row), 0), 0, 0);
}

static uint32_t few_rows(ft_graph *g) {
  return apply(g, FT_OP_MATMUL, input(g, few), input(g, square), 0);
}
// Weights as a layer has them, [outputs, terms].
static uint32_t few_rows_turned(ft_graph *g) {
  uint32_t weights, x = input(g, few), in = input(g, square);
  ft_attr attr = {.perm = {1, 0}};
  must(ft_graph_emit(g, FT_OP_TRANSPOSE, &in, 1, &attr, &weights, &error));
  return apply(g, FT_OP_MATMUL, x, weights, 0);
}

static const struct {
  const char *name;
  uint32_t (*draw)(ft_graph *g);
  int inputs;  // tensors that a thread streams
} groups[] = {{"copy", copy, 1},         {"add", add, 2},
              {"bias_gelu", bias_gelu, 1}, {"softmax", softmax, 1},
              {"layer_norm", layer_norm, 2}, {"column_sum", column_sum, 1},
              {"few_rows", few_rows, 1},   {"few_rows_turned", few_rows_turned, 1},
              {"product", product, 2}};

static ft_workload *draw(uint32_t kind) {
  ft_graph *g;
  must(ft_graph_create(arena, "g", &g, &error));
  must(ft_graph_begin_operator(g, "g", "Group", "", &error));
  must(ft_graph_add_output(g, "y", groups[kind].draw(g), &error));
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

static ft_nvrtc *nvrtc;
static const char *folder;
static uint32_t rows;

static void save(const ft_cubin *cubin) {
  const char *path = ft_arena_printf(arena, "%s/%u.cubin", folder, rows);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(cubin->data, 1, cubin->bytes, file) != cubin->bytes || fclose(file)) {
    fprintf(stderr, "static: cannot write %s\n", path);
    exit(1);
  }
}

// |in_flight|: bytes that a thread has asked for before it uses any; 0: it strides.
static void put(const char *group, const char *skeleton, const char *knobs, ft_kir *kir,
                int64_t in_flight) {
  const char *text;
  ft_simt_launch launch;
  ft_cubin cubin;
  must(ft_print_cuda(kir, "kernel", &text, &launch, &error));
  must(ft_nvrtc_compile(nvrtc, text, "kernel", ARCH, arena, &cubin, &error));
  if (cubin.outcome != FT_OUTCOME_OK) {
    fprintf(stderr, "static: %s\n%s\n", cubin.log, text);
    exit(1);
  }
  save(&cubin);
  const ft_static_facts *f = &cubin.facts;
  // What is asked for at launch is not in the cubin.
  uint64_t shared = (uint64_t)f->shared_bytes;
  if (launch.is_shared_dynamic) shared += launch.shared_bytes;
  ft_occupancy o = ft_occupancy_of(ft_chip_find(ARCH), launch.threads,
                                   (uint32_t)f->registers, shared);
  printf("%u,%s,%s,%s,%u,%lld,%lld,%lld,%lld,%.4f,%s,%lld\n", rows++, group, skeleton, knobs,
         launch.threads, (long long)f->registers, (long long)f->spill_store_bytes,
         (long long)f->spill_load_bytes, (long long)shared, o.share,
         ft_occupancy_limit_text(o.limit),
         (long long)(in_flight * o.blocks * launch.threads));
}

// Whether the vectors lie along an axis that every tensor is contiguous or constant along.
static bool is_contiguous(const ft_group_ir *ir, bool is_row) {
  uint64_t all = ((uint64_t)1 << ir->axis_count) - 1;
  uint32_t axis = ft_nest_best_axis(ir, is_row ? ir->reduced : all & ~ir->reduced);
  for (uint32_t i = 0; i < ir->node_count; i++)
    if (ir->node[i].kind == FT_NODE_LOAD && ir->node[i].access.stride[axis] > 1) return false;
  return true;
}

static void put_nest(uint32_t kind, const ft_group_ir *ir, ft_simt_choice c) {
  static const char *const names[] = {"reread", "registers", "shared"};
  bool is_serial = ir->reduced && !c.row_threads && c.unroll > 1;
  bool is_whole = c.buffer == FT_SIMT_REGISTERS && c.unroll > 1;  // the row is unrolled
  if (is_serial || is_whole || ft_simt_nest_refusal(ir, &c, arena)) return;
  ft_kir *kir;
  must(ft_simt_nest_build(ir, &c, arena, &kir, &error));
  put(groups[kind].name, c.row_threads ? "row" : ir->reduced ? "column" : "pointwise",
      ft_arena_printf(arena, "vector=%u unroll=%u row_threads=%u buffer=%s", c.vector, c.unroll,
                      c.row_threads, names[c.buffer]),
      kir,
      is_contiguous(ir, c.row_threads)
          ? (int64_t)4 * c.vector * c.unroll * groups[kind].inputs
          : 0);
}

static void put_nests(uint32_t kind, const ft_workload *w) {
  static const uint32_t threads[] = {128, 256, 512}, vectors[] = {1, 4}, unrolls[] = {1, 2, 4};
  static const uint32_t row_threads[] = {0, 32, 128, 256};
  ft_group_ir *ir;
  const char *reason;
  must(ft_group_ir_make(w, arena, &ir, &reason, &error));
  if (!ir || ir->refusal) return;
  static const ft_simt_buffer buffers[] = {FT_SIMT_REREAD, FT_SIMT_REGISTERS, FT_SIMT_SHARED};
  for (int r = 0; r < 4; r++)
    for (int t = 0; t < 3; t++)
      for (int v = 0; v < 2; v++)
        for (int u = 0; u < 3; u++)
          for (int b = 0; b < 3; b++)
            put_nest(kind, ir, (ft_simt_choice){.threads = threads[t], .vector = vectors[v],
                                                .unroll = unrolls[u],
                                                .row_threads = row_threads[r],
                                                .streams = true, .buffer = buffers[b]});
}

static void put_gemms(uint32_t kind, const ft_workload *w) {
  static const struct {
    ft_simt_gemm_choice c;
    const char *how;
  } sets[] = {
      {{64, 64, 8, 4, 4, .stages = 1}, ""},    {{64, 64, 16, 4, 4, .stages = 1}, ""},
      {{128, 64, 8, 8, 4, .stages = 1}, ""},   {{128, 128, 8, 8, 8, .stages = 1}, ""},
      {{128, 128, 16, 8, 8, .stages = 1}, ""}, {{32, 32, 32, 2, 2, .stages = 1}, ""},
      {{64, 64, 16, 4, 4, .stages = 2}, " stages=2"},
      {{64, 64, 16, 4, 4, .stages = 3, .copies = true}, " stages=3 copies=1"},
      {{64, 64, 16, 4, 4, .stages = 3, .copies = true, .splits = 4},
       " stages=3 copies=1 splits=4"},
      {{128, 64, 16, 8, 4, .stages = 2}, " stages=2"},
      {{128, 128, 8, 8, 8, .stages = 2}, " stages=2"},
      {{128, 64, 16, 8, 4, .stages = 2, .shares_sums = true}, " stages=2 shares_sums=1"},
      {{128, 128, 8, 8, 8, .stages = 1, .shares_sums = true}, " shares_sums=1"},
      {{128, 128, 8, 8, 8, .stages = 2, .shares_sums = true}, " stages=2 shares_sums=1"},
      {{128, 128, 8, 8, 8, .stages = 4, .copies = true, .shares_sums = true},
       " stages=4 copies=1 shares_sums=1"}};
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    const ft_simt_gemm_choice *c = &sets[i].c;
    ft_kir *kir;
    if (ft_simt_gemm_refusal(w, c, arena)) continue;
    must(ft_simt_gemm_build(w, c, arena, &kir, &error));
    uint32_t threads = c->block_m / c->thread_m * (c->block_n / c->thread_n);
    put(groups[kind].name, "gemm",
        ft_arena_printf(arena, "block=%ux%ux%u thread=%ux%u%s", c->block_m, c->block_n,
                        c->block_k, c->thread_m, c->thread_n, sets[i].how),
        kir, (int64_t)4 * (c->block_m + c->block_n) * c->block_k / threads);
  }
}

static void put_skinny(uint32_t kind, const ft_workload *w) {
  for (uint32_t terms = 16; terms <= 64; terms *= 2)
    for (uint32_t unroll = 1; unroll <= 4; unroll *= 2) {
      ft_simt_skinny_choice c = {
          .threads = 256, .term_threads = terms, .unroll = unroll, .streams = true};
      ft_kir *kir;
      if (ft_simt_skinny_refusal(w, &c, arena)) continue;
      must(ft_simt_skinny_build(w, &c, arena, &kir, &error));
      put(groups[kind].name, "skinny",
          ft_arena_printf(arena, "term_threads=%u unroll=%u", terms, unroll), kir,
          (int64_t)16 * unroll);
    }
}

static void put_loops(uint32_t kind, const ft_workload *w) {
  for (uint32_t tile = 1; tile <= 8; tile *= 2) {
    ft_simt_loop_choice c = {.threads = 256, .tile = tile};
    ft_kir *kir;
    if (ft_simt_loop_refusal(w, &c, arena)) continue;
    must(ft_simt_loop_build(w, &c, arena, &kir, &error));
    put(groups[kind].name, "loop", ft_arena_printf(arena, "tile=%u", tile), kir,
        (int64_t)4 * (tile + 1));
  }
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: static FOLDER\n");
    return 2;
  }
  folder = argv[1];
  arena = ft_arena_create(ft_allocator_system());
  must(ft_nvrtc_open(ft_allocator_system(), &nvrtc, &error));
  printf("row,group,skeleton,knobs,threads,registers,spill_store_bytes,spill_load_bytes,"
         "shared_bytes,occupancy,limit,bytes_in_flight\n");
  for (uint32_t k = 0; k < sizeof groups / sizeof *groups; k++) {
    const ft_workload *w = draw(k);
    put_nests(k, w);
    put_skinny(k, w);
    bool is_skinny = groups[k].draw == few_rows || groups[k].draw == few_rows_turned;
    if (!is_skinny) put_gemms(k, w);
    if (k + 1 == sizeof groups / sizeof *groups) put_loops(k, w);
  }
  ft_nvrtc_close(nvrtc);
  return 0;
}
