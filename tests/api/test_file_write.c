/* Writing model files through mica.h: from memory and from a callback, completely or not at all,
 * and what cannot be written.
 *
 * runs: check */
#include <signal.h>
#include <sys/resource.h>

#include "files.h"

enum { ROWS = 300, COLS = 256 };

static float value_at(int row, int col) { return (float)(row - col); }

/* Row by row, as a streaming program does. */
static mica_status by_rows(mica_writer *w, size_t tensor, void *user)
{
    float row[COLS];
    int *calls = user;
    ++*calls;
    if (tensor != 1) return mica_writer_put(w, (float[]){9}, 4);
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLS; c++) row[c] = value_at(r, c);
        const mica_status status = mica_writer_put(w, row, sizeof row);
        if (status != MICA_OK) return status;
    }
    return MICA_OK;
}

TEST(from_a_function)
{
    for (size_t k = 0; k < 2; k++) {
        const char *kind = (const char *[]){"gguf", "safetensors"}[k];
        char name[32];
        test_case("%s", kind);
        mica_writer *w = NULL;
        mica_file *f = NULL;
        int calls = 0;
        snprintf(name, sizeof name, "large.%s", kind);
        CHECK_OK(mica_writer_open(file_path(name), NULL, &w));
        EXPECT_OK(mica_writer_string(w, "name", "it", 2));
        EXPECT_OK(mica_writer_tensor(w, "given", "F16", SHAPE(2), (uint16_t[]){1, 2}));
        EXPECT_OK(mica_writer_tensor(w, "made", "F32", SHAPE(ROWS, COLS), NULL));
        EXPECT_OK(mica_writer_tensor(w, "small", "F32", 0, NULL, NULL));
        EXPECT_OK(mica_writer_tensor(w, "empty", "F32", SHAPE(0, 4), NULL));
        CHECK_OK(mica_writer_finish(w, by_rows, &calls));
        EXPECT_INT(calls, 2);
        CHECK_OK(mica_file_open(file_path(name), NULL, &f));
        EXPECT_STR(mica_file_kind(f), kind);
        EXPECT(meta_is(f, "name", "it"));
        const mica_tensor_info made = info_of(f, "made");
        CHECK_INT(made.nbytes, ROWS * COLS * 4);
        float v;
        memcpy(&v, (const char *)made.data + 4 * (299 * COLS + 7), 4);
        EXPECT(v == value_at(299, 7));
        memcpy(&v, info_of(f, "small").data, 4);
        EXPECT(v == 9);
        EXPECT_INT(info_of(f, "empty").nbytes, 0);
        mica_file_close(f);
    }
}

TEST(npz)
{
    mica_writer *w = NULL;
    mica_file *f = NULL;
    CHECK_OK(mica_writer_open(file_path("x.npz"), NULL, &w));
    EXPECT_OK(mica_writer_tensor(w, "x", "F32", SHAPE(2), (float[]){1, 2}));
    CHECK_OK(mica_writer_finish(w, NULL, NULL));
    CHECK_OK(mica_file_open(file_path("x.npz"), NULL, &f));
    EXPECT_STR(mica_file_kind(f), "npz");
    EXPECT_INT(info_of(f, "x").nbytes, 8);
    mica_file_close(f);
    CHECK_OK(mica_writer_open(file_path("y.npz"), NULL, &w));
    EXPECT_OK(mica_writer_tensor(w, "x", "F32", SHAPE(2), NULL));
    EXPECT_FAILS(mica_writer_finish(w, by_rows, &(int){0}), MICA_ERR_UNSUPPORTED, "in memory");
}

TEST(a_key_that_is_there_gets_the_new_value)
{
    mica_writer *w = NULL;
    mica_file *f = NULL;
    int64_t i = 0;
    CHECK_OK(mica_writer_open(file_path("again.gguf"), NULL, &w));
    mica_writer_string(w, "k", "text", 4);
    mica_writer_i64(w, "other", MICA_U64, INT64_MAX);
    mica_writer_i64(w, "k", MICA_U32, 4000000000);
    CHECK_OK(mica_writer_finish(w, NULL, NULL));
    CHECK_OK(mica_file_open(file_path("again.gguf"), NULL, &f));
    EXPECT_INT(mica_file_meta_count(f), 2);
    EXPECT(mica_file_i64(f, "k", &i) && i == 4000000000);
    mica_file_close(f);
}

