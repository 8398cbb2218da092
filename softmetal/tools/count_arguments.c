/* See count_arguments.h. Numbers are decimal or 0x...; sizes may end in K, M or G. */
#include "count_arguments.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct type_row {
    const char *name;
    sm_type type;
    int size;
} types[] = {{"bool", SM_BOOL, 1},     {"char", SM_CHAR, 1}, {"uchar", SM_UCHAR, 1},   {"short", SM_SHORT, 2},
             {"ushort", SM_USHORT, 2}, {"int", SM_INT, 4},   {"uint", SM_UINT, 4},     {"long", SM_LONG, 8},
             {"ulong", SM_ULONG, 8},   {"half", SM_HALF, 2}, {"bfloat", SM_BFLOAT, 2}, {"float", SM_FLOAT, 4}};

static bool wrong(count_arguments *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(count_arguments *a, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(a->problem, sizeof a->problem, format, list);
    va_end(list);
    return false;
}

char *count_read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0, at = 0;
    bool good = file != NULL;
    while (good) {
        if (room - at < 65536) {
            char *more = realloc(text, room += 1 << 20);
            good = more != NULL;
            if (good) text = more;
            if (!good) break;
        }
        const size_t n = fread(text + at, 1, 65535, file);
        at += n;
        if (n == 0) break;
    }
    if (file && ferror(file)) good = false;
    if (file) fclose(file);
    if (good) text[at] = '\0';
    else free(text);
    *length = at;
    return good ? text : NULL;
}

static const struct type_row *find_type(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == length && !memcmp(types[i].name, text, length)) return &types[i];
    return NULL;
}

static bool parse_size(const char *text, char **end, size_t *size)
{
    errno = 0;
    unsigned long long n = strtoull(text, end, 0);
    if (*end == text || errno || !isdigit((unsigned char)*text)) return false;
    const int shift = **end == 'K' ? 10 : **end == 'M' ? 20 : **end == 'G' ? 30 : 0;
    if (shift) ++*end;
    if (n > (SIZE_MAX >> 4 >> shift)) return false;
    *size = (size_t)n << shift;
    return true;
}

static bool parse_three(count_arguments *a, const char *option, const char *text, uint32_t out[3])
{
    out[0] = out[1] = out[2] = 1;
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        char *end;
        errno = 0;
        const unsigned long long n = strtoull(at, &end, 0);
        if (end == at || errno || n == 0 || n > UINT32_MAX || !isdigit((unsigned char)*at)) break;
        out[i] = (uint32_t)n;
        if (!*end) return true;
        if (*end != ',') break;
        at = end + 1;
    }
    return wrong(a, "%s %s: it is X,Y,Z, positive integers; Y and Z may be left out", option, text);
}

/* "N=" */
static const char *parse_index(count_arguments *a, const char *option, const char *text, int *index)
{
    char *end;
    const long n = strtol(text, &end, 10);
    if (end != text && *end == '=' && n >= 0 && n < SM_BUFFERS) {
        *index = (int)n;
        return end + 1;
    }
    wrong(a, "%s %s: it begins with N=, N from 0 to %d", option, text, SM_BUFFERS - 1);
    return NULL;
}

static bool bind(count_arguments *a, int index, size_t length)
{
    sm_buffer *b = &a->dispatch.buffers[index];
    if (b->address) return wrong(a, "buffer %d is given twice", index);
    if (length == 0) return wrong(a, "buffer %d has no bytes", index);
    *b = (sm_buffer){sm_memory_open(length, false), length};
    return b->address || wrong(a, "buffer %d of %zu bytes: out of memory", index, length);
}

/* The half nearest to x, ties to even. */
static uint16_t half_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    const float magnitude = x < 0 ? -x : x;
    if (!(magnitude < 65520.0f)) return (uint16_t)(sign | (magnitude <= INFINITY ? 0x7c00 : 0x7e00));
    if (magnitude < 0x1p-14f) { /* a subnormal: multiples of 2^-24 */
        const float scaled = magnitude * 0x1p24f + 0x1p23f; /* the addition rounds to an integer */
        memcpy(&bits, &scaled, sizeof bits);
        return (uint16_t)(sign | (bits & 0x7ff));
    }
    bits = (bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | ((bits - 0x38000000) >> 13));
}

