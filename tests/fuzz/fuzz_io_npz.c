/* npy, npz and inflate. Any bytes are read as a file, as a deflate stream, and as an npy header. */
#include "io/inflate.h"
#include "io_property.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inflate_twice(const uint8_t *data, size_t size)
{
    enum { CAP = 1 << 16 };
    uint8_t *out = malloc(CAP), *part = malloc(100);
    size_t n, m;
    if (!out || !part) abort();
    const mica__inflate_result all = mica__inflate((mica__span){data, size}, out, CAP, &n);
    const mica__inflate_result some = mica__inflate((mica__span){data, size}, part, 100, &m);
    must(n <= CAP && m <= 100, "no more than the room");
    if (all == MICA__INFLATE_OK) must(some == (n > 100 ? MICA__INFLATE_FULL : MICA__INFLATE_OK), "the same stream");
    must(m > n || memcmp(out, part, m) == 0, "the same bytes");
    free(out);
    free(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_bytes(data, size);
    inflate_twice(data, size);
    uint8_t *npy = malloc(size + 8);
    if (!npy) abort();
    memcpy(npy, "\x93NUMPY\1\0", 8);
    if (size) memcpy(npy + 8, data, size);
    read_bytes(npy, size + 8);
    free(npy);
    return 0;
}
