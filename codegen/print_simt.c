#include "codegen/print_simt.h"

#include <limits.h>

#include "codegen/expressions.h"
#include "codegen/print_simt_half.h"
#include "codegen/print_simt_parts.h"
#include "codegen/sim.h"
#include "codegen/simt_prelude.h"

enum { STATIC_SHARED_BYTES = 48 << 10 };

// ---- statements
// ---------------------------------------------------------------------------

static void put_block(ft_simt_printer *p, const ft_kir_block *block);

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

static void put_alloc(ft_simt_printer *p, uint32_t buffer) {
  if (p->kir->buffer[buffer].space == FT_KIR_SHARED) {
    ft_simt_declare_shared(p, buffer);
    return;
  }
  ft_simt_declare_register(p, buffer, false);
  if (p->is_sim) ft_simt_poison_register(p, buffer);
}

static void put_loop_head(ft_simt_printer *p, const ft_kir_stmt *s) {
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

static void close(ft_simt_printer *p) {
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "}\n");
}

static void put_for(ft_simt_printer *p, const ft_kir_stmt *s) {
  put_loop_head(p, s);
  put_block(p, &s->body);
  close(p);
}

static void put_if_head(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "if (");
  ft_simt_put_index(p, s->value);
  ft_strbuf_add(&p->out, ") {\n");
}

static void put_if(ft_simt_printer *p, const ft_kir_stmt *s) {
  put_if_head(p, s);
  put_block(p, &s->body);
  if (s->otherwise.first) {
    ft_simt_start_line(p);
    ft_strbuf_add(&p->out, "} else {\n");
    put_block(p, &s->otherwise);
  }
  close(p);
}

static void put_fail(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_start_line(p);
  if (p->is_sim)
    ft_strbuf_printf(&p->out, "return %d;\n", (int)s->code);
  else
    ft_strbuf_printf(&p->out, "{ *ft_status = %d; return; }\n", (int)s->code);
}

static void put_stmt(ft_simt_printer *p, const ft_kir_stmt *s) {
  switch (s->kind) {
    case FT_KIR_LET:
      if (!p->is_spread[s->value]) ft_simt_declare_value(p, s->value, false);
      assign(p, s->value);
      break;
    case FT_KIR_STORE:
      ft_simt_put_store(p, s);
      break;
    case FT_KIR_ALLOC:
      if (!p->is_array[s->buffer])
        put_alloc(p, s->buffer);
      else if (p->is_sim)
        ft_simt_poison_register(p, s->buffer);
      break;
    case FT_KIR_IF:
      put_if(p, s);
      break;
    case FT_KIR_FOR:
      put_for(p, s);
      break;
    case FT_KIR_BARRIER:
      ft_simt_start_line(p);
      ft_strbuf_add(&p->out, p->is_sim ? "s->epoch++;\n" : "__syncthreads();\n");
      break;
    case FT_KIR_PREFETCH:
    case FT_KIR_GRID_DONE:
    case FT_KIR_TURN:
    case FT_KIR_COPY:
    case FT_KIR_COMMIT:
    case FT_KIR_WAIT:
      break;  // a hint; and what was refused
    case FT_KIR_FAIL:
      put_fail(p, s);
      break;
    case FT_KIR_FENCE:
      if (p->is_sim) break;
      ft_simt_start_line(p);
      ft_strbuf_add(&p->out, "__threadfence();\n");
      break;
  }
}

static void end_scope(ft_simt_printer *p, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    if (s->kind != FT_KIR_LET) continue;
    p->is_named[s->value] = p->is_spread[s->value] = false;
  }
}

static void put_block(ft_simt_printer *p, const ft_kir_block *block) {
  p->depth++;
  for (const ft_kir_stmt *s = block->first; s; s = s->next) put_stmt(p, s);
  p->depth--;
  end_scope(p, block);
}

// ---- SIM: stretches without collectives
// ------------------------------------------------------

static bool has_collective(const ft_simt_printer *p, const ft_kir_stmt *s) {
  if (s->kind == FT_KIR_BARRIER) return true;
  if (s->kind == FT_KIR_LET) return ft_simt_value_of(p, s->value)->op == FT_KIR_SHUFFLE;
  for (const ft_kir_stmt *i = s->body.first; i; i = i->next)
    if (has_collective(p, i)) return true;
  for (const ft_kir_stmt *i = s->otherwise.first; i; i = i->next)
    if (has_collective(p, i)) return true;
  return false;
}

static void declare_spread(ft_simt_printer *p, const ft_kir_stmt *s) {
  if (s->kind == FT_KIR_LET) ft_simt_declare_value(p, s->value, true);
  if (s->kind != FT_KIR_ALLOC) return;
  if (p->kir->buffer[s->buffer].space == FT_KIR_SHARED)
    ft_simt_declare_shared(p, s->buffer);
  else
    ft_simt_declare_register(p, s->buffer, true);
}

static void open_threads(ft_simt_printer *p) {
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "for (int t = 0; t < %u; t++) {\n", p->launch.threads);
  p->thread = "t";
  p->depth++;
}

