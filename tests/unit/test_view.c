/* Strides of views against index maps: every small shape, every layout of it, every view of it.
 * Each element of the result must be at the address that the definition of the view gives. A
 * reshape that is refused must really have no strides. */
#include "test.h"

#include "graph/graph.h"

/* A view of an input with this layout. */
typedef struct view_case {
    mica__spec in;
    int64_t strides[MICA_MAX_DIMS];
    int64_t offset;
    mica__gnode view;
} view_case;

static mica__spec spec_of(int ndim, const int64_t *shape)
{
    mica__spec s = {.dtype = MICA_F32, .ndim = ndim};
    for (int d = 0; d < ndim; d++) s.shape[d] = shape[d];
    return s;
}

/* The next index of a shape, row-major; false after the last. */
static bool next_index(const mica__spec *s, int64_t *index)
{
    for (int d = s->ndim - 1; d >= 0; d--) {
        if (++index[d] < s->shape[d]) return true;
        index[d] = 0;
    }
    return false;
}

static int64_t place(int ndim, const int64_t *index, const int64_t *strides, int64_t offset)
{
    for (int d = 0; d < ndim; d++) offset += index[d] * strides[d];
    return offset;
}

/* The input index of element out[index] of the view, by definition. */
static void source_index(const view_case *c, const int64_t *index, int64_t *from)
{
    const mica__spec *in = &c->in, *out = &c->view.spec;
    switch ((int)c->view.op) {
    case MICA__OP_RESHAPE: {
        int64_t flat = 0;
        for (int d = 0; d < out->ndim; d++) flat = flat * out->shape[d] + index[d];
        for (int d = in->ndim - 1; d >= 0; d--) {
            from[d] = flat % in->shape[d];
            flat /= in->shape[d];
        }
        break;
    }
    case MICA__OP_PERMUTE:
        for (int d = 0; d < out->ndim; d++) from[((const mica__attr_permute *)c->view.attr)->axes[d]] = index[d];
        break;
    case MICA__OP_BROADCAST:
        for (int d = 0; d < in->ndim; d++) from[d] = in->shape[d] == 1 ? 0 : index[d + out->ndim - in->ndim];
        break;
    case MICA__OP_SLICE: {
        const mica__attr_slice *a = c->view.attr;
        for (int d = 0; d < in->ndim; d++) from[d] = a->start[d] + index[d] * a->step[d];
        break;
    }
    default: {
        const mica__attr_window *w = c->view.attr;
        for (int d = 0; d < in->ndim; d++)
            from[d] = d == w->axis ? index[d] * w->stride + index[in->ndim] * w->dilation : index[d];
        break;
    }
    }
}

static int64_t source_place(const view_case *c, const int64_t *index)
{
    int64_t from[MICA_MAX_DIMS] = {0};
    source_index(c, index, from);
    return place(c->in.ndim, from, c->strides, c->offset);
}

/* Returns whether any strides describe the view. The addresses of the first two elements
 * along each axis determine them. */
static bool has_strides(const view_case *c)
{
    const mica__spec *out = &c->view.spec;
    int64_t index[MICA_MAX_DIMS] = {0}, strides[MICA_MAX_DIMS] = {0};
    if (mica__spec_size(out) == 0) return true;
    const int64_t offset = source_place(c, index);
    for (int d = 0; d < out->ndim; d++) {
        if (out->shape[d] == 1) continue;
        index[d] = 1;
        strides[d] = source_place(c, index) - offset;
        index[d] = 0;
    }
    do
        if (place(out->ndim, index, strides, offset) != source_place(c, index)) return false;
    while (next_index(out, index));
    return true;
}

/* Sets the result's shape by the shape rule; false: not a valid view. */
static bool shape_it(view_case *c)
{
    const mica__op_info *info = mica__op_get(c->view.op);
    const mica__spec *in = &c->in;
    return info->shape(info, &in, 1, c->view.attr, &c->view.spec) == MICA_OK;
}

