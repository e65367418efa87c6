#include "graph/attr.h"

#include <string.h>

enum {
  TO = 1,
  AXES = 2,
  SHAPE = 4,
  PERM = 8,
  AXIS = 16,
  GROUPS = 32,
  START = 64,
  STEP = 128,
  WINDOW = 256,
  STRIDE = 512,
  DILATION = 1024,
};

static unsigned members(ft_op op) {
  static const uint16_t of[FT_OP_COUNT] = {
      [FT_OP_CAST] = TO,
      [FT_OP_BROADCAST] = SHAPE,
      [FT_OP_TRANSPOSE] = PERM,
      [FT_OP_REDUCE_SUM] = AXES,
      [FT_OP_REDUCE_MAX] = AXES,
      [FT_OP_REDUCE_MIN] = AXES,
      [FT_OP_REDUCE_PROD] = AXES,
      [FT_OP_SLICE] = SHAPE | START | STEP,
      [FT_OP_CONCAT] = AXIS,
      [FT_OP_PAD] = SHAPE | START,
      [FT_OP_GATHER] = AXIS,
      [FT_OP_GATHER_ELEMENTS] = AXIS,
      [FT_OP_WINDOW_MAX] = SHAPE | START | WINDOW | STRIDE | DILATION,
      [FT_OP_WINDOW_SUM] = SHAPE | START | WINDOW | STRIDE | DILATION,
      [FT_OP_CONV] = SHAPE | START | STRIDE | DILATION | GROUPS,
  };
  return of[op];
}

// The lists of one number per axis, by the bit that says who has them.
#define FOR_LISTS(list)                                                         \
  list(START, start) list(STEP, step) list(WINDOW, window) list(STRIDE, stride) \
      list(DILATION, dilation)

ft_attr ft_attr_used(ft_op op, const ft_attr *attr) {
  ft_attr used = {0};
  unsigned has = members(op);
  if (!attr) return used;
  if (has & TO) used.to = attr->to;
  if (has & AXES) used.axes = attr->axes;
  if (has & SHAPE) used.shape = attr->shape;
  if (has & PERM) memcpy(used.perm, attr->perm, sizeof used.perm);
  if (has & AXIS) used.axis = attr->axis;
  if (has & GROUPS) used.groups = attr->groups;
#define COPY_LIST(bit, list) \
  if (has & (bit)) memcpy(used.list, attr->list, sizeof used.list);
  FOR_LISTS(COPY_LIST)
#undef COPY_LIST
  return used;
}

bool ft_attr_equal(const ft_attr *a, const ft_attr *b) {
#define SAME_LIST(bit, list) &&memcmp(a->list, b->list, sizeof a->list) == 0
  return a->to == b->to && a->axes == b->axes && ft_shape_equal(&a->shape, &b->shape) &&
         memcmp(a->perm, b->perm, sizeof a->perm) == 0 && a->axis == b->axis &&
         a->groups == b->groups FOR_LISTS(SAME_LIST);
#undef SAME_LIST
}

int ft_attr_numbers(ft_op op, const ft_attr *attr, int64_t out[FT_ATTR_NUMBERS]) {
  unsigned has = members(op);
  int count = 0;
  if (has & AXIS) out[count++] = attr->axis;
  if (has & GROUPS) out[count++] = attr->groups;
#define ADD_LIST(bit, list) \
  for (int i = 0; has & (bit) && i < FT_MAX_RANK; i++) out[count++] = attr->list[i];
  FOR_LISTS(ADD_LIST)
#undef ADD_LIST
  return count;
}

bool ft_attr_take_numbers(ft_op op, const int64_t *number, ft_attr *attr) {
  unsigned has = members(op);
  int count = 0;
  if (has & AXIS) {
    if (number[count] < 0 || number[count] >= FT_MAX_RANK) return false;
    attr->axis = (uint8_t)number[count++];
  }
  if (has & GROUPS) attr->groups = number[count++];
#define TAKE_LIST(bit, list) \
  for (int i = 0; has & (bit) && i < FT_MAX_RANK; i++) attr->list[i] = number[count++];
  FOR_LISTS(TAKE_LIST)
#undef TAKE_LIST
  return true;
}

uint64_t ft_attr_hash(uint64_t seed, ft_op op, const ft_attr *attr) {
  unsigned has = members(op);
  uint64_t hash = seed;
  if (has & TO) hash = ft_hash64(hash, &attr->to, sizeof attr->to);
  if (has & AXES) hash = ft_hash64(hash, &attr->axes, sizeof attr->axes);
  if (has & SHAPE) hash = ft_hash64(hash, attr->shape.dim, sizeof attr->shape.dim);
  if (has & PERM) hash = ft_hash64(hash, attr->perm, sizeof attr->perm);
  int64_t numbers[FT_ATTR_NUMBERS];
  int count = ft_attr_numbers(op, attr, numbers);
  return count ? ft_hash64(hash, numbers, (size_t)count * sizeof *numbers) : hash;
}
