/* Size arithmetic that detects overflow. Every product of sizes that a caller or
 * a file can influence is computed here. */
#ifndef MICA_BASE_CHECKED_H
#define MICA_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* true and *out on success, false on overflow. */
static inline bool mica__mul_size(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool mica__add_size(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool mica__mul_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool mica__add_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }

static inline size_t mica__round_up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }
static inline int64_t mica__min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t mica__max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
