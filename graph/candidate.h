// candidate - a workload, a tactic and a schedule on a target: what is predicted, built
// and measured.
#ifndef FT_GRAPH_CANDIDATE_H
#define FT_GRAPH_CANDIDATE_H

#include "graph/group.h"
#include "graph/target.h"

enum { FT_MAX_KNOBS = 12 };

// The value of one knob: a number, or a word (then |text| is set, |value| is 0).
typedef struct ft_knob {
  const char *name;  // static
  int64_t value;
  const char *text;  // lives as long as the target
} ft_knob;

// Knobs sorted by name (strcmp).
typedef struct ft_schedule {
  uint32_t count;
  ft_knob knob[FT_MAX_KNOBS];
} ft_schedule;

// Adds in order of name; asserts that the name is new and there is room.
void ft_schedule_set(ft_schedule *schedule, const char *name, int64_t value);
void ft_schedule_set_text(ft_schedule *schedule, const char *name, const char *text);
// The number, or |fallback| when absent.
int64_t ft_schedule_get(const ft_schedule *schedule, const char *name, int64_t fallback);
const char *ft_schedule_get_text(const ft_schedule *schedule,
                                 const char *name);  // or NULL
bool ft_schedule_equal(const ft_schedule *a, const ft_schedule *b);
// {"compiler":"clang-14","threads":2}: compact, sorted, canonical. NULL: out of memory.
const char *ft_schedule_json(const ft_schedule *schedule, ft_arena *arena);
// Reads that form. REFUSED names the position or the knob. Names and words are copied
// into |arena|.
FT_MUST_CHECK ft_status ft_schedule_parse(const char *json, ft_arena *arena,
                                          ft_schedule *out, ft_error *error);

typedef struct ft_candidate {
  const ft_workload *workload;
  const ft_target *target;
  const char *tactic;  // static name from codegen/tactics.def
  ft_schedule schedule;
} ft_candidate;

#endif
