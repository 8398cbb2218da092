/* Parameters and trainers in files. The format is safetensors; its metadata (JSON) has the rest of a trainer's state,
 * so that one rename publishes a checkpoint and no two files can disagree. A state tensor is named by the optimiser,
 * its slot and its parameter: "adamw.m.blk.0.attn_q.weight". */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer.h"

static const char *const slot_name[] = {"m", "v"};

/* Metadata of a trainer in addition to its settings. */
#define STEP_KEY "mica.steps"
#define OPTIMISER_KEY "mica.optimiser"
#define SEED_KEY "mica.seed"
#define SCALE_KEY "mica.loss_scale"
#define GOOD_KEY "mica.good_steps"

/* ------------------------------------------------------------------ write -- */

/* Format names are dtype names in capitals. */
static const char *format_of(mica_dtype dtype, char name[16])
{
    snprintf(name, 16, "%s", mica_dtype_name(dtype));
    for (char *c = name; *c; c++) *c = (char)toupper((unsigned char)*c);
    return name;
}

/* Is it contiguous, as in a file? */
static bool is_dense(const mica_array *a)
{
    const int64_t *shape = mica_array_shape(a), *strides = mica_array_strides(a);
    int64_t step = 1;
    for (int d = mica_array_ndim(a) - 1; d >= 0 && step > 0; step *= shape[d--])
        if (shape[d] > 1 && strides[d] != step) return false;
    return true;
}

/* The writer keeps the first failure, so only what it cannot detect is checked here. Views (a transposed matrix) are
 * written by put_array. */
static void write_array(mica_writer *w, const char *name, mica_array *a)
{
    char format[16];
    (void)mica_writer_tensor(w, name, format_of(mica_array_dtype(a), format), mica_array_ndim(a), mica_array_shape(a),
                             is_dense(a) ? mica_data(a) : NULL);
}

/* The arrays of a file in order: a parameter set and, for a trainer, its state. */
typedef struct file_arrays {
    const mica_params *params;
    mica_array *const *state;
} file_arrays;

/* Writes a contiguous copy of a view. */
static mica_status put_array(mica_writer *w, size_t tensor, void *user)
{
    const file_arrays *f = user;
    const size_t n = mica_params_count(f->params);
    mica_array *a = tensor < n ? mica_params_at(f->params, tensor) : f->state[tensor - n];
    const size_t nbytes = mica_array_nbytes(a);
    void *copy = malloc(nbytes);
    if (!copy) return mica_fail(MICA_ERR_MEMORY, "out of memory: a copy of %zu bytes", nbytes);
    mica_status status = mica_copy_out(a, copy, nbytes);
    if (status == MICA_OK) status = mica_writer_put(w, copy, nbytes);
    free(copy);
    return status;
}

/* Name of slot k of trained parameter j. */
static void state_name(const mica_trainer *t, size_t k, size_t j, char name[NN_NAME])
{
    snprintf(name, NN_NAME, "%s.%s.%s", mica_optimiser_name(t->options.optimiser.kind), slot_name[k],
             mica_params_name(t->params, t->order[j]));
}

static mica_status begin_file(const char *path, const mica_params *params, const mica_setting *settings, size_t n,
                              mica_writer **w)
{
    if (!params || (n > 0 && !settings))
        return mica_fail(MICA_ERR_ARGUMENT, "params_save: no set of parameters, or no settings");
    for (size_t i = 0; i < mica_params_count(params); i++)
        if (!mica_array_is_ready(mica_params_at(params, i)))
            return mica_fail(MICA_ERR_STATE, "params_save: '%s' is not evaluated", mica_params_name(params, i));
    const mica_status status = mica_writer_open(path, "safetensors", w);
    if (status != MICA_OK) return status;
    for (size_t i = 0; i < n; i++)
        (void)mica_writer_string(*w, settings[i].key, settings[i].text, strlen(settings[i].text));
    for (size_t i = 0; i < mica_params_count(params); i++)
        write_array(*w, mica_params_name(params, i), mica_params_at(params, i));
    return MICA_OK;
}

