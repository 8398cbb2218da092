/* Indices and rows that are invalid at run time: a status, and an error message that begins with
 * the public op that was called, on every backend. The values are data, so no constructor can check
 * them.
 *
 * runs: metal */
#include "api.h"

#include <math.h>

typedef struct setting {
    mica_scope *s;
    mica_array *x;       /* f32 (5, 3)                          */
    mica_array *index;   /* (2), the second one is wrong        */
    mica_array *updates; /* f32 (2, 3)                          */
    mica_quant table;    /* Q8_0 (5, 32)                        */
} setting;

static mica_array *call_take(const setting *g) { return mica_take(g->s, g->x, g->index, 0); }
static mica_array *call_embedding(const setting *g) { return mica_embedding(g->s, g->x, g->index); }
static mica_array *call_take_along_axis(const setting *g)
{
    return mica_take_along_axis(g->s, g->x, mica_expand_dims(g->s, g->index, -1), 0);
}
static mica_array *call_gather(const setting *g)
{
    return mica_gather(g->s, g->x, mica_expand_dims(g->s, g->index, -1));
}
static mica_array *call_scatter(const setting *g)
{
    return mica_scatter(g->s, g->x, mica_expand_dims(g->s, g->index, -1), g->updates);
}
static mica_array *call_scatter_add(const setting *g)
{
    return mica_scatter_add(g->s, g->x, mica_expand_dims(g->s, g->index, -1), g->updates);
}
static mica_array *call_cross_entropy(const setting *g)
{
    mica_array *logits = mica_zeros(g->s, MICA_F32, SHAPE(2, 5));
    return mica_cross_entropy(g->s, logits, g->index);
}
static mica_array *call_quant_rows(const setting *g) { return mica_quant_rows(g->s, &g->table, g->index); }

static const struct {
    const char *op;
    mica_array *(*call)(const setting *g);
} calls[] = {
    {"take", call_take},
    {"embedding", call_embedding},
    {"take_along_axis", call_take_along_axis},
    {"gather", call_gather},
    {"scatter", call_scatter},
    {"scatter_add", call_scatter_add},
    {"cross_entropy", call_cross_entropy},
    {"quant_rows", call_quant_rows},
};
enum { N_CALLS = sizeof calls / sizeof *calls, TABLE_BYTES = 5 * 34 };

static setting setting_of(mica_scope *s, mica_dtype dtype, int64_t wrong)
{
    static const float rows[5 * 32];
    static uint8_t bytes[TABLE_BYTES];
    setting g = {.s = s, .x = count_up_2d(s, 5, 3), .updates = count_up_2d(s, 2, 3)};
    g.index = mica_cast(s, mica_from_data(s, MICA_I64, SHAPE(2), (int64_t[]){4, wrong}), dtype);
    EXPECT_OK(mica_quant_pack("Q8_0", 5, 32, rows, bytes, sizeof bytes));
    g.table = (mica_quant){.struct_size = sizeof g.table, .format = "Q8_0", .rows = 5, .cols = 32};
    g.table.data = mica_from_data(s, MICA_U8, SHAPE(TABLE_BYTES), bytes);
    return g;
}

/* The error message of an evaluation with this index, for each op and backend. */
static void wrong_index(mica_dtype dtype, int64_t wrong, const char *value)
{
    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
        mica_engine *e = open_engine(backends[b]);
        for (int i = 0; i < N_CALLS; i++) {
            test_case("%s, %s, %s %s", backends[b], calls[i].op, mica_dtype_name(dtype), value);
            mica_scope *s = mica_scope_begin(e);
            const setting g = setting_of(s, dtype, wrong);
            mica_array *y = calls[i].call(&g);
            char begin[64];
            snprintf(begin, sizeof begin, "%s: index %s ", calls[i].op, value);
            EXPECT_FAILS(mica_eval(s, &y, 1), MICA_ERR_INDEX, begin);
            EXPECT(strncmp(mica_last_error(), begin, strlen(begin)) == 0);
            EXPECT(strstr(mica_last_error(), "-5 ... 4") != NULL);
            mica_scope_end(s);
        }
        mica_close(e);
    }
}

TEST(an_index_above_the_axis) { wrong_index(MICA_I64, 5, "5"); }
TEST(an_index_below_the_axis) { wrong_index(MICA_I32, -6, "-6"); }
/* 2^64 - 1 has the same bits as -1, which would be the last row. */
TEST(the_largest_u64) { wrong_index(MICA_U64, -1, "18446744073709551615"); }
TEST(a_u64_above_the_axis) { wrong_index(MICA_U64, 7, "7"); }

/* Valid u64 indices work like i64. one_hot returns a row of zeros for an invalid one. */
TEST(good_u64_indices)
{
    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
        mica_engine *e = open_engine(backends[b]);
        for (int i = 0; i < N_CALLS; i++) {
            test_case("%s, %s", backends[b], calls[i].op);
            mica_scope *s = mica_scope_begin(e);
            setting g = setting_of(s, MICA_U64, 2), h = setting_of(s, MICA_I64, 2);
            mica_array *y[] = {calls[i].call(&g), calls[i].call(&h)};
            CHECK_OK(mica_eval(s, y, 2));
            EXPECT(close_arrays(y[0], y[1]));
            mica_scope_end(s);
        }
        test_case("%s, one_hot", backends[b]);
        mica_scope *s = mica_scope_begin(e);
        const setting g = setting_of(s, MICA_U64, -1);
        mica_array *y = mica_one_hot(s, g.index, 5, MICA_F32);
        EXPECT_OK(mica_eval(s, &y, 1));
        EXPECT_VALUES(y, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0);
        mica_scope_end(s);
        mica_close(e);
    }
}

/* Nothing can be drawn from a row that is all -inf or has a NaN. */
TEST(rows_without_a_distribution)
{
    const float inf = INFINITY;
    const float rows[3][12] = {{0, 1, 2, -inf, -inf, -inf, 5, 6, 7, 0, 0, 0},
                               {0, 1, 2, 0, -inf, 3, 5, NAN, 7, 0, 0, 0},
                               {-inf, 1, -inf, 0, -inf, -inf, -inf, -inf, inf, 0, 0, 0}};
    static const char *const said[] = {"row 1 are all -inf", "row 2 are all -inf, or one is NaN"};
    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
        mica_engine *e = open_engine(backends[b]);
        for (int k = 0; k < 3; k++)
            for (int d = MICA_F16; d <= MICA_F64; d++) {
                test_case("%s, rows %d, %s", backends[b], k, mica_dtype_name((mica_dtype)d));
                mica_scope *s = mica_scope_begin(e);
                mica_array *logits = mica_cast(s, mica_from_data(s, MICA_F32, SHAPE(4, 3), rows[k]), (mica_dtype)d);
                mica_array *y = mica_random_categorical(s, logits, 3);
                if (k < 2) {
                    EXPECT_FAILS(mica_eval(s, &y, 1), MICA_ERR_INDEX, said[k]);
                    EXPECT(strncmp(mica_last_error(), "random_categorical: ", 20) == 0);
                } else {
                    y = mica_cast(s, mica_slice_axis(s, y, 0, 0, 3, 1), MICA_F32);
                    EXPECT_OK(mica_eval(s, &y, 1));
                    EXPECT_VALUES(y, 1, 0, 2);
                }
                mica_scope_end(s);
            }
        mica_close(e);
    }
}
