/* Chains against the reference interpreter, on hand-made kernels: every element-wise op on every
 * dtype for which it is defined, every length around the block size, and operands that are
 * contiguous, strided, reversed or have stride 0.
 *
 * runs: arm, wide-vectors */
#include "codegen/kernel_kit.h"
#include "op_facts.h"

/* The allowed distance of a function from the rounded double. All other ops must have the same bits. */
static double ulps_allowed(mica__op op, mica_dtype dtype)
{
    if (!mica__is_float(dtype) || dtype == MICA_F64) return 0; /* f64 runs the definition itself */
    const op_facts *facts = op_facts_of(op);
    return facts ? op_vector_ulps(facts) : 0;
}

static const void *attr_of(mica__op op)
{
    static const mica__attr_value value = {OP_VALUE};
    static const mica__attr_index index = {.size = 25};
    static const mica__attr_cast none = {0};
    if (mica__op_get((uint16_t)op)->ctor == MICA__CTOR_VALUE) return &value;
    if (op == MICA__OP_CHECK_INDEX) return &index;
    return &none;
}

/* The dtype of the result by the op's rule; false if the rule refuses. */
static bool result_dtype(mica__op op, mica_dtype in, mica_dtype *out)
{
    const mica__op_info *info = mica__op_get((uint16_t)op);
    mica__spec x = {.dtype = (int32_t)in, .ndim = 1, .shape = {4}}, condition = x, y = x;
    condition.dtype = MICA_BOOL;
    const mica__spec *specs[3] = {op == MICA__OP_WHERE ? &condition : &x, &x, &x};
    if (info->shape(info, specs, (size_t)info->n_in, attr_of(op), &y) != MICA_OK) return false;
    *out = (mica_dtype)y.dtype;
    return true;
}

/* Strides of operand number i of pattern p along one loop. */
static int64_t stride_of(int pattern, int i)
{
    static const int64_t strides[5][3] = {{1, 1, 1}, {1, 0, 1}, {0, 1, 2}, {-1, 2, 0}, {3, -2, 1}};
    return strides[pattern][i];
}

static bool one_op(kit *kt, mica__op op, mica_dtype in, mica_dtype out, int64_t length, int pattern)
{
    const int n_in = mica__op_get((uint16_t)op)->n_in;
    uint32_t v[3] = {0, 0, 0};
    kit_init(kt, 1, 0, &length);
    for (int i = 0; i < n_in; i++) {
        const mica_dtype dtype = op == MICA__OP_WHERE && i == 0 ? MICA_BOOL : in;
        v[i] = kit_load(kt, dtype, (int64_t[]){stride_of(pattern, i)}, true);
    }
    const uint32_t y = kit_map(kt, op, out, v[0], v[1], v[2], attr_of(op));
    kit_store(kt, y, (int64_t[]){pattern == 3 ? 2 : 1});
    kit_end(kt);
    char what[96];
    snprintf(what, sizeof what, "length %lld, pattern %d", (long long)length, pattern);
    const bool ok = kit_check(kt, ulps_allowed(op, in), what);
    kit_free(kt);
    return ok;
}

static void sweep_op(kit *kt, mica__op op, mica_dtype in, mica_dtype out)
{
    test_case("%s %s to %s", mica__op_get((uint16_t)op)->name, mica_dtype_name(in), mica_dtype_name(out));
    for (int64_t length = 0; length <= 70; length++)
        for (int pattern = 0; pattern < 5; pattern += length < 36 ? 1 : 2)
            if (!one_op(kt, op, in, out, length, pattern)) return;
}

TEST(every_map_op)
{
    kit kt = {.seed = 1};
    for (int op = 0; op < MICA__OP_COUNT; op++) {
        if (mica__op_get((uint16_t)op)->kind != MICA__MAP || op == MICA__OP_CAST) continue;
        for (int in = 0; in < MICA__DTYPE_COUNT; in++) {
            mica_dtype out;
            if (result_dtype((mica__op)op, (mica_dtype)in, &out)) sweep_op(&kt, (mica__op)op, (mica_dtype)in, out);
        }
    }
}

