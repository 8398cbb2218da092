/* mica inspect: what a model file is, from what the library says about it. */
#include <inttypes.h>
#include <math.h>
#include <mica_convert.h>
#include <stdlib.h>
#include <string.h>

#include "core/args.h"
#include "core/cli.h"

typedef struct inspect_options {
    bool tensors, meta, json, check, i2_s_arm;
} inspect_options;

static const cli_arg inspect_args[] = {
    {"--tensors", NULL, CLI_FLAG, offsetof(inspect_options, tensors), 0, 0, NULL, "list the tensors"},
    {"--meta", NULL, CLI_FLAG, offsetof(inspect_options, meta), 0, 0, NULL, "list the metadata"},
    {"--check", NULL, CLI_FLAG, offsetof(inspect_options, check), 0, 0, NULL,
     "read all data: scales must be numbers, codes must be ternary; counts the codes of ternary tensors"},
    {"--i2s-arm", NULL, CLI_FLAG, offsetof(inspect_options, i2_s_arm), 0, 0, NULL,
     "I2_S was written by an ARM build of bitnet.cpp"},
    {"--json", NULL, CLI_FLAG, offsetof(inspect_options, json), 0, 0, NULL, "print JSON"},
};
static const cli_args inspect_command = {"mica inspect",
                                         "FILE | FOLDER",
                                         "What a model file is: kind, architecture, parameters, bytes by format, "
                                         "tokenizer, and what is known to go wrong with it.",
                                         inspect_args,
                                         sizeof inspect_args / sizeof inspect_args[0],
                                         1,
                                         1};

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

/* Text out of a file: control characters would act on the terminal. */
static void print_safe(const char *text, size_t n, size_t most)
{
    for (size_t i = 0; i < n && i < most; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f) printf("\\x%02x", c);
        else putchar(c);
    }
    if (n > most) printf("... (%zu bytes)", n);
}

