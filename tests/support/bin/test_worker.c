// The worker that tests pass as worker_argv.
#include "measure/runner.h"

int main(void) {
  return ft_worker_main(3);
}
