/* An interrupted training run continues with the same bits: parameters, buffers, optimiser state,
 * dropout, loss scale. Files that do not fit change nothing.
 *
 * runs: metal, check */
#include <math.h>

#include "nn_course.h"

typedef struct resume_case {
    const char *name;
    mica_optimiser_kind kind;
    double momentum;
    mica_dtype compute;
    double loss_scale;
    int64_t accumulate;
} resume_case;

static const resume_case cases[] = {
    {"sgd", MICA_SGD, 0, MICA_F32, 0, 0},
    {"sgd with momentum", MICA_SGD, 0.9, MICA_F32, 0, 0},
    {"adam, three batches a step", MICA_ADAM, 0, MICA_F32, 0, 2},
    {"adamw in bf16", MICA_ADAMW, 0, MICA_BF16, 0, 0},
    {"lion in f16, scale 2^24", MICA_LION, 0, MICA_F16, 16777216, 1},
};

/* Batch norm has buffers, dropout draws from the seed. */
static void begin_case(course *c, const resume_case *k, uint64_t seed)
{
    course_begin(c);
    mica_layer *l = c->net;
    *l++ = mica_linear_layer(IN, 8);
    *l++ = mica_norm_layer(MICA_LAYER_BATCH_NORM, 8);
    *l++ = mica_activation_layer(MICA_ACTIVATION_TANH);
    *l++ = mica_dropout_layer(0.2);
    *l++ = mica_linear_layer(8, OUT);
    c->n = (size_t)(l - c->net);
    mica_optimiser_init(&c->o.optimiser, k->kind);
    c->o.optimiser.momentum = k->momentum;
    c->o.compute = k->compute;
    c->o.loss_scale = k->loss_scale;
    c->o.scale_every = 3;
    c->o.seed = seed;
}

/* Trains up to step `until` and stores the losses. */
static void learn(course *c, const resume_case *k, int64_t until, double *losses)
{
    for (int64_t i; (i = mica_trainer_steps(c->trainer)) < until;) {
        mica_train_result r = {.struct_size = sizeof r};
        for (int64_t b = 0; b < k->accumulate; b++) CHECK_OK(mica_trainer_accumulate(c->trainer, c->s, c->data, 2, &r));
        CHECK_OK(mica_trainer_step(c->trainer, c->s, c->data, 2, 0.01, 0.1, &r));
        losses[i] = r.loss + r.loss_scale;
    }
}

static mica_status course_load(course *c, const char *path)
{
    mica_file *file;
    mica_status status = mica_file_open(path, NULL, &file);
    if (status != MICA_OK) return status;
    status = mica_trainer_load(c->trainer, c->s, file);
    mica_file_close(file);
    return status;
}

static const char *resume_path(char path[64])
{
    snprintf(path, 64, "/tmp/mica-nn-resume-%d", (int)getpid());
    return path;
}

TEST(an_interrupted_run_has_the_same_bits)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("%s", cases[i].name);
        char path[64];
        course a, b;
        double whole[12] = {0}, resumed[12] = {0};
        begin_case(&a, &cases[i], 21), begin_case(&b, &cases[i], 99); /* another seed, which the file replaces */
        course_open(&a), course_open(&b);
        learn(&a, &cases[i], 5, whole);
        CHECK_OK(mica_trainer_save(a.trainer, resume_path(path), NULL, 0));
        learn(&a, &cases[i], 12, whole);
        learn(&b, &cases[i], 2, resumed); /* a state that the file must replace */
        CHECK_OK(course_load(&b, path));
        learn(&b, &cases[i], 12, resumed);
        EXPECT(memcmp(whole + 5, resumed + 5, 7 * sizeof *whole) == 0);
        EXPECT(whole[5] != whole[6]);
        for (size_t p = 0; p < mica_params_count(a.params); p++)
            EXPECT_MSG(memcmp(mica_data_f32(mica_params_at(a.params, p)), mica_data_f32(mica_params_at(b.params, p)),
                              mica_array_nbytes(mica_params_at(a.params, p))) == 0,
                       "%s differs", mica_params_name(a.params, p));
        remove(path);
        course_end(&a), course_end(&b);
    }
}

