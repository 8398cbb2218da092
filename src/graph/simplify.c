/* Runs the passes in a fixed order until none of them changes the graph. */
#include "graph/simplify.h"

#include "graph/pass.h"

/* Real graphs stop changing after two or three rounds; the limit bounds the time for all others. */
enum { SIMPLIFY_ROUNDS = 8 };

typedef mica_status (*simplify_pass)(mica__graph *g, bool *changed);

static const struct {
    const char *name;
    uint32_t bit;
    simplify_pass run;
} simplify_passes[] = {
    {"fold", MICA_PASS_FOLD, mica__pass_fold},
    {"algebra", MICA_PASS_ALGEBRA, mica__pass_algebra},
    {"movement", MICA_PASS_MOVEMENT, mica__pass_movement},
    {"cse", MICA_PASS_CSE, mica__pass_cse},
    {"scans", MICA_PASS_CSE, mica__pass_scans},
    {"narrow", MICA_PASS_NARROW, mica__pass_narrow},
};

static mica_status simplify_run(mica__graph *g, simplify_pass run, const char *name, bool *changed)
{
    bool rewritten = false;
    MICA_TRY(run(g, &rewritten));
    *changed |= rewritten;
#ifdef MICA_DEBUG
    return mica__graph_verify(g, name);
#else
    (void)name;
    return MICA_OK;
#endif
}

/* Runs the passes in turn until every one of them has run on the current graph without changing it. */
static mica_status simplify_settle(mica__graph *g, uint32_t passes)
{
    enum { N = sizeof simplify_passes / sizeof simplify_passes[0] };
    size_t quiet = 0;
    for (size_t p = 0; p < SIMPLIFY_ROUNDS * N && quiet < N; p++) {
        bool changed = false;
        if (passes & simplify_passes[p % N].bit)
            MICA_TRY(simplify_run(g, simplify_passes[p % N].run, simplify_passes[p % N].name, &changed));
        quiet = changed ? 0 : quiet + 1;
    }
    return MICA_OK;
}

mica_status mica__simplify(mica__graph *g, uint32_t passes)
{
    bool changed = false;
    MICA_TRY(mica__graph_sweep(g));
    MICA_TRY(simplify_run(g, mica__pass_alias, "alias", &changed));
    MICA_TRY(simplify_settle(g, passes));
    MICA_TRY(simplify_run(g, mica__pass_copies, "copies", &changed));
    for (uint32_t i = 0; i < g->n; i++)
        if (g->node[i].body) MICA_TRY(mica__simplify(g->node[i].body, passes));
    return MICA_OK;
}
