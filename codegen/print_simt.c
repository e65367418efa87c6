#include "codegen/print_simt.h"

#include "codegen/expressions.h"
#include "codegen/print_simt_half.h"
#include "codegen/print_simt_parts.h"
#include "codegen/sim.h"
#include "codegen/simt_prelude.h"

// ---- statements

static void put_fold(ft_simt_printer *p, ft_kir_id id) {
  const ft_kir_value *v = ft_simt_value_of(p, id);
  const char *type = ft_expression_type(v->type.dtype);
  ft_simt_start_line(p);
  ft_simt_put_name(p, id);
  ft_strbuf_add(&p->out, " = ");
  ft_simt_put_element_name(p, v->operand[0], "0");
  ft_strbuf_add(&p->out, ";\n");
  ft_simt_open_lanes(p, 1, ft_simt_value_of(p, v->operand[0])->type.lanes);
  ft_simt_put_name(p, id);
  ft_strbuf_printf(&p->out, " = ft_%s_%s(",
                   ft_expression_text(v->primitive, v->type.dtype), type);
  ft_simt_put_name(p, id);
  ft_strbuf_add(&p->out, ", ");
  ft_simt_put_element_name(p, v->operand[0], "l");
  ft_strbuf_add(&p->out, ");\n");
}

// Gives value |id|, which is declared, what it is.
static void assign(ft_simt_printer *p, ft_kir_id id) {
  const ft_kir_value *v = ft_simt_value_of(p, id);
  if (v->op == FT_KIR_LOAD) {
    ft_simt_put_load(p, id);
  } else if (v->op == FT_KIR_FOLD) {
    put_fold(p, id);
  } else if (!v->type.lanes) {
    ft_simt_start_line(p);
    ft_simt_put_name(p, id);
    ft_strbuf_add(&p->out, " = ");
    ft_simt_put_index_text(p, id);
    ft_strbuf_add(&p->out, ";\n");
    p->is_named[id] = true;
  } else {
    ft_simt_open_lanes(p, 0, v->type.lanes);
    ft_simt_put_element_name(p, id, "l");
    ft_strbuf_add(&p->out, " = ");
    ft_simt_put_lane(p, v, ft_simt_lane_of(v->type.lanes));
    ft_strbuf_add(&p->out, ";\n");
  }
}

static void put_let(ft_simt_printer *p, const ft_kir_stmt *s) {
  if (!p->is_spread[s->value]) ft_simt_declare_value(p, s->value, false);
  assign(p, s->value);
}

// SIM declares what is an array over the threads before them.
static void put_alloc(ft_simt_printer *p, const ft_kir_stmt *s) {
  if (p->kir->buffer[s->buffer].space == FT_KIR_SHARED) {
    ft_simt_declare_shared(p, s->buffer);
    return;
  }
  if (!p->is_array[s->buffer]) ft_simt_declare_register(p, s->buffer, false);
  if (p->is_sim) ft_simt_poison_register(p, s->buffer);
}

void ft_simt_open_for(ft_simt_printer *p, const ft_kir_stmt *s) {
  if (s->loop == FT_KIR_UNROLL && !p->is_sim) {
    ft_simt_start_line(p);
    ft_strbuf_add(&p->out, "#pragma unroll\n");
  }
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "for (ft_index v%u = ", s->value);
  ft_simt_put_index(p, s->begin);
  ft_strbuf_printf(&p->out, "; v%u < ", s->value);
  ft_simt_put_index(p, s->end);
  if (p->is_sim) ft_strbuf_add(&p->out, " && ft_sim_tick(s)");
  ft_strbuf_printf(&p->out, "; v%u += ", s->value);
  ft_simt_put_index(p, s->step);
  ft_strbuf_add(&p->out, ") {\n");
}

void ft_simt_close(ft_simt_printer *p) {
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "}\n");
}

static void put_for(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_open_for(p, s);
  ft_simt_put_block(p, &s->body);
  ft_simt_close(p);
}

void ft_simt_open_if(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "if (");
  ft_simt_put_index(p, s->value);
  ft_strbuf_add(&p->out, ") {\n");
}

static void put_if(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_open_if(p, s);
  ft_simt_put_block(p, &s->body);
  if (s->otherwise.first) {
    ft_simt_start_line(p);
    ft_strbuf_add(&p->out, "} else {\n");
    ft_simt_put_block(p, &s->otherwise);
  }
  ft_simt_close(p);
}

static void put_fail(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_start_line(p);
  if (p->is_sim)
    ft_strbuf_printf(&p->out, "return %d;\n", (int)s->code);
  else
    ft_strbuf_printf(&p->out, "{ *ft_status = %d; return; }\n", (int)s->code);
}

