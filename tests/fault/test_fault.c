/* The n-th allocation fails, for n = 1, 2, 3 and so on, in programs that call every function of
 * mica.h. A status is returned or the program succeeds, nothing leaks, lent memory is returned
 * exactly once, and the engine stays usable.
 *
 * runs: metal-unsanitized */
#include "base/alloc.h"
#include "programs.h"

/* The engine works after a fault. */
static bool works_on(mica_engine *e)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_from_data(s, MICA_F32, SHAPE(2, 2), (float[]){1, 2, 3, 4}), *grad = NULL;
    mica_array *loss = mica_sum(s, mica_exp(s, mica_matmul(s, x, x)), NULL, 0, false);
    double value = 0;
    const bool ok = mica_grad(s, loss, &x, 1, &grad) == MICA_OK && mica_eval(s, ARRAYS(loss, grad)) == MICA_OK &&
                    mica_item(loss, &value) == MICA_OK && value > 1e9;
    mica_scope_end(s);
    return ok;
}

typedef struct outcome {
    mica_status status;
    double digest;
    uint64_t allocations;
} outcome;

/* One run from opening to closing in which allocation n fails; 0: none fails. */
static outcome run_with_fault(const char *backend, mica_status (*program)(task *t), uint64_t n)
{
    outcome out = {MICA_ERR_INTERNAL, 0, 0};
    const int64_t live = live_blocks();
    const uint64_t before = mica__alloc_count();
    mica_engine_options o;
    mica_engine_options_init(&o);
    o.backend = device_for(backend);
    o.threads = 1;
    o.plan_cache_limit = 2;
    o.cache_limit = 4096;
    task t = {0};
    mica__alloc_fail_at(n);
    out.status = mica_open(&o, &t.e);
    if (out.status == MICA_OK) {
        t.s = mica_scope_begin(t.e);
        EXPECT(t.s || strstr(mica_last_error(), "memory"));
        out.status = program(&t); /* also without a scope, which is an invalid argument */
        if (!t.s) out.status = MICA_ERR_MEMORY;
        else if (out.status != MICA_OK)
            EXPECT_MSG(strstr(mica_last_error(), "memory") || strstr(mica_scope_error(t.s), "memory"),
                       "allocation %d: the error message is \"%s\"", (int)n, mica_last_error());
        mica_scope_end(t.s);
    }
    mica__alloc_fail_at(0);
    out.allocations = mica__alloc_count() - before;
    if (t.e) EXPECT_MSG(works_on(t.e), "after allocation %d failed: %s", (int)n, mica_last_error());
    mica_close(t.e);
    EXPECT_MSG(live_blocks() == live, "allocation %d failed: %d blocks leaked", (int)n, (int)(live_blocks() - live));
    EXPECT_MSG(t.wraps == t.releases, "allocation %d failed: %d lent, %d given back", (int)n, t.wraps, t.releases);
    out.digest = t.digest;
    return out;
}

static void run_all_faults(const char *backend, size_t i)
{
    const outcome clean = run_with_fault(backend, programs[i].run, 0);
    CHECK_MSG(clean.status == MICA_OK, "undisturbed: status %d", (int)clean.status);
    /* The number of allocations varies slightly with the speed of the stream's thread. */
    const outcome again = run_with_fault(backend, programs[i].run, 0);
    const uint64_t last = again.allocations > clean.allocations ? again.allocations : clean.allocations;
    uint64_t survived = 0;
    for (uint64_t n = 1; n <= last; n++) {
        const outcome got = run_with_fault(backend, programs[i].run, n);
        if (got.status == MICA_OK) {
            survived++;
            EXPECT_MSG(got.digest == clean.digest, "allocation %d failed unnoticed, and the results differ", (int)n);
        } else {
            EXPECT_MSG(got.status == MICA_ERR_MEMORY, "allocation %d: status %d", (int)n, (int)got.status);
        }
    }
    /* a run may succeed without a cache, but not without most of its memory */
    EXPECT_MSG(survived * 4 <= last, "%d of %d failures went unnoticed", (int)survived, (int)last);
}

TEST(each_allocation_fails_once)
{
    for (size_t b = 0; b < COUNT(backends); b++)
        for (size_t i = 0; i < COUNT(programs); i++) {
            test_case("%s: %s", backends[b], programs[i].name);
            run_all_faults(backends[b], i);
        }
}

/* With memory it would run for seconds, so only the failure is tested. */
TEST(measuring_without_memory)
{
    mica_engine *e = open_engine("cpu");
    mica_peaks peaks = {.struct_size = sizeof peaks};
    mica__alloc_fail_at(1);
    const mica_status status = mica_measure_peaks(e, &peaks);
    mica__alloc_fail_at(0);
    EXPECT_FAILS(status, MICA_ERR_MEMORY, "memory");
    EXPECT(works_on(e));
    mica_close(e);
}

static void named_in_programs(const char *name, void *user)
{
    const bool by_table = strncmp(name, "mica_", 5) == 0 && op_facts_named(name + 5);
    EXPECT_MSG(by_table || has_word(user, name), "%s is in no program", name);
}

TEST(every_function_is_in_a_program)
{
    static const char *const files[] = {"tests/fault/programs.h", "tests/fault/programs_file.h",
                                        "tests/fault/test_fault.c"};
    char *all = files_text(files, COUNT(files));
    if (!all) SKIP("not run from the root of the project");
    EXPECT(each_public_function("include/mica.h", named_in_programs, all) > 200);
    free(all);
}
