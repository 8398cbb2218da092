/* Applies rules.def to a function; see classify.h. */
#include "classify.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind {
    INTEGER,
    MULTIPLY,
    DIVISION,
    SHIFTING,
    FLOATING,
    FLOAT_DIVISION,
    MODIFIER,
    COMPARISON,
    SELECTING,
    CONVERSION,
    WIDENING,
    EXTENSION,
    NOTHING,
    BRANCHING,
    ADDRESSING,
    ACCESSING,
    CALLING
} kind;

static const kind kinds[] = {
#define OPCODE(text, id, kind) kind,
#include "rules.def"
};

static const struct call_row {
    const char *name;
    sm_cost first, second;
} calls[] = {
#define CALL(name, class1, class2) {name, SM_COST_##class1, SM_COST_##class2},
#include "rules.def"
};

void sm_apply(sm_classified *c, sm_rule rule) { c->applied[rule]++; }

static void cost(sm_meaning *m, sm_cost class, int number)
{
    if (class == SM_COST_FREE || number <= 0 || m->count == SM_OPERATIONS) return;
    m->operations[m->count].class = class;
    m->operations[m->count++].number = number;
}

/* ---- names of functions ---- */

static bool skip_name(ir_slice *s, ir_slice *name)
{
    int n = 0, digits = 0;
    while (digits < s->length && isdigit((unsigned char)s->at[digits])) n = n * 10 + s->at[digits++] - '0';
    if (!digits || digits + n > s->length) return false;
    *name = (ir_slice){s->at + digits, n};
    *s = (ir_slice){s->at + digits + n, s->length - digits - n};
    return true;
}

ir_slice sm_plain_name(ir_slice symbol, bool *is_precise, bool *is_fast)
{
    ir_slice rest = symbol, name = symbol;
    if (rest.length > 2 && rest.at[0] == '_' && rest.at[1] == 'Z') {
        const bool nested = rest.at[2] == 'N';
        rest = (ir_slice){rest.at + 2 + nested, rest.length - 2 - nested};
        while (skip_name(&rest, &name)) {
            if (is_precise && ir_slice_is(name, "precise")) *is_precise = true;
            if (is_fast && ir_slice_is(name, "fast")) *is_fast = true;
        }
    }
    return name;
}

static const struct call_row *find_call(ir_slice symbol)
{
    const ir_slice name = sm_plain_name(symbol, NULL, NULL);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const int n = (int)strlen(calls[i].name);
        if (name.length < n || memcmp(name.at, calls[i].name, (size_t)n) != 0) continue;
        if (name.length == n || (name.at[n] == '.' && name.at[0] == 'l')) return &calls[i];
    }
    return NULL;
}

/* Functions of metal:: that have no row are long sequences: MATH. */
static bool is_metal(ir_slice symbol) { return symbol.length > 9 && memcmp(symbol.at, "_ZN5metal", 9) == 0; }

static bool is_intrinsic(ir_slice symbol) { return symbol.length > 5 && memcmp(symbol.at, "llvm.", 5) == 0; }

bool sm_is_operation(ir_slice symbol) { return find_call(symbol) || is_metal(symbol) || is_intrinsic(symbol); }

/* ---- values that are the same for a dispatch ---- */

/* sm_kind (shim/entry.h): sizes, not positions. */
static bool is_size(ir_slice callee)
{
    static const char mark[] = "L7sm_kind";
    for (int i = 0; i + (int)sizeof mark < callee.length; i++) {
        if (memcmp(callee.at + i, mark, sizeof mark - 1) != 0) continue;
        const int which = atoi(callee.at + i + sizeof mark - 1);
        return (which >= 3 && which <= 6) || (which >= 10 && which <= 13) || which >= 16;
    }
    return false;
}

static bool all_uniform(const sm_classified *c, const ir_instruction *i)
{
    for (int k = 0; k < i->count; k++) {
        const int v = c->function.operands[i->first + k].value;
        if (v == IR_ARGUMENT || (v >= 0 && !c->meanings[v].uniform)) return false;
    }
    return true;
}

