/* Runs the compiler and caches its results on disk. */
#ifndef SOFTMETAL_BUILD_H
#define SOFTMETAL_BUILD_H

#include "text.h"

/* How kernels are compiled; each combination has a separate precompiled shim. */
typedef struct sm_build_mode {
    bool check; /* SM_CHECK */
    bool lockstep; /* the lanes of a simdgroup access threadgroup memory in step (runtime/lockstep.c) */
    bool cover; /* SM_COVER */
    bool count; /* SM_COUNT */
    int math;   /* SM_MATH_* */
    bool fast;  /* the library's fast math option */
    bool fast_functions; /* a math function without a namespace is that of namespace fast */
    int version; /* language version: 0x30000 */
} sm_build_mode;

enum { SM_MATH_PRECISE, SM_MATH_FAST, SM_MATH_FUZZ }; /* in the order of the words of SM_MATH (settings.def) */

/* Reads the mode from the environment. */
sm_build_mode sm_build_mode_now(bool fast, bool fast_functions, bool lockstep, int version);

/* The version of the language, also if the library does not set one. */
int sm_build_version(const sm_build_mode *mode);

/* NULL: clang and lld are available; else the reason why they cannot be used. */
const char *sm_build_unavailable(void);

/* Preprocesses the text. extra: -D and -I arguments, NULL at the end. */
bool sm_build_preprocess(const sm_build_mode *mode, const char *source, size_t length, const char *file,
                         const char *const *extra, sm_text *out, char **message);

/* Returns whether the C++ text compiles. Warnings and errors are stored in message. */
bool sm_build_check(const sm_build_mode *mode, const sm_text *text, char **message);

/* Returns whether C++ text compiles with these flags and without the shim. clang's output is stored in message. */
bool sm_build_syntax(const char *const *flags, const sm_text *text, char **message);

/* A mark in the disk cache for a text: work of this kind found no error in it. */
bool sm_build_marked(const char *kind, const sm_text *text);
void sm_build_mark(const char *kind, const sm_text *text);

/* Compiles and links; *path (to be freed) is the shared library in the cache. */
bool sm_build_module(const sm_build_mode *mode, const sm_text *text, char **path, bool *from_cache, char **message);

#endif
