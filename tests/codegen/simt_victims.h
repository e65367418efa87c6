// Kernels in which every part matters, for SIM to find out what was changed: odd extents,
// several rows a block, two warps a row, several steps a thread, and a result that
// depends on each reduction (a softmax does not depend on its maximum).
#ifndef FT_TESTS_CODEGEN_SIMT_VICTIMS_H
#define FT_TESTS_CODEGEN_SIMT_VICTIMS_H

#include "simt_drawings.h"

typedef struct victim {
  const char *drawing;
  uint32_t choice;
} victim;

static const victim nest_victims[] = {
    {"odd chain", 0},          {"mixture", 8},        {"mixture", 6},
    {"mixture of columns", 0}, {"odd bf16 chain", 0},
};
// Registers with a tail, shared memory, split rows; columns, in registers, split.
static const victim kept_victims[] = {
    {"tailed mixture", 11},     {"mixture", 13},
    {"few long rows", 15},      {"uneven columns", 17},
    {"mixture of columns", 19}, {"tall columns", 21},
};
static const victim product_victims[] = {
    {"product", NESTS + 1},
    {"heads", NESTS + LOOPS},
    {"f16 product", NESTS + 1},
    {"long product", NESTS + LOOPS},
    {"long product", NESTS + LOOPS + 1},
    {"long product", NESTS + LOOPS + 2},
    {"long product", NESTS + LOOPS + 3},
    {"few rows", FIRST_SKINNIES},
    {"one row", FIRST_SKINNIES + 2},
};
static const victim window_victims[] = {
    {"conv line", FIRST_CONVS},
    {"conv pointwise", FIRST_CONVS + 2},
    {"depthwise", FIRST_WINDOWS + 3},
};
// Padded, whole and cut tiles; rotated, through shared memory both ways.
static const victim turn_victims[] = {
    {"odd turn", FIRST_TURNS},
    {"two layouts", FIRST_TURNS + 2},
};
// One by one and taking turns, split rows with a workspace, shared memory of both.
static const victim block_victims[] = {
    {"strangers", FIRST_BLOCKS},    {"strangers", FIRST_BLOCKS + 1},
    {"shared input", FIRST_BLOCKS}, {"two sums", FIRST_BLOCKS + 4},
    {"two products", FIRST_BLOCKS},
};
// Workspace and grid-done, register files, copies of 4 and 2 stages.
static const victim hand_victims[] = {
    {"split sum", BY_HAND},
    {"held rows", BY_HAND + 1},
    {"staged sum", BY_HAND + 2},
    {"staged sum", BY_HAND + 3},
};

#define FAMILY(name) \
  { name##_victims, sizeof name##_victims / sizeof *name##_victims }
typedef enum family_name {
  NEST_FAMILY,
  KEPT_FAMILY,
  PRODUCT_FAMILY,
  WINDOW_FAMILY,
  TURN_FAMILY,
  BLOCK_FAMILY,
  HAND_FAMILY,
  FAMILIES
} family_name;

static const struct {
  const victim *victim;
  uint32_t count;
} families[FAMILIES] = {FAMILY(nest), FAMILY(kept),  FAMILY(product), FAMILY(window),
                        FAMILY(turn), FAMILY(block), FAMILY(hand)};
#undef FAMILY

// Mutants that are as right as the kernel, and why.
static const char *const harmless[] = {
    // Sums put aside at every step.
    "long product, gemm 0: a guard dropped, 2",
    "long product, gemm 1: a guard dropped, 5",
    "long product, gemm 2: a guard dropped, 1",
    "long product, gemm 3: a guard dropped, 2",
    // Columns past the end: it reads the next row, and what comes of it is not stored.
    "long product, gemm 1: a guard dropped, 1",
    "long product, gemm 2: a copy without a condition, 4",
    "long product, gemm 2: a copy without a condition, 9",
    "heads, gemm 0: a guard dropped, 1",
    "heads, gemm 0: a guard dropped, 2",
    "heads, gemm 0: a guard dropped, 3",
    "two products, blocks 0: a guard dropped, 17",
    // Rows that are there, of terms that are, or meet zeros of the other operand.
    "long product, gemm 2: a copy without a condition, 0",
    "long product, gemm 2: a copy without a condition, 1",
    "long product, gemm 2: a copy without a condition, 5",
    "long product, gemm 2: a copy without a condition, 6",
    "long product, gemm 2: a copy without a condition, 10",
    "long product, gemm 2: a copy without a condition, 11",
    // From elsewhere, of rows that are not there: a thread's last copy is always of
    // zeros.
    "long product, gemm 2: a copy aside, 6",
    "long product, gemm 2: a copy aside, 16",
    "long product, gemm 2: a copy aside, 26",
    // A step past the end, of zeros, that nothing multiplies or that adds nothing.
    "long product, gemm 1: a guard dropped, 2",
    "long product, gemm 1: a guard dropped, 6",
    "long product, gemm 2: a guard dropped, 0",
    "long product, gemm 0: a loop too long, 0",
    "two products, blocks 0: a loop too long, 0",
    "two products, blocks 0: a loop too long, 1",
    // Slots one element further apart: the last row's padding has room for it.
    "long product, gemm 2: a wrong stride, 7",
    // Terms past the end are zeros in the slabs; a partial sum past it has no terms.
    "conv line, conv 0: a loop too long, 0",
    "conv pointwise, conv 2: a loop too long, 0",
    // A slab past the end is zeros, and the first one is whole.
    "staged sum, by hand 2: a loop too long, 0",
    "staged sum, by hand 3: a loop too long, 0",
    "staged sum, by hand 2: a copy without a condition, 0",
    "staged sum, by hand 3: a copy without a condition, 0",
    // Turns in which a body has no block left: its items are past the end, too.
    "strangers, blocks 1: a guard dropped, 1",
    "strangers, blocks 1: a range of blocks too long, 1",
    // A chunk past the end has no steps.
    "mixture of columns, nest 0: a loop too long, 0",
    "mixture of columns, nest 0: a loop too long, 2",
    // -d / sum(-d), when d is computed once.
    "mixture, nest 13: operands swapped, 0",
    // A pass over registers does not use its position.
    "tailed mixture, nest 11: a wrong stride, 6",
    "tailed mixture, nest 11: a wrong stride, 7",
    "tailed mixture, nest 11: a wrong stride, 8",
    "mixture of columns, nest 19: a wrong stride, 4",
};
enum { HARMLESS = sizeof harmless / sizeof *harmless };

#endif
