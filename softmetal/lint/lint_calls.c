/* The call graph, by names: finds recursion and calls of kernels, which are not allowed. A call
 * means the function with that name and number of arguments in the same braces, else the only one
 * that exists. Choosing among several overloads needs types, so such a call is ignored.
 * A text may be untrusted: the depth of calls uses no stack, and the time is not quadratic in the names. */
#include "lint/lint.h"

#include <stdlib.h>
#include <string.h>

static bool same_name(const lint *l, int a, int b)
{
    const msl_token *x = &l->tokens->list[a], *y = &l->tokens->list[b];
    return x->length == y->length && memcmp(l->tokens->text + x->at, l->tokens->text + y->at, x->length) == 0;
}

/* The ( of a call of the name at i, or -1. T f(3) is a declaration. */
static int call_at(const lint *l, int i, int end)
{
    static const char *const before[] = {"return", "else", "do", "case", NULL};
    if (!is_name(l, i) || is(l, i - 1, ".") || is(l, i - 1, "->")) return -1;
    if (is_name(l, i - 1) && !is_any(l, i - 1, before)) return -1;
    const int angle = lint_angle_end(l, i + 1, end);
    const int open = angle > 0 ? angle + 1 : i + 1;
    return is(l, open, "(") && match(l, open) > 0 ? open : -1;
}

/* f<...>(x) in f is a call of f itself if the arguments are its template parameters, in order. */
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

/* Returns whether the name at i can mean the function, judged by the qualifier before ::. */
static bool qualified_as(const lint *l, const lint_function *f, int i)
{
    if (!is(l, i - 1, "::")) return true;
    return f->scope > 2 && is_name(l, i - 2) && same_name(l, i - 2, f->scope - 2) && !is(l, i - 3, "::");
}

/* Functions by name: first[hash], then next[function]; -1: end. The functions that f calls
 * are calls[f] up to, not including, calls[f + 1]. */
typedef struct graph {
    const lint *l;
    int *first, *next;
    size_t hashes; /* a power of two, larger than the number of functions */
    int *callees, *calls;
    int count, room;
} graph;

static size_t name_hash(const graph *g, int name)
{
    const msl_token *t = &g->l->tokens->list[name];
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < t->length; i++) h = (h ^ (unsigned char)g->l->tokens->text[t->at + i]) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32) & (g->hashes - 1);
}

/* The next function with the name at a token, following `after` (-1: the first); -1: no more. */
static int next_named(const graph *g, int name, int after)
{
    int f = after < 0 ? g->first[name_hash(g, name)] : g->next[after];
    while (f >= 0 && !same_name(g->l, g->l->functions[f].name, name)) f = g->next[f];
    return f;
}

/* The function that a call in `caller` means; -1: none, or ambiguous. */
static int called(const graph *g, const lint_function *caller, int name, int open)
{
    const lint *l = g->l;
    int found = -1, near = -1;
    int f = next_named(g, name, -1);
    if (f < 0 || lint_is_library(l->tokens, name)) return -1;
    for (const int values = lint_count(l, open); f >= 0; f = next_named(g, name, f)) {
        const lint_function *other = &l->functions[f];
        if (other->parameters != values || !qualified_as(l, other, name) || !same_values(l, other, name, open))
            continue;
        if (other->scope == caller->scope) near = near == -1 ? f : -2;
        found = found == -1 ? f : -2;
    }
    return near >= 0 ? near : near == -1 && found >= 0 ? found : -1;
}

static bool index_names(graph *g)
{
    const int n = g->l->functions_count;
    for (g->hashes = 16; g->hashes <= (size_t)n; g->hashes *= 2) {
    }
    g->first = malloc(g->hashes * sizeof *g->first);
    g->next = malloc(((size_t)n + 1) * sizeof *g->next);
    if (g->first == NULL || g->next == NULL) return false;
    for (size_t i = 0; i < g->hashes; i++) g->first[i] = -1;
    for (int f = n; f-- > 0;) {
        int *first = &g->first[name_hash(g, g->l->functions[f].name)];
        g->next[f] = *first;
        *first = f;
    }
    return true;
}

static bool draw(graph *g)
{
    const lint *l = g->l;
    g->calls = calloc((size_t)l->functions_count + 1, sizeof *g->calls);
    if (g->calls == NULL) return false;
    for (int f = 0; f < l->functions_count; f++) {
        const lint_function *of = &l->functions[f];
        for (int i = of->body; i < of->end; i++) {
            const int open = call_at(l, i, of->end);
            const int next = open < 0 ? -1 : called(g, of, i, open);
            if (next < 0) continue;
            if (!sm_grow((void **)&g->callees, g->count, &g->room, sizeof *g->callees)) return false;
            g->callees[g->count++] = next;
        }
        g->calls[f + 1] = g->count;
    }
    return true;
}

