/* How many threads are worth starting, computed from made-up system files.
 *
 * runs: check */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cores.h"
#include "test.h"

/* Writes root/path with this text; creates its folders. */
static void put(const char *root, const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *slash = strchr(name + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(name, 0700);
        *slash = '/';
    }
    FILE *f = fopen(name, "w");
    CHECK_MSG(f != NULL, "cannot write %s", name);
    fputs(text, f);
    fclose(f);
}

static void put_capacity(const char *root, int cpu, const char *text)
{
    char path[100];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu);
    put(root, path, text);
}

static void new_root(char *root, size_t cap)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(root, cap, "%s/mica-cores-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    CHECK_MSG(mkdtemp(root) != NULL, "no folder %s", root);
}

static void remove_root(const char *root)
{
    char command[600];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    CHECK_INT(system(command), 0);
}

static const bool all[8] = {true, true, true, true, true, true, true, true};

TEST(cpus_that_are_allowed)
{
    char root[256];
    new_root(root, sizeof root);
    CHECK_INT(mica__cores_under(root, all, 8), 8);
    CHECK_INT(mica__cores_under(root, (const bool[]){true, false, true, false}, 4), 2);
    CHECK_INT(mica__cores_under(root, NULL, 0), 1);
    CHECK(mica__cores() >= 1);
    remove_root(root);
}

TEST(fast_cores_of_intel)
{
    char root[256];
    new_root(root, sizeof root);
    put(root, "/sys/devices/cpu_core/cpus", "0-3,6\n");
    CHECK_INT(mica__cores_under(root, all, 8), 5);
    CHECK_INT(mica__cores_under(root, (const bool[]){true, false, false, false, true, true, true}, 7), 2);
    test_case("only slow ones are allowed");
    CHECK_INT(mica__cores_under(root, (const bool[]){false, false, false, false, true, true}, 6), 2);
    test_case("a list that cannot be read");
    put(root, "/sys/devices/cpu_core/cpus", "nonsense\n");
    CHECK_INT(mica__cores_under(root, all, 8), 8);
    remove_root(root);
}

TEST(fast_cores_of_arm)
{
    char root[256];
    new_root(root, sizeof root);
    for (int i = 0; i < 4; i++) put_capacity(root, i, "530\n");
    for (int i = 4; i < 7; i++) put_capacity(root, i, "870\n");
    put_capacity(root, 7, "1024\n");
    CHECK_INT(mica__cores_under(root, all, 8), 4);
    CHECK_INT(mica__cores_under(root, all, 4), 4); /* all cores are equal */
    remove_root(root);
}

TEST(quota_of_control_groups)
{
    char root[256];
    new_root(root, sizeof root);
    put(root, "/sys/fs/cgroup/cpu.max", "max 100000\n");
    CHECK_INT(mica__cores_under(root, all, 8), 8);
    put(root, "/sys/fs/cgroup/cpu.max", "250000 100000\n");
    CHECK_INT(mica__cores_under(root, all, 8), 3);
    put(root, "/sys/fs/cgroup/cpu.max", "1000 100000\n");
    CHECK_INT(mica__cores_under(root, all, 8), 1);
    put(root, "/sys/fs/cgroup/cpu.max", "9e99 1\n");
    CHECK_INT(mica__cores_under(root, all, 8), 8);

    test_case("a group within a group");
    put(root, "/proc/self/cgroup", "4:memory:/other\n0::/outer/inner\n");
    put(root, "/sys/fs/cgroup/outer/cpu.max", "200000 100000\n");
    put(root, "/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
    CHECK_INT(mica__cores_under(root, all, 8), 2);
    put(root, "/sys/fs/cgroup/outer/inner/cpu.max", "100000 100000\n");
    CHECK_INT(mica__cores_under(root, all, 8), 1);
    remove_root(root);

    test_case("the older kind");
    new_root(root, sizeof root);
    put(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    CHECK_INT(mica__cores_under(root, all, 8), 8);
    put(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
    CHECK_INT(mica__cores_under(root, all, 8), 4);
    remove_root(root);
}
