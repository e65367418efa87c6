#include "cli/cli.h"

// Hidden: started by the runner with a socket on descriptor 3.
int ft_verb_worker(int argc, char **argv) {
  (void)argc;
  (void)argv;
  return ft_worker_main(3);
}
