#include "codegen/print_simt.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codegen/expressions.h"
#include "codegen/sim.h"
#include "codegen/simt_prelude.h"

enum { STATIC_SHARED_BYTES = 48 << 10, WARP = 32, VECTOR_BYTES = 16 };

typedef struct printer {
  ft_kir *kir;
  ft_strbuf out;
  int depth;
  bool is_sim;
  ft_simt_launch launch;
  const ft_kir_stmt **loop_of;  // [value] the loop whose variable it is
  bool *is_named;               // [value] indices with a name
  bool *is_spread;              // [value] SIM: an array over the threads
  bool *is_array;               // [buffer] the same for registers
  const char *thread;           // SIM: the thread meant: "t" or "0"
  uint64_t shared_bytes;        // offset of the next dynamic shared buffer
  bool has_turn;
} printer;

static void start_line(printer *p) {
  ft_strbuf_printf(&p->out, "%*s", 2 * p->depth, "");
}

static const ft_kir_value *value_of(const printer *p, ft_kir_id id) {
  return &p->kir->value[id];
}

// ---- what divides an index
// ---------------------------------------------------------------

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a < 0 ? -a : a;
}

enum { LARGE_DIVISOR = 1 << 20 };

static int64_t divisor(const printer *p, ft_kir_id id);

static int64_t loop_divisor(const printer *p, ft_kir_id id) {
  const ft_kir_stmt *s = p->loop_of[id];
  if (!s) return 1;
  return gcd(divisor(p, s->begin), divisor(p, s->step));
}

// Of every value that the index takes; 0 for the number 0.
static int64_t divisor(const printer *p, ft_kir_id id) {
  const ft_kir_value *v = value_of(p, id);
  if (v->op == FT_KIR_NUMBER) return v->imm < 0 ? -v->imm : v->imm;
  if (v->op == FT_KIR_LOOP) return loop_divisor(p, id);
  if (v->operand_count != 2) return 1;
  int64_t a = divisor(p, v->operand[0]), b = divisor(p, v->operand[1]);
  switch (v->op) {
    case FT_KIR_IADD:
    case FT_KIR_ISUB:
    case FT_KIR_IMIN:
    case FT_KIR_IMAX:
    case FT_KIR_IMOD:
      return gcd(a, b);
    case FT_KIR_IMUL:
      return gcd(a, LARGE_DIVISOR) * gcd(b, LARGE_DIVISOR);
    default:
      return 1;
  }
}

// ---- indices
// ----------------------------------------------------------------------------

static void put_index(printer *p, ft_kir_id id);

static void put_binary(printer *p, const ft_kir_value *v, const char *op) {
  ft_strbuf_add(&p->out, "(");
  put_index(p, v->operand[0]);
  ft_strbuf_printf(&p->out, " %s ", op);
  put_index(p, v->operand[1]);
  ft_strbuf_add(&p->out, ")");
}

static void put_choice(printer *p, const ft_kir_value *v, const char *sign) {
  put_binary(p, v, sign);
  ft_strbuf_add(&p->out, " ? ");
  put_index(p, v->operand[0]);
  ft_strbuf_add(&p->out, " : ");
  put_index(p, v->operand[1]);
}

static void put_name(printer *p, ft_kir_id id) {
  ft_strbuf_printf(&p->out, "v%u", id);
  if (p->is_spread[id]) ft_strbuf_printf(&p->out, "[%s]", p->thread);
}

static void put_element_name(printer *p, ft_kir_id id, const char *lane) {
  put_name(p, id);
  if (value_of(p, id)->type.lanes > 1) ft_strbuf_printf(&p->out, "[%s]", lane);
}

