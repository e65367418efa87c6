// sweep - what builders that were killed left in the cache folder.
#ifndef FT_CODEGEN_SWEEP_H
#define FT_CODEGEN_SWEEP_H

// Removes the folders tmp-PID-N in |folder| that were not touched for an hour and whose
// process is gone. (Not seen is not gone: a process of another container may share the
// cache. An hour is far beyond the limit of any compiler run.) Best effort.
void ft_cache_sweep(const char *folder);

#endif