/* Entries are copied unchanged from one file to another. */
TEST(metadata_is_copied)
{
    mica_writer *w = NULL;
    mica_file *f = NULL, *g = NULL;
    CHECK_OK(mica_writer_open(file_path("a.gguf"), NULL, &w));
    mica_writer_strings(w, "tokens", 2, (const char *[]){"a\0b", "cd"}, (size_t[]){3, 2});
    mica_writer_array(w, "scores", MICA_F32, 2, (float[]){1, 2});
    mica_writer_i64(w, "n", MICA_I16, -300);
    CHECK_OK(mica_writer_finish(w, NULL, NULL));
    CHECK_OK(mica_file_open(file_path("a.gguf"), NULL, &f));
    CHECK_OK(mica_writer_open(file_path("b.gguf"), NULL, &w));
    mica_meta_info m = {.struct_size = sizeof m};
    for (size_t i = 0; mica_file_meta(f, i, &m); i++) EXPECT_OK(mica_writer_meta(w, &m));
    mica_file_close(f);
    CHECK_OK(mica_writer_finish(w, NULL, NULL));
    CHECK_OK(mica_file_open(file_path("b.gguf"), NULL, &g));
    size_t at = 0, n = 0;
    const char *text;
    int64_t i = 0;
    EXPECT(mica_file_next_string(g, "tokens", &at, &text, &n) && n == 3 && memcmp(text, "a\0b", 3) == 0);
    EXPECT(mica_file_i64(g, "n", &i) && i == -300);
    EXPECT_INT(mica_file_items(g, "scores"), 2);
    mica_file_close(g);
}

TEST(safetensors_has_texts_only)
{
    mica_writer *w = NULL;
    mica_file *f = NULL;
    CHECK_OK(mica_writer_open(file_path("t.safetensors"), NULL, &w));
    mica_writer_i64(w, "i", MICA_I8, -7);
    mica_writer_f64(w, "f", MICA_F32, (double)0.1f);
    mica_writer_i64(w, "b", MICA_BOOL, 0);
    CHECK_OK(mica_writer_finish(w, NULL, NULL));
    CHECK_OK(mica_file_open(file_path("t.safetensors"), NULL, &f));
    EXPECT(meta_is(f, "i", "-7") && meta_is(f, "f", "0.1") && meta_is(f, "b", "false"));
    mica_file_close(f);
}

/* ------------------------------------------------------------------- bad --- */

static mica_status too_much(mica_writer *w, size_t tensor, void *user)
{
    (void)tensor, (void)user;
    (void)mica_writer_put(w, (float[]){1, 2}, 8);
    return mica_writer_put(w, (float[]){3}, 4);
}

static mica_status too_little(mica_writer *w, size_t tensor, void *user)
{
    (void)tensor, (void)user;
    return mica_writer_put(w, (float[]){1}, 4);
}

static mica_status careless(mica_writer *w, size_t tensor, void *user)
{
    (void)too_much(w, tensor, user);
    return MICA_OK;
}

static mica_status gives_up(mica_writer *w, size_t tensor, void *user)
{
    (void)too_little(w, tensor, user);
    mica_file *f;
    return mica_file_open("/nowhere", NULL, &f); /* another error of its own */
}

TEST(a_function_that_gives_other_bytes)
{
    static const struct {
        const char *name;
        mica_produce_fn fn;
        mica_status want;
        const char *part;
    } bad[] = {{"more", too_much, MICA_ERR_ARGUMENT, "0 left"},
               {"less", too_little, MICA_ERR_ARGUMENT, "4 of them are missing"},
               {"more, unnoticed", careless, MICA_ERR_ARGUMENT, "0 left"},
               {"its own failure", gives_up, MICA_ERR_FILE, "/nowhere"},
               {"none", NULL, MICA_ERR_ARGUMENT, "has no data"}};
    const char *path = write_text("kept.gguf", "old");
    for (size_t i = 0; i < COUNT(bad); i++) {
        test_case("%s", bad[i].name);
        const int there = files_there();
        mica_writer *w = NULL;
        CHECK_OK(mica_writer_open(path, NULL, &w));
        EXPECT_OK(mica_writer_tensor(w, "x", "F32", SHAPE(2), NULL));
        EXPECT_FAILS(mica_writer_finish(w, bad[i].fn, NULL), bad[i].want, bad[i].part);
        EXPECT_INT(files_there(), there);
        char *text = file_text(path);
        EXPECT_STR(text, "old");
        free(text);
    }
}

TEST(the_first_failure_sticks)
{
    mica_writer *w = NULL;
    CHECK_OK(mica_writer_open(file_path("no.gguf"), NULL, &w));
    EXPECT_FAILS(mica_writer_tensor(w, "x", "Q9_Z", SHAPE(2), NULL), MICA_ERR_ARGUMENT, "'Q9_Z'");
    EXPECT_FAILS(mica_writer_i64(w, "fine", MICA_U8, 1), MICA_ERR_ARGUMENT, "'Q9_Z'");
    EXPECT_FAILS(mica_writer_finish(w, NULL, NULL), MICA_ERR_ARGUMENT, "'Q9_Z'");
    EXPECT(access(file_path("no.gguf"), F_OK) != 0);
}

