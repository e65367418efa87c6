// Until the semantics land nothing folds: emit keeps the primitive.
#include "graph/fold.h"

ft_status ft_fold_primitive(ft_op op, const ft_attr *attr, const ft_tensor *input,
                            uint32_t count, ft_dtype dtype, const ft_shape *shape,
                            ft_arena *arena, ft_tensor *out, ft_error *error) {
  (void)attr, (void)input, (void)count, (void)dtype, (void)shape, (void)arena, (void)out;
  FT_FAIL(error, FT_UNSUPPORTED, "%s has no folding rule", ft_op_describe(op)->name);
}
