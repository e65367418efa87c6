#include "codegen/parts.h"

#include "graphs.h"

static ft_parts parts_of(sketch *s, ft_workload *w) {
  ft_parts parts;
  ft_error error;
  uint32_t count;
  *w = finish(s);
  cr_assert_eq(ft_parts_make(w, s->arena, &parts, &error), FT_OK, "%s", error.text);
  cr_assert_eq(ft_parts_count(w, s->arena, &count, &error), FT_OK);
  cr_assert_eq(count, parts.count);
  return parts;
}

// Each position of a part's ABI is the whole's value there.
static void check_arguments(const ft_workload *whole, const ft_part *part) {
  const ft_group *own = &part->workload.group, *all = &whole->group;
  for (uint32_t i = 0; i < own->input_count; i++)
    cr_assert_eq(all->input[part->argument[i]], own->input[i]);
  for (uint32_t i = 0; i < own->output_count; i++) {
    uint32_t at = part->argument[own->input_count + i];
    cr_assert_geq(at, all->input_count);
    cr_assert_eq(all->output[at - all->input_count], own->output[i]);
  }
  cr_assert_eq(part->argument[own->input_count + own->output_count],
               all->input_count + all->output_count, "the workspace");
}

Test(codegen_parts, a_chain_is_one_part) {
  sketch s = sketch_open();
  ft_workload w;
  output(&s, one(&s, FT_OP_EXP, one(&s, FT_OP_NEG, input(&s, FT_F32, SHAPE(4)))));
  ft_parts parts = parts_of(&s, &w);
  cr_assert_eq(parts.count, 1);
  cr_assert(ft_workload_equal(&w, &parts.part[0].workload));
  sketch_close(&s);
}

Test(codegen_parts, siblings_of_an_input_are_parts_and_a_view_joins) {
  sketch s = sketch_open();
  ft_workload w;
  uint32_t x = input(&s, FT_F32, SHAPE(4, 6));
  uint32_t y = one(&s, FT_OP_EXP, x);
  output(&s, one(&s, FT_OP_NEG, view(&s, y, SHAPE(24))));
  output(&s, one(&s, FT_OP_TANH, view(&s, x, SHAPE(24))));
  output(&s, reduce(&s, FT_OP_REDUCE_SUM, x, 2));
  ft_parts parts = parts_of(&s, &w);
  cr_assert_eq(parts.count, 3);
  uint32_t primitives = 0;
  for (uint32_t i = 0; i < parts.count; i++) {
    check_arguments(&w, &parts.part[i]);
    primitives += parts.part[i].workload.group.primitive_count;
    cr_assert_eq(parts.part[i].workload.group.input_count, 1);
    cr_assert_eq(parts.part[i].argument[0], 0);
  }
  cr_assert_eq(primitives, w.group.primitive_count);
  sketch_close(&s);
}

Test(codegen_parts, what_feeds_two_results_holds_them_together) {
  sketch s = sketch_open();
  ft_workload w;
  uint32_t x = one(&s, FT_OP_EXP, input(&s, FT_F32, SHAPE(5)));
  uint32_t y = one(&s, FT_OP_EXP, input(&s, FT_F32, SHAPE(5)));
  output(&s, one(&s, FT_OP_NEG, x));
  output(&s, one(&s, FT_OP_TANH, y));
  output(&s, two(&s, FT_OP_ADD, x, y));
  cr_assert_eq(parts_of(&s, &w).count, 1);
  sketch_close(&s);
}

// So that a part is measured and looked up as what it is.
Test(codegen_parts, equal_parts_are_one_workload) {
  sketch s = sketch_open();
  ft_workload w;
  for (int i = 0; i < 2; i++) {
    uint32_t a = input(&s, FT_F32, SHAPE(8, 6)), b = input(&s, FT_F32, SHAPE(6, 4));
    output(&s, two(&s, FT_OP_MATMUL, a, b));
  }
  ft_parts parts = parts_of(&s, &w);
  cr_assert_eq(parts.count, 2);
  cr_assert(ft_workload_equal(&parts.part[0].workload, &parts.part[1].workload));
  for (uint32_t i = 0; i < 2; i++) check_arguments(&w, &parts.part[i]);
  sketch_close(&s);
}

Test(codegen_parts, more_than_the_most_are_counted) {
  sketch s = sketch_open();
  ft_workload w;
  for (int i = 0; i < FT_MOST_PARTS + 3; i++)
    output(&s, one(&s, FT_OP_EXP, input(&s, FT_F32, SHAPE(2 + i))));
  cr_assert_eq(parts_of(&s, &w).count, FT_MOST_PARTS + 3);
  sketch_close(&s);
}
