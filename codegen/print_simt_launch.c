// What launching takes, read off the kernel, and the kernel's head.
#include <limits.h>

#include "codegen/print_simt_parts.h"
#include "codegen/simt_prelude.h"

enum { STATIC_SHARED_BYTES = 48 << 10 };

// ---- what launching takes

static bool has_kind(const ft_kir_block *block, ft_kir_kind kind) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next)
    if (s->kind == kind || has_kind(&s->body, kind) || has_kind(&s->otherwise, kind))
      return true;
  return false;
}

static void note_loops(ft_simt_printer *p, const ft_kir_block *block) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    if (s->kind == FT_KIR_FOR) {
      int64_t end = 1;
      p->loop_of[s->value] = s;
      ft_kir_is_number(p->kir, s->end, &end);
      if (s->loop == FT_KIR_GRID) p->launch.grid = end;
      if (s->loop == FT_KIR_THREAD) p->launch.threads = (uint32_t)end;
    }
    note_loops(p, &s->body);
    note_loops(p, &s->otherwise);
  }
}

static const char *note_buffers(ft_simt_printer *p) {
  int64_t most = 0;
  for (uint32_t i = 1; i < p->kir->buffer_count; i++) {
    const ft_kir_buffer *b = &p->kir->buffer[i];
    if (b->space == FT_KIR_SCRATCH) return "scratch memory is for plain C";
    if (!ft_simt_c_type(b->dtype)) return "a dtype without kernels";
    if (b->count > most) most = b->count;
  }
  // Items past the end are counted before they are refused: a vector for each thread.
  int64_t reach = p->launch.grid * (int64_t)p->launch.threads;
  p->launch.has_wide_index = most > INT32_MAX / 2 || reach > INT32_MAX / 64;
  return NULL;
}

static uint64_t shared_bytes(const ft_simt_printer *p, const ft_kir_stmt *s) {
  const ft_kir_buffer *b = &p->kir->buffer[s->buffer];
  if (s->kind != FT_KIR_ALLOC || b->space != FT_KIR_SHARED) return 0;
  return ((uint64_t)b->count * ft_dtype_bytes(b->dtype) + 15) / 16 * 16;
}

// A block takes one of the two branches, and no other later: they may share bytes. In a
// loop it may take the other one before all threads are out of this one.
static bool is_exclusive(const ft_simt_printer *p, const ft_kir_stmt *s, bool is_once) {
  return s->kind == FT_KIR_IF && is_once &&
         p->kir->value[s->value].level != FT_KIR_PER_THREAD;
}

// Places the shared buffers of |block| from |from| on; where they end. |is_once|: a block
// comes here once.
static uint64_t place_shared(ft_simt_printer *p, const ft_kir_block *block, uint64_t from,
                             bool is_once) {
  for (const ft_kir_stmt *s = block->first; s; s = s->next) {
    bool is_loop =
        s->kind == FT_KIR_FOR && s->loop != FT_KIR_GRID && s->loop != FT_KIR_THREAD;
    bool is_inner_once = is_once && !is_loop;
    if (shared_bytes(p, s)) p->offset[s->buffer] = from;
    from += shared_bytes(p, s);
    uint64_t end = place_shared(p, &s->body, from, is_inner_once);
    bool shares = is_exclusive(p, s, is_once);
    uint64_t other = place_shared(p, &s->otherwise, shares ? from : end, is_inner_once);
    p->is_pooled |= shares && end > from && other > from;
    from = end > other ? end : other;
  }
  return from;
}

static void note_shared(ft_simt_printer *p) {
  p->launch.shared_bytes = place_shared(p, &p->kir->body, 0, true);
  p->launch.is_shared_dynamic = p->launch.shared_bytes > STATIC_SHARED_BYTES;
  p->is_pooled |= p->launch.is_shared_dynamic;
}

// A copy moves its bytes at once: at both ends they start at a multiple of their number.
static const char *note_copies(const ft_simt_printer *p, const ft_kir_block *block) {
  const char *wrong = NULL;
  for (const ft_kir_stmt *s = block->first; s && !wrong; s = s->next) {
    if (s->kind == FT_KIR_COPY && (ft_simt_divisor(p, s->index) % s->lanes ||
                                   ft_simt_divisor(p, s->source_index) % s->lanes))
      wrong = ft_arena_printf(
          p->kir->arena, "nothing proves the alignment of copies from buffer %u to %u",
          s->source, s->buffer);
    if (!wrong) wrong = note_copies(p, &s->body);
    if (!wrong) wrong = note_copies(p, &s->otherwise);
  }
  return wrong;
}

const char *ft_simt_measure(ft_simt_printer *p) {
  const ft_kir_block *body = &p->kir->body;
  note_loops(p, body);
  p->launch.workspace_bytes = p->kir->workspace_bytes;
  if (has_kind(body, FT_KIR_TURN)) return "squares are turned in plain C only";
  p->launch.has_copies = has_kind(body, FT_KIR_COPY);
  note_shared(p);
  const char *wrong = note_copies(p, body);
  return wrong ? wrong : note_buffers(p);
}