TEST(every_cast)
{
    kit kt = {.seed = 2};
    for (int in = 0; in < MICA__DTYPE_COUNT; in++)
        for (int out = 0; out < MICA__DTYPE_COUNT; out++) sweep_op(&kt, MICA__OP_CAST, (mica_dtype)in, (mica_dtype)out);
}

/* Between two ops a chain must round a value to its dtype, even if it keeps it in a
 * wider register. Widening it again shows this. */
TEST(values_between_ops_have_their_dtype)
{
    kit kt = {.seed = 10};
    const int64_t length = 500;
    for (int in = 0; in < MICA__DTYPE_COUNT; in++)
        for (int between = 0; between < MICA__DTYPE_COUNT; between++) {
            test_case("%s, %s", mica_dtype_name((mica_dtype)in), mica_dtype_name((mica_dtype)between));
            kit_init(&kt, 1, 0, &length);
            const uint32_t x = kit_load(&kt, (mica_dtype)in, (int64_t[]){1}, true);
            const uint32_t y = kit_map(&kt, MICA__OP_CAST, (mica_dtype)between, x, 0, 0, NULL);
            kit_store(&kt, kit_map(&kt, MICA__OP_CAST, MICA_F64, y, 0, 0, NULL), (int64_t[]){1});
            const uint32_t sum = kit_map(&kt, MICA__OP_ADD, (mica_dtype)between, y, y, 0, NULL);
            kit_store(&kt, kit_map(&kt, MICA__OP_CAST, MICA_F64, sum, 0, 0, NULL), (int64_t[]){1});
            kit_end(&kt);
            kit_check(&kt, 0, "two casts");
            kit_free(&kt);
        }
}

/* ------------------------------------------------------------- constants --- */

TEST(constants_and_iota)
{
    kit kt = {.seed = 3};
    for (int dtype = 0; dtype < MICA__DTYPE_COUNT; dtype++) {
        test_case("%s", mica_dtype_name((mica_dtype)dtype));
        for (int64_t length = 0; length <= 70; length++) {
            const int64_t size[2] = {3, length};
            int64_t strides[MICA_MAX_DIMS];
            kit_init(&kt, 2, 0, size);
            const uint32_t iota = kit_iota(&kt, (mica_dtype)dtype, 2, (int64_t[]){-5, 2});
            const uint32_t c = kit_const(&kt, (mica_dtype)dtype, (mica__number){0.3, 1});
            kit_row_major(&kt, 2, strides);
            kit_store(&kt, kit_map(&kt, MICA__OP_MUL, (mica_dtype)dtype, c, iota, 0, NULL), strides);
            kit_store(&kt, c, strides);
            kit_end(&kt);
            const bool ok = kit_check(&kt, 0, "iota");
            kit_free(&kt);
            if (!ok) break;
        }
    }
}

/* ------------------------------------------------------- random programs --- */

/* Ops that round once at most, so that results must have the same bits. */
static const mica__op exact_ops[] = {MICA__OP_ADD,     MICA__OP_SUB,     MICA__OP_MUL,    MICA__OP_NEG,  MICA__OP_ABS,
                                     MICA__OP_MINIMUM, MICA__OP_MAXIMUM, MICA__OP_SQUARE, MICA__OP_RELU, MICA__OP_FLOOR,
                                     MICA__OP_LESS,    MICA__OP_EQUAL,   MICA__OP_WHERE,  MICA__OP_CAST, MICA__OP_SIGN};

/* Random strides: any order of the loops, positive, negative or 0. With `after` (after
 * the fold) strides along folded loops are 0. */
