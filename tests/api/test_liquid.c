/* Liquid networks: gradients of every cell against finite differences in double, layouts of a
 * sequence, states, stacks and directions, time spans, and cells written out in C.
 *
 * runs: metal-unsanitized */
#include "liquid_kit.h"

/* ---------------------------------------------------------------- networks -- */

typedef struct net_case {
    const char *name, *wiring;
    mica_liquid_cell cell;
    mica_cfc_mode mode;
    mica_liquid_convention convention;
    mica_liquid_solver solver;
    bool explicit_constraints, memory, both, spans;
    int64_t layers, projection, backbone_layers;
} net_case;

static const net_case cases[] = {
    {"LTC", NULL, MICA_LIQUID_LTC, .layers = 1},
    {"LTC, explicit constraints, spans", NULL, MICA_LIQUID_LTC, .explicit_constraints = true, .spans = true,
     .layers = 1},
    {"LTC, auto NCP", "autoncp:12,3", MICA_LIQUID_LTC, .layers = 1, .spans = true},
    {"LTC, sparse: lists of sources", "random:12,3,0.93", MICA_LIQUID_LTC, .layers = 1},
    {"LTC, mixed memory, Keras'", NULL, MICA_LIQUID_LTC, .convention = MICA_LIQUID_KERAS, .memory = true, .spans = true,
     .layers = 1},
    {"CfC", NULL, MICA_LIQUID_CFC, .layers = 1, .backbone_layers = 1},
    {"CfC, spans, three layers of backbone", NULL, MICA_LIQUID_CFC, .spans = true, .layers = 1, .backbone_layers = 3},
    {"CfC, pure, spans", NULL, MICA_LIQUID_CFC, MICA_CFC_PURE, .spans = true, .layers = 1, .backbone_layers = 1},
    {"CfC, no gate, mixed memory", NULL, MICA_LIQUID_CFC, MICA_CFC_NO_GATE, .memory = true, .layers = 1,
     .projection = 2},
    {"CfC, Keras', mixed memory", NULL, MICA_LIQUID_CFC, .convention = MICA_LIQUID_KERAS, .memory = true, .spans = true,
     .layers = 1, .backbone_layers = 1},
    {"wired CfC", "autoncp:12,3", MICA_LIQUID_CFC, .layers = 1, .spans = true},
    {"wired CfC, pure", "autoncp:12,3", MICA_LIQUID_CFC, MICA_CFC_PURE, .layers = 1},
    {"wired CfC, Keras', no gate", "ncp:4,3,2,2,2,2,2", MICA_LIQUID_CFC, MICA_CFC_NO_GATE, MICA_LIQUID_KERAS,
     .layers = 1},
    {"wired CfC, one layer", "full:5,2", MICA_LIQUID_CFC, .layers = 1},
    {"CfC, two layers, both directions", NULL, MICA_LIQUID_CFC, .both = true, .layers = 2, .projection = 2,
     .spans = true},
    {"LTC, two layers, both directions", "autoncp:8,2", MICA_LIQUID_LTC, .both = true, .layers = 2, .memory = true},
    {"CT-RNN, Euler", NULL, MICA_LIQUID_CTRNN, .solver = MICA_SOLVER_EULER, .layers = 1, .spans = true},
    {"CT-RNN, RK4", NULL, MICA_LIQUID_CTRNN, .solver = MICA_SOLVER_RK4, .layers = 1},
    {"NODE, Heun", NULL, MICA_LIQUID_NODE, .solver = MICA_SOLVER_HEUN, .layers = 1},
    {"NODE, RK4", NULL, MICA_LIQUID_NODE, .solver = MICA_SOLVER_RK4, .layers = 1, .spans = true},
    {"ELTC, Heun, wired", "random:5,2,0.5", MICA_LIQUID_ELTC, .solver = MICA_SOLVER_HEUN, .layers = 1, .spans = true},
    {"CT-GRU", NULL, MICA_LIQUID_CTGRU, .layers = 1, .spans = true},
};

