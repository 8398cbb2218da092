/* The networks of series: a recurrent cell over the rows of a window and a linear layer from its outputs to the
 * targets. Network and recipe are saved in one file. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

void mica_series_net_init(mica_series_net *net, mica_series_cell cell)
{
    if (!net) return;
    *net = (mica_series_net){.struct_size = sizeof *net,
                             .cell = cell,
                             .units = 32,
                             .layers = 1,
                             .activation = -1,
                             .backbone_units = 128,
                             .backbone_layers = 1,
                             .solver = -1};
}

/* ---------------------------------------------------- description as text -- */

typedef enum net_kind { NET_WORD, NET_COUNT, NET_BOOL, NET_NUMBER, NET_ACTIVATION } net_kind;

/* words[0] stands for the value `first`. */
static const struct net_field {
    const char *name;
    net_kind kind;
    size_t at;
    int first;
    const char *words[9];
} net_fields[] = {
    /* clang-format off */
    {"cell", NET_WORD, offsetof(mica_series_net, cell), 0,
     {"ltc", "cfc", "ctrnn", "node", "eltc", "ctgru", "gru", "lstm"}},
    {"units", NET_COUNT, offsetof(mica_series_net, units), 0, {NULL}},
    {"layers", NET_COUNT, offsetof(mica_series_net, layers), 0, {NULL}},
    {"bidirectional", NET_BOOL, offsetof(mica_series_net, bidirectional), 0, {NULL}},
    {"mixed_memory", NET_BOOL, offsetof(mica_series_net, mixed_memory), 0, {NULL}},
    {"convention", NET_WORD, offsetof(mica_series_net, convention), 0, {"torch", "keras"}},
    {"mode", NET_WORD, offsetof(mica_series_net, mode), 0, {"default", "pure", "no_gate"}},
    {"activation", NET_ACTIVATION, offsetof(mica_series_net, activation), 0, {NULL}},
    {"backbone_units", NET_COUNT, offsetof(mica_series_net, backbone_units), 0, {NULL}},
    {"backbone_layers", NET_COUNT, offsetof(mica_series_net, backbone_layers), 0, {NULL}},
    {"dropout", NET_NUMBER, offsetof(mica_series_net, dropout), 0, {NULL}},
    {"unfolds", NET_COUNT, offsetof(mica_series_net, unfolds), 0, {NULL}},
    {"solver", NET_WORD, offsetof(mica_series_net, solver), -1, {"own", "euler", "heun", "rk4"}},
    /* clang-format on */
};
enum { NET_FIELDS = sizeof net_fields / sizeof net_fields[0], NET_WORD_ROOM = 256, NET_TEXT = 1024 };

static int net_words(const struct net_field *f)
{
    int n = 0;
    while (f->words[n]) n++;
    return n;
}

/* Values without a word could not be printed and parsed again. */
static mica_status net_check(const mica_series_net *net)
{
    for (int i = 0; i < NET_FIELDS; i++) {
        const struct net_field *f = &net_fields[i];
        const char *at = (const char *)net + f->at;
        int word;
        memcpy(&word, at, sizeof word);
        if (f->kind == NET_WORD && (word < f->first || word >= f->first + net_words(f)))
            return mica_fail(MICA_ERR_ARGUMENT, "series net: %s %d is out of range", f->name, word);
    }
    if (net->activation < -1 || (net->activation >= 0 && !mica_activation_name((mica_activation)net->activation)))
        return mica_fail(MICA_ERR_ARGUMENT, "series net: activation %d is out of range", net->activation);
    if (net->wiring && (strlen(net->wiring) >= NET_WORD_ROOM || strpbrk(net->wiring, " \t\r\n") || !net->wiring[0]))
        return mica_fail(MICA_ERR_ARGUMENT, "series net: '%.80s' is not a wiring", net->wiring);
    if ((net->cell == MICA_CELL_GRU || net->cell == MICA_CELL_LSTM) && net->wiring)
        return mica_fail(MICA_ERR_ARGUMENT, "series net: GRU and LSTM have no wiring");
    return MICA_OK;
}

