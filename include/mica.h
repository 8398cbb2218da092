/* mica: lazy arrays, gradients and plans for neural networks, in C.
 *
 * Terms. An *engine* owns a backend, its memory and its cache of plans. A
 * *scope* belongs to one engine and owns every array made through it. An
 * *array* is an immutable n-dimensional value: a lazy node of a graph until it
 * is evaluated, plain memory afterwards. A call that can fail returns a
 * *status*; mica_last_error() returns the error message that goes with it.
 *
 * Ownership. Ending a scope drops its arrays, so nested expressions do not
 * leak. To let an array outlive its scope, call mica_keep() and later
 * mica_drop(); these are the only two reference calls. Arguments are borrowed.
 * Pointers returned by getters are valid as long as the array. Kept arrays may
 * be used after mica_close(); the memory is freed with the last of them.
 *
 * Errors. A call that builds a graph returns NULL when it fails and the scope
 * keeps the first error; a NULL input gives a NULL result. So a program checks
 * once, at mica_eval(). Nothing in this library prints, exits or aborts.
 *
 * Threads. One scope, one thread. Engines may be used from many threads at
 * once. Any thread may read an evaluated array and build graphs with it; an
 * array that is not evaluated yet belongs to the thread of its scope.
 * mica_last_error() is per thread. A stack of 64 KB is enough for every call on
 * the cpu and ref backends.
 *
 * Fork. A child process made by fork() after mica_open cannot use the engines of its
 * parent: their threads do not exist there. It may read evaluated arrays (mica_data,
 * mica_copy_out). It may call the functions that free objects of the parent; they do
 * nothing, and release functions (mica_wrap) are not called, because the memory ends
 * with the process. Every other call with an engine, scope, event or function of the
 * parent fails with MICA_ERR_STATE; no call waits. The child may open new engines on
 * "cpu" and "ref"; "metal" is MICA_ERR_UNSUPPORTED until the child calls exec. The
 * parent is not affected.
 *
 * Order of this file: status, dtypes; engine, scope; reading and creating arrays;
 * ops; evaluation, gradients, loops; states, block formats; files; measurements.
 *
 *     mica_engine *e;
 *     if (mica_open(NULL, &e) != MICA_OK) {
 *         puts(mica_last_error());
 *         return 1;
 *     }
 *     mica_scope *s = mica_scope_begin(e);
 *     mica_array *x = mica_random_normal(s, MICA_F32, 2, (int64_t[]){32, 64}, 7);
 *     mica_array *w = mica_random_normal(s, MICA_F32, 2, (int64_t[]){64, 16}, 8);
 *     mica_array *y = mica_gelu(s, mica_matmul(s, x, w));   // nothing has run yet
 *     if (mica_eval(s, &y, 1) == MICA_OK) printf("%g\n", mica_data_f32(y)[0]);
 *     mica_scope_end(s);                                    // frees x, w, y
 *     mica_close(e);
 */
#ifndef MICA_H
#define MICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define MICA_API
#else
#define MICA_API __attribute__((visibility("default")))
#endif

#if defined(__GNUC__)
#define MICA_CHECK_RESULT __attribute__((warn_unused_result))
#else
#define MICA_CHECK_RESULT
#endif

#if defined(__GNUC__)
#define MICA_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define MICA_PRINTF(fmt, args)
#endif

/* Marks a function that may change or be removed in any release (docs/VERSIONING.md). It expands to nothing. */
#define MICA_UNSTABLE

/* ------------------------------------------------------------- version ---- */

#define MICA_VERSION_MAJOR 0
#define MICA_VERSION_MINOR 1
#define MICA_VERSION_PATCH 0
#define MICA_VERSION_STRING "0.1.0"

/* The version of the library that is running, to compare with the macros. */
MICA_API const char *mica_version(void);

/* -------------------------------------------------------------- status ---- */

/* Values are pinned: append, never renumber. */
#define MICA_STATUS_LIST(X)                             \
    X(MICA_OK, 0, "ok")                                 \
    X(MICA_ERR_ARGUMENT, 10, "invalid argument")        \
    X(MICA_ERR_SHAPE, 11, "shapes do not agree")        \
    X(MICA_ERR_DTYPE, 12, "element type does not fit")  \
    X(MICA_ERR_STATE, 13, "not possible in this state") \
    X(MICA_ERR_INDEX, 14, "index out of range")         \
    X(MICA_ERR_SIZE, 15, "size cannot be represented")  \
    X(MICA_ERR_FORMAT, 20, "malformed file")            \
    X(MICA_ERR_FILE, 21, "file cannot be used")         \
    X(MICA_ERR_MEMORY, 30, "out of memory")             \
    X(MICA_ERR_UNSUPPORTED, 40, "not supported")        \
    X(MICA_ERR_DEVICE, 50, "device failed")             \
    X(MICA_ERR_INTERNAL, 90, "internal inconsistency")

typedef enum mica_status {
#define MICA_STATUS_ENUM(name, value, text) name = value,
    MICA_STATUS_LIST(MICA_STATUS_ENUM)
#undef MICA_STATUS_ENUM
} mica_status;

/* The short text of a status; "unknown status" for a value that is not a status. */
MICA_API const char *mica_status_text(mica_status status);

/* The error message of this thread's last failure; "" if there was none. Valid
 * until the next failing call on the same thread. */
MICA_API const char *mica_last_error(void);

/* For libraries that are built on this one: stores the error message as this
 * thread's last failure and returns the status. */
MICA_API mica_status mica_fail(mica_status status, const char *format, ...) MICA_PRINTF(2, 3);

/* ------------------------------------------------------------- structs ---- */

/* Public structs that may grow begin with struct_size, the size that the caller's
 * header gives them: their _init function sets it, or .struct_size = sizeof x. New
 * fields are appended, and zero means "as before". One rule holds for all of them:
 *   - a struct that the caller fills may be smaller than the library's (an older
 *     header): the fields it lacks have their defaults. It may be larger (a newer
 *     header) if every byte that the library does not know is zero; else the call
 *     fails with MICA_ERR_ARGUMENT;
 *   - the library writes struct_size bytes into a struct that it fills: fields that
 *     the library does not know become zero.
 * A struct_size below sizeof(size_t), or more than 1024 bytes above what the library
 * knows, was not set: MICA_ERR_ARGUMENT. */

/* The two halves of the rule, for libraries that are built on this one. name is for the
 * error message ("open: mica_engine_options"), size is the sizeof that the callee was
 * compiled with. Read: full holds the defaults and gets the fields of given, which may
 * be NULL. */
MICA_API MICA_CHECK_RESULT mica_status mica_struct_read(const char *name, void *full, size_t size, const void *given);
/* Write: given gets the fields of full. */
MICA_API MICA_CHECK_RESULT mica_status mica_struct_write(const char *name, void *given, const void *full, size_t size);

/* -------------------------------------------------------------- dtypes ---- */

/* name, value, bytes, text. Values are pinned. */
#define MICA_DTYPE_LIST(X)      \
    X(MICA_BOOL, 0, 1, "bool")  \
    X(MICA_U8, 1, 1, "u8")      \
    X(MICA_I8, 2, 1, "i8")      \
    X(MICA_U16, 3, 2, "u16")    \
    X(MICA_I16, 4, 2, "i16")    \
    X(MICA_U32, 5, 4, "u32")    \
    X(MICA_I32, 6, 4, "i32")    \
    X(MICA_U64, 7, 8, "u64")    \
    X(MICA_I64, 8, 8, "i64")    \
    X(MICA_F16, 9, 2, "f16")    \
    X(MICA_BF16, 10, 2, "bf16") \
    X(MICA_F32, 11, 4, "f32")   \
    X(MICA_F64, 12, 8, "f64")

typedef enum mica_dtype {
#define MICA_DTYPE_ENUM(name, value, bytes, text) name = value,
    MICA_DTYPE_LIST(MICA_DTYPE_ENUM)
#undef MICA_DTYPE_ENUM
} mica_dtype;

/* Bytes of one element; 0 for a value that is not a dtype. */
MICA_API size_t mica_dtype_size(mica_dtype dtype);
MICA_API const char *mica_dtype_name(mica_dtype dtype);

/* The dtype that both operands are cast to before a binary op (docs/NUMERICS.md
 * has the table): bool < integers < floats; a float and an integer give the float;
 * f16 with bf16 gives f32; unsigned with signed gives the next wider signed,
 * u64 with signed gives i64. */
MICA_API mica_dtype mica_dtype_promote(mica_dtype a, mica_dtype b);

