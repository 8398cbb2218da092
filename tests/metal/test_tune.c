/* mica_tune: what it measures, what stops it, and what remains when it fails. tests/e2e/tune.sh
 * tests that a file is written, found by another process, and refused when it is broken. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/metal/metal_device.h"
#include "backend/metal/metal_tuning.h"
#include "base/alloc.h"
#include "metal_kit.h"

typedef struct seen {
    int choices, wrong, most;   /* most: stop after this number                          */
} seen;

static bool look(const mica_tuned *t, void *user)
{
    seen *s = user;
    s->choices++;
    s->wrong += t->wrong;
    EXPECT(t->struct_size == sizeof *t);
    EXPECT_MSG(t->tried >= 2, "%s: %d candidates", t->choice, t->tried);
    EXPECT_MSG(t->usual_ns > 0 && t->best_ns > 0 && t->best_ns <= t->usual_ns, "%s: %g, %g", t->choice, t->usual_ns,
               t->best_ns);
    EXPECT_MSG((strcmp(t->best, t->usual) == 0) == !(t->best_ns < 0.97 * t->usual_ns), "%s: %s", t->choice, t->best);
    EXPECT(*t->work);
    return s->choices < s->most;
}

static mica_status tune(seen *s, bool keep)
{
    mica_tune_options o;
    mica_tune_options_init(&o);
    o.seconds = 0;
    o.keep = keep;
    o.progress = look;
    o.user = s;
    return mica_tune(&o, NULL, 0);
}

static mica__gpu_tuning tuning_now(void)
{
    const char *why;
    return mica__metal_get(&why)->limits.tuning;
}

TEST(every_choice_is_measured_and_no_candidate_is_wrong)
{
    SKIP_WITHOUT_METAL();
    seen s = {.most = 1000};
    const mica__gpu_tuning before = tuning_now();
    EXPECT_MSG(tune(&s, false) == MICA_OK, "%s", mica_last_error());
    EXPECT_INT(s.choices, MICA__GPU_KNOBS);
    EXPECT_INT(s.wrong, 0);
    const mica__gpu_tuning after = tuning_now();
    EXPECT_INT(memcmp(&before, &after, sizeof before), 0); /* not stored */
}

TEST(stopped_it_keeps_nothing)
{
    SKIP_WITHOUT_METAL();
    seen s = {.most = 1};
    const mica__gpu_tuning before = tuning_now();
    EXPECT_INT(tune(&s, false), MICA_ERR_STATE);
    EXPECT_INT(s.choices, 1);
    const mica__gpu_tuning after = tuning_now();
    EXPECT_INT(memcmp(&before, &after, sizeof before), 0);
}

TEST(without_a_folder_it_does_not_begin)
{
    SKIP_WITHOUT_METAL();
    seen s = {.most = 1000};
    setenv("MICA_CACHE", "off", 1);
    EXPECT_INT(tune(&s, true), MICA_ERR_UNSUPPORTED);
    EXPECT_MSG(strstr(mica_last_error(), "MICA_CACHE"), "\"%s\"", mica_last_error());
    unsetenv("MICA_CACHE");
    EXPECT_INT(s.choices, 0);
}

/* The path of the file is something else (not a file). */
TEST(a_file_that_cannot_be_removed)
{
    SKIP_WITHOUT_METAL();
    char folder[] = "/tmp/mica-tune-XXXXXX", path[4096];
    const char *why;
    CHECK(mkdtemp(folder));
    setenv("MICA_CACHE", folder, 1);
    const mica__metal_device *device = mica__metal_get(&why);
    EXPECT_INT(mica__tuning_path(device, path), MICA_OK);
    EXPECT_INT(mkdir(path, 0755), 0);
    EXPECT_INT(mica__tuning_remove(device), MICA_ERR_FILE);
    EXPECT_MSG(strstr(mica_last_error(), "cannot remove"), "%s", mica_last_error());
    EXPECT_INT(rmdir(path), 0);
    EXPECT_INT(mica__tuning_remove(device), MICA_OK);
    unsetenv("MICA_CACHE");
    EXPECT_INT(rmdir(folder), 0);
}

/* A failing kernel or allocation: a status is returned, and the shapes do not change. */
TEST(a_failure_leaves_the_shapes_as_they_were)
{
    SKIP_WITHOUT_METAL();
    const mica__gpu_tuning before = tuning_now();
    seen s = {.most = 1};
    if (inject("command=2")) {
        EXPECT_INT(tune(&s, false), MICA_ERR_DEVICE);
        inject(NULL);
    }
    for (uint64_t n = 0, last = 1; n <= last; n += 1 + n / 8) { /* n = 0: no failure */
        const int64_t live = mica__alloc_live();
        const uint64_t counted = mica__alloc_count();
        s = (seen){.most = 1};
        mica__alloc_fail_at(n);
        const mica_status status = tune(&s, false);
        mica__alloc_fail_at(0);
        if (mica__alloc_count() - counted > last) last = mica__alloc_count() - counted;
        EXPECT_MSG(status == MICA_ERR_MEMORY || status == MICA_ERR_STATE, "allocation %d: %s", (int)n,
                   mica_last_error());
        mica__pipeline_trim();
        EXPECT_MSG(mica__alloc_live() <= live, "allocation %d: %d blocks leaked", (int)n,
                   (int)(mica__alloc_live() - live));
    }
    const mica__gpu_tuning after = tuning_now();
    EXPECT_INT(memcmp(&before, &after, sizeof before), 0);
}