static void close_threads(ft_simt_printer *p) {
  p->depth--;
  p->thread = "0";
  close(p);
}

static bool is_shared_alloc(const ft_simt_printer *p, const ft_kir_stmt *s) {
  return s->kind == FT_KIR_ALLOC && p->kir->buffer[s->buffer].space == FT_KIR_SHARED;
}

// |from| and what follows up to |end|: one thread after the other.
static void put_stretch(ft_simt_printer *p, const ft_kir_stmt *from,
                        const ft_kir_stmt *end) {
  for (const ft_kir_stmt *s = from; s != end; s = s->next) declare_spread(p, s);
  open_threads(p);
  for (const ft_kir_stmt *s = from; s != end; s = s->next) {
    if (!is_shared_alloc(p, s)) put_stmt(p, s);
  }
  close_threads(p);
}

static void put_agreement(ft_simt_printer *p, ft_kir_id index) {
  int64_t number;
  if (ft_kir_is_number(p->kir, index, &number)) return;
  open_threads(p);
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "ft_sim_agree(s, ");
  ft_simt_put_index(p, index);
  p->thread = "0";
  ft_strbuf_add(&p->out, ", ");
  ft_simt_put_index(p, index);
  ft_strbuf_add(&p->out, ", t);\n");
  close_threads(p);
}

static void put_together(ft_simt_printer *p, const ft_kir_block *block);

static void put_collective(ft_simt_printer *p, const ft_kir_stmt *s) {
  if (s->kind == FT_KIR_FOR) {
    put_agreement(p, s->begin);
    put_agreement(p, s->end);
    put_agreement(p, s->step);
    put_loop_head(p, s);
    put_together(p, &s->body);
    close(p);
  } else if (s->kind == FT_KIR_IF) {
    put_agreement(p, s->value);
    put_if_head(p, s);
    put_together(p, &s->body);
    ft_simt_start_line(p);
    ft_strbuf_add(&p->out, "} else {\n");
    put_together(p, &s->otherwise);
    close(p);
  } else if (s->kind == FT_KIR_LET) {
    put_stretch(p, s, s->next);
  } else {
    put_stmt(p, s);
  }
}

// A block whose threads all arrive.
static void put_together(ft_simt_printer *p, const ft_kir_block *block) {
  p->depth++;
  for (const ft_kir_stmt *s = block->first; s;) {
    if (has_collective(p, s)) {
      put_collective(p, s);
      s = s->next;
      continue;
    }
    const ft_kir_stmt *end = s;
    while (end && !has_collective(p, end)) end = end->next;
    put_stretch(p, s, end);
    s = end;
  }
  p->depth--;
  end_scope(p, block);
}

// ---- the kernel
// -----------------------------------------------------------------------------

static void put_threads(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "{\n");
  p->depth++;
  ft_simt_start_line(p);
  if (!p->is_sim) {
    ft_strbuf_printf(&p->out, "const ft_index v%u = threadIdx.x;\n", s->value);
    put_block(p, &s->body);
  } else {
    ft_strbuf_printf(&p->out, "ft_index v%u[%u];\n", s->value, p->launch.threads);
    p->is_spread[s->value] = true;
    open_threads(p);
    ft_simt_start_line(p);
    ft_strbuf_printf(&p->out, "v%u[t] = t;\n", s->value);
    close_threads(p);
    put_together(p, &s->body);
  }
  p->depth--;
  close(p);
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
      put_stmt(p, i);
  }
  p->depth--;
}

static uint32_t argument_count(const ft_kir *kir) {
  uint32_t count = 0;
  for (uint32_t i = 1; i < kir->buffer_count; i++) {
    const ft_kir_buffer *b = &kir->buffer[i];
    if (b->space == FT_KIR_GLOBAL && b->argument + 1 > count) count = b->argument + 1;
  }
  return count;
}

static uint32_t buffer_of(const ft_kir *kir, uint32_t argument) {
  for (uint32_t i = 1; i < kir->buffer_count; i++) {
    const ft_kir_buffer *b = &kir->buffer[i];
    if (b->space == FT_KIR_GLOBAL && b->argument == argument) return i;
  }
  return 0;
}

static void put_cuda_head(ft_simt_printer *p, const char *name, uint32_t min_blocks) {
  ft_strbuf_printf(&p->out, "extern \"C\" __global__ void __launch_bounds__(%u",
                   p->launch.threads);
  if (min_blocks) ft_strbuf_printf(&p->out, ", %u", min_blocks);
  ft_strbuf_printf(&p->out, ")\n%s(int *ft_status", name);
  for (uint32_t a = 0; a < argument_count(p->kir); a++) {
    uint32_t id = buffer_of(p->kir, a);
    const ft_kir_buffer *b = &p->kir->buffer[id];
    if (id)
      ft_strbuf_printf(&p->out, ", %s%s *__restrict__ b%u", b->is_written ? "" : "const ",
                       ft_simt_stored_type(b->dtype), id);
    else
      ft_strbuf_printf(&p->out, ", const void *a%u", a);
  }
  ft_strbuf_add(&p->out, ") {\n  (void)ft_status;\n");
  if (p->launch.is_shared_dynamic)
    ft_strbuf_add(&p->out,
                  "  extern __shared__ __align__(16) unsigned char ft_shared[];\n");
}