/* Conversions of single values: round to nearest even; a NaN stays a NaN. */
MICA_API uint16_t mica_f16_from_f32(float value);
MICA_API float mica_f16_to_f32(uint16_t bits);
MICA_API uint16_t mica_bf16_from_f32(float value);
MICA_API float mica_bf16_to_f32(uint16_t bits);

/* -------------------------------------------------------------- handles --- */

typedef struct mica_engine mica_engine;
typedef struct mica_scope mica_scope;
typedef struct mica_array mica_array;
typedef struct mica_event mica_event;
typedef struct mica_function mica_function;
typedef struct mica_file mica_file;

#define MICA_MAX_DIMS 8

/* Omits a bound of a slice. */
#define MICA_AUTO INT64_MIN

/* -------------------------------------------------------------- engine ---- */

/* Passes of the graph optimiser, all on by default. Turning one off changes
 * speed and memory, never a result beyond what docs/NUMERICS.md allows. */
typedef enum mica_pass {
    MICA_PASS_FOLD = 1 << 0,     /* compute once what depends on constants only    */
    MICA_PASS_ALGEBRA = 1 << 1,  /* x*1, x+0, double negation, cast of a cast ...  */
    MICA_PASS_MOVEMENT = 1 << 2, /* merge views, move them through element-wise ops */
    MICA_PASS_CSE = 1 << 3,      /* compute equal expressions once                  */
    MICA_PASS_FUSE = 1 << 4,     /* compute several ops in one kernel               */
    MICA_PASS_ORDER = 1 << 5,    /* choose an order that keeps peak memory low      */
    MICA_PASS_INPLACE = 1 << 6,  /* overwrite an operand after its last use         */
    MICA_PASS_NARROW = 1 << 7,   /* matmul reads i8, f16, bf16 without their casts  */
    MICA_PASS_LANES = 1 << 8,    /* split the batch of a scan over threads          */
    MICA_PASS_ALL = (1 << 9) - 1
} mica_pass;

typedef struct mica_engine_options {
    size_t struct_size;
    const char *backend;        /* "cpu", "metal", "ref"; NULL: $MICA_DEVICE, else the best */
    int threads;                /* 0: $MICA_THREADS, else the machine's performance cores */
    uint32_t passes;            /* mica_pass bits (default all); $MICA_PASSES overrides it */
    uint64_t memory_limit;      /* bytes of array memory, with cached memory; 0: no limit */
    uint64_t cache_limit;       /* bytes of free memory kept for reuse (default 1 GiB)    */
    uint32_t plan_cache_limit;  /* plans kept (default 512); the least recently used is freed first */
    bool prepack;               /* keep packed copies of weights that are multiplied again
                                 * (default true); $MICA_PREPACK=0 turns it off           */
} mica_engine_options;

/* Fill in the defaults; then set fields by name. */
MICA_API void mica_engine_options_init(mica_engine_options *options);

/* NULL options: the defaults. On failure *out is NULL. MICA_ERR_ARGUMENT also for an environment
 * variable whose value is not allowed (docs/ENVIRONMENT.md). */
MICA_API MICA_CHECK_RESULT mica_status mica_open(const mica_engine_options *options, mica_engine **out);
MICA_API void mica_close(mica_engine *engine);

MICA_API const char *mica_engine_backend(const mica_engine *engine);
/* The name of the device: "CPU", "CPU (reference backend)", "Apple M2 Pro"; the name of a software
 * device that replaces a GPU states that. */
MICA_API const char *mica_engine_device(const mica_engine *engine);
MICA_API int mica_engine_threads(const mica_engine *engine);

/* What an engine runs on. The strings are valid until mica_close. */
typedef struct mica_engine_info {
    size_t struct_size;
    const char *backend;        /* "cpu", "metal" or "ref"                                */
    const char *device;         /* as mica_engine_device                                  */
    int threads;                /* CPU threads, including the caller's                    */
    bool is_gpu;                /* a GPU, or a software device that replaces one          */
    bool is_software;           /* a software device that replaces a GPU: its times are CPU
                                 * times, not those of a GPU                              */
    bool is_reference;          /* the reference backend: correct, and slow               */
    bool unified_memory;        /* the device reads the memory of the CPU without copies  */
} mica_engine_info;

/* Set info->struct_size first: mica_engine_info i = {.struct_size = sizeof i}. */
MICA_API MICA_CHECK_RESULT mica_status mica_engine_describe(const mica_engine *engine, mica_engine_info *info);

/* Text for the user: this machine, the backends that can run here, and why others
 * cannot. Writes at most cap bytes with a final NUL and returns the length of the
 * whole text (as snprintf does). */
MICA_API size_t mica_doctor_text(char *buffer, size_t cap);

/* Give cached memory back to the system; returns the bytes released. */
MICA_API uint64_t mica_engine_trim(mica_engine *engine);

/* --------------------------------------------------------------- scope ---- */

/* NULL (and an error) if engine is NULL or closed, or there is no memory. */
MICA_API mica_scope *mica_scope_begin(mica_engine *engine);
MICA_API void mica_scope_end(mica_scope *scope);

/* The first failure since the scope began or was cleared. */
MICA_API mica_status mica_scope_status(const mica_scope *scope);
MICA_API const char *mica_scope_error(const mica_scope *scope);
MICA_API void mica_scope_clear_error(mica_scope *scope);
/* As mica_fail; the scope also keeps the error if it is its first. Returns NULL, so a
 * function that builds a graph of several ops can return its result. */
MICA_API mica_array *mica_scope_fail(mica_scope *scope, mica_status status, const char *format, ...) MICA_PRINTF(3, 4);

/* +1 / -1 reference; both accept NULL, keep returns its argument. */
MICA_API mica_array *mica_keep(mica_array *array);
MICA_API void mica_drop(mica_array *array);

/* ------------------------------------------------------------- inspect ---- */

MICA_API mica_dtype mica_array_dtype(const mica_array *array);
MICA_API int mica_array_ndim(const mica_array *array);
MICA_API const int64_t *mica_array_shape(const mica_array *array);
/* In elements, may be negative or zero; NULL before evaluation. */
MICA_API const int64_t *mica_array_strides(const mica_array *array);
MICA_API int64_t mica_array_size(const mica_array *array);    /* elements             */
MICA_API size_t mica_array_nbytes(const mica_array *array);   /* elements * dtype size */
MICA_API bool mica_array_is_ready(const mica_array *array);   /* evaluated?            */

/* The first element of an evaluated array; its strides give the others. Waits for an
 * asynchronous evaluation. NULL (and an error) when the array is not evaluated. */
MICA_API const void *mica_data(mica_array *array);

/* As mica_data, and NULL (and an error) unless the dtype is the named one and
 * the elements are contiguous (row-major, without gaps). */
MICA_API const bool *mica_data_bool(mica_array *array);
MICA_API const uint8_t *mica_data_u8(mica_array *array);
MICA_API const int8_t *mica_data_i8(mica_array *array);
MICA_API const uint16_t *mica_data_u16(mica_array *array);
MICA_API const int16_t *mica_data_i16(mica_array *array);
MICA_API const uint32_t *mica_data_u32(mica_array *array);
MICA_API const int32_t *mica_data_i32(mica_array *array);
MICA_API const uint64_t *mica_data_u64(mica_array *array);
MICA_API const int64_t *mica_data_i64(mica_array *array);
MICA_API const uint16_t *mica_data_f16(mica_array *array);
MICA_API const uint16_t *mica_data_bf16(mica_array *array);
MICA_API const float *mica_data_f32(mica_array *array);
MICA_API const double *mica_data_f64(mica_array *array);

/* Copy an evaluated array of any layout into row-major memory. nbytes must be
 * mica_array_nbytes(). */
MICA_API MICA_CHECK_RESULT mica_status mica_copy_out(mica_array *array, void *out, size_t nbytes);

/* The value of an evaluated one-element array, as a double. */
MICA_API MICA_CHECK_RESULT mica_status mica_item(mica_array *array, double *out);

/* ------------------------------------------------------------- creation --- */

/* Called exactly once with the wrapped pointer, also when wrapping fails. */
typedef void (*mica_release_fn)(void *data, void *user);

/* Copies data, which is row-major and has the number of elements of the shape. */
MICA_API mica_array *mica_from_data(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, const void *data);

/* Uses the caller's memory without a copy. data is the first element, strides
 * are in elements (NULL: row-major). The memory must not change until release
 * is called. release may be NULL. */
MICA_API mica_array *mica_wrap(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                               const void *data, mica_release_fn release, void *user);

