#include "codegen/arch_target.h"

#include <string.h>

#include "codegen/nvrtc.h"
#include "core/strbuf.h"
#include "graph/chip.h"

static const char install[] =
    "install NVRTC 12 or 13 (NVIDIA's package cuda-nvrtc-13-0, or nvidia-cuda-nvrtc from "
    "PyPI), and set CUDA_HOME when it is not in /usr/local/cuda";

// Those that |nvrtc| compiles for; NULL: all.
static void add_archs(ft_strbuf *text, const ft_nvrtc *nvrtc) {
  uint32_t count;
  const ft_chip *chip = ft_chips(&count);
  for (uint32_t i = 0; i < count; i++)
    if (!nvrtc || ft_nvrtc_knows(nvrtc, chip[i].arch))
      ft_strbuf_printf(text, " %s", chip[i].arch);
}

const char *ft_target_names(ft_arena *arena) {
  ft_strbuf text = ft_strbuf_init(arena);
  ft_strbuf_add(&text, "cpu sim");
  add_archs(&text, NULL);
  return text.failed ? NULL : text.text;
}

static ft_target blank(const char *name, const char *kind) {
  return (ft_target){.name = name,
                     .kind = kind,
                     .device = "",
                     .isa = "",
                     .driver = "",
                     .toolkit = "",
                     .libraries = "",
                     .numerics = "f32-accumulate deterministic",
                     .power_class = ""};
}

static ft_status describe(const ft_chip *chip, const ft_nvrtc *nvrtc, ft_arena *arena,
                          ft_target *out, ft_error *error) {
  if (!ft_nvrtc_knows(nvrtc, chip->arch))
    FT_FAIL(error, FT_UNAVAILABLE, "NVRTC %s does not compile for %s: %s",
            ft_nvrtc_version(nvrtc), chip->arch, install);
  *out = blank(chip->arch, "arch");
  out->device = chip->product;
  out->isa = chip->arch;
  out->units = chip->units;
  out->memory_bytes = chip->memory_bytes;
  out->cache_bytes = chip->l2_bytes;
  const char *version = ft_arena_strdup(arena, ft_nvrtc_version(nvrtc));
  out->toolkit = ft_arena_printf(arena, "nvrtc-%s", ft_nvrtc_version(nvrtc));
  FT_OOM_IF(!version || !out->toolkit, error);
  out->compiler_count = 1;
  out->compiler[0] = (ft_compiler){.name = "nvrtc", .version = version, .path = ""};
  return FT_OK;
}

static ft_status describe_chip(const ft_chip *chip, ft_arena *arena, ft_target *out,
                               ft_error *error) {
  ft_nvrtc *nvrtc;
  ft_error why;
  ft_status status = ft_nvrtc_open(ft_allocator_system(), &nvrtc, &why);
  if (status == FT_UNAVAILABLE)
    FT_FAIL(error, status, "target %s needs NVRTC: %s: %s", chip->arch, why.text,
            install);
  if (status != FT_OK) FT_FAIL(error, status, "%s", why.text);
  status = describe(chip, nvrtc, arena, out, error);
  ft_nvrtc_close(nvrtc);
  return status;
}

ft_status ft_arch_target(const char *name, ft_arena *arena, ft_target *out,
                         ft_error *error) {
  if (!strcmp(name, "sim")) {
    *out = blank("sim", "sim");
    return FT_OK;
  }
  const ft_chip *chip = ft_chip_find(name);
  if (chip && !strcmp(chip->arch, name)) return describe_chip(chip, arena, out, error);
  const char *names = ft_target_names(arena);
  FT_OOM_IF(!names, error);
  FT_FAIL(error, FT_INVALID_ARGUMENT, "no target '%.40s': there are %s", name, names);
}

const char *ft_arch_report(ft_arena *arena) {
  ft_nvrtc *nvrtc;
  ft_error why;
  if (ft_nvrtc_open(ft_allocator_system(), &nvrtc, &why) != FT_OK)
    return ft_arena_printf(arena, "none: %s; the targets sm_NN are not offered",
                           why.text);
  const char *archs = ft_nvrtc_archs(nvrtc, arena);
  ft_strbuf text = ft_strbuf_init(arena);
  ft_strbuf_printf(&text, "%s, compiles for %s; targets", ft_nvrtc_version(nvrtc),
                   archs ? archs : "?");
  add_archs(&text, nvrtc);
  ft_nvrtc_close(nvrtc);
  return text.failed ? NULL : text.text;
}
