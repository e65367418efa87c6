#include "codegen/simt_choice.h"

#include <string.h>

#include "core/strbuf.h"

enum { REGISTERS = 65536 };  // of a multiprocessor, on every chip

// ---- knobs
// --------------------------------------------------------------------------------

typedef struct knob {
  const char *name;
  size_t offset;  // in ft_simt_any_choice
  bool is_flag;   // a bool, else a uint32_t
} knob;

#define KNOB(skeleton, name) \
  { #name, offsetof(ft_simt_any_choice, skeleton.name), false }
#define COMMON(name) \
  { #name, offsetof(ft_simt_any_choice, name), false }
#define FLAG(skeleton, name) \
  { #name, offsetof(ft_simt_any_choice, skeleton.name), true }

static const knob nest_knobs[] = {
    KNOB(nest, threads),        KNOB(nest, vector), KNOB(nest, unroll),
    KNOB(nest, row_threads),    KNOB(nest, blocks), FLAG(nest, streams),
    KNOB(nest, column_threads), KNOB(nest, splits), KNOB(nest, buffer),
    FLAG(nest, loads_once),     COMMON(min_blocks), {NULL, 0, false},
};
_Static_assert(sizeof(ft_simt_buffer) == sizeof(uint32_t), "a knob");
static const knob gemm_knobs[] = {
    KNOB(gemm, block_m),  KNOB(gemm, block_n),  KNOB(gemm, block_k),
    KNOB(gemm, thread_m), KNOB(gemm, thread_n), KNOB(gemm, stages),
    KNOB(gemm, splits),   FLAG(gemm, copies),   FLAG(gemm, shares_sums),
    COMMON(min_blocks),   {NULL, 0, false},
};
static const knob loop_knobs[] = {
    KNOB(loop, threads), KNOB(loop, tile), COMMON(min_blocks), {NULL, 0, false}};
static const knob skinny_knobs[] = {
    KNOB(skinny, threads), KNOB(skinny, term_threads), KNOB(skinny, unroll),
    FLAG(skinny, streams), COMMON(min_blocks),         {NULL, 0, false},
};
static const knob conv_knobs[] = {
    KNOB(conv, tile_channels),
    KNOB(conv, tile_positions),
    KNOB(conv, slab),
    KNOB(conv, thread_channels),
    KNOB(conv, thread_positions),
    KNOB(conv, vector),
    COMMON(min_blocks),
    {NULL, 0, false},
};
static const knob window_knobs[] = {
    KNOB(window, threads),     KNOB(window, tile_rows), KNOB(window, tile_columns),
    KNOB(window, tile_planes), COMMON(min_blocks),      {NULL, 0, false},
};
static const knob turn_knobs[] = {
    KNOB(turn, threads),     KNOB(turn, tile_near),  KNOB(turn, tile_far),
    KNOB(turn, vector_near), KNOB(turn, vector_far), FLAG(turn, swizzles),
    FLAG(turn, streams),     COMMON(min_blocks),     {NULL, 0, false},
};

// ---- skeletons
// ----------------------------------------------------------------------------

// The group's axes; *out_reason when it has none.
static ft_status axes_of(const ft_workload *workload, ft_arena *arena, ft_group_ir **out,
                         const char **out_reason, ft_error *error) {
  *out_reason = NULL;
  FT_TRY(ft_group_ir_make(workload, arena, out, out_reason, error));
  if (*out) *out_reason = (*out)->refusal;
  return FT_OK;
}

// What takes axes.
#define OVER_AXES(name)                                                                  \
  static const char *name##_refusal(const ft_workload *workload,                         \
                                    const ft_simt_any_choice *choice, ft_arena *arena) { \
    ft_group_ir *ir;                                                                     \
    const char *reason;                                                                  \
    if (axes_of(workload, arena, &ir, &reason, NULL) != FT_OK) return "out of memory";   \
    return reason ? reason : ft_simt_##name##_refusal(ir, &choice->name, arena);         \
  }                                                                                      \
  static ft_status name##_build(const ft_workload *workload,                             \
                                const ft_simt_any_choice *choice, ft_arena *arena,       \
                                ft_kir **out, ft_error *error) {                         \
    ft_group_ir *ir;                                                                     \
    const char *reason;                                                                  \
    FT_TRY(axes_of(workload, arena, &ir, &reason, error));                               \
    if (reason) FT_FAIL(error, FT_INVALID_ARGUMENT, "no " #name ": %s", reason);         \
    return ft_simt_##name##_build(ir, &choice->name, arena, out, error);                 \
  }
OVER_AXES(nest)
OVER_AXES(turn)

// What takes the workload as it is.
#define OVER_WORKLOAD(name)                                                              \
  static const char *name##_refusal(const ft_workload *workload,                         \
                                    const ft_simt_any_choice *choice, ft_arena *arena) { \
    return ft_simt_##name##_refusal(workload, &choice->name, arena);                     \
  }                                                                                      \
  static ft_status name##_build(const ft_workload *workload,                             \
                                const ft_simt_any_choice *choice, ft_arena *arena,       \
                                ft_kir **out, ft_error *error) {                         \
    return ft_simt_##name##_build(workload, &choice->name, arena, out, error);           \
  }
