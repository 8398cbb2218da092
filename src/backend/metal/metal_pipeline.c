/* See metal_pipeline.h. A key is the text, the kernel's name and the constants. It is found
 * by its hash and compared in full. Kernels are compiled under the lock, so that two threads
 * that need the same kernel compile it once. They are stored on disk after that, without the lock.
 *
 * Metal needs the function of a pipeline also where its code is in an archive, so the text of each
 * pipeline is compiled by the front end. Pipelines of one shader share the result: its library. */
#include "backend/metal/metal_pipeline.h"

#include <pthread.h>
#include <string.h>

#include "backend/metal/metal_archive.h"
#include "backend/metal/shaders.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"

enum {
    PIPELINE_BUCKETS = 256,
    PIPELINES_KEPT = 1024,      /* most pipelines without a reference                    */
    PIPELINE_ERROR = 400        /* most bytes of a compiler message                      */
};

/* The library of a shader without generated text, shared by its pipelines. */
typedef struct shader_library {
    mica__id library;           /* NULL: a free place                                    */
    uint64_t hash;              /* of the text                                           */
    char shader[32];
} shader_library;

/* As many as there are shaders. */
enum {
    LIBRARIES = 0
#define MICA_SHADER(id, file) +1
#include "kernels/shaders.def"
#undef MICA_SHADER
};

/* A new pipeline that is to be stored in the archive on disk. */
typedef struct unstored {
    mica__id function;          /* NULL: nothing to store                                */
    uint64_t hash, compile_ns;
} unstored;

static pthread_mutex_t store_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    pthread_mutex_t lock;
    shader_library libraries[LIBRARIES];
    mica__pipeline *bucket[PIPELINE_BUCKETS];
    uint64_t clock, idle;
    mica__pipeline_stats stats;
} pipelines = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ------------------------------------------------------------------ text --- */

static mica_status pipeline_write(const mica__metal_device *device, const mica__pipeline_source *source,
                                  mica__text *text)
{
    char file[96];
    mica__text name;
    if (device->limits.bfloat) mica__text_add(text, "#define MICA_BFLOAT 1\n");
    if (source->text) {
        MICA_TRY(mica__shader_text("mica_msl.h", text));
        mica__text_add(text, "#line 1 \"generated\"\n%s", source->text);
    }
    if (!source->shader) return MICA_OK;
    mica__text_init(&name, file, sizeof file);
    mica__text_add(&name, "%s.metal", source->shader);
    return mica__shader_text(file, text);
}

/* The whole text; the caller frees it, also after a failure. */
static mica_status pipeline_text(const mica__metal_device *device, const mica__pipeline_source *source, char **out)
{
    mica__text text;
    mica__text_init(&text, NULL, 0);
    MICA_TRY(pipeline_write(device, source, &text));
    char *buffer = mica__alloc(text.length + 1);
    if (!buffer) return mica__fail_memory("metal: a shader's text", text.length + 1);
    mica__text_init(&text, buffer, text.length + 1);
    *out = buffer;
    return pipeline_write(device, source, &text);
}

/* --------------------------------------------------------------- compile --- */

static mica_status fail_compile(const mica__pipeline_source *source, const char *what, mica__id error)
{
    char text[PIPELINE_ERROR];
    return mica__fail(MICA_ERR_DEVICE, "metal: %s %s: %s", what, source->kernel,
                      mica__objc_error_text(error, text, sizeof text));
}

