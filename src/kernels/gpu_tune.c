/* See gpu_tune.h. */
#include "kernels/gpu_tune.h"

#include <string.h>

#include "kernels/gpu.h"

/* Both tiles, with lines padded by 16 bytes to avoid power-of-two strides, and one 8 x 8 matrix per simdgroup. */
#define MICA_TILE_BYTES(m, n, k, size, simds) ((m) * ((k) * (size) + 16) + (k) * ((n) * (size) + 16) + (simds) * 64 * 4)

/* Tiles of m queries and k keys with 64 elements, their scores, one matrix and one number per simdgroup. */
#define MICA_ATTENTION_BYTES(m, k) (((m) + (k)) * (64 + 4) * 4 + (m) * ((k) + 4) * 4 + (m) / 8 * (64 + 1) * 4)

#define MICA_KNOB(id, name, op)
#define MICA_SHAPE(id, name, first, m, n, k, simds, bytes) {MICA__KNOB_##id, name, first, m, n, k, simds, bytes},
static const mica__gpu_shape gpu_shapes[] = {
#include "kernels/gpu_tune.def"
};
#undef MICA_KNOB
#undef MICA_SHAPE

static const struct {
    const char *name;
    mica__op op;
} gpu_knobs[] = {
#define MICA_KNOB(id, name, op) {name, MICA__OP_##op},
#define MICA_SHAPE(id, name, first, m, n, k, simds, bytes)
#include "kernels/gpu_tune.def"
#undef MICA_KNOB
#undef MICA_SHAPE
};

mica__gpu_knob_info mica__gpu_knob_get(mica__gpu_knob knob)
{
    mica__gpu_knob_info info = {.name = gpu_knobs[knob].name, .op = gpu_knobs[knob].op};
    for (size_t i = 0; i < sizeof gpu_shapes / sizeof *gpu_shapes; i++) {
        if (gpu_shapes[i].knob != knob) continue;
        if (!info.shape) info.shape = &gpu_shapes[i];
        info.n++;
    }
    return info;
}

bool mica__gpu_fits(const mica__gpu_limits *gpu, const mica__gpu_shape *shape)
{
    return shape->simds * gpu->simd_width <= gpu->max_threads && shape->bytes <= gpu->threadgroup_bytes;
}

const mica__gpu_shape *mica__gpu_pick(const mica__gpu_limits *gpu, mica__gpu_knob knob,
                                      bool (*enough)(const mica__gpu_shape *shape, const void *work), const void *work)
{
    const mica__gpu_knob_info info = mica__gpu_knob_get(knob);
    const uint32_t wish = gpu->tuning.candidate[knob], family = gpu->family ? gpu->family : 7;
    const mica__gpu_shape *best = NULL;
    if (wish > 0 && wish <= info.n && mica__gpu_fits(gpu, &info.shape[wish - 1]) &&
        (!enough || enough(&info.shape[wish - 1], work)))
        return &info.shape[wish - 1];
    for (uint32_t i = 0; i < info.n; i++) {
        const mica__gpu_shape *s = &info.shape[i];
        if (s->first > family || !mica__gpu_fits(gpu, s)) continue;
        best = s;
        if (!enough || enough(s, work)) break;
    }
    return best;
}

/* ----------------------------------------------------------------- text ---- */

void mica__gpu_tuning_print(const mica__gpu_tuning *tuning, mica__text *text)
{
    const char *between = "";
    for (int k = 0; k < MICA__GPU_KNOBS; k++) {
        const mica__gpu_knob_info info = mica__gpu_knob_get((mica__gpu_knob)k);
        const uint32_t wish = tuning->candidate[k];
        if (wish == 0 || wish > info.n) continue;
        mica__text_add(text, "%s%s=%s", between, info.name, info.shape[wish - 1].name);
        between = " ";
    }
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

/* Parses one name=candidate of `length` characters. */
static bool parse_choice(const char *word, size_t length, mica__gpu_tuning *tuning)
{
    const char *equals = memchr(word, '=', length);
    if (!equals) return false;
    const size_t name = (size_t)(equals - word);
    for (int k = 0; k < MICA__GPU_KNOBS; k++) {
        const mica__gpu_knob_info info = mica__gpu_knob_get((mica__gpu_knob)k);
        if (!is_word(word, name, info.name)) continue;
        for (uint32_t i = 0; i < info.n; i++) {
            if (!is_word(equals + 1, length - name - 1, info.shape[i].name)) continue;
            tuning->candidate[k] = (uint8_t)(i + 1);
            return true;
        }
    }
    return false;
}

mica_status mica__gpu_tuning_parse(const char *text, mica__gpu_tuning *tuning)
{
    mica__gpu_tuning read = {{0}};
    for (const char *p = text + strspn(text, " \n"); *p; p += strspn(p, " \n")) {
        const size_t length = strcspn(p, " \n");
        if (!parse_choice(p, length, &read))
            return mica__fail(MICA_ERR_FORMAT, "tuning: '%.*s' is not a choice of this version",
                              (int)(length < 80 ? length : 80), p);
        p += length;
    }
    *tuning = read;
    return MICA_OK;
}
