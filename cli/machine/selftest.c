/* mica selftest: compares a device with the reference backend. --dump writes the results
 * to a file and --compare checks such a file, so the GPU of a Mac can be checked on a
 * machine without one.
 *
 * The file is safetensors. Its tensors are CASE/in0, CASE/in1, ... and CASE/out. Its
 * metadata has the machine, the device, and for each case a digest of the result, the
 * time and the error. */
#include "machine/selftest.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli.h"
#include "core/json.h"
#include "core/process.h"
#include "machine/machine.h"

enum { DIGEST_TEXT = 20 };

typedef struct selftest_options {
    const char *device, *dump, *compare;
    bool json;
} selftest_options;

/* clang-format off */
static const cli_option selftest_rows[] = {
    {"--device", "-d", CLI_TEXT, offsetof(selftest_options, device), .value = "cpu|metal|ref",
     .unset = "the fastest one available", .text = "the device to test"},
    {"--dump", NULL, CLI_PATH, offsetof(selftest_options, dump), .value = "FILE",
     .text = "write inputs, results, times and the machine to a safetensors file"},
    {"--compare", NULL, CLI_PATH, offsetof(selftest_options, compare), .value = "FILE",
     .text = "compare the results in a file that --dump wrote with the reference backend of this machine"},
    {"--json", NULL, CLI_FLAG, offsetof(selftest_options, json), .text = "print the verdicts as JSON"},
    {.name = NULL},
};
/* clang-format on */

static int run_selftest_command(const cli_call *call);