static void put_sim_head(ft_simt_printer *p, const char *name) {
  ft_strbuf_printf(&p->out,
                   "int32_t %s(void *const *buffers, ft_sim_state *s, uint64_t block) {\n"
                   "  (void)buffers, (void)s, (void)block;\n",
                   name);
  for (uint32_t i = 1; i < p->kir->buffer_count; i++) {
    const ft_kir_buffer *b = &p->kir->buffer[i];
    if (b->space != FT_KIR_GLOBAL) continue;
    ft_strbuf_printf(&p->out, "  %s%s *b%u = buffers[%u];\n",
                     b->is_written ? "" : "const ", ft_simt_stored_type(b->dtype), i,
                     b->argument);
  }
}

// ---- what launching takes
// ------------------------------------------------------------------

static void note_loops(ft_simt_printer *p, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    if (s->kind == FT_KIR_FOR) {
      int64_t end = 1;
      p->loop_of[s->value] = s;
      ft_kir_is_number(p->kir, s->end, &end);
      if (s->loop == FT_KIR_GRID) p->launch.grid = end;
      if (s->loop == FT_KIR_THREAD) p->launch.threads = (uint32_t)end;
    }
    p->has_turn |= s->kind == FT_KIR_TURN;
    note_loops(p, &s->body);
    note_loops(p, &s->otherwise);
  }
}

static const char *note_buffers(ft_simt_printer *p) {
  int64_t most = 0;
  for (uint32_t i = 1; i < p->kir->buffer_count; i++) {
    const ft_kir_buffer *b = &p->kir->buffer[i];
    if (b->space == FT_KIR_SCRATCH) return "scratch memory is for plain C";
    if (b->space == FT_KIR_WORKSPACE) return "no workspace between blocks yet";
    if (b->space == FT_KIR_REGISTER && b->count > 1) return "no register files yet";
    if (!ft_simt_c_type(b->dtype)) return "a dtype without kernels";
    uint64_t bytes = (uint64_t)b->count * ft_dtype_bytes(b->dtype);
    if (b->space == FT_KIR_SHARED) p->launch.shared_bytes += (bytes + 15) / 16 * 16;
    if (b->count > most) most = b->count;
  }
  // Items past the end are counted before they are refused: a vector for each thread.
  int64_t reach = p->launch.grid * (int64_t)p->launch.threads;
  p->launch.has_wide_index = most > INT32_MAX / 2 || reach > INT32_MAX / 64;
  p->launch.is_shared_dynamic = p->launch.shared_bytes > STATIC_SHARED_BYTES;
  return NULL;
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
  FT_OOM_IF(!p->loop_of || !p->is_named || !p->is_spread || !p->is_array, error);
  note_loops(p, &kir->body);
  wrong = p->has_turn ? "squares are turned in plain C only" : note_buffers(p);
  if (wrong) FT_FAIL(error, FT_UNSUPPORTED, "no SIMT text: %s", wrong);
  return FT_OK;
}

static ft_status put_kernel(ft_simt_printer *p, ft_simt_launch *out_launch,
                            ft_error *error) {
  for (const ft_kir_stmt *s = p->kir->body.first; s; s = s->next) {
    if (s->kind == FT_KIR_FOR && s->loop == FT_KIR_GRID)
      put_grid(p, s);
    else
      put_stmt(p, s);
  }
  ft_strbuf_add(&p->out, p->is_sim ? "  return 0;\n}\n" : "}\n");
  FT_OOM_IF(p->out.failed, error);
  *out_launch = p->launch;
  return FT_OK;
}

ft_status ft_print_cuda(ft_kir *kir, const char *name, uint32_t min_blocks,
                        const char **out_text, ft_simt_launch *out_launch,
                        ft_error *error) {
  ft_simt_printer p;
  FT_TRY(open_printer(kir, false, &p, error));
  put_cuda_head(&p, name, min_blocks);
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
  ft_strbuf_add(&text, p.out.text);
  FT_OOM_IF(text.failed, error);
  *out_text = text.text;
  return FT_OK;
}

ft_status ft_print_sim(ft_kir *kir, const char *name, const char **out_text,
                       ft_simt_launch *out_launch, ft_error *error) {
  ft_simt_printer p;
  FT_TRY(open_printer(kir, true, &p, error));
  put_sim_head(&p, name);
  FT_TRY(put_kernel(&p, out_launch, error));
  *out_text = p.out.text;
  return FT_OK;
}

const char *ft_sim_prelude_for(const char *bodies, ft_arena *arena) {
  ft_strbuf text = ft_strbuf_init(arena);
  ft_strbuf_add(&text, ft_sim_prelude);
  ft_strbuf_add(&text, "typedef long long ft_index;\n");
  ft_simt_half_prelude(bodies, true, &text);
  ft_simt_prelude_for(bodies, &text);
  return text.failed ? NULL : text.text;
}