static void put_index_text(printer *p, ft_kir_id id) {
  static const char *const ops[] = {
      [FT_KIR_IADD] = "+", [FT_KIR_ISUB] = "-", [FT_KIR_IMUL] = "*",
      [FT_KIR_IDIV] = "/", [FT_KIR_IMOD] = "%", [FT_KIR_ILESS] = "<",
  };
  const ft_kir_value *v = value_of(p, id);
  if (v->op == FT_KIR_NUMBER) {
    ft_strbuf_printf(&p->out, "%lld", (long long)v->imm);
  } else if (v->op == FT_KIR_LOOP) {
    put_name(p, id);
  } else if (v->op == FT_KIR_IMIN || v->op == FT_KIR_IMAX) {
    ft_strbuf_add(&p->out, "(");
    put_choice(p, v, v->op == FT_KIR_IMIN ? "<" : ">");
    ft_strbuf_add(&p->out, ")");
  } else if (v->op == FT_KIR_TO_INDEX) {
    ft_strbuf_add(&p->out, "(ft_index)");
    put_element_name(p, v->operand[0], "0");
  } else {
    put_binary(p, v, ops[v->op]);
  }
}

static void put_index(printer *p, ft_kir_id id) {
  if (p->is_named[id])
    put_name(p, id);
  else
    put_index_text(p, id);
}

// ---- elements
// ------------------------------------------------------------------------------

static void put_constant(printer *p, const ft_kir_value *v) {
  double number;
  memcpy(&number, &v->imm, sizeof number);
  const char *type = ft_expression_type(v->type.dtype);
  bool is_single = v->type.dtype == FT_F32;
  if (!ft_dtype_is_float(v->type.dtype)) {
    if (v->imm == INT64_MIN)
      ft_strbuf_add(&p->out, "(-0x7fffffffffffffffLL - 1)");
    else
      ft_strbuf_printf(&p->out, "(%lldLL)", (long long)v->imm);
  } else if (isnan(number)) {
    ft_strbuf_printf(&p->out, "ft_nan_%s", type);
  } else if (isinf(number) || (is_single && isinf((float)number))) {
    ft_strbuf_printf(&p->out, "(%sft_inf_%s)", number < 0 ? "-" : "", type);
  } else {
    ft_strbuf_printf(&p->out, is_single ? "((float)%a)" : "(%a)", number);
  }
}

static void put_template(printer *p, const ft_kir_value *v, const char *lane) {
  ft_dtype last = value_of(p, v->operand[v->operand_count - 1])->type.dtype;
  for (const char *t = ft_expression_text(v->primitive, last); *t; t++) {
    if (*t != '$') {
      ft_strbuf_addn(&p->out, t, 1);
      continue;
    }
    t++;
    if (*t == 'A')
      ft_strbuf_add(&p->out, ft_expression_type(last));
    else
      put_element_name(p, v->operand[*t - '0'], lane);
  }
}

static void put_primitive(printer *p, const ft_kir_value *v, const char *lane) {
  ft_dtype from = value_of(p, v->operand[0])->type.dtype;
  if (v->primitive != FT_OP_CAST) {
    put_template(p, v, lane);
  } else if (from == v->type.dtype) {
    put_element_name(p, v->operand[0], lane);
  } else {
    ft_strbuf_printf(&p->out, "ft_cast_%s_%s(", ft_expression_type(from),
                     ft_expression_type(v->type.dtype));
    put_element_name(p, v->operand[0], lane);
    ft_strbuf_add(&p->out, ")");
  }
}

// ft_add_f32(a, b)
static void put_combination(printer *p, const ft_kir_value *v, const char *lane) {
  ft_strbuf_printf(&p->out, "ft_%s_%s(", ft_expression_text(v->primitive, v->type.dtype),
                   ft_expression_type(v->type.dtype));
  put_element_name(p, v->operand[0], lane);
  ft_strbuf_add(&p->out, ", ");
  put_element_name(p, v->operand[1], lane);
  ft_strbuf_add(&p->out, ")");
}

static void put_shuffle(printer *p, const ft_kir_value *v, const char *lane) {
  char partner[48];
  if (!p->is_sim) {
    ft_strbuf_add(&p->out, "__shfl_xor_sync(0xffffffffu, ");
    put_element_name(p, v->operand[0], lane);
    ft_strbuf_printf(&p->out, ", %lld)", (long long)v->imm);
    return;
  }
  const char *thread = p->thread;
  snprintf(partner, sizeof partner, "%s ^ %lld", thread, (long long)v->imm);
  p->thread = partner;
  put_element_name(p, v->operand[0], lane);
  p->thread = thread;
}

