#include "graph/target.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

bool ft_target_is_gpu(const ft_target *target) {
  return target->kind && strcmp(target->kind, "cpu") != 0;
}

static json_t *compilers_json(const ft_target *target) {
  json_t *list = json_array();
  for (uint32_t i = 0; list && i < target->compiler_count; i++) {
    const ft_compiler *c = &target->compiler[i];
    json_t *one = json_pack("{s:s,s:s}", "name", c->name, "version", c->version);
    if (json_array_append_new(list, one) != 0) {
      json_decref(list);
      return NULL;
    }
  }
  return list;
}

// Everything a plan's times depend on; |name| and compiler paths are only how to ask.
static json_t *key_json(const ft_target *t) {
  uint64_t gib = t->memory_bytes >> 30;
  return json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:I,s:I,s:I,s:s,s:s,s:o,s:s,s:s,s:s}",
                   "kind", t->kind, "device", t->device, "isa", t->isa, "units",
                   (int)t->units, "threads", (int)t->threads, "vector_bytes",
                   (int)t->vector_bytes, "memory_bytes", (json_int_t)(gib << 30),
                   "cache_bytes", (json_int_t)t->cache_bytes, "l2_bytes",
                   (json_int_t)t->l2_bytes, "driver", t->driver, "toolkit", t->toolkit,
                   "compilers", compilers_json(t), "libraries", t->libraries, "numerics",
                   t->numerics, "power_class", t->power_class);
}

const char *ft_target_json(const ft_target *target, ft_arena *arena) {
  json_t *object = key_json(target);
  char *text = object ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
  const char *copy = text ? ft_arena_strdup(arena, text) : NULL;
  free(text);
  json_decref(object);
  return copy;
}

ft_status ft_target_seal(ft_target *target, ft_error *error) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!arena, error);
  const char *json = ft_target_json(target, arena);
  if (json) target->signature = ft_hash_bytes(json, strlen(json));
  ft_arena_destroy(arena);
  FT_OOM_IF(!json, error);
  return FT_OK;
}
