/* Transposes square blocks in registers: loads N vectors of 16 bytes with N elements
 * each and stores the columns as rows. Interleaving each vector of the first half with
 * its partner in the second half, log2 N times, is a transposition. So one macro
 * implements elements of 1, 2, 4 and 8 bytes. */
#ifndef MICA_SIMD_TRANSPOSE_H
#define MICA_SIMD_TRANSPOSE_H

#include <stdint.h>
#include <string.h>

#include "simd/unroll.h"

typedef uint8_t turn_1 __attribute__((vector_size(16)));
typedef uint16_t turn_2 __attribute__((vector_size(16)));
typedef uint32_t turn_4 __attribute__((vector_size(16)));
typedef uint64_t turn_8 __attribute__((vector_size(16)));

#define TURN_LOW_1(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define TURN_HIGH_1(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define TURN_LOW_2(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define TURN_HIGH_2(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define TURN_LOW_4(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define TURN_HIGH_4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define TURN_LOW_8(a, b) __builtin_shufflevector(a, b, 0, 2)
#define TURN_HIGH_8(a, b) __builtin_shufflevector(a, b, 1, 3)

/* from_step and to_step are the distances in bytes between vectors. Any alignment. */
#define MICA_TURN(size, rounds)                                                                          \
    static inline void mica__turn_##size(const char *from, int64_t from_step, char *to, int64_t to_step) \
    {                                                                                                    \
        enum { N = 16 / (size) };                                                                        \
        turn_##size r[N], t[N];                                                                          \
        SIMD_EACH(i, N) memcpy(&r[i], from + i * from_step, 16);                                         \
        SIMD_EACH(round, rounds) {                                                                       \
            SIMD_EACH(i, N / 2) {                                                                        \
                t[2 * i] = TURN_LOW_##size(r[i], r[i + N / 2]);                                          \
                t[2 * i + 1] = TURN_HIGH_##size(r[i], r[i + N / 2]);                                     \
            }                                                                                            \
            SIMD_EACH(i, N) r[i] = t[i];                                                                 \
        }                                                                                                \
        SIMD_EACH(i, N) memcpy(to + i * to_step, &r[i], 16);                                             \
    }
MICA_TURN(1, 4)
MICA_TURN(2, 3)
MICA_TURN(4, 2)
MICA_TURN(8, 1)

/* Transposes rows x columns elements: copies element (i, j) at
 * from + i * from_step + j * size to to + j * to_step + i * size. */
#define MICA_TURN_BLOCK(size)                                                                                  \
    static inline void mica__turn_block_##size(const char *from, int64_t from_step, char *to, int64_t to_step, \
                                               int64_t rows, int64_t columns)                                  \
    {                                                                                                          \
        enum { N = 16 / (size) };                                                                              \
        int64_t i = 0;                                                                                         \
        for (; i + N <= rows; i += N) {                                                                        \
            const char *line = from + i * from_step;                                                           \
            int64_t j = 0;                                                                                     \
            for (; j + N <= columns; j += N)                                                                   \
                mica__turn_##size(line + j * (size), from_step, to + j * to_step + i * (size), to_step);       \
            for (; j < columns; j++)                                                                           \
                for (int64_t k = 0; k < N; k++)                                                                \
                    memcpy(to + j * to_step + (i + k) * (size), line + k * from_step + j * (size), size);      \
        }                                                                                                      \
        for (; i < rows; i++)                                                                                  \
            for (int64_t j = 0; j < columns; j++)                                                              \
                memcpy(to + j * to_step + i * (size), from + i * from_step + j * (size), size);                \
    }
MICA_TURN_BLOCK(1)
MICA_TURN_BLOCK(2)
MICA_TURN_BLOCK(4)
MICA_TURN_BLOCK(8)

static inline void mica__transpose_block(size_t size, const char *from, int64_t from_step, char *to, int64_t to_step,
                                         int64_t rows, int64_t columns)
{
    switch (size) {
    case 1: mica__turn_block_1(from, from_step, to, to_step, rows, columns); break;
    case 2: mica__turn_block_2(from, from_step, to, to_step, rows, columns); break;
    case 4: mica__turn_block_4(from, from_step, to, to_step, rows, columns); break;
    default: mica__turn_block_8(from, from_step, to, to_step, rows, columns); break;
    }
}

#endif
