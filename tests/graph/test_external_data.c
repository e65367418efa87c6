#include "graph/external_data.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A folder with a/b/data (4 bytes), a/link -> b/data, a/up -> .., and a descriptor of it.
static char folder[] = FT_BINARY_DIR "/ft_external_XXXXXX";
static int folder_fd;

static void setup(void) {
  cr_assert_not_null(mkdtemp(folder));
  folder_fd = open(folder, O_PATH | O_DIRECTORY);
  cr_assert_eq(mkdirat(folder_fd, "a", 0700), 0);
  cr_assert_eq(mkdirat(folder_fd, "a/b", 0700), 0);
  int fd = openat(folder_fd, "a/b/data", O_WRONLY | O_CREAT, 0600);
  cr_assert_eq(write(fd, "data", 4), 4);
  close(fd);
  cr_assert_eq(symlinkat("b/data", folder_fd, "a/link"), 0);
  cr_assert_eq(symlinkat("b", folder_fd, "a/folder_link"), 0);
}

static void teardown(void) {
  static const char *const files[] = {"a/link", "a/folder_link", "a/b/data"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    unlinkat(folder_fd, files[i], 0);
  unlinkat(folder_fd, "a/b", AT_REMOVEDIR);
  unlinkat(folder_fd, "a", AT_REMOVEDIR);
  close(folder_fd);
  rmdir(folder);
}

TestSuite(graph_external_data, .init = setup, .fini = teardown);

static void check_opener(ft_external_opener *opener) {
  static const char *const refused[] = {"a/link", "a/folder_link/data", "a/b/data/more"};
  ft_error error;
  int fd = -1;
  cr_assert_eq(opener(folder_fd, "a/b/data", &fd, &error), FT_OK, "%s", error.text);
  char bytes[4];
  cr_assert_eq(read(fd, bytes, 4), 4);
  cr_assert_eq(memcmp(bytes, "data", 4), 0);
  close(fd);
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    cr_assert_eq(opener(folder_fd, refused[i], &fd, &error), FT_REFUSED, "%s",
                 refused[i]);
    cr_assert(strstr(error.text, refused[i]), "%s", error.text);
  }
  cr_assert_eq(opener(folder_fd, "a/none", &fd, &error), FT_IO);
  char longest[400];
  memset(longest, 'x', sizeof longest);
  longest[sizeof longest - 1] = 0;
  cr_assert_eq(opener(folder_fd, longest, &fd, &error), FT_IO);
}

Test(graph_external_data, opens_beneath_and_follows_no_link) {
  check_opener(ft_external_open_beneath);
}

Test(graph_external_data, does_the_same_component_by_component) {
  check_opener(ft_external_open_walking);
}

Test(graph_external_data, leaves_no_descriptor_open_when_it_refuses) {
  ft_error error;
  int fd = -1, before = dup(0), after;
  close(before);
  cr_assert_eq(ft_external_open_walking(folder_fd, "a/folder_link/data", &fd, &error),
               FT_REFUSED);
  after = dup(0);
  close(after);
  cr_assert_eq(after, before);
}

Test(graph_external_data, maps_a_file_once_and_serves_any_part_of_it) {
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_external_files files = ft_external_files_init(folder, arena);
  ft_span location = {(const uint8_t *)"a/b/data", 8};
  const void *whole, *part;
  ft_error error;
  cr_assert_eq(ft_external_map(&files, location, 0, 4, &whole, &error), FT_OK);
  cr_assert_eq(ft_external_map(&files, location, 3, 1, &part, &error), FT_OK);
  cr_assert_eq((const char *)part, (const char *)whole + 3);
  cr_assert_eq(ft_external_map(&files, location, 4, 0, &part, &error), FT_OK);
  cr_assert_eq(ft_external_map(&files, location, 4, 1, &part, &error), FT_REFUSED);
  cr_assert_eq(ft_external_map(&files, location, UINT64_MAX, UINT64_MAX, &part, &error),
               FT_REFUSED);
  ft_arena_destroy(arena);
}
