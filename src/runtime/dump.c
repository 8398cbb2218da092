/* See dump.h. */
#include "runtime/dump.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/env.h"
#include "codegen/emit_msl.h"

/* The words of MICA_DUMP in base/env.def, which has them in this order. */
static const char *const dump_words[] = {"graph", "simple", "plan", "kernels", "msl"};

static bool is_dump_requested(mica_dump what) { return mica__env_words(MICA__ENV_DUMP) >> what & 1; }

/* Kernels of a plan and of the bodies of its scans, numbered in the order in which they run. */
static mica_status print_kernels(const mica__plan *plan, bool msl, mica__text *text, int *number)
{
    for (uint32_t i = 0; i < plan->n_step; i++) {
        const mica__step *step = &plan->step[i];
        if (step->kind == MICA__STEP_SCAN) {
            MICA_TRY(print_kernels(step->body, msl, text, number));
            continue;
        }
        char name[64];
        mica__arena arena;
        mica__kernel *k = NULL;
        mica__arena_init(&arena);
        snprintf(name, sizeof name, "kernel_%d", (*number)++);
        mica_status status = mica__kernel_build(plan, step, &arena, &k);
        if (status == MICA_OK && step->kind == MICA__STEP_FAMILY)
            mica__text_add(text, "%s%s: %s%s\n", msl ? "// " : "", name,
                           mica__op_get(plan->graph->node[step->node[0]].op)->name, k ? ", then" : "");
        if (status == MICA_OK && k) {
            if (msl) status = mica__emit_msl(k, &mica__msl_usual, name, text, NULL);
            else mica__kernel_print(k, name, text);
        }
        mica__arena_free(&arena);
        MICA_TRY(status);
    }
    return MICA_OK;
}

mica_status mica__dump_text(const mica__plan *plan, mica_dump what, mica__text *text)
{
    int number = 0;
    switch (what) {
    case MICA_DUMP_GRAPH: break; /* a plan has only the simplified graph */
    case MICA_DUMP_SIMPLE: mica__graph_print(plan->graph, text); return MICA_OK;
    case MICA_DUMP_PLAN: mica__plan_print(plan, text); return MICA_OK;
    case MICA_DUMP_KERNELS: return print_kernels(plan, false, text, &number);
    case MICA_DUMP_MSL: return print_kernels(plan, true, text, &number);
    }
    return mica__fail(MICA_ERR_ARGUMENT, "plan_text: %d is not a mica_dump value (0 to 4)", (int)what);
}

/* Measures the text, then prints it with one call, so that the texts of threads do not mix. */
static void dump_graph_now(const mica__graph *g, const char *title)
{
    mica__text text;
    mica__text_init(&text, NULL, 0);
    mica__graph_print(g, &text);
    char *buffer = mica__alloc(text.length + 1);
    if (!buffer) return;
    mica__text_init(&text, buffer, text.length + 1);
    mica__graph_print(g, &text);
    fprintf(stderr, "-- %s\n%s", title, buffer);
    mica__free(buffer);
}

void mica__dump_graph(mica_dump what, const mica__graph *g)
{
    if (is_dump_requested(what)) dump_graph_now(g, dump_words[what]);
}

void mica__dump_plan(const mica__plan *plan)
{
    for (mica_dump what = MICA_DUMP_PLAN; what <= MICA_DUMP_MSL; what++) {
        if (!is_dump_requested(what)) continue;
        mica__text text;
        mica__text_init(&text, NULL, 0);
        if (mica__dump_text(plan, what, &text) != MICA_OK) {
            fprintf(stderr, "-- %s: %s\n", dump_words[what], mica_last_error());
            continue;
        }
        char *buffer = mica__alloc(text.length + 1);
        if (!buffer) return;
        mica__text_init(&text, buffer, text.length + 1);
        if (mica__dump_text(plan, what, &text) == MICA_OK) fprintf(stderr, "-- %s\n%s", dump_words[what], buffer);
        mica__free(buffer);
    }
}
