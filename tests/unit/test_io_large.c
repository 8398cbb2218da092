/* Files larger than memory: sparse files that open at once and without using memory; and sizes
 * beyond 32 bits. */
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>

#include "io/model_write.h"
#include "io_files.h"

static const uint64_t GB = (uint64_t)1 << 30;

/* Creates a sparse file of this size with these bytes at its start; false if the file
 * system does not support it. */
static bool sparse(const char *path, const bytes *head, uint64_t size)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (fd < 0) return false;
    bool good = write(fd, head->data, head->n) == (ssize_t)head->n && ftruncate(fd, (off_t)size) == 0;
    struct stat s;
    good = good && fstat(fd, &s) == 0 && (uint64_t)s.st_blocks * 512 < GB / 4;
    close(fd);
    if (!good) unlink(path);
    return good;
}

/* Resident memory of this process in MB, -1 if unknown. */
static long resident_mb(void)
{
    long pages = -1, ignored;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &ignored, &pages) != 2) pages = -1;
    if (f) fclose(f);
    return pages < 0 ? -1 : pages * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

static void opens_at_once(const char *path, const char *tensor, uint64_t nbytes)
{
    struct timespec a, b;
    const long before = resident_mb();
    mica__file *f = NULL;
    clock_gettime(CLOCK_MONOTONIC, &a);
    const mica_status status = mica__file_open(path, NULL, &f);
    clock_gettime(CLOCK_MONOTONIC, &b);
    unlink(path);
    CHECK_MSG(status == MICA_OK, "%s", mica_last_error());
    const long after = resident_mb();
    printf("%llu bytes: opened in %.3f ms, %ld MB more in memory\n", (unsigned long long)nbytes,
           (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6, after - before);
    const mica__stored *t = mica__file_find(f, tensor);
    CHECK(t != NULL);
    EXPECT_INT(t->nbytes, nbytes);
    EXPECT_INT(((const uint8_t *)t->data)[nbytes - 1], 0); /* the last byte can be read */
    /* 1 %, because an emulator stores data about each page */
    if (before >= 0) EXPECT_MSG(after - before < (long)(nbytes / 100 >> 20), "%ld MB more in memory", after - before);
    mica__file_close(f);
}

TEST(ten_gigabytes_of_gguf)
{
    bytes b = {.n = 0};
    put(&b, "GGUF\3\0\0\0", 8);
    put_int(&b, 1, 8), put_int(&b, 0, 8), put_int(&b, 1, 8), put(&b, "w", 1);
    put_int(&b, 1, 4), put_int(&b, 10 * GB, 8), put_int(&b, 24, 4), put_int(&b, 0, 8);
    put_align(&b, 32);
    const char *path = io_path("large.gguf");
    if (!sparse(path, &b, b.n + 10 * GB)) SKIP("no sparse files here");
    opens_at_once(path, "w", 10 * GB);
}

TEST(ten_gigabytes_of_safetensors)
{
    char header[128];
    const int n =
        snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"F32\",\"shape\":[%llu],\"data_offsets\":[0,%llu]}}",
                 (unsigned long long)(10 * GB / 4), (unsigned long long)(10 * GB));
    bytes b = {.n = 0};
    put_int(&b, (uint64_t)n, 8);
    put(&b, header, (size_t)n);
    const char *path = io_path("large.safetensors");
    if (!sparse(path, &b, b.n + 10 * GB)) SKIP("no sparse files here");
    opens_at_once(path, "w", 10 * GB);
}

/* A stored zip entry of more than 4 GB, by zip64 fields. */
TEST(five_gigabytes_of_npz)
{
    char dict[128];
    const uint64_t data = 5 * GB;
    const int length = snprintf(dict, sizeof dict, "{'descr': '|u1', 'fortran_order': False, 'shape': (%llu,), }\n",
                                (unsigned long long)data);
    const uint64_t size = 10 + (uint64_t)length + data;
    bytes b = {.n = 0};
    put(&b, "PK\3\4", 4);
    put_int(&b, 45, 2), put_int(&b, 0, 8), put_int(&b, 0, 4), put_int(&b, UINT32_MAX, 4), put_int(&b, UINT32_MAX, 4);
    put_int(&b, 5, 2), put_int(&b, 20, 2), put(&b, "w.npy", 5);
    put_int(&b, 1, 2), put_int(&b, 16, 2), put_int(&b, size, 8), put_int(&b, size, 8);
    put(&b, "\x93NUMPY\1\0", 8), put_int(&b, (uint64_t)length, 2), put(&b, dict, (size_t)length);
    const uint64_t directory = b.n + data;
    const char *path = io_path("large.npz");
    if (!sparse(path, &b, directory)) SKIP("no sparse files here");
    b.n = 0;
    put(&b, "PK\1\2", 4), put_int(&b, 45, 2);
    put_int(&b, 45, 2), put_int(&b, 0, 8), put_int(&b, 0, 4), put_int(&b, UINT32_MAX, 4), put_int(&b, UINT32_MAX, 4);
    put_int(&b, 5, 2), put_int(&b, 20, 2), put_int(&b, 0, 8), put_int(&b, 0, 6), put(&b, "w.npy", 5);
    put_int(&b, 1, 2), put_int(&b, 16, 2), put_int(&b, size, 8), put_int(&b, size, 8);
    const uint64_t size_of_directory = b.n;
    put(&b, "PK\6\6", 4), put_int(&b, 44, 8), put_int(&b, 45, 2), put_int(&b, 45, 2), put_int(&b, 0, 8);
    put_int(&b, 1, 8), put_int(&b, 1, 8), put_int(&b, size_of_directory, 8), put_int(&b, directory, 8);
    put(&b, "PK\6\7\0\0\0\0", 8), put_int(&b, directory + size_of_directory, 8), put_int(&b, 1, 4);
    put(&b, "PK\5\6\0\0\0\0", 8), put_int(&b, 1, 2), put_int(&b, 1, 2), put_int(&b, size_of_directory, 4);
    put_int(&b, UINT32_MAX, 4), put_int(&b, 0, 2);
    FILE *f = fopen(path, "ab");
    CHECK(f && fwrite(b.data, 1, b.n, f) == b.n && fclose(f) == 0);
    opens_at_once(path, "w", data);
}

/* More tensors than any model has: tests the limit and the time to reach it. */
TEST(a_hundred_thousand_tensors)
{
    const size_t n = 100000;
    char *names = malloc(n * 16);
    mica__out_tensor *t = calloc(n, sizeof *t);
    if (!names || !t) abort();
    for (size_t i = 0; i < n; i++) {
        snprintf(names + 16 * i, 16, "t%d", (int)i);
        t[i] = (mica__out_tensor){names + 16 * i, MICA__QUANT_I8, 1, {0}, NULL};
    }
    const mica__out_file out = {.tensors = t, .n_tensors = n};
    mica__file *f;
    const char *path = io_path("many");
    for (int k = 0; k < 2; k++) {
        CHECK_INT((k ? mica__gguf_write : mica__safetensors_write)(path, &out), MICA_OK);
        CHECK_MSG(mica__file_open(path, NULL, &f) == MICA_OK, "%s", mica_last_error());
        EXPECT_INT(mica__file_count(f), n);
        for (size_t i = 0; i < n; i += 997) EXPECT(mica__file_find(f, names + 16 * i) != NULL);
        mica__file_close(f);
    }
    free(names);
    free(t);
}
