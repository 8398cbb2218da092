/* Liquid networks in files and in a trainer, what is refused, and memory. A state_dict is read
 * back; one of another wiring is refused. Steps after the first allocate nothing.
 *
 * runs: metal-unsanitized */
#include "base/alloc.h"
#include "liquid_kit.h"

static mica_liquid wired(mica_liquid_cell cell, const char *text, mica_wiring **w)
{
    mica_liquid net;
    mica_liquid_init(&net, cell);
    net.inputs = 3;
    EXPECT_OK(mica_wiring_parse(text, 3, w));
    net.wiring = *w;
    return net;
}

TEST(a_state_dict_comes_back)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/mica-liquid-%d", (int)getpid());
    for (int cell = MICA_LIQUID_LTC; cell <= MICA_LIQUID_CFC; cell++) {
        test_case("cell %d", cell);
        mica_engine *e = open_engine("cpu");
        mica_scope *s = mica_scope_begin(e);
        mica_wiring *w, *other;
        const mica_liquid net = wired((mica_liquid_cell)cell, "autoncp:12,3", &w);
        const mica_liquid another = wired((mica_liquid_cell)cell, "autoncp:12,3@5", &other);
        mica_params *p = recipe_params(s, &net, MICA_F32), *all, *q;
        CHECK_OK(mica_liquid_state_dict(s, &net, p, &all));
        EXPECT(mica_params_count(all) > mica_params_count(p)); /* the masks */
        EXPECT_OK(mica_params_save(all, path, NULL, 0));
        EXPECT_OK(mica_params_new(&q));
        EXPECT_OK(mica_liquid_params(s, &net, MICA_F32, 3, q));
        mica_file *file;
        CHECK_OK(mica_file_open(path, NULL, &file));
        EXPECT_OK(mica_liquid_load(s, &net, q, file));
        for (size_t i = 0; i < mica_params_count(p); i++)
            EXPECT(close_arrays(mica_params_at(q, i), mica_params_at(p, i)));
        EXPECT_FAILS(mica_liquid_load(s, &another, q, file), MICA_ERR_FORMAT, "another wiring");
        EXPECT_FAILS(mica_liquid_load(s, &net, q, NULL), MICA_ERR_ARGUMENT, "liquid_load");
        mica_file_close(file);
        remove(path);
        mica_params_free(all);
        mica_params_free(p);
        mica_params_free(q);
        mica_wiring_free(w);
        mica_wiring_free(other);
        mica_scope_end(s);
        mica_close(e);
    }
}

TEST(explicit_constraints_cut_at_zero)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_liquid net = small_ltc();
    mica_params *p = recipe_params(s, &net, MICA_F32);
    for (size_t i = 0; i < mica_params_count(p); i++) {
        mica_array *x = mica_sub(s, mica_params_at(p, i), mica_scalar(s, 0.5));
        EXPECT_OK(mica_eval(s, &x, 1));
        EXPECT_OK(mica_params_set(p, i, x));
    }
    mica_array *before = mica_params_at(p, 0);
    EXPECT_OK(mica_liquid_constrain(s, &net, p)); /* implicit: nothing to do */
    EXPECT(mica_params_at(p, 0) == before);
    net.implicit_constraints = false;
    EXPECT_OK(mica_liquid_constrain(s, &net, p));
    for (size_t i = 0; i < mica_params_count(p); i++) {
        const char *name = mica_params_name(p, i);
        const bool cut =
            ends_in(name, "w") || ends_in(name, "sensory_w") || ends_in(name, "cm") || ends_in(name, "gleak");
        mica_array *least = mica_min(s, mica_params_at(p, i), NULL, 0, false);
        EXPECT_OK(mica_eval(s, &least, 1));
        EXPECT_MSG((item_of(least) >= 0) == cut || ends_in(name, "sigma") || ends_in(name, "sensory_sigma") ||
                       ends_in(name, "input_w") || ends_in(name, "output_w"),
                   "%s: %g", name, item_of(least));
    }
    mica_params_free(p);
    mica_scope_end(s);
    mica_close(e);
}

