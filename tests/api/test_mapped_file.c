/* A model file that changes while it is mapped: a status before the data is read, never SIGBUS.
 * Also files that are read instead of mapped. */
#include <time.h>

#include "files.h"

enum { ROWS = 256, COLS = 1024, VALUES = ROWS * COLS };

/* A safetensors file with a matrix of ones, 1 MiB. */
static const char *write_ones(const char *name)
{
    static float ones[VALUES];
    const char *path = file_path(name);
    mica_writer *w = NULL;
    for (int i = 0; i < VALUES; i++) ones[i] = 1;
    if (mica_writer_open(path, "safetensors", &w) != MICA_OK) abort();
    (void)mica_writer_tensor(w, "ones", "F32", 2, (int64_t[]){ROWS, COLS}, ones);
    if (mica_writer_finish(w, NULL, NULL) != MICA_OK) abort();
    return path;
}

typedef struct opened {
    mica_engine *e;
    mica_scope *s;
    mica_file *file;
    mica_array *ones;
    const char *path;
} opened;

static opened open_ones(const char *backend, const char *name, bool no_mmap)
{
    opened o = {.path = write_ones(name)};
    mica_file_options f;
    mica_file_options_init(&f);
    f.no_mmap = no_mmap;
    const mica_engine_options engine = options_for(backend, 2);
    o.e = open_with(&engine);
    o.s = mica_scope_begin(o.e);
    EXPECT_OK(mica_file_open(o.path, &f, &o.file));
    o.ones = mica_file_array(o.s, o.file, "ones");
    return o;
}

static void close_ones(opened *o)
{
    mica_scope_end(o->s);
    mica_file_close(o->file);
    mica_close(o->e);
    unlink(o->path);
}

static mica_status sum_of(const opened *o, double *value)
{
    mica_array *sum = mica_sum(o->s, o->ones, NULL, 0, false);
    mica_status status = mica_eval(o->s, &sum, 1);
    return status == MICA_OK ? mica_item(sum, value) : status;
}

TEST(a_file_that_became_shorter_is_a_status)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        opened o = open_ones(backends[b], "shorter.safetensors", false);
        double value = 0;
        float item;
        CHECK_OK(sum_of(&o, &value));
        EXPECT_CLOSE(value, VALUES, 0, 0);
        CHECK(truncate(o.path, 200) == 0);
        EXPECT_FAILS(sum_of(&o, &value), MICA_ERR_FILE, "was changed while it was in use");
        EXPECT_FAILS(mica_copy_out(o.ones, &item, sizeof item), MICA_ERR_FILE, "200 now");
        EXPECT(mica_data_f32(o.ones) == NULL);
        EXPECT(mica_file_array(o.s, o.file, "ones") == NULL);
        EXPECT_INT(mica_scope_status(o.s), MICA_ERR_FILE);
        EXPECT_FAILS(mica_file_unchanged(o.file), MICA_ERR_FILE, "shorter.safetensors");
        close_ones(&o);
    }
}

TEST(an_asynchronous_evaluation_fails_too)
{
    opened o = open_ones("cpu", "async.safetensors", false);
    mica_array *sum = mica_sum(o.s, o.ones, NULL, 0, false);
    mica_event *event = NULL;
    CHECK(truncate(o.path, 0) == 0);
    mica_status status = mica_eval_async(o.s, &sum, 1, &event);
    if (status == MICA_OK) status = mica_wait(event);
    EXPECT_FAILS(status, MICA_ERR_FILE, "was changed while it was in use");
    mica_event_free(event);
    close_ones(&o);
}

static mica_status add_ones(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                            void *user)
{
    (void)n_in, (void)n_out;
    out[0] = mica_sum(s, mica_add(s, in[0], user), NULL, 0, false);
    return MICA_OK;
}

