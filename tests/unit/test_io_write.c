/* Writing: a file appears complete or not at all, and a file that was read is written again as the
 * same bytes.
 *
 * runs: check */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "io/model_write.h"
#include "io_files.h"

/* Files in the folder, hidden ones and temporary ones too. */
static int files_in_folder(void)
{
    int n = 0;
    DIR *dir = opendir(io_folder());
    for (struct dirent *e; dir && (e = readdir(dir));) n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    if (dir) closedir(dir);
    return n;
}

/* ---------------------------------------------------------------- writer --- */

TEST(a_file_appears_whole)
{
    mica__writer w;
    const char *path = io_path("whole");
    const int before = files_in_folder();
    CHECK_INT(mica__writer_open(&w, path), MICA_OK);
    static uint8_t block[200000];
    for (size_t i = 0; i < sizeof block; i++) block[i] = (uint8_t)(i * 7);
    EXPECT_INT(mica__writer_put(&w, block, 10), MICA_OK);
    EXPECT_INT(mica__writer_align(&w, 64), MICA_OK);
    EXPECT_INT(w.total, 64);
    EXPECT_INT(mica__writer_put(&w, block, sizeof block), MICA_OK);
    EXPECT_INT(mica__writer_put(&w, block, 65535), MICA_OK);
    EXPECT_INT(mica__writer_zeros(&w, 10000), MICA_OK);
    EXPECT_INT(mica__writer_patch(&w, 5, "PATCH", 5), MICA_OK);
    EXPECT(access(path, F_OK) != 0); /* does not exist yet */
    EXPECT_INT(files_in_folder(), before + 1);
    EXPECT_INT(mica__writer_finish(&w), MICA_OK);
    EXPECT_INT(files_in_folder(), before + 1);
    size_t n;
    uint8_t *data = io_read(path, &n);
    CHECK(data != NULL);
    EXPECT_INT(n, 64 + sizeof block + 65535 + 10000);
    EXPECT(memcmp(data, block, 5) == 0 && memcmp(data + 5, "PATCH", 5) == 0 && data[10] == 0 && data[63] == 0);
    EXPECT(memcmp(data + 64, block, sizeof block) == 0 && memcmp(data + 64 + sizeof block, block, 65535) == 0);
    EXPECT(data[n - 1] == 0);
    free(data);
    mica__map map;
    CHECK_INT(mica__map_open(path, &map), MICA_OK);
    EXPECT_INT(map.span.size, n);
    mica__map_close(&map);
}

TEST(an_abandoned_file_leaves_nothing)
{
    mica__writer w;
    const int before = files_in_folder();
    const int64_t live = mica__alloc_live();
    CHECK_INT(mica__writer_open(&w, io_path("abandoned")), MICA_OK);
    EXPECT_INT(mica__writer_put(&w, "x", 1), MICA_OK);
    mica__writer_abandon(&w);
    EXPECT_INT(files_in_folder(), before);
    EXPECT_INT(mica__writer_put(&w, "x", 1), MICA_ERR_STATE);
    EXPECT_INT(mica__writer_finish(&w), MICA_ERR_STATE);
    mica__writer_abandon(&w);
    EXPECT_INT(mica__alloc_live(), live);
}

TEST(places_where_nothing_can_be_written)
{
    mica__writer w;
    const int64_t live = mica__alloc_live();
    EXPECT_INT(mica__writer_open(&w, io_path("no/such/folder")), MICA_ERR_FILE);
    EXPECT(strstr(mica_last_error(), "no/such/folder: cannot create it: No such file"));
    /* a folder with the final name appears: reported at the rename */
    const char *path = io_path("taken");
    const int before = files_in_folder();
    CHECK_INT(mica__writer_open(&w, path), MICA_OK);
    CHECK(mkdir(path, 0777) == 0);
    EXPECT_INT(mica__writer_finish(&w), MICA_ERR_FILE);
    EXPECT(strstr(mica_last_error(), "cannot rename it"));
    rmdir(path);
    EXPECT_INT(files_in_folder(), before);
    EXPECT_INT(mica__alloc_live(), live);
}

