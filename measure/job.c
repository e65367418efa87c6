#include "measure/job.h"

#include <stdio.h>
#include <string.h>

#include "measure/check.h"
#include "measure/program_wire.h"

// Classes of writable buffers beyond the buffer kinds.
enum { CLASS_WORKSPACE = 16, CLASS_STEP_WORKSPACE, CLASS_SCRATCH };

void ft_job_init(ft_job *job, ft_arena *arena, ft_pool *pool, ft_buffer_store *store,
                 ft_library *library, ft_board *board) {
  *job = (ft_job){
      .arena = arena, .pool = pool, .store = store, .library = library, .board = board};
}

static void forget(ft_job *job) {
  ft_buffer_store_release_all(job->store);
  ft_library_trim(job->library);
  ft_arena_reset(job->arena);
  ft_job_init(job, job->arena, job->pool, job->store, job->library, job->board);
}

// A writable buffer of this class, size and key that |program| does not use yet. Scratch
// is dead after its step, so a program may use it again.
static ft_status take_blank(ft_job *job, uint32_t program, uint32_t class_,
                            uint64_t bytes, uint64_t key, ft_job_blank **out,
                            ft_error *error) {
  for (size_t i = 0; i < job->blank_count; i++) {
    ft_job_blank *b = &job->blank[i];
    if (b->class_ != class_ || b->key != key || b->held->memory.bytes != bytes) continue;
    if (class_ != CLASS_SCRATCH && b->last_program == program) continue;
    b->last_program = program;
    *out = b;
    return FT_OK;
  }
  FT_OOM_IF(FT_GROW(job->arena, &job->blank, job->blank_count, &job->blank_capacity),
            error);
  ft_job_blank *b = &job->blank[job->blank_count];
  FT_TRY(ft_buffer_store_blank(job->store, bytes, &b->held, error));
  job->blank_count++;
  b->class_ = class_;
  b->key = key;
  b->last_program = program;
  b->poison = FT_POISON_BYTE;
  *out = b;
  return FT_OK;
}

static bool is_needed(const ft_job *job, const ft_held_buffer *held) {
  for (uint32_t i = 0; i < job->need_count; i++) {
    const ft_job_need *n = &job->need[i];
    if (job->program[n->program].held[n->buffer] == held) return true;
  }
  return false;
}

static ft_status place_input(ft_job *job, uint32_t program, uint32_t buffer,
                             ft_error *error) {
  ft_job_program *p = &job->program[program];
  const ft_program_buffer *b = &p->program.buffer[buffer];
  ft_held_buffer *held;
  if (b->key)
    FT_TRY(ft_buffer_store_input(job->store, b->key, b->bytes, &held, error));
  else
    FT_TRY(ft_buffer_store_blank(job->store, b->bytes, &held, error));
  if (!held->is_filled && !is_needed(job, held))
    job->need[job->need_count++] = (ft_job_need){program, buffer};
  p->held[buffer] = held;
  return FT_OK;
}

static ft_status place_buffer(ft_job *job, uint32_t program, uint32_t i,
                              ft_error *error) {
  ft_job_program *p = &job->program[program];
  const ft_program_buffer *b = &p->program.buffer[i];
  if (b->kind == FT_BUFFER_INTERMEDIATE && b->offset != UINT64_MAX) {
    p->address[i] = p->workspace->memory.data + b->offset;
    return FT_OK;
  }
  if (b->kind == FT_BUFFER_INPUT) {
    FT_TRY(place_input(job, program, i, error));
  } else {
    ft_job_blank *blank;
    FT_TRY(take_blank(job, program, (uint32_t)b->kind, b->bytes, b->key, &blank, error));
    blank->poison = ft_poison_byte(b->dtype);
    p->held[i] = blank->held;
  }
  snprintf(p->held[i]->name, sizeof p->held[i]->name, "%s %u",
           ft_buffer_kind_text(b->kind), ft_program_ordinal(&p->program, i));
  p->address[i] = p->held[i]->memory.data;
  return FT_OK;
}