static mica__id compile_options(const mica__metal_device *device)
{
    mica__id options = MICA__SEND0(mica__id, mica__objc.get_class("MTLCompileOptions"), alloc);
    options = options ? MICA__SEND0(mica__id, options, init) : NULL;
    if (!options) return NULL;
    /* IEEE arithmetic, as everywhere in mica: 0 is MTLMathModeSafe. The mode leaves functions fast, so set them too:
     * 1 is MTLMathFloatingPointFunctionsPrecise. On older systems fastMathEnabled is about both. */
    if (MICA__RESPONDS(options, setMathMode)) {
        MICA__SEND1(void, options, setMathMode, long, 0);
        if (MICA__RESPONDS(options, setMathFunctions)) MICA__SEND1(void, options, setMathFunctions, long, 1);
    } else {
        MICA__SEND1(void, options, setFastMathEnabled, bool, false);
    }
    MICA__SEND1(void, options, setLanguageVersion, unsigned long, device->language);
    return options;
}

static mica_status compile_library(const mica__metal_device *device, const mica__pipeline_source *source,
                                   mica__id *library, uint64_t *hash)
{
    char *text = NULL;
    mica__id error = NULL;
    mica_status status = pipeline_text(device, source, &text);
    if (status != MICA_OK) {
        mica__free(text);
        return status;
    }
    mica__id string = mica__objc_string(text), options = compile_options(device);
    *hash = mica__hash(text, strlen(text), 0);
    mica__free(text);
    *library = string && options ? MICA__SEND3(mica__id, device->device, newLibraryWithSource, mica__id, string,
                                               mica__id, options, mica__id *, &error)
                                 : NULL;
    if (!*library) status = fail_compile(source, "compiling", error);
    mica__objc.release(options);
    mica__objc.release(string);
    return status;
}

/* Under the lock: the library of a source, which the caller releases. */
static mica_status find_library(const mica__metal_device *device, const mica__pipeline_source *source,
                                mica__id *library, uint64_t *hash)
{
    const bool shared =
        !source->text && source->shader && strlen(source->shader) < sizeof pipelines.libraries[0].shader;
    shader_library *l = pipelines.libraries, *end = l + (shared ? LIBRARIES : 0);
    while (l < end && l->library && strcmp(l->shader, source->shader) != 0) l++;
    if (l < end && l->library) {
        *library = mica__objc.retain(l->library);
        *hash = l->hash;
        return MICA_OK;
    }
    MICA_TRY(compile_library(device, source, library, hash));
    if (l == end) return MICA_OK;
    *l = (shader_library){.library = mica__objc.retain(*library), .hash = *hash};
    memcpy(l->shader, source->shader, strlen(source->shader) + 1);
    return MICA_OK;
}

static void free_libraries(void)
{
    for (shader_library *l = pipelines.libraries; l < pipelines.libraries + LIBRARIES && l->library; l++) {
        mica__objc.release(l->library);
        l->library = NULL;
    }
}

/* MTLDataType of a constant. */
static const unsigned long constant_type[] = {
    [MICA__GPU_BOOL] = 53, [MICA__GPU_INT] = 29, [MICA__GPU_UINT] = 33, [MICA__GPU_FLOAT] = 3};

static mica_status compile_function(const mica__pipeline_source *source, mica__id library, mica__id *function)
{
    mica__id error = NULL, name = mica__objc_string(source->kernel), values = NULL;
    if (name && source->n_constant > 0) {
        values = MICA__SEND0(mica__id, mica__objc.get_class("MTLFunctionConstantValues"), alloc);
        values = values ? MICA__SEND0(mica__id, values, init) : NULL;
        for (uint32_t i = 0; values && i < source->n_constant; i++) {
            const mica__gpu_constant *c = &source->constant[i];
            const unsigned char truth = c->bits != 0;
            const void *value = c->type == MICA__GPU_BOOL ? (const void *)&truth : &c->bits;
            MICA__SEND3(void, values, setConstantValue, const void *, value, unsigned long, constant_type[c->type],
                        unsigned long, c->index);
        }
        *function = values ? MICA__SEND3(mica__id, library, newFunctionWithConstants, mica__id, name, mica__id, values,
                                         mica__id *, &error)
                           : NULL;
    } else {
        *function = name ? MICA__SEND1(mica__id, library, newFunctionWithName, mica__id, name) : NULL;
    }
    const mica_status status = *function ? MICA_OK : fail_compile(source, "the function", error);
    mica__objc.release(values);
    mica__objc.release(name);
    return status;
}

