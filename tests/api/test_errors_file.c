/* Invalid arguments to the file functions: NULL, closed kinds, structs without struct_size.
 * tests/unit/test_io_* test the contents of files.
 *
 * runs: check */
#include "errors.h"
#include "files.h"

BAD_INPUT(files_without_a_file)
{
    mica_file *f = NULL;
    mica_file_options o;
    int64_t i = 0;
    double d = 0;
    bool b = false;
    const char *text = NULL;
    size_t n = 0, at = 0;
    mica_tensor_info info = {.struct_size = sizeof info};
    mica_meta_info meta = {.struct_size = sizeof meta};
    mica_file_options_init(NULL);
    mica_file_options_init(&o);
    EXPECT_FAILS(mica_file_open(NULL, &o, &f), MICA_ERR_ARGUMENT, "file_open");
    EXPECT_FAILS(mica_file_open("x", &o, NULL), MICA_ERR_ARGUMENT, "file_open");
    EXPECT_FAILS(mica_file_open("/nowhere/x", &o, &f), MICA_ERR_FILE, "/nowhere/x");
    EXPECT_FAILS(mica_file_open("", &o, &f), MICA_ERR_FILE, "cannot open");
    EXPECT_FAILS(mica_file_from_memory("x", NULL, 4, &o, &f), MICA_ERR_ARGUMENT, "file_from_memory");
    EXPECT_FAILS(mica_file_from_memory("x", "none", 4, &o, NULL), MICA_ERR_ARGUMENT, "file_from_memory");
    EXPECT_FAILS(mica_file_from_memory("x", "none of these", 13, &o, &f), MICA_ERR_FORMAT, "x");
    o.struct_size = 3;
    EXPECT_FAILS(mica_file_open("x", &o, &f), MICA_ERR_ARGUMENT, "struct_size is 3");
    o.struct_size = sizeof o + 4096;
    EXPECT_FAILS(mica_file_open("x", &o, &f), MICA_ERR_ARGUMENT, "struct_size");
    EXPECT_FAILS(mica_file_unchanged(NULL), MICA_ERR_ARGUMENT, "file_unchanged");
    mica_file_close(NULL);
    EXPECT_STR(mica_file_kind(NULL), "");
    EXPECT_INT(mica_file_tensor_count(NULL) + mica_file_meta_count(NULL) + mica_file_items(NULL, "k"), 0);
    EXPECT(!mica_file_tensor(NULL, 0, &info) && !mica_file_find(NULL, "x", &info));
    EXPECT(!mica_file_meta(NULL, 0, &meta));
    EXPECT(!mica_file_i64(NULL, "k", &i) && !mica_file_f64(NULL, "k", &d) && !mica_file_bool(NULL, "k", &b));
    EXPECT(!mica_file_string(NULL, "k", &text, &n) && !mica_file_next_string(NULL, "k", &at, &text, &n));
    EXPECT(!mica_file_item_i64(NULL, "k", 0, &i) && !mica_file_item_f64(NULL, "k", 0, &d));
}

BAD_INPUT(files_and_NULL)
{
    mica_writer *w = NULL;
    mica_file *f = NULL;
    CHECK_OK(mica_writer_open(file_path("e.gguf"), NULL, &w));
    mica_writer_i64(w, "k", MICA_U8, 1);
    mica_writer_tensor(w, "x", "F32", SHAPE(1), (float[]){1});
    CHECK_OK(mica_writer_finish(w, NULL, NULL));
    CHECK_OK(mica_file_open(file_path("e.gguf"), NULL, &f));
    EXPECT(!mica_file_i64(f, NULL, &(int64_t){0}) && !mica_file_i64(f, "k", NULL) && !mica_file_f64(f, "k", NULL));
    EXPECT(!mica_file_find(f, NULL, NULL) && mica_file_find(f, "x", NULL) && !mica_file_meta(f, 0, NULL));
    BAD(mica_file_array(g.s, NULL, "x"), MICA_ERR_ARGUMENT, "file_array");
    BAD(mica_file_array(g.s, f, NULL), MICA_ERR_ARGUMENT, "file_array");
    BAD(mica_file_array(g.s, f, "y"), MICA_ERR_ARGUMENT, "file_array");
    BAD_SCOPE(mica_file_array(NULL, f, "x"), "file_array");
    mica_file_close(f);
}

