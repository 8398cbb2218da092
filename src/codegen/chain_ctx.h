/* Shared by the parts of the chain interpreter: the prepared program and the state
 * of one thread that runs it. Only a chain_table depends on the vector width.
 *
 * Operands, and values that are not in registers, have a cell: a pointer to a block
 * of elements. The cell of an operand points into the array if the block is contiguous
 * there and full. Otherwise, and for all other values, it points to a tile: a piece of
 * the context. Operands in cells have the format of their array. Other values, and all
 * values in registers, are: floats for f32, f16, bf16 and bool (0 or 1); 32-bit
 * integers for integers of up to 32 bits; double for f64; i64 and u64 unchanged, in
 * tiles only. */
#ifndef MICA_CODEGEN_CHAIN_CTX_H
#define MICA_CODEGEN_CHAIN_CTX_H

#include "codegen/chain.h"

enum {
    CHAIN_MAX_BLOCK = 128,        /* elements, at the widest vectors                    */
    CHAIN_MAX_CELLS = 256,
    CHAIN_MAX_USES = 96,          /* operands of one program                            */
    /* Of all tiles: 192 cells of the largest size, enough for 64 operands, 64 values and
     * 64 results, the planner's limits for one kernel. */
    CHAIN_TILE_BYTES = 192 * CHAIN_MAX_BLOCK * 8,
    CHAIN_FOLD_BLOCKS = 16,       /* blocks of results that are folded by columns at once */
    CHAIN_LINE = 64,              /* bytes of a cache line                              */
    CHAIN_PANEL_BLOCKS = 4,       /* blocks of a row whose transposed operands are packed */
    CHAIN_CHUNK = 16 * 1024,      /* elements of a task of simple ops                   */
    CHAIN_SERIAL = 32 * 1024      /* with fewer elements a second thread does not pay off */
};

typedef enum chain_class { CHAIN_FLOAT, CHAIN_INT, CHAIN_DOUBLE, CHAIN_LONG } chain_class;

static inline chain_class chain_class_of(mica_dtype dtype)
{
    if (dtype == MICA_F64) return CHAIN_DOUBLE;
    if (dtype == MICA_I64 || dtype == MICA_U64) return CHAIN_LONG;
    return mica__is_int(dtype) ? CHAIN_INT : CHAIN_FLOAT;
}
/* Bytes of an element; only 4-byte classes may be in registers. */
static inline size_t chain_class_bytes(chain_class class) { return class == CHAIN_FLOAT || class == CHAIN_INT ? 4 : 8; }

/* Elements of tiles and of arrays: any alignment, any declared type. */
typedef float chain_f32 __attribute__((may_alias, aligned(1)));
typedef double chain_f64 __attribute__((may_alias, aligned(1)));
typedef uint32_t chain_u32 __attribute__((may_alias, aligned(1)));
typedef int64_t chain_i64 __attribute__((may_alias, aligned(1)));
typedef uint64_t chain_u64 __attribute__((may_alias, aligned(1)));

typedef struct chain_op chain_op;
typedef struct chain_ctx chain_ctx;

/* An op in registers; its real type is the chain_fn of the table's vector width. */
typedef void (*chain_code)(void);
/* An op on tiles: c->n elements of cells a, b, c into cell dst. */
typedef void chain_tile_fn(const chain_op *ip, chain_ctx *c);

struct chain_op {
    chain_code fn;
    chain_tile_fn *tile;          /* if fn is the table's tile op                       */
    uint16_t dst, a, b, c;        /* cells                                              */
    uint16_t op;                  /* mica__op                                           */
    uint8_t in, out;              /* mica_dtype                                         */
    const void *attr;
};

/* The state of a fold: one lane for each element of a block. */
typedef union chain_lanes {
    float f[CHAIN_MAX_BLOCK];
    double d[CHAIN_MAX_BLOCK];
    int64_t i[CHAIN_MAX_BLOCK];
} chain_lanes;

