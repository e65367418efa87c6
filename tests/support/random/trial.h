// trial - one random group, its inputs, what it must give, and the kernels tried for it.
#ifndef FT_TESTS_RANDOM_TRIAL_H
#define FT_TESTS_RANDOM_TRIAL_H

#include "codegen/codegen.h"
#include "core/rng.h"
#include "graph/interpreter.h"

// A builder over a target of this machine's compilers, with a cache of its own.
typedef struct bench {
  ft_arena *arena;
  ft_target target;
  ft_codegen *codegen;
  ft_builder builder;
} bench;

// The target for |seed|: vector widths up to the machine's, 1 to 8 threads, caches.
// Strings in |arena|; aborts, naming the call, when there is no compiler.
void bench_open(uint64_t seed, const char *folder, uint32_t jobs, ft_arena *arena,
                bench *out);
void bench_close(bench *b);

typedef struct trial {
  uint64_t seed;
  bool is_part;  // no tactic takes the whole graph: a random part of it
  ft_workload workload;
  ft_tensor *input;
  ft_reference *reference;
  const char *tactic[8];
  uint32_t tactic_count;
} trial;

// The graph of |seed|, or a part of it that some tactic takes; its inputs (some with NaN,
// infinities, masks, denormals), and the reference. NULL, or what is wrong: a single
// primitive that no tactic takes.
const char *trial_make(bench *b, uint64_t seed, trial *out);
// The same of given primitives of |graph|. *out_refusal is set when no tactic takes them.
const char *trial_of(bench *b, const ft_graph *graph, const uint32_t *primitive,
                     uint32_t count, uint64_t seed, trial *out, const char **out_refusal);

// What to try: for each tactic a schedule of its space and, |out| having room for two
// each, one of knobs that are in no space but pass check. With |both| false one of the
// two, by chance. Returns how many. *out_wrong is set when a space is empty or check
// refuses it.
uint32_t trial_draw(bench *b, const trial *t, bool both, ft_candidate *out,
                    const char **out_wrong);

// What was compared.
typedef struct trial_counts {
  uint64_t elements, uncertain;
} trial_counts;

// Runs |module| of |candidate|, twice in different orders of its blocks, and compares.
// NULL, or what went wrong.
const char *trial_run(bench *b, const trial *t, const ft_module *module,
                      trial_counts *counts);

// The report of a failure: seed, group, tactic, schedule, what is wrong, how to rerun.
const char *trial_report(bench *b, const trial *t, const ft_candidate *candidate,
                         const char *wrong);

#endif
