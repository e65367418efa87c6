#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure/library.h"

static char folder[256];
static ft_library *library;
static ft_error error;

static void set_up(void) {
  strcpy(folder, FT_BINARY_DIR "/tests/library_XXXXXX");
  cr_assert(mkdtemp(folder));
  cr_assert_eq(ft_library_create(ft_allocator_system(), &library, &error), FT_OK);
}
static void tear_down(void) {
  char command[512];
  ft_library_destroy(library);
  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}
TestSuite(measure_library, .init = set_up, .fini = tear_down);

// An object NAME.so whose answer() is |value|, renamed into place.
static const char *build(const char *name, int value) {
  static char path[512];
  char command[4096];
  snprintf(path, sizeof path, "%s/%s.so", folder, name);
  snprintf(
      command, sizeof command,
      "echo 'int answer(void){return %d;}' | gcc -shared -fPIC -x c - -o %s.new && mv "
      "%s.new %s",
      value, path, path, path);
  cr_assert_eq(system(command), 0);
  return path;
}

static int answer(const char *path) {
  void *symbol;
  cr_assert_eq(ft_library_symbol(library, path, "answer", &symbol, &error), FT_OK, "%s",
               error.text);
  int (*call)(void);
  memcpy(&call, &symbol, sizeof call);
  return call();
}

Test(measure_library, a_rebuilt_object_under_an_old_name_is_loaded_anew) {
  const char *path = build("k", 1);
  cr_expect_eq(answer(path), 1);
  cr_expect_eq(answer(path), 1);
  build("k", 2);
  cr_expect_eq(answer(path), 2);
}

Test(measure_library, a_missing_file_or_symbol_is_not_found_by_name) {
  void *symbol;
  cr_expect_eq(ft_library_symbol(library, "/no/such.so", "f", &symbol, &error),
               FT_NOT_FOUND);
  cr_expect(strstr(error.text, "/no/such.so"), "%s", error.text);
  const char *path = build("k", 1);
  cr_expect_eq(ft_library_symbol(library, path, "question", &symbol, &error),
               FT_NOT_FOUND);
  cr_expect(strstr(error.text, "'question'") && !symbol, "%s", error.text);
}

static int mapped_objects(void) {
  int count = 0;
  char line[512], last[512] = "";
  FILE *maps = fopen("/proc/self/maps", "re");
  while (fgets(line, sizeof line, maps)) {
    char *name = strstr(line, folder);
    if (name && strcmp(name, last) != 0) {
      count++;
      strcpy(last, name);
    }
  }
  fclose(maps);
  return count;
}

Test(measure_library, only_the_last_ones_stay_loaded) {
  char command[2048], path[512];
  build("k", 7);
  for (int i = 0; i < FT_LIBRARY_KEPT + 10; i++) {
    snprintf(command, sizeof command, "cp %s/k.so %s/k%d.so", folder, folder, i);
    cr_assert_eq(system(command), 0);
    snprintf(path, sizeof path, "%s/k%d.so", folder, i);
    cr_expect_eq(answer(path), 7);
  }
  cr_expect_eq(mapped_objects(), FT_LIBRARY_KEPT + 10);
  ft_library_trim(library);
  cr_expect_eq(mapped_objects(), FT_LIBRARY_KEPT);
  cr_expect_eq(answer(path), 7, "the last one is among them");
}
