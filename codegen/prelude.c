#include "codegen/prelude.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One function template of vector_math.inc.
typedef struct piece {
  const char *name;   // "exp_f32", or "load" when |types| is set
  const char *types;  // element types it exists for, "" when |name| has it
  const char *text;
} piece;

#define FLOATS "f32 f64"
#define INTEGERS "i32 i64 b8"
#define FT_PIECE(name, ...) {#name, "", #__VA_ARGS__},
#define FT_ANY(name, ...) {#name, FLOATS " " INTEGERS, #__VA_ARGS__},
#define FT_FLOAT(name, ...) {#name, FLOATS, #__VA_ARGS__},
#define FT_INTEGER(name, ...) {#name, INTEGERS, #__VA_ARGS__},
static const piece pieces[] = {
#include "codegen/vector_math.inc"
};
#undef FT_PIECE
#undef FT_ANY
#undef FT_FLOAT
#undef FT_INTEGER

// What the T.. tokens of a template stand for.
typedef struct element {
  const char *name, *mask, *bits, *c, *sign, *whole;
} element;

static const element elements[] = {
    {"f32", "i32", "u32", "float", "INT32_MIN", "8388608.0f"},
    {"f64", "i64", "u64", "double", "INT64_MIN", "4503599627370496.0"},
    {"i32", "i32", "u32", "int32_t", "", ""},
    {"i64", "i64", "u64", "int64_t", "", ""},
    {"b8", "s8", "b8", "uint8_t", "", ""},
};

enum {
  PIECES = sizeof pieces / sizeof *pieces,
  ELEMENTS = sizeof elements / sizeof *elements,
  SIZES = 8,  // 1 to 128 lanes
};

// What is needed so far.
typedef struct closure {
  ft_arena *arena;
  bool lanes[SIZES];
  char *text[PIECES][ELEMENTS][SIZES];  // expanded; NULL: not needed
} closure;

static const char lane_types[] =
    "typedef float f32xW __attribute__((vector_size(4 * LANES)));\n"
    "typedef double f64xW __attribute__((vector_size(8 * LANES)));\n"
    "typedef int32_t i32xW __attribute__((vector_size(4 * LANES)));\n"
    "typedef uint32_t u32xW __attribute__((vector_size(4 * LANES)));\n"
    "typedef int64_t i64xW __attribute__((vector_size(8 * LANES)));\n"
    "typedef uint64_t u64xW __attribute__((vector_size(8 * LANES)));\n"
    "typedef uint8_t b8xW __attribute__((vector_size(LANES)));\n"
    "typedef int8_t s8xW __attribute__((vector_size(LANES)));\n";

static const char head[] =
    "#include <stdint.h>\n"
    "#define FT_INLINE static inline __attribute__((always_inline))\n";

static int lanes_of(uint32_t size) {
  return 1 << size;
}

// The text that runs a call of oneDNN, for bodies that do.
#define FT_DNNL(...) #__VA_ARGS__,
static const char *const onednn_pieces[] = {
#include "codegen/onednn_runtime.inc"
};
#undef FT_DNNL

static const char onednn_head[] =
    "#include <dlfcn.h>\n"
    "#include <dnnl.h>\n"
    "#include <pthread.h>\n"
    "#include <string.h>\n"
    "#define FT_DNNL_QUOTED(x) #x\n"
    "#define FT_DNNL_TEXT(x) FT_DNNL_QUOTED(x)\n";

// ---- expanding a template ---------------------------------------------------------

static bool in_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

// "xW", "xH" or "x1" after a type letter: writes the lanes. Returns the characters used.
static size_t put_lanes(ft_strbuf *out, const char *at, uint32_t size) {
  if (at[0] != 'x' || in_word(at[2])) return 0;
  int lanes = at[1] == 'W' ? lanes_of(size) : at[1] == 'H' ? lanes_of(size - 1) : 0;
  if (at[1] == '1') lanes = 1;
  if (!lanes) return 0;
  ft_strbuf_printf(out, "x%d", lanes);
  return 2;
}

