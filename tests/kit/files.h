/* A separate folder for tests that write files, and functions that read and write small files. */
#ifndef MICA_TEST_FILES_H
#define MICA_TEST_FILES_H

#include <dirent.h>
#include <sys/stat.h>

#include "api.h"

static char files_folder[512];

static UNUSED const char *folder_path(void)
{
    if (!files_folder[0]) {
        const char *tmp = getenv("TMPDIR");
        snprintf(files_folder, sizeof files_folder, "%s/mica-files-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        if (!mkdtemp(files_folder)) abort();
    }
    return files_folder;
}

/* A path in the folder; the last four stay valid. */
static UNUSED const char *file_path(const char *name)
{
    static char paths[4][768];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder_path(), name);
    return path;
}

static UNUSED const char *write_bytes(const char *name, const void *data, size_t n)
{
    const char *path = file_path(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) abort();
    return path;
}

static UNUSED const char *write_text(const char *name, const char *text)
{
    return write_bytes(name, text, strlen(text));
}

/* Writes a safetensors file: this header, and n data bytes 0, 1, 2, ... */
static UNUSED const char *write_safetensors_bytes(const char *name, const char *header, size_t n)
{
    unsigned char bytes[4096] = {0};
    const size_t length = strlen(header);
    if (8 + length + n > sizeof bytes) abort();
    bytes[0] = (unsigned char)length;
    bytes[1] = (unsigned char)(length >> 8);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < n; i++) bytes[8 + length + i] = (unsigned char)i;
    return write_bytes(name, bytes, 8 + length + n);
}

/* The number of files in the folder. */
static UNUSED int files_there(void)
{
    int n = 0;
    DIR *d = opendir(folder_path());
    for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

__attribute__((destructor)) static void remove_files(void)
{
    char command[640];
    if (!files_folder[0]) return;
    snprintf(command, sizeof command, "rm -rf '%s'", files_folder);
    if (system(command) != 0) fprintf(stderr, "%s failed\n", command);
}

static UNUSED mica_tensor_info info_of(const mica_file *f, const char *name)
{
    mica_tensor_info info = {.struct_size = sizeof info};
    EXPECT_MSG(mica_file_find(f, name, &info), "there is no tensor %s", name);
    return info;
}

/* Returns whether the metadata string equals this text. */
static UNUSED bool meta_is(const mica_file *f, const char *key, const char *want)
{
    const char *text;
    size_t n;
    return mica_file_string(f, key, &text, &n) && n == strlen(want) && memcmp(text, want, n) == 0;
}

#endif
