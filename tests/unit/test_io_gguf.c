/* GGUF: what is read, the type ids of forks, and every malformed file of the reference.
 *
 * runs: check */
#include "io_files.h"

static bytes made;

/* ---------------------------------------------------------------- making --- */

static void put_text(bytes *b, const char *text)
{
    put_int(b, strlen(text), 8);
    put(b, text, strlen(text));
}

static void begin(uint32_t version, uint64_t n_tensors, uint64_t n_meta)
{
    made.n = 0;
    put(&made, "GGUF", 4);
    put_int(&made, version, 4);
    put_int(&made, n_tensors, 8);
    put_int(&made, n_meta, 8);
}

static void meta(const char *key, uint32_t type)
{
    put_text(&made, key);
    put_int(&made, type, 4);
}

static void meta_text(const char *key, const char *text)
{
    meta(key, MICA__META_STRING);
    put_text(&made, text);
}

static void info(const char *name, uint32_t type, uint64_t offset, int ndim, uint64_t a, uint64_t b)
{
    put_text(&made, name);
    put_int(&made, (uint64_t)ndim, 4);
    if (ndim > 0) put_int(&made, a, 8);
    if (ndim > 1) put_int(&made, b, 8);
    for (int i = 2; i < ndim && i < 8; i++) put_int(&made, 1, 8);
    put_int(&made, type, 4);
    put_int(&made, offset, 8);
}

static void data(size_t n)
{
    put_align(&made, 32);
    put_zeros(&made, n);
}

static mica__file *opened(uint8_t **block)
{
    mica__file *file = NULL;
    EXPECT_MSG(open_bytes(&made, NULL, &file, block) == MICA_OK, "%s", mica_last_error());
    return file;
}

/* --------------------------------------------------------------- reading --- */

static void all_types(void)
{
    begin(3, 2, 14);
    meta_text("general.architecture", "bitnet-b1.58");
    meta("a.u8", MICA__META_U8), put_int(&made, 200, 1);
    meta("a.i8", MICA__META_I8), put_int(&made, (uint64_t)-3, 1);
    meta("a.u16", MICA__META_U16), put_int(&made, 60000, 2);
    meta("a.i16", MICA__META_I16), put_int(&made, (uint64_t)-300, 2);
    meta("a.u32", MICA__META_U32), put_int(&made, 4000000000u, 4);
    meta("a.i32", MICA__META_I32), put_int(&made, (uint64_t)-70000, 4);
    meta("a.f32", MICA__META_F32), put(&made, &(float){0.5f}, 4);
    meta("a.bool", MICA__META_BOOL), put_int(&made, 1, 1);
    meta("a.u64", MICA__META_U64), put_int(&made, UINT64_MAX, 8);
    meta("a.i64", MICA__META_I64), put_int(&made, (uint64_t)INT64_MIN, 8);
    meta("a.f64", MICA__META_F64), put(&made, &(double){1e-300}, 8);
    meta("a.list", MICA__META_ARRAY), put_int(&made, MICA__META_I32, 4), put_int(&made, 3, 8);
    for (int i = -1; i < 2; i++) put_int(&made, (uint64_t)i, 4);
    meta("a.texts", MICA__META_ARRAY), put_int(&made, MICA__META_STRING, 4), put_int(&made, 3, 8);
    put_text(&made, "x"), put_text(&made, ""), put_text(&made, "yz");
    info("w", 8, 0, 2, 64, 3);       /* Q8_0, 3 rows of 64 */
    info("norm", 0, 224, 1, 5, 0);   /* F32; 3 * 2 * 34 = 204, padded to 224 */
    data(224);
    put(&made, &(float[]){1, 2, 3, 4, 5}, 20);
}

