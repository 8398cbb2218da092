/* safetensors and its index: what is read, and every malformed file of the reference.
 *
 * runs: check */
#include "io_files.h"

static bytes made;

/* The length, the header, and so many bytes of data. */
static const bytes *with_header(const char *header, size_t data)
{
    made.n = 0;
    put_int(&made, strlen(header), 8);
    put(&made, header, strlen(header));
    for (size_t i = 0; i < data; i++) put(&made, &(uint8_t){(uint8_t)i}, 1);
    return &made;
}

TEST(reads)
{
    mica__file *file;
    uint8_t *block;
    with_header(
        "{\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[4,28]},"
        "\"__metadata__\":{\"format\":\"pt\",\"note\":\"a\\nb\"},"
        "\"a\":{\"data_offsets\":[0,4],\"shape\":[],\"dtype\":\"I32\"},"
        "\"empty\":{\"dtype\":\"F64\",\"shape\":[0,9223372036854775807],\"data_offsets\":[28,28],\"new\":{\"x\":1}},"
        "\"f8\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[28,31]}}   ",
        31);
    CHECK_INT(open_bytes(&made, NULL, &file, &block), MICA_OK);
    EXPECT_INT(mica__file_get_kind(file), MICA__FILE_SAFETENSORS);
    CHECK_INT(mica__file_count(file), 4);
    /* in the order of the data */
    static const char *const names[] = {"a", "b", "empty", "f8"};
    for (size_t i = 0; i < 4; i++) {
        EXPECT_STR(mica__file_tensor(file, i)->name, names[i]);
        EXPECT(mica__file_find(file, names[i]) == mica__file_tensor(file, i));
    }
    EXPECT(mica__file_find(file, "c") == NULL && mica__file_tensor(file, 4) == NULL);
    const mica__stored *b = mica__file_find(file, "b");
    EXPECT_INT(b->type, MICA__QUANT_F32);
    EXPECT_INT(b->ndim, 2);
    EXPECT(b->shape[0] == 2 && b->shape[1] == 3 && b->stride[0] == 3 && b->stride[1] == 1);
    EXPECT_INT(b->nbytes, 24);
    EXPECT(((const uint8_t *)b->data)[0] == 4 && b->data == block + b->offset);
    EXPECT_INT(mica__file_find(file, "a")->ndim, 0);
    const char *text;
    size_t length;
    EXPECT_INT(mica__file_meta_count(file), 2);
    EXPECT(mica__meta_string(file, "note", &text, &length) && length == 3 && memcmp(text, "a\nb", 3) == 0);
    EXPECT(!mica__meta_string(file, "nothing", &text, &length));
    EXPECT_INT(mica__file_unchanged(file), MICA_OK);
    mica__file *kept = mica__file_keep(file);
    mica__file_close(file);
    EXPECT_INT(mica__file_count(kept), 4);
    mica__file_close(kept);
    free(block);
}

#define TENSOR(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

