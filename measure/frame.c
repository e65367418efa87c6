#include "measure/frame.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"

enum { MAGIC = 0x31575446, HEADER_BYTES = 16, STOP_POLL_MS = 20, TEXT_BYTES = 128 };

typedef union control {
  struct cmsghdr align;
  char bytes[CMSG_SPACE(8 * sizeof(int))];
} control;

static ft_frame_result broken(char text[TEXT_BYTES], const char *why) {
  snprintf(text, TEXT_BYTES, "%s", why);
  return FT_FRAME_BROKEN;
}

static ft_frame_result from_errno(char text[TEXT_BYTES], const char *what) {
  if (errno == EPIPE || errno == ECONNRESET) return FT_FRAME_CLOSED;
  snprintf(text, TEXT_BYTES, "%s: %s", what, strerror(errno));
  return FT_FRAME_BROKEN;
}

// One slice of waiting: OK means try the call again.
static ft_frame_result wait_for(int socket, short events, const ft_deadline *deadline,
                                char text[TEXT_BYTES]) {
  if (deadline->stop && *deadline->stop) return FT_FRAME_INTERRUPTED;
  int timeout_ms = deadline->stop ? STOP_POLL_MS : -1;
  if (deadline->at_ns != UINT64_MAX) {
    uint64_t now = ft_clock_ns();
    if (now >= deadline->at_ns) return FT_FRAME_TIMED_OUT;
    uint64_t left_ms = (deadline->at_ns - now) / 1000000u + 1;
    if (timeout_ms < 0 || left_ms < (uint64_t)timeout_ms)
      timeout_ms = left_ms < 1000000u ? (int)left_ms : 1000000;
  }
  struct pollfd p = {.fd = socket, .events = events};
  if (poll(&p, 1, timeout_ms) < 0 && errno != EINTR) return from_errno(text, "poll");
  return FT_FRAME_OK;
}

static ft_frame_result send_all(int socket, const void *data, size_t bytes, int pass_fd,
                                const ft_deadline *deadline, char text[TEXT_BYTES]) {
  const char *cursor = data;
  while (bytes > 0) {
    struct iovec part = {(void *)(uintptr_t)cursor, bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    control c;
    if (pass_fd >= 0) {
      memset(&c, 0, sizeof c);
      message.msg_control = &c;
      message.msg_controllen = CMSG_SPACE(sizeof(int));
      struct cmsghdr *head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      memcpy(CMSG_DATA(head), &pass_fd, sizeof(int));
    }
    ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) return from_errno(text, "send");
      ft_frame_result r = wait_for(socket, POLLOUT, deadline, text);
      if (r != FT_FRAME_OK) return r;
      continue;
    }
    pass_fd = -1;  // it travels with the first byte
    cursor += sent;
    bytes -= (size_t)sent;
  }
  return FT_FRAME_OK;
}

static void store_u32(uint8_t *at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t load_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
         (uint32_t)at[3] << 24;
}

ft_frame_result ft_frame_send(int socket, uint32_t type, const void *data, size_t bytes,
                              int pass_fd, const ft_deadline *deadline,
                              char error_text[128]) {
  error_text[0] = '\0';
  if (bytes > FT_FRAME_MAX_BYTES) {
    snprintf(error_text, TEXT_BYTES, "a frame of %zu bytes is over the cap of %d", bytes,
             (int)FT_FRAME_MAX_BYTES);
    return FT_FRAME_BROKEN;
  }
  uint8_t header[HEADER_BYTES] = {0};
  store_u32(header, MAGIC);
  store_u32(header + 4, type);
  store_u32(header + 8, (uint32_t)bytes);
  ft_frame_result r =
      send_all(socket, header, sizeof header, pass_fd, deadline, error_text);
  return r == FT_FRAME_OK ? send_all(socket, data, bytes, -1, deadline, error_text) : r;
}

// Keeps the first descriptor in *fd and closes the rest.
static void collect_descriptors(struct msghdr *message, int *fd) {
  for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head;
       head = CMSG_NXTHDR(message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int received;
      memcpy(&received, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
      if (*fd < 0)
        *fd = received;
      else
        close(received);
    }
  }
}

static ft_frame_result receive_all(int socket, void *data, size_t bytes, int *fd,
                                   const ft_deadline *deadline, char text[TEXT_BYTES]) {
  char *cursor = data;
  while (bytes > 0) {
    struct iovec part = {cursor, bytes};
    control c;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got == 0) return FT_FRAME_CLOSED;
    if (got < 0) {
      if (errno != EAGAIN && errno != EINTR) return from_errno(text, "receive");
      ft_frame_result r = wait_for(socket, POLLIN, deadline, text);
      if (r != FT_FRAME_OK) return r;
      continue;
    }
    collect_descriptors(&message, fd);
    cursor += got;
    bytes -= (size_t)got;
  }
  return FT_FRAME_OK;
}

static ft_frame_result receive(int socket, const ft_deadline *deadline, ft_arena *arena,
                               ft_frame *out, char text[TEXT_BYTES]) {
  uint8_t header[HEADER_BYTES];
  ft_frame_result r =
      receive_all(socket, header, sizeof header, &out->fd, deadline, text);
  if (r != FT_FRAME_OK) return r;
  if (load_u32(header) != MAGIC) return broken(text, "a frame without its magic number");
  if (load_u32(header + 12) != 0) return broken(text, "a frame with a dirty header");
  out->type = load_u32(header + 4);
  out->bytes = load_u32(header + 8);
  if (out->bytes > FT_FRAME_MAX_BYTES) {
    snprintf(text, TEXT_BYTES, "a frame of %u bytes is over the cap of %d", out->bytes,
             (int)FT_FRAME_MAX_BYTES);
    return FT_FRAME_BROKEN;
  }
  uint8_t *data = ft_arena_alloc(arena, out->bytes);
  if (!data) return FT_FRAME_NO_MEMORY;
  out->data = data;
  return receive_all(socket, data, out->bytes, &out->fd, deadline, text);
}

ft_frame_result ft_frame_receive(int socket, const ft_deadline *deadline, ft_arena *arena,
                                 ft_frame *out, char error_text[128]) {
  *out = (ft_frame){.fd = -1};
  error_text[0] = '\0';
  ft_frame_result r = receive(socket, deadline, arena, out, error_text);
  if (r != FT_FRAME_OK && out->fd >= 0) {
    close(out->fd);
    out->fd = -1;
  }
  return r;
}
