#include "search/constraints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/strbuf.h"

typedef struct kept {
  uint32_t value;  // a root that a primitive computes, and no output of the graph
  const char *reason;
} kept;

typedef struct apart {
  uint32_t a, b;  // operators
  const char *reason;
} apart;

typedef struct together {
  uint32_t count;
  uint32_t *primitive;
  const char *reason;
} together;

struct ft_constraints {
  const ft_graph *graph;
  uint32_t keep_count, apart_count, class_count;
  kept *keep;
  apart *apart;
  together *class;
  uint32_t *class_of;  // [operators] FT_NONE: in no class
  bool *is_inside;     // [operators] NULL: there is no outside
  const char *outside_reason;
  bool is_deterministic;
};

// ---- the text ------------------------------------------------------------------

bool ft_constraint_spec_is_empty(const ft_constraint_spec *s) {
  return !s->keep_count && !s->no_fuse_count && !s->fuse_count && !s->between.a &&
         !s->is_deterministic && !s->max_workspace_bytes;
}

static void put_string(ft_strbuf *out, const char *text) {
  ft_strbuf_add(out, "\"");
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      ft_strbuf_printf(out, "\\%c", *text);
    else if ((unsigned char)*text < 0x20)
      ft_strbuf_printf(out, "\\u%04x", (unsigned char)*text);
    else
      ft_strbuf_addn(out, text, 1);
  }
  ft_strbuf_add(out, "\"");
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_names(const void *a, const void *b) {
  const ft_name_pair *x = a, *y = b;
  int order = strcmp(x->a, y->a);
  return order ? order : strcmp(x->b, y->b);
}

static void put_key(ft_strbuf *out, const char *key) {
  ft_strbuf_printf(out, "%s\"%s\":", out->length > 1 ? "," : "", key);
}

static void put_pair(ft_strbuf *out, ft_name_pair pair) {
  ft_strbuf_add(out, "[");
  put_string(out, pair.a);
  ft_strbuf_add(out, ",");
  put_string(out, pair.b);
  ft_strbuf_add(out, "]");
}

// Pairs have no direction and no order.
static void put_pairs(ft_strbuf *out, const char *key, const ft_name_pair *pair,
                      uint32_t count) {
  if (!count) return;
  ft_name_pair sorted[FT_MAX_CONSTRAINTS];
  for (uint32_t i = 0; i < count; i++) {
    bool swap = strcmp(pair[i].a, pair[i].b) > 0;
    sorted[i] = swap ? (ft_name_pair){pair[i].b, pair[i].a} : pair[i];
  }
  qsort(sorted, count, sizeof *sorted, by_names);
  put_key(out, key);
  for (uint32_t i = 0; i < count; i++) {
    if (i && by_names(&sorted[i], &sorted[i - 1]) == 0) continue;
    ft_strbuf_add(out, i ? "," : "[");
    put_pair(out, sorted[i]);
  }
  ft_strbuf_add(out, "]");
}

static void put_keep(ft_strbuf *out, const ft_constraint_spec *spec) {
  if (!spec->keep_count) return;
  const char *sorted[FT_MAX_CONSTRAINTS];
  memcpy(sorted, spec->keep, spec->keep_count * sizeof *sorted);
  qsort(sorted, spec->keep_count, sizeof *sorted, by_name);
  put_key(out, "keep");
  for (uint32_t i = 0; i < spec->keep_count; i++) {
    if (i && strcmp(sorted[i], sorted[i - 1]) == 0) continue;
    ft_strbuf_add(out, i ? "," : "[");
    put_string(out, sorted[i]);
  }
  ft_strbuf_add(out, "]");
}

