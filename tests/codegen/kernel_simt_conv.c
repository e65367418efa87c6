// Convolutions and windows in GPU shape on numbers that random inputs do not have, and
// what they refuse.
#include <math.h>

#include "simming.h"
#include "simt_conv_drawings.h"

typedef struct trial {
  sketch sketch;
  ft_workload workload;
  simmed run;
} trial;

typedef double number_of(uint32_t input, int64_t element);

// Inputs from |number|; the reference of them.
static void give(trial *t, number_of *number) {
  const ft_group *g = &t->workload.group;
  ft_arena *arena = t->sketch.arena;
  ft_error error;
  ft_graph *alone;
  simmed *c = &t->run;
  c->workload = &t->workload;
  c->input = FT_NEW_ARRAY(arena, ft_tensor, g->input_count);
  for (uint32_t i = 0; i < g->input_count; i++) {
    const ft_value *v = &g->graph->value[g->input[i]];
    void *data;
    cr_assert_eq(ft_tensor_alloc(v->dtype, &v->shape, arena, &c->input[i], &data, &error),
                 FT_OK);
    for (int64_t e = 0; e < ft_shape_elements(&v->shape); e++)
      ft_element_set_f64(v->dtype, data, e, number(i, e));
  }
  cr_assert_eq(ft_group_extract(g, arena, &alone, &error), FT_OK, "%s", error.text);
  c->reference = FT_NEW_ARRAY(arena, ft_reference, g->output_count);
  cr_assert_eq(ft_interpret_graph(alone, c->input, arena, c->reference, &error), FT_OK,
               "%s", error.text);
}

// Prints, compiles and runs |kir|; output 0.
static ft_tensor run(trial *t, ft_kir *kir, const char *label) {
  ft_arena *arena = t->sketch.arena;
  const char *folder = cache_make(arena);
  ft_tensor *out = FT_NEW_ARRAY(arena, ft_tensor, t->workload.group.output_count);
  t->run.label = label;
  simmed_print(&t->run, kir, 0, arena);
  void *library = simmed_build(&t->run, 1, folder, arena);
  ft_sim_call call = simmed_call(&t->run, library, arena, out);
  const char *wrong = simmed_launch(&t->run, &call, out, arena);
  cr_assert_null(wrong, "%s: %s", label, wrong);
  dlclose(library);
  cache_remove(folder, arena);
  return out[0];
}

static ft_kir *conv(trial *t, const ft_simt_conv_choice *choice) {
  ft_kir *kir;
  ft_error error;
  ft_arena *arena = t->sketch.arena;
  if (ft_simt_conv_refusal(&t->workload, choice, arena)) return NULL;
  cr_assert_eq(ft_simt_conv_build(&t->workload, choice, arena, &kir, &error), FT_OK);
  return kir;
}

static ft_kir *window(trial *t, const ft_simt_window_choice *choice) {
  ft_kir *kir;
  ft_error error;
  ft_arena *arena = t->sketch.arena;
  if (ft_simt_window_refusal(&t->workload, choice, arena)) return NULL;
  cr_assert_eq(ft_simt_window_build(&t->workload, choice, arena, &kir, &error), FT_OK);
  return kir;
}

static trial open_trial(void (*draw)(sketch *s)) {
  trial t = {.sketch = sketch_open()};
  draw(&t.sketch);
  t.workload = finish(&t.sketch);
  return t;
}

// ---- numbers
// -------------------------------------------------------------------------------------

static void draw_single(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, 1, 6, 20)),
           w = input(s, FT_F32, SHAPE(1, 1, 3, 3));
  output(s, convolve(s, x, w, (ft_attr){.shape = SHAPE(1, 1, 6, 20), .start = {1, 1}}));
}

static double infinite_corner(uint32_t input, int64_t element) {
  return input == 1 && element == 0 ? (double)INFINITY : 1;
}

