/* A language model, a training step and a liquid network on metal: logits, losses and gradients
 * match those of the CPU within the roundoff of f32. */
#include <math.h>
#include <mica_liquid.h>
#include <mica_lm.h>
#include <stdlib.h>

#include "metal_kit.h"

enum { TOKENS = 5 };

/* All weights are one Metal buffer, all small arrays share another; the rest are arrays with
 * their own pages. */
static void expect_few_buffers(mica_stats stats)
{
    EXPECT(stats.gpu_kernels > 0);
    EXPECT_MSG(stats.gpu_buffers >= 2 && stats.gpu_buffers <= 8, "%d buffers", (int)stats.gpu_buffers);
    EXPECT_INT(stats.gpu_bytes_left_out, 0);
}

/* Logits of the built-in model after a short prompt and one more token; NULL: it failed. */
static float *logits_on(const char *backend, int64_t *n)
{
    static const int32_t tokens[TOKENS] = {1, 20, 33, 7, 54};
    mica_engine *e = open_on(backend);
    mica_lm *lm = NULL;
    mica_lm_session *session = NULL;
    mica_lm_info info = {.struct_size = sizeof info};
    mica_lm_session_options options;
    mica_lm_session_options_init(&options);
    options.context = 16;
    const float *logits = NULL;
    float *copy = NULL;
    if (EXPECT_MSG(mica_lm_open(e, NULL, NULL, &lm) == MICA_OK, "%s", mica_last_error()) &&
        EXPECT_MSG(mica_lm_session_open(lm, &options, &session) == MICA_OK, "%s", mica_last_error()) &&
        EXPECT_MSG(mica_lm_feed(session, tokens, TOKENS - 1, NULL) == MICA_OK, "%s", mica_last_error()) &&
        EXPECT_MSG(mica_lm_feed(session, tokens + TOKENS - 1, 1, &logits) == MICA_OK, "%s", mica_last_error())) {
        mica_lm_get_info(lm, &info);
        *n = info.vocab;
        copy = malloc((size_t)*n * sizeof *copy);
        if (copy) memcpy(copy, logits, (size_t)*n * sizeof *copy);
    }
    if (strcmp(backend, "metal") == 0) expect_few_buffers(stats_of(e));
    mica_lm_session_close(session);
    mica_lm_close(lm);
    mica_close(e);
    return copy;
}

static void compare_logits(void)
{
    int64_t n = 0, m = 0;
    float *want = logits_on("cpu", &n), *got = logits_on("metal", &m);
    if (EXPECT(want && got) && EXPECT_INT(m, n)) {
        double largest = 0, off = 0;
        for (int64_t i = 0; i < n; i++) {
            largest = fmax(largest, fabs((double)want[i]));
            off = fmax(off, fabs((double)got[i] - (double)want[i]));
            EXPECT(isfinite(got[i]));
        }
        EXPECT_MSG(off <= 1e-3 * largest, "off by %g of %g", off, largest);
    }
    free(want);
    free(got);
}

TEST(logits_of_the_model_inside)
{
    SKIP_WITHOUT_METAL();
    compare_logits();
}

/* The kernels of the first tokens are compiled when a model is opened: prompts of any length,
 * and the tokens after them, compile nothing. */
