#include "graph/target.h"

#include <criterion/criterion.h>
#include <string.h>

static ft_error error;

static ft_target sample(void) {
  return (ft_target){.name = "cpu",
                     .kind = "cpu",
                     .device = "A CPU",
                     .isa = "avx2 fma",
                     .units = 4,
                     .threads = 2,
                     .vector_bytes = 32,
                     .memory_bytes = 5000000000,
                     .cache_bytes = 1 << 20,
                     .l2_bytes = 1 << 18,
                     .driver = "",
                     .toolkit = "",
                     .compiler_count = 1,
                     .compiler = {{"gcc-12", "12.2.0", "/usr/bin/gcc", false}},
                     .libraries = "",
                     .numerics = "f32-accumulate deterministic",
                     .power_class = "performance"};
}

static ft_hash seal(ft_target target) {
  cr_assert_eq(ft_target_seal(&target, &error), FT_OK, "%s", error.text);
  return target.signature;
}

Test(graph_target, is_written_with_sorted_keys_and_whole_gigabytes) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_target target = sample();
  cr_assert_str_eq(
      ft_target_json(&target, arena),
      "{\"cache_bytes\":1048576,\"compilers\":[{\"name\":\"gcc-12\",\"version\":\"12.2."
      "0\"}],"
      "\"device\":\"A CPU\",\"driver\":\"\",\"isa\":\"avx2 fma\",\"kind\":\"cpu\","
      "\"l2_bytes\":262144,\"libraries\":\"\",\"memory_bytes\":4294967296,"
      "\"numerics\":\"f32-accumulate deterministic\",\"power_class\":\"performance\","
      "\"threads\":2,\"toolkit\":\"\",\"units\":4,\"vector_bytes\":32}");
  ft_arena_destroy(arena);
}

Test(graph_target, the_signature_follows_key_fields_only) {
  ft_target base = sample(), same = sample(), other = sample();
  ft_hash hash = seal(base), got;
  same.name = "cpu:0", same.compiler[0].path = "/opt/gcc", same.memory_bytes += 1000000;
  got = seal(same);
  cr_assert(ft_hash_equal(&hash, &got));
  other.compiler[0].version = "12.3.0";
  got = seal(other);
  cr_assert(!ft_hash_equal(&hash, &got));
  other = sample(), other.threads = 1;
  got = seal(other);
  cr_assert(!ft_hash_equal(&hash, &got));
}
