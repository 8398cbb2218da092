/* Memory offsets of plans. A plan is simulated on a model of its memory in which every 64 bytes
 * record the value that they hold. A step must read what was written for it, whatever uses that
 * memory at other times. */
#include "plan_graphs.h"

enum { UNIT = 64 };
#define NOBODY UINT32_MAX
#define SCRATCH (UINT32_MAX - 1)
#define UNUSED_PART (UINT32_MAX - 2)

typedef struct model {
    const mica__plan *plan;
    uint32_t *arena;            /* per unit: the node whose value it holds   */
    uint32_t *block;            /* the same for blocks outside the arena     */
    bool good;
} model;

/* The node whose memory a node reads: the input of views and aliases, the first of the
 * parts of a scan with the same number. */
static uint32_t root_of(const mica__graph *g, uint32_t id)
{
    for (;;) {
        const mica__op_kind kind = mica__op_get(g->node[id].op)->kind;
        if (kind != MICA__VIEW && kind != MICA__ALIAS) break;
        id = g->node[id].in[0];
    }
    if (g->node[id].op != MICA__OP_PART) return id;
    for (uint32_t i = 0; i < id; i++)
        if (g->node[i].op == MICA__OP_PART && g->node[i].in[0] == g->node[id].in[0] &&
            ((const mica__attr_part *)g->node[i].attr)->index == ((const mica__attr_part *)g->node[id].attr)->index)
            return i;
    return id;
}

static void units_of(const model *m, uint32_t id, size_t *from, size_t *to)
{
    const mica__block *b = &m->plan->block[id];
    *from = b->offset / UNIT;
    *to = (b->offset + b->nbytes + UNIT - 1) / UNIT;
}

static void write_block(model *m, uint32_t id, uint32_t value)
{
    if (m->plan->block[id].place != MICA__AT_ARENA) {
        m->block[id] = value;
        return;
    }
    size_t from, to;
    units_of(m, id, &from, &to);
    if (m->plan->block[id].nbytes == 0) return;
    if (!EXPECT_MSG(m->plan->block[id].offset % UNIT == 0 && to * UNIT <= m->plan->arena_bytes + UNIT - 1,
                    "block %u: %zu bytes at %zu of an arena of %zu", id, m->plan->block[id].nbytes,
                    m->plan->block[id].offset, m->plan->arena_bytes)) {
        m->good = false;
        return;
    }
    for (size_t i = from; i < to; i++) m->arena[i] = value;
}

static void read_block(model *m, uint32_t step, uint32_t id, uint32_t value)
{
    const mica__block *b = &m->plan->block[id];
    size_t from, to;
    units_of(m, id, &from, &to);
    if (b->nbytes == 0) return;
    uint32_t held = value;
    if (b->place != MICA__AT_ARENA) held = m->block[id];
    else
        for (size_t i = from; i < to && held == value; i++) held = m->arena[i];
    if (held == value) return;
    m->good = test_fail(__FILE__, __LINE__, "step %u reads node %u from block %u, which holds node %u", step, value, id,
                        held);
}

static void read_operands(model *m, uint32_t number, uint32_t from, uint32_t to, uint32_t but)
{
    const mica__step *step = &m->plan->step[number];
    for (uint32_t i = from; i < to; i++) {
        const mica__operand *o = &step->in[i];
        if (o->block == MICA__NO_BLOCK || o->block == but) continue;
        read_block(m, number, o->block, root_of(m->plan->graph, o->node));
    }
}

static uint32_t value_of(const mica__plan *plan, const mica__operand *o)
{
    return o->node == MICA__NO_NODE ? UNUSED_PART : root_of(plan->graph, o->node);
}

/* Only element-wise steps may overwrite an operand, and only if each element is read
 * before it is written. */
static void check_in_place(model *m, uint32_t number, const mica__operand *out)
{
    const mica__step *step = &m->plan->step[number];
    for (uint32_t i = 0; i < step->n_in; i++) {
        const mica__operand *in = &step->in[i];
        if (in->block != out->block) continue;
        const bool fits = step->kind == MICA__STEP_MAP && in->offset == 0 && mica__shape_equal(&in->spec, &out->spec) &&
                          mica__is_row_major(&in->spec, in->strides) &&
                          mica_dtype_size((mica_dtype)in->spec.dtype) == mica_dtype_size((mica_dtype)out->spec.dtype);
        if (!EXPECT_MSG(fits, "step %u writes over operand %u that it reads otherwise", number, i)) m->good = false;
    }
}