mica_status mica_params_save(const mica_params *params, const char *path, const mica_setting *settings, size_t n)
{
    mica_writer *w;
    const mica_status status = begin_file(path, params, settings, n, &w);
    return status == MICA_OK ? mica_writer_finish(w, put_array, &(file_arrays){.params = params}) : status;
}

static void MICA_PRINTF(3, 4) write_setting(mica_writer *w, const char *key, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)mica_writer_string(w, key, text, strlen(text));
}

mica_status mica_trainer_save(const mica_trainer *trainer, const char *path, const mica_setting *settings, size_t n)
{
    const mica_trainer *t = trainer;
    mica_writer *w;
    char scale[MICA_NUMBER_TEXT];
    if (!t) return mica_fail(MICA_ERR_ARGUMENT, "trainer_save: no trainer");
    if (t->batches > 0)
        return mica_fail(MICA_ERR_STATE, "trainer_save: the gradients of %lld batches were not applied yet",
                         (long long)t->batches);
    const mica_status status = begin_file(path, t->params, settings, n, &w);
    if (status != MICA_OK) return status;
    write_setting(w, STEP_KEY, "%lld", (long long)t->steps);
    write_setting(w, OPTIMISER_KEY, "%s", mica_optimiser_name(t->options.optimiser.kind));
    write_setting(w, SEED_KEY, "%llu", (unsigned long long)t->options.seed);
    write_setting(w, SCALE_KEY, "%s", mica_number_print(t->scale, scale, sizeof scale));
    write_setting(w, GOOD_KEY, "%lld", (long long)t->good);
    for (size_t k = 0; k < t->slots; k++)
        for (size_t j = 0; j < t->n_trained; j++) {
            char name[NN_NAME];
            state_name(t, k, j, name);
            write_array(w, name, t->state[k * t->n_trained + j]);
        }
    return mica_writer_finish(w, put_array, &(file_arrays){.params = t->params, .state = t->state});
}

/* ------------------------------------------------------------------- read -- */

/* Reads the tensor of this name; its dtype and shape must match the array. */
static mica_status read_matching(mica_scope *s, mica_file *file, const char *name, const mica_array *like,
                                 mica_array **out)
{
    mica_tensor_info info = {.struct_size = sizeof info};
    if (!mica_file_find(file, name, &info))
        return mica_fail(MICA_ERR_FORMAT, "checkpoint: there is no tensor '%s'", name);
    const size_t axes = (size_t)mica_array_ndim(like) * sizeof(int64_t);
    if (info.dtype != (int)mica_array_dtype(like) || info.ndim != mica_array_ndim(like) ||
        memcmp(info.shape, mica_array_shape(like), axes) != 0)
        return mica_fail(MICA_ERR_SHAPE, "checkpoint: '%s' is %s in %d axes, first %lld, not %s in %d, first %lld",
                         name, info.format, info.ndim, (long long)(info.ndim ? info.shape[0] : 0),
                         mica_dtype_name(mica_array_dtype(like)), mica_array_ndim(like),
                         (long long)(mica_array_ndim(like) ? mica_array_shape(like)[0] : 0));
    *out = mica_file_array(s, file, name);
    return *out ? MICA_OK : mica_scope_status(s);
}

/* Everything is read before anything is replaced. */
static mica_status read_params(mica_scope *s, mica_file *file, const mica_params *params, mica_array **out)
{
    const size_t n = mica_params_count(params);
    mica_status status = MICA_OK;
    for (size_t i = 0; i < n && status == MICA_OK; i++)
        status = read_matching(s, file, mica_params_name(params, i), mica_params_at(params, i), &out[i]);
    return status == MICA_OK ? mica_eval(s, out, n) : status;
}

static mica_status read_state(mica_scope *s, mica_file *file, const mica_trainer *t, mica_array **out)
{
    const size_t n = t->slots * t->n_trained;
    mica_status status = MICA_OK;
    for (size_t i = 0; i < n && status == MICA_OK; i++) {
        char name[NN_NAME];
        state_name(t, i / t->n_trained, i % t->n_trained, name);
        status = read_matching(s, file, name, t->state[i], &out[i]);
    }
    return status == MICA_OK && n > 0 ? mica_eval(s, out, n) : status;
}

