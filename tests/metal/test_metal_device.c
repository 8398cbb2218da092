/* Which device a process finds, and what it does without one. A process looks once, so each case is
 * a separate process with the environment from which softmetal configures the device
 * (softmetal/README.md). */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/metal/metal_device.h"
#include "metal_kit.h"

enum { ENV = 2 };

/* Runs body in a process that has not searched for Metal yet, with the settings of env. Returns its result. */
static bool in_process(const char *const env[ENV], bool (*body)(const void *), const void *user)
{
    int status = 1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < ENV && env[i]; i++) putenv((char *)env[i]);
        exit(body(user) ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool is_softmetal(const void *unused)
{
    const char *why = NULL;
    (void)unused;
    if (!metal_is_here(&why)) printf("no Metal: %s\n", why);
    return !why && softmetal("sm_inject");
}

static bool softmetal_is_here(void) { return in_process((const char *[ENV]){NULL}, is_softmetal, NULL); }

static mica_status open_metal(mica_engine **e)
{
    mica_engine_options o;
    mica_engine_options_init(&o);
    o.backend = "metal";
    o.threads = 1;
    *e = NULL;
    return mica_open(&o, e);
}

/* ------------------------------------------------------------- no device --- */

/* If Metal is requested: an error with the reason. Otherwise the CPU is used. */
static bool is_refused(const void *words)
{
    mica_engine *e;
    bool good = EXPECT_INT(open_metal(&e), MICA_ERR_UNSUPPORTED);
    good &=
        EXPECT_MSG(strstr(mica_last_error(), words), "\"%s\" has no \"%s\"", mica_last_error(), (const char *)words);
    mica_engine_options o;
    mica_engine_options_init(&o);
    if (!EXPECT_MSG(mica_open(&o, &e) == MICA_OK, "%s", mica_last_error())) return false;
    good &= EXPECT_STR(mica_engine_backend(e), "cpu");
    mica_close(e);
    return good;
}

static const struct {
    const char *name, *env[ENV], *words;
} refusals[] = {
    {"no such library", {"MICA_METAL_LIB=/nowhere.so"}, "/nowhere.so"},
    {"a library that is not Metal", {"MICA_METAL_LIB=libm.so.6"}, "lacks objc_msgSend"},
    {"no device", {"SM_FAULT=device=1+"}, "no Metal device"},
    {"an old device", {"SM_FAMILY=6"}, "older than Apple's family 7"},
    {"an old system", {"SM_FAULT=compile=1+"}, "macOS 13 or later is needed"},
};

TEST(why_there_is_no_device)
{
    if (!softmetal_is_here()) SKIP("not softmetal");
    for (size_t i = 0; i < COUNT(refusals); i++) {
        test_case("%s", refusals[i].name);
        EXPECT(in_process(refusals[i].env, is_refused, refusals[i].words));
    }
}

/* Runs a copy of this program in a folder without libsoftmetal.so, also in its parents: it finds no device. */
static bool run_copy(const void *folder)
{
    char command[256];
    snprintf(command, sizeof command,
             "cd %s && mkdir -p a/b/c && cp /proc/%ld/exe a/b/c/copy && a/b/c/copy nothing_beside",
             (const char *)folder, (long)getpid());
    return system(command) == 0;
}

TEST(nothing_beside_it)
{
    if (getenv("MICA_TEST_COPY")) {
        is_refused("there is no libsoftmetal.so");
        return;
    }
    if (!softmetal_is_here()) SKIP("not softmetal");
    char folder[] = "/tmp/mica-device-XXXXXX", command[64];
    CHECK(mkdtemp(folder));
    EXPECT(in_process((const char *[ENV]){"MICA_TEST_COPY=1"}, run_copy, folder));
    snprintf(command, sizeof command, "rm -r %s", folder);
    EXPECT_INT(system(command), 0);
}

/* ------------------------------------------------------------- a device ---- */

typedef struct wanted {
    const char *name, *env[ENV];
    bool bfloat, archives, counters, residency;
    uint32_t family, cores;
    uint64_t budget;            /* 0: any */
} wanted;

static const wanted devices[] = {
    /* clang-format off */
    {"all there is", {NULL}, true, true, true, true, 7, 0, 0},
    {"not the default, but in the list", {"SM_FAULT=device=1"}, true, true, true, true, 7, 0, 0},
    {"one that has no name", {"SM_WITHOUT=name"}, true, true, true, true, 7, 0, 0},
    {"another family, with cores", {"SM_FAMILY=9", "SM_CORES=40"}, true, true, true, true, 9, 40, 0},
    {"the system before bfloat", {"SM_FAULT=compile=1"}, false, true, true, true, 7, 0, 0},
    {"a system before most of it",
     {"SM_FAULT=compile=1",
      "SM_WITHOUT=setMathMode:,MTLResidencySetDescriptor,MTLBinaryArchiveDescriptor,MTLComputePassDescriptor"},
     false, false, false, false, 7, 0, 0},
    {"a small one", {"SM_MEMORY=4194304"}, true, true, true, true, 7, 0, 4194304},
    /* clang-format on */
};

/* y = 2 x + 1 over rows, their sums, a product; in a dtype. */
static mica_array *small_graph(mica_scope *s, mica_dtype dtype)
{
    mica_array *x = mica_reshape(s, mica_arange(s, dtype, -32, 32, 1), 2, (int64_t[]){8, 8});
    mica_array *y = mica_add(s, mica_mul(s, x, mica_scalar(s, 2)), mica_scalar(s, 1));
    return mica_cast(s, mica_add(s, mica_matmul(s, y, mica_transpose(s, x)), mica_sum(s, x, (int[]){1}, 1, true)),
                     MICA_F32);
}

/* The same integers as on the CPU, in every dtype; the CPU computes bf16 if Metal lacks it. */
static bool computes(mica_engine *metal, const wanted *w)
{
    bool good = true;
    mica_engine *cpu = open_on("cpu");
    for (mica_dtype dtype = MICA_F16; dtype <= MICA_F32; dtype++) {
        mica_scope *s = mica_scope_begin(metal), *c = mica_scope_begin(cpu);
        mica_array *got = small_graph(s, dtype), *want = small_graph(c, dtype);
        const mica_stats before = stats_of(metal);
        good &= EXPECT_MSG(mica_eval(s, &got, 1) == MICA_OK && mica_eval(c, &want, 1) == MICA_OK, "%s: %s",
                           mica_dtype_name(dtype), mica_last_error());
        const bool on_cpu = stats_of(metal).gpu_cpu_steps > before.gpu_cpu_steps;
        good &= EXPECT_MSG(on_cpu == (dtype == MICA_BF16 && !w->bfloat), "%s on the CPU: %d", mica_dtype_name(dtype),
                           on_cpu);
        for (int i = 0; i < 64 && good; i++)
            good &= EXPECT_CLOSE(mica_data_f32(got)[i], mica_data_f32(want)[i], 0.01, 0);
        mica_scope_end(s);
        mica_scope_end(c);
    }
    mica_close(cpu);
    return good;
}

/* An array larger than a buffer of the device may be. */
static bool refuses_large(mica_engine *e, const wanted *w)
{
    mica_scope *s = mica_scope_begin(e);
    float *data = calloc(w->budget, 1);
    mica_array *x = mica_from_data(s, MICA_F32, 1, (int64_t[]){(int64_t)(w->budget / sizeof *data)}, data);
    mica_array *y = mica_exp(s, x);
    bool good = EXPECT_INT(mica_eval(s, &y, 1), MICA_ERR_MEMORY);
    good &= EXPECT_MSG(strstr(mica_last_error(), "in one buffer"), "%s", mica_last_error());
    mica_scope_end(s);
    free(data);
    return good;
}

static bool is_as_wanted(const void *user)
{
    const wanted *w = user;
    const char *why = NULL;
    char print[2048], cores[32];
    mica__text text;
    mica_engine *e;
    const mica__metal_device *d = mica__metal_get(&why);
    if (!EXPECT_MSG(d, "%s", why)) return false;
    bool good = EXPECT_INT(d->limits.bfloat, w->bfloat);
    good &= EXPECT_INT(d->archives, w->archives);
    good &= EXPECT_INT(d->counters, w->counters);
    good &= EXPECT_INT(d->residency, w->residency);
    good &= EXPECT_INT(d->limits.family, w->family);
    good &= EXPECT_INT(d->limits.cores, w->cores);
    good &= EXPECT_MSG(strstr(d->limits.name, "software"), "%s", d->limits.name);
    mica__text_init(&text, print, sizeof print);
    mica__metal_print(&text);
    good &= EXPECT_MSG(strstr(print, w->bfloat ? "bfloat yes" : "bfloat no"), "%s", print);
    snprintf(cores, sizeof cores, ", %u cores", w->cores);
    good &= EXPECT_MSG(!w->cores || strstr(print, cores), "%s", print);
    if (!EXPECT_MSG(open_metal(&e) == MICA_OK, "%s", mica_last_error())) return false;
    good &= computes(e, w);
    good &= EXPECT_MSG(w->residency == (stats_of(e).gpu_bytes_resident > 0), "residency");
    if (w->budget) good &= EXPECT(d->limits.budget_bytes == w->budget) && refuses_large(e, w);
    mica_close(e);
    return good;
}

TEST(what_a_device_has)
{
    if (!softmetal_is_here()) SKIP("not softmetal");
    for (size_t i = 0; i < COUNT(devices); i++) {
        test_case("%s", devices[i].name);
        EXPECT(in_process(devices[i].env, is_as_wanted, &devices[i]));
    }
}
