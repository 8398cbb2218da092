/* Times of steps, by the GPU's clock or that of its command buffers, and the names of the steps. */
#include "backend/metal/metal_device.h"
#include "base/clock.h"
#include "metal_kit.h"

static mica_array *graph(mica_scope *s)
{
    mica_array *x = mica_reshape(s, mica_sin(s, mica_arange(s, MICA_F32, 0, 64 * 64, 1)), 2, (int64_t[]){64, 64});
    mica_array *d = mica_cast(s, mica_sqrt(s, mica_exp(s, mica_cast(s, x, MICA_F64))), MICA_F32);
    return mica_softmax(s, mica_matmul(s, d, mica_transpose(s, x)), 1);
}

static mica_status turn(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                        mica_array **y_out, void *user)
{
    (void)x, (void)user;
    carry_out[0] = mica_softmax(s, mica_add(s, carry[0], mica_scalar(s, 1)), 0);
    y_out[0] = carry_out[0];
    return mica_scope_status(s);
}

static bool step_at(mica_engine *e, size_t i, mica_profile_step *step)
{
    *step = (mica_profile_step){.struct_size = sizeof *step};
    return EXPECT_MSG(mica_engine_profile_step(e, i, step) == MICA_OK, "%s", mica_last_error());
}

static void check_profile(mica_engine *e, uint64_t before)
{
    const uint64_t after = mica__now_ns();
    const size_t n = mica_engine_profile_count(e);
    size_t on_cpu = 0, named = 0;
    uint64_t last = 0;
    EXPECT_MSG(n >= 4, "%d steps", (int)n);
    for (size_t i = 0; i < n; i++) {
        mica_profile_step step;
        if (!step_at(e, i, &step)) return;
        test_case("%s on %s", step.name, step.device);
        EXPECT_MSG(step.start_ns >= before && step.start_ns <= step.end_ns && step.end_ns <= after,
                   "%llu to %llu, the run was %llu to %llu", (unsigned long long)step.start_ns,
                   (unsigned long long)step.end_ns, (unsigned long long)before, (unsigned long long)after);
        EXPECT(step.start_ns >= last); /* each depends on the previous step in this graph */
        last = step.end_ns;
        const bool cpu = strcmp(step.device, "CPU") == 0;
        on_cpu += cpu;
        if (!cpu) EXPECT_STR(step.device, mica_engine_device(e));
        named += strcmp(step.name, "matmul") == 0 || strcmp(step.name, "softmax") == 0;
    }
    EXPECT_INT(on_cpu, 1);
    EXPECT_INT(named, 2);
}

TEST(each_step_has_its_times)
{
    SKIP_WITHOUT_METAL();
    const char *why;
    mica__metal_device *device = (mica__metal_device *)mica__metal_get(&why);
    const bool counters = device->counters;
    for (int turn_number = 0; turn_number < 2; turn_number++) {
        device->counters = counters && turn_number == 0;
        mica_engine *e = open_on("metal");
        mica_scope *s = mica_scope_begin(e);
        mica_array *first = graph(s), *again = graph(s), *unseen = graph(s);
        CHECK_INT(mica_eval(s, &first, 1), MICA_OK);
        EXPECT_INT(mica_engine_profile_count(e), 0);
        mica_engine_profile(e, true);
        const uint64_t before = mica__now_ns(), gpu_ns = stats_of(e).gpu_ns;
        CHECK_INT(mica_eval(s, &again, 1), MICA_OK);
        mica_engine_profile(e, false);
        check_profile(e, before);
        EXPECT(stats_of(e).gpu_ns > gpu_ns); /* the time of the command buffers */
        EXPECT(memcmp(mica_data_f32(first), mica_data_f32(again), mica_array_nbytes(first)) == 0);
        mica_profile_step step;
        step_at(e, 0, &step);
        const uint64_t noted = step.start_ns;
        CHECK_INT(mica_eval(s, &unseen, 1), MICA_OK); /* profiling is off: the records do not change */
        EXPECT(step_at(e, 0, &step) && step.start_ns == noted);
        mica_scope_end(s);
        mica_close(e);
    }
    device->counters = counters;
}