static bool is_uniform(const sm_classified *c, int v)
{
    const ir_instruction *i = &c->function.instructions[v];
    switch (i->opcode) {
    case IR_PHI:
    case IR_ALLOCA:
    case IR_STORE:
    case IR_BR:
    case IR_SWITCH:
    case IR_RET:
    case IR_ATOMICRMW:
    case IR_CMPXCHG: return false;
    case IR_LOAD:
        return all_uniform(c, i) &&
               (c->meanings[v].space == SM_SPACE_CONSTANT || c->meanings[v].space == SM_SPACE_RUNTIME);
    case IR_CALL: break;
    default: return all_uniform(c, i);
    }
    if (i->assembler) return all_uniform(c, i);
    const ir_slice name = sm_plain_name(i->callee, NULL, NULL);
    if (ir_slice_is(name, "sm_count_buffer") || ir_slice_is(name, "sm_count_local")) return true;
    if (ir_slice_is(name, "sm_count_position")) return is_size(i->callee);
    const struct call_row *row = find_call(i->callee);
    const bool pure = row && row->first != SM_COST_SHUFFLE && row->first != SM_COST_SHUFFLE_RANDOM &&
                      row->first != SM_COST_REDUCTION && row->first != SM_COST_MATRIX &&
                      row->first != SM_COST_BARRIER && row->first != SM_COST_ATOMIC;
    return pure && i->name.length && all_uniform(c, i);
}

static void find_uniform(sm_classified *c)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int v = 0; v < c->function.count; v++) {
            if (c->meanings[v].uniform || !is_uniform(c, v)) continue;
            c->meanings[v].uniform = changed = true;
        }
    }
}

static bool list_users(sm_classified *c)
{
    const ir_function *f = &c->function;
    c->users = calloc((size_t)f->operands_count + 1, sizeof *c->users);
    c->users_at = calloc((size_t)f->count + 2, sizeof *c->users_at);
    if (!c->users || !c->users_at) return false;
    for (int v = 0; v < f->count; v++) c->users_at[v + 1] = c->users_at[v] + f->instructions[v].uses;
    for (int u = f->count - 1; u >= 0; u--) { /* filled from the end of each list, moved back below */
        const ir_instruction *i = &f->instructions[u];
        for (int k = i->count - 1; k >= 0; k--) {
            const int v = f->operands[i->first + k].value;
            if (v >= 0) c->users[--c->users_at[v + 1]] = u;
        }
    }
    for (int v = 0; v < f->count; v++) c->users_at[v] = c->users_at[v + 1];
    c->users_at[f->count] = f->count ? c->users_at[f->count - 1] + f->instructions[f->count - 1].uses : 0;
    return true;
}

static void find_users(sm_classified *c)
{
    const ir_function *f = &c->function;
    for (int v = 0; v < f->count; v++) c->meanings[v].compared_only = true;
    for (int u = 0; u < f->count; u++) {
        const ir_instruction *i = &f->instructions[u];
        for (int k = 0; k < i->count; k++) {
            const int v = f->operands[i->first + k].value;
            if (v < 0) continue;
            const bool compares = (i->opcode == IR_SELECTION && k == 0) || i->opcode == IR_BR || i->opcode == IR_ZEXT ||
                                  i->opcode == IR_SEXT || i->opcode == IR_UITOFP;
            if (!compares) c->meanings[v].compared_only = false;
            const int bits = i->opcode == IR_TRUNC ? i->type.bits : 64;
            if (bits > c->meanings[v].kept_bits) c->meanings[v].kept_bits = bits;
        }
    }
}

/* ---- folding ---- */