static void random_strides(kit *kt, bool after, bool store, int64_t *strides)
{
    const int n = after ? kt->k.ndim - kt->k.n_fold : kt->k.ndim;
    if (store) {
        kit_row_major(kt, n, strides);
        return;
    }
    int order[MICA_MAX_DIMS];
    for (int d = 0; d < n; d++) order[d] = d;
    if (kit_below(kt, 2))
        for (int d = n - 1; d > 0; d--) {
            const int other = (int)kit_below(kt, d + 1), keep = order[d];
            order[d] = order[other];
            order[other] = keep;
        }
    memset(strides, 0, MICA_MAX_DIMS * sizeof strides[0]);
    int64_t s = kit_below(kt, 4) == 0 ? 2 : 1;
    for (int i = n; i-- > 0;) {
        const int64_t size = kt->k.size[order[i]];
        if (kit_below(kt, 4) == 0) continue;
        strides[order[i]] = kit_below(kt, 5) == 0 ? -s : s;
        s *= size ? size : 1;
    }
}

static uint32_t pick(kit *kt, const uint32_t *values, uint32_t n, int dtype)
{
    for (int i = 0; i < 20; i++) {
        const uint32_t v = values[kit_below(kt, n)];
        if (dtype < 0 || (int)kt->inst[v].dtype == dtype) return v;
    }
    return UINT32_MAX;
}

/* Appends the results of `count` random ops on values[]. */
static void random_ops(kit *kt, uint32_t *values, uint32_t *n, int count)
{
    for (int i = 0; i < count; i++) {
        const mica__op op = exact_ops[kit_below(kt, sizeof exact_ops / sizeof exact_ops[0])];
        const uint32_t a = pick(kt, values, *n, op == MICA__OP_WHERE ? (int)MICA_BOOL : -1);
        if (a == UINT32_MAX) continue;
        const uint32_t b = pick(kt, values, *n, op == MICA__OP_WHERE ? -1 : (int)kt->inst[a].dtype);
        const uint32_t c = b == UINT32_MAX ? b : pick(kt, values, *n, (int)kt->inst[b].dtype);
        mica_dtype out = kt->inst[a].dtype;
        if (b == UINT32_MAX || c == UINT32_MAX) continue;
        if (op == MICA__OP_CAST) out = (mica_dtype)kit_below(kt, MICA__DTYPE_COUNT);
        else if (!result_dtype(op, kt->inst[op == MICA__OP_WHERE ? b : a].dtype, &out)) continue;
        values[(*n)++] = kit_map(kt, op, out, a, b, c, NULL);
    }
}

static void random_loads(kit *kt, uint32_t *values, uint32_t *n, int count, bool after)
{
    static const mica_dtype common[] = {MICA_F32,  MICA_F32, MICA_F32, MICA_F16, MICA_BF16, MICA_F64,
                                        MICA_BOOL, MICA_I32, MICA_I64, MICA_U8,  MICA_U64};
    for (int i = 0; i < count; i++) {
        int64_t strides[MICA_MAX_DIMS];
        random_strides(kt, after, false, strides);
        values[(*n)++] = kit_load(kt, common[kit_below(kt, sizeof common / sizeof common[0])], strides, false);
    }
    if (kit_below(kt, 3) == 0) {
        int64_t strides[MICA_MAX_DIMS] = {0};
        const int n_moving = after ? kt->k.ndim - kt->k.n_fold : kt->k.ndim;
        for (int d = 0; d < n_moving; d++) strides[d] = kit_below(kt, 5) - 2;
        values[(*n)++] = kit_iota(kt, kit_below(kt, 2) ? MICA_F32 : MICA_I64, kit_below(kt, 10), strides);
    }
    if (kit_below(kt, 2) == 0) {
        const mica_dtype dtype = kit_below(kt, 2) ? MICA_F32 : MICA_I32;
        values[(*n)++] = kit_const(kt, dtype, kit_number(kt, dtype, false));
    }
}

