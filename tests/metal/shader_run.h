/* Runs the output of a family's lowering on the core of softmetal, without the Metal backend. Each
 * operand is bound as exactly the bytes it reaches, so that the checkers report every access
 * outside of it. */
#ifndef MICA_TEST_SHADER_RUN_H
#define MICA_TEST_SHADER_RUN_H

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "../softmetal/core.h"
#include "kernels_util.h"
#include "backend/metal/shaders.h"
#include "kernels/common/common_params.h"
#include "kernels/gpu.h"

/* ------------------------------------------------------------- softmetal --- */

static struct {
    const char *missing;        /* why it cannot run; NULL: it can */
    sm_library *(*library_open)(const char *, size_t, const sm_options *, char **);
    sm_kernel *(*kernel_build)(sm_library *, const char *, const sm_constant *, int, char **);
    sm_status (*kernel_run)(sm_kernel *, const sm_dispatch *, char **);
    void (*kernel_close)(sm_kernel *);
    void (*library_close)(sm_library *);
    sm_scope *(*scope_open)(void);
    void (*scope_barrier)(sm_scope *, const void *, size_t);
    void (*scope_close)(sm_scope *);
    const char *(*unavailable)(void);
    char *(*lint)(const char *, size_t, const char *);
} shader_sm;

/* build/libsoftmetal.so, from build/tests/metal/test_x. */
static inline void *shader_sm_file(void)
{
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    if (n <= 0) return NULL;
    path[n] = 0;
    for (int up = 0; up < 3; up++) {
        char *slash = strrchr(path, '/');
        if (!slash) return NULL;
        *slash = 0;
    }
    strcat(path, "/libsoftmetal.so");
    const char *given = getenv("MICA_METAL_LIB");
    return dlopen(given ? given : path, RTLD_NOW | RTLD_LOCAL);
}

static inline bool shader_sm_open(void)
{
    static bool tried;
    if (tried) return !shader_sm.missing;
    tried = true;
    void *file = shader_sm_file();
    if (!file) {
        shader_sm.missing = "no libsoftmetal.so beside the tests";
        return false;
    }
    /* ISO C has no conversion from an object pointer to a function pointer */
#define SHADER_SYMBOL(name) *(void **)(void *)&shader_sm.name = dlsym(file, "sm_" #name)
    SHADER_SYMBOL(library_open);
    SHADER_SYMBOL(kernel_build);
    SHADER_SYMBOL(kernel_run);
    SHADER_SYMBOL(kernel_close);
    SHADER_SYMBOL(library_close);
    SHADER_SYMBOL(scope_open);
    SHADER_SYMBOL(scope_barrier);
    SHADER_SYMBOL(scope_close);
    SHADER_SYMBOL(unavailable);
    SHADER_SYMBOL(lint);
#undef SHADER_SYMBOL
    /* Checks races, memory flags, bounds and uninitialised memory, unless the environment sets it. */
    setenv("SM_CHECK", "1", 0);
    shader_sm.missing = shader_sm.unavailable ? shader_sm.unavailable() : "libsoftmetal.so has no core";
    return !shader_sm.missing;
}

#define NEED_SOFTMETAL()                                      \
    do {                                                      \
        if (!shader_sm_open()) SKIP("%s", shader_sm.missing); \
    } while (0)

/* --------------------------------------------------------------- kernels --- */

/* Libraries and pipelines are kept for the whole program. */
typedef struct shader_pipeline {
    const char *shader, *kernel;
    mica__gpu_constant constant[MICA__GPU_MAX_CONSTANTS];
    uint32_t n_constant;
    sm_kernel *made;
} shader_pipeline;

static shader_pipeline shader_pipelines[1024];
static size_t shader_pipeline_count;
static struct {
    const char *shader;
    sm_library *library;
} shader_libraries[64];
static size_t shader_library_count;

static inline void shader_forget(void)
{
    for (size_t i = 0; i < shader_pipeline_count; i++)
        if (shader_pipelines[i].made) shader_sm.kernel_close(shader_pipelines[i].made);
    for (size_t i = 0; i < shader_library_count; i++)
        if (shader_libraries[i].library) shader_sm.library_close(shader_libraries[i].library);
    shader_pipeline_count = shader_library_count = 0;
}

/* A text that replaces the library's own of the shader of this name, and the status of a run with it, which may fail. */
static const char *shader_mutant, *shader_mutant_name;
static sm_status shader_mutant_status;

/* The complete text of a shader file; NULL, with a reported failure, if there is none. */
static inline const char *shader_whole(const char *file)
{
    static char text[1 << 18];
    mica__text out;
    mica__text_init(&out, text, sizeof text);
    return EXPECT_MSG(mica__shader_text(file, &out) == MICA_OK, "%s", mica_last_error()) ? text : NULL;
}

