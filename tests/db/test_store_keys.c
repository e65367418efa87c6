#include "tests/support/stores.h"

TestSuite(db_store_keys, .init = store_set_up, .fini = store_tear_down);

Test(db_store_keys, the_same_bytes_twice_are_one_row) {
  sample s, again;
  store_open();
  sample_store(&s);
  sample_store(&again);
  cr_assert_eq(again.target_id, s.target_id);
  cr_assert_eq(again.graph_id, s.graph_id);
  cr_assert_eq(again.binding_id, s.binding_id);
  cr_assert_eq(again.candidate_id, s.candidate_id);
  cr_assert_gt(s.target_id, 0);
  cr_assert_eq(count_of("target"), 1);
  cr_assert_eq(count_of("graph"), 1);
  cr_assert_eq(count_of("binding"), 1);
  cr_assert_eq(count_of("workload"), 1);
  cr_assert_eq(count_of("candidate"), 1);
}

Test(db_store_keys, a_target_row_holds_what_the_target_says) {
  sample s;
  store_open();
  sample_store(&s);
  EXPECT_SQL("Test CPU", "SELECT device FROM target");
  EXPECT_SQL("{\"clang-14\":\"14.0.6\"}", "SELECT compilers FROM target");
  EXPECT_SQL("8589934592", "SELECT memory_bytes FROM target");
  EXPECT_SQL("(null)", "SELECT driver FROM target");
  EXPECT_SQL("4", "SELECT threads FROM target");
  EXPECT_SQL("2", "SELECT primitives FROM workload");
  EXPECT_SQL("4", "SELECT operators FROM graph");
  EXPECT_SQL("{\"N\":4}", "SELECT dims FROM binding");
  EXPECT_SQL("{\"vector\":8}", "SELECT schedule FROM candidate");
}

Test(db_store_keys, another_signature_is_another_target) {
  sample s;
  int64_t id;
  store_open();
  sample_store(&s);
  ft_target other = sample_target(8);
  TEST_OK(ft_store_target(store, &other, &id, &error));
  cr_assert_neq(id, s.target_id);
}

Test(db_store_keys, a_target_that_is_not_sealed_is_an_invalid_argument) {
  int64_t id;
  store_open();
  ft_target target = sample_target(4);
  target.signature = (ft_hash){0};
  cr_assert_eq(ft_store_target(store, &target, &id, &error), FT_INVALID_ARGUMENT);
  cr_assert_eq(id, 0);
}

Test(db_store_keys, the_same_signature_with_another_key_is_internal_and_writes_nothing) {
  sample s;
  int64_t id;
  store_open();
  sample_store(&s);
  ft_target liar = sample_target(8);
  liar.signature = s.target.signature;
  cr_assert_eq(ft_store_target(store, &liar, &id, &error), FT_INTERNAL);
  cr_assert(strstr(error.text, "target sha256:") && strstr(error.text, "other bytes"),
            "%s", error.text);
  cr_assert_eq(id, 0);
  cr_assert_eq(count_of("target"), 1);
}

Test(db_store_keys,
     the_same_graph_hash_with_another_encoding_is_internal_and_writes_nothing) {
  sample s;
  int64_t graph_id, binding_id;
  store_open();
  sample_store(&s);
  ft_graph *liar = sample_graph(9, "", arena);
  liar->symbolic_encoding = "sample grapH";
  cr_assert_eq(ft_store_graph(store, liar, &graph_id, &binding_id, &error), FT_INTERNAL);
  liar->symbolic_encoding_bytes = 3;
  cr_assert_eq(ft_store_graph(store, liar, &graph_id, &binding_id, &error), FT_INTERNAL);
  cr_assert_eq(count_of("graph"), 1);
  cr_assert_eq(count_of("binding"), 1);
}

Test(db_store_keys, the_same_workload_hash_with_another_encoding_is_internal) {
  sample s;
  int64_t id;
  store_open();
  sample_store(&s);
  uint8_t *encoding =
      ft_arena_memdup(arena, s.workload.encoding, s.workload.encoding_bytes);
  encoding[0] ^= 1;
  s.workload.encoding = encoding;
  s.candidate.tactic = "S2";
  cr_assert_eq(ft_store_candidate(store, &s.candidate, s.target_id, 1, &id, &error),
               FT_INTERNAL);
  cr_assert_eq(count_of("workload"), 1);
  cr_assert_eq(count_of("candidate"), 1);
}

