/* Runs clang and lld, and keeps their results in the disk cache. Each file of the cache is
 * named by a hash of its inputs (text, flags, shim, compiler's version). It is written under
 * a temporary name, renamed when complete, and never changed after that: processes share the
 * cache without locks, and deleting it only costs time. */
#include "build.h"

#include "cache.h"
#include "programs.h"
#include "shim_write.h"
#include "../count/pass.h"
#include "../count/record.h"
#include "../settings/settings.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { ARGUMENTS = 64, PATH_ROOM = 1024 };

/* ---- where things are ---- */

typedef struct tools {
    char clang[PATH_ROOM], lld[PATH_ROOM], libm[PATH_ROOM];
    char root[PATH_ROOM]; /* folder of the cache */
    char shim[PATH_ROOM]; /* folder of the shim in it */
    char version[256];
    bool temporary;
    char why[PATH_ROOM + 200]; /* not empty: why the tools cannot be used */
} tools;

static tools the_tools;
static pthread_once_t tools_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t build_lock = PTHREAD_MUTEX_INITIALIZER;

static bool find_program(const char *name, char path[PATH_ROOM])
{
    if (strchr(name, '/')) {
        snprintf(path, PATH_ROOM, "%s", name);
        return access(path, X_OK) == 0;
    }
    const char *list = getenv("PATH");
    while (list && *list) {
        int n = (int)strcspn(list, ":");
        snprintf(path, PATH_ROOM, "%.*s/%s", n, list, name);
        if (access(path, X_OK) == 0) return true;
        list += n + (list[n] == ':');
    }
    return false;
}

static bool find_any(const char *const *names, char path[PATH_ROOM])
{
    for (; *names; names++)
        if (find_program(*names, path)) return true;
    return false;
}

static void remove_folder(const char *path)
{
    char *words[] = {"rm", "-rf", (char *)(uintptr_t)path, NULL};
    pid_t child;
    if (posix_spawnp(&child, "rm", NULL, NULL, words, environ) == 0) waitpid(child, NULL, 0);
}

__attribute__((destructor)) static void remove_temporary(void)
{
    if (the_tools.temporary) remove_folder(the_tools.root);
}