static inline sm_library *shader_library(const char *shader)
{
    for (size_t i = 0; i < shader_library_count; i++)
        if (strcmp(shader_libraries[i].shader, shader) == 0) return shader_libraries[i].library;
    char file[128], *message = NULL;
    snprintf(file, sizeof file, "%s.metal", shader);
    const bool mutant = shader_mutant && strcmp(shader_mutant_name, shader) == 0;
    const char *text = mutant ? shader_mutant : shader_whole(file);
    if (!text) return NULL;
    const sm_options options = {.fast_math = false, .file = file, .unchecked = mutant};
    sm_library *library = shader_sm.library_open(text, strlen(text), &options, &message);
    (void)EXPECT_MSG(library, "%s: %s", file, message ? message : "no message");
    free(message);
    shader_libraries[shader_library_count].shader = shader;
    shader_libraries[shader_library_count++].library = library;
    return library;
}

static inline sm_kernel *shader_kernel(const mica__gpu_dispatch *d)
{
    for (size_t i = 0; i < shader_pipeline_count; i++) {
        const shader_pipeline *p = &shader_pipelines[i];
        if (strcmp(p->shader, d->shader) == 0 && strcmp(p->kernel, d->kernel) == 0 && p->n_constant == d->n_constant &&
            memcmp(p->constant, d->constant, d->n_constant * sizeof *d->constant) == 0)
            return p->made;
    }
    sm_library *library = shader_library(d->shader);
    if (!library || shader_pipeline_count == 1024) return NULL;
    sm_constant values[MICA__GPU_MAX_CONSTANTS];
    static const sm_type types[] = {SM_BOOL, SM_INT, SM_UINT, SM_FLOAT};
    for (uint32_t i = 0; i < d->n_constant; i++)
        values[i] = (sm_constant){
            .index = (int)d->constant[i].index, .type = types[d->constant[i].type], .value = &d->constant[i].bits};
    char *message = NULL;
    sm_kernel *made = shader_sm.kernel_build(library, d->kernel, values, (int)d->n_constant, &message);
    (void)EXPECT_MSG(made, "%s: %s", d->kernel, message ? message : "no message");
    free(message);
    shader_pipeline *p = &shader_pipelines[shader_pipeline_count++];
    *p = (shader_pipeline){.shader = d->shader, .kernel = d->kernel, .n_constant = d->n_constant, .made = made};
    memcpy(p->constant, d->constant, sizeof p->constant);
    return made;
}

/* -------------------------------------------------------------- launches --- */

static const mica__gpu_limits shader_device = {.name = "softmetal",
                                               .family = 7,
                                               .cores = 8,
                                               .max_threads = 1024,
                                               .threadgroup_bytes = 32768,
                                               .simd_width = 32,
                                               .simdgroup_matrix = true,
                                               .software = true};

/* The device for which launches are lowered; a test may set another one. */
static const mica__gpu_limits *shader_gpu = &shader_device;

typedef struct shader_launch {
    mica__op op;
    util_tensor *in;            /* with their memory                                      */
    uint32_t n_in;
    util_tensor *out;
    const void *attr;
    mica_fault fault;           /* fault record after the run                             */
} shader_launch;

static inline sm_buffer shader_buffer(const shader_launch *l, const mica__gpu_binding *b, char *workspace, size_t bytes,
                                      mica_fault *fault)
{
    if (b->source == MICA__GPU_FAULT) return (sm_buffer){fault, sizeof *fault};
    if (b->source == MICA__GPU_WORKSPACE) return (sm_buffer){workspace + b->offset, bytes - (size_t)b->offset};
    const util_tensor *u = b->source == MICA__GPU_OUT ? l->out : &l->in[b->operand];
    if (!u->memory) return (sm_buffer){workspace, 0};
    char *at = u->t.data + b->offset;
    (void)EXPECT_MSG(at >= u->memory && at <= u->memory + u->nbytes, "a binding outside its operand");
    return (sm_buffer){at, (size_t)(u->memory + u->nbytes - at)};
}