/* 3 inputs, 4 units unless wired. */
static mica_liquid net_of(const net_case *c, mica_wiring **wiring)
{
    mica_liquid n;
    mica_liquid_init(&n, c->cell);
    n.inputs = 3, n.units = 4, n.backbone_units = 5;
    n.mode = c->mode, n.convention = c->convention, n.solver = c->solver;
    n.implicit_constraints = !c->explicit_constraints;
    n.mixed_memory = c->memory, n.bidirectional = c->both;
    n.layers = c->layers, n.projection = c->projection, n.backbone_layers = c->backbone_layers;
    n.unfolds = 2, n.tau = 1.5;
    *wiring = NULL;
    if (c->wiring) EXPECT_OK(mica_wiring_parse(c->wiring, 3, wiring));
    n.wiring = *wiring;
    return n;
}

static mica_array *spans_of(mica_scope *s, mica_dtype dtype, int64_t batch, int64_t time)
{
    uint32_t stream = 5;
    return lcg_array(s, dtype, 2, (const int64_t[]){batch, time}, &stream, 0.2, 2);
}

/* The sum of <y, R> over outputs and states, with fixed random R. */
static mica_array *weighed(mica_scope *s, const mica_liquid *net, const mica_params *p, const mica_liquid_data *data)
{
    mica_liquid_result r = {.struct_size = sizeof r};
    if (!EXPECT_OK(mica_liquid_forward(s, net, p, data, &r))) return NULL;
    mica_array *of[3] = {r.y, r.state, r.memory}, *sum = NULL;
    for (int i = 0; i < 3 && of[i]; i++) {
        uint32_t stream = 11 + (uint32_t)i;
        mica_array *w = lcg_array(s, MICA_F64, mica_array_ndim(of[i]), mica_array_shape(of[i]), &stream, -1, 1);
        mica_array *part = mica_sum(s, mica_mul(s, of[i], w), NULL, 0, false);
        sum = sum ? mica_add(s, sum, part) : part;
    }
    return sum;
}

/* The inputs of a network besides its parameters: x, and time spans, first state and memory
 * if they are set. */
static size_t data_arrays(mica_liquid_data *d, mica_array **at[4])
{
    mica_array **all[] = {&d->x, &d->timespans, &d->state, &d->memory};
    size_t n = 0;
    for (size_t i = 0; i < COUNT(all); i++)
        if (*all[i]) at[n++] = all[i];
    return n;
}

/* The value with one element of array i changed by step. Arrays are the parameters, then the data. */
static double value_at(mica_engine *e, const mica_liquid *net, const mica_params *p, const mica_liquid_data *data,
                       size_t i, int64_t element_of, double step)
{
    mica_scope *s = mica_scope_begin(e);
    mica_params *moved;
    mica_liquid_data d = *data;
    double value = NAN;
    const size_t n = mica_params_count(p);
    mica_array **more[4];
    const size_t n_more = data_arrays(&d, more);
    EXPECT_OK(mica_params_new(&moved));
    for (size_t k = 0; k < n + n_more; k++) {
        mica_array *a = k < n ? mica_params_at(p, k) : *more[k - n];
        if (k == i) {
            const size_t bytes = mica_array_nbytes(a);
            double *copy = malloc(bytes);
            EXPECT_OK(mica_copy_out(a, copy, bytes));
            copy[element_of] += step;
            a = mica_from_data(s, MICA_F64, mica_array_ndim(a), mica_array_shape(a), copy);
            free(copy);
        }
        if (k < n) EXPECT_OK(mica_params_add(moved, mica_params_name(p, k), a));
        else *more[k - n] = a;
    }
    mica_array *y = weighed(s, net, moved, &d);
    if (EXPECT_OK(mica_eval(s, &y, 1))) EXPECT_OK(mica_item(y, &value));
    mica_params_free(moved);
    mica_scope_end(s);
    return value;
}

