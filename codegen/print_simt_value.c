#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codegen/expressions.h"
#include "codegen/print_simt_half.h"
#include "codegen/print_simt_parts.h"

void ft_simt_start_line(ft_simt_printer *p) {
  ft_strbuf_printf(&p->out, "%*s", 2 * p->depth, "");
}

const ft_kir_value *ft_simt_value_of(const ft_simt_printer *p, ft_kir_id id) {
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

static int64_t loop_divisor(const ft_simt_printer *p, ft_kir_id id) {
  const ft_kir_stmt *s = p->loop_of[id];
  if (!s) return 1;
  return gcd(ft_simt_divisor(p, s->begin), ft_simt_divisor(p, s->step));
}

// Of every value that the index takes; 0 for the number 0.
int64_t ft_simt_divisor(const ft_simt_printer *p, ft_kir_id id) {
  const ft_kir_value *v = ft_simt_value_of(p, id);
  if (v->op == FT_KIR_NUMBER) return v->imm < 0 ? -v->imm : v->imm;
  if (v->op == FT_KIR_LOOP) return loop_divisor(p, id);
  if (v->operand_count != 2) return 1;
  int64_t a = ft_simt_divisor(p, v->operand[0]), b = ft_simt_divisor(p, v->operand[1]);
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

static void put_binary(ft_simt_printer *p, const ft_kir_value *v, const char *op) {
  ft_strbuf_add(&p->out, "(");
  ft_simt_put_index(p, v->operand[0]);
  ft_strbuf_printf(&p->out, " %s ", op);
  ft_simt_put_index(p, v->operand[1]);
  ft_strbuf_add(&p->out, ")");
}

static void put_choice(ft_simt_printer *p, const ft_kir_value *v, const char *sign) {
  put_binary(p, v, sign);
  ft_strbuf_add(&p->out, " ? ");
  ft_simt_put_index(p, v->operand[0]);
  ft_strbuf_add(&p->out, " : ");
  ft_simt_put_index(p, v->operand[1]);
}

void ft_simt_put_name(ft_simt_printer *p, ft_kir_id id) {
  ft_strbuf_printf(&p->out, "v%u", id);
  if (p->is_spread[id]) ft_strbuf_printf(&p->out, "[%s]", p->thread);
}

void ft_simt_put_element_name(ft_simt_printer *p, ft_kir_id id, const char *lane) {
  ft_simt_put_name(p, id);
  if (ft_simt_value_of(p, id)->type.lanes > 1) ft_strbuf_printf(&p->out, "[%s]", lane);
}

void ft_simt_put_index_text(ft_simt_printer *p, ft_kir_id id) {
  static const char *const ops[] = {
      [FT_KIR_IADD] = "+", [FT_KIR_ISUB] = "-", [FT_KIR_IMUL] = "*",
      [FT_KIR_IDIV] = "/", [FT_KIR_IMOD] = "%", [FT_KIR_ILESS] = "<",
  };
  const ft_kir_value *v = ft_simt_value_of(p, id);
  if (v->op == FT_KIR_NUMBER) {
    ft_strbuf_printf(&p->out, "%lld", (long long)v->imm);
  } else if (v->op == FT_KIR_LOOP) {
    ft_simt_put_name(p, id);
  } else if (v->op == FT_KIR_IMIN || v->op == FT_KIR_IMAX) {
    ft_strbuf_add(&p->out, "(");
    put_choice(p, v, v->op == FT_KIR_IMIN ? "<" : ">");
    ft_strbuf_add(&p->out, ")");
  } else if (v->op == FT_KIR_TO_INDEX) {
    ft_strbuf_add(&p->out, "(ft_index)");
    ft_simt_put_element_name(p, v->operand[0], "0");
  } else {
    put_binary(p, v, ops[v->op]);
  }
}

void ft_simt_put_index(ft_simt_printer *p, ft_kir_id id) {
  if (p->is_named[id])
    ft_simt_put_name(p, id);
  else
    ft_simt_put_index_text(p, id);
}

// ---- elements
// ------------------------------------------------------------------------------

static void put_constant(ft_simt_printer *p, const ft_kir_value *v) {
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

static void put_template(ft_simt_printer *p, const ft_kir_value *v, const char *lane) {
  ft_dtype last = ft_simt_value_of(p, v->operand[v->operand_count - 1])->type.dtype;
  for (const char *t = ft_expression_text(v->primitive, last); *t; t++) {
    if (*t != '$') {
      ft_strbuf_addn(&p->out, t, 1);
      continue;
    }
    t++;
    if (*t == 'A')
      ft_strbuf_add(&p->out, ft_expression_type(last));
    else
      ft_simt_put_element_name(p, v->operand[*t - '0'], lane);
  }
}

static void put_primitive(ft_simt_printer *p, const ft_kir_value *v, const char *lane) {
  ft_dtype from = ft_simt_value_of(p, v->operand[0])->type.dtype;
  if (v->primitive != FT_OP_CAST) {
    put_template(p, v, lane);
  } else if (from == v->type.dtype) {
    ft_simt_put_element_name(p, v->operand[0], lane);
  } else {
    ft_strbuf_printf(&p->out, "ft_cast_%s_%s(", ft_expression_type(from),
                     ft_expression_type(v->type.dtype));
    ft_simt_put_element_name(p, v->operand[0], lane);
    ft_strbuf_add(&p->out, ")");
  }
}

// ft_add_f32(a, b)
static void put_combination(ft_simt_printer *p, const ft_kir_value *v, const char *lane) {
  ft_strbuf_printf(&p->out, "ft_%s_%s(", ft_expression_text(v->primitive, v->type.dtype),
                   ft_expression_type(v->type.dtype));
  ft_simt_put_element_name(p, v->operand[0], lane);
  ft_strbuf_add(&p->out, ", ");
  ft_simt_put_element_name(p, v->operand[1], lane);
  ft_strbuf_add(&p->out, ")");
}

static void put_shuffle(ft_simt_printer *p, const ft_kir_value *v, const char *lane) {
  char partner[48];
  if (!p->is_sim) {
    ft_strbuf_add(&p->out, "__shfl_xor_sync(0xffffffffu, ");
    ft_simt_put_element_name(p, v->operand[0], lane);
    ft_strbuf_printf(&p->out, ", %lld)", (long long)v->imm);
    return;
  }
  const char *thread = p->thread;
  snprintf(partner, sizeof partner, "%s ^ %lld", thread, (long long)v->imm);
  p->thread = partner;
  ft_simt_put_element_name(p, v->operand[0], lane);
  p->thread = thread;
}

static void put_lane_of(ft_simt_printer *p, const ft_kir_value *v) {
  char lane[24];
  snprintf(lane, sizeof lane, "%lld", (long long)v->imm);
  ft_simt_put_element_name(p, v->operand[0], lane);
}

// The right-hand side, for one lane, of everything but loads and folds.
void ft_simt_put_lane(ft_simt_printer *p, const ft_kir_value *v, const char *lane) {
  switch (v->op) {
    case FT_KIR_ELEMENT:
      put_constant(p, v);
      break;
    case FT_KIR_PRIMITIVE:
      put_primitive(p, v, lane);
      break;
    case FT_KIR_SPLAT:
      ft_simt_put_element_name(p, v->operand[0], lane);
      break;
    case FT_KIR_KEEP:
      ft_strbuf_printf(&p->out, "%s < %lld ? ", lane, (long long)v->imm);
      ft_simt_put_element_name(p, v->operand[1], lane);
      ft_strbuf_add(&p->out, " : ");
      ft_simt_put_element_name(p, v->operand[0], lane);
      break;
    case FT_KIR_LANE:
      put_lane_of(p, v);
      break;
    case FT_KIR_NARROW:
      ft_strbuf_printf(&p->out, "ft_round_%s(", ft_simt_half_name((ft_dtype)v->imm));
      ft_simt_put_element_name(p, v->operand[0], lane);
      ft_strbuf_add(&p->out, ")");
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
void ft_simt_open_lanes(ft_simt_printer *p, uint32_t from, uint32_t lanes) {
  if (lanes <= 1) {
    ft_simt_start_line(p);
    return;
  }
  if (!p->is_sim) {
    ft_simt_start_line(p);
    ft_strbuf_add(&p->out, "#pragma unroll\n");
  }
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "for (int l = %u; l < %u; l++) ", from, lanes);
}

const char *ft_simt_lane_of(uint32_t lanes) {
  return lanes > 1 ? "l" : "0";
}
