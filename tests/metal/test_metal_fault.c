/* Device failures that softmetal injects: each returns a status with an error message, nothing
 * leaks, and the engine stays usable. */
#include <stdlib.h>

#include "base/alloc.h"
#include "metal_kit.h"

static mica_array *graph(mica_scope *s, double scale)
{
    mica_array *x = mica_arange(s, MICA_F32, 0, 64, 1);
    x = mica_exp(s, mica_mul(s, x, mica_scalar(s, scale)));
    return mica_add(s, mica_sum(s, x, NULL, 0, false), x);
}

/* Evaluates a graph. Returns the status and, if it is MICA_OK, the first element. */
static mica_status evaluate(mica_engine *e, double scale, float *first)
{
    mica_scope *s = mica_scope_begin(e);
    if (!s) return MICA_ERR_MEMORY;
    mica_array *y = graph(s, scale);
    const mica_status status = mica_eval(s, &y, 1);
    if (status == MICA_OK) *first = mica_data_f32(y)[0];
    mica_scope_end(s);
    return status;
}

static void expect_works(mica_engine *e)
{
    float first = 0;
    CHECK_MSG(evaluate(e, -1, &first) == MICA_OK, "%s", mica_last_error());
    EXPECT_CLOSE(first, 1.0 / (1.0 - 0.36787944117144233) + 1.0, 1e-6, 0);
}

static const struct {
    const char *name, *fault;
    bool planned;               /* reported at planning or at the first run    */
    mica_status status;
    const char *text;
} rows[] = {
    {"a kernel does not compile", "compile=1", true, MICA_ERR_DEVICE, "compiling mica_kernel"},
    {"a pipeline is refused", "pipeline=1", true, MICA_ERR_DEVICE, "pipeline of mica_kernel"},
    {"a buffer is refused", "buffer=1", false, MICA_ERR_MEMORY, "cannot use"},
    {"a command buffer fails", "command=1", false, MICA_ERR_DEVICE, "failed"},
    {"the watchdog", "watchdog=1", false, MICA_ERR_DEVICE, "took too long"},
    {"out of memory while it runs", "command=1:memory", false, MICA_ERR_MEMORY, "out of memory"},
    {"a page fault", "command=1:pagefault", false, MICA_ERR_DEVICE, "failed"},
    {"no fence", "fence=1", true, MICA_ERR_DEVICE, "cannot create a fence"},
    {"no command buffer", "commandbuffer=1", false, MICA_ERR_DEVICE, "cannot create a command buffer"},
};

TEST(a_fault_is_a_status_and_the_engine_works_on)
{
    SKIP_WITHOUT_METAL();
    if (!inject(NULL)) SKIP("not softmetal");
    for (size_t i = 0; i < COUNT(rows); i++) {
        float first;
        test_case("%s", rows[i].name);
        mica__pipeline_trim();
        mica_engine *e = open_on("metal");
        if (!rows[i].planned) expect_works(e);
        mica_engine_trim(e); /* so that new buffers are created */
        inject(rows[i].fault);
        const mica_status status = evaluate(e, -1, &first);
        inject(NULL);
        EXPECT_INT(status, rows[i].status);
        EXPECT_MSG(strstr(mica_last_error(), rows[i].text), "\"%s\" has no \"%s\"", mica_last_error(), rows[i].text);
        expect_works(e);
        mica_close(e);
    }
}

/* The device is removed: everything after that fails, but a CPU engine still works. */
TEST(a_device_that_disappears)
{
    SKIP_WITHOUT_METAL();
    if (!inject(NULL)) SKIP("not softmetal");
    mica_engine *e = open_on("metal"), *cpu = open_on("cpu");
    float first;
    expect_works(e);
    inject("removed=1");
    EXPECT_INT(evaluate(e, -1, &first), MICA_ERR_DEVICE);
    EXPECT_MSG(strstr(mica_last_error(), "was removed"), "%s", mica_last_error());
    expect_works(cpu);
    EXPECT_INT(evaluate(e, -1, &first), MICA_ERR_DEVICE);
    inject(NULL); /* the device is available again */
    expect_works(e);
    mica_close(e);
    mica_close(cpu);
}

TEST(no_queue)
{
    SKIP_WITHOUT_METAL();
    if (!inject("queue=1")) SKIP("not softmetal");
    mica_engine_options o;
    mica_engine *e = NULL;
    mica_engine_options_init(&o);
    o.backend = "metal";
    EXPECT_INT(mica_open(&o, &e), MICA_ERR_DEVICE);
    EXPECT_MSG(strstr(mica_last_error(), "command queue"), "%s", mica_last_error());
    inject(NULL);
    e = open_on("metal");
    expect_works(e);
    mica_close(e);
}

