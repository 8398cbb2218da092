/* ATTENTION, also over a cache, and its gradients on softmetal against ref.
 *
 * A kernel is compiled for each combination of types and flags, which takes most of the time. So
 * one type is tested in all combinations, and the other types in turn.
 *
 * runs: first */
#include "shader_run.h"

#include "kernels/common/gpu_view.h"

typedef struct attention_case {
    int64_t b, h, g, t, s, d, e;
    int mask;                   /* 1: bool, 2: float */
    bool causal;
} attention_case;

static void attention_inputs(util_tensor *in, mica_dtype dtype, const attention_case *c)
{
    in[0] = util_new(dtype, 4, (int64_t[]){c->b, c->h, c->t, c->d});
    in[1] = util_new(dtype, 4, (int64_t[]){c->b, c->g, c->s, c->d});
    in[2] = util_new(dtype, 4, (int64_t[]){c->b, c->g, c->s, c->e});
    if (c->mask) in[3] = util_new(c->mask == 1 ? MICA_BOOL : dtype, 4, (int64_t[]){c->b, c->h, c->t, c->s});
}

static const attention_case attentions[] = {
    {1, 1, 1, 1, 1, 1, 1, 0, false},      {2, 4, 2, 1, 37, 16, 8, 0, true},   {1, 2, 1, 3, 20, 33, 40, 1, false},
    {1, 2, 2, 5, 3, 8, 7, 2, true},       {1, 1, 1, 2, 600, 8, 8, 0, true},   {1, 2, 1, 40, 40, 16, 16, 0, true},
    {2, 2, 2, 9, 35, 7, 70, 1, false},    {1, 1, 1, 33, 70, 72, 64, 2, true}, {1, 1, 1, 10, 5, 8, 8, 0, true},
    {1, 1, 1, 10, 12, 16, 130, 0, false},
};

TEST(attention_is_refs)
{
    NEED_SOFTMETAL();
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < COUNT(attentions); i++) {
            const attention_case *c = &attentions[i];
            const mica__attr_attention attr = {.scale = 0.4, .causal = c->causal, .has_mask = c->mask != 0};
            if (t && i % 4 != t) continue;
            util_tensor in[4] = {{{0}, 0, 0}};
            test_case("case %d, %s", i, mica_dtype_name(floats[t]));
            attention_inputs(in, floats[t], c);
            shader_check(MICA__OP_ATTENTION, in, c->mask ? 4 : 3, &attr,
                         util_spec(floats[t], 4, (int64_t[]){c->b, c->h, c->t, c->e}), util_rtol(floats[t]), 1e-5);
            free_all(in, 4);
        }
}

/* Every choice of a tuner, with a causal mask, and with a NaN, whose queries are computed again without tiles. */
TEST(attention_in_every_tile)
{
    NEED_SOFTMETAL();
    static const attention_case cases[] = {
        {1, 2, 1, 66, 37, 9, 20, 0, true}, {1, 2, 2, 34, 33, 70, 68, 0, true}, {1, 1, 1, 33, 35, 9, 132, 0, true}};
    mica__gpu_limits tuned = shader_device;
    tuned.cores = 1;
    shader_gpu = &tuned;
    for (int c = 0; c < COUNT(cases); c++) {
        const int knob = MICA__KNOB_ATTENTION_TILE_64 + c;
        const mica__gpu_knob_info info = mica__gpu_knob_get((mica__gpu_knob)knob);
        for (uint32_t run = 0; run < 2 * info.n; run++) {
            const attention_case *a = &cases[c];
            const uint32_t i = run / 2;
            const mica__gpu_tile_work work = {a->t, a->e, a->b * a->h, tuned.cores};
            const mica__attr_attention attr = {.scale = 0.4, .causal = true};
            util_tensor in[4] = {{{0}, 0, 0}};
            tuned.tuning.candidate[knob] = (uint8_t)(i + 1);
            test_case("%s", info.shape[i].name);
            (void)EXPECT(mica__gpu_tiles_half_full(&info.shape[i], &work)); /* otherwise it would not be used */
            attention_inputs(in, MICA_F32, a);
            if (run % 2) mica__set_f64(MICA_F32, in[1].t.data, util_offset(&in[1].t, (a->s - 1) * a->d + 3), NAN);
            shader_check(MICA__OP_ATTENTION, in, 3, &attr, util_spec(MICA_F32, 4, (int64_t[]){a->b, a->h, a->t, a->e}),
                         4e-6, 1e-5);
            free_all(in, 4);
        }
    }
    shader_gpu = &shader_device;
}

