/* Wirings. A wiring is a function of its options and is complete once made, so building twice gives the same result
 * (in the reference a second build draws again). The order of random draws is that of the reference, including its
 * quirks. */
#include "wiring.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "wiring_random.h"

void mica_wiring_options_init(mica_wiring_options *options, mica_wiring_kind kind)
{
    if (!options) return;
    const bool ncp = kind == MICA_WIRING_NCP || kind == MICA_WIRING_AUTO_NCP;
    *options = (mica_wiring_options){.struct_size = sizeof *options,
                                     .kind = kind,
                                     .sparsity = 0.5,
                                     .self_connections = true,
                                     .seed = ncp ? 22222 : 1111};
}

/* ------------------------------------------------------ full and random ---- */

/* numpy.random.default_rng(seed).choice([-1, 1, 1]) */
static int8_t third_negative(wiring_pcg *g) { return mica__wiring_pcg_choice(g, 3) == 0 ? -1 : 1; }

static void wire_fully(mica_wiring *w)
{
    const int64_t units = w->o.units;
    wiring_pcg g;
    mica__wiring_pcg_seed(&g, w->o.seed);
    for (int64_t from = 0; from < units; from++)
        for (int64_t to = 0; to < units; to++)
            if (from != to || w->o.self_connections) w->synapse[from * units + to] = third_negative(&g);
    for (int64_t i = 0; i < w->o.inputs * units; i++) w->sensory[i] = third_negative(&g);
}

static void wire_sample(wiring_pcg *g, double share, int64_t possible, int draws, int64_t *work, int8_t *matrix)
{
    const int64_t n = (int64_t)rint((double)possible * share);
    int64_t *chosen = work + possible;
    mica__wiring_pcg_sample(g, possible, n, work, chosen);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < draws; k++) matrix[chosen[i]] = third_negative(g);
}

static mica_status wire_randomly(mica_wiring *w)
{
    const int64_t units = w->o.units, inner = units * units, outer = w->o.inputs * units;
    int64_t *work = malloc((size_t)(2 * (inner > outer ? inner : outer)) * sizeof *work);
    if (!work) return mica_fail(MICA_ERR_MEMORY, "out of memory: a random wiring of %lld units", (long long)units);
    wiring_pcg g;
    mica__wiring_pcg_seed(&g, w->o.seed);
    wire_sample(&g, 1 - w->o.sparsity, inner, 1, work, w->synapse);
    wire_sample(&g, 1 - w->o.sparsity, outer, 2, work, w->sensory); /* the reference draws the signs of inputs twice */
    free(work);
    return MICA_OK;
}

/* -------------------------------------------------------------------- NCP -- */

typedef struct ncp_builder {
    mica_wiring *w;
    wiring_mt g;
    int64_t *order; /* room for a permutation of any group              */
    bool *reached; /* by unit                                          */
} ncp_builder;

/* A synapse matrix and the numbers of its first source and first destination. */
typedef struct ncp_link {
    int8_t *matrix;
    int64_t from, n_from, to, n_to;
} ncp_link;

static void ncp_connect(ncp_builder *b, const ncp_link *l, int64_t from, int64_t to)
{
    const int8_t sign = mica__wiring_mt_choice(&b->g, 2) == 0 ? -1 : 1;
    l->matrix[(l->from + from) * b->w->o.units + l->to + to] = sign;
}

/* Connects each source to `fanout` destinations. A destination without a source gets as many sources as the others
 * have on average, at most `most`. */
static void ncp_fan_out(ncp_builder *b, const ncp_link *l, int64_t fanout, int64_t most)
{
    memset(b->reached, 0, (size_t)l->n_to * sizeof *b->reached);
    for (int64_t from = 0; from < l->n_from; from++) {
        mica__wiring_mt_permutation(&b->g, l->n_to, b->order);
        for (int64_t k = 0; k < fanout; k++) {
            b->reached[b->order[k]] = true;
            ncp_connect(b, l, from, b->order[k]);
        }
    }
    int64_t mean = (int64_t)((double)(l->n_from * fanout) / (double)l->n_to);
    if (mean > most) mean = most;
    if (mean < 1) mean = 1;
    for (int64_t to = 0; to < l->n_to; to++) {
        if (b->reached[to]) continue;
        mica__wiring_mt_permutation(&b->g, l->n_from, b->order);
        for (int64_t k = 0; k < mean; k++) ncp_connect(b, l, b->order[k], to);
    }
}