// ---- the head

static bool is_argument(const ft_kir_buffer *b) {
  return b->space == FT_KIR_GLOBAL || b->space == FT_KIR_WORKSPACE;
}

static uint32_t argument_count(const ft_kir *kir) {
  uint32_t count = 0;
  for (uint32_t i = 1; i < kir->buffer_count; i++) {
    const ft_kir_buffer *b = &kir->buffer[i];
    if (is_argument(b) && b->argument + 1 > count) count = b->argument + 1;
  }
  return count;
}

// A buffer at ABI position |argument|; 0: the kernel has no use for that one.
static uint32_t buffer_of(const ft_kir *kir, uint32_t argument) {
  for (uint32_t i = 1; i < kir->buffer_count; i++) {
    const ft_kir_buffer *b = &kir->buffer[i];
    if (is_argument(b) && b->argument == argument) return i;
  }
  return 0;
}

static void put_argument(ft_simt_printer *p, uint32_t argument) {
  uint32_t id = buffer_of(p->kir, argument);
  const ft_kir_buffer *b = &p->kir->buffer[id];
  if (!id)
    ft_strbuf_printf(&p->out, ", const void *a%u", argument);
  else if (b->space == FT_KIR_WORKSPACE)
    ft_strbuf_printf(&p->out, ", unsigned char *__restrict__ a%u", argument);
  else
    ft_strbuf_printf(&p->out, ", %s%s *__restrict__ b%u", b->is_written ? "" : "const ",
                     ft_simt_stored_type(b->dtype), id);
}

// The parts of the workspace: b3 at its offset from |base|.
static void put_workspace(ft_simt_printer *p, const char *base) {
  for (uint32_t i = 1; i < p->kir->buffer_count; i++) {
    const ft_kir_buffer *b = &p->kir->buffer[i];
    if (b->space != FT_KIR_WORKSPACE) continue;
    const char *type = ft_simt_stored_type(b->dtype);
    ft_strbuf_printf(&p->out, "  %s *const b%u = (%s *)(", type, i, type);
    ft_strbuf_printf(&p->out, base, b->argument);
    ft_strbuf_printf(&p->out, " + %llu);\n", (unsigned long long)b->offset);
  }
}

static void put_cuda_head(ft_simt_printer *p, const char *name) {
  ft_strbuf_printf(&p->out, "extern \"C\" __global__ void __launch_bounds__(%u",
                   p->launch.threads);
  if (p->kir->min_blocks) ft_strbuf_printf(&p->out, ", %u", p->kir->min_blocks);
  ft_strbuf_printf(&p->out, ")\n%s(int *ft_status", name);
  for (uint32_t a = 0; a < argument_count(p->kir); a++) put_argument(p, a);
  ft_strbuf_add(&p->out, ") {\n  (void)ft_status;\n");
  put_workspace(p, "a%u");
  if (!p->is_pooled) return;
  ft_strbuf_printf(&p->out, "  %s__shared__ __align__(16) unsigned char ft_shared[",
                   p->launch.is_shared_dynamic ? "extern " : "");
  if (!p->launch.is_shared_dynamic)
    ft_strbuf_printf(&p->out, "%llu", (unsigned long long)p->launch.shared_bytes);
  ft_strbuf_add(&p->out, "];\n");
}

// Shared memory and its shadows live as long as the block: copies to it may be under way
// when its scope ends.
static void put_sim_shared(ft_simt_printer *p) {
  for (uint32_t i = 1; i < p->kir->buffer_count; i++) {
    const ft_kir_buffer *b = &p->kir->buffer[i];
    if (b->space != FT_KIR_SHARED) continue;
    ft_strbuf_printf(&p->out, "  %s b%u[%lld]; ft_sim_cell b%uc[%lld] = {{0}};\n",
                     ft_simt_stored_type(b->dtype), i, (long long)b->count, i,
                     (long long)b->count);
  }
}

static void put_sim_head(ft_simt_printer *p, const char *name) {
  ft_strbuf_printf(&p->out,
                   "int32_t %s(void *const *buffers, ft_sim_state *s, uint64_t block) {\n"
                   "  (void)buffers, (void)s, (void)block;\n",
                   name);
  for (uint32_t i = 1; i < p->kir->buffer_count; i++) {
    const ft_kir_buffer *b = &p->kir->buffer[i];
    if (b->space != FT_KIR_GLOBAL) continue;
    ft_strbuf_printf(&p->out, "  %s%s *b%u = buffers[%u];\n",
                     b->is_written ? "" : "const ", ft_simt_stored_type(b->dtype), i,
                     b->argument);
  }
  put_workspace(p, "(char *)buffers[%u]");
  put_sim_shared(p);
}

void ft_simt_put_head(ft_simt_printer *p, const char *name) {
  if (p->is_sim)
    put_sim_head(p, name);
  else
    put_cuda_head(p, name);
}