static void play_step(model *m, uint32_t number)
{
    const mica__step *step = &m->plan->step[number];
    const uint32_t n_anchor = step->kind == MICA__STEP_FAMILY ? step->n_anchor_in : step->n_in;
    read_operands(m, number, 0, step->n_in, MICA__NO_BLOCK);
    if (step->workspace != MICA__NO_BLOCK) write_block(m, step->workspace, SCRATCH);
    read_operands(m, number, 0, step->n_in, MICA__NO_BLOCK);
    if (step->anchor_block != MICA__NO_BLOCK) {
        /* the kernel writes its result while it still reads its inputs;
         * then the epilogue reads that result and its own operands */
        write_block(m, step->anchor_block, root_of(m->plan->graph, step->node[0]));
        read_operands(m, number, 0, step->n_in, MICA__NO_BLOCK);
    }
    for (uint32_t k = 0; k < step->n_out; k++) {
        write_block(m, step->out[k].block, value_of(m->plan, &step->out[k]));
        check_in_place(m, number, &step->out[k]);
        /* operands that are read later are unchanged */
        const bool epilogue = step->anchor_block != MICA__NO_BLOCK;
        read_operands(m, number, epilogue ? n_anchor : 0, step->n_in, step->out[k].block);
    }
    for (uint32_t k = 0; k < step->n_out; k++)
        read_block(m, number, step->out[k].block, value_of(m->plan, &step->out[k]));
    if (step->workspace != MICA__NO_BLOCK) read_block(m, number, step->workspace, SCRATCH);
}

static bool plan_is_sound(const mica__plan *plan, bool body)
{
    model m = {.plan = plan, .good = true};
    const size_t units = plan->arena_bytes / UNIT + 1;
    m.arena = malloc(units * sizeof *m.arena);
    m.block = malloc((plan->n_block + 1) * sizeof *m.block);
    for (size_t i = 0; i < units; i++) m.arena[i] = NOBODY;
    for (uint32_t i = 0; i < plan->n_block; i++) m.block[i] = NOBODY;
    for (uint32_t i = 0; i < plan->graph->n; i++)
        if (plan->graph->node[i].op == MICA__OP_LEAF)
            for (uint32_t b = 0; b < plan->n_block; b++)
                if (plan->block[b].place == MICA__AT_LEAF && (int32_t)plan->block[b].index == plan->graph->node[i].leaf)
                    m.block[b] = i;
    for (uint32_t i = 0; i < plan->n_step && m.good; i++) {
        play_step(&m, i);
        if (plan->step[i].body && !plan_is_sound(plan->step[i].body, true)) m.good = false;
    }
    for (uint32_t i = 0; i < plan->n_out && m.good; i++) {
        const mica__place place = plan->block[plan->out[i].block].place;
        if (!EXPECT_MSG(place != MICA__AT_ARENA, "result %u is in the arena", i)) m.good = false;
        if (body && !EXPECT_MSG(place == MICA__AT_OUTPUT, "result %u of a body has no memory of its own", i))
            m.good = false;
        read_block(&m, plan->n_step, plan->out[i].block, root_of(plan->graph, plan->graph->out[i]));
    }
    free(m.arena);
    free(m.block);
    return m.good;
}

/* Sets of passes to plan with. */
static uint32_t passes_of(uint64_t seed)
{
    switch (seed % 4) {
    case 0: return MICA_PASS_ALL;
    case 1: return 0;
    case 2: return MICA_PASS_ALL & ~(uint32_t)MICA_PASS_FUSE;
    default: return (uint32_t)(seed / 4 * 2654435761u) & MICA_PASS_ALL;
    }
}