/* Lowers and runs. false: the lowering refused (*why), or a failure was reported. */
static inline bool shader_run(shader_launch *l, const char **why)
{
    mica__arena arena;
    mica__arena_init(&arena);
    mica__tensor tensors[16];
    for (uint32_t i = 0; i < l->n_in; i++) {
        tensors[i] = l->in[i].t;
        tensors[i].data = NULL;
    }
    mica__tensor out = l->out->t;
    out.data = NULL;
    const mica__gpu_launch launch = {.gpu = shader_gpu, .in = tensors, .n_in = l->n_in, .out = &out, .attr = l->attr};
    mica__gpu_list list = {.arena = &arena};
    bool good = EXPECT_MSG(mica__family_get(l->op)->gpu(&launch, &list) == MICA_OK, "%s", mica_last_error());
    *why = list.refused;
    good = good && !list.refused && EXPECT(!list.failed);
    char *workspace = NULL;
    if (posix_memalign((void **)&workspace, 256, list.workspace + 256)) abort();
    memset(workspace, 0xa5, list.workspace + 256);
    sm_scope *scope = shader_sm.scope_open ? shader_sm.scope_open() : NULL;
    l->fault = (mica_fault){0};
    for (uint32_t i = 0; i < list.n && good; i++) {
        const mica__gpu_dispatch *d = &list.dispatch[i];
        sm_kernel *kernel = shader_kernel(d);
        if (!kernel) good = false;
        sm_dispatch run = {.scope = scope, .label = d->kernel};
        for (uint32_t j = 0; j < d->n_binding; j++)
            run.buffers[j] = shader_buffer(l, &d->binding[j], workspace, list.workspace, &l->fault);
        if (d->params) {
            run.buffers[d->n_binding].address = (void *)(uintptr_t)d->params;
            run.buffers[d->n_binding].length = d->params_bytes;
        }
        for (int k = 0; k < 3; k++) {
            run.threads[k] = d->groups[k] * d->threads[k];
            run.group[k] = d->threads[k];
        }
        if (d->barrier && scope) shader_sm.scope_barrier(scope, NULL, 0);
        char *message = NULL;
        const sm_status status = good ? shader_sm.kernel_run(kernel, &run, &message) : SM_OK;
        if (shader_mutant && status != SM_OK) shader_mutant_status = status;
        else good = good && EXPECT_MSG(status == SM_OK, "%s: %s", d->kernel, message ? message : "no message");
        free(message);
    }
    if (scope) shader_sm.scope_close(scope);
    free(workspace);
    mica__arena_free(&arena);
    return good;
}

/* Integers must be equal, floats within a tolerance; NaN must match NaN. */
static inline bool shader_matches(const util_tensor *got, const util_tensor *want, int64_t i, double rtol, double atol)
{
    const mica_dtype dtype = (mica_dtype)want->t.spec.dtype;
    const double a = util_f64(&got->t, i), b = util_f64(&want->t, i);
    return mica__is_float(dtype) && (rtol != 0 || atol != 0)
               ? (a != a && b != b) || a == b || test_close(a, b, rtol, atol)
               : memcmp(mica__element(&got->t, i), mica__element(&want->t, i), mica_dtype_size(dtype)) == 0;
}

/* Compares the GPU's result with ref: threads and threadgroups in order, then in two random orders. */
static inline void shader_check(mica__op op, util_tensor *in, uint32_t n_in, const void *attr, mica__spec spec,
                                double rtol, double atol)
{
    static const char *const seeds[] = {"0", "17", "4242"};
    const char *sanitize = getenv("SANITIZE"); /* sanitizers check only code outside kernels: one order is enough */
    const int orders = sanitize && *sanitize ? 1 : 3;
    mica__tensor tensors[16];
    for (uint32_t i = 0; i < n_in; i++) tensors[i] = in[i].t;
    util_tensor want = util_run(op, 0, tensors, n_in, attr, spec, MICA_OK), got = util_tensor_new(spec, UTIL_DENSE);
    const int64_t n = mica__spec_size(&spec);
    bool good = true;
    for (int order = 0; order < orders && good; order++) {
        if (got.memory) memset(got.memory, 0x5a, got.nbytes);
        shader_launch launch = {.op = op, .in = in, .n_in = n_in, .out = &got, .attr = attr};
        const char *why = NULL;
        setenv("SM_SEED", seeds[order], 1);
        good = EXPECT_MSG(shader_run(&launch, &why), "not run: %s", why ? why : "see above");
        for (int64_t i = 0; i < n && good; i++)
            good = EXPECT_MSG(shader_matches(&got, &want, i, rtol, atol),
                              "element %lld of %lld: gpu %.9g, ref %.9g (SM_SEED=%s)", (long long)i, (long long)n,
                              util_f64(&got.t, i), util_f64(&want.t, i), seeds[order]);
        good = EXPECT_INT(launch.fault.set, 0) && good;
    }
    unsetenv("SM_SEED");
    util_free(&want);
    util_free(&got);
}

/* ----------------------------------------------------------------- tests --- */

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

static const mica_dtype floats[3] __attribute__((unused)) = {MICA_F32, MICA_F16, MICA_BF16};

static inline void free_all(util_tensor *in, int n)
{
    for (int i = 0; i < n; i++) util_free(&in[i]);
}

static inline util_tensor integer(mica_dtype dtype, int64_t value)
{
    util_tensor u = util_tensor_new(util_spec(dtype, 0, NULL), UTIL_DENSE);
    mica__set_i64(dtype, u.t.data, 0, value);
    return u;
}

#endif