/* A part of a vector in an integer of 32 or 64 bits: moving it to its place, or from it, is a choice of registers. */
static bool is_piece(const sm_classified *c, const ir_instruction *i)
{
    int64_t n = 0;
    const ir_instruction *from = ir_source(&c->function, i, 0);
    switch (i->opcode) {
    case IR_ZEXT: return i->from.bits >= 16 && i->type.bits > i->from.bits;
    case IR_LSHR:
        if (!ir_number(ir_operand_of(&c->function, i, 1), &n) || n % 16 != 0 || i->type.bits < 32) return false;
        return (i->type.bits == 64 && n == 32) ||
               c->meanings[i - c->function.instructions].kept_bits <= (n % 32 == 0 ? 32 : 16);
    case IR_SHL:
        if (!ir_number(ir_operand_of(&c->function, i, 1), &n) || n % 16 != 0 || i->type.bits < 32) return false;
        return (i->type.bits == 64 && n == 32) || (from && from->opcode == IR_ZEXT && from->from.bits <= 16);
    case IR_OR: {
        const ir_instruction *other = ir_source(&c->function, i, 1);
        if (i->type.bits < 32 || !from || !other) return false;
        const bool shifts = from->opcode == IR_SHL || other->opcode == IR_SHL;
        const bool nested = from->opcode == IR_OR || other->opcode == IR_OR;
        return (shifts || nested) && is_piece(c, from) && is_piece(c, other);
    }
    default: return false;
    }
}

static bool adds(const ir_instruction *i)
{
    return i->opcode == IR_ADD || i->opcode == IR_SUB || (i->opcode == IR_OR && ir_contains(i->line, " disjoint "));
}

/* Whether additions and indices of addresses are the only users, but for those that cost nothing themselves. */
static bool is_only_added(const sm_classified *c, int v)
{
    for (int k = c->users_at[v]; k < c->users_at[v + 1]; k++) {
        const ir_instruction *user = &c->function.instructions[c->users[k]];
        if (c->meanings[c->users[k]].folded || adds(user) || user->opcode == IR_GEP) continue;
        if ((user->opcode != IR_ZEXT && user->opcode != IR_SEXT) || !is_only_added(c, c->users[k])) return false;
    }
    return true;
}

/* A shift left by 1 to 4 is part of the instructions that add it. */
static bool is_shifted_operand(const sm_classified *c, const ir_instruction *i)
{
    int64_t n;
    return i->opcode == IR_SHL && ir_number(ir_operand_of(&c->function, i, 1), &n) && n >= 1 && n <= 4 &&
           is_only_added(c, (int)(i - c->function.instructions));
}

static bool is_low_mask(const ir_operand *o)
{
    int64_t n;
    return ir_number(o, &n) && n > 0 && (n & (n + 1)) == 0;
}

static void fold_products(sm_classified *c)
{
    const ir_function *f = &c->function;
    for (int v = 0; v < f->count; v++) {
        const ir_instruction *i = &f->instructions[v];
        if ((i->opcode != IR_FADD && i->opcode != IR_FSUB) || c->meanings[v].uniform) continue;
        for (int k = 0; k < 2; k++) {
            const ir_instruction *from = ir_source(f, i, k);
            while (from && from->opcode == IR_FNEG && from->uses == 1) from = ir_source(f, from, 0);
            if (!from || from->opcode != IR_FMUL || from->uses != 1) continue;
            sm_meaning *m = &c->meanings[from - f->instructions];
            if (m->uniform || m->folded) continue;
            m->folded = true;
            sm_apply(c, SM_RULE_CONTRACT);
            break;
        }
    }
}

/* ---- the kinds ---- */

static void integer(sm_classified *c, const ir_instruction *i, sm_meaning *m)
{
    const ir_instruction *a = ir_source(&c->function, i, 0), *b = ir_source(&c->function, i, 1);
    if (i->type.bits == 1 && i->opcode == IR_XOR && !b) { /* not: the comparison is inverted */
        sm_apply(c, SM_RULE_COMPARE);
        return;
    }
    if (is_piece(c, i)) {
        sm_apply(c, SM_RULE_PIECES);
        return;
    }
    const bool masks = i->opcode == IR_AND && a && a->opcode == IR_LSHR && a->uses == 1 && !is_piece(c, a);
    if (masks && !c->meanings[a - c->function.instructions].uniform && is_low_mask(ir_operand_of(&c->function, i, 1)) &&
        ir_operand_of(&c->function, a, 1)->value == IR_CONSTANT) {
        sm_apply(c, SM_RULE_BIT_EXTRACT);
        return;
    }
    const ir_instruction *both[] = {a, b};
    for (int k = 0; k < 2 && i->opcode == IR_ADD && i->type.bits <= 32; k++) {
        const ir_instruction *p = both[k];
        if (!p || p->opcode != IR_MUL || p->uses != 1 || c->meanings[p - c->function.instructions].uniform) continue;
        sm_apply(c, SM_RULE_MUL_ADD);
        return;
    }
    cost(m, i->type.bits > 32 ? SM_COST_INT64 : SM_COST_INT, i->type.elements);
}

