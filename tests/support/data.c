#include "tests/support/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *test_data_folder(void) {
  const char *folder = getenv("FT_TEST_DATA");
  if (!folder) folder = FT_SOURCE_DIR "/../shared/data";
  struct stat st;
  if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode)) return folder;
  const char *require = getenv("FT_REQUIRE_DATA");
  cr_assert(!require || strcmp(require, "1") != 0, "FT_REQUIRE_DATA=1 but %s is absent",
            folder);
  return NULL;
}

int test_data_path(const char *relative, char *out, size_t size) {
  const char *folder = test_data_folder();
  if (!folder) return -1;
  snprintf(out, size, "%s/%s", folder, relative);
  return 0;
}
