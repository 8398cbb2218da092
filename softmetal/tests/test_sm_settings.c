/* The environment variables of softmetal: wrong values and misspelled names are errors with a message, at
 * each of the three entries (device, build, run); variables of other programs are not. */
#include "host.h"
#include "runner.h"

#include <stdlib.h>
#include <string.h>

static const char text[] = "#include <metal_stdlib>\nusing namespace metal;\n"
                           "kernel void one(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
                           "{ x[i] = 1; }\n";

static const struct wrong_row {
    const char *name, *value, *expected;
} wrong_rows[] = {
    {"SM_CHECK", "yes", "SM_CHECK=yes: it is one of 0,1,simdgroup"},
    {"SM_LINT", "2", "SM_LINT=2: it is 0 or 1"},
    {"SM_EXEC", "lat", "SM_EXEC=lat: it is one of async,early,late,shuffle"},
    {"SM_MATH", "fas", "SM_MATH=fas: it is one of precise,fast,fuzz"},
    {"SM_WORKERS", "0", "SM_WORKERS=0: it is an integer from 1 to 64"},
    {"SM_COUNT_GROUPS", "0", "SM_COUNT_GROUPS=0: it is an integer from 1"},
    {"SM_WORKERS", "4x", "SM_WORKERS=4x: it is an integer from 1 to 64"},
    {"SM_MAXTHREADS", "31", "SM_MAXTHREADS=31: it is an integer from 32 to 1024"},
    {"SM_SEED", "-1", "SM_SEED=-1: it is an integer from 0"},
    {"SM_TIMEOUT", "nan", "SM_TIMEOUT=nan: it is a number of seconds from 0 to 1e+06"},
    {"SM_LATE", "soon", "SM_LATE=soon: it is a number of seconds"},
    {"SM_CHEK", "1", "SM_CHEK is not a variable of softmetal; did you mean SM_CHECK?"},
    {"SM_FAMILLY", "9", "SM_FAMILLY is not a variable of softmetal; did you mean SM_FAMILY?"},
};
enum { N_WRONG = sizeof wrong_rows / sizeof wrong_rows[0] };

TEST(a_wrong_setting_refuses_to_build_and_to_run)
{
    if (!runner_usable()) return;
    runner r = {0};
    float x[32] = {0};
    if (!runner_open(&r, text, "one", NULL, 0)) return;
    runner_buffer(&r, 0, x, sizeof x);
    for (int i = 0; i < N_WRONG; i++) {
        const struct wrong_row *row = &wrong_rows[i];
        char *message = NULL;
        test_case("%s=%s", row->name, row->value);
        setenv(row->name, row->value, 1);
        EXPECT_INT(runner_try(&r, (uint32_t[3]){32, 1, 1}, (uint32_t[3]){32, 1, 1}), SM_INVALID);
        EXPECT(r.message && strstr(r.message, row->expected));
        sm_kernel *kernel = sm_kernel_build(r.library, "one", NULL, 0, &message);
        EXPECT(!kernel && message && strstr(message, row->expected));
        free(message);
        unsetenv(row->name);
    }
    test_case("after the wrong values");
    EXPECT(runner_run(&r, (uint32_t[3]){32, 1, 1}, (uint32_t[3]){32, 1, 1}));
    EXPECT(x[31] > 0);
    runner_close(&r);
}

TEST(a_wrong_setting_gives_no_device)
{
    if (!host_open()) return;
    for (int i = 0; i < N_WRONG; i++) {
        char said[512];
        test_case("%s=%s", wrong_rows[i].name, wrong_rows[i].value);
        setenv(wrong_rows[i].name, wrong_rows[i].value, 1);
        EXPECT(!host.default_device());
        EXPECT(host.failures(said, sizeof said) == 1 && strstr(said, wrong_rows[i].expected));
        unsetenv(wrong_rows[i].name);
    }
    id device = host.default_device();
    EXPECT(device);
    host_release(device);
}

TEST(empty_values_and_variables_of_other_programs_are_accepted)
{
    static const char *const accepted[][2] = {{"SM_CHECK", ""},      {"SM_EXEC", ""},          {"SM_SEED", "0x1f"},
                                              {"SM_TIMEOUT", "2.5"}, {"SM_MODEL_DIR", "/opt"}, {"SM_HOSTS", "a,b"}};
    if (!host_open()) return;
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        test_case("%s=%s", accepted[i][0], accepted[i][1]);
        setenv(accepted[i][0], accepted[i][1], 1);
        id device = host.default_device();
        EXPECT(device);
        host_release(device);
        unsetenv(accepted[i][0]);
    }
    EXPECT_INT(host.failures(NULL, 0), 0);
}
