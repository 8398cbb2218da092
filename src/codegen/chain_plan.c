/* See chain_plan.h. */
#include "codegen/chain_plan.h"

#include "base/checked.h"
#include "base/cpu.h"

/* ------------------------------------------------------------------ ops ---- */

bool mica__chain_is_alias(const mica__kinst *inst)
{
    if (inst->op == MICA__OP_COPY) return true;
    if (inst->op != MICA__OP_CAST) return false;
    const mica_dtype in = inst->in_dtype, out = inst->dtype;
    if (in == out) return true;
    if (chain_class_of(in) != chain_class_of(out)) return false;
    if (chain_class_of(in) == CHAIN_FLOAT) return out == MICA_F32 || (in == MICA_BOOL && mica__is_float(out));
    /* integers: the widest dtypes of a class keep every bit; a wider dtype holds every
     * value, unless it is unsigned and the source is signed */
    if (mica_dtype_size(out) >= 4) return true;
    const bool loses_sign = mica__dtype_kind(in) == MICA__KIND_INT && mica__dtype_kind(out) == MICA__KIND_UINT;
    return mica_dtype_size(out) > mica_dtype_size(in) && !loses_sign;
}

mica__op mica__chain_op_of(const mica__kinst *inst)
{
    if (inst->in_dtype != MICA_BOOL) return inst->op;
    switch ((int)inst->op) {
    case MICA__OP_ADD:
    case MICA__OP_MAXIMUM:
    case MICA__OP_BITWISE_OR: return MICA__OP_LOGICAL_OR;
    case MICA__OP_MUL:
    case MICA__OP_MINIMUM:
    case MICA__OP_BITWISE_AND: return MICA__OP_LOGICAL_AND;
    case MICA__OP_SUB: /* 0 - 1 is not 0 */
    case MICA__OP_BITWISE_XOR: return MICA__OP_LOGICAL_XOR;
    case MICA__OP_BITWISE_NOT: return MICA__OP_LOGICAL_NOT;
    case MICA__OP_LOGICAL_NOT:
    case MICA__OP_LOGICAL_AND:
    case MICA__OP_LOGICAL_OR:
    case MICA__OP_LOGICAL_XOR:
    case MICA__OP_EQUAL:
    case MICA__OP_NOT_EQUAL:
    case MICA__OP_LESS:
    case MICA__OP_LESS_EQUAL:
    case MICA__OP_GREATER:
    case MICA__OP_GREATER_EQUAL:
    case MICA__OP_ISNAN:
    case MICA__OP_ISINF:
    case MICA__OP_ISFINITE:
    case MICA__OP_WHERE: return inst->op;
    default: return MICA__OP_COUNT;
    }
}

bool mica__chain_int_op_stays(mica__op op)
{
    switch ((int)op) {
    case MICA__OP_BITWISE_AND:
    case MICA__OP_BITWISE_OR:
    case MICA__OP_BITWISE_XOR:
    case MICA__OP_SHIFT_RIGHT:
    case MICA__OP_MINIMUM:
    case MICA__OP_MAXIMUM:
    case MICA__OP_RELU:
    case MICA__OP_SIGN: return true;
    default: return false;
    }
}

bool mica__chain_op_is_exact(mica__op op)
{
    return op == MICA__OP_WHERE || mica__op_get((uint16_t)op)->place == MICA__PLACE_EXACT;
}

/* ------------------------------------------------------------- operands ---- */

static bool is_operand(const mica__kinst *inst)
{
    return inst->code == MICA__K_LOAD || inst->code == MICA__K_IOTA || inst->code == MICA__K_STORE;
}

/* Strides of loops [first, first + n) of an access, in the unit of the use. */
static void use_strides(const chain_use *use, const mica__access *a, int first, int n, int64_t *stride)
{
    const int64_t unit = use->iota ? 1 : (int64_t)mica_dtype_size(a->dtype);
    for (int d = 0; d < n; d++) stride[d] = a->strides[first + d] * unit;
}

static void init_use(const mica__kernel *k, const mica__kinst *inst, const chain_program *p, int first, int n,
                     chain_use *use)
{
    const mica__access *a = &k->access[inst->access];
    const int64_t size = (int64_t)mica_dtype_size(a->dtype);
    use->cell = (uint16_t)inst->access;
    use->store = inst->code == MICA__K_STORE;
    use->iota = inst->code == MICA__K_IOTA ? inst : NULL;
    use->block = a->block;
    use->offset = a->offset * (use->iota ? 1 : size);
    use->size = (uint8_t)(use->iota ? chain_class_bytes(chain_class_of(a->dtype)) : (size_t)size);
    if (n) use_strides(use, a, first, n, use->stride);
    else use->stride[0] = use->iota ? 1 : size;
    use->direct = !use->iota && use->stride[p->ndim - 1] == size;
    use->turned = !use->iota && !use->store && p->ndim > 1 && use->stride[p->ndim - 2] == size &&
                  use->stride[p->ndim - 1] != 0 && use->stride[p->ndim - 1] != size;
    use->flat = true;
    for (int d = 0; d + 1 < p->ndim; d++)
        if (use->stride[d] != use->stride[d + 1] * p->size[d + 1]) use->flat = false;
}

