/* Builds model files byte by byte for the tests and fuzzers of src/io: a growing buffer, a separate
 * folder, and the check that a file is refused. */
#ifndef MICA_TEST_IO_FILES_H
#define MICA_TEST_IO_FILES_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/model_file.h"
#include "test.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ----------------------------------------------------------------- bytes --- */

typedef struct bytes {
    uint8_t data[1 << 16];
    size_t n;
} bytes;

static inline void put(bytes *b, const void *data, size_t n)
{
    if (n > sizeof b->data - b->n) abort();
    if (n) memcpy(b->data + b->n, data, n);
    b->n += n;
}

static inline void put_int(bytes *b, uint64_t v, int n)
{
    for (int i = 0; i < n; i++) put(b, &(uint8_t){(uint8_t)(v >> 8 * i)}, 1);
}

static inline void put_zeros(bytes *b, size_t n)
{
    while (n--) put(b, "", 1);
}

static inline void put_align(bytes *b, size_t to)
{
    while (b->n % to) put(b, "", 1);
}

/* ----------------------------------------------------------------- files --- */

static char io_folder_path[512];

static inline const char *io_folder(void)
{
    if (!io_folder_path[0]) {
        const char *tmp = getenv("TMPDIR");
        snprintf(io_folder_path, sizeof io_folder_path, "%s/mica-io-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        if (!mkdtemp(io_folder_path)) abort();
    }
    return io_folder_path;
}

/* A path in the folder; the last four stay valid. */
static inline const char *io_path(const char *name)
{
    static char paths[4][768];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", io_folder(), name);
    return path;
}

static inline const char *io_write(const char *name, const void *data, size_t n)
{
    const char *path = io_path(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) abort();
    return path;
}

/* The whole file; malloc. NULL if it cannot be read. */
static inline uint8_t *io_read(const char *path, size_t *n)
{
    *n = 0;
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    uint8_t *data = NULL;
    for (size_t cap = 0;;) {
        if (*n == cap && !(data = realloc(data, cap = cap ? 2 * cap : 4096))) abort();
        const size_t got = fread(data + *n, 1, cap - *n, f);
        if (!got) break;
        *n += got;
    }
    fclose(f);
    return data;
}

static inline bool io_same_bytes(const char *path, const void *want, size_t n)
{
    size_t got;
    uint8_t *data = io_read(path, &got);
    const bool same = data && got == n && memcmp(data, want, n) == 0;
    free(data);
    return same;
}

/* Removes the folder of this program, at its end. */
__attribute__((destructor)) static inline void io_remove_folder(void)
{
    char command[640];
    if (io_folder_path[0]) {
        snprintf(command, sizeof command, "rm -rf '%s'", io_folder_path);
        if (system(command) != 0) fprintf(stderr, "%s failed\n", command);
    }
}

/* A file of tests/fixtures, which every clone has. NULL: not run from the root of the project. */
static inline const char *io_fixture(const char *name)
{
    static char path[768];
    snprintf(path, sizeof path, "tests/fixtures/%s", name);
    return access(path, R_OK) == 0 ? path : NULL;
}

/* Real data: ../shared/data, or the folder of MICA_TEST_DATA; NULL if the file does not exist. A test of real
 * data runs the same code on a fixture first. */
static inline const char *io_data(const char *name)
{
    static char path[768];
    const char *root = getenv("MICA_TEST_DATA");
    snprintf(path, sizeof path, "%s/%s", root && *root ? root : "../shared/data", name);
    return access(path, R_OK) == 0 ? path : NULL;
}

/* --------------------------------------------------------------- opening --- */

/* In a heap block of exactly its size, so that ASan reports a read past its end. */
static inline mica_status open_bytes(const bytes *b, const mica__file_options *options, mica__file **out,
                                     uint8_t **block)
{
    *block = malloc(b->n ? b->n : 1);
    if (!*block) abort();
    memcpy(*block, b->data, b->n);
    const mica_status status = mica__file_from_memory("test", *block, b->n, options, out);
    if (status != MICA_OK) {
        free(*block);
        *block = NULL;
    }
    return status;
}

/* The file is refused with this status and an error message that contains these parts
 * ("a|b"), and nothing leaks. */
static inline void refuse(const bytes *b, const mica__file_options *options, mica_status want, const char *parts)
{
    mica__file *file = NULL;
    uint8_t *block;
    const int64_t live = mica__alloc_live();
    const mica_status got = open_bytes(b, options, &file, &block);
    EXPECT_MSG(got == want, "status %d, not %d: %s", (int)got, (int)want, got ? mica_last_error() : "it was read");
    EXPECT((got == MICA_OK) == (file != NULL));
    if (got == MICA_OK) mica__file_close(file), free(block);
    else {
        char copy[256], *rest = copy, *part;
        snprintf(copy, sizeof copy, "%s", parts);
        while ((part = strtok_r(rest, "|", &rest)))
            EXPECT_MSG(strstr(mica_last_error(), part), "no \"%s\" in \"%s\"", part, mica_last_error());
    }
    EXPECT_INT(mica__alloc_live(), live);
}

#endif
