/* Parity cases of ops that move elements: padding, joining, indexing, sorting. */
#include "parity_cases.h"

#define ANY PARITY_OPERAND(-100, 100, 0, 0, PARITY_SPECIAL)
#define NUMBERS PARITY_OPERAND(-4, 4, 0, 0, PARITY_PLAIN)
#define TIES PARITY_OPERAND(-4, 4, -2, 2, PARITY_SPECIAL)
#define INDEX(size) PARITY_OPERAND_OF(MICA_I64, 0, 0, -(size), (size) - 1)

/* ------------------------------------------------------------------ pad --- */

static const parity_shape pad_shapes[] = {
    {0, {0}}, {1, {1}}, {1, {33}}, {1, {130}}, {1, {0}}, {2, {5, 17}}, {2, {0, 3}}, {3, {3, 1, 5}},
};

static mica_array *build_pad(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    static const struct {
        int64_t low, high, between;
    } rows[] = {{0, 0, 0}, {2, 1, 0}, {0, 0, 2}, {-1, 3, 0}, {1, -1, 1}, {-1, -1, 1}};
    mica__attr_pad attr = {{0}, {0}, {0}, {0, 0}};
    for (int d = 0; d < mica_array_ndim(x[0]); d++) {
        attr.low[d] = rows[call->variant].low + d % 2;
        attr.high[d] = rows[call->variant].high;
        attr.interior[d] = rows[call->variant].between;
    }
    if (mica__is_float(call->dtype)) attr.value.f = -1.5;
    else attr.value.i = 1;
    return mica__build1(s, MICA__OP_PAD, x[0], &attr, sizeof attr);
}

/* --------------------------------------------------------------- concat --- */

static const parity_shape concat_shapes[][3] = {
    {{1, {1}}, {1, {2}}, {1, {0}}},
    {{1, {33}}, {1, {5}}, {1, {130}}},
    {{2, {3, 5}}, {2, {3, 5}}, {2, {3, 5}}},
    {{2, {2, 17}}, {2, {5, 17}}, {2, {1, 17}}},
    {{2, {17, 2}}, {2, {17, 65}}, {2, {17, 1}}},
    {{3, {2, 3, 5}}, {3, {2, 1, 5}}, {3, {2, 4, 5}}},
    {{2, {0, 3}}, {2, {0, 3}}, {2, {0, 3}}},
};

static mica_array *build_concat(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const mica__attr_axis attr = {.axis = call->variant / 3};
    const int n = call->variant % 3 + 1;
    if (attr.axis >= mica_array_ndim(x[0])) return NULL;
    return mica__build(s, MICA__OP_CONCAT, x, (size_t)n, &attr, sizeof attr);
}

/* ------------------------------------------------------------- unwindow --- */

/* (windows, size); the size of the result axis is full = (windows-1)*stride + span (+1) */
static const parity_shape unwindow_shapes[] = {
    {2, {1, 1}}, {2, {5, 3}}, {3, {2, 17, 4}}, {3, {17, 3, 2}}, {3, {0, 4, 3}}};

static mica_array *build_unwindow(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    static const int64_t rows[][2] = {{1, 1}, {2, 1}, {1, 2}, {3, 2}};
    const int last = mica_array_ndim(x[0]) - 1, more = call->variant & 1;
    const int64_t *shape = mica_array_shape(x[0]), *row = rows[call->variant >> 1];
    if (last < 1) return NULL;
    mica__attr_window w = {.axis = last - 1, .size = shape[last], .stride = row[0], .dilation = row[1]};
    w.full = (shape[last - 1] - 1) * w.stride + (w.size - 1) * w.dilation + 1 + (more && w.stride > 1);
    return mica__build1(s, MICA__OP_UNWINDOW, x[0], &w, sizeof w);
}

/* ------------------------------------------------------- take and scatter -- */

/* axis 1 of size 7 is indexed; the last row takes along axis 0 of size 7 */
static const parity_shape take_shapes[][2] = {
    {{2, {3, 7}}, {1, {5}}},      {{2, {3, 7}}, {0, {0}}},  {{3, {2, 7, 33}}, {2, {3, 2}}},
    {{3, {2, 7, 1}}, {1, {130}}}, {{2, {17, 7}}, {1, {0}}}, {{3, {0, 7, 3}}, {1, {4}}},
};

static mica_array *build_take(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    (void)call;
    const mica__attr_take attr = {.axis = 1};
    const mica__attr_index check = {.size = 7};
    mica_array *index = mica__build1(s, MICA__OP_CHECK_INDEX, x[1], &check, sizeof check);
    return mica__build2(s, MICA__OP_TAKE, x[0], index, &attr, sizeof attr);
}

