#include "codegen/print_c.h"

#include <math.h>
#include <string.h>

#include "codegen/expressions.h"
#include "core/strbuf.h"

typedef struct printer {
  ft_kir *kir;
  ft_strbuf out;
  int depth;
  bool *is_named;  // [value_count] indices that a Let gave a name
} printer;

static void start_line(printer *p) {
  ft_strbuf_printf(&p->out, "%*s", 2 * p->depth, "");
}

static void put_type(printer *p, ft_kir_type type) {
  if (!type.lanes)
    ft_strbuf_add(&p->out, "int64_t");
  else
    ft_strbuf_printf(&p->out, "%sx%u", ft_expression_type(type.dtype), type.lanes);
}

// ---- indices ----------------------------------------------------------------------

static void put_index(printer *p, ft_kir_id id);

static void put_binary(printer *p, const ft_kir_value *v, const char *op) {
  ft_strbuf_add(&p->out, "(");
  put_index(p, v->operand[0]);
  ft_strbuf_printf(&p->out, " %s ", op);
  put_index(p, v->operand[1]);
  ft_strbuf_add(&p->out, ")");
}

// The smaller or the larger, as |sign| says.
static void put_choice(printer *p, const ft_kir_value *v, const char *sign) {
  ft_strbuf_add(&p->out, "(");
  put_index(p, v->operand[0]);
  ft_strbuf_printf(&p->out, " %s ", sign);
  put_index(p, v->operand[1]);
  ft_strbuf_add(&p->out, " ? ");
  put_index(p, v->operand[0]);
  ft_strbuf_add(&p->out, " : ");
  put_index(p, v->operand[1]);
  ft_strbuf_add(&p->out, ")");
}

// The expression itself, even when it has a name.
static void put_index_text(printer *p, ft_kir_id id) {
  static const char *const ops[] = {
      [FT_KIR_IADD] = "+", [FT_KIR_ISUB] = "-", [FT_KIR_IMUL] = "*",
      [FT_KIR_IDIV] = "/", [FT_KIR_IMOD] = "%", [FT_KIR_ILESS] = "<",
  };
  const ft_kir_value *v = &p->kir->value[id];
  if (v->op == FT_KIR_NUMBER)
    ft_strbuf_printf(&p->out, "%lld", (long long)v->imm);
  else if (v->op == FT_KIR_LOOP)
    ft_strbuf_printf(&p->out, "v%u", id);
  else if (v->op == FT_KIR_IMIN)
    put_choice(p, v, "<");
  else if (v->op == FT_KIR_IMAX)
    put_choice(p, v, ">");
  else if (v->op == FT_KIR_TO_INDEX)
    ft_strbuf_printf(&p->out, "v%u[0]", v->operand[0]);
  else
    put_binary(p, v, ops[v->op]);
}

static void put_index(printer *p, ft_kir_id id) {
  if (p->is_named[id])
    ft_strbuf_printf(&p->out, "v%u", id);
  else
    put_index_text(p, id);
}

// ---- elements -----------------------------------------------------------------------

static void put_constant(printer *p, const ft_kir_value *v) {
  double number;
  memcpy(&number, &v->imm, sizeof number);
  bool is_float = ft_dtype_is_float(v->type.dtype);
  ft_strbuf_add(&p->out, "ft_all_");
  put_type(p, v->type);
  if (!is_float && v->imm == INT64_MIN)
    ft_strbuf_add(&p->out, "(INT64_MIN)");
  else if (!is_float)
    ft_strbuf_printf(&p->out, "(%lld)", (long long)v->imm);
  else if (isnan(number))
    ft_strbuf_add(&p->out, "(__builtin_nan(\"\"))");
  else if (isinf(number))
    ft_strbuf_printf(&p->out, "(%s__builtin_inf())", number < 0 ? "-" : "");
  else
    ft_strbuf_printf(&p->out, "(%a)", number);
}

