/* Who calls whom, by names: recursion, and kernels, which nobody may call. A call means
 * the function of that name and number of values in the same braces, else the only one
 * there is; which of several overloads it means only types could tell, and is left open. */
#include "lint/lint.h"

#include <stdlib.h>
#include <string.h>

static bool same_name(const lint *l, int a, int b)
{
    const msl_token *x = &l->tokens->list[a], *y = &l->tokens->list[b];
    return x->length == y->length && memcmp(l->tokens->text + x->at, l->tokens->text + y->at, x->length) == 0;
}

/* The ( of a call of the name at i, or -1. T f(3) declares. */
static int call_at(const lint *l, int i, int end)
{
    static const char *const before[] = {"return", "else", "do", "case", NULL};
    if (!is_name(l, i) || is(l, i - 1, ".") || is(l, i - 1, "->")) return -1;
    if (is_name(l, i - 1) && !is_any(l, i - 1, before)) return -1;
    const int angle = lint_angle_end(l, i + 1, end);
    const int open = angle > 0 ? angle + 1 : i + 1;
    return is(l, open, "(") && match(l, open) > 0 ? open : -1;
}

/* f<...>(x) in f is f itself when the values are the parameters of its template, in order. */
static bool same_values(const lint *l, const lint_function *f, int name, int open)
{
    int value = name + 2;
    if (open == name + 1 || f->header < 0) return open == name + 1;
    for (int i = f->header + 1; value < open - 1; i++) {
        if (!is(l, i, ",") && !is(l, i, ">")) continue;
        if (!same_name(l, i - 1, value) || !(is(l, value + 1, ",") || value + 1 == open - 1)) return false;
        value += 2;
        if (is(l, i, ">")) break;
    }
    return true;
}

/* Can the name at i mean the function's, as far as what stands before :: goes? */
static bool qualified_as(const lint *l, const lint_function *f, int i)
{
    if (!is(l, i - 1, "::")) return true;
    return f->scope > 2 && is_name(l, i - 2) && same_name(l, i - 2, f->scope - 2) && !is(l, i - 3, "::");
}

/* The one function that a call in `caller` means; -1: none, or one of several. */
static int called(const lint *l, const lint_function *caller, int name, int open)
{
    int found = -1, near = -1;
    const int values = lint_count(l, open);
    if (lint_is_library(l->tokens, name)) return -1;
    for (int f = 0; f < l->functions_count; f++) {
        const lint_function *other = &l->functions[f];
        if (other->parameters != values || !same_name(l, other->name, name) || !qualified_as(l, other, name)) continue;
        if (!same_values(l, other, name, open)) continue;
        if (other->scope == caller->scope) near = near == -1 ? f : -2;
        found = found == -1 ? f : -2;
    }
    return near >= 0 ? near : near == -1 && found >= 0 ? found : -1;
}

/* Which functions each one calls: for function f those from first[f] on, before first[f + 1]. */
typedef struct graph {
    int *callees, *first;
    int count, room;
    char *seen;
} graph;

static bool draw(const lint *l, graph *g)
{
    g->first = calloc((size_t)l->functions_count + 1, sizeof *g->first);
    g->seen = calloc((size_t)l->functions_count + 1, 1);
    if (g->first == NULL || g->seen == NULL) return false;
    for (int f = 0; f < l->functions_count; f++) {
        const lint_function *of = &l->functions[f];
        for (int i = of->body; i < of->end; i++) {
            const int open = call_at(l, i, of->end);
            const int next = open < 0 ? -1 : called(l, of, i, open);
            if (next < 0) continue;
            if (!sm_grow((void **)&g->callees, g->count, &g->room, sizeof *g->callees)) return false;
            g->callees[g->count++] = next;
        }
        g->first[f + 1] = g->count;
    }
    return true;
}

static bool reaches(const graph *g, int from, int target)
{
    for (int i = g->first[from]; i < g->first[from + 1]; i++) {
        const int next = g->callees[i];
        if (next == target) return true;
        if (g->seen[next]) continue;
        g->seen[next] = 1;
        if (reaches(g, next, target)) return true;
    }
    return false;
}

static void check_recursion(const lint *l)
{
    graph g = {0};
    const bool drawn = draw(l, &g);
    for (int f = 0; drawn && f < l->functions_count; f++) {
        if (l->functions[f].is_member) continue; /* Apple's compiler takes those of MLX (LoopedElemToLoc) */
        memset(g.seen, 0, (size_t)l->functions_count);
        if (reaches(&g, f, f))
            lint_say(l->out, l->tokens, l->functions[f].name, "recursion: the function calls itself, or one that does");
    }
    free(g.callees);
    free(g.first);
    free(g.seen);
}

static bool is_kernels_name(const lint *l, int name)
{
    bool found = false;
    for (int f = 0; f < l->functions_count; f++) {
        if (!same_name(l, l->functions[f].name, name)) continue;
        if (!l->functions[f].is_kernel) return false;
        found = true;
    }
    return found;
}

static void check_kernel(const lint *l, int f)
{
    const lint_function *of = &l->functions[f];
    for (int g = 0; of->header < 0 && g < f; g++) {
        const lint_function *other = &l->functions[g];
        if (other->is_kernel && other->header < 0 && other->scope == of->scope && same_name(l, other->name, of->name))
            lint_say(l->out, l->tokens, of->name, "a kernel cannot be overloaded");
    }
}

void lint_calls(const lint *l)
{
    check_recursion(l);
    for (int f = 0; f < l->functions_count; f++) {
        const lint_function *of = &l->functions[f];
        if (of->is_kernel) check_kernel(l, f);
        for (int i = of->body; i < of->end; i++)
            if (call_at(l, i, of->end) > 0 && is_kernels_name(l, i))
                lint_say(l->out, l->tokens, i, "a kernel cannot be called by a function");
    }
}