TEST(a_compiled_function_fails_between_two_calls)
{
    opened o = open_ones("cpu", "function.safetensors", false);
    mica_function *f = NULL;
    mica_array *in = mica_full(o.s, MICA_F32, 2, (int64_t[]){ROWS, COLS}, 1), *out = NULL;
    double value;
    CHECK_OK(mica_compile(o.e, add_ones, o.ones, &f));
    CHECK_OK(mica_call(o.s, f, &in, 1, &out, 1));
    CHECK_OK(mica_item(out, &value));
    EXPECT_CLOSE(value, 2 * VALUES, 0, 0);
    CHECK(truncate(o.path, 4096) == 0);
    EXPECT_FAILS(mica_call(o.s, f, &in, 1, &out, 1), MICA_ERR_FILE, "was changed");
    EXPECT(out == NULL);
    mica_function_free(f);
    close_ones(&o);
}

/* Other contents of the same size: results would differ between evaluations. */
TEST(a_file_written_in_place_is_a_status)
{
    opened o = open_ones("cpu", "written.safetensors", false);
    double value;
    CHECK_OK(sum_of(&o, &value));
    struct timespec wait = {.tv_nsec = 20000000}; /* time stamps of files are coarse */
    nanosleep(&wait, NULL);
    FILE *f = fopen(o.path, "r+b");
    CHECK(f && fseek(f, -4, SEEK_END) == 0 && fwrite("\0\0\0\0", 1, 4, f) == 4 && fclose(f) == 0);
    EXPECT_FAILS(sum_of(&o, &value), MICA_ERR_FILE, "was changed");
    close_ones(&o);
}

TEST(a_file_that_was_replaced_stays)
{
    opened o = open_ones("cpu", "replaced.safetensors", false);
    double value = 0;
    char path[768];
    snprintf(path, sizeof path, "%s", o.path);
    CHECK(rename(write_text("other", "no model"), path) == 0);
    CHECK_OK(sum_of(&o, &value));
    EXPECT_CLOSE(value, VALUES, 0, 0);
    CHECK(unlink(path) == 0);
    CHECK_OK(sum_of(&o, &value));
    close_ones(&o);
}

TEST(a_file_that_was_read_may_change)
{
    for (int by_environment = 0; by_environment < 2; by_environment++) {
        test_case("%s", by_environment ? "MICA_MMAP=0" : "no_mmap");
        if (by_environment) setenv("MICA_MMAP", "0", 1);
        opened o = open_ones("cpu", "read.safetensors", !by_environment);
        unsetenv("MICA_MMAP");
        double value = 0;
        CHECK(truncate(o.path, 0) == 0);
        CHECK_OK(sum_of(&o, &value));
        EXPECT_CLOSE(value, VALUES, 0, 0);
        EXPECT_OK(mica_file_unchanged(o.file));
        EXPECT(mica_data_f32(o.ones) != NULL);
        close_ones(&o);
    }
    mica_file *file = NULL;
    setenv("MICA_MMAP", "no", 1);
    EXPECT_FAILS(mica_file_open(write_ones("wrong.safetensors"), NULL, &file), MICA_ERR_ARGUMENT,
                 "MICA_MMAP is \"no\"");
    unsetenv("MICA_MMAP");
    unlink(file_path("wrong.safetensors"));
}

TEST(what_is_not_a_file_is_refused)
{
    mica_file *file = NULL;
    mica_file_options o;
    mica_file_options_init(&o);
    const char *pipe = file_path("pipe");
    CHECK(mkfifo(pipe, 0666) == 0);
    for (int read = 0; read < 2; read++) {
        o.no_mmap = read;
        EXPECT_FAILS(mica_file_open("/dev/zero", &o, &file), MICA_ERR_FILE, "is a device, not a file");
        EXPECT_FAILS(mica_file_open(pipe, &o, &file), MICA_ERR_FILE, "is a pipe, not a file");
        EXPECT_FAILS(mica_file_open(file_path("none"), &o, &file), MICA_ERR_FILE, "cannot open it");
        EXPECT(mica_file_open(write_text("empty", ""), &o, &file) != MICA_OK);
    }
    unlink(pipe);
    unlink(file_path("empty"));
}
