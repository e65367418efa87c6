#include "codegen/expressions.h"
#include "codegen/print_simt_half.h"
#include "codegen/print_simt_parts.h"
#include "codegen/simt_prelude.h"

enum { VECTOR_BYTES = 16 };

// ---- memory
// ---------------------------------------------------------------------------------

static const char *vector_type(uint32_t bytes) {
  return bytes == 16 ? "int4" : bytes == 8 ? "int2" : bytes == 4 ? "int" : NULL;
}

// The widest access that |lanes| elements from |index| on can be made of; 0: one by one.
static uint32_t access_bytes(const ft_simt_printer *p, ft_dtype dtype, uint32_t lanes,
                             ft_kir_id index, int64_t stride) {
  if (lanes < 2 || stride != 1) return 0;
  uint32_t size = (uint32_t)ft_dtype_bytes(dtype), bytes = lanes * size;
  if (bytes > VECTOR_BYTES) bytes = VECTOR_BYTES;
  while (bytes > size && ft_simt_divisor(p, index) % (bytes / size)) bytes /= 2;
  return bytes > size && vector_type(bytes) ? bytes : 0;
}

uint32_t ft_simt_access_bytes(const ft_simt_printer *p, ft_dtype dtype, uint32_t lanes,
                              ft_kir_id index, int64_t stride) {
  return access_bytes(p, dtype, lanes, index, stride);
}

static void put_place(ft_simt_printer *p, uint32_t buffer, ft_kir_id index,
                      uint32_t lanes, int64_t stride) {
  ft_strbuf_printf(&p->out, "b%u[", buffer);
  ft_simt_put_index(p, index);
  if (lanes > 1) ft_strbuf_printf(&p->out, " + l * %lld", (long long)stride);
  ft_strbuf_add(&p->out, "]");
}

// ((int4 *)(b3 + index))[l]
static void put_wide(ft_simt_printer *p, const char *type, uint32_t buffer,
                     ft_kir_id index, bool is_const) {
  ft_strbuf_printf(&p->out, "((%s%s *)(b%u + ", is_const ? "const " : "", type, buffer);
  ft_simt_put_index(p, index);
  ft_strbuf_add(&p->out, "))[l]");
}

// ft_widen_f16( for a buffer of short floats, which close_call ends; else nothing.
static bool open_call(ft_simt_printer *p, const char *verb, uint32_t buffer) {
  const char *name = ft_simt_half_name(p->kir->buffer[buffer].dtype);
  if (name) ft_strbuf_printf(&p->out, "ft_%s_%s(", verb, name);
  return name;
}

static void close_call(ft_simt_printer *p, bool is_open) {
  if (is_open) ft_strbuf_add(&p->out, ")");
}

// { unsigned h9[4]; of short floats the vector v9 in memory is this one. Returns the
// letter that the vector is called by.
static char open_packed(ft_simt_printer *p, ft_kir_id id, uint32_t buffer) {
  if (!ft_simt_half_name(p->kir->buffer[buffer].dtype)) return 'v';
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "{ __align__(16) unsigned h%u[%u];\n", id,
                   ft_simt_value_of(p, id)->type.lanes / 2);
  return 'h';
}

static void put_unpacking(ft_simt_printer *p, ft_kir_id id, uint32_t buffer) {
  ft_simt_open_lanes(p, 0, ft_simt_value_of(p, id)->type.lanes);
  ft_strbuf_printf(&p->out, "v%u[l] = ", id);
  open_call(p, "widen", buffer);
  ft_strbuf_printf(&p->out, "(unsigned short)(h%u[l / 2] >> l %% 2 * 16)); }\n", id);
}

static void put_packing(ft_simt_printer *p, ft_kir_id id, uint32_t buffer) {
  const char *name = ft_simt_half_name(p->kir->buffer[buffer].dtype);
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "#pragma unroll\n");
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "for (int l = 0; l < %u; l++) h%u[l] = ",
                   ft_simt_value_of(p, id)->type.lanes / 2, id);
  ft_strbuf_printf(&p->out, "ft_narrow2_%s(v%u[2 * l], v%u[2 * l + 1]);\n", name, id, id);
}

