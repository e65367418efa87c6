#include "codegen/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/ptxas_log.h"
#include "core/clock.h"
#include "core/strbuf.h"

// The part of nvrtc.h that is used; the ABI is C and stable within a major version.
typedef void *program_handle;
typedef int version_function(int *major, int *minor);
typedef int create_function(program_handle *out, const char *source, const char *name,
                            int headers, const char *const *text,
                            const char *const *include);
typedef int compile_function(program_handle p, int count, const char *const *options);
typedef int size_function(program_handle p, size_t *out);
typedef int text_function(program_handle p, char *out);
typedef int destroy_function(program_handle *p);
typedef int count_function(int *count);
typedef int archs_function(int *arch);
typedef int flow_callback(void *payload, void *unused);
typedef int flow_function(program_handle p, flow_callback *callback, void *payload);

enum { MOST_ARCHS = 64 };

struct ft_nvrtc {
  const ft_allocator *allocator;
  char version_text[24];
  uint32_t arch_count;
  int arch[MOST_ARCHS];  // 90
  version_function *version;
  create_function *create;
  compile_function *compile;
  size_function *log_size, *cubin_size;
  text_function *log, *cubin;
  destroy_function *destroy;
  count_function *count_archs;
  archs_function *list_archs;
  flow_function *set_flow;  // NULL: older than that
};

enum {
  COMPILE_FAILED = 6,
  BAD_OPTION = 5,
  CANCELLED = 16,
  LOG_BYTES = 1 << 22,
  CUBIN_BYTES = 1 << 28
};

// ---- loading
// ------------------------------------------------------------------------------

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
static const char *const builtins[] = {"libnvrtc-builtins.so.13.0",
                                       "libnvrtc-builtins.so"};

static void *load_from(const char *folder, const char *name) {
  char path[512];
  int length = snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", name);
  if (length < 0 || (size_t)length >= sizeof path) return NULL;
  return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

// The builtins must be loaded before NVRTC looks for them by name.
static void *load_in(const char *folder) {
  for (size_t i = 0; *folder && i < sizeof builtins / sizeof *builtins; i++)
    if (load_from(folder, builtins[i])) break;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *library = load_from(folder, names[i]);
    if (library) return library;
  }
  return NULL;
}

// As NVIDIA's packages lay it out, and as PyPI's do.
static void *load_home(const char *home) {
  static const char *const folders[] = {"lib64", "lib"};
  void *library = NULL;
  for (size_t i = 0; i < sizeof folders / sizeof *folders && !library; i++) {
    char folder[400];
    int length = snprintf(folder, sizeof folder, "%s/%s", home, folders[i]);
    if (length > 0 && length < (int)sizeof folder) library = load_in(folder);
  }
  return library;
}

static void *load(void) {
  const char *home = getenv("CUDA_HOME");
  void *library = home ? load_home(home) : NULL;
  if (!library) library = load_home("/usr/local/cuda");
  return library ? library : load_in("");
}

// dlsym gives an object pointer; C has no cast to a function pointer.
static bool resolve(void *library, const char *name, void *out) {
  void *symbol = dlsym(library, name);
  memcpy(out, &symbol, sizeof symbol);
  return symbol != NULL;
}