/* A constant without a fixed dtype: in an op it gets the dtype of the other
 * operand (a fraction with an integer array makes both f32). Its value is part
 * of the plan; for a value that changes from step to step, like a learning
 * rate, use mica_from_data with ndim 0. */
MICA_API mica_array *mica_scalar(mica_scope *s, double value);

MICA_API mica_array *mica_zeros(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape);
MICA_API mica_array *mica_ones(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape);
MICA_API mica_array *mica_full(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, double value);
MICA_API mica_array *mica_full_i64(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, int64_t value);
/* start, start+step, ... before stop. */
MICA_API mica_array *mica_arange(mica_scope *s, mica_dtype dtype, double start, double stop, double step);
/* n values from start to stop, both included. */
MICA_API mica_array *mica_linspace(mica_scope *s, mica_dtype dtype, double start, double stop, int64_t n);
/* 1 where column == row + k, else 0. */
MICA_API mica_array *mica_eye(mica_scope *s, mica_dtype dtype, int64_t rows, int64_t cols, int64_t k);
/* 1 where column <= row + k, else 0. */
MICA_API mica_array *mica_tri(mica_scope *s, mica_dtype dtype, int64_t rows, int64_t cols, int64_t k);

/* --------------------------------------------------------------- random --- */

/* A counter-based generator (Philox 4x32-10): the value at an index depends on
 * seed and index only, so it is the same for any number of threads and on
 * every backend. The seed is data: a loop that changes it keeps its plan. (A
 * function traced by mica_call keeps the seed of the trace.) */

/* An independent seed for stream number index of a seed. */
MICA_API uint64_t mica_seed_split(uint64_t seed, uint64_t index);

MICA_API mica_array *mica_random_bits(mica_scope *s, mica_dtype dtype /* u32 or u64 */, int ndim, const int64_t *shape,
                                      uint64_t seed);
/* [low, high) */
MICA_API mica_array *mica_random_uniform(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, double low,
                                         double high, uint64_t seed);
/* mean 0, variance 1 */
MICA_API mica_array *mica_random_normal(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, uint64_t seed);
/* the standard normal, truncated to [low, high] */
MICA_API mica_array *mica_random_truncated_normal(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape,
                                                  double low, double high, uint64_t seed);
/* bool, true with probability p */
MICA_API mica_array *mica_random_bernoulli(mica_scope *s, int ndim, const int64_t *shape, double p, uint64_t seed);
/* integers of [low, high) */
MICA_API mica_array *mica_random_randint(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, int64_t low,
                                         int64_t high, uint64_t seed);
/* One index (i64) for each row of unnormalised log-probabilities (last axis). A row that is all -inf, or has a
 * NaN, has no distribution: the evaluation fails with MICA_ERR_INDEX and the row's number. */
MICA_API mica_array *mica_random_categorical(mica_scope *s, mica_array *logits, uint64_t seed);
/* 0 ... n-1 (i64) in random order */
MICA_API mica_array *mica_random_permutation(mica_scope *s, int64_t n, uint64_t seed);

/* ---------------------------------------------------------------- views --- */

/* These copy only where strides cannot express the result. Negative axes count
 * from the end. */

