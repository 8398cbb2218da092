/* Each allocation of nn/ and models/ fails once while tables are read, a recipe is computed, and a
 * network is trained, saved, opened and run. A status is returned, nothing leaks, no incomplete
 * file remains, and the next try works.
 *
 * runs: metal-unsanitized, faults */
#include "series_kit.h"
#include "base/alloc.h"
#include "faulted.h"

static const char text[] = "who,when,kind,x,y\n"
                           "a,1,red,1,1.5\na,2,blue,2,2\na,4,red,?,3\na,5,,4,4\na,6,red,5,5\na,8,blue,6,6\n"
                           "b,1,red,5,5\nb,3,\"gr\"\"een\",6,6\nb,4,red,7,7\nb,6,red,8,8\nb,7,blue,9,9\nb,8,red,1,2\n";

static mica_status take_row(void *user, const mica_series_row *row)
{
    *(double *)user += (double)row->row + (double)row->table + (double)row->best;
    for (int64_t i = 0; i < row->n; i++) *(double *)user += (double)row->values[i];
    return MICA_OK;
}

static mica_status learn(mica_engine *e, mica_series *d, mica_series_model *m)
{
    static const int64_t windows[] = {0, 1};
    mica_trainer *t = NULL;
    mica_trainer_options o;
    mica_train_result r = {.struct_size = sizeof r};
    mica_array *data[3];
    size_t n;
    mica_trainer_options_init(&o);
    o.loss = mica_series_loss;
    o.user = m;
    mica_status status = mica_trainer_open(e, mica_series_model_params(m), &o, &t);
    mica_scope *s = mica_scope_begin(e);
    if (status == MICA_OK) status = mica_series_batch(s, d, MICA_PART_TRAIN, windows, 2, data, &n);
    if (status == MICA_OK) status = mica_trainer_step(t, s, data, n, 0.01, 0, &r);
    mica_scope_end(s);
    mica_trainer_close(t);
    return status;
}

/* Reads, trains, saves, opens, predicts. kind selects the cell and the table. */
static mica_status whole_life(mica_engine *e, int kind, const char *path, double *digest)
{
    mica_table *t = NULL;
    mica_series *d = NULL, *all = NULL;
    mica_series_model *m = NULL, *back = NULL;
    mica_series_score score = {.struct_size = sizeof score};
    mica_series_net net;
    mica_series_options o = options_of(kind == 1 ? "kind" : "y", 3);
    *digest = 0;
    o.group = "who", o.time = "when", o.valid = o.test = 0, o.split = kind == 2 ? MICA_SPLIT_SEED : MICA_SPLIT_AUTO;
    if (kind == 1) o.drop = "x";
    mica_series_net_init(&net, kind == 0 ? MICA_CELL_CFC : kind == 1 ? MICA_CELL_GRU : MICA_CELL_LTC);
    net.units = 4, net.backbone_units = 4, net.wiring = kind == 2 ? "full:4" : NULL;
    mica_scope *s = mica_scope_begin(e);
    mica_status status = mica_table_parse("t.csv", text, sizeof text - 1, NULL, &t);
    if (kind == 1 && status == MICA_OK) { /* a table without a missing category */
        mica_table_free(t);
        status = mica_table_make(MICA_MADE_SPIRAL, 320, 0, 2, &t);
        o.group = "series", o.targets = "class", o.time = o.drop = NULL;
    }
    if (status == MICA_OK) status = mica_series_open(&o, &t, NULL, 1, &d);
    if (status == MICA_OK) status = mica_series_model_new(s, &net, mica_series_recipe(d), 1, &m);
    if (status == MICA_OK) status = learn(e, d, m);
    if (status == MICA_OK) status = mica_series_model_save(s, m, path, NULL, 0);
    if (status == MICA_OK) status = mica_series_model_open(s, path, &back);
    if (status == MICA_OK) status = mica_series_apply(mica_series_model_recipe(back), &t, 1, 4, 1, &all);
    if (status == MICA_OK) status = mica_series_run(e, back, all, MICA_PART_TEST, 2, &score, take_row, digest);
    mica_series_model_free(m);
    mica_series_model_free(back);
    mica_series_free(d);
    mica_series_free(all);
    mica_table_free(t);
    mica_scope_end(s);
    return status;
}

static mica_engine *one_thread(void)
{
    const mica_engine_options o = options_for("cpu", 1);
    return open_with(&o);
}

TEST(series_without_memory)
{
    for (int kind = 0; kind < 3; kind++) {
        double clean = 0, digest = 0;
        const char *path = file_path("fault.safetensors");
        test_case("kind %d", kind);
        mica_engine *e = one_thread();
        const uint64_t before = faulted_count();
        CHECK_MSG(whole_life(e, kind, path, &clean) == MICA_OK, "undisturbed: %s", mica_last_error());
        const uint64_t last = faulted_count() - before;
        CHECK(last > 50);
        mica_close(e);
        for (uint64_t n = 1; n <= last; n++) {
            const int64_t live = live_blocks();
            remove(path);
            e = one_thread();
            faulted_fail_at(n);
            const mica_status status = whole_life(e, kind, path, &digest);
            faulted_fail_at(0);
            if (status == MICA_OK)
                EXPECT_MSG(digest == clean, "allocation %d failed unnoticed, with other results", (int)n);
            else
                EXPECT_MSG(status == MICA_ERR_MEMORY && strstr(mica_last_error(), "memory"),
                           "allocation %d: status %d, \"%s\"", (int)n, (int)status, mica_last_error());
            mica_close(e);
            EXPECT_MSG(live_blocks() == live, "allocation %d failed: %d blocks leaked", (int)n,
                       (int)(live_blocks() - live));
        }
        e = one_thread();
        EXPECT_MSG(whole_life(e, kind, path, &digest) == MICA_OK && digest == clean, "afterwards: %s",
                   mica_last_error());
        mica_close(e);
        remove(path);
    }
}
