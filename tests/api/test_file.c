/* Model files through mica.h: their contents, their tensors as arrays without a copy, and the files
 * in their folders.
 *
 * runs: metal, check */
#include "files.h"

static const float six[6] = {1, -2, 3, -4, 5, -6};

/* A GGUF of three formats. */
static const char *make_gguf(void)
{
    const char *path = file_path("three.gguf");
    uint8_t blocks[34] = {0};
    mica_writer *w = NULL;
    blocks[1] = 0x3c; /* f16 1 */
    for (int i = 0; i < 32; i++) blocks[2 + i] = (uint8_t)i;
    EXPECT_OK(mica_writer_open(path, NULL, &w));
    mica_writer_string(w, "general.architecture", "llama", 5);
    mica_writer_i64(w, "llama.block_count", MICA_U32, 3);
    mica_writer_i64(w, "a.i8", MICA_I8, -5);
    mica_writer_i64(w, "a.bool", MICA_BOOL, 1);
    mica_writer_f64(w, "a.f32", MICA_F32, 0.5);
    mica_writer_array(w, "a.numbers", MICA_I32, 3, (int32_t[]){7, -8, 9});
    mica_writer_array(w, "a.reals", MICA_F32, 2, (float[]){0.25f, 4});
    mica_writer_strings(w, "a.texts", 3, (const char *[]){"one", "", "three"}, NULL);
    mica_writer_tensor(w, "f", "F32", SHAPE(2, 3), six);
    mica_writer_tensor(w, "q", "Q8_0", SHAPE(32), blocks);
    mica_writer_tensor(w, "h", "F16", SHAPE(1, 2), (uint16_t[]){0x3c00, 0xc000});
    EXPECT_OK(mica_writer_finish(w, NULL, NULL));
    return path;
}

TEST(what_is_in_a_file)
{
    mica_file *f = NULL;
    CHECK_OK(mica_file_open(make_gguf(), NULL, &f));
    EXPECT_STR(mica_file_kind(f), "gguf");
    EXPECT_INT(mica_file_tensor_count(f), 3);
    EXPECT_OK(mica_file_unchanged(f));
    mica_tensor_info info = {.struct_size = sizeof info};
    CHECK(mica_file_tensor(f, 0, &info));
    EXPECT_STR(info.name, "f");
    EXPECT_STR(info.format, "F32");
    EXPECT_INT(info.dtype, MICA_F32);
    EXPECT(info.ndim == 2 && info.shape[0] == 2 && info.shape[1] == 3);
    EXPECT_INT(info.nbytes, 24);
    EXPECT(info.offset % 32 == 0 && memcmp(info.data, six, 24) == 0 && strstr(info.path, "three.gguf"));
    info = info_of(f, "q");
    EXPECT_STR(info.format, "Q8_0");
    EXPECT_INT(info.dtype, -1);
    EXPECT_INT(info.nbytes, 34);
    EXPECT(!mica_file_tensor(f, 3, &info) && !mica_file_find(f, "g", &info));

    int64_t i = 0;
    double d = 0;
    bool yes = false;
    EXPECT(mica_file_i64(f, "llama.block_count", &i) && i == 3);
    EXPECT(mica_file_i64(f, "a.i8", &i) && i == -5);
    EXPECT(mica_file_f64(f, "a.f32", &d) && d == 0.5);
    EXPECT(mica_file_f64(f, "a.i8", &d) && d == -5);
    EXPECT(mica_file_bool(f, "a.bool", &yes) && yes);
    EXPECT(meta_is(f, "general.architecture", "llama"));
    EXPECT(!mica_file_i64(f, "a.f32", &i) && !mica_file_bool(f, "a.i8", &yes) && !mica_file_f64(f, "no", &d));
    EXPECT_INT(mica_file_items(f, "a.numbers"), 3);
    EXPECT_INT(mica_file_items(f, "a.i8"), 0);
    EXPECT(mica_file_item_i64(f, "a.numbers", 1, &i) && i == -8);
    EXPECT(mica_file_item_f64(f, "a.numbers", 2, &d) && d == 9);
    EXPECT(mica_file_item_f64(f, "a.reals", 0, &d) && d == 0.25);
    EXPECT(!mica_file_item_i64(f, "a.numbers", 3, &i) && !mica_file_item_i64(f, "a.reals", 0, &i));
    size_t at = 0, n = 0;
    const char *text;
    EXPECT(mica_file_next_string(f, "a.texts", &at, &text, &n) && n == 3 && memcmp(text, "one", 3) == 0);
    EXPECT(mica_file_next_string(f, "a.texts", &at, &text, &n) && n == 0);
    EXPECT(mica_file_next_string(f, "a.texts", &at, &text, &n) && n == 5);
    EXPECT(!mica_file_next_string(f, "a.texts", &at, &text, &n));
    mica_file_close(f);
}