static void random_sizes(kit *kt, int ndim, int64_t *size)
{
    static const int64_t often[] = {1, 2, 3, 5, 7, 31, 32, 33, 64, 70, 100, 129};
    int64_t total = 1;
    for (int d = 0; d < ndim; d++) {
        size[d] = often[kit_below(kt, sizeof often / sizeof often[0])];
        if (total * size[d] > 40000) size[d] = 1;
        total *= size[d];
    }
    if (kit_below(kt, 30) == 0 && ndim > 0) size[kit_below(kt, ndim)] = 0;
}

TEST(random_maps)
{
    kit kt = {.seed = 4};
    for (int round = 0; round < 600; round++) {
        int64_t size[MICA_MAX_DIMS], strides[MICA_MAX_DIMS];
        uint32_t values[KIT_MAX_INST], n = 0;
        const int ndim = (int)kit_below(&kt, 5);
        test_case("round %d", round);
        random_sizes(&kt, ndim, size);
        kit_init(&kt, ndim, 0, size);
        random_loads(&kt, values, &n, 1 + (int)kit_below(&kt, 6), false);
        random_ops(&kt, values, &n, 1 + (int)kit_below(&kt, 25));
        random_strides(&kt, false, true, strides);
        for (int i = 0; i < 2; i++) kit_store(&kt, values[n - 1 - (i ? (uint32_t)kit_below(&kt, n) : 0)], strides);
        kit_end(&kt);
        kit_check(&kt, 0, "map");
        kit_free(&kt);
    }
}

/* Transposed operands, of every dtype, around the sizes of blocks and panels. */
TEST(turned_operands)
{
    kit kt = {.seed = 11};
    static const int64_t sizes[][3] = {{1, 70, 9}, {2, 5, 8}, {1, 16, 64}, {1, 17, 300}, {3, 33, 131}, {1, 90, 515}};
    for (int dtype = 0; dtype < MICA__DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int kind = 0; kind < 4; kind++) {
                const int64_t *n = sizes[i];
                test_case("%s, %lld x %lld x %lld, kind %d", mica_dtype_name((mica_dtype)dtype), (long long)n[0],
                          (long long)n[1], (long long)n[2], kind);
                kit_init(&kt, 3, 0, n);
                const int64_t turned[3] = {n[1] * n[2], 1, kind == 3 ? -n[1] : n[1]},
                              straight[3] = {n[1] * n[2], n[2], 1};
                uint32_t y = kit_load(&kt, (mica_dtype)dtype, turned, false);
                if (kind == 1) { /* with a straight operand, and one of another element size */
                    const uint32_t b = kit_load(&kt, (mica_dtype)dtype, straight, false);
                    const uint32_t c = kit_load(&kt, MICA_U8, turned, false);
                    y = kit_map(&kt, MICA__OP_MAXIMUM, (mica_dtype)dtype, y, b, 0, NULL);
                    y = kit_map(&kt, MICA__OP_ADD, (mica_dtype)dtype, y,
                                kit_map(&kt, MICA__OP_CAST, (mica_dtype)dtype, c, 0, 0, NULL), 0, NULL);
                } else if (kind == 2) { /* with operands that vary along one loop only */
                    const uint32_t b = kit_load(&kt, (mica_dtype)dtype, (int64_t[]){0, 1, 0}, false);
                    const uint32_t c = kit_load(&kt, (mica_dtype)dtype, (int64_t[]){0, 0, 1}, false);
                    y = kit_map(&kt, MICA__OP_MINIMUM, (mica_dtype)dtype, y, b, 0, NULL);
                    y = kit_map(&kt, MICA__OP_MAXIMUM, (mica_dtype)dtype, y, c, 0, NULL);
                }
                kit_store(&kt, y, straight);
                kit_end(&kt);
                kit_check(&kt, 0, "turned");
                kit_free(&kt);
            }
}