static void put_address(printer *p, uint32_t buffer, ft_kir_id index) {
  int64_t number;
  ft_strbuf_printf(&p->out, "b%u", buffer);
  if (ft_kir_is_number(p->kir, index, &number) && number == 0) return;
  ft_strbuf_add(&p->out, " + ");
  put_index(p, index);
}

// "f16_" of a short float: in memory, a value is f32.
static void put_half(printer *p, ft_dtype dtype) {
  if (ft_kir_math_dtype(dtype) != dtype)
    ft_strbuf_printf(&p->out, "%s_", ft_dtype_text(dtype));
}

static void put_load(printer *p, const ft_kir_value *v) {
  if (p->kir->buffer[v->buffer].space == FT_KIR_REGISTER) {
    ft_strbuf_printf(&p->out, "b%u", v->buffer);
    return;
  }
  bool strided = v->type.lanes > 1 && v->imm != 1;
  ft_strbuf_add(&p->out, strided ? "ft_gather_" : "ft_load_");
  put_half(p, p->kir->buffer[v->buffer].dtype);
  put_type(p, v->type);
  ft_strbuf_add(&p->out, "(");
  put_address(p, v->buffer, v->operand[0]);
  if (strided) ft_strbuf_printf(&p->out, ", %lld", (long long)v->imm);
  ft_strbuf_add(&p->out, ")");
}

static void put_cast(printer *p, const ft_kir_value *v) {
  ft_dtype from = p->kir->value[v->operand[0]].type.dtype;
  if (from == v->type.dtype) {
    ft_strbuf_printf(&p->out, "v%u", v->operand[0]);
    return;
  }
  ft_strbuf_printf(&p->out, "ft_cast_%s_", ft_expression_type(from));
  put_type(p, v->type);
  ft_strbuf_printf(&p->out, "(v%u)", v->operand[0]);
}

// Fills in a template of expressions.def.
static void put_primitive(printer *p, const ft_kir_value *v) {
  if (v->primitive == FT_OP_CAST) {
    put_cast(p, v);
    return;
  }
  ft_kir_type last = p->kir->value[v->operand[v->operand_count - 1]].type;
  for (const char *t = ft_expression_text(v->primitive, last.dtype); *t; t++) {
    if (*t != '$') {
      ft_strbuf_addn(&p->out, t, 1);
      continue;
    }
    t++;
    if (*t == 'A')
      put_type(p, last);
    else
      ft_strbuf_printf(&p->out, "v%u", v->operand[*t - '0']);
  }
}

// ft_PREFIXadd_f32x16(v1, v2)
static void put_call(printer *p, const char *prefix, const char *name, ft_kir_type type,
                     const ft_kir_value *v) {
  ft_strbuf_printf(&p->out, "ft_%s%s_", prefix, name);
  put_type(p, type);
  for (uint32_t i = 0; i < v->operand_count; i++)
    ft_strbuf_printf(&p->out, "%sv%u", i ? ", " : "(", v->operand[i]);
  if (v->op == FT_KIR_KEEP) ft_strbuf_printf(&p->out, ", %lld", (long long)v->imm);
  ft_strbuf_add(&p->out, ")");
}

static void put_element(printer *p, const ft_kir_value *v) {
  ft_kir_type operand = p->kir->value[v->operand[0]].type;
  switch (v->op) {
    case FT_KIR_ELEMENT:
      put_constant(p, v);
      break;
    case FT_KIR_LOAD:
      put_load(p, v);
      break;
    case FT_KIR_PRIMITIVE:
      put_primitive(p, v);
      break;
    case FT_KIR_SPLAT:
      put_call(p, "", "splat", v->type, v);
      break;
    case FT_KIR_KEEP:
      put_call(p, "", "keep", v->type, v);
      break;
    case FT_KIR_NARROW:
      ft_strbuf_add(&p->out, "ft_round_");
      put_half(p, (ft_dtype)v->imm);
      put_type(p, v->type);
      ft_strbuf_printf(&p->out, "(v%u)", v->operand[0]);
      break;
    case FT_KIR_COMBINE:
      put_call(p, "", ft_expression_text(v->primitive, v->type.dtype), v->type, v);
      break;
    case FT_KIR_FOLD:
      put_call(p, "fold_", ft_expression_text(v->primitive, v->type.dtype), operand, v);
      break;
    default:
      FT_ASSERT(v->op == FT_KIR_SHUFFLE);
      break;  // needs threads: refused before
  }
}

