// cuda_kernel - a kernel with threads as CUDA text, and how it is launched.
#ifndef FT_CODEGEN_CUDA_KERNEL_H
#define FT_CODEGEN_CUDA_KERNEL_H

#include "codegen/cubin.h"
#include "codegen/print_simt.h"
#include "graph/chip.h"

typedef struct ft_cuda_kernel {
  ft_cuda_source source;
  ft_simt_launch launch;
  ft_kernel_work work;
} ft_cuda_kernel;

// Prints |kir|; its name comes from the hash of its text. *reason: why it has no CUDA
// text; NULL when it has.
FT_MUST_CHECK ft_status ft_cuda_kernel_make(ft_kir *kir, ft_arena *arena,
                                            ft_cuda_kernel *out, const char **reason,
                                            ft_error *error);

// How |kernel| is launched, and how many blocks a multiprocessor of |chip| would hold if
// registers were free.
ft_gpu_launch ft_cuda_kernel_roomiest(const ft_cuda_kernel *kernel, const ft_chip *chip);

// Fills outcome, path, log, build_ns, facts and launch of |module| from what was built
// for |chip|. A kernel that spills is a kernel; one that no multiprocessor can hold ends
// as RESOURCE_LIMIT, and the log says of what there is too little.
FT_MUST_CHECK ft_status ft_cuda_kernel_finish(const ft_cuda_kernel *kernel,
                                              const ft_cuda_object *object,
                                              const ft_chip *chip, ft_arena *arena,
                                              ft_module *module, ft_error *error);

#endif
