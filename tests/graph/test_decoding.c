// A workload's encoding is enough to have the group back, and hostile bytes are refused.
#include "graph/decoding.h"

#include <string.h>

#include "wide_graph.h"

static ft_arena *arena;
static ft_error error;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_decoding, .init = set_up, .fini = tear_down);

static ft_workload workload_of(const ft_graph *graph, uint32_t first, uint32_t count) {
  uint32_t list[8];
  ft_group group;
  ft_workload out;
  for (uint32_t i = 0; i < count; i++) list[i] = first + i;
  cr_assert_eq(ft_group_make(graph, list, count, arena, &group, &error), FT_OK, "%s",
               error.text);
  cr_assert_eq(ft_workload_make(&group, arena, &out, &error), FT_OK, "%s", error.text);
  return out;
}

// Runs of up to 4 neighbours in the order of the graph: convex, so a group could be one.
static uint32_t decode_all(const ft_graph *graph, uint64_t seed) {
  uint32_t done = 0;
  for (uint32_t first = 0; first < graph->primitive_count; first++)
    for (uint32_t count = 1; count <= 4 && first + count <= graph->primitive_count;
         count++) {
      ft_workload given = workload_of(graph, first, count), back;
      ft_graph *made;
      cr_assert_eq(ft_workload_decode(given.encoding, given.encoding_bytes, arena, &made,
                                      &back, &error),
                   FT_OK, "seed %llu, primitives %u..: %s", (unsigned long long)seed,
                   first, error.text);
      cr_assert(ft_workload_equal(&given, &back));
      cr_assert(ft_hash_equal(&given.hash, &back.hash));
      cr_assert_eq(back.read_bytes, given.read_bytes);
      cr_assert_eq(back.flops, given.flops);
      done++;
    }
  return done;
}

Test(graph_decoding, groups_of_random_graphs_come_back_byte_for_byte) {
  uint32_t done = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    done += decode_all(random_graph_make(seed, 25, true, arena), seed);
    done += decode_all(wide_graph_make(seed, 25, true, arena), seed);
    ft_arena_reset(arena);
  }
  cr_assert_gt(done, 1000);
}

Test(graph_decoding, a_short_or_a_changed_encoding_is_refused_or_another_workload) {
  const ft_graph *graph = wide_graph_make(7, 25, true, arena);
  uint32_t changed = 0;
  for (uint32_t first = 0; first + 3 <= graph->primitive_count && first < 6; first++) {
    ft_workload given = workload_of(graph, first, 3), back;
    ft_graph *made;
    uint8_t *copy = ft_arena_memdup(arena, given.encoding, given.encoding_bytes);
    for (size_t cut = 0; cut < given.encoding_bytes; cut++)
      cr_assert_eq(ft_workload_decode(copy, cut, arena, &made, &back, &error), FT_REFUSED,
                   "cut at %zu", cut);
    for (size_t i = 0; i < given.encoding_bytes; i++)
      for (int bit = 0; bit < 8; bit++) {
        copy[i] ^= (uint8_t)(1 << bit);
        ft_status status =
            ft_workload_decode(copy, given.encoding_bytes, arena, &made, &back, &error);
        if (status == FT_OK) {
          changed++;
          cr_assert(!ft_hash_equal(&back.hash, &given.hash));
          cr_assert(memcmp(back.encoding, copy, given.encoding_bytes) == 0);
        }
        copy[i] ^= (uint8_t)(1 << bit);
      }
  }
  cr_assert_gt(changed, 0);  // a dim of another size, say
}

Test(graph_decoding, what_is_no_workload_says_at_which_byte) {
  ft_graph *made;
  ft_workload back;
  cr_assert_eq(ft_workload_decode("ft-workload-2xxxxx", 18, arena, &made, &back, &error),
               FT_REFUSED);
  cr_assert(strstr(error.text, "is no workload"), "%s", error.text);
  cr_assert_eq(ft_workload_decode("ft-workload-1\xff", 14, arena, &made, &back, &error),
               FT_REFUSED);
  cr_assert(strstr(error.text, "byte 14 of 14"), "%s", error.text);
}
