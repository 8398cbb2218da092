/* Helpers for the tests of the Metal backend: an engine on the Metal implementation that is
 * available, and the extensions of softmetal if it is softmetal. */
#ifndef MICA_TESTS_METAL_KIT_H
#define MICA_TESTS_METAL_KIT_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/metal/metal_pipeline.h"
#include "mica.h"
#include "test.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static inline bool metal_is_here(const char **why) { return mica__backend_find("metal")->is_available(why); }

#define SKIP_WITHOUT_METAL()                                   \
    do {                                                       \
        const char *why_;                                      \
        if (!metal_is_here(&why_)) SKIP("no Metal: %s", why_); \
    } while (0)

static inline mica_engine *open_on(const char *backend)
{
    mica_engine_options o;
    mica_engine *e = NULL;
    mica_engine_options_init(&o);
    o.backend = backend;
    o.threads = 2;
    EXPECT_MSG(mica_open(&o, &e) == MICA_OK, "%s: %s", backend, mica_last_error());
    return e;
}

/* A function of softmetal by name; NULL on a Mac. */
static inline void *softmetal(const char *name) { return dlsym(RTLD_DEFAULT, name); }

/* Sets the faults to inject from now on (softmetal/README.md); NULL: none. False: not softmetal. */
static inline bool inject(const char *faults)
{
    int (*call)(const char *);
    void *address = softmetal("sm_inject");
    memcpy(&call, &address, sizeof call);
    return address && call(faults) == 0;
}

static inline int objects_alive(const char *name)
{
    int (*call)(const char *);
    void *address = softmetal("sm_objects_alive");
    memcpy(&call, &address, sizeof call);
    return address ? call(name) : 0;
}

static inline mica_stats stats_of(mica_engine *e)
{
    mica_stats s = {.struct_size = sizeof s};
    mica_engine_stats(e, &s);
    return s;
}

#endif