/* A limit on the size of files simulates a full disk. */
static void full_disk(const char *what, mica_status (*write)(const char *path))
{
    test_case("%s", what);
    const char *path = io_write("precious", "old", 3);
    const int before = files_in_folder();
    const int64_t live = mica__alloc_live();
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 100000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const mica_status status = write(path);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    EXPECT_INT(status, MICA_ERR_FILE);
    EXPECT_MSG(strstr(mica_last_error(), "precious: cannot write after"), "\"%s\"", mica_last_error());
    EXPECT(io_same_bytes(path, "old", 3));
    EXPECT_INT(files_in_folder(), before);
    EXPECT_INT(mica__alloc_live(), live);
}

static uint8_t big_data[300000];
static const mica__out_tensor big = {"w", MICA__QUANT_U8, 1, {sizeof big_data}, big_data};
static const mica__out_file big_file = {.tensors = &big, .n_tensors = 1};

static mica_status write_pieces(const char *path)
{
    mica__writer w;
    mica_status status = mica__writer_open(&w, path);
    for (int i = 0; i < 400 && status == MICA_OK; i++) status = mica__writer_put(&w, big_data, 1000);
    /* the error is permanent */
    EXPECT_INT(mica__writer_put(&w, "x", 1), status);
    EXPECT_INT(mica__writer_finish(&w), status);
    return status;
}
static mica_status write_big_safetensors(const char *path) { return mica__safetensors_write(path, &big_file); }
static mica_status write_big_gguf(const char *path)
{
    static const mica__out_tensor t = {"w", MICA__QUANT_I8, 1, {sizeof big_data}, big_data};
    return mica__gguf_write(path, &(mica__out_file){.tensors = &t, .n_tensors = 1});
}
static mica_status write_big_npz(const char *path) { return mica__npz_write(path, &big_file); }
static mica_status write_big_npy(const char *path) { return mica__npy_write(path, &big); }

/* A rename would replace a device by a file. */
TEST(devices_are_not_replaced)
{
    mica__writer w;
    struct stat info;
    const char *path = io_path("device");
    CHECK_INT(symlink("/dev/null", path), 0);
    EXPECT_INT(mica__writer_open(&w, path), MICA_ERR_FILE);
    EXPECT(strstr(mica_last_error(), "not a regular file") != NULL);
    EXPECT(lstat(path, &info) == 0 && S_ISLNK(info.st_mode));
    EXPECT_INT(remove(path), 0);
}

TEST(a_full_disk)
{
    full_disk("pieces", write_pieces);
    full_disk("safetensors", write_big_safetensors);
    full_disk("gguf", write_big_gguf);
    full_disk("npz", write_big_npz);
    full_disk("npy", write_big_npy);
}

/* ------------------------------------------------------------------ maps --- */

/* Returns whether the mapping at the address is shared, by the list of the system; true where there is none. */
static bool is_shared(const void *address)
{
    FILE *list = fopen("/proc/self/maps", "r");
    char line[512];
    bool shared = !list;
    while (list && fgets(line, sizeof line, list)) {
        unsigned long start, end;
        char kind[8] = "";
        if (sscanf(line, "%lx-%lx %7s", &start, &end, kind) == 3 && start <= (uintptr_t)address &&
            (uintptr_t)address < end)
            shared = kind[3] == 's';
    }
    if (list) fclose(list);
    return shared;
}

TEST(maps)
{
    mica__map map;
    EXPECT_INT(mica__map_open(io_path("not there"), &map), MICA_ERR_FILE);
    EXPECT(strstr(mica_last_error(), "not there: cannot open it: No such file"));
    EXPECT_INT(mica__map_open(io_folder(), &map), MICA_ERR_FILE);
    EXPECT(strstr(mica_last_error(), "is a folder"));
    EXPECT_INT(mica__map_open("/dev/null", &map), MICA_ERR_FILE);
    EXPECT(strstr(mica_last_error(), "is a device"));
    const char *path = io_path("pipe");
    if (mkfifo(path, 0666) == 0) EXPECT_INT(mica__map_open(path, &map), MICA_ERR_FILE); /* and does not wait */
    path = io_write("empty", "", 0);
    CHECK_INT(mica__map_open(path, &map), MICA_OK);
    EXPECT(map.span.size == 0 && map.span.data != NULL);
    mica__map_close(&map);
    mica__map_close(&map);
    path = io_write("some", "some bytes", 10);
    CHECK_INT(mica__map_open(path, &map), MICA_OK);
    EXPECT(map.span.size == 10 && memcmp(map.span.data, "some bytes", 10) == 0);
    EXPECT(is_shared(map.span.data));
    EXPECT_INT(mica__map_check(&map, path), MICA_OK);
    io_write("some", "other", 5);
    EXPECT_INT(mica__map_check(&map, path), MICA_ERR_FILE);
    EXPECT(strstr(mica_last_error(), "10 bytes when opened, 5 now"));
    mica__map_close(&map);
    mica__file *file;
    EXPECT_INT(mica__file_open(io_path("not there"), NULL, &file), MICA_ERR_FILE);
    EXPECT(file == NULL);
    EXPECT_INT(mica__file_open(io_folder(), NULL, &file), MICA_ERR_FILE);
    EXPECT(strstr(mica_last_error(), "no model.safetensors"));
}

