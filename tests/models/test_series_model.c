/* Series models: every cell learns, is saved and opened unchanged, and runs over other tables; and
 * what is refused.
 *
 * runs: metal-unsanitized, arm */
#include "comma_locale.h"

#include "series_kit.h"

static const struct {
    const char *name;
    mica_series_cell cell;
    const char *wiring;
    bool memory, both;
} nets[] = {
    {"ltc", MICA_CELL_LTC, NULL, false, false},       {"ltc, wired", MICA_CELL_LTC, "autoncp:12,2@5", false, false},
    {"cfc", MICA_CELL_CFC, NULL, false, false},       {"cfc, wired", MICA_CELL_CFC, "autoncp:12,3", false, false},
    {"cfc, memory", MICA_CELL_CFC, NULL, true, true}, {"ctrnn", MICA_CELL_CTRNN, NULL, false, false},
    {"node", MICA_CELL_NODE, NULL, false, false},     {"eltc", MICA_CELL_ELTC, "full:8", false, false},
    {"ctgru", MICA_CELL_CTGRU, NULL, false, false},   {"gru", MICA_CELL_GRU, NULL, false, true},
    {"lstm", MICA_CELL_LSTM, NULL, false, false}};

static mica_series_net net_of(size_t i)
{
    mica_series_net n;
    mica_series_net_init(&n, nets[i].cell);
    n.units = 8, n.wiring = nets[i].wiring, n.mixed_memory = nets[i].memory, n.bidirectional = nets[i].both;
    n.backbone_units = 12;
    return n;
}

static mica_series *made_series(mica_made_kind kind, mica_table **t)
{
    mica_series_options o = options_of(kind == MICA_MADE_SINE     ? "target"
                                       : kind == MICA_MADE_SPIRAL ? "class"
                                                                  : "speed",
                                       12);
    o.stride = 6;
    if (kind == MICA_MADE_SPIRAL) o.group = "series";
    if (kind == MICA_MADE_IRREGULAR) o.time = "time";
    mica_series *d = NULL;
    EXPECT_OK(mica_table_make(kind, 640, 0.01, 2, t));
    EXPECT_OK(mica_series_open(&o, t, NULL, 1, &d));
    if (!d) abort();
    return d;
}

static mica_status train_steps_of(mica_engine *e, mica_trainer *t, const mica_series *d, int steps, double *first,
                                  double *last)
{
    mica_status status = MICA_OK;
    for (int i = 0; i < steps && status == MICA_OK; i++) {
        int64_t order[256];
        mica_array *data[3];
        size_t n;
        mica_train_result r = {.struct_size = sizeof r};
        mica_series_shuffle(4, 0, mica_series_windows(d, MICA_PART_TRAIN), order);
        mica_scope *s = mica_scope_begin(e);
        status = mica_series_batch(s, d, MICA_PART_TRAIN, order, 16, data, &n);
        if (status == MICA_OK) status = mica_trainer_step(t, s, data, n, 0.01, 0, &r);
        mica_scope_end(s);
        if (i == 0) *first = r.loss;
        *last = r.loss;
    }
    return status;
}

typedef struct said {
    int64_t n, last_row, outside;
    double sum;
} said;

static mica_status listen(void *user, const mica_series_row *row)
{
    said *h = user;
    h->n++;
    h->last_row = row->row;
    h->outside += !row->inside;
    h->sum += (double)row->table + (double)row->best;
    for (int64_t i = 0; i < row->n; i++) h->sum += (double)row->values[i];
    return MICA_OK;
}

