// A file appears whole or not at all; every failed write is an error.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/output.h"
#include "tests/support/command.h"

static ft_arena *arena;
static ft_error error;
static char path[256];
static void set_up(void) {
  arena = ft_arena_create(ft_allocator_system());
  snprintf(path, sizeof path, "%s/out.txt", test_folder());
}
static void tear_down(void) {
  ft_arena_destroy(arena);
}
TestSuite(core_output, .init = set_up, .fini = tear_down);

static ft_output open_at(const char *name) {
  ft_output output;
  cr_assert_eq(ft_output_open(name, arena, &output, &error), FT_OK, "%s", error.text);
  return output;
}

static const char *content(void) {
  ft_bytes bytes;
  if (ft_file_read(path, 1 << 24, arena, &bytes, &error) != FT_OK) return "(none)";
  return bytes.data;
}

static uint32_t files_beside(void) {
  char command[300], text[16] = "";
  snprintf(command, sizeof command, "ls -A %s | wc -l", test_folder());
  FILE *list = popen(command, "r");
  cr_assert(list && fgets(text, sizeof text, list));
  pclose(list);
  return (uint32_t)atoi(text);
}

Test(core_output, a_reader_sees_the_old_file_until_the_new_one_is_whole) {
  cr_assert_eq(ft_file_write(path, "old", 3, &error), FT_OK);
  ft_output output = open_at(path);
  char part[1000];
  memset(part, 'x', sizeof part);
  for (int i = 0; i < 200; i++)
    cr_assert_eq(ft_output_write(&output, part, sizeof part, &error), FT_OK);
  cr_assert_str_eq(content(), "old");
  cr_assert_eq(ft_output_commit(&output, &error), FT_OK, "%s", error.text);
  cr_assert_eq(strlen(content()), 200000);
  cr_assert_eq(files_beside(), 1);
}

Test(core_output, what_is_aborted_leaves_no_file) {
  ft_output output = open_at(path);
  cr_assert_eq(ft_output_write(&output, "half", 4, &error), FT_OK);
  ft_output_abort(&output);
  ft_output_abort(&output);
  cr_assert_str_eq(content(), "(none)");
  cr_assert_eq(files_beside(), 0);
}

Test(core_output, a_full_disk_is_an_error_and_the_device_is_not_replaced) {
  char byte[FT_OUTPUT_BUFFER];
  memset(byte, 'x', sizeof byte);
  ft_output output = open_at("/dev/full");
  cr_assert_eq(ft_output_write(&output, byte, sizeof byte, &error), FT_IO);
  cr_assert(strstr(error.text, "/dev/full: No space left"), "%s", error.text);
  ft_output_abort(&output);
  output = open_at("/dev/full");
  cr_assert_eq(ft_output_write(&output, byte, 1, &error), FT_OK);
  cr_assert_eq(ft_output_commit(&output, &error), FT_IO);
  struct stat info;
  cr_assert(stat("/dev/full", &info) == 0 && S_ISCHR(info.st_mode));
}

Test(core_output, a_reader_that_went_away_is_an_error) {
  int ends[2];
  char name[64];
  signal(SIGPIPE, SIG_IGN);
  cr_assert_eq(pipe(ends), 0);
  snprintf(name, sizeof name, "/proc/self/fd/%d", ends[1]);
  ft_output output = open_at(name);
  close(ends[0]);
  cr_assert_eq(ft_output_write(&output, "x", 1, &error), FT_OK);
  cr_assert_eq(ft_output_commit(&output, &error), FT_IO);
  cr_assert(strstr(error.text, "Broken pipe"), "%s", error.text);
  close(ends[1]);
}

Test(core_output, a_folder_that_is_not_there_is_named) {
  ft_output output;
  cr_assert_eq(ft_output_open("/nonexistent/x", arena, &output, &error), FT_IO);
  cr_assert(strstr(error.text, "/nonexistent/x"), "%s", error.text);
  ft_output_abort(&output);
}