TEST(quoting)
{
    char buffer[MICA__QUOTE_TEXT];
    EXPECT_STR(mica__quote(buffer, "blk.0.w", 7), "'blk.0.w'");
    EXPECT_STR(mica__quote(buffer, "a\x1b[31m\xff", 7), "'a\\x1b[31m\\xff'");
    char worst[500];
    memset(worst, 1, sizeof worst);
    EXPECT_INT(strlen(mica__quote(buffer, worst, sizeof worst)), 80 * 4 + 5);
}

/* ----------------------------------------------------------- round trips --- */

/* Copies every tensor and every metadata entry of a file. */
static void as_read(const mica__file *f, mica__out_file *out, mica__out_tensor *tensors, mica__meta *meta)
{
    *out = (mica__out_file){
        .tensors = tensors, .n_tensors = mica__file_count(f), .meta = meta, .n_meta = mica__file_meta_count(f)};
    for (size_t i = 0; i < out->n_tensors; i++) {
        const mica__stored *t = mica__file_tensor(f, i);
        tensors[i] = (mica__out_tensor){t->name, t->type, t->ndim, {0}, t->data};
        memcpy(tensors[i].shape, t->shape, sizeof t->shape);
    }
    for (size_t i = 0; i < out->n_meta; i++) meta[i] = *mica__file_meta(f, i);
}

static float numbers[64];
static const mica__out_tensor sample[] = {
    {"b.weight", MICA__QUANT_F32, 2, {4, 8}, numbers}, {"a.weight", MICA__QUANT_F32, 1, {3}, numbers},
    {"half", MICA__QUANT_F16, 3, {2, 1, 3}, numbers},  {"scalar", MICA__QUANT_I64, 0, {0}, numbers},
    {"bytes", MICA__QUANT_I8, 1, {5}, numbers},        {"empty", MICA__QUANT_F32, 2, {0, 7}, NULL},
};

static void same_tensors(const mica__file *f)
{
    EXPECT_INT(mica__file_count(f), COUNT(sample));
    for (size_t i = 0; i < COUNT(sample); i++) {
        const mica__stored *t = mica__file_find(f, sample[i].name);
        if (!EXPECT_MSG(t != NULL, "no %s", sample[i].name)) continue;
        EXPECT(t->type == sample[i].type && t->ndim == sample[i].ndim);
        for (int d = 0; d < t->ndim; d++) EXPECT_INT(t->shape[d], sample[i].shape[d]);
        EXPECT(t->nbytes == 0 || memcmp(t->data, sample[i].data, t->nbytes) == 0);
    }
}

typedef mica_status write_fn(const char *path, const mica__out_file *out);

static void round_trip(const char *what, write_fn *write, const mica__out_file *out, mica__file_kind kind)
{
    test_case("%s", what);
    for (int i = 0; i < 64; i++) numbers[i] = (float)i / 3;
    const char *first = io_path("first"), *second = io_path("second");
    CHECK_MSG(write(first, out) == MICA_OK, "%s", mica_last_error());
    mica__file *f;
    CHECK_MSG(mica__file_open(first, &(mica__file_options){.check = true}, &f) == MICA_OK, "%s", mica_last_error());
    EXPECT_INT(mica__file_get_kind(f), kind);
    same_tensors(f);
    EXPECT_INT(mica__file_meta_count(f), out->n_meta);
    mica__out_file again;
    mica__out_tensor tensors[COUNT(sample)];
    mica__meta meta[16];
    as_read(f, &again, tensors, meta);
    CHECK_MSG(write(second, &again) == MICA_OK, "%s", mica_last_error());
    mica__file_close(f);
    size_t n;
    uint8_t *bytes_of_first = io_read(first, &n);
    EXPECT(io_same_bytes(second, bytes_of_first, n));
    free(bytes_of_first);
}