// All that the block's threads stored is stored when one of them counts the block; the
// counter is 0 again before the body, which may end the block.
static void open_cuda_grid_done(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "__threadfence();\n");
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "__syncthreads();\n");
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "if (__syncthreads_or(threadIdx.x == 0 && atomicAdd(&b%u[",
                   s->buffer);
  ft_simt_put_index(p, s->index);
  ft_strbuf_add(&p->out, "], 1) == ");
  ft_simt_put_index(p, s->end);
  ft_strbuf_add(&p->out, " - 1)) {\n");
  p->depth++;
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "__threadfence();\n");
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "if (threadIdx.x == 0) b%u[", s->buffer);
  ft_simt_put_index(p, s->index);
  ft_strbuf_add(&p->out, "] = 0;\n");
  p->depth--;
}

void ft_simt_open_grid_done(ft_simt_printer *p, const ft_kir_stmt *s) {
  if (!p->is_sim) {
    open_cuda_grid_done(p, s);
    return;
  }
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "if (s->arrive(s, b%u, %u, %lld, ", s->buffer, s->buffer,
                   (long long)p->kir->buffer[s->buffer].count);
  ft_simt_put_index(p, s->index);
  ft_strbuf_add(&p->out, ", ");
  ft_simt_put_index(p, s->end);
  ft_strbuf_add(&p->out, ")) {\n");
}

void ft_simt_close_grid_done(ft_simt_printer *p) {
  if (p->is_sim) {
    ft_simt_start_line(p);
    ft_strbuf_add(&p->out, "  s->seen = 0;\n");
  }
  ft_simt_close(p);
}

static void put_grid_done(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_open_grid_done(p, s);
  ft_simt_put_block(p, &s->body);
  ft_simt_close_grid_done(p);
}

static void put_barrier(ft_simt_printer *p, const ft_kir_stmt *s) {
  (void)s;
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, p->is_sim ? "s->epoch++;\n" : "__syncthreads();\n");
}

static void put_fence(ft_simt_printer *p, const ft_kir_stmt *s) {
  (void)s;
  if (p->is_sim) return;
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "__threadfence();\n");
}

// Absent: a hint, and what ft_simt_measure refuses.
static void (*const putters[FT_KIR_WAIT + 1])(ft_simt_printer *p,
                                              const ft_kir_stmt *s) = {
    [FT_KIR_LET] = put_let,
    [FT_KIR_FOR] = put_for,
    [FT_KIR_IF] = put_if,
    [FT_KIR_STORE] = ft_simt_put_store,
    [FT_KIR_ALLOC] = put_alloc,
    [FT_KIR_BARRIER] = put_barrier,
    [FT_KIR_FAIL] = put_fail,
    [FT_KIR_FENCE] = put_fence,
    [FT_KIR_GRID_DONE] = put_grid_done,
    [FT_KIR_COPY] = ft_simt_put_copy,
    [FT_KIR_COMMIT] = ft_simt_put_commit,
    [FT_KIR_WAIT] = ft_simt_put_wait,
};

void ft_simt_put_stmt(ft_simt_printer *p, const ft_kir_stmt *s) {
  if (putters[s->kind]) putters[s->kind](p, s);
}

void ft_simt_end_scope(ft_simt_printer *p, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    if (s->kind != FT_KIR_LET) continue;
    p->is_named[s->value] = p->is_spread[s->value] = false;
  }
}

void ft_simt_put_block(ft_simt_printer *p, const ft_kir_block *block) {
  p->depth++;
  for (const ft_kir_stmt *s = block->first; s; s = s->next) ft_simt_put_stmt(p, s);
  p->depth--;
  // What is spread belongs to the stretch around: it may name the same index later.
  for (const ft_kir_stmt *s = block->first; s; s = s->next)
    if (s->kind == FT_KIR_LET) p->is_named[s->value] = false;
}

// ---- the kernel

static void put_threads(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "{\n");
  p->depth++;
  if (p->is_sim) {
    ft_simt_put_threads(p, s);
  } else {
    ft_simt_start_line(p);
    ft_strbuf_printf(&p->out, "const ft_index v%u = threadIdx.x;\n", s->value);
    ft_simt_put_block(p, &s->body);
  }
  p->depth--;
  ft_simt_close(p);
}

