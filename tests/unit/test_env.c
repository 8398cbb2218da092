/* Environment variables: every value that is set is checked against the table, and
 * docs/ENVIRONMENT.md equals the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/cpu.h"
#include "base/env.h"
#include "runtime/engine.h"
#include "test.h"

static const struct {
    const char *name, *value, *part; /* part: part of the message */
} wrong[] = {
    {"MICA_PASSES", "typo", "there is no \"typo\""},
    {"MICA_PASSES", "fuse,fols", "did you mean \"fold\"?"},
    {"MICA_PASSES", "fold,", "there is no \"\""},
    {"MICA_PASSES", ",", "MICA_PASSES is \",\""},
    {"MICA_PASSES", "Fold", "did you mean \"fold\"?"},
    {"MICA_PASSES", "lane", "did you mean \"lanes\"?"},
    {"MICA_DUMP", "typo", "graph, simple, plan, kernels, msl"},
    {"MICA_DUMP", "plan,kernel", "did you mean \"kernels\"?"},
    {"MICA_DUMP", "plan graph", "MICA_DUMP"},
    {"MICA_DEVICE", "gpu", "one of: metal, cpu, ref"},
    {"MICA_DEVICE", "meta", "did you mean \"metal\"?"},
    {"MICA_THREADS", "0", "a number from 1 to 256"},
    {"MICA_THREADS", "257", "a number from 1 to 256"},
    {"MICA_THREADS", "-1", "a number from 1 to 256"},
    {"MICA_THREADS", " 4", "a number from 1 to 256"},
    {"MICA_THREADS", "0x4", "a number from 1 to 256"},
    {"MICA_THREADS", "99999999999999999999999", "a number from 1 to 256"},
    {"MICA_PREPACK", "yes", "0 or 1"},
    {"MICA_PREPACK", "01", "0 or 1"},
    {"MICA_MMAP", "off", "0 or 1"},
    {"MICA_CPU", "avx", "did you mean \"avx2\"?"},
};

TEST(a_wrong_value_is_an_error_of_open)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mica_engine *e = NULL;
        test_case("%s=%s", wrong[i].name, wrong[i].value);
        const char *before = getenv(wrong[i].name);
        char *kept = before ? strdup(before) : NULL;
        setenv(wrong[i].name, wrong[i].value, 1);
        EXPECT_INT(mica_open(NULL, &e), MICA_ERR_ARGUMENT);
        EXPECT(e == NULL);
        EXPECT_MSG(strstr(mica_last_error(), wrong[i].name), "%s", mica_last_error());
        EXPECT_MSG(strstr(mica_last_error(), wrong[i].value), "%s", mica_last_error());
        EXPECT_MSG(strstr(mica_last_error(), wrong[i].part), "%s", mica_last_error());
        mica_close(e);
        if (kept) setenv(wrong[i].name, kept, 1);
        else unsetenv(wrong[i].name);
        free(kept);
    }
}

TEST(a_long_value_is_cut_in_the_message)
{
    enum { LONG = 100000 };
    mica_engine *e = NULL;
    char *value = malloc(LONG + 1);
    CHECK(value);
    memset(value, 'x', LONG);
    value[LONG] = '\0';
    for (int i = 0; i < MICA__ENV_COUNT; i++) {
        if (mica__env_get((mica__env_name)i)->kind == MICA__ENV_KIND_PATH) continue;
        const char *name = mica__env_get((mica__env_name)i)->name;
        test_case("%s", name);
        const char *before = getenv(name);
        char *kept = before ? strdup(before) : NULL;
        setenv(name, value, 1);
        EXPECT_INT(mica_open(NULL, &e), MICA_ERR_ARGUMENT);
        EXPECT(strstr(mica_last_error(), name));
        if (kept) setenv(name, kept, 1);
        else unsetenv(name);
        free(kept);
    }
    free(value);
}

/* Each word alone sets the bit of its position; "all" and "none" follow them. */
TEST(every_pass_has_a_word)
{
    const char *list = mica__env_get(MICA__ENV_PASSES)->words;
    uint32_t passes = 0;
    for (int i = 0; *list; i++) {
        char word[32];
        const size_t n = strcspn(list, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, list);
        list += n + (list[n] == ',');
        test_case("%s", word);
        setenv("MICA_PASSES", word, 1);
        mica_engine *e = NULL;
        CHECK_INT(mica_open(NULL, &e), MICA_OK);
        const uint32_t want = strcmp(word, "all") == 0    ? MICA_PASS_ALL
                              : strcmp(word, "none") == 0 ? 0
                                                          : (uint32_t)1 << i;
        EXPECT_INT(e->passes, want);
        if (want != MICA_PASS_ALL) passes |= want;
        mica_close(e);
    }
    unsetenv("MICA_PASSES");
    EXPECT_INT(passes, MICA_PASS_ALL);
}

