/* mica inspect: describes a model file as the library reads it. */
#include <inttypes.h>
#include <math.h>
#include <mica_convert.h>
#include <mica_lm.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli.h"
#include "core/json.h"

typedef struct inspect_options {
    bool tensors, meta, json, check, i2_s_arm;
} inspect_options;

/* clang-format off */
#define AT(field) offsetof(inspect_options, field)
static const cli_option inspect_rows[] = {
    {"--tensors", NULL, CLI_FLAG, AT(tensors), .text = "list the tensors"},
    {"--meta", NULL, CLI_FLAG, AT(meta), .aliases = "--metadata", .text = "list the metadata"},
    {"--check", NULL, CLI_FLAG, AT(check),
     .text = "read and check all data: scales must be finite and codes ternary; count the codes of ternary tensors"},
    {"--i2s-arm", NULL, CLI_FLAG, AT(i2_s_arm), .text = "read I2_S weights in the order of bitnet.cpp's ARM builds"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "print JSON"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static int run_inspect(const cli_call *call);

const cli_command cli_inspect_command = {
    .name = "mica inspect",
    .summary = "describe a model file and name its known problems",
    .usage = "FILE|FOLDER|builtin [options]",
    .text = "Prints kind, architecture, parameters, bytes by number format, tokenizer, and warnings.",
    .arguments =
        (const cli_argument[]){{"FILE|FOLDER|builtin", "a model file, a Hugging Face folder, or the built-in model"},
                               {NULL, NULL}},
    .least_args = 1,
    .most_args = 1,
    .groups = (const cli_group[]){{"Options", inspect_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(inspect_options),
    .run = run_inspect,
};

/* ------------------------------------------------------------------ text --- */

static const char *bytes_text(uint64_t n, char out[32])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double v = (double)n;
    int u = 0;
    while (v >= 1000 && u < 4) v /= 1000, u++;
    snprintf(out, 32, u ? "%.1f %s" : "%.0f %s", v, units[u]);
    return out;
}

static const char *count_text(uint64_t n, char out[32])
{
    if (n >= 1000000000) snprintf(out, 32, "%.2f billion", (double)n / 1e9);
    else if (n >= 1000000) snprintf(out, 32, "%.1f million", (double)n / 1e6);
    else snprintf(out, 32, "%" PRIu64, n);
    return out;
}

/* Prints text from a file without control characters, which could change the terminal. */
static void print_safe(const char *text, size_t n, size_t most)
{
    for (size_t i = 0; i < n && i < most; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f) printf("\\x%02x", c);
        else putchar(c);
    }
    if (n > most) printf("... (%zu bytes)", n);
}

static void print_size_of(const char *name, int64_t v)
{
    if (v >= 0) printf("  %-16s %" PRId64 "\n", name, v);
}

static void print_facts(const char *path, const mica_facts *f)
{
    char a[32], b[32];
    printf("%s: %s%s%s\n", path, f->kind, *f->arch ? ", " : "", f->arch);
    if (*f->name) printf("  %-16s ", "name"), print_safe(f->name, strlen(f->name), 100), putchar('\n');
    printf("  %-16s %s in %" PRIu64 " tensors, %s\n", "parameters", count_text(f->parameters, a), f->tensors,
           bytes_text(f->bytes, b));
    for (int i = 0; i < f->n_formats; i++)
        printf("  %-16s %s in %" PRIu64 " tensors, %s\n", f->formats[i].format, count_text(f->formats[i].parameters, a),
               f->formats[i].tensors, bytes_text(f->formats[i].bytes, b));
    print_size_of("layers", f->layers);
    print_size_of("hidden", f->hidden);
    print_size_of("ffn", f->ffn);
    if (f->heads >= 0)
        printf("  %-16s %" PRId64 ", %" PRId64 " for keys and values, of %" PRId64 "\n", "heads", f->heads, f->kv_heads,
               f->head_dim);
    print_size_of("vocabulary", f->vocab);
    print_size_of("context", f->context);
    if (f->rope_theta >= 0) printf("  %-16s %g\n", "rope theta", f->rope_theta);
    if (f->norm_eps >= 0) printf("  %-16s %g\n", "norm epsilon", f->norm_eps);
    if (f->layers >= 0) printf("  %-16s %s\n", "head", f->tied ? "the embedding" : "a separate matrix");
    if (*f->tokenizer) {
        printf("  %-16s ", "tokenizer");
        print_safe(f->tokenizer, strlen(f->tokenizer), 40);
        if (*f->pre) printf(" ("), print_safe(f->pre, strlen(f->pre), 40), putchar(')');
        if (f->tokens) printf(", %" PRId64 " tokens, %" PRId64 " merges", f->tokens, f->merges);
        if (f->bos >= 0) printf(", bos %" PRId64, f->bos);
        if (f->eos >= 0) printf(", eos %" PRId64, f->eos);
        printf(", %s chat template\n", f->chat_template ? "with a" : "no");
    }
    for (int i = 0; i < f->n_warnings; i++) printf("  warning: %s\n", f->warnings[i]);
}

static void print_tensors(const mica_file *file)
{
    mica_tensor_info t = {.struct_size = sizeof t};
    printf("\n%-44s %-8s %14s %14s  shape\n", "tensor", "format", "bytes", "offset");
    for (size_t i = 0; mica_file_tensor(file, i, &t); i++) {
        printf("%-44s %-8s %14" PRIu64 " %14" PRIu64 "  ", t.name, t.format, t.nbytes, t.offset);
        for (int d = 0; d < t.ndim; d++) printf("%s%" PRId64, d ? " x " : "", t.shape[d]);
        putchar('\n');
    }
}

/* -------------------------------------------------------------- metadata --- */

typedef struct meta_item {
    const char *text; /* a string */
    size_t length;
    int64_t whole;
    double real;
    int kind;         /* 0: string, 1: integer, 2: real, 3: bool */
} meta_item;

/* Reads the value at *at and advances *at; false at the end. */
static bool next_item(const mica_meta_info *m, size_t *at, meta_item *out)
{
    const size_t size = m->dtype < 0 ? 8 : mica_dtype_size((mica_dtype)m->dtype);
    const uint8_t *p = (const uint8_t *)m->data + *at;
    uint64_t v = 0;
    if (m->dtype < 0 && !m->array) {
        *out = (meta_item){.text = m->data, .length = m->nbytes};
        return *at == 0 ? (*at = m->nbytes + 1, true) : false;
    }
    if (*at > m->nbytes || m->nbytes - *at < size) return false;
    memcpy(&v, p, size); /* little-endian */
    *at += size;
    const int shift = (int)(64 - 8 * size);
    float narrow;
    switch (m->dtype) {
    case -1:
        if (v > m->nbytes - *at) return false;
        *out = (meta_item){.text = (const char *)p + 8, .length = (size_t)v};
        *at += (size_t)v;
        return true;
    case MICA_F32: memcpy(&narrow, p, 4), *out = (meta_item){.real = (double)narrow, .kind = 2}; return true;
    case MICA_F64: *out = (meta_item){.kind = 2}, memcpy(&out->real, p, 8); return true;
    case MICA_BOOL: *out = (meta_item){.whole = v != 0, .kind = 3}; return true;
    case MICA_I8:
    case MICA_I16:
    case MICA_I32: *out = (meta_item){.whole = (int64_t)(v << shift) >> shift, .kind = 1}; return true;
    default: *out = (meta_item){.whole = (int64_t)v, .kind = 1}; return true;
    }
}

static void print_item(const meta_item *v, int dtype, size_t most)
{
    if (v->kind == 0) print_safe(v->text, v->length, most);
    else if (v->kind == 3) printf("%s", v->whole ? "true" : "false");
    else if (v->kind == 1 && dtype == MICA_U64) printf("%" PRIu64, (uint64_t)v->whole);
    else if (v->kind == 1) printf("%" PRId64, v->whole);
    else printf("%g", v->real);
}

static void put_item(cli_json *j, const char *key, const meta_item *v, int dtype)
{
    if (v->kind == 0) cli_json_bytes(j, key, v->text, v->length);
    else if (v->kind == 3) cli_json_bool(j, key, v->whole != 0);
    else if (v->kind == 1 && dtype == MICA_U64) cli_json_uint(j, key, (uint64_t)v->whole);
    else if (v->kind == 1) cli_json_int(j, key, v->whole);
    else cli_json_number(j, key, v->real);
}

/* Lists of a vocabulary are long: only the first FEW items and the count are printed. */
enum { FEW = 4 };

static void print_meta(const mica_file *file)
{
    mica_meta_info m = {.struct_size = sizeof m};
    for (size_t i = 0; mica_file_meta(file, i, &m); i++) {
        meta_item v;
        size_t at = 0;
        printf("%s = ", m.key);
        if (m.array) printf("%" PRIu64 " items: ", m.count);
        for (int k = 0; k < (m.array ? FEW : 1) && next_item(&m, &at, &v); k++) {
            if (k) printf(", ");
            print_item(&v, m.dtype, m.array ? 40 : 200);
        }
        printf("%s\n", m.array && m.count > FEW ? ", ..." : "");
    }
}

static void print_meta_json(cli_json *j, const mica_file *file)
{
    mica_meta_info m = {.struct_size = sizeof m};
    cli_json_object(j, "metadata", CLI_JSON_LINES);
    for (size_t i = 0; mica_file_meta(file, i, &m); i++) {
        meta_item v;
        size_t at = 0;
        if (!m.array) {
            if (next_item(&m, &at, &v)) put_item(j, m.key, &v, m.dtype);
            else cli_json_null(j, m.key);
            continue;
        }
        cli_json_object(j, m.key, CLI_JSON_INLINE);
        cli_json_uint(j, "count", m.count);
        cli_json_array(j, "first", CLI_JSON_INLINE);
        for (int k = 0; k < FEW && next_item(&m, &at, &v); k++) put_item(j, NULL, &v, m.dtype);
        cli_json_end(j);
        cli_json_end(j);
    }
    cli_json_end(j);
}

/* ----------------------------------------------------------------- codes --- */

static void print_codes(const mica_file *file)
{
    mica_tensor_info t = {.struct_size = sizeof t};
    uint64_t n[4];
    bool first = true;
    for (size_t i = 0; mica_file_tensor(file, i, &t); i++) {
        if (!mica_file_codes(file, t.name, n)) continue;
        const double all = fmax((double)(n[0] + n[1] + n[2] + n[3]), 1);
        if (first) printf("\n%-44s %8s %8s %8s  other\n", "codes", "-1", "0", "1");
        printf("%-44s %7.2f%% %7.2f%% %7.2f%%  %" PRIu64 "\n", t.name, 100 * (double)n[0] / all,
               100 * (double)n[1] / all, 100 * (double)n[2] / all, n[3]);
        first = false;
    }
    if (first) printf("\nno tensor is ternary\n");
}

static void print_codes_json(cli_json *j, const mica_file *file)
{
    static const char *const names[] = {"minus", "zero", "plus", "other"};
    mica_tensor_info t = {.struct_size = sizeof t};
    uint64_t n[4];
    cli_json_array(j, "codes", CLI_JSON_LINES);
    for (size_t i = 0; mica_file_tensor(file, i, &t); i++) {
        if (!mica_file_codes(file, t.name, n)) continue;
        cli_json_object(j, NULL, CLI_JSON_INLINE);
        cli_json_text(j, "name", t.name);
        for (int k = 0; k < 4; k++) cli_json_uint(j, names[k], n[k]);
        cli_json_end(j);
    }
    cli_json_end(j);
}

/* ------------------------------------------------------------------ JSON --- */

static void print_formats_json(cli_json *j, const mica_facts *f)
{
    cli_json_array(j, "formats", CLI_JSON_INLINE);
    for (int i = 0; i < f->n_formats; i++) {
        cli_json_object(j, NULL, CLI_JSON_INLINE);
        cli_json_text(j, "format", f->formats[i].format);
        cli_json_uint(j, "tensors", f->formats[i].tensors);
        cli_json_uint(j, "parameters", f->formats[i].parameters);
        cli_json_uint(j, "bytes", f->formats[i].bytes);
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void print_facts_json(cli_json *j, const char *path, const mica_facts *f)
{
    cli_json_text(j, "path", path);
    cli_json_text(j, "kind", f->kind);
    cli_json_text(j, "arch", f->arch);
    cli_json_text(j, "name", f->name);
    cli_json_uint(j, "tensors", f->tensors);
    cli_json_uint(j, "parameters", f->parameters);
    cli_json_uint(j, "bytes", f->bytes);
    print_formats_json(j, f);
    cli_json_size(j, "layers", f->layers);
    cli_json_size(j, "hidden", f->hidden);
    cli_json_size(j, "ffn", f->ffn);
    cli_json_size(j, "heads", f->heads);
    cli_json_size(j, "kv_heads", f->kv_heads);
    cli_json_size(j, "head_dim", f->head_dim);
    cli_json_size(j, "vocab", f->vocab);
    cli_json_size(j, "context", f->context);
    cli_json_number(j, "rope_theta", f->rope_theta >= 0 ? f->rope_theta : NAN);
    cli_json_number(j, "norm_eps", f->norm_eps >= 0 ? f->norm_eps : NAN);
    cli_json_bool(j, "tied", f->tied);
    cli_json_bool(j, "chat_template", f->chat_template);
    cli_json_text(j, "tokenizer", f->tokenizer);
    cli_json_text(j, "pre", f->pre);
    cli_json_size(j, "tokens", f->tokens);
    cli_json_size(j, "merges", f->merges);
    cli_json_size(j, "bos", f->bos);
    cli_json_size(j, "eos", f->eos);
    cli_json_array(j, "warnings", CLI_JSON_INLINE);
    for (int i = 0; i < f->n_warnings; i++) cli_json_text(j, NULL, f->warnings[i]);
    cli_json_end(j);
}

static void print_tensors_json(cli_json *j, const mica_file *file)
{
    mica_tensor_info t = {.struct_size = sizeof t};
    cli_json_array(j, "tensor_list", CLI_JSON_LINES);
    for (size_t i = 0; mica_file_tensor(file, i, &t); i++) {
        cli_json_object(j, NULL, CLI_JSON_INLINE);
        cli_json_text(j, "name", t.name);
        cli_json_text(j, "format", t.format);
        cli_json_array(j, "shape", CLI_JSON_INLINE);
        for (int d = 0; d < t.ndim; d++) cli_json_int(j, NULL, t.shape[d]);
        cli_json_end(j);
        cli_json_uint(j, "bytes", t.nbytes);
        cli_json_uint(j, "offset", t.offset);
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void print_all_json(const char *path, const mica_file *file, const mica_facts *f, const inspect_options *o)
{
    cli_json j = {.to = stdout};
    cli_json_object(&j, NULL, CLI_JSON_LINES);
    print_facts_json(&j, path, f);
    if (o->tensors) print_tensors_json(&j, file);
    if (o->meta) print_meta_json(&j, file);
    if (o->check) print_codes_json(&j, file);
    cli_json_end(&j);
}

static void print_all(const char *path, const mica_file *file, const mica_facts *f, const inspect_options *o)
{
    print_facts(path, f);
    if (o->tensors) print_tensors(file);
    if (o->meta) putchar('\n'), print_meta(file);
    if (o->check) print_codes(file);
}

static int run_inspect(const cli_call *call)
{
    const inspect_options *o = call->options;
    const char *path = call->args[0];
    mica_file *file = NULL;
    mica_file_options fo;
    mica_facts *facts = calloc(1, sizeof *facts);
    if (!facts) return cli_no_memory("mica inspect");
    facts->struct_size = sizeof *facts;
    mica_file_options_init(&fo);
    fo.check = o->check;
    fo.i2_s_arm = o->i2_s_arm;
    const bool builtin = strcmp(path, "builtin") == 0;
    mica_status status = builtin ? mica_lm_builtin_open(&fo, &file) : mica_file_open(path, &fo, &file);
    if (status == MICA_OK) status = mica_file_facts(file, facts);
    if (status == MICA_OK && o->json) print_all_json(path, file, facts, o);
    else if (status == MICA_OK) print_all(path, file, facts, o);
    mica_file_close(file);
    free(facts);
    return status == MICA_OK ? CLI_OK : cli_file_failed("mica inspect", status);
}
