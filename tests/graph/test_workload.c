#include "graph/group.h"
#include "tests/support/graphs.h"

static ft_arena *arena;
static ft_error error;
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(graph_workload, .init = set_up, .fini = tear_down);

static ft_workload of_graph(const ft_graph *graph) {
  ft_group group;
  ft_workload out;
  uint32_t *all = FT_NEW_ARRAY(arena, uint32_t, graph->primitive_count);
  for (uint32_t i = 0; i < graph->primitive_count; i++) all[i] = i;
  cr_assert_eq(ft_group_make(graph, all, graph->primitive_count, arena, &group, &error),
               FT_OK, "%s", error.text);
  cr_assert_eq(ft_workload_make(&group, arena, &out, &error), FT_OK, "%s", error.text);
  return out;
}

static ft_workload of_table(const spec *table, int count, ft_rng *rng) {
  return of_graph(spec_build(table, count, rng, arena));
}

// x -> relu -> ... 8 unary and binary steps with a bias
static int chain(spec *t) {
  int n = 0;
  t[n++] = (spec){.op = SPEC_INPUT, .shape = SHAPE(64, 32)};
  t[n++] = (spec){.op = SPEC_WEIGHT, .shape = SHAPE(32)};
  t[n++] = (spec){.op = FT_OP_ADD, .in = {0, 1}};
  t[n++] = (spec){.op = FT_OP_RELU, .in = {2}};
  t[n++] = (spec){.op = FT_OP_EXP, .in = {3}};
  t[n++] = (spec){.op = SPEC_SCALAR, .value = 3};
  t[n++] = (spec){.op = FT_OP_DIV, .in = {4, 5}};
  t[n++] = (spec){.op = FT_OP_TANH, .in = {6}};
  t[n++] = (spec){.op = FT_OP_SUB, .in = {7, 0}, .is_output = true};
  return n;
}

// 0.5 x (1 + erf(x / sqrt 2)) + residual
static int gelu(spec *t) {
  int n = 0;
  t[n++] = (spec){.op = SPEC_INPUT, .shape = SHAPE(8, 128)};
  t[n++] = (spec){.op = SPEC_INPUT, .shape = SHAPE(8, 128)};
  t[n++] = (spec){.op = SPEC_SCALAR, .value = 1.41421356};
  t[n++] = (spec){.op = FT_OP_DIV, .in = {0, 2}};
  t[n++] = (spec){.op = FT_OP_ERF, .in = {3}};
  t[n++] = (spec){.op = SPEC_SCALAR, .value = 1};
  t[n++] = (spec){.op = FT_OP_ADD, .in = {4, 5}};
  t[n++] = (spec){.op = FT_OP_MUL, .in = {0, 6}};
  t[n++] = (spec){.op = SPEC_SCALAR, .value = 0.5};
  t[n++] = (spec){.op = FT_OP_MUL, .in = {7, 8}};
  t[n++] = (spec){.op = FT_OP_ADD, .in = {9, 1}, .is_output = true};
  return n;
}

static int layer_norm(spec *t) {
  const ft_attr rows = {.axes = 2};
  int n = 0;
  t[n++] = (spec){.op = SPEC_INPUT, .shape = SHAPE(16, 64)};
  t[n++] = (spec){.op = SPEC_WEIGHT, .shape = SHAPE(64)};
  t[n++] = (spec){.op = SPEC_WEIGHT, .shape = SHAPE(64)};
  t[n++] = (spec){.op = SPEC_SCALAR, .value = 64};
  t[n++] = (spec){.op = SPEC_SCALAR, .value = 1e-5};
  t[n++] = (spec){.op = FT_OP_REDUCE_SUM, .in = {0}, .attr = rows};
  t[n++] = (spec){.op = FT_OP_DIV, .in = {5, 3}};
  t[n++] = (spec){.op = FT_OP_SUB, .in = {0, 6}};
  t[n++] = (spec){.op = FT_OP_MUL, .in = {7, 7}};
  t[n++] = (spec){.op = FT_OP_REDUCE_SUM, .in = {8}, .attr = rows};
  t[n++] = (spec){.op = FT_OP_DIV, .in = {9, 3}};
  t[n++] = (spec){.op = FT_OP_ADD, .in = {10, 4}};
  t[n++] = (spec){.op = FT_OP_SQRT, .in = {11}};
  t[n++] = (spec){.op = FT_OP_DIV, .in = {7, 12}};
  t[n++] = (spec){.op = FT_OP_MUL, .in = {13, 1}};
  t[n++] = (spec){.op = FT_OP_ADD, .in = {14, 2}, .is_output = true};
  return n;
}