/* An initial state for a batch of two. */
static mica_array *first_state(mica_scope *s, const mica_liquid *net, uint32_t stream)
{
    const int64_t n = net->layers * (net->bidirectional ? 2 : 1), width = mica_liquid_state_size(net);
    const int64_t shape[] = {n, 2, width};
    return lcg_array(s, MICA_F64, n > 1 ? 3 : 2, n > 1 ? shape : shape + 1, &stream, -0.5, 0.5);
}

static void check_gradient(mica_engine *e, const net_case *c)
{
    enum { MOST = 80 };
    mica_scope *s = mica_scope_begin(e);
    mica_wiring *wiring;
    const mica_liquid net = net_of(c, &wiring);
    mica_params *p = recipe_params(s, &net, MICA_F64);
    const size_t n = mica_params_count(p);
    mica_array *wrt[MOST], *grads[MOST];
    mica_liquid_data data = {
        .struct_size = sizeof data, .x = recipe_input(s, MICA_F64, SHAPE(2, 3, 3)), .state = first_state(s, &net, 3)};
    if (c->spans) data.timespans = spans_of(s, MICA_F64, 2, 3);
    if (c->memory) data.memory = first_state(s, &net, 4);
    mica_array **more[4];
    const size_t all = n + data_arrays(&data, more);
    CHECK(all <= MOST);
    for (size_t i = 0; i < all; i++) wrt[i] = i < n ? mica_params_at(p, i) : *more[i - n];
    CHECK_OK(mica_grad(s, weighed(s, &net, p, &data), wrt, all, grads));
    CHECK_OK(mica_eval(s, grads, all));
    for (size_t i = 0; i < all; i++) {
        const int64_t size = mica_array_size(wrt[i]);
        double *got = malloc((size_t)size * sizeof *got);
        EXPECT_OK(mica_copy_out(grads[i], got, (size_t)size * sizeof *got));
        for (int64_t k = 0; k < size; k += 1 + size / 3) {
            const double h = 1e-4;
            double f[4];
            for (int j = 0; j < 4; j++) f[j] = value_at(e, &net, p, &data, i, k, h * (const double[]){-2, -1, 1, 2}[j]);
            const double want = (f[0] - f[3] + 8 * (f[2] - f[1])) / (12 * h);
            EXPECT_MSG(test_close(got[k], want, 1e-7, 1e-8), "%s[%lld]: gradient %.12g, differences %.12g",
                       i < n    ? mica_params_name(p, i)
                       : i == n ? "x"
                                : "spans, state or memory",
                       (long long)k, got[k], want);
        }
        free(got);
    }
    mica_params_free(p);
    mica_wiring_free(wiring);
    mica_scope_end(s);
}

TEST(gradients_of_every_cell)
{
    mica_engine *e = open_engine("ref");
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("%s", cases[i].name);
        check_gradient(e, &cases[i]);
    }
    mica_close(e);
}

/* --------------------------------------------------------------- sequences -- */

static bool same(mica_array *a, mica_array *b)
{
    if (mica_array_ndim(a) != mica_array_ndim(b)) return false;
    for (int64_t i = 0; i < mica_array_size(b); i++)
        if (!test_close((double)element(a, i), (double)element(b, i), 1e-5, 1e-6)) return false;
    return mica_array_size(a) == mica_array_size(b);
}

static mica_liquid_result run(mica_scope *s, const mica_liquid *net, const mica_params *p, mica_liquid_data data)
{
    mica_liquid_result r = {.struct_size = sizeof r};
    EXPECT_OK(mica_liquid_forward(s, net, p, &data, &r));
    mica_array *out[3] = {r.y, r.state, r.memory};
    EXPECT_OK(mica_eval(s, out, r.memory ? 3 : 2));
    return r;
}

/* Time steps from ... to - 1 of sample b of a batch. */
static mica_array *piece(mica_scope *s, mica_array *x, int64_t b, int64_t from, int64_t to)
{
    x = mica_slice_axis(s, mica_slice_axis(s, x, 0, b, b + 1, 1), 1, from, to, 1);
    EXPECT_OK(mica_eval(s, &x, 1));
    return x;
}

