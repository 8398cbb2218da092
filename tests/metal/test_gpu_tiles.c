/* What the lowerings choose for every chip of the table and for smaller devices: no limit is
 * exceeded, the whole result is covered, and equal launches get equal choices. No GPU is needed. */
#include <stdio.h>

#include "kernels_util.h"
#include "backend/metal/metal_lower.h"
#include "kernels/gpu.h"
#include "kernels/matmul/matmul_gpu.h"
#include "machine/chips.h"
#include "quant/quant.h"

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

/* Two variants of each chip of the table, then an unknown device. */
static int chip_count(void) { return 2 * (int)mica__chip_count() + 1; }

static mica__gpu_limits limits_of(int chip, uint32_t threads, uint32_t bytes)
{
    static const mica__chip_row unknown = {.name = "unknown"};
    const mica__chip_row *row = chip < chip_count() - 1 ? mica__chip_at((size_t)chip / 2) : &unknown;
    mica__gpu_limits gpu = {.family = (uint32_t)row->family,
                            .cores = (uint32_t)(chip % 2 ? row->cores.reduced : row->cores.full),
                            .max_threads = threads,
                            .threadgroup_bytes = bytes,
                            .simd_width = 32,
                            .bfloat = row->family >= 9,
                            .simdgroup_matrix = true};
    snprintf(gpu.name, sizeof gpu.name, "%s", row->name);
    return gpu;
}

/* The last dispatch of the last lowering. */
static mica__gpu_dispatch last_dispatch;

/* Lowers op and checks each dispatch. Returns the number of dispatches; *refused: the CPU runs the op. */
static uint32_t lower(const mica__gpu_limits *gpu, mica__op op, const mica__tensor *in, uint32_t n_in, const void *attr,
                      mica__spec spec, bool *refused, mica__gpu_dispatch *first)
{
    mica__arena arena;
    mica__arena_init(&arena);
    mica__tensor out = {.spec = spec};
    mica__row_major(&spec, out.strides);
    const mica__gpu_launch l = {.gpu = gpu, .in = in, .n_in = n_in, .out = &out, .attr = attr};
    mica__gpu_list list = {.arena = &arena}, again = {.arena = &arena};
    (void)EXPECT_MSG(mica__family_get(op)->gpu(&l, &list) == MICA_OK, "%s", mica_last_error());
    (void)EXPECT(mica__family_get(op)->gpu(&l, &again) == MICA_OK);
    (void)EXPECT(!list.failed && list.n == again.n && list.workspace == again.workspace);
    *refused = list.refused != NULL;
    (void)EXPECT(*refused ? list.n == 0 : list.n > 0);
    for (uint32_t i = 0; i < list.n; i++) {
        const mica__gpu_dispatch *d = &list.dispatch[i], *e = &again.dispatch[i];
        const uint64_t threads = (uint64_t)d->threads[0] * d->threads[1] * d->threads[2];
        (void)EXPECT_MSG(threads > 0 && threads <= gpu->max_threads, "%s: %d threads", d->kernel, (int)threads);
        (void)EXPECT_MSG(d->groups[0] && d->groups[1] && d->groups[2], "%s: an empty grid", d->kernel);
        (void)EXPECT(d->n_binding < MICA__GPU_MAX_BINDINGS && d->n_constant <= MICA__GPU_MAX_CONSTANTS);
        (void)EXPECT(d->params_bytes % 8 == 0 && d->params_bytes <= MICA__GPU_MAX_PARAMS);
        (void)EXPECT(strcmp(d->kernel, e->kernel) == 0 && memcmp(d->groups, e->groups, sizeof d->groups) == 0 &&
                     memcmp(d->threads, e->threads, sizeof d->threads) == 0 &&
                     memcmp(d->params, e->params, d->params_bytes) == 0);
    }
    if (list.n) *first = list.dispatch[0], last_dispatch = list.dispatch[list.n - 1];
    const uint32_t n = list.n;
    mica__arena_free(&arena);
    return n;
}

static mica__tensor dense(mica_dtype dtype, int ndim, const int64_t *shape)
{
    mica__tensor t = {.spec = util_spec(dtype, ndim, shape)};
    mica__row_major(&t.spec, t.strides);
    return t;
}

