// data - where the test data is: FT_TEST_DATA, default ../shared/data beside the source.
#ifndef FT_TESTS_SUPPORT_DATA_H
#define FT_TESTS_SUPPORT_DATA_H

#include <criterion/criterion.h>
#include <stddef.h>

// The folder (static storage), or NULL when it is absent. With FT_REQUIRE_DATA=1 an
// absent folder fails the test.
const char *test_data_folder(void);
// Writes FOLDER/relative into |out|; 0, or -1 when the data is absent.
int test_data_path(const char *relative, char *out, size_t size);

// First line of a test that needs the data: TEST_NEEDS_DATA();
#define TEST_NEEDS_DATA()                                                     \
  do {                                                                        \
    if (!test_data_folder()) cr_skip_test("no test data (set FT_TEST_DATA)"); \
  } while (0)

#endif