TEST(reads)
{
    uint8_t *block;
    all_types();
    mica__file *f = opened(&block);
    CHECK(f != NULL);
    EXPECT_INT(mica__file_get_kind(f), MICA__FILE_GGUF);
    CHECK_INT(mica__file_count(f), 2);
    const mica__stored *w = mica__file_find(f, "w"), *norm = mica__file_find(f, "norm");
    CHECK(w && norm && w == mica__file_tensor(f, 0));
    /* the fastest axis is last in mica and first in GGUF */
    EXPECT(w->type == MICA__QUANT_Q8_0 && w->ndim == 2 && w->shape[0] == 3 && w->shape[1] == 64 && w->nbytes == 204);
    EXPECT(norm->nbytes == 20 && memcmp(norm->data, &(float){1}, 4) == 0);
    const char *text;
    size_t n, at = 0;
    int64_t i;
    double d;
    bool yes = false;
    EXPECT(mica__meta_string(f, "general.architecture", &text, &n) && n == 12 && memcmp(text, "bitnet-b1.58", n) == 0);
    EXPECT(mica__meta_i64(f, "a.u8", &i) && i == 200);
    EXPECT(mica__meta_i64(f, "a.i8", &i) && i == -3);
    EXPECT(mica__meta_i64(f, "a.u16", &i) && i == 60000);
    EXPECT(mica__meta_i64(f, "a.i16", &i) && i == -300);
    EXPECT(mica__meta_i64(f, "a.u32", &i) && i == 4000000000);
    EXPECT(mica__meta_i64(f, "a.i32", &i) && i == -70000);
    EXPECT(!mica__meta_i64(f, "a.u64", &i)); /* does not fit */
    EXPECT(mica__meta_i64(f, "a.i64", &i) && i == INT64_MIN);
    EXPECT(mica__meta_f64(f, "a.f32", &d) && d == 0.5);
    EXPECT(mica__meta_f64(f, "a.f64", &d) && d == 1e-300);
    EXPECT(mica__meta_bool(f, "a.bool", &yes) && yes);
    /* no value is read as another type */
    EXPECT(!mica__meta_i64(f, "a.f32", &i) && !mica__meta_f64(f, "a.u8", &d) && !mica__meta_bool(f, "a.u8", &yes));
    EXPECT(!mica__meta_i64(f, "a.bool", &i) && !mica__meta_i64(f, "a.list", &i));
    EXPECT(!mica__meta_string(f, "a.texts", &text, &n) && !mica__meta_string(f, "a.i32", &text, &n));
    EXPECT(!mica__meta_i64(f, "no", &i) && !mica__meta_f64(f, "no", &d) && !mica__meta_bool(f, "no", &yes));
    const mica__meta *list = mica__file_meta_find(f, "a.list"), *texts = mica__file_meta_find(f, "a.texts");
    CHECK(list && texts && list->count == 3 && texts->count == 3);
    EXPECT(mica__meta_item_i64(list, 0, &i) && i == -1 && mica__meta_item_i64(list, 2, &i) && i == 1);
    EXPECT(!mica__meta_item_i64(list, 3, &i) && !mica__meta_item_f64(list, 0, &d) &&
           !mica__meta_item_i64(texts, 0, &i));
    EXPECT(mica__meta_next_string(texts, &at, &text, &n) && n == 1 && *text == 'x');
    EXPECT(mica__meta_next_string(texts, &at, &text, &n) && n == 0);
    EXPECT(mica__meta_next_string(texts, &at, &text, &n) && n == 2);
    EXPECT(!mica__meta_next_string(texts, &at, &text, &n) && !mica__meta_next_string(list, &at, &text, &n));
    mica__file_close(f);
    free(block);
}

TEST(every_truncation)
{
    all_types();
    const size_t whole = made.n;
    for (size_t n = 0; n < whole; n++) {
        made.n = n;
        mica__file *file = NULL;
        uint8_t *block;
        const int64_t live = mica__alloc_live();
        EXPECT_MSG(open_bytes(&made, NULL, &file, &block) != MICA_OK, "cut at %d", (int)n);
        EXPECT_INT(mica__alloc_live(), live);
    }
}

TEST(version_2_and_no_tensors)
{
    uint8_t *block;
    begin(2, 0, 1);
    meta_text("general.architecture", "llama");
    mica__file *f = opened(&block); /* no padding, as files in the wild have it */
    CHECK(f != NULL);
    EXPECT_INT(mica__file_count(f), 0);
    EXPECT(mica__file_find(f, "x") == NULL);
    mica__file_close(f);
    free(block);
}

