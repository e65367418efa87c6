#include "codegen/tactic.h"

#include <string.h>

static const ft_tactic *const tactics[] = {
#define FT_TACTIC(name) &ft_tactic_##name,
#include "codegen/tactics.def"
#undef FT_TACTIC
};

const ft_tactic *const *ft_tactics(uint32_t *out_count) {
  *out_count = sizeof tactics / sizeof *tactics;
  return tactics;
}

const ft_tactic *ft_tactic_find(const char *name) {
  for (size_t i = 0; i < sizeof tactics / sizeof *tactics; i++) {
    if (!strcmp(tactics[i]->name, name)) return tactics[i];
  }
  return NULL;
}

void ft_schedules_add(ft_schedules *list, const ft_schedule *schedule) {
  if (FT_GROW(list->arena, &list->item, list->count, &list->capacity)) {
    list->failed = true;
    return;
  }
  list->item[list->count++] = *schedule;
}

const ft_compiler *ft_schedule_compiler(const ft_schedule *schedule,
                                        const ft_target *target) {
  const char *name = ft_schedule_get_text(schedule, "compiler");
  for (uint32_t i = 0; name && i < target->compiler_count; i++) {
    if (!strcmp(target->compiler[i].name, name)) return &target->compiler[i];
  }
  return NULL;
}

const char *ft_schedule_refusal(const ft_schedule *schedule, const char *const *names,
                                const ft_target *target, ft_arena *arena) {
  uint32_t count = 0;
  for (; names[count]; count++) {
    if (count == schedule->count || strcmp(schedule->knob[count].name, names[count]))
      return ft_arena_printf(arena, "knob %s is missing or out of place", names[count]);
  }
  if (count < schedule->count)
    return ft_arena_printf(arena, "knob %s is unknown", schedule->knob[count].name);
  if (!ft_schedule_compiler(schedule, target)) {
    const char *name = ft_schedule_get_text(schedule, "compiler");
    return ft_arena_printf(arena, "no compiler %s here", name ? name : "");
  }
  int64_t threads = ft_schedule_get(schedule, "threads", 0);
  if (threads < 1 || threads > (target->threads ? target->threads : 1))
    return ft_arena_printf(arena, "%lld threads of %u", (long long)threads,
                           target->threads);
  return NULL;
}