Test(db_store_keys, other_dims_are_another_binding_of_one_graph) {
  sample s;
  int64_t graph_id, binding_id;
  store_open();
  sample_store(&s);
  ft_graph *longer = sample_graph(8, "", arena);
  TEST_OK(ft_store_graph(store, longer, &graph_id, &binding_id, &error));
  cr_assert_eq(graph_id, s.graph_id);
  cr_assert_neq(binding_id, s.binding_id);
}

// A model exported with N = 4 has the primitives of one bound to N = 4, but no dims.
Test(db_store_keys, two_graphs_may_bind_to_the_same_primitives) {
  sample s;
  int64_t graph_id, binding_id;
  store_open();
  sample_store(&s);
  ft_graph *fixed = sample_graph(4, "", arena);
  sample_key(fixed, "exported with fixed dims", 4);
  fixed->dims_json = NULL;
  cr_assert(ft_hash_equal(&fixed->bound_hash, &s.graph->bound_hash));
  TEST_OK(ft_store_graph(store, fixed, &graph_id, &binding_id, &error));
  cr_assert_neq(graph_id, s.graph_id);
  cr_assert_neq(binding_id, s.binding_id);
  EXPECT_SQL("{}", "SELECT dims FROM binding WHERE id = 2");
}

Test(db_store_keys, a_graph_without_hashes_is_an_invalid_argument) {
  int64_t graph_id, binding_id;
  store_open();
  ft_graph *graph = sample_graph(4, "", arena);
  graph->symbolic_hash = (ft_hash){0};
  cr_assert_eq(ft_store_graph(store, graph, &graph_id, &binding_id, &error),
               FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "'sample'"), "%s", error.text);
}

Test(db_store_keys, a_candidate_is_its_tactic_schedule_target_and_codegen_version) {
  sample s;
  int64_t id[4];
  store_open();
  sample_store(&s);
  id[0] = sample_candidate(&s, 16);
  TEST_OK(ft_store_candidate(store, &s.candidate, s.target_id, 2, &id[1], &error));
  s.candidate.tactic = "S2";
  TEST_OK(ft_store_candidate(store, &s.candidate, s.target_id, 1, &id[2], &error));
  ft_target other = sample_target(8);
  int64_t other_id;
  TEST_OK(ft_store_target(store, &other, &other_id, &error));
  TEST_OK(ft_store_candidate(store, &s.candidate, other_id, 1, &id[3], &error));
  for (int i = 0; i < 4; i++) {
    cr_assert_neq(id[i], s.candidate_id);
    for (int k = 0; k < i; k++) cr_assert_neq(id[i], id[k]);
  }
  cr_assert_eq(count_of("workload"), 1);
  EXPECT_SQL("S1 S2", "SELECT skeletons FROM workload");
}

Test(db_store_keys, looking_for_a_candidate_finds_what_was_added_and_adds_nothing) {
  sample s;
  int64_t id;
  store_open();
  sample_store(&s);
  TEST_OK(ft_store_find_candidate(store, &s.candidate, s.target_id, 1, &id, &error));
  cr_assert_eq(id, s.candidate_id);
  TEST_OK(ft_store_find_candidate(store, &s.candidate, s.target_id, 2, &id, &error));
  cr_assert_eq(id, 0);
  s.candidate.tactic = "S2";
  TEST_OK(ft_store_find_candidate(store, &s.candidate, s.target_id, 1, &id, &error));
  cr_assert_eq(id, 0);
  cr_assert_eq(count_of("candidate"), 1);
  cr_assert_eq(count_of("workload"), 1);
}

Test(db_store_keys, a_candidate_on_a_target_that_is_not_there_writes_nothing) {
  sample s;
  int64_t id;
  store_open();
  sample_init(&s);
  cr_assert_eq(ft_store_candidate(store, &s.candidate, 99, 1, &id, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(count_of("workload"), 0);
  s.candidate.tactic = "";
  cr_assert_eq(ft_store_candidate(store, &s.candidate, 99, 1, &id, &error),
               FT_INVALID_ARGUMENT);
}
