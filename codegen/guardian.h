// guardian - a small process that outlives this one by a moment: when this process is
// gone, however it went, it kills the process groups that were started here.
//
// A compiler driver starts processes of its own, so the death signal of the kernel
// (PR_SET_PDEATHSIG), which only children see, is not enough.
#ifndef FT_CODEGEN_GUARDIAN_H
#define FT_CODEGEN_GUARDIAN_H

#include <sys/types.h>

// The descriptor on which groups are announced, or -1 when no guardian can be started:
// then nobody cleans up after a kill -9, and nothing else changes. One guardian serves
// the process; it is started by the first call, early and small. Thread-safe.
int ft_guardian_open(void);
// Announces group |pid| (-|pid|: it has ended) on |fd|. For the child itself, between
// vfork and exec: async-signal-safe, touches no memory but its stack. Best effort.
void ft_guardian_tell(int fd, pid_t pid);

#endif