const char *ft_constraint_spec_text(const ft_constraint_spec *spec, ft_arena *arena) {
  if (ft_constraint_spec_is_empty(spec)) return "";
  ft_strbuf out = ft_strbuf_init(arena);
  ft_strbuf_add(&out, "{");
  if (spec->is_deterministic) {
    put_key(&out, "deterministic");
    ft_strbuf_add(&out, "true");
  }
  put_pairs(&out, "fuse", spec->fuse, spec->fuse_count);
  put_keep(&out, spec);
  if (spec->max_workspace_bytes) {
    put_key(&out, "max_workspace_bytes");
    ft_strbuf_printf(&out, "%llu", (unsigned long long)spec->max_workspace_bytes);
  }
  put_pairs(&out, "no_fuse", spec->no_fuse, spec->no_fuse_count);
  if (spec->between.a) {
    put_key(&out, "subgraph");
    put_pair(&out, spec->between);
  }
  ft_strbuf_add(&out, "}");
  return out.failed ? NULL : out.text;
}

// ---- names ---------------------------------------------------------------------

enum { NEAR = 4, DISTANCE_CHARS = 63 };

// How many single-character edits turn one into the other; long names by their ends,
// where exported models differ.
static uint32_t distance(const char *a, const char *b) {
  size_t m = strlen(a), n = strlen(b);
  if (m > DISTANCE_CHARS) a += m - DISTANCE_CHARS, m = DISTANCE_CHARS;
  if (n > DISTANCE_CHARS) b += n - DISTANCE_CHARS, n = DISTANCE_CHARS;
  uint32_t row[DISTANCE_CHARS + 1];
  for (uint32_t k = 0; k <= n; k++) row[k] = k;
  for (size_t i = 1; i <= m; i++) {
    uint32_t diagonal = row[0];
    row[0] = (uint32_t)i;
    for (size_t k = 1; k <= n; k++) {
      uint32_t best = diagonal + (a[i - 1] != b[k - 1]);
      diagonal = row[k];
      if (row[k] + 1 < best) best = row[k] + 1;
      if (row[k - 1] + 1 < best) best = row[k - 1] + 1;
      row[k] = best;
    }
  }
  return row[n];
}

// What a name is looked up in: operators with primitives, or values.
typedef struct directory {
  const ft_graph *graph;
  const char *noun;
  uint32_t count;
  const char *(*name)(const ft_graph *graph, uint32_t index);  // NULL: not for people
} directory;

static const char *operator_name(const ft_graph *graph, uint32_t index) {
  const ft_operator *op = &graph->operator_[index];
  return op->count ? op->name : NULL;
}

static const char *value_name(const ft_graph *graph, uint32_t index) {
  return graph->value[index].name;
}

static bool holds(const char *text, const char *part) {
  return *part && strstr(text, part) != NULL;
}

// Fills |error| with the NEAR names most like |name|.
static ft_status not_found(const directory *d, const char *option, const char *name,
                           ft_error *error) {
  const char *near[NEAR] = {0};
  uint32_t score[NEAR], count = 0;
  for (uint32_t i = 0; i < d->count; i++) {
    const char *other = d->name(d->graph, i);
    if (!other || !*other) continue;
    bool is_part = holds(other, name) || holds(name, other);
    uint32_t points = is_part ? 1 : distance(name, other), at = count;
    while (at && score[at - 1] > points) at--;
    if (at == NEAR) continue;
    if (count < NEAR) count++;
    for (uint32_t k = count - 1; k > at; k--)
      near[k] = near[k - 1], score[k] = score[k - 1];
    near[at] = other;
    score[at] = points;
  }
  char list[256] = "none has a name";
  size_t used = 0;
  for (uint32_t i = 0; i < count && used < sizeof list - 1; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s'%s'", i ? ", " : "",
                             near[i]);
  FT_FAIL(error, FT_INVALID_ARGUMENT, "%s: no %s is called '%s'; near it: %s", option,
          d->noun, name, list);
}