/* Collects the operands of instructions [from, to), walked along loops [first, first + n). */
static mica_status init_program(const mica__kernel *k, mica__arena *arena, chain_program *p, uint32_t from, uint32_t to,
                                int first, int n)
{
    p->ndim = n ? n : 1;
    p->size[0] = 1;
    for (int d = 0; d < n; d++) p->size[d] = k->size[first + d];
    uint32_t most = 0;
    for (uint32_t i = from; i < to; i++) most += is_operand(&k->inst[i]);
    chain_use *use = mica__arena_array(arena, (size_t)most + 1, sizeof *use);
    if (!use) return mica__fail_memory("a chain", most * sizeof *use);
    p->use = use;
    for (int stores = 0; stores < 2; stores++) {
        for (uint32_t i = from; i < to; i++)
            if (is_operand(&k->inst[i]) && (k->inst[i].code == MICA__K_STORE) == (stores == 1))
                init_use(k, &k->inst[i], p, first, n, &use[p->n_use++]);
        if (!stores) p->n_load = p->n_use;
    }
    return MICA_OK;
}

/* Chooses how the loops of a program are walked. */
static void choose_walk(mica__chain *chain, chain_program *p)
{
    enum { SHORT_PANEL = 4 };
    const int inner = p->ndim - 1;
    p->by_rows = p->ndim == 1 || p->size[inner] >= 2 * chain->block;
    int64_t size = 0; /* of the largest transposed element */
    for (uint32_t u = 0; u < p->n_load; u++)
        if (p->use[u].turned) size = mica__max_i64(size, p->use[u].size);
    if (size && p->size[inner] >= 8 && p->size[inner - 1] >= SHORT_PANEL) p->panel_rows = CHAIN_LINE / size;
}

/* Results bypass the caches if they are larger than the last-level cache: they would
 * be evicted before their next use, and would evict other data. Not if the block is
 * also read: its lines are already in the cache. */
static bool is_streamed(const mica__chain *chain, const chain_program *p)
{
    enum { USUAL_CACHE = 32 << 20 };
    const int64_t cache = (int64_t)mica__cpu_cache(3);
    const int64_t from = chain->variant->stream_from ? chain->variant->stream_from : cache ? cache : USUAL_CACHE;
    bool large = false;
    for (uint32_t u = p->n_load; u < p->n_use; u++) {
        large = large || (p->use[u].size == 4 && 4 * chain->outer >= from);
        for (uint32_t l = 0; l < p->n_load; l++)
            if (p->use[l].block == p->use[u].block) return false;
    }
    return large;
}

/* ---------------------------------------------------------------- folds ---- */

/* By columns if neighbours in memory belong to different results, or if rows are
 * too short to fill a block. */
static chain_fold_mode choose_fold_mode(const mica__kernel *k, int64_t outer, int64_t folded)
{
    enum { FEW_RESULTS = 16, SHORT_ROW = 24 };
    const int kept = k->ndim - k->n_fold;
    if (outer < FEW_RESULTS || kept == 0) return CHAIN_FOLD_ROWS;
    if (folded < SHORT_ROW) return CHAIN_FOLD_COLUMNS;
    int along_rows = 0, along_columns = 0;
    for (uint32_t i = 0; i < k->fold; i++) {
        if (k->inst[i].code != MICA__K_LOAD) continue;
        const int64_t *s = k->access[k->inst[i].access].strides;
        if (s[k->ndim - 1] == 1) along_rows++;
        else if (s[kept - 1] == 1) along_columns++;
    }
    return along_columns > along_rows ? CHAIN_FOLD_COLUMNS : CHAIN_FOLD_ROWS;
}

/* Enough tasks for the threads of any machine, and few enough states to combine. */
enum { MANY_TASKS = 16, MOST_PARTS = 256 };

/* Number of parts that the folded elements are split into if `together` results share
 * a task; 1: not split. */
static int64_t parts_of(const mica__chain *chain, int64_t together)
{
    const int64_t length = mica__max_i64(1, CHAIN_CHUNK / together);
    const int64_t parts = mica__min_i64((chain->folded + length - 1) / length, MICA__CHAIN_MAX_PARTS / chain->outer);
    return mica__max_i64(1, mica__min_i64(parts, MOST_PARTS));
}

static int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* A task folds as many results by columns as are folded at once: long contiguous reads
 * matter more than many tasks (docs/speed/LOG.md). */
static void cut_columns(mica__chain *chain)
{
    enum { ENOUGH_TASKS = 4 };
    int64_t width = mica__min_i64(CHAIN_FOLD_BLOCKS, pieces(chain->outer, chain->block)) * chain->block;
    while (pieces(chain->outer, width) * parts_of(chain, width) < ENOUGH_TASKS && width >= 4 * chain->block)
        width = pieces(width / 2, chain->block) * chain->block;
    const int64_t parts = parts_of(chain, width);
    chain->parts = parts > 1 ? parts : 0;
    chain->task_size = width;
    chain->tasks = pieces(chain->outer, width) * parts;
}