// ---- statements -----------------------------------------------------------------------

static void put_let(printer *p, ft_kir_id id) {
  const ft_kir_value *v = &p->kir->value[id];
  start_line(p);
  ft_strbuf_add(&p->out, "const ");
  put_type(p, v->type);
  ft_strbuf_printf(&p->out, " v%u = ", id);
  if (v->type.lanes)
    put_element(p, v);
  else
    put_index_text(p, id);
  ft_strbuf_add(&p->out, ";\n");
  p->is_named[id] = true;
}

static void put_store(printer *p, const ft_kir_stmt *s) {
  start_line(p);
  if (p->kir->buffer[s->buffer].space == FT_KIR_REGISTER) {
    ft_strbuf_printf(&p->out, "b%u = v%u;\n", s->buffer, s->value);
    return;
  }
  ft_kir_type type = p->kir->value[s->value].type;
  bool strided = type.lanes > 1 && s->stride != 1;
  ft_dtype dtype = p->kir->buffer[s->buffer].dtype;
  bool is_short = ft_kir_math_dtype(dtype) != dtype;
  bool streams = s->hint == FT_KIR_STREAMED && !strided && !is_short;
  ft_strbuf_add(&p->out, strided ? "ft_scatter_" : streams ? "ft_stream_" : "ft_store_");
  put_half(p, dtype);
  put_type(p, type);
  ft_strbuf_add(&p->out, "(");
  put_address(p, s->buffer, s->index);
  if (strided) ft_strbuf_printf(&p->out, ", %lld", (long long)s->stride);
  ft_strbuf_printf(&p->out, ", v%u);\n", s->value);
}

static void put_turn(printer *p, const ft_kir_stmt *s) {
  start_line(p);
  ft_strbuf_add(&p->out, "ft_turn_");
  put_type(p, (ft_kir_type){p->kir->buffer[s->buffer].dtype, s->lanes});
  ft_strbuf_add(&p->out, "(");
  put_address(p, s->source, s->source_index);
  ft_strbuf_printf(&p->out, ", %lld, ", (long long)s->source_stride);
  put_address(p, s->buffer, s->index);
  ft_strbuf_printf(&p->out, ", %lld);\n", (long long)s->stride);
}

static void put_alloc(printer *p, const ft_kir_stmt *s) {
  const ft_kir_buffer *b = &p->kir->buffer[s->buffer];
  start_line(p);
  if (b->space == FT_KIR_REGISTER) {
    put_type(p, (ft_kir_type){b->dtype, b->lanes});
    ft_strbuf_printf(&p->out, " b%u;\n", s->buffer);
    return;
  }
  ft_strbuf_printf(&p->out, "%s b%u[%lld];\n", ft_expression_c_type(b->dtype), s->buffer,
                   (long long)b->count);
}

static void put_block(printer *p, const ft_kir_block *block);

static void put_if(printer *p, const ft_kir_stmt *s) {
  start_line(p);
  ft_strbuf_add(&p->out, "if (");
  put_index(p, s->value);
  ft_strbuf_add(&p->out, ") {\n");
  put_block(p, &s->body);
  start_line(p);
  if (s->otherwise.first) {
    ft_strbuf_add(&p->out, "} else {\n");
    put_block(p, &s->otherwise);
    start_line(p);
  }
  ft_strbuf_add(&p->out, "}\n");
}