TEST(the_first_token_compiles_nothing)
{
    static const int64_t lengths[] = {1, 2, 3, 5, 14};
    SKIP_WITHOUT_METAL();
    int32_t tokens[20];
    for (int i = 0; i < 20; i++) tokens[i] = (i * 7 + 1) % 50;
    mica__pipeline_trim();
    for (int lazy = 1; lazy >= 0; lazy--) {
        mica_engine *e = open_on("metal");
        mica_lm *lm = NULL;
        mica_lm_options options;
        mica_lm_options_init(&options);
        options.lazy = lazy;
        const uint64_t before = stats_of(e).gpu_compiles;
        CHECK_MSG(mica_lm_open(e, NULL, &options, &lm) == MICA_OK, "%s", mica_last_error());
        const uint64_t opened = stats_of(e).gpu_compiles;
        EXPECT_INT(opened > before, !lazy);
        for (size_t i = 0; i < COUNT(lengths) && !lazy; i++) {
            test_case("%d tokens", (int)lengths[i]);
            const float *logits;
            mica_lm_session *session = NULL;
            mica_lm_session_options o;
            mica_lm_session_options_init(&o);
            o.context = 32;
            CHECK_INT(mica_lm_session_open(lm, &o, &session), MICA_OK);
            EXPECT_INT(mica_lm_feed(session, tokens, lengths[i], &logits), MICA_OK);
            EXPECT_INT(mica_lm_feed(session, tokens, 1, &logits), MICA_OK);
            EXPECT_INT(stats_of(e).gpu_compiles, opened);
            EXPECT_INT(stats_of(e).gpu_cpu_steps, 0);
            mica_lm_session_close(session);
        }
        static const mica_lm_kv kinds[] = {MICA_LM_KV_F32, MICA_LM_KV_Q8};
        for (size_t i = 0; i < COUNT(kinds) && !lazy; i++) { /* compiled with the first session that has such a cache */
            test_case("cache %d", (int)kinds[i]);
            const float *logits;
            mica_lm_session *session[2] = {NULL};
            mica_lm_session_options o;
            mica_lm_session_options_init(&o);
            o.context = 32;
            o.kv = kinds[i];
            CHECK_INT(mica_lm_session_open(lm, &o, &session[0]), MICA_OK);
            const uint64_t ready = stats_of(e).gpu_compiles;
            EXPECT(ready > opened);
            CHECK_INT(mica_lm_session_open(lm, &o, &session[1]), MICA_OK);
            EXPECT_INT(mica_lm_feed(session[0], tokens, 14, &logits), MICA_OK);
            EXPECT_INT(mica_lm_feed(session[1], tokens, 1, &logits), MICA_OK);
            EXPECT_INT(stats_of(e).gpu_compiles, ready);
            mica_lm_session_close(session[0]);
            mica_lm_session_close(session[1]);
        }
        mica_lm_close(lm);
        mica_close(e);
    }
}

TEST(logits_with_small_threadgroups)
{
    static const char *const most[] = {"32", "64", "96", "448"};
    SKIP_WITHOUT_METAL();
    for (size_t i = 0; i < COUNT(most); i++) {
        test_case("%s threads", most[i]);
        mica__pipeline_trim();
        setenv("SM_MAXTHREADS", most[i], 1);
        compare_logits();
    }
    unsetenv("SM_MAXTHREADS");
    mica__pipeline_trim();
}

/* The loss of a small network and its gradients, in one evaluation. */
static bool loss_on(const char *backend, float *loss, float *gradient, size_t n_gradient)
{
    mica_engine *e = open_on(backend);
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_reshape(s, mica_sin(s, mica_arange(s, MICA_F32, 0, 6 * 10, 1)), 2, (int64_t[]){6, 10});
    mica_array *w[2], *grad[2];
    w[0] = mica_reshape(s, mica_cos(s, mica_arange(s, MICA_F32, 0, 10 * 12, 1)), 2, (int64_t[]){10, 12});
    w[1] = mica_reshape(s, mica_cos(s, mica_arange(s, MICA_F32, 7, 7 + 12 * 5, 1)), 2, (int64_t[]){12, 5});
    mica_array *labels = mica_mod(s, mica_arange(s, MICA_I32, 0, 6, 1), mica_scalar(s, 5));
    mica_array *y = mica_matmul(s, mica_gelu(s, mica_matmul(s, x, w[0])), w[1]);
    mica_array *mean = mica_mean(s, mica_cross_entropy(s, y, labels), NULL, 0, false);
    bool good = EXPECT_MSG(mica_grad(s, mean, w, 2, grad) == MICA_OK, "%s", mica_last_error());
    mica_array *out[] = {mean, grad[0]};
    good = good && EXPECT_MSG(mica_eval(s, out, 2) == MICA_OK, "%s", mica_last_error());
    if (good) {
        *loss = mica_data_f32(mean)[0];
        good = EXPECT_INT(mica_copy_out(grad[0], gradient, n_gradient * sizeof *gradient), MICA_OK);
    }
    mica_scope_end(s);
    mica_close(e);
    return good;
}

