/* npy, npz and inflate: files that NumPy writes are read, and every malformed file is refused.
 *
 * runs: check */
#include "io/inflate.h"
#include "io_files.h"

static bytes made;

/* ------------------------------------------------------------------- npy --- */

static void put_npy(bytes *b, int major, const char *dict, size_t data)
{
    put(b, "\x93NUMPY", 6);
    put_int(b, (uint64_t)major, 1);
    put_int(b, 0, 1);
    const size_t n = strlen(dict) + 1;
    put_int(b, n, major == 1 ? 2 : 4);
    put(b, dict, n - 1);
    put(b, "\n", 1);
    for (size_t i = 0; i < data; i++) put(b, &(uint8_t){(uint8_t)i}, 1);
}

static const bytes *npy(const char *dict, size_t data)
{
    made.n = 0;
    put_npy(&made, 1, dict, data);
    return &made;
}

TEST(npy_reads)
{
    static const struct {
        int major;
        const char *dict;
        size_t data;
        mica__quant_id type;
        int ndim;
        int64_t shape[3], stride[3];
    } rows[] = {
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", 48, MICA__QUANT_F64, 2, {2, 3}, {3, 1}},
        {1,
         "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 4), }",
         96,
         MICA__QUANT_F32,
         3,
         {2, 3, 4},
         {1, 2, 6}},
        {2, "{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }", 5, MICA__QUANT_U8, 1, {5}, {1}},
        {3, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }", 1, MICA__QUANT_BOOL, 0, {0}, {0}},
        {1, "{\"shape\": (0,), \"descr\": \"<i2\", \"fortran_order\": False}   ", 0, MICA__QUANT_I16, 1, {0}, {1}},
        {1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1L, 2L)}", 16, MICA__QUANT_C64, 2, {1, 2}, {2, 1}},
        {1, "{'descr':'<f2','fortran_order':False,'shape':(3,)}", 6, MICA__QUANT_F16, 1, {3}, {1}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i].dict);
        made.n = 0;
        put_npy(&made, rows[i].major, rows[i].dict, rows[i].data);
        mica__file *f;
        uint8_t *block;
        CHECK_MSG(open_bytes(&made, NULL, &f, &block) == MICA_OK, "%s", mica_last_error());
        EXPECT_INT(mica__file_get_kind(f), MICA__FILE_NPY);
        const mica__stored *t = mica__file_find(f, "");
        EXPECT(t && t->type == rows[i].type && t->ndim == rows[i].ndim && t->nbytes == rows[i].data);
        for (int d = 0; d < rows[i].ndim; d++)
            EXPECT(t->shape[d] == rows[i].shape[d] && t->stride[d] == rows[i].stride[d]);
        if (rows[i].data > 1) EXPECT_INT(((const uint8_t *)t->data)[1], 1);
        mica__file_close(f);
        free(block);
    }
}

TEST(npy_refused)
{
    static const struct {
        const char *dict;
        size_t data;
        mica_status status;
        const char *parts;
    } rows[] = {
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, MICA_ERR_UNSUPPORTED, "'|O'|pickle"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 4, MICA_ERR_UNSUPPORTED, "big-endian"},
        {"{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }", 2, MICA_ERR_UNSUPPORTED, "safetensors"},
        {"{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }", 12, MICA_ERR_UNSUPPORTED, "'<U3'"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }", 16, MICA_ERR_UNSUPPORTED, "'<f16'"},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,), }", 16, MICA_ERR_UNSUPPORTED, "''"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, MICA_ERR_UNSUPPORTED, "structured"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 11, MICA_ERR_FORMAT, "12 bytes|11"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 13, MICA_ERR_FORMAT, "12 bytes|13"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3), }", 12, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 2), }", 8, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,,), }", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, }", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0, MICA_ERR_FORMAT,
         "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, }", 4, MICA_ERR_FORMAT, "dict"},
        {"{'fortran_order': False, 'shape': (1,), }", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': __import__('os').system('x')}", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr: 1", 4, MICA_ERR_FORMAT, "dict"},
        {"{'des\\x63r': '<f4', 'fortran_order': False, 'shape': (1,), }", 4, MICA_ERR_FORMAT, "dict"},
        {"", 4, MICA_ERR_FORMAT, "dict"},
        {"[]", 4, MICA_ERR_FORMAT, "dict"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", 4, MICA_ERR_FORMAT, "dict"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i].dict);
        if (strstr(rows[i].parts, "'|O'")) refuse(npy(rows[i].dict, rows[i].data), NULL, rows[i].status, "pickle");
        else refuse(npy(rows[i].dict, rows[i].data), NULL, rows[i].status, rows[i].parts);
    }
    test_case("versions");
    for (int major = 0; major < 256; major += 4) {
        npy(rows[7].dict, 12);
        made.data[6] = (uint8_t)major;
        refuse(&made, NULL, MICA_ERR_UNSUPPORTED, "npy version");
    }
    test_case("header lengths");
    npy(rows[7].dict, 12);
    made.data[8] = made.data[9] = 0xff;
    refuse(&made, NULL, MICA_ERR_FORMAT, "header of 65535");
    made.data[6] = 2;
    memset(made.data + 8, 0xff, 4);
    refuse(&made, NULL, MICA_ERR_FORMAT, "header of 4294967295");
    npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 12);
    const size_t whole = made.n;
    for (size_t n = 6; n < whole; n++) {
        test_case("cut at %d", (int)n);
        made.n = n;
        refuse(&made, NULL, MICA_ERR_FORMAT, "test");
    }
}