TEST(tiles_cover_the_result_on_every_chip)
{
    static const int64_t sizes[] = {1, 8, 9, 31, 32, 33, 64, 65, 100, 512, 2048, 4097};
    for (int c = 0; c < chip_count(); c++) {
        const mica__gpu_limits gpu = limits_of(c, 1024, 32768);
        test_case("%s, %u cores", gpu.name, gpu.cores);
        for (int m = 0; m < COUNT(sizes); m++)
            for (int n = 0; n < COUNT(sizes); n++)
                for (int half = 0; half < 2; half++) {
                    const mica__gpu_shape *t = mica__gpu_tile_for(&gpu, sizes[m], sizes[n], 1, half);
                    if (!EXPECT(t)) return;
                    (void)EXPECT(mica__gpu_fits(&gpu, t));
                    (void)EXPECT(t->m % 8 == 0 && t->n % 8 == 0 && t->k % 8 == 0);
                    const mica_dtype dtype = half ? MICA_F16 : MICA_F32;
                    const mica__tensor in[2] = {dense(dtype, 2, (int64_t[]){sizes[m], 256}),
                                                dense(dtype, 2, (int64_t[]){256, sizes[n]})};
                    bool refused;
                    mica__gpu_dispatch d;
                    (void)lower(&gpu, MICA__OP_MATMUL, in, 2, NULL,
                                util_spec(dtype, 2, (int64_t[]){sizes[m], sizes[n]}), &refused, &d);
                    (void)EXPECT(!refused);
                    if (strcmp(d.kernel, t->name) != 0) continue; /* vectors */
                    (void)EXPECT((int64_t)d.groups[0] * t->n >= sizes[n] &&
                                 (int64_t)(d.groups[0] - 1) * t->n < sizes[n]);
                    (void)EXPECT((int64_t)d.groups[1] * t->m >= sizes[m] &&
                                 (int64_t)(d.groups[1] - 1) * t->m < sizes[m]);
                }
    }
}

TEST(parts_of_k_are_whole)
{
    for (int c = 0; c < chip_count(); c++) {
        const mica__gpu_limits gpu = limits_of(c, 1024, 32768);
        test_case("%s, %u cores", gpu.name, gpu.cores);
        for (int64_t k = 1; k < 100000; k = k * 3 + 5)
            for (int64_t tiles = 1; tiles < 5000; tiles *= 4) {
                const uint32_t parts = mica__gpu_parts_of_k(&gpu, tiles, k);
                (void)EXPECT(parts >= 1 && (parts == 1 || k / parts >= 256));
                (void)EXPECT(parts == 1 || parts * tiles <= (gpu.cores ? gpu.cores : 8));
            }
    }
}

/* ----------------------------------------------------------------- tuning --- */

/* A launch whose lowering reads the knob. */
typedef struct knob_case {
    mica__tensor in[5];
    uint32_t n_in;
    mica__spec out;
    mica__attr_attention attention;
    mica__attr_conv conv;
    mica__attr_norm norm;
    mica__attr_sort sort;
    mica__attr_cumulative cumulative;
    mica__attr_quant quant;
    const void *attr;
} knob_case;

/* Generated kernels, which no family lowers; their shape is treated like a dispatch. */
static bool is_generated(mica__gpu_knob knob)
{
    return knob == MICA__KNOB_ELEMENTS || knob == MICA__KNOB_FOLD || knob == MICA__KNOB_LONG_FOLD;
}

static uint32_t generate(const mica__gpu_limits *gpu, mica__gpu_dispatch *d)
{
    const mica__msl_shape s = mica__metal_shape(gpu, 1 << 24), again = mica__metal_shape(gpu, 1 << 24);
    (void)EXPECT(memcmp(&s, &again, sizeof s) == 0);
    (void)EXPECT(s.threads <= gpu->max_threads && s.fold_threads <= gpu->max_threads);
    (void)EXPECT((s.threads & (s.threads - 1)) == 0 && (s.fold_threads & (s.fold_threads - 1)) == 0);
    (void)EXPECT(s.fold_threads * sizeof(int64_t) <= gpu->threadgroup_bytes);
    *d = (mica__gpu_dispatch){
        .kernel = "", .threads = {s.threads, s.fold_threads, s.parts}, .groups = {s.each, s.fold_each, s.part}};
    return 1;
}