mica_status mica_params_load(mica_params *params, mica_scope *s, mica_file *file)
{
    if (!params || !file) return mica_fail(MICA_ERR_ARGUMENT, "params_load: no set of parameters, or no file");
    const size_t n = mica_params_count(params);
    mica_array **read = calloc(n + 1, sizeof *read);
    if (!read) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu parameters", n);
    mica_status status = read_params(s, file, params, read);
    for (size_t i = 0; i < n && status == MICA_OK; i++) status = mica_params_set(params, i, read[i]);
    free(read);
    return status;
}

/* A number of the metadata. */
static mica_status read_number(const mica_file *file, const char *key, double low, double high, double *out)
{
    const char *text;
    size_t length;
    if (!mica_file_string(file, key, &text, &length))
        return mica_fail(MICA_ERR_FORMAT, "checkpoint: '%s' is missing", key);
    if (!mica_number_parse(text, length, out) || !(*out >= low && *out <= high))
        return mica_fail(MICA_ERR_FORMAT, "checkpoint: %s is '%.*s'", key, (int)(length < 64 ? length : 64), text);
    return MICA_OK;
}

/* A seed needs more digits than a double has. */
static mica_status read_seed(const mica_file *file, uint64_t *out)
{
    const char *text;
    size_t length;
    char digits[24] = "";
    if (!mica_file_string(file, SEED_KEY, &text, &length) || length >= sizeof digits)
        return mica_fail(MICA_ERR_FORMAT, "checkpoint: '%s' is missing", SEED_KEY);
    memcpy(digits, text, length);
    char *end;
    errno = 0;
    *out = strtoull(digits, &end, 10);
    if (digits[0] < '0' || digits[0] > '9' || *end || errno)
        return mica_fail(MICA_ERR_FORMAT, "checkpoint: %s is '%s'", SEED_KEY, digits);
    return MICA_OK;
}

typedef struct trainer_facts {
    double steps, scale, good;
    uint64_t seed;
} trainer_facts;

static mica_status read_facts(const mica_file *file, const mica_trainer *t, trainer_facts *facts)
{
    const char *name = mica_optimiser_name(t->options.optimiser.kind), *text;
    size_t length;
    mica_status status = read_number(file, STEP_KEY, 0, 9007199254740992.0, &facts->steps);
    if (status == MICA_OK && (!mica_file_string(file, OPTIMISER_KEY, &text, &length) || length != strlen(name) ||
                              memcmp(text, name, length) != 0))
        status = mica_fail(MICA_ERR_FORMAT, "checkpoint: its optimiser (%s) is not %s", OPTIMISER_KEY, name);
    if (status == MICA_OK) status = read_seed(file, &facts->seed);
    if (status == MICA_OK) status = read_number(file, SCALE_KEY, 1e-9, 1e9, &facts->scale);
    if (status == MICA_OK) status = read_number(file, GOOD_KEY, 0, 9007199254740992.0, &facts->good);
    if (status == MICA_OK && (facts->scale == 1) != (t->scale == 1))
        status = mica_fail(MICA_ERR_FORMAT, "checkpoint: %s is %g, that of the trainer is %g; 1 means no scaling",
                           SCALE_KEY, facts->scale, t->scale);
    return status;
}

mica_status mica_trainer_load(mica_trainer *trainer, mica_scope *s, mica_file *file)
{
    mica_trainer *t = trainer;
    trainer_facts facts = {0};
    if (!t || !file) return mica_fail(MICA_ERR_ARGUMENT, "trainer_load: no trainer, or no file");
    const size_t n_state = t->slots * t->n_trained;
    mica_array **read = calloc(t->n + n_state, sizeof *read);
    if (!read) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu parameters", t->n);
    mica_status status = read_facts(file, t, &facts);
    if (status == MICA_OK) status = read_params(s, file, t->params, read);
    if (status == MICA_OK) status = read_state(s, file, t, read + t->n);
    for (size_t i = 0; i < t->n && status == MICA_OK; i++) status = mica_params_set(t->params, i, read[i]);
    if (status == MICA_OK) {
        mica__trainer_take_state(t, read + t->n);
        t->steps = (int64_t)facts.steps;
        t->options.seed = facts.seed;
        t->scale = facts.scale;
        t->good = (int64_t)facts.good;
    }
    free(read);
    return status;
}