BAD_INPUT(writers_without_a_writer)
{
    const mica_meta_info info = {sizeof info, "k", MICA_U8, false, 1, "", 1};
    EXPECT_FAILS(mica_writer_open(NULL, NULL, &(mica_writer *){NULL}), MICA_ERR_ARGUMENT, "writer_open");
    EXPECT_FAILS(mica_writer_open("", NULL, &(mica_writer *){NULL}), MICA_ERR_ARGUMENT, "writer_open");
    EXPECT_FAILS(mica_writer_open("x.gguf", NULL, NULL), MICA_ERR_ARGUMENT, "writer_open");
    EXPECT_FAILS(mica_writer_meta(NULL, &info), MICA_ERR_ARGUMENT, "writer_meta");
    EXPECT_FAILS(mica_writer_i64(NULL, "k", MICA_U8, 1), MICA_ERR_ARGUMENT, "writer_i64");
    EXPECT_FAILS(mica_writer_f64(NULL, "k", MICA_F32, 1), MICA_ERR_ARGUMENT, "writer_f64");
    EXPECT_FAILS(mica_writer_string(NULL, "k", "v", 1), MICA_ERR_ARGUMENT, "writer_string");
    EXPECT_FAILS(mica_writer_array(NULL, "k", MICA_U8, 1, "v"), MICA_ERR_ARGUMENT, "writer_array");
    EXPECT_FAILS(mica_writer_strings(NULL, "k", 0, NULL, NULL), MICA_ERR_ARGUMENT, "writer_strings");
    EXPECT_FAILS(mica_writer_tensor(NULL, "x", "F32", 0, NULL, NULL), MICA_ERR_ARGUMENT, "writer_tensor");
    EXPECT_FAILS(mica_writer_put(NULL, "", 1), MICA_ERR_ARGUMENT, "writer_put");
    EXPECT_FAILS(mica_writer_finish(NULL, NULL, NULL), MICA_ERR_ARGUMENT, "writer_finish");
    mica_writer_abandon(NULL);
}

BAD_INPUT(texts_and_temporary_files)
{
    char *text, name[64];
    size_t length;
    int fd;
    EXPECT_FAILS(mica_text_read(NULL, 0, &text, &length), MICA_ERR_ARGUMENT, "text_read: path is NULL");
    EXPECT_FAILS(mica_text_read("x", 0, NULL, &length), MICA_ERR_ARGUMENT, "text_read: text is NULL");
    EXPECT_FAILS(mica_text_read("x", 0, &text, NULL), MICA_ERR_ARGUMENT, "text_read: length is NULL");
    mica_text_free(NULL);
    EXPECT_FAILS(mica_temporary_create(NULL, name, sizeof name, &fd), MICA_ERR_ARGUMENT, "path is NULL");
    EXPECT_FAILS(mica_temporary_create("x", NULL, 0, &fd), MICA_ERR_ARGUMENT, "name is NULL");
    EXPECT_FAILS(mica_temporary_create("x", name, sizeof name, NULL), MICA_ERR_ARGUMENT, "fd is NULL");
    mica_temporary_done(NULL);
    mica_temporary_done("a name that was never created");
    mica_remove_temporaries();
}

BAD_INPUT(writers_and_NULL)
{
    mica_writer *w = NULL;
#define BAD_WRITE(call, part)                                      \
    do {                                                           \
        CHECK_OK(mica_writer_open(file_path("e.gguf"), NULL, &w)); \
        EXPECT_FAILS(call, MICA_ERR_ARGUMENT, part);               \
        mica_writer_abandon(w);                                    \
    } while (0)
    BAD_WRITE(mica_writer_meta(w, NULL), "writer_meta");
    BAD_WRITE(mica_writer_meta(w, &(mica_meta_info){.key = "k"}), "struct_size");
    BAD_WRITE(mica_writer_i64(w, NULL, MICA_U8, 1), "(NULL)");
    BAD_WRITE(mica_writer_i64(w, "k", (mica_dtype)99, 1), "'k'");
    BAD_WRITE(mica_writer_string(w, "k", NULL, 3), "'k'");
    BAD_WRITE(mica_writer_array(w, "k", MICA_U32, 2, NULL), "'k'");
    BAD_WRITE(mica_writer_strings(w, "k", 1, NULL, NULL), "writer_strings");
    BAD_WRITE(mica_writer_strings(w, "k", 1, (const char *[]){NULL}, NULL), "writer_strings");
    BAD_WRITE(mica_writer_tensor(w, NULL, "F32", 0, NULL, NULL), "writer_tensor");
    BAD_WRITE(mica_writer_tensor(w, "x", NULL, 0, NULL, NULL), "writer_tensor");
    BAD_WRITE(mica_writer_tensor(w, "x", "F32", 1, NULL, NULL), "writer_tensor");
    BAD_WRITE(mica_writer_tensor(w, "x", "F32", 9, (int64_t[9]){0}, NULL), "writer_tensor");
#undef BAD_WRITE
}
