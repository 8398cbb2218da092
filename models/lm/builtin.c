/* The model built into the library. The Makefile names its file; the assembler includes the bytes in the constant
 * section, so that no extra tool is needed and nothing is read at run time. */
#include "lm.h"

#if defined(MICA_BUILTIN_MODEL)

#if defined(__APPLE__)
#define SYMBOL(name) "_" name
#define BEGIN ".const_data\n"
#define HIDDEN(name) ".private_extern _" name "\n"
#define END ".text\n"
#else
#define SYMBOL(name) name
#define BEGIN ".section .rodata\n"
#define HIDDEN(name) ".hidden " name "\n"
#define END ".previous\n"
#endif

__asm__(BEGIN ".balign 64\n"                                                                     //
              ".globl " SYMBOL("mica__builtin_begin") "\n" HIDDEN("mica__builtin_begin")               //
        SYMBOL("mica__builtin_begin") ":\n.incbin \"" MICA_BUILTIN_MODEL "\"\n"                  //
                                      ".globl " SYMBOL("mica__builtin_end") "\n" HIDDEN("mica__builtin_end") //
        SYMBOL("mica__builtin_end") ":\n.byte 0\n" END);

#undef SYMBOL
#undef BEGIN
#undef HIDDEN
#undef END

extern __attribute__((visibility("hidden"))) const unsigned char mica__builtin_begin[], mica__builtin_end[];

bool mica__lm_builtin(const void **data, size_t *size)
{
    *data = mica__builtin_begin;
    *size = (size_t)(mica__builtin_end - mica__builtin_begin);
    return *size > 0;
}

#else

bool mica__lm_builtin(const void **data, size_t *size)
{
    *data = NULL;
    *size = 0;
    return false;
}

#endif
