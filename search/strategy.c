#include "search/strategy.h"

const ft_strategy ft_strategies[FT_STRATEGY_COUNT] = {
#define FT_STRATEGY(function, name, is_baseline, is_tuned) \
  {name, is_baseline, is_tuned, ft_strategy_##function##_divide},
#include "search/strategies.def"
#undef FT_STRATEGY
};