mica_status mica__series_net_print(const mica_series_net *net, char *text, size_t room)
{
    size_t n = (size_t)snprintf(text, room, "wiring %s", net->wiring ? net->wiring : "-");
    for (int i = 0; i < NET_FIELDS && n < room; i++) {
        const struct net_field *f = &net_fields[i];
        const char *at = (const char *)net + f->at;
        int word;
        char number[MICA_NUMBER_TEXT];
        memcpy(&word, at, sizeof word);
        n += (size_t)snprintf(text + n, room - n, " %s ", f->name);
        if (n >= room) break;
        switch (f->kind) {
        case NET_WORD: n += (size_t)snprintf(text + n, room - n, "%s", f->words[word - f->first]); break;
        case NET_COUNT:
            n += (size_t)snprintf(text + n, room - n, "%lld", (long long)*(const int64_t *)(const void *)at);
            break;
        case NET_ACTIVATION:
            n += (size_t)snprintf(text + n, room - n, "%s",
                                  word < 0 ? "own" : mica_activation_name((mica_activation)word));
            break;
        case NET_BOOL: n += (size_t)snprintf(text + n, room - n, "%d", *(const bool *)at); break;
        case NET_NUMBER:
            n += (size_t)snprintf(text + n, room - n, "%s",
                                  mica_number_print(*(const double *)(const void *)at, number, sizeof number));
            break;
        }
    }
    return n < room ? MICA_OK : mica_fail(MICA_ERR_ARGUMENT, "series net: the description is too long");
}

static bool net_read_field(mica_series_net *net, const char *name, const char *value)
{
    for (int i = 0; i < NET_FIELDS; i++) {
        const struct net_field *f = &net_fields[i];
        char *at = (char *)net + f->at;
        if (strcmp(f->name, name) != 0) continue;
        if (f->kind == NET_WORD) {
            for (int k = 0; k < net_words(f); k++)
                if (strcmp(f->words[k], value) == 0) {
                    const int word = f->first + k;
                    memcpy(at, &word, sizeof word);
                    return true;
                }
            return false;
        }
        if (f->kind == NET_ACTIVATION) {
            mica_activation known = MICA_ACTIVATION_NONE;
            const bool own = strcmp(value, "own") == 0;
            if (!own && !mica_activation_named(value, &known)) return false;
            const int word = own ? -1 : (int)known;
            memcpy(at, &word, sizeof word);
            return true;
        }
        double number;
        if (!mica_number_parse(value, strlen(value), &number) || !(number >= 0 && number <= 1e9)) return false;
        if (f->kind == NET_COUNT) *(int64_t *)(void *)at = (int64_t)number;
        else if (f->kind == NET_BOOL) *(bool *)at = number != 0;
        else *(double *)(void *)at = number;
        return true;
    }
    return false;
}

mica_status mica__series_net_parse(const char *text, size_t length, mica_series_net *net, char *wiring, size_t room)
{
    char copy[NET_TEXT], *rest = NULL;
    mica_series_net_init(net, MICA_CELL_LTC);
    if (length >= sizeof copy) return mica_fail(MICA_ERR_FORMAT, "series model: a description of %zu bytes", length);
    memcpy(copy, text, length);
    copy[length] = '\0';
    for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        const char *value = strtok_r(NULL, " ", &rest);
        if (value && strcmp(name, "wiring") == 0 && strlen(value) < room) {
            memcpy(wiring, value, strlen(value) + 1);
            net->wiring = strcmp(value, "-") == 0 ? NULL : wiring;
        } else if (!value || !net_read_field(net, name, value))
            return mica_fail(MICA_ERR_FORMAT, "series model: '%.40s %.40s' is not part of a description", name,
                             value ? value : "");
    }
    return MICA_OK;
}

/* ------------------------------------------------------------------ making -- */

static bool is_liquid(const mica_series_model *m) { return m->net.cell < MICA_CELL_GRU; }

static mica_status build_liquid(mica_series_model *m, int64_t inputs, int64_t outputs)
{
    const mica_series_net *n = &m->net;
    mica_liquid *l = &m->liquid;
    mica_status status = n->wiring ? mica_wiring_parse(n->wiring, inputs, &m->wiring) : MICA_OK;
    if (status != MICA_OK) return status;
    mica_liquid_init(l, (mica_liquid_cell)n->cell);
    l->inputs = inputs, l->projection = outputs, l->units = n->units, l->layers = n->layers, l->wiring = m->wiring;
    l->bidirectional = n->bidirectional, l->mixed_memory = n->mixed_memory;
    l->convention = n->convention, l->mode = n->mode;
    l->backbone_units = n->backbone_units, l->backbone_layers = n->backbone_layers, l->dropout = n->dropout;
    if (n->activation >= 0) l->activation = (mica_activation)n->activation;
    if (n->solver >= 0) l->solver = (mica_liquid_solver)n->solver;
    if (n->unfolds > 0) l->unfolds = n->unfolds;
    return mica_liquid_check(l);
}

