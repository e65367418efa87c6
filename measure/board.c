#include "measure/board.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "measure/exchange.h"

ft_status ft_board_map(int fd, ft_board **out, ft_error *error) {
  *out = NULL;
  ft_exchange e;
  int own = dup(fd);
  if (own < 0) FT_FAIL(error, FT_IO, "dup: %s", strerror(errno));
  FT_TRY(ft_exchange_open(own, sizeof(ft_board), &e, error));
  close(e.fd);  // the mapping holds on
  *out = (ft_board *)(void *)e.data;
  return FT_OK;
}

ft_status ft_board_create(ft_board **out, int *out_fd, ft_error *error) {
  ft_exchange e;
  *out = NULL;
  *out_fd = -1;
  FT_TRY(ft_exchange_create("fusetune-board", sizeof(ft_board), &e, error));
  *out = (ft_board *)(void *)e.data;
  *out_fd = e.fd;
  return FT_OK;
}

void ft_board_unmap(ft_board *board) {
  if (board) munmap(board, (sizeof *board + 4095) & ~(size_t)4095);
}

void ft_board_reset(ft_board *board) {
  board->phase = FT_PHASE_IDLE;
  board->program = board->step = 0;
  board->crashed = 0;
  board->signal = 0;
  board->has_address = 0;
  board->place = FT_PLACE_UNKNOWN;
  memset(board->name, 0, sizeof board->name);
  board->sample_count = 0;
}