TEST(alignment)
{
    uint8_t *block;
    for (uint32_t to = 1; to <= 4096; to *= 2) {
        begin(3, 2, 1);
        meta("general.alignment", MICA__META_U32), put_int(&made, to, 4);
        info("a", 24, 0, 1, 3, 0);
        info("b", 24, (3 + to - 1) / to * to, 1, 1, 0);
        put_align(&made, to);
        put(&made, "abc", 3);
        put_align(&made, to);
        put(&made, "d", 1);
        mica__file *f = opened(&block);
        CHECK(f != NULL);
        EXPECT(*(const char *)mica__file_find(f, "b")->data == 'd');
        mica__file_close(f);
        free(block);
    }
    static const uint32_t wrong[] = {0, 3, 48, 1u << 21, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        test_case("%u", wrong[i]);
        begin(3, 0, 1);
        meta("general.alignment", MICA__META_U32), put_int(&made, wrong[i], 4);
        refuse(&made, NULL, MICA_ERR_FORMAT, "general.alignment");
    }
    test_case("of another type");
    begin(3, 0, 1);
    meta("general.alignment", MICA__META_U64), put_int(&made, 32, 8);
    refuse(&made, NULL, MICA_ERR_FORMAT, "general.alignment has type 10");
    begin(3, 0, 1);
    meta_text("general.alignment", "32");
    refuse(&made, NULL, MICA_ERR_FORMAT, "general.alignment has type 8");
}

/* ------------------------------------------------------------- refusals ---- */

TEST(versions_and_magics)
{
    static const struct {
        const char *bytes;
        size_t n;
        mica_status status;
        const char *part;
    } rows[] = {
        {"GGUF\1\0\0\0", 8, MICA_ERR_UNSUPPORTED, "version 1"},
        {"GGUF\4\0\0\0", 8, MICA_ERR_UNSUPPORTED, "version 4"},
        {"GGUF\0\0\0\0", 8, MICA_ERR_UNSUPPORTED, "version 0"},
        {"GGUF\0\0\0\3", 8, MICA_ERR_UNSUPPORTED, "big-endian"},
        {"FUGG\0\0\0\3", 8, MICA_ERR_UNSUPPORTED, "big-endian"},
        {"GGUF", 4, MICA_ERR_FORMAT, "version"},
        {"tjgg\3\0\0\0", 8, MICA_ERR_UNSUPPORTED, "GGJT"},
        {"fmgg\1\0\0\0", 8, MICA_ERR_UNSUPPORTED, "GGMF"},
        {"lmgg\0\0\0\0", 8, MICA_ERR_UNSUPPORTED, "GGML"},
        {"algg\0\0\0\0", 8, MICA_ERR_UNSUPPORTED, "GGLA"},
        {"version https://git-lfs.github.com/spec/v1\n", 43, MICA_ERR_UNSUPPORTED, "Git LFS"},
        {"\x80\2}q\0", 5, MICA_ERR_UNSUPPORTED, "pickle"},
        {"<!DOCTYPE html>", 15, MICA_ERR_UNSUPPORTED, "web page"},
        {"", 0, MICA_ERR_FORMAT, "0 bytes"},
        {"garbage garbage garbage", 23, MICA_ERR_FORMAT, "are not safetensors"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i].part);
        made.n = 0;
        put(&made, rows[i].bytes, rows[i].n);
        refuse(&made, NULL, rows[i].status, rows[i].part);
    }
}

TEST(counts_that_lie)
{
    static const uint64_t counts[] = {1, 2, 1000001, (uint64_t)1 << 32, (uint64_t)1 << 60, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < COUNT(counts); i++) {
        test_case("%llu", (unsigned long long)counts[i]);
        begin(3, counts[i], 0);
        refuse(&made, NULL, MICA_ERR_FORMAT, "tensor");
        begin(3, 0, counts[i]);
        refuse(&made, NULL, MICA_ERR_FORMAT, "metadata");
    }
}