/* Builds the network from its description and the recipe's inputs and targets. */
static mica_status build_model(mica_series_model *m)
{
    const int64_t classes = mica_recipe_classes(m->recipe), inputs = mica_recipe_inputs(m->recipe);
    m->outputs = classes ? classes : mica_recipe_targets(m->recipe);
    if (is_liquid(m)) return build_liquid(m, inputs, m->outputs);
    const mica_layer_kind kind = m->net.cell == MICA_CELL_GRU ? MICA_LAYER_GRU : MICA_LAYER_LSTM;
    m->recurrent = mica_recurrent_layer(kind, inputs + mica_recipe_knows_time(m->recipe), m->net.units);
    m->recurrent.layers = m->net.layers;
    m->recurrent.bidirectional = m->net.bidirectional;
    m->readout = mica_linear_layer(m->net.units * (m->net.bidirectional ? 2 : 1), m->outputs);
    return MICA_OK;
}

static mica_status make_model_params(mica_series_model *m, mica_scope *s, uint64_t seed)
{
    mica_status status = mica_params_new(&m->params);
    if (status != MICA_OK || is_liquid(m))
        return status == MICA_OK ? mica_liquid_params(s, &m->liquid, MICA_F32, seed, m->params) : status;
    status = mica_layer_params(s, m->params, &m->recurrent, mica_seed_split(seed, 0), "rnn");
    return status == MICA_OK ? mica_layer_params(s, m->params, &m->readout, mica_seed_split(seed, 1), "fc") : status;
}

/* Reads the caller's description and fills in the defaults of its cell. */
static mica_status net_read(const mica_series_net *given, mica_series_net *net)
{
    if (!given) return mica_fail(MICA_ERR_ARGUMENT, "series net: no description");
    const char *name = "series model: mica_series_net";
    *net = (mica_series_net){.struct_size = sizeof *net};
    const mica_status status = mica_struct_read(name, net, sizeof *net, given);
    if (status != MICA_OK) return status;
    mica_series_net_init(net, net->cell);
    return mica_struct_read(name, net, sizeof *net, given);
}

mica_status mica_series_model_new(mica_scope *s, const mica_series_net *given, const mica_recipe *recipe, uint64_t seed,
                                  mica_series_model **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "series model: out is NULL");
    *out = NULL;
    if (!s || !recipe) return mica_fail(MICA_ERR_ARGUMENT, "series model: no scope or no recipe");
    mica_series_net all, *net = &all;
    mica_status status = net_read(given, net);
    if (status == MICA_OK) status = net_check(net);
    if (status != MICA_OK) return status;
    mica_series_model *m = calloc(1, sizeof *m);
    if (!m) return mica_fail(MICA_ERR_MEMORY, "out of memory: a series model");
    m->net = *net;
    if (net->wiring) {
        const size_t length = strlen(net->wiring) + 1;
        m->net.wiring = m->wiring_text = malloc(length);
        if (m->wiring_text) memcpy(m->wiring_text, net->wiring, length);
        else status = mica_fail(MICA_ERR_MEMORY, "out of memory: the name of a wiring");
    }
    if (status == MICA_OK) status = mica_recipe_copy(recipe, &m->recipe);
    if (status == MICA_OK) status = build_model(m);
    if (status == MICA_OK) status = make_model_params(m, s, seed);
    if (status == MICA_OK) *out = m;
    else mica_series_model_free(m);
    return status;
}

void mica_series_model_free(mica_series_model *model)
{
    if (!model) return;
    mica_params_free(model->params);
    mica_wiring_free(model->wiring);
    mica_recipe_free(model->recipe);
    free(model->wiring_text);
    free(model);
}

mica_params *mica_series_model_params(mica_series_model *model) { return model ? model->params : NULL; }
const mica_series_net *mica_series_model_net(const mica_series_model *model) { return model ? &model->net : NULL; }
const mica_recipe *mica_series_model_recipe(const mica_series_model *model) { return model ? model->recipe : NULL; }

/* ------------------------------------------------------------------- graph -- */

