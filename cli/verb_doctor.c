#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "codegen/arch_target.h"
#include "core/clock.h"
#include "core/file.h"
#include "daemon/ceilings.h"

typedef struct finding {
  const char *name;
  bool is_ok;
  char text[400];
  uint64_t copy_bytes;           // read and written; 0: the default
  ft_copy_rate copy[FT_STORES];  // bests of 0: not measured
} finding;

// What `doctor` shows of the target's ceilings.
typedef struct ceilings {
  bool anew;
  uint32_t count;
  ft_ceiling row[FT_CEILINGS_MOST];
} ceilings;

static void check_store(ft_session *s, finding *out) {
  ft_error error;
  int64_t trials = 0, plans = 0;
  out->name = "store";
  out->is_ok = ft_store_check(s->store, &error) == FT_OK &&
               ft_store_count(s->store, "trial", &trials, &error) == FT_OK &&
               ft_store_count(s->store, "plan", &plans, &error) == FT_OK;
  if (out->is_ok)
    snprintf(out->text, sizeof out->text, "%s: sound, %lld trials, %lld plans",
             s->store_path, (long long)trials, (long long)plans);
  else
    snprintf(out->text, sizeof out->text, "%s: %.300s", s->store_path, error.text);
}

static void check_cache(ft_session *s, finding *out) {
  ft_error error;
  out->name = "cache";
  out->is_ok = ft_folder_make(s->cache_folder, &error) == FT_OK;
  snprintf(out->text, sizeof out->text, "%s%s%.300s", s->cache_folder,
           out->is_ok ? "" : ": ", out->is_ok ? "" : error.text);
}

static void check_worker(ft_session *s, finding *out) {
  ft_error error;
  out->name = "worker";
  out->is_ok =
      ft_cpu_runner_copy_ceiling(s->runner, out->copy_bytes, out->copy, &error) == FT_OK;
  if (out->is_ok)
    snprintf(out->text, sizeof out->text,
             "starts; copies %.1f GB/s, %.1f with streamed stores, with %u threads",
             (double)out->copy[FT_STORE_ORDINARY].best * 1e-9,
             (double)out->copy[FT_STORE_STREAMED].best * 1e-9, s->target.threads);
  else
    snprintf(out->text, sizeof out->text, "%.390s", error.text);
}

// The highest of |kind|, whatever the size.
static double best_of(const ft_ceiling *ceiling, uint32_t count, ft_ceiling_kind kind) {
  double best = 0;
  for (uint32_t i = 0; i < count; i++)
    if (ceiling[i].kind == kind &&
        (best == 0 || ft_ceiling_is_better(kind, ceiling[i].best, best)))
      best = ceiling[i].best;
  return best;
}

static void check_ceilings(ft_session *s, ceilings *c, finding *out) {
  ft_error error;
  int64_t alarms = 0;
  out->name = "ceilings";
  out->is_ok = ft_session_ceilings(s, 0, c->anew, c->row, &c->count, &error) == FT_OK &&
               ft_store_count(s->store, "alarm", &alarms, &error) == FT_OK;
  if (!out->is_ok) {
    snprintf(out->text, sizeof out->text, "%.390s", error.text);
    return;
  }
  snprintf(out->text, sizeof out->text,
           "read %.1f, copy %.1f, triad %.1f GB/s; %.0f GFLOP/s; launch %.0f ns; %lld "
           "alarms",
           best_of(c->row, c->count, FT_CEILING_READ) * 1e-9,
           best_of(c->row, c->count, FT_CEILING_COPY_STREAMING) * 1e-9,
           best_of(c->row, c->count, FT_CEILING_TRIAD_STREAMING) * 1e-9,
           best_of(c->row, c->count, FT_CEILING_FMA) * 1e-9,
           best_of(c->row, c->count, FT_CEILING_LAUNCH), (long long)alarms);
}

static json_t *ceilings_json(const ceilings *c) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < c->count; i++) {
    const ft_ceiling *r = &c->row[i];
    json_array_append_new(
        list, json_pack("{s:s, s:I, s:f, s:f, s:s, s:I, s:b, s:I}", "kind",
                        ft_ceiling_name(r->kind), "bytes", (json_int_t)r->bytes, "best",
                        r->best, "median", r->median, "unit",
                        ft_ceiling_unit_text(ft_ceiling_unit_of(r->kind)), "samples",
                        (json_int_t)r->samples, "raised", (int)r->is_raised,
                        "measured_at", (json_int_t)r->measured_at));
  }
  return list;
}

static void print_ceilings(const ceilings *c) {
  for (uint32_t i = 0; i < c->count; i++) {
    const ft_ceiling *r = &c->row[i];
    bool is_time = ft_ceiling_unit_of(r->kind) == FT_UNIT_TIME;
    const char *unit = is_time                                       ? "ns"
                       : ft_ceiling_unit_of(r->kind) == FT_UNIT_RATE ? "GB/s"
                                                                     : "GFLOP/s";
    char size[24] = "", at[21];
    double scale = is_time ? 1 : 1e-9;
    if (r->bytes) snprintf(size, sizeof size, "%.1f MiB", (double)r->bytes / 1048576);
    ft_clock_iso8601(r->measured_at, at);
    printf("         %-16s %10s  best %7.1f, median %7.1f %s, %u samples, %s%s\n",
           ft_ceiling_name(r->kind), size, r->best * scale, r->median * scale, unit,
           r->samples, at, r->is_raised ? ", raised by an alarm" : "");
  }
}

