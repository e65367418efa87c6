// outcome - how a trial or a build ended. Stored under these names.
#ifndef FT_GRAPH_OUTCOME_H
#define FT_GRAPH_OUTCOME_H

#define FT_OUTCOME_MAP(X)                                                             \
  X(OK, "ok")                                                                         \
  X(WRONG_RESULT, "wrong_result")                                                     \
  X(COMPILE_ERROR, "compile_error")                                                   \
  X(LAUNCH_ERROR,                                                                     \
    "launch_error") /* the module would not load, or the entry returned non-zero */   \
  X(CRASH, "crash")                                                                   \
  X(TIMEOUT, "timeout")                                                               \
  X(OUT_OF_MEMORY, "out_of_memory")                                                   \
  X(RESOURCE_LIMIT, "resource_limit")                                                 \
  X(BEATEN, "beaten") /* stopped early: clearly slower than the best; samples kept */ \
  X(UNSTABLE, "unstable")       /* no usable median */                                \
  X(INTERRUPTED, "interrupted") /* the tuner stopped: retried, never blamed */        \
  X(PENDING, "pending")         /* written down, not yet run */

typedef enum ft_outcome {
#define X(name, text) FT_OUTCOME_##name,
  FT_OUTCOME_MAP(X)
#undef X
      FT_OUTCOME_COUNT
} ft_outcome;

const char *ft_outcome_text(ft_outcome outcome);
ft_outcome ft_outcome_parse(const char *text);  // FT_OUTCOME_COUNT when unknown
// True for what the candidate did (kept, not tried again): all but OK, BEATEN,
// UNSTABLE, INTERRUPTED and PENDING.
int ft_outcome_blames(ft_outcome outcome);

#endif