TEST(random_plans_are_sound_and_need_what_they_say)
{
    enum { GRAPHS = 600 };
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        if (seed % 100 == 1) test_case("seeds from %d", (int)seed);
        mica_engine_options o = options_for(seed % 7 == 6 ? "ref" : "cpu", 1);
        o.passes = passes_of(seed);
        mica_engine *e = open_with(&o);
        mica_scope *s = mica_scope_begin(e);
        mica_array *results[MAX_RESULTS];
        size_t n = 0;
        CHECK_OK(random_graph(s, seed, 4 + (int)(seed % 60), results, &n));
        mica__cached *entry;
        const mica__plan *plan = plan_of(s, results, n, &entry);
        CHECK_MSG(plan && plan_is_sound(plan, false), "seed %d, passes %#x", (int)seed, o.passes);
        mica__cached_drop(entry);

        const mica_plan_info info = info_of(s, results, n);
        mica_engine_reset_peak(e);
        const mica_stats before = stats_of(e);
        CHECK_OK(mica_eval(s, results, n));
        const mica_stats after = stats_of(e);
        CHECK_MSG(after.bytes_peak - before.bytes_in_use == info.peak_bytes,
                  "seed %d: planned peak %llu, measured %llu", (int)seed, (unsigned long long)info.peak_bytes,
                  (unsigned long long)(after.bytes_peak - before.bytes_in_use));
        CHECK_INT(after.kernels - before.kernels, info.kernels);
        CHECK_INT(after.bytes_in_use - before.bytes_in_use, info.output_bytes);
        mica_scope_end(s);
        mica_close(e);
    }
}

TEST(in_place_and_offsets_save_memory)
{
    uint64_t all = 0, without = 0, sum = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        for (int inplace = 0; inplace <= 1; inplace++) {
            mica_engine_options o = options_for("cpu", 1);
            o.passes = MICA_PASS_ALL & ~(uint32_t)(MICA_PASS_FUSE | (inplace ? 0 : MICA_PASS_INPLACE));
            mica_engine *e = open_with(&o);
            mica_scope *s = mica_scope_begin(e);
            mica_array *results[MAX_RESULTS];
            size_t n = 0;
            CHECK_OK(random_graph(s, seed, 40, results, &n));
            mica__cached *entry;
            const mica__plan *plan = plan_of(s, results, n, &entry);
            CHECK(plan != NULL);
            *(inplace ? &all : &without) += plan->arena_bytes;
            for (uint32_t i = 0; i < plan->n_block && inplace; i++)
                if (plan->block[i].place == MICA__AT_ARENA) sum += plan->block[i].nbytes;
            mica__cached_drop(entry);
            mica_scope_end(s);
            mica_close(e);
        }
    }
    EXPECT_MSG(all < without, "in place %llu, without %llu", (unsigned long long)all, (unsigned long long)without);
    EXPECT_MSG(all * 3 < sum * 2, "arenas %llu, sum of the temporaries %llu", (unsigned long long)all,
               (unsigned long long)sum);
}

/* A chain of element-wise kernels needs one temporary, however long it is. */
TEST(a_chain_runs_in_place)
{
    mica_engine_options o = options_for("cpu", 1);
    o.passes = MICA_PASS_ALL & ~(uint32_t)MICA_PASS_FUSE;
    mica_engine *e = open_with(&o);
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = count_up(s, 4096, 0);
    for (int i = 0; i < 20; i++) x = mica_tanh(s, mica_sin(s, x));
    mica_plan_info info = info_of(s, &x, 1);
    EXPECT_INT(info.kernels, 40);
    EXPECT_INT(info.output_bytes, 4096 * sizeof(float));
    EXPECT_INT(info.arena_bytes, 4096 * sizeof(float));
    mica_scope_end(s);
    mica_close(e);
}

/* Twice the length needs twice the memory; storing the scores of all pairs would need four times. */
static uint64_t attention_grad_peak(int64_t time, bool mask)
{
    mica_engine_options o = options_for("cpu", 1);
    mica_engine *e = open_with(&o);
    mica_scope *s = mica_scope_begin(e);
    mica_array *x[3], *g[3];
    for (int i = 0; i < 3; i++) x[i] = mica_reshape(s, count_up(s, time * 16, 0), SHAPE(1, 1, time, 16));
    /* one line of the mask, the same for all queries */
    mica_array *line = mask ? mica_greater(s, count_up(s, time, 0), mica_scalar(s, 5)) : NULL;
    mica_array *y = mica_attention(s, x[0], x[1], x[2], line, NULL);
    EXPECT_OK(mica_grad(s, mica_sum(s, mica_square(s, y), NULL, 0, false), x, 3, g));
    const uint64_t peak = info_of(s, g, 3).peak_bytes;
    mica_scope_end(s);
    mica_close(e);
    return peak;
}