mica_array *mica_series_outputs(mica_forward *f, const mica_series_model *model, mica_array *const *data, size_t n)
{
    const mica_series_model *m = model;
    mica_array *span = n > 2 ? data[2] : NULL;
    if (is_liquid(m)) {
        const mica_liquid_data in = {
            .struct_size = sizeof in, .x = data[0], .timespans = span, .seed = f->training ? f->seed : NULL};
        mica_liquid_result r = {.struct_size = sizeof r};
        if (mica_liquid_forward(f->s, &m->liquid, f->params, &in, &r) != MICA_OK) return NULL;
        mica_watch(f, r.state, "the state of rnn_cell");
        return mica_watch(f, r.y, "fc");
    }
    mica_array *x = data[0];
    if (span) x = mica_concat(f->s, (mica_array *[]){x, mica_expand_dims(f->s, span, -1)}, 2, -1);
    return mica_layer_apply(f, &m->readout, mica_layer_apply(f, &m->recurrent, x, "rnn"), "fc");
}

mica_array *mica_series_loss(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    const mica_series_model *m = user;
    mica_array *y = mica_series_outputs(f, m, data, n);
    return mica_recipe_classes(m->recipe) ? mica_cross_entropy_loss(f->s, y, data[1], 0)
                                          : mica_mse_loss(f->s, y, data[1]);
}

/* -------------------------------------------------------------------- file -- */

#define NET_KEY "mica.series.net"
#define RECIPE_KEY "mica.series.recipe"

/* Saves the parameters; those of a liquid network as the reference's state_dict. */
static mica_status save_params(const mica_series_model *m, mica_scope *s, const char *path,
                               const mica_setting *settings, size_t n)
{
    if (!is_liquid(m)) return mica_params_save(m->params, path, settings, n);
    mica_params *all;
    mica_status status = mica_liquid_state_dict(s, &m->liquid, m->params, &all);
    if (status != MICA_OK) return status;
    status = mica_params_save(all, path, settings, n);
    mica_params_free(all);
    return status;
}

mica_status mica_series_model_save(mica_scope *s, const mica_series_model *model, const char *path,
                                   const mica_setting *settings, size_t n)
{
    char net[NET_TEXT];
    if (!s || !model || !path || (n && !settings))
        return mica_fail(MICA_ERR_ARGUMENT, "series model: model, scope or path is NULL");
    mica_status status = mica__series_net_print(&model->net, net, sizeof net);
    if (status != MICA_OK) return status;
    const size_t length = mica_recipe_text(model->recipe, NULL, 0) + 1;
    char *recipe = malloc(length);
    mica_setting *all = malloc((n + 2) * sizeof *all);
    if (!recipe || !all) status = mica_fail(MICA_ERR_MEMORY, "out of memory: a recipe");
    else {
        (void)mica_recipe_text(model->recipe, recipe, length);
        all[0] = (mica_setting){NET_KEY, net};
        all[1] = (mica_setting){RECIPE_KEY, recipe};
        for (size_t i = 0; i < n; i++) all[i + 2] = settings[i];
        status = save_params(model, s, path, all, n + 2);
    }
    free(recipe);
    free(all);
    return status;
}

mica_status mica_series_model_open(mica_scope *s, const char *path, mica_series_model **out)
{
    mica_file *file;
    mica_recipe *recipe = NULL;
    mica_series_net net;
    char wiring[NET_WORD_ROOM];
    const char *net_text, *recipe_text;
    size_t net_length, recipe_length;
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "series model: out is NULL");
    *out = NULL;
    if (!s || !path) return mica_fail(MICA_ERR_ARGUMENT, "series model: no scope or no path");
    mica_status status = mica_file_open(path, NULL, &file);
    if (status != MICA_OK) return status;
    if (!mica_file_string(file, NET_KEY, &net_text, &net_length) ||
        !mica_file_string(file, RECIPE_KEY, &recipe_text, &recipe_length))
        status =
            mica_fail(MICA_ERR_FORMAT, "%s: not a model of a series: the description of the network is missing", path);
    if (status == MICA_OK) status = mica__series_net_parse(net_text, net_length, &net, wiring, sizeof wiring);
    if (status == MICA_OK) status = mica_recipe_parse(recipe_text, recipe_length, &recipe);
    if (status == MICA_OK) status = mica_series_model_new(s, &net, recipe, 0, out);
    if (status == MICA_OK)
        status = is_liquid(*out) ? mica_liquid_load(s, &(*out)->liquid, (*out)->params, file)
                                 : mica_params_load((*out)->params, s, file);
    if (status == MICA_ERR_ARGUMENT || status == MICA_ERR_SHAPE)
        status = mica_fail(MICA_ERR_FORMAT, "%s: %s", path, mica_last_error());
    if (status != MICA_OK) {
        mica_series_model_free(*out);
        *out = NULL;
    }
    mica_recipe_free(recipe);
    mica_file_close(file);
    return status;
}