static bool check_view(view_case *c)
{
    int64_t strides[MICA_MAX_DIMS], offset = -1, index[MICA_MAX_DIMS] = {0};
    const bool got = mica__view_apply(&c->view, &c->in, c->strides, c->offset, strides, &offset);
    if (!EXPECT_INT(got, has_strides(c)) || !got) return got;
    if (mica__spec_size(&c->view.spec) == 0) return EXPECT_INT(offset, c->offset);
    do
        if (!EXPECT_INT(place(c->view.spec.ndim, index, strides, offset), source_place(c, index))) return false;
    while (next_index(&c->view.spec, index));
    /* in place: the planner may pass the same array twice */
    int64_t again[MICA_MAX_DIMS], offset_again = c->offset;
    memcpy(again, c->strides, sizeof again);
    mica__view_apply(&c->view, &c->in, again, offset_again, again, &offset_again);
    return EXPECT(memcmp(again, strides, sizeof again) == 0 && offset_again == offset);
}

/* Calls fn for shapes of 0 to max_ndim axes with sizes 0 ... max_size, each in
 * every layout: axes in any order in memory, some reversed, some with gaps,
 * some repeated (stride 0). */
static void each_layout(int max_ndim, int64_t max_size, void (*fn)(view_case c))
{
    for (int ndim = 0; ndim <= max_ndim; ndim++) {
        int64_t sizes[MICA_MAX_DIMS] = {0};
        do {
            static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
            const int n_orders = ndim < 2 ? 1 : ndim == 2 ? 3 : 6;
            for (int o = 0; o < n_orders; o++) {
                for (int kind = 0; kind < 4; kind++) {
                    view_case c = {.in = spec_of(ndim, sizes), .offset = 1000, .view = {.leaf = -1}};
                    int64_t stride = 1;
                    for (int k = ndim - 1; k >= 0; k--) {
                        const int d = orders[o][k] < ndim ? orders[o][k] : k;
                        c.strides[d] = kind == 1 && k == 0 ? -stride : kind == 2 && k == ndim - 1 ? 0 : stride;
                        stride *= sizes[d] ? sizes[d] : 1;
                        if (kind == 3 && k == ndim - 1) stride += 2;
                    }
                    fn(c);
                }
            }
            int d = ndim - 1;
            while (d >= 0 && ++sizes[d] > max_size) sizes[d--] = 0;
            if (d < 0) break;
        } while (ndim > 0);
    }
}

static uint32_t views_checked, reshapes_refused;

static void every_reshape(view_case c)
{
    mica__attr_shape to = {0};
    c.view.op = MICA__OP_RESHAPE;
    c.view.attr = &to;
    for (to.ndim = 0; to.ndim <= 4; to.ndim++) {
        int64_t index[4] = {0};
        const mica__spec digits = {.ndim = (int32_t)to.ndim, .shape = {6, 6, 6, 6}};
        static const int64_t size[] = {0, 1, 2, 3, 4, 6};
        do {
            int64_t n = 1;
            for (int d = 0; d < to.ndim; d++) n *= to.shape[d] = size[index[d]];
            if (n != mica__spec_size(&c.in) || !shape_it(&c)) continue;
            views_checked++;
            reshapes_refused += !check_view(&c);
        } while (next_index(&digits, index));
    }
}

static void every_permute(view_case c)
{
    mica__attr_permute p = {{0}};
    const mica__spec digits = spec_of(c.in.ndim, (int64_t[]){3, 3, 3});
    c.view.op = MICA__OP_PERMUTE;
    c.view.attr = &p;
    do
        if (shape_it(&c)) views_checked += check_view(&c);
    while (next_index(&digits, p.axes));
}

static void every_broadcast(view_case c)
{
    mica__attr_shape to = {0};
    c.view.op = MICA__OP_BROADCAST;
    c.view.attr = &to;
    for (to.ndim = 0; to.ndim <= 4; to.ndim++) {
        const mica__spec digits = {.ndim = (int32_t)to.ndim, .shape = {4, 4, 4, 4}};
        memset(to.shape, 0, sizeof to.shape);
        do
            if (shape_it(&c)) views_checked += check_view(&c);
        while (next_index(&digits, to.shape));
    }
}