static mica_status open_captured(const char *path, mica_engine **e)
{
    mica_engine_options o;
    *e = NULL;
    mica_engine_options_init(&o);
    o.backend = "metal";
    setenv("MICA_CAPTURE", path, 1);
    const mica_status status = mica_open(&o, e);
    unsetenv("MICA_CAPTURE");
    return status;
}

/* A capture records what the engine ran, with the names of its steps, and nothing after that. It must be allowed. */
TEST(a_capture)
{
    SKIP_WITHOUT_METAL();
    if (!inject(NULL)) SKIP("not softmetal");
    char folder[] = "/tmp/mica-capture-XXXXXX", path[64], command[160];
    mica_engine *e;
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run.gputrace", folder);
    EXPECT_INT(open_captured(path, &e), MICA_ERR_UNSUPPORTED);
    EXPECT_MSG(strstr(mica_last_error(), "METAL_CAPTURE_ENABLED"), "%s", mica_last_error());
    mica_close(e);
    setenv("METAL_CAPTURE_ENABLED", "1", 1);
    EXPECT_MSG(open_captured(path, &e) == MICA_OK, "%s", mica_last_error());
    expect_works(e);
    mica_close(e);
    EXPECT_INT(open_captured(path, &e), MICA_ERR_UNSUPPORTED); /* the document exists */
    unsetenv("METAL_CAPTURE_ENABLED");
    e = open_on("metal");
    expect_works(e);
    mica_close(e);
    snprintf(command, sizeof command, "test $(grep -c 'encoder .*sum' %s/softmetal.txt) = 1 && rm -r %s", path, folder);
    EXPECT_INT(system(command), 0);
}

/* Compiled kernels on disk: written, found, and compiled again if a file is damaged. */
TEST(archives)
{
    SKIP_WITHOUT_METAL();
    char folder[] = "/tmp/mica-archives-XXXXXX", command[128];
    CHECK(mkdtemp(folder));
    setenv("MICA_CACHE", folder, 1);
    static const char *const broken[] = {[2] = "echo x > $f", [3] = "rm $f && mkdir $f"};
    for (int turn = 0; turn < 4; turn++) {
        test_case("turn %d", turn);
        mica_engine *e = open_on("metal");
        mica__pipeline_trim();
        if (broken[turn]) {
            snprintf(command, sizeof command, "for f in %s/*; do %s; done", folder, broken[turn]);
            EXPECT_INT(system(command), 0);
        }
        const mica_stats before = stats_of(e);
        expect_works(e);
        const mica_stats after = stats_of(e);
        const uint64_t found = after.gpu_archive_hits - before.gpu_archive_hits;
        EXPECT(after.gpu_compiles > before.gpu_compiles);
        if (turn == 1) { /* the first compile time is stored; loading in softmetal may take as long */
            EXPECT(after.gpu_saved_ns >= before.gpu_saved_ns);
            snprintf(command, sizeof command, "test -s \"$(ls %s/*.ns | head -1)\"", folder);
            EXPECT_INT(system(command), 0);
        }
        EXPECT_MSG(turn == 1 ? found == after.gpu_compiles - before.gpu_compiles : found == 0, "%d found", (int)found);
        mica_close(e);
    }
    unsetenv("MICA_CACHE");
    snprintf(command, sizeof command, "test -z \"$(ls %s | grep tmp)\" && rm -r %s", folder, folder);
    EXPECT_INT(system(command), 0);
}

/* Each allocation of the host fails in turn, from opening to closing. */
TEST(each_allocation_fails_once)
{
    SKIP_WITHOUT_METAL();
    mica_engine *first = open_on("metal");
    expect_works(first);
    mica_close(first);
    for (uint64_t n = 0, last = 1; n <= last; n++) { /* n = 0: no failure */
        mica_engine_options o;
        mica_engine *e = NULL;
        float value;
        mica_engine_options_init(&o);
        o.backend = "metal";
        o.threads = 1;
        mica__pipeline_trim();
        const int64_t live = mica__alloc_live();
        const uint64_t before = mica__alloc_count();
        mica__alloc_fail_at(n);
        mica_status status = mica_open(&o, &e);
        if (status == MICA_OK) status = evaluate(e, -1, &value);
        mica__alloc_fail_at(0);
        const uint64_t asked = mica__alloc_count() - before;
        if (asked > last) last = asked;
        if (status != MICA_OK) {
            EXPECT_INT(status, MICA_ERR_MEMORY);
            EXPECT_MSG(strstr(mica_last_error(), "memory"), "allocation %d: \"%s\"", (int)n, mica_last_error());
        }
        if (e) expect_works(e);
        mica_close(e);
        mica__pipeline_trim();
        EXPECT_MSG(mica__alloc_live() == live, "allocation %d: %d blocks leaked", (int)n,
                   (int)(mica__alloc_live() - live));
    }
}
