/* GGUF from any bytes. Inputs need not begin with the magic number. */
#include "io_property.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 8);
    if (!copy) abort();
    const bool whole = size >= 4 && memcmp(data, "GGUF", 4) == 0;
    memcpy(copy, "GGUF\3\0\0\0", 8);
    if (size) memcpy(copy + (whole ? 0 : 8), data, size);
    uint8_t *exact = malloc(whole ? size : size + 8);
    if (!exact) abort();
    memcpy(exact, copy, whole ? size : size + 8);
    free(copy);
    read_bytes(exact, whole ? size : size + 8);
    free(exact);
    return 0;
}