static void put_loop_head(printer *p, const ft_kir_stmt *s) {
  if (s->loop == FT_KIR_UNROLL) {
    ft_strbuf_add(&p->out, "_Pragma(\"GCC unroll 8\")\n");
    start_line(p);
  }
  ft_strbuf_printf(&p->out, "for (int64_t v%u = ", s->value);
  put_index(p, s->begin);
  ft_strbuf_printf(&p->out, "; v%u < ", s->value);
  put_index(p, s->end);
  ft_strbuf_printf(&p->out, "; v%u += ", s->value);
  put_index(p, s->step);
  ft_strbuf_add(&p->out, ") {\n");
}

static void put_for(printer *p, const ft_kir_stmt *s) {
  start_line(p);
  bool is_simt = s->loop == FT_KIR_GRID || s->loop == FT_KIR_THREAD;
  if (is_simt) {
    // The caller runs the blocks, and the one thread of a block is this one.
    ft_strbuf_add(&p->out, "{\n");
    ft_strbuf_printf(&p->out, "%*sconst int64_t v%u = %s;\n", 2 * p->depth + 2, "",
                     s->value, s->loop == FT_KIR_GRID ? "block" : "0");
  } else {
    put_loop_head(p, s);
  }
  put_block(p, &s->body);
  start_line(p);
  ft_strbuf_add(&p->out, "}\n");
}

// The last block to count finds what the others stored: each counts after its stores.
static void put_grid_done(printer *p, const ft_kir_stmt *s) {
  start_line(p);
  ft_strbuf_add(&p->out, "if (__atomic_add_fetch(");
  put_address(p, s->buffer, s->index);
  ft_strbuf_add(&p->out, ", 1, __ATOMIC_ACQ_REL) == ");
  put_index(p, s->end);
  ft_strbuf_add(&p->out, ") {\n");
  p->depth++;
  start_line(p);
  ft_strbuf_add(&p->out, "__atomic_store_n(");
  put_address(p, s->buffer, s->index);
  ft_strbuf_add(&p->out, ", 0, __ATOMIC_RELAXED);\n");
  p->depth--;
  put_block(p, &s->body);
  start_line(p);
  ft_strbuf_add(&p->out, "}\n");
}

static void put_prefetch(printer *p, const ft_kir_stmt *s) {
  start_line(p);
  ft_strbuf_add(&p->out, "__builtin_prefetch(");
  put_address(p, s->buffer, s->index);
  ft_strbuf_add(&p->out, ");\n");
}

static void put_stmt(printer *p, const ft_kir_stmt *s) {
  switch (s->kind) {
    case FT_KIR_LET:
      put_let(p, s->value);
      break;
    case FT_KIR_STORE:
      put_store(p, s);
      break;
    case FT_KIR_TURN:
      put_turn(p, s);
      break;
    case FT_KIR_ALLOC:
      put_alloc(p, s);
      break;
    case FT_KIR_IF:
      put_if(p, s);
      break;
    case FT_KIR_FOR:
      put_for(p, s);
      break;
    case FT_KIR_BARRIER:
    case FT_KIR_COPY:
    case FT_KIR_COMMIT:
    case FT_KIR_WAIT:
      break;  // one thread; and what was refused
    case FT_KIR_GRID_DONE:
      put_grid_done(p, s);
      break;
    case FT_KIR_PREFETCH:
      put_prefetch(p, s);
      break;
    case FT_KIR_FAIL:
      start_line(p);
      ft_strbuf_printf(&p->out, "return %d;\n", (int)s->code);
      break;
    case FT_KIR_FENCE:
      start_line(p);
      ft_strbuf_add(&p->out, "__atomic_thread_fence(__ATOMIC_SEQ_CST);\n");
      break;
  }
}

static void put_block(printer *p, const ft_kir_block *block) {
  p->depth++;
  for (const ft_kir_stmt *s = block->first; s; s = s->next) put_stmt(p, s);
  p->depth--;
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    if (s->kind == FT_KIR_LET) p->is_named[s->value] = false;
  }
}