static bool find_root(tools *t)
{
    const char *given = sm_setting_text(SM_SET_CACHE), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool off = given && !strcmp(given, "off");
    if (given && !off) snprintf(t->root, PATH_ROOM, "%s", given);
    else if (cache && *cache) snprintf(t->root, PATH_ROOM, "%s/softmetal", cache);
    else if (home && *home) snprintf(t->root, PATH_ROOM, "%s/.cache/softmetal", home);
    else off = true;
    if (!off && sm_make_folders(t->root) && access(t->root, W_OK) == 0) return true;
    snprintf(t->root, PATH_ROOM, "%s/softmetal-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    t->temporary = mkdtemp(t->root) != NULL;
    return t->temporary;
}

/* ---- running a program ---- */

/* A temporary folder for the files of one run. */
typedef struct job {
    char folder[PATH_ROOM + 32], in[PATH_ROOM + 64], out[PATH_ROOM + 64], object[PATH_ROOM + 64],
        errors[PATH_ROOM + 64];
} job;

static bool job_open(job *j, char **message)
{
    snprintf(j->folder, sizeof j->folder, "%s/job-XXXXXX", the_tools.root);
    if (!mkdtemp(j->folder)) {
        sm_set_message(message, "softmetal cannot write to %s: %s", the_tools.root, strerror(errno));
        return false;
    }
    snprintf(j->in, sizeof j->in, "%s/in.cpp", j->folder);
    snprintf(j->out, sizeof j->out, "%s/out", j->folder);
    snprintf(j->object, sizeof j->object, "%s/out.o", j->folder);
    snprintf(j->errors, sizeof j->errors, "%s/errors", j->folder);
    return true;
}

static void job_close(job *j)
{
    unlink(j->in);
    unlink(j->out);
    unlink(j->object);
    unlink(j->errors);
    rmdir(j->folder);
}

static bool job_run(const job *j, const char *const *words, char **message)
{
    int code = sm_run_program(words, j->errors, the_tools.root);
    if (code == 0) return true;
    sm_text text = {0};
    sm_text_read(&text, j->errors);
    if (text.length) sm_set_message(message, "%s", text.bytes);
    else sm_set_message(message, "%s failed (exit code %d)", words[0], code);
    sm_text_free(&text);
    return false;
}

/* ---- flags ---- */

int sm_build_version(const sm_build_mode *mode) { return mode->version ? mode->version : 0x30002; }

typedef struct arguments {
    const char *list[ARGUMENTS];
    int count;
    char version[40], folder[PATH_ROOM + 40];
} arguments;

static void add(arguments *a, const char *text)
{
    if (a->count < ARGUMENTS - 1) a->list[a->count++] = text;
    a->list[a->count] = NULL;
}

static void add_all(arguments *a, const char *const *list)
{
    for (; list && *list; list++) add(a, *list);
}

static const char *const base_flags[] = {
#if defined(__aarch64__)
    "-target",
    "aarch64-linux-gnu",
    "-march=armv8.2-a+fp16",
#else
    "-target",
    "x86_64-linux-gnu",
    "-march=x86-64-v3",
#endif
    "-std=gnu++17",
    "-O1",
    "-fPIC",
    "-fdeclspec",
    "-fconvergent-functions",
    "-fsigned-char",
    "-fno-exceptions",
    "-fno-rtti",
    "-nostdinc",
    "-fvisibility=hidden",
    "-fno-threadsafe-statics",
    "-fno-math-errno",
    "-fno-stack-protector",
    "-fmax-type-align=8",
    "-fno-asynchronous-unwind-tables",
    "-gline-tables-only",
    "-gdwarf-4",
    "-Xclang",
    "-ffloat16-excess-precision=none",
    "-w",
    "-ferror-limit=10",
    "-fno-caret-diagnostics",
    "-fno-color-diagnostics",
    NULL};

static const char *const check_flags[] = {"-DSM_CHECKED=1", "-fsanitize=thread",
                                          "-fsanitize=bounds,shift,integer-divide-by-zero,float-cast-overflow",
                                          "-ftrivial-auto-var-init=pattern", NULL};
/* See the runtime's arrays (shim/abi.h). */
static const char *const plain_flags[] = {"-fsanitize=safe-stack", "-mllvm", "-safestack-use-pointer-address", NULL};
/* Accesses call the runtime, as in checked builds. clang refuses the thread sanitizer beside the safe stack, its
 * front end does not. Reads are kept where a write follows. Atomics stay as they are. */
static const char *const lockstep_flags[] = {"-DSM_LOCKSTEP=1",
                                             "-Xclang",
                                             "-fsanitize=thread",
                                             "-mllvm",
                                             "-tsan-instrument-func-entry-exit=0",
                                             "-mllvm",
                                             "-tsan-instrument-atomics=0",
                                             "-mllvm",
                                             "-tsan-instrument-read-before-write=1",
                                             NULL};
/* No inlining, so that each function has its own basic blocks. */
static const char *const cover_flags[] = {"-DSM_COVERED=1", "-fno-inline",
                                          "-fsanitize-coverage=bb,no-prune,inline-bool-flag,pc-table", NULL};
/* Front end only: count/pass.h needs text before and after the optimiser. A call in the last place stays a call, so
 * that an operation knows where it was called. Elements of vectors are also accessed as (&x)[i], which type-based
 * aliasing separates from the members. */
static const char *const count_flags[] = {"-DSM_COUNTED=1",       "-O2", "-g0", "-fno-optimize-sibling-calls",
                                          "-fno-strict-aliasing", NULL};
static const char *const fast_flags[] = {"-DSM_MATH_MODE=1", "-ffast-math", "-ffp-contract=fast", NULL};
static const char *const fuzz_flags[] = {"-DSM_MATH_MODE=2", "-ffp-contract=off", NULL};
static const char *const precise_flags[] = {"-DSM_MATH_MODE=0", "-ffp-contract=off", NULL};

static void add_flags(arguments *a, const sm_build_mode *mode)
{
    add(a, the_tools.clang);
    add_all(a, base_flags);
    add_all(a, mode->math == SM_MATH_FAST ? fast_flags : mode->math == SM_MATH_FUZZ ? fuzz_flags : precise_flags);
    if (mode->fast_functions) add(a, "-DSM_FAST_FUNCTIONS=1");
    add_all(a, mode->check ? check_flags : plain_flags);
    if (mode->lockstep && !mode->check) add_all(a, lockstep_flags);
    if (mode->cover) add_all(a, cover_flags);
    if (mode->count) add_all(a, count_flags);
    int version = sm_build_version(mode);
    snprintf(a->version, sizeof a->version, "-D__METAL_VERSION__=%d", (version >> 16) * 100 + (version & 0xffff) * 10);
    add(a, a->version);
    snprintf(a->folder, sizeof a->folder, "-I%s", the_tools.shim);
    add(a, a->folder);
}

static void key_of(const arguments *a, const char *kind, const char *text, size_t length, char name[33])
{
    sm_hash hash;
    sm_hash_start(&hash);
    sm_hash_text(&hash, the_tools.version);
    sm_hash_text(&hash, the_tools.shim);
    sm_hash_text(&hash, kind);
    for (int i = 0; i < a->count; i++) sm_hash_text(&hash, a->list[i]);
    sm_hash_add(&hash, text, length);
    sm_hash_name(&hash, name);
}

/* ---- finding everything, once ---- */

/* "clang --version" takes as long as a small compilation: cached by the program's path, size and time. */
static bool find_version(tools *t)
{
    struct stat s;
    if (stat(t->clang, &s)) return false;
    sm_hash hash;
    sm_hash_start(&hash);
    sm_hash_text(&hash, t->clang);
    int64_t facts[3] = {(int64_t)s.st_size, (int64_t)s.st_mtime, (int64_t)s.st_ino};
    sm_hash_add(&hash, facts, sizeof facts);
    char name[33], path[PATH_ROOM + 64];
    sm_hash_name(&hash, name);
    snprintf(path, sizeof path, "%s/version-%s", t->root, name);
    sm_text text = {0};
    if (!sm_text_read(&text, path) || !text.length) {
        sm_text_free(&text);
        job j;
        char *message = NULL;
        const char *const words[] = {t->clang, "--version", NULL};
        bool good = job_open(&j, &message) && job_run(&j, words, &message) && sm_text_read(&text, j.errors);
        if (good) sm_file_write(path, text.bytes, text.length);
        free(message);
        job_close(&j);
    }
    snprintf(t->version, sizeof t->version, "%s", text.bytes ? text.bytes : "");
    sm_text_free(&text);
    const char *number = strstr(t->version, "version ");
    return number && atoi(number + 8) >= 16;
}

static void find_tools(void)
{
    tools *t = &the_tools;
    static const char *const clangs[] = {"/usr/lib/llvm-19/bin/clang",
                                         "/usr/lib/llvm-20/bin/clang",
                                         "clang-19",
                                         "/usr/lib/llvm-18/bin/clang",
                                         "clang-20",
                                         "clang-18",
                                         "clang-17",
                                         "clang",
                                         NULL};
    static const char *const linkers[] = {
        "/usr/lib/llvm-19/bin/ld.lld", "ld.lld-19", "ld.lld-20", "ld.lld-18", "ld.lld-17", "ld.lld", NULL};
    const char *const given[] = {sm_setting_text(SM_SET_CLANG), NULL};
    Dl_info info;
    if (!find_any(given[0] ? given : clangs, t->clang)) {
        snprintf(t->why, sizeof t->why, "softmetal needs clang 16 or newer: %s",
                 given[0] ? given[0] : "no clang-19 was found");
    } else if (!find_any(linkers, t->lld)) {
        snprintf(t->why, sizeof t->why, "softmetal needs lld: no ld.lld-19 was found");
    } else if (!find_root(t)) {
        snprintf(t->why, sizeof t->why, "softmetal has no folder to write to: %.900s", t->root);
    } else if (!find_version(t)) {
        snprintf(t->why, sizeof t->why, "softmetal needs clang 16 or newer; %.900s is not", t->clang);
    } else if (!sm_shim_write(t->root, t->shim, sizeof t->shim)) {
        snprintf(t->why, sizeof t->why, "softmetal cannot write its headers to %.900s", t->shim);
#if defined(__x86_64__)
    } else if (!__builtin_cpu_supports("avx2") ||
               !__builtin_cpu_supports("fma")) { /* imply F16C; clang 14 cannot test it */
        snprintf(t->why, sizeof t->why, "softmetal needs a CPU with AVX2 and F16C");
#endif
    }
    double (*function)(double) = exp;
    void *address;
    memcpy(&address, &function, sizeof address);
    if (dladdr(address, &info) && info.dli_fname) snprintf(t->libm, PATH_ROOM, "%s", info.dli_fname);
    void *handle = dlopen("libm.so.6", RTLD_LAZY);
    void *symbol = handle ? dlsym(handle, "expf") : NULL;
    if (symbol && dladdr(symbol, &info) && info.dli_fname) snprintf(t->libm, PATH_ROOM, "%s", info.dli_fname);
    /* Under qemu-user the library was found below this folder, and the linker is a program of the host system. */
    const char *below = getenv("QEMU_LD_PREFIX");
    char path[PATH_ROOM];
    if (below && snprintf(path, sizeof path, "%s%s", below, t->libm) < PATH_ROOM && access(path, R_OK) == 0)
        memcpy(t->libm, path, sizeof path);
}

const char *sm_build_unavailable(void)
{
    pthread_once(&tools_once, find_tools);
    return the_tools.why[0] ? the_tools.why : NULL;
}

sm_build_mode sm_build_mode_now(bool fast, bool fast_functions, bool lockstep, int version)
{
    const bool count = sm_count_wanted();
    return (sm_build_mode){.check = sm_setting_word(SM_SET_CHECK) != SM_CHECK_OFF,
                           .lockstep = lockstep && !count, /* calls of the runtime would be counted */
                           .cover = sm_setting_text(SM_SET_COVER) != NULL,
                           .count = count,
                           .math = sm_setting_word(SM_SET_MATH),
                           .fast = fast,
                           .fast_functions = fast_functions,
                           .version = version};
}

/* ---- the steps ---- */

static bool usable(char **message)
{
    char problem[256];
    const char *why = sm_settings_problem(problem, sizeof problem) ? problem : sm_build_unavailable();
    if (why) sm_set_message(message, "%s", why);
    return !why;
}

static bool write_input(const job *j, const sm_text *text, char **message)
{
    if (!text->failed && sm_file_write(j->in, text->bytes, text->length)) return true;
    sm_set_message(message, "softmetal cannot write to %s", j->folder);
    return false;
}

bool sm_build_preprocess(const sm_build_mode *mode, const char *source, size_t length, const char *file,
                         const char *const *extra, sm_text *out, char **message)
{
    if (!usable(message)) return false;
    char version[40], folder[PATH_ROOM + 40];
    arguments a = {.count = 0};
    int number = sm_build_version(mode);
    snprintf(version, sizeof version, "-D__METAL_VERSION__=%d", (number >> 16) * 100 + (number & 0xffff) * 10);
    snprintf(folder, sizeof folder, "-I%s/empty", the_tools.shim);
    const char *const flags[] = {the_tools.clang,
                                 "-E",
                                 "-x",
                                 "c++",
                                 "-std=gnu++17",
                                 "-nostdinc",
                                 version,
                                 "-D__METAL__=1",
                                 "-D__METAL_MACOS__=1",
                                 "-D__HAVE_SIMDGROUP_MATRIX__=1",
                                 "-D__HAVE_SIMDGROUP_REDUCTION__=1",
                                 "-fno-color-diagnostics",
                                 "-fno-caret-diagnostics",
                                 "-Wno-unicode-whitespace",
                                 folder,
                                 NULL};
    add_all(&a, flags);
    if (mode->fast) add(&a, "-D__FAST_MATH__=1");
    if (number >= 0x30001) add(&a, "-D__HAVE_BFLOAT__=1");
    add_all(&a, extra);
    bool includes = false; /* included files could change */
    for (const char *const *e = extra; e && *e; e++) includes |= !strncmp(*e, "-I", 2);
    sm_text text = {0};
    sm_text_print(&text, "# 1 \"%s\"\n", file);
    sm_text_add(&text, source, length);
    sm_text_add(&text, "\n", 1);
    if (text.failed) {
        sm_text_free(&text);
        sm_set_message(message, "out of memory");
        return false;
    }
    char name[33], kept[PATH_ROOM + 64];
    key_of(&a, "text", text.bytes, text.length, name);
    snprintf(kept, sizeof kept, "%s/%s.i", the_tools.root, name);
    job j;
    bool good = !includes && sm_text_read(out, kept);
    if (!good && job_open(&j, message)) {
        add(&a, j.in);
        add(&a, "-o");
        add(&a, j.out);
        good = write_input(&j, &text, message) && job_run(&j, a.list, message) && sm_text_read(out, j.out);
        job_close(&j);
        if (good && !includes) sm_file_write(kept, out->bytes, out->length);
    }
    sm_text_free(&text);
    return good;
}

/* Precompiles the shim for these flags. */
static bool precompiled(const arguments *flags, char path[PATH_ROOM], char **message)
{
    char name[33], header[PATH_ROOM + 40];
    key_of(flags, "pch", "", 0, name);
    snprintf(path, PATH_ROOM, "%.*s/pch-%s", PATH_ROOM - 64, the_tools.shim, name);
    if (access(path, R_OK) == 0) return true;
    pthread_mutex_lock(&build_lock); /* once per process; two processes may do the same work, and one result is kept */
    job j;
    bool good = access(path, R_OK) == 0;
    if (!good && job_open(&j, message)) {
        arguments a = *flags;
        snprintf(header, sizeof header, "%s/shim.h", the_tools.shim);
        const char *const more[] = {"-x", "c++-header", "-Xclang", "-fno-pch-timestamp", header, "-o", j.out, NULL};
        add_all(&a, more);
        good = job_run(&j, a.list, message) && rename(j.out, path) == 0;
        job_close(&j);
    }
    pthread_mutex_unlock(&build_lock);
    return good;
}

bool sm_build_check(const sm_build_mode *mode, const sm_text *text, char **message)
{
    if (!usable(message)) return false;
    char pch[PATH_ROOM], name[33], mark[PATH_ROOM + 64];
    arguments a = {.count = 0};
    add_flags(&a, mode);
    key_of(&a, "check", text->bytes, text->length, name);
    snprintf(mark, sizeof mark, "%s/%s.ok", the_tools.root, name);
    if (access(mark, R_OK) == 0) return true;
    if (!precompiled(&a, pch, message)) return false;
    job j;
    if (!job_open(&j, message)) return false;
    const char *const more[] = {"-include-pch", pch, "-fsyntax-only", "-x", "c++", j.in, NULL};
    add_all(&a, more);
    bool good = write_input(&j, text, message) && job_run(&j, a.list, message);
    job_close(&j);
    if (good) sm_file_write(mark, "", 0);
    return good;
}

static bool mark_path(const char *kind, const sm_text *text, char path[PATH_ROOM + 64])
{
    char *message = NULL, name[33];
    const bool good = usable(&message);
    const arguments none = {.count = 0};
    if (good) key_of(&none, kind, text->bytes, text->length, name);
    if (good) snprintf(path, PATH_ROOM + 64, "%s/%s.ok", the_tools.root, name);
    free(message);
    return good;
}

bool sm_build_marked(const char *kind, const sm_text *text)
{
    char path[PATH_ROOM + 64];
    return mark_path(kind, text, path) && access(path, R_OK) == 0;
}

void sm_build_mark(const char *kind, const sm_text *text)
{
    char path[PATH_ROOM + 64];
    if (mark_path(kind, text, path)) sm_file_write(path, "", 0);
}

bool sm_build_syntax(const char *const *flags, const sm_text *text, char **message)
{
    if (!usable(message)) return false;
    arguments a = {.count = 0};
    job j;
    if (!job_open(&j, message)) return false;
    add(&a, the_tools.clang);
    add_all(&a, flags);
    add(&a, j.in);
    bool good = write_input(&j, text, message) && job_run(&j, a.list, message);
    job_close(&j);
    return good;
}

/* From the text of LLVM in j->out, before its passes, to the object: see count/pass.h. */
static bool compile_counted(const job *j, const sm_build_mode *mode, char **message)
{
    /* Everything is inlined: a pointer that is passed to a function has lost its buffer. Loops of a known small number
     * of rounds are unrolled, so that the arrays that they index are in registers, as on a GPU. */
    const char *const optimise[] = {the_tools.clang,
                                    "-cc1",
                                    "-triple",
                                    "spir64-unknown-unknown",
                                    "-O2",
                                    "-mllvm",
                                    "-inline-threshold=1000000",
                                    "-mllvm",
                                    "-unroll-threshold=8000",
                                    "-mllvm",
                                    "-unroll-full-max-count=64",
                                    "-emit-llvm",
                                    "-x",
                                    "ir",
                                    j->in,
                                    "-o",
                                    j->out,
                                    NULL};
    arguments a = {.count = 0};
    add(&a, the_tools.clang);
    for (int i = 0; base_flags[i] && strcmp(base_flags[i], "-std=gnu++17") != 0; i++) add(&a, base_flags[i]);
    const char *const generate[] = {"-O1",     "-fPIC",
                                    "-Xclang", "-disable-llvm-passes",
                                    "-mllvm",  "-safestack-use-pointer-address",
                                    "-w",      "-c",
                                    "-x",      "ir",
                                    j->in,     "-o",
                                    j->object, NULL};
    add_all(&a, generate);
    sm_text original = {0}, moved = {0}, optimised = {0}, counted = {0};
    const bool good = sm_text_read(&original, j->out) && sm_count_retarget(&original, &moved, message) &&
                      write_input(j, &moved, message) && job_run(j, optimise, message) &&
                      sm_text_read(&optimised, j->out) &&
                      sm_count_instrument(&optimised, &original, !mode->fast, &counted, message) &&
                      write_input(j, &counted, message) && job_run(j, a.list, message);
    sm_text_free(&original);
    sm_text_free(&moved);
    sm_text_free(&optimised);
    sm_text_free(&counted);
    return good;
}

/* Counted modules depend on the code of this library, not only on the shim. */
static bool count_kind(char kind[64], const sm_build_mode *mode, char **message)
{
    Dl_info info;
    struct stat s;
    if (mode->check || mode->cover || mode->math == SM_MATH_FUZZ) {
        sm_set_message(message, "SM_COUNT cannot be combined with SM_CHECK, SM_COVER or SM_MATH=fuzz");
        return false;
    }
    if (!dladdr((const void *)&the_tools, &info) || stat(info.dli_fname, &s)) {
        sm_set_message(message, "SM_COUNT: the file of the library is not found");
        return false;
    }
    snprintf(kind, 64, "count %lld %lld", (long long)s.st_size, (long long)s.st_mtime);
    return true;
}

static void trim(void) { sm_cache_trim(the_tools.root); }

bool sm_build_module(const sm_build_mode *mode, const sm_text *text, char **path, bool *from_cache, char **message)
{
    if (!usable(message)) return false;
    char pch[PATH_ROOM], name[33];
    arguments a = {.count = 0};
    add_flags(&a, mode);
    char kind[64] = "module";
    if (mode->count && !count_kind(kind, mode, message)) return false;
    key_of(&a, kind, text->bytes, text->length, name);
    sm_text file = {0};
    sm_text_print(&file, "%s/%s.so", the_tools.root, name);
    if (file.failed) {
        sm_set_message(message, "out of memory");
        return false;
    }
    *from_cache = access(file.bytes, R_OK) == 0;
    job j;
    bool good = *from_cache;
    static pthread_once_t trimmed = PTHREAD_ONCE_INIT;
    if (!good) pthread_once(&trimmed, trim);
    if (!good && precompiled(&a, pch, message) && job_open(&j, message)) {
        const char *const more[] = {"-include-pch", pch, "-c", "-x", "c++", j.in, "-o", j.object, NULL};
        const char *const front[] = {"-include-pch", pch,          "-Xclang", "-disable-llvm-passes",
                                     "-S",           "-emit-llvm", "-x",      "c++",
                                     j.in,           "-o",         j.out,     NULL};
        const char *const link[] = {the_tools.lld, "-shared",       "-o",
                                    j.out,         j.object,        the_tools.libm,
                                    "-z",          "now",           "--hash-style=gnu",
                                    "-Bsymbolic",  "--gc-sections", "--build-id=none",
                                    NULL};
        add_all(&a, mode->count ? front : more);
        good = write_input(&j, text, message) && job_run(&j, a.list, message) &&
               (!mode->count || compile_counted(&j, mode, message)) && job_run(&j, link, message);
        if (good && rename(j.out, file.bytes)) {
            sm_set_message(message, "softmetal cannot write %s: %s", file.bytes, strerror(errno));
            good = false;
        }
        job_close(&j);
    }
    if (good) *path = file.bytes;
    else sm_text_free(&file);
    return good;
}
