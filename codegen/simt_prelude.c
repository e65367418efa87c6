// Templates: $T the C type, $N the name of the type (f32), $S the suffix of libm's
// functions. NaN and infinity behave as in graph/semantics: a maximum keeps NaN, an
// integer division by zero gives 0, a cast saturates and makes 0 of NaN.
#include "codegen/simt_prelude.h"

#include <ctype.h>
#include <string.h>

#include "codegen/kir.h"

typedef struct element {
  const char *name, *c, *suffix;
  ft_dtype dtype;
  bool is_float;
} element;

static const element elements[] = {
    {"f32", "float", "f", FT_F32, true},         {"f64", "double", "", FT_F64, true},
    {"i32", "int", "", FT_I32, false},           {"i64", "long long", "", FT_I64, false},
    {"b8", "unsigned char", "", FT_BOOL, false},
};

enum { ELEMENTS = sizeof elements / sizeof *elements };

// Which element types a template is for.
typedef enum kinds { FLOATS = 1, WHOLES = 2, TRUTHS = 4, ALL = 7 } kinds;

typedef struct piece {
  const char *name;
  kinds kinds;
  const char *text;
} piece;

#define UNARY(name, kinds, text) \
  { name, kinds, "FT_FN $T ft_" name "_$N($T a) { " text " }\n" }
#define BINARY(name, kinds, text) \
  { name, kinds, "FT_FN $T ft_" name "_$N($T a, $T b) { " text " }\n" }
#define TRUTH(name, text) \
  { name, ALL, "FT_FN unsigned char ft_" name "_$N($T a, $T b) { return " text "; }\n" }
#define WRAPPED "(unsigned long long)"  // overflow is defined

// Pieces call only pieces above them.
static const piece pieces[] = {
    UNARY("neg", WHOLES, "return ($T)(0 - " WRAPPED "a);"),
    UNARY("abs", FLOATS, "return fabs$S(a);"),
    UNARY("abs", WHOLES, "return a < 0 ? ($T)(0 - " WRAPPED "a) : a;"),
    UNARY("sqrt", FLOATS, "return sqrt$S(a);"),
    UNARY("exp", FLOATS, "return exp$S(a);"),
    UNARY("log", FLOATS, "return log$S(a);"),
    UNARY("erf", FLOATS, "return erf$S(a);"),
    UNARY("tanh", FLOATS, "return tanh$S(a);"),
    UNARY("sigmoid", FLOATS, "return 1 / (1 + exp$S(-a));"),
    UNARY("sin", FLOATS, "return sin$S(a);"),
    UNARY("cos", FLOATS, "return cos$S(a);"),
    UNARY("floor", FLOATS, "return floor$S(a);"),
    UNARY("ceil", FLOATS, "return ceil$S(a);"),
    UNARY("round", FLOATS, "return rint$S(a);"),
    UNARY("sign", FLOATS | WHOLES, "return a > 0 ? ($T)1 : a < 0 ? ($T)-1 : a;"),
    UNARY("relu", ALL, "return a < 0 ? ($T)0 : a;"),
    UNARY("not", TRUTHS, "return a == 0;"),
    BINARY("add", FLOATS, "return a + b;"),
    BINARY("mul", FLOATS, "return a * b;"),
    BINARY("add", WHOLES, "return ($T)(" WRAPPED "a + " WRAPPED "b);"),
    BINARY("sub", WHOLES, "return ($T)(" WRAPPED "a - " WRAPPED "b);"),
    BINARY("mul", WHOLES, "return ($T)(" WRAPPED "a * " WRAPPED "b);"),
    BINARY("div", WHOLES,
           "return b == 0 ? 0 : b == -1 ? ($T)(0 - " WRAPPED "a) : a / b;"),
    BINARY("fmod", FLOATS, "return fmod$S(a, b);"),
    BINARY("fmod", WHOLES, "return b == 0 || b == -1 ? 0 : a % b;"),
    BINARY("pow", FLOATS, "return pow$S(a, b);"),
    BINARY("pow", WHOLES,
           "unsigned long long f = " WRAPPED "a, p = 1; "
           "if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0; "
           "for (; b; b >>= 1) { if (b & 1) p *= f; f *= f; } return ($T)p;"),
    BINARY("max", FLOATS, "return a > b || a != a ? a : b;"),
    BINARY("min", FLOATS, "return a < b || a != a ? a : b;"),
    BINARY("max", WHOLES | TRUTHS, "return a > b ? a : b;"),
    BINARY("min", WHOLES | TRUTHS, "return a < b ? a : b;"),
    BINARY("and", TRUTHS, "return a & b;"),
    BINARY("or", TRUTHS, "return a | b;"),
    TRUTH("equal", "a == b"),
    TRUTH("less", "a < b"),
    TRUTH("less_equal", "a <= b"),
    {"where", ALL,
     "FT_FN $T ft_where_$N(unsigned char c, $T a, $T b) { return c ? a : b; }\n"},
    {"cast_f64", FLOATS, "FT_FN $T ft_cast_f64_$N(double a) { return ($T)a; }\n"},
    {"cast_f32", FLOATS, "FT_FN $T ft_cast_f32_$N(float a) { return ($T)a; }\n"},
    {"cast_i32", FLOATS | WHOLES, "FT_FN $T ft_cast_i32_$N(int a) { return ($T)a; }\n"},
    {"cast_i64", FLOATS | WHOLES,
     "FT_FN $T ft_cast_i64_$N(long long a) { return ($T)a; }\n"},
    {"cast_b8", FLOATS | WHOLES,
     "FT_FN $T ft_cast_b8_$N(unsigned char a) { return ($T)a; }\n"},
    {"cast_f32", TRUTHS, "FT_FN $T ft_cast_f32_$N(float a) { return a != 0; }\n"},
    {"cast_f64", TRUTHS, "FT_FN $T ft_cast_f64_$N(double a) { return a != 0; }\n"},
    {"cast_i32", TRUTHS, "FT_FN $T ft_cast_i32_$N(int a) { return a != 0; }\n"},
    {"cast_i64", TRUTHS, "FT_FN $T ft_cast_i64_$N(long long a) { return a != 0; }\n"},
    {"cast_f64_i64", ALL,
     "FT_FN long long ft_cast_f64_i64(double a) { "
     "return a != a ? 0 : a >= 9223372036854775808.0 ? 0x7fffffffffffffffLL : "
     "a <= -9223372036854775808.0 ? -0x7fffffffffffffffLL - 1 : (long long)a; }\n"},
    {"cast_f64_i32", ALL,
     "FT_FN int ft_cast_f64_i32(double a) { "
     "return a != a ? 0 : a >= 2147483647.0 ? 0x7fffffff : "
     "a <= -2147483648.0 ? -0x7fffffff - 1 : (int)a; }\n"},
    {"cast_f32_i64", ALL,
     "FT_FN long long ft_cast_f32_i64(float a) { return ft_cast_f64_i64(a); }\n"},
    {"cast_f32_i32", ALL,
     "FT_FN int ft_cast_f32_i32(float a) { return ft_cast_f64_i32(a); }\n"},
};
#undef UNARY
#undef BINARY
#undef TRUTH
#undef WRAPPED