static void knob_launch(mica__gpu_knob knob, knob_case *c)
{
    const mica_dtype dtype = knob == MICA__KNOB_MATMUL_F16 ? MICA_F16 : MICA_F32;
    const bool vector = knob == MICA__KNOB_MATVEC || knob == MICA__KNOB_MATVEC_BESIDE;
    const int64_t rows = vector ? 1 : 2000;
    *c = (knob_case){.n_in = 2};
    switch (knob) {
    case MICA__KNOB_QMATMUL:
    case MICA__KNOB_QUANT_ROUND:
    case MICA__KNOB_QMATVEC:
    case MICA__KNOB_QMATVEC_PANEL: {
        const int64_t bytes = 1 << 20, count = knob == MICA__KNOB_QMATMUL ? 4000 : 1;
        c->quant = (mica__attr_quant){.format = knob == MICA__KNOB_QMATVEC || knob == MICA__KNOB_QUANT_ROUND
                                                    ? MICA__QUANT_I2_S
                                                    : MICA__QUANT_MICA_T2,
                                      .rows = 256,
                                      .cols = 512,
                                      .act = MICA_ACT_TOKEN};
        c->attr = &c->quant;
        c->in[0] = dense(MICA_F32, 2, (int64_t[]){count, 512});
        c->in[1] = dense(MICA_U8, 1, &bytes);
        c->out = util_spec(MICA_F32, 2, (int64_t[]){count, 256});
        return;
    }
    case MICA__KNOB_CONV:
        c->conv = (mica__attr_conv){
            .spatial = 2, .groups = 1, .stride = {1, 1}, .dilation = {1, 1}, .input_dilation = {1, 1}};
        c->attr = &c->conv;
        c->in[0] = dense(MICA_F32, 4, (int64_t[]){40, 8, 66, 66});
        c->in[1] = dense(MICA_F32, 4, (int64_t[]){80, 8, 3, 3});
        c->out = util_spec(MICA_F32, 4, (int64_t[]){40, 80, 64, 64});
        return;
    case MICA__KNOB_ATTENTION_TILE_64:
    case MICA__KNOB_ATTENTION_TILE_128:
    case MICA__KNOB_ATTENTION_TILE_256: {
        const int64_t size = knob == MICA__KNOB_ATTENTION_TILE_64    ? 40
                             : knob == MICA__KNOB_ATTENTION_TILE_128 ? 65
                                                                     : 256;
        c->attention = (mica__attr_attention){.scale = 1};
        c->attr = &c->attention;
        c->n_in = 3;
        for (int i = 0; i < 3; i++) c->in[i] = dense(MICA_F32, 4, (int64_t[]){4, 40, 100, size});
        c->out = c->in[0].spec;
        return;
    }
    case MICA__KNOB_ATTENTION_ROWS:
        c->attention = (mica__attr_attention){.scale = 1};
        c->attr = &c->attention;
        c->n_in = 3;
        c->in[0] = dense(MICA_F32, 4, (int64_t[]){1, 4, 1, 64});
        c->in[1] = c->in[2] = dense(MICA_F32, 4, (int64_t[]){1, 4, 3000, 64});
        c->out = c->in[0].spec;
        return;
    case MICA__KNOB_ATTENTION_GRAD: {
        const int64_t count = 3 * 4 * 30 * 64;
        c->attention = (mica__attr_attention){.scale = 1};
        c->attr = &c->attention;
        c->n_in = 4;
        for (int i = 0; i < 4; i++) c->in[i] = dense(MICA_F32, 4, (int64_t[]){1, 4, 30, 64});
        c->out = util_spec(MICA_F32, 1, &count);
        return;
    }
    case MICA__KNOB_SYNAPSES:
        c->n_in = 5;
        c->in[0] = dense(MICA_F32, 2, (int64_t[]){512, 30});
        for (int i = 1; i < 5; i++) c->in[i] = dense(MICA_F32, 2, (int64_t[]){30, 40});
        c->out = util_spec(MICA_F32, 3, (int64_t[]){512, 2, 40});
        return;
    case MICA__KNOB_SORT:
    case MICA__KNOB_CUMULATIVE:
    case MICA__KNOB_SOFTMAX:
    case MICA__KNOB_NORM:
    case MICA__KNOB_ARGREDUCE:
        c->norm = (mica__attr_norm){.eps = 1e-5};
        c->sort = (mica__attr_sort){.k = 3000};
        c->attr = &c->norm;
        if (knob == MICA__KNOB_SORT) c->attr = &c->sort;
        if (knob == MICA__KNOB_CUMULATIVE) c->attr = &c->cumulative;
        c->n_in = 1;
        c->in[0] = dense(MICA_F32, 2, (int64_t[]){40, 3000});
        c->out = knob == MICA__KNOB_ARGREDUCE ? util_spec(MICA_I64, 1, (int64_t[]){40}) : c->in[0].spec;
        return;
    default: break;
    }
    c->in[0] = dense(dtype, 2, (int64_t[]){rows, 256});
    c->in[1] = dense(dtype, 2, (int64_t[]){256, 2000});
    if (knob == MICA__KNOB_MATVEC) c->in[1].strides[0] = 1, c->in[1].strides[1] = 256;
    c->out = util_spec(dtype, 2, (int64_t[]){rows, 2000});
}

