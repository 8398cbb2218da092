/* Writes the shim's headers into the disk cache, for clang. */
#include "shim_write.h"

#include "shim_files.h"
#include "swizzle.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 1024 };

bool sm_make_folders(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = '\0';
        mkdir(path, 0777);
        *p = '/';
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

/* Writes the headers that MSL includes: only macros, for the preprocessor; the shim itself is precompiled. */
static bool write_headers(const char *folder)
{
    static const struct {
        const char *name, *text;
    } headers[] = {
#define HEADER(name, text) {name, "#include \"../macros.h\"\n" text},
#include "metal_headers.def"
#undef HEADER
    };
    char path[PATH_ROOM + 64];
    bool good = true;
    for (size_t i = 0; good && i < sizeof headers / sizeof *headers; i++) {
        const char *slash = strchr(headers[i].name, '/');
        snprintf(path, sizeof path, "%s/empty/%.*s", folder, slash ? (int)(slash - headers[i].name) : 0,
                 headers[i].name);
        sm_make_folders(path);
        snprintf(path, sizeof path, "%s/empty/%s", folder, headers[i].name);
        if (access(path, R_OK)) good = sm_file_write(path, headers[i].text, strlen(headers[i].text));
    }
    return good;
}

bool sm_shim_write(const char *root, char *folder, size_t room)
{
    sm_hash hash;
    sm_hash_start(&hash);
    for (int width = 2; width <= 4; width++) {
        sm_text text = {0};
        sm_swizzles(width, &text);
        if (!text.failed) sm_hash_add(&hash, text.bytes, text.length);
        sm_text_free(&text);
    }
    for (int i = 0; sm_shim_files[i].name; i++) {
        sm_hash_text(&hash, sm_shim_files[i].name);
        sm_hash_add(&hash, sm_shim_files[i].start, (size_t)(sm_shim_files[i].end - sm_shim_files[i].start));
    }
#define HEADER(name, text) sm_hash_text(&hash, name text);
#include "metal_headers.def"
#undef HEADER
    char name[33], path[PATH_ROOM + 64];
    sm_hash_name(&hash, name);
    snprintf(folder, room, "%.*s/shim-%s", PATH_ROOM - 64, root, name);
    snprintf(path, sizeof path, "%s/empty", folder);
    if (!sm_make_folders(path)) return false;
    bool good = true;
    for (int i = 0; good && sm_shim_files[i].name; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, sm_shim_files[i].name);
        struct stat s;
        size_t length = (size_t)(sm_shim_files[i].end - sm_shim_files[i].start);
        if (stat(path, &s) || (size_t)s.st_size != length) good = sm_file_write(path, sm_shim_files[i].start, length);
    }
    for (int width = 2; good && width <= 4; width++) {
        sm_text text = {0};
        sm_swizzles(width, &text);
        snprintf(path, sizeof path, "%s/swizzle%d.h", folder, width);
        if (access(path, R_OK)) good = !text.failed && sm_file_write(path, text.bytes, text.length);
        sm_text_free(&text);
    }
    return good && write_headers(folder);
}