/* --------------------------------------------------------------- inflate --- */

static mica__inflate_result inflate_hex(const char *hex, uint8_t *out, size_t cap, size_t *n)
{
    uint8_t *in = malloc(strlen(hex) / 2 + 1);
    size_t size = 0;
    if (!in) abort();
    for (unsigned v; sscanf(hex + 2 * size, "%2x", &v) == 1;) in[size++] = (uint8_t)v;
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact) abort();
    memcpy(exact, in, size);
    const mica__inflate_result result = mica__inflate((mica__span){exact, size}, out, cap, n);
    free(in);
    free(exact);
    return result;
}

/* Streams of zlib: stored, fixed and dynamic blocks. */
TEST(inflate_reads)
{
    uint8_t out[4096];
    size_t n;
    EXPECT_INT(inflate_hex("0300", out, sizeof out, &n), MICA__INFLATE_OK);
    EXPECT_INT(n, 0);
    EXPECT_INT(inflate_hex("010500faff68656c6c6f", out, sizeof out, &n), MICA__INFLATE_OK);
    EXPECT(n == 5 && memcmp(out, "hello", 5) == 0);
    EXPECT_INT(inflate_hex("cb48cdc9c95728cf2fca490100", out, sizeof out, &n), MICA__INFLATE_OK);
    EXPECT(n == 11 && memcmp(out, "hello world", 11) == 0);
    /* 1000 times the letter a: a distance of one */
    EXPECT_INT(inflate_hex("4b4c1c05a360140c770000", out, sizeof out, &n), MICA__INFLATE_OK);
    EXPECT_INT(n, 1000);
    for (size_t i = 0; i < n; i++) EXPECT_INT(out[i], 'a');
    static const char dynamic[] =
        "edced10d04210800d1da1411d143643748ff9d5cae81ab80ffc9e4950ad099f7eb6de925b9ac4dcb07a4195dc56bdcc2f6a2"
        "8ea542a98863c91330cdbbfa30d8b0aac261dfe467c17d653236f8c58d68aa5de413b8830e4a95b25147480f9de88ff220f8"
        "6dd3908634a4210d6948431ad2908634fc337c01";
    EXPECT_INT(inflate_hex(dynamic, out, sizeof out, &n), MICA__INFLATE_OK);
    EXPECT_INT(n, 3000);
    for (size_t i = 0; i < n; i++) EXPECT_INT(out[i], 65 + (i * i >> 3) % 11 * 2 + i % 3);
    /* a stream that is cut at any byte is invalid */
    for (size_t cut = 2; cut < sizeof dynamic - 1; cut += 2) {
        char shorter[sizeof dynamic];
        snprintf(shorter, sizeof shorter, "%.*s", (int)cut, dynamic);
        EXPECT_INT(inflate_hex(shorter, out, sizeof out, &n), MICA__INFLATE_BAD);
    }
    EXPECT_INT(inflate_hex("010500faff68656c6c6f", out, 4, &n), MICA__INFLATE_FULL);
    EXPECT_INT(n, 4);
    EXPECT_INT(inflate_hex("cb48cdc9c95728cf2fca490100", out, 7, &n), MICA__INFLATE_FULL);
    EXPECT_INT(n, 7);
}

