/* Chooses the reader for a tokenizer by the first bytes of the file. */
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "io/path.h"
#include "text/tokenizer_build.h"

static mica_status open_gguf(const char *path, const char *pre, mica_tokenizer **out)
{
    mica__file *file;
    MICA_TRY(mica__file_open(path, NULL, &file));
    const mica_status status = mica__tokenizer_from_gguf(file, pre, out);
    mica__file_close(file);
    return status;
}

/* True if the first line looks like "IQ== 0", as in a tiktoken file. */
static bool is_rank_file(const char *text, size_t size)
{
    size_t n = 0;
    while (n < size && n < 256 && text[n] > ' ' && text[n] < 127) n++;
    return n >= 4 && n % 4 == 0 && n + 1 < size && text[n] == ' ' && text[n + 1] >= '0' && text[n + 1] <= '9';
}

static mica_status open_by_content(const char *path, mica__span span, const char *pre, mica_tokenizer **out)
{
    const char *text = (const char *)span.data;
    size_t at = 0;
    while (at < span.size && at < 64 && text[at] && strchr(" \t\r\n", text[at])) at++;
    if (at < span.size && text[at] == '{') {
        char *folder;
        MICA_TRY(mica__path_folder(path, &folder));
        const mica_status status = mica__tokenizer_from_json(path, text, span.size, folder, pre, out);
        mica__free(folder);
        return status;
    }
    if (span.size > 12 && !span.data[1] && !span.data[2] && !span.data[3])
        return mica__tokenizer_from_llama2c(path, span.data, span.size, out);
    if (is_rank_file(text, span.size)) return mica__tokenizer_from_ranks(path, text, span.size, pre, out);
    if (span.size > 4 && text[0] == '\n') return mica__tokenizer_from_sentencepiece(path, span.data, span.size, out);
    return mica__fail(MICA_ERR_FORMAT, "%s: the %zu bytes are not a tokenizer of a known kind", path, span.size);
}

static mica_status open_tokenizer_folder(const char *folder, const char *pre, mica_tokenizer **out)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model", "tokenizer.bin", "model.gguf"};
    char *path;
    MICA_TRY(mica__path_find(folder, names, sizeof names / sizeof names[0], &path));
    const mica_status status =
        path ? mica__tokenizer_open(path, pre, out)
             : mica__fail(MICA_ERR_FILE, "%s: the folder has no tokenizer.json, tokenizer.model or tokenizer.bin",
                          folder);
    mica__free(path);
    return status;
}

mica_status mica__tokenizer_open(const char *path, const char *pre, mica_tokenizer **out)
{
    struct stat s;
    mica__map map;
    *out = NULL;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) return open_tokenizer_folder(path, pre, out);
    MICA_TRY(mica__map_open(path, &map));
    const bool gguf = map.span.size >= 4 && memcmp(map.span.data, "GGUF", 4) == 0;
    const mica_status status = gguf ? open_gguf(path, pre, out) : open_by_content(path, map.span, pre, out);
    mica__map_close(&map);
    return status;
}

mica_status mica__tokenizer_from_file(const mica__file *file, const char *pre, mica_tokenizer **out)
{
    char *folder;
    *out = NULL;
    if (mica__file_get_kind(file) == MICA__FILE_GGUF) return mica__tokenizer_from_gguf(file, pre, out);
    MICA_TRY(mica__path_folder(mica__file_path(file), &folder));
    const mica_status status = open_tokenizer_folder(folder, pre, out);
    mica__free(folder);
    return status;
}