/* Contiguous heads of 128 and 256 are read four elements at a time, also as codes. */
TEST(attention_of_wide_heads)
{
    NEED_SOFTMETAL();
    static const mica_dtype types[] = {MICA_F32, MICA_F16, MICA_BF16, MICA_I8};
    for (int t = 0; t < COUNT(types); t++) {
        const bool codes = types[t] == MICA_I8;
        const mica_dtype of_q = codes ? MICA_F32 : types[t];
        const int64_t keys = t ? 37 : 530, dims = t == 1 ? 256 : 128, size = t == 2 ? 256 : 128;
        const mica__attr_attention attr = {.scale = codes ? 1e-3 : 0.1, .causal = true};
        test_case("%s", mica_dtype_name(types[t]));
        util_tensor in[6] = {util_tensor_new(util_spec(of_q, 4, (int64_t[]){1, 2, 2, dims}), UTIL_DENSE),
                             util_tensor_new(util_spec(types[t], 4, (int64_t[]){1, 1, keys, dims}), UTIL_DENSE),
                             util_tensor_new(util_spec(types[t], 4, (int64_t[]){1, 1, keys, size}), UTIL_DENSE),
                             integer(MICA_I64, keys - 3),
                             util_new(MICA_F32, 3, (int64_t[]){1, 1, keys}),
                             util_new(MICA_F32, 3, (int64_t[]){1, 1, keys})};
        shader_check(MICA__OP_ATTENTION_CACHED, in, codes ? 6 : 4, &attr,
                     util_spec(of_q, 4, (int64_t[]){1, 2, 2, size}), util_rtol(of_q), codes ? 2e-3 : 2e-5);
        free_all(in, 6);
    }
}

/* Masked values may be anything; visible values that are not finite affect the result. */
TEST(attention_of_what_is_not_finite)
{
    NEED_SOFTMETAL();
    static const double odd[] = {NAN, INFINITY, -INFINITY};
    for (int many = 0; many < 2; many++)
        for (int o = 0; o < 3; o++)
            for (int operand = 1; operand < 3; operand++) {
                const attention_case c = {1, 1, 1, many ? 12 : 3, many ? 12 : 3, 8, 8, 0, true};
                const mica__attr_attention attr = {.scale = 1, .causal = true};
                util_tensor in[4] = {{{0}, 0, 0}};
                test_case("%d queries, %g in operand %d", (int)c.t, odd[o], operand);
                attention_inputs(in, MICA_F32, &c);
                mica__set_f64(MICA_F32, in[operand].t.data, util_offset(&in[operand].t, (c.s - 1) * 8 + 3), odd[o]);
                shader_check(MICA__OP_ATTENTION, in, 3, &attr, util_spec(MICA_F32, 4, (int64_t[]){1, 1, c.t, 8}), 4e-6,
                             1e-5);
                free_all(in, 4);
            }
}

TEST(attention_over_a_cache)
{
    NEED_SOFTMETAL();
    static const struct {
        mica_dtype q, k;
        int64_t t, room, length;
    } cases[] = {{MICA_F32, MICA_F32, 1, 50, 7}, {MICA_F32, MICA_F16, 1, 700, 533}, {MICA_F16, MICA_F16, 12, 64, 40},
                 {MICA_F32, MICA_I8, 2, 30, 30}, {MICA_F32, MICA_I8, 17, 80, 70},   {MICA_BF16, MICA_BF16, 3, 20, 0}};
    for (int i = 0; i < COUNT(cases); i++) {
        const int64_t t = cases[i].t, room = cases[i].room;
        const mica__attr_attention attr = {.scale = 0.3, .causal = true};
        const bool codes = cases[i].k == MICA_I8;
        test_case("case %d", i);
        util_tensor in[6] = {
            util_new(cases[i].q, 4, (int64_t[]){1, 4, t, 16}),    util_new(cases[i].k, 4, (int64_t[]){1, 2, room, 16}),
            util_new(cases[i].k, 4, (int64_t[]){1, 2, room, 24}), integer(i % 2 ? MICA_I32 : MICA_I64, cases[i].length),
            util_new(MICA_F32, 3, (int64_t[]){1, 2, room}),       util_new(MICA_F32, 3, (int64_t[]){1, 2, room})};
        for (int k = 4; k < 6; k++)
            for (int64_t j = 0; j < 2 * room; j++)
                mica__set_f64(MICA_F32, in[k].t.data, util_offset(&in[k].t, j), util_real(0.001, 0.01));
        shader_check(MICA__OP_ATTENTION_CACHED, in, codes ? 6 : 4, &attr,
                     util_spec(cases[i].q, 4, (int64_t[]){1, 4, t, 24}), util_rtol(cases[i].q), 2e-5);
        free_all(in, 6);
    }
}

