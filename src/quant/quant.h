/* Block formats of numbers in files, described by one table (quant.def).
 *
 * A block stores a fixed number of elements in a fixed number of bytes; plain
 * dtypes are formats with blocks of one element. This module computes the size of
 * a tensor, packs f32 (to nearest, the same bytes on every machine), unpacks, and
 * computes the dot product that defines the right answer. Nothing here allocates
 * or needs alignment. Files and machines are little-endian.
 *
 * A row of a matrix is a whole number of blocks, except in panel formats, whose
 * blocks span 16 rows. Two formats store their scales in other tensors and are not
 * in the table: see mica__quant_matrix. */
#ifndef MICA_QUANT_QUANT_H
#define MICA_QUANT_QUANT_H

#include "base/status.h"

typedef enum mica__quant_id {
#define MICA_PLAIN(id, ...) MICA__QUANT_##id,
#define MICA_BLOCK(id, ...) MICA__QUANT_##id,
#define MICA_PANEL(id, ...) MICA__QUANT_##id,
#include "quant/quant.def"
#undef MICA_PLAIN
#undef MICA_BLOCK
#undef MICA_PANEL
    MICA__QUANT_COUNT,
    /* Only in a mica__quant_matrix. */
    MICA__QUANT_HF_TERNARY = MICA__QUANT_COUNT,
    MICA__QUANT_AFFINE
} mica__quant_id;

typedef void mica__pack_fn(const float *x, void *blocks, size_t n_blocks);
typedef void mica__unpack_fn(const void *blocks, float *x, size_t n_blocks);
/* Unpacks to integers and one scale per block (1 if the tensor has one scale). */
typedef void mica__codes_fn(const void *blocks, int8_t *codes, float *scales, size_t n_blocks);

/* Panels of ternary codes (quant_panel.c). */
#define MICA__QUANT_IS_PANEL(id) ((id) == MICA__QUANT_MICA_T2 || (id) == MICA__QUANT_MICA_T1)

typedef struct mica__quant {
    const char *name;
    const char *about;       /* one line for lists                              */
    int gguf;                /* type id in GGUF files, or -1                    */
    int file_type;           /* general.file_type of GGUF files mostly in this format, or -1 */
    const char *safetensors; /* dtype in safetensors files, or NULL             */
    uint16_t block, bytes;   /* elements per row of a block; bytes of a block   */
    int dtype;               /* a mica_dtype for plain types, else -1           */
    mica__pack_fn *pack;     /* NULL: values cannot be written, or a panel      */
    mica__unpack_fn *unpack;
    mica__codes_fn *codes;   /* NULL: values are not a scale times small integers */
    int scale[2];            /* offsets of f16 scales in a block, or -1         */
    size_t tail;             /* bytes after the blocks of a tensor: its f32 scale */
    int rows;                /* rows of a block: 1, or 16 for panels            */
    bool ternary;            /* values are a scale times -1, 0, 1               */
    int code_bits;           /* bits of a code if each code has separate bits; else 0 */
    bool output;             /* mica_quantize writes it                         */
    const char *fallback;    /* the format for rows that do not fill its blocks; NULL: none */
} mica__quant;

enum { MICA__QUANT_BLOCK_MAX = 256 };

/* NULL for an invalid id. */
const mica__quant *mica__quant_get(mica__quant_id id);
const char *mica__quant_name(mica__quant_id id);
/* By upper-case name; MICA__QUANT_COUNT if there is no such format. */
mica__quant_id mica__quant_find(const char *name);
mica__quant_id mica__quant_find_safetensors(const char *name, size_t length);
/* The n-th format with this GGUF type id: forks gave some ids two meanings. */
mica__quant_id mica__quant_find_ggml(uint32_t ggml, int n);
mica__quant_id mica__quant_of_dtype(mica_dtype dtype);

/* Computes the bytes of a tensor of this shape (last axis fastest), or returns why it
 * cannot be stored: a row is not a whole number of blocks, or the size overflows. */
typedef enum mica__quant_fit { MICA__FIT_OK, MICA__FIT_ROW, MICA__FIT_SIZE } mica__quant_fit;
mica__quant_fit mica__quant_nbytes(mica__quant_id id, int ndim, const int64_t *shape, size_t *out);

/* -------------------------------------------------------------- matrices -- */

/* A packed matrix as it is stored in a file.
 *
 * I2_S, I2_S_ARM, MICA_T2 and MICA_T1 have one f32 scale, stored after the codes.
 * HF_TERNARY: u8 (R, cols) with R = ceil(rows/4); byte (r, c) holds rows r, r+R, r+2R,
 * r+3R of column c, low bits first, as code + 1; the scale is a tensor of one element
 * that multiplies (autobitlinear) or divides (bitlinear): scale_divides.
 * AFFINE (MLX): u32 words with `bits` bits per value, low bits first; scales and
 * biases (rows, cols / group); value = scale * q + bias. */
