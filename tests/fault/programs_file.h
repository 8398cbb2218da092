/* Programs that write and read model files; see programs.h. Files are written to a folder of this
 * process; the last program leaves it empty. */
#ifndef MICA_TEST_FAULT_PROGRAMS_FILE_H
#define MICA_TEST_FAULT_PROGRAMS_FILE_H

#include <sys/stat.h>

static mica_status write_x(mica_writer *w, size_t tensor, void *user)
{
    (void)user;
    return mica_writer_put(w, &numbers[8 * tensor], 32);
}

static mica_status write_model(const char *path)
{
    mica_writer *w;
    mica_status status = mica_writer_open(path, "gguf", &w);
    if (status != MICA_OK) return status;
    mica_writer_string(w, "general.architecture", "test", 4);
    mica_writer_i64(w, "n", MICA_U32, 7);
    mica_writer_f64(w, "f", MICA_F32, 0.5);
    mica_writer_i64(w, "yes", MICA_BOOL, 1);
    mica_writer_array(w, "list", MICA_F32, 2, numbers);
    mica_writer_strings(w, "texts", 2, (const char *[]){"a", "bc"}, NULL);
    mica_writer_meta(w, &(mica_meta_info){sizeof(mica_meta_info), "u", MICA_U8, false, 1, "\7", 1});
    mica_writer_tensor(w, "x", "F32", SHAPE(8), NULL);
    mica_writer_tensor(w, "y", "F32", SHAPE(2, 4), numbers);
    return mica_writer_finish(w, write_x, NULL);
}

static void digest_file(task *t, const mica_file *f)
{
    int64_t i = 0;
    double d = 0;
    bool yes = false;
    size_t at = 0, n = 0;
    const char *text;
    mica_tensor_info info = {.struct_size = sizeof info};
    mica_meta_info meta = {.struct_size = sizeof meta};
    t->digest +=
        (double)mica_file_tensor_count(f) + (double)mica_file_items(f, "list") + (double)strlen(mica_file_kind(f));
    for (size_t k = 0; mica_file_meta(f, k, &meta); k++) t->digest += (double)meta.nbytes;
    t->digest += mica_file_tensor(f, 0, &info) + mica_file_find(f, "y", &info) + (double)mica_file_meta_count(f);
    t->digest += mica_file_i64(f, "n", &i) + mica_file_f64(f, "f", &d) + mica_file_bool(f, "yes", &yes);
    t->digest += mica_file_item_f64(f, "list", 1, &d) + mica_file_item_i64(f, "list", 1, &i);
    t->digest +=
        mica_file_string(f, "general.architecture", &text, &n) + mica_file_next_string(f, "texts", &at, &text, &n);
    t->digest += d + (double)i + (double)n;
}

/* Reads a text; creates and removes a temporary file. */
static mica_status read_and_create(task *t, const char *path)
{
    char *text, name[256];
    size_t length;
    int fd;
    mica_status status = mica_text_read(path, 0, &text, &length);
    if (status != MICA_OK) return status;
    t->digest += (double)length;
    mica_text_free(text);
    if ((status = mica_temporary_create(path, name, sizeof name, &fd)) != MICA_OK) return status;
    (void)close(fd);
    mica_remove_temporaries();
    mica_temporary_done(name);
    return MICA_OK;
}

static mica_status program_file(task *t)
{
    char folder[] = "/tmp/mica-fault-XXXXXX", path[64], config[64];
    mica_file *f = NULL;
    mica_writer *unused;
    mica_file_options o;
    if (!mkdtemp(folder)) return MICA_ERR_FILE;
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    snprintf(config, sizeof config, "%s/config.json", folder);
    FILE *json = fopen(config, "w");
    if (json) fputs("{\"a\": [1, \"\\n\", {\"b\": [\"x\", \"\\u00e9\"]}], \"c\": true}", json), fclose(json);
    mica_file_options_init(&o);
    o.check = true;
    mica_status status = write_model(path);
    if (status == MICA_OK) status = mica_file_open(folder, &o, &f);
    if (status == MICA_OK) status = mica_file_unchanged(f);
    if (status == MICA_OK) {
        digest_file(t, f);
        mica_array *x = mica_file_array(t->s, f, "x"), *y = mica_file_array(t->s, f, "y");
        mica_file_close(f);
        status = FINISH(t, mica_sum(t->s, x, NULL, 0, false), y);
    }
    if (status == MICA_OK && (status = mica_writer_open(path, NULL, &unused)) == MICA_OK) mica_writer_abandon(unused);
    static const char empty[] = "\2\0\0\0\0\0\0\0{}"; /* safetensors without a tensor */
    if (status == MICA_OK && (status = mica_file_from_memory("empty", empty, 10, &o, &f)) == MICA_OK)
        mica_file_close(f);
    if (status == MICA_OK) status = read_and_create(t, config);
    if (status == MICA_OK) { /* the same file, read instead of mapped */
        o.no_mmap = true;
        status = mica_file_open(folder, &o, &f);
        if (status == MICA_OK) mica_file_close(f);
    }
    (void)unlink(path);
    (void)unlink(config);
    (void)rmdir(folder);
    return status;
}

#endif