static const uint32_t one_u32 = 7, sixteen = 64;
static const double one_f64 = 0.25;
static const uint8_t texts[] = "\1\0\0\0\0\0\0\0a\0\0\0\0\0\0\0\0";
static const mica__meta strings[] = {
    {.key = "format", .type = MICA__META_STRING, .count = 1, .data = "pt", .nbytes = 2},
    {.key = "quo\"te", .type = MICA__META_STRING, .count = 1, .data = "\\ \" \n \x01 \xc3\xa9", .nbytes = 10},
};
static const mica__meta typed[] = {
    {.key = "general.architecture", .type = MICA__META_STRING, .count = 1, .data = "llama", .nbytes = 5},
    {.key = "general.alignment", .type = MICA__META_U32, .count = 1, .data = &sixteen, .nbytes = 4},
    {.key = "x.u32", .type = MICA__META_U32, .count = 1, .data = &one_u32, .nbytes = 4},
    {.key = "x.f64", .type = MICA__META_F64, .count = 1, .data = &one_f64, .nbytes = 8},
    {.key = "x.list", .type = MICA__META_ARRAY, .item = MICA__META_U8, .count = 3, .data = "abc", .nbytes = 3},
    {.key = "x.texts", .type = MICA__META_ARRAY, .item = MICA__META_STRING, .count = 2, .data = texts, .nbytes = 17},
    {.key = "x.none", .type = MICA__META_ARRAY, .item = MICA__META_STRING, .count = 0, .data = "", .nbytes = 0},
};

TEST(round_trips)
{
    mica__out_file out = {.tensors = sample, .n_tensors = COUNT(sample)};
    round_trip("npz", mica__npz_write, &out, MICA__FILE_NPZ);
    round_trip("safetensors", mica__safetensors_write, &out, MICA__FILE_SAFETENSORS);
    out.meta = strings, out.n_meta = COUNT(strings);
    round_trip("safetensors with metadata", mica__safetensors_write, &out, MICA__FILE_SAFETENSORS);
    out.meta = typed, out.n_meta = COUNT(typed);
    round_trip("gguf", mica__gguf_write, &out, MICA__FILE_GGUF);
    out.n_meta = 0;
    round_trip("gguf without metadata", mica__gguf_write, &out, MICA__FILE_GGUF);
}

/* Widest dtype first, then by name; the header padded to 8; data without gaps. */
TEST(safetensors_bytes)
{
    static const uint16_t h[1] = {0x1234};
    static const uint8_t u[2] = {1, 2};
    const mica__out_tensor t[] = {
        {"b", MICA__QUANT_U8, 1, {2}, u}, {"h", MICA__QUANT_F16, 1, {1}, h}, {"a", MICA__QUANT_U8, 1, {2}, u}};
    const char *path = io_path("bytes");
    CHECK_INT(mica__safetensors_write(path, &(mica__out_file){.tensors = t, .n_tensors = 3}), MICA_OK);
    static const char header[] = "{\"h\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]},"
                                 "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]},"
                                 "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]}}";
    bytes b = {.n = 0};
    const size_t n = (strlen(header) + 7) / 8 * 8;
    put_int(&b, n, 8);
    put(&b, header, strlen(header));
    while (b.n < n + 8) put(&b, " ", 1);
    put(&b, "\x34\x12\1\2\1\2", 6);
    EXPECT(io_same_bytes(path, b.data, b.n));
}

/* ------------------------------------------------------------- producers --- */

typedef struct producer {
    size_t give;  /* bytes written for each tensor */
    mica_status status;
    int calls;
} producer;

static mica_status produce(void *user, size_t i, mica__writer *w)
{
    producer *p = user;
    p->calls++;
    const uint8_t value = (uint8_t)('A' + i);
    for (size_t k = 0; k < p->give; k++) MICA_TRY(mica__writer_put(w, &value, 1));
    return p->status == MICA_OK ? MICA_OK : mica__fail(p->status, "the producer gave up");
}