/* The value fits 32 bits: an extension, or a number. */
static bool is_narrow(const sm_classified *c, const ir_instruction *i, int index)
{
    const ir_instruction *from = ir_source(&c->function, i, index);
    int64_t n;
    if (from) return (from->opcode == IR_ZEXT || from->opcode == IR_SEXT) && from->from.bits <= 32;
    return ir_number(ir_operand_of(&c->function, i, index), &n) && n >= INT32_MIN && n <= UINT32_MAX;
}

static void multiply(sm_classified *c, const ir_instruction *i, sm_meaning *m)
{
    if (i->type.bits <= 32) {
        cost(m, SM_COST_INT_MUL, i->type.elements);
    } else if (is_narrow(c, i, 0) && is_narrow(c, i, 1)) {
        sm_apply(c, SM_RULE_MUL_WIDE);
        cost(m, SM_COST_INT_MUL_HIGH, i->type.elements);
    } else {
        cost(m, SM_COST_INT_MUL_64, i->type.elements);
    }
}

static void shifting(sm_classified *c, const ir_instruction *i, sm_meaning *m)
{
    if (is_piece(c, i)) {
        sm_apply(c, SM_RULE_PIECES);
    } else if (i->type.bits <= 32 && is_shifted_operand(c, i)) {
        sm_apply(c, SM_RULE_SHIFT_ADD);
    } else {
        const bool known = ir_operand_of(&c->function, i, 1)->value == IR_CONSTANT;
        const int words = i->type.bits > 32 ? 2 : 1;
        cost(m, known ? SM_COST_SHIFT : SM_COST_SHIFT_VARIABLE, words * i->type.elements);
    }
}

static void division(sm_classified *c, const ir_instruction *i, sm_meaning *m)
{
    const int n = i->type.elements * (i->type.bits > 32 ? 4 : 1);
    if (ir_operand_of(&c->function, i, 1)->value != IR_CONSTANT) {
        cost(m, SM_COST_INT_DIVIDE, n);
        return;
    }
    sm_apply(c, SM_RULE_DIVIDE_KNOWN);
    cost(m, SM_COST_INT_MUL_HIGH, n);
    cost(m, SM_COST_SHIFT, n);
    if (i->opcode == IR_UREM || i->opcode == IR_SREM) cost(m, SM_COST_INT_MUL, n);
}

static void float_division(sm_classified *c, const ir_instruction *i, sm_meaning *m)
{
    const ir_slice top = ir_operand_of(&c->function, i, 0)->text;
    if (c->precise) {
        sm_apply(c, SM_RULE_PRECISE);
        cost(m, SM_COST_DIVIDE_PRECISE, i->type.elements);
    } else if (ir_slice_is(top, "1.000000e+00") || ir_slice_is(top, "0xH3C00")) {
        sm_apply(c, SM_RULE_RECIPROCAL);
        cost(m, SM_COST_RECIPROCAL, i->type.elements);
    } else {
        cost(m, SM_COST_DIVIDE, i->type.elements);
    }
    if (i->opcode == IR_FREM) cost(m, SM_COST_CONVERT, i->type.elements);
}

static void extension(sm_classified *c, const ir_instruction *i, sm_meaning *m)
{
    if (i->from.bits == 1) {
        cost(m, SM_COST_SELECT, i->type.elements); /* c ? 1 : 0 */
    } else if (i->opcode == IR_SEXT && i->from.bits == 8) {
        sm_apply(c, SM_RULE_SIGN_BYTE);
        cost(m, SM_COST_SHIFT, i->type.elements);
    } else {
        sm_apply(c, SM_RULE_EXTEND);
    }
}

