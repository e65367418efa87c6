#include "graph/candidate.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

// ---- knobs ----------------------------------------------------------------------

static void insert(ft_schedule *schedule, ft_knob knob) {
  FT_ASSERT(schedule->count < FT_MAX_KNOBS);
  uint32_t at = schedule->count;
  while (at > 0 && strcmp(schedule->knob[at - 1].name, knob.name) > 0) at--;
  FT_ASSERT(at == 0 || strcmp(schedule->knob[at - 1].name, knob.name) != 0);
  memmove(&schedule->knob[at + 1], &schedule->knob[at],
          (schedule->count - at) * sizeof knob);
  schedule->knob[at] = knob;
  schedule->count++;
}

void ft_schedule_set(ft_schedule *schedule, const char *name, int64_t value) {
  insert(schedule, (ft_knob){.name = name, .value = value});
}

void ft_schedule_set_text(ft_schedule *schedule, const char *name, const char *text) {
  insert(schedule, (ft_knob){.name = name, .text = text});
}

static const ft_knob *find(const ft_schedule *schedule, const char *name) {
  for (uint32_t i = 0; i < schedule->count; i++)
    if (strcmp(schedule->knob[i].name, name) == 0) return &schedule->knob[i];
  return NULL;
}

int64_t ft_schedule_get(const ft_schedule *schedule, const char *name, int64_t fallback) {
  const ft_knob *knob = find(schedule, name);
  return knob && !knob->text ? knob->value : fallback;
}

const char *ft_schedule_get_text(const ft_schedule *schedule, const char *name) {
  const ft_knob *knob = find(schedule, name);
  return knob ? knob->text : NULL;
}

static bool same_knob(const ft_knob *a, const ft_knob *b) {
  if (strcmp(a->name, b->name) != 0 || !a->text != !b->text) return false;
  return a->text ? strcmp(a->text, b->text) == 0 : a->value == b->value;
}

bool ft_schedule_equal(const ft_schedule *a, const ft_schedule *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (!same_knob(&a->knob[i], &b->knob[i])) return false;
  return true;
}

// ---- JSON -----------------------------------------------------------------------

static json_t *to_json(const ft_schedule *schedule) {
  json_t *object = json_object();
  for (uint32_t i = 0; object && i < schedule->count; i++) {
    const ft_knob *knob = &schedule->knob[i];
    json_t *value = knob->text ? json_string(knob->text) : json_integer(knob->value);
    if (json_object_set_new(object, knob->name, value) != 0) {
      json_decref(object);
      return NULL;
    }
  }
  return object;
}

const char *ft_schedule_json(const ft_schedule *schedule, ft_arena *arena) {
  json_t *object = to_json(schedule);
  char *text = object ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
  const char *copy = text ? ft_arena_strdup(arena, text) : NULL;
  free(text);
  json_decref(object);
  return copy;
}

static ft_status read_knob(const char *name, const json_t *value, ft_arena *arena,
                           ft_schedule *out, ft_error *error) {
  if (!json_is_integer(value) && !json_is_string(value))
    FT_FAIL(error, FT_REFUSED, "schedule knob '%.100s' is neither a number nor a word",
            name);
  const char *kept = ft_arena_strdup(arena, name);
  const char *text =
      json_is_string(value) ? ft_arena_strdup(arena, json_string_value(value)) : NULL;
  FT_OOM_IF(!kept || (json_is_string(value) && !text), error);
  insert(out, (ft_knob){.name = kept, .value = json_integer_value(value), .text = text});
  return FT_OK;
}

static ft_status read_object(json_t *object, ft_arena *arena, ft_schedule *out,
                             ft_error *error) {
  if (!json_is_object(object)) FT_FAIL(error, FT_REFUSED, "a schedule is not an object");
  if (json_object_size(object) > FT_MAX_KNOBS)
    FT_FAIL(error, FT_REFUSED, "a schedule of %zu knobs: the most is %d",
            json_object_size(object), FT_MAX_KNOBS);
  const char *name;
  json_t *value;
  json_object_foreach(object, name, value)
      FT_TRY(read_knob(name, value, arena, out, error));
  return FT_OK;
}

ft_status ft_schedule_parse(const char *json, ft_arena *arena, ft_schedule *out,
                            ft_error *error) {
  json_error_t where;
  *out = (ft_schedule){0};
  json_t *object = json_loads(json, JSON_REJECT_DUPLICATES, &where);
  if (!object)
    FT_FAIL(error, FT_REFUSED, "schedule, position %d: %s", where.position, where.text);
  ft_status status = read_object(object, arena, out, error);
  if (status != FT_OK) *out = (ft_schedule){0};
  json_decref(object);
  return status;
}