/* A tile that was tuned for much work is not used where it would leave cores idle. */
TEST(little_work_keeps_its_tiles)
{
    mica__gpu_limits gpu = limits_of(0, 1024, 32768);
    gpu.tuning.candidate[MICA__KNOB_MATMUL_F32] = 1;
    const mica__gpu_shape *large = mica__gpu_tile_for(&gpu, 4096, 4096, 1, false);
    const mica__gpu_shape *small = mica__gpu_tile_for(&gpu, 96, 96, 1, false);
    (void)EXPECT(large == mica__gpu_knob_get(MICA__KNOB_MATMUL_F32).shape);
    (void)EXPECT(small != large);
}

/* Every candidate of every knob can be forced on every chip, and changes the dispatches. */
TEST(candidates_are_taken)
{
    for (int chip = 0; chip < chip_count(); chip++)
        for (int k = 0; k < MICA__GPU_KNOBS; k++) {
            const mica__gpu_knob_info info = mica__gpu_knob_get((mica__gpu_knob)k);
            mica__gpu_limits gpu = limits_of(chip, 1024, 32768);
            uint32_t different = 0;
            mica__gpu_dispatch d, before = {0};
            knob_case c;
            test_case("%s, %s", gpu.name, info.name);
            knob_launch((mica__gpu_knob)k, &c);
            (void)EXPECT(info.n > 1 && info.shape[0].knob == (mica__gpu_knob)k);
            for (uint32_t i = 0; i < info.n; i++) {
                bool refused;
                gpu.tuning.candidate[k] = (uint8_t)(i + 1);
                (void)EXPECT(mica__gpu_fits(&gpu, &info.shape[i]));
                const uint32_t n = is_generated((mica__gpu_knob)k)
                                       ? (refused = false, generate(&gpu, &d))
                                       : lower(&gpu, info.op, c.in, c.n_in, c.attr, c.out, &refused, &d);
                (void)EXPECT(!refused && n > 0);
                if (info.op == MICA__OP_QMATMUL && k != MICA__KNOB_QUANT_ROUND)
                    d = last_dispatch; /* after the quantisation of x */
                different += i > 0 && (strcmp(d.kernel, before.kernel) != 0 ||
                                       memcmp(d.threads, before.threads, sizeof d.threads) != 0 ||
                                       memcmp(d.groups, before.groups, sizeof d.groups) != 0);
                before = d;
            }
            (void)EXPECT_INT(different, info.n - 1);
        }
}

/* Tiles of attention cover all queries, and more than half of a tile is used. The larger tile is used only if there
 * are at least two tiles per core. */
