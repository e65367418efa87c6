// Asynchronous copies: cp.async from sm_80 on, calls of ft_sim_state in SIM.
//
// cp.async.cg (past L1) takes 16 bytes only, .ca 4 and 8 as well. With a source size of 0
// nothing is read and zeros arrive. The "memory" keeps the compiler from moving accesses
// across them.
#include <string.h>

#include "codegen/print_simt_parts.h"

#define COPY(bytes, cache)                                                   \
  {                                                                          \
    "ft_copy_" #bytes "(",                                                   \
        "FT_FN void ft_copy_" #bytes                                         \
        "(void *to, const void *from) { asm volatile(\"cp.async." cache      \
        ".shared.global [%0], [%1], " #bytes                                 \
        ";\" :: \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(from) " \
        ": \"memory\"); }\n"                                                 \
  }
#define COPY_IF(bytes, cache)                                                           \
  {                                                                                     \
    "ft_copy_if_" #bytes "(",                                                           \
        "FT_FN void ft_copy_if_" #bytes                                                 \
        "(bool is_copied, void *to, const void *from) { asm volatile(\"cp.async." cache \
        ".shared.global [%0], [%1], " #bytes                                            \
        ", %2;\" :: \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(from), "       \
        "\"r\"(is_copied ? " #bytes " : 0) : \"memory\"); }\n"                          \
  }

static const struct {
  const char *call, *text;
} pieces[] = {
    COPY(4, "ca"),    COPY(8, "ca"),    COPY(16, "cg"),
    COPY_IF(4, "ca"), COPY_IF(8, "ca"), COPY_IF(16, "cg"),
};

void ft_simt_copy_prelude(const char *body, ft_strbuf *out) {
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
    if (strstr(body, pieces[i].call)) ft_strbuf_add(out, pieces[i].text);
}

static void put_cuda_copy(ft_simt_printer *p, const ft_kir_stmt *s) {
  size_t bytes = s->lanes * ft_dtype_bytes(p->kir->buffer[s->buffer].dtype);
  ft_strbuf_printf(&p->out, "ft_copy_%s%zu(", s->value ? "if_" : "", bytes);
  if (s->value) {
    ft_simt_put_index(p, s->value);
    ft_strbuf_add(&p->out, ", ");
  }
  ft_strbuf_printf(&p->out, "&b%u[", s->buffer);
  ft_simt_put_index(p, s->index);
  ft_strbuf_printf(&p->out, "], &b%u[", s->source);
  ft_simt_put_index(p, s->source_index);
  ft_strbuf_add(&p->out, "]);\n");
}

// "5, 128, index": a buffer, how many elements it has, and the place in it.
static void put_sim_end(ft_simt_printer *p, uint32_t buffer, ft_kir_id index) {
  ft_strbuf_printf(&p->out, "%u, %lld, ", buffer,
                   (long long)p->kir->buffer[buffer].count);
  ft_simt_put_index(p, index);
}

static void put_sim_copy(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_strbuf_printf(&p->out, "ft_sim_copy(s, b%u, b%uc, ", s->buffer, s->buffer);
  put_sim_end(p, s->buffer, s->index);
  ft_strbuf_printf(&p->out, ", b%u, ", s->source);
  put_sim_end(p, s->source, s->source_index);
  ft_strbuf_printf(&p->out, ", %u, sizeof *b%u, ", s->lanes, s->buffer);
  if (s->value)
    ft_simt_put_index(p, s->value);
  else
    ft_strbuf_add(&p->out, "1");
  ft_strbuf_printf(&p->out, ", %s);\n", p->thread);
}

void ft_simt_put_copy(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_start_line(p);
  if (p->is_sim)
    put_sim_copy(p, s);
  else
    put_cuda_copy(p, s);
}

void ft_simt_put_commit(ft_simt_printer *p, const ft_kir_stmt *s) {
  (void)s;
  ft_simt_start_line(p);
  if (p->is_sim)
    ft_strbuf_printf(&p->out, "s->commit(s, %s);\n", p->thread);
  else
    ft_strbuf_add(&p->out, "asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n");
}

void ft_simt_put_wait(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_start_line(p);
  if (p->is_sim)
    ft_strbuf_printf(&p->out, "s->wait(s, %d, %s);\n", (int)s->code, p->thread);
  else
    ft_strbuf_printf(&p->out,
                     "asm volatile(\"cp.async.wait_group %d;\" ::: \"memory\");\n",
                     (int)s->code);
}
