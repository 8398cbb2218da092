/* Translates a kernel to a chain: decides when a value is in the registers and
 * which values need a tile.
 *
 * Instructions are processed in order. The registers hold one value, the result of
 * the last op in registers. An op reads one operand from there and the others from
 * cells. A value is spilled to a slot only if the registers are needed for another
 * value while it still has users; the slot is free again after the last use. */
#include <string.h>

#include "codegen/chain_ctx.h"
#include "codegen/chain_plan.h"

#define NO_CELL UINT16_MAX
#define NO_VALUE UINT32_MAX

typedef struct chain_builder {
    const mica__kernel *k;
    const chain_variant *v;
    const chain_table *t;         /* of the variant                                      */
    mica__arena *arena;
    chain_op *op;
    uint32_t n_op;
    uint32_t *same;               /* per instruction: the one that computes its value    */
    uint32_t *uses;               /* remaining uses                                      */
    uint32_t *stores;             /* of all uses, those by STORE, which rounds and wraps */
    uint16_t *cell;               /* cell that holds the value, besides the registers    */
    bool *in_slot;                /* ... and whether that is a slot                      */
    uint16_t *raw;                /* the operand from which it can be loaded at any time */
    uint32_t held;                /* the value in the registers                          */
    uint32_t *tile_at;
    uint32_t n_cell, tile_bytes;
    uint16_t free_slot[2][CHAIN_MAX_CELLS]; /* of 4 and of 8 bytes an element            */
    uint32_t n_free[2];
    bool full;                    /* out of cells or of tile memory                      */
} chain_builder;

/* ---------------------------------------------------------------- cells ---- */

static uint16_t new_cell(chain_builder *b, chain_class class)
{
    const uint32_t nbytes = (uint32_t)(chain_class_bytes(class) * (size_t)b->t->block);
    if (b->n_cell == CHAIN_MAX_CELLS || b->tile_bytes + nbytes > CHAIN_TILE_BYTES) {
        b->full = true;
        return 0;
    }
    b->tile_at[b->n_cell] = b->tile_bytes;
    b->tile_bytes += nbytes;
    return (uint16_t)b->n_cell++;
}

static chain_class class_of_value(const chain_builder *b, uint32_t v) { return chain_class_of(b->k->inst[v].dtype); }

static bool is_wide(chain_class class) { return chain_class_bytes(class) == 8; }

static uint16_t acquire_slot(chain_builder *b, chain_class class)
{
    const bool wide = is_wide(class);
    return b->n_free[wide] ? b->free_slot[wide][--b->n_free[wide]] : new_cell(b, class);
}

static void release_slot(chain_builder *b, uint32_t v)
{
    if (!b->in_slot[v]) return;
    const bool wide = is_wide(class_of_value(b, v));
    b->free_slot[wide][b->n_free[wide]++] = b->cell[v];
    b->cell[v] = NO_CELL;
    b->in_slot[v] = false;
}

static chain_op *emit(chain_builder *b, chain_code fn)
{
    chain_op *op = &b->op[b->n_op++];
    *op = (chain_op){.fn = fn};
    return op;
}

static void need_registers(chain_builder *b, uint32_t v);

/* Ensures that the value is in a cell. */
static uint16_t need_cell(chain_builder *b, uint32_t v)
{
    if (b->cell[v] == NO_CELL) {
        if (b->held != v) need_registers(b, v);
        b->cell[v] = acquire_slot(b, class_of_value(b, v));
        b->in_slot[v] = true;
        emit(b, b->t->store)->dst = b->cell[v];
    }
    return b->cell[v];
}

/* The registers are about to be overwritten. */
static void save_held(chain_builder *b)
{
    if (b->held != NO_VALUE && b->uses[b->held] > 0 && b->raw[b->held] == NO_CELL) need_cell(b, b->held);
}

