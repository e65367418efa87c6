#include "daemon/simulate.h"

#include <math.h>
#include <string.h>

#include "codegen/sim_object.h"
#include "core/rng.h"
#include "core/strbuf.h"
#include "daemon/default_plan.h"
#include "graph/inputs.h"

enum { MOST_COMPARED = 4096, LEAST_COMPARED = 64, POISON = 0xA5 };
static const double terms_most = 4e7;  // that references of one kernel take, about

// One kernel, its memory and what was found.
typedef struct bench {
  const ft_plan_group *group;
  const ft_sim_kernel *kernel;
  uint64_t seed;
  ft_arena *arena;  // of this kernel
  ft_tensor *input, *output;
  ft_sim_call call;
  ft_sim_cell **cell;  // [ABI position]
  ft_simulated *out;
} bench;

// ---- memory
// -----------------------------------------------------------------------------------

static ft_status make_inputs(bench *b, void **buffer, int64_t *count, ft_error *error) {
  const ft_group *g = &b->group->workload.group;
  b->input = FT_NEW_ARRAY(b->arena, ft_tensor, g->input_count);
  FT_OOM_IF(!b->input, error);
  FT_TRY(ft_group_random_inputs(g, b->seed, b->arena, b->input, error));
  for (uint32_t i = 0; i < g->input_count; i++) {
    buffer[i] = (void *)(uintptr_t)b->input[i].data;  // SIM refuses to write it
    count[i] = ft_shape_elements(&b->input[i].shape);
  }
  return FT_OK;
}

static ft_status make_outputs(bench *b, void **buffer, int64_t *count, ft_error *error) {
  const ft_group *g = &b->group->workload.group;
  b->output = FT_NEW_ARRAY(b->arena, ft_tensor, g->output_count);
  FT_OOM_IF(!b->output, error);
  for (uint32_t i = 0; i < g->output_count; i++) {
    const ft_value *v = &g->graph->value[g->output[i]];
    uint32_t at = g->input_count + i;
    FT_TRY(ft_tensor_alloc(v->dtype, &v->shape, b->arena, &b->output[i], &buffer[at],
                           error));
    memset(buffer[at], POISON, b->output[i].bytes);
    count[at] = ft_shape_elements(&v->shape);
  }
  return FT_OK;
}

static ft_status make_cells(bench *b, const int64_t *count, ft_error *error) {
  uint32_t all = b->call.inputs + b->call.outputs;
  b->cell = FT_NEW_ARRAY(b->arena, ft_sim_cell *, all + 1);
  FT_OOM_IF(!b->cell, error);
  for (uint32_t i = b->call.inputs; i <= all; i++) {
    bool is_workspace = i == all;
    size_t cells = is_workspace ? (size_t)b->call.workspace_bytes : (size_t)count[i];
    b->cell[i] = FT_NEW_ARRAY(b->arena, ft_sim_cell, cells);
    FT_OOM_IF(!b->cell[i], error);
  }
  return FT_OK;
}

static ft_status prepare(bench *b, ft_error *error) {
  const ft_group *g = &b->group->workload.group;
  uint32_t all = g->input_count + g->output_count;
  void **buffer = FT_NEW_ARRAY(b->arena, void *, all + 1);
  int64_t *count = FT_NEW_ARRAY(b->arena, int64_t, all + 1);
  FT_OOM_IF(!buffer || !count, error);
  FT_TRY(make_inputs(b, buffer, count, error));
  FT_TRY(make_outputs(b, buffer, count, error));
  buffer[all] = ft_arena_alloc_aligned(b->arena, (size_t)b->kernel->workspace_bytes, 64);
  FT_OOM_IF(!buffer[all], error);
  b->call = (ft_sim_call){.entry = b->kernel->entry,
                          .grid = b->kernel->grid,
                          .buffers = buffer,
                          .count = count,
                          .inputs = g->input_count,
                          .outputs = g->output_count,
                          .workspace_bytes = b->kernel->workspace_bytes,
                          .seed = b->seed};
  return make_cells(b, count, error);
}

// ---- running
// ----------------------------------------------------------------------------------

static int64_t blocks_to_run(const ft_sim_kernel *k) {
  if (k->workspace_bytes || k->steps <= FT_SIM_STEPS || k->grid <= 2) return k->grid;
  double share = FT_SIM_STEPS / k->steps * (double)k->grid;
  return share < 2 ? 2 : (int64_t)share;
}

// The first, the last, then the rest in an order drawn from the seed.
static uint64_t *block_order(int64_t grid, uint64_t seed, ft_arena *arena) {
  uint64_t *order = FT_NEW_ARRAY(arena, uint64_t, (size_t)grid);
  ft_rng rng = ft_rng_seed(seed);
  for (int64_t i = 0; order && i < grid; i++) order[i] = (uint64_t)i;
  for (int64_t i = 1; order && i < grid; i++) {
    int64_t from =
        i == 1 ? grid - 1 : i + (int64_t)ft_rng_below(&rng, (uint64_t)(grid - i));
    uint64_t other = order[from];
    order[from] = order[i];
    order[i] = other;
  }
  return order;
}