TEST(metadata_as_it_is_stored)
{
    mica_file *f = NULL;
    CHECK_OK(mica_file_open(make_gguf(), NULL, &f));
    mica_meta_info m = {.struct_size = sizeof m};
    EXPECT_INT(mica_file_meta_count(f), 8);
    CHECK(mica_file_meta(f, 0, &m));
    EXPECT(strcmp(m.key, "general.architecture") == 0 && m.dtype == -1 && !m.array && m.count == 1 && m.nbytes == 5);
    CHECK(mica_file_meta(f, 5, &m));
    EXPECT(strcmp(m.key, "a.numbers") == 0 && m.dtype == MICA_I32 && m.array && m.count == 3 && m.nbytes == 12);
    CHECK(mica_file_meta(f, 7, &m));
    EXPECT(m.dtype == -1 && m.array && m.count == 3 && m.nbytes == 3 * 8 + 8);
    EXPECT(!mica_file_meta(f, 8, &m));
    mica_file_close(f);
}

/* A caller built against a header with fewer fields gets only these fields. */
TEST(shorter_structs)
{
    mica_file *f = NULL;
    CHECK_OK(mica_file_open(make_gguf(), NULL, &f));
    mica_tensor_info info = {.struct_size = offsetof(mica_tensor_info, dtype), .dtype = 77};
    EXPECT(mica_file_find(f, "f", &info));
    EXPECT_STR(info.format, "F32");
    EXPECT_INT(info.dtype, 77);
    info.struct_size = 0;
    EXPECT(!mica_file_find(f, "f", &info));
    mica_file_close(f);
}

TEST(arrays_hold_the_file_and_copy_nothing)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_file *f = NULL;
    CHECK_OK(mica_file_open(make_gguf(), NULL, &f));
    mica_array *x = mica_file_array(s, f, "f"), *q = mica_file_array(s, f, "q"), *h = mica_file_array(s, f, "h");
    CHECK_MSG(x && q && h, "%s", mica_scope_error(s));
    mica_file_close(f);
    const mica_stats stats = stats_of(e);
    EXPECT_INT(stats.copies, 0);
    EXPECT_INT(stats.conversions_zero_copy, 3);
    EXPECT_VALUES(x, 1, -2, 3, -4, 5, -6);
    EXPECT(mica_array_dtype(q) == MICA_U8 && mica_array_ndim(q) == 1 && mica_array_size(q) == 34);
    EXPECT_INT(mica_data_u8(q)[33], 31);
    mica_array *y = mica_matmul(s, mica_cast(s, h, MICA_F32), x);
    CHECK_OK(mica_eval(s, ARRAYS(y)));
    mica_scope_end(s);
    mica_close(e);
}

/* The data of a safetensors file follows its header, at any alignment. */
TEST(misaligned_numbers_are_copied)
{
    static const char header[] = "{\"b\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[8,11]},"
                                 "\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    char padded[160];
    for (int pad = 0; pad < 4; pad++) {
        test_case("%d spaces", pad);
        snprintf(padded, sizeof padded, "%s%.*s", header, pad, "    ");
        mica_engine *e = open_engine("cpu");
        mica_scope *s = mica_scope_begin(e);
        mica_file *f = NULL;
        CHECK_OK(mica_file_open(write_safetensors_bytes("odd.safetensors", padded, 11), NULL, &f));
        EXPECT_STR(mica_file_kind(f), "safetensors");
        mica_array *x = mica_file_array(s, f, "x"), *b = mica_file_array(s, f, "b");
        const bool aligned = (sizeof header - 1 + (size_t)pad) % 4 == 0;
        mica_file_close(f);
        CHECK_MSG(x && b, "%s", mica_scope_error(s));
        EXPECT_INT(stats_of(e).copies, aligned ? 1 : 2);
        EXPECT_INT(stats_of(e).conversions_zero_copy, aligned);
        uint32_t bits;
        memcpy(&bits, mica_data_f32(x) + 1, 4);
        EXPECT_INT(bits, 0x07060504);
        const uint8_t *bools = (const uint8_t *)mica_data_bool(b); /* 8, 9, 10 in the file */
        EXPECT(bools[0] == 1 && bools[1] == 1 && bools[2] == 1);
        mica_scope_end(s);
        mica_close(e);
    }
}

