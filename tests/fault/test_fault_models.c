/* Each allocation of nn/ and models/ fails once while models are made, converted, inspected,
 * opened, run and closed. A status is returned (or the program succeeds without the memory),
 * nothing leaks, no incomplete file remains, and the next try works.
 *
 * runs: metal-unsanitized, faults */
#include <dirent.h>
#include <mica_convert.h>

#include "lm_tiny.h"
#include "base/alloc.h"
#include "faulted.h"

#define SMALL .layers = 2, .hidden = 64, .heads = 2, .kv_heads = 1, .dim = 32, .ffn = 64, .vocab = 40, .context = 16

static const tiny models[] = {
    {"in panels", "bitnet-b1.58", SMALL, .relu2 = true, .sub_norms = true, .ternary = true, .theta = 1e4,
     .format = "MICA_T2", .embed_format = "MICA_Q8"},
    {"HF, made ternary here", "bitnet", SMALL, .hf = true, .relu2 = true, .sub_norms = true, .theta = 1e4,
     .format = "BF16", .online = true},
    {"HF, llama3", "llama", SMALL, .hf = true, .theta = 1e4, .format = "BF16", .scaling = "llama3"},
    {"MLX", "qwen3", SMALL, .hf = true, .qk_norms = true, .theta = 1e6, .format = "AFFINE", .embed_format = "AFFINE"},
};

static tiny_model *made[COUNT(models)];
static char random_file[512], random_folder[512];

static const char *out_path(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", tiny_folder(), name);
    return path;
}

/* -------------------------------------------------------------- programs --- */

static void see(const char *name, int layer, mica_array *value, void *user)
{
    *(double *)user += (double)layer + (double)strlen(name) + (double)mica_array_size(value);
}

static bool show(int32_t token, void *user)
{
    *(double *)user += token;
    return true;
}

static mica_status run_model(const char *path, double *digest)
{
    static const int32_t ids[] = {1, 2, 3, 4, 5};
    mica_engine *e = tiny_engine(1);
    mica_lm *lm = NULL;
    mica_lm_session *session = NULL;
    mica_lm_sampler *sampler = NULL;
    mica_lm_sampler_options o;
    mica_lm_sampler_options_init(&o);
    o.top_k = 3;
    o.repeat_penalty = 1.1;
    const float *logits = NULL;
    float losses[4];
    int64_t count = 0;
    mica_status status = mica_lm_open(e, path, NULL, &lm);
    if (status == MICA_OK) status = mica_lm_session_open(lm, NULL, &session);
    if (status == MICA_OK) status = mica_lm_feed(session, ids, 5, &logits);
    for (int i = 0; i < 40 && status == MICA_OK; i++) *digest += (double)logits[i];
    mica_lm_session_trace(session, see, digest);
    if (status == MICA_OK) status = mica_lm_feed(session, ids, 1, &logits);
    mica_lm_session_trace(session, NULL, NULL);
    if (status == MICA_OK) status = mica_lm_session_rewind(session, 2);
    if (status == MICA_OK) status = mica_lm_score(session, ids, 5, losses);
    if (status == MICA_OK) status = mica_lm_sampler_open(&o, &sampler);
    if (status == MICA_OK) status = mica_lm_generate(session, sampler, ids, 2, 4, show, digest, &count);
    *digest += (double)count;
    mica_lm_sampler_close(sampler);
    mica_lm_session_close(session);
    mica_lm_close(lm);
    mica_close(e);
    return status;
}

static mica_status convert(const char *in, const char *type, double *digest)
{
    const mica_tensor_rule rule = {"ffn_down", "q8_0"};
    mica_quantize_options o;
    mica_quantize_options_init(&o);
    o.type = type;
    o.rules = &rule;
    o.n_rules = 1;
    o.threads = 2;
    const char *out = out_path("out.gguf");
    mica_status status = mica_quantize(in, out, &o);
    mica_file *file = NULL;
    mica_facts *facts = status == MICA_OK ? malloc(sizeof *facts) : NULL;
    if (!facts) {
        EXPECT(access(out, F_OK) != 0);
        return status;
    }
    *facts = (mica_facts){.struct_size = sizeof *facts};
    if (EXPECT_OK(mica_file_open(out, NULL, &file))) status = mica_file_facts(file, facts);
    if (status == MICA_OK) *digest += (double)facts->bytes + (double)facts->parameters + (double)facts->tokens;
    mica_file_close(file);
    free(facts);
    EXPECT(remove(out) == 0);
    return status;
}