TEST(data_from_a_function)
{
    const mica__out_tensor t[] = {{"x", MICA__QUANT_I8, 1, {10}, NULL}, {"y", MICA__QUANT_I8, 1, {10}, NULL}};
    static write_fn *const writers[] = {mica__safetensors_write, mica__gguf_write};
    for (int k = 0; k < 2; k++) {
        test_case("%s", k ? "gguf" : "safetensors");
        producer p = {.give = 10};
        mica__out_file out = {.tensors = t, .n_tensors = 2, .produce = produce, .user = &p};
        const char *path = io_path("produced");
        mica__file *f;
        CHECK_INT(writers[k](path, &out), MICA_OK);
        EXPECT_INT(p.calls, 2);
        CHECK_INT(mica__file_open(path, NULL, &f), MICA_OK);
        EXPECT(memcmp(mica__file_find(f, "y")->data, "BBBBBBBBBB", 10) == 0);
        mica__file_close(f);
        const int before = files_in_folder();
        p.give = 9; /* too few, too many: bytes past the caller's memory are never read */
        EXPECT_INT(writers[k](io_path("short"), &out), MICA_ERR_INTERNAL);
        EXPECT(strstr(mica_last_error(), "tensor 'x' has 10 bytes, 9 were written"));
        p.give = 11;
        EXPECT_INT(writers[k](io_path("long"), &out), MICA_ERR_INTERNAL);
        p.give = 10, p.status = MICA_ERR_ARGUMENT;
        EXPECT_INT(writers[k](io_path("failed"), &out), MICA_ERR_ARGUMENT);
        EXPECT_STR(mica_last_error(), "the producer gave up");
        out.produce = NULL;
        EXPECT_INT(writers[k](io_path("nothing"), &out), MICA_ERR_ARGUMENT);
        EXPECT_INT(files_in_folder(), before);
    }
    const mica__out_file out = {.tensors = t, .n_tensors = 1};
    EXPECT_INT(mica__npz_write(io_path("nothing"), &out), MICA_ERR_UNSUPPORTED);
}

/* -------------------------------------------------------------- refusals --- */

static void cannot(write_fn *write, mica__out_tensor t, const mica__meta *meta, mica_status status, const char *part)
{
    const int before = files_in_folder();
    const int64_t live = mica__alloc_live();
    const mica__out_file out = {.tensors = &t, .n_tensors = 1, .meta = meta, .n_meta = meta ? 1 : 0};
    EXPECT_INT(write(io_path("refused"), &out), status);
    EXPECT_MSG(strstr(mica_last_error(), part), "no \"%s\" in \"%s\"", part, mica_last_error());
    EXPECT_INT(files_in_folder(), before);
    EXPECT_INT(mica__alloc_live(), live);
}

