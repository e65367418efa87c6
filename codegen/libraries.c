// Which libraries there are for tactics that call one. Asking the preprocessor and the
// linker's search path takes two short processes; nothing is loaded into this one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "codegen/process.h"
#include "core/file.h"

static const char probe[] =
    "#include <dnnl.h>\n"
    "#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP\n"
    "fusetune_onednn DNNL_VERSION_MAJOR DNNL_VERSION_MINOR DNNL_VERSION_PATCH\n"
    "#else\n"
    "fusetune_other_threads\n"
    "#endif\n";

typedef struct answers {
  char *header, *library;
} answers;

static ft_status ask_both(const ft_compiler *compiler, const char *folder,
                          ft_arena *arena, answers *out, ft_error *error) {
  enum { BYTES = 8 << 20 };  // with all of dnnl.h before it
  const char *source = ft_arena_printf(arena, "%s/probe.c", folder);
  const char *header = ft_arena_printf(arena, "%s/header", folder);
  const char *library = ft_arena_printf(arena, "%s/library", folder);
  FT_OOM_IF(!source || !header || !library, error);
  const char *cpp[] = {compiler->path, "-E", "-P", source, NULL};
  const char *find[] = {compiler->path, "-print-file-name=libdnnl.so", NULL};
  ft_process process[] = {{.argv = cpp, .log_path = header},
                          {.argv = find, .log_path = library}};
  ft_status status = ft_file_write(source, probe, strlen(probe), error);
  if (status == FT_OK)
    status = ft_process_run(process, 2, 2, 10000000000ull, NULL, error);
  if (status == FT_OK && process[0].exit_code == 0)
    out->header = ft_log_read(header, BYTES, arena);
  if (status == FT_OK && process[1].exit_code == 0)
    out->library = ft_log_read(library, 4096, arena);
  unlink(source);
  unlink(header);
  unlink(library);
  return status;
}

static const char *judge(const answers *a, ft_arena *arena, const char **reason) {
  const char *at = a->header ? strstr(a->header, "fusetune_onednn ") : NULL;
  int version[3];
  *reason = !a->header ? "oneDNN: no dnnl.h (Debian: libdnnl-dev)"
            : !at      ? "oneDNN: not built for OpenMP"
                       : "";
  if (**reason) return "";
  if (sscanf(at, "fusetune_onednn %d %d %d", &version[0], &version[1], &version[2]) !=
          3 ||
      version[0] != 2) {
    *reason = "oneDNN: dnnl.h is not of version 2";
    return "";
  }
  // What is not found is printed as it was asked for, without a folder.
  if (!a->library || a->library[0] != '/') {
    *reason = "oneDNN: dnnl.h is there, libdnnl.so is not";
    return "";
  }
  return ft_arena_printf(arena, "onednn-%d.%d.%d", version[0], version[1], version[2]);
}

ft_status ft_libraries_find(const ft_compiler *compiler, ft_arena *arena,
                            const char **out, const char **out_reason, ft_error *error) {
  const char *wanted = getenv("FUSETUNE_LIBRARIES");
  *out = "";
  *out_reason = "FUSETUNE_LIBRARIES is none";
  if (wanted && !strcmp(wanted, "none")) return FT_OK;
  char folder[] = P_tmpdir "/fusetune-libraries-XXXXXX";
  if (!mkdtemp(folder))
    FT_FAIL(error, FT_IO, "cannot make a temporary folder in %s", P_tmpdir);
  answers a = {0};
  ft_status status = ask_both(compiler, folder, arena, &a, error);
  rmdir(folder);
  FT_TRY(status);
  *out = judge(&a, arena, out_reason);
  FT_OOM_IF(!*out, error);
  return FT_OK;
}
