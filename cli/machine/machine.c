/* See machine.h. */
#include "machine/machine.h"

#include <stdio.h>
#include <string.h>

/* Resident bytes of this process without file pages; -1 if the system does not
 * report them. */
static double memory_of_process(void)
{
    char line[256];
    double kilobytes = -1;
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) return -1;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %lf kB", &kilobytes) == 1) break;
    fclose(f);
    return kilobytes < 0 ? -1 : 1024 * kilobytes;
}

static mica_status evaluate_something(mica_engine *engine)
{
    mica_scope *s = mica_scope_begin(engine);
    if (!s) return MICA_ERR_MEMORY;
    mica_array *x = mica_random_normal(s, MICA_F32, 2, (int64_t[]){32, 32}, 1);
    mica_array *y = mica_sum(s, mica_gelu(s, mica_matmul(s, x, x)), NULL, 0, false);
    const mica_status status = mica_eval(s, &y, 1);
    mica_scope_end(s);
    return status;
}

bool cli_is_software(const mica_engine *engine)
{
    mica_engine_info info = {.struct_size = sizeof info};
    return mica_engine_describe(engine, &info) == MICA_OK && info.is_software;
}

const char *cli_idle_memory_text(void)
{
    static char text[80];
    if (text[0]) return text;
    mica_engine *engine = NULL;
    const double before = memory_of_process();
    mica_status status = mica_open(NULL, &engine);
    if (status == MICA_OK) status = evaluate_something(engine);
    const double after = memory_of_process();
    if (status == MICA_OK && before >= 0 && after >= before)
        snprintf(text, sizeof text, "%.2f MB with %d threads", 1e-6 * (after - before), mica_engine_threads(engine));
    else snprintf(text, sizeof text, "unavailable");
    mica_close(engine);
    return text;
}