TEST(queries_of_a_tile)
{
    static const int64_t times[] = {9, 16, 17, 31, 33, 64, 100, 2048}, heads[] = {1, 8, 32, 300},
                         sizes[] = {64, 128, 256};
    const mica__attr_attention attr = {.scale = 1, .causal = 1};
    for (int chip = 0; chip < chip_count(); chip++)
        for (int i = 0; i < COUNT(times) * COUNT(heads) * COUNT(sizes); i++) {
            const mica__gpu_limits gpu = limits_of(chip, 1024, 32768);
            const int64_t t = times[i % COUNT(times)], h = heads[i / COUNT(times) % COUNT(heads)],
                          size = sizes[i / COUNT(times) / COUNT(heads)];
            const mica__tensor x = dense(MICA_F16, 4, (int64_t[]){1, h, t, size}), in[3] = {x, x, x};
            mica__gpu_dispatch d;
            bool refused;
            char name[64];
            test_case("%s, %u cores, %d heads, %d queries, %d wide", gpu.name, gpu.cores, (int)h, (int)t, (int)size);
            const uint32_t n = lower(&gpu, MICA__OP_ATTENTION, in, 3, &attr, x.spec, &refused, &d);
            const int64_t rows = d.threads[0] / 4, tiles = d.groups[0];
            (void)EXPECT(!refused && n == 2);
            snprintf(name, sizeof name, "attention_tile_%d_%dx32", (int)size, (int)rows);
            (void)EXPECT_STR(d.kernel, name);
            (void)EXPECT(tiles * rows >= t && (tiles - 1) * rows < t && d.groups[1] == h);
            (void)EXPECT(rows < 2 * t);
            const uint32_t cores = gpu.cores ? gpu.cores : 8;
            (void)EXPECT((rows == 32) == (t > 16 && (t + 31) / 32 * h >= 2 * (int64_t)cores));
        }
}

/* -x of rows x cols, or the sums of its rows, as a generated kernel. */
typedef struct small_kernel {
    mica__kinst inst[4];
    mica__access access[2];
    mica__kernel k;
} small_kernel;

static void small_kernel_make(small_kernel *s, int64_t rows, int64_t cols, bool fold, int64_t step)
{
    *s = (small_kernel){.inst = {{.code = MICA__K_LOAD, .dtype = MICA_F32, .in_dtype = MICA_F32},
                                 {.code = MICA__K_MAP, .op = MICA__OP_NEG, .dtype = MICA_F32, .in_dtype = MICA_F32},
                                 {.code = MICA__K_STORE, .dtype = MICA_F32, .in_dtype = MICA_F32, .access = 1}},
                        .access = {{.block = 0, .dtype = MICA_F32, .strides = {cols * step + 8, step}},
                                   {.block = 1, .dtype = MICA_F32, .strides = {fold ? 1 : cols, fold ? 0 : 1}}}};
    if (fold) s->inst[1].code = MICA__K_FOLD, s->inst[1].op = MICA__OP_SUM;
    s->inst[1].n_arg = s->inst[2].n_arg = 1;
    s->inst[2].arg[0] = 1;
    s->k = (mica__kernel){.ndim = 2,
                          .n_fold = fold,
                          .size = {rows, cols},
                          .inst = s->inst,
                          .n_inst = 3,
                          .fold = fold ? 1 : 3,
                          .access = s->access,
                          .n_access = 2};
}

/* Prints the kernel for a device and checks the grid: it covers all elements with no more groups than needed.
 * Returns the elements per thread. */
static uint32_t print_kernel(const mica__gpu_limits *gpu, const small_kernel *s, uint32_t *threads)
{
    const int64_t outer = mica__kernel_outer(&s->k);
    const mica__msl_shape shape = mica__metal_shape(gpu, outer);
    const bool fold = s->k.n_fold > 0;
    static mica__msl_launch launch;
    static char buffer[4096];
    mica__text text;
    mica__text_init(&text, buffer, sizeof buffer);
    (void)EXPECT(mica__emit_msl(&s->k, &shape, "k", &text, &launch) == MICA_OK && text.length < sizeof buffer);
    const char *loop = strstr(buffer, "e < ");
    const uint32_t each = !fold && loop ? (uint32_t)strtoul(loop + 4, NULL, 10) : 1;
    const int64_t covered = (int64_t)launch.threads * each, groups = launch.groups[0];
    (void)EXPECT(launch.threads <= gpu->max_threads && launch.groups[1] == 1 && launch.by_group == fold);
    (void)EXPECT(fold ? groups == outer : groups * covered >= outer && (groups - 1) * covered < outer);
    *threads = launch.threads;
    return each;
}

