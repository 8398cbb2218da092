/* Growable text, messages, whole files and the hash that names cache files. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool reserve(sm_text *text, size_t more)
{
    if (text->failed) return false;
    if (more < SIZE_MAX / 4 && text->length + more + 1 <= text->room) return true;
    size_t room = text->room < 256 ? 256 : text->room;
    while (more < SIZE_MAX / 4 && room < text->length + more + 1) room *= 2;
    char *bytes = room > text->room ? realloc(text->bytes, room) : NULL;
    if (!bytes) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->room = room;
    return true;
}

void sm_text_add(sm_text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length)) return;
    if (length) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

static void print_list(sm_text *text, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0 || !reserve(text, (size_t)length)) return;
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, list);
    text->length += (size_t)length;
}

void sm_text_print(sm_text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_list(text, format, list);
    va_end(list);
}

void sm_text_free(sm_text *text)
{
    free(text->bytes);
    *text = (sm_text){0};
}

void sm_set_message(char **message, const char *format, ...)
{
    if (!message || *message) return;
    sm_text text = {0};
    va_list list;
    va_start(list, format);
    print_list(&text, format, list);
    va_end(list);
    *message = text.bytes;
}

bool sm_grow(void **list, int count, int *room, size_t size)
{
    if (count < *room) return true;
    int more = *room ? *room * 2 : 16;
    void *bytes = realloc(*list, (size_t)more * size);
    if (!bytes) return false;
    *list = bytes;
    *room = more;
    return true;
}

bool sm_text_read(sm_text *text, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    char part[16384];
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;) sm_text_add(text, part, n);
    bool read = !ferror(file);
    fclose(file);
    sm_text_add(text, "", 0);
    return read && !text->failed;
}

bool sm_file_write(const char *path, const void *bytes, size_t length)
{
    sm_text name = {0};
    sm_text_print(&name, "%s.XXXXXX", path);
    if (name.failed) return false;
    int fd = mkstemp(name.bytes);
    bool written = fd >= 0;
    for (size_t at = 0; written && at < length;) {
        ssize_t n = write(fd, (const char *)bytes + at, length - at);
        written = n > 0;
        at += written ? (size_t)n : 0;
    }
    if (fd >= 0) {
        written = close(fd) == 0 && written && rename(name.bytes, path) == 0;
        if (!written) unlink(name.bytes);
    }
    sm_text_free(&name);
    return written;
}

void sm_hash_start(sm_hash *hash) { *hash = (sm_hash){0xcbf29ce484222325u, 0x9ae16a3b2f90404fu}; }

/* Two multiplicative hashes with different multipliers, one with a rotation. Inputs are not adversarial, so 128 well
 * mixed bits are enough. */
void sm_hash_add(sm_hash *hash, const void *bytes, size_t length)
{
    const unsigned char *p = bytes;
    uint64_t a = hash->a, b = hash->b;
    for (size_t i = 0; i < length; i++) {
        a = (a ^ p[i]) * 0x100000001b3u;
        b = ((b << 23 | b >> 41) + p[i]) * 0x9e3779b97f4a7c15u;
    }
    *hash = (sm_hash){a, b};
}

void sm_hash_text(sm_hash *hash, const char *text) { sm_hash_add(hash, text, strlen(text) + 1); }

void sm_hash_name(const sm_hash *hash, char name[33])
{
    uint64_t b = hash->b ^ hash->b >> 29;
    snprintf(name, 33, "%016llx%016llx", (unsigned long long)hash->a, (unsigned long long)(b * 0xbf58476d1ce4e5b9u));
}