typedef struct mica__quant_matrix {
    mica__quant_id id;
    int64_t rows, cols;
    const void *data;
    const void *scales, *biases;
    mica__quant_id scale_type; /* F32, F16 or BF16                                 */
    bool scale_divides;
    int bits, group;           /* AFFINE: 2, 3, 4, 5, 6, 8 and 32, 64, 128         */
} mica__quant_matrix;

/* MICA_OK if the calls below can read the matrix; else MICA_ERR_ARGUMENT or
 * MICA_ERR_UNSUPPORTED with an error message that begins with `what`. */
mica_status mica__quant_matrix_check(const mica__quant_matrix *m, const char *what);
/* Bytes of data; the matrix must have passed the check. */
size_t mica__quant_matrix_nbytes(const mica__quant_matrix *m);

/* Row r as f32; and its dot product with x, summed in double in the order of
 * the columns. Tests compare every kernel with it. */
void mica__quant_unpack_row(const mica__quant_matrix *m, int64_t r, float *out);
double mica__quant_dot(const mica__quant_matrix *m, int64_t r, const float *x);
/* Does mica__quant_codes_row support the format? And: true, and the scale, if the
 * matrix has one scale for all elements. */
bool mica__quant_has_codes(mica__quant_id id);
bool mica__quant_one_scale(const mica__quant_matrix *m, float *scale);
/* Ternary and one-bit formats: the integer codes of row r. The scale of element c is
 * scales[c / *step]; scales has room for cols / 32 values. false if the format has
 * no codes. */
bool mica__quant_codes_row(const mica__quant_matrix *m, int64_t r, int8_t *codes, float *scales, int64_t *step);

/* --------------------------------------------------------------- packing -- */

/* Packs a whole tensor into `out`, which has the nbytes of the shape. MICA_ERR_ARGUMENT
 * names the first value that is not finite or whose scale overflows f16. */
mica_status mica__quant_pack(mica__quant_id id, const float *x, int64_t rows, int64_t cols, void *out);
/* Packs (rows, cols) codes of -1, 0, 1 into ceil(rows / 4) * cols bytes. */
void mica__pack_hf_ternary(const int8_t *codes, int64_t rows, int64_t cols, uint8_t *out);
/* Writes rows * cols * bits / 8 bytes, and a scale and a bias per group. */
void mica__pack_affine(const float *x, int64_t rows, int64_t cols, int bits, int group, uint8_t *out, float *scales,
                       float *biases);

/* BitNet's quantisation: scale = max(mean |x|, 1e-5), codes = x / scale, rounded to
 * nearest even and clamped to -1..1. The mean is summed in double. */
float mica__ternary_absmean(const float *x, size_t n, int8_t *codes);

/* The index of the first block whose scale is not finite or whose codes are invalid;
 * n_blocks if all are valid. */
size_t mica__quant_first_bad_block(mica__quant_id id, const void *blocks, size_t n_blocks);

/* The functions that quant.def refers to. */
mica__pack_fn mica__pack_f16, mica__pack_bf16, mica__pack_f32, mica__pack_f64;
mica__pack_fn mica__pack_q4_0, mica__pack_q4_1, mica__pack_q5_0, mica__pack_q5_1, mica__pack_q8_0;
mica__pack_fn mica__pack_q4_k, mica__pack_q5_k, mica__pack_q6_k;
mica__pack_fn mica__pack_tq1_0, mica__pack_tq2_0, mica__pack_i2_s, mica__pack_i2_s_arm, mica__pack_q1_0;
mica__pack_fn mica__pack_q1_0_g32, mica__pack_q2_0, mica__pack_pq2_0, mica__pack_ptq1_0;
mica__unpack_fn mica__unpack_f16, mica__unpack_bf16, mica__unpack_f32, mica__unpack_f64;
mica__unpack_fn mica__unpack_q4_0, mica__unpack_q4_1, mica__unpack_q5_0, mica__unpack_q5_1, mica__unpack_q8_0;
mica__unpack_fn mica__unpack_q4_k, mica__unpack_q5_k, mica__unpack_q6_k;
mica__unpack_fn mica__unpack_tq1_0, mica__unpack_tq2_0, mica__unpack_i2_s, mica__unpack_i2_s_arm, mica__unpack_q1_0;
mica__unpack_fn mica__unpack_q1_0_g32, mica__unpack_q2_0, mica__unpack_pq2_0, mica__unpack_ptq1_0;
mica__codes_fn mica__codes_tq1_0, mica__codes_tq2_0, mica__codes_i2_s, mica__codes_i2_s_arm, mica__codes_q1_0;
mica__codes_fn mica__codes_q1_0_g32, mica__codes_q2_0, mica__codes_pq2_0, mica__codes_ptq1_0;

#endif
