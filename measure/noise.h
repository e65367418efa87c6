// noise - what disturbed a sample: preemption, a slower clock, other processes.
//
// PREEMPTED  ru_nivcsw of a thread that ran the sample grew during it, and the thread was
//            off its cpu for over 2 % of the sample: a timer tick in a sample of 40 ms
//            changes nothing, and there is nearly always one. Of a library's threads only
//            the caller is seen, which waits for the others.
// DRIFT      a fixed chain of arithmetic, run before the sample, took over 25 % longer
//            than the fastest of this series: the clock is lower, or stolen. Turbo steps
//            differ by up to 20 %.
// FOREIGN    other processes used over a quarter of one of our cpus in the window around
//            the sample (/proc/stat less our own time; windows of 200 ms, because its
//            clock ticks every 10 ms).
// Everything here happens outside the timed region.
#ifndef FT_MEASURE_NOISE_H
#define FT_MEASURE_NOISE_H

#include "core/arena.h"
#include "measure/pool.h"

typedef struct ft_noise ft_noise;

// Lives in |arena| and keeps |pool|.
FT_MUST_CHECK ft_status ft_noise_create(ft_pool *pool, ft_arena *arena, ft_noise **out,
                                        ft_error *error);
void ft_noise_destroy(ft_noise *noise);  // closes its descriptor

// On each thread of the pool, right before and right after a run.
void ft_noise_before(ft_noise *noise, uint32_t thread);
void ft_noise_after(ft_noise *noise, uint32_t thread);
// True when one of the first |threads| was preempted between the two.
bool ft_noise_was_preempted(const ft_noise *noise, uint32_t threads);

// Runs the probe (some 20 us): true when the clock has drifted.
bool ft_noise_is_drifting(ft_noise *noise);

// Start of a series: forgets the fastest probe, opens a window at sample 0.
void ft_noise_start(ft_noise *noise);
// Start of a window; then after each sample; then once at the end. Marks flags[i] of the
// samples in a window that turns out foreign.
void ft_noise_open_window(ft_noise *noise, uint32_t index);
void ft_noise_pass(ft_noise *noise, uint32_t index, uint8_t *flags);
void ft_noise_close_window(ft_noise *noise, uint32_t index, uint8_t *flags);

#endif