/* A batch gives the results of its samples. One batch size equals the number of units. */
static void check_batches(mica_scope *s, const mica_liquid *net, const mica_params *p, bool spans)
{
    static const int64_t batches[] = {1, 2, 4, 5};
    for (size_t i = 0; i < COUNT(batches); i++) {
        mica_liquid_data d = {.struct_size = sizeof d, .x = recipe_input(s, MICA_F32, SHAPE(batches[i], 6, 3))};
        if (spans) d.timespans = spans_of(s, MICA_F32, batches[i], 6);
        const mica_liquid_result all = run(s, net, p, d);
        for (int64_t b = 0; b < batches[i]; b++) {
            mica_liquid_data one = {.struct_size = sizeof one, .x = piece(s, d.x, b, 0, 6)};
            if (spans) one.timespans = piece(s, d.timespans, b, 0, 6);
            EXPECT_MSG(same(run(s, net, p, one).y, piece(s, all.y, b, 0, 6)), "sample %d of %d", (int)b,
                       (int)batches[i]);
        }
    }
}

/* In two halves, the second from the state of the first. */
static void check_halves(mica_scope *s, const mica_liquid *net, const mica_params *p)
{
    mica_array *x = recipe_input(s, MICA_F32, SHAPE(1, 6, 3));
    const mica_liquid_result all = run(s, net, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x});
    const mica_liquid_result first =
        run(s, net, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = piece(s, x, 0, 0, 2)});
    const mica_liquid_result second = run(s, net, p,
                                          (mica_liquid_data){.struct_size = sizeof(mica_liquid_data),
                                                             .x = piece(s, x, 0, 2, 6),
                                                             .state = first.state,
                                                             .memory = first.memory});
    EXPECT(same(second.y, piece(s, all.y, 0, 2, 6)));
    EXPECT(same(second.state, all.state));
    if (all.memory) EXPECT(same(second.memory, all.memory));
}

static void check_layouts(mica_scope *s, mica_liquid net, const mica_params *p)
{
    mica_array *x = recipe_input(s, MICA_F32, SHAPE(3, 5, 3)), *t = spans_of(s, MICA_F32, 3, 5);
    const mica_liquid_result want =
        run(s, &net, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x, .timespans = t});
    /* time first */
    net.time_major = true;
    mica_liquid_result got = run(s, &net, p,
                                 (mica_liquid_data){.struct_size = sizeof(mica_liquid_data),
                                                    .x = mica_permute(s, x, (int[]){1, 0, 2}),
                                                    .timespans = mica_transpose(s, t)});
    mica_array *back = mica_permute(s, got.y, (int[]){1, 0, 2});
    EXPECT_OK(mica_eval(s, &back, 1));
    EXPECT(same(back, want.y));
    EXPECT(same(got.state, want.state));
    net.time_major = false;
    /* only the last step */
    net.last_only = true;
    got = run(s, &net, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x, .timespans = t});
    mica_array *last = mica_squeeze(s, mica_slice_axis(s, want.y, 1, 4, 5, 1), 1);
    EXPECT_OK(mica_eval(s, &last, 1));
    if (!net.bidirectional) EXPECT(same(got.y, last)); /* the other direction's last step is the first */
    net.last_only = false;
    /* no batch; spans for each step and one for all */
    mica_array *one = mica_squeeze(s, piece(s, x, 1, 0, 5), 0), *row = mica_squeeze(s, piece(s, t, 1, 0, 5), 0);
    EXPECT_OK(mica_eval(s, (mica_array *[]){one, row}, 2));
    got = run(s, &net, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = one, .timespans = row});
    mica_array *sample = mica_squeeze(s, piece(s, want.y, 1, 0, 5), 0);
    EXPECT_OK(mica_eval(s, &sample, 1));
    EXPECT(same(got.y, sample));
    mica_array *same_span = mica_full(s, MICA_F32, SHAPE(3, 5), 0.7), *span = mica_full(s, MICA_F32, 0, NULL, 0.7);
    EXPECT(same(
        run(s, &net, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x, .timespans = span}).y,
        run(s, &net, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x, .timespans = same_span})
            .y));
    /* one span per sample, one per step: the same as repeated spans */
    for (int axis = 0; axis < 2; axis++) {
        mica_array *few = mica_slice_axis(s, t, 1 - axis, 0, 1, 1), *many = mica_broadcast_to(s, few, SHAPE(3, 5));
        EXPECT(same(
            run(s, &net, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x, .timespans = few}).y,
            run(s, &net, p,
                (mica_liquid_data){
                    .struct_size = sizeof(mica_liquid_data), .x = x, .timespans = mica_contiguous(s, many)})
                .y));
    }
}