TEST(fortran_order)
{
    for (int bools = 0; bools < 2; bools++) {
        test_case(bools ? "copied" : "in place");
        char bytes[128 + 24];
        memset(bytes, ' ', 128);
        memcpy(bytes, "\x93NUMPY\1\0v\0", 10);
        snprintf(bytes + 10, 117, "{'descr': '%s', 'fortran_order': True, 'shape': (2, 3), }", bools ? "|b1" : "<f4");
        bytes[10 + strlen(bytes + 10)] = ' ';
        bytes[127] = '\n';
        if (bools) memcpy(bytes + 128, "\0\1\0\0\1\2", 6);
        else memcpy(bytes + 128, six, 24);
        mica_engine *e = open_engine("cpu");
        mica_scope *s = mica_scope_begin(e);
        mica_file *f = NULL;
        CHECK_OK(mica_file_open(write_bytes("f.npy", bytes, bools ? 134 : 152), NULL, &f));
        EXPECT_STR(mica_file_kind(f), "npy");
        mica_array *x = mica_contiguous(s, mica_cast(s, mica_file_array(s, f, ""), MICA_F32));
        mica_file_close(f);
        CHECK_OK(mica_eval(s, ARRAYS(x)));
        if (bools) EXPECT_VALUES(x, 0, 0, 1, 1, 0, 1);
        else EXPECT_VALUES(x, 1, 3, 5, -2, -4, -6);
        mica_scope_end(s);
        mica_close(e);
    }
}

/* --------------------------------------------------------------- folders --- */