static void put_grid(ft_simt_printer *p, const ft_kir_stmt *s) {
  p->depth++;
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "const ft_index v%u = %s;\n", s->value,
                   p->is_sim ? "(ft_index)block" : "blockIdx.x");
  for (const ft_kir_stmt *i = s->body.first; i; i = i->next) {
    if (i->kind == FT_KIR_FOR && i->loop == FT_KIR_THREAD)
      put_threads(p, i);
    else
      ft_simt_put_stmt(p, i);
  }
  p->depth--;
}

static ft_status open_printer(ft_kir *kir, bool is_sim, ft_simt_printer *p,
                              ft_error *error) {
  const char *wrong = ft_kir_verify(kir);
  FT_OOM_IF(kir->failed, error);
  if (wrong) FT_FAIL(error, FT_INTERNAL, "kernel IR: %s", wrong);
  *p = (ft_simt_printer){.kir = kir,
                         .out = ft_strbuf_init(kir->arena),
                         .is_sim = is_sim,
                         .thread = "0",
                         .launch = {.grid = 1, .threads = 1}};
  p->loop_of = FT_NEW_ARRAY(kir->arena, const ft_kir_stmt *, kir->value_count);
  p->is_named = FT_NEW_ARRAY(kir->arena, bool, kir->value_count);
  p->is_spread = FT_NEW_ARRAY(kir->arena, bool, kir->value_count);
  p->is_array = FT_NEW_ARRAY(kir->arena, bool, kir->buffer_count);
  p->offset = FT_NEW_ARRAY(kir->arena, uint64_t, kir->buffer_count);
  FT_OOM_IF(!p->offset || !p->loop_of || !p->is_named || !p->is_spread || !p->is_array,
            error);
  wrong = ft_simt_measure(p);
  if (wrong) FT_FAIL(error, FT_UNSUPPORTED, "no SIMT text: %s", wrong);
  return FT_OK;
}

static ft_status put_kernel(ft_simt_printer *p, ft_simt_launch *out_launch,
                            ft_error *error) {
  for (const ft_kir_stmt *s = p->kir->body.first; s; s = s->next) {
    if (s->kind == FT_KIR_FOR && s->loop == FT_KIR_GRID)
      put_grid(p, s);
    else
      ft_simt_put_stmt(p, s);
  }
  ft_strbuf_add(&p->out, p->is_sim ? "  return 0;\n}\n" : "}\n");
  FT_OOM_IF(p->out.failed, error);
  *out_launch = p->launch;
  return FT_OK;
}

ft_status ft_print_cuda(ft_kir *kir, const char *name, const char **out_text,
                        ft_simt_launch *out_launch, ft_error *error) {
  ft_simt_printer p;
  FT_TRY(open_printer(kir, false, &p, error));
  ft_simt_put_head(&p, name);
  FT_TRY(put_kernel(&p, out_launch, error));
  ft_strbuf text = ft_strbuf_init(kir->arena);
  ft_strbuf_printf(&text,
                   "#define FT_FN static __device__ __forceinline__\n"
                   "#define ft_inf_f32 __int_as_float(0x7f800000)\n"
                   "#define ft_nan_f32 __int_as_float(0x7fffffff)\n"
                   "#define ft_inf_f64 __longlong_as_double(0x7ff0000000000000LL)\n"
                   "#define ft_nan_f64 __longlong_as_double(0x7fffffffffffffffLL)\n"
                   "typedef %s ft_index;\n",
                   p.launch.has_wide_index ? "long long" : "int");
  ft_simt_half_prelude(p.out.text, false, &text);
  ft_simt_prelude_for(p.out.text, &text);
  ft_simt_copy_prelude(p.out.text, &text);
  ft_strbuf_add(&text, p.out.text);
  FT_OOM_IF(text.failed, error);
  *out_text = text.text;
  return FT_OK;
}

ft_status ft_print_sim(ft_kir *kir, const char *name, const char **out_text,
                       ft_simt_launch *out_launch, ft_error *error) {
  ft_simt_printer p;
  FT_TRY(open_printer(kir, true, &p, error));
  ft_simt_put_head(&p, name);
  FT_TRY(put_kernel(&p, out_launch, error));
  *out_text = p.out.text;
  return FT_OK;
}

const char *ft_sim_prelude_for(const char *bodies, ft_arena *arena) {
  ft_strbuf text = ft_strbuf_init(arena);
  for (int i = 0; ft_sim_prelude[i]; i++) ft_strbuf_add(&text, ft_sim_prelude[i]);
  ft_strbuf_add(&text, "typedef long long ft_index;\n");
  ft_simt_half_prelude(bodies, true, &text);
  ft_simt_prelude_for(bodies, &text);
  return text.failed ? NULL : text.text;
}