TEST(cells_learn_and_come_back)
{
    for (size_t i = 0; i < COUNT(nets); i++) {
        test_case("%s", nets[i].name);
        const mica_made_kind kind = (mica_made_kind)(i % 3);
        mica_engine *e = open_engine("cpu");
        mica_scope *s = mica_scope_begin(e);
        mica_table *t;
        mica_series *d = made_series(kind, &t), *whole = NULL;
        const mica_series_net net = net_of(i);
        mica_series_model *m = NULL, *again = NULL;
        mica_trainer *trainer = NULL;
        mica_trainer_options o;
        double first = 0, last = 0;
        CHECK_OK(mica_series_model_new(s, &net, mica_series_recipe(d), 3, &m));
        mica_trainer_options_init(&o);
        o.loss = mica_series_loss;
        o.user = m;
        CHECK_OK(mica_trainer_open(e, mica_series_model_params(m), &o, &trainer));
        CHECK_OK(train_steps_of(e, trainer, d, 30, &first, &last));
        EXPECT_MSG(last < first, "the loss went from %g to %g", first, last);

        CHECK_OK(mica_series_model_save(s, m, file_path("m.safetensors"), NULL, 0));
        CHECK_OK(mica_series_model_open(s, file_path("m.safetensors"), &again));
        const mica_series_net *back = mica_series_model_net(again);
        EXPECT(back->cell == net.cell && back->units == 8 && back->mixed_memory == net.mixed_memory);
        CHECK_OK(mica_series_apply(mica_series_model_recipe(again), &t, 1, 12, 4, &whole));
        mica_series_score a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
        said x = {0}, y = {0};
        CHECK_OK(mica_series_run(e, m, whole, MICA_PART_TEST, 16, &a, listen, &x));
        CHECK_OK(mica_series_run(e, again, whole, MICA_PART_TEST, 7, &b, listen, &y));
        EXPECT(a.rows == 640 && a.scored == 640 && x.n == 640 && x.last_row == 639);
        EXPECT_CLOSE(b.loss, a.loss, 1e-5, 1e-7); /* other batches, another order of sums */
        EXPECT_CLOSE(y.sum, x.sum, 1e-5, 1e-4);
        if (kind == MICA_MADE_SPIRAL) EXPECT(a.accuracy >= 0 && a.accuracy <= 1 && a.majority >= 0.5 && isnan(a.mse));
        else EXPECT(a.mse > 0 && a.mae > 0 && a.r2 <= 1 && isnan(a.accuracy));
        mica_trainer_close(trainer);
        mica_series_model_free(m);
        mica_series_model_free(again);
        mica_series_free(d);
        mica_series_free(whole);
        mica_table_free(t);
        mica_scope_end(s);
        mica_close(e);
    }
    EXPECT(remove(file_path("m.safetensors")) == 0);
}

/* The score is recomputed here from the rows. */
static mica_status keep_values(void *user, const mica_series_row *row)
{
    ((float *)user)[row->row] = row->values[0];
    return MICA_OK;
}

/* A program with another decimal point reads and writes the same files. */
TEST(numbers_have_a_point_in_any_locale)
{
    if (!comma_locale()) SKIP("there is no locale with a decimal comma");
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_table *t = table_of("t,a,b\n2020-01-01 10:00:00.5,1.5,2.25\n2020-01-01 10:00:01.5,2.5,3\n");
    EXPECT(mica_table_kind(t, 0) == MICA_COLUMN_DATES && mica_table_number(t, 0, 1) == 1.5);
    mica_series_options o = options_of("b", 2);
    o.valid = o.test = 0;
    mica_series *d;
    mica_series_net n;
    mica_series_model *m, *back;
    CHECK_OK(mica_series_open(&o, &t, NULL, 1, &d));
    mica_series_net_init(&n, MICA_CELL_CFC);
    n.wiring = "random:8,2,0.5", n.dropout = 0.25;
    CHECK_OK(mica_series_model_new(s, &n, mica_series_recipe(d), 1, &m));
    CHECK_OK(mica_series_model_save(s, m, file_path("m.safetensors"), NULL, 0));
    CHECK_OK(mica_table_write(t, file_path("t.csv")));
    mica_table_free(t);
    setlocale(LC_NUMERIC, "C");
    CHECK_OK(mica_series_model_open(s, file_path("m.safetensors"), &back));
    EXPECT(mica_series_model_net(back)->dropout == 0.25);
    CHECK_OK(mica_table_open(file_path("t.csv"), NULL, &t));
    EXPECT(mica_table_number(t, 0, 2) == 2.25);
    remove(file_path("m.safetensors"));
    remove(file_path("t.csv"));
    mica_series_model_free(m);
    mica_series_model_free(back);
    mica_series_free(d);
    mica_table_free(t);
    mica_scope_end(s);
    mica_close(e);
}

