// cli - what a person types: options, exit codes, printing. One file per verb.
#ifndef FT_CLI_CLI_H
#define FT_CLI_CLI_H

#include "daemon/session.h"

// Exit codes (docs/decisions.md).
enum {
  FT_EXIT_OK = 0,
  FT_EXIT_FAILED = 1,
  FT_EXIT_USAGE = 2,
  FT_EXIT_NOT_FOUND = 3,
  FT_EXIT_REFUSED = 4,
  FT_EXIT_INTERRUPTED = 130,
};

enum { FT_MAX_DIM_OPTIONS = 64 };

// Options that say what a plan must keep to; ft_cli_open binds the model to them.
#define FT_CONSTRAINTS "keep no-fuse fuse subgraph deterministic max-workspace"

typedef struct ft_cli_file {
  const char *name, *path;
} ft_cli_file;

typedef struct ft_cli_options {
  const char *model;
  bool json, verify, graph, recalibrate, help;
  const char *store, *cache, *allow, *target;
  uint64_t time_ns, seed, bytes;
  uint32_t trials, rounds, window, span, jobs, threads, top;
  uint32_t dim_count;
  ft_dim_binding dim[FT_MAX_DIM_OPTIONS];
  uint32_t input_count;
  ft_input_shape input[FT_MAX_DIM_OPTIONS];
  uint32_t file_count;
  ft_cli_file file[FT_MAX_DIM_OPTIONS];
  uint32_t range_count;
  ft_input_range range[FT_MAX_DIM_OPTIONS];
  const char *outputs;
  const char *argument;  // the one that is not an option: a model (then |model| too), ...
  const char *format, *output, *folder, *plan;
  uint64_t since_ns;  // unix time
  uint32_t top_k;
  bool samples;
  ft_constraint_spec constraints;
  double until_gap;
  bool from_store;
} ft_cli_options;

#define FT_VERB(name, function, arguments, text) int function(int argc, char **argv);
#include "cli/verbs.def"
#undef FT_VERB

// Parses what |verb| accepts ("time json dim ...", names of cli/options.def). Returns -1
// to go on, or the exit code (usage printed on stderr; --help on stdout).
// |needs_argument|: the one that cli/verbs.def names.
int ft_cli_parse(const char *verb, const char *accepts, bool needs_argument, int argc,
                 char **argv, ft_cli_options *out);

// Everything a verb needs; close in any case.
typedef struct ft_cli_context {
  ft_cli_options options;
  ft_arena *arena;
  ft_session session;
  ft_model model;
  ft_input_file file[FT_MAX_DIM_OPTIONS];  // those of --input-file, read
} ft_cli_context;
// Reads the input files, loads the model (a file's shape is its input's shape, as --input
// would give it) and opens the session. -1 to go on, or the exit code after printing the
// error.
int ft_cli_open(ft_cli_context *context);
// The same without probing the target: only arena, store and (when one is named) model.
int ft_cli_open_store(ft_cli_context *context);
void ft_cli_close(ft_cli_context *context);

// run on a target without a device: its kernels in SIM. The exit code.
int ft_cli_run_sim(ft_cli_context *context);

// Non-zero once SIGINT or SIGTERM came. The process ends with 130 in any case: by itself,
// or 0.8 s later, or at once by a second signal.
const volatile int *ft_cli_stop_flag(void);

// Prints |error| (as JSON with --json) with a hint; returns the exit code.
int ft_cli_fail(const ft_cli_options *options, const ft_model *model,
                const ft_error *error);
int ft_cli_exit_code(ft_status status);

// The JSON object on stdout, one line; takes the reference.
int ft_cli_print_json(json_t *object);

// For people, on stdout.
void ft_cli_print_answer(const ft_answer *answer);
void ft_cli_print_groups(const ft_answer *answer);
void ft_cli_print_refusals(const ft_answer *answer);
// "12.3 ms", "45 us" into |out|.
const char *ft_cli_time_text(double ns, char out[24]);

// Progress on stderr: one line rewritten on a terminal, plain lines in a pipe.
typedef struct ft_cli_meter {
  bool is_terminal;
  uint64_t last_ns;
  char last_phase[32];
} ft_cli_meter;
ft_cli_meter ft_cli_meter_start(void);
void ft_cli_meter_update(void *meter, const ft_search_progress *progress);
void ft_cli_meter_end(ft_cli_meter *meter);

#endif