static ft_status place_workspace(ft_job *job, uint32_t program, ft_error *error) {
  ft_job_program *p = &job->program[program];
  bool is_used = false;
  for (uint32_t i = 0; i < p->program.buffer_count; i++)
    is_used |= p->program.buffer[i].kind == FT_BUFFER_INTERMEDIATE &&
               p->program.buffer[i].offset != UINT64_MAX;
  if (!is_used) return FT_OK;
  ft_job_blank *blank;
  FT_TRY(take_blank(job, program, CLASS_WORKSPACE, p->program.workspace_bytes, 0, &blank,
                    error));
  p->workspace = blank->held;
  snprintf(p->workspace->name, sizeof p->workspace->name, "workspace");
  return FT_OK;
}

static ft_status place_buffers(ft_job *job, uint32_t program, ft_error *error) {
  ft_job_program *p = &job->program[program];
  uint32_t count = p->program.buffer_count;
  p->held = FT_NEW_ARRAY(job->arena, ft_held_buffer *, count);
  p->address = FT_NEW_ARRAY(job->arena, void *, count);
  FT_OOM_IF(!p->held || !p->address, error);
  FT_TRY(place_workspace(job, program, error));
  for (uint32_t i = 0; i < count; i++) FT_TRY(place_buffer(job, program, i, error));
  return FT_OK;
}

static ft_status place_scratch(ft_job *job, uint32_t program, uint64_t bytes, void ***out,
                               ft_error *error) {
  uint32_t threads = ft_pool_threads(job->pool);
  void **scratch = FT_NEW_ARRAY(job->arena, void *, threads);
  FT_OOM_IF(!scratch, error);
  for (uint32_t t = 0; t < threads; t++) {
    ft_job_blank *blank;
    FT_TRY(take_blank(job, program, CLASS_SCRATCH, bytes, t, &blank, error));
    snprintf(blank->held->name, sizeof blank->held->name, "scratch of thread %u", t);
    scratch[t] = blank->held->memory.data;
  }
  *out = scratch;
  return FT_OK;
}

// A step's workspace holds counters that a launch leaves as the next one needs them: zero
// at first, and no other step's.
static ft_status place_step_workspace(ft_job *job, uint32_t program, uint32_t step,
                                      uint64_t bytes, void **out, ft_error *error) {
  ft_job_blank *blank;
  uint64_t key = (uint64_t)program << 32 | step;
  FT_TRY(take_blank(job, program, CLASS_STEP_WORKSPACE, bytes, key, &blank, error));
  blank->poison = 0;
  snprintf(blank->held->name, sizeof blank->held->name, "workspace of step %u", step);
  *out = blank->held->memory.data;
  return FT_OK;
}

static ft_status build_arguments(ft_job *job, uint32_t program, uint32_t step,
                                 void ***out, ft_error *error) {
  ft_job_program *p = &job->program[program];
  const ft_program_step *s = &p->program.step[step];
  void **buffers = FT_NEW_ARRAY(job->arena, void *, (size_t)s->argument_count + 1);
  FT_OOM_IF(!buffers, error);
  for (uint32_t a = 0; a < s->argument_count; a++)
    buffers[a] = p->address[s->argument[a]];
  if (s->module->workspace_bytes > 0)
    FT_TRY(place_step_workspace(job, program, step, s->module->workspace_bytes,
                                &buffers[s->argument_count], error));
  *out = buffers;
  return FT_OK;
}

static ft_status load_step(ft_job *job, uint32_t program, uint32_t step,
                           ft_error *error) {
  ft_job_program *p = &job->program[program];
  const ft_module *m = p->program.step[step].module;
  ft_launch *l = &p->launch[step];
  void *symbol;
  job->board->program = program;
  job->board->step = step;
  bool is_library = m->link && *m->link;
  // What it is linked with looks for cpus when it is loaded.
  if (is_library) ft_pool_unpin(job->pool);
  ft_status status = ft_library_symbol(job->library, m->path, m->entry, &symbol, error);
  if (is_library) ft_pool_pin(job->pool);
  if (status != FT_OK) return ft_error_prefix(error, "step %u", step);
  memcpy(&l->entry, &symbol, sizeof symbol);
  void **buffers = NULL, **scratch = NULL;
  FT_TRY(build_arguments(job, program, step, &buffers, error));
  if (m->scratch_bytes > 0)
    FT_TRY(place_scratch(job, program, m->scratch_bytes, &scratch, error));
  l->buffers = buffers;
  l->scalars = m->scalar;
  l->scratch = scratch;
  l->grid = m->grid;
  l->threads = is_library ? 1 : m->threads;
  p->is_library[step] = is_library;
  if (l->threads > p->threads) p->threads = l->threads;
  return FT_OK;
}