// Four heads alike: all interchangeable, joined by one non-commutative tree.
static int twins(spec *t) {
  int n = 0, head[4];
  for (int i = 0; i < 4; i++) t[n++] = (spec){.op = SPEC_INPUT, .shape = SHAPE(8, 8)};
  for (int i = 0; i < 4; i++) {
    t[n] = (spec){.op = FT_OP_EXP, .in = {i}}, n++;
    t[n] = (spec){.op = FT_OP_ADD, .in = {n - 1, i}}, n++;
    head[i] = n - 1;
  }
  t[n++] = (spec){.op = FT_OP_SUB, .in = {head[0], head[1]}};
  t[n++] = (spec){.op = FT_OP_SUB, .in = {head[2], head[3]}};
  t[n] = (spec){.op = FT_OP_MUL, .in = {n - 2, n - 1}, .is_output = true};
  return n + 1;
}

// Independent pieces, alike but that one also shows a value from its middle: colours
// cannot tell the others apart and need not, but each must stay together.
static int siblings(spec *t) {
  static const ft_op steps[] = {FT_OP_EXP, FT_OP_TANH, FT_OP_NEG, FT_OP_ABS, FT_OP_SIN};
  int n = 0;
  for (int i = 0; i < 8; i++) {
    t[n++] = (spec){.op = SPEC_INPUT, .shape = SHAPE(8, 8)};
    for (int k = 0; k < 5; k++, n++) t[n] = (spec){.op = (int)steps[k], .in = {n - 1}};
    t[n] = (spec){.op = FT_OP_MUL, .in = {n - 1, n - 3}, .is_output = true}, n++;
  }
  t[3].is_output = true;
  return n;
}

// exp(a), exp(b), tanh(b), and the same with exp and tanh swapped: only who else reads
// its input tells one exp from another, whichever op comes first.
static int shared_input(spec *t) {
  int n = 0;
  for (int i = 0; i < 2; i++, n += 5) {
    const int two = i ? FT_OP_TANH : FT_OP_EXP, one = i ? FT_OP_EXP : FT_OP_TANH;
    t[n] = t[n + 1] = (spec){.op = SPEC_INPUT, .shape = SHAPE(8, 8 + i)};
    t[n + 2] = (spec){.op = two, .in = {n}, .is_output = true};
    t[n + 3] = (spec){.op = two, .in = {n + 1}, .is_output = true};
    t[n + 4] = (spec){.op = one, .in = {n + 1}, .is_output = true};
  }
  return n;
}

static int (*const families[])(spec *) = {chain, gelu,     layer_norm,
                                          twins, siblings, shared_input};

Test(graph_workload, order_of_nodes_and_names_do_not_matter) {
  ft_rng rng = ft_rng_seed(5);
  spec table[SPEC_MAX];
  for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
    int count = families[f](table);
    ft_workload want = of_table(table, count, NULL);
    for (int i = 0; i < 50; i++) {
      ft_workload got = of_table(table, count, &rng);
      cr_assert(ft_workload_equal(&want, &got), "family %zu, permutation %d", f, i);
      cr_assert(ft_hash_equal(&want.hash, &got.hash));
    }
  }
}

Test(graph_workload, random_graphs_in_another_order_almost_never_get_another_key) {
  ft_rng rng = ft_rng_seed(6);
  spec table[SPEC_MAX];
  int equal = 0;
  for (int i = 0; i < 500; i++) {
    int count = spec_random(table, 2 + (int)ft_rng_below(&rng, 16), &rng);
    ft_workload a = of_table(table, count, NULL), b = of_table(table, count, &rng);
    equal += ft_workload_equal(&a, &b);
  }
  cr_assert_geq(equal, 495, "%d of 500", equal);
}