TEST(sequences_of_any_layout)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        mica_engine *e = open_engine(backends[b]);
        for (size_t i = 0; i < COUNT(cases); i++) {
            test_case("%s on %s", cases[i].name, backends[b]);
            mica_scope *s = mica_scope_begin(e);
            mica_wiring *wiring;
            const mica_liquid net = net_of(&cases[i], &wiring);
            mica_params *p = recipe_params(s, &net, MICA_F32);
            check_batches(s, &net, p, cases[i].spans);
            if (!net.bidirectional) check_halves(s, &net, p);
            check_layouts(s, net, p);
            mica_params_free(p);
            mica_wiring_free(wiring);
            mica_scope_end(s);
        }
        mica_close(e);
    }
}

/* The parameters whose names begin with prefix, with the prefix removed. */
static mica_params *params_below(const mica_params *p, const char *prefix)
{
    mica_params *out;
    const size_t n = strlen(prefix);
    EXPECT_OK(mica_params_new(&out));
    for (size_t i = 0; i < mica_params_count(p); i++)
        if (strncmp(mica_params_name(p, i), prefix, n) == 0)
            EXPECT_OK(mica_params_add(out, mica_params_name(p, i) + n, mica_params_at(p, i)));
    EXPECT(mica_params_count(out) > 0);
    return out;
}

/* Two layers are a network on the outputs of another. */
static void check_stack(mica_scope *s, mica_liquid one)
{
    mica_liquid two = one, upper = one;
    two.layers = 2;
    upper.inputs = mica_liquid_outputs(&one);
    mica_params *p = recipe_params(s, &two, MICA_F32);
    mica_params *low = params_below(p, "layers.0."), *high = params_below(p, "layers.1.");
    mica_array *x = recipe_input(s, MICA_F32, SHAPE(2, 5, 3)), *spans = spans_of(s, MICA_F32, 2, 5);
    const mica_liquid_result first =
        run(s, &one, low, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x, .timespans = spans});
    const mica_liquid_result top = run(
        s, &upper, high, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = first.y, .timespans = spans});
    const mica_liquid_result both =
        run(s, &two, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x, .timespans = spans});
    EXPECT(same(both.y, top.y));
    EXPECT_INT(mica_array_shape(both.state)[0], 2);
    mica_array *last = mica_squeeze(s, mica_slice_axis(s, both.state, 0, 1, 2, 1), 0);
    EXPECT_OK(mica_eval(s, &last, 1));
    EXPECT(same(last, top.state));
    mica_params_free(p);
    mica_params_free(low);
    mica_params_free(high);
}

/* The backward direction is a network on the reversed sequence with reversed spans. */
static void check_directions(mica_scope *s, mica_liquid one)
{
    mica_liquid around = one;
    around.bidirectional = true;
    const int64_t width = mica_liquid_outputs(&one);
    EXPECT_INT(mica_liquid_outputs(&around), 2 * width);
    mica_params *p = recipe_params(s, &around, MICA_F32), *back = params_below(p, "reverse.");
    mica_array *x = recipe_input(s, MICA_F32, SHAPE(2, 5, 3)), *spans = spans_of(s, MICA_F32, 2, 5);
    const mica_liquid_result ways =
        run(s, &around, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x, .timespans = spans});
    const mica_liquid_data turned = {
        .struct_size = sizeof turned, .x = mica_flip(s, x, 1), .timespans = mica_flip(s, spans, 1)};
    mica_array *want[2] = {
        run(s, &one, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x, .timespans = spans}).y,
        mica_flip(s, run(s, &one, back, turned).y, 1)};
    for (int i = 0; i < 2; i++) {
        mica_array *got = mica_slice_axis(s, ways.y, -1, i * width, (i + 1) * width, 1);
        EXPECT_OK(mica_eval(s, (mica_array *[]){want[i], got}, 2));
        EXPECT_MSG(same(got, want[i]), "direction %d", i);
    }
    mica_params_free(p);
    mica_params_free(back);
}