// The right-hand side, for one lane, of everything but loads and folds.
static void put_lane(printer *p, const ft_kir_value *v, const char *lane) {
  switch (v->op) {
    case FT_KIR_ELEMENT:
      put_constant(p, v);
      break;
    case FT_KIR_PRIMITIVE:
      put_primitive(p, v, lane);
      break;
    case FT_KIR_SPLAT:
      put_element_name(p, v->operand[0], lane);
      break;
    case FT_KIR_KEEP:
      ft_strbuf_printf(&p->out, "%s < %lld ? ", lane, (long long)v->imm);
      put_element_name(p, v->operand[1], lane);
      ft_strbuf_add(&p->out, " : ");
      put_element_name(p, v->operand[0], lane);
      break;
    case FT_KIR_COMBINE:
      put_combination(p, v, lane);
      break;
    default:
      FT_ASSERT(v->op == FT_KIR_SHUFFLE);
      put_shuffle(p, v, lane);
  }
}

// Opens a loop over the lanes; its variable is "l". One lane: nothing.
static void open_lanes(printer *p, uint32_t from, uint32_t lanes) {
  if (lanes <= 1) {
    start_line(p);
    return;
  }
  if (!p->is_sim) {
    start_line(p);
    ft_strbuf_add(&p->out, "#pragma unroll\n");
  }
  start_line(p);
  ft_strbuf_printf(&p->out, "for (int l = %u; l < %u; l++) ", from, lanes);
}

static const char *lane_of(uint32_t lanes) {
  return lanes > 1 ? "l" : "0";
}

// ---- memory
// ---------------------------------------------------------------------------------

static const char *vector_type(uint32_t bytes) {
  return bytes == 16 ? "int4" : bytes == 8 ? "int2" : bytes == 4 ? "int" : NULL;
}

// The widest access that |lanes| elements from |index| on can be made of; 0: one by one.
static uint32_t access_bytes(const printer *p, ft_dtype dtype, uint32_t lanes,
                             ft_kir_id index, int64_t stride) {
  if (lanes < 2 || stride != 1) return 0;
  uint32_t size = (uint32_t)ft_dtype_bytes(dtype), bytes = lanes * size;
  if (bytes > VECTOR_BYTES) bytes = VECTOR_BYTES;
  while (bytes > size && divisor(p, index) % (bytes / size)) bytes /= 2;
  return bytes > size && vector_type(bytes) ? bytes : 0;
}

static void put_place(printer *p, uint32_t buffer, ft_kir_id index, uint32_t lanes,
                      int64_t stride) {
  ft_strbuf_printf(&p->out, "b%u[", buffer);
  put_index(p, index);
  if (lanes > 1) ft_strbuf_printf(&p->out, " + l * %lld", (long long)stride);
  ft_strbuf_add(&p->out, "]");
}

// ((int4 *)(b3 + index))[l]
static void put_wide(printer *p, const char *type, uint32_t buffer, ft_kir_id index,
                     bool is_const) {
  ft_strbuf_printf(&p->out, "((%s%s *)(b%u + ", is_const ? "const " : "", type, buffer);
  put_index(p, index);
  ft_strbuf_add(&p->out, "))[l]");
}

static void put_cuda_load(printer *p, ft_kir_id id) {
  const ft_kir_value *v = value_of(p, id);
  uint32_t lanes = v->type.lanes, size = (uint32_t)ft_dtype_bytes(v->type.dtype);
  uint32_t bytes = access_bytes(p, v->type.dtype, lanes, v->operand[0], v->imm);
  if (!bytes) {
    open_lanes(p, 0, lanes);
    put_element_name(p, id, "l");
    ft_strbuf_add(&p->out, " = ");
    put_place(p, v->buffer, v->operand[0], lanes, v->imm);
  } else {
    const char *type = vector_type(bytes);
    start_line(p);
    ft_strbuf_add(&p->out, "#pragma unroll\n");
    start_line(p);
    ft_strbuf_printf(&p->out, "for (int l = 0; l < %u; l++) ((%s *)v%u)[l] = ",
                     lanes * size / bytes, type, id);
    put_wide(p, type, v->buffer, v->operand[0], true);
  }
  ft_strbuf_add(&p->out, ";\n");
}