Test(graph_workload, equal_layers_of_one_model_are_one_workload) {
  spec table[SPEC_MAX];
  int n = gelu(table), layer = n;
  table[n++] = (spec){.op = FT_OP_NEG, .in = {layer - 1}};
  ft_rng rng = ft_rng_seed(7);
  ft_graph *graph = NULL;
  // The second layer reads what the first made: a computed value, not an input.
  int base = n, map[SPEC_MAX];
  for (int i = 0; i < layer; i++) {
    spec s = table[i];
    if (s.op == SPEC_INPUT) {
      map[i] = i == 0 ? base - 1 : 1;
      continue;
    }
    for (int k = 0; k < 3; k++) s.in[k] = map[s.in[k]];
    table[n] = s;
    map[i] = n++;
  }
  graph = spec_build(table, n, &rng, arena);
  ft_group group;
  ft_workload layers[2];
  uint32_t members[2][6], found[2] = {0, 0}, neg = FT_NONE;
  for (uint32_t p = 0; p < graph->primitive_count; p++)
    if (graph->primitive[p].op == FT_OP_NEG) neg = p;
  for (uint32_t p = 0; p < graph->primitive_count; p++)
    if (p != neg) members[p > neg][found[p > neg]++] = p;
  cr_assert(found[0] == 6 && found[1] == 6);
  for (int i = 0; i < 2; i++) {
    cr_assert_eq(ft_group_make(graph, members[i], 6, arena, &group, &error), FT_OK);
    cr_assert_eq(ft_workload_make(&group, arena, &layers[i], &error), FT_OK);
  }
  cr_assert(ft_workload_equal(&layers[0], &layers[1]));
}

Test(graph_workload, what_a_kernel_depends_on_changes_the_key) {
  spec base[SPEC_MAX], changed[SPEC_MAX];
  int count = layer_norm(base);
  ft_workload want = of_table(base, count, NULL);
  for (int change = 0; change < 9; change++) {
    memcpy(changed, base, sizeof base);
    switch (change) {
      case 0:
        changed[0].shape = SHAPE(17, 64);
        break;  // a dim
      case 1:
        changed[5].attr.axes = 3;
        break;  // an attribute
      case 2:
        for (int i = 0; i < count; i++) changed[i].dtype = FT_F64;
        break;
      case 3:
        changed[7].in[0] = 6, changed[7].in[1] = 0;
        break;  // operand order
      case 4:
        changed[7].is_output = true;
        break;  // an output flag
      case 5:
        changed[4].value = 1e-6;
        break;  // an immediate
      case 6:
        changed[12].op = FT_OP_ABS;
        break;  // an op
      case 7:
        changed[15].in[1] = 1;
        break;  // which buffer
      default:
        changed[1].shape = SHAPE(1, 64);
        break;  // a shape's rank
    }
    ft_workload got = of_table(changed, count, NULL);
    cr_assert(!ft_workload_equal(&want, &got), "change %d", change);
    cr_assert(!ft_hash_equal(&want.hash, &got.hash), "change %d", change);
  }
}

// A conv with everything different from everything else, and what can be changed in it.
static ft_workload conv_with(int change) {
  ft_shape x = SHAPE(1, 4, 40, 40), w = SHAPE(4, 2, 3, 5);
  ft_attr attr = {.groups = 2,
                  .start = {1, 2},
                  .stride = {2, 3},
                  .dilation = {4, 5},
                  .shape = SHAPE(1, 4, 6, 7)};
  int64_t *const number[] = {&attr.groups,      &attr.start[0],    &attr.start[1],
                             &attr.stride[0],   &attr.stride[1],   &attr.dilation[0],
                             &attr.dilation[1], &attr.shape.dim[2]};
  if (change >= 0) *number[change] += change ? 1 : -1;
  if (change == 0) w.dim[1] = 4;
  const spec t[] = {{.op = SPEC_INPUT, .shape = x},
                    {.op = SPEC_INPUT, .shape = w},
                    {.op = FT_OP_CONV, .in = {0, 1}, .attr = attr, .is_output = true}};
  return of_table(t, 3, NULL);
}

Test(graph_workload, each_number_of_a_conv_is_part_of_the_key) {
  ft_workload want = conv_with(-1), again = conv_with(-1);
  cr_assert(ft_workload_equal(&want, &again));
  for (int change = 0; change < 8; change++) {
    ft_workload got = conv_with(change);
    cr_assert(!ft_workload_equal(&want, &got), "change %d", change);
    cr_assert(!ft_hash_equal(&want.hash, &got.hash), "change %d", change);
  }
}

