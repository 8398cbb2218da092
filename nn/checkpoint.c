/* Parameters and trainers in files: safetensors with the steps as metadata, so that
 * one rename makes a checkpoint and no two files can disagree. Moments are called
 * "adamw.m." and "adamw.v." and the name of their parameter. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer.h"

enum { CHECKPOINT_NAME = 256 };
#define STEP_KEY "mica.steps"
static const char *const moment_prefix[] = {"adamw.m.", "adamw.v."};

/* ------------------------------------------------------------------ write -- */

static const char *format_of(mica_dtype dtype)
{
    switch (dtype) {
    case MICA_F32: return "F32";
    case MICA_F64: return "F64";
    case MICA_F16: return "F16";
    case MICA_BF16: return "BF16";
    default: return NULL;
    }
}

/* The writer keeps the first failure, so nothing is checked here but what it cannot
 * know. */
static void write_array(mica_writer *w, const char *prefix, const char *name, mica_array *a)
{
    char full[CHECKPOINT_NAME];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const char *format = format_of(mica_array_dtype(a));
    (void)mica_writer_tensor(w, full, format ? format : "?", mica_array_ndim(a), mica_array_shape(a), mica_data(a));
}

static mica_status begin_file(const char *path, const mica_params *params, const mica_setting *settings, size_t n,
                              mica_writer **w)
{
    for (size_t i = 0; i < mica_params_count(params); i++)
        if (!mica_array_is_ready(mica_params_at(params, i)))
            return mica_fail(MICA_ERR_STATE, "params_save: '%s' is not evaluated", mica_params_name(params, i));
    const mica_status status = mica_writer_open(path, "safetensors", w);
    if (status != MICA_OK) return status;
    for (size_t i = 0; i < n; i++)
        (void)mica_writer_string(*w, settings[i].key, settings[i].text, strlen(settings[i].text));
    for (size_t i = 0; i < mica_params_count(params); i++)
        write_array(*w, "", mica_params_name(params, i), mica_params_at(params, i));
    return MICA_OK;
}

mica_status mica_params_save(const mica_params *params, const char *path, const mica_setting *settings, size_t n)
{
    mica_writer *w;
    const mica_status status = begin_file(path, params, settings, n, &w);
    return status == MICA_OK ? mica_writer_finish(w, NULL, NULL) : status;
}

mica_status mica_trainer_save(const mica_trainer *trainer, const char *path, const mica_setting *settings, size_t n)
{
    mica_writer *w;
    char steps[24];
    if (!trainer) return mica_fail(MICA_ERR_ARGUMENT, "trainer_save: no trainer");
    const mica_status status = begin_file(path, trainer->params, settings, n, &w);
    if (status != MICA_OK) return status;
    snprintf(steps, sizeof steps, "%lld", (long long)trainer->steps);
    (void)mica_writer_string(w, STEP_KEY, steps, strlen(steps));
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < trainer->n; i++)
            write_array(w, moment_prefix[k], mica_params_name(trainer->params, i), trainer->moment[k * trainer->n + i]);
    return mica_writer_finish(w, NULL, NULL);
}

/* ------------------------------------------------------------------- read -- */

/* The tensor of this name, if it is like the array. */
static mica_status read_like(mica_scope *s, mica_file *file, const char *prefix, const char *name,
                             const mica_array *like, mica_array **out)
{
    char full[CHECKPOINT_NAME];
    mica_tensor_info info = {.struct_size = sizeof info};
    snprintf(full, sizeof full, "%s%s", prefix, name);
    if (!mica_file_find(file, full, &info))
        return mica_fail(MICA_ERR_FORMAT, "checkpoint: there is no tensor '%s'", full);
    const size_t axes = (size_t)mica_array_ndim(like) * sizeof(int64_t);
    if (info.dtype != (int)mica_array_dtype(like) || info.ndim != mica_array_ndim(like) ||
        memcmp(info.shape, mica_array_shape(like), axes) != 0)
        return mica_fail(MICA_ERR_SHAPE, "checkpoint: '%s' is %s in %d axes, first %lld, not %s in %d, first %lld",
                         full, info.format, info.ndim, (long long)(info.ndim ? info.shape[0] : 0),
                         mica_dtype_name(mica_array_dtype(like)), mica_array_ndim(like),
                         (long long)(mica_array_ndim(like) ? mica_array_shape(like)[0] : 0));
    *out = mica_file_array(s, file, full);
    return *out ? MICA_OK : mica_scope_status(s);
}

/* Everything is read before anything is replaced. */
static mica_status read_all(mica_scope *s, mica_file *file, const mica_params *params, size_t parts, mica_array **out)
{
    static const char *const prefix[] = {"", "adamw.m.", "adamw.v."};
    const size_t n = mica_params_count(params);
    mica_status status = MICA_OK;
    for (size_t k = 0; k < parts; k++)
        for (size_t i = 0; i < n && status == MICA_OK; i++)
            status =
                read_like(s, file, prefix[k], mica_params_name(params, i), mica_params_at(params, i), &out[k * n + i]);
    if (status == MICA_OK) status = mica_eval(s, out, parts * n);
    return status;
}

mica_status mica_params_load(mica_params *params, mica_scope *s, mica_file *file)
{
    const size_t n = mica_params_count(params);
    mica_array **read = calloc(n + 1, sizeof *read);
    if (!read) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu parameters", n);
    mica_status status = read_all(s, file, params, 1, read);
    for (size_t i = 0; i < n && status == MICA_OK; i++) status = mica_params_set(params, i, read[i]);
    free(read);
    return status;
}

static mica_status read_steps(const mica_file *file, int64_t *steps)
{
    const char *text;
    size_t length;
    char digits[24] = "";
    if (!mica_file_string(file, STEP_KEY, &text, &length) || length >= sizeof digits)
        return mica_fail(MICA_ERR_FORMAT, "checkpoint: it does not say its steps (%s)", STEP_KEY);
    memcpy(digits, text, length);
    char *end;
    errno = 0;
    *steps = strtoll(digits, &end, 10);
    if (end == digits || *end || errno || *steps < 0)
        return mica_fail(MICA_ERR_FORMAT, "checkpoint: %s is '%s'", STEP_KEY, digits);
    return MICA_OK;
}

mica_status mica_trainer_load(mica_trainer *trainer, mica_scope *s, mica_file *file)
{
    int64_t steps = 0;
    if (!trainer) return mica_fail(MICA_ERR_ARGUMENT, "trainer_load: no trainer");
    const size_t n = trainer->n;
    mica_status status = read_steps(file, &steps);
    mica_array **read = calloc(3 * n, sizeof *read);
    if (!read) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu parameters", n);
    if (status == MICA_OK) status = read_all(s, file, trainer->params, 3, read);
    for (size_t i = 0; i < n && status == MICA_OK; i++) status = mica_params_set(trainer->params, i, read[i]);
    for (size_t i = 0; i < 2 * n && status == MICA_OK; i++) {
        mica_drop(trainer->moment[i]);
        trainer->moment[i] = mica_keep(read[n + i]);
    }
    if (status == MICA_OK) trainer->steps = steps;
    free(read);
    return status;
}