// The shadow of a buffer, and how many elements it has.
static void put_shadow(printer *p, uint32_t buffer) {
  const ft_kir_buffer *b = &p->kir->buffer[buffer];
  if (b->space == FT_KIR_GLOBAL)
    ft_strbuf_printf(&p->out, "s->cell[%u]", b->argument);
  else
    ft_strbuf_printf(&p->out, "b%uc", buffer);
  ft_strbuf_printf(&p->out, ", %u, %lld", buffer, (long long)b->count);
}

// { const ft_index at = ...; if (ft_sim_read(..., at, t)) ...
static void open_sim_access(printer *p, const char *verb, uint32_t buffer,
                            ft_kir_id index, uint32_t lanes, int64_t stride) {
  open_lanes(p, 0, lanes);
  ft_strbuf_add(&p->out, "{ const ft_index at = ");
  put_index(p, index);
  if (lanes > 1) ft_strbuf_printf(&p->out, " + l * %lld", (long long)stride);
  ft_strbuf_printf(&p->out, "; if (ft_sim_%s(s, ", verb);
  put_shadow(p, buffer);
  ft_strbuf_printf(&p->out, ", at, %s)) ", p->thread);
}

static void put_sim_alignment(printer *p, ft_dtype dtype, uint32_t buffer,
                              ft_kir_id index, uint32_t lanes, int64_t stride) {
  uint32_t bytes = access_bytes(p, dtype, lanes, index, stride);
  if (!bytes) return;
  start_line(p);
  ft_strbuf_printf(&p->out, "ft_sim_align(s, %u, ", buffer);
  put_index(p, index);
  ft_strbuf_printf(&p->out, ", %u, %s);\n", bytes / (uint32_t)ft_dtype_bytes(dtype),
                   p->thread);
}

static void put_sim_load(printer *p, ft_kir_id id) {
  const ft_kir_value *v = value_of(p, id);
  uint32_t lanes = v->type.lanes;
  put_sim_alignment(p, v->type.dtype, v->buffer, v->operand[0], lanes, v->imm);
  open_sim_access(p, "read", v->buffer, v->operand[0], lanes, v->imm);
  put_element_name(p, id, "l");
  ft_strbuf_printf(&p->out, " = b%u[at]; else ", v->buffer);
  put_element_name(p, id, "l");
  ft_strbuf_add(&p->out, " = 0; }\n");
}

static void put_register_name(printer *p, uint32_t buffer, const char *lane) {
  ft_strbuf_printf(&p->out, "b%u", buffer);
  if (p->is_array[buffer]) ft_strbuf_printf(&p->out, "[%s]", p->thread);
  if (p->kir->buffer[buffer].lanes > 1) ft_strbuf_printf(&p->out, "[%s]", lane);
}

static void put_load(printer *p, ft_kir_id id) {
  const ft_kir_value *v = value_of(p, id);
  if (p->kir->buffer[v->buffer].space == FT_KIR_REGISTER) {
    open_lanes(p, 0, v->type.lanes);
    put_element_name(p, id, "l");
    ft_strbuf_add(&p->out, " = ");
    put_register_name(p, v->buffer, "l");
    ft_strbuf_add(&p->out, ";\n");
  } else if (p->is_sim) {
    put_sim_load(p, id);
  } else {
    put_cuda_load(p, id);
  }
}

static void put_cuda_store(printer *p, const ft_kir_stmt *s, ft_kir_type type) {
  uint32_t lanes = type.lanes, size = (uint32_t)ft_dtype_bytes(type.dtype);
  uint32_t bytes = access_bytes(p, type.dtype, lanes, s->index, s->stride);
  if (!bytes) {
    open_lanes(p, 0, lanes);
    put_place(p, s->buffer, s->index, lanes, s->stride);
    ft_strbuf_add(&p->out, " = ");
    put_element_name(p, s->value, "l");
    ft_strbuf_add(&p->out, ";\n");
    return;
  }
  const char *name = vector_type(bytes);
  start_line(p);
  ft_strbuf_add(&p->out, "#pragma unroll\n");
  start_line(p);
  ft_strbuf_printf(&p->out, "for (int l = 0; l < %u; l++) ", lanes * size / bytes);
  if (s->hint == FT_KIR_STREAMED) ft_strbuf_add(&p->out, "__stcs(&");
  put_wide(p, name, s->buffer, s->index, false);
  bool streams = s->hint == FT_KIR_STREAMED;
  ft_strbuf_printf(&p->out, "%s((const %s *)v%u)[l]%s;\n", streams ? ", " : " = ", name,
                   s->value, streams ? ")" : "");
}