static ft_workload one_op(ft_op op, ft_shape x, ft_shape second, ft_attr attr) {
  bool gathers = op == FT_OP_GATHER || op == FT_OP_GATHER_ELEMENTS;
  const spec t[] = {
      {.op = SPEC_INPUT, .shape = x},
      {.op = SPEC_INPUT, .shape = second, .dtype = gathers ? FT_I64 : FT_F32},
      {.op = (int)op, .in = {0, 1}, .attr = attr, .is_output = true}};
  return of_table(t, 3, NULL);
}

static void differ(ft_op op, ft_shape x, ft_shape second, ft_attr a, ft_attr b) {
  ft_workload first = one_op(op, x, second, a), other = one_op(op, x, second, b);
  cr_assert(!ft_workload_equal(&first, &other), "%s", ft_op_describe(op)->name);
}

// The shapes of the results are the same in each pair.
Test(graph_workload, starts_steps_windows_and_axes_are_part_of_the_key) {
  const ft_shape square = SHAPE(1, 1, 9, 9), scalar = {0};
  ft_attr slice = {
      .start = {0, 0, 2, 2}, .step = {1, 1, 2, 2}, .shape = SHAPE(1, 1, 2, 2)};
  ft_attr other = slice;
  other.start[2] = 3;
  differ(FT_OP_SLICE, square, scalar, slice, other);
  other = slice, other.step[3] = -2;
  differ(FT_OP_SLICE, square, scalar, slice, other);
  ft_attr pad = {.shape = SHAPE(1, 1, 12, 12)};
  other = pad, other.start[3] = 1;
  differ(FT_OP_PAD, square, scalar, pad, other);
  ft_attr axis = {.axis = 2};
  other = axis, other.axis = 3;
  differ(FT_OP_GATHER_ELEMENTS, square, square, axis, other);
  differ(FT_OP_GATHER, square, SHAPE(9), axis, other);
  ft_attr window = {
      .window = {2, 2}, .stride = {1, 1}, .dilation = {1, 1}, .shape = SHAPE(1, 1, 3, 3)};
  other = window, other.window[0] = 3;
  differ(FT_OP_WINDOW_MAX, square, scalar, window, other);
  differ(FT_OP_WINDOW_SUM, square, scalar, window, other);
}

Test(graph_workload, the_order_and_number_of_parts_is_part_of_the_key) {
  const spec t[] = {{.op = SPEC_INPUT, .shape = SHAPE(4)},
                    {.op = SPEC_INPUT, .shape = SHAPE(4)},
                    {.op = FT_OP_NEG, .in = {0}}};
  ft_workload made[4];
  static const int parts[4][4] = {
      {0, 1, 1, 2}, {1, 0, 1, 2}, {0, 1, 2, -1}, {0, 1, 1, 2}};
  for (int i = 0; i < 4; i++) {
    ft_graph *graph;
    uint32_t value[3], part[4], y, count = 0;
    cr_assert_eq(ft_graph_create(arena, "g", &graph, &error), FT_OK);
    for (int k = 0; k < 3; k++) value[k] = spec_add(graph, &t[k], value, "x");
    for (int k = 0; k < 4; k++)
      if (parts[i][k] >= 0) part[count++] = value[parts[i][k]];
    cr_assert_eq(
        ft_graph_emit(graph, FT_OP_CONCAT, part, count, &(ft_attr){0}, &y, &error),
        FT_OK);
    cr_assert_eq(ft_graph_add_output(graph, "y", y, &error), FT_OK);
    cr_assert_eq(ft_graph_finish(graph, &error), FT_OK);
    made[i] = of_graph(graph);
  }
  cr_assert(!ft_workload_equal(&made[0], &made[1]));
  cr_assert(!ft_workload_equal(&made[0], &made[2]));
  cr_assert(ft_workload_equal(&made[0], &made[3]));
}