TEST(gradients_of_attention_keep_no_scores)
{
    for (int mask = 0; mask < 2; mask++) {
        const uint64_t once = attention_grad_peak(4096, mask), twice = attention_grad_peak(8192, mask);
        EXPECT_MSG(twice < 2 * once + once / 8, "%s mask: %llu and %llu bytes", mask ? "a" : "no",
                   (unsigned long long)once, (unsigned long long)twice);
        EXPECT_MSG(twice < 8192ull * 8192 * 4 / 2, "%llu bytes", (unsigned long long)twice);
    }
}

/* ----------------------------------------------------------------- order ---- */

/* n large values are computed from x and each is reduced to a small one. In program
 * order all large values come first. A walk from the results computes one after the
 * other, with the pass and without. */
static mica_array *fan_out(mica_scope *s, int n)
{
    mica_array *x = mica_reshape(s, count_up(s, 256, 0), SHAPE(256, 1)), *large[32], *y = NULL;
    for (int i = 0; i < n; i++) large[i] = mica_matmul(s, mica_add(s, x, mica_scalar(s, i)), mica_transpose(s, x));
    for (int i = 0; i < n; i++) {
        mica_array *small = mica_max(s, mica_cumsum(s, large[i], 0), (int[]){0}, 1, false);
        y = y ? mica_add(s, y, small) : small;
    }
    return y;
}

/* Two paths from x to y. In program order the first value is held while the second path
 * needs much memory; the other order is better. */
static mica_array *diamond(mica_scope *s)
{
    mica_array *x = count_up_2d(s, 256, 256);
    mica_array *held = mica_cumsum(s, x, 0);
    mica_array *wide = mica_matmul(s, mica_reshape(s, x, SHAPE(65536, 1)), mica_ones(s, MICA_F32, SHAPE(1, 4)));
    mica_array *narrow = mica_max(s, mica_cumsum(s, wide, 0), (int[]){1}, 1, false);
    return mica_sort(s, mica_add(s, held, mica_reshape(s, narrow, SHAPE(256, 256))), 0, false);
}

static uint64_t peak_with(uint32_t passes, mica_array *(*build)(mica_scope *s), int n, uint64_t seed)
{
    mica_engine_options o = options_for("cpu", 1);
    o.passes = passes;
    mica_engine *e = open_with(&o);
    mica_scope *s = mica_scope_begin(e);
    mica_array *results[MAX_RESULTS];
    size_t n_results = 1;
    if (build) results[0] = build(s);
    else if (n) results[0] = fan_out(s, n);
    else EXPECT_OK(random_graph(s, seed, 40, results, &n_results));
    const mica_plan_info info = info_of(s, results, n_results);
    mica_engine_reset_peak(e);
    const uint64_t before = stats_of(e).bytes_in_use;
    EXPECT_OK(mica_eval(s, results, n_results));
    EXPECT_INT(stats_of(e).bytes_peak - before, info.peak_bytes);
    mica_scope_end(s);
    mica_close(e);
    return info.peak_bytes;
}

