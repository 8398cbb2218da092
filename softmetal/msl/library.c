/* Opens libraries and builds kernels. A library is preprocessed and parsed once;
 * then for each kernel the text with its function constants is compiled. */
#include "../count/record.h"
#include "../runtime/kernel.h"
#include "build.h"
#include "msl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sm_library {
    sm_text text; /* preprocessed; the tokens point into it */
    msl_unit unit;
    bool fast, fast_functions;
    int version;
    bool built; /* its only kernel was compiled when it was opened */
};

const char *sm_unavailable(void) { return sm_build_unavailable(); }

/* -D and -I arguments; names holds their strings. */
static const char **extra_arguments(const sm_options *options, sm_text *names)
{
    int count = options->defines_count, n = 0;
    for (const char *p = options->include; p && *p; p++) count += *p == ':';
    const char **list = calloc((size_t)count + 2, sizeof *list);
    size_t *at = calloc((size_t)count + 2, sizeof *at);
    if (list && at) {
        for (int i = 0; i < options->defines_count; i++) {
            at[n++] = names->length;
            const char *value = options->defines[i].value;
            sm_text_print(names, "-D%s=%s", options->defines[i].name, value ? value : "");
            sm_text_add(names, "", 1);
        }
        for (const char *p = options->include; p && *p;) {
            int length = (int)strcspn(p, ":");
            at[n++] = names->length;
            sm_text_print(names, "-I%.*s", length, p);
            sm_text_add(names, "", 1);
            p += length + (p[length] == ':');
        }
        for (int i = 0; i < n && names->bytes; i++) list[i] = names->bytes + at[i];
    }
    free(at);
    return list;
}

bool msl_preprocess(const char *source, size_t length, const sm_options *options, sm_text *out, char **message)
{
    /* The syntax is the same in all modes. */
    const sm_build_mode mode = {.fast = options->fast_math, .version = options->language_version};
    const char *file = options->file ? options->file : "program_source";
    sm_text names = {0};
    const char **extra = extra_arguments(options, &names);
    const bool good = extra && !names.failed && sm_build_preprocess(&mode, source, length, file, extra, out, message);
    free(extra);
    sm_text_free(&names);
    return good;
}

static sm_build_mode mode_of(const sm_library *library, const msl_name *name)
{
    return sm_build_mode_now(library->fast, library->fast_functions, library->unit.kernels[name->kernel].threadgroup,
                             library->version);
}

/* A library of one kernel without function constants is compiled when it is opened: this also checks its syntax, and
 * the kernel will be needed. Errors are ignored here; the check that follows reports them. */
static bool build_only_kernel(sm_library *library)
{
    const msl_unit *unit = &library->unit;
    if (unit->names_count != 1 || unit->constants_count != 0) return false;
    const sm_build_mode mode = mode_of(library, &unit->names[0]);
    sm_text text = {0};
    char *path = NULL, *message = NULL;
    bool from_cache = false, good = msl_emit(unit, NULL, &text);
    if (good) msl_emit_entry(unit, &unit->names[0], &text);
    good = good && !text.failed && sm_build_module(&mode, &text, &path, &from_cache, &message);
    library->built = good && !from_cache;
    sm_text_free(&text);
    free(path);
    free(message);
    return good;
}

static bool read_library(sm_library *library, const char *source, size_t length, const sm_options *options,
                         char **message)
{
    const sm_build_mode mode = {
        .fast = library->fast, .fast_functions = library->fast_functions, .version = library->version};
    if (!msl_preprocess(source, length, options, &library->text, message) ||
        !msl_lex(&library->unit.tokens, library->text.bytes, library->text.length, message) ||
        !msl_check_names(&library->unit, sm_build_version(&mode), message) || !msl_parse(&library->unit, message))
        return false;
    if (options->unchecked || build_only_kernel(library)) return true;
    sm_text text = {0};
    const bool good = msl_emit(&library->unit, NULL, &text) && sm_build_check(&mode, &text, message);
    sm_text_free(&text);
    return good;
}

sm_library *sm_library_open(const char *source, size_t length, const sm_options *options, char **message)
{
    static const sm_options usual = {.fast_math = true};
    char *unused = NULL;
    if (!message) message = &unused;
    *message = NULL;
    if (!options) options = &usual;
    sm_library *library = calloc(1, sizeof *library);
    if (library) {
        library->fast = options->fast_math;
        library->fast_functions = options->functions == SM_FUNCTIONS_FAST ||
                                  (options->functions == SM_FUNCTIONS_AS_MATH && options->fast_math);
        library->version = options->language_version;
    }
    if (!library || !read_library(library, source, length, options, message)) {
        sm_set_message(message, "out of memory");
        sm_library_close(library);
        library = NULL;
    }
    free(unused);
    return library;
}

void sm_library_close(sm_library *library)
{
    if (!library) return;
    msl_unit_free(&library->unit);
    sm_text_free(&library->text);
    free(library);
}

int sm_library_kernels(const sm_library *library) { return library->unit.names_count; }

const char *sm_library_kernel(const sm_library *library, int index)
{
    return index >= 0 && index < library->unit.names_count ? library->unit.names[index].host : NULL;
}

static const msl_name *find_name(const sm_library *library, const char *name)
{
    for (int i = 0; i < library->unit.names_count; i++)
        if (!strcmp(library->unit.names[i].host, name)) return &library->unit.names[i];
    return NULL;
}

bool sm_library_function(const sm_library *library, const char *name, sm_function *function)
{
    const msl_name *n = find_name(library, name);
    if (!n) return false;
    const msl_kernel *k = &library->unit.kernels[n->kernel];
    int limit = k->max_threads ? atoi(k->max_threads) : 0;
    *function = (sm_function){n->host, k->arguments, k->arguments_count, limit, n->line};
    return true;
}

