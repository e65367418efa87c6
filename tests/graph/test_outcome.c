#include "graph/outcome.h"

#include <criterion/criterion.h>

Test(graph_outcome, each_outcome_is_read_back_from_its_text) {
  for (int i = 0; i < FT_OUTCOME_COUNT; i++)
    cr_assert_eq(ft_outcome_parse(ft_outcome_text((ft_outcome)i)), (ft_outcome)i);
  cr_assert_eq(ft_outcome_parse("okay"), FT_OUTCOME_COUNT);
  cr_assert_str_eq(ft_outcome_text(FT_OUTCOME_WRONG_RESULT), "wrong_result");
}

Test(graph_outcome, blames_a_candidate_for_what_it_did_and_for_nothing_else) {
  cr_assert(ft_outcome_blames(FT_OUTCOME_CRASH) && ft_outcome_blames(FT_OUTCOME_TIMEOUT));
  cr_assert(ft_outcome_blames(FT_OUTCOME_COMPILE_ERROR));
  cr_assert(!ft_outcome_blames(FT_OUTCOME_OK) && !ft_outcome_blames(FT_OUTCOME_BEATEN));
  cr_assert(!ft_outcome_blames(FT_OUTCOME_UNSTABLE) &&
            !ft_outcome_blames(FT_OUTCOME_PENDING));
  cr_assert(!ft_outcome_blames(FT_OUTCOME_INTERRUPTED));
}