static void check_compilers(ft_session *s, finding *out) {
  out->name = "compilers";
  out->is_ok = s->target.compiler_count > 0;
  size_t used = 0;
  out->text[0] = '\0';
  for (uint32_t i = 0; i < s->target.compiler_count && used < sizeof out->text; i++)
    used += (size_t)snprintf(out->text + used, sizeof out->text - used, "%s%s %s",
                             i ? ", " : "", s->target.compiler[i].name,
                             s->target.compiler[i].version);
}

// None is no fault: the tactics that call one are then not offered.
static void check_libraries(ft_session *s, finding *out) {
  ft_error error;
  const char *found, *reason;
  out->name = "libraries";
  out->is_ok = ft_libraries_find(&s->target.compiler[0], s->arena, &found, &reason,
                                 &error) == FT_OK;
  snprintf(out->text, sizeof out->text, "%.200s%s%.150s",
           !out->is_ok ? error.text
           : *found    ? found
                       : "none: ",
           out->is_ok && !*found ? reason : "",
           out->is_ok && !*found ? "; the tactic onednn is not offered" : "");
}

// None is no fault either: then there are no targets sm_NN.
static void check_nvrtc(ft_session *s, finding *out) {
  const char *report = ft_arch_report(s->arena);
  out->name = "nvrtc";
  out->is_ok = report != NULL;
  snprintf(out->text, sizeof out->text, "%.390s", report ? report : "out of memory");
}

static void check_huge_pages(ft_session *s, finding *out) {
  out->name = "power";
  out->is_ok = true;
  snprintf(out->text, sizeof out->text, "%.390s", s->target.power_class);
}

static json_t *rate_json(const ft_copy_rate *rate) {
  return json_pack("{s:f, s:f}", "best", (double)rate->best, "median",
                   (double)rate->median);
}

// Bytes read plus written per second; copy_bytes_per_s is the better of both bests.
static void add_copy(json_t *o, const finding *f) {
  const ft_copy_rate *ordinary = &f->copy[FT_STORE_ORDINARY],
                     *streamed = &f->copy[FT_STORE_STREAMED];
  uint64_t best = ordinary->best > streamed->best ? ordinary->best : streamed->best;
  if (!o || !best) return;
  json_object_set_new(o, "copy_bytes_per_s", json_real((double)best));
  json_object_set_new(o, "copy_ordinary", rate_json(ordinary));
  json_object_set_new(o, "copy_streamed", rate_json(streamed));
}

static json_t *finding_json(const finding *f) {
  json_t *o =
      json_pack("{s:s, s:b, s:s}", "name", f->name, "ok", (int)f->is_ok, "text", f->text);
  add_copy(o, f);
  return o;
}

static int report(const ft_cli_options *options, const ft_session *s,
                  const finding *found, int count, const ceilings *c) {
  json_t *list = json_array();
  bool is_ok = true;
  for (int i = 0; i < count; i++) {
    is_ok = is_ok && found[i].is_ok;
    if (!options->json)
      printf("  %-4s %-10s %s\n", found[i].is_ok ? "ok" : "BAD", found[i].name,
             found[i].text);
    json_array_append_new(list, finding_json(&found[i]));
  }
  if (!options->json) {
    print_ceilings(c);
    json_decref(list);
    return is_ok ? FT_EXIT_OK : FT_EXIT_FAILED;
  }
  char signature[FT_HASH_TEXT + 1];
  ft_hash_text(&s->target.signature, signature);
  ft_cli_print_json(json_pack("{s:b, s:s, s:s, s:s, s:o, s:o}", "ok", (int)is_ok,
                              "target", s->target.name, "device", s->target.device,
                              "signature", signature, "findings", list, "ceilings",
                              ceilings_json(c)));
  return is_ok ? FT_EXIT_OK : FT_EXIT_FAILED;
}

static int examine(ft_cli_context *c) {
  static void (*const checks[])(ft_session *, finding *) = {
      check_compilers, check_libraries, check_nvrtc,     check_store,
      check_cache,     check_worker,    check_huge_pages};
  enum { COUNT = sizeof checks / sizeof *checks };
  finding found[COUNT + 1] = {0};
  ceilings limits = {.anew = c->options.recalibrate};
  if (!c->options.json)
    printf("target %s: %s, %u threads, %s\n", c->session.target.name,
           c->session.target.device, c->session.target.threads, c->session.target.isa);
  for (int i = 0; i < COUNT; i++) {
    found[i].copy_bytes = c->options.bytes;
    checks[i](&c->session, &found[i]);
  }
  check_ceilings(&c->session, &limits, &found[COUNT]);
  return report(&c->options, &c->session, found, COUNT + 1, &limits);
}

int ft_verb_doctor(int argc, char **argv) {
  ft_cli_context c = {0};
  int code = ft_cli_parse("doctor", "bytes recalibrate store cache json", false, argc,
                          argv, &c.options);
  if (code >= 0) return code;
  code = ft_cli_open(&c);
  if (code < 0) code = examine(&c);
  ft_cli_close(&c);
  return code;
}
