#include "measure/cpu_target.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/strbuf.h"

#define CPU_FOLDER "/sys/devices/system/cpu"

enum { TEXT_BYTES = 1 << 16 };

// Vector extensions as /proc/cpuinfo spells them, sorted; bytes: of their registers.
static const struct {
  const char *flag;
  uint32_t bytes;
} extensions[] = {
    {"amx_bf16", 0},     {"amx_int8", 0},
    {"amx_tile", 0},     {"asimd", 16},
    {"asimddp", 16},     {"asimdhp", 16},
    {"avx", 32},         {"avx2", 32},
    {"avx512_bf16", 64}, {"avx512_bitalg", 64},
    {"avx512_fp16", 64}, {"avx512_vbmi2", 64},
    {"avx512_vnni", 64}, {"avx512_vpopcntdq", 64},
    {"avx512bw", 64},    {"avx512cd", 64},
    {"avx512dq", 64},    {"avx512f", 64},
    {"avx512ifma", 64},  {"avx512vbmi", 64},
    {"avx512vl", 64},    {"avx_vnni", 32},
    {"bf16", 16},        {"f16c", 16},
    {"fma", 16},         {"i8mm", 16},
    {"sse4_1", 16},      {"sse4_2", 16},
    {"sve", 16},         {"sve2", 16},
};
enum { EXTENSIONS = sizeof extensions / sizeof *extensions };

// The first |room| - 1 bytes of a file, NUL-terminated; false when it cannot be read.
static bool read_text(const char *path, char *out, size_t room) {
  FILE *file = fopen(path, "re");
  out[0] = '\0';
  if (!file) return false;
  size_t got = fread(out, 1, room - 1, file);
  out[got] = '\0';
  fclose(file);
  return got > 0;
}

static bool read_line(const char *path, char *out, size_t room) {
  if (!read_text(path, out, room)) return false;
  out[strcspn(out, "\n")] = '\0';
  return out[0] != '\0';
}

static bool has_word(const char *text, const char *word) {
  size_t length = strlen(word);
  for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
    bool begins = at == text || at[-1] == ' ' || at[-1] == '\t';
    bool ends = at[length] == '\0' || strchr(" \t\n", at[length]);
    if (begins && ends) return true;
  }
  return false;
}

const char *ft_cpu_isa(const char *flags, ft_arena *arena, uint32_t *out_vector_bytes) {
  ft_strbuf out = ft_strbuf_init(arena);
  *out_vector_bytes = 0;
  for (int i = 0; i < EXTENSIONS; i++) {
    if (!has_word(flags, extensions[i].flag)) continue;
    ft_strbuf_printf(&out, "%s%s", out.length ? " " : "", extensions[i].flag);
    if (extensions[i].bytes > *out_vector_bytes) *out_vector_bytes = extensions[i].bytes;
  }
  return out.failed ? NULL : out.text;
}

uint64_t ft_cpu_size_bytes(const char *text) {
  char *end;
  uint64_t value = strtoull(text, &end, 10);
  if (end == text) return 0;
  const char *units = "KMG";
  const char *unit = *end ? strchr(units, *end) : NULL;
  return unit ? value << (10 * (unit - units + 1)) : value;
}

// The value of "key : value" in /proc/cpuinfo's first block, in |arena|; "" when absent.
static const char *cpuinfo_value(const char *text, const char *key, ft_arena *arena) {
  size_t length = strlen(key);
  for (const char *line = text; line && *line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, key, length) != 0) continue;
    const char *rest = line + length + strspn(line + length, " \t");
    if (*rest != ':') continue;
    rest += 1 + strspn(rest + 1, " \t");
    return ft_arena_strndup(arena, rest, strcspn(rest, "\n"));
  }
  return "";
}

const char *ft_cpu_device(const char *cpuinfo, ft_arena *arena) {
  const char *name = cpuinfo_value(cpuinfo, "model name", arena);
  const char *family = cpuinfo_value(cpuinfo, "cpu family", arena);
  const char *model = cpuinfo_value(cpuinfo, "model", arena);
  const char *stepping = cpuinfo_value(cpuinfo, "stepping", arena);
  if (!name || !family || !model || !stepping) return NULL;
  if (*family)
    return ft_arena_printf(arena, "%s fam %s model %s step %s", name, family, model,
                           stepping);
  const char *implementer = cpuinfo_value(cpuinfo, "CPU implementer", arena);
  const char *part = cpuinfo_value(cpuinfo, "CPU part", arena);
  if (!implementer || !part) return NULL;
  return *part ? ft_arena_printf(arena, "implementer %s part %s", implementer, part)
               : name;
}

