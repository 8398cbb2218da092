/* A kernel that is loaded. */
#ifndef SOFTMETAL_KERNEL_H
#define SOFTMETAL_KERNEL_H

#include "../core.h"
#include "../shim/abi.h"

struct sm_kernel {
    char *name, *path; /* of the shared library */
    void *handle;
    const sm_module *module;
    uintptr_t base, start, end; /* where it was loaded */
    size_t tls_index;           /* its threadgroup variables are thread local */
    size_t statics_length;      /* and this long */
    uint32_t used;              /* bit i: its code makes use of buffer i */
    bool checked;               /* built with SM_CHECK */
    bool fuzzed;
    bool from_cache;
    const sm_cover *cover; /* built with SM_COVER: what of it ran */
    sm_kernel *cover_next; /* in the list of those */
};

/* Takes path over. NULL on failure. */
sm_kernel *sm_kernel_load(char *path, const char *name, bool checked, bool fuzzed, bool from_cache, char **message);

#endif
