/* Every allocation of every reader and writer fails in turn: the out-of-memory status is returned,
 * nothing leaks, no file remains, and the next try works.
 *
 * runs: check */
#include <dirent.h>

#include "io/model_write.h"
#include "io_files.h"

static float numbers[32];
static const uint32_t alignment = 64;
static const mica__meta metadata[] = {
    {.key = "general.alignment", .type = MICA__META_U32, .count = 1, .data = &alignment, .nbytes = 4},
    {.key = "a", .type = MICA__META_STRING, .count = 1, .data = "x\ny", .nbytes = 3},
};
static mica__out_tensor tensors[40];
static mica__out_file out = {.tensors = tensors, .n_tensors = COUNT(tensors)};

static void prepare(void)
{
    static char names[COUNT(tensors)][16];
    for (size_t i = 0; i < COUNT(tensors); i++) {
        snprintf(names[i], sizeof names[i], "t\"%d", (int)i); /* a name with an escape in JSON */
        tensors[i] = (mica__out_tensor){names[i], MICA__QUANT_F32, 2, {4, 8}, numbers};
    }
}

static int entries(void)
{
    int n = 0;
    DIR *dir = opendir(io_folder());
    while (dir && readdir(dir)) n++;
    if (dir) closedir(dir);
    return n;
}

/* --------------------------------------------------------------- actions --- */

static mica_status write_st(void)
{
    out.meta = metadata + 1, out.n_meta = 1;
    return mica__safetensors_write(io_path("f.safetensors"), &out);
}
static mica_status write_gguf_file(void)
{
    out.meta = metadata, out.n_meta = 2;
    return mica__gguf_write(io_path("f.gguf"), &out);
}
static mica_status write_npz_file(void)
{
    out.n_meta = 0;
    return mica__npz_write(io_path("f.npz"), &out);
}

static mica_status read_file(const char *name)
{
    mica__file *file = NULL;
    const mica_status status = mica__file_open(io_path(name), &(mica__file_options){.check = true}, &file);
    EXPECT((status == MICA_OK) == (file != NULL));
    if (file) EXPECT_INT(mica__file_count(file) > 0, true);
    mica__file_close(file);
    return status;
}
static mica_status read_st(void) { return read_file("f.safetensors"); }
static mica_status read_gguf_file(void) { return read_file("f.gguf"); }
static mica_status read_npz_file(void) { return read_file("f.npz"); }
static mica_status read_deflated(void) { return read_file("deflated.npz"); }
static mica_status read_index_file(void) { return read_file("model.safetensors.index.json"); }
static mica_status read_folder(void) { return read_file("."); }

/* A zip of one deflated array, by the bytes: 5 zeros as u1 in a stored block. */
static void make_deflated(void)
{
    static const char npy[] = "\x93NUMPY\1\0\x37\0{'descr': '|u1', 'fortran_order': False, 'shape': (5,)}\0\0\0\0\0";
    const size_t size = 10 + 55 + 5;
    bytes b = {.n = 0};
    for (int central = 0; central < 2; central++) {
        put(&b, central ? "PK\1\2\x14\0" : "PK\3\4", central ? 6 : 4);
        put_int(&b, 20, 2), put_int(&b, 0, 2), put_int(&b, 8, 2), put_int(&b, 0, 4);
        put_int(&b, 0, 4); /* the checksum, below */
        put_int(&b, size + 5, 4), put_int(&b, size, 4), put_int(&b, 5, 2), put_int(&b, 0, 2);
        if (central) put_zeros(&b, 14);
        put(&b, "x.npy", 5);
        if (central) break;
        put_int(&b, 1, 1), put_int(&b, size, 2), put_int(&b, ~size, 2);
        put(&b, npy, size);
    }
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= (uint8_t)npy[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    crc = ~crc;
    const size_t directory = 30 + 5 + size + 5;
    memcpy(b.data + 14, &crc, 4);
    memcpy(b.data + directory + 16, &crc, 4);
    const size_t length = b.n - directory;
    put(&b, "PK\5\6\0\0\0\0\1\0\1\0", 12), put_int(&b, length, 4), put_int(&b, directory, 4), put_int(&b, 0, 2);
    io_write("deflated.npz", b.data, b.n);
}

static void make_index(void)
{
    char text[2000];
    int n = snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":1},\"weight_map\":{");
    for (int i = 0; i < 40; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s\"t\\\"%d\":\"f.safetensors\"", i ? "," : "", i);
    n += snprintf(text + n, sizeof text - (size_t)n, "}}");
    io_write("model.safetensors.index.json", text, (size_t)n);
}

/* Two parts: the first has the number of parts, both have their own number. */
static mica_status make_parts(void)
{
    static const char *const names[] = {"p-00001-of-00002.gguf", "p-00002-of-00002.gguf"};
    static const uint16_t no[] = {0, 1}, count = 2;
    for (int i = 0; i < 2; i++) {
        const mica__meta meta[] = {
            {.key = "split.no", .type = MICA__META_U16, .count = 1, .data = &no[i], .nbytes = 2},
            {.key = "split.count", .type = MICA__META_U16, .count = 1, .data = &count, .nbytes = 2}};
        const mica__out_file part = {.tensors = tensors + i * 20, .n_tensors = 20, .meta = meta, .n_meta = 2};
        MICA_TRY(mica__gguf_write(io_path(names[i]), &part));
    }
    return MICA_OK;
}
static mica_status read_parts(void) { return read_file("p-00001-of-00002.gguf"); }

static void all_faults(const char *what, mica_status (*action)(void), int at_least)
{
    test_case("%s", what);
    CHECK_MSG(action() == MICA_OK, "undisturbed: %s", mica_last_error());
    const int files = entries();
    for (int n = 1;; n++) {
        const int64_t live = mica__alloc_live();
        mica__alloc_fail_at((uint64_t)n);
        const mica_status status = action();
        mica__alloc_fail_at(0);
        EXPECT_MSG(mica__alloc_live() == live, "allocation %d failed: %d blocks leaked", n,
                   (int)(mica__alloc_live() - live));
        EXPECT_INT(entries(), files);
        if (status == MICA_OK) {
            EXPECT_MSG(n > at_least, "only %d allocations", n - 1);
            break;
        }
        EXPECT_INT(status, MICA_ERR_MEMORY);
        EXPECT_MSG(strstr(mica_last_error(), "memory"), "allocation %d: \"%s\"", n, mica_last_error());
        CHECK(n < 1000);
    }
    EXPECT_INT(action(), MICA_OK);
}

TEST(each_allocation_fails_once)
{
    prepare();
    all_faults("write safetensors", write_st, 5);
    all_faults("write gguf", write_gguf_file, 3);
    all_faults("write npz", write_npz_file, 4);
    all_faults("read safetensors", read_st, 8);
    all_faults("read gguf", read_gguf_file, 8);
    all_faults("read npz", read_npz_file, 7);
    make_deflated();
    all_faults("read a deflated npz", read_deflated, 8);
    make_index();
    all_faults("read shards", read_index_file, 14);
    CHECK_INT(make_parts(), MICA_OK);
    all_faults("read a gguf in parts", read_parts, 12);
    all_faults("read a folder", read_folder, 14);
}