/* One size may be -1: it follows from the others. */
MICA_API mica_array *mica_reshape(mica_scope *s, mica_array *x, int ndim, const int64_t *shape);
MICA_API mica_array *mica_flatten(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_expand_dims(mica_scope *s, mica_array *x, int axis);
MICA_API mica_array *mica_squeeze(mica_scope *s, mica_array *x, int axis);
/* axes has one entry per dimension. */
MICA_API mica_array *mica_permute(mica_scope *s, mica_array *x, const int *axes);
/* Swaps the last two axes. */
MICA_API mica_array *mica_transpose(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_flip(mica_scope *s, mica_array *x, int axis);
/* start, stop and step have one entry per dimension and the meaning they have in
 * Python; MICA_AUTO omits a bound; step NULL: all 1. */
MICA_API mica_array *mica_slice(mica_scope *s, mica_array *x, const int64_t *start, const int64_t *stop,
                                const int64_t *step);
MICA_API mica_array *mica_slice_axis(mica_scope *s, mica_array *x, int axis, int64_t start, int64_t stop, int64_t step);
MICA_API mica_array *mica_broadcast_to(mica_scope *s, mica_array *x, int ndim, const int64_t *shape);
/* Row-major without gaps; copied only if x is not contiguous already. */
MICA_API mica_array *mica_contiguous(mica_scope *s, mica_array *x);

/* ------------------------------------------------- element-wise, one input - */

MICA_API mica_array *mica_cast(mica_scope *s, mica_array *x, mica_dtype dtype);

MICA_API mica_array *mica_neg(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_abs(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_sign(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_exp(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_expm1(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_log(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_log1p(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_log2(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_log10(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_sqrt(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_rsqrt(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_reciprocal(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_square(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_sin(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_cos(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_tan(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_asin(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_acos(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_atan(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_sinh(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_cosh(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_tanh(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_erf(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_erfinv(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_sigmoid(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_relu(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_relu2(mica_scope *s, mica_array *x);      /* relu(x)^2                     */
MICA_API mica_array *mica_gelu(mica_scope *s, mica_array *x);       /* x * Phi(x), with erf          */
MICA_API mica_array *mica_gelu_tanh(mica_scope *s, mica_array *x);  /* the tanh approximation        */
MICA_API mica_array *mica_silu(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_softplus(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_softsign(mica_scope *s, mica_array *x);   /* x / (1 + |x|)                 */
MICA_API mica_array *mica_leaky_relu(mica_scope *s, mica_array *x, double slope);
MICA_API mica_array *mica_elu(mica_scope *s, mica_array *x, double alpha);
MICA_API mica_array *mica_lecun_tanh(mica_scope *s, mica_array *x); /* 1.7159 tanh(2x/3)             */
MICA_API mica_array *mica_floor(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_ceil(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_round(mica_scope *s, mica_array *x);      /* ties to even                  */
MICA_API mica_array *mica_trunc(mica_scope *s, mica_array *x);      /* towards 0                     */
MICA_API mica_array *mica_isnan(mica_scope *s, mica_array *x);      /* bool, also the next two       */
MICA_API mica_array *mica_isinf(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_isfinite(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_logical_not(mica_scope *s, mica_array *x);
MICA_API mica_array *mica_bitwise_not(mica_scope *s, mica_array *x);

/* ----------------------------------------- element-wise, two and more inputs */

/* Shapes broadcast as in NumPy, dtypes promote (mica_dtype_promote). */
MICA_API mica_array *mica_add(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_sub(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_mul(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_div(mica_scope *s, mica_array *a, mica_array *b);       /* integers give f32        */
MICA_API mica_array *mica_floor_div(mica_scope *s, mica_array *a, mica_array *b); /* integer x/0 is 0         */
MICA_API mica_array *mica_mod(mica_scope *s, mica_array *a, mica_array *b);       /* sign of b; integer x%0=0 */
MICA_API mica_array *mica_pow(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_minimum(mica_scope *s, mica_array *a, mica_array *b);   /* NaN if either is NaN     */
MICA_API mica_array *mica_maximum(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_atan2(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_hypot(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_equal(mica_scope *s, mica_array *a, mica_array *b);     /* comparisons give bool    */
MICA_API mica_array *mica_not_equal(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_less(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_less_equal(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_greater(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_greater_equal(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_logical_and(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_logical_or(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_logical_xor(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_bitwise_and(mica_scope *s, mica_array *a, mica_array *b); /* integers and bool      */
MICA_API mica_array *mica_bitwise_or(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_bitwise_xor(mica_scope *s, mica_array *a, mica_array *b);
/* A count outside 0 ... bits-1 shifts everything out. */
MICA_API mica_array *mica_shift_left(mica_scope *s, mica_array *a, mica_array *b);
MICA_API mica_array *mica_shift_right(mica_scope *s, mica_array *a, mica_array *b);

MICA_API mica_array *mica_where(mica_scope *s, mica_array *condition, mica_array *a, mica_array *b);
/* low or high may be NULL: no bound on that side. */
MICA_API mica_array *mica_clip(mica_scope *s, mica_array *x, mica_array *low, mica_array *high);
MICA_API mica_array *mica_fma(mica_scope *s, mica_array *a, mica_array *b, mica_array *c); /* a*b+c, one rounding */

/* ----------------------------------------------------------- reductions --- */

/* axes NULL with n_axes 0: all axes. keep: reduced axes stay with size 1. Sums
 * and products of integers and bool are i64 (u64 for unsigned). mean, var, std,
 * norm and logsumexp are floats. */
MICA_API mica_array *mica_sum(mica_scope *s, mica_array *x, const int *axes, int n_axes, bool keep);
MICA_API mica_array *mica_mean(mica_scope *s, mica_array *x, const int *axes, int n_axes, bool keep);
MICA_API mica_array *mica_prod(mica_scope *s, mica_array *x, const int *axes, int n_axes, bool keep);
MICA_API mica_array *mica_max(mica_scope *s, mica_array *x, const int *axes, int n_axes, bool keep);
MICA_API mica_array *mica_min(mica_scope *s, mica_array *x, const int *axes, int n_axes, bool keep);
MICA_API mica_array *mica_any(mica_scope *s, mica_array *x, const int *axes, int n_axes, bool keep);
MICA_API mica_array *mica_all(mica_scope *s, mica_array *x, const int *axes, int n_axes, bool keep);
/* The divisor is count - ddof: 0 population, 1 sample. */
MICA_API mica_array *mica_var(mica_scope *s, mica_array *x, const int *axes, int n_axes, int ddof, bool keep);
MICA_API mica_array *mica_std(mica_scope *s, mica_array *x, const int *axes, int n_axes, int ddof, bool keep);
/* (sum |x|^order)^(1/order); INFINITY: the largest |x|; 0: the number of elements that are not 0. */
MICA_API mica_array *mica_norm(mica_scope *s, mica_array *x, double order, const int *axes, int n_axes, bool keep);
MICA_API mica_array *mica_logsumexp(mica_scope *s, mica_array *x, const int *axes, int n_axes, bool keep);
/* i64, the first of equal elements; NaN counts as the largest and as the smallest. */
MICA_API mica_array *mica_argmax(mica_scope *s, mica_array *x, int axis, bool keep);
MICA_API mica_array *mica_argmin(mica_scope *s, mica_array *x, int axis, bool keep);

MICA_API mica_array *mica_cumsum(mica_scope *s, mica_array *x, int axis);
MICA_API mica_array *mica_cumprod(mica_scope *s, mica_array *x, int axis);
MICA_API mica_array *mica_cummax(mica_scope *s, mica_array *x, int axis);

/* ----------------------------------------------- joining, indexing, sorting */

MICA_API mica_array *mica_concat(mica_scope *s, mica_array *const *arrays, size_t n, int axis);
MICA_API mica_array *mica_stack(mica_scope *s, mica_array *const *arrays, size_t n, int axis);
/* Parts of the given sizes along axis, into out[n]. */
MICA_API mica_status mica_split(mica_scope *s, mica_array *x, int axis, const int64_t *sizes, size_t n,
                                mica_array **out);
MICA_API mica_array *mica_pad(mica_scope *s, mica_array *x, const int64_t *low, const int64_t *high, double value);
MICA_API mica_array *mica_tile(mica_scope *s, mica_array *x, const int64_t *reps);
MICA_API mica_array *mica_repeat(mica_scope *s, mica_array *x, int64_t count, int axis);
MICA_API mica_array *mica_roll(mica_scope *s, mica_array *x, int64_t shift, int axis);

/* Indices are integers; negative ones count from the end. An index out of range
 * is MICA_ERR_INDEX when the graph is evaluated. */
MICA_API mica_array *mica_take(mica_scope *s, mica_array *x, mica_array *indices, int axis);
MICA_API mica_array *mica_take_along_axis(mica_scope *s, mica_array *x, mica_array *indices, int axis);
/* indices (..., k) name positions on the first k axes: out (..., rest of x). */
MICA_API mica_array *mica_gather(mica_scope *s, mica_array *x, mica_array *indices);
/* A copy of x in which updates (..., rest of x) replace elements or are added. Of
 * several updates to one position, scatter keeps the last. */
MICA_API mica_array *mica_scatter(mica_scope *s, mica_array *x, mica_array *indices, mica_array *updates);
MICA_API mica_array *mica_scatter_add(mica_scope *s, mica_array *x, mica_array *indices, mica_array *updates);
/* Rows of table (n, ...). */
MICA_API mica_array *mica_embedding(mica_scope *s, mica_array *table, mica_array *ids);
/* 1 at the position of the id, else 0; an id out of range gives a row of zeros. */
MICA_API mica_array *mica_one_hot(mica_scope *s, mica_array *ids, int64_t depth, mica_dtype dtype);

/* Stable; NaN sorts as the largest. */
MICA_API mica_array *mica_sort(mica_scope *s, mica_array *x, int axis, bool descending);
MICA_API mica_array *mica_argsort(mica_scope *s, mica_array *x, int axis, bool descending);
/* The k largest along axis, largest first; values or indices may be NULL. */
MICA_API mica_status mica_topk(mica_scope *s, mica_array *x, int64_t k, int axis, mica_array **values,
                               mica_array **indices);

/* ------------------------------------------------------- neural networks -- */

MICA_API mica_array *mica_softmax(mica_scope *s, mica_array *x, int axis);
MICA_API mica_array *mica_log_softmax(mica_scope *s, mica_array *x, int axis);
/* Over the last axis; weight and bias, of its size, may be NULL. */
MICA_API mica_array *mica_layer_norm(mica_scope *s, mica_array *x, mica_array *weight, mica_array *bias, double eps);
MICA_API mica_array *mica_rms_norm(mica_scope *s, mica_array *x, mica_array *weight, double eps);

/* As NumPy's: batch dimensions broadcast, a 1-d operand is a row or a column.
 * Transposed operands (mica_transpose) are read in place. */
MICA_API mica_array *mica_matmul(mica_scope *s, mica_array *a, mica_array *b);

typedef struct mica_conv_options {
    size_t struct_size;
    int64_t stride[2];
    int64_t padding[2];         /* zeros on both sides                                 */
    int64_t dilation[2];
    int64_t output_padding[2];  /* transposed convolution: extra size at the end       */
    int64_t groups;
} mica_conv_options;

MICA_API void mica_conv_options_init(mica_conv_options *options);

/* x (batch, channels, size...), w (out, channels / groups, kernel...). NULL
 * options: stride 1, no padding. */
MICA_API mica_array *mica_conv1d(mica_scope *s, mica_array *x, mica_array *w, const mica_conv_options *options);
MICA_API mica_array *mica_conv2d(mica_scope *s, mica_array *x, mica_array *w, const mica_conv_options *options);
/* w (channels, out / groups, kernel...): the gradient of conv with respect to x. */
MICA_API mica_array *mica_conv_transpose1d(mica_scope *s, mica_array *x, mica_array *w,
                                           const mica_conv_options *options);
MICA_API mica_array *mica_conv_transpose2d(mica_scope *s, mica_array *x, mica_array *w,
                                           const mica_conv_options *options);

typedef struct mica_pool_options {
    size_t struct_size;
    int64_t kernel[2];
    int64_t stride[2];          /* 0: the kernel size                                  */
    int64_t padding[2];
    bool exclude_padding;       /* average over elements inside x only                 */
} mica_pool_options;

MICA_API void mica_pool_options_init(mica_pool_options *options);

MICA_API mica_array *mica_max_pool1d(mica_scope *s, mica_array *x, const mica_pool_options *options);
MICA_API mica_array *mica_max_pool2d(mica_scope *s, mica_array *x, const mica_pool_options *options);
MICA_API mica_array *mica_avg_pool1d(mica_scope *s, mica_array *x, const mica_pool_options *options);
MICA_API mica_array *mica_avg_pool2d(mica_scope *s, mica_array *x, const mica_pool_options *options);

typedef struct mica_rope_options {
    size_t struct_size;
    int64_t dims;               /* elements of the last axis that are rotated; 0: all  */
    double base;
    double scale;               /* factor of positions                                 */
    bool interleaved;           /* pairs (0,1)(2,3)...; else first half with second    */
    mica_array *factors;        /* (dims / 2) divisors of the angle of each pair; NULL: all 1 */
    double magnitude;           /* factor of the rotated part (YaRN); default 1        */
} mica_rope_options;

MICA_API void mica_rope_options_init(mica_rope_options *options);

/* x (..., time, dims). positions: (time) or broadcastable to (..., time), any
 * dtype; NULL: 0, 1, 2, ... Pair i is rotated by the angle
 * position * scale * base^(-2i / dims) / factors[i]. */
MICA_API mica_array *mica_rope(mica_scope *s, mica_array *x, mica_array *positions, const mica_rope_options *options);

typedef struct mica_attention_options {
    size_t struct_size;
    double scale;               /* 0: 1 / sqrt(dims)                                   */
    bool causal;                /* the last query sees all keys                        */
    mica_array *k_scale, *v_scale; /* mica_attention_cached: scales of i8 k, v         */
} mica_attention_options;

MICA_API void mica_attention_options_init(mica_attention_options *options);

/* q (batch, heads, time, dims), k and v (batch, kv_heads, keys, dims); heads is
 * a multiple of kv_heads. mask: bool (true: attend) or float (added), NULL or
 * broadcastable to (batch, heads, time, keys). A row whose keys are all masked is 0. */
MICA_API mica_array *mica_attention(mica_scope *s, mica_array *q, mica_array *k, mica_array *v, mica_array *mask,
                                    const mica_attention_options *options);

/* The input of neurons through gated synapses (liquid networks):
 * open = sigmoid(sigma (x[source] - mu)), then for each column the sum of drive * open
 * and the sum of weight * open. x (..., sources); the result is (..., 2, columns).
 * Dense, source and first NULL: all pairs; sigma, mu, drive, weight are (sources, columns).
 * Sparse, time and memory grow with the synapses: sigma, mu, drive, weight (synapses);
 * source (synapses), integers, is the source of each synapse; column c has the synapses
 * first[c] ... first[c + 1] - 1. first ascends from 0 to the number of synapses. Other
 * values, and a source out of range, are MICA_ERR_INDEX at evaluation. */
MICA_API mica_array *mica_synapses(mica_scope *s, mica_array *x, mica_array *source, mica_array *first,
                                   mica_array *sigma, mica_array *mu, mica_array *drive, mica_array *weight);

/* -log softmax(logits)[label] of each row; labels are integers. */
MICA_API mica_array *mica_cross_entropy(mica_scope *s, mica_array *logits, mica_array *labels);

/* ----------------------------------------------------------- evaluation --- */

/* Computes these arrays and the arrays they depend on. Equal graphs use the same
 * plan. Returns the first failure of the scope if there was one. */
MICA_API MICA_CHECK_RESULT mica_status mica_eval(mica_scope *s, mica_array *const *arrays, size_t n);

/* As mica_eval, on a thread of the engine; mica_wait returns a failure. The arrays
 * may be used to build graphs at once; evaluating those graphs waits. The caller
 * frees *event with mica_event_free, before or after the evaluation has ended. */
MICA_API MICA_CHECK_RESULT mica_status mica_eval_async(mica_scope *s, mica_array *const *arrays, size_t n,
                                                       mica_event **event);
MICA_API MICA_CHECK_RESULT mica_status mica_wait(mica_event *event);
MICA_API void mica_event_free(mica_event *event);

/* Does what mica_eval of these arrays does before it runs: makes the plan, compiles
 * GPU kernels, and packs the weights of matrix products (not those inside the body of
 * a mica_scan). The next mica_eval of an equal graph then only runs. Needs the memory
 * of one evaluation while it packs. */
MICA_API MICA_CHECK_RESULT mica_status mica_prepare(mica_scope *s, mica_array *const *arrays, size_t n);

typedef struct mica_plan_info {
    size_t struct_size;
    uint64_t kernels;           /* kernel launches                                     */
    uint64_t nodes;             /* ops that they compute                               */
    uint64_t flops;
    uint64_t bytes_read, bytes_written;
    uint64_t arena_bytes;       /* temporaries                                         */
    uint64_t output_bytes;
    uint64_t peak_bytes;        /* arena + outputs: memory that evaluation adds        */
} mica_plan_info;

/* The cost of evaluating these arrays; plans, but runs nothing. */
MICA_API MICA_CHECK_RESULT mica_status mica_plan_query(mica_scope *s, mica_array *const *arrays, size_t n,
                                                       mica_plan_info *info);

typedef enum mica_dump {
    MICA_DUMP_GRAPH = 0,        /* the graph as built                                  */
    MICA_DUMP_SIMPLE = 1,       /* the graph after the passes                          */
    MICA_DUMP_PLAN = 2,         /* kernels, bytes, flops, memory                       */
    MICA_DUMP_KERNELS = 3,      /* the kernel programs                                 */
    MICA_DUMP_MSL = 4           /* the same as Metal shader text                       */
} mica_dump;

/* The graph or plan as text, written as mica_doctor_text does; length may be NULL. */
MICA_API MICA_UNSTABLE MICA_CHECK_RESULT mica_status mica_plan_text(mica_scope *s, mica_array *const *arrays, size_t n,
                                                                    mica_dump what, char *buffer, size_t cap,
                                                                    size_t *length);

/* ------------------------------------------------------------ gradients --- */

/* Gradients are graphs like any other: they can be differentiated again. They
 * reach through everything that is not evaluated yet and through what this scope
 * made. An array that was evaluated in another scope is a constant, as if by
 * mica_stop_gradient, because its inputs are dropped when that scope ends. If a
 * requested gradient could reach wrt[i] only through such an array, the call fails
 * with MICA_ERR_STATE: the value is unknown, not zero. */

/* d loss / d wrt[i] into grads[i]; loss has one element. An array that loss
 * does not depend on gets zeros. */
MICA_API MICA_CHECK_RESULT mica_status mica_grad(mica_scope *s, mica_array *loss, mica_array *const *wrt, size_t n,
                                                 mica_array **grads);
/* sum_j <cotangents[j], d outputs[j] / d wrt[i]>. */
MICA_API MICA_CHECK_RESULT mica_status mica_vjp(mica_scope *s, mica_array *const *outputs,
                                                mica_array *const *cotangents, size_t n_outputs, mica_array *const *wrt,
                                                size_t n, mica_array **grads);

typedef mica_array *(*mica_loss_fn)(mica_scope *s, mica_array *const *params, size_t n, void *user);
MICA_API MICA_CHECK_RESULT mica_status mica_value_and_grad(mica_scope *s, mica_loss_fn loss, void *user,
                                                           mica_array *const *params, size_t n, mica_array **value,
                                                           mica_array **grads);

MICA_API mica_array *mica_stop_gradient(mica_scope *s, mica_array *x);

/* Fill grads[i] (NULL: zero) from the cotangent of y. */
typedef mica_status (*mica_vjp_fn)(mica_scope *s, mica_array *cotangent, mica_array *const *inputs, size_t n,
                                   mica_array **grads, void *user);
/* y itself, but fn computes its gradient with respect to inputs. release (may be
 * NULL) is called once with user when the result is freed. */
MICA_API mica_array *mica_custom_grad(mica_scope *s, mica_array *y, mica_array *const *inputs, size_t n, mica_vjp_fn fn,
                                      void *user, mica_release_fn release);

/* y itself, but its gradient recomputes the activations between inputs and y
 * instead of storing them. */
MICA_API mica_array *mica_checkpoint(mica_scope *s, mica_array *y, mica_array *const *inputs, size_t n);

/* ----------------------------------------------------- loops and functions - */

/* One step of a recurrence: from carry[] and the slices x[] build carry_out[]
 * (same shapes and dtypes as carry) and y_out[]. May use arrays from outside. */
typedef mica_status (*mica_scan_fn)(mica_scope *s, mica_array *const *carry, mica_array *const *x,
                                    mica_array **carry_out, mica_array **y_out, void *user);

typedef struct mica_scan_options {
    size_t struct_size;
    size_t n_carry, n_x, n_y;
    int64_t length;             /* steps; 0: the size of axis 0 of xs                  */
    bool reverse;               /* from the last step to the first                     */
} mica_scan_options;

MICA_API void mica_scan_options_init(mica_scan_options *options);

/* Runs step along axis 0 of xs; carry_out[] gets the last carry, ys[] the y of
 * each step, stacked. The step is traced and planned once. */
MICA_API mica_status mica_scan(mica_scope *s, mica_scan_fn step, void *user, const mica_scan_options *options,
                               mica_array *const *carry, mica_array *const *xs, mica_array **carry_out,
                               mica_array **ys);

/* A function of arrays, traced once for each combination of shapes and dtypes
 * it is called with; later calls build no graph. */
typedef mica_status (*mica_trace_fn)(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                                     void *user);
MICA_API MICA_CHECK_RESULT mica_status mica_compile(mica_engine *engine, mica_trace_fn fn, void *user,
                                                    mica_function **out);
/* Evaluates: out[] are ready when it returns. They carry no gradient: mica_grad treats them as constants, so
 * the gradient of a loss with respect to in[] through out[] is zero, without an error. */
MICA_API MICA_CHECK_RESULT mica_status mica_call(mica_scope *s, mica_function *function, mica_array *const *in,
                                                 size_t n_in, mica_array **out, size_t n_out);
MICA_API void mica_function_free(mica_function *function);

/* --------------------------------------------------------------- state ---- */

/* Memory that is updated in place, zeros at first: the only kind of array that
 * changes (docs/adr/0008). It counts as evaluated from the start and is read like
 * any other array. In a graph that both reads and updates it, a reader of the state
 * gets the values before the update, and a reader of the result of mica_update gets
 * those after it. If no order of steps satisfies both: MICA_ERR_STATE, nothing runs.
 * Once evaluated, the state, the results of its updates and views of these are all
 * the same memory, with the values that were written last.
 *
 * Threads. The caller ensures that an evaluation that updates a state runs alone;
 * evaluations that only read it may run at the same time. A kept state may move
 * between threads. It belongs to its engine, as any array. */
MICA_API mica_array *mica_state(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape);

/* The state after values replaced positions start, start + 1, ... of axis; the
 * other axes agree. state: the result of mica_state or of an update, an evaluated
 * contiguous view of these, or an input of a traced function that is called with
 * one of them. start is an array of one integer; it is data, not part of the
 * plan. A range that does not fit is MICA_ERR_INDEX when it is evaluated, and
 * nothing is written. values are cast to the dtype of the state. The update runs
 * once, with the first evaluation that needs it, and has no gradient. */
MICA_API mica_array *mica_update(mica_scope *s, mica_array *state, mica_array *values, mica_array *start, int axis);

/* As mica_attention, over the first `length` keys of k and v (f32, f16 or bf16).
 * length is an array of one integer; it is data, not part of the plan. Keys past it
 * are not read; a length that does not fit is MICA_ERR_INDEX. causal: the last query
 * is at position length - 1. The result has the dtype of q; a query gives the same
 * bits alone and in a batch (docs/NUMERICS.md). For a cache of half the size, k and v
 * are i8, and options->k_scale and v_scale (batch, kv_heads, keys), f32 or f16, are
 * the factors of their rows (mica_rows_to_i8). */
MICA_API mica_array *mica_attention_cached(mica_scope *s, mica_array *q, mica_array *k, mica_array *v,
                                           mica_array *length, const mica_attention_options *options);

/* Rows (the last axis) of x as 8-bit integers and one f32 scale per row, max|x| / 127:
 * codes * scales differs from x by at most half a scale. A row of zeros has scale 0; a
 * row with NaN or infinity does not give finite values back. */
MICA_API mica_status mica_rows_to_i8(mica_scope *s, mica_array *x, mica_array **codes, mica_array **scales);

/* -------------------------------------------------------- block formats --- */

/* A matrix as model files store it: blocks of values with few bits that share scales.
 * Formats have the names of GGUF ("TQ2_0", "I2_S", "Q6_K", "F16", ...). Two more have
 * their scales in separate arrays: "HF_TERNARY" (four rows per byte; one scale) and
 * "AFFINE" (MLX: bits and group; scales and biases (rows, cols / group)). */
typedef struct mica_quant {
    size_t struct_size;
    const char *format;
    int64_t rows, cols;
    mica_array *data;           /* u8: the bytes; plain formats also (rows, cols) of their dtype */
    mica_array *scales, *biases; /* NULL if the format does not have them              */
    bool scale_divides;         /* HF_TERNARY: value = code / scale, not code * scale  */
    int bits, group;            /* AFFINE                                              */
} mica_quant;

/* How x is quantised before the product with a quantised matrix. BitNet was trained
 * with rows rounded to 8 bits: scale 127 / max(|x|, 1e-5), ties to even. */
typedef enum mica_act {
    MICA_ACT_NONE = 0,          /* not at all                                          */
    MICA_ACT_TOKEN = 1,         /* 8 bits, one scale per row                           */
    MICA_ACT_BLOCK256 = 2       /* 8 bits, one scale per 256 columns                   */
} mica_act;

/* x (..., cols) times the transposed matrix: (..., rows) in f32. With 8-bit x and
 * ternary codes the sums are exact integers. */
MICA_API mica_array *mica_quant_matmul(mica_scope *s, mica_array *x, const mica_quant *w, mica_act act);
/* Rows of the matrix as f32: (shape of ids..., cols). */
MICA_API mica_array *mica_quant_rows(mica_scope *s, const mica_quant *w, mica_array *ids);

/* Bytes of a matrix in a format, 0 if there is no such format or it cannot hold
 * the shape (mica_last_error() returns the reason). */
MICA_API size_t mica_quant_nbytes(const char *format, int64_t rows, int64_t cols);
/* Convert between row-major f32 and a format; nbytes must be mica_quant_nbytes(). */
MICA_API MICA_CHECK_RESULT mica_status mica_quant_pack(const char *format, int64_t rows, int64_t cols, const float *x,
                                                       void *out, size_t nbytes);
MICA_API MICA_CHECK_RESULT mica_status mica_quant_unpack(const char *format, int64_t rows, int64_t cols,
                                                         const void *blocks, size_t nbytes, float *out);

/* How a format stores its numbers. */
typedef enum mica_format_kind {
    MICA_FORMAT_PLAIN = 0,      /* numbers without blocks                              */
    MICA_FORMAT_BLOCKS = 1,     /* blocks along a row                                  */
    MICA_FORMAT_PANELS = 2,     /* blocks of several rows; a matrix is padded to whole ones */
    MICA_FORMAT_APART = 3       /* scales are separate arrays: HF_TERNARY, AFFINE      */
} mica_format_kind;

/* The properties of a format. */
typedef struct mica_format_info {
    size_t struct_size;         /* set by the caller                                   */
    const char *name;           /* "Q4_K"                                              */
    const char *about;          /* one line                                            */
    mica_format_kind kind;
    double bits_per_weight;     /* without padding and tail; 0: it varies (AFFINE)     */
    int64_t block_elements;     /* elements of a row in a block; 0: it varies          */
    int64_t block_rows;
    int64_t block_bytes;
    int64_t tail_bytes;         /* bytes after the last block of a tensor              */
    int64_t scale_offset;       /* offset of the f16 scale in a block; -1: none        */
    int code_bits;              /* bits of a code if codes are bit fields, else 0      */
    int dtype;                  /* mica_dtype of plain formats, or -1                  */
    int64_t gguf_type;          /* type id in GGUF files, or -1                        */
    int gguf_file_type;         /* general.file_type of files that are mostly this, or -1 */
    const char *safetensors;    /* dtype in safetensors files, or NULL                 */
    bool readable;              /* mica_quant_matmul and mica_quant_rows read it       */
    bool packable;              /* mica_quant_pack writes it                           */
    bool output;                /* mica_quantize writes it                             */
    bool ternary;               /* values are a scale times -1, 0, 1                   */
    bool one_scale;             /* one scale for the whole tensor                      */
    const char *fallback;       /* used where rows do not fill its blocks, or NULL     */
} mica_format_info;

/* All formats, in a fixed order. */
MICA_API size_t mica_format_count(void);
/* False if there is no format number i, or none of that name (in upper or lower case); info may be NULL. */
MICA_API bool mica_format_at(size_t i, mica_format_info *info);
MICA_API bool mica_format_find(const char *name, mica_format_info *info);

/* ----------------------------------------------------- numbers as text ---- */

/* Numbers as text with a decimal point, independent of the locale. strtod and printf follow
 * the locale; with a decimal comma they would read and write files differently. */

/* Parses all of text[length], which needs no final NUL: digits with at most one point, an
 * optional sign before and an optional exponent after them ("-2.5e-3", ".5"), or "inf" or "nan".
 * Rounds to the nearest double. False: the text is not such a number (hexadecimal, a blank, more
 * text) or is larger than the largest double; *out is unchanged. */
MICA_API MICA_CHECK_RESULT bool mica_number_parse(const char *text, size_t length, double *out);

/* Bytes that are enough for any number and its NUL. */
#define MICA_NUMBER_TEXT 32
/* As "%g", with as many more digits as are needed to read the same value back. A NaN is "nan".
 * Returns buffer; NULL (and an error) if cap is too small: nothing is truncated. */
MICA_API const char *mica_number_print(double value, char *buffer, size_t cap);

/* ---------------------------------------------------------------- files --- */

typedef struct mica_file_options {
    size_t struct_size;
    bool check;                 /* read all data too: check checksums and finite scales     */
    bool i2_s_arm;              /* I2_S as ARM builds of bitnet.cpp write it; not stated in files */
    uint64_t inflate_limit;     /* most bytes of decompressed npz entries; 0: 4 GiB       */
    bool no_mmap;               /* read the file into memory instead of mapping it; $MICA_MMAP=0: always */
} mica_file_options;

MICA_API void mica_file_options_init(mica_file_options *options);

/* Opens safetensors (also sharded), GGUF, npy and npz, recognised by content. A
 * folder: the model in it; its config.json, generation_config.json and
 * tokenizer_config.json become metadata ("config.hidden_size"). Members of objects
 * are joined with dots, lists of one type are arrays, items of other lists have a
 * number ("config.list.0.name"), null is absent. Every size in the file is checked.
 *
 * The file is mapped, so pages are read when they are used. It must not change while it
 * is open, or an array made from it is in use. Every evaluation that reads it, mica_data*,
 * mica_copy_out and mica_item first check its size and modification time: if they changed since
 * it was opened, the call fails with MICA_ERR_FILE and reads nothing (a file that was replaced
 * by rename is not changed; the old one stays mapped). The check costs one fstat per file. It
 * does not help against a file that becomes shorter during an evaluation, while mica_file_open
 * reads its header, or while the program reads through mica_tensor_info.data, metadata or
 * mica_data: the system then raises SIGBUS. The library installs no signal handler. For files
 * that may change set no_mmap: the file is read whole into memory that belongs to it, which
 * the memory limits of engines do not count. Anything but a regular file is refused. */
MICA_API MICA_CHECK_RESULT mica_status mica_file_open(const char *path, const mica_file_options *options,
                                                      mica_file **out);
/* The same for one file that is in memory already. The memory must not change while
 * the file or an array made from it is in use. name is for error messages. */
MICA_API MICA_CHECK_RESULT mica_status mica_file_from_memory(const char *name, const void *data, size_t nbytes,
                                                             const mica_file_options *options, mica_file **out);
/* Arrays that were made from it keep what they need. */
MICA_API void mica_file_close(mica_file *file);
/* "gguf", "safetensors", "npy" or "npz". */
MICA_API const char *mica_file_kind(const mica_file *file);
/* MICA_ERR_FILE if its size or modification time changed since it was opened. A file that was
 * read (no_mmap) or is in memory never changes. */
MICA_API MICA_CHECK_RESULT mica_status mica_file_unchanged(const mica_file *file);

typedef struct mica_tensor_info {
    size_t struct_size;
    const char *name;
    const char *format;         /* "F32", "TQ2_0", ...                                 */
    int dtype;                  /* a mica_dtype; -1: a block format                    */
    int ndim;
    int64_t shape[MICA_MAX_DIMS]; /* row-major, in every kind of file                  */
    uint64_t nbytes, offset;    /* size; position in its file                          */
    const char *path;           /* its file (a model may have several)                 */
    const void *data;           /* its bytes, not aligned; valid while file is open    */
    bool fortran;               /* npy: data is column-major                           */
} mica_tensor_info;

MICA_API size_t mica_file_tensor_count(const mica_file *file);
/* In the order of the file. False: there is no such tensor. Set info->struct_size first. */
MICA_API bool mica_file_tensor(const mica_file *file, size_t i, mica_tensor_info *info);
MICA_API bool mica_file_find(const mica_file *file, const char *name, mica_tensor_info *info);

/* The tensor, without a copy if its alignment allows; of a block format its bytes,
 * u8 (nbytes). The array keeps the file mapped. mica_stats counts copies. */
MICA_API mica_array *mica_file_array(mica_scope *s, mica_file *file, const char *name);

/* Metadata: false if the key is absent or of another type. i64 reads every integer
 * type whose value fits, f64 these and floats; strings are not NUL-terminated. */
MICA_API bool mica_file_i64(const mica_file *file, const char *key, int64_t *out);
MICA_API bool mica_file_f64(const mica_file *file, const char *key, double *out);
MICA_API bool mica_file_bool(const mica_file *file, const char *key, bool *out);
MICA_API bool mica_file_string(const mica_file *file, const char *key, const char **text, size_t *length);
/* Metadata arrays: the size (0 if there is no such array), numbers by index, strings
 * in sequence (*at is 0 for the first). */
MICA_API uint64_t mica_file_items(const mica_file *file, const char *key);
MICA_API bool mica_file_item_i64(const mica_file *file, const char *key, uint64_t i, int64_t *out);
MICA_API bool mica_file_item_f64(const mica_file *file, const char *key, uint64_t i, double *out);
MICA_API bool mica_file_next_string(const mica_file *file, const char *key, size_t *at, const char **text,
                                    size_t *length);

/* A metadata entry as it is stored. */
typedef struct mica_meta_info {
    size_t struct_size;
    const char *key;
    int dtype;                  /* a mica_dtype; -1: strings                           */
    bool array;
    uint64_t count;             /* items of an array, else 1                           */
    const void *data;           /* little-endian, not aligned; a string: its text; an
                                 * array of strings: each after its u64 length         */
    size_t nbytes;
} mica_meta_info;

MICA_API size_t mica_file_meta_count(const mica_file *file);
MICA_API bool mica_file_meta(const mica_file *file, size_t i, mica_meta_info *info);

/* Writing: metadata and tensors are declared, then mica_writer_finish writes the
 * file under a temporary name and renames it, so that it appears whole or not at
 * all. The writer keeps the first failure and finish returns it: a program checks once. */
typedef struct mica_writer mica_writer;

/* kind: "gguf", "safetensors", "npz"; NULL: by the extension of path. */
MICA_API MICA_CHECK_RESULT mica_status mica_writer_open(const char *path, const char *kind, mica_writer **out);

/* A key that exists already gets the new value. safetensors stores strings only:
 * numbers become text, arrays are MICA_ERR_UNSUPPORTED; npz has no metadata. */
MICA_API mica_status mica_writer_meta(mica_writer *w, const mica_meta_info *info);
MICA_API mica_status mica_writer_i64(mica_writer *w, const char *key, mica_dtype dtype, int64_t value);
MICA_API mica_status mica_writer_f64(mica_writer *w, const char *key, mica_dtype dtype, double value);
MICA_API mica_status mica_writer_string(mica_writer *w, const char *key, const char *text, size_t length);
MICA_API mica_status mica_writer_array(mica_writer *w, const char *key, mica_dtype dtype, uint64_t count,
                                       const void *data);
/* lengths NULL: each text ends with a NUL. */
MICA_API mica_status mica_writer_strings(mica_writer *w, const char *key, uint64_t count, const char *const *texts,
                                         const size_t *lengths);

/* Declares the next tensor, numbered 0, 1, ... data is borrowed until the writer is
 * finished; NULL: the function passed to mica_writer_finish writes it (not for npz:
 * mica_writer_finish then fails with MICA_ERR_UNSUPPORTED). */
MICA_API mica_status mica_writer_tensor(mica_writer *w, const char *name, const char *format, int ndim,
                                        const int64_t *shape, const void *data);

/* Passes exactly the bytes of the tensor to mica_writer_put, in any pieces: a model
 * larger than memory can be written. Called in the order of the file. */
typedef mica_status (*mica_produce_fn)(mica_writer *w, size_t tensor, void *user);
MICA_API mica_status mica_writer_put(mica_writer *w, const void *data, size_t nbytes);
/* Writes the file or returns the first failure; frees w in both cases. produce may be NULL. */
MICA_API MICA_CHECK_RESULT mica_status mica_writer_finish(mica_writer *w, mica_produce_fn produce, void *user);
/* Frees w without writing a file. NULL is allowed. */
MICA_API void mica_writer_abandon(mica_writer *w);

/* Reads a whole text: a regular file, a pipe, or standard input ("-"). At most limit bytes (0: as many as fit into
 * memory), and at most 2^30 if it is not a regular file. MICA_ERR_FILE for a longer text, a folder, and a device
 * that is not standard input; a pipe that no program writes to is an empty text. A NUL, not counted in *length,
 * follows the text. The caller frees it with mica_text_free (NULL is allowed). */
MICA_API MICA_CHECK_RESULT mica_status mica_text_read(const char *path, uint64_t limit, char **text, size_t *length);
MICA_API void mica_text_free(char *text);

/* Files appear whole or not at all: the library writes PATH.PID-NUMBER.tmp and renames it. The next writer of the same
 * PATH removes those of processes that were killed. A program that ends at a signal may call mica_remove_temporaries in
 * its handler (it is async-signal-safe) to remove those that are open; the library installs no handler.
 *
 * For files of the program: mica_temporary_create makes such a file (cap: strlen(path) + MICA_TEMPORARY_SUFFIX) and
 * opens it for writing (MICA_ERR_FILE: errno has the system's reason). The program writes, closes, and renames or
 * removes it; then it calls mica_temporary_done. */
#define MICA_TEMPORARY_SUFFIX 48
MICA_API MICA_CHECK_RESULT mica_status mica_temporary_create(const char *path, char *name, size_t cap, int *fd);
MICA_API void mica_temporary_done(const char *name);
MICA_API void mica_remove_temporaries(void);

/* -------------------------------------------------- what an engine did ---- */

typedef struct mica_stats {
    size_t struct_size;
    /* evaluation */
    uint64_t evals;             /* plans run by mica_eval, mica_eval_async and mica_call, also failed ones */
    uint64_t kernels;           /* kernels run                                     */
    uint64_t plan_hits, plan_misses, plan_evictions, plans_cached; /* the plan cache; plans in it now */
    uint64_t compiles;          /* traces made by mica_call                        */
    /* data in and out */
    uint64_t copies, bytes_copied;     /* copies into, out of and between arrays               */
    uint64_t conversions;       /* mica_from_data, mica_wrap, mica_data*, mica_copy_out, and results
                                 * that share the memory of an evaluated array                 */
    uint64_t conversions_zero_copy;    /* of these, without a copy                             */
    /* array memory, in bytes */
    uint64_t bytes_in_use, bytes_peak, bytes_cached; /* cached: free, kept for reuse            */
    uint64_t bytes_allocated, bytes_freed;   /* taken from and returned to the system in total */
    uint64_t pool_hits, pool_misses, pool_evictions; /* blocks from the cache, from the system; cached blocks freed */
    uint64_t largest_cached;    /* bytes of the largest cached block               */
    uint64_t packed_weights;    /* packed copies of weights that exist now         */
    uint64_t bytes_packed;      /* their bytes, part of bytes_in_use               */
    /* the GPU, where the backend has one */
    uint64_t gpu_kernels;       /* dispatches                                      */
    uint64_t gpu_cpu_steps;     /* steps of GPU plans that the CPU ran                         */
    uint64_t gpu_waits;         /* waits of such a step for the GPU; not those at the end of an evaluation */
    uint64_t gpu_commands;      /* command buffers that have ended                 */
    uint64_t gpu_ns;            /* GPU time, in nanoseconds                        */
    /* its compiled kernels, of all engines of the process */
    uint64_t gpu_pipelines;     /* compiled kernels that exist now                 */
    /* made, by compiling or from disk; found in memory; of gpu_compiles, those loaded from disk */
    uint64_t gpu_compiles, gpu_compile_hits, gpu_archive_hits;
    uint64_t gpu_compile_ns;    /* time spent compiling and loading                */
    uint64_t gpu_saved_ns;      /* compile time saved by both kinds of hits                    */
    /* memory registered with the GPU, of all engines of the process */
    uint64_t gpu_buffers;       /* Metal buffers                                   */
    uint64_t gpu_bytes_resident; /* kept resident between command buffers           */
    uint64_t gpu_bytes_left_out; /* above the budget, or not supported: resident per command buffer */
    uint64_t gpu_overlaps;      /* evaluations begun while the GPU ran another one               */
} mica_stats;

/* Set stats->struct_size first: mica_stats s = {.struct_size = sizeof s}. */
MICA_API void mica_engine_stats(const mica_engine *engine, mica_stats *stats);

/* Start a new peak measurement: bytes_peak becomes bytes_in_use. */
MICA_API void mica_engine_reset_peak(mica_engine *engine);

/* A step of the last profiled evaluation that ended: its device and times. At most 65536 steps are
 * recorded. Profiling makes evaluations slower (on a GPU each step is measured separately). Times of
 * a software device are CPU times, not those of a GPU. */
typedef struct mica_profile_step {
    size_t struct_size;
    char name[64];              /* its ops: "add+sin"                              */
    char device[64];            /* as mica_engine_device; "CPU": run on the CPU          */
    uint64_t start_ns, end_ns;  /* one clock for all devices; 0 and 0: not known         */
} mica_profile_step;

/* Off: the steps recorded so far remain. */
MICA_API MICA_UNSTABLE void mica_engine_profile(mica_engine *engine, bool on);
MICA_API MICA_UNSTABLE size_t mica_engine_profile_count(const mica_engine *engine);
/* In the order of the plan; steps of a loop once per iteration. Set step->struct_size first. */
MICA_API MICA_UNSTABLE MICA_CHECK_RESULT mica_status mica_engine_profile_step(const mica_engine *engine, size_t index,
                                                                              mica_profile_step *step);

/* ------------------------------------------------------------ measuring --- */

/* The peak rates of this machine, measured at the call with loops that do nothing
 * else: the roofline that measured work is compared with. Fields that end in _all
 * are with all threads of the engine, the others with one. Rates are in 1e9 per
 * second; a multiply-add is two operations. NaN: the machine does not have it or
 * does not report it. */
typedef struct mica_peaks {
    size_t struct_size;
    double fma_f32, fma_f32_all;        /* GFLOP/s: f32 multiply-adds                       */
    double dot_i8, dot_i8_all;          /* Gop/s: multiply-adds of 8-bit integers           */
    double dot_bf16, dot_bf16_all;      /* GFLOP/s: bf16 products, f32 sums                 */
    double l1_read, l1_read_all;        /* GB/s, reading data that is in this cache         */
    double l2_read, l2_read_all;
    double l3_read, l3_read_all;
    double dram_read, dram_read_all;    /* GB/s, reading data that is in no cache           */
    double dram_copy, dram_copy_all;    /* y = a, bytes of both counted                     */
    double dram_triad, dram_triad_all;  /* y = a + c b, bytes of all three counted          */
    double l1_bytes, l2_bytes, l3_bytes; /* sizes of the data caches, as one core sees them */
    double fork_join_us;                /* time to start an empty job on all awake threads and join */
    double two_threads;                 /* rate of two threads divided by that of one:      */
                                        /* near 2 on two cores, near 1 if they share one */
} mica_peaks;

/* Takes about two seconds and up to 1 GiB of temporary memory. Nothing else should
 * run. Set peaks->struct_size first. */
MICA_API MICA_UNSTABLE MICA_CHECK_RESULT mica_status mica_measure_peaks(mica_engine *engine, mica_peaks *peaks);

/* two_threads only, in about 20 ms; NaN if the engine has one thread. Multi-threaded figures are
 * comparable only if it is equal, and on a virtual machine it changes within minutes. */
MICA_API MICA_UNSTABLE MICA_CHECK_RESULT mica_status mica_measure_two_threads(mica_engine *engine, double *ratio);

/* -------------------------------------------------------------- tuning ---- */

/* GPU kernels have parameters that change results by rounding only: tiles, threads. A rule
 * chooses them from the properties of the device; mica_tune measures them on this device. */
typedef struct mica_tuned {
    size_t struct_size;
    const char *choice;         /* "matmul_f32"                                            */
    const char *work;           /* what was timed: "f32 1024 x 1024 x 1024"                */
    const char *usual, *best;   /* the candidate of the rule; the fastest, or the rule's if
                                 * that is within 3 % of the fastest                       */
    double usual_ns, best_ns;   /* GPU time, fastest of several runs; NaN: not known             */
    int tried, wrong;           /* candidates; those with other results, which are refused   */
} mica_tuned;

typedef struct mica_tune_options {
    size_t struct_size;
    double seconds;             /* time per choice, 0 to 3600                              */
    bool keep;                  /* use it in this process; store it in the $MICA_CACHE folder     */
    bool (*progress)(const mica_tuned *tuned, void *user); /* after each choice; false stops */
    void *user;
} mica_tune_options;

MICA_API MICA_UNSTABLE void mica_tune_options_init(mica_tune_options *options); /* 0.5 s, keep */

/* Tunes the Metal device. NULL options: the defaults. No other engine should run: plans made
 * meanwhile may use any candidate. Writes the name of the file, "" if there is none, to path[cap]
 * (NULL, 0: not wanted). If progress stops it: MICA_ERR_STATE, nothing is kept. */
MICA_API MICA_UNSTABLE MICA_CHECK_RESULT mica_status mica_tune(const mica_tune_options *options, char *path,
                                                               size_t cap);
/* Returns to the rules and removes the file. */
MICA_API MICA_UNSTABLE MICA_CHECK_RESULT mica_status mica_tune_forget(void);

#ifdef __cplusplus
}
#endif

#endif