TEST(what_cannot_be_written)
{
    const mica__out_tensor good = {"w", MICA__QUANT_F32, 1, {4}, numbers};
    mica__out_tensor t = good;
    t.type = MICA__QUANT_Q4_K;
    t.shape[0] = 256;
    cannot(mica__safetensors_write, t, NULL, MICA_ERR_UNSUPPORTED, "no type Q4_K");
    cannot(mica__npz_write, t, NULL, MICA_ERR_UNSUPPORTED, "no type Q4_K");
    t.shape[0] = 100;
    cannot(mica__gguf_write, t, NULL, MICA_ERR_ARGUMENT, "cannot be stored as Q4_K");
    t = good, t.type = MICA__QUANT_BF16;
    cannot(mica__npz_write, t, NULL, MICA_ERR_UNSUPPORTED, "store it as f32 or as safetensors");
    t.type = MICA__QUANT_U8;
    cannot(mica__gguf_write, t, NULL, MICA_ERR_UNSUPPORTED, "no type U8");
    t = good, t.ndim = 5;
    memcpy(t.shape, (int64_t[]){1, 1, 1, 1, 4}, 40);
    cannot(mica__gguf_write, t, NULL, MICA_ERR_UNSUPPORTED, "5 dimensions");
    t.ndim = 9;
    cannot(mica__safetensors_write, t, NULL, MICA_ERR_ARGUMENT, "9 dimensions");
    t = good, t.shape[0] = -4;
    cannot(mica__safetensors_write, t, NULL, MICA_ERR_ARGUMENT, "(-4)");
    t = good, t.name = "\xff";
    cannot(mica__safetensors_write, t, NULL, MICA_ERR_ARGUMENT, "name");
    t.name = "__metadata__";
    cannot(mica__safetensors_write, t, NULL, MICA_ERR_ARGUMENT, "name");
    t.name = "";
    cannot(mica__gguf_write, t, NULL, MICA_ERR_UNSUPPORTED, "name of 0 bytes");
    t.name = "../x";
    cannot(mica__npz_write, t, NULL, MICA_ERR_ARGUMENT, "name");
    cannot(mica__safetensors_write, good, &typed[2], MICA_ERR_UNSUPPORTED, "is not a string");
    cannot(mica__npz_write, good, &typed[0], MICA_ERR_UNSUPPORTED, "no metadata");
    mica__meta m = typed[2];
    m.nbytes = 400; /* more than the value has */
    cannot(mica__gguf_write, good, &m, MICA_ERR_ARGUMENT, "'x.u32'");
    m = typed[4], m.count = 4;
    cannot(mica__gguf_write, good, &m, MICA_ERR_ARGUMENT, "'x.list'");
    m = typed[5], m.count = 3;
    cannot(mica__gguf_write, good, &m, MICA_ERR_ARGUMENT, "'x.texts'");
    m = typed[5], m.nbytes = 16;
    cannot(mica__gguf_write, good, &m, MICA_ERR_ARGUMENT, "'x.texts'");
    m = typed[1], m.type = MICA__META_I32;
    cannot(mica__gguf_write, good, &m, MICA_ERR_ARGUMENT, "general.alignment");
    /* the same name twice, with types that are not adjacent when sorted */
    const mica__out_tensor two[] = {{"w", MICA__QUANT_F32, 1, {4}, numbers},
                                    {"v", MICA__QUANT_F16, 1, {4}, numbers},
                                    {"w", MICA__QUANT_I8, 1, {4}, numbers}};
    const mica__out_file out = {.tensors = two, .n_tensors = 3};
    static write_fn *const writers[] = {mica__safetensors_write, mica__gguf_write, mica__npz_write};
    for (size_t i = 0; i < COUNT(writers); i++) {
        EXPECT_INT(writers[i](io_path("twice"), &out), MICA_ERR_ARGUMENT);
        EXPECT(strstr(mica_last_error(), "'w' is used twice"));
    }
}

/* ----------------------------------------------------- files of the world -- */

static void rewrite(const char *path)
{
    mica__file *f;
    CHECK_INT(mica__file_open(path, NULL, &f), MICA_OK);
    mica__out_file out;
    mica__out_tensor tensors[4];
    static mica__meta meta[64];
    CHECK(mica__file_count(f) <= COUNT(tensors) && mica__file_meta_count(f) <= COUNT(meta));
    as_read(f, &out, tensors, meta);
    const bool gguf = mica__file_get_kind(f) == MICA__FILE_GGUF;
    CHECK_INT((gguf ? mica__gguf_write : mica__safetensors_write)(io_path("again"), &out), MICA_OK);
    mica__file_close(f);
    size_t n;
    uint8_t *original = io_read(path, &n);
    EXPECT_MSG(io_same_bytes(io_path("again"), original, n), "other bytes");
    free(original);
}

TEST(rewriting_files_of_others)
{
    static const char *const fixtures[] = {"formats/codes.safetensors", "tokenizers/spm.gguf", "tokenizers/bpe.gguf",
                                           "formats/empty.gguf"};
    for (size_t i = 0; i < COUNT(fixtures); i++) {
        test_case("%s", fixtures[i]);
        CHECK(io_fixture(fixtures[i]));
        rewrite(io_fixture(fixtures[i]));
    }
    static const char *const names[] = {"formats/jfk-codes.safetensors", "tokenizers/ggml-vocab-phi-3.gguf",
                                        "tokenizers/ggml-vocab-gpt-2.gguf", "formats/wi-empty.gguf"};
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *path = io_data(names[i]);
        if (!path) continue;
        test_case("%s", names[i]);
        rewrite(path);
    }
}