/* Each failure with a new writer; the last one is reported by finish. */
TEST(what_cannot_be_written)
{
    mica_writer *w = NULL;
    EXPECT_FAILS(mica_writer_open("x.bin", NULL, &w), MICA_ERR_ARGUMENT, "'bin'");
    EXPECT_FAILS(mica_writer_open("x.gguf", "zip", &w), MICA_ERR_ARGUMENT, "'zip'");
    EXPECT_FAILS(mica_writer_open("a.gguf/x", NULL, &w), MICA_ERR_ARGUMENT, "is not gguf");
#define CASE(kind, call, want, part)                                 \
    do {                                                             \
        test_case("%s", #call);                                      \
        CHECK_OK(mica_writer_open(file_path("no." kind), NULL, &w)); \
        EXPECT_FAILS(call, want, part);                              \
        mica_writer_abandon(w);                                      \
        EXPECT(access(file_path("no." kind), F_OK) != 0);            \
    } while (0)
    CASE("gguf", mica_writer_tensor(w, "x", "Q8_0", SHAPE(2, 33), NULL), MICA_ERR_ARGUMENT, "cannot be stored as Q8_0");
    CASE("gguf", mica_writer_tensor(w, "x", "F32", SHAPE(INT64_MAX, 4), NULL), MICA_ERR_ARGUMENT, "cannot be stored");
    CASE("gguf", mica_writer_tensor(w, "x", "F32", SHAPE(-1), NULL), MICA_ERR_ARGUMENT, "cannot be stored");
    CASE("gguf", mica_writer_i64(w, "k", MICA_U8, 256), MICA_ERR_ARGUMENT, "256 does not fit into u8");
    CASE("gguf", mica_writer_i64(w, "k", MICA_I8, -129), MICA_ERR_ARGUMENT, "-129 does not fit into i8");
    CASE("gguf", mica_writer_i64(w, "k", MICA_U32, -1), MICA_ERR_ARGUMENT, "-1 does not fit into u32");
    CASE("gguf", mica_writer_i64(w, "k", MICA_BOOL, 2), MICA_ERR_ARGUMENT, "2 does not fit into bool");
    CASE("gguf", mica_writer_i64(w, "k", MICA_F64, 2), MICA_ERR_ARGUMENT, "f64 is not an integer type");
    CASE("gguf", mica_writer_f64(w, "k", MICA_F16, 2), MICA_ERR_ARGUMENT, "f16");
    CASE("gguf", mica_writer_array(w, "k", MICA_F16, 1, "  "), MICA_ERR_ARGUMENT, "'k'");
    CASE("gguf", mica_writer_put(w, "", 1), MICA_ERR_STATE, "only inside");
    CASE("npz", mica_writer_string(w, "k", "v", 1), MICA_ERR_UNSUPPORTED, "no metadata");
    CASE("safetensors", mica_writer_array(w, "k", MICA_U8, 1, "v"), MICA_ERR_UNSUPPORTED, "array");
#undef CASE
}

TEST(what_a_format_has_not)
{
    mica_writer *w = NULL;
    test_case("block formats in safetensors");
    CHECK_OK(mica_writer_open(file_path("no.safetensors"), NULL, &w));
    EXPECT_OK(mica_writer_tensor(w, "x", "Q8_0", SHAPE(32), (char[34]){0}));
    EXPECT_FAILS(mica_writer_finish(w, NULL, NULL), MICA_ERR_UNSUPPORTED, "Q8_0");
    test_case("a name twice");
    CHECK_OK(mica_writer_open(file_path("no.gguf"), NULL, &w));
    for (int i = 0; i < 2; i++) EXPECT_OK(mica_writer_tensor(w, "x", "F32", SHAPE(1), (float[]){0}));
    EXPECT_FAILS(mica_writer_finish(w, NULL, NULL), MICA_ERR_ARGUMENT, "twice");
    test_case("a folder that is not there");
    CHECK_OK(mica_writer_open(file_path("nowhere/no.gguf"), NULL, &w));
    EXPECT_FAILS(mica_writer_finish(w, NULL, NULL), MICA_ERR_FILE, "cannot create");
}

/* With RLIMIT_FSIZE, writes fail as on a full disk. */
TEST(a_disk_that_is_full)
{
    struct rlimit old, small;
    if (getrlimit(RLIMIT_FSIZE, &old) != 0) SKIP("no RLIMIT_FSIZE");
    signal(SIGXFSZ, SIG_IGN);
    small = old;
    small.rlim_cur = 100000;
    const int there = files_there();
    mica_writer *w = NULL;
    int calls = 0;
    CHECK_OK(mica_writer_open(file_path("full.gguf"), NULL, &w));
    EXPECT_OK(mica_writer_tensor(w, "zero", "F32", SHAPE(1), NULL));
    EXPECT_OK(mica_writer_tensor(w, "made", "F32", SHAPE(ROWS, COLS), NULL));
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    const mica_status status = mica_writer_finish(w, by_rows, &calls);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    EXPECT_FAILS(status, MICA_ERR_FILE, "cannot write");
    EXPECT_INT(files_there(), there);
}