/* Dropout of a backbone changes the results; equal seeds give equal results. */
TEST(dropout_of_a_backbone)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_liquid net = small_cfc();
    net.backbone_layers = 3, net.dropout = 0.5;
    mica_params *p = recipe_params(s, &net, MICA_F32);
    EXPECT(mica_params_index(p, "rnn_cell.backbone.5.weight") >= 0); /* numbered as in nn.Sequential */
    mica_array *x = recipe_input(s, MICA_F32, SHAPE(2, 5, 3)), *y[4];
    for (int i = 0; i < 4; i++) {
        mica_liquid_result r = {.struct_size = sizeof r};
        const int32_t seed = i == 3 ? 2 : 1;
        mica_liquid_data d = {
            .struct_size = sizeof d, .x = x, .seed = i ? mica_from_data(s, MICA_I32, 0, NULL, &seed) : NULL};
        CHECK_OK(mica_liquid_forward(s, &net, p, &d, &r));
        y[i] = r.y;
    }
    CHECK_OK(mica_eval(s, y, 4));
    EXPECT(!close_arrays(y[0], y[1]));
    EXPECT(close_arrays(y[1], y[2]));
    EXPECT(!close_arrays(y[1], y[3]));
    mica_params_free(p);
    mica_scope_end(s);
    mica_close(e);
}

/* --------------------------------------------------------------- a trainer -- */

static mica_array *last_square(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    (void)n;
    mica_liquid_result r = {.struct_size = sizeof r};
    if (mica_liquid_forward(f->s, user, f->params,
                            &(mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = data[0]}, &r) != MICA_OK)
        return NULL;
    return mica_mean(f->s, mica_square(f->s, mica_sub(f->s, r.y, data[1])), NULL, 0, false);
}

TEST(training_allocates_once)
{
    for (int cell = MICA_LIQUID_LTC; cell <= MICA_LIQUID_CTGRU; cell++) {
        test_case("cell %d", cell);
        mica_engine *e = open_engine("cpu");
        mica_scope *s = mica_scope_begin(e);
        mica_liquid net;
        mica_liquid_init(&net, (mica_liquid_cell)cell);
        net.inputs = 3, net.units = 6, net.projection = 2;
        mica_params *p = recipe_params(s, &net, MICA_F32);
        mica_trainer *t;
        mica_trainer_options o;
        mica_trainer_options_init(&o);
        o.loss = last_square;
        o.user = &net;
        CHECK_OK(mica_trainer_open(e, p, &o, &t));
        mica_array *x = recipe_input(s, MICA_F32, SHAPE(4, 8, 3));
        mica_array *y = mica_slice_axis(s, x, -1, 0, 2, 1);
        CHECK_OK(mica_eval(s, &y, 1));
        mica_train_result first = {.struct_size = sizeof first}, r = {.struct_size = sizeof r};
        mica_stats before = {0}, after;
        for (int i = 0; i < 12; i++) {
            mica_scope *step = mica_scope_begin(e);
            CHECK_OK(mica_trainer_step(t, step, (mica_array *[]){x, y}, 2, 0.01, 0, &r));
            mica_scope_end(step);
            if (i == 0) first = r;
            if (i == 3) before = stats_of(e);
        }
        after = stats_of(e);
        EXPECT_MSG(r.loss < first.loss, "%g, then %g", first.loss, r.loss);
        EXPECT_INT(after.plan_misses, before.plan_misses);
        EXPECT_INT(after.bytes_allocated, before.bytes_allocated);
        mica_trainer_close(t);
        mica_params_free(p);
        mica_scope_end(s);
        mica_close(e);
    }
}

/* ------------------------------------------------------------------- errors -- */

