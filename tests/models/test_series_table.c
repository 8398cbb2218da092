/* Tables: what text and npy files are read as, and the error messages for files that are not
 * tables.
 *
 * runs: arm */
#include "series_kit.h"

TEST(numbers_and_names)
{
    mica_table *t = table_of("a, b ,\"c \"\"d\"\"\"\n1,-2.5,+3e2\r\n.5,4.,0\n");
    CHECK_INT(mica_table_rows(t), 2);
    CHECK_INT(mica_table_columns(t), 3);
    EXPECT_STR(mica_table_name(t, 1), "b");
    EXPECT_STR(mica_table_name(t, 2), "c \"d\"");
    EXPECT(mica_table_number(t, 0, 0) == 1 && mica_table_number(t, 0, 1) == -2.5 && mica_table_number(t, 0, 2) == 300);
    EXPECT(mica_table_number(t, 1, 0) == 0.5 && mica_table_number(t, 1, 1) == 4);
    EXPECT_INT(mica_table_line(t, 1), 3);
    EXPECT_INT(mica_table_find(t, "b"), 1);
    EXPECT_INT(mica_table_find(t, "3"), 2);
    EXPECT_INT(mica_table_find(t, "-1"), 2);
    EXPECT_INT(mica_table_find(t, "4"), -1);
    EXPECT_INT(mica_table_find(t, "0"), -1);
    EXPECT_INT(mica_table_find(t, "B"), -1);
    EXPECT(!mica_table_name(t, 3) && !mica_table_name(t, -1) && isnan(mica_table_number(t, 2, 0)));
    mica_table_free(t);
}

