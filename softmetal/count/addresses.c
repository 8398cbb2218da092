/* Where pointers point, and which accesses of a block are neighbours. A GPU loads or stores up to 16 bytes of
 * neighbours with one instruction; LLVM has one instruction for each element. */
#include "classify.h"

#include <string.h>

enum { GROUP_BYTES = 16, GROUP_MOST = 64 /* accesses that are compared with a new one */ };

int sm_bytes_of(ir_type type) { return (type.bits + 7) / 8 * type.elements; }

static sm_space space_of_call(const ir_instruction *i)
{
    const ir_slice name = sm_plain_name(i->callee, NULL, NULL);
    if (ir_slice_is(name, "sm_count_buffer"))
        return ir_contains(i->callee, "Lb1E") ? SM_SPACE_CONSTANT : SM_SPACE_DEVICE;
    if (ir_slice_is(name, "sm_count_local")) return SM_SPACE_LOCAL;
    if (ir_contains(i->callee, "llvm.threadlocal.address")) return SM_SPACE_LOCAL;
    return SM_SPACE_UNKNOWN;
}

static sm_space space_of_operand(const sm_classified *c, const ir_operand *o)
{
    if (o->value >= 0) return c->meanings[o->value].space;
    if (ir_slice_is(o->text, "@sm_rt")) return SM_SPACE_RUNTIME;
    /* other variables of the module are constants, also as getelementptr (...) */
    if (o->value == IR_GLOBAL || ir_contains(o->text, "@")) return SM_SPACE_CONSTANT;
    return SM_SPACE_UNKNOWN;
}

static sm_space space_of(const sm_classified *c, const ir_instruction *i)
{
    const ir_function *f = &c->function;
    sm_space space = SM_SPACE_UNKNOWN;
    if (i->opcode == IR_ALLOCA) return SM_SPACE_THREAD;
    if (i->opcode == IR_CALL && !i->assembler) return space_of_call(i);
    if (i->opcode == IR_LOAD) { /* a pointer in memory: of the runtime, or of a struct */
        const sm_space from = space_of_operand(c, ir_operand_of(f, i, 0));
        return from == SM_SPACE_RUNTIME ? SM_SPACE_RUNTIME : SM_SPACE_UNKNOWN;
    }
    const int first = i->opcode == IR_SELECTION ? 1 : 0, last = i->opcode == IR_GEP ? 1 : i->count;
    for (int k = first; k < last && space == SM_SPACE_UNKNOWN; k++) space = space_of_operand(c, ir_operand_of(f, i, k));
    return space;
}

static int64_t element_bytes(const ir_instruction *i)
{
    const ir_type type = ir_type_of(i->element);
    return type.kind == IR_AGGREGATE ? 0 : sm_bytes_of(type);
}

/* Splits an index into a variable and a constant: extensions, then an addition. */
static int index_of(const ir_function *f, int v, int64_t *constant)
{
    const ir_instruction *i = &f->instructions[v];
    while ((i->opcode == IR_ZEXT || i->opcode == IR_SEXT) && f->operands[i->first].value >= 0) {
        v = f->operands[i->first].value;
        i = &f->instructions[v];
    }
    int64_t n;
    const bool adds = i->opcode == IR_ADD || (i->opcode == IR_OR && ir_contains(i->line, " disjoint "));
    if (!adds || f->operands[i->first].value < 0 || !ir_number(&f->operands[i->first + 1], &n)) return v;
    *constant += n;
    return f->operands[i->first].value;
}

static sm_address address_of(const sm_classified *c, int v)
{
    const ir_function *f = &c->function;
    const ir_instruction *i = &f->instructions[v];
    sm_address a = {v, -1, 0, 0};
    if (i->opcode != IR_GEP || i->count != 2) return a;
    const int64_t size = element_bytes(i);
    const int base = f->operands[i->first].value, index = f->operands[i->first + 1].value;
    int64_t n;
    if (base < 0 || size == 0) return a;
    const sm_address *b = &c->meanings[base].address;
    if (ir_number(&f->operands[i->first + 1], &n)) {
        a = *b;
        a.offset += n * size;
    } else if (index >= 0 && b->index < 0) {
        n = 0;
        a = (sm_address){b->base, index_of(f, index, &n), size, b->offset};
        a.offset += n * size;
    }
    return a;
}

