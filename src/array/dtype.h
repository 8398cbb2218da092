/* Properties of element types, and correctly rounded conversions between them. */
#ifndef MICA_ARRAY_DTYPE_H
#define MICA_ARRAY_DTYPE_H

#include <string.h>

#include "mica.h"

typedef enum mica__kind { MICA__KIND_BOOL, MICA__KIND_UINT, MICA__KIND_INT, MICA__KIND_FLOAT } mica__kind;

enum { MICA__DTYPE_COUNT = 13 };

mica__kind mica__dtype_kind(mica_dtype dtype);
bool mica__dtype_valid(mica_dtype dtype);

static inline bool mica__is_float(mica_dtype d) { return d >= MICA_F16; }
static inline bool mica__is_bool(mica_dtype d) { return d == MICA_BOOL; }
static inline bool mica__is_int(mica_dtype d) { return d >= MICA_U8 && d <= MICA_I64; }

/* Read one element as the widest type of its kind. mica__get_f64 of a 64-bit
 * integer rounds; mica__get_i64 is exact (a u64 keeps its bits in the i64). */
double mica__get_f64(mica_dtype dtype, const void *data, int64_t index);
int64_t mica__get_i64(mica_dtype dtype, const void *data, int64_t index);
/* Store one element with the rules of a cast: floats round to nearest even; float to integer truncates, saturates at
 * the ends of the range and turns NaN into 0; integers wrap; nonzero is true. Data needs no alignment. */
void mica__set_f64(mica_dtype dtype, void *data, int64_t index, double value);
void mica__set_i64(mica_dtype dtype, void *data, int64_t index, int64_t value);

/* Casts one element from any dtype to any other with one rounding. The functions
 * above would round u64 to f32 twice. */
void mica__convert_element(mica_dtype to, void *out, int64_t out_index, mica_dtype from, const void *in,
                           int64_t in_index);

/* The value after it is stored as dtype and read again. */
double mica__round_f64(mica_dtype dtype, double value);
int64_t mica__wrap_i64(mica_dtype dtype, int64_t value);
/* Converts a double to an integer dtype (or bool) with the rules of mica__set_f64. */
int64_t mica__f64_to_int(mica_dtype dtype, double value);
/* Rounds a double once (not through f32) to f16 or bf16. */
uint16_t mica__f16_from_f64(double value);
uint16_t mica__bf16_from_f64(double value);

#endif