TEST(strings_and_arrays_that_lie)
{
    static const uint64_t lengths[] = {1000,           (uint64_t)1 << 31, (uint64_t)1 << 32, (uint64_t)1 << 61,
                                       UINT64_MAX - 7, UINT64_MAX};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        test_case("%llu", (unsigned long long)lengths[i]);
        begin(3, 0, 1); /* a key */
        put_int(&made, lengths[i], 8);
        put_zeros(&made, 40);
        refuse(&made, NULL, MICA_ERR_FORMAT, "needs");
        begin(3, 0, 1); /* a value */
        meta("k", MICA__META_STRING);
        put_int(&made, lengths[i], 8);
        put_zeros(&made, 40);
        refuse(&made, NULL, MICA_ERR_FORMAT, "needs");
        for (uint32_t item = 0; item < MICA__META_COUNT; item++) {
            begin(3, 0, 1);
            meta("k", MICA__META_ARRAY);
            put_int(&made, item, 4);
            put_int(&made, lengths[i], 8);
            put_zeros(&made, 40);
            refuse(&made, NULL, MICA_ERR_FORMAT, item == MICA__META_ARRAY ? "arrays of arrays" : "a");
        }
        begin(3, 1, 0); /* a tensor's name */
        put_int(&made, lengths[i], 8);
        put_zeros(&made, 40);
        refuse(&made, NULL, MICA_ERR_FORMAT, "needs");
    }
    test_case("a string inside an array");
    begin(3, 0, 1);
    meta("k", MICA__META_ARRAY), put_int(&made, MICA__META_STRING, 4), put_int(&made, 2, 8);
    put_text(&made, "good");
    put_int(&made, UINT64_MAX - 3, 8);
    put_zeros(&made, 40);
    refuse(&made, NULL, MICA_ERR_FORMAT, "a string of an array");
}

TEST(metadata_that_is_wrong)
{
    test_case("an unknown type");
    begin(3, 0, 1);
    meta("key.of.it", 13), put_zeros(&made, 16);
    refuse(&made, NULL, MICA_ERR_FORMAT, "'key.of.it'|type 13");
    test_case("an array of an unknown type");
    begin(3, 0, 1);
    meta("k", MICA__META_ARRAY), put_int(&made, 99, 4), put_int(&made, 1, 8), put_zeros(&made, 16);
    refuse(&made, NULL, MICA_ERR_FORMAT, "type 99");
    test_case("an empty key");
    begin(3, 0, 1);
    meta("", MICA__META_U8), put_zeros(&made, 16);
    refuse(&made, NULL, MICA_ERR_FORMAT, "empty");
    test_case("a key twice");
    begin(3, 0, 2);
    meta_text("k", "a"), meta_text("k", "b");
    refuse(&made, NULL, MICA_ERR_FORMAT, "two metadata entries are named 'k'");
    test_case("a key with a zero byte");
    begin(3, 0, 1);
    put_int(&made, 3, 8), put(&made, "a\0b", 3), put_int(&made, MICA__META_U8, 4), put_zeros(&made, 16);
    refuse(&made, NULL, MICA_ERR_FORMAT, "zero byte");
    test_case("a key that is too long");
    begin(3, 0, 1);
    if (sizeof made.data >= 65536) put_int(&made, 65400, 8);
    memset(made.data + made.n, 'k', 65400), made.n += 65400;
    put_int(&made, MICA__META_U8, 4), put_int(&made, 1, 1);
    uint8_t *block;
    mica__file *f = opened(&block); /* up to 65535 bytes are fine */
    mica__file_close(f);
    free(block);
}