static void put_sim_store(printer *p, const ft_kir_stmt *s, ft_kir_type type) {
  put_sim_alignment(p, type.dtype, s->buffer, s->index, type.lanes, s->stride);
  open_sim_access(p, "write", s->buffer, s->index, type.lanes, s->stride);
  ft_strbuf_printf(&p->out, "b%u[at] = ", s->buffer);
  put_element_name(p, s->value, "l");
  ft_strbuf_add(&p->out, "; }\n");
}

static void put_store(printer *p, const ft_kir_stmt *s) {
  ft_kir_type type = value_of(p, s->value)->type;
  if (p->kir->buffer[s->buffer].space == FT_KIR_REGISTER) {
    open_lanes(p, 0, type.lanes);
    put_register_name(p, s->buffer, "l");
    ft_strbuf_add(&p->out, " = ");
    put_element_name(p, s->value, "l");
    ft_strbuf_add(&p->out, ";\n");
  } else if (p->is_sim) {
    put_sim_store(p, s, type);
  } else {
    put_cuda_store(p, s, type);
  }
}

// ---- declarations
// -----------------------------------------------------------------------

static void put_lanes(printer *p, uint32_t lanes) {
  if (lanes > 1) ft_strbuf_printf(&p->out, "[%u]", lanes);
}

// |is_spread|: SIM, over the threads.
static void declare_value(printer *p, ft_kir_id id, bool is_spread) {
  const ft_kir_value *v = value_of(p, id);
  bool is_vector = v->type.lanes > 1 && !p->is_sim;
  start_line(p);
  if (is_vector) ft_strbuf_add(&p->out, "__align__(16) ");
  ft_strbuf_printf(&p->out, "%s v%u",
                   v->type.lanes ? ft_simt_c_type(v->type.dtype) : "ft_index", id);
  if (is_spread) ft_strbuf_printf(&p->out, "[%u]", p->launch.threads);
  put_lanes(p, v->type.lanes);
  ft_strbuf_add(&p->out, ";\n");
  p->is_spread[id] = is_spread;
}

static void declare_register(printer *p, uint32_t buffer, bool is_array) {
  const ft_kir_buffer *b = &p->kir->buffer[buffer];
  start_line(p);
  ft_strbuf_printf(&p->out, "%s b%u", ft_simt_c_type(b->dtype), buffer);
  if (is_array) ft_strbuf_printf(&p->out, "[%u]", p->launch.threads);
  put_lanes(p, b->lanes);
  ft_strbuf_add(&p->out, ";\n");
  p->is_array[buffer] = is_array;
}

static void poison_register(printer *p, uint32_t buffer) {
  const ft_kir_buffer *b = &p->kir->buffer[buffer];
  open_lanes(p, 0, b->lanes);
  put_register_name(p, buffer, "l");
  ft_strbuf_printf(&p->out, " = %s;\n", ft_dtype_is_float(b->dtype) ? "NAN" : "77");
}

static void declare_shared(printer *p, uint32_t buffer) {
  const ft_kir_buffer *b = &p->kir->buffer[buffer];
  const char *type = ft_simt_c_type(b->dtype);
  start_line(p);
  if (p->is_sim) {
    ft_strbuf_printf(&p->out, "%s b%u[%lld]; ft_sim_cell b%uc[%lld] = {{0}};\n", type,
                     buffer, (long long)b->count, buffer, (long long)b->count);
  } else if (p->launch.is_shared_dynamic) {
    ft_strbuf_printf(&p->out, "%s *const b%u = (%s *)(ft_shared + %llu);\n", type, buffer,
                     type, (unsigned long long)p->shared_bytes);
  } else {
    ft_strbuf_printf(&p->out, "__shared__ __align__(16) %s b%u[%lld];\n", type, buffer,
                     (long long)b->count);
  }
  uint64_t bytes = (uint64_t)b->count * ft_dtype_bytes(b->dtype);
  p->shared_bytes += (bytes + 15) / 16 * 16;
}

