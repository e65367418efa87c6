#include "codegen/print_simt_half.h"

#include <string.h>

// Those called by others come first: a text is printed when what follows it, or the
// kernel, names it.
typedef struct function {
  const char *name, *cuda, *sim;
} function;

// Half to even below: what is cut off, less half of it (more for an odd rest), carries.
static const function functions[] = {
    {"ft_float_of",
     "FT_FN float ft_float_of(unsigned u) { return __uint_as_float(u); }\n",
     "FT_FN float ft_float_of(unsigned u) {\n"
     "  float f;\n"
     "  __builtin_memcpy(&f, &u, 4);\n"
     "  return f;\n"
     "}\n"},
    {"ft_bits_of", NULL,
     "FT_FN unsigned ft_bits_of(float f) {\n"
     "  unsigned u;\n"
     "  __builtin_memcpy(&u, &f, 4);\n"
     "  return u;\n"
     "}\n"},
    {"ft_widen_f16",
     "FT_FN float ft_widen_f16(unsigned short h) {\n"
     "  float f;\n"
     "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(h));\n"
     "  return f;\n"
     "}\n",
     "FT_FN float ft_widen_f16(unsigned short h) {\n"
     "  unsigned sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;\n"
     "  if (rest >= 0x7c00) return ft_float_of(sign | 0x7f800000u | (rest & 0x3ff) << 13 "
     "| (rest > 0x7c00 ? 0x400000u : 0));\n"
     "  float size = ft_float_of(rest << 13) * 0x1p112f;\n"
     "  return ft_float_of(sign | ft_bits_of(size));\n"
     "}\n"},
    {"ft_widen_bf16",
     "FT_FN float ft_widen_bf16(unsigned short h) {\n"
     "  return ft_float_of((unsigned)h << 16);\n"
     "}\n",
     "FT_FN float ft_widen_bf16(unsigned short h) {\n"
     "  return ft_float_of((unsigned)h << 16);\n"
     "}\n"},
    {"ft_narrow_f16",
     "FT_FN unsigned short ft_narrow_f16(float f) {\n"
     "  unsigned short h;\n"
     "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(f));\n"
     "  return h;\n"
     "}\n",
     "FT_FN unsigned short ft_narrow_f16(float f) {\n"
     "  unsigned u = ft_bits_of(f), sign = u >> 16 & 0x8000u, size = u & 0x7fffffffu;\n"
     "  if (size > 0x7f800000u) return (unsigned short)(sign | 0x7e00u);\n"
     "  if (size >= 0x47800000u) return (unsigned short)(sign | 0x7c00u);\n"
     "  unsigned code = size >> 23, shift = 13;\n"
     "  if (code < 113) {\n"  // below 2^-14: the leading one shifts in as well
     "    if (code < 102) return (unsigned short)sign;\n"
     "    size = (size & 0x7fffffu) | 0x800000u;\n"
     "    shift = 126 - code;\n"
     "  } else {\n"
     "    size -= 112u << 23;\n"
     "  }\n"
     "  size += (1u << (shift - 1)) - 1 + (size >> shift & 1);\n"
     "  return (unsigned short)(sign | size >> shift);\n"
     "}\n"},
    {"ft_narrow_bf16",
     "FT_FN unsigned short ft_narrow_bf16(float f) {\n"
     "  unsigned short h;\n"
     "  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(f));\n"
     "  return h;\n"
     "}\n",
     "FT_FN unsigned short ft_narrow_bf16(float f) {\n"
     "  unsigned u = ft_bits_of(f);\n"
     "  if ((u & 0x7fffffffu) > 0x7f800000u)\n"
     "    return (unsigned short)((u >> 16 & 0x8000u) | 0x7fc0u);\n"
     "  return (unsigned short)((u + 0x7fffu + (u >> 16 & 1)) >> 16);\n"
     "}\n"},
    {"ft_narrow2_f16",
     "FT_FN unsigned ft_narrow2_f16(float low, float high) {\n"
     "  unsigned u;\n"
     "  asm(\"cvt.rn.f16x2.f32 %0, %1, %2;\" : \"=r\"(u) : \"f\"(high), \"f\"(low));\n"
     "  return u;\n"
     "}\n",
     NULL},
    {"ft_narrow2_bf16",
     "FT_FN unsigned ft_narrow2_bf16(float low, float high) {\n"
     "  unsigned u;\n"
     "  asm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(u) : \"f\"(high), \"f\"(low));\n"
     "  return u;\n"
     "}\n",
     NULL},
#define ROUND(type)                            \
  "FT_FN float ft_round_" type                 \
  "(float f) {\n"                              \
  "  return ft_widen_" type "(ft_narrow_" type \
  "(f));\n"                                    \
  "}\n"
    {"ft_round_f16", ROUND("f16"), ROUND("f16")},
    {"ft_round_bf16", ROUND("bf16"), ROUND("bf16")},
#undef ROUND
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

const char *ft_simt_half_name(ft_dtype dtype) {
  return dtype == FT_F16 ? "f16" : dtype == FT_BF16 ? "bf16" : NULL;
}

// Whether |text| calls |name|.
static bool calls(const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *at = text; (at = strstr(at, name)); at++)
    if (at[length] == '(') return true;
  return false;
}

void ft_simt_half_prelude(const char *body, bool is_sim, ft_strbuf *out) {
  bool is_needed[FUNCTIONS] = {false};
  for (int i = FUNCTIONS; i-- > 0;) {
    is_needed[i] = calls(body, functions[i].name);
    for (int user = i + 1; user < FUNCTIONS && !is_needed[i]; user++) {
      const char *text = is_sim ? functions[user].sim : functions[user].cuda;
      is_needed[i] = is_needed[user] && text && calls(text, functions[i].name);
    }
  }
  for (int i = 0; i < FUNCTIONS; i++) {
    const char *text = is_sim ? functions[i].sim : functions[i].cuda;
    if (is_needed[i] && text) ft_strbuf_add(out, text);
  }
}