TEST(scores_of_numbers)
{
    mica_engine *e = open_engine("ref");
    mica_scope *s = mica_scope_begin(e);
    mica_table *t;
    mica_series *d = made_series(MICA_MADE_SINE, &t), *whole = NULL;
    const mica_series_net net = net_of(9);
    mica_series_model *m = NULL;
    mica_series_score score = {.struct_size = sizeof score};
    float got[640];
    CHECK_OK(mica_series_model_new(s, &net, mica_series_recipe(d), 3, &m));
    CHECK_OK(mica_series_apply(mica_series_recipe(d), &t, 1, 0, 0, &whole));
    CHECK_OK(mica_series_run(e, m, whole, MICA_PART_TEST, 1, &score, keep_values, got));
    double square = 0, size = 0, sum = 0, squares = 0;
    for (int i = 0; i < 640; i++) {
        const double want = mica_table_number(t, i, 2), error = (double)got[i] - want;
        square += error * error;
        size += fabs(error);
        sum += want;
        squares += want * want;
    }
    EXPECT_CLOSE(score.mse, square / 640, 1e-5, 0);
    EXPECT_CLOSE(score.mae, size / 640, 1e-5, 0);
    EXPECT_CLOSE(score.r2, 1 - square / (squares - sum * sum / 640), 1e-4, 0);
    mica_series_model_free(m);
    mica_series_free(d);
    mica_series_free(whole);
    mica_table_free(t);
    mica_scope_end(s);
    mica_close(e);
}

TEST(a_whole_series_ahead_of_its_end)
{
    mica_table *t = counted(60);
    mica_series_options o = options_of("all", 5);
    mica_series *d = NULL, *whole = NULL;
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    const mica_series_net net = net_of(2);
    mica_series_model *m = NULL;
    mica_series_score score = {.struct_size = sizeof score};
    said h = {0};
    o.ahead = 2;
    CHECK_OK(mica_series_open(&o, &t, NULL, 1, &d));
    CHECK_OK(mica_series_model_new(s, &net, mica_series_recipe(d), 3, &m));
    CHECK_OK(mica_series_apply(mica_series_recipe(d), &t, 1, 5, 2, &whole));
    CHECK_OK(mica_series_run(e, m, whole, MICA_PART_TEST, 4, &score, listen, &h));
    EXPECT(h.n == 60 && h.last_row == 61 && h.outside == 2 && score.rows == 60 && score.scored == 58);
    mica_series_free(whole);
    /* Two tables are two series: the end of the first has no targets either. */
    mica_table *both[] = {t, t};
    CHECK_OK(mica_series_apply(mica_series_recipe(d), both, 2, 0, 0, &whole));
    h = (said){0};
    CHECK_OK(mica_series_run(e, m, whole, MICA_PART_TEST, 4, &score, listen, &h));
    EXPECT(h.n == 120 && h.outside == 4 && score.scored == 116);
    mica_series_model_free(m);
    mica_series_free(d);
    mica_series_free(whole);
    mica_table_free(t);
    mica_scope_end(s);
    mica_close(e);
}

TEST(refused_models)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_table *t, *u = counted(80);
    mica_series *d = made_series(MICA_MADE_SINE, &t), *other = NULL;
    const mica_recipe *r = mica_series_recipe(d);
    mica_series_model *m = NULL;
    mica_series_net net;
    mica_series_score score = {.struct_size = sizeof score};
