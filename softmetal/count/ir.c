/* Parses textual LLVM IR; see ir.h. Instructions are lines of two spaces and text; a switch has several lines.
 * Operands are the parts between commas; the value is the last word of a part. */
#include "ir.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const opcode_names[] = {
#define OPCODE(text, id, kind) text,
#include "rules.def"
};

/* ---- slices ---- */

bool ir_slice_is(ir_slice s, const char *text)
{
    return (size_t)s.length == strlen(text) && memcmp(s.at, text, (size_t)s.length) == 0;
}

bool ir_contains(ir_slice s, const char *text)
{
    const int n = (int)strlen(text);
    for (int i = 0; i + n <= s.length; i++)
        if (memcmp(s.at + i, text, (size_t)n) == 0) return true;
    return false;
}

static bool same(ir_slice a, ir_slice b) { return a.length == b.length && memcmp(a.at, b.at, (size_t)a.length) == 0; }

static ir_slice trim(ir_slice s)
{
    while (s.length && isspace((unsigned char)s.at[0])) s.at++, s.length--;
    while (s.length && isspace((unsigned char)s.at[s.length - 1])) s.length--;
    return s;
}

/* The length up to the first of the characters in stop that is outside of brackets and quotes. */
static int span(ir_slice s, const char *stop)
{
    int depth = 0;
    for (int i = 0; i < s.length; i++) {
        const char c = s.at[i];
        if (c == '"') {
            for (i++; i < s.length && s.at[i] != '"'; i++) continue;
            continue;
        }
        if (depth == 0 && strchr(stop, c)) return i;
        if (strchr("([{<", c)) depth++;
        if (strchr(")]}>", c)) depth--;
    }
    return s.length;
}

/* Removes the first word (or bracketed text) of *rest and returns it. */
static ir_slice next_word(ir_slice *rest)
{
    *rest = trim(*rest);
    const int n = span(*rest, " ");
    const ir_slice word = {rest->at, n};
    *rest = trim((ir_slice){rest->at + n, rest->length - n});
    return word;
}

static ir_slice next_part(ir_slice *rest)
{
    const int n = span(*rest, ",");
    const ir_slice part = trim((ir_slice){rest->at, n});
    const int skip = n < rest->length ? n + 1 : n;
    *rest = (ir_slice){rest->at + skip, rest->length - skip};
    return part;
}

static ir_slice last_word(ir_slice s, ir_slice *before)
{
    ir_slice rest = s, word = {s.at, 0};
    while (rest.length) word = next_word(&rest);
    if (before) *before = trim((ir_slice){s.at, (int)(word.at - s.at)});
    return word;
}

/* ---- types ---- */

ir_type ir_type_of(ir_slice s)
{
    ir_type type = {IR_AGGREGATE, 0, 1};
    if (s.length && s.at[0] == '<') {
        ir_slice rest = {s.at + 1, s.length - 2};
        const int n = atoi(next_word(&rest).at);
        next_word(&rest); /* x */
        type = ir_type_of(rest);
        type.elements = n;
        return type;
    }
    if (ir_slice_is(s, "void")) return (ir_type){IR_VOID, 0, 1};
    if (ir_slice_is(s, "ptr")) return (ir_type){IR_POINTER, 64, 1};
    if (ir_slice_is(s, "float")) return (ir_type){IR_FLOAT, 32, 1};
    if (ir_slice_is(s, "half") || ir_slice_is(s, "bfloat")) return (ir_type){IR_FLOAT, 16, 1};
    if (ir_slice_is(s, "double")) return (ir_type){IR_FLOAT, 64, 1};
    if (s.length > 1 && s.at[0] == 'i' && isdigit((unsigned char)s.at[1])) return (ir_type){IR_INT, atoi(s.at + 1), 1};
    return type;
}

/* ---- names ---- */

static unsigned hash_of(ir_slice s)
{
    unsigned h = 2166136261u;
    for (int i = 0; i < s.length; i++) h = (h ^ (unsigned char)s.at[i]) * 16777619u;
    return h;
}

static int find_value(const ir_function *f, ir_slice name)
{
    for (unsigned h = hash_of(name);; h++) {
        const int i = f->table[h & (unsigned)(f->table_room - 1)];
        if (i < 0) return IR_ARGUMENT;
        if (same(f->instructions[i].name, name)) return i;
    }
}

static bool make_table(ir_function *f)
{
    f->table_room = 64;
    while (f->table_room < 2 * f->count) f->table_room *= 2;
    f->table = malloc((size_t)f->table_room * sizeof *f->table);
    if (!f->table) return false;
    for (int i = 0; i < f->table_room; i++) f->table[i] = -1;
    for (int i = 0; i < f->count; i++) {
        if (!f->instructions[i].name.length) continue;
        unsigned h = hash_of(f->instructions[i].name);
        while (f->table[h & (unsigned)(f->table_room - 1)] >= 0) h++;
        f->table[h & (unsigned)(f->table_room - 1)] = i;
    }
    return true;
}

