#include "measure/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static ft_status map(ft_exchange *out, ft_error *error) {
  if (out->bytes == 0) return FT_OK;
  void *p = mmap(NULL, out->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, out->fd, 0);
  if (p == MAP_FAILED)
    FT_FAIL(error, FT_OUT_OF_MEMORY, "cannot map %llu shared bytes: %s",
            (unsigned long long)out->bytes, strerror(errno));
  out->data = p;
  return FT_OK;
}

ft_status ft_exchange_create(const char *name, uint64_t bytes, ft_exchange *out,
                             ft_error *error) {
  *out = (ft_exchange){.fd = -1};
  if (bytes > INT64_MAX - 4096)
    FT_FAIL(error, FT_OUT_OF_MEMORY, "%llu shared bytes", (unsigned long long)bytes);
  bytes = (bytes + 4095) & ~(uint64_t)4095;
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) FT_FAIL(error, FT_IO, "memfd_create: %s", strerror(errno));
  out->fd = fd;
  out->bytes = bytes;
  ft_status status = FT_OK;
  if (ftruncate(fd, (off_t)bytes) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    status = ft_error_set(error, FT_OUT_OF_MEMORY, "%llu bytes of shared memory: %s",
                          (unsigned long long)bytes, strerror(errno));
  if (status == FT_OK) status = map(out, error);
  if (status != FT_OK) ft_exchange_close(out);
  return status;
}

ft_status ft_exchange_open(int fd, uint64_t bytes, ft_exchange *out, ft_error *error) {
  *out = (ft_exchange){.fd = fd};
  struct stat st;
  int seals = fcntl(fd, F_GET_SEALS);
  ft_status status = FT_OK;
  if (fstat(fd, &st) != 0 || seals < 0 || !(seals & F_SEAL_SHRINK) || st.st_size < 0 ||
      (uint64_t)st.st_size < bytes)
    status = ft_error_set(error, FT_REFUSED, "shared memory is not sealed at %llu bytes",
                          (unsigned long long)bytes);
  if (status == FT_OK) {
    out->bytes = (uint64_t)st.st_size;
    status = map(out, error);
  }
  if (status != FT_OK) ft_exchange_close(out);
  return status;
}

void ft_exchange_close(ft_exchange *exchange) {
  if (exchange->data) munmap(exchange->data, exchange->bytes);
  if (exchange->fd >= 0) close(exchange->fd);
  *exchange = (ft_exchange){.fd = -1};
}
