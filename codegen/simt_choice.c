#include "codegen/simt_choice.h"

#include <string.h>

#include "core/strbuf.h"

// ---- knobs
// --------------------------------------------------------------------------------

typedef struct knob {
  const char *name;
  size_t offset;  // in ft_simt_any_choice
  bool is_flag;   // a bool, else a uint32_t
} knob;

#define KNOB(skeleton, name) \
  { #name, offsetof(ft_simt_any_choice, skeleton.name), false }
#define FLAG(skeleton, name) \
  { #name, offsetof(ft_simt_any_choice, skeleton.name), true }

static const knob nest_knobs[] = {
    KNOB(nest, threads), KNOB(nest, vector),  KNOB(nest, unroll), KNOB(nest, row_threads),
    KNOB(nest, blocks),  FLAG(nest, streams), {NULL, 0, false},
};
static const knob gemm_knobs[] = {
    KNOB(gemm, block_m),  KNOB(gemm, block_n),  KNOB(gemm, block_k),
    KNOB(gemm, thread_m), KNOB(gemm, thread_n), {NULL, 0, false},
};
static const knob loop_knobs[] = {
    KNOB(loop, threads), KNOB(loop, tile), {NULL, 0, false}};
static const knob turn_knobs[] = {
    KNOB(turn, threads),     KNOB(turn, tile_near),  KNOB(turn, tile_far),
    KNOB(turn, vector_near), KNOB(turn, vector_far), FLAG(turn, swizzles),
    FLAG(turn, streams),     {NULL, 0, false},
};

// ---- skeletons
// ----------------------------------------------------------------------------

static const char *no_axes(const ft_group_ir *ir, const char *reason) {
  if (!ir) return reason ? reason : "out of memory";
  return ir->refusal;
}

// These start from the axes.
#define FROM_AXES(name)                                                                  \
  static const char *name##_refusal(const ft_workload *workload,                         \
                                    const ft_simt_any_choice *choice, ft_arena *arena) { \
    ft_group_ir *ir = NULL;                                                              \
    const char *reason = NULL;                                                           \
    if (ft_group_ir_make(workload, arena, &ir, &reason, NULL) != FT_OK)                  \
      return "out of memory";                                                            \
    reason = no_axes(ir, reason);                                                        \
    return reason ? reason : ft_simt_##name##_refusal(ir, &choice->name, arena);         \
  }                                                                                      \
  static ft_status name##_build(const ft_workload *workload,                             \
                                const ft_simt_any_choice *choice, ft_arena *arena,       \
                                ft_kir **out, ft_error *error) {                         \
    ft_group_ir *ir;                                                                     \
    const char *reason;                                                                  \
    FT_TRY(ft_group_ir_make(workload, arena, &ir, &reason, error));                      \
    if (!ir) FT_FAIL(error, FT_INVALID_ARGUMENT, "no " #name ": %s", reason);            \
    return ft_simt_##name##_build(ir, &choice->name, arena, out, error);                 \
  }
FROM_AXES(nest)
FROM_AXES(turn)

// The others take the workload as it is.
#define FORWARD(name)                                                                    \
  static const char *name##_refusal(const ft_workload *workload,                         \
                                    const ft_simt_any_choice *choice, ft_arena *arena) { \
    return ft_simt_##name##_refusal(workload, &choice->name, arena);                     \
  }                                                                                      \
  static ft_status name##_build(const ft_workload *workload,                             \
                                const ft_simt_any_choice *choice, ft_arena *arena,       \
                                ft_kir **out, ft_error *error) {                         \
    return ft_simt_##name##_build(workload, &choice->name, arena, out, error);           \
  }
FORWARD(gemm)
FORWARD(loop)

static const struct {
  const char *name;
  const knob *knob;
  const char *(*refusal)(const ft_workload *, const ft_simt_any_choice *, ft_arena *);
  ft_status (*build)(const ft_workload *, const ft_simt_any_choice *, ft_arena *,
                     ft_kir **, ft_error *);
} skeletons[] = {
#define FT_SIMT_SKELETON(NAME, name, choice) \
  {#name, name##_knobs, name##_refusal, name##_build},
#include "codegen/simt_skeletons.def"
#undef FT_SIMT_SKELETON
};

const char *ft_simt_any_refusal(const ft_workload *workload,
                                const ft_simt_any_choice *choice, ft_arena *arena) {
  return skeletons[choice->skeleton].refusal(workload, choice, arena);
}

ft_status ft_simt_any_build(const ft_workload *workload, const ft_simt_any_choice *choice,
                            ft_arena *arena, ft_kir **out, ft_error *error) {
  return skeletons[choice->skeleton].build(workload, choice, arena, out, error);
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