/* Connects each destination to `fanin` sources. A source without a destination gets some. */
static void ncp_fan_in(ncp_builder *b, const ncp_link *l, int64_t fanin)
{
    memset(b->reached, 0, (size_t)l->n_from * sizeof *b->reached);
    for (int64_t to = 0; to < l->n_to; to++) {
        mica__wiring_mt_permutation(&b->g, l->n_from, b->order);
        for (int64_t k = 0; k < fanin; k++) {
            b->reached[b->order[k]] = true;
            ncp_connect(b, l, b->order[k], to);
        }
    }
    int64_t mean = (int64_t)((double)(l->n_to * fanin) / (double)l->n_from);
    if (mean > l->n_to) mean = l->n_to;
    if (mean < 1) mean = 1;
    for (int64_t from = 0; from < l->n_from; from++) {
        if (b->reached[from]) continue;
        mica__wiring_mt_permutation(&b->g, l->n_to, b->order);
        for (int64_t k = 0; k < mean; k++) ncp_connect(b, l, from, b->order[k]);
    }
}

static mica_status wire_ncp(mica_wiring *w)
{
    const mica_wiring_options *o = &w->o;
    const int64_t most = o->units > o->inputs ? o->units : o->inputs;
    ncp_builder b = {.w = w, .order = malloc((size_t)most * sizeof *b.order), .reached = calloc((size_t)most, 1)};
    if (b.order && b.reached) {
        const int64_t inter = o->motor + o->command, command = o->motor;
        const ncp_link sensory = {w->sensory, 0, o->inputs, inter, o->inter};
        const ncp_link forward = {w->synapse, inter, o->inter, command, o->command};
        const ncp_link around = {w->synapse, command, o->command, command, o->command};
        const ncp_link motor = {w->synapse, command, o->command, 0, o->motor};
        mica__wiring_mt_seed(&b.g, (uint32_t)o->seed);
        ncp_fan_out(&b, &sensory, o->sensory_fanout, o->inputs);
        ncp_fan_out(&b, &forward, o->inter_fanout, o->command);
        for (int64_t i = 0; i < o->recurrent; i++) {
            const int64_t from = mica__wiring_mt_choice(&b.g, o->command);
            const int64_t to = mica__wiring_mt_choice(&b.g, o->command);
            ncp_connect(&b, &around, from, to);
        }
        ncp_fan_in(&b, &motor, o->motor_fanin);
    }
    const bool made = b.order && b.reached;
    free(b.order);
    free(b.reached);
    return made ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "out of memory: an NCP of %lld units", (long long)o->units);
}

/* ---------------------------------------------------------------- checks --- */

static int64_t at_least_one(double x) { return x >= 1 ? (int64_t)x : 1; }

/* Sizes of the parts, derived as in the reference: in double, truncated. */
static mica_status auto_ncp_sizes(mica_wiring_options *o)
{
    if (o->outputs < 1 || o->outputs >= o->units - 2)
        return mica_fail(MICA_ERR_ARGUMENT,
                         "wiring: %lld outputs of %lld units; an auto NCP needs at least 3 more units than outputs",
                         (long long)o->outputs, (long long)o->units);
    if (!(o->sparsity >= 0.1 && o->sparsity <= 1))
        return mica_fail(MICA_ERR_ARGUMENT, "wiring: sparsity %g of an auto NCP is out of range (0.1 to 1)",
                         o->sparsity);
    const double density = 1 - o->sparsity;
    const int64_t inner = o->units - o->outputs;
    o->motor = o->outputs;
    o->command = at_least_one(0.4 * (double)inner);
    o->inter = inner - o->command;
    o->sensory_fanout = at_least_one((double)o->inter * density);
    o->inter_fanout = o->motor_fanin = at_least_one((double)o->command * density);
    o->recurrent = at_least_one((double)o->command * density * 2);
    return MICA_OK;
}

