/* The JSON file next to a model, from any bytes, read as metadata: keys are found, strings are
 * UTF-8, lists have the stated number of items, and nothing leaks. */
#include "io/json.h"
#include "io/model_build.h"
#include "io_property.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entry(const mica__file *file, const mica__meta *m)
{
    const char *text;
    size_t n, at = 0;
    uint64_t count = 0;
    must(strncmp(m->key, "config", 6) == 0, "keys begin with what the file is called");
    must(mica__file_meta_find(file, m->key) == m, "a key finds its entry");
    if (m->type == MICA__META_STRING) must(mica__utf8_valid(m->data, m->nbytes), "strings are UTF-8");
    if (m->type != MICA__META_ARRAY) return;
    if (m->item == MICA__META_STRING) {
        for (; mica__meta_next_string(m, &at, &text, &n); count++) must(mica__utf8_valid(text, n), "strings are UTF-8");
        must(at == m->nbytes, "strings fill their array");
    } else {
        count = m->nbytes / mica__meta_size(m->item);
        must(count * mica__meta_size(m->item) == m->nbytes, "items fill their array");
    }
    must(count == m->count, "an array has the stated number of items");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char empty[] = "\2\0\0\0\0\0\0\0{}";
    const int64_t live = mica__alloc_live();
    mica__file *file = NULL;
    must(mica__file_from_memory("fuzz", empty, sizeof empty - 1, NULL, &file) == MICA_OK, "an empty file is read");
    mica_status status = mica__json_meta(file, "fuzz", "config", data, size);
    if (status == MICA_OK) status = mica__build_tables(file);
    if (status == MICA_OK)
        for (size_t i = 0; i < mica__file_meta_count(file); i++) check_entry(file, mica__file_meta(file, i));
    else must(status == MICA_ERR_FORMAT && strncmp(mica_last_error(), "fuzz: ", 6) == 0, "the message names the file");
    mica__file_close(file);
    must(mica__alloc_live() == live, "nothing is left");
    return 0;
}
