// The C text of a call: tables of what onednn_runtime.inc is to run.
#include "codegen/onednn.h"
#include "core/strbuf.h"

static void put_numbers(ft_strbuf *out, const int64_t *number, int count) {
  ft_strbuf_add(out, "{");
  for (int i = 0; i < count; i++)
    ft_strbuf_printf(out, "%s%lld", i ? ", " : "", (long long)number[i]);
  ft_strbuf_add(out, count ? "}" : "0}");
}

static void put_operand(ft_strbuf *out, const ft_onednn_operand *o, int post) {
  if (*o->role)
    ft_strbuf_printf(out, "      {%s, ", o->role);
  else
    ft_strbuf_printf(out, "      {DNNL_ARG_ATTR_MULTIPLE_POST_OP(%d) | DNNL_ARG_SRC_1, ",
                     post);
  ft_strbuf_printf(out, "%u, %lld, %d, ", o->argument, (long long)o->offset, o->rank);
  put_numbers(out, o->dim, o->rank);
  ft_strbuf_add(out, ", ");
  put_numbers(out, o->stride, o->rank);
  ft_strbuf_add(out, "},\n");
}

static int post_of(const ft_onednn_call *call, uint32_t operand) {
  for (uint32_t i = 0; i < call->post_count; i++)
    if (call->operand_of[i] == (int)operand) return (int)i;
  return -1;
}

static void put_operands(ft_strbuf *out, const ft_onednn_call *call) {
  ft_strbuf_add(out,
                "  // role, buffer, offset, rank, dims, strides\n"
                "  static const ft_dnnl_operand operands[] = {\n");
  for (uint32_t i = 0; i < call->operand_count; i++)
    put_operand(out, &call->operand[i], post_of(call, i));
  ft_strbuf_add(out, "  };\n");
}

static void put_posts(ft_strbuf *out, const ft_onednn_call *call) {
  ft_strbuf_add(out,
                "  // function, alpha, beta, operand\n"
                "  static const ft_dnnl_post posts[] = {\n");
  for (uint32_t i = 0; i < call->post_count; i++) {
    const ft_onednn_post *p = &call->post[i];
    ft_strbuf_printf(out, "      {%s, %.9g, %.9g, %d},\n", p->algorithm, p->alpha,
                     p->beta, call->operand_of[i]);
  }
  ft_strbuf_add(out, "  };\n");
}

static void put_window(ft_strbuf *out, const char *name, const int64_t *number,
                       int count) {
  ft_strbuf_printf(out, "      .%s = ", name);
  put_numbers(out, number, count);
  ft_strbuf_add(out, ",\n");
}

static void put_call(ft_strbuf *out, const ft_onednn_call *call, int64_t threads,
                     bool is_packed) {
  ft_strbuf_printf(out,
                   "  static const ft_dnnl_call call = {\n"
                   "      .kind = %s,\n      .threads = %lld,\n      .packed = %d,\n"
                   "      .operands = %u,\n      .operand = operands,\n",
                   call->primitive, (long long)threads, is_packed, call->operand_count);
  if (call->post_count)
    ft_strbuf_printf(out, "      .posts = %u,\n      .post = posts,\n", call->post_count);
  if (call->spatial) {
    put_window(out, "window", call->window, call->spatial);
    put_window(out, "strides", call->stride, call->spatial);
    put_window(out, "dilates", call->dilation, call->spatial);
    put_window(out, "before", call->before, call->spatial);
    put_window(out, "after", call->after, call->spatial);
  }
  ft_strbuf_add(out, "  };\n");
}

const char *ft_onednn_text(const ft_onednn_call *call, int64_t threads, bool is_packed,
                           ft_arena *arena) {
  ft_strbuf out = ft_strbuf_init(arena);
  ft_strbuf_add(&out, "{\n  (void)scalars, (void)block, (void)thread, (void)scratch;\n");
  put_operands(&out, call);
  if (call->post_count) put_posts(&out, call);
  put_call(&out, call, threads, is_packed);
  ft_strbuf_add(&out,
                "  static ft_dnnl_state state;\n"
                "  return ft_dnnl_run(&call, &state, buffers);\n}\n");
  return out.failed ? NULL : out.text;
}