static void print_shape(const mica_tensor_info *t, const char *between)
{
    for (int d = 0; d < t->ndim; d++) printf("%s%" PRId64, d ? between : "", t->shape[d]);
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
    if (f->layers >= 0) printf("  %-16s %s\n", "head", f->tied ? "the embedding" : "of its own");
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
        print_shape(&t, " x ");
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

/* The value at *at, which moves behind it; false at the end. */
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

static void print_item(const meta_item *v, int dtype, bool json, size_t most)
{
    if (v->kind == 0 && json) cli_print_json(stdout, v->text, v->length);
    else if (v->kind == 0) print_safe(v->text, v->length, most);
    else if (v->kind == 3) printf("%s", v->whole ? "true" : "false");
    else if (v->kind == 1 && dtype == MICA_U64) printf("%" PRIu64, (uint64_t)v->whole);
    else if (v->kind == 1) printf("%" PRId64, v->whole);
    else if (json) cli_print_json_number(stdout, v->real);
    else printf("%g", v->real);
}

/* Lists of a vocabulary are long: the first few, and how many there are. */
static void print_meta(const mica_file *file, bool json)
{
    enum { FEW = 4 };
    mica_meta_info m = {.struct_size = sizeof m};
    for (size_t i = 0; mica_file_meta(file, i, &m); i++) {
        meta_item v;
        size_t at = 0;
        if (json) printf("%s\n    ", i ? "," : ""), cli_print_json(stdout, m.key, strlen(m.key)), printf(": ");
        else printf("%s = ", m.key);
        if (m.array) printf(json ? "{\"count\": %" PRIu64 ", \"first\": [" : "%" PRIu64 " items: ", m.count);
        for (int k = 0; k < (m.array ? FEW : 1) && next_item(&m, &at, &v); k++) {
            if (k) printf(", ");
            print_item(&v, m.dtype, json, m.array ? 40 : 200);
        }
        printf("%s%s", m.array ? (json ? "]}" : m.count > FEW ? ", ..." : "") : "", json ? "" : "\n");
    }
}

/* ----------------------------------------------------------------- codes --- */

static void print_codes(const mica_file *file, bool json)
{
    mica_tensor_info t = {.struct_size = sizeof t};
    uint64_t n[4];
    bool first = true;
    for (size_t i = 0; mica_file_tensor(file, i, &t); i++) {
        if (!mica_file_codes(file, t.name, n)) continue;
        const double all = (double)(n[0] + n[1] + n[2] + n[3]);
        if (json) {
            printf("%s\n    {\"name\": ", first ? "" : ",");
            cli_print_json(stdout, t.name, strlen(t.name));
            printf(", \"minus\": %" PRIu64 ", \"zero\": %" PRIu64 ", \"plus\": %" PRIu64 ", \"other\": %" PRIu64 "}",
                   n[0], n[1], n[2], n[3]);
        } else {
            if (first) printf("\n%-44s %8s %8s %8s  other\n", "codes", "-1", "0", "1");
            printf("%-44s %7.2f%% %7.2f%% %7.2f%%  %" PRIu64 "\n", t.name, 100 * (double)n[0] / fmax(all, 1),
                   100 * (double)n[1] / fmax(all, 1), 100 * (double)n[2] / fmax(all, 1), n[3]);
        }
        first = false;
    }
    if (first && !json) printf("\nno tensor is ternary\n");
}

/* ------------------------------------------------------------------ JSON --- */

static void json_text_field(const char *name, const char *text)
{
    printf(",\n  \"%s\": ", name);
    cli_print_json(stdout, text, strlen(text));
}

static void json_i64(const char *name, int64_t v)
{
    if (v >= 0) printf(",\n  \"%s\": %" PRId64, name, v);
    else printf(",\n  \"%s\": null", name);
}

static void print_facts_json(const char *path, const mica_facts *f)
{
    printf("{\n  \"path\": ");
    cli_print_json(stdout, path, strlen(path));
    json_text_field("kind", f->kind);
    json_text_field("arch", f->arch);
    json_text_field("name", f->name);
    printf(",\n  \"tensors\": %" PRIu64 ",\n  \"parameters\": %" PRIu64 ",\n  \"bytes\": %" PRIu64
           ",\n  \"formats\": [",
           f->tensors, f->parameters, f->bytes);
    for (int i = 0; i < f->n_formats; i++)
        printf("%s{\"format\": \"%s\", \"tensors\": %" PRIu64 ", \"parameters\": %" PRIu64 ", \"bytes\": %" PRIu64 "}",
               i ? ", " : "", f->formats[i].format, f->formats[i].tensors, f->formats[i].parameters,
               f->formats[i].bytes);
    printf("]");
    json_i64("layers", f->layers);
    json_i64("hidden", f->hidden);
    json_i64("ffn", f->ffn);
    json_i64("heads", f->heads);
    json_i64("kv_heads", f->kv_heads);
    json_i64("head_dim", f->head_dim);
    json_i64("vocab", f->vocab);
    json_i64("context", f->context);
    printf(",\n  \"rope_theta\": ");
    cli_print_json_number(stdout, f->rope_theta >= 0 ? f->rope_theta : NAN);
    printf(",\n  \"norm_eps\": ");
    cli_print_json_number(stdout, f->norm_eps >= 0 ? f->norm_eps : NAN);
    printf(",\n  \"tied\": %s,\n  \"chat_template\": %s", f->tied ? "true" : "false",
           f->chat_template ? "true" : "false");
    json_text_field("tokenizer", f->tokenizer);
    json_text_field("pre", f->pre);
    json_i64("tokens", f->tokens);
    json_i64("merges", f->merges);
    json_i64("bos", f->bos);
    json_i64("eos", f->eos);
    printf(",\n  \"warnings\": [");
    for (int i = 0; i < f->n_warnings; i++) {
        printf("%s", i ? ", " : "");
        cli_print_json(stdout, f->warnings[i], strlen(f->warnings[i]));
    }
    printf("]");
}

static void print_tensors_json(const mica_file *file)
{
    mica_tensor_info t = {.struct_size = sizeof t};
    printf(",\n  \"tensor_list\": [");
    for (size_t i = 0; mica_file_tensor(file, i, &t); i++) {
        printf("%s\n    {\"name\": ", i ? "," : "");
        cli_print_json(stdout, t.name, strlen(t.name));
        printf(", \"format\": \"%s\", \"shape\": [", t.format);
        print_shape(&t, ", ");
        printf("], \"bytes\": %" PRIu64 ", \"offset\": %" PRIu64 "}", t.nbytes, t.offset);
    }
    printf("\n  ]");
}

static void print_all_json(const char *path, const mica_file *file, const mica_facts *f, const inspect_options *o)
{
    print_facts_json(path, f);
    if (o->tensors) print_tensors_json(file);
    if (o->meta) printf(",\n  \"metadata\": {"), print_meta(file, true), printf("\n  }");
    if (o->check) printf(",\n  \"codes\": ["), print_codes(file, true), printf("\n  ]");
    printf("\n}\n");
}

int cli_inspect(int argc, char **argv)
{
    inspect_options o = {0};
    const char *path[CLI_MAX_PLACES];
    size_t n;
    mica_file *file = NULL;
    mica_file_options fo;
    const int parsed = cli_parse(&inspect_command, argc, argv, &o, path, &n);
    if (parsed != CLI_OK) return parsed == CLI_HELP_SHOWN ? CLI_OK : parsed;
    mica_facts *facts = calloc(1, sizeof *facts);
    if (!facts) return fprintf(stderr, "mica inspect: out of memory\n"), CLI_FAILED;
    facts->struct_size = sizeof *facts;
    mica_file_options_init(&fo);
    fo.check = o.check;
    fo.i2_s_arm = o.i2_s_arm;
    mica_status status = mica_file_open(path[0], &fo, &file);
    if (status == MICA_OK) status = mica_file_facts(file, facts);
    if (status == MICA_OK && o.json) print_all_json(path[0], file, facts, &o);
    else if (status == MICA_OK) {
        print_facts(path[0], facts);
        if (o.tensors) print_tensors(file);
        if (o.meta) putchar('\n'), print_meta(file, false);
        if (o.check) print_codes(file, false);
    }
    mica_file_close(file);
    free(facts);
    if (status == MICA_OK) return CLI_OK;
    fprintf(stderr, "mica inspect: %s\n", mica_last_error());
    return cli_file_code(status);
}