static mica__id make_state(const mica__metal_device *device, const mica__pipeline_source *source, mica__id function,
                           mica__id *error)
{
    mica__id descriptor = mica__pipeline_descriptor(function, source->label ? source->label : source->kernel, NULL);
    mica__id state = descriptor ? MICA__SEND4(mica__id, device->device, newPipelineWithDescriptor, mica__id, descriptor,
                                              unsigned long, 0, mica__id *, NULL, mica__id *, error)
                                : NULL;
    mica__objc.release(descriptor);
    return state;
}

static mica_status compile_state(const mica__metal_device *device, const mica__pipeline_source *source, uint64_t start,
                                 mica__pipeline *p, unstored *later)
{
    mica__id library = NULL, function = NULL, error = NULL;
    uint64_t hash; /* includes the whole text, because a key has only the name of a shader */
    MICA_TRY(find_library(device, source, &library, &hash));
    hash = mica__hash(p->key, p->key_bytes, hash);
    mica_status status = compile_function(source, library, &function);
    if (status == MICA_OK) p->state = mica__archive_load(device, hash, function, p->name, &p->compile_ns);
    p->loaded = p->state != NULL;
    if (status == MICA_OK && !p->state) {
        p->state = make_state(device, source, function, &error);
        p->compile_ns = mica__now_ns() - start;
        if (!p->state) status = fail_compile(source, "the pipeline of", error);
        else *later = (unstored){mica__objc.retain(function), hash, p->compile_ns};
    }
    if (p->state) p->max_threads = (uint32_t)MICA__SEND0(unsigned long, p->state, maxTotalThreadsPerThreadgroup);
    mica__objc.release(function);
    mica__objc.release(library);
    return status;
}

static mica_status pipeline_compile(const mica__metal_device *device, const mica__pipeline_source *source,
                                    mica__pipeline *p, unstored *later)
{
    const uint64_t start = mica__now_ns();
    void *pool = mica__objc.pool_push();
    const mica_status status = compile_state(device, source, start, p, later);
    mica__objc.pool_pop(pool);
    const uint64_t took = mica__now_ns() - start;
    pipelines.stats.compiles++;
    pipelines.stats.compile_ns += took;
    if (!p->loaded) return status;
    pipelines.stats.loaded++;
    if (p->compile_ns > took) pipelines.stats.saved_ns += p->compile_ns - took;
    return status;
}

/* ----------------------------------------------------------------- table --- */

static void pipeline_free(mica__pipeline *p)
{
    mica__objc.release(p->state);
    mica__free(p->key);
    mica__free(p);
}

/* Under the lock: frees the least recently used pipeline without a reference. */
static void pipeline_evict(void)
{
    mica__pipeline **oldest = NULL;
    for (int i = 0; i < PIPELINE_BUCKETS; i++)
        for (mica__pipeline **at = &pipelines.bucket[i]; *at; at = &(*at)->next)
            if ((*at)->users == 0 && (!oldest || (*at)->used < (*oldest)->used)) oldest = at;
    if (!oldest) return;
    mica__pipeline *p = *oldest;
    *oldest = p->next;
    pipelines.idle--;
    pipelines.stats.alive--;
    pipeline_free(p);
}

/* name NUL shader NUL constants text */
static mica_status pipeline_key(const mica__pipeline_source *source, char **key, size_t *nbytes)
{
    const char *shader = source->shader ? source->shader : "";
    const char *text = source->text ? source->text : "";
    const size_t name = strlen(source->kernel) + 1, file = strlen(shader) + 1;
    const size_t constants = source->n_constant * sizeof *source->constant, rest = strlen(text);
    *nbytes = name + file + constants + rest;
    *key = mica__alloc(*nbytes);
    if (!*key) return mica__fail_memory("metal: the key of a kernel", *nbytes);
    memcpy(*key, source->kernel, name);
    memcpy(*key + name, shader, file);
    if (constants) memcpy(*key + name + file, source->constant, constants);
    memcpy(*key + name + file + constants, text, rest);
    return MICA_OK;
}