/* "%label" of a branch or phi. The first block has no label line; its number occurs in phis only. */
static int find_block(const ir_function *f, ir_slice name)
{
    for (int b = 1; b < f->blocks_count; b++) {
        const ir_slice l = f->blocks[b].label;
        if (l.length == name.length - 1 && memcmp(l.at, name.at + 1, (size_t)l.length) == 0) return b;
    }
    return 0;
}

bool ir_number(const ir_operand *o, int64_t *number)
{
    if (o->value != IR_CONSTANT) return false;
    if (ir_slice_is(o->text, "true")) *number = 1;
    else if (ir_slice_is(o->text, "false") || ir_slice_is(o->text, "zeroinitializer")) *number = 0;
    else if (isdigit((unsigned char)o->text.at[0]) || o->text.at[0] == '-') *number = strtoll(o->text.at, NULL, 10);
    else return false;
    return true;
}

const ir_operand *ir_operand_of(const ir_function *f, const ir_instruction *i, int index)
{
    return &f->operands[i->first + index];
}

const ir_instruction *ir_source(const ir_function *f, const ir_instruction *i, int index)
{
    const int v = index < i->count ? f->operands[i->first + index].value : IR_CONSTANT;
    return v >= 0 ? &f->instructions[v] : NULL;
}

/* ---- operands ---- */

static bool add_operand(ir_function *f, ir_instruction *i, ir_slice text, int block)
{
    if (!sm_grow((void **)&f->operands, f->operands_count, &f->operands_room, sizeof *f->operands)) return false;
    ir_operand o = {IR_CONSTANT, block, text};
    if (text.length && text.at[0] == '%') o.value = find_value(f, text);
    else if (text.length && text.at[0] == '@') o.value = IR_GLOBAL;
    if (o.value >= 0) f->instructions[o.value].uses++;
    f->operands[f->operands_count++] = o;
    i->count++;
    return true;
}

static bool add_edge(ir_function *f, ir_slice label)
{
    if (!sm_grow((void **)&f->edges, f->edges_count, &f->edges_room, sizeof *f->edges)) return false;
    f->edges[f->edges_count++] = find_block(f, label);
    return true;
}