// ---- statements
// ---------------------------------------------------------------------------

static void put_block(printer *p, const ft_kir_block *block);

static void put_fold(printer *p, ft_kir_id id) {
  const ft_kir_value *v = value_of(p, id);
  const char *type = ft_expression_type(v->type.dtype);
  start_line(p);
  put_name(p, id);
  ft_strbuf_add(&p->out, " = ");
  put_element_name(p, v->operand[0], "0");
  ft_strbuf_add(&p->out, ";\n");
  open_lanes(p, 1, value_of(p, v->operand[0])->type.lanes);
  put_name(p, id);
  ft_strbuf_printf(&p->out, " = ft_%s_%s(",
                   ft_expression_text(v->primitive, v->type.dtype), type);
  put_name(p, id);
  ft_strbuf_add(&p->out, ", ");
  put_element_name(p, v->operand[0], "l");
  ft_strbuf_add(&p->out, ");\n");
}

// Gives value |id|, which is declared, what it is.
static void assign(printer *p, ft_kir_id id) {
  const ft_kir_value *v = value_of(p, id);
  if (v->op == FT_KIR_LOAD) {
    put_load(p, id);
  } else if (v->op == FT_KIR_FOLD) {
    put_fold(p, id);
  } else if (!v->type.lanes) {
    start_line(p);
    put_name(p, id);
    ft_strbuf_add(&p->out, " = ");
    put_index_text(p, id);
    ft_strbuf_add(&p->out, ";\n");
    p->is_named[id] = true;
  } else {
    open_lanes(p, 0, v->type.lanes);
    put_element_name(p, id, "l");
    ft_strbuf_add(&p->out, " = ");
    put_lane(p, v, lane_of(v->type.lanes));
    ft_strbuf_add(&p->out, ";\n");
  }
}

static void put_alloc(printer *p, uint32_t buffer) {
  if (p->kir->buffer[buffer].space == FT_KIR_SHARED) {
    declare_shared(p, buffer);
    return;
  }
  declare_register(p, buffer, false);
  if (p->is_sim) poison_register(p, buffer);
}

static void put_loop_head(printer *p, const ft_kir_stmt *s) {
  if (s->loop == FT_KIR_UNROLL && !p->is_sim) {
    start_line(p);
    ft_strbuf_add(&p->out, "#pragma unroll\n");
  }
  start_line(p);
  ft_strbuf_printf(&p->out, "for (ft_index v%u = ", s->value);
  put_index(p, s->begin);
  ft_strbuf_printf(&p->out, "; v%u < ", s->value);
  put_index(p, s->end);
  if (p->is_sim) ft_strbuf_add(&p->out, " && ft_sim_tick(s)");
  ft_strbuf_printf(&p->out, "; v%u += ", s->value);
  put_index(p, s->step);
  ft_strbuf_add(&p->out, ") {\n");
}

static void close(printer *p) {
  start_line(p);
  ft_strbuf_add(&p->out, "}\n");
}

static void put_for(printer *p, const ft_kir_stmt *s) {
  put_loop_head(p, s);
  put_block(p, &s->body);
  close(p);
}

static void put_if_head(printer *p, const ft_kir_stmt *s) {
  start_line(p);
  ft_strbuf_add(&p->out, "if (");
  put_index(p, s->value);
  ft_strbuf_add(&p->out, ") {\n");
}

static void put_if(printer *p, const ft_kir_stmt *s) {
  put_if_head(p, s);
  put_block(p, &s->body);
  if (s->otherwise.first) {
    start_line(p);
    ft_strbuf_add(&p->out, "} else {\n");
    put_block(p, &s->otherwise);
  }
  close(p);
}

static void put_fail(printer *p, const ft_kir_stmt *s) {
  start_line(p);
  if (p->is_sim)
    ft_strbuf_printf(&p->out, "return %d;\n", (int)s->code);
  else
    ft_strbuf_printf(&p->out, "{ *ft_status = %d; return; }\n", (int)s->code);
}