/* Generated kernels on every chip: by the rules, and with each allowed candidate. */
TEST(elements_of_a_thread)
{
    static small_kernel even, odd, apart, little, rows;
    small_kernel_make(&even, 4096, 1024, false, 1);
    small_kernel_make(&odd, 4096, 1023, false, 1);
    small_kernel_make(&apart, 4096, 1024, false, 2);
    small_kernel_make(&little, 3, 4, false, 1);
    small_kernel_make(&rows, 70, 1024, true, 1);
    for (int chip = 0; chip < chip_count(); chip++) {
        mica__gpu_limits gpu = limits_of(chip, 1024, 32768);
        const mica__msl_shape rule = mica__metal_shape(&gpu, 1 << 20);
        const mica__gpu_knob_info each = mica__gpu_knob_get(MICA__KNOB_ELEMENTS),
                                  fold = mica__gpu_knob_get(MICA__KNOB_FOLD);
        uint32_t threads;
        test_case("%s, %u cores", gpu.name, gpu.cores);
        (void)EXPECT(memcmp(&rule, &mica__msl_usual, sizeof rule) == 0);
        for (uint32_t i = 0; i < each.n; i++) {
            gpu.tuning.candidate[MICA__KNOB_ELEMENTS] = (uint8_t)(i + 1);
            test_case("%s, %u cores, %s", gpu.name, gpu.cores, each.shape[i].name);
            (void)EXPECT_INT(print_kernel(&gpu, &even, &threads), each.shape[i].k);
            (void)EXPECT_INT(threads, 32 * each.shape[i].simds);
            (void)EXPECT_INT(print_kernel(&gpu, &odd, &threads), 1);
            (void)EXPECT_INT(print_kernel(&gpu, &apart, &threads), 1);
            (void)EXPECT_INT(print_kernel(&gpu, &little, &threads), 1);
            (void)EXPECT_INT(threads, 32);
        }
        for (uint32_t i = 0; i < fold.n; i++) {
            gpu.tuning.candidate[MICA__KNOB_FOLD] = (uint8_t)(i + 1);
            (void)print_kernel(&gpu, &rows, &threads);
            const uint32_t most = 1024 / fold.shape[i].k, may = 32 * fold.shape[i].simds;
            test_case("%s, %u cores, %s", gpu.name, gpu.cores, fold.shape[i].name);
            (void)EXPECT_INT(threads, most < may ? most : may);
        }
    }
}

/* Without tuning, or if a tuned shape exceeds the limits of the device, the rule decides. */
TEST(rules_choose_what_is_not_tuned)
{
    mica__gpu_limits gpu = limits_of(0, 64, 32768);
    const mica__gpu_shape *one = mica__gpu_pick(&gpu, MICA__KNOB_MATVEC, NULL, NULL);
    (void)EXPECT_STR(one ? one->name : "", "1_simd");
    gpu.tuning.candidate[MICA__KNOB_MATVEC] = 2; /* 8 simdgroups */
    (void)EXPECT(mica__gpu_pick(&gpu, MICA__KNOB_MATVEC, NULL, NULL) == one);
    gpu.tuning.candidate[MICA__KNOB_MATVEC] = 200;
    (void)EXPECT(mica__gpu_pick(&gpu, MICA__KNOB_MATVEC, NULL, NULL) == one);
    gpu.max_threads = 16;
    (void)EXPECT(!mica__gpu_pick(&gpu, MICA__KNOB_MATVEC, NULL, NULL));
}

