// Copies under way, for each thread those that it started.
#include <string.h>

#include "codegen/sim_parts.h"

enum { THREADS = 1 << 12 };  // that a stamp tells apart

typedef struct copy {
  struct copy *next;
  void *to;
  ft_sim_cell *cell;
  const void *from;  // NULL: zeros
  int64_t lanes, bytes;
  uint64_t batch;
} copy;

struct ft_sim_copies {
  copy *under_way[THREADS];
  uint64_t batches[THREADS];  // that were committed
  copy *spare;
};

static ft_sim_copies *copies_of(ft_sim_launch *launch) {
  if (!launch->copies) launch->copies = FT_NEW(launch->arena, ft_sim_copies);
  if (!launch->copies) launch->is_out_of_memory = true;
  return launch->copies;
}

static copy *make(ft_sim_launch *launch, ft_sim_copies *copies) {
  copy *c = copies->spare;
  if (c)
    copies->spare = c->next;
  else
    c = FT_NEW(launch->arena, copy);
  if (!c) launch->is_out_of_memory = true;
  return c;
}

static void move(const copy *c) {
  if (c->from)
    memcpy(c->to, c->from, (size_t)c->bytes);
  else
    memset(c->to, 0, (size_t)c->bytes);
}

void ft_sim_copy_start(ft_sim_state *state, void *to, ft_sim_cell *cell, const void *from,
                       int64_t lanes, int64_t bytes, uint64_t thread) {
  ft_sim_launch *launch = (ft_sim_launch *)state;
  ft_sim_copies *copies = copies_of(launch);
  copy *c = copies ? make(launch, copies) : NULL;
  if (!c) return;
  *c = (copy){.next = copies->under_way[thread],
              .to = to,
              .cell = cell,
              .from = from,
              .lanes = lanes,
              .bytes = bytes,
              .batch = copies->batches[thread]};
  copies->under_way[thread] = c;
  for (int64_t i = 0; i < lanes; i++) cell[i].is_awaited = 1;
  if (launch->call->landing == FT_SIM_EARLY) move(c);
}

void ft_sim_copy_commit(ft_sim_state *state, uint64_t thread) {
  ft_sim_copies *copies = copies_of((ft_sim_launch *)state);
  if (copies) copies->batches[thread]++;
}

// The thread has written the cells now, whenever the bytes came.
static void land(const ft_sim_launch *launch, const copy *c, uint64_t thread) {
  const ft_sim_state *s = &launch->state;
  uint64_t now = (s->block << 40) + (s->epoch << 12) + thread + 1;
  if (launch->call->landing == FT_SIM_LATE) move(c);
  for (int64_t i = 0; i < c->lanes; i++) {
    c->cell[i].is_awaited = 0;
    c->cell[i].writer = now;
  }
}

// What was not committed is not waited for.
void ft_sim_copy_wait(ft_sim_state *state, int64_t batches, uint64_t thread) {
  ft_sim_launch *launch = (ft_sim_launch *)state;
  ft_sim_copies *copies = copies_of(launch);
  if (!copies) return;
  copy **at = &copies->under_way[thread];
  while (*at) {
    copy *c = *at;
    if (c->batch + (uint64_t)batches >= copies->batches[thread]) {
      at = &c->next;
      continue;
    }
    land(launch, c, thread);
    *at = c->next;
    c->next = copies->spare;
    copies->spare = c;
  }
}

void ft_sim_copy_forget(ft_sim_launch *launch) {
  ft_sim_copies *copies = launch->copies;
  for (uint32_t t = 0; copies && t < THREADS; t++) {
    while (copies->under_way[t]) {
      copy *c = copies->under_way[t];
      copies->under_way[t] = c->next;
      c->next = copies->spare;
      copies->spare = c;
    }
    copies->batches[t] = 0;
  }
}