OVER_WORKLOAD(gemm)
OVER_WORKLOAD(loop)
OVER_WORKLOAD(skinny)
OVER_WORKLOAD(conv)
OVER_WORKLOAD(window)

#define OWN_THREADS(name)                                            \
  static uint32_t name##_threads(const ft_simt_any_choice *choice) { \
    return choice->name.threads;                                     \
  }
OWN_THREADS(nest)
OWN_THREADS(loop)
OWN_THREADS(turn)
OWN_THREADS(skinny)
OWN_THREADS(window)

static uint32_t gemm_threads(const ft_simt_any_choice *choice) {
  return ft_simt_gemm_threads(&choice->gemm);
}

static uint32_t conv_threads(const ft_simt_any_choice *choice) {
  return ft_simt_conv_threads(&choice->conv);
}

static const struct {
  const char *name;
  const knob *knob;
  uint32_t (*threads)(const ft_simt_any_choice *);
  const char *(*refusal)(const ft_workload *, const ft_simt_any_choice *, ft_arena *);
  ft_status (*build)(const ft_workload *, const ft_simt_any_choice *, ft_arena *,
                     ft_kir **, ft_error *);
} skeletons[] = {
#define FT_SIMT_SKELETON(NAME, name, choice) \
  {#name, name##_knobs, name##_threads, name##_refusal, name##_build},
#include "codegen/simt_skeletons.def"
#undef FT_SIMT_SKELETON
};

const char *ft_simt_any_refusal(const ft_workload *workload,
                                const ft_simt_any_choice *choice, ft_arena *arena) {
  const char *wrong = skeletons[choice->skeleton].refusal(workload, choice, arena);
  if (wrong) return wrong;
  return ft_kir_min_blocks_refusal(choice->min_blocks, ft_simt_any_threads(choice));
}

ft_status ft_simt_any_build(const ft_workload *workload, const ft_simt_any_choice *choice,
                            ft_arena *arena, ft_kir **out, ft_error *error) {
  FT_TRY(skeletons[choice->skeleton].build(workload, choice, arena, out, error));
  (*out)->min_blocks = choice->min_blocks;
  return FT_OK;
}

uint32_t ft_simt_any_threads(const ft_simt_any_choice *choice) {
  return skeletons[choice->skeleton].threads(choice);
}

uint32_t ft_simt_min_blocks(uint32_t threads, uint32_t registers) {
  uint32_t blocks = REGISTERS / (threads * registers);
  return blocks > FT_KIR_MOST_BLOCKS ? FT_KIR_MOST_BLOCKS : blocks;
}

const char *ft_simt_skeleton_name(ft_simt_skeleton skeleton) {
  return skeletons[skeleton].name;
}

const char *ft_simt_knob_name(ft_simt_skeleton skeleton, uint32_t index) {
  const knob *k = skeletons[skeleton].knob;
  for (uint32_t i = 0; i < index && k->name; i++) k++;
  return k->name;
}

uint32_t ft_simt_knob_get(const ft_simt_any_choice *choice, uint32_t index) {
  const knob *k = &skeletons[choice->skeleton].knob[index];
  const char *at = (const char *)choice + k->offset;
  if (k->is_flag) return *(const unsigned char *)at != 0;
  uint32_t number;
  memcpy(&number, at, sizeof number);
  return number;
}

void ft_simt_knob_set(ft_simt_any_choice *choice, uint32_t index, uint32_t value) {
  const knob *k = &skeletons[choice->skeleton].knob[index];
  char *at = (char *)choice + k->offset;
  bool flag = value != 0;
  if (k->is_flag)
    memcpy(at, &flag, sizeof flag);
  else
    memcpy(at, &value, sizeof value);
}

const char *ft_simt_any_text(const ft_simt_any_choice *choice, ft_arena *arena) {
  ft_strbuf text = ft_strbuf_init(arena);
  const char *name;
  ft_strbuf_add(&text, ft_simt_skeleton_name(choice->skeleton));
  for (uint32_t i = 0; (name = ft_simt_knob_name(choice->skeleton, i)); i++) {
    uint32_t value = ft_simt_knob_get(choice, i);
    if (value) ft_strbuf_printf(&text, " %s=%u", name, value);
  }
  return text.failed ? NULL : text.text;
}

// ---- usual choices
// -----------------------------------------------------------------------

// What is in front fits less, and is better where it does. |threads| 0: of any size.
static const struct {
  uint32_t threads;
  ft_simt_any_choice choice;
} usual[] = {
    {0, {FT_SIMT_NEST, .nest = {.vector = 4, .unroll = 1, .row_threads = 32}}},
    {0, {FT_SIMT_NEST, .nest = {.vector = 1, .unroll = 1, .row_threads = 32}}},
    {64, {FT_SIMT_GEMM, .gemm = {32, 32, 16, 4, 4, .stages = 1}}},
    {128, {FT_SIMT_GEMM, .gemm = {32, 64, 16, 4, 4, .stages = 1}}},
    {256, {FT_SIMT_GEMM, .gemm = {64, 64, 16, 4, 4, .stages = 1}}},
    {512, {FT_SIMT_GEMM, .gemm = {64, 128, 16, 4, 4, .stages = 1}}},
    {1024, {FT_SIMT_GEMM, .gemm = {128, 128, 16, 4, 4, .stages = 1}}},
    {0, {FT_SIMT_NEST, .nest = {.vector = 4, .unroll = 1}}},
    {0, {FT_SIMT_NEST, .nest = {.vector = 1, .unroll = 1}}},
    {0, {FT_SIMT_LOOP, .loop = {.tile = 4}}},
};

static void set_threads(ft_simt_any_choice *choice, uint32_t threads) {
  const char *name;
  for (uint32_t i = 0; (name = ft_simt_knob_name(choice->skeleton, i)); i++)
    if (!strcmp(name, "threads")) ft_simt_knob_set(choice, i, threads);
}

const char *ft_simt_any_choose(const ft_workload *workload, uint32_t threads,
                               ft_arena *arena, ft_simt_any_choice *out) {
  const char *wrong = "no skeleton";
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
    if (usual[i].threads && usual[i].threads != threads) continue;
    *out = usual[i].choice;
    set_threads(out, threads);
    wrong = ft_simt_any_refusal(workload, out, arena);
    if (!wrong) return NULL;
  }
  return wrong;
}