TEST(tensors_that_are_wrong)
{
    static const struct {
        const char *what;
        const char *name;
        uint32_t type;
        uint64_t offset;
        int ndim;
        uint64_t a, b;
        const char *parts;
    } rows[] = {
        {"five dimensions", "w", 0, 0, 5, 1, 1, "tensor 'w'|5 dimensions"},
        {"4 G dimensions", "w", 0, 0, -1, 1, 1, "dimensions"},
        {"no name", "", 0, 0, 1, 1, 0, "0 bytes"},
        {"65 bytes of name", "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww", 0, 0, 1, 1, 0,
         "65 bytes"},
        {"negative size", "w", 0, 0, 1, (uint64_t)1 << 63, 0, "tensor 'w'|too large"},
        {"a product that wraps to 0", "w", 0, 0, 2, (uint64_t)1 << 32, (uint64_t)1 << 32, "tensor 'w'|too large"},
        {"a product that wraps to 4", "w", 0, 0, 2, ((uint64_t)1 << 62) + 1, 4, "tensor 'w'|too large"},
        {"bytes that wrap", "w", 0, 0, 1, (uint64_t)1 << 62, 0, "tensor 'w'|too large"},
        {"padding that wraps", "w", 24, 0, 1, INT64_MAX, 0, "tensor 'w'|needs 9223372036854775807 bytes"},
        {"more than the file", "w", 0, 0, 1, 1000, 0, "tensor 'w'|needs 4000 bytes at offset 0|64"},
        {"half a block", "w", 8, 0, 1, 33, 0, "tensor 'w'|blocks of 32 Q8_0"},
        {"rows of half a block", "w", 12, 0, 2, 128, 2, "blocks of 256 Q4_K"},
        {"an offset that is not aligned", "w", 0, 8, 1, 1, 0, "tensor 'w'|offset 8"},
        {"an offset past the end of the file", "w", 0, (uint64_t)1 << 40, 1, 1, 0, "offset 1099511627776"},
        {"an offset that wraps", "w", 0, UINT64_MAX - 31, 1, 1, 0, "offset 18446744073709551584"},
        {"a hole before the first", "w", 0, 32, 1, 1, 0, "offset 32"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i].what);
        begin(3, 1, 0);
        info(rows[i].name, rows[i].type, rows[i].offset, rows[i].ndim, rows[i].a, rows[i].b);
        data(64);
        refuse(&made, NULL, MICA_ERR_FORMAT, rows[i].parts);
    }
    test_case("a name twice");
    begin(3, 2, 0);
    info("w", 0, 0, 1, 1, 0), info("w", 0, 32, 1, 1, 0);
    data(64);
    refuse(&made, NULL, MICA_ERR_FORMAT, "two tensors are named 'w'");
    test_case("overlap");
    begin(3, 2, 0);
    info("a", 0, 0, 1, 16, 0), info("b", 0, 32, 1, 8, 0);
    data(128);
    refuse(&made, NULL, MICA_ERR_FORMAT, "tensor 'b'|offset 32|64");
    test_case("a hole");
    begin(3, 2, 0);
    info("a", 0, 0, 1, 1, 0), info("b", 0, 64, 1, 8, 0);
    data(128);
    refuse(&made, NULL, MICA_ERR_FORMAT, "tensor 'b'|offset 64|32");
    test_case("backwards");
    begin(3, 2, 0);
    info("a", 0, 32, 1, 8, 0), info("b", 0, 0, 1, 8, 0);
    data(128);
    refuse(&made, NULL, MICA_ERR_FORMAT, "tensor 'b'|offset 0");
    test_case("no data at all");
    begin(3, 1, 0);
    info("a", 0, 0, 1, 1, 0);
    refuse(&made, NULL, MICA_ERR_FORMAT, "data begin");
}

/* A sum of sizes that wraps: each tensor fits a number, all together do not. */
TEST(sums_that_wrap)
{
    begin(3, 4, 0);
    for (uint64_t i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + i), 0};
        info(name, 24, i << 62, 1, (uint64_t)1 << 62, 0);
    }
    data(64);
    refuse(&made, NULL, MICA_ERR_FORMAT, "tensor 'b'|offset 4611686018427387904");
}

/* ------------------------------------------------------ types of the forks - */

static mica__quant_id type_of(uint32_t id, uint64_t cols, uint64_t rows, size_t nbytes, const mica__file_options *o)
{
    begin(3, 2, 0);
    info("w", id, 0, 2, cols, rows);
    const size_t padded = (nbytes + 31) / 32 * 32;
    info("end", 24, padded, 1, 1, 0);
    data(padded + 1);
    mica__file *file;
    uint8_t *block;
    if (open_bytes(&made, o, &file, &block) != MICA_OK) return MICA__QUANT_COUNT;
    const mica__quant_id type = mica__file_tensor(file, 0)->type;
    EXPECT_INT(mica__file_tensor(file, 0)->nbytes, nbytes);
    mica__file_close(file);
    free(block);
    return type;
}