/* State of one running thread, in its scratch (base/scratch.h); hot members first. */
struct chain_ctx {
    char *ptr[CHAIN_MAX_CELLS];
    int64_t n;                    /* valid elements of this block                       */
    int64_t origin;               /* for index faults: start of the walk,               */
    int64_t position;             /* start of the block,                                */
    int64_t position_step;        /* and distance between neighbouring elements         */
    int64_t left;                 /* blocks to run, including this one; before the next, */
    uint32_t n_step;              /* these cells advance by these bytes                 */
    uint16_t step_cell[CHAIN_MAX_USES];
    uint16_t step_bytes[CHAIN_MAX_USES];
    const chain_op *first;        /* first op of the program                            */
    mica__index_fault *fault;
    bool stream;                  /* results bypass the caches (non-temporal stores)    */
    chain_lanes *fold;            /* of this block                                      */
    ptrdiff_t fold_step;          /* 1: each block of a walk has separate lanes         */
    char *base[CHAIN_MAX_USES];   /* of the running program: start of each operand; for an
                                   * IOTA, the number to add to its index               */
    _Alignas(64) chain_f32 scratch[CHAIN_MAX_BLOCK];
    _Alignas(64) char tile[CHAIN_TILE_BYTES];
};

/* Copies n elements of `size` bytes between an array and a tile; elements of the
 * array have a stride in bytes. */
void mica__chain_fill(size_t size, char *tile, const char *array, int64_t stride, int64_t n);
void mica__chain_drain(size_t size, const char *tile, char *array, int64_t stride, int64_t n);

/* Reads or writes element i of a tile of a dtype. */
mica__number mica__chain_get(const char *tile, mica_dtype dtype, int64_t i);
void mica__chain_put(char *tile, mica_dtype dtype, int64_t i, mica__number value);
/* Fills n elements with one number. */
void mica__chain_splat(char *tile, mica_dtype dtype, mica__number value, int64_t n);
/* value + step * (at + i * stride) for i = 0 ... n-1. */
void mica__chain_iota(char *tile, const mica__kinst *iota, int64_t at, int64_t stride, int64_t n);

/* An operand of a program. Strides are in bytes; for an IOTA they are counts. */
typedef struct chain_use {
    uint16_t cell;
    bool store;
    bool direct;                  /* contiguous: the cell may point into the array */
    bool turned;                  /* contiguous along the second to last loop (transposed) */
    bool flat;                    /* all loops can be walked as one                     */
    uint8_t size;                 /* of an element                                      */
    uint32_t block;
    const mica__kinst *iota;      /* NULL: memory                                       */
    int64_t offset;
    int64_t stride[MICA_MAX_DIMS];   /* per loop of the program                         */
    int64_t across[MICA_MAX_DIMS];   /* per loop that is not walked: the kept loops for folds
                                      * by rows, the folded loops for folds by columns    */
} chain_use;

/* Straight-line code and its loops. */
typedef struct chain_program {
    const chain_op *op;
    int ndim;                     /* at least 1                                         */
    int64_t size[MICA_MAX_DIMS];
    const chain_use *use;         /* loads first                                        */
    uint32_t n_load, n_use;
    bool by_rows;                 /* the last loop is long: blocks do not span rows     */
    bool stream;                  /* results are larger than the caches                 */
    int64_t panel_rows;           /* rows whose transposed operands are packed at a time; 0: none */
    uint32_t panel_at;            /* offset of the panels in chain_ctx.tile             */
} chain_program;

typedef struct chain_const {
    uint16_t cell;
    mica_dtype dtype;
    mica__number value;
} chain_const;

/* How a fold walks: along the folded loops, one result at a time, or along the
 * kept loops, a block of results at a time. */
typedef enum chain_fold_mode { CHAIN_NO_FOLD, CHAIN_FOLD_ROWS, CHAIN_FOLD_COLUMNS } chain_fold_mode;

