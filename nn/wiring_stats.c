/* Statistics of a wiring: degrees, strongly connected components and path lengths, all from one table of distances
 * between neurons (breadth-first search from each). */
#include <stdlib.h>
#include <string.h>

#include "wiring.h"

static void count_synapses(const mica_wiring *w, mica_wiring_stats *t)
{
    const int64_t units = w->o.units, inner = units * units, outer = w->o.inputs * units;
    for (int64_t i = 0; i < inner; i++) {
        t->synapses += w->synapse[i] != 0;
        t->excitatory += w->synapse[i] > 0;
    }
    for (int64_t i = 0; i < outer; i++) {
        t->sensory += w->sensory[i] != 0;
        t->excitatory += w->sensory[i] > 0;
    }
    t->inhibitory = t->synapses + t->sensory - t->excitatory;
    t->sparsity = 1 - (double)t->synapses / (double)inner;
    t->sensory_sparsity = 1 - (double)t->sensory / (double)outer;
    t->mean_degree = (double)t->synapses / (double)units;
    for (int64_t u = 0; u < units; u++) {
        int64_t in = 0, out = 0;
        for (int64_t v = 0; v < units; v++) in += w->synapse[v * units + u] != 0, out += w->synapse[u * units + v] != 0;
        if (in > t->max_in) t->max_in = in;
        if (out > t->max_out) t->max_out = out;
    }
}

/* Distance from a neuron to each other neuron; -1 if there is no path. */
static void walk_from(const mica_wiring *w, int64_t from, int32_t *steps, int64_t *queue)
{
    const int64_t units = w->o.units;
    int64_t n = 0;
    for (int64_t u = 0; u < units; u++) steps[u] = -1;
    steps[from] = 0;
    queue[n++] = from;
    for (int64_t i = 0; i < n; i++)
        for (int64_t u = 0; u < units; u++)
            if (steps[u] < 0 && w->synapse[queue[i] * units + u]) {
                steps[u] = steps[queue[i]] + 1;
                queue[n++] = u;
            }
}

static mica_status measure_wiring(const mica_wiring *wiring, mica_wiring_stats *stats)
{
    if (!wiring) return mica_fail(MICA_ERR_ARGUMENT, "wiring_measure: no wiring");
    const int64_t units = wiring->o.units;
    int32_t *steps = malloc((size_t)(units * units) * sizeof *steps);
    int64_t *queue = malloc((size_t)units * sizeof *queue);
    if (!steps || !queue) {
        free(steps);
        free(queue);
        return mica_fail(MICA_ERR_MEMORY, "out of memory: distances between %lld units", (long long)units);
    }
    *stats = (mica_wiring_stats){.struct_size = sizeof *stats};
    count_synapses(wiring, stats);
    int64_t reached = 0, total = 0;
    for (int64_t u = 0; u < units; u++) walk_from(wiring, u, steps + u * units, queue);
    for (int64_t u = 0; u < units; u++) {
        int64_t size = 0;
        bool first = true; /* first of its component: paths exist in both directions */
        for (int64_t v = 0; v < units; v++) {
            const bool there = steps[u * units + v] >= 0, together = there && steps[v * units + u] >= 0;
            if (there) reached++, total += steps[u * units + v];
            size += together;
            if (together && v < u) first = false;
        }
        stats->components += first;
        if (size > stats->largest) stats->largest = size;
    }
    stats->mean_path = (double)total / (double)reached;
    free(steps);
    free(queue);
    return MICA_OK;
}

mica_status mica_wiring_measure(const mica_wiring *wiring, mica_wiring_stats *stats)
{
    mica_wiring_stats full;
    const mica_status status = measure_wiring(wiring, &full);
    if (status != MICA_OK) return status;
    return mica_struct_write("wiring_measure: mica_wiring_stats", stats, &full, sizeof full);
}
