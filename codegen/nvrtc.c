#include "codegen/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/forked.h"
#include "codegen/ptxas_log.h"
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
  ft_forked *compilers;
};

enum { COMPILE_FAILED = 6, BAD_OPTION = 5, LOG_BYTES = 1 << 22, CUBIN_BYTES = 1 << 28 };

static ft_forked_function compile_in_child;

// Before log and cubin, which follow it.
typedef struct answer_head {
  int32_t code;    // of nvrtcCompileProgram
  int32_t failed;  // of |calls|; 0: none
  uint64_t log_bytes, cubin_bytes;
} answer_head;

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
  ft_status status =
      ft_forked_open(allocator, compile_in_child, n,
                     sizeof(answer_head) + LOG_BYTES + CUBIN_BYTES, &n->compilers, error);
  if (status == FT_OK)
    *out = n;
  else
    ft_release(allocator, n);
  return status;
}

void ft_nvrtc_close(ft_nvrtc *n) {
  if (!n) return;
  ft_forked_close(n->compilers);
  ft_release(n->allocator, n);
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

// ---- in a child
// ------------------------------------------------------------------------------

static const char *const calls[] = {"", "nvrtcCreateProgram", "nvrtcGetProgramLog",
                                    "nvrtcGetCUBIN"};
enum { CALLS = sizeof calls / sizeof *calls };

static const char *read_text(size_function *size, text_function *text, program_handle p,
                             size_t most, ft_arena *arena, uint64_t *out_bytes) {
  size_t bytes = 0;
  if (size(p, &bytes) || bytes > most) return NULL;
  char *copy = ft_arena_alloc(arena, bytes + 1);
  if (!copy || (bytes && text(p, copy))) return NULL;
  *out_bytes = bytes;
  return copy;
}

static bool join(const answer_head *head, const char *log, const char *cubin,
                 ft_arena *arena, ft_bytes *out) {
  size_t size = sizeof *head + head->log_bytes + head->cubin_bytes;
  char *all = ft_arena_alloc(arena, size);
  if (!all) return false;
  memcpy(all, head, sizeof *head);
  if (head->log_bytes) memcpy(all + sizeof *head, log, head->log_bytes);
  if (head->cubin_bytes)
    memcpy(all + sizeof *head + head->log_bytes, cubin, head->cubin_bytes);
  *out = (ft_bytes){all, size};
  return true;
}

// The request: the option that names the arch, NUL, the source, NUL.
static bool compile_in_child(void *ctx, ft_bytes request, ft_arena *arena,
                             ft_bytes *answer) {
  ft_nvrtc *n = ctx;
  const char *option = request.data, *source = option + strlen(option) + 1;
  const char *const options[] = {option, "--ptxas-options=-v", "--minimal",
                                 "--modify-stack-limit=false"};
  answer_head head = {0};
  program_handle p = NULL;
  const char *log = "", *cubin = "";
  if (n->create(&p, source, "kernel.cu", 0, NULL, NULL)) {
    head.failed = 1;
  } else {
    head.code = n->compile(p, sizeof options / sizeof *options, options);
    log = read_text(n->log_size, n->log, p, LOG_BYTES, arena, &head.log_bytes);
    if (!log) head.failed = 2;
    if (!head.code && !head.failed)
      cubin =
          read_text(n->cubin_size, n->cubin, p, CUBIN_BYTES, arena, &head.cubin_bytes);
    if (!cubin) head.failed = 3;
    n->destroy(&p);
  }
  if (head.failed) head.log_bytes = head.cubin_bytes = 0;
  return join(&head, log, cubin, arena, answer);
}

// ---- compiling
// -----------------------------------------------------------------------------

static ft_status take_answer(const answer_head *head, const char *rest, const char *entry,
                             ft_arena *arena, ft_cubin *out, ft_error *error) {
  if (head->failed > 0 && head->failed < CALLS)
    FT_FAIL(error, FT_INTERNAL, "NVRTC: %s fails", calls[head->failed]);
  if (head->code && head->code != COMPILE_FAILED && head->code != BAD_OPTION)
    FT_FAIL(error, FT_INTERNAL, "NVRTC fails with code %d", head->code);
  out->log = ft_arena_strndup(arena, rest, head->log_bytes);
  FT_OOM_IF(!out->log, error);
  bool has_facts = ft_ptxas_log_read(out->log, entry, &out->facts);
  if (head->code) return FT_OK;
  out->outcome = FT_OUTCOME_OK;
  out->bytes = head->cubin_bytes;
  out->data = ft_arena_memdup(arena, rest + head->log_bytes, out->bytes);
  FT_OOM_IF(!out->data, error);
  if (!has_facts) FT_FAIL(error, FT_INTERNAL, "the log of ptxas does not name %s", entry);
  return FT_OK;
}

// What ended without an answer: a bug of the compiler is a bad candidate's outcome.
static ft_status take_end(const ft_nvrtc *n, const ft_forked_end *end, const char *arch,
                          ft_arena *arena, ft_cubin *out, ft_error *error) {
  if (end->way == FT_FORKED_LATE) {
    out->outcome = FT_OUTCOME_TIMEOUT;
    out->log = "NVRTC took longer than the limit";
    return FT_OK;
  }
  const char *how = end->way == FT_FORKED_KILLED
                        ? ft_arena_printf(arena, "by signal %d", end->signal)
                        : "without an answer";
  FT_OOM_IF(!how, error);
  out->log = ft_arena_printf(arena,
                             "NVRTC %s ended %s while it compiled for %s: a bug of "
                             "NVRTC, not of the kernel",
                             n->version_text, how, arch);
  FT_OOM_IF(!out->log, error);
  return FT_OK;
}

// Not by a child that goes by its own rules: NVRTC may have broken anything there.
static bool is_whole(const ft_forked_end *end, answer_head *out) {
  if (end->way != FT_FORKED_ANSWERED || end->answer.size < sizeof *out) return false;
  memcpy(out, end->answer.data, sizeof *out);
  size_t rest = end->answer.size - sizeof *out;
  return out->log_bytes <= rest && out->cubin_bytes == rest - out->log_bytes;
}

static ft_status write_request(const char *source, const char *arch, ft_arena *arena,
                               ft_bytes *out, ft_error *error) {
  ft_strbuf text = ft_strbuf_init(arena);
  ft_strbuf_printf(&text, "-arch=%s", arch);
  size_t option = text.length + 1, bytes = strlen(source) + 1;
  char *request = text.failed ? NULL : ft_arena_alloc(arena, option + bytes);
  FT_OOM_IF(!request, error);
  memcpy(request, text.text, option);
  memcpy(request + option, source, bytes);
  *out = (ft_bytes){request, option + bytes};
  return FT_OK;
}

ft_status ft_nvrtc_compile_within(ft_nvrtc *n, const char *source, const char *entry,
                                  const char *arch, uint64_t limit_ns,
                                  const volatile int *stop, ft_arena *arena,
                                  ft_cubin *out, ft_error *error) {
  *out = (ft_cubin){.outcome = FT_OUTCOME_COMPILE_ERROR};
  ft_forked_call call = {.limit_ns = limit_ns, .stop = stop};
  ft_forked_end end;
  answer_head head;
  FT_TRY(write_request(source, arch, arena, &call.request, error));
  FT_TRY(ft_forked_run(n->compilers, &call, arena, &end, error));
  if (!is_whole(&end, &head)) return take_end(n, &end, arch, arena, out, error);
  const char *rest = (const char *)end.answer.data + sizeof head;
  return take_answer(&head, rest, entry, arena, out, error);
}

ft_status ft_nvrtc_compile(ft_nvrtc *n, const char *source, const char *entry,
                           const char *arch, ft_arena *arena, ft_cubin *out,
                           ft_error *error) {
  return ft_nvrtc_compile_within(n, source, entry, arch, 0, NULL, arena, out, error);
}