static const char *make_folder(const char *name, const char *config)
{
    char file[128];
    (void)mkdir(file_path(name), 0777);
    snprintf(file, sizeof file, "%s/model.safetensors", name);
    write_safetensors_bytes(file, "{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2);
    snprintf(file, sizeof file, "%s/config.json", name);
    if (config) write_text(file, config);
    return file_path(name);
}

TEST(a_folder_says_what_its_json_says)
{
    static const char config[] =
        "{\"hidden_size\": 2560, \"rope_theta\": 500000.0, \"tie\": true, \"none\": null, \"minus\": -3,\n"
        " \"huge\": 1000000000000000019884624838656, \"architectures\": [\"BitNetForCausalLM\"],\n"
        " \"quantization_config\": {\"linear_class\": \"autobitlinear\", \"deep\": {\"er\": 1}},\n"
        " \"ids\": [128001, 128009], \"mixed\": [1, \"two\", [3, 4.5]], \"reals\": [1, 2.5], \"empty\": [],\n"
        " \"flags\": [true, false], \"objects\": [{\"a\": 1}, {\"a\": \"\\u00e9\\n\"}], \"texts\": [\"x\", \"\"]}";
    mica_file *f = NULL;
    const char *folder = make_folder("hf", config);
    write_text("hf/generation_config.json", "{\"eos_token_id\": [1, 2], \"temperature\": 0.6}");
    write_text("hf/tokenizer_config.json", "{\"chat_template\": \"old\", \"add_bos_token\": false}");
    write_text("hf/chat_template.jinja", "{{ new }}");
    CHECK_OK(mica_file_open(folder, NULL, &f));
    int64_t i = 0;
    double d = 0;
    bool yes = true;
    EXPECT_INT(mica_file_tensor_count(f), 1);
    EXPECT(mica_file_i64(f, "config.hidden_size", &i) && i == 2560);
    EXPECT(mica_file_i64(f, "config.minus", &i) && i == -3);
    EXPECT(mica_file_f64(f, "config.rope_theta", &d) && d == 500000);
    EXPECT(mica_file_f64(f, "config.hidden_size", &d) && d == 2560);
    EXPECT(mica_file_f64(f, "config.huge", &d) && d == 1000000000000000019884624838656.0);
    EXPECT(mica_file_bool(f, "config.tie", &yes) && yes);
    EXPECT(!mica_file_i64(f, "config.none", &i) && !mica_file_i64(f, "config.huge", &i));
    EXPECT(meta_is(f, "config.quantization_config.linear_class", "autobitlinear"));
    EXPECT(mica_file_i64(f, "config.quantization_config.deep.er", &i) && i == 1);
    EXPECT(mica_file_items(f, "config.ids") == 2 && mica_file_item_i64(f, "config.ids", 1, &i) && i == 128009);
    EXPECT(mica_file_items(f, "config.reals") == 2 && mica_file_item_f64(f, "config.reals", 0, &d) && d == 1);
    EXPECT_INT(mica_file_items(f, "config.empty"), 0);
    EXPECT_INT(mica_file_items(f, "config.flags"), 2);
    EXPECT(mica_file_items(f, "config.mixed") == 0 && meta_is(f, "config.mixed.1", "two"));
    EXPECT(mica_file_i64(f, "config.mixed.0", &i) && i == 1);
    EXPECT(mica_file_item_f64(f, "config.mixed.2", 1, &d) && d == 4.5);
    EXPECT(mica_file_i64(f, "config.objects.0.a", &i) && meta_is(f, "config.objects.1.a", "\xc3\xa9\n"));
    EXPECT(mica_file_items(f, "generation_config.eos_token_id") == 2);
    EXPECT(mica_file_f64(f, "generation_config.temperature", &d) && d == 0.6);
    EXPECT(mica_file_bool(f, "tokenizer_config.add_bos_token", &yes) && !yes);
    EXPECT(meta_is(f, "tokenizer_config.chat_template", "{{ new }}"));
    size_t at = 0, n;
    const char *text;
    EXPECT(mica_file_next_string(f, "config.texts", &at, &text, &n) && n == 1 && *text == 'x');
    EXPECT(mica_file_next_string(f, "config.texts", &at, &text, &n) && n == 0);
    mica_file_close(f);
}

TEST(folders_that_are_wrong)
{
    static const struct {
        const char *config, *part;
    } wrong[] = {
        {"{\"a\": 1,}", "config.json: JSON at byte 8"},
        {"[1]", "config.json: JSON at byte"},
        {"{\"a\": 1} x", "config.json: JSON at byte 9"},
        {"{\"a\": 1, \"a\": 2}", "key twice"},
        {"{\"a\": {\"b\": 1}, \"a.b\": 2}", "'config.a.b'"},
        {"{\"a\\u0000\": 1}", "zero byte"},
        {"{\"a\": [1, 1e999]}", "too large"},
        {"{\"a\": \"\xff\"}", "UTF-8"},
        {"", "config.json: JSON at byte 0"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        test_case("%s", wrong[i].config);
        mica_file *f = NULL;
        EXPECT_FAILS(mica_file_open(make_folder("wrong", wrong[i].config), NULL, &f), MICA_ERR_FORMAT, wrong[i].part);
        EXPECT(!f);
    }
    test_case("nested");
    char *deep = calloc(1, 5000);
    for (int i = 0; i < 900; i++) strcat(deep, "{\"a\":");
    mica_file *f = NULL;
    EXPECT_FAILS(mica_file_open(make_folder("wrong", deep), NULL, &f), MICA_ERR_FORMAT, "nested");
    free(deep);
    test_case("a folder in place of a file");
    (void)make_folder("odd", NULL);
    (void)mkdir(file_path("odd/config.json"), 0777);
    EXPECT_FAILS(mica_file_open(file_path("odd"), NULL, &f), MICA_ERR_FILE, "config.json");
    test_case("no model");
    (void)mkdir(file_path("bare"), 0777);
    EXPECT_FAILS(mica_file_open(file_path("bare"), NULL, &f), MICA_ERR_FILE, "no model.safetensors");
}

TEST(a_folder_without_json)
{
    mica_file *f = NULL;
    CHECK_OK(mica_file_open(make_folder("plain", NULL), NULL, &f));
    EXPECT_INT(mica_file_meta_count(f), 0);
    EXPECT(info_of(f, "x").nbytes == 2);
    mica_file_close(f);
}
