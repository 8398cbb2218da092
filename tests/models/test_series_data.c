/* Series: recipes from tables, parts, windows, batches, and what is refused.
 *
 * runs: arm */
#include "series_kit.h"

/* A whole batch of one part, as f32. */
typedef struct seen {
    mica_engine *e;
    mica_scope *s;
    mica_array *data[3];
    size_t n;
    const float *x, *y, *span;
    const int32_t *label;
} seen;

static seen see_part(const mica_series *d, mica_part part)
{
    seen v = {.e = open_engine("cpu")};
    int64_t windows[512];
    const int64_t n = mica_series_windows(d, part);
    for (int64_t i = 0; i < n; i++) windows[i] = i;
    v.s = mica_scope_begin(v.e);
    EXPECT_OK(mica_series_batch(v.s, d, part, windows, n, v.data, &v.n));
    EXPECT_OK(mica_eval(v.s, v.data, v.n));
    v.x = mica_data_f32(v.data[0]);
    if (mica_recipe_classes(mica_series_recipe(d))) v.label = mica_data(v.data[1]);
    else v.y = mica_data_f32(v.data[1]);
    if (v.n > 2) v.span = mica_data_f32(v.data[2]);
    return v;
}

static void see_no_more(seen *v)
{
    mica_scope_end(v->s);
    mica_close(v->e);
}

static mica_series *series_of(const mica_series_options *o, mica_table *t)
{
    mica_series *d = NULL;
    EXPECT_OK(mica_series_open(o, &t, NULL, 1, &d));
    if (!d) abort();
    return d;
}

TEST(scaled_by_the_part_to_train_on)
{
    mica_table *t = counted(100);
    mica_series_options o = options_of("b", 5);
    o.stride = 5, o.valid = 0.2, o.test = 0.2, o.task = MICA_TASK_REGRESSION;
    mica_series *d = series_of(&o, t);
    CHECK_INT(mica_series_windows(d, MICA_PART_TRAIN), 12);
    CHECK_INT(mica_series_windows(d, MICA_PART_VALID), 4);
    CHECK_INT(mica_series_windows(d, MICA_PART_TEST), 4);
    EXPECT_INT(mica_series_left_over(d), 0);
    double scale, shift; /* of 0, 2, ... 118 */
    mica_recipe_scale(mica_series_recipe(d), 0, &scale, &shift);
    EXPECT_CLOSE(shift, 59, 1e-12, 0);
    EXPECT_CLOSE(scale, 2 * sqrt((60.0 * 60 - 1) / 12), 1e-12, 0);
    seen v = see_part(d, MICA_PART_TEST);
    EXPECT_INT(mica_array_shape(v.data[0])[1], 5);
    for (int64_t i = 0; i < 20; i++) {
        EXPECT_CLOSE((double)v.x[i] * scale / 2 + shift / 2, 80.0 + (double)i, 1e-5, 0);
        EXPECT_CLOSE((double)v.y[i] * scale + shift, 160.0 + 2.0 * (double)i, 1e-5, 0);
    }
    EXPECT_INT(v.n, 2);
    see_no_more(&v);
    mica_series_free(d);
    o.raw = true;
    d = series_of(&o, t);
    v = see_part(d, MICA_PART_VALID);
    EXPECT(v.x[0] == 60 && v.y[1] == 122);
    see_no_more(&v);
    mica_series_free(d);
    mica_table_free(t);
}

TEST(parts_never_share_rows)
{
    static const struct {
        mica_series_split split;
        int64_t ahead, stride;
    } cases[] = {{MICA_SPLIT_TIME, 0, 1}, {MICA_SPLIT_TIME, 3, 2},  {MICA_SPLIT_SEED, 0, 0},
                 {MICA_SPLIT_SEED, 2, 1}, {MICA_SPLIT_WHOLE, 0, 3}, {MICA_SPLIT_AUTO, 1, 0}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        test_case("split %d, ahead %lld", (int)cases[c].split, (long long)cases[c].ahead);
        mica_table *tables[5];
        for (int i = 0; i < 5; i++) tables[i] = counted(40 + i);
        mica_series_options o = options_of("b", 6);
        o.split = cases[c].split, o.ahead = cases[c].ahead, o.stride = cases[c].stride;
        o.valid = o.test = 0.25;
        mica_series *d = NULL;
        CHECK_OK(mica_series_open(&o, tables, NULL, 5, &d));
        int owner[5][48];
        memset(owner, -1, sizeof owner);
        for (int part = 0; part < 3; part++) {
            EXPECT(mica_series_windows(d, (mica_part)part) > 0);
            for (int64_t i = 0; i < mica_series_windows(d, (mica_part)part); i++) {
                mica_window w = {.struct_size = sizeof w};
                CHECK(mica_series_window(d, (mica_part)part, i, &w));
                EXPECT(w.rows == 6 && w.fresh == 0 && w.row + 6 + o.ahead <= mica_table_rows(tables[w.table]));
                for (int64_t r = w.row; r < w.row + w.rows + o.ahead; r++) {
                    EXPECT(owner[w.table][r] == -1 || owner[w.table][r] == part);
                    owner[w.table][r] = part;
                }
            }
        }
        mica_series_free(d);
        for (int i = 0; i < 5; i++) mica_table_free(tables[i]);
    }
}