/* Dropout differs in each step and depends on the seed. */
TEST(seeds_decide)
{
    double losses[3][4];
    for (int i = 0; i < 3; i++) {
        course c;
        begin_case(&c, &cases[0], i == 2 ? 22 : 21);
        course_open(&c);
        learn(&c, &cases[0], 4, losses[i]);
        course_end(&c);
    }
    EXPECT(memcmp(losses[0], losses[1], sizeof losses[0]) == 0);
    EXPECT(losses[0][0] != losses[2][0]);
}

/* A copy of the file with another value of one key of its metadata. */
static void change_meta(const char *from, const char *to, const char *key, const char *text)
{
    mica_file *file;
    mica_writer *w;
    CHECK_OK(mica_file_open(from, NULL, &file));
    CHECK_OK(mica_writer_open(to, "safetensors", &w));
    for (size_t i = 0; i < mica_file_meta_count(file); i++) {
        mica_meta_info info = {.struct_size = sizeof info};
        if (mica_file_meta(file, i, &info) && strcmp(info.key, key) != 0) EXPECT_OK(mica_writer_meta(w, &info));
    }
    if (text) EXPECT_OK(mica_writer_string(w, key, text, strlen(text)));
    for (size_t i = 0; i < mica_file_tensor_count(file); i++) {
        mica_tensor_info info = {.struct_size = sizeof info};
        if (mica_file_tensor(file, i, &info))
            EXPECT_OK(mica_writer_tensor(w, info.name, info.format, info.ndim, info.shape, info.data));
    }
    CHECK_OK(mica_writer_finish(w, NULL, NULL));
    mica_file_close(file);
}

TEST(invalid_metadata)
{
    static const struct {
        const char *key, *text, *part;
    } changes[] = {
        {"mica.steps", NULL, "mica.steps"},
        {"mica.steps", "-1", "'-1'"},
        {"mica.steps", "5x", "'5x'"},
        {"mica.steps", "nan", "'nan'"},
        {"mica.optimiser", NULL, "mica.optimiser"},
        {"mica.optimiser", "adamw", "is not adam"},
        {"mica.seed", NULL, "mica.seed"},
        {"mica.seed", "99999999999999999999", "mica.seed is"},
        {"mica.seed", "", "mica.seed is"},
        {"mica.loss_scale", "0", "mica.loss_scale"},
        {"mica.loss_scale", "2", "1 means no scaling"},
        {"mica.good_steps", "1e99", "mica.good_steps"},
    };
    char path[64], other[72];
    course c;
    begin_case(&c, &cases[2], 1);
    course_open(&c);
    double losses[8];
    learn(&c, &cases[2], 2, losses);
    CHECK_OK(mica_trainer_save(c.trainer, resume_path(path), NULL, 0));
    snprintf(other, sizeof other, "%s-other", path);
    learn(&c, &cases[2], 3, losses);
    for (size_t i = 0; i < COUNT(changes); i++) {
        test_case("%s %s", changes[i].key, changes[i].text ? changes[i].text : "absent");
        mica_array *first = mica_params_at(c.params, 0);
        change_meta(path, other, changes[i].key, changes[i].text);
        EXPECT_FAILS(course_load(&c, other), MICA_ERR_FORMAT, changes[i].part);
        EXPECT(mica_params_at(c.params, 0) == first);
        EXPECT_INT(mica_trainer_steps(c.trainer), 3);
    }
    CHECK_OK(course_load(&c, path));
    EXPECT_INT(mica_trainer_steps(c.trainer), 2);
    remove(path), remove(other);
    course_end(&c);
}

/* Files of another optimiser, of another shape, or with parameters only. */
TEST(files_of_other_trainers)
{
    char path[64];
    course a, b;
    begin_case(&a, &cases[1], 1), begin_case(&b, &cases[4], 1);
    course_open(&a), course_open(&b);
    CHECK_OK(mica_trainer_save(a.trainer, resume_path(path), NULL, 0));
    EXPECT_FAILS(course_load(&b, path), MICA_ERR_FORMAT, "is not lion");
    course_end(&b);
    begin_case(&b, &cases[1], 1);
    b.net[4] = mica_linear_layer(8, OUT + 1);
    course_open(&b);
    EXPECT_FAILS(course_load(&b, path), MICA_ERR_SHAPE, "'net.4.weight'");
    CHECK_OK(mica_params_save(a.params, path, NULL, 0));
    EXPECT_FAILS(course_load(&a, path), MICA_ERR_FORMAT, "mica.steps");
    remove(path);
    course_end(&a), course_end(&b);
}