TEST(gradients_of_a_network)
{
    SKIP_WITHOUT_METAL();
    float want_loss, got_loss, want[120], got[120];
    CHECK(loss_on("ref", &want_loss, want, 120) && loss_on("metal", &got_loss, got, 120));
    EXPECT_CLOSE(got_loss, want_loss, 1e-5, 0);
    for (int i = 0; i < 120; i++) EXPECT_CLOSE(got[i], want[i], 1e-4, 1e-6);
}

/* --------------------------------------------------------------- a scan ---- */

enum { LTC_UNITS = 12, LTC_BATCH = 3, LTC_TIME = 5, LTC_INPUTS = 4, LTC_MOST = 2048 };

/* Outputs of a sequence, then the gradients of the mean of their squares. Returns how many numbers;
 * 0: it failed. */
static size_t ltc_on(const char *backend, const char *wiring, float *out)
{
    mica_engine *e = open_on(backend);
    mica_scope *s = mica_scope_begin(e);
    mica_wiring *w = NULL;
    mica_params *p = NULL;
    mica_liquid net;
    mica_liquid_result r = {.struct_size = sizeof r};
    mica_liquid_init(&net, MICA_LIQUID_LTC);
    net.inputs = LTC_INPUTS, net.units = LTC_UNITS;
    bool good = (!wiring || EXPECT_INT(mica_wiring_parse(wiring, LTC_INPUTS, &w), MICA_OK)) &&
                EXPECT_INT(mica_params_new(&p), MICA_OK);
    net.wiring = w;
    good = good && EXPECT_MSG(mica_liquid_params(s, &net, MICA_F32, 5, p) == MICA_OK, "%s", mica_last_error());
    mica_array *x = mica_reshape(s, mica_sin(s, mica_arange(s, MICA_F32, 0, LTC_BATCH * LTC_TIME * LTC_INPUTS, 1)), 3,
                                 (int64_t[]){LTC_BATCH, LTC_TIME, LTC_INPUTS});
    good = good && EXPECT_MSG(mica_liquid_forward(s, &net, p,
                                                  &(mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x},
                                                  &r) == MICA_OK,
                              "%s", mica_last_error());
    mica_array *value[32], *all[32];
    uint32_t n = 0;
    for (size_t i = 0; good && i < mica_params_count(p) && n < 31; i++)
        if (mica_params_is_trained(p, i)) value[n++] = mica_params_at(p, i);
    mica_array *loss = good ? mica_mean(s, mica_square(s, r.y), NULL, 0, false) : NULL;
    good = good && EXPECT_MSG(mica_grad(s, loss, value, n, all + 1) == MICA_OK, "%s", mica_last_error());
    all[0] = r.y;
    const uint64_t before = stats_of(e).gpu_cpu_steps;
    good = good && EXPECT_MSG(mica_eval(s, all, n + 1) == MICA_OK, "%s", mica_last_error());
    EXPECT_INT(stats_of(e).gpu_cpu_steps - before, 0);
    size_t count = 0;
    for (uint32_t i = 0; good && i <= n; i++) {
        const size_t each = (size_t)mica_array_size(all[i]);
        good = EXPECT(count + each <= LTC_MOST) &&
               EXPECT_INT(mica_copy_out(all[i], out + count, each * sizeof *out), MICA_OK);
        count += each;
    }
    mica_params_free(p);
    mica_wiring_free(w);
    mica_scope_end(s);
    mica_close(e);
    return good ? count : 0;
}

/* Every step of a liquid network's sequence and of its gradients runs on the GPU. */
TEST(a_liquid_network_and_its_gradients)
{
    SKIP_WITHOUT_METAL();
    static float want[LTC_MOST], got[LTC_MOST];
    static const char *const wirings[] = {NULL, "autoncp:12,3"};
    for (size_t i = 0; i < COUNT(wirings); i++) {
        test_case("%s", wirings[i] ? wirings[i] : "no wiring");
        const size_t n = ltc_on("ref", wirings[i], want);
        if (!EXPECT(n > 0) || !EXPECT_INT(ltc_on("metal", wirings[i], got), n)) continue;
        for (size_t k = 0; k < n; k++)
            if (!EXPECT_CLOSE(got[k], want[k], 2e-4, 1e-6)) break;
    }
}
