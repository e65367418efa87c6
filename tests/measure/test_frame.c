#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "measure/frame.h"

static int pair[2];
static ft_arena *arena;
static char text[128];

static void open_pair(void) {
  cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  arena = ft_arena_create(ft_allocator_system());
}
static void close_pair(void) {
  close(pair[0]);
  close(pair[1]);
  ft_arena_destroy(arena);
}
TestSuite(measure_frame, .init = open_pair, .fini = close_pair);

static ft_deadline soon(void) {
  return (ft_deadline){ft_clock_ns() + 20000000, NULL};
}
static const ft_deadline never = {UINT64_MAX, NULL};

static ft_frame_result receive(ft_frame *frame) {
  ft_deadline d = soon();
  return ft_frame_receive(pair[1], &d, arena, frame, text);
}

static void send_header(uint32_t magic, uint32_t type, uint32_t length, uint32_t rest) {
  const uint32_t header[4] = {magic, type, length, rest};
  cr_assert_eq(write(pair[0], header, sizeof header), (ssize_t)sizeof header);
}

enum { MAGIC = 0x31575446 };

Test(measure_frame, what_is_sent_is_received) {
  ft_frame frame;
  cr_assert_eq(ft_frame_send(pair[0], 7, "hello", 5, -1, &never, text), FT_FRAME_OK);
  cr_assert_eq(ft_frame_send(pair[0], 8, NULL, 0, -1, &never, text), FT_FRAME_OK);
  cr_assert_eq(receive(&frame), FT_FRAME_OK, "%s", text);
  cr_expect(frame.type == 7 && frame.bytes == 5 && frame.fd == -1);
  cr_expect_eq(memcmp(frame.data, "hello", 5), 0);
  cr_assert_eq(receive(&frame), FT_FRAME_OK);
  cr_expect(frame.type == 8 && frame.bytes == 0);
}

Test(measure_frame, a_descriptor_travels_and_is_closed_on_exec) {
  int ends[2];
  ft_frame frame;
  cr_assert_eq(pipe(ends), 0);
  cr_assert_eq(ft_frame_send(pair[0], 1, "x", 1, ends[1], &never, text), FT_FRAME_OK);
  cr_assert_eq(receive(&frame), FT_FRAME_OK);
  cr_assert_geq(frame.fd, 0);
  cr_expect(fcntl(frame.fd, F_GETFD) & FD_CLOEXEC);
  char c = 0;
  cr_expect_eq(write(frame.fd, "q", 1), 1);
  cr_expect(read(ends[0], &c, 1) == 1 && c == 'q');
}

static int open_descriptors(void) {
  int count = 0;
  for (int fd = 0; fd < 1024; fd++) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

Test(measure_frame, surplus_descriptors_are_closed) {
  int fds[3] = {pair[0], pair[0], pair[0]};
  uint8_t header[16] = {0x46, 0x54, 0x57, 0x31};
  struct iovec part = {header, sizeof header};
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof fds)];
  } control;
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof control};
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fds);
  memcpy(CMSG_DATA(head), fds, sizeof fds);
  int before = open_descriptors();
  cr_assert_eq(sendmsg(pair[0], &message, 0), (ssize_t)sizeof header);
  ft_frame frame;
  cr_assert_eq(receive(&frame), FT_FRAME_OK, "%s", text);
  cr_expect_geq(frame.fd, 0);
  cr_expect_eq(open_descriptors(), before + 1);
}

Test(measure_frame, a_length_over_the_cap_is_refused_before_anything_is_allocated) {
  const uint32_t lengths[] = {FT_FRAME_MAX_BYTES + 1, 0x7fffffff, 0x80000000, UINT32_MAX};
  for (int i = 0; i < 4; i++) {
    ft_frame frame;
    size_t bytes = ft_arena_bytes(arena);
    send_header(MAGIC, 1, lengths[i], 0);
    cr_expect_eq(receive(&frame), FT_FRAME_BROKEN);
    cr_expect(strstr(text, "over the cap"), "%s", text);
    cr_expect_eq(ft_arena_bytes(arena), bytes);
  }
}

Test(measure_frame, a_wrong_magic_number_or_a_dirty_header_is_refused) {
  ft_frame frame;
  send_header(0x31575447, 1, 0, 0);
  cr_expect_eq(receive(&frame), FT_FRAME_BROKEN);
  send_header(MAGIC, 1, 0, 9);
  cr_expect_eq(receive(&frame), FT_FRAME_BROKEN);
}

Test(measure_frame, a_sender_refuses_its_own_oversized_frame) {
  static char big[FT_FRAME_MAX_BYTES + 1];
  cr_expect_eq(ft_frame_send(pair[0], 1, big, sizeof big, -1, &never, text),
               FT_FRAME_BROKEN);
}

Test(measure_frame, a_short_frame_times_out_and_a_cut_one_is_closed) {
  ft_frame frame;
  send_header(MAGIC, 1, 100, 0);
  cr_expect_eq(receive(&frame), FT_FRAME_TIMED_OUT);
  send_header(MAGIC, 1, 100, 0);
  shutdown(pair[0], SHUT_WR);
  cr_expect_eq(receive(&frame), FT_FRAME_CLOSED);
  cr_expect_eq(frame.fd, -1);
}

Test(measure_frame, sending_to_nobody_is_closed_and_not_a_signal) {
  close(pair[1]);
  cr_expect_eq(ft_frame_send(pair[0], 1, "x", 1, -1, &never, text), FT_FRAME_CLOSED);
}

Test(measure_frame, sending_to_a_reader_that_sleeps_times_out) {
  static char big[8 << 20];
  ft_deadline d = soon();
  cr_expect_eq(ft_frame_send(pair[0], 1, big, sizeof big, -1, &d, text),
               FT_FRAME_TIMED_OUT);
}

static volatile int stop;
static void on_alarm(int number) {
  (void)number;
  stop = 1;
}

Test(measure_frame, the_stop_flag_ends_the_wait) {
  signal(SIGALRM, on_alarm);
  alarm(1);
  ft_frame frame;
  ft_deadline d = {UINT64_MAX, &stop};
  cr_expect_eq(ft_frame_receive(pair[1], &d, arena, &frame, text), FT_FRAME_INTERRUPTED);
}

static void on_tick(int number) {
  (void)number;
}
static void *send_slowly(void *data) {
  (void)data;
  const uint32_t header[4] = {MAGIC, 5, 3, 0};
  const char *bytes = (const char *)header;
  for (size_t i = 0; i < sizeof header; i++) {
    usleep(2000);
    if (write(pair[0], bytes + i, 1) != 1) return NULL;
  }
  usleep(2000);
  if (write(pair[0], "abc", 3) != 3) return NULL;
  return NULL;
}

Test(measure_frame, signals_and_single_bytes_do_not_disturb_a_frame) {
  struct sigaction action = {.sa_handler = on_tick};  // no SA_RESTART
  sigaction(SIGUSR1, &action, NULL);
  pthread_t sender;
  cr_assert_eq(pthread_create(&sender, NULL, send_slowly, NULL), 0);
  pid_t ticker = fork();
  if (ticker == 0) {
    for (int i = 0; i < 60; i++) {
      kill(getppid(), SIGUSR1);
      usleep(1000);
    }
    _exit(0);
  }
  ft_frame frame;
  cr_expect_eq(ft_frame_receive(pair[1], &never, arena, &frame, text), FT_FRAME_OK, "%s",
               text);
  cr_expect(frame.type == 5 && frame.bytes == 3 && memcmp(frame.data, "abc", 3) == 0);
  pthread_join(sender, NULL);
}