static void put_stmt(printer *p, const ft_kir_stmt *s) {
  switch (s->kind) {
    case FT_KIR_LET:
      if (!p->is_spread[s->value]) declare_value(p, s->value, false);
      assign(p, s->value);
      break;
    case FT_KIR_STORE:
      put_store(p, s);
      break;
    case FT_KIR_ALLOC:
      if (!p->is_array[s->buffer])
        put_alloc(p, s->buffer);
      else if (p->is_sim)
        poison_register(p, s->buffer);
      break;
    case FT_KIR_IF:
      put_if(p, s);
      break;
    case FT_KIR_FOR:
      put_for(p, s);
      break;
    case FT_KIR_BARRIER:
      start_line(p);
      ft_strbuf_add(&p->out, p->is_sim ? "s->epoch++;\n" : "__syncthreads();\n");
      break;
    case FT_KIR_PREFETCH:
    case FT_KIR_GRID_DONE:
    case FT_KIR_TURN:
      break;  // a hint; and what was refused
    case FT_KIR_FAIL:
      put_fail(p, s);
      break;
    case FT_KIR_FENCE:
      if (p->is_sim) break;
      start_line(p);
      ft_strbuf_add(&p->out, "__threadfence();\n");
      break;
  }
}

static void end_scope(printer *p, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    if (s->kind != FT_KIR_LET) continue;
    p->is_named[s->value] = p->is_spread[s->value] = false;
  }
}

static void put_block(printer *p, const ft_kir_block *block) {
  p->depth++;
  for (const ft_kir_stmt *s = block->first; s; s = s->next) put_stmt(p, s);
  p->depth--;
  end_scope(p, block);
}

// ---- SIM: stretches without collectives
// ------------------------------------------------------

static bool has_collective(const printer *p, const ft_kir_stmt *s) {
  if (s->kind == FT_KIR_BARRIER) return true;
  if (s->kind == FT_KIR_LET) return value_of(p, s->value)->op == FT_KIR_SHUFFLE;
  for (const ft_kir_stmt *i = s->body.first; i; i = i->next)
    if (has_collective(p, i)) return true;
  for (const ft_kir_stmt *i = s->otherwise.first; i; i = i->next)
    if (has_collective(p, i)) return true;
  return false;
}

static void declare_spread(printer *p, const ft_kir_stmt *s) {
  if (s->kind == FT_KIR_LET) declare_value(p, s->value, true);
  if (s->kind != FT_KIR_ALLOC) return;
  if (p->kir->buffer[s->buffer].space == FT_KIR_SHARED)
    declare_shared(p, s->buffer);
  else
    declare_register(p, s->buffer, true);
}

static void open_threads(printer *p) {
  start_line(p);
  ft_strbuf_printf(&p->out, "for (int t = 0; t < %u; t++) {\n", p->launch.threads);
  p->thread = "t";
  p->depth++;
}

static void close_threads(printer *p) {
  p->depth--;
  p->thread = "0";
  close(p);
}

static bool is_shared_alloc(const printer *p, const ft_kir_stmt *s) {
  return s->kind == FT_KIR_ALLOC && p->kir->buffer[s->buffer].space == FT_KIR_SHARED;
}

// |from| and what follows up to |end|: one thread after the other.
static void put_stretch(printer *p, const ft_kir_stmt *from, const ft_kir_stmt *end) {
  for (const ft_kir_stmt *s = from; s != end; s = s->next) declare_spread(p, s);
  open_threads(p);
  for (const ft_kir_stmt *s = from; s != end; s = s->next) {
    if (!is_shared_alloc(p, s)) put_stmt(p, s);
  }
  close_threads(p);
}

static void put_agreement(printer *p, ft_kir_id index) {
  int64_t number;
  if (ft_kir_is_number(p->kir, index, &number)) return;
  open_threads(p);
  start_line(p);
  ft_strbuf_add(&p->out, "ft_sim_agree(s, ");
  put_index(p, index);
  p->thread = "0";
  ft_strbuf_add(&p->out, ", ");
  put_index(p, index);
  ft_strbuf_add(&p->out, ", t);\n");
  close_threads(p);
}

static void put_together(printer *p, const ft_kir_block *block);