static void every_slice(view_case c)
{
    mica__attr_slice a = {.start = {0}};
    static const int64_t steps[] = {1, 2, -1, -2, INT64_MAX};
    c.view.op = MICA__OP_SLICE;
    c.view.attr = &a;
    const mica__spec digits = spec_of(c.in.ndim, (int64_t[]){60, 60, 60});
    int64_t index[MICA_MAX_DIMS] = {0};
    do { /* start 0..2, size 0..3, step */
        bool fits = true;
        for (int d = 0; d < c.in.ndim; d++) {
            a.start[d] = index[d] % 3;
            a.size[d] = index[d] / 3 % 4;
            a.step[d] = steps[index[d] / 12];
            fits &= a.size[d] <= c.in.shape[d];
        }
        if (fits && shape_it(&c)) views_checked += check_view(&c);
    } while (next_index(&digits, index));
}

static void every_window(view_case c)
{
    c.view.op = MICA__OP_WINDOW;
    for (int64_t axis = 0; axis < c.in.ndim; axis++) {
        for (int64_t k = 0; k < 36; k++) {
            const mica__attr_window w = {axis, 1 + k % 3, 1 + k / 3 % 3, k / 9 == 3 ? INT64_MAX / 2 : 1 + k / 9, 0};
            c.view.attr = &w;
            if (shape_it(&c)) views_checked += check_view(&c);
        }
    }
}

TEST(reshapes)
{
    views_checked = reshapes_refused = 0;
    each_layout(3, 3, every_reshape);
    CHECK(views_checked > 1000 && reshapes_refused > 100);
}

TEST(permutes)
{
    views_checked = 0;
    each_layout(3, 3, every_permute);
    CHECK(views_checked > 1000);
}

TEST(broadcasts)
{
    views_checked = 0;
    each_layout(3, 3, every_broadcast);
    CHECK(views_checked > 1000);
}

TEST(slices)
{
    views_checked = 0;
    each_layout(2, 3, every_slice);
    CHECK(views_checked > 1000);
}

TEST(windows)
{
    views_checked = 0;
    each_layout(2, 5, every_window);
    CHECK(views_checked > 1000);
}

/* A reshape without a copy joins only axes that are contiguous in memory. */
TEST(reshapes_that_are_and_are_not_free)
{
    static const struct {
        int64_t shape[3], strides[3], to[3];
        bool free;
        int64_t want[3];
    } rows[] = {
        {{2, 3, 4}, {12, 4, 1}, {6, 4, 1}, true, {4, 1, 1}},      /* row-major             */
        {{2, 3, 4}, {12, 1, 3}, {6, 4, 1}, false, {0}},           /* permuted in the middle */
        {{2, 3, 4}, {12, 1, 3}, {2, 3, 4}, true, {12, 1, 3}},
        {{2, 3, 4}, {24, 4, 1}, {2, 12, 1}, true, {24, 1, 1}},    /* a gap between rows     */
        {{2, 3, 4}, {24, 4, 1}, {6, 4, 1}, false, {0}},
        {{2, 3, 4}, {0, 0, 1}, {6, 2, 2}, true, {0, 2, 1}},       /* broadcast              */
        {{2, 3, 4}, {-12, -4, -1}, {4, 6, 1}, true, {-6, -1, -1}}, /* backwards            */
        {{1, 3, 1}, {99, 5, 77}, {3, 1, 1}, true, {5, 5, 5}},     /* strides of size-1 axes are ignored */
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        test_case("row %zu", r);
        mica__attr_shape to = {.ndim = 3};
        memcpy(to.shape, rows[r].to, sizeof rows[r].to);
        view_case c = {.in = spec_of(3, rows[r].shape), .view = {.op = MICA__OP_RESHAPE, .attr = &to, .leaf = -1}};
        int64_t strides[MICA_MAX_DIMS], offset;
        CHECK(shape_it(&c));
        CHECK_INT(mica__view_apply(&c.view, &c.in, rows[r].strides, 7, strides, &offset), rows[r].free);
        if (!rows[r].free) continue;
        CHECK_INT(offset, 7);
        for (int d = 0; d < 3; d++)
            if (rows[r].to[d] != 1) CHECK_INT(strides[d], rows[r].want[d]);
    }
}