static bool is_flag(ir_slice w)
{
    static const char *const flags[] = {"nuw",  "nsw",      "exact",  "disjoint", "nneg",     "inbounds", "fast",
                                        "nnan", "ninf",     "nsz",    "arcp",     "contract", "afn",      "reassoc",
                                        "tail", "volatile", "atomic", "samesign", "nusw",     "musttail", "notail"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (ir_slice_is(w, flags[i])) return true;
    return false;
}

static void skip_flags(ir_slice *rest)
{
    for (;;) {
        ir_slice after = *rest;
        if (!is_flag(next_word(&after))) return;
        *rest = after;
    }
}

/* "(i32 noundef %a, ptr nonnull align 8 %b) #1" */
static bool parse_arguments(ir_function *f, ir_instruction *i, ir_slice rest)
{
    const int n = span((ir_slice){rest.at + 1, rest.length - 1}, ")");
    ir_slice list = {rest.at + 1, n};
    while (list.length) {
        const ir_slice part = next_part(&list);
        if (part.length && !add_operand(f, i, last_word(part, NULL), -1)) return false;
    }
    return true;
}

static bool parse_call(ir_function *f, ir_instruction *i, ir_slice rest)
{
    skip_flags(&rest);
    static const char *const attributes[] = {"noundef", "nonnull", "zeroext", "signext", "noalias", "fastcc", "range"};
    for (;;) { /* attributes of the result */
        ir_slice after = rest;
        const ir_slice w = next_word(&after);
        bool known = (w.length > 5 && !memcmp(w.at, "align", 5)) ||
                     (w.length > 15 && !memcmp(w.at, "dereferenceable", 15)) ||
                     (w.length > 6 && !memcmp(w.at, "range(", 6)) || (w.length > 8 && !memcmp(w.at, "nofpclass", 8));
        for (size_t k = 0; k < sizeof attributes / sizeof *attributes; k++) known |= ir_slice_is(w, attributes[k]);
        if (ir_slice_is(w, "align")) next_word(&after);
        else if (!known) break;
        rest = after;
    }
    i->type = ir_type_of(next_word(&rest));
    if (rest.length > 4 && !memcmp(rest.at, "asm ", 4)) {
        i->assembler = true;
        const int open = span((ir_slice){rest.at, rest.length}, "(");
        return parse_arguments(f, i, (ir_slice){rest.at + open, rest.length - open});
    }
    if (rest.length && rest.at[0] == '(') next_word(&rest); /* the type of a variadic function */
    const int open = span(rest, "(");
    if (rest.length && rest.at[0] == '@') i->callee = (ir_slice){rest.at + 1, open - 1};
    if (open == rest.length) return false;
    return parse_arguments(f, i, (ir_slice){rest.at + open, rest.length - open});
}

static bool parse_phi(ir_function *f, ir_instruction *i, ir_slice rest)
{
    skip_flags(&rest);
    i->type = ir_type_of(next_word(&rest));
    while (rest.length && rest.at[0] == '[') {
        const int n = span((ir_slice){rest.at + 1, rest.length - 1}, "]");
        ir_slice pair = {rest.at + 1, n};
        const ir_slice value = next_part(&pair), from = next_part(&pair);
        if (!add_operand(f, i, value, find_block(f, from))) return false;
        rest = trim((ir_slice){rest.at + n + 2, rest.length - n - 2});
        if (rest.length && rest.at[0] == ',') rest = trim((ir_slice){rest.at + 1, rest.length - 1});
        if (rest.length && rest.at[0] == '!') break;
    }
    return i->count > 0;
}

/* "i1 %c, label %a, label %b", "label %a", "i32 %x, label %d [ i32 0, label %a ... ]" */
static bool parse_branch(ir_function *f, ir_instruction *i, ir_slice rest)
{
    const bool conditional = memcmp(rest.at, "label", 5) != 0;
    if (conditional && !add_operand(f, i, last_word(next_part(&rest), NULL), -1)) return false;
    ir_block *b = &f->blocks[i->block];
    b->successors = f->edges_count;
    for (const char *at = rest.at, *end = rest.at + rest.length; at < end;) {
        if (end - at < 7 || memcmp(at, "label %", 7) != 0) {
            at++;
            continue;
        }
        ir_slice label = {at + 6, 0};
        label.length = span((ir_slice){label.at, (int)(end - label.at)}, ", \n");
        if (!add_edge(f, label)) return false;
        at = label.at + label.length;
    }
    b->successors_count = f->edges_count - b->successors;
    return b->successors_count > 0;
}

static bool parse_conversion(ir_function *f, ir_instruction *i, ir_slice rest)
{
    skip_flags(&rest);
    i->from = ir_type_of(next_word(&rest));
    const ir_slice value = next_word(&rest);
    next_word(&rest); /* to */
    i->type = ir_type_of(next_part(&rest));
    return add_operand(f, i, value, -1);
}

/* "ptr %p monotonic" */
static bool is_ordering(ir_slice w)
{
    return ir_slice_is(w, "monotonic") || ir_slice_is(w, "acquire") || ir_slice_is(w, "release") ||
           ir_slice_is(w, "acq_rel") || ir_slice_is(w, "seq_cst");
}

static bool parse_list(ir_function *f, ir_instruction *i, ir_slice rest)
{
    skip_flags(&rest);
    const ir_opcode op = i->opcode;
    if (op == IR_ICMP || op == IR_FCMP) {
        next_word(&rest);
        skip_flags(&rest);
    }
    if (op == IR_ATOMICRMW) next_word(&rest);
    if (op == IR_LOAD || op == IR_GEP || op == IR_ALLOCA) {
        i->element = next_part(&rest);
        i->type = op == IR_LOAD ? ir_type_of(i->element) : (ir_type){IR_POINTER, 64, 1};
        if (op == IR_ALLOCA) return true;
    }
    for (int n = 0; rest.length; n++) {
        ir_slice part = next_part(&rest), before;
        if (!part.length || part.at[0] == '!' || (part.length > 5 && !memcmp(part.at, "align", 5))) break;
        ir_slice value = last_word(part, &before);
        while (is_ordering(value)) value = last_word(before, &before);
        if (n == 0 && op != IR_LOAD && op != IR_GEP) i->type = ir_type_of(before);
        if (n == 1 && op == IR_SELECTION) i->type = ir_type_of(before);
        const bool by_index = op == IR_EXTRACTVALUE || op == IR_INSERTVALUE || op == IR_ATOMICRMW || op == IR_CMPXCHG;
        if (by_index && n >= (op == IR_EXTRACTVALUE ? 1 : 2)) break;
        if (!add_operand(f, i, value, -1)) return false;
        if ((op == IR_LOAD && n == 0) || (op == IR_STORE && n == 1)) break;
    }
    if (op == IR_ICMP || op == IR_FCMP) {
        i->from = i->type;
        i->type = (ir_type){IR_INT, 1, i->from.elements};
    }
    if (op == IR_EXTRACTELEMENT) i->type.elements = 1;
    return i->count > 0;
}

static bool parse_operands(ir_function *f, ir_instruction *i)
{
    ir_slice rest = trim(i->line);
    if (i->name.length) {
        next_word(&rest);
        next_word(&rest); /* = */
    }
    ir_slice word = next_word(&rest);
    while (is_flag(word)) word = next_word(&rest);
    i->first = f->operands_count;
    switch (i->opcode) {
    case IR_CALL: return parse_call(f, i, rest);
    case IR_PHI: return parse_phi(f, i, rest);
    case IR_BR:
    case IR_SWITCH: return parse_branch(f, i, rest);
    case IR_RET:
    case IR_UNREACHABLE:
    case IR_FENCE: return true;
    case IR_FPTOSI:
    case IR_FPTOUI:
    case IR_SITOFP:
    case IR_UITOFP:
    case IR_FPEXT:
    case IR_FPTRUNC:
    case IR_ZEXT:
    case IR_SEXT:
    case IR_TRUNC:
    case IR_BITCAST:
    case IR_PTRTOINT:
    case IR_INTTOPTR: return parse_conversion(f, i, rest);
    default: return parse_list(f, i, rest);
    }
}

/* ---- lines ---- */

static bool add_instruction(ir_function *f, ir_slice line, char **message)
{
    if (!sm_grow((void **)&f->instructions, f->count, &f->room, sizeof *f->instructions)) return false;
    ir_instruction i = {.line = line, .block = f->blocks_count - 1, .type = {IR_VOID, 0, 1}};
    ir_slice rest = trim(line), word = next_word(&rest);
    if (word.at[0] == '%') {
        i.name = word;
        next_word(&rest); /* = */
        word = next_word(&rest);
    }
    while (is_flag(word)) word = next_word(&rest);
    int op = 0;
    while (op < IR_OPCODES && !ir_slice_is(word, opcode_names[op])) op++;
    if (op == IR_OPCODES) {
        sm_set_message(message, "SM_COUNT: an instruction of LLVM that is not known: %.*s", line.length, line.at);
        return false;
    }
    i.opcode = (ir_opcode)op;
    ir_block *b = &f->blocks[f->blocks_count - 1];
    if (i.opcode == IR_PHI) b->body = f->count + 1;
    b->count++;
    f->instructions[f->count++] = i;
    return true;
}

static bool add_block(ir_function *f, ir_slice label)
{
    if (!sm_grow((void **)&f->blocks, f->blocks_count, &f->blocks_room, sizeof *f->blocks)) return false;
    f->blocks[f->blocks_count++] = (ir_block){.label = label, .first = f->count, .body = f->count};
    return true;
}

static bool read_lines(ir_function *f, const char *at, char **message)
{
    if (!add_block(f, (ir_slice){at, 0})) return false;
    for (; *at && *at != '}';) {
        int n = (int)strcspn(at, "\n") + 1;
        if (at[0] == ' ') {
            if (n > 3 && at[n - 2] == '[')
                n = (int)(strstr(at, "\n  ]") - at) + 4 + (int)strcspn(strstr(at, "\n  ]") + 4, "\n") + 1;
            if (!add_instruction(f, (ir_slice){at, n}, message)) return false;
        } else if (at[0] != '\n' && at[0] != ';') {
            ir_slice label = {at, 0};
            label.length = span((ir_slice){at, n}, ":");
            if (f->count > 0 && !add_block(f, label)) return false; /* else the label of the first block */
        }
        at += n;
    }
    f->text.length = (int)(at + 2 - f->text.at);
    return *at == '}';
}

bool ir_parse(ir_function *f, const char *text, char **message)
{
    *f = (ir_function){.text = {text, 0}};
    const char *name = strchr(text, '@'), *body = strstr(text, " {\n");
    bool good = name && body;
    if (good) {
        f->name = (ir_slice){name + 1, 0};
        f->name.length = span((ir_slice){name + 1, (int)(body - name - 1)}, "(");
        good = read_lines(f, body + 3, message) && make_table(f);
    }
    for (int i = 0; good && i < f->count; i++) {
        good = parse_operands(f, &f->instructions[i]);
        const ir_slice line = f->instructions[i].line;
        if (!good) sm_set_message(message, "SM_COUNT: cannot read an instruction of LLVM: %.*s", line.length, line.at);
    }
    if (!good) sm_set_message(message, "SM_COUNT: cannot read a function of LLVM");
    if (!good) ir_free(f);
    return good;
}

void ir_free(ir_function *f)
{
    free(f->instructions);
    free(f->operands);
    free(f->blocks);
    free(f->edges);
    free(f->table);
    *f = (ir_function){0};
}
