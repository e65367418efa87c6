#include "measure/program_wire.h"

enum { BUFFER_BYTES = 1 + 1 + 8 + 8 + 8, STEP_BYTES = 4 * 7 + 8 * 2, ALIGN = 64 };

static ft_status validate_buffer(const ft_program *p, uint32_t i, ft_error *error) {
  const ft_program_buffer *b = &p->buffer[i];
  if ((unsigned)b->kind > FT_BUFFER_INTERMEDIATE || (unsigned)b->dtype >= FT_DTYPE_COUNT)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "program '%s': buffer %u has kind %d, dtype %d",
            p->name, i, (int)b->kind, (int)b->dtype);
  if (b->kind != FT_BUFFER_INTERMEDIATE || b->offset == UINT64_MAX) return FT_OK;
  if (b->offset % ALIGN != 0 || b->offset > p->workspace_bytes ||
      b->bytes > p->workspace_bytes - b->offset)
    FT_FAIL(
        error, FT_INVALID_ARGUMENT,
        "program '%s': buffer %u, %llu bytes at offset %llu, is misaligned or outside "
        "the workspace of %llu bytes",
        p->name, i, (unsigned long long)b->bytes, (unsigned long long)b->offset,
        (unsigned long long)p->workspace_bytes);
  return FT_OK;
}

static ft_status validate_step(const ft_program *p, uint32_t i, ft_error *error) {
  const ft_program_step *s = &p->step[i];
  const ft_module *m = s->module;
  if (!m || m->outcome != FT_OUTCOME_OK || !m->path || !m->entry || !m->path[0] ||
      !m->entry[0])
    FT_FAIL(error, FT_INVALID_ARGUMENT, "program '%s': step %u has no built module",
            p->name, i);
  if (m->grid == 0 || m->threads == 0)
    FT_FAIL(error, FT_INVALID_ARGUMENT, "program '%s': step %u has grid %u, threads %u",
            p->name, i, m->grid, m->threads);
  for (uint32_t a = 0; a < s->argument_count; a++)
    if (s->argument[a] >= p->buffer_count)
      FT_FAIL(error, FT_INVALID_ARGUMENT,
              "program '%s': step %u, argument %u is buffer %u of %u", p->name, i, a,
              s->argument[a], p->buffer_count);
  return FT_OK;
}

ft_status ft_program_validate(const ft_program *program, ft_error *error) {
  for (uint32_t i = 0; i < program->buffer_count; i++)
    FT_TRY(validate_buffer(program, i, error));
  for (uint32_t i = 0; i < program->step_count; i++)
    FT_TRY(validate_step(program, i, error));
  return FT_OK;
}

static void encode_step(const ft_program_step *s, ft_strbuf *out) {
  const ft_module *m = s->module;
  ft_wire_put_text(out, m->entry);
  ft_wire_put_text(out, m->path);
  ft_wire_put_text(out, m->link ? m->link : "");
  ft_wire_put_u32(out, m->grid);
  ft_wire_put_u32(out, m->threads);
  ft_wire_put_u64(out, m->scratch_bytes);
  ft_wire_put_u64(out, m->workspace_bytes);
  ft_wire_put_u32(out, m->scalar_count);
  for (uint32_t i = 0; i < m->scalar_count; i++)
    ft_wire_put_u64(out, (uint64_t)m->scalar[i]);
  ft_wire_put_u32(out, s->argument_count);
  for (uint32_t i = 0; i < s->argument_count; i++) ft_wire_put_u32(out, s->argument[i]);
}

void ft_program_encode(const ft_program *program, ft_strbuf *out) {
  ft_wire_put_text(out, program->name ? program->name : "");
  ft_wire_put_u64(out, program->workspace_bytes);
  ft_wire_put_u32(out, program->buffer_count);
  for (uint32_t i = 0; i < program->buffer_count; i++) {
    const ft_program_buffer *b = &program->buffer[i];
    ft_wire_put_u8(out, (uint8_t)b->kind);
    ft_wire_put_u8(out, (uint8_t)b->dtype);
    ft_wire_put_u64(out, b->bytes);
    ft_wire_put_u64(out, b->key);
    ft_wire_put_u64(out, b->offset);
  }
  ft_wire_put_u32(out, program->step_count);
  for (uint32_t i = 0; i < program->step_count; i++) encode_step(&program->step[i], out);
}

static void decode_buffers(ft_wire_reader *r, ft_program_buffer *buffer, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    buffer[i].kind = (ft_buffer_kind)ft_wire_u8(r);
    buffer[i].dtype = (ft_dtype)ft_wire_u8(r);
    buffer[i].bytes = ft_wire_u64(r);
    buffer[i].key = ft_wire_u64(r);
    buffer[i].offset = ft_wire_u64(r);
  }
}

static ft_status decode_step(ft_wire_reader *r, ft_arena *arena, ft_program_step *out,
                             ft_error *error) {
  ft_module *m = FT_NEW(arena, ft_module);
  FT_OOM_IF(!m, error);
  m->outcome = FT_OUTCOME_OK;
  m->entry = ft_wire_text(r, arena);
  m->path = ft_wire_text(r, arena);
  m->link = ft_wire_text(r, arena);
  m->grid = ft_wire_u32(r);
  m->threads = ft_wire_u32(r);
  m->scratch_bytes = ft_wire_u64(r);
  m->workspace_bytes = ft_wire_u64(r);
  m->scalar_count = ft_wire_count(r, 8);
  int64_t *scalar = FT_NEW_ARRAY(arena, int64_t, m->scalar_count);
  FT_OOM_IF(!scalar, error);
  for (uint32_t i = 0; i < m->scalar_count; i++) scalar[i] = (int64_t)ft_wire_u64(r);
  m->scalar = scalar;
  out->module = m;
  out->argument_count = ft_wire_count(r, 4);
  uint32_t *argument = FT_NEW_ARRAY(arena, uint32_t, out->argument_count);
  FT_OOM_IF(!argument, error);
  for (uint32_t i = 0; i < out->argument_count; i++) argument[i] = ft_wire_u32(r);
  out->argument = argument;
  return FT_OK;
}

ft_status ft_program_decode(ft_wire_reader *reader, ft_arena *arena, ft_program *out,
                            ft_error *error) {
  *out = (ft_program){.name = ft_wire_text(reader, arena)};
  out->workspace_bytes = ft_wire_u64(reader);
  out->buffer_count = ft_wire_count(reader, BUFFER_BYTES);
  ft_program_buffer *buffer = FT_NEW_ARRAY(arena, ft_program_buffer, out->buffer_count);
  FT_OOM_IF(!buffer, error);
  decode_buffers(reader, buffer, out->buffer_count);
  out->buffer = buffer;
  out->step_count = ft_wire_count(reader, STEP_BYTES);
  ft_program_step *step = FT_NEW_ARRAY(arena, ft_program_step, out->step_count);
  FT_OOM_IF(!step, error);
  out->step = step;
  for (uint32_t i = 0; i < out->step_count; i++)
    FT_TRY(decode_step(reader, arena, &step[i], error));
  if (reader->failed) FT_FAIL(error, FT_REFUSED, "the bytes do not hold a program");
  return ft_program_validate(out, error);
}

uint32_t ft_program_ordinal(const ft_program *program, uint32_t index) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < index; i++)
    count += program->buffer[i].kind == program->buffer[index].kind;
  return count;
}

const char *ft_buffer_kind_text(ft_buffer_kind kind) {
  static const char *const texts[] = {"input", "output", "intermediate"};
  return (unsigned)kind < 3 ? texts[kind] : "buffer";
}
