/* Rewrites the text of a module; see pass.h. The functions of the kernel's author are counted: the entry, and what it
 * calls and LLVM did not inline. Functions of the shim are operations, and stay as they are.
 *
 * Each block gets a counter of the current thread. Accesses to device, constant and threadgroup memory call
 * sm_count_hook with the address, before they happen. */
#include "pass.h"

#include "../shim/abi.h"
#include "classify.h"

#include <stdlib.h>
#include <string.h>

static const char host_target[] = "target triple = \"", host_layout[] = "target datalayout = \"";
static const char other_triple[] = "spir64-unknown-unknown"; /* clang has no code generator for it: none is asked */

enum { MOST_FUNCTIONS = 256 };

typedef struct pass {
    const char *text;
    sm_classified *functions[MOST_FUNCTIONS];
    int count;
    bool precise;
    unsigned sites, blocks;
    unsigned hooks; /* a number for the names of values */
    int registers;
    unsigned applied[SM_RULES];
    sm_text operations, thread_bytes; /* thread_bytes: a constant expression */
    char **message;
} pass;

/* ---- targets ---- */

static ir_slice quoted(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    if (!at) return (ir_slice){text, 0};
    at += strlen(before);
    return (ir_slice){at, (int)strcspn(at, "\"")};
}

static void add_without(sm_text *out, const char *at, size_t length, const char *word)
{
    const size_t n = strlen(word);
    for (const char *end = at + length; at < end;) {
        const char *found = memmem(at, (size_t)(end - at), word, n);
        if (!found) found = end;
        sm_text_add(out, at, (size_t)(found - at));
        if (found == end) return;
        at = found + n;
        at += strcspn(at, "\"") + 1; /* its value */
    }
}

bool sm_count_retarget(const sm_text *in, sm_text *out, char **message)
{
    const ir_slice layout = quoted(in->bytes, host_layout), triple = quoted(in->bytes, host_target);
    const char *native = layout.length ? strstr(layout.at, "-n") : NULL;
    if (!native || native > layout.at + layout.length || !triple.length) {
        sm_set_message(message, "SM_COUNT: the text of LLVM has no data layout");
        return false;
    }
    const char *last = native + 2 + strspn(native + 2, "0123456789:");
    sm_text rest = {0}, without = {0};
    sm_text_add(out, in->bytes, (size_t)(native - in->bytes));
    sm_text_print(out, "-n8:16:32");
    sm_text_add(out, last, (size_t)(triple.at - last));
    sm_text_print(out, "%s", other_triple);
    const char *after = triple.at + triple.length;
    add_without(&rest, after, (size_t)(in->bytes + in->length - after), "\"target-cpu\"=\"");
    if (!rest.failed) add_without(&without, rest.bytes, rest.length, "\"target-features\"=\"");
    if (!without.failed) add_without(out, without.bytes, without.length, "\"tune-cpu\"=\"");
    const bool good = !rest.failed && !without.failed && !out->failed;
    sm_text_free(&rest);
    sm_text_free(&without);
    if (!good) sm_set_message(message, "out of memory");
    return good;
}

/* ---- functions ---- */

static const char *find_definition(const char *text, ir_slice name)
{
    for (const char *at = text; (at = strstr(at, "\ndefine ")); at++) {
        const char *symbol = strchr(at + 1, '@');
        if (symbol && !memcmp(symbol + 1, name.at, (size_t)name.length) && symbol[1 + name.length] == '(')
            return at + 1;
    }
    return NULL;
}

/* The second field of sm_kernel_module. */
static ir_slice find_entry(const char *text)
{
    const char *at = strstr(text, "@sm_kernel_module = ");
    at = at ? strstr(at, "ptr @") : NULL;
    return at ? (ir_slice){at + 5, (int)strcspn(at + 5, ",")} : (ir_slice){text, 0};
}

static bool known(const pass *p, ir_slice name)
{
    for (int i = 0; i < p->count; i++) {
        const ir_slice n = p->functions[i]->function.name;
        if (n.length == name.length && !memcmp(n.at, name.at, (size_t)n.length)) return true;
    }
    return false;
}

static bool add_function(pass *p, ir_slice name)
{
    const char *at = find_definition(p->text, name);
    if (!at || known(p, name)) return true;
    sm_classified *c = p->count < MOST_FUNCTIONS ? malloc(sizeof *c) : NULL;
    if (!c) {
        sm_set_message(p->message, "SM_COUNT: out of memory, or more than %d functions", MOST_FUNCTIONS);
        return false;
    }
    if (!sm_classify(c, at, p->precise, p->message)) {
        free(c);
        return false;
    }
    p->functions[p->count++] = c;
    return true;
}

