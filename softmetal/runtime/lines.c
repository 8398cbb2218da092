/* Reads the line table (DWARF 4) of a kernel's shared library. This is only done for
 * an error message, so nothing is cached. */
#include "lines.h"

#include "../msl/text.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

bool sm_in_module(const sm_kernel *kernel, const void *pc)
{
    return (uintptr_t)pc >= kernel->start && (uintptr_t)pc < kernel->end;
}

typedef struct reader {
    const unsigned char *at, *end;
} reader;

static uint64_t fixed(reader *r, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(r->end - r->at) < size) {
        r->at = r->end;
        return 0;
    }
    memcpy(&value, r->at, size); /* both targets are little-endian */
    r->at += size;
    return value;
}

static uint64_t variable(reader *r, bool sign)
{
    uint64_t value = 0;
    unsigned shift = 0;
    while (r->at < r->end) {
        unsigned char byte = *r->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80) continue;
        if (sign && (byte & 0x40) && shift < 64) value |= ~(uint64_t)0 << shift;
        break;
    }
    return value;
}

static const char *string(reader *r)
{
    const char *text = (const char *)r->at;
    while (r->at < r->end && *r->at) r->at++;
    if (r->at < r->end) r->at++;
    return text;
}

typedef struct program {
    unsigned smallest, base, range, first;
    signed char low;
    const unsigned char *lengths;
    const char *files[64];
    unsigned files_count;
} program;

typedef struct row {
    uint64_t address;
    unsigned file;
    int64_t line;
} row;

/* Returns whether the address is between this row and the next one. */
static bool between(const row *a, const row *b, uint64_t address)
{
    return a->line > 0 && a->address <= address && address < b->address;
}

static bool standard(reader *r, program *p, row *now, unsigned code)
{
    switch (code) {
    case 1: return true; /* copy */
    case 2: now->address += variable(r, false) * p->smallest; break;
    case 3: now->line += (int64_t)variable(r, true); break;
    case 4: now->file = (unsigned)variable(r, false); break;
    case 8: now->address += (255 - p->first) / p->range * p->smallest; break;
    case 9: now->address += fixed(r, 2); break;
    default:
        for (unsigned n = p->lengths[code - 1]; n--;) variable(r, false);
    }
    return false;
}

/* Runs the line program of one unit. true: the row is in *found. */
static bool run_program(reader r, program *p, uint64_t address, row *found)
{
    row now = {0, 1, 1}, last = {0, 1, 0};
    while (r.at < r.end) {
        unsigned code = (unsigned)fixed(&r, 1);
        bool emit = false, ends = false;
        if (code >= p->first) {
            unsigned step = code - p->first;
            now.address += step / p->range * p->smallest;
            now.line += p->low + (int)(step % p->range);
            emit = true;
        } else if (code == 0) {
            uint64_t length = variable(&r, false);
            const unsigned char *next = r.at + length;
            unsigned extended = (unsigned)fixed(&r, 1);
            if (extended == 1) emit = ends = true;
            if (extended == 2) now.address = fixed(&r, 8);
            if (next > r.end) break;
            r.at = next;
        } else {
            emit = standard(&r, p, &now, code);
        }
        if (emit && between(&last, &now, address)) {
            *found = last;
            return true;
        }
        if (emit) last = now;
        if (ends) now = (row){0, 1, 1}, last = (row){0, 1, 0};
    }
    return false;
}

static bool search(reader r, uint64_t address, char *text, size_t room)
{
    while (r.at < r.end) {
        uint64_t length = fixed(&r, 4);
        if (length > (uint64_t)(r.end - r.at)) return false;
        reader unit = {r.at, r.at + length};
        r.at += length;
        if (fixed(&unit, 2) != 4) continue;
        uint64_t header = fixed(&unit, 4);
        reader body = {unit.at + header, unit.end};
        program p = {.smallest = (unsigned)fixed(&unit, 1)};
        fixed(&unit, 2); /* maximum_operations_per_instruction, default_is_stmt */
        p.low = (signed char)fixed(&unit, 1);
        p.range = (unsigned)fixed(&unit, 1);
        p.first = (unsigned)fixed(&unit, 1);
        p.lengths = unit.at;
        if (!p.range || !p.first || body.at > body.end) continue;
        unit.at += p.first - 1;
        while (unit.at < unit.end && *unit.at) string(&unit);
        unit.at++;
        while (unit.at < unit.end && *unit.at && p.files_count < 63) {
            p.files[++p.files_count] = string(&unit);
            for (int i = 0; i < 3; i++) variable(&unit, false);
        }
        row found;
        if (!run_program(body, &p, address, &found)) continue;
        bool known = found.file > 0 && found.file <= p.files_count;
        snprintf(text, room, "%s:%lld", known ? p.files[found.file] : "line", (long long)found.line);
        return true;
    }
    return false;
}

void sm_line_of(const sm_kernel *kernel, const void *pc, char *text, size_t room)
{
    text[0] = '\0';
    sm_text file = {0};
    if (!sm_in_module(kernel, pc) || !sm_text_read(&file, kernel->path) || file.length < sizeof(Elf64_Ehdr)) {
        sm_text_free(&file);
        return;
    }
    Elf64_Ehdr head;
    memcpy(&head, file.bytes, sizeof head);
    uint64_t table = head.e_shoff, count = head.e_shnum;
    bool good = table < file.length && count * sizeof(Elf64_Shdr) <= file.length - table && head.e_shstrndx < count;
    Elf64_Shdr names = {0};
    if (good) memcpy(&names, file.bytes + table + head.e_shstrndx * sizeof names, sizeof names);
    for (uint64_t i = 0; good && i < count; i++) {
        Elf64_Shdr s;
        memcpy(&s, file.bytes + table + i * sizeof s, sizeof s);
        uint64_t name = names.sh_offset + s.sh_name;
        if (name + 12 > file.length || strcmp(file.bytes + name, ".debug_line")) continue;
        if (s.sh_offset > file.length || s.sh_size > file.length - s.sh_offset) break;
        const unsigned char *start = (const unsigned char *)file.bytes + s.sh_offset;
        search((reader){start, start + s.sh_size}, (uintptr_t)pc - kernel->base - 1, text, room);
        break;
    }
    sm_text_free(&file);
}

const char *sm_buffer_near(const sm_engine *engine, const void *address, char *text, size_t room)
{
    uintptr_t a = (uintptr_t)address, nearest = 1 << 20;
    text[0] = '\0';
    for (int i = 0; engine->dispatch && i < SM_BUFFERS; i++) {
        const sm_buffer *b = &engine->dispatch->buffers[i];
        uintptr_t start = (uintptr_t)b->address, end = start + b->length;
        uintptr_t distance = a >= end ? a - end : a < start ? start - a : 0;
        if (!start || distance >= nearest) continue;
        nearest = distance;
        if (a >= end)
            snprintf(text, room, ", %zu bytes after the end of buffer %d (%zu bytes)", (size_t)distance, i, b->length);
        else if (a < start) snprintf(text, room, ", %zu bytes before buffer %d", (size_t)distance, i);
        else snprintf(text, room, ", over the end of buffer %d (%zu bytes)", i, b->length);
    }
    return text;
}
