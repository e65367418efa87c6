// SIM: a block's threads run one after the other from collective to collective.
#include "codegen/print_simt_parts.h"

static bool is_collective(const ft_simt_printer *p, const ft_kir_stmt *s) {
  if (s->kind == FT_KIR_LET) return ft_simt_value_of(p, s->value)->op == FT_KIR_SHUFFLE;
  return s->kind == FT_KIR_BARRIER || s->kind == FT_KIR_GRID_DONE;
}

static bool has_collective(const ft_simt_printer *p, const ft_kir_stmt *s) {
  if (is_collective(p, s)) return true;
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
  ft_simt_close(p);
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
    if (!is_shared_alloc(p, s)) ft_simt_put_stmt(p, s);
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

static void put_for(ft_simt_printer *p, const ft_kir_stmt *s) {
  put_agreement(p, s->begin);
  put_agreement(p, s->end);
  put_agreement(p, s->step);
  ft_simt_open_for(p, s);
  put_together(p, &s->body);
  ft_simt_close(p);
}

static void put_if(ft_simt_printer *p, const ft_kir_stmt *s) {
  put_agreement(p, s->value);
  ft_simt_open_if(p, s);
  put_together(p, &s->body);
  ft_simt_start_line(p);
  ft_strbuf_add(&p->out, "} else {\n");
  put_together(p, &s->otherwise);
  ft_simt_close(p);
}

static void put_grid_done(ft_simt_printer *p, const ft_kir_stmt *s) {
  put_agreement(p, s->index);
  put_agreement(p, s->end);
  ft_simt_open_grid_done(p, s);
  put_together(p, &s->body);
  ft_simt_close_grid_done(p);
}

static void put_let(ft_simt_printer *p, const ft_kir_stmt *s) {
  put_stretch(p, s, s->next);
}

// What holds a collective, or is one.
static void (*const putters[])(ft_simt_printer *p, const ft_kir_stmt *s) = {
    [FT_KIR_LET] = put_let,
    [FT_KIR_FOR] = put_for,
    [FT_KIR_IF] = put_if,
    [FT_KIR_BARRIER] = ft_simt_put_stmt,
    [FT_KIR_GRID_DONE] = put_grid_done,
};

// A block whose threads all arrive.
static void put_together(ft_simt_printer *p, const ft_kir_block *block) {
  p->depth++;
  for (const ft_kir_stmt *s = block->first; s;) {
    if (has_collective(p, s)) {
      putters[s->kind](p, s);
      s = s->next;
      continue;
    }
    const ft_kir_stmt *end = s;
    while (end && !has_collective(p, end)) end = end->next;
    put_stretch(p, s, end);
    s = end;
  }
  p->depth--;
  ft_simt_end_scope(p, block);
}

void ft_simt_put_threads(ft_simt_printer *p, const ft_kir_stmt *s) {
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "ft_index v%u[%u];\n", s->value, p->launch.threads);
  p->is_spread[s->value] = true;
  open_threads(p);
  ft_simt_start_line(p);
  ft_strbuf_printf(&p->out, "v%u[t] = t;\n", s->value);
  close_threads(p);
  put_together(p, &s->body);
}