/* Casts to 16 bits round once. A float in between would round twice. */
TEST(casts_round_once)
{
    kit kt = {.seed = 12};
    const int64_t n = 400;
    static const mica_dtype from[] = {MICA_F64, MICA_I32, MICA_U32, MICA_I64, MICA_U64}, to[] = {MICA_F16, MICA_BF16};
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++)
        for (size_t j = 0; j < sizeof to / sizeof to[0]; j++) {
            test_case("%s to %s", mica_dtype_name(from[i]), mica_dtype_name(to[j]));
            kit_init(&kt, 1, 0, &n);
            const uint32_t x = kit_load(&kt, from[i], (int64_t[]){1}, true);
            for (int64_t e = 0; e < n; e++) {
                const int64_t sign = e % 2 ? 1 : -1, off = e / 2 % 3 - 1; /* below a tie, on it, above it */
                if (from[i] == MICA_F64)
                    mica__set_f64(from[i], kt.memory[0], e,
                                  (double)sign * (1.0 + 0x1p-11 * (double)(e % 8) + 0x1p-8 * (double)(e % 16 / 8) +
                                                  0x1p-40 * (double)off));
                else
                    mica__set_i64(from[i], kt.memory[0], e,
                                  (from[i] == MICA_U32 || from[i] == MICA_U64 ? 1 : sign) *
                                      (((int64_t)1 << 30) + (e % 16) * ((int64_t)1 << 22) + off));
            }
            kit_store(&kt, kit_map(&kt, MICA__OP_CAST, to[j], x, 0, 0, NULL), (int64_t[]){1});
            kit_end(&kt);
            kit_check(&kt, 0, "cast");
            kit_free(&kt);
        }
}

/* Results at and below the size from which stores bypass the caches, at any alignment:
 * the offset shifts them from cache line boundaries. */
TEST(streams_begin_at_a_size)
{
    enum { N = 1000 };
    const int64_t n = N, from[] = {4 * N, 4 * N + 1};
    float *memory = malloc((3 * N + 40) * sizeof *memory);
    CHECK(memory != NULL);
    for (int which = 0; which < 2; which++)
        for (int off = 0; off < 20; off++) {
            test_case("from %lld bytes, %d floats off", (long long)from[which], off);
            kit kt = {.seed = 13};
            kit_init(&kt, 1, 0, &n);
            const uint32_t x = kit_load(&kt, MICA_F32, (int64_t[]){1}, false);
            const uint32_t y = kit_map(&kt, MICA__OP_NEG, MICA_F32, x, 0, 0, NULL);
            const uint32_t a = kit_store(&kt, y, (int64_t[]){1});
            kit_end(&kt);
            char *block[KIT_MAX_ACCESS] = {kt.memory[0]};
            block[a] = (char *)(memory + off);
            chain_variant variant = *mica__chain_best_variant();
            variant.stream_from = from[which];
            mica__arena arena;
            mica__chain *chain;
            mica__index_fault fault = MICA__INDEX_FAULT_NONE;
            mica__arena_init(&arena);
            CHECK(mica__chain_build_for(&variant, &kt.k, &arena, &chain) == MICA_OK && chain);
            CHECK_INT(chain->main.stream, which == 0);
            for (int i = 0; i < N + 40; i++) memory[i] = 77.0f;
            const mica__chain_run run = {.chain = chain, .block = block, .fault = &fault};
            for (int64_t i = 0; i < mica__chain_tasks(chain); i++) mica__chain_task(&run, i);
            for (int i = 0; i < N + 40; i++) {
                const bool inside = i >= off && i < off + N;
                const double want = inside ? -mica__get_f64(MICA_F32, kt.memory[0], i - off) : 77.0;
                if (!EXPECT_MSG((double)memory[i] == want, "element %d", i)) break;
            }
            mica__arena_free(&arena);
            kit_free(&kt);
        }
    free(memory);
}

/* ---------------------------------------------------------------- folds ---- */