/* The table repeats names that other tables define. */
TEST(words_of_the_table_exist)
{
    const char *list = mica__env_get(MICA__ENV_DEVICE)->words;
    for (size_t i = 0; mica__backends[i]; i++) {
        const char *name = mica__backends[i]->name;
        test_case("%s", name);
        EXPECT(strncmp(list, name, strlen(name)) == 0);
        list += strlen(name) + (list[strlen(name)] == ',');
    }
    EXPECT_STR(list, "");
    unsigned features;
    EXPECT_INT(mica__cpu_limit(0, "no such level", &features), MICA_ERR_ARGUMENT);
    char levels[256] = "";
    for (const char *p = mica__env_get(MICA__ENV_CPU)->words; *p; p++)
        snprintf(levels + strlen(levels), sizeof levels - strlen(levels), *p == ',' ? ", " : "%c", *p);
    EXPECT_MSG(strstr(mica_last_error(), levels), "%s", mica_last_error());
}

TEST(doctor_lists_what_is_set)
{
    char text[16384];
    setenv("MICA_THREADS", "2", 1);
    setenv("MICA_DUMP", "plam", 1);
    setenv("MICA_THREAD", "4", 1);
    mica_doctor_text(text, sizeof text);
    EXPECT(strstr(text, "MICA_THREADS: \"2\""));
    EXPECT(strstr(text, "MICA_DUMP is \"plam\""));
    EXPECT(strstr(text, "MICA_THREAD: set, but not a variable of mica; did you mean MICA_THREADS?"));
    unsetenv("MICA_THREADS");
    unsetenv("MICA_DUMP");
    unsetenv("MICA_THREAD");
}

/* ---------------------------------------------------------- documentation --- */

static void print_page(mica__text *page)
{
    mica__text_add(
        page, "# Environment variables\n\n"
              "Generated from `src/base/env.def` by `MICA_UPDATE_GOLDEN=1 build/tests/unit/test_env`; the test "
              "fails if this page differs.\n\n"
              "`mica_open` checks every variable that is set and returns `MICA_ERR_ARGUMENT` for a value that "
              "is not allowed;\n`mica_file_open` checks `MICA_MMAP`. An empty value is the same as no value. "
              "`mica doctor` lists the variables that are set.\n"
              "The variables of softmetal (`SM_*`) are described in [softmetal/README.md](../softmetal/README.md).\n\n"
              "| variable | value | if not set | meaning |\n|---|---|---|---|\n");
    for (int i = 0; i < MICA__ENV_COUNT; i++) {
        const mica__env_info *v = mica__env_get((mica__env_name)i);
        mica__text_add(page, "| `%s` | ", v->name);
        mica__env_allowed((mica__env_name)i, page);
        mica__text_add(page, " | %s | %s |\n", v->preset, v->help);
    }
}

TEST(the_page_is_the_table)
{
    enum { CAP = 16384 };
    char path[1024], want[CAP], have[CAP];
    mica__text page;
    mica__text_init(&page, want, sizeof want);
    print_page(&page);
    CHECK(page.length < CAP);
    const char *dir = getenv("MICA_TEST_DIR"), *update = getenv("MICA_UPDATE_GOLDEN");
    snprintf(path, sizeof path, "%s/../docs/ENVIRONMENT.md", dir && *dir ? dir : "tests");
    FILE *f = fopen(path, update && *update ? "wb" : "rb");
    CHECK_MSG(f, "%s: cannot be opened; MICA_UPDATE_GOLDEN=1 makes it", path);
    if (update && *update) {
        CHECK(fputs(want, f) >= 0 && fclose(f) == 0);
        return;
    }
    have[fread(have, 1, sizeof have - 1, f)] = '\0';
    fclose(f);
    EXPECT_MSG(strcmp(have, want) == 0, "%s differs from src/base/env.def; MICA_UPDATE_GOLDEN=1 writes it", path);
}