static mica_status check_ncp(mica_wiring_options *o)
{
    const struct {
        const char *what;
        int64_t value, least, most;
    } rule[] = {{"inter neurons", o->inter, 1, WIRING_MOST},
                {"command neurons", o->command, 1, WIRING_MOST},
                {"motor neurons", o->motor, 1, WIRING_MOST},
                {"inter neurons that an input acts on", o->sensory_fanout, 1, o->inter},
                {"command neurons that an inter neuron acts on", o->inter_fanout, 1, o->command},
                {"recurrent synapses of the command neurons", o->recurrent, 0, WIRING_MOST},
                {"command neurons that act on a motor neuron", o->motor_fanin, 1, o->command}};
    for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++)
        if (rule[i].value < rule[i].least || rule[i].value > rule[i].most)
            return mica_fail(MICA_ERR_ARGUMENT, "wiring: %lld %s (allowed: %lld to %lld)", (long long)rule[i].value,
                             rule[i].what, (long long)rule[i].least, (long long)rule[i].most);
    if (o->seed > UINT32_MAX)
        return mica_fail(MICA_ERR_ARGUMENT, "wiring: the seed %llu of an NCP is not below 2^32",
                         (unsigned long long)o->seed);
    o->units = o->inter + o->command + o->motor;
    o->outputs = o->motor;
    return MICA_OK;
}

static mica_status check_wiring(mica_wiring_options *o)
{
    mica_status status = MICA_OK;
    if (o->kind == MICA_WIRING_AUTO_NCP) status = auto_ncp_sizes(o);
    if (status == MICA_OK && (o->kind == MICA_WIRING_AUTO_NCP || o->kind == MICA_WIRING_NCP)) status = check_ncp(o);
    if (status != MICA_OK) return status;
    if ((unsigned)o->kind > MICA_WIRING_AUTO_NCP)
        return mica_fail(MICA_ERR_ARGUMENT, "wiring: kind %d is not a mica_wiring_kind", (int)o->kind);
    if (o->outputs == 0) o->outputs = o->units;
    if (o->units < 1 || o->units > WIRING_MOST || o->inputs < 1 || o->inputs > WIRING_MOST)
        return mica_fail(MICA_ERR_ARGUMENT, "wiring: %lld units and %lld inputs (allowed: 1 to %d of each)",
                         (long long)o->units, (long long)o->inputs, WIRING_MOST);
    if (o->outputs < 1 || o->outputs > o->units)
        return mica_fail(MICA_ERR_ARGUMENT, "wiring: %lld outputs of %lld units (allowed: 1 to all units)",
                         (long long)o->outputs, (long long)o->units);
    if (o->kind == MICA_WIRING_RANDOM && !(o->sparsity >= 0 && o->sparsity < 1))
        return mica_fail(MICA_ERR_ARGUMENT, "wiring: sparsity %g of a random wiring is not in [0, 1)", o->sparsity);
    return MICA_OK;
}

/* ------------------------------------------------------------------ life --- */

mica_status mica_wiring_new(const mica_wiring_options *options, mica_wiring **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "wiring: out is NULL");
    *out = NULL;
    if (!options) return mica_fail(MICA_ERR_ARGUMENT, "wiring: no options");
    mica_wiring_options o = {.struct_size = sizeof o};
    mica_status status = mica_struct_read("wiring: mica_wiring_options", &o, sizeof o, options);
    if (status != MICA_OK) return status;
    mica_wiring_options_init(&o, o.kind); /* the defaults depend on the kind */
    status = mica_struct_read("wiring: mica_wiring_options", &o, sizeof o, options);
    if (status == MICA_OK) status = check_wiring(&o);
    if (status != MICA_OK) return status;
    mica_wiring *w = calloc(1, sizeof *w);
    if (w) {
        w->o = o;
        w->synapse = calloc((size_t)(o.units * o.units), 1);
        w->sensory = calloc((size_t)(o.inputs * o.units), 1);
    }
    if (!w || !w->synapse || !w->sensory)
        status = mica_fail(MICA_ERR_MEMORY, "out of memory: a wiring of %lld units", (long long)o.units);
    else if (o.kind == MICA_WIRING_FULL) wire_fully(w);
    else status = o.kind == MICA_WIRING_RANDOM ? wire_randomly(w) : wire_ncp(w);
    if (status == MICA_OK) *out = w;
    else mica_wiring_free(w);
    return status;
}

void mica_wiring_free(mica_wiring *wiring)
{
    if (!wiring) return;
    free(wiring->synapse);
    free(wiring->sensory);
    free(wiring);
}