TEST(refused_headers)
{
    static const struct {
        const char *header;
        size_t data;
        mica_status status;
        const char *parts;
    } rows[] = {
        /* overlap, holes, trailing and missing bytes */
        {"{" TENSOR("a", "U8", "[4]", "[0,4]") "," TENSOR("b", "U8", "[4]", "[2,6]") "}", 6, MICA_ERR_FORMAT,
         "tensor 'b'|begin at 2|inside"},
        {"{" TENSOR("a", "U8", "[4]", "[0,4]") "," TENSOR("b", "U8", "[4]", "[0,4]") "}", 4, MICA_ERR_FORMAT,
         "tensor 'b'|inside"},
        {"{" TENSOR("a", "U8", "[4]", "[0,4]") "," TENSOR("b", "U8", "[4]", "[5,9]") "}", 9, MICA_ERR_FORMAT,
         "tensor 'b'|gap|4"},
        {"{" TENSOR("a", "U8", "[4]", "[1,5]") "}", 5, MICA_ERR_FORMAT, "tensor 'a'|gap"},
        {"{" TENSOR("a", "U8", "[4]", "[0,4]") "}", 5, MICA_ERR_FORMAT, "1 bytes follow"},
        {"{" TENSOR("a", "U8", "[4]", "[0,4]") "}", 3, MICA_ERR_FORMAT, "tensor 'a'|0 to 4|3 bytes"},
        {"{}", 1, MICA_ERR_FORMAT, "1 bytes follow"},
        {"{" TENSOR("a", "U8", "[4]", "[4,0]") "}", 4, MICA_ERR_FORMAT, "4 to 0"},
        /* shape and offsets that disagree, sizes that overflow */
        {"{" TENSOR("a", "F32", "[2,2]", "[0,15]") "}", 15, MICA_ERR_FORMAT, "tensor 'a'|16|15"},
        {"{" TENSOR("a", "F32", "[4294967296,4294967296]", "[0,0]") "}", 0, MICA_ERR_FORMAT, "tensor 'a'|too large"},
        {"{" TENSOR("a", "F32", "[4611686018427387904]", "[0,0]") "}", 0, MICA_ERR_FORMAT, "tensor 'a'|too large"},
        {"{" TENSOR("a", "F4", "[3]", "[0,1]") "}", 1, MICA_ERR_FORMAT, "tensor 'a'|blocks of 2 F4"},
        {"{" TENSOR("a", "F6_E2M3", "[2]", "[0,1]") "}", 1, MICA_ERR_FORMAT, "blocks of 4"},
        /* invalid integers */
        {"{" TENSOR("a", "U8", "[-1]", "[0,0]") "}", 0, MICA_ERR_FORMAT, "plain digits"},
        {"{" TENSOR("a", "U8", "[1.0]", "[0,1]") "}", 1, MICA_ERR_FORMAT, "plain digits"},
        {"{" TENSOR("a", "U8", "[1e0]", "[0,1]") "}", 1, MICA_ERR_FORMAT, "plain digits"},
        {"{" TENSOR("a", "U8", "[1]", "[0,1e0]") "}", 1, MICA_ERR_FORMAT, "plain digits"},
        {"{" TENSOR("a", "U8", "[9223372036854775808]", "[0,1]") "}", 1, MICA_ERR_FORMAT, "63 bits"},
        {"{" TENSOR("a", "U8", "[1]", "[0,18446744073709551617]") "}", 1, MICA_ERR_FORMAT, "63 bits"},
        /* shapes and offsets of another kind */
        {"{" TENSOR("a", "U8", "4", "[0,4]") "}", 4, MICA_ERR_FORMAT, "shape"},
        {"{" TENSOR("a", "U8", "[[4]]", "[0,4]") "}", 4, MICA_ERR_FORMAT, "shape"},
        {"{" TENSOR("a", "U8", "[\"4\"]", "[0,4]") "}", 4, MICA_ERR_FORMAT, "shape"},
        {"{" TENSOR("a", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, MICA_ERR_FORMAT, "at most 8"},
        {"{" TENSOR("a", "U8", "[1]", "[0]") "}", 1, MICA_ERR_FORMAT, "two sizes"},
        {"{" TENSOR("a", "U8", "[1]", "[0,1,2]") "}", 1, MICA_ERR_FORMAT, "two sizes"},
        {"{\"a\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, MICA_ERR_FORMAT, "dtype"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, MICA_ERR_FORMAT, "tensor 'a'|no dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, MICA_ERR_FORMAT, "no shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, MICA_ERR_FORMAT, "no data_offsets"},
        {"{\"a\":[]}", 0, MICA_ERR_FORMAT, "object"},
        {"{\"a\":1}", 0, MICA_ERR_FORMAT, "object"},
        {"{" TENSOR("a", "F7", "[1]", "[0,1]") "}", 1, MICA_ERR_FORMAT, "tensor 'a'|'F7'"},
        {"{" TENSOR("a", "f32", "[1]", "[0,4]") "}", 4, MICA_ERR_FORMAT, "'f32'"},
        /* names */
        {"{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("a", "U8", "[1]", "[1,2]") "}", 2, MICA_ERR_FORMAT, "twice"},
        {"{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("\\u0061", "U8", "[1]", "[1,2]") "}", 2, MICA_ERR_FORMAT,
         "twice"},
        {"{" TENSOR("a\\u0000b", "U8", "[1]", "[0,1]") "}", 1, MICA_ERR_FORMAT, "zero byte|a\\x00b"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, MICA_ERR_FORMAT,
         "twice"},
        /* metadata */
        {"{\"__metadata__\":{\"a\":1}}", 0, MICA_ERR_FORMAT, "strings"},
        {"{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", 0, MICA_ERR_FORMAT, "strings"},
        {"{\"__metadata__\":[]}", 0, MICA_ERR_FORMAT, "object"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, MICA_ERR_FORMAT, "twice"},
        {"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, MICA_ERR_FORMAT, "twice"},
        /* JSON */
        {"{\"a\":{\"x\":[[[]]]}}", 0, MICA_ERR_FORMAT, "nested"},
        {"{} {}", 0, MICA_ERR_FORMAT, "follows"},
        {"{\"\xff\":1}", 0, MICA_ERR_FORMAT, "UTF-8"},
        {"{", 0, MICA_ERR_FORMAT, "key"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%.60s", rows[i].header);
        refuse(with_header(rows[i].header, rows[i].data), NULL, rows[i].status, rows[i].parts);
    }
}

TEST(refused_lengths)
{
    static const struct {
        uint64_t length;
        const char *parts;
    } rows[] = {{0, "none of safetensors|header"},        {3, "a header of 3|JSON"},
                {100000001, "100000001|100000000"},       {UINT64_MAX, "18446744073709551615"},
                {UINT64_MAX - 7, "18446744073709551608"}, {(uint64_t)1 << 63, "9223372036854775808"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%llu", (unsigned long long)rows[i].length);
        bytes *b = &made;
        b->n = 0;
        put_int(b, rows[i].length, 8);
        put(b, "{}", 2);
        mica__file *file = NULL;
        uint8_t *block;
        EXPECT_INT(open_bytes(b, NULL, &file, &block), MICA_ERR_FORMAT);
        char copy[64];
        snprintf(copy, sizeof copy, "%s", rows[i].parts);
        bool any = false; /* one of the alternatives */
        char *rest = copy;
        for (char *part; (part = strtok_r(rest, "|", &rest));) any |= strstr(mica_last_error(), part) != NULL;
        EXPECT_MSG(any, "\"%s\"", mica_last_error());
    }
    /* every truncation of a good file */
    with_header("{" TENSOR("a", "U8", "[4]", "[0,4]") "," TENSOR("b", "F16", "[2]", "[4,8]") "}", 8);
    const bytes good = made;
    for (size_t n = 0; n < good.n; n++) {
        test_case("cut at %d", (int)n);
        made.n = n;
        refuse(&made, NULL, MICA_ERR_FORMAT, "test");
    }
}

TEST(long_names)
{
    static char header[80000];
    static char name[65537];
    memset(name, 'n', 65536);
    snprintf(header, sizeof header, "{\"%.65000s\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", name);
    if (strlen(header) + 8 < sizeof made.data) {
        mica__file *file;
        uint8_t *block;
        CHECK_INT(open_bytes(with_header(header, 0), NULL, &file, &block), MICA_OK);
        EXPECT_INT(strlen(mica__file_tensor(file, 0)->name), 65000);
        mica__file_close(file);
        free(block);
    }
    /* the error message shows the beginning of a long name */
    snprintf(header, sizeof header, "{\"%.60000s\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]}}", name);
    refuse(with_header(header, 1), NULL, MICA_ERR_FORMAT, "nnnn...'|gap");
    EXPECT(strlen(mica_last_error()) < 300);
}

/* ---------------------------------------------------------------- shards --- */

static void write_shard(const char *file, const char *tensor)
{
    char header[256];
    snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", tensor);
    with_header(header, 4);
    io_write(file, made.data, made.n);
}

static mica_status open_index(const char *text, mica__file **out)
{
    return mica__file_open(io_write("model.safetensors.index.json", text, strlen(text)), NULL, out);
}

TEST(shards)
{
    write_shard("model-1.safetensors", "a");
    write_shard("model-2.safetensors", "b");
    mica__file *file;
    CHECK_MSG(
        open_index("{\"metadata\":{\"total_size\":8,\"x\":{\"y\":[1]}},\"weight_map\":{\"b\":\"model-2.safetensors\","
                   "\"a\":\"model-1.safetensors\"}}",
                   &file) == MICA_OK,
        "%s", mica_last_error());
    EXPECT_INT(mica__file_get_kind(file), MICA__FILE_SHARDS);
    EXPECT_INT(mica__file_count(file), 2);
    const char *text;
    size_t length;
    EXPECT(mica__meta_string(file, "total_size", &text, &length) && length == 1 && *text == '8');
    const mica__stored *a = mica__file_find(file, "a"), *b = mica__file_find(file, "b");
    CHECK(a && b && a->map != b->map);
    EXPECT(memcmp(a->data, "\0\1\2\3", 4) == 0 && memcmp(b->data, "\0\1\2\3", 4) == 0);
    EXPECT_INT(mica__file_unchanged(file), MICA_OK);
    write_shard("model-2.safetensors", "bb");
    EXPECT_INT(mica__file_unchanged(file), MICA_ERR_FILE);
    EXPECT(strstr(mica_last_error(), "model-2"));
    mica__file_close(file);
    /* by the folder */
    write_shard("model-2.safetensors", "b");
    CHECK_INT(mica__file_open(io_folder(), NULL, &file), MICA_OK);
    EXPECT_INT(mica__file_count(file), 2);
    mica__file_close(file);
    /* tensors that the index does not name do not exist */
    CHECK_INT(open_index("{\"weight_map\":{\"b\":\"model-2.safetensors\"}}", &file), MICA_OK);
    EXPECT_INT(mica__file_count(file), 1);
    EXPECT(mica__file_find(file, "b") && !mica__file_find(file, "a"));
    mica__file_close(file);
}

TEST(refused_shards)
{
    static const struct {
        const char *text;
        mica_status status;
        const char *parts;
    } rows[] = {
        {"{\"weight_map\":{\"a\":\"../model-1.safetensors\"}}", MICA_ERR_FORMAT, "not a plain file name"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", MICA_ERR_FORMAT, "not a plain file name"},
        {"{\"weight_map\":{\"a\":\"x/model-1.safetensors\"}}", MICA_ERR_FORMAT, "not a plain file name"},
        {"{\"weight_map\":{\"a\":\"..\"}}", MICA_ERR_FORMAT, "not a plain file name"},
        {"{\"weight_map\":{\"a\":\"x\\\\y\"}}", MICA_ERR_FORMAT, "not a plain file name"},
        {"{\"weight_map\":{\"a\":\"x\\u0000y\"}}", MICA_ERR_FORMAT, "not a plain file name"},
        {"{\"weight_map\":{\"a\":\"\"}}", MICA_ERR_FORMAT, "not a plain file name"},
        {"{\"weight_map\":{\"a\":3}}", MICA_ERR_FORMAT, "string"},
        {"{\"weight_map\":[]}", MICA_ERR_FORMAT, "object"},
        {"{\"weights\":{}}", MICA_ERR_FORMAT, "no weight_map"},
        {"{\"weight_map\":{\"a\":\"model-1.safetensors\",\"a\":\"model-2.safetensors\"}}", MICA_ERR_FORMAT, "twice"},
        {"{\"weight_map\":{\"a\":\"missing.safetensors\"}}", MICA_ERR_FILE, "missing.safetensors|No such file"},
        {"{\"weight_map\":{\"a\":\"model-2.safetensors\",\"b\":\"model-2.safetensors\"}}", MICA_ERR_FORMAT,
         "tensor 'a'|model-2.safetensors"},
        {"{\"weight_map\":{\"z\":\"model-1.safetensors\"}}", MICA_ERR_FORMAT, "tensor 'z'"},
        {"{\"weight_map\":{\"a\":\"model-1.safetensors\",\"b\":\"model-3.safetensors\"}}", MICA_ERR_FORMAT,
         "two tensors"},
        {"{\"weight_map\":{\"a\":\"broken.safetensors\"}}", MICA_ERR_FORMAT, "broken.safetensors"},
    };
    write_shard("model-1.safetensors", "a");
    write_shard("model-2.safetensors", "b");
    write_shard("model-3.safetensors", "a");
    io_write("broken.safetensors", "\1\0\0\0\0\0\0\0{", 9);
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i].text);
        mica__file *file = NULL;
        const int64_t live = mica__alloc_live();
        EXPECT_INT(open_index(rows[i].text, &file), rows[i].status);
        EXPECT(file == NULL);
        char copy[128], *rest = copy;
        snprintf(copy, sizeof copy, "%s", rows[i].parts);
        for (char *part; (part = strtok_r(rest, "|", &rest));)
            EXPECT_MSG(strstr(mica_last_error(), part), "no \"%s\" in \"%s\"", part, mica_last_error());
        EXPECT_INT(mica__alloc_live(), live);
    }
}

TEST(an_index_in_memory_has_no_folder)
{
    made.n = 0;
    put(&made, "{\"weight_map\":{}}", 17);
    refuse(&made, NULL, MICA_ERR_FORMAT, "folder");
}

/* ------------------------------------------------------------- real files -- */

static void written_by_others(const char *path, int64_t columns, const char *wrong_length)
{
    mica__file *file;
    CHECK_MSG(mica__file_open(path, &(mica__file_options){.check = true}, &file) == MICA_OK, "%s", mica_last_error());
    const mica__stored *t = mica__file_find(file, "codes");
    CHECK(t != NULL);
    EXPECT(t->type == MICA__QUANT_I64 && t->ndim == 3 && t->shape[1] == 2 && t->shape[2] == columns);
    int64_t first;
    memcpy(&first, t->data, 8);
    EXPECT_INT(first, 0x361);
    mica__file_close(file);
    /* the header is 5 bytes longer than its length field; the reference refuses it too */
    EXPECT_INT(mica__file_open(wrong_length, NULL, &file), MICA_ERR_FORMAT);
    EXPECT(strstr(mica_last_error(), "5 bytes follow the last tensor"));
}

TEST(files_of_others)
{
    char path[768];
    test_case("fixture");
    CHECK(io_fixture("formats/codes.safetensors"));
    snprintf(path, sizeof path, "%s", io_fixture("formats/codes.safetensors"));
    written_by_others(path, 30, io_fixture("formats/wrong_length.safetensors"));
    if (!io_data("formats/jfk-codes.safetensors")) return;
    test_case("real files");
    snprintf(path, sizeof path, "%s", io_data("formats/jfk-codes.safetensors"));
    CHECK(io_data("formats/wi-tiny.safetensors"));
    written_by_others(path, 828, io_data("formats/wi-tiny.safetensors"));
}
