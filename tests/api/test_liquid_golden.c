/* Liquid networks against the reference package: outputs and last states of each case of
 * tests/golden/ncps.txt on both backends, names and order of the parameters, and the gradients that
 * are in the file.
 *
 * runs: metal */
#include "liquid_kit.h"

static const double spans[10] = {0.5, 1, 2, 0.1, 3, 1, 0.25, 4, 1.5, 0.75};

/* A case of the file as a description of mica. */
typedef struct golden_net {
    mica_liquid net;
    mica_wiring *wiring;
    int ndim;
    int64_t shape[3];
    int64_t spans; /* how many of them are used */
} golden_net;

static bool has(const char *name, const char *part) { return strstr(name, part) != NULL; }

static void describe_wiring(golden_net *g, const char *text, int64_t inputs)
{
    EXPECT_OK(mica_wiring_parse(text, inputs, &g->wiring));
    g->net.wiring = g->wiring;
    g->net.inputs = g->shape[2] = inputs;
}

static golden_net describe(const char *name)
{
    golden_net g = {.net = has(name, "ltc") ? small_ltc() : small_cfc(), .ndim = 3, .shape = {2, 5, 3}};
    mica_liquid *net = &g.net;
    if (has(name, "explicit")) net->implicit_constraints = false;
    if (has(name, "pure")) net->mode = MICA_CFC_PURE;
    if (has(name, "no_gate")) net->mode = MICA_CFC_NO_GATE;
    if (has(name, "KERAS")) net->convention = MICA_LIQUID_KERAS;
    if (has(name, "nobackbone")) net->backbone_layers = 0;
    if (has(name, "_mm")) net->mixed_memory = true;
    if (has(name, "proj3")) net->projection = 3;
    if (has(name, "autoncp")) describe_wiring(&g, "autoncp:16,4", 8);
    if (has(name, "ncp_unfolds3")) describe_wiring(&g, "ncp:10,10,8,6,6,4,6", 4), net->unfolds = 3;
    if (has(name, "random")) describe_wiring(&g, "random:8,2,0.5", 3);
    const char *act = strstr(name, "act_");
    if (act) EXPECT(mica_activation_named(act + 4, &net->activation)), net->backbone_layers = 2;
    if (has(name, "timemajor")) net->time_major = net->last_only = true, g.shape[0] = 5, g.shape[1] = 2;
    if (has(name, "unbatched")) g.ndim = 2, g.shape[0] = 5, g.shape[1] = 3;
    if (has(name, "tsB1")) g.spans = 10;
    if (has(name, "scalarstep") || has(name, "ts_B1")) g.spans = 5, g.shape[0] = 1;
    return g;
}

/* Compares the names and shapes of a state_dict with the file, in its order. Moves text
 * past them. */
static void check_names(const mica_params *all, char **text)
{
    char name[200];
    size_t i = 0;
    for (int used; sscanf(*text, "param %199s%n", name, &used) == 1; i++) {
        const mica_array *value = mica_params_at(all, i);
        char *at = *text + used;
        if (!EXPECT_MSG(value && strcmp(mica_params_name(all, i), name) == 0, "parameter %zu is %s, not %s", i,
                        value ? mica_params_name(all, i) : "not there", name))
            break;
        for (int d = 0; d < mica_array_ndim(value); d++)
            EXPECT_MSG(strtol(at, &at, 10) == mica_array_shape(value)[d], "%s: axis %d", name, d);
        *text = strchr(*text, '\n') + 1;
    }
    if (i > 0) EXPECT_INT(mica_params_count(all), i); /* some cases do not list them */
    while (strncmp(*text, "param", 5) == 0) *text = strchr(*text, '\n') + 1;
}

/* Compares the values with a line of a letter and numbers, each within 1e-5. */
static void check_numbers(mica_array *values, char **text, const char *letter)
{
    char *at = *text + 2;
    EXPECT(strncmp(*text, letter, 1) == 0);
    const int64_t n = mica_array_size(values);
    for (int64_t i = 0; i < n; i++) {
        char *end;
        const double want = strtod(at, &end), got = (double)element(values, i);
        if (!EXPECT_MSG(end != at && fabs(got - want) <= 1e-5 * fmax(0.1, fabs(want)), "%s %lld: %.9g, not %.9g",
                        letter, (long long)i, got, want))
            return;
        at = end;
    }
    EXPECT_MSG(*at == '\n', "more than %lld numbers in the file", (long long)n);
    *text = strchr(*text, '\n') + 1;
}

