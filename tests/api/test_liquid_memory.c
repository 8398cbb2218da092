/* Training steps and runs of liquid networks after the first ones: nothing is planned, malloc is
 * not called, and memory stays within the size that the plan stated. */
#include <mica_nn.h>

#include "base/alloc.h"
#include "liquid_kit.h"
#include "malloc_count.h"

enum { BATCH = 6, TIME = 5, INPUTS = 3, STEPS = 6, SETTLED = 1 };

typedef struct memory_case {
    const char *name;
    mica_liquid net;
    mica_wiring *wiring;
} memory_case;

static void open_cases(memory_case *c)
{
    c[0] = (memory_case){.name = "cfc", .net = small_cfc()};
    c[1] = (memory_case){.name = "ltc", .net = small_ltc()};
    c[2] = (memory_case){.name = "ltc, ncp", .net = small_ltc()};
    c[3] = (memory_case){.name = "cfc, ncp", .net = small_cfc()};
    for (int i = 2; i < 4; i++) {
        EXPECT_OK(mica_wiring_parse("autoncp:12,2", INPUTS, &c[i].wiring));
        c[i].net.wiring = c[i].wiring;
    }
    c[3].net.backbone_layers = 0;
}

static mica_status forward(mica_forward *f, mica_array *const *data, size_t n, mica_array **out, size_t n_out,
                           void *user)
{
    (void)n, (void)n_out;
    mica_liquid_result r = {.struct_size = sizeof r};
    const mica_status status = mica_liquid_forward(
        f->s, user, f->params, &(mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = data[0]}, &r);
    out[0] = r.y;
    return status;
}

static mica_array *loss(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    mica_array *y = NULL;
    return forward(f, data, n, &y, 1, user) == MICA_OK ? mica_mse_loss(f->s, y, data[1]) : NULL;
}

/* Counters before a step, to check that later steps plan and allocate nothing. */
typedef struct step_watch {
    mica_engine *e;
    mica_stats before;
    uint64_t asked, mallocs;
} step_watch;

static step_watch watch_step(mica_engine *e)
{
    mica_engine_reset_peak(e);
    return (step_watch){e, stats_of(e), mica__alloc_count(), malloc_count()};
}

static void check_step(const step_watch *w, int step, uint64_t planned)
{
    const uint64_t asked = mica__alloc_count() - w->asked, mallocs = malloc_count() - w->mallocs;
    const mica_stats now = stats_of(w->e);
    if (step < SETTLED) return; /* the first steps trace: the wiring's constants are data then */
    EXPECT_MSG(now.bytes_peak - w->before.bytes_in_use <= planned, "step %d: %llu bytes, planned were %llu", step,
               (unsigned long long)(now.bytes_peak - w->before.bytes_in_use), (unsigned long long)planned);
    EXPECT_INT(now.plan_misses, w->before.plan_misses);
    EXPECT_INT(now.bytes_allocated, w->before.bytes_allocated);
    EXPECT_INT(now.bytes_in_use, w->before.bytes_in_use);
#if !defined(MICA_DEBUG) /* debug builds never reuse a scope */
    EXPECT_INT(asked, 0);
    EXPECT_INT(mallocs, 0);
#endif
    (void)asked, (void)mallocs;
}

static uint64_t planned_bytes(mica_trainer *t, mica_engine *e, mica_array *const *data)
{
    mica_array *out[128];
    mica_plan_info info = {.struct_size = sizeof info};
    mica_scope *s = mica_scope_begin(e);
    EXPECT(mica_trainer_outputs(t) <= COUNT(out));
    EXPECT_OK(mica_trainer_graph(t, s, data, 2, out));
    EXPECT_OK(mica_plan_query(s, out, mica_trainer_outputs(t), &info));
    mica_scope_end(s);
    return info.peak_bytes;
}

static void train(mica_engine *e, memory_case *c)
{
    mica_scope *s = mica_scope_begin(e), *drawn = mica_scope_begin(e);
    mica_params *p = recipe_params(drawn, &c->net, MICA_F32);
    mica_scope_end(drawn); /* otherwise it would keep the initial values alive */
    const int64_t width = mica_liquid_outputs(&c->net);
    mica_array *data[2] = {recipe_input(s, MICA_F32, SHAPE(BATCH, TIME, INPUTS)),
                           recipe_input(s, MICA_F32, SHAPE(BATCH, TIME, width))};
    mica_trainer_options o;
    mica_trainer *t;
    mica_trainer_options_init(&o);
    o.loss = loss;
    o.user = &c->net;
    mica_optimiser_init(&o.optimiser, MICA_ADAM);
    CHECK_OK(mica_trainer_open(e, p, &o, &t));
    const uint64_t planned = planned_bytes(t, e, data);
    double first = 0;
    for (int step = 0; step < STEPS; step++) {
        mica_train_result r = {.struct_size = sizeof r};
        const step_watch w = watch_step(e);
        mica_scope *inner = mica_scope_begin(e);
        const mica_status status = mica_trainer_step(t, inner, data, 2, 0.01, 0, &r);
        mica_scope_end(inner);
        CHECK_OK(status);
        /* slightly more than the plan: rates, seed, loss and norm are separate arrays */
        check_step(&w, step, planned + 1024);
        if (step == 0) first = r.loss;
        if (step == STEPS - 1) EXPECT(r.loss < first);
    }
    mica_trainer_close(t);
    mica_params_free(p);
    mica_scope_end(s);
}

static void run(mica_engine *e, memory_case *c)
{
    mica_scope *s = mica_scope_begin(e);
    mica_params *p = recipe_params(s, &c->net, MICA_F32);
    mica_array *x = recipe_input(s, MICA_F32, SHAPE(1, TIME, INPUTS)), *y;
    mica_network *network;
    mica_plan_info info = {.struct_size = sizeof info};
    mica_liquid_result r = {.struct_size = sizeof r};
    CHECK_OK(mica_network_open(e, p, forward, &c->net, &network));
    CHECK_OK(
        mica_liquid_forward(s, &c->net, p, &(mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x}, &r));
    CHECK_OK(mica_plan_query(s, &r.y, 1, &info));
    for (int step = 0; step < STEPS; step++) {
        const step_watch w = watch_step(e);
        mica_scope *inner = mica_scope_begin(e);
        const mica_status status = mica_network_run(network, inner, &x, 1, &y, 1);
        mica_scope_end(inner);
        CHECK_OK(status);
        check_step(&w, step, info.peak_bytes);
    }
    mica_network_close(network);
    mica_params_free(p);
    mica_scope_end(s);
}

TEST(steps_ask_for_no_memory)
{
    static const int threads[] = {1, 2};
    memory_case cases[4];
    open_cases(cases);
    for (size_t t = 0; t < COUNT(threads); t++) {
        const mica_engine_options o = options_for("cpu", threads[t]);
        for (size_t i = 0; i < COUNT(cases); i++) {
            test_case("training %s, %d threads", cases[i].name, threads[t]);
            mica_engine *e = open_with(&o);
            train(e, &cases[i]);
            mica_close(e);
            test_case("running %s, %d threads", cases[i].name, threads[t]);
            e = open_with(&o);
            run(e, &cases[i]);
            mica_close(e);
        }
    }
    for (size_t i = 0; i < COUNT(cases); i++) mica_wiring_free(cases[i].wiring);
}