const cli_command cli_selftest_command = {
    .name = "mica selftest",
    .summary = "compare the results of a device with the reference backend",
    .usage = "[--device NAME] [--dump FILE] [--compare FILE] [--json]",
    .text = "Computes one case for each kind of kernel and compares it with the reference backend. Exit code 1 if a "
            "result is wrong.",
    .groups = (const cli_group[]){{"Options", selftest_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(selftest_options),
    .run = run_selftest_command,
};

/* ------------------------------------------------------------- one case ---- */

/* A result in row-major memory. */
typedef struct selftest_result {
    mica_dtype dtype;
    int ndim;
    int64_t shape[MICA_MAX_DIMS], size;
    void *data;                 /* NULL: no result                                       */
} selftest_result;

typedef struct selftest_verdict {
    const selftest_case *c;
    selftest_result in[SELFTEST_INPUTS], out; /* kept for the file                       */
    double error;               /* largest |result - ref| / (1 + |ref|); NaN: not compared */
    double us;                  /* fastest evaluation; NaN: not measured                 */
    char why[256];              /* error message; "": the result is correct              */
} selftest_verdict;

static double element_of(const selftest_result *r, int64_t i)
{
    switch (r->dtype) {
    case MICA_BOOL:
    case MICA_U8: return ((const uint8_t *)r->data)[i];
    case MICA_I8: return ((const int8_t *)r->data)[i];
    case MICA_U32: return ((const uint32_t *)r->data)[i];
    case MICA_I32: return ((const int32_t *)r->data)[i];
    case MICA_I64: return (double)((const int64_t *)r->data)[i];
    case MICA_F16: return (double)mica_f16_to_f32(((const uint16_t *)r->data)[i]);
    case MICA_BF16: return (double)mica_bf16_to_f32(((const uint16_t *)r->data)[i]);
    case MICA_F32: return (double)((const float *)r->data)[i];
    default: return NAN;
    }
}

static bool take_result(mica_array *x, selftest_result *r)
{
    r->dtype = mica_array_dtype(x);
    r->ndim = mica_array_ndim(x);
    r->size = mica_array_size(x);
    for (int d = 0; d < r->ndim; d++) r->shape[d] = mica_array_shape(x)[d];
    r->data = malloc(mica_array_nbytes(x) + 1);
    return r->data && mica_copy_out(x, r->data, mica_array_nbytes(x)) == MICA_OK;
}

/* Builds and evaluates the case `runs` times. Copies the result to out, and the inputs to in if it is not NULL. */
static mica_status evaluate_case(mica_engine *engine, const selftest_case *c, int runs, selftest_result *out,
                                 selftest_result *in, double *us)
{
    mica_status status = MICA_OK;
    *us = NAN;
    for (int run = 0; run < runs && status == MICA_OK; run++) {
        selftest_run t = {.s = mica_scope_begin(engine), .name = c->name};
        if (!t.s) return MICA_ERR_MEMORY;
        mica_array *y = c->build(&t);
        const double start = cli_seconds();
        status = mica_eval(t.s, &y, 1);
        const double took = 1e6 * (cli_seconds() - start);
        if (status == MICA_OK && run > 0 && !(*us <= took)) *us = took; /* the first run includes planning */
        if (status == MICA_OK && run == runs - 1) {
            bool taken = take_result(y, out);
            for (int i = 0; in && taken && i < SELFTEST_INPUTS; i++)
                if (t.input[i]) taken = take_result(t.input[i], &in[i]);
            if (!taken) status = mica_fail(MICA_ERR_MEMORY, "selftest: no memory for the results of %s", c->name);
        }
        mica_scope_end(t.s);
    }
    return status;
}

/* Sets error and why. who: the backend or file that `got` comes from, for messages. */
static void compare_results(selftest_verdict *v, const selftest_result *got, const selftest_result *want,
                            const char *who)
{
    bool same = got->dtype == want->dtype && got->ndim == want->ndim;
    for (int d = 0; same && d < got->ndim; d++) same = got->shape[d] == want->shape[d];
    if (!same) {
        snprintf(v->why, sizeof v->why, "%s has another shape or dtype than the reference", who);
        return;
    }
    v->error = 0;
    for (int64_t i = 0; i < got->size; i++) {
        const double x = element_of(got, i), y = element_of(want, i);
        const bool equal = x == y || (isnan(x) && isnan(y));
        const double error = equal ? 0 : fabs(x - y) / (1 + fabs(y));
        if (!(error <= v->c->tolerance) && !v->why[0])
            snprintf(v->why, sizeof v->why, "element %" PRId64 " is %.9g with %s, %.9g with ref", i, x, who, y);
        if (!(error <= v->error)) v->error = error;
    }
}

static void free_results(selftest_verdict *v)
{
    free(v->out.data);
    for (int i = 0; i < SELFTEST_INPUTS; i++) free(v->in[i].data);
}

/* ----------------------------------------------------------------- files ---- */

static void upper_name(mica_dtype dtype, char out[8])
{
    const char *name = mica_dtype_name(dtype);
    size_t n = 0;
    for (; name[n] && n < 7; n++) out[n] = (char)(name[n] >= 'a' && name[n] <= 'z' ? name[n] - 'a' + 'A' : name[n]);
    out[n] = '\0';
}

static void put_result(mica_writer *w, const char *name, const char *part, const selftest_result *r)
{
    char full[96], format[8];
    snprintf(full, sizeof full, "%s/%s", name, part);
    upper_name(r->dtype, format);
    mica_writer_tensor(w, full, format, r->ndim, r->shape, r->data);
}

/* A hash of the bytes of a result: equal results on two machines have equal digests. */
static const char *digest_text(const selftest_result *r, char text[DIGEST_TEXT])
{
    snprintf(text, DIGEST_TEXT, "%016" PRIx64, cli_hash(r->data, (size_t)r->size * mica_dtype_size(r->dtype)));
    return text;
}

static void put_digest(mica_writer *w, const char *name, const selftest_result *r)
{
    char key[96], text[DIGEST_TEXT];
    snprintf(key, sizeof key, "%s/digest", name);
    digest_text(r, text);
    mica_writer_string(w, key, text, strlen(text));
}

static void put_number(mica_writer *w, const char *name, const char *part, double value)
{
    char key[96], text[32];
    snprintf(key, sizeof key, "%s/%s", name, part);
    if (isnan(value)) snprintf(text, sizeof text, "unavailable");
    else snprintf(text, sizeof text, "%.6g", value);
    mica_writer_string(w, key, text, strlen(text));
}

static mica_status write_dump(const char *path, const mica_engine *engine, const selftest_verdict *verdicts)
{
    mica_writer *w;
    const mica_status status = mica_writer_open(path, "safetensors", &w);
    if (status != MICA_OK) return status;
    char doctor[8192];
    const size_t length = mica_doctor_text(doctor, sizeof doctor);
    mica_writer_string(w, "mica", mica_version(), strlen(mica_version()));
    mica_writer_string(w, "commit", cli_commit(), strlen(cli_commit()));
    mica_writer_string(w, "backend", mica_engine_backend(engine), strlen(mica_engine_backend(engine)));
    mica_writer_string(w, "device", mica_engine_device(engine), strlen(mica_engine_device(engine)));
    mica_writer_string(w, "machine", doctor, length < sizeof doctor ? length : sizeof doctor - 1);
    for (size_t i = 0; i < selftest_n_cases; i++) {
        const selftest_verdict *v = &verdicts[i];
        if (!v->out.data) continue; /* the case failed and has no result */
        for (int k = 0; k < SELFTEST_INPUTS; k++) {
            char part[16];
            snprintf(part, sizeof part, "in%d", k);
            if (v->in[k].data) put_result(w, v->c->name, part, &v->in[k]);
        }
        put_result(w, v->c->name, "out", &v->out);
        put_digest(w, v->c->name, &v->out);
        put_number(w, v->c->name, "error", v->error);
        put_number(w, v->c->name, "us", v->us);
    }
    return mica_writer_finish(w, NULL, NULL);
}

/* True if the digest in the file matches this result. */
static bool digest_matches(const mica_file *file, const char *name, const selftest_result *r)
{
    char key[96], digest[DIGEST_TEXT];
    const char *text;
    size_t length;
    snprintf(key, sizeof key, "%s/digest", name);
    digest_text(r, digest);
    return mica_file_string(file, key, &text, &length) && length == strlen(digest) && memcmp(text, digest, length) == 0;
}

/* Reads the result or an input of a case from the file. */
static bool read_result(const mica_file *file, const char *name, const char *part, selftest_result *r)
{
    char full[96];
    mica_tensor_info info = {.struct_size = sizeof info};
    snprintf(full, sizeof full, "%s/%s", name, part);
    if (!mica_file_find(file, full, &info) || info.dtype < 0) return false;
    *r = (selftest_result){.dtype = (mica_dtype)info.dtype, .ndim = info.ndim, .size = 1};
    for (int d = 0; d < info.ndim; d++) r->size *= r->shape[d] = info.shape[d];
    r->data = malloc((size_t)info.nbytes + 1);
    if (!r->data) return false;
    memcpy(r->data, info.data, (size_t)info.nbytes);
    return true;
}

/* ------------------------------------------------------------- verdicts ---- */

/* True if the file has the same inputs. They differ if a version with other cases wrote it. */
static bool same_inputs(const mica_file *file, const char *name, const selftest_result in[SELFTEST_INPUTS])
{
    bool same = true;
    for (int i = 0; i < SELFTEST_INPUTS && same; i++) {
        char part[16];
        selftest_result theirs = {.data = NULL};
        snprintf(part, sizeof part, "in%d", i);
        const bool there = read_result(file, name, part, &theirs);
        same = there == (in[i].data != NULL);
        if (same && there)
            same = theirs.dtype == in[i].dtype && theirs.size == in[i].size &&
                   memcmp(theirs.data, in[i].data, (size_t)in[i].size * mica_dtype_size(in[i].dtype)) == 0;
        free(theirs.data);
    }
    return same;
}

/* Compares a device of this machine with the reference. */
static void compare_device(mica_engine *device, mica_engine *ref, selftest_verdict *v)
{
    selftest_result want = {.data = NULL};
    double unused;
    mica_status status = evaluate_case(device, v->c, 4, &v->out, v->in, &v->us);
    if (status == MICA_OK) status = evaluate_case(ref, v->c, 1, &want, NULL, &unused);
    if (status != MICA_OK) snprintf(v->why, sizeof v->why, "%s", mica_last_error());
    else compare_results(v, &v->out, &want, mica_engine_backend(device));
    /* times of a software GPU are not those of a GPU */
    if (cli_is_software(device)) v->us = NAN;
    free(want.data);
}

/* Compares the results in a file with the reference. */
static void compare_file(const mica_file *file, mica_engine *ref, selftest_verdict *v)
{
    selftest_result want = {.data = NULL};
    double unused;
    if (!read_result(file, v->c->name, "out", &v->out)) snprintf(v->why, sizeof v->why, "the file has no such case");
    else if (evaluate_case(ref, v->c, 1, &want, v->in, &unused) != MICA_OK)
        snprintf(v->why, sizeof v->why, "%s", mica_last_error());
    else if (!same_inputs(file, v->c->name, v->in))
        snprintf(v->why, sizeof v->why, "the inputs in the file differ: another version wrote it");
    else {
        compare_results(v, &v->out, &want, "the file");
        if (!digest_matches(file, v->c->name, &v->out))
            snprintf(v->why + strlen(v->why), sizeof v->why - strlen(v->why),
                     "%sthe digest in the file does not match its numbers", v->why[0] ? "; " : "");
    }
    free(want.data);
}

static void print_verdicts(const selftest_verdict *verdicts, const char *who, size_t wrong)
{
    printf("%-18s %10s %10s %10s\n", who, "off by", "allowed", "us");
    for (size_t i = 0; i < selftest_n_cases; i++) {
        const selftest_verdict *v = &verdicts[i];
        char us[24] = "-";
        if (!isnan(v->us)) snprintf(us, sizeof us, "%.1f", v->us);
        printf("%-18s %10.2g %10.2g %10s%s%s\n", v->c->name, v->error, v->c->tolerance, us,
               v->why[0] ? "  WRONG: " : "", v->why);
    }
    printf("%zu right, %zu wrong\n", selftest_n_cases - wrong, wrong);
}

static void print_verdicts_json(const selftest_verdict *verdicts, const char *who, size_t wrong)
{
    cli_json j = {.to = stdout};
    cli_json_object(&j, NULL, CLI_JSON_INLINE);
    cli_json_text(&j, "device", who);
    cli_json_uint(&j, "right", selftest_n_cases - wrong);
    cli_json_uint(&j, "wrong", wrong);
    cli_json_array(&j, "cases", CLI_JSON_INLINE);
    for (size_t i = 0; i < selftest_n_cases; i++) {
        const selftest_verdict *v = &verdicts[i];
        char digest[DIGEST_TEXT];
        cli_json_object(&j, NULL, CLI_JSON_INLINE);
        cli_json_text(&j, "name", v->c->name);
        cli_json_bool(&j, "right", !v->why[0]);
        cli_json_number(&j, "error", v->error);
        cli_json_number(&j, "tolerance", v->c->tolerance);
        cli_json_number(&j, "us", v->us);
        if (v->out.data) cli_json_text(&j, "digest", digest_text(&v->out, digest));
        if (v->why[0]) cli_json_text(&j, "why", v->why);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_end(&j);
}

static mica_status open_engine(const char *backend, mica_engine **out)
{
    mica_engine_options o;
    mica_engine_options_init(&o);
    o.backend = backend;
    return mica_open(&o, out);
}

static int selftest_failed(int code)
{
    fprintf(stderr, "mica selftest: %s\n", mica_last_error());
    return code;
}

static int run_selftest(const selftest_options *o, mica_engine *device, mica_engine *ref, const mica_file *file)
{
    selftest_verdict *verdicts = calloc(selftest_n_cases, sizeof *verdicts);
    if (!verdicts) return cli_no_memory("mica selftest");
    const char *who = file ? o->compare : mica_engine_backend(device);
    size_t wrong = 0;
    for (size_t i = 0; i < selftest_n_cases; i++) {
        verdicts[i] = (selftest_verdict){.c = &selftest_cases[i], .error = NAN, .us = NAN};
        if (file) compare_file(file, ref, &verdicts[i]);
        else compare_device(device, ref, &verdicts[i]);
        wrong += verdicts[i].why[0] != '\0';
    }
    if (o->json) print_verdicts_json(verdicts, who, wrong);
    else print_verdicts(verdicts, who, wrong);
    int code = wrong ? CLI_FAILED : CLI_OK;
    if (o->dump && write_dump(o->dump, device, verdicts) != MICA_OK) code = selftest_failed(CLI_FAILED);
    for (size_t i = 0; i < selftest_n_cases; i++) free_results(&verdicts[i]);
    free(verdicts);
    return code;
}

static int run_selftest_command(const cli_call *call)
{
    const selftest_options *o = call->options;
    if (o->compare && (o->dump || o->device))
        return cli_fail(CLI_USAGE, "mica selftest: --compare checks a file, not a device: leave out --%s",
                        o->dump ? "dump" : "device");
    mica_file *file = NULL;
    if (o->compare) {
        const mica_status status = mica_file_open(o->compare, NULL, &file);
        if (status != MICA_OK) return cli_file_failed("mica selftest", status);
    }
    mica_engine *device = NULL, *ref = NULL;
    int code = CLI_USAGE;
    if (open_engine("ref", &ref) != MICA_OK || (!file && open_engine(o->device, &device) != MICA_OK))
        code = selftest_failed(CLI_USAGE);
    else code = run_selftest(o, device, ref, file);
    mica_close(device);
    mica_close(ref);
    mica_file_close(file);
    return code;
}