void sm_find_addresses(sm_classified *c)
{
    const ir_function *f = &c->function;
    for (bool changed = true; changed;) {
        changed = false;
        for (int v = 0; v < f->count; v++) {
            const ir_instruction *i = &f->instructions[v];
            if (i->type.kind != IR_POINTER || !i->name.length) continue;
            sm_meaning *m = &c->meanings[v];
            const sm_space space = space_of(c, i);
            const sm_address address = address_of(c, v);
            changed |= space != m->space || memcmp(&address, &m->address, sizeof address) != 0;
            m->space = space;
            m->address = address;
        }
    }
    for (int v = 0; v < f->count; v++) {
        const ir_instruction *i = &f->instructions[v];
        const bool stores = i->opcode == IR_STORE;
        if (i->opcode != IR_LOAD && !stores && i->opcode != IR_ATOMICRMW && i->opcode != IR_CMPXCHG) continue;
        const ir_operand *o = ir_operand_of(f, i, stores ? 1 : 0);
        sm_meaning *m = &c->meanings[v];
        m->address = o->value >= 0 ? c->meanings[o->value].address : (sm_address){-1, -1, 0, 0};
        m->bytes = sm_bytes_of(i->type);
        const sm_space space = space_of_operand(c, o);
        m->space = space == SM_SPACE_UNKNOWN ? SM_SPACE_DEVICE : space;
    }
}

/* ---- neighbours ---- */

static bool groups(const sm_classified *c, int v)
{
    const ir_instruction *i = &c->function.instructions[v];
    const sm_space space = c->meanings[v].space;
    return (i->opcode == IR_LOAD || i->opcode == IR_STORE) && !ir_contains(i->line, " atomic ") &&
           c->meanings[v].address.base >= 0 && !c->meanings[v].uniform && space != SM_SPACE_RUNTIME &&
           space != SM_SPACE_THREAD;
}

/* Extends the group of `first` by `v` if together they have at most 16 bytes without a gap. */
static bool join(sm_classified *c, int first, int v)
{
    sm_meaning *a = &c->meanings[first];
    const sm_meaning *b = &c->meanings[v];
    if (a->address.base != b->address.base || a->address.index != b->address.index ||
        a->address.scale != b->address.scale ||
        c->function.instructions[first].opcode != c->function.instructions[v].opcode)
        return false;
    const int64_t start = b->address.offset - a->address.offset, end = start + b->bytes;
    const int64_t low = start < a->low ? start : a->low;
    const int64_t high = end > a->low + a->bytes ? end : a->low + a->bytes;
    if (start > a->low + a->bytes || end < a->low || high - low > GROUP_BYTES) return false;
    a->low = low;
    a->bytes = (int)(high - low);
    return true;
}

/* The address of a follower is not needed: its getelementptr, and the addition of its index, cost nothing. */
static void drop_address(sm_classified *c, int v)
{
    const ir_function *f = &c->function;
    const ir_instruction *i = &f->instructions[v];
    int at = f->operands[i->first + (i->opcode == IR_STORE ? 1 : 0)].value;
    while (at >= 0 && f->instructions[at].uses == 1) {
        const ir_instruction *p = &f->instructions[at];
        int64_t n;
        if (p->opcode == IR_GEP && p->count == 2) at = f->operands[p->first + 1].value;
        else if (p->opcode == IR_ZEXT || p->opcode == IR_SEXT) at = f->operands[p->first].value;
        else if ((p->opcode != IR_ADD && p->opcode != IR_OR) || !ir_number(&f->operands[p->first + 1], &n)) return;
        else at = -1;
        c->meanings[p - f->instructions].folded = true;
    }
}

void sm_find_neighbours(sm_classified *c)
{
    const ir_function *f = &c->function;
    for (int b = 0; b < f->blocks_count; b++) {
        int open[GROUP_MOST], count = 0;
        const ir_block *block = &f->blocks[b];
        for (int v = block->first; v < block->first + block->count; v++) {
            const ir_opcode op = f->instructions[v].opcode;
            if (op == IR_CALL && f->instructions[v].callee.length && ir_contains(f->instructions[v].callee, "barrier"))
                count = 0;
            if (!groups(c, v)) continue;
            int k = count;
            while (--k >= 0 && !join(c, open[k], v)) continue;
            if (k >= 0) {
                c->meanings[v].follower = true;
                drop_address(c, v);
                sm_apply(c, SM_RULE_NEIGHBOURS);
            } else {
                if (count == GROUP_MOST) memmove(open, open + 1, sizeof open - sizeof *open), count--;
                open[count++] = v;
            }
        }
    }
}