typedef struct chain_table chain_table;
typedef struct chain_variant chain_variant;

struct mica__chain {
    const chain_variant *variant;
    const chain_table *table;     /* of the variant                                     */
    chain_program main;           /* the whole kernel, or the part after the fold       */
    chain_program before;         /* the part before the fold                           */
    chain_fold_mode mode;
    bool plain;                   /* the fold runs without a chain (chain_plain.inc)    */
    mica__op fold_op;
    mica_dtype fold_in, fold_out;
    uint16_t fold_cell;           /* cell of the folded values, read by main            */
    int n_across;                 /* loops of chain_use.across                          */
    int64_t across_size[MICA_MAX_DIMS];
    int64_t block;                /* elements                                           */
    int64_t outer, folded;
    int64_t parts;                /* parts that a fold is split into; 0: not split      */
    int64_t tasks;
    int64_t task_size;            /* outer elements of a task, if the fold is not split */
    const chain_const *constant;
    uint32_t n_constant;
    const uint32_t *tile_at;      /* per cell: its offset in chain_ctx.tile             */
    uint32_t n_cell;
};

/* The ops of one vector width. An entry is NULL if the op has no form in registers. */
struct chain_table {
    const char *name;
    int64_t block;                            /* elements                                     */
    void (*run)(const chain_op *ip, chain_ctx *c);
    chain_code unary[MICA__OP_COUNT];         /* x = op(x)                                    */
    chain_code binary[MICA__OP_COUNT];        /* x = op(x, b)                                 */
    chain_code reverse[MICA__OP_COUNT];       /* x = op(b, x)                                 */
    chain_code where;                         /* x = x ? a : b                                */
    chain_code fma_factor, fma_term;          /* x = x * a + b; x = a * b + x; NULL: the CPU has no FMA */
    chain_code load, store;                   /* x = a; dst = x                               */
    chain_code truth, round_f16, round_bf16;  /* x != 0; round to nearest                     */
    chain_code tile, tile_only, done;         /* tile_only: x is lost                         */
    chain_code fold_rows[MICA__OP_COUNT];     /* lanes of c->fold, combined in any order      */
    chain_code fold_columns[MICA__OP_COUNT];  /* each lane is a separate result               */
};

/* Integers of up to 32 bits in registers; in arrays of two, [1] is for u32. */
typedef struct chain_int_table {
    chain_code unary[2][MICA__OP_COUNT], binary[2][MICA__OP_COUNT], reverse[2][MICA__OP_COUNT];
    chain_code fold[2][MICA__OP_COUNT];       /* lanes of c->fold, each separate              */
    chain_code wrap[MICA__DTYPE_COUNT];       /* NULL: nothing to do                          */
    chain_code from_float[MICA__DTYPE_COUNT];
    chain_code to_float[2], to_bf16[2], truth;
} chain_int_table;

/* Moves between registers and operands, by dtype; not for 8-byte dtypes. */
typedef struct chain_move_table {
    chain_code take[MICA__DTYPE_COUNT];       /* x = a; NULL: use load                        */
    chain_code put[MICA__DTYPE_COUNT];        /* dst = x; may bypass the caches               */
} chain_move_table;

/* Folds of f32 without other ops before them, a row or many columns at a time; NULL: not available. */
typedef struct chain_plain_table {
    double (*rows[MICA__OP_COUNT])(const chain_f32 *x, int64_t n);
    void (*add_columns)(double *state, const chain_f32 *x, int64_t step, int64_t count, int64_t n);
} chain_plain_table;

/* Ops on 8-byte elements in tiles; in arrays of two, [1] is for u64 or from u32. */
typedef struct chain_wide_table {
    chain_tile_fn *f64[MICA__OP_COUNT], *i64[2][MICA__OP_COUNT], *where;
    chain_tile_fn *fold_f64[MICA__OP_COUNT], *fold_i64[2][MICA__OP_COUNT];
    chain_tile_fn *f32_f64, *f64_f32, *f64_bool, *bool_i64, *i64_bool, *i64_i32, *i32_i64[2], *i32_f64[2];
    chain_tile_fn *f64_odd;                   /* to a float that may be rounded again         */
} chain_wide_table;