static void addressing(sm_classified *c, const ir_instruction *i, sm_meaning *m)
{
    const ir_operand *base = ir_operand_of(&c->function, i, 0);
    bool constant = true;
    for (int k = 1; k < i->count; k++) constant &= ir_operand_of(&c->function, i, k)->value == IR_CONSTANT;
    if (constant) {
        sm_apply(c, SM_RULE_GEP_CONSTANT);
    } else if (m->space == SM_SPACE_LOCAL || m->space == SM_SPACE_THREAD) {
        sm_apply(c, SM_RULE_GEP_LOCAL);
        cost(m, SM_COST_ADDRESS, 1);
    } else if (base->value < 0 || c->meanings[base->value].uniform) {
        sm_apply(c, SM_RULE_GEP_INDEX);
        cost(m, SM_COST_ADDRESS, 1);
    } else {
        sm_apply(c, SM_RULE_GEP_BASE);
        cost(m, SM_COST_ADDRESS_64, 1);
    }
}

static sm_cost class_of_space(sm_space space)
{
    switch (space) {
    case SM_SPACE_CONSTANT: return SM_COST_CONSTANT_MEMORY;
    case SM_SPACE_LOCAL: return SM_COST_LOCAL_MEMORY;
    case SM_SPACE_THREAD: return SM_COST_THREAD_MEMORY;
    case SM_SPACE_RUNTIME: return SM_COST_FREE;
    case SM_SPACE_DEVICE:
    case SM_SPACE_UNKNOWN: break;
    }
    return SM_COST_DEVICE_MEMORY;
}

static void accessing(const ir_instruction *i, sm_meaning *m)
{
    const bool atomic = i->opcode == IR_ATOMICRMW || i->opcode == IR_CMPXCHG;
    if (atomic) cost(m, SM_COST_ATOMIC, 1);
    else if (!m->follower) cost(m, class_of_space(m->space), (m->bytes + 15) / 16);
}

/* ---- calls ---- */

static sm_space space_of_argument(const sm_classified *c, const ir_instruction *i, int index)
{
    const ir_instruction *from = ir_source(&c->function, i, index);
    const sm_space space = from ? c->meanings[from - c->function.instructions].space : SM_SPACE_UNKNOWN;
    return space == SM_SPACE_UNKNOWN ? SM_SPACE_DEVICE : space;
}

/* memcpy, memmove, memset: an access to each side. */
static bool moves_memory(sm_classified *c, const ir_instruction *i, sm_meaning *m)
{
    const bool sets = memcmp(i->callee.at, "llvm.memset", 11) == 0;
    if (!sets && memcmp(i->callee.at, "llvm.memcpy", 11) != 0 && memcmp(i->callee.at, "llvm.memmove", 12) != 0)
        return false;
    int64_t length = 16;
    ir_number(ir_operand_of(&c->function, i, 2), &length);
    m->bytes = (int)length;
    for (int k = 0; k < (sets ? 1 : 2); k++)
        cost(m, class_of_space(space_of_argument(c, i, k)), (int)((length + 15) / 16));
    return true;
}

static sm_cost precise_class(sm_cost class)
{
    if (class == SM_COST_DIVIDE) return SM_COST_DIVIDE_PRECISE;
    if (class == SM_COST_SQRT) return SM_COST_SQRT_PRECISE;
    return class == SM_COST_TRIG ? SM_COST_TRIG_PRECISE : class;
}

static bool known_amounts(const sm_classified *c, const ir_instruction *i)
{
    for (int k = i->count > 3 ? 2 : 1; k < i->count; k++)
        if (ir_operand_of(&c->function, i, k)->value != IR_CONSTANT) return false;
    return true;
}

