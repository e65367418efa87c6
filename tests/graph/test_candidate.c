#include "graph/candidate.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static ft_arena *arena;
static ft_error error;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_candidate, .init = set_up, .fini = tear_down);

static ft_schedule sample(void) {
  ft_schedule schedule = {0};
  ft_schedule_set(&schedule, "vector", 8);
  ft_schedule_set_text(&schedule, "compiler", "clang-14");
  ft_schedule_set(&schedule, "threads", -2);
  return schedule;
}

Test(graph_candidate, knobs_are_sorted_whatever_the_order_they_came_in) {
  ft_schedule schedule = sample();
  cr_assert_str_eq(ft_schedule_json(&schedule, arena),
                   "{\"compiler\":\"clang-14\",\"threads\":-2,\"vector\":8}");
}

Test(graph_candidate, gets_numbers_words_and_fallbacks) {
  ft_schedule schedule = sample();
  cr_assert_eq(ft_schedule_get(&schedule, "threads", 1), -2);
  cr_assert_eq(ft_schedule_get(&schedule, "rows", 4), 4);
  cr_assert_eq(ft_schedule_get(&schedule, "compiler", 4), 4, "a word is no number");
  cr_assert_str_eq(ft_schedule_get_text(&schedule, "compiler"), "clang-14");
  cr_assert_null(ft_schedule_get_text(&schedule, "vector"));
  cr_assert_null(ft_schedule_get_text(&schedule, "rows"));
}

Test(graph_candidate, reads_what_it_writes) {
  ft_schedule schedule = sample(), back, empty = {0};
  const char *json = ft_schedule_json(&schedule, arena);
  cr_assert_eq(ft_schedule_parse(json, arena, &back, &error), FT_OK, "%s", error.text);
  cr_assert(ft_schedule_equal(&schedule, &back));
  cr_assert_eq(ft_schedule_parse("{}", arena, &back, &error), FT_OK);
  cr_assert(ft_schedule_equal(&empty, &back));
  cr_assert_str_eq(ft_schedule_json(&empty, arena), "{}");
}

Test(graph_candidate, schedules_differ_by_one_value_one_word_or_one_knob) {
  ft_schedule base = sample(), other = sample();
  cr_assert(ft_schedule_equal(&base, &other));
  other.knob[1].value = 3;
  cr_assert(!ft_schedule_equal(&base, &other));
  other = sample();
  other.knob[0].text = "gcc-12";
  cr_assert(!ft_schedule_equal(&base, &other));
  other.knob[0].text = NULL;
  cr_assert(!ft_schedule_equal(&base, &other));
  other = sample();
  ft_schedule_set(&other, "rows", 1);
  cr_assert(!ft_schedule_equal(&base, &other));
}

Test(graph_candidate, refuses_what_is_no_schedule) {
  static const char *const bad[] = {"",
                                    "{",
                                    "[]",
                                    "7",
                                    "{\"a\":1.5}",
                                    "{\"a\":null}",
                                    "{\"a\":{}}",
                                    "{\"a\":1,\"a\":2}",
                                    "{\"a\":99999999999999999999}",
                                    "{\"a\":1} x",
                                    "{\"a\":\"\xff\"}",
                                    "{\"a\":[[[[[[[["};
  ft_schedule out;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    cr_assert_eq(ft_schedule_parse(bad[i], arena, &out, &error), FT_REFUSED, "%s",
                 bad[i]);
    cr_assert_eq(out.count, 0);
  }
  char many[256] = "{\"k0\":0";
  for (int i = 1; i <= FT_MAX_KNOBS; i++)
    snprintf(many + strlen(many), sizeof many - strlen(many), ",\"k%d\":0", i);
  strcat(many, "}");
  cr_assert_eq(ft_schedule_parse(many, arena, &out, &error), FT_REFUSED);
  cr_assert(strstr(error.text, "13 knobs"), "%s", error.text);
}

Test(graph_candidate, setting_a_knob_twice_is_our_own_fault, .signal = SIGABRT) {
  ft_schedule schedule = sample();
  ft_schedule_set(&schedule, "vector", 4);
}