/* Ensures that the value is in the registers, and that they may be overwritten. */
static void need_registers(chain_builder *b, uint32_t v)
{
    save_held(b);
    if (b->held == v) return;
    if (b->cell[v] == NO_CELL) emit(b, b->v->move->take[b->k->inst[v].dtype])->a = b->raw[v];
    else emit(b, b->t->load)->a = b->cell[v];
    b->held = v;
}

static void begin_use(chain_builder *b, const mica__kinst *inst, uint32_t *arg)
{
    for (uint32_t i = 0; i < inst->n_arg; i++) {
        arg[i] = b->same[inst->arg[i]];
        b->uses[arg[i]]--;
    }
}

static void end_use(chain_builder *b, const mica__kinst *inst, const uint32_t *arg)
{
    for (uint32_t i = 0; i < inst->n_arg; i++)
        if (b->uses[arg[i]] == 0) release_slot(b, arg[i]);
}

/* ------------------------------------------------------------------ ops ---- */

static chain_op *emit_tile_op(chain_builder *b)
{
    const uint32_t v = b->held;
    const bool wanted = v != NO_VALUE && b->uses[v] > 0 && b->cell[v] == NO_CELL && b->raw[v] == NO_CELL;
    if (!wanted) b->held = NO_VALUE;
    return emit(b, wanted ? b->t->tile : b->t->tile_only);
}

/* Saves operands that are in the registers to a cell before another operand is moved
 * through the registers: their use counts no longer show that they are needed. */
static void keep_held(chain_builder *b, const uint32_t *arg, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (b->held == arg[i]) need_cell(b, arg[i]);
}

/* An op on tiles; the value is in a slot afterwards. */
static void emit_tile(chain_builder *b, uint32_t v, chain_tile_fn *fn, const uint32_t *arg)
{
    const mica__kinst *inst = &b->k->inst[v];
    uint16_t from[3] = {0, 0, 0};
    keep_held(b, arg, inst->n_arg);
    for (uint32_t i = 0; i < inst->n_arg; i++) from[i] = need_cell(b, arg[i]);
    b->cell[v] = acquire_slot(b, class_of_value(b, v));
    b->in_slot[v] = true;
    chain_op *op = emit_tile_op(b);
    op->tile = fn;
    op->dst = b->cell[v];
    op->a = from[0], op->b = from[1], op->c = from[2];
    op->op = (uint16_t)inst->op;
    op->in = (uint8_t)inst->in_dtype;
    op->out = (uint8_t)inst->dtype;
    op->attr = inst->attr;
}

static void emit_unary(chain_builder *b, uint32_t v, chain_code fn, const uint32_t *arg)
{
    need_registers(b, arg[0]);
    emit(b, fn)->attr = b->k->inst[v].attr;
    b->held = v;
}

/* reverse: the op with swapped operands. */
static void emit_binary(chain_builder *b, uint32_t v, chain_code fn, chain_code reverse, const uint32_t *arg)
{
    /* one operand is read from the registers: the one that is already there, but
     * preferably one that would have to be loaded there anyway */
    const bool first_free = b->cell[arg[0]] != NO_CELL || b->held == arg[0];
    const bool second_free = b->cell[arg[1]] != NO_CELL || b->held == arg[1];
    const bool turned = first_free && second_free ? b->held == arg[1] && arg[0] != arg[1] : first_free;
    const uint32_t in_registers = arg[turned ? 1 : 0], other = arg[turned ? 0 : 1];
    const uint16_t cell = need_cell(b, other);
    need_registers(b, in_registers);
    chain_op *op = emit(b, turned ? reverse : fn);
    op->b = cell;
    op->in = (uint8_t)b->k->inst[v].in_dtype;
    b->held = v;
}

static void emit_where(chain_builder *b, uint32_t v, const uint32_t *arg)
{
    if (b->cell[arg[1]] == NO_CELL || b->cell[arg[2]] == NO_CELL) keep_held(b, arg, 3);
    const uint16_t yes = need_cell(b, arg[1]), no = need_cell(b, arg[2]);
    need_registers(b, arg[0]);
    chain_op *op = emit(b, b->t->where);
    op->a = yes, op->b = no;
    b->held = v;
}