/* More steps than one buffer of samples holds. */
TEST(each_turn_of_a_loop_has_its_times)
{
    SKIP_WITHOUT_METAL();
    enum { TURNS = 300 };
    mica_engine *e = open_on("metal");
    mica_scope *s = mica_scope_begin(e);
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_y = 1;
    o.length = TURNS;
    mica_array *h = mica_full(s, MICA_F32, 1, (int64_t[]){8}, 0.5), *last, *all;
    mica_scan(s, turn, NULL, &o, &h, NULL, &last, &all);
    mica_engine_profile(e, true);
    CHECK_MSG(mica_eval(s, &last, 1) == MICA_OK, "%s", mica_last_error());
    const size_t n = mica_engine_profile_count(e);
    EXPECT_MSG(n >= 2 * TURNS, "%d steps", (int)n);
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        mica_profile_step step;
        CHECK(step_at(e, i, &step));
        CHECK_MSG(step.start_ns > 0 && step.start_ns >= before && step.end_ns >= step.start_ns, "step %d", (int)i);
        before = step.start_ns;
    }
    EXPECT_CLOSE(mica_data_f32(last)[0], 0.125, 1e-6, 0);
    mica_scope_end(s);
    mica_close(e);
}

/* A failure in the middle of a run: a status, and the records can be read. */
TEST(a_profiled_run_that_fails)
{
    SKIP_WITHOUT_METAL();
    if (!inject(NULL)) SKIP("not softmetal");
    mica_engine *e = open_on("metal");
    mica_scope *s = mica_scope_begin(e);
    mica_array *y = graph(s), *again = graph(s);
    mica_engine_profile(e, true);
    inject("command=1");
    EXPECT_INT(mica_eval(s, &y, 1), MICA_ERR_DEVICE);
    inject(NULL);
    for (size_t i = 0; i < mica_engine_profile_count(e); i++) {
        mica_profile_step step;
        EXPECT(step_at(e, i, &step) && step.end_ns >= step.start_ns);
    }
    mica_scope_clear_error(s);
    EXPECT_INT(mica_eval(s, &again, 1), MICA_OK);
    mica_scope_end(s);
    mica_close(e);
}

/* A pipeline has the name of the step that it was created for. */
TEST(pipelines_have_names)
{
    SKIP_WITHOUT_METAL();
    void *(*selector)(const char *);
    void *address = softmetal("sel_registerName");
    if (!address) SKIP("no Objective-C here");
    memcpy(&selector, &address, sizeof selector);
    const char *why;
    const mica__pipeline_source source = {
        .text = "kernel void k(device float *x [[buffer(0)]]) { x[0] = 1; }", .kernel = "k", .label = "add+sin"};
    mica__pipeline *p = NULL;
    CHECK_MSG(mica__pipeline_get(mica__metal_get(&why), &source, &p) == MICA_OK, "%s", mica_last_error());
    mica__id label = ((mica__id(*)(mica__id, mica__sel))mica__objc.send)(p->state, selector("label"));
    EXPECT_STR(MICA__SEND0(const char *, label, UTF8String), "add+sin");
    mica__pipeline_drop(p);
}

/* Steps on the CPU are timed too. */
TEST(without_a_gpu)
{
    mica_engine *e = open_on("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *y = graph(s);
    mica_engine_profile(e, true);
    CHECK_INT(mica_eval(s, &y, 1), MICA_OK);
    const size_t n = mica_engine_profile_count(e);
    EXPECT(n >= 2);
    for (size_t i = 0; i < n; i++) {
        mica_profile_step step;
        EXPECT(step_at(e, i, &step) && step.start_ns > 0 && step.end_ns >= step.start_ns);
        EXPECT_STR(step.device, "CPU");
    }
    mica_scope_end(s);
    mica_close(e);
}