static void put_collective(printer *p, const ft_kir_stmt *s) {
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
    start_line(p);
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
static void put_together(printer *p, const ft_kir_block *block) {
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

static void put_threads(printer *p, const ft_kir_stmt *s) {
  start_line(p);
  ft_strbuf_add(&p->out, "{\n");
  p->depth++;
  start_line(p);
  if (!p->is_sim) {
    ft_strbuf_printf(&p->out, "const ft_index v%u = threadIdx.x;\n", s->value);
    put_block(p, &s->body);
  } else {
    ft_strbuf_printf(&p->out, "ft_index v%u[%u];\n", s->value, p->launch.threads);
    p->is_spread[s->value] = true;
    open_threads(p);
    start_line(p);
    ft_strbuf_printf(&p->out, "v%u[t] = t;\n", s->value);
    close_threads(p);
    put_together(p, &s->body);
  }
  p->depth--;
  close(p);
}

static void put_grid(printer *p, const ft_kir_stmt *s) {
  p->depth++;
  start_line(p);
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

static void put_cuda_head(printer *p, const char *name, uint32_t min_blocks) {
  ft_strbuf_printf(&p->out, "extern \"C\" __global__ void __launch_bounds__(%u",
                   p->launch.threads);
  if (min_blocks) ft_strbuf_printf(&p->out, ", %u", min_blocks);
  ft_strbuf_printf(&p->out, ")\n%s(int *ft_status", name);
  for (uint32_t a = 0; a < argument_count(p->kir); a++) {
    uint32_t id = buffer_of(p->kir, a);
    const ft_kir_buffer *b = &p->kir->buffer[id];
    if (id)
      ft_strbuf_printf(&p->out, ", %s%s *__restrict__ b%u", b->is_written ? "" : "const ",
                       ft_simt_c_type(b->dtype), id);
    else
      ft_strbuf_printf(&p->out, ", const void *a%u", a);
  }
  ft_strbuf_add(&p->out, ") {\n  (void)ft_status;\n");
  if (p->launch.is_shared_dynamic)
    ft_strbuf_add(&p->out,
                  "  extern __shared__ __align__(16) unsigned char ft_shared[];\n");
}

static void put_sim_head(printer *p, const char *name) {
  ft_strbuf_printf(&p->out,
                   "int32_t %s(void *const *buffers, ft_sim_state *s, uint64_t block) {\n"
                   "  (void)buffers, (void)s, (void)block;\n",
                   name);
  for (uint32_t i = 1; i < p->kir->buffer_count; i++) {
    const ft_kir_buffer *b = &p->kir->buffer[i];
    if (b->space != FT_KIR_GLOBAL) continue;
    ft_strbuf_printf(&p->out, "  %s%s *b%u = buffers[%u];\n",
                     b->is_written ? "" : "const ", ft_simt_c_type(b->dtype), i,
                     b->argument);
  }
}

// ---- what launching takes
// ------------------------------------------------------------------

static void note_loops(printer *p, const ft_kir_block *block) {
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

static const char *note_buffers(printer *p) {
  int64_t most = 0;
  for (uint32_t i = 1; i < p->kir->buffer_count; i++) {
    const ft_kir_buffer *b = &p->kir->buffer[i];
    if (b->space == FT_KIR_SCRATCH) return "scratch memory is for plain C";
    if (b->space == FT_KIR_WORKSPACE) return "no workspace between blocks yet";
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

static ft_status open_printer(ft_kir *kir, bool is_sim, printer *p, ft_error *error) {
  const char *wrong = ft_kir_verify(kir);
  FT_OOM_IF(kir->failed, error);
  if (wrong) FT_FAIL(error, FT_INTERNAL, "kernel IR: %s", wrong);
  *p = (printer){.kir = kir,
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

static ft_status put_kernel(printer *p, ft_simt_launch *out_launch, ft_error *error) {
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
  printer p;
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
  ft_simt_prelude_for(p.out.text, &text);
  ft_strbuf_add(&text, p.out.text);
  FT_OOM_IF(text.failed, error);
  *out_text = text.text;
  return FT_OK;
}

ft_status ft_print_sim(ft_kir *kir, const char *name, const char **out_text,
                       ft_simt_launch *out_launch, ft_error *error) {
  printer p;
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
  ft_simt_prelude_for(bodies, &text);
  return text.failed ? NULL : text.text;
}