/* a * b + c with the operand that is already in the registers. */
static void emit_fma(chain_builder *b, uint32_t v, const uint32_t *arg)
{
    for (int i = 0; i < 3; i++)
        if (b->cell[arg[i]] == NO_CELL && b->held != arg[i]) keep_held(b, arg, 3);
    const bool term = b->held == arg[2];
    const uint32_t in_registers = term ? arg[2] : arg[b->held == arg[1]];
    const uint16_t first = need_cell(b, arg[term ? 0 : in_registers == arg[0]]),
                   second = need_cell(b, arg[term ? 1 : 2]);
    need_registers(b, in_registers);
    chain_op *op = emit(b, term ? b->t->fma_term : b->t->fma_factor);
    op->a = first, op->b = second;
    b->held = v;
}

/* Adds an op that brings the new value into the range of its dtype. Not needed if the
 * value is only stored: the store does the same. */
static void emit_finish(chain_builder *b, uint32_t v, chain_code fn)
{
    if (b->stores[v] == b->uses[v]) return;
    if (b->held != v) { /* computed on tiles */
        need_registers(b, v);
        release_slot(b, v);
    }
    emit(b, fn);
}

/* The value in registers has dtype f16 or bf16 and was computed in f32. */
static void emit_round(chain_builder *b, uint32_t v)
{
    const mica_dtype dtype = b->k->inst[v].dtype;
    if (dtype == MICA_F16) emit_finish(b, v, b->t->round_f16);
    if (dtype == MICA_BF16) emit_finish(b, v, b->t->round_bf16);
}

static void emit_wrap(chain_builder *b, uint32_t v)
{
    chain_code wrap = b->v->ints->wrap[b->k->inst[v].dtype];
    if (wrap) emit_finish(b, v, wrap);
}

static void emit_float(chain_builder *b, uint32_t v, const uint32_t *arg)
{
    const mica__kinst *inst = &b->k->inst[v];
    const mica__op op = mica__chain_op_of(inst);
    const bool in_registers = op != MICA__OP_COUNT;
    if (op == MICA__OP_WHERE) {
        emit_where(b, v, arg);
    } else if (in_registers && inst->n_arg == 1 && b->t->unary[op]) {
        emit_unary(b, v, b->t->unary[op], arg);
    } else if (in_registers && inst->n_arg == 2 && b->t->binary[op]) {
        emit_binary(b, v, b->t->binary[op], b->t->reverse[op], arg);
    } else if (op == MICA__OP_FMA && inst->in_dtype == MICA_F32) { /* f16 and bf16 would be rounded twice */
        if (b->t->fma_factor) emit_fma(b, v, arg);
        else emit_tile(b, v, mica__chain_tile_fma, arg);
    } else {
        emit_tile(b, v, mica__chain_tile_any, arg); /* rounds by itself */
        return;
    }
    if (!mica__chain_op_is_exact(op)) emit_round(b, v);
}

static void emit_cast(chain_builder *b, uint32_t v, const uint32_t *arg)
{
    const mica__kinst *inst = &b->k->inst[v];
    const chain_int_table *ints = b->v->ints;
    const mica_dtype in = inst->in_dtype, out = inst->dtype;
    const chain_class from = chain_class_of(in), to = chain_class_of(out);
    if (is_wide(from) || is_wide(to)) {
        emit_tile(b, v, mica__chain_tile_cast(b->v->wide, in, out), arg);
        if (to == CHAIN_INT) emit_wrap(b, v);
        else emit_round(b, v);
    } else if (to == CHAIN_INT) {
        emit_unary(b, v, from == CHAIN_INT ? ints->wrap[out] : ints->from_float[out], arg);
    } else if (from == CHAIN_INT) {
        const bool u = in == MICA_U32;
        const chain_code to_float = out == MICA_BF16 ? ints->to_bf16[u] : ints->to_float[u];
        emit_unary(b, v, out == MICA_BOOL ? ints->truth : to_float, arg);
        if (out == MICA_F16) emit_round(b, v); /* an integer in the range of f16 is exact in f32 */
    } else if (out == MICA_BOOL) {
        emit_unary(b, v, b->t->truth, arg);
    } else {
        emit_unary(b, v, out == MICA_F16 ? b->t->round_f16 : b->t->round_bf16, arg);
    }
}