static mica_dtype fold_dtype(mica__op op, mica_dtype in)
{
    if (op == MICA__OP_ANY || op == MICA__OP_ALL) return MICA_BOOL;
    if (op == MICA__OP_MAX || op == MICA__OP_MIN || mica__is_float(in)) return in;
    return mica__dtype_kind(in) == MICA__KIND_UINT ? MICA_U64 : MICA_I64;
}

static const mica__op fold_ops[] = {MICA__OP_SUM, MICA__OP_PROD, MICA__OP_MAX,
                                    MICA__OP_MIN, MICA__OP_ANY,  MICA__OP_ALL};

/* Every fold of every dtype over rows and columns of every length. Sums of
 * doubles may differ in the last digits, because the order of addition differs. */
TEST(every_fold)
{
    kit kt = {.seed = 5};
    for (size_t f = 0; f < sizeof fold_ops / sizeof fold_ops[0]; f++)
        for (int in = 0; in < MICA__DTYPE_COUNT; in++) {
            const mica__op op = fold_ops[f];
            test_case("%s %s", mica__op_get((uint16_t)op)->name, mica_dtype_name((mica_dtype)in));
            for (int64_t folded = 0; folded <= 70; folded++)
                for (int pattern = 0; pattern < 4; pattern++) {
                    const int64_t outer = pattern == 1 ? 40 : pattern == 2 ? 1 : 3;
                    const int64_t size[2] = {outer, folded};
                    const bool columns = pattern == 1;
                    kit_init(&kt, 2, 1, size);
                    const int64_t strides[2] = {columns ? 1 : pattern == 3 ? -folded : folded, columns ? outer : 1};
                    const uint32_t x =
                        kit_load(&kt, (mica_dtype)in, strides, op != MICA__OP_SUM && op != MICA__OP_PROD);
                    const uint32_t y = kit_fold(&kt, op, fold_dtype(op, (mica_dtype)in), x);
                    kit_store(&kt, y, (int64_t[]){1, 0});
                    kit_end(&kt);
                    const bool order = (op == MICA__OP_SUM || op == MICA__OP_PROD) && in == MICA_F64;
                    const bool ok = kit_check(&kt, order ? 200 : op == MICA__OP_PROD ? 1 : 0, "fold");
                    kit_free(&kt);
                    if (!ok) folded = 70, pattern = 4;
                }
        }
}

TEST(random_folds)
{
    kit kt = {.seed = 6};
    for (int round = 0; round < 600; round++) {
        int64_t size[MICA_MAX_DIMS], strides[MICA_MAX_DIMS];
        uint32_t values[KIT_MAX_INST], n = 0;
        const int ndim = 1 + (int)kit_below(&kt, 4), n_fold = 1 + (int)kit_below(&kt, ndim);
        test_case("round %d", round);
        random_sizes(&kt, ndim, size);
        kit_init(&kt, ndim, n_fold, size);
        random_loads(&kt, values, &n, 1 + (int)kit_below(&kt, 3), false);
        random_ops(&kt, values, &n, (int)kit_below(&kt, 6));
        const uint32_t folded = values[n - 1];
        /* extremes and counts: the same bits in any order */
        const mica__op op = fold_ops[2 + kit_below(&kt, 4)];
        if (kit_below(&kt, 3) == 0) {
            random_strides(&kt, false, true, strides);
            kit_store(&kt, folded, strides);
        }
        n = 0;
        values[n++] = kit_fold(&kt, op, fold_dtype(op, kt.inst[folded].dtype), folded);
        random_loads(&kt, values, &n, (int)kit_below(&kt, 3), true);
        random_ops(&kt, values, &n, (int)kit_below(&kt, 8));
        random_strides(&kt, true, true, strides);
        kit_store(&kt, values[0], strides);
        kit_store(&kt, values[n - 1], strides);
        kit_end(&kt);
        kit_check(&kt, 0, "fold");
        kit_free(&kt);
    }
}

