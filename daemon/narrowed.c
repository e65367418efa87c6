#include "daemon/narrowed.h"

#include <string.h>

static const ft_builder *inner(const ft_narrowed *n) {
  return &n->session->builder;
}

// ---- schedules of another target

static bool same_family(const char *a, const char *b) {
  size_t length = strcspn(a, "-");
  return length == strcspn(b, "-") && strncmp(a, b, length) == 0;
}

bool ft_schedule_translate(ft_schedule *schedule, const ft_target *target) {
  const char *old = ft_schedule_get_text(schedule, "compiler"), *name = NULL;
  if (!old || target->compiler_count == 0) return false;
  for (uint32_t i = 0; i < target->compiler_count; i++)
    if (strcmp(target->compiler[i].name, old) == 0) return false;
  for (uint32_t i = 0; i < target->compiler_count && !name; i++)
    if (same_family(target->compiler[i].name, old)) name = target->compiler[i].name;
  if (!name) name = target->compiler[0].name;
  for (uint32_t i = 0; i < schedule->count; i++)
    if (strcmp(schedule->knob[i].name, "compiler") == 0) schedule->knob[i].text = name;
  return true;
}

static ft_status known(const ft_narrowed *n, const ft_workload *workload, ft_arena *arena,
                       ft_old_candidate **out, uint32_t *out_count, ft_error *error) {
  return ft_store_old_candidates(n->session->store, &n->key, workload, n->top, arena, out,
                                 out_count, error);
}

static bool has_tactic(const ft_old_candidate *old, uint32_t count, const char *tactic) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(old[i].tactic, tactic) == 0) return true;
  return false;
}

// ---- the table

static uint32_t match(void *self, const ft_workload *workload, ft_arena *arena,
                      const char **out, uint32_t room, const char **reason) {
  const ft_narrowed *n = self;
  uint32_t count = inner(n)->match(inner(n)->self, workload, arena, out, room, reason);
  ft_old_candidate *old;
  uint32_t old_count, kept = 0;
  ft_error error;
  if (count == 0) return 0;
  if (known(n, workload, arena, &old, &old_count, &error) != FT_OK) {
    *reason = ft_arena_strdup(arena, error.text);
    if (!*reason) *reason = "out of memory";
    return 0;
  }
  for (uint32_t i = 0; i < count; i++)
    if (has_tactic(old, old_count, out[i])) out[kept++] = out[i];
  if (kept > 0) return kept;
  if (workload->group.primitive_count == 1) return count;
  *reason = "unplanned: no stored plan of the old key has this kernel";
  return 0;
}

static bool is_listed(const ft_schedule *list, uint32_t count, const ft_schedule *it) {
  for (uint32_t i = 0; i < count; i++)
    if (ft_schedule_equal(&list[i], it)) return true;
  return false;
}

static uint32_t keep_possible(const ft_narrowed *n, const ft_workload *workload,
                              const char *tactic, const ft_target *target,
                              const ft_old_candidate *old, uint32_t old_count,
                              ft_arena *arena, ft_schedule *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < old_count; i++) {
    if (strcmp(old[i].tactic, tactic) != 0) continue;
    ft_candidate c = {workload, target, tactic, old[i].schedule};
    ft_schedule_translate(&c.schedule, target);
    if (is_listed(out, count, &c.schedule)) continue;
    if (!inner(n)->check(inner(n)->self, &c, arena)) out[count++] = c.schedule;
  }
  return count;
}

static ft_status space(void *self, const ft_workload *workload, const char *tactic,
                       const ft_target *target, ft_arena *arena, ft_schedule **out,
                       uint32_t *out_count, ft_error *error) {
  const ft_narrowed *n = self;
  ft_old_candidate *old;
  uint32_t old_count;
  // Knobs' names and words live as long as the target, whatever becomes of |arena|.
  FT_TRY(known(n, workload, n->session->arena, &old, &old_count, error));
  ft_schedule *list = FT_NEW_ARRAY(arena, ft_schedule, n->top);
  FT_OOM_IF(!list, error);
  *out = list;
  *out_count = keep_possible(n, workload, tactic, target, old, old_count, arena, list);
  if (*out_count > 0) return FT_OK;
  // Nothing of it is possible here: what this version would try first.
  FT_TRY(inner(n)->space(inner(n)->self, workload, tactic, target, arena, out, out_count,
                         error));
  if (*out_count > n->top) *out_count = n->top;
  return FT_OK;
}

static const char *check(void *self, const ft_candidate *candidate, ft_arena *arena) {
  const ft_narrowed *n = self;
  return inner(n)->check(inner(n)->self, candidate, arena);
}

static ft_status emit(void *self, const ft_candidate *candidate, ft_arena *arena,
                      const char **out_source, ft_hash *out_body_hash, ft_error *error) {
  const ft_narrowed *n = self;
  return inner(n)->emit(inner(n)->self, candidate, arena, out_source, out_body_hash,
                        error);
}

static ft_status build(void *self, const ft_candidate *candidate, uint32_t count,
                       bool alone, ft_arena *arena, ft_module *out, ft_error *error) {
  const ft_narrowed *n = self;
  return inner(n)->build(inner(n)->self, candidate, count, alone, arena, out, error);
}

ft_builder ft_narrowed_builder(ft_narrowed *narrowed) {
  return (ft_builder){narrowed, match, space, check, emit, build};
}
