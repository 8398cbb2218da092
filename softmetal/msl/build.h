/* Running the compiler, and what is kept of its work on disk. */
#ifndef SOFTMETAL_BUILD_H
#define SOFTMETAL_BUILD_H

#include "text.h"

/* How kernels are compiled; each combination has its own precompiled shim. */
typedef struct sm_build_mode {
    bool check; /* SM_CHECK */
    bool cover; /* SM_COVER */
    int math;   /* SM_MATH_* */
    bool fast;  /* the library's fast math option */
    int version; /* of the language: 0x30000 */
} sm_build_mode;

enum { SM_MATH_PRECISE, SM_MATH_FAST, SM_MATH_FUZZ };

/* From the environment. */
sm_build_mode sm_build_mode_now(bool fast, int version);

/* NULL: clang and lld are there; else why they cannot be used. */
const char *sm_build_unavailable(void);

/* The text after the preprocessor. extra: -D and -I arguments, NULL at the end. */
bool sm_build_preprocess(const sm_build_mode *mode, const char *source, size_t length, const char *file,
                         const char *const *extra, sm_text *out, char **message);

/* Does the C++ text compile? Warnings and errors into message. */
bool sm_build_check(const sm_build_mode *mode, const sm_text *text, char **message);

/* Does C++ text that stands for itself, without the shim, compile with these flags? What clang says into message. */
bool sm_build_syntax(const char *const *flags, const sm_text *text, char **message);

/* A mark in the disk cache for a text, by the kind of work that found nothing wrong with it. */
bool sm_build_marked(const char *kind, const sm_text *text);
void sm_build_mark(const char *kind, const sm_text *text);

/* Compiles and links; *path (free() it) is the shared library in the cache. */
bool sm_build_module(const sm_build_mode *mode, const sm_text *text, char **path, bool *from_cache, char **message);

#endif
