/* Reader of npy versions 1 to 3: a Python dict as text, then the array.
 *
 * The dict is parsed as literals (strings, integers, tuples, True and False), never evaluated.
 * Pickled objects, structured and big-endian types are refused by name. Fortran order is
 * expressed by strides. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/model_build.h"

enum { NPY_MAX_HEADER = 1 << 20 };

typedef struct npy_text {
    const char *p, *end;
} npy_text;

static void npy_space(npy_text *t)
{
    while (t->p < t->end && (*t->p == ' ' || *t->p == '\n' || *t->p == '\t' || *t->p == '\r')) t->p++;
}

static bool npy_eat(npy_text *t, const char *text)
{
    npy_space(t);
    const size_t n = strlen(text);
    if ((size_t)(t->end - t->p) < n || memcmp(t->p, text, n) != 0) return false;
    t->p += n;
    return true;
}

/* 'text' or "text", without escapes. */
static bool npy_string(npy_text *t, const char **text, size_t *length)
{
    npy_space(t);
    if (t->p >= t->end || (*t->p != '\'' && *t->p != '"')) return false;
    const char *close = memchr(t->p + 1, *t->p, (size_t)(t->end - t->p - 1));
    if (!close || memchr(t->p, '\\', (size_t)(close - t->p))) return false;
    *text = t->p + 1;
    *length = (size_t)(close - t->p - 1);
    t->p = close + 1;
    return true;
}

static bool npy_integer(npy_text *t, int64_t *out)
{
    npy_space(t);
    const char *from = t->p;
    int64_t v = 0;
    for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++)
        if (__builtin_mul_overflow(v, (int64_t)10, &v) || __builtin_add_overflow(v, (int64_t)(*t->p - '0'), &v))
            return false;
    *out = v;
    return t->p > from;
}

static mica_status refuse_descr(const mica__file *file, const char *which, const char *descr, size_t n, const char *why)
{
    char quoted[MICA__QUOTE_TEXT];
    return mica__fail(MICA_ERR_UNSUPPORTED, "%s: %s has the type %s: %s", file->path, which,
                      mica__quote(quoted, descr, n), why);
}

static mica_status npy_type(const mica__file *file, const char *which, const char *d, size_t n, mica__quant_id *out)
{
    static const struct {
        char text[3];
        mica__quant_id id;
    } types[] = {{"b1", MICA__QUANT_BOOL}, {"i1", MICA__QUANT_I8},  {"u1", MICA__QUANT_U8},  {"i2", MICA__QUANT_I16},
                 {"u2", MICA__QUANT_U16},  {"i4", MICA__QUANT_I32}, {"u4", MICA__QUANT_U32}, {"i8", MICA__QUANT_I64},
                 {"u8", MICA__QUANT_U64},  {"f2", MICA__QUANT_F16}, {"f4", MICA__QUANT_F32}, {"f8", MICA__QUANT_F64},
                 {"c8", MICA__QUANT_C64}};
    if (n >= 2 && d[1] == 'O') return refuse_descr(file, which, d, n, "pickled Python objects are never read");
    if (n >= 1 && d[0] == '>') return refuse_descr(file, which, d, n, "big-endian data are not read");
    if (n >= 2 && d[1] == 'V')
        return refuse_descr(file, which, d, n, "raw bytes of unknown type; store bf16 as safetensors");
    if (n == 3 && (d[0] == '<' || d[0] == '|' || d[0] == '='))
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
            if (memcmp(d + 1, types[i].text, 2) == 0) {
                *out = types[i].id;
                return MICA_OK;
            }
    return refuse_descr(file, which, d, n, "not one of bool, integers, f2, f4, f8 and c8");
}

static bool npy_shape(npy_text *t, mica__stored *out)
{
    if (!npy_eat(t, "(")) return false;
    bool comma = true;
    for (out->ndim = 0; !npy_eat(t, ")"); out->ndim++) {
        if (!comma || out->ndim == MICA_MAX_DIMS || !npy_integer(t, &out->shape[out->ndim])) return false;
        (void)npy_eat(t, "L"); /* Python 2 */
        comma = npy_eat(t, ",");
    }
    return out->ndim != 1 || comma; /* (3) is a number, (3,) a tuple */
}