TEST(stacks_and_directions)
{
    mica_engine *e = open_engine("cpu");
    for (int cell = MICA_LIQUID_LTC; cell <= MICA_LIQUID_CTGRU; cell++) {
        test_case("cell %d", cell);
        mica_scope *s = mica_scope_begin(e);
        mica_liquid net;
        mica_liquid_init(&net, (mica_liquid_cell)cell);
        net.inputs = 3, net.units = 6, net.backbone_units = 8;
        check_stack(s, net);
        check_directions(s, net);
        mica_scope_end(s);
    }
    mica_close(e);
}

/* -------------------------------------------------- cells written out in C -- */

/* Parameters as doubles, by name. */
static void param(const mica_params *p, const char *name, double *out)
{
    mica_array *a = mica_params_at(p, (size_t)mica_params_index(p, name));
    EXPECT_OK(mica_copy_out(a, out, mica_array_nbytes(a)));
}

static void slope_of(const net_case *c, const double *w, const double *v, const double *b, const double *x,
                     const double *s, double *out)
{
    for (int u = 0; u < 4; u++) {
        double z = b[u];
        for (int i = 0; i < 3; i++) z += w[3 * u + i] * x[i];
        for (int i = 0; i < 4; i++) z += v[4 * u + i] * s[i];
        out[u] = tanh(z) - (c->cell == MICA_LIQUID_CTRNN ? s[u] / 1.5 : c->cell == MICA_LIQUID_ELTC ? s[u] : 0);
    }
}

/* One of the solver's steps. */
static void solve(const net_case *c, const double *w, const double *v, const double *b, const double *x, double *s,
                  double h)
{
    double k[4][4], at[4];
    slope_of(c, w, v, b, x, s, k[0]);
    const int stages = c->solver == MICA_SOLVER_EULER ? 1 : c->solver == MICA_SOLVER_HEUN ? 2 : 4;
    for (int j = 1; j < stages; j++) {
        const double share = stages == 2 || j == 3 ? 1 : 0.5;
        for (int u = 0; u < 4; u++) at[u] = s[u] + share * h * k[j - 1][u];
        slope_of(c, w, v, b, x, at, k[j]);
    }
    for (int u = 0; u < 4; u++)
        s[u] += stages == 1   ? h * k[0][u]
                : stages == 2 ? h * (k[0][u] + k[1][u]) / 2
                              : h * (k[0][u] + 2 * k[1][u] + 2 * k[2][u] + k[3][u]) / 6;
}

TEST(solvers_as_written_out)
{
    static const mica_liquid_cell cells[] = {MICA_LIQUID_CTRNN, MICA_LIQUID_NODE, MICA_LIQUID_ELTC};
    mica_engine *e = open_engine("cpu");
    for (int i = 0; i < 9; i++) {
        const net_case c = {"", NULL, cells[i / 3], .solver = (mica_liquid_solver)(i % 3), .layers = 1};
        test_case("cell %d, solver %d", i / 3, i % 3);
        mica_scope *s = mica_scope_begin(e);
        mica_wiring *none;
        const mica_liquid net = net_of(&c, &none);
        mica_params *p = recipe_params(s, &net, MICA_F64);
        double w[12], v[16], b[4], x[15], state[4] = {0}, y[20];
        param(p, "rnn_cell.input.weight", w);
        param(p, "rnn_cell.recurrent.weight", v);
        param(p, "rnn_cell.input.bias", b);
        mica_array *in = recipe_input(s, MICA_F64, SHAPE(5, 3)), *t = spans_of(s, MICA_F64, 1, 5);
        EXPECT_OK(mica_copy_out(in, x, sizeof x));
        t = mica_reshape(s, t, SHAPE(5));
        const mica_liquid_result r =
            run(s, &net, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = in, .timespans = t});
        EXPECT_OK(mica_eval(s, &t, 1));
        EXPECT_OK(mica_copy_out(r.y, y, sizeof y));
        for (int k = 0; k < 5; k++) {
            for (int j = 0; j < 2; j++) solve(&c, w, v, b, x + 3 * k, state, mica_data_f64(t)[k] / 2);
            for (int u = 0; u < 4; u++) EXPECT_CLOSE(y[4 * k + u], state[u], 1e-12, 1e-13);
        }
        mica_params_free(p);
        mica_scope_end(s);
    }
    mica_close(e);
}