static ft_status note_fault(bench *b, const ft_sim_state *state, int32_t code,
                            ft_error *error) {
  if (state->fault)
    b->out->fault = ft_arena_printf(
        b->arena, "%s: buffer %u[%lld], block %llu, threads %llu and %llu",
        ft_sim_fault_text((ft_sim_fault)state->fault), state->buffer,
        (long long)state->index, (unsigned long long)state->block,
        (unsigned long long)state->thread, (unsigned long long)state->other);
  else
    b->out->fault = ft_arena_printf(b->arena, "it returned %d%s", code,
                                    code == FT_KERNEL_BAD_INDEX ? ": a bad index" : "");
  FT_OOM_IF(!b->out->fault, error);
  return FT_OK;
}

static ft_status run_blocks(bench *b, ft_error *error) {
  ft_sim_state *state;
  uint64_t *order = block_order(b->call.grid, b->seed, b->arena);
  FT_OOM_IF(!order, error);
  FT_TRY(ft_sim_open(&b->call, b->cell, b->arena, &state, error));
  int64_t blocks = blocks_to_run(b->kernel);
  for (int64_t i = 0; i < blocks; i++) {
    int32_t code = ft_sim_block(state, order[i]);
    b->out->blocks++;
    if (state->fault || code) return note_fault(b, state, code, error);
  }
  return FT_OK;
}

// ---- comparing
// --------------------------------------------------------------------------------

static uint32_t how_many(const bench *b) {
  const ft_workload *w = &b->group->workload;
  double elements = 0;
  for (uint32_t i = 0; i < b->call.outputs; i++)
    elements += (double)b->call.count[b->call.inputs + i];
  double each = elements > 0 ? w->flops / elements : 1;
  double fit = terms_most / fmax(each, 1);
  return (uint32_t)fmin(fmax(fit, LEAST_COMPARED), MOST_COMPARED);
}

// Of the elements that were written, |room| at most, spread evenly; *unwritten: the
// others.
static uint32_t pick(const ft_sim_cell *cell, int64_t count, uint32_t room,
                     int64_t *index, int64_t *unwritten) {
  int64_t written = 0, seen = 0;
  uint32_t picked = 0;
  for (int64_t i = 0; i < count; i++) written += cell[i].writer != 0;
  *unwritten = count - written;
  for (int64_t i = 0; i < count && picked < room; i++) {
    if (!cell[i].writer) continue;
    // The k-th of them is taken when k * room / written reaches the next whole number.
    if (seen++ * room >= (int64_t)picked * written) index[picked++] = i;
  }
  return picked;
}

static ft_status compare_picked(bench *b, uint32_t output, const int64_t *index,
                                uint32_t count, ft_error *error) {
  double *value = FT_NEW_ARRAY(b->arena, double, count);
  double *scale = FT_NEW_ARRAY(b->arena, double, count);
  int64_t *integer = FT_NEW_ARRAY(b->arena, int64_t, count);
  FT_OOM_IF(!value || !scale || !integer, error);
  FT_TRY(ft_interpret_group(&b->group->workload.group, b->input, output, index, count,
                            value, scale, integer, error));
  for (uint32_t i = 0; i < count; i++)
    ft_compare_element(&b->output[output], index[i], value[i], scale[i], integer[i],
                       &b->out->comparison);
  return FT_OK;
}

static ft_status compare_output(bench *b, uint32_t output, ft_error *error) {
  int64_t unwritten, count = b->call.count[b->call.inputs + output];
  uint32_t room = how_many(b);
  int64_t *index = FT_NEW_ARRAY(b->arena, int64_t, room);
  FT_OOM_IF(!index, error);
  uint32_t picked =
      pick(b->cell[b->call.inputs + output], count, room, index, &unwritten);
  if (unwritten && b->out->blocks == b->out->of_blocks && !b->out->fault) {
    b->out->fault =
        ft_arena_printf(b->arena, "%lld of %lld elements of output %u are not written",
                        (long long)unwritten, (long long)count, output);
    FT_OOM_IF(!b->out->fault, error);
  }
  return compare_picked(b, output, index, picked, error);
}

// ---- a plan
// -----------------------------------------------------------------------------------

static const char *name_of(const ft_plan *plan, uint32_t position, ft_arena *arena) {
  const ft_plan_group *g = &plan->group[position];
  ft_strbuf name = ft_strbuf_init(arena);
  ft_strbuf_printf(&name, "kernel %u (%s):", position, g->tactic);
  for (uint32_t i = 0; i < g->workload.group.output_count; i++)
    ft_strbuf_printf(&name, "%s '%s'", i ? "," : "",
                     plan->graph->value[g->workload.group.output[i]].name);
  return name.failed ? NULL : name.text;
}