static ft_status load_program(ft_job *job, uint32_t index, ft_error *error) {
  ft_job_program *p = &job->program[index];
  FT_TRY(place_buffers(job, index, error));
  p->launch = FT_NEW_ARRAY(job->arena, ft_launch, p->program.step_count);
  p->is_library = FT_NEW_ARRAY(job->arena, bool, p->program.step_count);
  FT_OOM_IF(!p->launch || !p->is_library, error);
  for (uint32_t s = 0; s < p->program.step_count; s++)
    FT_TRY(load_step(job, index, s, error));
  if (p->threads > ft_pool_threads(job->pool)) p->threads = ft_pool_threads(job->pool);
  return FT_OK;
}

ft_status ft_job_load(ft_job *job, ft_wire_reader *reader, ft_error *error) {
  forget(job);
  uint32_t count = ft_wire_count(reader, 16);
  job->program = FT_NEW_ARRAY(job->arena, ft_job_program, count);
  FT_OOM_IF(!job->program, error);
  uint64_t buffers = 0;
  for (uint32_t i = 0; i < count; i++) {
    FT_TRY(ft_program_decode(reader, job->arena, &job->program[i].program, error));
    buffers += job->program[i].program.buffer_count;
  }
  if (count == 0 || !ft_wire_done(reader))
    FT_FAIL(error, FT_REFUSED, "the load request does not hold programs");
  job->program_count = count;
  job->need = FT_NEW_ARRAY(job->arena, ft_job_need, buffers);
  FT_OOM_IF(!job->need, error);
  for (uint32_t i = 0; i < count; i++) FT_TRY(load_program(job, i, error));
  return FT_OK;
}

void ft_job_fill(ft_job *job, uint32_t index, const void *data) {
  const ft_job_need *need = &job->need[index];
  ft_held_buffer *held = job->program[need->program].held[need->buffer];
  if (held->memory.bytes) memcpy(held->memory.data, data, held->memory.bytes);
  held->is_filled = true;
  ft_guarded_rearm(&held->memory);
  ft_guarded_protect(&held->memory, true);
}

void ft_job_poison(ft_job *job) {
  for (size_t i = 0; i < job->blank_count; i++) {
    const ft_job_blank *b = &job->blank[i];
    if (b->held->memory.bytes)
      memset(b->held->memory.data, b->poison, b->held->memory.bytes);
    ft_guarded_rearm(&b->held->memory);
  }
  job->is_ready = true;
}

void ft_job_make_ready(ft_job *job) {
  if (!job->is_ready) ft_job_poison(job);
}

bool ft_job_run(ft_job *job, uint32_t program, uint32_t *out_step, int32_t *out_code) {
  const ft_job_program *p = &job->program[program];
  uint32_t steps = p->program.step_count;
  for (uint32_t s = 0; s < steps; s++) {
    atomic_store_explicit(&job->board->step, s, memory_order_relaxed);
    if (p->is_library[s]) ft_pool_rest(job->pool);
    int32_t code = ft_pool_launch(job->pool, &p->launch[s]);
    if (code == 0) continue;
    *out_step = s;
    *out_code = code;
    return false;
  }
  return true;
}

bool ft_job_inspect(const ft_job *job, char text[256]) {
  for (size_t i = 0; i < job->blank_count; i++) {
    const ft_held_buffer *held = job->blank[i].held;
    uint32_t past, before;
    ft_guarded_inspect(&held->memory, &past, &before);
    if (past)
      snprintf(text, 256, "wrote %u bytes past %s", past, held->name);
    else if (before)
      snprintf(text, 256, "wrote %u bytes before %s", before, held->name);
    if (past || before) return false;
  }
  return true;
}
