// tactic - one way to implement groups: the table behind ft_builder.
//
// To add one: tactic_NAME.c that defines ft_tactic_NAME, and a line in tactics.def.
#ifndef FT_CODEGEN_TACTIC_H
#define FT_CODEGEN_TACTIC_H

#include "codegen/group_ir.h"
#include "codegen/kir.h"
#include "graph/candidate.h"

// What a tactic makes of a candidate: kernel IR, or (test tactics) a body of its own.
typedef struct ft_kernel {
  ft_kir *kir;
  const char *body;  // when |kir| is NULL
  uint32_t grid;
  uint64_t scratch_bytes, workspace_bytes;
  const char *link;  // NULL, or the library that the body calls: "dnnl"
} ft_kernel;

typedef struct ft_schedules {
  ft_arena *arena;
  ft_schedule *item;
  uint32_t count;
  size_t capacity;
  bool failed;  // out of memory
} ft_schedules;

typedef struct ft_tactic {
  const char *name;
  bool is_test;         // only with ft_codegen_options.test_tactics
  bool is_gpu;          // for targets whose kernels are in the shape of a GPU; else cpu
  const char *library;  // NULL, or what target.libraries must name: "onednn"
  // How well it fits: larger is better; < 0 not at all, then *reason says why.
  double (*match)(const ft_group_ir *ir, ft_arena *arena, const char **reason);
  // Every schedule worth trying, default first.
  void (*space)(const ft_group_ir *ir, const ft_target *target, ft_schedules *out);
  // NULL, or why |schedule| cannot work.
  const char *(*check)(const ft_group_ir *ir, const ft_target *target,
                       const ft_schedule *schedule, ft_arena *arena);
  // |schedule| passed check.
  ft_status (*build)(const ft_group_ir *ir, const ft_schedule *schedule, ft_arena *arena,
                     ft_kernel *out, ft_error *error);
} ft_tactic;

#define FT_TACTIC(name) extern const ft_tactic ft_tactic_##name;
#include "codegen/tactics.def"
#undef FT_TACTIC

// All of them, in the order of tactics.def.
const ft_tactic *const *ft_tactics(uint32_t *out_count);
const ft_tactic *ft_tactic_find(const char *name);  // NULL: none

void ft_schedules_add(ft_schedules *list, const ft_schedule *schedule);
// NULL, or why the knobs are not exactly |names| (NULL-terminated, sorted), the compiler
// not one of the target's, or the threads not available.
const char *ft_schedule_refusal(const ft_schedule *schedule, const char *const *names,
                                const ft_target *target, ft_arena *arena);
// The compiler that |schedule| asks for; NULL: none of the target's.
const ft_compiler *ft_schedule_compiler(const ft_schedule *schedule,
                                        const ft_target *target);

#endif