/* x, indices, updates */
static const parity_shape scatter_shapes[][3] = {
    {{2, {3, 7}}, {1, {5}}, {2, {3, 5}}},
    {{2, {3, 7}}, {0, {0}}, {1, {3}}},
    {{3, {2, 7, 33}}, {2, {3, 2}}, {4, {2, 3, 2, 33}}},
    {{3, {2, 7, 1}}, {1, {65}}, {3, {2, 65, 1}}},
    {{2, {17, 7}}, {1, {0}}, {2, {17, 0}}},
    {{3, {0, 7, 3}}, {1, {4}}, {3, {0, 4, 3}}},
};

static mica_array *build_scatter(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const mica__attr_scatter attr = {.axis = 1, .add = call->variant};
    const mica__attr_index check = {.size = 7};
    mica_array *index = mica__build1(s, MICA__OP_CHECK_INDEX, x[1], &check, sizeof check);
    return mica__build(s, MICA__OP_SCATTER, (mica_array *[]){x[0], index, x[2]}, 3, &attr, sizeof attr);
}

/* --------------------------------------------------------------- update --- */

static const parity_shape update_shapes[][2] = {
    {{1, {1}}, {0, {0}}},         {{1, {33}}, {1, {1}}},          {{2, {5, 17}}, {0, {0}}},
    {{3, {2, 3, 130}}, {0, {0}}}, {{4, {2, 3, 1, 16}}, {0, {0}}}, {{2, {0, 3}}, {0, {0}}},
};

/* Variant: the dtype of the state; it also selects the axis. */
static mica_array *build_update(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const int ndim = mica_array_ndim(x[0]), axis = call->variant % ndim;
    int64_t shape[MICA_MAX_DIMS];
    for (int d = 0; d < ndim; d++) shape[d] = mica_array_shape(x[0])[d] + (d == axis ? 2 : 0);
    return mica_update(s, mica_state(s, (mica_dtype)call->variant, ndim, shape), x[0], x[1], axis);
}

/* ----------------------------------------------------------------- sort --- */

static const parity_shape sort_shapes[] = {
    {1, {1}},     {1, {2}},     {1, {17}},   {1, {130}},  {1, {1000}},
    {2, {5, 33}}, {2, {33, 5}}, {2, {0, 5}}, {2, {5, 0}}, {3, {2, 3, 65}},
};

static mica_array *build_sort(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const mica__attr_sort attr = {.descending = call->variant & 1, .k = 0};
    return mica__build1(s, MICA__OP_SORT, x[0], &attr, sizeof attr);
}

static mica_array *build_argsort(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const int64_t n = mica_array_shape(x[0])[mica_array_ndim(x[0]) - 1], some = n < 3 ? n : 3;
    const mica__attr_sort attr = {.descending = call->variant & 1, .k = call->variant & 2 ? some : n};
    return mica__build1(s, MICA__OP_ARGSORT, x[0], &attr, sizeof attr);
}

const parity_case parity_cases_index[] = {
    PARITY_CASE(PAD, "pad", build_pad, 6, 1, pad_shapes, 1, 0, ANY),
    PARITY_CASE(CONCAT, "concat", build_concat, 9, 3, concat_shapes, 1, 0, ANY, ANY, ANY),
    PARITY_CASE(UNWINDOW, "unwindow", build_unwindow, 8, 1, unwindow_shapes, 4, 0, NUMBERS),
    PARITY_CASE(TAKE, "take", build_take, 1, 2, take_shapes, 1, 0, ANY, INDEX(7)),
    PARITY_CASE(SCATTER, "scatter", build_scatter, 2, 3, scatter_shapes, 66, 0, NUMBERS, INDEX(7), NUMBERS),
    PARITY_CASE(UPDATE, "update", build_update, MICA__DTYPE_COUNT, 2, update_shapes, 1, 0, ANY,
                PARITY_OPERAND_OF(MICA_I64, 0, 0, 0, 2)),
    PARITY_CASE(SORT, "sort", build_sort, 2, 1, sort_shapes, 1, 0, ANY),
    PARITY_CASE(SORT, "sort, equal ones", build_sort, 2, 1, sort_shapes, 1, 0, TIES),
    PARITY_CASE(ARGSORT, "argsort", build_argsort, 4, 1, sort_shapes, 1, 0, ANY),
    PARITY_CASE(ARGSORT, "argsort, equal ones", build_argsort, 4, 1, sort_shapes, 1, 0, TIES),
    {0},
};