static bool find_functions(pass *p)
{
    const ir_slice entry = find_entry(p->text);
    if (!entry.length || !find_definition(p->text, entry)) {
        sm_set_message(p->message, "SM_COUNT: the module has no entry");
        return false;
    }
    if (!add_function(p, entry)) return false;
    for (int k = 0; k < p->count; k++) {
        const ir_function *f = &p->functions[k]->function;
        for (int i = 0; i < f->count; i++) {
            const ir_slice callee = f->instructions[i].callee;
            if (callee.length && !sm_is_operation(callee) && !add_function(p, callee)) return false;
        }
        const int registers = sm_registers(p->functions[k]);
        if (registers < 0) sm_set_message(p->message, "out of memory");
        if (registers < 0) return false;
        if (registers > p->registers) p->registers = registers;
        for (int r = 0; r < SM_RULES; r++) p->applied[r] += p->functions[k]->applied[r];
    }
    return true;
}

/* ---- counters ---- */

static void add_operations(pass *p, const sm_classified *c, const ir_block *b)
{
    int number[SM_COSTS] = {0};
    for (int v = b->first; v < b->first + b->count; v++)
        for (int k = 0; k < c->meanings[v].count; k++)
            number[c->meanings[v].operations[k].class] += c->meanings[v].operations[k].number;
    for (int k = 0; k < SM_COSTS; k++)
        sm_text_print(&p->operations, "%si32 %d", p->operations.length ? ", " : "", number[k]);
}

static void add_counter(pass *p, sm_text *out)
{
    const unsigned b = p->blocks++;
    sm_text_print(out,
                  "  %%sm.t%u = load ptr, ptr @sm_count_thread, align 8\n"
                  "  %%sm.p%u = getelementptr i32, ptr %%sm.t%u, i64 %u\n"
                  "  %%sm.n%u = load i32, ptr %%sm.p%u, align 4\n"
                  "  %%sm.m%u = add i32 %%sm.n%u, 1\n"
                  "  store i32 %%sm.m%u, ptr %%sm.p%u, align 4\n",
                  b, b, b, b, b, b, b, b, b, b);
}

static void add_hook(pass *p, sm_text *out, ir_slice address, int64_t low, int bytes, int kind)
{
    const unsigned n = p->hooks++;
    sm_text_print(out, "  %%sm.a%u = getelementptr i8, ptr %.*s, i64 %lld\n", n, address.length, address.at,
                  (long long)low);
    sm_text_print(out, "  call void @sm_count_hook(ptr %%sm.a%u, i32 %d, i32 %d, i32 %u)\n", n, bytes, kind,
                  SM_SITE_FIRST + p->sites++);
}

/* The part of an operand after its type: also getelementptr (...) of a variable. */
static ir_slice address_text(const ir_operand *o, const ir_instruction *i)
{
    if (o->value != IR_CONSTANT) return o->text;
    const char *at = o->text.at;
    while (at > i->line.at && memcmp(at, "getelementptr", 13) != 0) at--;
    return (ir_slice){at, (int)(o->text.at + o->text.length - at)};
}

static bool is_hooked(sm_space space) { return space != SM_SPACE_THREAD && space != SM_SPACE_RUNTIME; }

static void add_hooks(pass *p, const sm_classified *c, int v, sm_text *out)
{
    const ir_function *f = &c->function;
    const ir_instruction *i = &f->instructions[v];
    const sm_meaning *m = &c->meanings[v];
    if (m->uniform || m->follower || !m->count) return;
    const bool stores = i->opcode == IR_STORE, atomic = i->opcode == IR_ATOMICRMW || i->opcode == IR_CMPXCHG;
    if (i->opcode == IR_LOAD || stores || atomic) {
        if (!is_hooked(m->space)) return;
        const int kind = (stores || atomic ? SM_ACCESS_WRITE : SM_ACCESS_READ) | (atomic ? SM_ACCESS_ATOMIC : 0);
        add_hook(p, out, address_text(ir_operand_of(f, i, stores ? 1 : 0), i), m->low, m->bytes, kind);
        return;
    }
    const bool copies = ir_contains(i->callee, "llvm.memcpy") || ir_contains(i->callee, "llvm.memmove");
    if (!copies && !ir_contains(i->callee, "llvm.memset")) return;
    for (int k = 0; k < (copies ? 2 : 1); k++) {
        const ir_operand *o = ir_operand_of(f, i, k);
        if (o->value >= 0 && is_hooked(c->meanings[o->value].space))
            add_hook(p, out, o->text, 0, m->bytes, k == 0 ? SM_ACCESS_WRITE : SM_ACCESS_READ);
    }
}