static ft_status check_landing(bench *b, ft_sim_landing landing, ft_error *error) {
  b->out->blocks = 0;
  FT_TRY(prepare(b, error));
  b->call.landing = landing;
  FT_TRY(run_blocks(b, error));
  if (b->out->fault) return FT_OK;
  for (uint32_t i = 0; i < b->call.outputs; i++) FT_TRY(compare_output(b, i, error));
  return FT_OK;
}

static ft_status check_kernel(bench *b, ft_error *error) {
  ft_comparison_init(&b->out->comparison);
  b->out->of_blocks = b->kernel->grid;
  FT_TRY(check_landing(b, FT_SIM_EARLY, error));
  if (b->out->fault || !b->kernel->has_copies) return FT_OK;
  return check_landing(b, FT_SIM_LATE, error);
}

static ft_status check_one(const ft_plan *plan, uint32_t position,
                           const ft_sim_kernel *kernel, uint64_t seed, ft_arena *arena,
                           ft_simulated *out, ft_error *error) {
  ft_arena *scratch = ft_arena_create(ft_allocator_system());
  FT_OOM_IF(!scratch, error);
  bench b = {.group = &plan->group[position],
             .kernel = kernel,
             .seed = seed,
             .arena = scratch,
             .out = out};
  out->name = name_of(plan, position, arena);
  ft_status status = check_kernel(&b, error);
  if (out->fault) out->fault = ft_arena_strdup(arena, out->fault);
  ft_arena_destroy(scratch);
  FT_OOM_IF(!out->name, error);
  return status;
}

static ft_status plan_of(ft_session *s, const ft_model *model, ft_arena *arena,
                         ft_plan *out, bool *out_stored, ft_error *error) {
  const char *body;
  ft_error why;
  ft_status found =
      ft_store_served_plan(s->store, model->graph, &s->target, arena, &body, &why);
  *out_stored = found == FT_OK;
  if (found == FT_OK)
    return ft_plan_parse(body, model->graph, &s->target, arena, out, error);
  if (found != FT_NOT_FOUND) FT_FAIL(error, found, "%s", why.text);
  return ft_plan_default(s, model->graph, arena, out, error);
}

static ft_status build_kernels(ft_session *s, const ft_plan *plan, ft_arena *arena,
                               ft_sim_kernel **out, ft_error *error) {
  ft_candidate *candidate = FT_NEW_ARRAY(arena, ft_candidate, plan->group_count);
  *out = FT_NEW_ARRAY(arena, ft_sim_kernel, plan->group_count);
  FT_OOM_IF(!candidate || !*out, error);
  for (uint32_t i = 0; i < plan->group_count; i++)
    candidate[i] = (ft_candidate){.workload = &plan->group[i].workload,
                                  .target = &s->target,
                                  .tactic = plan->group[i].tactic,
                                  .schedule = plan->group[i].schedule};
  FT_TRY(
      ft_codegen_simulate(s->codegen, candidate, plan->group_count, arena, *out, error));
  for (uint32_t i = 0; i < plan->group_count; i++)
    if ((*out)[i].refusal)
      FT_FAIL(error, FT_INTERNAL, "group %u (%s) has no kernel: %s", i,
              plan->group[i].tactic, (*out)[i].refusal);
  return FT_OK;
}

ft_status ft_session_simulate(ft_session *s, const ft_model *model, uint64_t seed,
                              ft_arena *arena, ft_simulation *out, ft_error *error) {
  memset(out, 0, sizeof *out);
  if (!ft_target_is_gpu(&s->target))
    FT_FAIL(error, FT_INVALID_ARGUMENT, "target %s needs no SIM", s->target.name);
  ft_plan plan;
  ft_sim_kernel *kernel;
  FT_TRY(plan_of(s, model, arena, &plan, &out->is_plan_stored, error));
  FT_TRY(build_kernels(s, &plan, arena, &kernel, error));
  ft_simulated *list = FT_NEW_ARRAY(arena, ft_simulated, plan.group_count);
  FT_OOM_IF(!list, error);
  out->kernel = list;
  out->is_verified = true;
  for (uint32_t i = 0; i < plan.group_count; i++) {
    if (s->stop && *s->stop) FT_FAIL(error, FT_INTERRUPTED, "interrupted");
    FT_TRY(check_one(&plan, i, &kernel[i], seed, arena, &list[i], error));
    out->kernel_count++;
    if (list[i].fault || !(list[i].comparison.max_ratio <= 1)) out->is_verified = false;
  }
  return FT_OK;
}