TEST(ids_with_two_meanings)
{
    /* Q2_0: groups of 64 upstream, of 128 in early files of Prism */
    EXPECT_INT(type_of(42, 2048, 4, 2048 * 4 / 64 * 18, NULL), MICA__QUANT_Q2_0);
    EXPECT_INT(type_of(42, 2048, 4, 2048 * 4 / 128 * 34, NULL), MICA__QUANT_PQ2_0);
    EXPECT_INT(type_of(142, 2048, 4, 2048 * 4 / 128 * 34, NULL), MICA__QUANT_PQ2_0);
    /* 64 columns: no groups of 128 */
    EXPECT_INT(type_of(42, 64, 4, 4 * 18, NULL), MICA__QUANT_Q2_0);
    /* sizes that padding makes equal: upstream's meaning */
    EXPECT_INT(type_of(42, 128, 1, 36, NULL), MICA__QUANT_Q2_0);
    /* 40: NVFP4 upstream, one bit in groups of 32 in early files of Prism */
    EXPECT_INT(type_of(40, 2048, 4, 2048 * 4 / 64 * 36, NULL), MICA__QUANT_NVFP4);
    EXPECT_INT(type_of(40, 2048, 4, 2048 * 4 / 32 * 6, NULL), MICA__QUANT_Q1_0_G32);
    EXPECT_INT(type_of(41, 2048, 4, 2048 * 4 / 128 * 18, NULL), MICA__QUANT_Q1_0);
    /* neither */
    EXPECT_INT(type_of(42, 2048, 4, 2048 * 4 / 64 * 20, NULL), MICA__QUANT_COUNT);
    EXPECT(strstr(mica_last_error(), "tensor 'end'"));
}

/* A type id has one meaning in a file: a tensor that is too small to decide it follows the others. */
TEST(one_meaning_for_a_file)
{
    uint8_t *block;
    begin(3, 3, 0);
    info("small", 42, 0, 2, 128, 1);              /* 36 or 34 bytes: 64 padded, either way */
    info("large", 42, 64, 2, 4096, 1);            /* 1088 bytes: groups of 128 */
    info("end", 24, 64 + 1088, 1, 1, 0);
    data(64 + 1088 + 1);
    mica__file *f = opened(&block);
    CHECK(f != NULL);
    EXPECT_INT(mica__file_find(f, "small")->type, MICA__QUANT_PQ2_0);
    EXPECT_INT(mica__file_find(f, "large")->type, MICA__QUANT_PQ2_0);
    mica__file_close(f);
    free(block);
}

/* I2_S stores its scale after the codes: a quarter of the elements in bytes, plus 32 bytes. */
TEST(i2_s)
{
    EXPECT_INT(type_of(36, 256, 6, 256 * 6 / 4 + 32, NULL), MICA__QUANT_I2_S);
    EXPECT_INT(type_of(36, 256, 6, 256 * 6 / 4 + 32, &(mica__file_options){.i2_s_arm = true}), MICA__QUANT_I2_S_ARM);
    /* rows of 64 exist in the ARM layout only */
    EXPECT_INT(type_of(36, 64, 6, 64 * 6 / 4 + 32, NULL), MICA__QUANT_I2_S_ARM);
    EXPECT_INT(type_of(36, 256, 6, 256 * 6 / 4, NULL), MICA__QUANT_COUNT); /* the tail is missing */
    begin(3, 1, 0);
    info("w", 36, 0, 1, 128, 0);
    data(32);
    refuse(&made, NULL, MICA_ERR_FORMAT, "tensor 'w'|needs 64 bytes at offset 0|32");
}