/* The code for one kind of CPU: ops in registers and functions on tiles. */
struct chain_variant {
    unsigned needs;                           /* CPU features                                 */
    const chain_table *table;
    const chain_int_table *ints;
    const chain_wide_table *wide;
    const chain_move_table *move;
    const chain_plain_table *plain;
    int64_t stream_from;                      /* results of at least this many bytes bypass the
                                               * caches; 0: the size of the last-level cache  */
};

/* The variants that this CPU can run, the best last. */
const chain_variant *mica__chain_variants(size_t *n);
const chain_variant *mica__chain_best_variant(void);
/* Like mica__chain_build, for a given variant. */
mica_status mica__chain_build_for(const chain_variant *variant, const mica__kernel *k, mica__arena *arena,
                                  mica__chain **out);

/* a * b + c of floats, rounded once, for CPUs without FMA. */
chain_tile_fn mica__chain_tile_fma;
/* Ops on tiles; NULL: not available for this op and these dtypes. */
chain_tile_fn *mica__chain_tile_f64(const chain_wide_table *wide, mica__op op);
/* Casts between dtypes of different classes, one of them of 8 bytes. */
chain_tile_fn *mica__chain_tile_cast(const chain_wide_table *wide, mica_dtype in, mica_dtype out);
/* Any MAP op, element by element, by its scalar definition. */
chain_tile_fn mica__chain_tile_any, mica__chain_tile_check_index;
chain_tile_fn mica__chain_tile_copy32, mica__chain_tile_copy64;

/* Walking a program (chain_walk.c). */
typedef struct chain_position {
    int64_t coord[MICA_MAX_DIMS];
    bool moved;                               /* to another innermost row                     */
    int64_t at[CHAIN_MAX_USES];               /* offset of each use from c->base              */
} chain_position;

void mica__chain_begin(const mica__chain_run *run, chain_ctx *c);
/* Sets c->base to the operands of a program. */
void mica__chain_bind(const mica__chain_run *run, const chain_program *p, chain_ctx *c);
void mica__chain_seek(const chain_program *p, int64_t flat, chain_position *pos);
void mica__chain_advance(const chain_program *p, chain_position *pos, int64_t n);
/* Runs elements [begin, end); the operands must be bound. */
void mica__chain_walk(const mica__chain *chain, const chain_program *p, chain_ctx *c, int64_t begin, int64_t end);

/* The elements of every operand along one row: address and stride in bytes; for an
 * IOTA, its index as a number. */
typedef struct chain_row {
    char *at[CHAIN_MAX_USES];
    int64_t stride[CHAIN_MAX_USES];
} chain_row;

/* The address of an operand; the index of an IOTA is a number and may be negative. */
static inline char *mica__chain_at(char *base, int64_t offset) { return (char *)((intptr_t)base + offset); }

/* Runs n elements of a row. fresh: operands that are constant along the row are not yet in their tiles. */
void mica__chain_run_row(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_row *row,
                         int64_t n, bool fresh);
/* Runs rows of a program with transposed operands, from the start of a row; returns the
 * number of rows (chain_turn.c). */
int64_t mica__chain_run_panel(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_position *pos,
                              int64_t rows);

/* Folds (chain_fold.c): results [begin, end) of a fold that is not split; one part of
 * a split fold; the results from its parts. */
void mica__chain_fold_range(const mica__chain_run *run, chain_ctx *c, int64_t begin, int64_t end);
void mica__chain_fold_part(const mica__chain_run *run, chain_ctx *c, int64_t task);
void mica__chain_fold_join(const mica__chain_run *run, chain_ctx *c);

#endif