static void check_corner(const ft_tensor *out) {
  cr_assert_eq(ft_tensor_get_f64(out, 0), 4);    // the corner never meets it
  cr_assert_eq(ft_tensor_get_f64(out, 5), 6);    // nor does the upper edge
  cr_assert_eq(ft_tensor_get_f64(out, 20), 6);   // nor the left one
  cr_assert(isinf(ft_tensor_get_f64(out, 21)));  // inside
}

Test(simt_conv, padding_adds_nothing_to_an_infinite_filter) {
  uint32_t kernels = 0;
  for (size_t i = 0; i < sizeof conv_choices / sizeof *conv_choices; i++) {
    trial t = open_trial(draw_single);
    give(&t, infinite_corner);
    ft_kir *kir = conv(&t, &conv_choices[i]);
    if (kir) {
      ft_tensor out = run(&t, kir, "conv");
      check_corner(&out);
      kernels++;
    }
    sketch_close(&t.sketch);
  }
  for (size_t i = 0; i < sizeof window_choices / sizeof *window_choices; i++) {
    trial t = open_trial(draw_single);
    give(&t, infinite_corner);
    ft_kir *kir = window(&t, &window_choices[i]);
    cr_assert(kir);
    ft_tensor out = run(&t, kir, "window");
    check_corner(&out);
    kernels++;
    sketch_close(&t.sketch);
  }
  cr_assert_eq(kernels, 8);
}

static void draw_maximum(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, 1, 5, 9));
  output(s,
         pool(s, FT_OP_WINDOW_MAX, x,
              (ft_attr){.shape = SHAPE(1, 1, 5, 9), .window = {3, 3}, .start = {1, 1}}));
}

static double below_zero(uint32_t input, int64_t element) {
  (void)input;
  return element == 22 ? (double)NAN : -(double)(element + 1);
}

Test(simt_conv, a_maximum_keeps_nan_and_never_takes_padding) {
  for (size_t i = 0; i < sizeof window_choices / sizeof *window_choices; i++) {
    trial t = open_trial(draw_maximum);
    give(&t, below_zero);
    ft_kir *kir = window(&t, &window_choices[i]);
    cr_assert(kir);
    ft_tensor out = run(&t, kir, "window");
    cr_assert_eq(ft_tensor_get_f64(&out, 0), -1);  // padding is no 0
    cr_assert_eq(ft_tensor_get_f64(&out, 36), -28);
    int nans = 0;
    for (int64_t e = 0; e < 45; e++) nans += isnan(ft_tensor_get_f64(&out, e));
    cr_assert_eq(nans, 9);
    cr_assert(isnan(ft_tensor_get_f64(&out, 12)));  // its row above, a column before
    cr_assert(isnan(ft_tensor_get_f64(&out, 32)));
    sketch_close(&t.sketch);
  }
}

enum { LONG = 20011 };

static void draw_long_sum(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, LONG, 2, 4)),
           w = input(s, FT_F32, SHAPE(3, LONG, 1, 1));
  output(s, convolve(s, x, w, (ft_attr){.shape = SHAPE(1, 3, 2, 4)}));
}

static double always(uint32_t input, int64_t element) {
  (void)input, (void)element;
  return 1.1;
}

// All roundings go one way: with one sum in single precision, beyond the tolerance.
Test(simt_conv, a_long_sum_of_equal_products_does_not_drift, .timeout = 100) {
  trial t = open_trial(draw_long_sum);
  give(&t, always);
  ft_kir *kir = conv(&t, &conv_choices[0]);
  cr_assert(kir);
  ft_tensor out = run(&t, kir, "conv");
  double factor = (double)1.1f, exact = LONG * factor * factor;
  for (int64_t e = 0; e < 24; e++)
    cr_assert_leq(fabs(ft_tensor_get_f64(&out, e) / exact - 1),
                  2 * sqrt(LONG) / (1 << 24));
  sketch_close(&t.sketch);
}

// ---- refusals
// -----------------------------------------------------------------------------------