/* Two series are too few to give whole series to three parts. */
TEST(few_series_are_cut_by_time)
{
    mica_table *two[] = {counted(50), counted(50)};
    mica_series_options o = options_of("b", 4);
    mica_series *d;
    mica_window w = {.struct_size = sizeof w};
    CHECK_OK(mica_series_open(&o, two, NULL, 2, &d));
    for (int part = 0; part < 3; part++) {
        EXPECT(mica_series_window(d, (mica_part)part, 0, &w) && w.table == 0);
        EXPECT(mica_series_window(d, (mica_part)part, mica_series_windows(d, (mica_part)part) - 1, &w) && w.table == 1);
    }
    mica_series_free(d);
    mica_table_free(two[0]);
    mica_table_free(two[1]);
}

TEST(the_same_seed_cuts_the_same)
{
    mica_table *t = counted(400);
    mica_series_options o = options_of("b", 8);
    o.split = MICA_SPLIT_SEED;
    mica_window w[3][64];
    int64_t n[3];
    for (int k = 0; k < 3; k++) {
        o.seed = k == 2;
        mica_series *d = series_of(&o, t);
        n[k] = mica_series_windows(d, MICA_PART_TEST);
        for (int64_t i = 0; i < n[k]; i++) {
            w[k][i].struct_size = sizeof w[k][i];
            (void)mica_series_window(d, MICA_PART_TEST, i, &w[k][i]);
        }
        mica_series_free(d);
    }
    CHECK(n[0] == n[1] && n[0] == n[2] && n[0] > 3);
    int same = 0, other = 0;
    for (int64_t i = 0; i < n[0]; i++) same += w[0][i].row == w[1][i].row, other += w[0][i].row == w[2][i].row;
    EXPECT_INT(same, n[0]);
    EXPECT(other < n[0]);
    mica_table_free(t);
}

TEST(categories_classes_and_missing_values)
{
    static const char text[] = "day,kind,n,state\n"
                               "2015-01-01,red,1,on\n2015-01-02,blue,?,off\n2015-01-03,,3,on\n"
                               "2015-01-04,red,4,off\n2015-01-05,green,5,on\n2015-01-06,blue,NA,off\n";
    mica_table *t = table_of(text);
    mica_series_options o = options_of("state", 2);
    o.valid = o.test = 1.0 / 6, o.stride = 1;
    mica_series *d = NULL; /* a part of one row has no sequence of two */
    EXPECT_FAILS(mica_series_open(&o, &t, NULL, 1, &d), MICA_ERR_ARGUMENT, "t.csv, line 7");
    o.valid = o.test = 0, o.raw = true;
    d = series_of(&o, t);
    const mica_recipe *r = mica_series_recipe(d);
    EXPECT_INT(mica_recipe_inputs(r), 4); /* blue, green, red, n; not day */
    EXPECT_INT(mica_recipe_classes(r), 2);
    EXPECT_STR(mica_recipe_class(r, 0), "off");
    EXPECT_STR(mica_recipe_target(r, 0), "state");
    EXPECT(!mica_recipe_target(r, 1) && !mica_recipe_class(r, 2) && !mica_recipe_knows_time(r));
    seen v = see_part(d, MICA_PART_TRAIN);
    static const float want[] = {0, 0, 1, 1, /**/ 1, 0, 0, 1, /**/ 0, 0, 0, 3}; /* previous value; no category */
    for (int i = 0; i < 4; i++) EXPECT(v.x[i] == want[i] && v.x[4 + i] == want[4 + i] && v.x[12 + i] == want[8 + i]);
    EXPECT(v.label[0] == 1 && v.label[1] == 0);
    see_no_more(&v);
    mica_series_free(d);
    o.missing = MICA_MISSING_MEAN;
    d = series_of(&o, t);
    v = see_part(d, MICA_PART_TRAIN);
    EXPECT(v.x[7] == 0); /* raw: the mean is 0 */
    see_no_more(&v);
    mica_series_free(d);
    o.missing = MICA_MISSING_REFUSE;
    EXPECT_FAILS(mica_series_open(&o, &t, NULL, 1, &d), MICA_ERR_FORMAT, "t.csv, line 3, column 3 ('n')");
    mica_table_free(t);
}