TEST(inflate_refuses)
{
    static const char *const rows[] = {
        "",                     /* nothing                               */
        "06",                   /* block type 3                          */
        "07",                   /* the same, as the last                 */
        "01",                   /* stored, cut                           */
        "010500faff6865",       /* stored, cut inside                    */
        "010500fbff68656c6c6f", /* length and its complement differ      */
        "cb48cdc9",             /* fixed, cut                            */
        "4b04",                 /* fixed, cut                            */
        "030200",               /* fixed, a match before the beginning   */
        "05e0ff",               /* dynamic, too many codes, cut          */
        "edc08108000000",       /* dynamic, cut                          */
        "ff",
    };
    uint8_t out[64];
    size_t n;
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i]);
        EXPECT_INT(inflate_hex(rows[i], out, sizeof out, &n), MICA__INFLATE_BAD);
    }
}

TEST(crc)
{
    EXPECT_INT(mica__crc32(0, "", 0), 0);
    EXPECT_INT(mica__crc32(0, "123456789", 9), 0xcbf43926);
    EXPECT_INT(mica__crc32(mica__crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
}

/* ------------------------------------------------------------------- npz --- */

typedef struct member {
    const char *name;
    const char *local_name; /* NULL: the same                 */
    unsigned method, flags;
    const uint8_t *data;
    size_t packed, size;
    uint32_t crc;
    bool wide;              /* sizes in a zip64 field         */
    uint32_t local;         /* its offset in the file         */
    size_t local_shift;     /* a wrong offset in the directory */
} member;

static void put_zip_fields(bytes *b, const member *m)
{
    put_int(b, 20, 2);
    put_int(b, m->flags, 2);
    put_int(b, m->method, 2);
    put_int(b, 0, 4);
    put_int(b, m->crc, 4);
    put_int(b, m->wide ? UINT32_MAX : m->packed, 4);
    put_int(b, m->wide ? UINT32_MAX : m->size, 4);
}

static void put_wide(bytes *b, const member *m)
{
    if (!m->wide) return;
    put_int(b, 0x1234, 2), put_int(b, 2, 2), put_int(b, 0, 2); /* first an unknown field */
    put_int(b, 1, 2), put_int(b, 16, 2), put_int(b, m->size, 8), put_int(b, m->packed, 8);
}

/* A zip of these members; the numbers of the directory can be changed. */
static const bytes *zip(member *members, size_t n, int64_t count_off, int64_t size_off, int64_t at_off, bool wide)
{
    bytes *b = &made;
    b->n = 0;
    for (size_t i = 0; i < n; i++) {
        member *m = &members[i];
        const char *name = m->local_name ? m->local_name : m->name;
        m->local = (uint32_t)b->n;
        put(b, "PK\3\4", 4);
        put_zip_fields(b, m);
        put_int(b, strlen(name), 2);
        put_int(b, m->wide ? 26 : 0, 2);
        put(b, name, strlen(name));
        put_wide(b, m);
        put(b, m->data, m->packed);
    }
    const size_t at = b->n;
    for (size_t i = 0; i < n; i++) {
        const member *m = &members[i];
        put(b, "PK\1\2\x14\0", 6);
        put_zip_fields(b, m);
        put_int(b, strlen(m->name), 2);
        put_int(b, m->wide ? 26 : 0, 2);
        put_int(b, 0, 8);
        put_int(b, 0, 2);
        put_int(b, m->local + m->local_shift, 4);
        put(b, m->name, strlen(m->name));
        put_wide(b, m);
    }
    const uint64_t size = b->n - at + (uint64_t)size_off, count = n + (uint64_t)count_off;
    const uint64_t end64 = b->n;
    if (wide) {
        put(b, "PK\6\6", 4);
        put_int(b, 44, 8), put_int(b, 45, 2), put_int(b, 45, 2), put_int(b, 0, 8);
        put_int(b, count, 8), put_int(b, count, 8), put_int(b, size, 8), put_int(b, at + (uint64_t)at_off, 8);
        put(b, "PK\6\7\0\0\0\0", 8);
        put_int(b, end64, 8), put_int(b, 1, 4);
    }
    put(b, "PK\5\6\0\0\0\0", 8);
    put_int(b, wide ? 0xffff : count, 2), put_int(b, wide ? 0xffff : count, 2);
    put_int(b, wide ? UINT32_MAX : size, 4), put_int(b, wide ? UINT32_MAX : at + (uint64_t)at_off, 4);
    put_int(b, 0, 2);
    return b;
}

static bytes array; /* the npy in the members */

static member stored(const char *name)
{
    array.n = 0;
    put_npy(&array, 1, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", 12);
    return (member){.name = name,
                    .data = array.data,
                    .packed = array.n,
                    .size = array.n,
                    .crc = mica__crc32(0, array.data, array.n)};
}

/* Deflate in stored blocks: enough to be an entry of method 8. */
static member deflated(const char *name)
{
    static uint8_t packed[4096];
    member m = stored(name);
    packed[0] = 1;
    packed[1] = (uint8_t)m.size, packed[2] = (uint8_t)(m.size >> 8);
    packed[3] = (uint8_t)~m.size, packed[4] = (uint8_t)(~m.size >> 8);
    memcpy(packed + 5, array.data, m.size);
    m.data = packed;
    m.packed = m.size + 5;
    m.method = 8;
    return m;
}

TEST(npz_reads)
{
    for (int kind = 0; kind < 8; kind++) {
        test_case("%s%s%s", kind & 1 ? "deflated " : "stored ", kind & 2 ? "zip64 " : "", kind & 4 ? "wide sizes" : "");
        member members[2] = {kind & 1 ? deflated("x.npy") : stored("x.npy"), stored("folder/y.npy")};
        members[0].wide = kind & 4;
        zip(members, 2, 0, 0, 0, kind & 2);
        mica__file *f;
        uint8_t *block;
        CHECK_MSG(open_bytes(&made, &(mica__file_options){.check = true}, &f, &block) == MICA_OK, "%s",
                  mica_last_error());
        EXPECT_INT(mica__file_get_kind(f), MICA__FILE_NPZ);
        CHECK_INT(mica__file_count(f), 2);
        const mica__stored *x = mica__file_find(f, "x"), *y = mica__file_find(f, "folder/y");
        CHECK(x && y);
        EXPECT(x->type == MICA__QUANT_I16 && x->ndim == 2 && x->shape[1] == 3 && x->nbytes == 12);
        EXPECT(memcmp(x->data, y->data, 12) == 0 && ((const uint8_t *)x->data)[11] == 11);
        mica__file_close(f);
        free(block);
    }
}

TEST(npz_refused)
{
    static const mica__file_options check = {.check = true};
    member m;
    test_case("a name that leads out");
    static const char *const names[] = {"../x.npy", "/x.npy", "a/../x.npy", "..\\x.npy", "a\\x.npy"};
    for (size_t i = 0; i < COUNT(names); i++) {
        m = stored(names[i]);
        refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "lead out of a folder");
    }
    test_case("pickles");
    m = stored("archive/data.pkl");
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_UNSUPPORTED, "PyTorch");
    m = stored("x.txt");
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_UNSUPPORTED, "without npy");
    test_case("encrypted, other methods");
    m = stored("x.npy"), m.flags = 1;
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_UNSUPPORTED, "'x.npy'|encrypted");
    m = stored("x.npy"), m.method = 12;
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_UNSUPPORTED, "other than deflate");
    test_case("sizes");
    m = stored("x.npy"), m.size++;
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "two sizes differ");
    m = deflated("x.npy"), m.size++;
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "tensor 'x'|12 bytes");
    m = deflated("x.npy"), m.size = (size_t)1 << 31;
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "cannot become as large");
    m = deflated("x.npy"), m.packed -= 3; /* the stream is cut */
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "deflate");
    test_case("checksums");
    m = deflated("x.npy"), m.crc ^= 1;
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "checksum");
    m = stored("x.npy"), m.crc ^= 1;
    refuse(zip(&m, 1, 0, 0, 0, false), &check, MICA_ERR_FORMAT, "checksum");
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_OK, ""); /* checked only with options.check */
    test_case("the limit of inflated bytes");
    m = deflated("x.npy");
    refuse(zip(&m, 1, 0, 0, 0, false), &(mica__file_options){.inflate_limit = 50}, MICA_ERR_MEMORY, "limit of 50");
    test_case("headers that differ");
    m = stored("x.npy"), m.local_name = "y.npy";
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "differs from the directory");
    m = stored("x.npy"), m.local_shift = 1;
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "differs from the directory");
    m = stored("x.npy"), m.local_shift = 1u << 30;
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "offset");
    test_case("overlap");
    member two[2] = {stored("x.npy"), stored("x.npy")};
    zip(two, 2, 0, 0, 0, false);
    two[1].local_shift = (size_t)0 - two[1].local; /* the second has the offset of the first */
    refuse(zip(two, 2, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "overlaps");
    test_case("a name twice");
    two[1].local_shift = 0;
    refuse(zip(two, 2, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "two tensors are named 'x'");
    for (int wide = 0; wide < 2; wide++) {
        test_case("directories with wrong contents%s", wide ? ", zip64" : "");
        m = stored("x.npy");
        refuse(zip(&m, 1, 1, 0, 0, wide), NULL, MICA_ERR_FORMAT, "director");
        refuse(zip(&m, 1, 0, 100, 0, wide), NULL, MICA_ERR_FORMAT, "director");
        refuse(zip(&m, 1, 0, -1, 0, wide), NULL, MICA_ERR_FORMAT, "director");
        refuse(zip(&m, 1, 0, 0, 1, wide), NULL, MICA_ERR_FORMAT, "director");
        refuse(zip(&m, 1, 0, 0, -1000000, wide), NULL, MICA_ERR_FORMAT, "director");
    }
    test_case("every truncation");
    m = stored("x.npy");
    zip(&m, 1, 0, 0, 0, false);
    for (size_t n = 4, whole = made.n; n < whole; n++) {
        made.n = n;
        refuse(&made, NULL, MICA_ERR_FORMAT, "directory");
    }
}

/* An array of zeros that inflates to a thousand times its size. Its header is valid, so it
 * is read up to the limit. */
TEST(npz_bomb)
{
    /* fixed block: the npy header as literals is long; a stored block, then matches */
    bytes *b = &array;
    b->n = 0;
    put_npy(b, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000,), }", 0);
    static uint8_t packed[4096];
    size_t n = 0;
    packed[n++] = 0;
    packed[n++] = (uint8_t)b->n, packed[n++] = 0, packed[n++] = (uint8_t)~b->n, packed[n++] = 0xff;
    memcpy(packed + n, b->data, b->n);
    n += b->n;
    packed[n++] = 3, packed[n++] = 0; /* the last block is empty */
    member m = {.name = "x.npy", .method = 8, .data = packed, .packed = n, .size = b->n + 1000000000};
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "cannot become as large");
    m.size = b->n;
    refuse(zip(&m, 1, 0, 0, 0, false), NULL, MICA_ERR_FORMAT, "tensor 'x'|1000000000");
}

