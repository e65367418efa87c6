// sanitized - whether this build has ASan: volume is proved without it, and a sample is
// enough to see a bad access.
#ifndef FT_TESTS_SUPPORT_SANITIZED_H
#define FT_TESTS_SUPPORT_SANITIZED_H

#ifdef __has_feature
#define IS_SANITIZED __has_feature(address_sanitizer)
#else
#define IS_SANITIZED 0
#endif

#endif
