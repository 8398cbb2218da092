/* Sampling tokens: which tokens can be chosen, how often, and that the seed determines the choice.
 *
 * runs: arm, check */
#include "lm_tiny.h"

static mica_lm_sampler_options plain(void)
{
    mica_lm_sampler_options o;
    mica_lm_sampler_options_init(&o);
    o.temperature = 1;
    o.top_k = 0;
    o.top_p = 1;
    o.min_p = 0;
    o.repeat_penalty = 1;
    return o;
}

/* Counts how often each of n tokens is drawn. */
static void count_draws(const mica_lm_sampler_options *o, const float *logits, int n, int draws, int *counts)
{
    mica_lm_sampler *p = NULL;
    memset(counts, 0, (size_t)n * sizeof *counts);
    if (!EXPECT_OK(mica_lm_sampler_open(o, &p))) return;
    for (int i = 0; i < draws; i++) {
        int32_t token = -1;
        if (!EXPECT_OK(mica_lm_sample(p, logits, n, &token)) || !EXPECT(token >= 0 && token < n)) break;
        counts[token]++;
    }
    mica_lm_sampler_close(p);
}

enum { N = 6, DRAWS = 20000 };
/* probabilities 0.4, 0.3, 0.15, 0.1, 0.04, 0.01, not in order */
static const double probability[N] = {0.1, 0.4, 0.01, 0.3, 0.04, 0.15};

static void logits_of(float *logits)
{
    for (int i = 0; i < N; i++) logits[i] = (float)log(probability[i]) + 3;
}

/* Within five standard deviations. */
static void expect_shares(const int *counts, const double *want)
{
    for (int i = 0; i < N; i++) {
        const double mean = (double)DRAWS * want[i], spread = 5 * sqrt(mean * (1 - want[i])) + 1e-9;
        EXPECT_MSG(fabs(counts[i] - mean) <= spread, "token %d came %d times, not about %g", i, counts[i], mean);
    }
}

/* The expected frequencies if only these tokens are kept. */
static void expect_only(const int *counts, const bool *kept, double temperature)
{
    double want[N], sum = 0;
    for (int i = 0; i < N; i++) sum += want[i] = kept[i] ? pow(probability[i], 1 / temperature) : 0;
    for (int i = 0; i < N; i++) want[i] /= sum;
    expect_shares(counts, want);
}

TEST(shares_are_the_probabilities)
{
    float logits[N];
    int counts[N];
    logits_of(logits);
    mica_lm_sampler_options o = plain();
    test_case("all");
    count_draws(&o, logits, N, DRAWS, counts);
    expect_only(counts, (bool[N]){1, 1, 1, 1, 1, 1}, 1);
    test_case("temperature 2");
    o.temperature = 2;
    count_draws(&o, logits, N, DRAWS, counts);
    expect_only(counts, (bool[N]){1, 1, 1, 1, 1, 1}, 2);
    test_case("top-k 3");
    o.top_k = 3;
    count_draws(&o, logits, N, DRAWS, counts);
    expect_only(counts, (bool[N]){0, 1, 0, 1, 0, 1}, 2);
    test_case("top-k of more than there are");
    o.top_k = 1000;
    count_draws(&o, logits, N, DRAWS, counts);
    expect_only(counts, (bool[N]){1, 1, 1, 1, 1, 1}, 2);
    test_case("top-p 0.8: three tokens have 0.85");
    o.top_k = 0;
    o.top_p = 0.8;
    count_draws(&o, logits, N, DRAWS, counts);
    expect_only(counts, (bool[N]){0, 1, 0, 1, 0, 1}, 2);
    test_case("top-p of what top-k left: 0.4 of 0.7 is not 0.6, so two");
    o.top_k = 2;
    o.top_p = 0.6;
    count_draws(&o, logits, N, DRAWS, counts);
    expect_only(counts, (bool[N]){0, 1, 0, 1, 0, 0}, 2);
    test_case("min-p 0.2 of 0.4");
    o = plain();
    o.min_p = 0.2;
    count_draws(&o, logits, N, DRAWS, counts);
    expect_only(counts, (bool[N]){1, 1, 0, 1, 0, 1}, 1);
    test_case("temperature 0");
    o.temperature = 0;
    count_draws(&o, logits, N, 100, counts);
    EXPECT_INT(counts[1], 100);
}

TEST(a_seed_decides)
{
    float logits[N];
    logits_of(logits);
    mica_lm_sampler_options o = plain();
    o.seed = 42;
    mica_lm_sampler *a, *b, *c;
    CHECK_OK(mica_lm_sampler_open(&o, &a));
    CHECK_OK(mica_lm_sampler_open(&o, &b));
    o.seed = 43;
    CHECK_OK(mica_lm_sampler_open(&o, &c));
    int different = 0;
    for (int i = 0; i < 100; i++) {
        int32_t x, y, z;
        CHECK_OK(mica_lm_sample(a, logits, N, &x));
        CHECK_OK(mica_lm_sample(b, logits, N, &y));
        CHECK_OK(mica_lm_sample(c, logits, N, &z));
        EXPECT_INT(x, y);
        different += x != z;
    }
    EXPECT(different > 20);
    /* as documented in the header: the first token, best first, whose cumulative probability exceeds u */
    const double u = (double)(mica_seed_split(42, 100) >> 11) * 0x1p-53;
    static const int order[N] = {1, 3, 5, 0, 4, 2};
    double sum = 0;
    int want = -1;
    for (int i = 0; i < N && want < 0; i++)
        if (u < (sum += probability[order[i]])) want = order[i];
    int32_t token;
    CHECK_OK(mica_lm_sample(a, logits, N, &token));
    EXPECT_INT(token, want);
    mica_lm_sampler_close(a);
    mica_lm_sampler_close(b);
    mica_lm_sampler_close(c);
}

