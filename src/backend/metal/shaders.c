/* See shaders.h. The assembler includes the files as constants (.incbin), as for the built-in
 * model: nothing is generated, and no file is read at run time. */
#include "backend/metal/shaders.h"

#include <string.h>

#if defined(__APPLE__)
#define SHADER_SYMBOL(name) "_" name
#define SHADER_BEGIN ".const_data\n"
#define SHADER_HIDDEN(name) ".private_extern _" name "\n"
#define SHADER_END ".text\n"
#else
#define SHADER_SYMBOL(name) name
#define SHADER_BEGIN ".section .rodata\n"
#define SHADER_HIDDEN(name) ".hidden " name "\n"
#define SHADER_END ".previous\n"
#endif

#define SHADER_LABEL(name) ".globl " SHADER_SYMBOL(name) "\n" SHADER_HIDDEN(name) SHADER_SYMBOL(name) ":\n"
#define MICA_SHADER(id, file)                                                                     \
    __asm__(SHADER_BEGIN SHADER_LABEL("mica__shader_" #id) ".incbin \"" file "\"\n" SHADER_LABEL( \
        "mica__shader_" #id "_end") ".byte 0\n" SHADER_END);                                      \
    extern __attribute__((visibility("hidden"))) const char mica__shader_##id[], mica__shader_##id##_end[];
#include "kernels/shaders.def"
#undef MICA_SHADER
#undef SHADER_SYMBOL
#undef SHADER_BEGIN
#undef SHADER_HIDDEN
#undef SHADER_END
#undef SHADER_LABEL

static const struct {
    const char *path, *begin, *end;
} shader_table[] = {
#define MICA_SHADER(id, file) {file, mica__shader_##id, mica__shader_##id##_end},
#include "kernels/shaders.def"
#undef MICA_SHADER
};

enum { SHADER_COUNT = sizeof shader_table / sizeof *shader_table };

static const char *shader_file(size_t i) { return strrchr(shader_table[i].path, '/') + 1; }

const char *mica__shader_name(size_t i) { return i < SHADER_COUNT ? shader_file(i) : NULL; }

static size_t shader_find(const char *name, size_t length)
{
    size_t i = 0;
    while (i < SHADER_COUNT && (strlen(shader_file(i)) != length || memcmp(shader_file(i), name, length) != 0)) i++;
    return i;
}

/* The name in a line `#include "name"`, or NULL. */
static const char *included_name(const char *line, const char *end, size_t *length)
{
    static const char word[] = "#include \"";
    if ((size_t)(end - line) < sizeof word || memcmp(line, word, sizeof word - 1) != 0) return NULL;
    const char *name = line + sizeof word - 1, *quote = memchr(name, '"', (size_t)(end - name));
    if (!quote) return NULL;
    *length = (size_t)(quote - name);
    return name;
}

static mica_status shader_write(size_t i, bool *done, mica__text *text)
{
    int number = 1;
    done[i] = true;
    mica__text_add(text, "#line 1 \"%s\"\n", shader_file(i));
    for (const char *line = shader_table[i].begin, *next; line < shader_table[i].end; line = next, number++) {
        const char *newline = memchr(line, '\n', (size_t)(shader_table[i].end - line));
        const char *end = newline ? newline : shader_table[i].end;
        next = newline ? newline + 1 : end;
        size_t length;
        const char *name = included_name(line, end, &length);
        if (!name) {
            mica__text_add(text, "%.*s\n", (int)(end - line), line);
            continue;
        }
        const size_t other = shader_find(name, length);
        if (other == SHADER_COUNT)
            return mica__fail(MICA_ERR_INTERNAL, "metal: %s line %d includes %.*s, which is not in shaders.def",
                              shader_file(i), number, (int)length, name);
        if (!done[other]) MICA_TRY(shader_write(other, done, text));
        mica__text_add(text, "#line %d \"%s\"\n", number + 1, shader_file(i));
    }
    return MICA_OK;
}

mica_status mica__shader_text(const char *file, mica__text *text)
{
    bool done[SHADER_COUNT] = {false};
    const size_t i = shader_find(file, strlen(file));
    if (i == SHADER_COUNT) return mica__fail(MICA_ERR_INTERNAL, "metal: there is no shader %.60s", file);
    return shader_write(i, done, text);
}