// One token of the template at |at|; returns the characters used, 0 when it is none.
static size_t put_token(ft_strbuf *out, const char *at, char before, const element *e,
                        uint32_t size) {
  struct {
    const char *token, *text;
  } const words[] = {{"TELEM", e->c}, {"TSIGN", e->sign}, {"TWHOLE", e->whole}};
  for (int i = 0; i < 3; i++) {
    size_t length = strlen(words[i].token);
    if (strncmp(at, words[i].token, length)) continue;
    ft_strbuf_add(out, words[i].text);
    return length;
  }
  if (!strncmp(at, "LANES", 5)) {
    ft_strbuf_printf(out, "%d", lanes_of(size));
    return 5;
  }
  if (isalnum((unsigned char)before)) return put_lanes(out, at, size);
  const char *type = *at == 'T'   ? e->name
                     : *at == 'M' ? e->mask
                     : *at == 'U' ? e->bits
                                  : 0;
  if (!type || at[1] != 'x' || !strchr("WH1", at[2]) || in_word(at[3])) return 0;
  ft_strbuf_add(out, type);
  return 1 + put_lanes(out, at + 1, size);
}

static char *expand(const char *text, const element *e, uint32_t size, ft_arena *arena) {
  ft_strbuf out = ft_strbuf_init(arena);
  char before = ' ';
  for (const char *at = text; *at; before = at[-1]) {
    size_t used = put_token(&out, at, before, e, size);
    if (!used) ft_strbuf_addn(&out, at, used = 1);
    at += used;
  }
  return out.failed ? NULL : out.text;
}

// ---- layout: stringified text has no lines -----------------------------------------

typedef struct layout {
  ft_strbuf out;
  int depth, parens;
  bool fresh;         // at the start of a line
  bool is_block[16];  // of the open braces
  int braces;
} layout;

static void put_char(layout *l, char c) {
  if (l->fresh && c == ' ') return;
  if (l->fresh) ft_strbuf_printf(&l->out, "%*s", 2 * l->depth, "");
  l->fresh = false;
  ft_strbuf_addn(&l->out, &c, 1);
}

static void end_line(layout *l) {
  ft_strbuf_add(&l->out, "\n");
  l->fresh = true;
}

// A brace after a blank opens a block, as in ") {"; otherwise a value, as in "(f32x4){}".
static void put_brace(layout *l, char c, char before) {
  if (c == '{') {
    bool opens = before == ' ';
    put_char(l, c);
    FT_ASSERT(l->braces < 16);
    l->is_block[l->braces++] = opens;
    if (!opens) return;
    l->depth++;
    end_line(l);
    return;
  }
  FT_ASSERT(l->braces > 0);
  bool closes = l->is_block[--l->braces];
  if (closes) l->depth--;
  put_char(l, c);
  if (closes) end_line(l);
}

static char *lay_out(const char *text, ft_arena *arena) {
  layout l = {.out = ft_strbuf_init(arena), .fresh = true};
  char before = '\n';
  for (const char *at = text; *at; before = *at++) {
    if (*at == '{' || *at == '}') {
      put_brace(&l, *at, before);
      continue;
    }
    l.parens += (*at == '(') - (*at == ')');
    put_char(&l, *at);
    if (*at == ';' && !l.parens) end_line(&l);
  }
  if (!l.fresh) end_line(&l);
  return l.out.failed ? NULL : l.out.text;
}

// ---- what is needed -----------------------------------------------------------------

static bool has_type(const char *types, const char *type) {
  const char *at = strstr(types, type);
  return at != NULL;
}

// The piece of |key| ("exp_f32", "load_i64") and its element type.
static bool find_piece(const char *key, size_t length, uint32_t *out_piece,
                       uint32_t *out_element) {
  const char *type = key + length;
  while (type > key && type[-1] != '_') type--;
  if (type == key) return false;
  size_t type_length = length - (size_t)(type - key), stem = (size_t)(type - key) - 1;
  for (uint32_t p = 0; p < PIECES; p++) {
    size_t name = strlen(pieces[p].name);
    bool whole =
        !*pieces[p].types && name == length && !strncmp(key, pieces[p].name, name);
    bool typed = *pieces[p].types && name == stem && !strncmp(key, pieces[p].name, name);
    if (!whole && !typed) continue;
    *out_piece = p;
    *out_element = 0;
    if (whole) return true;
    for (uint32_t e = 0; e < ELEMENTS; e++) {
      if (strlen(elements[e].name) != type_length) continue;
      if (strncmp(elements[e].name, type, type_length)) continue;
      *out_element = e;
      if (has_type(pieces[p].types, elements[e].name)) return true;
    }
  }
  return false;
}