/* LLVM knows the size of a type. */
static void add_thread_bytes(pass *p, const ir_instruction *i)
{
    sm_text sum = {0};
    sm_text_print(&sum, "add (i32 %s, i32 ptrtoint (ptr getelementptr (%.*s, ptr null, i32 1) to i32))",
                  p->thread_bytes.length ? p->thread_bytes.bytes : "0", i->element.length, i->element.at);
    sm_text_free(&p->thread_bytes);
    p->thread_bytes = sum;
}

static void write_function(pass *p, const sm_classified *c, sm_text *out)
{
    const ir_function *f = &c->function;
    const char *at = f->text.at;
    for (int b = 0; b < f->blocks_count; b++) {
        const ir_block *block = &f->blocks[b];
        add_operations(p, c, block);
        for (int v = block->first; v < block->first + block->count; v++) {
            const ir_instruction *i = &f->instructions[v];
            sm_text_add(out, at, (size_t)(i->line.at - at));
            at = i->line.at;
            if (v == block->body) add_counter(p, out);
            if (v >= block->body) add_hooks(p, c, v, out);
            if (i->opcode == IR_ALLOCA) add_thread_bytes(p, i);
        }
    }
    sm_text_add(out, at, (size_t)(f->text.at + f->text.length - at));
}

/* ---- the module ---- */

static void write_tables(const pass *p, sm_text *out)
{
    sm_text_print(out, "\n@sm_count_thread = hidden global ptr null, align 8\n");
    sm_text_print(out, "@sm_count_operations = hidden constant [%u x i32] [%s]\n", p->blocks * SM_COSTS,
                  p->operations.bytes);
    sm_text_print(out, "@sm_count_applied = hidden constant [%d x i32] [", SM_RULES);
    for (int r = 0; r < SM_RULES; r++) sm_text_print(out, "%si32 %u", r ? ", " : "", p->applied[r]);
    sm_text_print(
        out,
        "]\n@sm_kernel_count = constant { i32, i32, i32, i32, i32, i32, ptr, ptr, ptr } { i32 %u, i32 %d, i32 "
        "%u, i32 %d, i32 %d, i32 %s, ptr @sm_count_thread, ptr @sm_count_operations, ptr @sm_count_applied }\n",
        p->blocks, SM_COSTS, p->sites + SM_SITE_FIRST, SM_RULES, p->registers,
        p->thread_bytes.length ? p->thread_bytes.bytes : "0");
}

static const sm_classified *function_at(const pass *p, const char *at)
{
    for (int i = 0; i < p->count; i++)
        if (p->functions[i]->function.text.at == at) return p->functions[i];
    return NULL;
}

static void write_module(pass *p, const sm_text *in, const sm_text *original, sm_text *out)
{
    const ir_slice layout = quoted(in->bytes, host_layout), triple = quoted(in->bytes, host_target);
    const ir_slice own_layout = quoted(original->bytes, host_layout), own = quoted(original->bytes, host_target);
    sm_text_add(out, in->bytes, (size_t)(layout.at - in->bytes));
    sm_text_add(out, own_layout.at, (size_t)own_layout.length);
    sm_text_add(out, layout.at + layout.length, (size_t)(triple.at - layout.at - layout.length));
    sm_text_add(out, own.at, (size_t)own.length);
    const char *at = triple.at + triple.length;
    for (const char *next; (next = strstr(at, "\ndefine ")) != NULL;) {
        next++;
        sm_text_add(out, at, (size_t)(next - at));
        const sm_classified *c = function_at(p, next);
        at = next + 7;
        if (c) {
            write_function(p, c, out);
            at = next + c->function.text.length;
        } else {
            sm_text_add(out, next, 7);
        }
    }
    sm_text_add(out, at, strlen(at));
}

bool sm_count_instrument(const sm_text *in, const sm_text *original, bool precise, sm_text *out, char **message)
{
    pass p = {.text = in->bytes, .precise = precise, .message = message};
    bool good = find_functions(&p);
    if (good) {
        write_module(&p, in, original, out);
        write_tables(&p, out);
        good = !out->failed && !p.operations.failed && !p.thread_bytes.failed;
        if (!good) sm_set_message(message, "out of memory");
    }
    for (int i = 0; i < p.count; i++) {
        sm_classified_free(p.functions[i]);
        free(p.functions[i]);
    }
    sm_text_free(&p.operations);
    sm_text_free(&p.thread_bytes);
    return good;
}
