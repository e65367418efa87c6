// Dates that people type.
#include <criterion/criterion.h>

#include "core/clock.h"

Test(core_clock, a_date_or_a_time_is_read_as_utc) {
  static const struct {
    const char *text;
    uint64_t seconds;
  } cases[] = {{"1970-01-01", 0},
               {"2026-01-31", 1769817600},
               {"2026-01-31T12:30", 1769862600},
               {"2026-01-31 12:30", 1769862600},
               {"2026-01-31T12:30:05", 1769862605},
               {"2026-01-31T12:30:05Z", 1769862605}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint64_t ns = 1;
    cr_assert(ft_clock_parse(cases[i].text, &ns), "%s", cases[i].text);
    cr_assert_eq(ns, cases[i].seconds * 1000000000u, "%s", cases[i].text);
  }
}

Test(core_clock, what_is_written_is_read_again) {
  char text[21];
  uint64_t ns, then = UINT64_C(1769862605) * 1000000000u;
  ft_clock_iso8601(then, text);
  cr_assert(ft_clock_parse(text, &ns));
  cr_assert_eq(ns, then);
}

Test(core_clock, what_is_no_date_is_refused) {
  static const char *const bad[] = {
      "",           "2026",        "2026-13-01",
      "soon",       "2026-01-31x", "12:30",
      "1969-12-31", "2h",          "2026-01-31T12:30:05+01:00"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint64_t ns;
    cr_assert(!ft_clock_parse(bad[i], &ns), "'%s' was taken", bad[i]);
  }
}