static ft_status look_up(const directory *d, const char *option, const char *name,
                         uint32_t *out, ft_error *error) {
  for (uint32_t i = 0; i < d->count; i++) {
    const char *other = d->name(d->graph, i);
    if (!other || strcmp(other, name) != 0) continue;
    *out = i;
    return FT_OK;
  }
  return not_found(d, option, name, error);
}

static ft_status find_operator(const ft_graph *graph, const char *option,
                               const char *name, uint32_t *out, ft_error *error) {
  directory d = {graph, "operator with kernels", graph->operator_count, operator_name};
  return look_up(&d, option, name, out, error);
}

static ft_status find_pair(const ft_graph *graph, const char *option, ft_name_pair pair,
                           uint32_t *a, uint32_t *b, ft_error *error) {
  FT_TRY(find_operator(graph, option, pair.a, a, error));
  FT_TRY(find_operator(graph, option, pair.b, b, error));
  if (*a == *b)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "%s: '%s' is named twice", option, pair.a);
  return FT_OK;
}

// ---- making --------------------------------------------------------------------

// Inputs, constants and outputs of the graph are materialised in any case.
static ft_status make_keep(ft_constraints *c, const ft_constraint_spec *spec,
                           ft_arena *arena, ft_error *error) {
  directory d = {c->graph, "value", c->graph->value_count, value_name};
  c->keep = FT_NEW_ARRAY(arena, kept, spec->keep_count);
  FT_OOM_IF(!c->keep, error);
  for (uint32_t i = 0; i < spec->keep_count; i++) {
    uint32_t value;
    FT_TRY(look_up(&d, "keep", spec->keep[i], &value, error));
    uint32_t root = c->graph->value[value].root;
    const ft_value *v = &c->graph->value[root];
    if (v->producer == FT_NONE || v->is_output) continue;
    const char *reason =
        ft_arena_printf(arena, "keep: '%s' would not be materialised", spec->keep[i]);
    FT_OOM_IF(!reason, error);
    c->keep[c->keep_count++] = (kept){root, reason};
  }
  return FT_OK;
}

static ft_status make_apart(ft_constraints *c, const ft_constraint_spec *spec,
                            ft_arena *arena, ft_error *error) {
  c->apart = FT_NEW_ARRAY(arena, apart, spec->no_fuse_count);
  FT_OOM_IF(!c->apart, error);
  for (uint32_t i = 0; i < spec->no_fuse_count; i++) {
    apart *pair = &c->apart[c->apart_count++];
    ft_name_pair names = spec->no_fuse[i];
    FT_TRY(find_pair(c->graph, "no-fuse", names, &pair->a, &pair->b, error));
    pair->reason = ft_arena_printf(
        arena, "no-fuse: '%s' and '%s' must not share a kernel", names.a, names.b);
    FT_OOM_IF(!pair->reason, error);
  }
  return FT_OK;
}

// Joins the classes of a and b under the smaller label; labels are operators for now.
static void join_classes(ft_constraints *c, uint32_t a, uint32_t b) {
  uint32_t *of = c->class_of;
  if (of[a] == FT_NONE) of[a] = a;
  if (of[b] == FT_NONE) of[b] = b;
  uint32_t from = of[a] > of[b] ? of[a] : of[b], to = of[a] > of[b] ? of[b] : of[a];
  for (uint32_t i = 0; i < c->graph->operator_count; i++)
    if (of[i] == from) of[i] = to;
}

static ft_status fill_class(ft_constraints *c, uint32_t label, ft_arena *arena,
                            ft_error *error) {
  together *class = &c->class[c->class_count];
  ft_strbuf names = ft_strbuf_init(arena);
  class->primitive = FT_NEW_ARRAY(arena, uint32_t, c->graph->primitive_count);
  FT_OOM_IF(!class->primitive, error);
  for (uint32_t i = 0; i < c->graph->operator_count; i++) {
    if (c->class_of[i] != label) continue;
    const ft_operator *op = &c->graph->operator_[i];
    ft_strbuf_printf(&names, "%s'%s'", names.length ? " and " : "", op->name);
    for (uint32_t k = 0; k < op->count; k++)
      class->primitive[class->count++] = op->first + k;
  }
  class->reason = ft_arena_printf(arena, "fuse: %s must share a kernel", names.text);
  FT_OOM_IF(names.failed || !class->reason, error);
  c->class_count++;
  return FT_OK;
}