TEST(tunings_are_text)
{
    mica__gpu_tuning t = {{0}}, back;
    char buffer[1024];
    mica__text text;
    for (int k = 0; k < MICA__GPU_KNOBS; k++)
        t.candidate[k] = (uint8_t)(k % 2 ? 0 : 1 + (uint32_t)k % mica__gpu_knob_get((mica__gpu_knob)k).n);
    mica__text_init(&text, buffer, sizeof buffer);
    mica__gpu_tuning_print(&t, &text);
    (void)EXPECT_MSG(mica__gpu_tuning_parse(buffer, &back) == MICA_OK, "%s", mica_last_error());
    (void)EXPECT(memcmp(&t, &back, sizeof t) == 0);
    (void)EXPECT(mica__gpu_tuning_parse(" matvec=8_simds\n\n", &back) == MICA_OK);
    (void)EXPECT_INT(back.candidate[MICA__KNOB_MATVEC], 2);
    (void)EXPECT(mica__gpu_tuning_parse("matvec=8_simds matvec=9_simds", &t) == MICA_ERR_FORMAT);
    (void)EXPECT_STR(mica_last_error(), "tuning: 'matvec=9_simds' is not a choice of this version");
    (void)EXPECT(mica__gpu_tuning_parse("matvec", &t) == MICA_ERR_FORMAT);
    (void)EXPECT(mica__gpu_tuning_parse("", &t) == MICA_OK && t.candidate[0] == 0);
}

/* Devices with fewer threads or less memory: a lowering stays within the limits, or refuses. */
TEST(small_devices)
{
    static const uint32_t threads[] = {32, 64, 128, 256, 512, 1024}, bytes[] = {1024, 4096, 16384, 32768};
    const mica__attr_attention attention = {.scale = 1, .causal = 1};
    const mica__attr_norm norm = {.eps = 1e-5};
    const mica__attr_sort sort = {.k = 3000};
    const mica__attr_take axis = {.axis = 0};
    const int64_t wide[] = {40, 3000};
    for (int t = 0; t < COUNT(threads); t++)
        for (int b = 0; b < COUNT(bytes); b++) {
            const mica__gpu_limits gpu = limits_of(0, threads[t], bytes[b]);
            const mica__tensor x = dense(MICA_F32, 2, wide), ids = dense(MICA_I64, 1, (int64_t[]){77}),
                               head = dense(MICA_F16, 4, (int64_t[]){1, 4, 20, 64});
            const mica__tensor heads[3] = {head, head, head}, two[2] = {x, ids};
            bool refused;
            mica__gpu_dispatch d;
            test_case("%u threads, %u bytes", threads[t], bytes[b]);
            (void)lower(&gpu, MICA__OP_SOFTMAX, &x, 1, NULL, x.spec, &refused, &d);
            (void)lower(&gpu, MICA__OP_RMS_NORM, &x, 1, &norm, x.spec, &refused, &d);
            (void)lower(&gpu, MICA__OP_ARGMAX, &x, 1, NULL, util_spec(MICA_I64, 1, wide), &refused, &d);
            (void)lower(&gpu, MICA__OP_SORT, &x, 1, &sort, x.spec, &refused, &d);
            (void)lower(&gpu, MICA__OP_TAKE, two, 2, &axis, util_spec(MICA_F32, 2, (int64_t[]){77, 3000}), &refused,
                        &d);
            (void)lower(&gpu, MICA__OP_ATTENTION, heads, 3, &attention, head.spec, &refused, &d);
            const mica__tensor ab[2] = {x, dense(MICA_F32, 2, (int64_t[]){3000, 40})};
            (void)lower(&gpu, MICA__OP_MATMUL, ab, 2, NULL, util_spec(MICA_F32, 2, (int64_t[]){40, 40}), &refused, &d);
            (void)EXPECT(refused == (threads[t] < 128 || bytes[b] < 16384));
            for (int k = 0; k < MICA__GPU_KNOBS; k++) {
                const mica__gpu_knob_info info = mica__gpu_knob_get((mica__gpu_knob)k);
                const mica__gpu_shape *shape = mica__gpu_pick(&gpu, (mica__gpu_knob)k, NULL, NULL);
                knob_case c;
                test_case("%u threads, %u bytes, %s", threads[t], bytes[b], info.name);
                if (is_generated((mica__gpu_knob)k)) {
                    (void)EXPECT(shape);
                    (void)generate(&gpu, &d);
                    continue;
                }
                knob_launch((mica__gpu_knob)k, &c);
                (void)lower(&gpu, info.op, c.in, c.n_in, c.attr, c.out, &refused, &d);
                (void)EXPECT(!shape || (mica__gpu_fits(&gpu, shape) && !refused));
            }
        }
}