/* One number of the type; *end is after it. */
static bool parse_value(const struct type_row *type, const char *text, char **end, unsigned char *bytes)
{
    errno = 0;
    if (type->type == SM_BOOL && (!strncmp(text, "true", 4) || !strncmp(text, "false", 5))) {
        bytes[0] = *text == 't';
        *end = (char *)(uintptr_t)(text + (*text == 't' ? 4 : 5));
        return true;
    }
    if (type->type == SM_FLOAT || type->type == SM_HALF || type->type == SM_BFLOAT) {
        const float x = strtof(text, end);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        const uint16_t half = half_of(x), brain = (uint16_t)(bits >> 16); /* truncated: a count needs no rounding */
        if (type->type == SM_FLOAT) memcpy(bytes, &bits, 4);
        else memcpy(bytes, type->type == SM_HALF ? &half : &brain, 2);
        return *end != text;
    }
    const long long n = *text == '-' ? strtoll(text, end, 0) : (long long)strtoull(text, end, 0);
    memcpy(bytes, &n, (size_t)type->size); /* little endian, as all machines that softmetal runs on */
    return *end != text && !errno;
}

static void fill(const char *how, unsigned char *bytes, size_t length)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    uint32_t number = 0;
    for (size_t i = 0; i < length; i += 4) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint32_t word = !strcmp(how, "iota") ? number++ : (uint32_t)(state >> 33);
        memcpy(bytes + i, &word, length - i < 4 ? length - i : 4);
    }
}

static bool read_buffer(count_arguments *a, const char *text)
{
    int index;
    const char *at = parse_index(a, "--buffer", text, &index);
    char *end;
    size_t length;
    if (!at) return false;
    if (!parse_size(at, &end, &length) || (*end && *end != ':'))
        return wrong(a, "--buffer %s: it is N=SIZE[:zero|random|iota|FILE]", text);
    if (!bind(a, index, length)) return false;
    const char *how = *end ? end + 1 : "zero";
    unsigned char *bytes = a->dispatch.buffers[index].address;
    if (!strcmp(how, "zero")) return true;
    if (!strcmp(how, "random") || !strcmp(how, "iota")) {
        fill(how, bytes, length);
        return true;
    }
    size_t n;
    char *file = count_read_file(how, &n);
    if (!file) return wrong(a, "--buffer %s: cannot read '%s'", text, how);
    memcpy(bytes, file, n < length ? n : length);
    free(file);
    return true;
}

static int digit(char c)
{
    const char *const digits = "0123456789abcdef", *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

static bool read_hex(count_arguments *a, int index, const char *text)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if (digit(text[i]) < 0) return wrong(a, "--bytes %d=%s: neither hex digits nor TYPE:VALUE,...", index, text);
    if (n % 2) return wrong(a, "--bytes %d=%s: an odd number of hex digits", index, text);
    if (!bind(a, index, n / 2)) return false;
    unsigned char *bytes = a->dispatch.buffers[index].address;
    for (size_t i = 0; i < n / 2; i++) bytes[i] = (unsigned char)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    return true;
}

/* "uint:1,2,float:0.5": values, aligned to their sizes as in a struct. */
static bool read_values(count_arguments *a, int index, const char *text)
{
    unsigned char bytes[4096];
    size_t length = 0;
    const struct type_row *type = NULL;
    for (const char *at = text; *at;) {
        const char *colon = at + strcspn(at, ":,");
        if (*colon == ':') {
            type = find_type(at, (size_t)(colon - at));
            at = colon + 1;
        }
        char *end;
        if (!type) return wrong(a, "--bytes %d=%s: '%.20s' is not a type of MSL", index, text, at);
        length = (length + (size_t)type->size - 1) / (size_t)type->size * (size_t)type->size;
        if (length + 8 > sizeof bytes) return wrong(a, "--bytes %d: more than %zu bytes", index, sizeof bytes);
        if (!parse_value(type, at, &end, bytes + length) || (*end && *end != ','))
            return wrong(a, "--bytes %d=%s: '%.20s' is not a %s", index, text, at, type->name);
        length += (size_t)type->size;
        at = *end ? end + 1 : end;
    }
    if (!bind(a, index, length)) return false;
    memcpy(a->dispatch.buffers[index].address, bytes, length);
    return true;
}

static bool read_bytes(count_arguments *a, const char *text)
{
    int index;
    const char *at = parse_index(a, "--bytes", text, &index);
    if (!at) return false;
    return strchr(at, ':') ? read_values(a, index, at) : read_hex(a, index, at);
}