static void emit_int(chain_builder *b, uint32_t v, const uint32_t *arg)
{
    const mica__kinst *inst = &b->k->inst[v];
    const chain_int_table *ints = b->v->ints;
    const bool u = inst->in_dtype == MICA_U32;
    if (inst->op == MICA__OP_WHERE) {
        emit_where(b, v, arg);
        return;
    }
    if (inst->n_arg == 1 && ints->unary[u][inst->op]) {
        emit_unary(b, v, ints->unary[u][inst->op], arg);
    } else if (inst->n_arg == 2 && ints->binary[u][inst->op]) {
        emit_binary(b, v, ints->binary[u][inst->op], ints->reverse[u][inst->op], arg);
    } else { /* wraps by itself */
        emit_tile(b, v, inst->op == MICA__OP_CHECK_INDEX ? mica__chain_tile_check_index : mica__chain_tile_any, arg);
        return;
    }
    if (class_of_value(b, v) == CHAIN_INT && !mica__chain_int_op_stays(inst->op)) emit_wrap(b, v);
}

static void emit_wide(chain_builder *b, uint32_t v, const uint32_t *arg)
{
    const mica__kinst *inst = &b->k->inst[v];
    const chain_wide_table *wide = b->v->wide;
    chain_tile_fn *tile = inst->in_dtype == MICA_F64   ? mica__chain_tile_f64(wide, inst->op)
                          : inst->op == MICA__OP_WHERE ? wide->where
                                                       : wide->i64[inst->in_dtype == MICA_U64][inst->op];
    if (inst->op == MICA__OP_CHECK_INDEX) tile = mica__chain_tile_check_index;
    emit_tile(b, v, tile ? tile : mica__chain_tile_any, arg);
}

static void build_chain_map(chain_builder *b, uint32_t v)
{
    const mica__kinst *inst = &b->k->inst[v];
    uint32_t arg[3];
    begin_use(b, inst, arg);
    if (inst->op == MICA__OP_CAST) {
        emit_cast(b, v, arg);
    } else if (chain_class_of(inst->in_dtype) == CHAIN_INT) {
        emit_int(b, v, arg);
    } else if (is_wide(chain_class_of(inst->in_dtype))) {
        emit_wide(b, v, arg);
    } else {
        emit_float(b, v, arg);
    }
    end_use(b, inst, arg);
}

static void build_chain_store(chain_builder *b, const mica__kinst *inst)
{
    uint32_t arg[3];
    begin_use(b, inst, arg);
    const uint32_t v = arg[0];
    const bool narrow = !is_wide(class_of_value(b, v));
    const bool idle = b->held == NO_VALUE || b->uses[b->held] == 0 || b->cell[b->held] != NO_CELL;
    const bool same = mica_dtype_size(inst->dtype) == 4;
    if (narrow && (b->held == v || idle || !same || b->cell[v] == NO_CELL)) {
        if (b->held != v) need_registers(b, v);
        emit(b, b->v->move->put[inst->dtype])->dst = (uint16_t)inst->access;
    } else {
        chain_op *op = emit_tile_op(b);
        op->tile = narrow ? mica__chain_tile_copy32 : mica__chain_tile_copy64;
        op->dst = (uint16_t)inst->access;
        op->a = b->cell[v];
    }
    end_use(b, inst, arg);
}

