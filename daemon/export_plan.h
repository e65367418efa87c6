// export_plan - the served plan as files: all that whoever runs it needs.
#ifndef FT_DAEMON_EXPORT_PLAN_H
#define FT_DAEMON_EXPORT_PLAN_H

#include "daemon/session.h"

// Into |folder| (made when missing), each file whole or not at all: plan.json
// (docs/plan_format.md), and of group NN kernel_NN.c and kernel_NN.so, for a GPU
// kernel_NN.cu and kernel_NN.cubin. Their hashes are the plan's. *out_files: how many. A
// plan whose budget ended before its kernels were built alone has no binaries. NOT_FOUND:
// no plan is served (the text says what is there), or the store has lost a source.
FT_MUST_CHECK ft_status ft_export_plan(ft_session *session, const ft_model *model,
                                       const char *folder, ft_arena *arena,
                                       uint32_t *out_files, ft_error *error);

#endif