static void calling(sm_classified *c, const ir_instruction *i, sm_meaning *m)
{
    if (!i->callee.length || (is_intrinsic(i->callee) && moves_memory(c, i, m))) return;
    bool is_precise = false, is_fast = false;
    const ir_slice name = sm_plain_name(i->callee, &is_precise, &is_fast);
    const struct call_row *row = find_call(i->callee);
    if (ir_slice_is(name, "sm_matrix_load") || ir_slice_is(name, "sm_matrix_store")) {
        cost(m, class_of_space(space_of_argument(c, i, ir_slice_is(name, "sm_matrix_store") ? i->count - 3 : 0)), 1);
        return;
    }
    if (!row) {
        if (is_metal(i->callee) || is_intrinsic(i->callee)) cost(m, SM_COST_MATH, i->type.elements);
        return;
    }
    const int n = row->first == SM_COST_MATRIX ? 1 : i->type.elements;
    sm_cost first = row->first;
    if (is_precise || (c->precise && !is_fast)) {
        if (precise_class(first) != first) sm_apply(c, SM_RULE_PRECISE);
        first = precise_class(first);
    }
    if (first == SM_COST_SHUFFLE_RANDOM) {
        const ir_instruction *lane = ir_source(&c->function, i, i->count - 1);
        if (!lane || c->meanings[lane - c->function.instructions].uniform) {
            sm_apply(c, SM_RULE_UNIFORM_SHUFFLE);
            first = SM_COST_SHUFFLE;
        }
    }
    if (first == SM_COST_SHIFT_VARIABLE && known_amounts(c, i)) {
        sm_apply(c, SM_RULE_KNOWN_AMOUNT);
        first = SM_COST_SHIFT;
    }
    if (ir_slice_is(name, "llvm.fabs") || (name.length > 9 && !memcmp(name.at, "llvm.fabs", 9)))
        sm_apply(c, SM_RULE_MODIFIER);
    cost(m, first, n);
    cost(m, row->second, n);
}

/* ---- one instruction ---- */

static void classify(sm_classified *c, int v)
{
    const ir_instruction *i = &c->function.instructions[v];
    sm_meaning *m = &c->meanings[v];
    const int n = i->type.elements;
    if (m->folded) return;
    const kind k = kinds[i->opcode];
    if (m->uniform) {
        if (k != NOTHING && k != CALLING && k != ADDRESSING) sm_apply(c, SM_RULE_PREAMBLE);
        return;
    }
    switch (k) {
    case INTEGER: integer(c, i, m); break;
    case MULTIPLY: multiply(c, i, m); break;
    case DIVISION: division(c, i, m); break;
    case SHIFTING: shifting(c, i, m); break;
    case FLOATING: cost(m, SM_COST_FLOAT, n); break;
    case FLOAT_DIVISION: float_division(c, i, m); break;
    case MODIFIER: sm_apply(c, SM_RULE_MODIFIER); break;
    case COMPARISON:
        if (m->compared_only) sm_apply(c, SM_RULE_COMPARE);
        else cost(m, i->from.bits > 32 && i->from.kind == IR_INT ? SM_COST_INT64 : SM_COST_SELECT, n);
        break;
    case SELECTING: cost(m, SM_COST_SELECT, n * (i->type.bits > 32 ? 2 : 1)); break;
    case CONVERSION: cost(m, SM_COST_CONVERT, n); break;
    case WIDENING: sm_apply(c, SM_RULE_HALF_WIDEN); break;
    case EXTENSION: extension(c, i, m); break;
    case NOTHING:
        if (i->opcode == IR_TRUNC) sm_apply(c, SM_RULE_EXTEND);
        break;
    case BRANCHING: cost(m, SM_COST_SELECT, c->function.blocks[i->block].successors_count - 1); break;
    case ADDRESSING: addressing(c, i, m); break;
    case ACCESSING: accessing(i, m); break;
    case CALLING: calling(c, i, m); break;
    }
}

bool sm_classify(sm_classified *c, const char *text, bool precise, char **message)
{
    memset(c, 0, sizeof *c);
    c->precise = precise;
    if (!ir_parse(&c->function, text, message)) return false;
    c->meanings = calloc((size_t)c->function.count + 1, sizeof *c->meanings);
    if (!c->meanings || !list_users(c)) {
        sm_set_message(message, "out of memory");
        sm_classified_free(c);
        return false;
    }
    sm_find_addresses(c);
    find_uniform(c);
    find_users(c);
    sm_find_neighbours(c);
    fold_products(c);
    for (int v = 0; v < c->function.count; v++) classify(c, v);
    return true;
}

void sm_classified_free(sm_classified *c)
{
    ir_free(&c->function);
    free(c->meanings);
    free(c->users);
    free(c->users_at);
    c->meanings = NULL;
    c->users = c->users_at = NULL;
}
