/* Runs the tests that TEST() registered before main() started. Owns the counting: what counts as a
 * result, when a case ends, and the summary line. Prints to stdout only, line by line, so that a
 * crash loses no earlier output. */
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static test_entry *first_test;
static test_entry **last_link = &first_test;

static struct {
    const test_entry *test;
    char name[256];       /* "test" or "test: case", for messages       */
    bool in_case;         /* test_case was called in this test          */
    bool failed, skipped; /* result of the current case                 */
    bool verbose;
    int n_passed, n_failed, n_skipped;
    pthread_mutex_t lock; /* failures may be reported from any thread   */
} run = {.lock = PTHREAD_MUTEX_INITIALIZER};

void test_register(test_entry *entry)
{
    *last_link = entry;
    last_link = &entry->next;
}

/* ------------------------------------------------------------- results ---- */

static void end_case(void)
{
    if (run.failed) run.n_failed++;
    else if (run.skipped) run.n_skipped++;
    else run.n_passed++;
    if (run.verbose && !run.skipped) printf("%s %s\n", run.failed ? "FAIL" : "ok  ", run.name);
    run.failed = run.skipped = false;
}

void test_case(const char *format, ...)
{
    /* Checks before the first case are preparation: they count only if they failed. */
    if (run.in_case || run.failed || run.skipped) end_case();
    run.in_case = true;
    const int prefix = snprintf(run.name, sizeof run.name, "%s: ", run.test->name);
    if (prefix < 0 || (size_t)prefix >= sizeof run.name) return;
    va_list args;
    va_start(args, format);
    vsnprintf(run.name + prefix, sizeof run.name - (size_t)prefix, format, args);
    va_end(args);
}

void test_skip(const char *format, ...)
{
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    run.skipped = true;
    printf("SKIP %s: %s\n", run.name, reason);
}

bool test_fail(const char *file, int line, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&run.lock);
    run.failed = true;
    printf("%s:%d: %s: %s\n", file, line, run.name, text);
    pthread_mutex_unlock(&run.lock);
    return false;
}

/* ---------------------------------------------------------- predicates ---- */

bool test_close(double got, double want, double rtol, double atol)
{
    if (got == want) return true;
    /* Written as "within", so that NaN fails; only finite values, because
     * inf <= inf is true. */
    return isfinite(got) && isfinite(want) && fabs(got - want) <= atol + rtol * fabs(want);
}

bool test_arrays_close_nan_f64(const double *got, const double *want, size_t n, double rtol, double atol,
                               bool nan_matches, size_t *where)
{
    for (size_t i = 0; i < n; i++) {
        if (test_close(got[i], want[i], rtol, atol)) continue;
        if (nan_matches && isnan(got[i]) && isnan(want[i])) continue;
        if (where) *where = i;
        return false;
    }
    return true;
}

bool test_arrays_close_f64(const double *got, const double *want, size_t n, double rtol, double atol, size_t *where)
{
    return test_arrays_close_nan_f64(got, want, n, rtol, atol, false, where);
}

bool test_expect_int(const char *file, int line, const char *what, long long got, long long want)
{
    return got == want || test_fail(file, line, "%s is %lld, not %lld", what, got, want);
}

bool test_expect_str(const char *file, int line, const char *what, const char *got, const char *want)
{
    if (got == want || (got && want && strcmp(got, want) == 0)) return true;
    return test_fail(file, line, "%s is \"%s\", not \"%s\"", what, got ? got : "(NULL)", want ? want : "(NULL)");
}

bool test_expect_close(const char *file, int line, const char *what, double got, double want, double rtol, double atol,
                       bool nan_matches)
{
    return test_arrays_close_nan_f64(&got, &want, 1, rtol, atol, nan_matches, NULL) ||
           test_fail(file, line, "%s is %.17g, not %.17g (off by %.3g; rtol %g, atol %g)", what, got, want,
                     fabs(got - want), rtol, atol);
}

/* ------------------------------------------------------------- running ---- */

/* Prints where a crash happened. The previous action is restored first, so that the signal
 * then has its usual effect: it ends the program, or ASan reports it. */
static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM};
enum { N_FATAL_SIGNALS = sizeof fatal_signals / sizeof fatal_signals[0] };
static struct sigaction old_actions[N_FATAL_SIGNALS];

static void on_fatal_signal(int signal_number)
{
    for (int i = 0; i < N_FATAL_SIGNALS; i++) sigaction(fatal_signals[i], &old_actions[i], NULL);
    static const char note[] = "stopped by a signal in ";
    ssize_t written = write(STDOUT_FILENO, note, sizeof note - 1);
    written = write(STDOUT_FILENO, run.name, strlen(run.name));
    written = write(STDOUT_FILENO, "\n", 1);
    (void)written;
    /* A fault is repeated when this returns; a signal that was sent is not. */
    if (signal_number == SIGABRT || signal_number == SIGTERM) raise(signal_number);
}

static void catch_fatal_signals(void)
{
    struct sigaction action = {.sa_handler = on_fatal_signal};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N_FATAL_SIGNALS; i++) sigaction(fatal_signals[i], &action, &old_actions[i]);
}

static void run_test(const test_entry *test)
{
    run.test = test;
    run.in_case = false;
    snprintf(run.name, sizeof run.name, "%s", test->name);
    test->body();
    end_case();
}

int test_main(int argc, char **argv)
{
    const char *filter = "";
    bool list = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-l") == 0) list = true;
        else if (strcmp(argv[i], "-v") == 0) run.verbose = true;
        else filter = argv[i];
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    catch_fatal_signals();

    int n_run = 0;
    for (const test_entry *test = first_test; test; test = test->next) {
        if (!strstr(test->name, filter)) continue;
        n_run++;
        if (list) puts(test->name);
        else run_test(test);
    }
    if (list) return 0;
    if (n_run == 0) {
        printf("no test has \"%s\" in its name\n", filter);
        run.n_failed++;
    }
    printf("%d passed, %d failed, %d skipped\n", run.n_passed, run.n_failed, run.n_skipped);
    return run.n_failed ? 1 : 0;
}

int main(int argc, char **argv) { return test_main(argc, argv); }
