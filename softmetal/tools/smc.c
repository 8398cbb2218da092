/* smc: builds the kernels of a .metal file, to check that they compile and to print
 * their requirements. Modes are set in the environment (SM_CHECK=1 smc ...). */
#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] = "usage: smc [-l] [-q] [-I folders] [-D name[=value]] FILE [KERNEL...]\n"
                           "  builds the kernels (all, if none is named) and prints one line for each\n"
                           "  -l  list the kernels and function constants, build nothing\n"
                           "  -q  only failures\n"
                           "  -I  folders (a:b) of #include \"...\"      -D  define a macro\n"
                           "Exit code: 0 all were built, 1 some were not, 2 usage.\n";

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *text = NULL;
    size_t room = 0, at = 0;
    for (size_t n = 1; n; at += n) {
        if (room - at < 65536) {
            char *more = realloc(text, room += 1 << 20);
            if (!more) {
                free(text);
                fclose(file);
                return NULL;
            }
            text = more;
        }
        n = fread(text + at, 1, 65536, file);
    }
    fclose(file);
    *length = at;
    return text;
}

static void list(const sm_library *library)
{
    for (int i = 0; i < sm_library_kernels(library); i++) {
        sm_function f;
        sm_library_function(library, sm_library_kernel(library, i), &f);
        printf("kernel %s (line %d):", f.name, f.line);
        for (int k = 0; k < f.arguments_count; k++)
            printf(" %s%s=%s(%d)", f.arguments[k].writable ? "*" : "", f.arguments[k].name,
                   f.arguments[k].kind == SM_ARGUMENT_BUFFER ? "buffer" : "threadgroup", f.arguments[k].index);
        printf("\n");
    }
    const sm_function_constant *constants;
    int count = sm_library_constants(library, &constants);
    for (int i = 0; i < count; i++)
        printf("constant %s (line %d): index %d\n", constants[i].name, constants[i].line, constants[i].index);
}

/* Every function constant gets a value, so that kernels that read one can be built. */
static bool build(sm_library *library, const char *name, bool quiet)
{
    const sm_function_constant *constants;
    int count = sm_library_constants(library, &constants);
    sm_constant *values = calloc((size_t)count + 1, sizeof *values);
    static const uint64_t one[4] = {1, 1, 1, 1};
    for (int i = 0; values && i < count; i++)
        values[i] = (sm_constant){constants[i].name, constants[i].index, constants[i].type, constants[i].width, one};
    char *message = NULL;
    sm_kernel *kernel = values ? sm_kernel_build(library, name, values, count, &message) : NULL;
    free(values);
    if (!kernel) {
        printf("FAIL %s: %s\n", name, message ? message : "out of memory");
    } else if (!quiet) {
        sm_kernel_facts facts;
        sm_kernel_describe(kernel, &facts);
        printf("ok   %s: %d threads, %zu bytes of threadgroup memory%s\n", name, facts.max_threads,
               facts.threadgroup_bytes, facts.from_cache ? ", cached" : "");
    }
    free(message);
    sm_kernel_close(kernel);
    return kernel != NULL;
}

int main(int argc, char **argv)
{
    sm_define *defines = calloc((size_t)argc, sizeof *defines);
    sm_options options = {.defines = defines, .fast_math = true};
    bool only_list = false, quiet = false;
    int i = 1;
    for (; defines && i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-l")) only_list = true;
        else if (!strcmp(argv[i], "-q")) quiet = true;
        else if (!strcmp(argv[i], "-I") && i + 1 < argc) options.include = argv[++i];
        else if (!strcmp(argv[i], "-D") && i + 1 < argc) {
            char *value = strchr(argv[++i], '=');
            if (value) *value++ = '\0';
            defines[options.defines_count++] = (sm_define){argv[i], value ? value : "1"};
        } else {
            bool asked = !strcmp(argv[i], "--help") || !strcmp(argv[i], "-h");
            fputs(help, asked ? stdout : stderr);
            free(defines);
            return asked ? 0 : 2;
        }
    }
    if (!defines || i >= argc) {
        fputs(help, stderr);
        free(defines);
        return 2;
    }
    size_t length = 0;
    char *message = NULL, *text = read_file(argv[i], &length);
    options.file = argv[i];
    sm_library *library = text ? sm_library_open(text, length, &options, &message) : NULL;
    bool good = library != NULL;
    if (!good) printf("FAIL %s: %s\n", argv[i], message ? message : "cannot be read");
    if (good && only_list) list(library);
    for (int k = i + 1; good && !only_list && k < argc; k++) good = build(library, argv[k], quiet) && good;
    for (int k = 0; library && !only_list && i + 1 == argc && k < sm_library_kernels(library); k++)
        good = build(library, sm_library_kernel(library, k), quiet) && good;
    sm_library_close(library);
    free(message);
    free(text);
    free(defines);
    return good ? 0 : 1;
}