/* The cost of an element in simple ops: a tanh justifies a thread earlier than a sum.
 * Folds count all ops as simple, because their bits depend on how they are split. */
static int64_t element_work(const mica__kernel *k, const mica__chain *chain)
{
    enum { SIMPLE = 4 };
    int64_t flops = 0;
    for (uint32_t i = 0; chain->mode == CHAIN_NO_FOLD && i < k->n_inst; i++)
        if (k->inst[i].code == MICA__K_MAP) flops += (int64_t)mica__op_get((uint16_t)k->inst[i].op)->flops;
    return mica__max_i64(1, flops / SIMPLE);
}

static void cut_tasks(const mica__kernel *k, mica__chain *chain)
{
    const int64_t outer = chain->outer, folded = chain->folded, each = element_work(k, chain);
    const chain_program *p = &chain->main;
    int64_t work;
    if (!mica__mul_i64(outer, folded, &work) || !mica__mul_i64(work, each, &work)) work = INT64_MAX;
    chain->task_size = outer;
    chain->tasks = outer > 0;
    if (work < CHAIN_SERIAL) return;
    if (chain->mode == CHAIN_FOLD_COLUMNS) {
        cut_columns(chain);
        return;
    }
    /* the end of a task waits for streamed results, so tasks are larger */
    chain->task_size = mica__max_i64(1, (p->stream ? 8 * CHAIN_CHUNK : CHAIN_CHUNK / each) / folded);
    if (chain->mode == CHAIN_NO_FOLD) { /* whole blocks, or whole panels of turned operands */
        const int64_t unit = p->panel_rows ? p->panel_rows * p->size[p->ndim - 1] : chain->block;
        chain->task_size = pieces(chain->task_size, unit) * unit;
    }
    chain->tasks = pieces(outer, chain->task_size);
    if (chain->mode == CHAIN_NO_FOLD || chain->tasks >= MANY_TASKS) return;
    /* few results: each task folds a part of the elements of one result */
    const int64_t parts = parts_of(chain, 1);
    if (parts < 2) return;
    chain->parts = parts;
    chain->task_size = 1;
    chain->tasks = outer * parts;
}

/* Is the only instruction before the fold a load of f32, contiguous along the only
 * walked loop, and is there a plain loop for the fold? */
static bool is_plain_fold(const mica__kernel *k, const mica__chain *chain)
{
    const chain_program *p = &chain->before;
    const chain_plain_table *plain = chain->variant->plain;
    if (k->fold != 1 || chain->fold_in != MICA_F32 || p->ndim != 1 || !p->use[0].direct) return false;
    if (chain->mode == CHAIN_FOLD_ROWS) return plain->rows[chain->fold_op] != NULL;
    return chain->fold_op == MICA__OP_SUM && chain->n_across == 1;
}

static mica_status init_fold(const mica__kernel *k, mica__arena *arena, mica__chain *chain)
{
    const mica__kinst *fold = &k->inst[k->fold];
    const int kept = k->ndim - k->n_fold;
    chain->mode = choose_fold_mode(k, chain->outer, chain->folded);
    chain->fold_op = fold->op;
    chain->fold_in = fold->in_dtype;
    chain->fold_out = fold->dtype;
    const bool rows = chain->mode == CHAIN_FOLD_ROWS;
    const int across = rows ? 0 : kept;
    chain->n_across = rows ? kept : k->n_fold;
    for (int d = 0; d < chain->n_across; d++) chain->across_size[d] = k->size[across + d];
    MICA_TRY(init_program(k, arena, &chain->before, 0, k->fold, rows ? kept : 0, rows ? k->n_fold : kept));
    chain_use *use = (chain_use *)(uintptr_t)chain->before.use;
    for (uint32_t u = 0; u < chain->before.n_use; u++)
        use_strides(&use[u], &k->access[use[u].cell], across, chain->n_across, use[u].across);
    chain->plain = is_plain_fold(k, chain);
    return MICA_OK;
}

mica_status mica__chain_plan_loops(const mica__kernel *k, mica__arena *arena, mica__chain *chain, bool *fits)
{
    const bool folds = k->fold < k->n_inst;
    chain->outer = mica__kernel_outer(k);
    chain->folded = folds ? mica__kernel_folded(k) : 1;
    if (folds) MICA_TRY(init_fold(k, arena, chain));
    MICA_TRY(init_program(k, arena, &chain->main, folds ? k->fold + 1 : 0, k->n_inst, 0, k->ndim - k->n_fold));
    /* the program after a fold gets one block of folded values at a time, in order */
    if (folds) choose_walk(chain, &chain->before);
    else choose_walk(chain, &chain->main);
    chain->before.panel_rows = 0;
    chain->main.stream = !folds && is_streamed(chain, &chain->main);
    cut_tasks(k, chain);
    *fits =
        k->n_access <= CHAIN_MAX_CELLS && chain->main.n_use <= CHAIN_MAX_USES && chain->before.n_use <= CHAIN_MAX_USES;
    return MICA_OK;
}