int sm_library_constants(const sm_library *library, const sm_function_constant **constants)
{
    *constants = library->unit.facts;
    return library->unit.constants_count;
}

/* ---- values of function constants as C++ text ---- */

static size_t type_size(sm_type type)
{
    static const unsigned char sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4};
    return sizes[type];
}

static void print_value(sm_text *text, sm_type type, const unsigned char *bytes)
{
    uint64_t u = 0;
    memcpy(&u, bytes, type_size(type));
    switch (type) {
    case SM_BOOL: sm_text_print(text, "%s", u ? "true" : "false"); break;
    case SM_CHAR: sm_text_print(text, "%d", (int)(int8_t)u); break;
    case SM_SHORT: sm_text_print(text, "%d", (int)(int16_t)u); break;
    case SM_INT: sm_text_print(text, "(%lld)", (long long)(int32_t)u); break;
    case SM_LONG: sm_text_print(text, "long(0x%llxull)", (unsigned long long)u); break;
    case SM_UCHAR:
    case SM_USHORT: sm_text_print(text, "%llu", (unsigned long long)u); break;
    case SM_UINT: sm_text_print(text, "%lluu", (unsigned long long)u); break;
    case SM_ULONG: sm_text_print(text, "%lluull", (unsigned long long)u); break;
    case SM_HALF: sm_text_print(text, "__builtin_bit_cast(half, (unsigned short)%llu)", (unsigned long long)u); break;
    case SM_BFLOAT:
        sm_text_print(text, "__builtin_bit_cast(bfloat, (unsigned short)%llu)", (unsigned long long)u);
        break;
    case SM_FLOAT: sm_text_print(text, "__builtin_bit_cast(float, %lluu)", (unsigned long long)u); break;
    }
}

static char *value_text(const msl_constant *c, const sm_constant *value)
{
    sm_text text = {0};
    int width = value->width > 1 ? value->width : 1;
    if (width > 1) sm_text_print(&text, "%s(", c->type_text);
    for (int i = 0; i < width; i++) {
        if (i) sm_text_add(&text, ", ", 2);
        print_value(&text, value->type, (const unsigned char *)value->value + (size_t)i * type_size(value->type));
    }
    if (width > 1) sm_text_add(&text, ")", 1);
    if (text.failed) sm_text_free(&text);
    return text.bytes;
}

static bool constant_values(const msl_unit *unit, const sm_constant *values, int count, char **out, char **message)
{
    static const char *const names[] = {"bool", "char", "uchar", "short", "ushort", "int",
                                        "uint", "long", "ulong", "half",  "bfloat", "float"};
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < unit->constants_count; k++) {
            const msl_constant *c = &unit->constants[k];
            bool same = values[i].name ? !strcmp(values[i].name, c->facts.name) : values[i].index == c->facts.index;
            if (!same) continue; /* values for unknown constants are allowed */
            int width = values[i].width > 1 ? values[i].width : 1;
            if (values[i].type != c->facts.type || width != c->facts.width) {
                sm_set_message(message, "function constant '%s' (index %d, line %d) is %s x %d, its value %s x %d",
                               c->facts.name, c->facts.index, c->facts.line, names[c->facts.type], c->facts.width,
                               names[values[i].type], width);
                return false;
            }
            free(out[k]);
            out[k] = value_text(c, &values[i]);
            if (!out[k]) {
                sm_set_message(message, "out of memory");
                return false;
            }
        }
    }
    return true;
}

/* An argument that depends on a constant cannot exist without its value, and clang reports this for the generated
 * text. Report it for the constant instead, as for one that the kernel reads. */
static void report_unset(const char *name, char **message)
{
    static const char entry[] = "entry:", before[] = "initializer of '";
    const char *at = *message && !strncmp(*message, entry, sizeof entry - 1) ? strstr(*message, before) : NULL;
    if (!at) return;
    at += sizeof before - 1;
    char *said = *message;
    *message = NULL;
    sm_set_message(message, "kernel '%s' uses the function constant '%.*s', which has no value", name,
                   (int)strcspn(at, "'"), at);
    free(said);
}

sm_kernel *sm_kernel_build(sm_library *library, const char *name, const sm_constant *values, int count, char **message)
{
    char *unused = NULL;
    if (!message) message = &unused;
    *message = NULL;
    const msl_name *n = find_name(library, name);
    if (!n) {
        sm_set_message(message, "the library has no kernel '%s'", name);
        free(unused);
        return NULL;
    }
    const msl_unit *unit = &library->unit;
    char **given = calloc((size_t)unit->constants_count + 1, sizeof *given);
    sm_build_mode mode = mode_of(library, n);
    sm_text text = {0};
    char *path = NULL;
    bool from_cache = false;
    bool good = given && constant_values(unit, values, count, given, message) &&
                msl_emit(unit, (const char *const *)given, &text);
    if (good) msl_emit_entry(unit, n, &text);
    good = good && !text.failed && sm_build_module(&mode, &text, &path, &from_cache, message);
    if (!good) report_unset(name, message);
    for (int i = 0; given && i < unit->constants_count; i++) free(given[i]);
    free(given);
    sm_text_free(&text);
    sm_kernel *kernel = NULL;
    if (good)
        kernel =
            sm_kernel_load(path, name, mode.check, mode.math == SM_MATH_FUZZ, from_cache && !library->built, message);
    if (!kernel) sm_set_message(message, "out of memory");
    if (kernel) kernel->lockstep = mode.lockstep;
    if (kernel && kernel->count) kernel->constants_text = sm_count_constants(library, values, count);
    free(unused);
    return kernel;
}
