/* safetensors from any bytes. The input is also read as JSON: with its length before it, and after
 * it as many data bytes as its first byte states. */
#include "io_property.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_bytes(data, size);
    const size_t room = size ? data[0] : 0, json = size ? size - 1 : 0;
    uint8_t *file = calloc(1, 8 + json + room);
    if (!file) abort();
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)json >> 8 * i);
    if (json) memcpy(file + 8, data + 1, json);
    read_bytes(file, 8 + json + room);
    free(file);
    return 0;
}
