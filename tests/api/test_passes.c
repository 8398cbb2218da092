/* Inspection: each pass can be switched by option and by environment, every kind of dump prints
 * text, and nothing is printed unless requested.
 *
 * runs: check */
#include "api.h"

/* A graph with work for each pass: a constant to fold, algebra, views to merge,
 * an equal expression, a chain to fuse. */
static mica_array *graph_for_all(mica_scope *s)
{
    mica_array *x = count_up_2d(s, 8, 8);
    mica_array *constant = mica_mul(s, mica_full(s, MICA_F32, SHAPE(8), 3), mica_full(s, MICA_F32, SHAPE(8), 2));
    mica_array *y = mica_add(s, mica_mul(s, x, mica_scalar(s, 1)), constant);
    mica_array *t = mica_transpose(s, mica_exp(s, mica_transpose(s, mica_neg(s, mica_neg(s, y)))));
    mica_array *twice = mica_add(s, mica_sin(s, t), mica_sin(s, t));
    return mica_sum(s, mica_matmul(s, twice, twice), NULL, 0, false);
}

static uint64_t kernels_with(uint32_t passes, double *value)
{
    mica_engine_options o = options_for("cpu", 1);
    o.passes = passes;
    mica_engine *e = open_with(&o);
    mica_scope *s = mica_scope_begin(e);
    mica_array *y = graph_for_all(s);
    EXPECT_OK(mica_eval(s, &y, 1));
    *value = item_of(y);
    const uint64_t n = stats_of(e).kernels;
    mica_scope_end(s);
    mica_close(e);
    return n;
}

TEST(each_pass_can_be_left_out)
{
    double want, value;
    const uint64_t all = kernels_with(MICA_PASS_ALL, &want), none = kernels_with(0, &value);
    EXPECT_CLOSE(value, want, 1e-5, 1e-5);
    EXPECT_MSG(all < none, "%d kernels with all passes, %d with none", (int)all, (int)none);
    for (int bit = 0; bit < 8; bit++) {
        test_case("without pass %d", bit);
        const uint64_t n = kernels_with(MICA_PASS_ALL & ~(1u << bit), &value);
        EXPECT_CLOSE(value, want, 1e-5, 1e-5);
        EXPECT(n >= all);
        test_case("pass %d alone", bit);
        kernels_with(1u << bit, &value);
        EXPECT_CLOSE(value, want, 1e-5, 1e-5);
    }
    test_case("fusion");
    EXPECT(kernels_with(MICA_PASS_ALL & ~(uint32_t)MICA_PASS_FUSE, &value) > all);
    test_case("common sub-expressions");
    EXPECT(kernels_with(MICA_PASS_CSE, &value) < none);
    test_case("algebra");
    EXPECT(kernels_with(MICA_PASS_ALGEBRA, &value) < none);
    test_case("folding");
    EXPECT(kernels_with(MICA_PASS_FOLD, &value) < none);
}

TEST(the_environment_wins_over_the_options)
{
    static const struct {
        const char *list;
        uint32_t passes;
    } cases[] = {
        {"all", MICA_PASS_ALL},
        {"none", 0},
        {"fuse", MICA_PASS_FUSE},
        {"fold,algebra,movement,cse", MICA_PASS_FOLD | MICA_PASS_ALGEBRA | MICA_PASS_MOVEMENT | MICA_PASS_CSE},
        {"fuse,order,inplace", MICA_PASS_FUSE | MICA_PASS_ORDER | MICA_PASS_INPLACE},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("MICA_PASSES=%s", cases[i].list);
        double value, want;
        unsetenv("MICA_PASSES");
        const uint64_t by_option = kernels_with(cases[i].passes, &want);
        setenv("MICA_PASSES", cases[i].list, 1);
        const uint64_t by_environment = kernels_with(~cases[i].passes & MICA_PASS_ALL, &value);
        unsetenv("MICA_PASSES");
        EXPECT_INT(by_environment, by_option);
        EXPECT_CLOSE(value, want, 1e-5, 1e-5);
    }
}

