/* Helpers for the tests of series: make tables from text, and series from tables. */
#ifndef MICA_TEST_SERIES_KIT_H
#define MICA_TEST_SERIES_KIT_H

#include <math.h>

#include "files.h"
#include "mica_series.h"

static UNUSED mica_table *table_of(const char *text)
{
    mica_table *t = NULL;
    EXPECT_OK(mica_table_parse("t.csv", text, strlen(text), NULL, &t));
    if (!t) abort();
    return t;
}

/* The text is refused, and the error message contains this part. */
#define NO_TABLE(text, part) no_table(__FILE__, __LINE__, text, sizeof(text) - 1, part)
static UNUSED void no_table(const char *file, int line, const char *text, size_t length, const char *part)
{
    mica_table *t = NULL;
    (void)expect_fails(file, line, text, mica_table_parse("t.csv", text, length, NULL, &t), MICA_ERR_FORMAT, part);
    if (t) test_fail(file, line, "a table was returned in spite of the error");
    mica_table_free(t);
}

/* "a,b" and rows (i, 2 i): numbers that are easy to check. */
static UNUSED mica_table *counted(int64_t rows)
{
    static char text[1 << 16];
    size_t n = (size_t)snprintf(text, sizeof text, "a,b\n");
    for (int64_t i = 0; i < rows; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%lld,%lld\n", (long long)i, (long long)(2 * i));
    return table_of(text);
}

static UNUSED mica_series_options options_of(const char *targets, int64_t seq)
{
    mica_series_options o;
    mica_series_options_init(&o);
    o.targets = targets;
    o.seq = seq;
    return o;
}

#endif
