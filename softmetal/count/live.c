/* An estimate of the registers: the values live at the widest point, in 16-bit registers.
 *
 * An instruction that costs nothing has no register: its users keep its operands live. Values that are the same for a
 * dispatch are in other registers. The compiler of Apple orders instructions to lower the number; the order here is
 * that of LLVM, which does not. */
#include "classify.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 64 };

typedef struct liveness {
    const sm_classified *c;
    int words;
    uint64_t *in; /* [blocks][words]: live where a block begins, phis included */
    uint64_t *now;
} liveness;

static bool has_register(const sm_classified *c, int v)
{
    const ir_instruction *i = &c->function.instructions[v];
    const sm_meaning *m = &c->meanings[v];
    if (m->uniform || !i->name.length || i->opcode == IR_ALLOCA || i->type.kind == IR_VOID) return false;
    return m->count > 0 || i->opcode == IR_PHI || i->opcode == IR_LOAD || (i->opcode == IR_CALL && !i->assembler);
}

static int size_of(const sm_classified *c, int v)
{
    const ir_instruction *i = &c->function.instructions[v];
    const sm_meaning *m = &c->meanings[v];
    if (i->type.kind == IR_AGGREGATE) return 8; /* two words of a vector that a function returns */
    if (i->type.kind == IR_POINTER) {
        const bool narrow = m->space == SM_SPACE_LOCAL || m->space == SM_SPACE_THREAD;
        return narrow || (m->count && m->operations[0].class == SM_COST_ADDRESS) ? 2 : 4;
    }
    return (i->type.bits + 15) / 16 * i->type.elements;
}

static bool test(const uint64_t *set, int v) { return set[v / WORD] >> (v % WORD) & 1; }

static void use(const liveness *l, uint64_t *set, int v)
{
    if (v < 0 || l->c->meanings[v].uniform) return;
    if (has_register(l->c, v)) {
        set[v / WORD] |= (uint64_t)1 << (v % WORD);
        return;
    }
    const ir_instruction *i = &l->c->function.instructions[v];
    for (int k = 0; k < i->count; k++) use(l, set, l->c->function.operands[i->first + k].value);
}

/* Adds to now what is live at the end of a block: what its successors need. */
static void live_out(liveness *l, int b)
{
    const ir_function *f = &l->c->function;
    memset(l->now, 0, (size_t)l->words * sizeof *l->now);
    for (int e = 0; e < f->blocks[b].successors_count; e++) {
        const int s = f->edges[f->blocks[b].successors + e];
        const uint64_t *in = l->in + (size_t)s * (size_t)l->words;
        for (int w = 0; w < l->words; w++) l->now[w] |= in[w];
    }
    for (int e = 0; e < f->blocks[b].successors_count; e++) {
        const ir_block *s = &f->blocks[f->edges[f->blocks[b].successors + e]];
        for (int v = s->first; v < s->body; v++) l->now[v / WORD] &= ~((uint64_t)1 << (v % WORD));
    }
    for (int e = 0; e < f->blocks[b].successors_count; e++) {
        const ir_block *s = &f->blocks[f->edges[f->blocks[b].successors + e]];
        for (int v = s->first; v < s->body; v++) {
            const ir_instruction *phi = &f->instructions[v];
            for (int k = 0; k < phi->count; k++)
                if (f->operands[phi->first + k].block == b) use(l, l->now, f->operands[phi->first + k].value);
        }
    }
}

static int width_of(const liveness *l)
{
    int width = 0;
    for (int w = 0; w < l->words; w++)
        for (uint64_t bits = l->now[w]; bits; bits &= bits - 1)
            width += size_of(l->c, w * WORD + __builtin_ctzll(bits));
    return width;
}

/* Walks a block backwards from its end; returns the widest point. */
static int walk(liveness *l, int b)
{
    const ir_function *f = &l->c->function;
    const ir_block *block = &f->blocks[b];
    live_out(l, b);
    int width = width_of(l), widest = width;
    for (int v = block->first + block->count - 1; v >= block->body; v--) {
        const ir_instruction *i = &f->instructions[v];
        if (test(l->now, v)) {
            l->now[v / WORD] &= ~((uint64_t)1 << (v % WORD));
            width -= size_of(l->c, v);
        }
        const sm_meaning *m = &l->c->meanings[v];
        const bool acts = m->count > 0 || has_register(l->c, v) || i->opcode == IR_STORE || i->opcode == IR_BR ||
                          i->opcode == IR_SWITCH || i->opcode == IR_CALL;
        if (!acts || m->uniform) continue;
        for (int k = 0; k < i->count; k++) use(l, l->now, f->operands[i->first + k].value);
        width = width_of(l);
        if (width > widest) widest = width;
    }
    for (int v = block->first; v < block->body; v++) l->now[v / WORD] |= (uint64_t)1 << (v % WORD);
    return widest;
}

int sm_registers(const sm_classified *c)
{
    const ir_function *f = &c->function;
    liveness l = {c, (f->count + WORD - 1) / WORD + 1, NULL, NULL};
    l.in = calloc((size_t)f->blocks_count * (size_t)l.words, sizeof *l.in);
    l.now = calloc((size_t)l.words, sizeof *l.now);
    int widest = l.in && l.now ? 0 : -1;
    for (bool changed = widest >= 0; changed;) {
        changed = false;
        widest = 0;
        for (int b = f->blocks_count - 1; b >= 0; b--) {
            const int width = walk(&l, b);
            uint64_t *in = l.in + (size_t)b * (size_t)l.words;
            if (memcmp(in, l.now, (size_t)l.words * sizeof *in) != 0) {
                memcpy(in, l.now, (size_t)l.words * sizeof *in);
                changed = true;
            }
            if (width > widest) widest = width;
        }
    }
    free(l.in);
    free(l.now);
    return widest;
}
