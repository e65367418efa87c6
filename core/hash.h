// hash - stable keys. SHA-256 (libmd) for what is stored or compared between
// machines; a fast 64-bit hash for tables in memory.
#ifndef FT_CORE_HASH_H
#define FT_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct ft_hash {
  uint8_t byte[32];  // SHA-256, FIPS 180-4
} ft_hash;

enum { FT_HASH_HEX = 64, FT_HASH_TEXT = 7 + 64 };  // "sha256:" + hex, without NUL

ft_hash ft_hash_bytes(const void *data, size_t size);
int ft_hash_equal(const ft_hash *a, const ft_hash *b);
int ft_hash_is_zero(const ft_hash *hash);
// Writes 64 hex digits and NUL.
void ft_hash_hex(const ft_hash *hash, char out[FT_HASH_HEX + 1]);
// Writes "sha256:" + hex and NUL.
void ft_hash_text(const ft_hash *hash, char out[FT_HASH_TEXT + 1]);
// Reads either form; 0, or -1 when |text| is neither (then *out is zero).
int ft_hash_parse(const char *text, ft_hash *out);

// FNV-1a, 64 bit: for tables in memory only. Start with FT_HASH64_SEED.
#define FT_HASH64_SEED 0xcbf29ce484222325ull
uint64_t ft_hash64(uint64_t seed, const void *data, size_t size);

#endif
