/* See record.h. */
#include "record.h"

#include "../msl/text.h"
#include "../runtime/kernel.h"
#include "../settings/settings.h"
#include "../softmetal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Counted in full: grids up to so many threads. Of larger ones, as many threads, in at least eight threadgroups. */
enum { COUNTED_THREADS = 2048, COUNTED_GROUPS = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *call_file; /* of sm_count; "": counts, writes no file; NULL: not called */
static uint64_t call_groups;

int sm_count(const char *file, unsigned long groups)
{
    char *copy = file ? strdup(file) : NULL;
    if (file && !copy) return -1;
    pthread_mutex_lock(&lock);
    free(call_file);
    call_file = copy;
    call_groups = groups;
    pthread_mutex_unlock(&lock);
    return 0;
}

bool sm_count_wanted(void)
{
    pthread_mutex_lock(&lock);
    const bool called = call_file != NULL;
    pthread_mutex_unlock(&lock);
    return called || sm_setting_text(SM_SET_COUNT);
}

/* A copy, to be freed; NULL: no file. */
static char *file_name(void)
{
    pthread_mutex_lock(&lock);
    const char *file = call_file ? call_file : sm_setting_text(SM_SET_COUNT);
    char *copy = file && *file ? strdup(file) : NULL;
    pthread_mutex_unlock(&lock);
    return copy;
}

uint64_t sm_count_sample(uint64_t groups, uint32_t threads)
{
    pthread_mutex_lock(&lock);
    uint64_t limit = call_groups;
    pthread_mutex_unlock(&lock);
    if (!limit) limit = sm_setting_integer(SM_SET_COUNT_GROUPS, 0);
    const uint64_t usual = (COUNTED_THREADS + threads - 1) / threads;
    if (!limit) limit = usual < COUNTED_GROUPS ? COUNTED_GROUPS : usual;
    return limit < groups ? limit : groups;
}

bool sm_count_is_sampled(uint64_t number, uint64_t groups, uint64_t sample)
{
    const __uint128_t n = groups, k = sample;
    const uint64_t part = (uint64_t)(number * k / n);
    const uint64_t first = (uint64_t)((part * n + k - 1) / k), end = (uint64_t)(((part + 1) * n + k - 1) / k);
    const uint64_t place = (part + 1) * 0x9e3779b97f4a7c15u >> 32;
    return number == first + place % (end - first);
}

/* ---- JSON ---- */

static void add_string(sm_text *out, const char *text)
{
    sm_text_add(out, "\"", 1);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') sm_text_print(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20) sm_text_print(out, "\\u%04x", (unsigned)*text);
        else sm_text_add(out, text, 1);
    }
    sm_text_add(out, "\"", 1);
}

static void add_value(sm_text *out, sm_type type, const unsigned char *bytes)
{
    static const unsigned char sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4};
    uint64_t u = 0;
    float f;
    memcpy(&u, bytes, sizes[type]);
    switch (type) {
    case SM_BOOL: sm_text_print(out, "%s", u ? "true" : "false"); break;
    case SM_CHAR: sm_text_print(out, "%d", (int8_t)u); break;
    case SM_SHORT: sm_text_print(out, "%d", (int16_t)u); break;
    case SM_INT: sm_text_print(out, "%d", (int32_t)u); break;
    case SM_LONG: sm_text_print(out, "%lld", (long long)u); break;
    case SM_FLOAT:
        memcpy(&f, bytes, sizeof f);
        if (f - f == 0) sm_text_print(out, "%.9g", (double)f);
        else sm_text_print(out, "\"%g\"", (double)f);
        break;
    case SM_HALF:
    case SM_BFLOAT: sm_text_print(out, "\"0x%04llx\"", (unsigned long long)u); break; /* its bits */
    case SM_UCHAR:
    case SM_USHORT:
    case SM_UINT:
    case SM_ULONG: sm_text_print(out, "%llu", (unsigned long long)u); break;
    }
}

char *sm_count_constants(const sm_library *library, const sm_constant *values, int count)
{
    static const unsigned char sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4};
    const sm_function_constant *facts;
    const int n = sm_library_constants(library, &facts);
    sm_text out = {0};
    sm_text_print(&out, "{");
    for (int i = 0, written = 0; i < count; i++) {
        const char *name = values[i].name;
        for (int k = 0; k < n && !name; k++)
            if (facts[k].index == values[i].index) name = facts[k].name;
        if (!name) continue; /* a value for a constant that the text does not have */
        if (written++) sm_text_print(&out, ",");
        add_string(&out, name);
        const int width = values[i].width > 1 ? values[i].width : 1;
        sm_text_print(&out, width > 1 ? ":[" : ":");
        for (int k = 0; k < width; k++) {
            if (k) sm_text_print(&out, ",");
            add_value(&out, values[i].type, (const unsigned char *)values[i].value + (size_t)k * sizes[values[i].type]);
        }
        if (width > 1) sm_text_print(&out, "]");
    }
    sm_text_print(&out, "}");
    if (out.failed) sm_text_free(&out);
    return out.bytes;
}

