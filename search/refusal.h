// refusal - why neighbours are in different kernels.
#ifndef FT_SEARCH_REFUSAL_H
#define FT_SEARCH_REFUSAL_H

#include "search/strategy.h"

// One for each edge between two groups of |division|, by producer, then consumer; in
// |arena|, texts too. May judge sets that were not judged before.
FT_MUST_CHECK ft_status ft_refusals_explain(const ft_landscape *land,
                                            const ft_division *division, ft_arena *arena,
                                            const ft_refusal **out, uint32_t *out_count,
                                            ft_error *error);

#endif