Test(graph_workload, counts_two_flops_for_each_term_of_a_contraction) {
  ft_workload conv = conv_with(-1);
  cr_assert_eq(conv.flops, 2.0 * 2 * 3 * 5 * 4 * 6 * 7);
  ft_workload matmul = one_op(FT_OP_MATMUL, SHAPE(3, 4), SHAPE(2, 4, 5), (ft_attr){0});
  cr_assert_eq(matmul.flops, 2.0 * 4 * 2 * 3 * 5);
  ft_attr window = {
      .window = {2, 3}, .stride = {1, 1}, .dilation = {1, 1}, .shape = SHAPE(1, 1, 3, 3)};
  const spec t[] = {
      {.op = SPEC_INPUT, .shape = SHAPE(1, 1, 4, 5)},
      {.op = FT_OP_WINDOW_SUM, .in = {0}, .attr = window, .is_output = true}};
  cr_assert_eq(of_table(t, 2, NULL).flops, 2.0 * 3 * 9);
}

Test(graph_workload, the_shape_of_a_view_is_part_of_the_key) {
  ft_shape shapes[2] = {SHAPE(4, 1), SHAPE(1, 4)};  // both give 4x4
  ft_workload made[2];
  for (int i = 0; i < 2; i++) {
    spec t[] = {{.op = SPEC_INPUT, .shape = SHAPE(4, 4)},
                {.op = SPEC_INPUT, .shape = SHAPE(4)},
                {.op = SPEC_VIEW, .in = {1}, .shape = shapes[i]},
                {.op = FT_OP_ADD, .in = {0, 2}, .is_output = true}};
    made[i] = of_table(t, 4, NULL);
  }
  cr_assert(!ft_workload_equal(&made[0], &made[1]));
}

Test(graph_workload, bytes_of_large_constants_are_not_part_of_the_key) {
  ft_workload made[2];
  for (int i = 0; i < 2; i++) {
    spec t[SPEC_MAX];
    int count = chain(t);
    t[1].op = i ? SPEC_WEIGHT : SPEC_INPUT;
    made[i] = of_table(t, count, NULL);
  }
  cr_assert(ft_workload_equal(&made[0], &made[1]));
}

Test(graph_workload, groups_of_equal_keys_correspond_position_by_position) {
  ft_rng rng = ft_rng_seed(8);
  spec table[SPEC_MAX];
  int count = layer_norm(table);
  ft_workload a = of_table(table, count, NULL), b = of_table(table, count, &rng);
  cr_assert_eq(a.group.input_count, b.group.input_count);
  for (uint32_t i = 0; i < a.group.primitive_count; i++)
    cr_assert_eq(a.group.graph->primitive[a.group.primitive[i]].op,
                 b.group.graph->primitive[b.group.primitive[i]].op);
  for (uint32_t i = 0; i < a.group.input_count; i++) {
    const ft_value *x = &a.group.graph->value[a.group.input[i]];
    const ft_value *y = &b.group.graph->value[b.group.input[i]];
    cr_assert(ft_shape_equal(&x->shape, &y->shape) && x->dtype == y->dtype);
  }
}

Test(graph_workload, a_workload_made_from_a_canonical_group_is_itself) {
  spec table[SPEC_MAX];
  ft_workload a = of_table(table, layer_norm(table), NULL), b;
  cr_assert_eq(ft_workload_make(&a.group, arena, &b, &error), FT_OK);
  cr_assert(ft_workload_equal(&a, &b));
  cr_assert_arr_eq(a.group.primitive, b.group.primitive,
                   a.group.primitive_count * sizeof(uint32_t));
}

Test(graph_workload, counts_each_buffer_once_and_each_arithmetic_element_once) {
  spec table[SPEC_MAX];
  ft_workload w = of_table(table, layer_norm(table), NULL);
  cr_assert_eq(w.read_bytes, 4 * (16 * 64 + 64 + 64));
  cr_assert_eq(w.write_bytes, 4 * 16 * 64);
  // full size: 2 sums, sub, mul, div, mul, add; per row: 2 div, add, sqrt
  cr_assert_eq(w.flops, 7.0 * 16 * 64 + 4 * 16);
}

Test(graph_workload, refuses_a_group_whose_inputs_or_outputs_do_not_fit) {
  spec table[SPEC_MAX];
  ft_workload a = of_table(table, gelu(table), NULL), b;
  ft_group broken = a.group;
  broken.input_count = 1;
  cr_assert_eq(ft_workload_make(&broken, arena, &b, &error), FT_INVALID_ARGUMENT);
  broken = a.group;
  broken.output = broken.input, broken.output_count = 1;
  cr_assert_eq(ft_workload_make(&broken, arena, &b, &error), FT_INVALID_ARGUMENT);
}