TEST(what_is_to_be_predicted)
{
    static const struct {
        const char *text, *targets;
        mica_series_task task;
        int64_t classes, inputs, ahead;
    } cases[] = {
        {"a,b\n1,0\n2,1\n3,0\n4,1\n", "b", MICA_TASK_AUTO, 2, 1, 0},
        {"a,b\n1,0\n2,1\n3,0\n4,1\n", "b", MICA_TASK_REGRESSION, 0, 1, 0},
        {"a,b\n1,0.5\n2,1\n3,0\n4,1\n", "b", MICA_TASK_AUTO, 0, 1, 0},
        {"a,b\n1,0.5\n2,1\n3,0\n4,1\n", "b", MICA_TASK_CLASSES, 3, 1, 0},
        {"b\n1\n2.5\n3\n4\n", "b", MICA_TASK_AUTO, 0, 1, 1},
        {"a,b\n1,0\n2,1.5\n3,0\n4,1\n", "a,b", MICA_TASK_AUTO, 0, 2, 1},
        {"a,b\n1,0\n2,1.5\n3,0\n4,1\n", "all", MICA_TASK_AUTO, 0, 2, 1},
        {"a,b\n1,x\n2,y\n3,x\n4,z\n", "-1", MICA_TASK_AUTO, 3, 1, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("%zu", i);
        mica_table *t = table_of(cases[i].text);
        mica_series_options o = options_of(cases[i].targets, 2);
        o.task = cases[i].task, o.valid = o.test = 0;
        mica_series *d = series_of(&o, t);
        EXPECT_INT(mica_recipe_classes(mica_series_recipe(d)), cases[i].classes);
        EXPECT_INT(mica_recipe_inputs(mica_series_recipe(d)), cases[i].inputs);
        EXPECT_INT(mica_recipe_ahead(mica_series_recipe(d)), cases[i].ahead);
        mica_series_free(d);
        mica_table_free(t);
    }
}

TEST(times_and_groups)
{
    static const char text[] =
        "who,when,x,y\na,0,1,1.5\na,2,2,2\na,3,3,3\na,5,4,4\nb,1,5,5\nb,3,6,6\nb,7,7,7\nb,9,8,8\n";
    mica_table *t = table_of(text);
    mica_series_options o = options_of("y", 4);
    o.group = "who", o.time = "when", o.valid = o.test = 0, o.raw = true;
    mica_series *d = series_of(&o, t);
    CHECK_INT(mica_series_windows(d, MICA_PART_TRAIN), 2);
    EXPECT_INT(mica_recipe_inputs(mica_series_recipe(d)), 1);
    EXPECT(mica_recipe_knows_time(mica_series_recipe(d)));
    seen v = see_part(d, MICA_PART_TRAIN);
    CHECK_INT(v.n, 3);
    static const float want[] = {1, 1, 0.5f, 1, /**/ 1, 1, 2, 1}; /* the median span is 2 */
    for (int i = 0; i < 8; i++) EXPECT(v.span[i] == want[i]);
    see_no_more(&v);
    mica_series_free(d);
    o.time = NULL, o.span = "x";
    d = series_of(&o, t);
    EXPECT_INT(mica_recipe_inputs(mica_series_recipe(d)), 1); /* when */
    v = see_part(d, MICA_PART_TRAIN);
    EXPECT(v.span[0] == 1 && v.span[7] == 8);
    see_no_more(&v);
    mica_series_free(d);
    o.span = "who";
    EXPECT_FAILS(mica_series_open(&o, &t, NULL, 1, &d), MICA_ERR_FORMAT, "column 1 ('who')");
    o.span = NULL, o.time = "when", o.group = NULL;
    EXPECT_FAILS(mica_series_open(&o, &t, NULL, 1, &d), MICA_ERR_FORMAT,
                 "line 6, column 2 ('when'): the time does not increase");
    o.span = "x";
    EXPECT_FAILS(mica_series_open(&o, &t, NULL, 1, &d), MICA_ERR_ARGUMENT, "not both");
    mica_table_free(t);
    t = table_of("t,y\n2015-01-01 00:00:00,1.5\n2015-01-01 00:01:00,2\n,3\n2015-01-01 00:03:00,4\n");
    o = options_of("y", 2);
    o.time = "t", o.valid = o.test = 0;
    EXPECT_FAILS(mica_series_open(&o, &t, NULL, 1, &d), MICA_ERR_FORMAT, "line 4, column 1 ('t'): the time is missing");
    mica_table_free(t);
}

TEST(refused_series)
{
    mica_table *t = counted(50), *other = table_of("a,c\n1,2\n"), *list[] = {t, other};
    mica_series *d = NULL;
    const mica_part parts[] = {(mica_part)9};
    mica_series_options o = options_of("b", 8);
#define BAD_OPTION(change, status, part)                                   \
    do {                                                                   \
        o = options_of("b", 8);                                            \
        change;                                                            \
        EXPECT_FAILS(mica_series_open(&o, &t, NULL, 1, &d), status, part); \
        EXPECT(!d);                                                        \
    } while (0)
    BAD_OPTION(o.targets = NULL, MICA_ERR_ARGUMENT, "no target");
    BAD_OPTION(o.targets = "c", MICA_ERR_ARGUMENT, "t.csv, line 1: there is no column 'c' among a, b");
    BAD_OPTION(o.inputs = "a,c", MICA_ERR_ARGUMENT, "'c'");
    BAD_OPTION(o.drop = "x", MICA_ERR_ARGUMENT, "'x'");
    BAD_OPTION(o.group = "x", MICA_ERR_ARGUMENT, "'x'");
    BAD_OPTION(o.time = "x", MICA_ERR_ARGUMENT, "'x'");
    BAD_OPTION((o.drop = "a", o.ahead = 0), MICA_ERR_ARGUMENT, "no column is left to be an input");
    BAD_OPTION(o.seq = 0, MICA_ERR_ARGUMENT, "seq 0");
    BAD_OPTION(o.seq = 100, MICA_ERR_ARGUMENT, "t.csv, line 51: the data ends after 50 rows");
    BAD_OPTION(o.seq = 35, MICA_ERR_ARGUMENT, "35 rows");
    BAD_OPTION(o.ahead = -2, MICA_ERR_ARGUMENT, "ahead -2");
    BAD_OPTION((o.valid = 0.5, o.test = 0.5), MICA_ERR_ARGUMENT, "leave nothing");
    BAD_OPTION(o.valid = NAN, MICA_ERR_ARGUMENT, "leave nothing");
    BAD_OPTION(o.split = MICA_SPLIT_WHOLE, MICA_ERR_ARGUMENT, "t.csv: of 1 whole series none is left to train on");
    BAD_OPTION(o.max_categories = 0, MICA_ERR_ARGUMENT, "out of range");
    BAD_OPTION(o.task = (mica_series_task)7, MICA_ERR_ARGUMENT, "out of range");
    BAD_OPTION((o.targets = "a,b", o.task = MICA_TASK_CLASSES, o.ahead = 1), MICA_ERR_ARGUMENT, "of one column");
    BAD_OPTION(o.struct_size = 0, MICA_ERR_ARGUMENT, "struct_size is 0");
    o = options_of("b", 8);
    EXPECT_FAILS(mica_series_open(NULL, &t, NULL, 1, &d), MICA_ERR_ARGUMENT, "no options");
    EXPECT_FAILS(mica_series_open(&o, NULL, NULL, 1, &d), MICA_ERR_ARGUMENT, "no table");
    EXPECT_FAILS(mica_series_open(&o, &t, NULL, 0, &d), MICA_ERR_ARGUMENT, "no table");
    EXPECT_FAILS(mica_series_open(&o, (mica_table *[]){NULL}, NULL, 1, &d), MICA_ERR_ARGUMENT, "NULL");
    EXPECT_FAILS(mica_series_open(&o, &t, parts, 1, &d), MICA_ERR_ARGUMENT, "part 9");
    EXPECT_FAILS(mica_series_open(&o, &t, NULL, 1, NULL), MICA_ERR_ARGUMENT, "NULL");
    EXPECT_FAILS(mica_series_open(&o, list, NULL, 2, &d), MICA_ERR_FORMAT, "column 2 is 'c', in t.csv it is 'b'");
    mica_table_free(other);
    mica_table_free(t);
    static const struct {
        const char *text, *part;
    } wrong[] = {{"a,b\n1,2.5\n2,?\n3,4\n4,5\n", "t.csv, line 3, column 2 ('b'): the target is missing"},
                 {"a,b\n?,2.5\n,3\n-,4\n,5\n", "column 1 ('a'): there is no value"},
                 {"a,b\n1,x\n2,x\n3,x\n4,x\n", "only one class"},
                 {"a,b\n1,2015-01-01\n2,2015-01-02\n3,2015-01-03\n4,2015-01-04\n", "dates cannot be predicted"}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        t = table_of(wrong[i].text);
        o = options_of("b", 2);
        o.valid = o.test = 0;
        EXPECT_FAILS(mica_series_open(&o, &t, NULL, 1, &d), MICA_ERR_FORMAT, wrong[i].part);
        mica_table_free(t);
    }
    t = table_of("a,b\nw,1.5\nx,2\ny,3\nz,4\n");
    o = options_of("b", 2);
    o.valid = o.test = 0, o.max_categories = 3;
    EXPECT_FAILS(mica_series_open(&o, &t, NULL, 1, &d), MICA_ERR_FORMAT, "line 2, column 1 ('a'): 'w' is not a number");
    mica_table_free(t);
    mica_series_free(NULL);
    EXPECT(!mica_series_recipe(NULL) && mica_series_windows(NULL, MICA_PART_TEST) == 0);
}

TEST(a_recipe_is_followed_elsewhere)
{
    mica_table *t = table_of("c,a,y\nNA,1,0.5\nr\"ed,3,1\n7,5,2\nr\"ed,7,3\n"), *u, *none;
    mica_series_options o = options_of("y", 2);
    o.valid = o.test = 0, o.ahead = 1, o.inputs = "a,c";
    mica_series *d = series_of(&o, t), *p = NULL;
    char text[2048];
    const size_t n = mica_recipe_text(mica_series_recipe(d), text, sizeof text);
    CHECK(n < sizeof text && strlen(text) == n);
    EXPECT(mica_recipe_text(mica_series_recipe(d), text + 1024, 8) == n && strlen(text + 1024) == 7);
    (void)mica_recipe_text(mica_series_recipe(d), text, sizeof text);
    mica_recipe *r = NULL;
    CHECK_OK(mica_recipe_parse(text, n, &r));
    char again[2048];
    (void)mica_recipe_text(r, again, sizeof again);
    EXPECT_STR(again, text);
    EXPECT_INT(mica_recipe_seq(r), 2);
    EXPECT_INT(mica_recipe_ahead(r), 1);
    EXPECT_INT(mica_recipe_inputs(r), 3);
    u = table_of("y,a,c\n9,1,7\n,5,blue\n8,,7\n");
    CHECK_OK(mica_series_apply(r, &u, 1, 2, 1, &p));
    CHECK_INT(mica_series_windows(p, MICA_PART_TEST), 2);
    mica_window w = {.struct_size = sizeof w};
    CHECK(mica_series_window(p, MICA_PART_TEST, 1, &w));
    EXPECT(w.row == 1 && w.rows == 2 && w.fresh == 1 && w.end == 3);
    seen v = see_part(p, MICA_PART_TEST);
    double scale, shift;
    mica_recipe_scale(r, 0, &scale, &shift);
    EXPECT_CLOSE((double)v.x[2], (1 - 4) / sqrt(5), 1e-6, 0);         /* a: 1, 3, 5, 7 */
    EXPECT(v.x[0] == 1 && v.x[1] == 0 && v.x[3] == 0 && v.x[4] == 0); /* 7; blue is not one of the two categories */
    EXPECT(v.x[11] == v.x[8]);                                        /* the previous value */
    EXPECT(isnan(v.y[0]) && isnan(v.y[3]));                           /* missing; past the end */
    EXPECT_CLOSE((double)v.y[1] * scale + shift, 8, 1e-6, 0);
    see_no_more(&v);
    mica_series_free(p);
    CHECK_OK(mica_series_apply(r, &u, 1, 0, 0, &p));
    EXPECT(mica_series_windows(p, MICA_PART_TEST) == 1 && mica_series_window(p, MICA_PART_TEST, 0, &w) && w.rows == 3);
    mica_series_free(p);
    none = table_of("a,b\n1,2\n");
    EXPECT_FAILS(mica_series_apply(r, &none, 1, 2, 0, &p), MICA_ERR_ARGUMENT, "t.csv, line 1: there is no column 'c'");
    mica_table_free(none);
    none = table_of("a,c\nx,2\n");
    EXPECT_FAILS(mica_series_apply(r, &none, 1, 2, 0, &p), MICA_ERR_FORMAT,
                 "line 2, column 1 ('a'): 'x' is not a number");
    EXPECT_FAILS(mica_series_apply(r, &u, 1, 2, 2, &p), MICA_ERR_ARGUMENT, "overlap by 2");
    EXPECT_FAILS(mica_series_apply(NULL, &u, 1, 2, 0, &p), MICA_ERR_ARGUMENT, "no recipe");
    EXPECT_FAILS(mica_series_apply(r, &u, 1, 2, 0, NULL), MICA_ERR_ARGUMENT, "NULL");
    mica_recipe_free(r);
    EXPECT_FAILS(mica_recipe_copy(NULL, &r), MICA_ERR_ARGUMENT, "recipe is NULL");
    mica_table_free(none);
    mica_series_free(d);
    mica_table_free(t);
    mica_table_free(u);
}

TEST(no_recipes)
{
    static const char *const texts[] = {
        "",
        "role,name,mean,scale\n",
        "role,name,mean,scale\nnumber,:a,0,1\n",
        "role,name,mean,scale\nsetting,:seq,8,1\ntarget,:a,0,1\n",
        "role,name,mean,scale\nsetting,:seq,8,1\nnumber,a,0,1\ntarget,:a,0,1\n",
        "role,name,mean,scale\nsetting,:seq,8,1\nnumber,:a,0,0\ntarget,:a,0,1\n",
        "role,name,mean,scale\nsetting,:seq,8,1\ntext,:a,0,1\n",
        "role,name,mean,scale\nsetting,:seq,8,1\nsetting,:task,2,1\nnumber,:a,0,1\ntarget,:b,0,1\ntext,:x,0,1\n",
        "role,name,mean,scale\nsetting,:what,8,1\n",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        mica_recipe *r = NULL;
        test_case("%s", texts[i]);
        EXPECT_FAILS(mica_recipe_parse(texts[i], strlen(texts[i]), &r), MICA_ERR_FORMAT, "recipe");
        EXPECT(!r);
    }
    EXPECT_FAILS(mica_recipe_parse("", 0, NULL), MICA_ERR_ARGUMENT, "NULL");
    EXPECT(mica_recipe_text(NULL, NULL, 0) == 0 && mica_recipe_inputs(NULL) == 0 && mica_recipe_classes(NULL) == 0);
    mica_recipe_free(NULL);
}

TEST(bad_batches)
{
    mica_table *t = counted(60);
    mica_series_options o = options_of("b", 5);
    mica_series *d = series_of(&o, t), *p = NULL;
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *out[3];
    size_t n;
    const int64_t at[] = {0, 1000}, below = -1;
    EXPECT_FAILS(mica_series_batch(s, d, MICA_PART_TRAIN, at, 2, out, &n), MICA_ERR_INDEX, "window 1000");
    EXPECT_FAILS(mica_series_batch(s, d, MICA_PART_TRAIN, &below, 1, out, &n), MICA_ERR_INDEX, "-1");
    EXPECT_FAILS(mica_series_batch(s, d, MICA_PART_CUT, at, 1, out, &n), MICA_ERR_ARGUMENT, "no series");
    EXPECT_FAILS(mica_series_batch(s, NULL, MICA_PART_TRAIN, at, 1, out, &n), MICA_ERR_ARGUMENT, "no series");
    EXPECT_FAILS(mica_series_batch(NULL, d, MICA_PART_TRAIN, at, 1, out, &n), MICA_ERR_ARGUMENT, "no series");
    CHECK_OK(mica_series_apply(mica_series_recipe(d), &t, 1, 50, 0, &p));
    EXPECT_FAILS(mica_series_batch(s, p, MICA_PART_TEST, (const int64_t[]){0, 1}, 2, out, &n), MICA_ERR_ARGUMENT,
                 "windows of 50 and of 10 rows");
    int64_t order[50], sum = 0;
    mica_series_shuffle(1, 2, 50, order);
    for (int i = 0; i < 50; i++) sum += order[i];
    EXPECT_INT(sum, 49 * 25);
    mica_scope_end(s);
    mica_close(e);
    mica_series_free(d);
    mica_series_free(p);
    mica_table_free(t);
}
