#include "core/hash.h"

#include <sha2.h>
#include <stdio.h>
#include <string.h>

ft_hash ft_hash_bytes(const void *data, size_t size) {
  ft_hash hash;
  SHA2_CTX ctx;
  SHA256Init(&ctx);
  SHA256Update(&ctx, data, size);
  SHA256Final(hash.byte, &ctx);
  return hash;
}

int ft_hash_equal(const ft_hash *a, const ft_hash *b) {
  return memcmp(a->byte, b->byte, sizeof a->byte) == 0;
}

int ft_hash_is_zero(const ft_hash *hash) {
  static const ft_hash zero;
  return ft_hash_equal(hash, &zero);
}

void ft_hash_hex(const ft_hash *hash, char out[FT_HASH_HEX + 1]) {
  for (size_t i = 0; i < sizeof hash->byte; i++)
    snprintf(out + 2 * i, 3, "%02x", hash->byte[i]);
}

void ft_hash_text(const ft_hash *hash, char out[FT_HASH_TEXT + 1]) {
  memcpy(out, "sha256:", 7);
  ft_hash_hex(hash, out + 7);
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

int ft_hash_parse(const char *text, ft_hash *out) {
  memset(out, 0, sizeof *out);
  if (strncmp(text, "sha256:", 7) == 0) text += 7;
  if (strlen(text) != FT_HASH_HEX) return -1;
  ft_hash hash;
  for (size_t i = 0; i < sizeof hash.byte; i++) {
    int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return -1;
    hash.byte[i] = (uint8_t)(high * 16 + low);
  }
  *out = hash;
  return 0;
}

uint64_t ft_hash64(uint64_t seed, const void *data, size_t size) {
  const unsigned char *p = data;
  for (size_t i = 0; i < size; i++) seed = (seed ^ p[i]) * 0x100000001b3ull;
  return seed;
}
