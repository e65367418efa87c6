// status - the error codes and the error value.
//
// Every function that can fail returns an ft_status and takes an ft_error last.
// The error is a value with a fixed buffer: making one never allocates, and it may
// travel between threads. A candidate that fails is an outcome (graph/trial.h),
// not an error: errors are refused input, and our own faults.
#ifndef FT_CORE_STATUS_H
#define FT_CORE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FT_MUST_CHECK __attribute__((warn_unused_result))
#define FT_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

// name, text, what the caller may do
#define FT_STATUS_MAP(X)                                                               \
  X(OK, "ok")                                                                          \
  X(INVALID_ARGUMENT, "invalid argument") /* the caller is wrong: fix the call */      \
  X(REFUSED, "refused input")   /* a file or message breaks a rule; text says which */ \
  X(UNSUPPORTED, "unsupported") /* well-formed, but not something we do */             \
  X(NOT_FOUND, "not found")                                                            \
  X(OUT_OF_MEMORY, "out of memory")                                                    \
  X(IO, "input/output error")                                                          \
  X(CORRUPT, "corrupt store")                                                          \
  X(UNAVAILABLE, "unavailable") /* a tool or device is missing */                      \
  X(INTERRUPTED, "interrupted") /* stopped by a signal; state is saved */              \
  X(INTERNAL, "internal error") /* an invariant of ours is broken */

typedef enum ft_status {
#define X(name, text) FT_##name,
  FT_STATUS_MAP(X)
#undef X
      FT_STATUS_COUNT
} ft_status;

typedef struct ft_error {
  ft_status code;
  char text[1020];  // names the object and the value; always NUL-terminated
} ft_error;

// The lower-case text of |code|, e.g. "refused input". Static storage.
const char *ft_status_text(ft_status code);

// Fills |error| (NULL allowed) and returns |code|.
ft_status ft_error_set(ft_error *error, ft_status code, const char *format, ...)
    FT_PRINTF(3, 4);

// Puts "PREFIX: " before the text of |error|; keeps the code, which it returns.
ft_status ft_error_prefix(ft_error *error, const char *format, ...) FT_PRINTF(2, 3);

#define FT_FAIL(error, code, ...) return ft_error_set((error), (code), __VA_ARGS__)

// Leaves the function with the status of |call| unless it is FT_OK. Use only where
// nothing is held.
#define FT_TRY(call)                      \
  do {                                    \
    ft_status ft_try_ = (call);           \
    if (ft_try_ != FT_OK) return ft_try_; \
  } while (0)

// For allocations: FT_OOM_IF(!p, error).
#define FT_OOM_IF(condition, error)                                                    \
  do {                                                                                 \
    if (condition)                                                                     \
      return ft_error_set((error), FT_OUT_OF_MEMORY, "out of memory in %s", __func__); \
  } while (0)

// Our invariants, never for input. Stays on in release builds: a broken invariant
// stops loudly.
#define FT_ASSERT(condition)                                            \
  do {                                                                  \
    if (!(condition)) ft_assert_failed(#condition, __FILE__, __LINE__); \
  } while (0)
_Noreturn void ft_assert_failed(const char *condition, const char *file, int line);

#endif