#define BAD_NET(change, part)                                                            \
    do {                                                                                 \
        mica_series_net_init(&net, MICA_CELL_CFC);                                       \
        change;                                                                          \
        EXPECT_FAILS(mica_series_model_new(s, &net, r, 1, &m), MICA_ERR_ARGUMENT, part); \
        mica_scope_clear_error(s);                                                       \
        EXPECT(!m);                                                                      \
    } while (0)
    BAD_NET(net.cell = (mica_series_cell)44, "cell 44");
    BAD_NET(net.mode = (mica_cfc_mode)3, "mode 3");
    BAD_NET(net.activation = 77, "activation 77");
    BAD_NET(net.solver = 5, "solver 5");
    BAD_NET(net.units = 0, "units 0");
    BAD_NET(net.wiring = "autoncp:8,8", "8");
    BAD_NET(net.wiring = "star:8", "star");
    BAD_NET(net.wiring = "full:8 x", "is not a wiring");
    BAD_NET((net.cell = MICA_CELL_GRU, net.wiring = "full:8"), "no wiring");
    BAD_NET((net.cell = MICA_CELL_NODE, net.mixed_memory = true), "mixed memory");
    BAD_NET(net.struct_size = 0, "struct_size is 0");
    EXPECT_FAILS(mica_series_model_new(s, NULL, r, 1, &m), MICA_ERR_ARGUMENT, "no description");
    mica_series_net_init(&net, MICA_CELL_CFC);
    EXPECT_FAILS(mica_series_model_new(s, &net, NULL, 1, &m), MICA_ERR_ARGUMENT, "no recipe");
    EXPECT_FAILS(mica_series_model_new(s, &net, r, 1, NULL), MICA_ERR_ARGUMENT, "NULL");
    EXPECT_FAILS(mica_series_model_open(s, file_path("no"), &m), MICA_ERR_FILE, "no");
    EXPECT_FAILS(mica_series_model_open(s, NULL, &m), MICA_ERR_ARGUMENT, "no path");
    EXPECT_FAILS(mica_series_model_open(s, "x", NULL), MICA_ERR_ARGUMENT, "NULL");
    EXPECT_FAILS(mica_series_model_save(s, NULL, "x", NULL, 0), MICA_ERR_ARGUMENT, "model, scope or path is NULL");

    CHECK_OK(mica_series_model_new(s, &net, r, 1, &m));
    const mica_series_options o = options_of("b", 6);
    CHECK_OK(mica_series_open(&o, &u, NULL, 1, &other));
    EXPECT_FAILS(mica_series_run(e, m, other, MICA_PART_TEST, 4, &score, NULL, NULL), MICA_ERR_ARGUMENT, "recipes");
    EXPECT_FAILS(mica_series_run(e, m, d, MICA_PART_TEST, 0, &score, NULL, NULL), MICA_ERR_ARGUMENT, "batch");
    EXPECT_FAILS(mica_series_run(NULL, m, d, MICA_PART_TEST, 1, &score, NULL, NULL), MICA_ERR_ARGUMENT, "engine");
    EXPECT(!mica_series_model_params(NULL) && !mica_series_model_net(NULL) && !mica_series_model_recipe(NULL));

    /* Invalid files: not a model, or with an invalid description or recipe. */
    static const struct {
        const char *net, *recipe, *part;
    } files[] = {{NULL, NULL, "not a model of a series"},
                 {"cell cat", "", "'cell cat'"},
                 {"cell", "", "'cell '"},
                 {"cell cfc", "role,name\n1,2\n", "recipe"}};
    for (size_t i = 0; i < COUNT(files); i++) {
        const mica_setting settings[] = {{"mica.series.net", files[i].net}, {"mica.series.recipe", files[i].recipe}};
        mica_series_model *none = NULL;
        CHECK_OK(
            mica_params_save(mica_series_model_params(m), file_path("f.safetensors"), settings, files[i].net ? 2 : 0));
        EXPECT_FAILS(mica_series_model_open(s, file_path("f.safetensors"), &none), MICA_ERR_FORMAT, files[i].part);
        EXPECT(!none);
    }
    EXPECT(remove(file_path("f.safetensors")) == 0);
    mica_series_model_free(m);
    mica_series_model_free(NULL);
    mica_series_free(d);
    mica_series_free(other);
    mica_table_free(t);
    mica_table_free(u);
    mica_scope_end(s);
    mica_close(e);
}
