#include "codegen/prelude.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static ft_arena *arena;

static void open_arena(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void close_arena(void) {
  ft_arena_destroy(arena);
}

TestSuite(codegen_prelude, .init = open_arena, .fini = close_arena);

static const char *prelude(const char *body) {
  const char *text = ft_prelude_for(body, arena);
  cr_assert(text);
  return text;
}

static uint32_t occurrences(const char *text, const char *word) {
  uint32_t n = 0;
  for (const char *at = text; (at = strstr(at, word)); at++) n++;
  return n;
}

Test(codegen_prelude, holds_what_is_named_once_and_nothing_else) {
  const char *text = prelude("ft_exp_f32x16(a) + ft_exp_f32x16(b)");
  cr_assert_eq(occurrences(text, "FT_INLINE f32x16 ft_exp_f32x16("), 1);
  cr_assert_eq(occurrences(text, "tanh"), 0);
  cr_assert_eq(occurrences(text, "x8"), 0);
}

Test(codegen_prelude, holds_what_its_functions_use_before_them) {
  const char *text = prelude("ft_fold_max_f32x8(a)");
  static const int lanes[] = {1, 2, 4, 8};
  const char *last = text;
  for (int i = 0; i < 4; i++) {
    char word[64];
    snprintf(word, sizeof word, "ft_fold_max_f32x%d(f32x%d v)", lanes[i], lanes[i]);
    const char *at = strstr(text, word);
    cr_assert(at && at > last, "%s", word);
    last = at;
  }
  cr_assert(strstr(text, "ft_select_f32x4("));
}

Test(codegen_prelude, gives_equal_bytes_for_equal_bodies) {
  const char *body = "ft_where_i64x4(ft_load_b8x4(p), a, ft_div_i64x4(b, c))";
  cr_assert_str_eq(prelude(body), prelude(body));
}

Test(codegen_prelude, depends_on_the_set_of_names_not_on_their_order) {
  cr_assert_str_eq(prelude("ft_exp_f32x8 ft_tanh_f32x16"),
                   prelude("ft_tanh_f32x16 ft_exp_f32x8"));
}

Test(codegen_prelude, has_lines) {
  const char *text = prelude("ft_erf_f32x16(a)");
  size_t longest = 0, length = 0;
  for (; *text; text++) {
    length = *text == '\n' ? 0 : length + 1;
    if (length > longest) longest = length;
  }
  cr_assert_lt(longest, 160);
}