/* The dict of the header. */
static mica_status npy_dict(const mica__file *file, const char *which, npy_text text, mica__stored *t)
{
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    int seen = 0;
    bool fortran = false, comma = true, good = npy_eat(&text, "{");
    while (good && !npy_eat(&text, "}")) {
        const char *key, *value;
        size_t n, length;
        good = comma && npy_string(&text, &key, &n) && npy_eat(&text, ":");
        if (!good) break;
        int now = 0;
        if (n == 5 && memcmp(key, "descr", 5) == 0) {
            now = DESCR;
            npy_space(&text);
            if (text.p < text.end && *text.p == '[')
                return refuse_descr(file, which, "[", 1, "structured arrays are not read");
            if ((good = npy_string(&text, &value, &length))) MICA_TRY(npy_type(file, which, value, length, &t->type));
        } else if (n == 13 && memcmp(key, "fortran_order", 13) == 0) {
            now = ORDER;
            fortran = npy_eat(&text, "True");
            good = fortran || npy_eat(&text, "False");
        } else if (n == 5 && memcmp(key, "shape", 5) == 0) {
            now = SHAPE;
            good = npy_shape(&text, t);
        }
        good = good && now && !(seen & now);
        seen |= now;
        comma = npy_eat(&text, ",");
    }
    npy_space(&text);
    if (!good || seen != (DESCR | ORDER | SHAPE) || text.p != text.end)
        return mica__build_fail(file, "%s: the npy header is not a dict of descr, fortran_order and shape", which);
    mica__build_strides(t);
    uint64_t stride = 1;
    for (int i = 0; fortran && i < t->ndim; stride *= (uint64_t)t->shape[i++]) t->stride[i] = (int64_t)stride;
    return MICA_OK;
}

mica_status mica__npy_header(const mica__file *file, const char *name, mica__span span, mica__stored *t,
                             size_t *data_at)
{
    char quoted[MICA__QUOTE_TEXT], which[MICA__QUOTE_TEXT + 8] = "the array";
    if (name[0]) snprintf(which, sizeof which, "array %s", mica__quote(quoted, name, strlen(name)));
    if (span.size < 10 || memcmp(span.data, "\x93NUMPY", 6) != 0)
        return mica__build_fail(file, "%s: %s", which,
                                span.size < 10 ? "too short for npy" : "does not begin with the npy signature");
    const int major = span.data[6], wide = major >= 2;
    if (major < 1 || major > 3 || span.data[7] != 0)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: %s: npy version %d.%d; 1 to 3 are read", file->path, which, major,
                          (int)span.data[7]);
    const size_t head = wide ? 12 : 10;
    if (span.size < head) return mica__build_fail(file, "%s: too short for npy", which);
    const size_t length = wide ? mica__load_u32(span.data + 8) : mica__load_u16(span.data + 8);
    if (length > NPY_MAX_HEADER || length > span.size - head)
        return mica__build_fail(file, "%s: an npy header of %zu bytes; the file has %zu, allowed are %d", which, length,
                                span.size - head, NPY_MAX_HEADER);
    const char *text = (const char *)span.data + head;
    MICA_TRY(npy_dict(file, which, (npy_text){text, text + length}, t));
    *data_at = head + length;
    return MICA_OK;
}

mica_status mica__npy_read(mica__file *file, int map)
{
    const mica__span span = file->maps[map].span;
    mica__stored *t;
    size_t at, nbytes;
    MICA_TRY(mica__build_tensor(file, &t));
    MICA_TRY(mica__npy_header(file, "", span, t, &at));
    MICA_TRY(mica__build_nbytes(file, t, &nbytes));
    char shape[MICA__SHAPE_TEXT];
    if (nbytes != span.size - at)
        return mica__build_fail(file, "shape %s of %s needs %zu bytes, %zu follow the header at byte %zu",
                                mica__shape_text(shape, t->ndim, t->shape), mica__quant_name(t->type), nbytes,
                                span.size - at, at);
    t->map = map;
    t->data = span.data + at;
    t->nbytes = nbytes;
    t->offset = at;
    return MICA_OK;
}