// Pointers to the arguments. Outputs never overlap anything else.
static void put_buffers(printer *p) {
  for (uint32_t i = 1; i < p->kir->buffer_count; i++) {
    const ft_kir_buffer *b = &p->kir->buffer[i];
    const char *type = ft_expression_c_type(b->dtype);
    if (b->space == FT_KIR_GLOBAL)
      ft_strbuf_printf(&p->out, "  %s%s *restrict b%u = buffers[%u];\n",
                       b->is_written ? "" : "const ", type, i, b->argument);
    if (b->space == FT_KIR_SCRATCH)
      ft_strbuf_printf(&p->out, "  %s *restrict b%u = (%s *)((char *)scratch + %llu);\n",
                       type, i, type, (unsigned long long)b->offset);
    // Other blocks write it too: not restrict.
    if (b->space == FT_KIR_WORKSPACE)
      ft_strbuf_printf(&p->out, "  %s *b%u = (%s *)((char *)buffers[%u] + %llu);\n", type,
                       i, type, b->argument, (unsigned long long)b->offset);
  }
}

static bool has_threads(const ft_kir *kir, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    int64_t begin, end;
    if (s->kind == FT_KIR_FOR && s->loop == FT_KIR_THREAD &&
        !(ft_kir_is_number(kir, s->begin, &begin) &&
          ft_kir_is_number(kir, s->end, &end) && begin == 0 && end == 1))
      return true;
    if (s->kind == FT_KIR_LET && kir->value[s->value].op == FT_KIR_SHUFFLE) return true;
    if (has_threads(kir, &s->body) || has_threads(kir, &s->otherwise)) return true;
  }
  return false;
}

// What only SIMT text has; NULL: nothing.
static const char *refusal(const ft_kir *kir, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    if (s->kind == FT_KIR_COPY) return "plain C copies at once";
    if (s->kind == FT_KIR_LET && kir->value[s->value].op == FT_KIR_LANE)
      return "plain C takes no lane out of a vector";
    const char *wrong = refusal(kir, &s->body);
    if (!wrong) wrong = refusal(kir, &s->otherwise);
    if (wrong) return wrong;
  }
  return NULL;
}

static const char *buffer_refusal(const ft_kir *kir) {
  for (uint32_t i = 1; i < kir->buffer_count; i++) {
    const ft_kir_buffer *b = &kir->buffer[i];
    if (b->space == FT_KIR_REGISTER && b->count > 1)
      return "plain C has no register files";
    if (!ft_expression_c_type(b->dtype)) return "a dtype without kernels";
  }
  return NULL;
}

ft_status ft_print_c(ft_kir *kir, const char **out_body, ft_error *error) {
  const char *wrong = ft_kir_verify(kir);
  FT_OOM_IF(kir->failed, error);
  if (wrong) FT_FAIL(error, FT_INTERNAL, "kernel IR: %s", wrong);
  if (has_threads(kir, &kir->body))
    FT_FAIL(error, FT_UNSUPPORTED, "plain C runs one thread per block");
  wrong = refusal(kir, &kir->body);
  if (!wrong) wrong = buffer_refusal(kir);
  if (wrong) FT_FAIL(error, FT_UNSUPPORTED, "no plain C: %s", wrong);
  printer p = {.kir = kir, .out = ft_strbuf_init(kir->arena)};
  p.is_named = FT_NEW_ARRAY(kir->arena, bool, kir->value_count);
  FT_OOM_IF(!p.is_named, error);
  ft_strbuf_add(&p.out,
                "{\n  (void)buffers, (void)scalars, (void)block, (void)thread, "
                "(void)scratch;\n");
  put_buffers(&p);
  put_block(&p, &kir->body);
  ft_strbuf_add(&p.out, "  return 0;\n}\n");
  FT_OOM_IF(p.out.failed, error);
  *out_body = p.out.text;
  return FT_OK;
}