// The call that loads from |v|'s buffer, and "&"; "": none. Other blocks wrote what lies
// in the workspace, and L1 does not see that. What is only read (const, __restrict__)
// goes through the read-only cache without being told to.
static const char *load_call(const ft_simt_printer *p, const ft_kir_value *v) {
  const ft_kir_buffer *b = &p->kir->buffer[v->buffer];
  bool is_constant = b->space == FT_KIR_GLOBAL && !b->is_written;
  if (b->space == FT_KIR_WORKSPACE) return "__ldcg(&";
  return is_constant && v->hint == FT_KIR_STREAMED ? "__ldcs(&" : "";
}

static void put_cuda_load(ft_simt_printer *p, ft_kir_id id) {
  const ft_kir_value *v = ft_simt_value_of(p, id);
  ft_dtype dtype = p->kir->buffer[v->buffer].dtype;
  uint32_t lanes = v->type.lanes, size = (uint32_t)ft_dtype_bytes(dtype);
  uint32_t bytes = access_bytes(p, dtype, lanes, v->operand[0], v->imm);
  const char *call = load_call(p, v);
  if (!bytes) {
    ft_simt_open_lanes(p, 0, lanes);
    ft_simt_put_element_name(p, id, "l");
    ft_strbuf_add(&p->out, " = ");
    bool is_short = open_call(p, "widen", v->buffer);
    ft_strbuf_add(&p->out, call);
    put_place(p, v->buffer, v->operand[0], lanes, v->imm);
    close_call(p, *call);
    close_call(p, is_short);
    ft_strbuf_add(&p->out, ";\n");
    return;
  }
  const char *type = vector_type(bytes);
  char name = open_packed(p, id, v->buffer);
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "#pragma unroll\n");
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "for (int l = 0; l < %u; l++) ((%s *)%c%u)[l] = %s",
                   lanes * size / bytes, type, name, id, call);
  put_wide(p, type, v->buffer, v->operand[0], true);
  ft_strbuf_add(&p->out, *call ? ");\n" : ";\n");
  if (name == 'h') put_unpacking(p, id, v->buffer);
}

// The shadow of a buffer, and how many elements it has.
static void put_shadow(ft_simt_printer *p, uint32_t buffer) {
  const ft_kir_buffer *b = &p->kir->buffer[buffer];
  if (b->space == FT_KIR_GLOBAL)
    ft_strbuf_printf(&p->out, "s->cell[%u]", b->argument);
  else if (b->space == FT_KIR_WORKSPACE)  // a cell for each byte: enough for all parts
    ft_strbuf_printf(&p->out, "s->cell[%u] + %llu", b->argument,
                     (unsigned long long)b->offset);
  else
    ft_strbuf_printf(&p->out, "b%uc", buffer);
  ft_strbuf_printf(&p->out, ", %u, %lld", buffer, (long long)b->count);
}

// { const ft_index at = ...; if (ft_sim_read(..., at, t)) ...
static void open_sim_access(ft_simt_printer *p, const char *verb, uint32_t buffer,
                            ft_kir_id index, uint32_t lanes, int64_t stride) {
  ft_simt_open_lanes(p, 0, lanes);
  ft_strbuf_add(&p->out, "{ const ft_index at = ");
  ft_simt_put_index(p, index);
  if (lanes > 1) ft_strbuf_printf(&p->out, " + l * %lld", (long long)stride);
  ft_strbuf_printf(&p->out, "; if (ft_sim_%s(s, ", verb);
  put_shadow(p, buffer);
  ft_strbuf_printf(&p->out, ", at, %s)) ", p->thread);
}

static void put_sim_alignment(ft_simt_printer *p, ft_dtype dtype, uint32_t buffer,
                              ft_kir_id index, uint32_t lanes, int64_t stride) {
  uint32_t bytes = access_bytes(p, dtype, lanes, index, stride);
  if (!bytes) return;
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "ft_sim_align(s, %u, ", buffer);
  ft_simt_put_index(p, index);
  ft_strbuf_printf(&p->out, ", %u, %s);\n", bytes / (uint32_t)ft_dtype_bytes(dtype),
                   p->thread);
}