TEST(the_order_keeps_the_peak_low)
{
    const uint32_t with = MICA_PASS_ALL, without = MICA_PASS_ALL & ~(uint32_t)MICA_PASS_ORDER;
    test_case("fan-out");
    for (int n = 2; n <= 16; n *= 2) {
        const uint64_t low = peak_with(with, NULL, n, 0), high = peak_with(without, NULL, n, 0);
        EXPECT_MSG(low <= high, "%d ways: %llu, as built %llu", n, (unsigned long long)low, (unsigned long long)high);
        EXPECT(low < 4 * 256 * 256 * sizeof(float)); /* does not grow with n */
    }
    test_case("diamond");
    const uint64_t best = peak_with(with, diamond, 0, 0), built = peak_with(without, diamond, 0, 0);
    EXPECT_MSG(best < built, "%llu, as built %llu", (unsigned long long)best, (unsigned long long)built);
    test_case("random graphs, all in all");
    uint64_t low = 0, high = 0;
    int worse = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        const uint64_t a = peak_with(with, NULL, 0, seed), b = peak_with(without, NULL, 0, seed);
        low += a;
        high += b;
        worse += a > b;
    }
    EXPECT_MSG(low <= high, "%llu, as built %llu", (unsigned long long)low, (unsigned long long)high);
    EXPECT_MSG(worse == 0, "%d of 100 got worse", worse);
}

/* --------------------------------------------------------------- budget ----- */

TEST(a_budget_is_checked_before_any_work)
{
    for (int async = 0; async <= 1; async++) {
        test_case("%s", async ? "async" : "eval");
        mica_engine_options o = options_for("cpu", 1);
        o.memory_limit = 1 << 20;
        o.cache_limit = 1 << 20;
        mica_engine *e = open_with(&o);
        mica_scope *s = mica_scope_begin(e);
        mica_array *x = mica_random_normal(s, MICA_F32, SHAPE(600, 1), 1);
        mica_array *y = mica_matmul(s, x, mica_transpose(s, x)); /* 1.44 MB */
        const mica_plan_info info = info_of(s, &y, 1);
        EXPECT(info.peak_bytes > o.memory_limit);
        char need[32], limit[32];
        snprintf(need, sizeof need, "%llu", (unsigned long long)info.peak_bytes);
        snprintf(limit, sizeof limit, "%llu", (unsigned long long)o.memory_limit);
        const mica_stats before = stats_of(e);
        mica_event *event = NULL;
        const mica_status status = async ? mica_eval_async(s, &y, 1, &event) : mica_eval(s, &y, 1);
        EXPECT_INT(status, MICA_ERR_MEMORY);
        EXPECT_MSG(strstr(mica_last_error(), need) && strstr(mica_last_error(), limit), "\"%s\" without %s or %s",
                   mica_last_error(), need, limit);
        const mica_stats after = stats_of(e);
        EXPECT_INT(after.kernels, before.kernels);
        EXPECT_INT(after.bytes_in_use, before.bytes_in_use);
        EXPECT_INT(after.bytes_allocated, before.bytes_allocated);
        EXPECT(!mica_array_is_ready(y) && !event);

        /* the engine stays usable, up to the limit including the cache */
        mica_array *z = mica_neg(s, x);
        EXPECT_OK(mica_eval(s, &z, 1));
        for (int64_t n = 1000; n <= 120000; n += 17000) {
            mica_scope *t = mica_scope_begin(e);
            mica_array *w = mica_exp(t, mica_random_normal(t, MICA_F32, SHAPE(n), 1));
            EXPECT_OK(mica_eval(t, &w, 1));
            EXPECT(stats_of(e).bytes_in_use + stats_of(e).bytes_cached <= o.memory_limit);
            mica_scope_end(t);
        }
        mica_scope_end(s);
        mica_close(e);
    }
}

TEST(data_over_the_limit_is_refused)
{
    mica_engine_options o = options_for("cpu", 1);
    o.memory_limit = 1 << 16;
    mica_engine *e = open_with(&o);
    mica_scope *s = mica_scope_begin(e);
    static const float data[1 << 15];
    EXPECT(!mica_from_data(s, MICA_F32, SHAPE(1 << 15), data));
    EXPECT_INT(mica_scope_status(s), MICA_ERR_MEMORY);
    EXPECT(strstr(mica_scope_error(s), "131072") && strstr(mica_scope_error(s), "65536"));
    mica_scope_clear_error(s);
    mica_array *wrapped = mica_wrap(s, MICA_F32, SHAPE(1 << 15), NULL, data, NULL, NULL); /* not counted */
    mica_array *sum = mica_sum(s, wrapped, NULL, 0, false);
    EXPECT_OK(mica_eval(s, &sum, 1));
    mica_scope_end(s);
    mica_close(e);
}
