/* See metal_tuning.h. The file:
 *
 *   matmul_f32=matmul_float_64x32x16_2x2 matvec=8_simds
 *   check 5d1f8c6f0a3b2e91                               a hash of the line above */
#include "backend/metal/metal_tuning.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/metal/metal_cache.h"
#include "base/hash.h"
#include "io/writer.h"

enum { TUNING_BYTES = 4096 };

static bool tuning_path(const mica__metal_device *device, char path[MICA__CACHE_PATH])
{
    return mica__cache_path(device, mica__hash("tuning", 6, 0), ".tuning", path);
}

/* The first line of the file; false: there is no file, or it is incomplete. */
static bool read_line(const char *path, char line[TUNING_BYTES], bool *exists)
{
    FILE *f = fopen(path, "r");
    *exists = f != NULL;
    if (!f) return false;
    const size_t n = fread(line, 1, TUNING_BYTES - 1, f);
    fclose(f);
    line[n] = 0;
    const size_t length = strcspn(line, "\n");
    uint64_t check;
    if (sscanf(line + length, "\ncheck %16" SCNx64, &check) != 1 || check != mica__hash(line, length, 0)) return false;
    line[length] = 0;
    return true;
}

/* The state of the file for `mica doctor`; NULL if it was read. */
static const char *read_tuning(const mica__metal_device *device, mica__gpu_tuning *tuning, char *path)
{
    char line[TUNING_BYTES];
    bool exists;
    *tuning = (mica__gpu_tuning){{0}};
    if (!tuning_path(device, path)) return "no cache folder";
    if (!read_line(path, line, &exists)) return exists ? "incomplete, not used" : "none yet: mica tune";
    return mica__gpu_tuning_parse(line, tuning) == MICA_OK ? NULL : "of another version, not used";
}

void mica__tuning_load(mica__metal_device *device)
{
    char path[MICA__CACHE_PATH];
    (void)read_tuning(device, &device->limits.tuning, path);
}

mica_status mica__tuning_path(const mica__metal_device *device, char *path)
{
    if (tuning_path(device, path)) return MICA_OK;
    return mica__fail(MICA_ERR_UNSUPPORTED, "tune: there is no cache folder to store the result in; set MICA_CACHE");
}

mica_status mica__tuning_store(const mica__metal_device *device, const mica__gpu_tuning *tuning)
{
    char line[TUNING_BYTES], check[40], path[MICA__CACHE_PATH];
    mica__text text;
    mica__writer w;
    mica__text_init(&text, line, sizeof line);
    mica__gpu_tuning_print(tuning, &text);
    if (text.length >= sizeof line) return mica__fail(MICA_ERR_INTERNAL, "tune: %zu bytes of choices", text.length);
    MICA_TRY(mica__tuning_path(device, path));
    mica__cache_make_folders(path);
    snprintf(check, sizeof check, "\ncheck %016" PRIx64 "\n", mica__hash(line, text.length, 0));
    MICA_TRY(mica__writer_open(&w, path));
    (void)mica__writer_put(&w, line, text.length);
    (void)mica__writer_put(&w, check, strlen(check));
    return mica__writer_finish(&w);
}

mica_status mica__tuning_remove(const mica__metal_device *device)
{
    char path[MICA__CACHE_PATH];
    if (!tuning_path(device, path) || unlink(path) == 0 || errno == ENOENT) return MICA_OK;
    return mica__fail(MICA_ERR_FILE, "tune: cannot remove '%s': %s", path, strerror(errno));
}

void mica__tuning_print(const mica__metal_device *device, mica__text *text)
{
    char path[MICA__CACHE_PATH];
    mica__gpu_tuning read;
    const char *why = read_tuning(device, &read, path);
    mica__text_add(text, "  measured shapes of kernels: %s", why ? why : "");
    if (!why) mica__gpu_tuning_print(&read, text);
    if (!why) mica__text_add(text, " (%s)", path);
    mica__text_add(text, "\n");
}