static mica__pipeline *pipeline_find(uint64_t hash, const char *key, size_t nbytes)
{
    mica__pipeline *p = pipelines.bucket[hash % PIPELINE_BUCKETS];
    while (p && (p->hash != hash || p->key_bytes != nbytes || memcmp(p->key, key, nbytes) != 0)) p = p->next;
    return p;
}

static mica_status pipeline_make(const mica__metal_device *device, const mica__pipeline_source *source, uint64_t hash,
                                 char *key, size_t nbytes, mica__pipeline **out, unstored *later)
{
    mica__pipeline *p = mica__alloc_zero(1, sizeof *p);
    if (!p) {
        mica__free(key);
        return mica__fail_memory("metal: a kernel", sizeof *p);
    }
    p->key = key;
    p->key_bytes = nbytes;
    p->name = key; /* the key begins with the name */
    p->hash = hash;
    const mica_status status = pipeline_compile(device, source, p, later);
    if (status != MICA_OK) {
        pipeline_free(p);
        return status;
    }
    p->next = pipelines.bucket[hash % PIPELINE_BUCKETS];
    pipelines.bucket[hash % PIPELINE_BUCKETS] = p;
    pipelines.stats.alive++;
    pipelines.idle++; /* until it has a user */
    *out = p;
    return MICA_OK;
}

/* Without the lock of the pipelines: writing files takes long. One at a time: temporary names are by process. */
static void pipeline_store(const mica__metal_device *device, const unstored *p)
{
    if (!p->function) return;
    void *pool = mica__objc.pool_push();
    pthread_mutex_lock(&store_lock);
    mica__archive_store(device, p->hash, p->function, p->compile_ns);
    pthread_mutex_unlock(&store_lock);
    mica__objc.release(p->function);
    mica__objc.pool_pop(pool);
}

mica_status mica__pipeline_get(const mica__metal_device *device, const mica__pipeline_source *source,
                               mica__pipeline **out)
{
    char *key;
    size_t nbytes;
    mica_status status = MICA_OK;
    unstored later = {.function = NULL};
    MICA_TRY(pipeline_key(source, &key, &nbytes));
    const uint64_t hash = mica__hash(key, nbytes, 0);
    pthread_mutex_lock(&pipelines.lock);
    mica__pipeline *p = pipeline_find(hash, key, nbytes);
    if (p) {
        if (!source->again) pipelines.stats.hits++, pipelines.stats.saved_ns += p->compile_ns;
        mica__free(key);
    } else {
        status = pipeline_make(device, source, hash, key, nbytes, &p, &later);
    }
    if (status == MICA_OK) {
        if (p->users++ == 0) pipelines.idle--;
        p->used = ++pipelines.clock;
        *out = p;
    }
    pthread_mutex_unlock(&pipelines.lock);
    pipeline_store(device, &later);
    return status;
}

void mica__pipeline_drop(mica__pipeline *p)
{
    if (!p) return;
    pthread_mutex_lock(&pipelines.lock);
    if (--p->users == 0 && ++pipelines.idle > PIPELINES_KEPT) pipeline_evict();
    pthread_mutex_unlock(&pipelines.lock);
}

void mica__pipeline_stats_get(mica__pipeline_stats *out)
{
    pthread_mutex_lock(&pipelines.lock);
    *out = pipelines.stats;
    pthread_mutex_unlock(&pipelines.lock);
}

void mica__pipeline_trim(void)
{
    pthread_mutex_lock(&pipelines.lock);
    while (pipelines.idle > 0) pipeline_evict();
    free_libraries();
    pthread_mutex_unlock(&pipelines.lock);
}
