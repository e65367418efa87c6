#include "codegen/simt_blocks.h"

static const char *parts_refusal(const ft_workload *workload, ft_arena *arena,
                                 ft_parts *out) {
  if (ft_parts_make(workload, arena, out, NULL) != FT_OK) return "out of memory";
  if (out->count < 2) return "the group hangs together";
  if (out->count > FT_MOST_PARTS)
    return ft_arena_printf(arena, "%u parts are more than %d", out->count, FT_MOST_PARTS);
  return NULL;
}

static ft_status build_bodies(const ft_parts *parts, const ft_simt_blocks_choice *choice,
                              ft_arena *arena, ft_kir_body *out, ft_error *error) {
  for (uint32_t i = 0; i < parts->count; i++) {
    const ft_part *part = &parts->part[i];
    const ft_group *group = &part->workload.group;
    ft_kir *kir;
    FT_TRY(ft_simt_any_build(&part->workload, &choice->part[i], arena, &kir, error));
    out[i] =
        (ft_kir_body){kir, part->argument, group->input_count + group->output_count + 1};
  }
  return FT_OK;
}

static const char *choices_refusal(const ft_parts *parts,
                                   const ft_simt_blocks_choice *choice, ft_arena *arena) {
  if (choice->count != parts->count)
    return ft_arena_printf(arena, "choices for %u of %u parts", choice->count,
                           parts->count);
  for (uint32_t i = 0; i < parts->count; i++) {
    const char *wrong =
        ft_simt_any_refusal(&parts->part[i].workload, &choice->part[i], arena);
    if (wrong) return ft_arena_printf(arena, "part %u: %s", i, wrong);
  }
  return NULL;
}

const char *ft_simt_blocks_refusal(const ft_workload *workload,
                                   const ft_simt_blocks_choice *choice, ft_arena *arena) {
  ft_parts parts;
  ft_kir_body body[FT_MOST_PARTS];
  ft_error error;
  const char *wrong = parts_refusal(workload, arena, &parts);
  if (!wrong) wrong = choices_refusal(&parts, choice, arena);
  if (wrong) return wrong;
  if (build_bodies(&parts, choice, arena, body, &error) != FT_OK)
    return ft_arena_printf(arena, "%s", error.text);
  wrong = ft_kir_join_refusal(body, parts.count, choice->order, arena);
  if (wrong) return wrong;
  return ft_kir_min_blocks_refusal(choice->min_blocks,
                                   ft_simt_any_threads(&choice->part[0]));
}

ft_status ft_simt_blocks_build(const ft_workload *workload,
                               const ft_simt_blocks_choice *choice, ft_arena *arena,
                               ft_kir **out, ft_error *error) {
  ft_parts parts;
  ft_kir_body body[FT_MOST_PARTS];
  FT_TRY(ft_parts_make(workload, arena, &parts, error));
  FT_TRY(build_bodies(&parts, choice, arena, body, error));
  FT_TRY(ft_kir_join(body, parts.count, choice->order, arena, out, error));
  (*out)->min_blocks = choice->min_blocks;
  return FT_OK;
}

const char *ft_simt_blocks_choose(const ft_workload *workload, uint32_t threads,
                                  ft_kir_order order, ft_arena *arena,
                                  ft_simt_blocks_choice *out) {
  ft_parts parts;
  *out = (ft_simt_blocks_choice){.order = order};
  const char *wrong = parts_refusal(workload, arena, &parts);
  for (uint32_t i = 0; i < parts.count && !wrong; i++) {
    wrong = ft_simt_any_choose(&parts.part[i].workload, threads, arena, &out->part[i]);
    if (wrong) return ft_arena_printf(arena, "part %u: %s", i, wrong);
  }
  out->count = parts.count;
  return wrong;
}