static void put_sim_load(ft_simt_printer *p, ft_kir_id id) {
  const ft_kir_value *v = ft_simt_value_of(p, id);
  uint32_t lanes = v->type.lanes;
  put_sim_alignment(p, p->kir->buffer[v->buffer].dtype, v->buffer, v->operand[0], lanes,
                    v->imm);
  open_sim_access(p, "read", v->buffer, v->operand[0], lanes, v->imm);
  ft_simt_put_element_name(p, id, "l");
  ft_strbuf_add(&p->out, " = ");
  bool is_short = open_call(p, "widen", v->buffer);
  ft_strbuf_printf(&p->out, "b%u[at]%s; else ", v->buffer, is_short ? ")" : "");
  ft_simt_put_element_name(p, id, "l");
  ft_strbuf_add(&p->out, " = 0; }\n");
}

// [ft_sim_slot(...)]: which of several; none for a single one.
static void put_slot(ft_simt_printer *p, uint32_t buffer, ft_kir_id index) {
  const ft_kir_buffer *b = &p->kir->buffer[buffer];
  if (b->count == 1) return;
  ft_strbuf_add(&p->out, "[");
  if (p->is_sim)
    ft_strbuf_printf(&p->out, "ft_sim_slot(s, %u, %lld, %s, ", buffer,
                     (long long)b->count, p->thread);
  ft_simt_put_index(p, index);
  ft_strbuf_add(&p->out, p->is_sim ? ")]" : "]");
}

static void put_register_name(ft_simt_printer *p, uint32_t buffer, ft_kir_id index,
                              const char *lane) {
  ft_strbuf_printf(&p->out, "b%u", buffer);
  if (p->is_array[buffer]) ft_strbuf_printf(&p->out, "[%s]", p->thread);
  put_slot(p, buffer, index);
  if (p->kir->buffer[buffer].lanes > 1) ft_strbuf_printf(&p->out, "[%s]", lane);
}

void ft_simt_put_load(ft_simt_printer *p, ft_kir_id id) {
  const ft_kir_value *v = ft_simt_value_of(p, id);
  if (p->kir->buffer[v->buffer].space == FT_KIR_REGISTER) {
    ft_simt_open_lanes(p, 0, v->type.lanes);
    ft_simt_put_element_name(p, id, "l");
    ft_strbuf_add(&p->out, " = ");
    put_register_name(p, v->buffer, v->operand[0], "l");
    ft_strbuf_add(&p->out, ";\n");
  } else if (p->is_sim) {
    put_sim_load(p, id);
  } else {
    put_cuda_load(p, id);
  }
}

static void put_cuda_store(ft_simt_printer *p, const ft_kir_stmt *s, ft_kir_type type) {
  ft_dtype dtype = p->kir->buffer[s->buffer].dtype;
  uint32_t lanes = type.lanes, size = (uint32_t)ft_dtype_bytes(dtype);
  uint32_t bytes = access_bytes(p, dtype, lanes, s->index, s->stride);
  if (!bytes) {
    ft_simt_open_lanes(p, 0, lanes);
    put_place(p, s->buffer, s->index, lanes, s->stride);
    ft_strbuf_add(&p->out, " = ");
    bool is_short = open_call(p, "narrow", s->buffer);
    ft_simt_put_element_name(p, s->value, "l");
    close_call(p, is_short);
    ft_strbuf_add(&p->out, ";\n");
    return;
  }
  const char *name = vector_type(bytes);
  char packed = open_packed(p, s->value, s->buffer);
  if (packed == 'h') put_packing(p, s->value, s->buffer);
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "#pragma unroll\n");
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "for (int l = 0; l < %u; l++) ", lanes * size / bytes);
  if (s->hint == FT_KIR_STREAMED) ft_strbuf_add(&p->out, "__stcs(&");
  put_wide(p, name, s->buffer, s->index, false);
  bool streams = s->hint == FT_KIR_STREAMED;
  ft_strbuf_printf(&p->out, "%s((const %s *)%c%u)[l]%s;%s\n", streams ? ", " : " = ",
                   name, packed, s->value, streams ? ")" : "", packed == 'h' ? " }" : "");
}

