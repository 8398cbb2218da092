/* A library for LD_PRELOAD (Linux with glibc): allocation number $FAIL_AT fails, and with $FAIL_ALL every one after
 * it. */
#include <errno.h>
#include <stdlib.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static int fails(void)
{
    static long count, at = -1;
    static int all;
    if (at < 0) {
        const char *text = getenv("FAIL_AT");
        at = text ? strtol(text, NULL, 10) : 0;
        all = getenv("FAIL_ALL") != NULL;
    }
    count++;
    if (at == 0 || count < at || (count > at && !all)) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
void *aligned_alloc(size_t align, size_t n) { return fails() ? NULL : __libc_memalign(align, n); }
int posix_memalign(void **out, size_t align, size_t n)
{
    void *p = fails() ? NULL : __libc_memalign(align, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}