const mica_wiring_options *mica_wiring_get(const mica_wiring *wiring) { return wiring ? &wiring->o : NULL; }
const int8_t *mica_wiring_synapses(const mica_wiring *wiring) { return wiring ? wiring->synapse : NULL; }
const int8_t *mica_wiring_sensory(const mica_wiring *wiring) { return wiring ? wiring->sensory : NULL; }

bool mica_wiring_layer(const mica_wiring *wiring, int64_t layer, int64_t *first, int64_t *count)
{
    if (!wiring || layer < 0 || !first || !count) return false;
    const mica_wiring_options *o = &wiring->o;
    const bool ncp = o->kind == MICA_WIRING_NCP || o->kind == MICA_WIRING_AUTO_NCP;
    if (layer >= (ncp ? 3 : 1)) return false;
    const int64_t firsts[3] = {o->motor + o->command, o->motor, 0}, counts[3] = {o->inter, o->command, o->motor};
    *first = ncp ? firsts[layer] : 0;
    *count = ncp ? counts[layer] : o->units;
    return true;
}

/* ------------------------------------------------------------------ text --- */

static const struct {
    const char *name;
    mica_wiring_kind kind;
    int least, most; /* how many numbers after the colon */
} wiring_names[] = {{"full", MICA_WIRING_FULL, 1, 2},
                    {"fully", MICA_WIRING_FULL, 1, 2},
                    {"random", MICA_WIRING_RANDOM, 3, 3},
                    {"ncp", MICA_WIRING_NCP, 7, 7},
                    {"autoncp", MICA_WIRING_AUTO_NCP, 2, 3}};

/* Parses up to seven numbers separated by commas; returns their count, or -1. */
static int parse_numbers(const char *at, double number[7], const char **end)
{
    for (int n = 0; n < 7; n++) {
        const char *after = at + strspn(at, "0123456789.");
        if (!mica_number_parse(at, (size_t)(after - at), &number[n]) || number[n] > 1e9) return -1;
        *end = after;
        if (*after != ',') return n + 1;
        at = after + 1;
    }
    return -1;
}

static bool parse_seed(const char *at, uint64_t *seed)
{
    if (*at == '\0') return true;
    char *end;
    if (*at != '@' || at[1] < '0' || at[1] > '9') return false;
    *seed = strtoull(at + 1, &end, 10);
    return *end == '\0';
}

static bool parse_wiring(const char *text, mica_wiring_options *o)
{
    double x[7] = {0};
    const char *colon = strchr(text, ':'), *end = text;
    for (size_t i = 0; colon && i < sizeof wiring_names / sizeof wiring_names[0]; i++) {
        const size_t length = strlen(wiring_names[i].name);
        if ((size_t)(colon - text) != length || strncmp(text, wiring_names[i].name, length) != 0) continue;
        mica_wiring_options_init(o, wiring_names[i].kind);
        const int n = parse_numbers(colon + 1, x, &end);
        if (n < wiring_names[i].least || n > wiring_names[i].most) return false;
        if (o->kind == MICA_WIRING_NCP) {
            int64_t *const to[7] = {&o->inter,        &o->command,   &o->motor,      &o->sensory_fanout,
                                    &o->inter_fanout, &o->recurrent, &o->motor_fanin};
            for (int k = 0; k < 7; k++) *to[k] = (int64_t)x[k];
        } else {
            o->units = (int64_t)x[0];
            o->outputs = (int64_t)x[1];
            if (n == 3) o->sparsity = x[2];
        }
        return parse_seed(end, &o->seed);
    }
    return false;
}

mica_status mica_wiring_parse(const char *text, int64_t inputs, mica_wiring **out)
{
    mica_wiring_options o;
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "wiring: out is NULL");
    *out = NULL;
    if (!text || !parse_wiring(text, &o))
        return mica_fail(
            MICA_ERR_ARGUMENT,
            "wiring: '%s' is not a wiring; there are full:UNITS[,OUTPUTS] (or fully:), random:UNITS,OUTPUTS,SPARSITY, "
            "autoncp:UNITS,OUTPUTS[,SPARSITY] and ncp:INTER,COMMAND,MOTOR,SENSORY_FANOUT,INTER_FANOUT,"
            "RECURRENT,MOTOR_FANIN, each optionally followed by @SEED",
            text ? text : "");
    o.inputs = inputs;
    return mica_wiring_new(&o, out);
}