/* ---- recursion: Tarjan's strongly connected components, with a stack of its own ---- */

typedef struct walk {
    int *order;         /* order of the first visit, from 1; 0: not visited */
    int *low;           /* the lowest order that it reaches, among functions without a component */
    int *at;            /* the call to follow next                                     */
    int *path, *open;   /* functions whose calls are being followed; functions without a component */
    int depth, waiting, met;
} walk;

static void walk_in(walk *w, const graph *g, int f)
{
    w->order[f] = w->low[f] = ++w->met;
    w->at[f] = g->calls[f];
    w->path[w->depth++] = w->open[w->waiting++] = f;
}

/* All calls of f have been followed. If f was visited first in its component, the functions of the
 * component call each other; a component of one function may call itself. */
static void walk_out(walk *w, const graph *g, int f, char *recursive)
{
    if (w->low[f] < w->order[f]) return;
    const bool several = w->open[w->waiting - 1] != f;
    for (int member = -1; member != f;) {
        member = w->open[--w->waiting];
        w->low[member] = 0; /* now has a component */
        recursive[member] = several;
    }
    for (int i = g->calls[f]; i < g->calls[f + 1]; i++)
        if (g->callees[i] == f) recursive[f] = 1;
}

static void walk_from(walk *w, const graph *g, int root, char *recursive)
{
    for (walk_in(w, g, root); w->depth > 0;) {
        const int f = w->path[w->depth - 1];
        if (w->at[f] < g->calls[f + 1]) {
            const int next = g->callees[w->at[f]++];
            if (w->order[next] == 0) walk_in(w, g, next);
            else if (w->low[next] > 0 && w->order[next] < w->low[f]) w->low[f] = w->order[next];
            continue;
        }
        w->depth--;
        const int caller = w->depth > 0 ? w->path[w->depth - 1] : f;
        if (w->low[f] < w->low[caller]) w->low[caller] = w->low[f];
        walk_out(w, g, f, recursive);
    }
}

/* Marks the functions that reach themselves; NULL: out of memory. */
static char *find_recursion(const graph *g)
{
    const size_t n = (size_t)g->l->functions_count + 1;
    int *room = calloc(5 * n, sizeof *room);
    char *recursive = calloc(n, 1);
    if (room != NULL && recursive != NULL) {
        walk w = {room, room + n, room + 2 * n, room + 3 * n, room + 4 * n, 0, 0, 0};
        for (int f = 0; f < g->l->functions_count; f++)
            if (w.order[f] == 0) walk_from(&w, g, f, recursive);
    } else {
        free(recursive);
        recursive = NULL;
    }
    free(room);
    return recursive;
}

static bool check_recursion(const graph *g)
{
    const lint *l = g->l;
    char *recursive = find_recursion(g);
    for (int f = 0; recursive != NULL && f < l->functions_count; f++) /* members: allowed, MLX's LoopedElemToLoc */
        if (recursive[f] && !l->functions[f].is_member)
            lint_report(l->out, l->tokens, l->functions[f].name,
                        "recursion: the function calls itself, directly or not");
    free(recursive);
    return recursive != NULL;
}

/* ---- kernels ---- */

static bool is_kernels_name(const graph *g, int name)
{
    int f = next_named(g, name, -1);
    if (f < 0) return false;
    for (; f >= 0; f = next_named(g, name, f))
        if (!g->l->functions[f].is_kernel) return false;
    return true;
}

static void check_kernel(const graph *g, int f)
{
    const lint *l = g->l;
    const lint_function *of = &l->functions[f];
    for (int o = next_named(g, of->name, -1); of->header < 0 && o >= 0 && o < f; o = next_named(g, of->name, o)) {
        const lint_function *other = &l->functions[o];
        if (other->is_kernel && other->header < 0 && other->scope == of->scope)
            lint_report(l->out, l->tokens, of->name, "a kernel cannot be overloaded");
    }
}

static void check_kernels(const graph *g)
{
    const lint *l = g->l;
    for (int f = 0; f < l->functions_count; f++) {
        const lint_function *of = &l->functions[f];
        if (of->is_kernel) check_kernel(g, f);
        for (int i = of->body; i < of->end; i++)
            if (call_at(l, i, of->end) > 0 && is_kernels_name(g, i))
                lint_report(l->out, l->tokens, i, "a kernel cannot be called by a function");
    }
}

void lint_calls(const lint *l)
{
    graph g = {.l = l};
    const bool whole = index_names(&g) && draw(&g) && check_recursion(&g);
    if (whole) check_kernels(&g);
    else sm_text_print(l->out, "out of memory\n");
    free(g.first);
    free(g.next);
    free(g.callees);
    free(g.calls);
}