static ft_status probe_cpuinfo(ft_arena *arena, ft_target *out, ft_error *error) {
  char *text = ft_arena_alloc(arena, TEXT_BYTES);
  FT_OOM_IF(!text, error);
  (void)read_text("/proc/cpuinfo", text, TEXT_BYTES);
  out->device = ft_cpu_device(text, arena);
  const char *flags = cpuinfo_value(text, "flags", arena);
  if (flags && !*flags) flags = cpuinfo_value(text, "Features", arena);
  FT_OOM_IF(!out->device || !flags, error);
  out->isa = ft_cpu_isa(flags, arena, &out->vector_bytes);
  FT_OOM_IF(!out->isa, error);
  return FT_OK;
}

// Distinct (package, core) pairs among the allowed cpus; 0 when unknown.
static ft_status probe_threads(ft_arena *arena, ft_target *out, ft_error *error) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return FT_OK;
  uint64_t *seen = FT_NEW_ARRAY(arena, uint64_t, CPU_SETSIZE);
  FT_OOM_IF(!seen, error);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET((size_t)cpu, &set)) continue;
    char path[128], text[32];
    uint64_t id = 0;
    bool is_known = true;
    static const char *const parts[] = {"physical_package_id", "core_id"};
    for (int i = 0; i < 2; i++) {
      snprintf(path, sizeof path, CPU_FOLDER "/cpu%d/topology/%s", cpu, parts[i]);
      is_known = is_known && read_line(path, text, sizeof text);
      id = id << 32 | (uint32_t)strtoul(text, NULL, 10);
    }
    out->threads++;
    uint32_t i = 0;
    while (i < out->units && seen[i] != id) i++;
    if (is_known && i == out->units) seen[out->units++] = id;
  }
  return FT_OK;
}

// Data and unified caches of cpu 0: level 2, and the last level.
static void probe_caches(ft_target *out) {
  uint64_t last_level = 0;
  for (int index = 0; index < 16; index++) {
    char path[128], type[32], level_text[32], size[32];
    snprintf(path, sizeof path, CPU_FOLDER "/cpu0/cache/index%d/type", index);
    if (!read_line(path, type, sizeof type)) return;
    if (strcmp(type, "Instruction") == 0) continue;
    snprintf(path, sizeof path, CPU_FOLDER "/cpu0/cache/index%d/level", index);
    if (!read_line(path, level_text, sizeof level_text)) continue;
    snprintf(path, sizeof path, CPU_FOLDER "/cpu0/cache/index%d/size", index);
    if (!read_line(path, size, sizeof size)) continue;
    uint64_t level = strtoull(level_text, NULL, 10);
    if (level == 2) out->l2_bytes = ft_cpu_size_bytes(size);
    if (level < last_level) continue;
    last_level = level;
    out->cache_bytes = ft_cpu_size_bytes(size);
  }
}

static void probe_memory(ft_target *out) {
  long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0)
    out->memory_bytes = (uint64_t)pages * (uint64_t)page_bytes;
}

const char *ft_cpu_bracketed(char *text) {
  char *open = strchr(text, '[');
  if (!open) return "unknown";
  open[1 + strcspn(open + 1, "]")] = '\0';
  return open + 1;
}

static ft_status probe_power(ft_arena *arena, ft_target *out, ft_error *error) {
  char pages[64], governor[64];
  (void)read_line("/sys/kernel/mm/transparent_hugepage/enabled", pages, sizeof pages);
  if (!read_line(CPU_FOLDER "/cpu0/cpufreq/scaling_governor", governor, sizeof governor))
    snprintf(governor, sizeof governor, "unknown");
  out->power_class = ft_arena_printf(arena, "hugepages %s governor %s",
                                     ft_cpu_bracketed(pages), governor);
  FT_OOM_IF(!out->power_class, error);
  return FT_OK;
}

ft_status ft_cpu_target_probe(ft_arena *arena, ft_target *out, ft_error *error) {
  *out = (ft_target){.name = "cpu",
                     .kind = "cpu",
                     .driver = "",
                     .toolkit = "",
                     .libraries = "",
                     .numerics = "f32-accumulate deterministic"};
  FT_TRY(probe_cpuinfo(arena, out, error));
  FT_TRY(probe_threads(arena, out, error));
  FT_TRY(probe_power(arena, out, error));
  probe_caches(out);
  probe_memory(out);
  return FT_OK;
}