static uint32_t size_of(long lanes) {
  uint32_t size = 0;
  while (size < SIZES && lanes_of(size) != lanes) size++;
  FT_ASSERT(size < SIZES);
  return size;
}

static bool need(closure *c, const char *text);

static bool need_piece(closure *c, const char *key, size_t length, uint32_t size) {
  uint32_t index, type;
  bool is_known = find_piece(key, length, &index, &type);
  if (!is_known) fprintf(stderr, "vector_math.inc has no %.*s\n", (int)length, key);
  FT_ASSERT(is_known);
  if (c->text[index][type][size]) return true;
  const char *text = pieces[index].text;
  bool is_last = !strncmp(key, "fold_", 5) && !size;
  if (is_last)
    text = ft_arena_printf(c->arena, "FT_INLINE Tx1 ft_%s_Tx1(Tx1 v) { return v; }",
                           pieces[index].name);
  char *raw = text ? expand(text, &elements[type], size, c->arena) : NULL;
  c->text[index][type][size] = raw;
  return raw && need(c, raw);
}

// "..x16": a type or function of 16 lanes; functions start with ft_.
static bool need_word(closure *c, const char *word, size_t length) {
  size_t digits = 0;
  while (digits < length && isdigit((unsigned char)word[length - 1 - digits])) digits++;
  if (!digits || digits == length || word[length - 1 - digits] != 'x') return true;
  bool is_call = !strncmp(word, "ft_", 3);
  size_t stem = length - digits - 1;
  bool is_type = stem == 2 || stem == 3;  // b8, f32
  if (!is_call && !(is_type && strchr("fiubs", *word))) return true;
  uint32_t size = size_of(strtol(word + length - digits, NULL, 10));
  c->lanes[size] = true;
  return !is_call || need_piece(c, word + 3, stem - 3, size);
}

static bool need(closure *c, const char *text) {
  while (*text) {
    if (!in_word(*text)) {
      text++;
      continue;
    }
    size_t length = 0;
    while (in_word(text[length])) length++;
    if (!need_word(c, text, length)) return false;
    text += length;
  }
  return true;
}

static void put_pieces(const closure *c, uint32_t size, ft_strbuf *out) {
  for (uint32_t p = 0; p < PIECES; p++) {
    for (uint32_t e = 0; e < ELEMENTS; e++) {
      const char *raw = c->text[p][e][size];
      const char *text = raw ? lay_out(raw, c->arena) : "";
      if (!text)
        out->failed = true;
      else
        ft_strbuf_add(out, text);
    }
  }
}

static void put_onednn(ft_arena *arena, ft_strbuf *out) {
  ft_strbuf_add(out, onednn_head);
  for (size_t i = 0; i < sizeof onednn_pieces / sizeof *onednn_pieces; i++) {
    const char *text = lay_out(onednn_pieces[i], arena);
    if (!text)
      out->failed = true;
    else
      ft_strbuf_add(out, text);
  }
}

const char *ft_prelude_for(const char *body, ft_arena *arena) {
  closure *c = FT_NEW(arena, closure);
  if (!c) return NULL;
  c->arena = arena;
  c->lanes[0] = true;  // single elements are everywhere
  if (!need(c, body)) return NULL;
  ft_strbuf out = ft_strbuf_init(arena);
  ft_strbuf_add(&out, head);
  for (uint32_t size = 0; size < SIZES; size++) {
    if (!c->lanes[size]) continue;
    const char *types = expand(lane_types, &elements[0], size, arena);
    if (!types) return NULL;
    ft_strbuf_add(&out, types);
  }
  // Fewer lanes first: a fold of 16 calls a fold of 8.
  for (uint32_t size = 0; size < SIZES; size++) put_pieces(c, size, &out);
  if (strstr(body, "ft_dnnl_run(")) put_onednn(arena, &out);
  return out.failed ? NULL : out.text;
}
