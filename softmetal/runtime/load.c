/* Loads a kernel's shared library. Its threadgroup variables are thread-local
 * variables of that library, one copy for each OS thread that runs threadgroups.
 * So the size of its TLS segment is the static threadgroup memory. */
#include "kernel.h"

#include "../msl/text.h"
#include "cover.h"
#include "engine.h"
#include "../settings/settings.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

static int find_segments(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    sm_kernel *k = data;
    uintptr_t module = (uintptr_t)k->module, low = UINTPTR_MAX, high = 0;
    size_t tls = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr, end = start + p->p_memsz;
        if (p->p_type == PT_TLS) tls = p->p_memsz;
        if (p->p_type != PT_LOAD) continue;
        low = start < low ? start : low;
        high = end > high ? end : high;
    }
    if (module < low || module >= high) return 0;
    k->base = info->dlpi_addr;
    k->start = low;
    k->end = high;
    k->tls_index = info->dlpi_tls_modid;
    k->statics_length = tls;
    return 1;
}

/* Example of a cause: "undefined symbol: sm_unset_X" */
static void report_not_loaded(const char *name, const char *cause, char **message)
{
    const char *unset = strstr(cause, "sm_unset_");
    if (unset)
        sm_set_message(message, "kernel '%s' uses the function constant '%.*s', which has no value", name,
                       (int)strcspn(unset + 9, " ,()"), unset + 9);
    else sm_set_message(message, "kernel '%s' cannot be loaded: %s", name, cause);
}

sm_kernel *sm_kernel_load(char *path, const char *name, bool checked, bool fuzzed, bool from_cache, char **message)
{
    sm_kernel *k = calloc(1, sizeof *k);
    char *copy = strdup(name);
    if (!k || !copy) {
        free(k);
        free(copy);
        free(path);
        sm_set_message(message, "out of memory");
        return NULL;
    }
    *k = (sm_kernel){.name = copy, .path = path, .checked = checked, .fuzzed = fuzzed, .from_cache = from_cache};
    k->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    k->module = k->handle ? dlsym(k->handle, "sm_kernel_module") : NULL;
    if (!k->module || k->module->version != SM_ABI_VERSION) {
        const char *cause = dlerror();
        report_not_loaded(name, cause ? cause : "it is not a kernel of this version", message);
        sm_kernel_close(k);
        return NULL;
    }
    if (*k->module->misused) {
        sm_set_message(message,
                       "kernel '%s': the initial value of a constant outside functions is not a constant: it uses "
                       "lanes, a barrier or undefined arithmetic",
                       name);
        sm_kernel_close(k);
        return NULL;
    }
    *k->module->runtime = &sm_runtime_table;
    for (const unsigned char *used = k->module->used; used != k->module->used_end; used++) k->used |= 1u << *used;
    dl_iterate_phdr(find_segments, k);
    if (k->statics_length > SM_MAX_THREADGROUP_BYTES) {
        sm_set_message(message, "kernel '%s' has %zu bytes of threadgroup variables, above the limit of %d", name,
                       k->statics_length, SM_MAX_THREADGROUP_BYTES);
        sm_kernel_close(k);
        return NULL;
    }
    k->count = dlsym(k->handle, "sm_kernel_count");
    for (int i = 0; i < k->module->arguments_count; i++) {
        const sm_module_argument *a = &k->module->arguments[i];
        if (a->kind == 0 && a->constant) k->constants |= 1u << a->index;
    }
    sm_cover_start(k);
    return k;
}

void sm_kernel_close(sm_kernel *kernel)
{
    if (!kernel) return;
    sm_cover_end(kernel);
    if (kernel->handle) dlclose(kernel->handle);
    free(kernel->name);
    free(kernel->constants_text);
    free(kernel->path);
    free(kernel);
}

static int max_threads(const sm_kernel *kernel)
{
    int limit = SM_MAX_THREADS;
    const int lower = (int)sm_setting_integer(SM_SET_MAXTHREADS, SM_MAX_THREADS);
    if (lower < limit) limit = lower / SM_SIMD_WIDTH * SM_SIMD_WIDTH;
    if (kernel->module->max_threads > 0 && kernel->module->max_threads < limit) limit = kernel->module->max_threads;
    return limit;
}

void sm_kernel_describe(const sm_kernel *kernel, sm_kernel_facts *facts)
{
    *facts = (sm_kernel_facts){.max_threads = max_threads(kernel),
                               .simd_width = SM_SIMD_WIDTH,
                               .threadgroup_bytes = kernel->statics_length,
                               .from_cache = kernel->from_cache};
    for (int i = 0; i < kernel->module->arguments_count; i++) {
        const sm_module_argument *a = &kernel->module->arguments[i];
        if (a->kind == 0 && a->needed) facts->buffers_used |= kernel->used & 1u << a->index;
    }
}