static void refuse_conv(trial *t, ft_simt_conv_choice choice, const char *text) {
  const char *wrong = ft_simt_conv_refusal(&t->workload, &choice, t->sketch.arena);
  cr_assert_not_null(wrong, "not refused: %s", text);
  cr_assert_str_eq(wrong, text);
}

static void refuse_window(trial *t, ft_simt_window_choice choice, const char *text) {
  const char *wrong = ft_simt_window_refusal(&t->workload, &choice, t->sketch.arena);
  cr_assert_not_null(wrong, "not refused: %s", text);
  cr_assert_str_eq(wrong, text);
}

Test(simt_conv, choices_are_refused_by_name) {
  trial t = open_trial(draw_conv_block);
  refuse_conv(&t, (ft_simt_conv_choice){64, 64, 16, 4, 4, 4},
              "99 points of an image are no vectors of 4");
  refuse_conv(&t, (ft_simt_conv_choice){64, 64, 64, 4, 4, 1},
              "slab is not 4, 8, 16 or 32");
  refuse_conv(&t, (ft_simt_conv_choice){64, 64, 16, 16, 4, 1},
              "thread_channels or thread_positions is not 1, 2, 4 or 8");
  refuse_conv(&t, (ft_simt_conv_choice){8, 8, 4, 2, 2, 1},
              "a block of less than 32 or over 1024 threads");
  refuse_conv(&t, (ft_simt_conv_choice){2, 64, 4, 1, 1, 1},
              "3 operations before every 2 products of conv");
  refuse_window(&t, (ft_simt_window_choice){128, 8, 8, 1},
                "no pool and no depthwise convolution");
  sketch_close(&t.sketch);
}

Test(simt_conv, windows_are_refused_by_name) {
  trial t = open_trial(draw_pool_max);
  refuse_window(&t, (ft_simt_window_choice){32, 32, 32, 1},
                "a thread would have more than 16 outputs");
  refuse_window(&t, (ft_simt_window_choice){1024, 16, 16, 64},
                "278784 bytes of shared memory are more than 101376");
  refuse_window(&t, (ft_simt_window_choice){96, 8, 8, 1},
                "threads is not a power of two from 32 to 1024");
  refuse_conv(&t, (ft_simt_conv_choice){64, 64, 16, 4, 4, 1}, "no convolution");
  sketch_close(&t.sketch);
  t = open_trial(draw_pool_line);
  refuse_window(&t, (ft_simt_window_choice){32, 4, 16, 1},
                "tile_rows where there are no rows");
  sketch_close(&t.sketch);
}

static void draw_row_bias(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, 4, 3, 8)),
           w = input(s, FT_F32, SHAPE(5, 4, 1, 1));
  uint32_t y = convolve(s, x, w, (ft_attr){.shape = SHAPE(1, 5, 3, 8)});
  output(s, two(s, FT_OP_ADD, y, input(s, FT_F32, SHAPE(8))));
}
static void draw_two_convs(sketch *s) {
  uint32_t x = input(s, FT_F32, SHAPE(1, 4, 6, 8)),
           w = input(s, FT_F32, SHAPE(4, 4, 3, 3));
  ft_attr attr = {.shape = SHAPE(1, 4, 6, 8), .start = {1, 1}};
  output(s, convolve(s, convolve(s, x, w, attr), w, attr));
}

Test(simt_conv, groups_are_refused_by_name) {
  trial t = open_trial(draw_row_bias);
  refuse_conv(&t, (ft_simt_conv_choice){64, 64, 16, 4, 4, 4},
              "what surrounds the convolution has no vectors");
  cr_assert(conv(&t, &(ft_simt_conv_choice){64, 64, 16, 4, 4, 1}));
  sketch_close(&t.sketch);
  t = open_trial(draw_two_convs);
  refuse_conv(&t, (ft_simt_conv_choice){64, 64, 16, 4, 4, 1}, "conv beside conv");
  sketch_close(&t.sketch);
}