static void build_chain_fold(chain_builder *b, const mica__kinst *inst, chain_fold_mode mode)
{
    uint32_t arg[3];
    begin_use(b, inst, arg);
    const chain_class class = class_of_value(b, arg[0]);
    if (is_wide(class)) {
        const chain_wide_table *wide = b->v->wide;
        const uint16_t from = need_cell(b, arg[0]);
        chain_op *op = emit_tile_op(b);
        op->tile =
            class == CHAIN_DOUBLE ? wide->fold_f64[inst->op] : wide->fold_i64[inst->in_dtype == MICA_U64][inst->op];
        op->a = from;
    } else if (class == CHAIN_INT) {
        need_registers(b, arg[0]);
        emit(b, b->v->ints->fold[inst->in_dtype == MICA_U32][inst->op]);
    } else {
        const bool logical = inst->op == MICA__OP_ANY || inst->op == MICA__OP_ALL;
        const mica__op op = inst->op == MICA__OP_ANY   ? MICA__OP_MAX
                            : inst->op == MICA__OP_ALL ? MICA__OP_MIN
                                                       : inst->op;
        need_registers(b, arg[0]);
        if (logical) emit(b, b->t->truth);
        emit(b, mode == CHAIN_FOLD_ROWS ? b->t->fold_rows[op] : b->t->fold_columns[op]);
    }
    b->held = NO_VALUE;
    end_use(b, inst, arg);
}

/* Builds instructions [first, last) as one program. */
static const chain_op *build_chain_code(chain_builder *b, uint32_t first, uint32_t last, chain_fold_mode mode)
{
    b->n_op = 0;
    b->held = NO_VALUE;
    for (uint32_t i = first; i < last && !b->full; i++) {
        const mica__kinst *inst = &b->k->inst[i];
        if (b->same[i] != i && inst->code == MICA__K_MAP) continue;
        if (inst->code == MICA__K_MAP) build_chain_map(b, i);
        else if (inst->code == MICA__K_STORE) build_chain_store(b, inst);
        else if (inst->code == MICA__K_FOLD) build_chain_fold(b, inst, mode);
    }
    emit(b, b->t->done);
    return mica__arena_copy(b->arena, b->op, b->n_op * sizeof *b->op);
}

/* --------------------------------------------------------------- values ---- */

/* Finds instructions that are aliases of another value, and counts the uses of each
 * value. */
static void count_uses(chain_builder *b)
{
    const mica__kernel *k = b->k;
    for (uint32_t i = 0; i < k->n_inst; i++) {
        const mica__kinst *inst = &k->inst[i];
        b->same[i] = i;
        b->cell[i] = b->raw[i] = NO_CELL;
        if (inst->code == MICA__K_MAP && mica__chain_is_alias(inst)) {
            b->same[i] = b->same[inst->arg[0]];
            continue;
        }
        for (uint32_t a = 0; a < inst->n_arg; a++) {
            const uint32_t v = b->same[inst->arg[a]];
            b->uses[v]++;
            b->stores[v] += inst->code == MICA__K_STORE && inst->dtype == k->inst[v].dtype;
        }
    }
}

/* The cell of an operand has the number of its access. Constants follow, then the
 * result of the fold. */
static mica_status place_values(chain_builder *b, mica__chain *chain)
{
    const mica__kernel *k = b->k;
    for (uint32_t i = 0; i < k->n_access; i++) new_cell(b, chain_class_of(k->access[i].dtype));
    chain_const *constant = mica__arena_array(b->arena, (size_t)k->n_inst + 1, sizeof *constant);
    if (!constant) return mica__fail_memory("a chain", k->n_inst * sizeof *constant);
    for (uint32_t i = 0; i < k->n_inst; i++) {
        const mica__kinst *inst = &k->inst[i];
        if (inst->code == MICA__K_LOAD && b->v->move->take[inst->dtype]) b->raw[i] = (uint16_t)inst->access;
        else if (inst->code == MICA__K_LOAD || inst->code == MICA__K_IOTA) b->cell[i] = (uint16_t)inst->access;
        if (inst->code == MICA__K_FOLD) b->cell[i] = chain->fold_cell = new_cell(b, chain_class_of(inst->dtype));
        if (inst->code != MICA__K_CONST) continue;
        b->cell[i] = new_cell(b, chain_class_of(inst->dtype));
        constant[chain->n_constant++] = (chain_const){b->cell[i], inst->dtype, inst->value};
    }
    chain->constant = constant;
    return MICA_OK;
}