enum { PIECES = sizeof pieces / sizeof *pieces };

const char *ft_simt_c_type(ft_dtype dtype) {
  for (int i = 0; i < ELEMENTS; i++) {
    if (elements[i].dtype == ft_kir_math_dtype(dtype)) return elements[i].c;
  }
  return NULL;
}

const char *ft_simt_stored_type(ft_dtype dtype) {
  return ft_kir_math_dtype(dtype) == dtype ? ft_simt_c_type(dtype) : "unsigned short";
}

static bool fits(const piece *p, const element *e) {
  bool names_type = strstr(p->text, "$N") != NULL;
  if (!names_type) return e == elements;  // one text for all
  if (e->is_float) return p->kinds & FLOATS;
  return p->kinds & (e->dtype == FT_BOOL ? TRUTHS : WHOLES);
}

static void expand(const piece *p, const element *e, ft_strbuf *out) {
  for (const char *at = p->text; *at; at++) {
    if (*at != '$') {
      ft_strbuf_addn(out, at, 1);
      continue;
    }
    at++;
    ft_strbuf_add(out, *at == 'T' ? e->c : *at == 'N' ? e->name : e->suffix);
  }
}

// Whether |body| has the whole word ft_NAME or ft_NAME_TYPE.
static bool is_named(const char *body, const piece *p, const element *e) {
  bool names_type = strstr(p->text, "$N") != NULL;
  size_t stem = strlen(p->name), type = strlen(e->name);
  for (const char *at = body; (at = strstr(at, "ft_")); at++) {
    const char *end = at + 3;
    if (strncmp(end, p->name, stem)) continue;
    end += stem;
    if (names_type) {
      if (*end != '_' || strncmp(end + 1, e->name, type)) continue;
      end += 1 + type;
    }
    if (!isalnum((unsigned char)*end) && *end != '_') return true;
  }
  return false;
}

void ft_simt_prelude_for(const char *body, ft_strbuf *out) {
  bool is_needed[PIECES][ELEMENTS] = {{false}};
  for (int p = 0; p < PIECES; p++)
    for (int e = 0; e < ELEMENTS; e++)
      is_needed[p][e] =
          fits(&pieces[p], &elements[e]) && is_named(body, &pieces[p], &elements[e]);
  for (int p = PIECES; p-- > 0;) {  // users come after what they use
    for (int q = 0; q < p; q++)
      for (int f = 0; f < ELEMENTS; f++)
        if (is_needed[p][0] && fits(&pieces[q], &elements[f]) &&
            is_named(strchr(pieces[p].text, '{'), &pieces[q], &elements[f]))
          is_needed[q][f] = true;
  }
  for (int p = 0; p < PIECES; p++)
    for (int e = 0; e < ELEMENTS; e++)
      if (is_needed[p][e]) expand(&pieces[p], &elements[e], out);
}