/* x, and x + 1. */
static void arrays_of_numpy(const char *path)
{
    mica__file *f;
    CHECK_MSG(mica__file_open(path, &(mica__file_options){.check = true}, &f) == MICA_OK, "%s", mica_last_error());
    const mica__stored *x = mica__file_find(f, "x"), *y = mica__file_find(f, "x_plus_one");
    CHECK(x && y && x->type == MICA__QUANT_I64 && x->shape[0] == 10);
    for (int i = 0; i < 10; i++) {
        int64_t a, b;
        memcpy(&a, (const char *)x->data + 8 * i, 8);
        memcpy(&b, (const char *)y->data + 8 * i, 8);
        EXPECT_INT(b, a + 1);
    }
    mica__file_close(f);
}

static void array_of_numpy(const char *path)
{
    mica__file *f;
    CHECK_MSG(mica__file_open(path, NULL, &f) == MICA_OK, "%s", mica_last_error());
    EXPECT_INT(mica__file_count(f), 1);
    mica__file_close(f);
}

TEST(files_of_numpy)
{
    static const char *const fixtures[] = {"formats/numpy.npz", "formats/numpy_deflated.npz"};
    for (size_t i = 0; i < COUNT(fixtures); i++) {
        test_case("%s", fixtures[i]);
        CHECK(io_fixture(fixtures[i]));
        arrays_of_numpy(io_fixture(fixtures[i]));
    }
    test_case("numpy.npy");
    array_of_numpy(io_fixture("formats/numpy.npy"));
    if (!io_data("formats/candle-test.npz")) return;
    test_case("real files");
    arrays_of_numpy(io_data("formats/candle-test.npz"));
    array_of_numpy(io_data("formats/candle-test.npy"));
    const char *path = io_data("timeseries/cheetah/trace_0001.npy");
    if (path) array_of_numpy(path);
}