/* "I=TYPE:VALUE" or "NAME=TYPE:VALUE" */
static bool read_constant(count_arguments *a, char *text)
{
    char *equal = strchr(text, '='), *colon = equal ? strchr(equal, ':') : NULL, *end = text;
    const struct type_row *type = colon ? find_type(equal + 1, (size_t)(colon - equal - 1)) : NULL;
    if (!type) return wrong(a, "--constant %s: it is I=TYPE:VALUE, I an index or a name", text);
    if (a->constants_count == MOST_CONSTANTS) return wrong(a, "more than %d constants", MOST_CONSTANTS);
    sm_constant *c = &a->constants[a->constants_count];
    unsigned char *value = a->values[a->constants_count];
    int width = 0;
    for (const char *at = colon + 1; width < 4; at = end + 1) {
        if (!parse_value(type, at, &end, value + width * type->size)) break;
        width++;
        if (*end != ',') break;
    }
    if (!width || *end) return wrong(a, "--constant %s: not a value of %s", text, type->name);
    *c = (sm_constant){.type = type->type, .width = width, .value = value};
    c->index = (int)strtol(text, &end, 10);
    if (end != equal) {
        *equal = '\0';
        c->name = text;
    }
    a->constants_count++;
    return true;
}

static bool read_define(count_arguments *a, char *text)
{
    if (a->options.defines_count == MOST_DEFINES) return wrong(a, "more than %d defines", MOST_DEFINES);
    char *value = strchr(text, '=');
    if (value) *value++ = '\0';
    a->defines[a->options.defines_count++] = (sm_define){text, value ? value : "1"};
    return true;
}

static bool read_local(count_arguments *a, const char *text)
{
    int index;
    const char *at = parse_index(a, "--threadgroup", text, &index);
    char *end;
    if (!at) return false;
    if (!parse_size(at, &end, &a->dispatch.threadgroup_bytes[index]) || *end)
        return wrong(a, "--threadgroup %s: it is N=BYTES", text);
    return true;
}

static bool read_groups(count_arguments *a, const char *text)
{
    char *end;
    size_t n;
    if (!parse_size(text, &end, &n) || *end || n == 0) return wrong(a, "--groups %s: it is a positive integer", text);
    a->groups = n;
    return true;
}

/* An option with a value. */
static bool read_option(count_arguments *a, const char *option, char *value)
{
    if (!strcmp(option, "--grid")) return parse_three(a, option, value, a->dispatch.threads);
    if (!strcmp(option, "--threads")) return parse_three(a, option, value, a->dispatch.group);
    if (!strcmp(option, "--buffer")) return read_buffer(a, value);
    if (!strcmp(option, "--bytes")) return read_bytes(a, value);
    if (!strcmp(option, "--constant")) return read_constant(a, value);
    if (!strcmp(option, "--threadgroup")) return read_local(a, value);
    if (!strcmp(option, "--groups")) return read_groups(a, value);
    if (!strcmp(option, "-D")) return read_define(a, value);
    if (strcmp(option, "-I") != 0) return wrong(a, "unknown option '%s'", option);
    a->options.include = value;
    return true;
}

bool count_arguments_read(count_arguments *a, int argc, char **argv)
{
    memset(a, 0, sizeof *a);
    a->options = (sm_options){.fast_math = true, .defines = a->defines};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) a->help = true;
        else if (!strcmp(argv[i], "--json")) a->json = true;
        else if (!strcmp(argv[i], "--precise")) a->options.fast_math = false;
        else if (argv[i][0] != '-' && !a->file) a->file = argv[i];
        else if (argv[i][0] != '-' && !a->kernel) a->kernel = argv[i];
        else if (argv[i][0] != '-') return wrong(a, "'%s': one file and one kernel", argv[i]);
        else if (i + 1 == argc) return wrong(a, "unknown option '%s', or its value is missing", argv[i]);
        else if (!read_option(a, argv[i], argv[i + 1])) return false;
        else i++;
    }
    if (a->help) return true;
    if (!a->file || !a->kernel) return wrong(a, "a file and a kernel are needed");
    if (!a->dispatch.threads[0] || !a->dispatch.group[0]) return wrong(a, "--grid and --threads are needed");
    a->options.file = a->file;
    return true;
}

void count_arguments_free(count_arguments *a)
{
    for (int i = 0; i < SM_BUFFERS; i++) sm_memory_close(a->dispatch.buffers[i].address, a->dispatch.buffers[i].length);
}