TEST(attention_gradients)
{
    NEED_SOFTMETAL();
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < COUNT(attentions); i++) {
            const attention_case *c = &attentions[i];
            if (c->t * c->s > 900 || (t && i % 4 != t)) continue;
            const mica__attr_attention attr = {.scale = 0.4, .causal = c->causal, .has_mask = c->mask != 0};
            const uint32_t n = c->mask ? 4 : 3;
            util_tensor in[5] = {{{0}, 0, 0}};
            test_case("case %d, %s", i, mica_dtype_name(floats[t]));
            attention_inputs(in, floats[t], c);
            in[n] = util_new(floats[t], 4, (int64_t[]){c->b, c->h, c->t, c->e});
            const int64_t count = c->b * (c->h * c->t * c->d + c->g * c->s * (c->d + c->e));
            shader_check(MICA__OP_ATTENTION_GRAD, in, n + 1, &attr, util_spec(floats[t], 1, &count),
                         util_rtol(floats[t]), 3e-5);
            free_all(in, 5);
        }
}

/* Thread counts that a tuner may choose: the same kernels. */
TEST(attention_gradients_in_every_shape)
{
    NEED_SOFTMETAL();
    mica__gpu_limits tuned = shader_device;
    shader_gpu = &tuned;
    for (uint32_t i = 0; i < mica__gpu_knob_get(MICA__KNOB_ATTENTION_GRAD).n; i++) {
        const attention_case c = {1, 2, 1, 3, 20, 33, 40, 1, false};
        const mica__attr_attention attr = {.scale = 0.4, .has_mask = true};
        const int64_t count = 2 * 3 * 33 + 20 * (33 + 40);
        util_tensor in[5] = {{{0}, 0, 0}};
        tuned.tuning.candidate[MICA__KNOB_ATTENTION_GRAD] = (uint8_t)(i + 1);
        test_case("%s", mica__gpu_knob_get(MICA__KNOB_ATTENTION_GRAD).shape[i].name);
        attention_inputs(in, MICA_F32, &c);
        in[4] = util_new(MICA_F32, 4, (int64_t[]){1, 2, 3, 40});
        shader_check(MICA__OP_ATTENTION_GRAD, in, 5, &attr, util_spec(MICA_F32, 1, &count), 4e-6, 3e-5);
        free_all(in, 5);
    }
    shader_gpu = &shader_device;
}

TEST(a_cache_of_another_length)
{
    NEED_SOFTMETAL();
    const mica__attr_attention attr = {.scale = 1};
    for (int64_t length = -1; length <= 5; length += 6) {
        util_tensor in[4] = {util_new(MICA_F32, 4, (int64_t[]){1, 1, 1, 4}),
                             util_new(MICA_F32, 4, (int64_t[]){1, 1, 4, 4}),
                             util_new(MICA_F32, 4, (int64_t[]){1, 1, 4, 4}), integer(MICA_I64, length)};
        util_tensor out = util_tensor_new(util_spec(MICA_F32, 4, (int64_t[]){1, 1, 1, 4}), UTIL_DENSE);
        shader_launch l = {.op = MICA__OP_ATTENTION_CACHED, .in = in, .n_in = 4, .out = &out, .attr = &attr};
        const char *why = NULL;
        (void)EXPECT(shader_run(&l, &why));
        (void)EXPECT(mica__gpu_fault_status(l.op, &l.fault) == MICA_ERR_INDEX);
        char text[80];
        snprintf(text, sizeof text, "attention_cached: length %d of a cache of 4 keys", (int)length);
        (void)EXPECT_STR(mica_last_error(), text);
        free_all(in, 4);
        util_free(&out);
    }
}