static void put_sim_store(ft_simt_printer *p, const ft_kir_stmt *s, ft_kir_type type) {
  put_sim_alignment(p, p->kir->buffer[s->buffer].dtype, s->buffer, s->index, type.lanes,
                    s->stride);
  open_sim_access(p, "write", s->buffer, s->index, type.lanes, s->stride);
  ft_strbuf_printf(&p->out, "b%u[at] = ", s->buffer);
  bool is_short = open_call(p, "narrow", s->buffer);
  ft_simt_put_element_name(p, s->value, "l");
  close_call(p, is_short);
  ft_strbuf_add(&p->out, "; }\n");
}

void ft_simt_put_store(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_kir_type type = ft_simt_value_of(p, s->value)->type;
  if (p->kir->buffer[s->buffer].space == FT_KIR_REGISTER) {
    ft_simt_open_lanes(p, 0, type.lanes);
    put_register_name(p, s->buffer, s->index, "l");
    ft_strbuf_add(&p->out, " = ");
    ft_simt_put_element_name(p, s->value, "l");
    ft_strbuf_add(&p->out, ";\n");
  } else if (p->is_sim) {
    put_sim_store(p, s, type);
  } else {
    put_cuda_store(p, s, type);
  }
}

// ---- declarations
// -----------------------------------------------------------------------

static void put_extent(ft_simt_printer *p, int64_t count) {
  if (count > 1) ft_strbuf_printf(&p->out, "[%lld]", (long long)count);
}

// |is_spread|: SIM, over the threads.
void ft_simt_declare_value(ft_simt_printer *p, ft_kir_id id, bool is_spread) {
  const ft_kir_value *v = ft_simt_value_of(p, id);
  bool is_vector = v->type.lanes > 1 && !p->is_sim;
  ft_simt_start_line(p);
  if (is_vector) ft_strbuf_add(&p->out, "__align__(16) ");
  ft_strbuf_printf(&p->out, "%s v%u",
                   v->type.lanes ? ft_simt_c_type(v->type.dtype) : "ft_index", id);
  if (is_spread) ft_strbuf_printf(&p->out, "[%u]", p->launch.threads);
  put_extent(p, v->type.lanes);
  ft_strbuf_add(&p->out, ";\n");
  p->is_spread[id] = is_spread;
}

void ft_simt_declare_register(ft_simt_printer *p, uint32_t buffer, bool is_array) {
  const ft_kir_buffer *b = &p->kir->buffer[buffer];
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "%s b%u", ft_simt_c_type(b->dtype), buffer);
  if (is_array) ft_strbuf_printf(&p->out, "[%u]", p->launch.threads);
  put_extent(p, b->count);
  put_extent(p, b->lanes);
  ft_strbuf_add(&p->out, ";\n");
  p->is_array[buffer] = is_array;
}

// What was not stored shows: NaN, or a large number.
void ft_simt_poison_register(ft_simt_printer *p, uint32_t buffer) {
  const ft_kir_buffer *b = &p->kir->buffer[buffer];
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "for (int i = 0; i < %lld; i++) ",
                   (long long)(b->count * b->lanes));
  ft_strbuf_printf(&p->out, "((%s *)&b%u", ft_simt_c_type(b->dtype), buffer);
  if (p->is_array[buffer]) ft_strbuf_printf(&p->out, "[%s]", p->thread);
  ft_strbuf_printf(&p->out, ")[i] = %s;\n", ft_dtype_is_float(b->dtype) ? "NAN" : "77");
}

void ft_simt_declare_shared(ft_simt_printer *p, uint32_t buffer) {
  const ft_kir_buffer *b = &p->kir->buffer[buffer];
  const char *type = ft_simt_stored_type(b->dtype);
  ft_simt_start_line(p);
  if (p->is_sim) {
    ft_strbuf_printf(&p->out, "ft_sim_renew(b%uc, %lld);\n", buffer, (long long)b->count);
  } else if (p->is_pooled) {
    ft_strbuf_printf(&p->out, "%s *const b%u = (%s *)(ft_shared + %llu);\n", type, buffer,
                     type, (unsigned long long)p->offset[buffer]);
  } else {
    ft_strbuf_printf(&p->out, "__shared__ __align__(16) %s b%u[%lld];\n", type, buffer,
                     (long long)b->count);
  }
}