static mica_status init_chain_builder(chain_builder *b, mica__arena *scratch)
{
    const size_t n = (size_t)b->k->n_inst + 1;
    /* At most, per instruction: the value in the registers is spilled, three operands
     * are loaded and spilled, one is loaded, then the op, then rounding or wrapping. */
    const size_t most = 10 * n + 2;
    b->op = mica__arena_array(scratch, most, sizeof *b->op);
    b->same = mica__arena_array(scratch, n, sizeof *b->same);
    b->uses = mica__arena_array(scratch, n, sizeof *b->uses);
    b->stores = mica__arena_array(scratch, n, sizeof *b->stores);
    b->cell = mica__arena_array(scratch, n, sizeof *b->cell);
    b->in_slot = mica__arena_array(scratch, n, sizeof *b->in_slot);
    b->raw = mica__arena_array(scratch, n, sizeof *b->raw);
    b->tile_at = mica__arena_array(scratch, CHAIN_MAX_CELLS, sizeof *b->tile_at);
    if (scratch->failed) return mica__fail_memory("a chain", most * sizeof *b->op);
    return MICA_OK;
}

/* Panels are stored after the tiles. Without room for them transposed operands are gathered. */
static void place_panels(const chain_builder *b, chain_program *p)
{
    uint32_t turned = 0;
    for (uint32_t u = 0; u < p->n_use; u++) turned += p->use[u].turned;
    p->panel_at = b->tile_bytes;
    if (b->tile_bytes + turned * CHAIN_LINE * CHAIN_PANEL_BLOCKS * (uint32_t)b->t->block > CHAIN_TILE_BYTES)
        p->panel_rows = 0;
}

static mica_status build_chain(chain_builder *b, mica__arena *scratch, mica__chain **out)
{
    const mica__kernel *k = b->k;
    mica__chain *chain = mica__arena_alloc(b->arena, sizeof *chain);
    if (!chain) return mica__fail_memory("a chain", sizeof *chain);
    chain->variant = b->v;
    chain->table = b->t;
    chain->block = b->t->block;
    MICA_TRY(init_chain_builder(b, scratch));
    bool fits;
    MICA_TRY(mica__chain_plan_loops(k, b->arena, chain, &fits));
    if (!fits) return MICA_OK;
    count_uses(b);
    MICA_TRY(place_values(b, chain));
    const bool folds = chain->mode != CHAIN_NO_FOLD;
    if (folds) chain->before.op = build_chain_code(b, 0, k->fold + 1, chain->mode);
    chain->main.op = build_chain_code(b, folds ? k->fold + 1 : 0, k->n_inst, CHAIN_NO_FOLD);
    chain->tile_at = mica__arena_copy(b->arena, b->tile_at, b->n_cell * sizeof *b->tile_at);
    chain->n_cell = b->n_cell;
    place_panels(b, &chain->main);
    if (b->arena->failed) return mica__fail_memory("a chain", b->n_op * sizeof *b->op);
    if (!b->full) *out = chain;
    return MICA_OK;
}

mica_status mica__chain_build_for(const chain_variant *variant, const mica__kernel *k, mica__arena *arena,
                                  mica__chain **out)
{
    *out = NULL;
    chain_builder b = {.k = k, .v = variant, .t = variant->table, .arena = arena};
    mica__arena scratch; /* room for the worst case; most of it stays unused */
    mica__arena_init(&scratch);
    const mica_status status = build_chain(&b, &scratch, out);
    mica__arena_free(&scratch);
    return status;
}

mica_status mica__chain_build(const mica__kernel *k, mica__arena *arena, mica__chain **out)
{
    return mica__chain_build_for(mica__chain_best_variant(), k, arena, out);
}