TEST(networks_that_cannot_be)
{
    mica_wiring *w;
    EXPECT_OK(mica_wiring_parse("autoncp:12,3", 4, &w));
    struct {
        const char *part;
        mica_liquid net;
    } bad[] = {
        /* clang-format off */
        {"inputs 0", {.cell = MICA_LIQUID_CFC, .units = 4, .layers = 1, .tau = 1}},
        {"units 0", {.cell = MICA_LIQUID_CFC, .inputs = 3, .layers = 1, .tau = 1}},
        {"layers 0", {.cell = MICA_LIQUID_CFC, .inputs = 3, .units = 4, .tau = 1}},
        {"cell 17", {.cell = (mica_liquid_cell)17, .inputs = 3, .units = 4, .layers = 1}},
        {"wiring of 4", {.cell = MICA_LIQUID_CFC, .inputs = 3, .wiring = w, .layers = 1, .tau = 1}},
        {"no wiring", {.cell = MICA_LIQUID_NODE, .inputs = 4, .wiring = w, .layers = 1, .unfolds = 1, .tau = 1}},
        {"mixed memory",
         {.cell = MICA_LIQUID_NODE, .inputs = 4, .units = 2, .layers = 1, .unfolds = 1, .tau = 1,
          .mixed_memory = true}},
        {"dropout", {.cell = MICA_LIQUID_CFC, .inputs = 3, .units = 4, .layers = 1, .dropout = 1, .tau = 1}},
        {"tau 0", {.cell = MICA_LIQUID_CFC, .inputs = 3, .units = 4, .layers = 1}},
        {"solver 0", {.cell = MICA_LIQUID_LTC, .inputs = 3, .units = 4, .layers = 1, .tau = 1}},
        {"backbone 9",
         {.cell = MICA_LIQUID_CFC, .inputs = 3, .units = 4, .layers = 1, .backbone_layers = 9, .backbone_units = 4,
          .tau = 1}},
        {"mode 5", {.cell = MICA_LIQUID_CFC, .inputs = 3, .units = 4, .layers = 1, .mode = (mica_cfc_mode)5, .tau = 1}},
        /* clang-format on */
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        test_case("%s", bad[i].part);
        bad[i].net.struct_size = sizeof bad[i].net;
        EXPECT_FAILS(mica_liquid_check(&bad[i].net), MICA_ERR_ARGUMENT, bad[i].part);
        EXPECT_INT(mica_liquid_outputs(&bad[i].net), 0);
        EXPECT_INT(mica_liquid_state_size(&bad[i].net), 0);
    }
    mica_wiring_free(w);
}

TEST(data_that_does_not_fit)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    const mica_liquid net = small_cfc();
    mica_params *p = recipe_params(s, &net, MICA_F32), *empty, *all;
    mica_liquid_result r = {.struct_size = sizeof r};
    mica_array *x = recipe_input(s, MICA_F32, SHAPE(2, 5, 3)), *flat = recipe_input(s, MICA_F32, SHAPE(3));
    mica_array *wide = recipe_input(s, MICA_F32, SHAPE(2, 5, 4)), *none = mica_zeros(s, MICA_F32, SHAPE(2, 0, 3));
    EXPECT_OK(mica_params_new(&empty));