static void check_case(mica_engine *e, const char *name, char **text)
{
    mica_scope *s = mica_scope_begin(e);
    golden_net g = describe(name);
    mica_params *p = recipe_params(s, &g.net, MICA_F32), *all;
    CHECK_OK(mica_liquid_state_dict(s, &g.net, p, &all));
    check_names(all, text);
    mica_params_free(all);
    mica_liquid_data data = {.struct_size = sizeof data, .x = recipe_input(s, MICA_F32, g.ndim, g.shape)};
    if (g.spans)
        data.timespans =
            mica_cast(s, mica_from_data(s, MICA_F64, 2, (const int64_t[]){g.spans / 5, 5}, spans), MICA_F32);
    mica_liquid_result r = {.struct_size = sizeof r};
    CHECK_OK(mica_liquid_forward(s, &g.net, p, &data, &r));
    /* with mixed memory the file has [state, memory] */
    mica_array *state = r.memory ? mica_concat(s, (mica_array *const[]){r.state, r.memory}, 2, -1) : r.state;
    CHECK_OK(mica_eval(s, (mica_array *const[]){r.y, state}, 2));
    check_numbers(r.y, text, "y");
    check_numbers(state, text, "h");
    mica_params_free(p);
    mica_wiring_free(g.wiring);
    mica_scope_end(s);
}

TEST(networks_give_the_figures_of_the_reference)
{
    char *file = file_text("tests/golden/ncps.txt"), name[100];
    CHECK(file != NULL);
    for (size_t b = 0; b < COUNT(backends); b++) {
        mica_engine *e = open_engine(backends[b]);
        int cases = 0;
        for (char *text = file; sscanf(text, "case %99s", name) == 1; cases++) {
            test_case("%s on %s", name, backends[b]);
            text = strchr(text, '\n') + 1;
            check_case(e, name, &text);
            while (*text && strncmp(text, "case", 4) != 0) text = strchr(text, '\n') + 1;
        }
        test_case("all cases on %s", backends[b]);
        EXPECT_INT(cases, 26);
        mica_close(e);
    }
    free(file);
}

/* ------------------------------------------------------------- gradients --- */

typedef struct known_sum {
    const char *name;
    double sum;
} known_sum;

static const known_sum cfc_sums[] = {{"backbone.0.weight", -0.0397020}, {"backbone.0.bias", -0.00847251},
                                     {"ff1.weight", -0.0809290},        {"ff1.bias", -0.0778870},
                                     {"ff2.weight", -0.110461},         {"ff2.bias", -0.103721},
                                     {"time_a.weight", 0.0119268},      {"time_a.bias", 0.0188855},
                                     {"time_b.weight", 0.0119268},      {"time_b.bias", 0.0188855}};
static const known_sum ltc_sums[] = {
    {"gleak", -0.0756747},      {"vleak", 0.211775},       {"cm", -0.0221551},         {"sigma", 0.00612201},
    {"mu", -0.153205},          {"w", 0.092571},           {"erev", 0.615285},         {"sensory_sigma", -0.0019495},
    {"sensory_mu", -0.0105194}, {"sensory_w", 0.00120158}, {"sensory_erev", 0.126398}, {"input_w", 0.00519887},
    {"input_b", 0.0105194},     {"output_w", 0.639036},    {"output_b", 0.978813}};

/* Sums of the gradients of mean(y^2). */
static void check_gradients(mica_engine *e, mica_dtype dtype, const mica_liquid *net, const known_sum *sums, size_t n)
{
    mica_scope *s = mica_scope_begin(e);
    mica_params *p = recipe_params(s, net, dtype);
    mica_array *wrt[20], *grads[20];
    CHECK_INT(mica_params_count(p), n);
    for (size_t i = 0; i < n; i++) wrt[i] = mica_params_at(p, i);
    mica_liquid_result r = {.struct_size = sizeof r};
    CHECK_OK(mica_liquid_forward(
        s, net, p,
        &(mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = recipe_input(s, dtype, SHAPE(2, 5, 3))}, &r));
    mica_array *loss = mica_mean(s, mica_square(s, r.y), NULL, 0, false);
    CHECK_OK(mica_grad(s, loss, wrt, n, grads));
    for (size_t i = 0; i < n; i++) grads[i] = mica_sum(s, grads[i], NULL, 0, false);
    CHECK_OK(mica_eval(s, grads, n));
    for (size_t i = 0; i < n; i++) {
        const int64_t at = mica_params_index(p, mica_params_name(p, i));
        EXPECT_MSG(ends_in(mica_params_name(p, (size_t)at), sums[i].name), "%s", mica_params_name(p, i));
        EXPECT_MSG(fabs(item_of(grads[i]) - sums[i].sum) <= 1e-5 * fmax(fabs(sums[i].sum), 0.1), "%s: %.9g, not %.9g",
                   sums[i].name, item_of(grads[i]), sums[i].sum);
    }
    mica_params_free(p);
    mica_scope_end(s);
}

TEST(gradients_are_those_of_the_reference)
{
    const mica_liquid cfc = small_cfc(), ltc = small_ltc();
    for (size_t b = 0; b < COUNT(backends); b++) {
        mica_engine *e = open_engine(backends[b]);
        for (int wide = 0; wide < 2; wide++) {
            const mica_dtype dtype = wide ? MICA_F64 : MICA_F32;
            test_case("CfC in %s on %s", mica_dtype_name(dtype), backends[b]);
            check_gradients(e, dtype, &cfc, cfc_sums, COUNT(cfc_sums));
            test_case("LTC in %s on %s", mica_dtype_name(dtype), backends[b]);
            check_gradients(e, dtype, &ltc, ltc_sums, COUNT(ltc_sums));
        }
        mica_close(e);
    }
}