/* Weights of eight traces, by the distance of their scale from the requested one. */
static void shares(const double *asked, double *out)
{
    double sum = 0;
    for (int k = 0; k < 8; k++) sum += out[k] = exp(-pow(asked[k] - k / 2.0 * log(10), 2));
    for (int k = 0; k < 8; k++) out[k] /= sum;
}

TEST(ctgru_as_written_out)
{
    enum { U = 4, M = 8, I = 3 };
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    const net_case c = {"", NULL, MICA_LIQUID_CTGRU, .layers = 1};
    mica_wiring *none;
    const mica_liquid net = net_of(&c, &none);
    mica_params *p = recipe_params(s, &net, MICA_F64);
    static double wr[U * M * 7], ws[U * M * 7], wd[U * 7], br[U * M], bs[U * M], bd[U], y[5 * U], x[5 * I];
    param(p, "rnn_cell.tau_r.weight", wr), param(p, "rnn_cell.tau_r.bias", br);
    param(p, "rnn_cell.tau_s.weight", ws), param(p, "rnn_cell.tau_s.bias", bs);
    param(p, "rnn_cell.detect.weight", wd), param(p, "rnn_cell.detect.bias", bd);
    mica_array *in = recipe_input(s, MICA_F64, SHAPE(5, 3));
    EXPECT_OK(mica_copy_out(in, x, sizeof x));
    EXPECT_OK(mica_copy_out(run(s, &net, p, (mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = in}).y, y,
                            sizeof y));
    double trace[U][M] = {{0}}, z[7], seen[7];
    for (int t = 0; t < 5; t++) {
        double write[U][M], next[U] = {0};
        for (int i = 0; i < I; i++) z[i] = seen[i] = x[I * t + i];
        for (int u = 0; u < U; u++) {
            z[I + u] = 0;
            for (int k = 0; k < M; k++) z[I + u] += trace[u][k];
        }
        for (int u = 0; u < U; u++) {
            double asked[M], put[M], read[M];
            for (int k = 0; k < M; k++) {
                asked[k] = br[M * u + k], put[k] = bs[M * u + k];
                for (int i = 0; i < 7; i++)
                    asked[k] += wr[(M * u + k) * 7 + i] * z[i], put[k] += ws[(M * u + k) * 7 + i] * z[i];
            }
            shares(asked, read);
            shares(put, write[u]);
            seen[I + u] = 0;
            for (int k = 0; k < M; k++) seen[I + u] += read[k] * trace[u][k];
        }
        for (int u = 0; u < U; u++) {
            double signal = bd[u];
            for (int i = 0; i < 7; i++) signal += wd[7 * u + i] * seen[i];
            for (int k = 0; k < M; k++) {
                trace[u][k] += write[u][k] * (tanh(signal) - trace[u][k]);
                trace[u][k] *= k ? exp(-1 / (k / 2.0 * log(10))) : 0;
                next[u] += trace[u][k];
            }
            EXPECT_CLOSE(y[U * t + u], next[u], 1e-12, 1e-13);
        }
    }
    mica_params_free(p);
    mica_scope_end(s);
    mica_close(e);
}