static const char *const class_names[] = {
#define X(id, name, cost, slots, pipe, title) name,
#include "classes.def"
#undef X
};
static const char *const fold_names[] = {
#define FOLD(id, name, text) name,
#include "rules.def"
};

static void add_classes(sm_text *out, const char *title, const double *numbers)
{
    sm_text_print(out, ",\"%s\":{", title);
    for (int k = 0, written = 0; k < SM_COSTS; k++)
        if (numbers[k] > 0) sm_text_print(out, "%s\"%s\":%.12g", written++ ? "," : "", class_names[k], numbers[k]);
    sm_text_print(out, "}");
}

static void add_memory(sm_text *out, const sm_counts *c)
{
    sm_text_print(out,
                  ",\"device\":{\"loaded_bytes\":%.12g,\"stored_bytes\":%.12g,\"accesses\":%.12g,\"lines\":%.12g,"
                  "\"lines_ideal\":%.12g,\"coalescing\":%.6g}",
                  c->loaded_bytes, c->stored_bytes, c->device_accesses, c->lines_touched, c->lines_ideal,
                  c->lines_touched > 0 ? c->lines_ideal / c->lines_touched : 1.0);
    sm_text_print(out, ",\"unique\":{\"read_bytes\":%.12g,\"written_bytes\":%.12g}", c->read_bytes, c->written_bytes);
    sm_text_print(out, ",\"constant\":{\"accesses\":%.12g,\"bytes\":%.12g}", c->constant_accesses, c->constant_bytes);
    sm_text_print(out,
                  ",\"threadgroup\":{\"memory_bytes\":%llu,\"accesses\":%.12g,\"bytes\":%.12g,\"cycles\":%.12g,"
                  "\"cycles_ideal\":%.12g,\"bank_conflicts\":%.12g,\"banks\":\"32 of 4 bytes, assumed\"}",
                  (unsigned long long)c->threadgroup_bytes, c->local_accesses, c->local_bytes, c->local_cycles,
                  c->local_ideal, c->local_cycles - c->local_ideal);
}

char *sm_count_json(const sm_kernel *kernel, const sm_dispatch *d)
{
    const sm_counts *c = &kernel->counts;
    sm_text out = {0};
    sm_text_print(&out, "{\"kernel\":");
    add_string(&out, kernel->name);
    if (d->label) sm_text_print(&out, ",\"label\":");
    if (d->label) add_string(&out, d->label);
    sm_text_print(&out, ",\"constants\":%s", kernel->constants_text ? kernel->constants_text : "{}");
    sm_text_print(&out, ",\"grid\":[%u,%u,%u],\"threads\":[%u,%u,%u]", d->threads[0], d->threads[1], d->threads[2],
                  d->group[0], d->group[1], d->group[2]);
    sm_text_print(&out, ",\"groups\":%llu,\"sampled\":", (unsigned long long)c->groups);
    if (c->counted < c->groups)
        sm_text_print(&out, "\"%llu of %llu\"", (unsigned long long)c->counted, (unsigned long long)c->groups);
    else sm_text_print(&out, "null");
    add_classes(&out, "operations", c->operations);
    add_classes(&out, "issued", c->issued);
    sm_text_print(&out,
                  ",\"cost\":{\"sum\":%.12g,\"slots\":%.12g,\"pipe\":%.12g,\"overlap\":%.12g},\"active_lanes\":%.6g",
                  c->sum, c->slots, c->pipe, c->overlap, c->active_lanes);
    add_memory(&out, c);
    sm_text_print(&out, ",\"barriers\":%.12g,\"simd_operations\":%.12g,\"matrix_operations\":%.12g",
                  c->issued[SM_COST_BARRIER],
                  c->issued[SM_COST_SHUFFLE] + c->issued[SM_COST_SHUFFLE_RANDOM] + c->issued[SM_COST_REDUCTION],
                  c->issued[SM_COST_MATRIX]);
    sm_text_print(&out, ",\"registers\":%u,\"resident_threads\":%u,\"thread_bytes\":%u,\"folds\":{", c->registers,
                  c->resident_threads, c->thread_bytes);
    for (int k = 0, written = 0; k < SM_RULES; k++)
        if (c->folds[k]) sm_text_print(&out, "%s\"%s\":%u", written++ ? "," : "", fold_names[k], c->folds[k]);
    sm_text_print(&out, "}}\n");
    if (out.failed) sm_text_free(&out);
    return out.bytes;
}

bool sm_kernel_counts(const sm_kernel *kernel, sm_counts *counts)
{
    if (!kernel->has_counts) return false;
    *counts = kernel->counts;
    return true;
}

bool sm_count_write(const sm_kernel *kernel, const sm_dispatch *dispatch, char **message)
{
    char *path = file_name();
    if (!path) return true;
    char *line = sm_count_json(kernel, dispatch);
    const size_t length = line ? strlen(line) : 0;
    const int file = line ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    /* one write call: other processes append to the file too */
    const bool good = file >= 0 && write(file, line, length) == (ssize_t)length;
    if (!good) sm_set_message(message, "SM_COUNT=%s: not written: %s", path, line ? strerror(errno) : "out of memory");
    if (file >= 0) close(file);
    free(line);
    free(path);
    return good;
}