static mica_status make(const char *container, double *digest)
{
    mica_random_options o;
    mica_random_options_init(&o);
    o.container = container;
    const bool folder = strcmp(container, "hf") == 0;
    const char *out = out_path(folder ? "random" : "random.gguf");
    const mica_status status = mica_make_random(out, &o);
    char command[700];
    *digest += 1;
    if (!folder) EXPECT((access(out, F_OK) == 0) == (status == MICA_OK));
    snprintf(command, sizeof command, "rm -rf '%s'", out);
    if (system(command) != 0) abort();
    return status;
}

/* A checkpoint of llama2.c, with the tokenizer of another model. */
static mica_status convert_checkpoint(double *digest)
{
    enum { DIM = 8, HID = 12, LAYERS = 2, VOC = 3, SEQ = 4 };
    const int32_t head[7] = {DIM, HID, LAYERS, 2, 1, VOC, SEQ};
    const size_t n =
        (size_t)(VOC * DIM + LAYERS * (2 * DIM + 2 * DIM * DIM + 2 * 4 * DIM + 3 * DIM * HID) + DIM + SEQ * 4);
    char path[600];
    snprintf(path, sizeof path, "%s", out_path("c.bin"));
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(head, sizeof head, 1, f) != 1) abort();
    for (size_t i = 0; i < n; i++)
        if (fwrite(&(float){(float)i}, sizeof(float), 1, f) != 1) abort();
    fclose(f);
    const mica_status status = convert(path, "f16", digest);
    remove(path);
    return status;
}

typedef enum program { RUN, CONVERT, MAKE, CHECKPOINT, PROGRAMS } program;

static mica_status run_program(program p, size_t i, double *digest)
{
    static const char *const types[] = {"mica_t2", "q4_k", "tq2_0", "i2_s"};
    *digest = 0;
    switch (p) {
    case RUN: return run_model(made[i]->path, digest);
    case CONVERT: return convert(i < 2 ? made[i]->path : i == 2 ? random_folder : random_file, types[i], digest);
    case MAKE: return make((const char *[]){"hf", "i2_s", "mica_t2", "f16"}[i], digest);
    default: return convert_checkpoint(digest);
    }
}

static int files_in_folder(void)
{
    int n = 0;
    DIR *d = opendir(tiny_folder());
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

static void each_fails_once(program p, size_t i)
{
    double clean = 0, digest = 0;
    const uint64_t before = faulted_count();
    CHECK_MSG(run_program(p, i, &clean) == MICA_OK, "undisturbed: %s", mica_last_error());
    const uint64_t last = faulted_count() - before;
    CHECK_MSG(last > 3, "only %d allocations", (int)last);
    const int files = files_in_folder();
    for (uint64_t n = 1; n <= last; n++) {
        const int64_t live = live_blocks();
        faulted_fail_at(n);
        const mica_status status = run_program(p, i, &digest);
        faulted_fail_at(0);
        if (status == MICA_OK)
            EXPECT_MSG(digest == clean, "allocation %d failed unnoticed, with other results", (int)n);
        else
            EXPECT_MSG(status == MICA_ERR_MEMORY && strstr(mica_last_error(), "memory"),
                       "allocation %d: status %d, \"%s\"", (int)n, (int)status, mica_last_error());
        EXPECT_MSG(live_blocks() == live, "allocation %d failed: %d blocks leaked", (int)n,
                   (int)(live_blocks() - live));
        EXPECT_MSG(files_in_folder() == files, "allocation %d failed: a file is left", (int)n);
    }
    EXPECT_MSG(run_program(p, i, &digest) == MICA_OK && digest == clean, "afterwards: %s", mica_last_error());
}

TEST(models_without_memory)
{
    static const char *const names[] = {"run", "convert", "make", "checkpoint"};
    mica_random_options o;
    mica_random_options_init(&o);
    snprintf(random_file, sizeof random_file, "%s", out_path("given.gguf"));
    snprintf(random_folder, sizeof random_folder, "%s", out_path("given"));
    CHECK_OK(mica_make_random(random_file, &o));
    o.container = "hf";
    CHECK_OK(mica_make_random(random_folder, &o));
    for (size_t i = 0; i < COUNT(models); i++) made[i] = tiny_new(&models[i]);
    for (int p = RUN; p < PROGRAMS; p++)
        for (size_t i = 0; i < (p == CHECKPOINT ? 1 : COUNT(models)); i++) {
            test_case("%s, %s", names[p], p == RUN ? models[i].name : p == CHECKPOINT ? "llama2.c" : "");
            each_fails_once((program)p, i);
        }
    for (size_t i = 0; i < COUNT(models); i++) tiny_free(made[i]);
}