TEST(types_we_do_not_read)
{
    static const struct {
        uint32_t id;
        const char *arch, *parts;
    } rows[] = {{4, "llama", "tensor 'w'|type id 4|Q4_2"},
                {31, "llama", "type id 31|removed"},
                {38, "bitnet-b1.58", "type id 38|TL1"},
                {39, "bitnet-b1.58", "type id 39|TL2"},
                {134, "bitnet", "IQ1_BN of ik_llama.cpp"},
                {135, "bitnet", "IQ2_BN of ik_llama.cpp"},
                {144, "llama", "type id 144|ik_llama.cpp"},
                {43, "llama", "type id 43"},
                {5000, "llama", "type id 5000"},
                {UINT32_MAX, "llama", "type id 4294967295"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%u in %s", rows[i].id, rows[i].arch);
        begin(3, 1, 1);
        meta_text("general.architecture", rows[i].arch);
        info("w", rows[i].id, 0, 1, 256, 0);
        data(1024);
        refuse(&made, NULL, MICA_ERR_UNSUPPORTED, rows[i].parts);
    }
    /* known by its size: listed */
    EXPECT_INT(type_of(39, 2048, 4, 2048 * 4 / 32 * 17, NULL), MICA__QUANT_MXFP4);
    EXPECT_INT(type_of(10, 256, 1, 84, NULL), MICA__QUANT_Q2_K);
}

/* With options.check: scales that are not finite and invalid codes are refused. */
TEST(checking_blocks)
{
    static const mica__file_options check = {.check = true};
    begin(3, 1, 0);
    info("w", 8, 0, 1, 64, 0);
    data(68);
    const size_t at = made.n - 34;
    refuse(&made, &check, MICA_OK, "");
    made.data[at + 1] = 0x7c; /* infinity, second block */
    refuse(&made, NULL, MICA_OK, "");
    refuse(&made, &check, MICA_ERR_FORMAT, "tensor 'w'|block 1|Q8_0");
    begin(3, 1, 0);
    info("w", 36, 0, 1, 128, 0);
    data(64);
    refuse(&made, &check, MICA_OK, "");
    memcpy(made.data + made.n - 32, "\0\0\xc0\x7f", 4);
    refuse(&made, &check, MICA_ERR_FORMAT, "tensor 'w'|scale|nan");
    memcpy(made.data + made.n - 32, "\0\0\0\0", 4);
    made.data[made.n - 64] = 0xc0; /* a code of 3 */
    refuse(&made, &check, MICA_ERR_FORMAT, "tensor 'w'|block 0|I2_S");
}

/* ------------------------------------------------------------- real files -- */

/* Part `no` of `count`: one tensor, and the metadata of a part. */
static void part(int no, int count, int tensors, const char *name)
{
    begin(3, 1, tensors >= 0 ? 4 : 2);
    if (tensors >= 0) {
        meta_text("general.name", "whole");
        meta("split.tensors.count", MICA__META_I32), put_int(&made, (uint64_t)tensors, 4);
    }
    meta("split.no", MICA__META_U16), put_int(&made, (uint64_t)no, 2);
    meta("split.count", MICA__META_U16), put_int(&made, (uint64_t)count, 2);
    info(name, 0, 0, 1, 4, 0);
    data(0);
    for (int i = 0; i < 4; i++) put(&made, &(float){(float)(10 * no + i)}, 4);
}

static void refused_part(const char *name, mica_status status, const char *words)
{
    mica__file *f = NULL;
    test_case("%s: %s", name, words);
    EXPECT_INT(mica__file_open(io_path(name), NULL, &f), status);
    EXPECT_MSG(strstr(mica_last_error(), words), "\"%s\" without \"%s\"", mica_last_error(), words);
    mica__file_close(f);
}

TEST(parts)
{
    static const char *const names[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"};
    mica__file *f = NULL;
    for (int i = 0; i < 3; i++) {
        part(i, 3, i ? -1 : 3, (const char *[]){"a", "b", "c"}[i]);
        (void)io_write(names[i], made.data, made.n);
    }
    test_case("joined");
    CHECK_MSG(mica__file_open(io_path(names[0]), NULL, &f) == MICA_OK, "%s", mica_last_error());
    EXPECT_INT(mica__file_count(f), 3);
    for (int i = 0; i < 3; i++) {
        const mica__stored *t = mica__file_find(f, (const char *[]){"a", "b", "c"}[i]);
        CHECK(t && t->map == i && t->nbytes == 16);
        EXPECT_CLOSE(((const float *)t->data)[3], 10 * i + 3, 0, 0);
    }
    int64_t value;
    EXPECT(mica__file_meta_count(f) == 1 && mica__file_meta_find(f, "general.name"));
    EXPECT(!mica__meta_i64(f, "split.count", &value));
    mica__file_close(f);
    refused_part(names[1], MICA_ERR_UNSUPPORTED, "part 2 of 3 of a model: open the first");
    uint8_t *block;
    test_case("in memory");
    part(0, 3, 3, "a");
    EXPECT_INT(open_bytes(&made, NULL, &f, &block), MICA_ERR_UNSUPPORTED);
    free(block);
    (void)io_write("other.gguf", made.data, made.n);
    refused_part("other.gguf", MICA_ERR_UNSUPPORTED, "*-00001-of-00003.gguf");
    part(0, 1, 1, "a"); /* a single part is a complete file */
    (void)io_write("other.gguf", made.data, made.n);
    CHECK_INT(mica__file_open(io_path("other.gguf"), NULL, &f), MICA_OK);
    mica__file_close(f);

    part(1, 3, -1, "a");
    (void)io_write(names[1], made.data, made.n);
    refused_part(names[0], MICA_ERR_FORMAT, "'a'"); /* twice */
    part(2, 3, -1, "b");
    (void)io_write(names[1], made.data, made.n);
    refused_part(names[0], MICA_ERR_FORMAT, "part 2 of 3 by its metadata");
    part(1, 4, -1, "b");
    (void)io_write(names[1], made.data, made.n);
    refused_part(names[0], MICA_ERR_FORMAT, "part 1 of 4 by its metadata");
    part(1, 3, -1, "b");
    (void)io_write(names[1], made.data, made.n - 1);
    refused_part(names[0], MICA_ERR_FORMAT, "tensor 'b'");
    (void)io_write(names[1], made.data, made.n);
    part(0, 3, 4, "a");
    (void)io_write(names[0], made.data, made.n);
    refused_part(names[0], MICA_ERR_FORMAT, "split.tensors.count is 4");
    part(0, 60000, 3, "a");
    (void)io_write(names[0], made.data, made.n);
    refused_part(names[0], MICA_ERR_FORMAT, "part 0 of 60000");
    part(0, 3, 3, "a");
    (void)io_write(names[0], made.data, made.n);
    CHECK_INT(remove(io_path(names[2])), 0);
    refused_part(names[0], MICA_ERR_FILE, "one of the 3 files it names is missing");
}

static void vocabulary_of_others(const char *path, uint64_t count, const char *model)
{
    mica__file *file;
    CHECK(path != NULL);
    CHECK_MSG(mica__file_open(path, NULL, &file) == MICA_OK, "%s", mica_last_error());
    const mica__meta *tokens = mica__file_meta_find(file, "tokenizer.ggml.tokens");
    const char *text;
    size_t at = 0, n, walked = 0;
    CHECK(tokens && tokens->item == MICA__META_STRING);
    EXPECT_INT(tokens->count, count);
    while (mica__meta_next_string(tokens, &at, &text, &n)) walked++;
    EXPECT_INT(walked, tokens->count);
    EXPECT(mica__meta_string(file, "tokenizer.ggml.model", &text, &n) && n == strlen(model) &&
           memcmp(text, model, n) == 0);
    mica__file_close(file);
}

TEST(files_of_others)
{
    mica__file *file;
    test_case("fixtures");
    CHECK(io_fixture("formats/empty.gguf"));
    CHECK_INT(mica__file_open(io_fixture("formats/empty.gguf"), NULL, &file), MICA_OK);
    mica__file_close(file);
    EXPECT_INT(mica__file_open(io_fixture("formats/no_data.gguf"), NULL, &file), MICA_ERR_FORMAT);
    vocabulary_of_others(io_fixture("tokenizers/bpe.gguf"), 457, "gpt2");
    vocabulary_of_others(io_fixture("tokenizers/spm.gguf"), 452, "llama");
    const char *path = io_data("formats/wi-empty.gguf");
    if (!path) return;
    test_case("real files");
    CHECK_INT(mica__file_open(path, NULL, &file), MICA_OK);
    mica__file_close(file);
    path = io_data("formats/wi-tiny.gguf"); /* without its data */
    CHECK(path != NULL);
    EXPECT_INT(mica__file_open(path, NULL, &file), MICA_ERR_FORMAT);
    static const struct {
        const char *name;
        uint64_t tokens;
        const char *model;
    } vocabularies[] = {{"bert-bge", 30522, "bert"},
                        {"deepseek-coder", 32256, "gpt2"},
                        {"gpt-2", 50257, "gpt2"},
                        {"llama-spm", 32000, "llama"},
                        {"phi-3", 32064, "llama"}};
    for (size_t i = 0; i < COUNT(vocabularies); i++) {
        test_case("%s", vocabularies[i].name);
        char name[64];
        snprintf(name, sizeof name, "tokenizers/ggml-vocab-%s.gguf", vocabularies[i].name);
        vocabulary_of_others(io_data(name), vocabularies[i].tokens, vocabularies[i].model);
    }
}