// Operators are numbered in file order, which need not be the primitives'.
static int by_number(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static ft_status make_classes(ft_constraints *c, const ft_constraint_spec *spec,
                              ft_arena *arena, ft_error *error) {
  uint32_t operators = c->graph->operator_count;
  c->class_of = FT_NEW_ARRAY(arena, uint32_t, operators);
  c->class = FT_NEW_ARRAY(arena, together, spec->fuse_count);
  FT_OOM_IF(!c->class_of || !c->class, error);
  memset(c->class_of, 0xff, operators * sizeof *c->class_of);
  for (uint32_t i = 0; i < spec->fuse_count; i++) {
    uint32_t a, b;
    FT_TRY(find_pair(c->graph, "fuse", spec->fuse[i], &a, &b, error));
    join_classes(c, a, b);
  }
  for (uint32_t i = 0; i < operators; i++)
    if (c->class_of[i] == i) FT_TRY(fill_class(c, i, arena, error));
  for (uint32_t i = 0; i < c->class_count; i++)
    qsort(c->class[i].primitive, c->class[i].count, sizeof(uint32_t), by_number);
  for (uint32_t i = 0; i < c->apart_count; i++) {
    uint32_t a = c->class_of[c->apart[i].a];
    if (a != FT_NONE && a == c->class_of[c->apart[i].b])
      FT_FAIL(error, FT_INVALID_ARGUMENT, "%s, but fuse says that they must",
              c->apart[i].reason);
  }
  return FT_OK;
}

// Marks what |from| reaches; backwards what reaches it.
static void spread(const ft_graph *graph, uint32_t from, bool is_forwards, bool *mark) {
  const ft_operator *op = &graph->operator_[from];
  for (uint32_t k = 0; k < op->count; k++) mark[op->first + k] = true;
  for (uint32_t n = 0; n < graph->primitive_count; n++) {
    uint32_t v = is_forwards ? n : graph->primitive_count - 1 - n;
    const ft_primitive *p = &graph->primitive[v];
    for (uint32_t i = 0; i < p->input_count; i++) {
      uint32_t producer = graph->value[p->input[i]].producer;
      if (producer == FT_NONE) continue;
      if (is_forwards && mark[producer]) mark[v] = true;
      if (!is_forwards && mark[v]) mark[producer] = true;
    }
  }
}

static ft_status make_region(ft_constraints *c, ft_name_pair between, ft_arena *arena,
                             ft_error *error) {
  const ft_graph *graph = c->graph;
  if (!between.a) return FT_OK;
  uint32_t from, to;
  FT_TRY(find_operator(graph, "subgraph", between.a, &from, error));
  FT_TRY(find_operator(graph, "subgraph", between.b, &to, error));
  bool *after = FT_NEW_ARRAY(arena, bool, graph->primitive_count);
  bool *before = FT_NEW_ARRAY(arena, bool, graph->primitive_count);
  c->is_inside = FT_NEW_ARRAY(arena, bool, graph->operator_count);
  c->outside_reason =
      ft_arena_printf(arena, "subgraph: only what is between '%s' and '%s' is regrouped",
                      between.a, between.b);
  FT_OOM_IF(!after || !before || !c->is_inside || !c->outside_reason, error);
  spread(graph, from, true, after);
  spread(graph, to, false, before);
  for (uint32_t v = 0; v < graph->primitive_count; v++)
    if (after[v] && before[v]) c->is_inside[graph->primitive[v].op_index] = true;
  if (!c->is_inside[from])
    FT_FAIL(error, FT_INVALID_ARGUMENT, "subgraph: nothing leads from '%s' to '%s'",
            between.a, between.b);
  return FT_OK;
}

ft_status ft_constraints_make(const ft_graph *graph, const ft_constraint_spec *spec,
                              ft_arena *arena, const ft_constraints **out,
                              ft_error *error) {
  *out = NULL;
  if (!spec || ft_constraint_spec_is_empty(spec)) return FT_OK;
  ft_constraints *c = FT_NEW(arena, ft_constraints);
  FT_OOM_IF(!c, error);
  c->graph = graph;
  c->is_deterministic = spec->is_deterministic;
  FT_TRY(make_keep(c, spec, arena, error));
  FT_TRY(make_apart(c, spec, arena, error));
  FT_TRY(make_classes(c, spec, arena, error));
  FT_TRY(make_region(c, spec->between, arena, error));
  *out = c;
  return FT_OK;
}

// ---- asking --------------------------------------------------------------------

static uint32_t operator_of(const ft_constraints *c, uint32_t primitive) {
  return c->graph->primitive[primitive].op_index;
}

// Computed and read up inside |set|, so that nobody outside ever sees it.
static bool hides(const ft_constraints *c, ft_set set, uint32_t root) {
  const ft_value *v = &c->graph->value[root];
  if (!ft_set_has(set, v->producer)) return false;
  for (uint32_t i = 0; i < v->consumer_count; i++)
    if (!ft_set_has(set, v->consumer[i])) return false;
  return true;
}

static bool has_operator(const ft_constraints *c, const uint32_t *member, uint32_t count,
                         uint32_t op) {
  for (uint32_t i = 0; i < count; i++)
    if (operator_of(c, member[i]) == op) return true;
  return false;
}

static bool is_torn(const together *class, ft_set set) {
  uint32_t inside = 0;
  for (uint32_t i = 0; i < class->count; i++)
    inside += ft_set_has(set, class->primitive[i]);
  return inside && inside < class->count;
}

static bool crosses_border(const ft_constraints *c, const uint32_t *member,
                           uint32_t count) {
  uint32_t first = operator_of(c, member[0]);
  bool is_one = true, is_inside = true;
  for (uint32_t i = 0; i < count; i++) {
    is_one &= operator_of(c, member[i]) == first;
    is_inside &= c->is_inside[operator_of(c, member[i])];
  }
  return !is_one && !is_inside;
}

const char *ft_constraints_refuse(const ft_constraints *c, ft_set set) {
  if (!c) return NULL;
  uint32_t member[FT_SET_SPREAD], count = ft_set_list(set, member);
  for (uint32_t i = 0; i < c->keep_count; i++)
    if (hides(c, set, c->keep[i].value)) return c->keep[i].reason;
  for (uint32_t i = 0; i < c->apart_count; i++)
    if (has_operator(c, member, count, c->apart[i].a) &&
        has_operator(c, member, count, c->apart[i].b))
      return c->apart[i].reason;
  if (c->is_inside && crosses_border(c, member, count)) return c->outside_reason;
  for (uint32_t i = 0; i < c->class_count; i++)
    if (is_torn(&c->class[i], set)) return c->class[i].reason;
  return NULL;
}

bool ft_constraints_admit(const ft_constraints *c, const ft_candidate *candidate) {
  if (!c || !c->is_deterministic) return true;
  return ft_schedule_get(&candidate->schedule, "atomics", 0) == 0;
}

uint32_t ft_constraints_classes(const ft_constraints *c) {
  return c ? c->class_count : 0;
}

const uint32_t *ft_constraints_class(const ft_constraints *c, uint32_t index,
                                     uint32_t *out_count) {
  *out_count = c->class[index].count;
  return c->class[index].primitive;
}

const char *ft_constraints_class_text(const ft_constraints *c, uint32_t index) {
  return c->class[index].reason;
}