TEST(backend_and_threads_from_the_environment)
{
    mica_engine *e;
    setenv("MICA_DEVICE", "ref", 1);
    setenv("MICA_THREADS", "3", 1);
    CHECK_OK(mica_open(NULL, &e));
    EXPECT_STR(mica_engine_backend(e), "ref");
    EXPECT_INT(mica_engine_threads(e), 3);
    mica_close(e);
    const mica_engine_options o = options_for("cpu", 2); /* options override the environment */
    CHECK_OK(mica_open(&o, &e));
    EXPECT_STR(mica_engine_backend(e), "cpu");
    EXPECT_INT(mica_engine_threads(e), 2);
    mica_close(e);
    setenv("MICA_THREADS", "many", 1);
    EXPECT_FAILS(mica_open(NULL, &e), MICA_ERR_ARGUMENT, "MICA_THREADS is \"many\"");
    setenv("MICA_THREADS", "2x", 1);
    EXPECT_FAILS(mica_open(NULL, &e), MICA_ERR_ARGUMENT, "MICA_THREADS");
    unsetenv("MICA_THREADS");
    setenv("MICA_DEVICE", "abacus", 1);
    EXPECT_FAILS(mica_open(NULL, &e), MICA_ERR_ARGUMENT, "abacus");
    unsetenv("MICA_DEVICE");
}

/* ----------------------------------------------------------------- dumps ---- */

static const struct {
    mica_dump what;
    const char *word, *part;
} dumps[] = {
    {MICA_DUMP_GRAPH, "graph", "permute"},    {MICA_DUMP_SIMPLE, "simple", "matmul"},
    {MICA_DUMP_PLAN, "plan", "planned peak"}, {MICA_DUMP_KERNELS, "kernels", "exp"},
    {MICA_DUMP_MSL, "msl", "kernel void"},
};

TEST(every_dump_has_text)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *y = graph_for_all(s);
    for (size_t i = 0; i < COUNT(dumps); i++) {
        test_case("%s", dumps[i].word);
        size_t length = 0, again = 0;
        CHECK_OK(mica_plan_text(s, &y, 1, dumps[i].what, NULL, 0, &length));
        CHECK_MSG(length > 20, "%zu characters", length);
        char *text = malloc(length + 1);
        CHECK_OK(mica_plan_text(s, &y, 1, dumps[i].what, text, length + 1, &again));
        EXPECT_INT(again, length);
        EXPECT_INT(strlen(text), length);
        EXPECT_MSG(strstr(text, dumps[i].part), "without \"%s\":\n%s", dumps[i].part, text);
        /* truncated, but NUL-terminated */
        memset(text, 'x', length + 1);
        CHECK_OK(mica_plan_text(s, &y, 1, dumps[i].what, text, 10, NULL));
        EXPECT_INT(strlen(text), 9);
        free(text);
    }
    EXPECT(!mica_array_is_ready(y));
    EXPECT_INT(stats_of(e).kernels, 0);
    mica_scope_end(s);
    mica_close(e);
}

static void run_once(void)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *y = graph_for_all(s), *z = graph_for_all(s);
    EXPECT_OK(mica_eval(s, &y, 1));
    EXPECT_OK(mica_eval(s, &z, 1)); /* a cached plan is not printed again */
    mica_scope_end(s);
    mica_close(e);
}

TEST(dumps_by_environment)
{
    unsetenv("MICA_DUMP");
    silence q = listen_begin();
    run_once();
    char *printed = listen_end(q);
    EXPECT_STR(printed, "");
    free(printed);
    for (size_t i = 0; i < COUNT(dumps); i++) {
        test_case("MICA_DUMP=%s", dumps[i].word);
        setenv("MICA_DUMP", dumps[i].word, 1);
        q = listen_begin();
        run_once();
        printed = listen_end(q);
        char title[32];
        snprintf(title, sizeof title, "-- %s\n", dumps[i].word);
        const char *at = strstr(printed, title);
        EXPECT_MSG(at, "no \"%s\" in:\n%s", title, printed);
        EXPECT_MSG(at && !strstr(at + 1, "-- "), "more than one dump:\n%s", printed);
        free(printed);
    }
    test_case("several");
    setenv("MICA_DUMP", "graph,plan,kernels", 1);
    q = listen_begin();
    run_once();
    printed = listen_end(q);
    EXPECT(strstr(printed, "-- graph") && strstr(printed, "-- plan") && strstr(printed, "-- kernels"));
    EXPECT(!strstr(printed, "-- msl"));
    free(printed);
    unsetenv("MICA_DUMP");
}

TEST(dumps_go_to_stderr)
{
    setenv("MICA_DUMP", "plan", 1);
    fflush(NULL);
    FILE *file = tmpfile();
    CHECK(file != NULL);
    const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    FILE *elsewhere = tmpfile();
    dup2(fileno(elsewhere), STDERR_FILENO);
    run_once();
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    unsetenv("MICA_DUMP");
    fseek(file, 0, SEEK_END);
    fseek(elsewhere, 0, SEEK_END);
    EXPECT_INT(ftell(file), 0);
    EXPECT(ftell(elsewhere) > 0);
    fclose(file);
    fclose(elsewhere);
}