TEST(delimiters_and_headers)
{
    static const struct {
        const char *text;
        int64_t rows, columns;
        const char *first;
    } cases[] = {
        {"a;b\n1;2\n", 1, 2, "a"},
        {"a\tb\tc\n1\t2\t3\n", 1, 3, "a"},
        {"1,2\n3,4\n", 2, 2, "1"},
        {"2015-01-01,x\n2015-01-02,y\n", 2, 2, "1"},
        {"\xef\xbb\xbfname\n1\n2\n", 2, 1, "name"},
        {"a,b\r1,2\r3,4", 2, 2, "a"},
        {"\n\na,b\n\n1,2\n\n", 1, 2, "a"},
        {"a\n\"x,\"\"y\"\"\nz\"\n", 1, 1, "a"},
        {"one,two\n1,5,6\n2,7,8\n", 2, 3, "1"}, /* as R writes it */
        {",b\n1,2\n", 1, 2, "1"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("%s", cases[i].text);
        mica_table *t = table_of(cases[i].text);
        EXPECT_INT(mica_table_rows(t), cases[i].rows);
        EXPECT_INT(mica_table_columns(t), cases[i].columns);
        EXPECT_STR(mica_table_name(t, 0), cases[i].first);
        mica_table_free(t);
    }
    mica_table *t = NULL;
    mica_table_options o;
    mica_table_options_init(&o);
    o.header = 1;
    CHECK_OK(mica_table_parse("t", "1,2\n3,4\n", 8, &o, &t));
    EXPECT_INT(mica_table_rows(t), 1);
    EXPECT_STR(mica_table_name(t, 1), "2");
    mica_table_free(t);
    o.header = 0;
    CHECK_OK(mica_table_parse("t", "a,b\n3,4\n", 8, &o, &t));
    EXPECT_INT(mica_table_rows(t), 2);
    EXPECT_INT(mica_table_kind(t, 0), MICA_COLUMN_TEXTS);
    mica_table_free(t);
    o.delimiter = '|';
    CHECK_OK(mica_table_parse("t", "1|2,5\n", 6, &o, &t));
    EXPECT_INT(mica_table_columns(t), 2);
    mica_table_free(t);
}

TEST(kinds_of_columns)
{
    mica_table *t = table_of("n,text,day,mixed\n1,x,2015-02-04 17:51:00,3\n?,NA,,y\n3,,2015-02-05T00:00:01.5,1e3\n");
    EXPECT_INT(mica_table_kind(t, 0), MICA_COLUMN_NUMBERS);
    EXPECT_INT(mica_table_kind(t, 1), MICA_COLUMN_TEXTS);
    EXPECT_INT(mica_table_kind(t, 2), MICA_COLUMN_DATES);
    EXPECT_INT(mica_table_kind(t, 3), MICA_COLUMN_TEXTS);
    EXPECT(isnan(mica_table_number(t, 1, 0)) && !mica_table_text(t, 1, 0));
    EXPECT_STR(mica_table_text(t, 0, 1), "x");
    EXPECT(!mica_table_text(t, 1, 1) && !mica_table_text(t, 2, 1));
    EXPECT(mica_table_number(t, 0, 2) == 1423072260.0); /* date -u -d '2015-02-04 17:51:00' +%s */
    EXPECT(mica_table_number(t, 2, 2) == 1423094401.5);
    EXPECT(mica_table_number(t, 2, 3) == 1000 && !mica_table_text(t, 2, 3));
    mica_table_free(t);
    t = table_of("d\n1/2/1998\n12/31/1999\n");
    EXPECT(mica_table_number(t, 0, 0) == 883699200.0 && mica_table_number(t, 1, 0) == 946598400.0);
    mica_table_free(t);
    t = table_of("d\n1/2/1998\n13/31/1999\n"); /* no month 13 */
    EXPECT_INT(mica_table_kind(t, 0), MICA_COLUMN_TEXTS);
    mica_table_free(t);
    t = table_of("d\n0x10\n1e\n--1\ninf\n1e999\n"); /* numbers for strtod only, or too large */
    for (int i = 0; i < 5; i++) EXPECT(mica_table_text(t, i, 0) != NULL);
    mica_table_free(t);
}

TEST(no_tables)
{
    NO_TABLE("", "t.csv, line 1");
    NO_TABLE("a,b\n", "without a row");
    NO_TABLE("a,b\n1,2\n3\n", "line 3, column 2 ('b') is missing");
    NO_TABLE("a,b\n1,2\n3,4,5\n", "line 3, column 3: a cell too many");
    NO_TABLE("a,b\n1,\"2\n3,4\n", "line 2, column 2: a quote is opened and not closed");
    NO_TABLE("a,b\n1,2\n3,caf\xe9\n", "line 3, column 2: the text is not UTF-8");
    NO_TABLE("a,\xed\xa0\x80\n1,2\n", "line 1, column 2: the text is not UTF-8"); /* a surrogate */
    NO_TABLE("a,\xc0\xaf\n1,2\n", "line 1, column 2: the text is not UTF-8");     /* a long form */
    NO_TABLE("a,\xf4\x90\x80\x80\n1,2\n", "line 1, column 2: the text is not UTF-8");
    NO_TABLE("a,b\xe2\x82\n1,2\n", "line 1, column 2: the text is not UTF-8"); /* cut off */
    NO_TABLE("\xff\xfe"
             "a\0,\0b\0",
             "line 1, column 1: the text is UTF-16");
    NO_TABLE("a,b\n1,\"2\"x\n", "line 2, column 2: a closing quote is followed by more text");
    NO_TABLE("a,b\n1,\0\n", "line 2, column 2: there is a zero byte");
    NO_TABLE("a,b\n1,\"\0\"\n", "line 2, column 2: there is a zero byte");
    NO_TABLE("a,b,a\n1,2,3\n", "column 3: 'a' is also the name of column 1");
    mica_table *t = NULL;
    mica_table_options o;
    mica_table_options_init(&o);
    o.delimiter = '"';
    EXPECT_FAILS(mica_table_parse("t", "a", 1, &o, &t), MICA_ERR_ARGUMENT, "quote");
    EXPECT_FAILS(mica_table_parse("t", NULL, 1, NULL, &t), MICA_ERR_ARGUMENT, "no text");
    EXPECT_FAILS(mica_table_parse("t", "a", 1, NULL, NULL), MICA_ERR_ARGUMENT, "NULL");
    EXPECT_FAILS(mica_table_open(NULL, NULL, &t), MICA_ERR_ARGUMENT, "no path");
    EXPECT_FAILS(mica_table_open("x", NULL, NULL), MICA_ERR_ARGUMENT, "NULL");
    EXPECT_FAILS(mica_table_open(file_path("no.csv"), NULL, &t), MICA_ERR_FILE, "no.csv");
    EXPECT_FAILS(mica_table_open(folder_path(), NULL, &t), MICA_ERR_FILE, folder_path());
    EXPECT_FAILS(mica_table_write(NULL, "x"), MICA_ERR_ARGUMENT, "nothing to write");
    EXPECT_FAILS(mica_table_make(MICA_MADE_SINE, 0, 0, 1, &t), MICA_ERR_ARGUMENT, "0 rows");
    EXPECT_FAILS(mica_table_make((mica_made_kind)9, 1, 0, 1, &t), MICA_ERR_ARGUMENT, "kind 9");
    EXPECT_FAILS(mica_table_make(MICA_MADE_SINE, 1, NAN, 1, &t), MICA_ERR_ARGUMENT, "noise");
    EXPECT(!mica_table_path(NULL) && mica_table_rows(NULL) == 0 && mica_table_columns(NULL) == 0);
    EXPECT_INT(mica_table_find(NULL, "a"), -1);
    EXPECT_INT(mica_table_line(NULL, 0), -1);
    mica_table_free(NULL);
}

/* A file written cell by cell is read like one that was written at once. */
TEST(cells_of_a_table)
{
    static const struct {
        const char *text, *cell;
    } rows[] = {{"x", "x"},          {"", "\"\""},       {" x", "\" x\""},     {"x ", "\"x \""},
                {"a,b", "\"a,b\""},  {"a;b", "\"a;b\""}, {"a\tb", "\"a\tb\""}, {"\"a\"", "\"\"\"a\"\"\""},
                {"a\nb", "\"a\nb\""}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *cell = NULL;
        size_t n;
        FILE *to = open_memstream(&cell, &n);
        CHECK(to);
        mica_table_put_text(to, rows[i].text);
        mica_table_put_text(to, NULL);
        mica_table_put_text(NULL, "x");
        CHECK(fclose(to) == 0);
        EXPECT_STR(cell, rows[i].cell);
        free(cell);
    }
    EXPECT_INT(mica_table_delimiter("a.tsv"), '\t');
    EXPECT_INT(mica_table_delimiter(".tsv"), '\t');
    EXPECT_INT(mica_table_delimiter("a.tsv.csv"), ',');
    EXPECT_INT(mica_table_delimiter("tsv"), ',');
    EXPECT_INT(mica_table_delimiter(NULL), ',');
}

/* A written table is read back unchanged. */
TEST(tables_come_back)
{
    for (int kind = -1; kind <= MICA_MADE_IRREGULAR; kind++) {
        mica_table *t = NULL, *u = NULL;
        test_case("kind %d", kind);
        if (kind < 0) t = table_of("a,\"b,c\"\n1.5,\"say \"\"hi\"\"\"\n0.1,\" x\"\n,\"two\nlines\"\n");
        else CHECK_OK(mica_table_make((mica_made_kind)kind, 150, 0.05, 7, &t));
        CHECK_OK(mica_table_write(t, file_path("back.csv")));
        CHECK_OK(mica_table_open(file_path("back.csv"), NULL, &u));
        CHECK_INT(mica_table_rows(u), mica_table_rows(t));
        CHECK_INT(mica_table_columns(u), mica_table_columns(t));
        for (int64_t c = 0; c < mica_table_columns(t); c++) {
            EXPECT_STR(mica_table_name(u, c), mica_table_name(t, c));
            EXPECT_INT(mica_table_kind(u, c), mica_table_kind(t, c));
            for (int64_t r = 0; r < mica_table_rows(t); r++) {
                const char *a = mica_table_text(t, r, c), *b = mica_table_text(u, r, c);
                const double x = mica_table_number(t, r, c), y = mica_table_number(u, r, c);
                EXPECT((!a && !b) || (a && b && strcmp(a, b) == 0));
                EXPECT(x == y || (isnan(x) && isnan(y)));
            }
        }
        mica_table_free(t);
        mica_table_free(u);
    }
    EXPECT(remove(file_path("back.csv")) == 0);
    mica_table *t = counted(3);
    EXPECT_FAILS(mica_table_write(t, file_path("no/where.csv")), MICA_ERR_FILE, "cannot be written");
    /* A path that is not a regular file is written to, not replaced. */
    struct stat info;
    EXPECT(symlink("/dev/null", file_path("null")) == 0);
    EXPECT_OK(mica_table_write(t, file_path("null")));
    EXPECT(lstat(file_path("null"), &info) == 0 && S_ISLNK(info.st_mode));
    EXPECT(remove(file_path("null")) == 0);
    mica_table_free(t);
}

TEST(made_data_is_its_seed)
{
    for (int kind = 0; kind <= MICA_MADE_IRREGULAR; kind++) {
        mica_table *t[3];
        test_case("kind %d", kind);
        for (int i = 0; i < 3; i++) CHECK_OK(mica_table_make((mica_made_kind)kind, 200, 0.1, i < 2 ? 3 : 4, &t[i]));
        int same = 0, other = 0;
        for (int64_t r = 0; r < 200; r++) {
            same += mica_table_number(t[0], r, 1) == mica_table_number(t[1], r, 1);
            other += mica_table_number(t[0], r, 1) == mica_table_number(t[2], r, 1);
        }
        EXPECT_INT(same, 200);
        EXPECT(other < 20);
        for (int i = 0; i < 3; i++) mica_table_free(t[i]);
    }
    mica_table *t;
    CHECK_OK(mica_table_make(MICA_MADE_IRREGULAR, 500, 0, 1, &t));
    for (int64_t r = 1; r < 500; r++) EXPECT(mica_table_number(t, r, 0) > mica_table_number(t, r - 1, 0));
    mica_table_free(t);
}

/* A file as numpy writes it, version 1. */
static const char *write_npy(const char *name, const char *type, const char *order, const char *shape, const void *data,
                             size_t nbytes)
{
    char bytes[4096] = "\x93NUMPY\x01", text[256];
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", type, order, shape);
    while ((10 + n + 1) % 64) text[n++] = ' ';
    text[n++] = '\n';
    bytes[8] = (char)n;
    memcpy(bytes + 10, text, (size_t)n);
    memcpy(bytes + 10 + n, data, nbytes);
    return write_bytes(name, bytes, 10 + (size_t)n + nbytes);
}

/* An array of three axes is several series, without a column that names them. */
TEST(npy_series)
{
    double x[24];
    for (int i = 0; i < 24; i++) x[i] = i;
    mica_table *t;
    mica_series *d;
    mica_window w = {.struct_size = sizeof w};
    CHECK_OK(mica_table_open(write_npy("a.npy", "<f8", "False", "(3, 4, 2)", x, sizeof x), NULL, &t));
    EXPECT(mica_table_find(t, "-1") == 1);
    mica_series_options o = options_of("-1", 3);
    o.valid = o.test = 0, o.task = MICA_TASK_REGRESSION;
    CHECK_OK(mica_series_open(&o, &t, NULL, 1, &d));
    EXPECT_INT(mica_recipe_inputs(mica_series_recipe(d)), 1);
    EXPECT_INT(mica_series_windows(d, MICA_PART_TRAIN), 6); /* two windows in each of three series */
    for (int64_t i = 0; mica_series_window(d, MICA_PART_TRAIN, i, &w); i++)
        EXPECT(w.row / 4 == (w.row + w.rows - 1) / 4 && w.end == (w.row / 4 + 1) * 4);
    mica_series *again;
    CHECK_OK(mica_series_apply(mica_series_recipe(d), &t, 1, 0, 0, &again));
    EXPECT_INT(mica_series_windows(again, MICA_PART_TEST), 3);
    mica_series_free(again);
    mica_series_free(d);
    o.valid = o.test = 0.3; /* whole series, as with several files */
    CHECK_OK(mica_series_open(&o, &t, NULL, 1, &d));
    EXPECT(mica_series_window(d, MICA_PART_TEST, 0, &w) && w.row == 8);
    mica_series_free(d);
    mica_table_free(t);
}

TEST(npy_files)
{
    const double six[] = {1, 2, 3, 4, 5, 6};
    const int32_t whole[] = {7, 8, 9};
    mica_table *t;
    CHECK_OK(mica_table_open(write_npy("a.npy", "<f8", "False", "(3, 2)", six, sizeof six), NULL, &t));
    CHECK_INT(mica_table_rows(t), 3);
    EXPECT(mica_table_columns(t) == 2 && mica_table_number(t, 2, 1) == 6 && mica_table_number(t, 1, 0) == 3);
    EXPECT_STR(mica_table_name(t, 1), "2");
    mica_table_free(t);
    CHECK_OK(mica_table_open(write_npy("a.npy", "<f8", "True", "(3, 2)", six, sizeof six), NULL, &t));
    EXPECT(mica_table_number(t, 0, 1) == 4 && mica_table_number(t, 2, 0) == 3);
    mica_table_free(t);
    CHECK_OK(mica_table_open(write_npy("a.npy", "<i4", "False", "(3,)", whole, sizeof whole), NULL, &t));
    EXPECT(mica_table_rows(t) == 3 && mica_table_columns(t) == 1 && mica_table_number(t, 2, 0) == 9);
    mica_table_free(t);
    CHECK_OK(mica_table_open(write_npy("a.npy", "<f8", "False", "(3, 2, 1)", six, sizeof six), NULL, &t));
    EXPECT(mica_table_rows(t) == 6 && mica_table_columns(t) == 1 && mica_table_number(t, 3, 0) == 4);
    mica_table_free(t);
    EXPECT_FAILS(mica_table_open(write_npy("a.npy", "<c8", "False", "(3, 2)", six, sizeof six), NULL, &t),
                 MICA_ERR_FORMAT, "C64 is not a table of numbers");
    const double bad[] = {1, INFINITY, NAN, 4};
    EXPECT_FAILS(mica_table_open(write_npy("a.npy", "<f8", "False", "(2, 2)", bad, sizeof bad), NULL, &t),
                 MICA_ERR_FORMAT, "row 1, column 2: inf is not finite");
    EXPECT_FAILS(mica_table_open(write_npy("a.npy", "<f8", "False", "(1, 1, 2, 2)", bad, sizeof bad), NULL, &t),
                 MICA_ERR_FORMAT, "4 axes");
    EXPECT_FAILS(mica_table_open(write_text("a.npy", "no npy"), NULL, &t), MICA_ERR_FORMAT, "a.npy");
    EXPECT_FAILS(mica_table_open(file_path("none.npy"), NULL, &t), MICA_ERR_FILE, "none.npy");
    EXPECT(remove(file_path("a.npy")) == 0);
}