TEST(what_was_said_is_less_likely)
{
    mica_lm_sampler_options o = plain();
    o.temperature = 0;
    o.repeat_penalty = 2;
    o.repeat_last = 2;
    const float logits[3] = {4, 3, 2.5f};
    mica_lm_sampler *p;
    int32_t token;
    CHECK_OK(mica_lm_sampler_open(&o, &p));
    static const int32_t want[] = {0, 1, 2, 0, 1, 2}; /* the penalty covers only the last two tokens */
    for (size_t i = 0; i < COUNT(want); i++) {
        CHECK_OK(mica_lm_sample(p, logits, 3, &token));
        EXPECT_INT(token, want[i]);
    }
    mica_lm_sampler_accept(p, 0);
    mica_lm_sampler_accept(p, 0);
    const float negative[3] = {-1, -1.5f, -4}; /* the penalty multiplies negative logits */
    CHECK_OK(mica_lm_sample(p, negative, 3, &token));
    EXPECT_INT(token, 1);
    mica_lm_sampler_close(p);
}

/* Compares the selection by heaps of growing size with sorting all tokens. */
TEST(large_vocabularies)
{
    enum { V = 5000 };
    static float logits[V];
    static int counts[V];
    for (int i = 0; i < V; i++) logits[i] = (float)(i * 7919 % V) / (float)V; /* nearly flat: many stay */
    logits[77] = logits[78] = 1.5f;
    static const double tops[] = {0.01, 0.5, 0.999};
    for (size_t t = 0; t < COUNT(tops); t++) {
        test_case("top-p %g", tops[t]);
        mica_lm_sampler_options o = plain();
        o.top_p = tops[t];
        count_draws(&o, logits, V, 300, counts);
        /* the smallest set of best tokens that reaches top_p, by a full sum; all values differ */
        double total = 0, sum = 0;
        for (int i = 0; i < V; i++) total += exp((double)logits[i]);
        float least = INFINITY;
        while (sum < tops[t] * total) {
            float next = -1;
            for (int i = 0; i < V; i++)
                if (logits[i] < least && logits[i] > next) next = logits[i];
            for (int i = 0; i < V && sum < tops[t] * total; i++)
                if (logits[i] == next) sum += exp((double)next);
            least = next;
        }
        for (int i = 0; i < V; i++)
            if (counts[i] && !(logits[i] >= least)) {
                EXPECT_MSG(false, "token %d with logit %g, below %g", i, (double)logits[i], (double)least);
                break;
            }
    }
    test_case("of equals the first");
    mica_lm_sampler_options o = plain();
    o.top_k = 1;
    count_draws(&o, logits, V, 10, counts);
    EXPECT_INT(counts[77], 10);
}

TEST(refused)
{
    mica_lm_sampler *p = NULL;
    mica_lm_sampler_options o;
    static const struct {
        size_t at;
        double value;
        const char *part;
    } bad[] = {{offsetof(mica_lm_sampler_options, temperature), -1, "temperature -1"},
               {offsetof(mica_lm_sampler_options, temperature), NAN, "temperature"},
               {offsetof(mica_lm_sampler_options, top_p), 0, "top_p 0"},
               {offsetof(mica_lm_sampler_options, top_p), 1.5, "top_p 1.5"},
               {offsetof(mica_lm_sampler_options, min_p), -0.1, "min_p"},
               {offsetof(mica_lm_sampler_options, repeat_penalty), 0, "repeat_penalty 0"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        test_case("%s", bad[i].part);
        mica_lm_sampler_options_init(&o);
        memcpy((char *)&o + bad[i].at, &bad[i].value, sizeof(double));
        EXPECT_INT(mica_lm_sampler_open(&o, &p), MICA_ERR_ARGUMENT);
        EXPECT_MSG(strstr(mica_last_error(), bad[i].part), "%s", mica_last_error());
    }
    test_case("calls");
    mica_lm_sampler_options_init(&o);
    o.top_k = -1;
    EXPECT_INT(mica_lm_sampler_open(&o, &p), MICA_ERR_ARGUMENT);
    mica_lm_sampler_options_init(&o);
    o.repeat_last = -1;
    EXPECT_INT(mica_lm_sampler_open(&o, &p), MICA_ERR_ARGUMENT);
    o.struct_size = 3;
    EXPECT_INT(mica_lm_sampler_open(&o, &p), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_sampler_open(NULL, NULL), MICA_ERR_ARGUMENT);
    CHECK_OK(mica_lm_sampler_open(NULL, &p));
    int32_t token;
    const float good[2] = {1, 2}, nan[2] = {1, NAN}, none[2] = {-INFINITY, -INFINITY}, huge[2] = {1, INFINITY};
    EXPECT_INT(mica_lm_sample(p, good, 0, &token), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_sample(NULL, good, 2, &token), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_sample(p, NULL, 2, &token), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_sample(p, good, 2, NULL), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_sample(p, nan, 2, &token), MICA_ERR_STATE);
    EXPECT_INT(mica_lm_sample(p, none, 2, &token), MICA_ERR_STATE);
    EXPECT_INT(mica_lm_sample(p, huge, 2, &token), MICA_ERR_STATE);
    EXPECT_OK(mica_lm_sample(p, good, 2, &token));
    mica_lm_sampler_accept(p, -5); /* an invalid token is ignored */
    EXPECT_OK(mica_lm_sample(p, good, 2, &token));
    mica_lm_sampler_accept(NULL, 1);
    mica_lm_sampler_close(p);
    mica_lm_sampler_close(NULL);
}