static const char *resolve_all(void *library, ft_nvrtc *n) {
  const struct {
    const char *name;
    void *out;
  } wanted[] = {
      {"nvrtcVersion", &n->version},
      {"nvrtcCreateProgram", &n->create},
      {"nvrtcCompileProgram", &n->compile},
      {"nvrtcGetProgramLogSize", &n->log_size},
      {"nvrtcGetProgramLog", &n->log},
      {"nvrtcGetCUBINSize", &n->cubin_size},
      {"nvrtcGetCUBIN", &n->cubin},
      {"nvrtcDestroyProgram", &n->destroy},
      {"nvrtcGetSupportedArchs", &n->list_archs},
      {"nvrtcGetNumSupportedArchs", &n->count_archs},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (!resolve(library, wanted[i].name, wanted[i].out)) return wanted[i].name;
  (void)resolve(library, "nvrtcSetFlowCallback", &n->set_flow);
  return NULL;
}

// The first thing that does not work, or NULL.
static const char *ask_all(ft_nvrtc *n) {
  int major = 0, minor = 0, count = 0;
  if (n->version(&major, &minor)) return "nvrtcVersion";
  snprintf(n->version_text, sizeof n->version_text, "%d.%d", major, minor);
  if (n->count_archs(&count) || count < 0 || count > MOST_ARCHS || n->list_archs(n->arch))
    return "nvrtcGetSupportedArchs";
  n->arch_count = (uint32_t)count;
  return NULL;
}

ft_status ft_nvrtc_open(const ft_allocator *allocator, ft_nvrtc **out, ft_error *error) {
  *out = NULL;
  const char *wanted = getenv("FUSETUNE_NVRTC");
  if (wanted && !strcmp(wanted, "none"))
    FT_FAIL(error, FT_UNAVAILABLE, "FUSETUNE_NVRTC is none");
  void *library = load();
  if (!library)
    FT_FAIL(error, FT_UNAVAILABLE,
            "no libnvrtc in lib64 or lib of $CUDA_HOME or /usr/local/cuda, nor in the "
            "loader's path");
  ft_nvrtc *n = ft_allocate(allocator, sizeof *n, 0);
  FT_OOM_IF(!n, error);
  *n = (ft_nvrtc){.allocator = allocator};
  const char *missing = resolve_all(library, n);
  if (!missing) missing = ask_all(n);
  if (missing) {
    ft_release(allocator, n);
    FT_FAIL(error, FT_UNAVAILABLE, "libnvrtc has no working %s", missing);
  }
  *out = n;
  return FT_OK;
}

void ft_nvrtc_close(ft_nvrtc *n) {
  if (n) ft_release(n->allocator, n);
}

const char *ft_nvrtc_version(const ft_nvrtc *n) {
  return n->version_text;
}

bool ft_nvrtc_knows(const ft_nvrtc *n, const char *arch) {
  for (uint32_t i = 0; i < n->arch_count; i++) {
    char name[24];
    snprintf(name, sizeof name, "sm_%d", n->arch[i]);
    if (!strcmp(name, arch)) return true;
  }
  return false;
}

const char *ft_nvrtc_archs(const ft_nvrtc *n, ft_arena *arena) {
  ft_strbuf text = ft_strbuf_init(arena);
  ft_strbuf_add(&text, "");
  for (uint32_t i = 0; i < n->arch_count; i++)
    ft_strbuf_printf(&text, "%ssm_%d", i ? " " : "", n->arch[i]);
  return text.failed ? NULL : text.text;
}

// ---- compiling
// -----------------------------------------------------------------------------

typedef struct patience {
  uint64_t end_ns;  // of ft_clock_ns; 0: for ever
  const volatile int *stop;
} patience;

// NVRTC asks between its phases; 1 ends the compile.
static int is_over(void *payload, void *unused) {
  const patience *p = payload;
  (void)unused;
  return (p->stop && *p->stop) || (p->end_ns && ft_clock_ns() > p->end_ns);
}

static ft_status read_text(size_function *size, text_function *text, program_handle p,
                           size_t most, const char *what, ft_arena *arena,
                           const char **out, size_t *out_bytes, ft_error *error) {
  size_t bytes = 0;
  if (size(p, &bytes) || bytes > most)
    FT_FAIL(error, FT_INTERNAL, "NVRTC gives a %s of %zu bytes", what, bytes);
  char *copy = ft_arena_alloc(arena, bytes + 1);
  FT_OOM_IF(!copy, error);
  if (bytes && text(p, copy)) FT_FAIL(error, FT_INTERNAL, "NVRTC gives no %s", what);
  copy[bytes] = 0;
  *out = copy;
  *out_bytes = bytes;
  return FT_OK;
}

static ft_status read_results(ft_nvrtc *n, program_handle p, int code, const char *entry,
                              ft_arena *arena, ft_cubin *out, ft_error *error) {
  size_t bytes;
  FT_TRY(read_text(n->log_size, n->log, p, LOG_BYTES, "log", arena, &out->log, &bytes,
                   error));
  out->outcome = code ? FT_OUTCOME_COMPILE_ERROR : FT_OUTCOME_OK;
  bool has_facts = ft_ptxas_log_read(out->log, entry, &out->facts);
  if (code) return FT_OK;
  const char *cubin;
  FT_TRY(read_text(n->cubin_size, n->cubin, p, CUBIN_BYTES, "cubin", arena, &cubin,
                   &out->bytes, error));
  out->data = cubin;
  if (!has_facts) FT_FAIL(error, FT_INTERNAL, "the log of ptxas does not name %s", entry);
  return FT_OK;
}

static ft_status judge(ft_nvrtc *n, program_handle p, int code, const patience *wait,
                       const char *entry, ft_arena *arena, ft_cubin *out,
                       ft_error *error) {
  if (code == CANCELLED && wait->stop && *wait->stop)
    FT_FAIL(error, FT_INTERRUPTED, "interrupted");
  if (code == CANCELLED) {
    out->outcome = FT_OUTCOME_TIMEOUT;
    out->log = "NVRTC took longer than the limit";
    return FT_OK;
  }
  if (code && code != COMPILE_FAILED && code != BAD_OPTION)
    FT_FAIL(error, FT_INTERNAL, "NVRTC fails with code %d", code);
  return read_results(n, p, code, entry, arena, out, error);
}

ft_status ft_nvrtc_compile_within(ft_nvrtc *n, const char *source, const char *entry,
                                  const char *arch, uint64_t limit_ns,
                                  const volatile int *stop, ft_arena *arena,
                                  ft_cubin *out, ft_error *error) {
  *out = (ft_cubin){.outcome = FT_OUTCOME_COMPILE_ERROR};
  const char *option = ft_arena_printf(arena, "-arch=%s", arch);
  FT_OOM_IF(!option, error);
  const char *const options[] = {option, "--ptxas-options=-v", "--minimal",
                                 "--modify-stack-limit=false"};
  patience wait = {limit_ns ? ft_clock_ns() + limit_ns : 0, stop};
  program_handle p = NULL;
  if (n->create(&p, source, "kernel.cu", 0, NULL, NULL))
    FT_FAIL(error, FT_INTERNAL, "NVRTC creates no program");
  if (n->set_flow) (void)n->set_flow(p, is_over, &wait);
  int code = n->compile(p, sizeof options / sizeof *options, options);
  ft_status status = judge(n, p, code, &wait, entry, arena, out, error);
  n->destroy(&p);
  return status;
}

ft_status ft_nvrtc_compile(ft_nvrtc *n, const char *source, const char *entry,
                           const char *arch, ft_arena *arena, ft_cubin *out,
                           ft_error *error) {
  return ft_nvrtc_compile_within(n, source, entry, arch, 0, NULL, arena, out, error);
}