/* Long enough to be split into parts. */
TEST(long_folds)
{
    kit kt = {.seed = 7};
    static const int64_t shapes[][2] = {{1, 300007}, {3, 70001}, {20, 9001}, {32, 9000}, {200, 300}, {3000, 40}};
    for (size_t f = 0; f < sizeof fold_ops / sizeof fold_ops[0]; f++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            for (int columns = 0; columns < 2; columns++) {
                const mica__op op = fold_ops[f];
                const mica_dtype in = op == MICA__OP_PROD ? MICA_U32 : MICA_F32;
                test_case("%s of %lld x %lld%s", mica__op_get((uint16_t)op)->name, (long long)shapes[i][0],
                          (long long)shapes[i][1], columns ? " columns" : "");
                kit_init(&kt, 2, 1, shapes[i]);
                const int64_t strides[2] = {columns ? 1 : shapes[i][1], columns ? shapes[i][0] : 1};
                const uint32_t x = kit_load(&kt, in, strides, false);
                kit_store(&kt, kit_fold(&kt, op, fold_dtype(op, in), x), (int64_t[]){1, 0});
                kit_end(&kt);
                kit_check(&kt, op == MICA__OP_SUM ? 1 : 0, "long fold");
                kit_free(&kt);
            }
}

TEST(sum_of_ten_million_ones)
{
    kit kt = {.seed = 8};
    const int64_t n = 10000000;
    kit_init(&kt, 1, 1, &n);
    const uint32_t x = kit_load(&kt, MICA_F32, (int64_t[]){1}, false);
    for (int64_t i = 0; i < n; i++) mica__scalar_store(MICA_F32, kt.memory[0], i, (mica__number){1.0, 0});
    kit_store(&kt, kit_fold(&kt, MICA__OP_SUM, MICA_F32, x), (int64_t[]){0});
    kit_end(&kt);
    mica__arena arena;
    mica__chain *chain;
    mica__chain_part *part = malloc(MICA__CHAIN_MAX_PARTS * sizeof *part);
    mica__index_fault fault = MICA__INDEX_FAULT_NONE;
    mica__arena_init(&arena);
    CHECK(part && mica__chain_build(&kt.k, &arena, &chain) == MICA_OK && chain);
    const mica__chain_run run = {.chain = chain, .block = kt.memory, .fault = &fault, .part = part};
    for (int64_t i = 0; i < mica__chain_tasks(chain); i++) mica__chain_task(&run, i);
    mica__chain_finish(&run);
    CHECK_CLOSE(mica__get_f64(MICA_F32, kt.memory[1], 0), 1e7, 0, 0);
    free(part);
    mica__arena_free(&arena);
    kit_free(&kt);
}

/* ---------------------------------------------------------------- faults --- */

TEST(index_fault)
{
    kit kt = {.seed = 9};
    const int64_t n = 100;
    kit_init(&kt, 1, 0, &n);
    const uint32_t x = kit_load(&kt, MICA_I64, (int64_t[]){1}, false);
    for (int64_t i = 0; i < n; i++)
        mica__scalar_store(MICA_I64, kt.memory[0], i, (mica__number){0, i == 70 || i == 90 ? -26 : i % 50 - 25});
    kit_store(&kt, kit_map(&kt, MICA__OP_CHECK_INDEX, MICA_I64, x, 0, 0, attr_of(MICA__OP_CHECK_INDEX)),
              (int64_t[]){1});
    kit_end(&kt);
    CHECK(kit_check(&kt, 0, "fault"));
    mica__index_fault fault = MICA__INDEX_FAULT_NONE;
    mica__ref_kernel(&kt.k, kt.memory, 0, n, &fault);
    CHECK_INT(mica__index_fault_status(&fault), MICA_ERR_INDEX);
    CHECK_STR(mica_last_error(), "check_index: index -26 is outside -25 ... 24");
    CHECK_INT(fault.position, 70);
    kit_free(&kt);
}