#define DATA .struct_size = sizeof(mica_liquid_data)
    const struct {
        mica_liquid_data data;
        const char *part;
    } bad[] = {{{DATA, .x = NULL}, "x has 0 axes"},
               {{DATA, .x = flat}, "x has 1 axes"},
               {{DATA, .x = wide}, "4 inputs, not 3"},
               {{DATA, .x = none}, "0 steps"},
               {{DATA, .x = x, .timespans = flat}, "timespans"},
               {{DATA, .x = x, .timespans = wide}, "timespans"},
               {{DATA, .x = x, .state = flat}, "first state"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        test_case("%s", bad[i].part);
        EXPECT_FAILS(mica_liquid_forward(s, &net, p, &bad[i].data, &r), MICA_ERR_SHAPE, bad[i].part);
        EXPECT(!r.y && mica_scope_status(s) == MICA_ERR_SHAPE); /* also the status of the scope */
        mica_scope_clear_error(s);
    }
    test_case("arguments");
    EXPECT_FAILS(mica_liquid_forward(s, &net, empty, &bad[0].data, &r), MICA_ERR_ARGUMENT, "liquid_forward");
    mica_scope_clear_error(s);
    EXPECT_FAILS(mica_liquid_forward(s, NULL, p, &bad[0].data, &r), MICA_ERR_ARGUMENT, "no network");
    mica_scope_clear_error(s);
    mica_liquid other = net;
    other.backbone_layers = 2;
    EXPECT_FAILS(
        mica_liquid_forward(s, &other, p, &(mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x}, &r),
        MICA_ERR_ARGUMENT, "backbone.2");
    mica_scope_clear_error(s);
    EXPECT_FAILS(mica_liquid_params(s, &net, MICA_F32, 1, NULL), MICA_ERR_ARGUMENT, "liquid_params");
    EXPECT_FAILS(mica_liquid_params(s, &net, MICA_F32, 1, p), MICA_ERR_ARGUMENT, "already");
    EXPECT_FAILS(mica_liquid_state_dict(s, &net, NULL, &all), MICA_ERR_ARGUMENT, "liquid_state_dict");
    EXPECT_FAILS(mica_liquid_state_dict(s, &net, empty, &all), MICA_ERR_ARGUMENT, "no parameter");
    mica_scope_clear_error(s);
    EXPECT_FAILS(mica_liquid_constrain(s, &net, NULL), MICA_ERR_ARGUMENT, "liquid_constrain");
    mica_liquid_init(NULL, MICA_LIQUID_CFC);
    mica_params_free(empty);
    mica_params_free(p);
    mica_scope_end(s);
    mica_close(e);
}

/* ---------------------------------------------------------------- no memory -- */

static mica_status whole_net(mica_engine *e, const mica_liquid *net)
{
    mica_scope *s = mica_scope_begin(e);
    mica_params *p = NULL, *all = NULL;
    mica_liquid_result r = {.struct_size = sizeof r};
    mica_array *grad = NULL, *x = NULL, *loss = NULL;
    if (!s) return MICA_ERR_MEMORY;
    mica_status status = mica_params_new(&p);
    if (status == MICA_OK) status = mica_liquid_params(s, net, MICA_F32, 1, p);
    x = mica_random_normal(s, MICA_F32, SHAPE(2, 3, 3), 1);
    if (status == MICA_OK)
        status =
            mica_liquid_forward(s, net, p, &(mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = x}, &r);
    if (status == MICA_OK) loss = mica_sum(s, r.y, NULL, 0, false);
    if (status == MICA_OK) status = mica_grad(s, loss, (mica_array *[]){mica_params_at(p, 0)}, 1, &grad);
    if (status == MICA_OK) status = mica_eval(s, &grad, 1);
    if (status == MICA_OK) status = mica_liquid_state_dict(s, net, p, &all);
    mica_params_free(all);
    mica_params_free(p);
    mica_scope_end(s);
    return status;
}

TEST(a_liquid_network_without_memory)
{
    mica_wiring *w;
    const mica_liquid nets[] = {small_cfc(), wired(MICA_LIQUID_LTC, "autoncp:8,2", &w)};
    const mica_engine_options o = options_for("cpu", 1);
    for (size_t i = 0; i < COUNT(nets); i++) {
        uint64_t last = 0;
        for (uint64_t n = 0; n <= last; n += n < 200 ? 1 : 7) {
            const int64_t live = live_blocks();
            const uint64_t before = mica__alloc_count();
            mica_engine *e = open_with(&o);
            mica__alloc_fail_at(n);
            const mica_status status = whole_net(e, &nets[i]);
            mica__alloc_fail_at(0);
            if (n == 0) {
                CHECK_MSG(status == MICA_OK, "undisturbed: %s", mica_last_error());
                last = mica__alloc_count() - before;
            } else {
                EXPECT_MSG(status == MICA_OK || (status == MICA_ERR_MEMORY && mica_last_error()[0]),
                           "allocation %d: status %d, \"%s\"", (int)n, (int)status, mica_last_error());
            }
            mica_close(e);
            EXPECT_MSG(live_blocks() == live, "allocation %d failed: blocks leaked", (int)n);
        }
    }
    mica_wiring_free(w);
}
