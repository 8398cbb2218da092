/* mica train lm: what a run leaves besides its checkpoints: its history, run.json and
 * the picture of its losses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "train.h"

/* --------------------------------------------------------------- history --- */

bool train_history_add(train_history *h, train_point p)
{
    if (h->n == h->room) {
        const size_t room = h->room ? 2 * h->room : 64;
        train_point *points = realloc(h->points, room * sizeof *points);
        if (!points) return false;
        h->points = points;
        h->room = room;
    }
    if (isfinite(p.valid) && (h->best_step < 0 || p.valid < h->best)) h->best = p.valid, h->best_step = p.step;
    h->points[h->n++] = p;
    return true;
}

/* One line for the time, one a point; numbers in a form that comes back as it was. */
char *train_history_text(const train_history *h)
{
    enum { LINE = 96 };
    char *text = malloc((h->n + 2) * LINE);
    if (!text) return NULL;
    size_t at = (size_t)snprintf(text, LINE, "%a\n", h->seconds);
    for (size_t i = 0; i < h->n; i++)
        at += (size_t)snprintf(text + at, LINE, "%lld %a %a\n", (long long)h->points[i].step, h->points[i].train,
                               h->points[i].valid);
    return text;
}

bool train_history_parse(train_history *h, const char *text, size_t length)
{
    char *copy = malloc(length + 1), *at = copy, *end;
    if (!copy) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *h = (train_history){.best_step = -1, .seconds = strtod(copy, &end)};
    bool good = end != copy;
    for (at = end; good; at = end) {
        train_point p = {.step = strtoll(at, &end, 10)};
        if (end == at) break;
        p.train = strtod(end, &at);
        p.valid = strtod(at, &end);
        good = end != at && train_history_add(h, p);
    }
    free(copy);
    return good;
}

/* ---------------------------------------------------------------- run.json -- */

static void json_options(cli_json *j, const train_report *r)
{
    const train_options *o = r->options;
    const mica_decoder_shape *m = r->shape;
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"vocab", (double)m->vocab},
                   {"dim", (double)m->dim},
                   {"layers", (double)m->layers},
                   {"heads", (double)m->heads},
                   {"kv_heads", (double)m->kv_heads},
                   {"ffn", (double)m->ffn},
                   {"seq", (double)o->seq},
                   {"batch", (double)o->batch},
                   {"steps", (double)o->steps},
                   {"warmup", (double)o->warmup},
                   {"lr", o->lr},
                   {"lr2", o->lr2},
                   {"decay", o->decay},
                   {"dropout", o->dropout},
                   {"seed", (double)o->seed},
                   {"parameters", (double)r->parameters},
                   {"train_tokens", (double)r->text->n_train},
                   {"valid_tokens", (double)(r->text->n - r->text->n_train)}};
    cli_json_text(j, "text", o->text);
    cli_json_text(j, "weights", m->ternary ? "ternary" : "f32");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        cli_json_number(j, numbers[i].key, numbers[i].value);
}

/* Nats a token to bits a byte of the validation part. */
static double bits_per_byte(const train_report *r, double loss)
{
    return loss / log(2) * (double)(r->text->n - r->text->n_train) / (double)r->text->valid_bytes;
}

void train_print_json(FILE *to, const train_report *r)
{
    cli_json j = {to, false};
    const train_history *h = r->history;
    cli_json_text(&j, "mica", mica_version());
    cli_json_text(&j, "commit", cli_commit());
    cli_json_text(&j, "state", r->state);
    cli_json_number(&j, "step", (double)r->step);
    json_options(&j, r);
    cli_json_number(&j, "seconds", h->seconds);
    cli_json_number(&j, "tokens_per_second", r->tokens_per_second);
    cli_json_number(&j, "best_step", h->best_step >= 0 ? (double)h->best_step : NAN);
    cli_json_number(&j, "best_valid_loss", h->best_step >= 0 ? h->best : NAN);
    cli_json_number(&j, "valid_loss", r->final_valid);
    cli_json_number(&j, "valid_bits_per_byte", bits_per_byte(r, r->final_valid));
    cli_json_text(&j, "model", r->model);
    cli_json_number(&j, "model_bytes", r->model ? (double)r->model_bytes : NAN);
    cli_json_key(&j, "history");
    fprintf(to, "[");
    for (size_t i = 0; i < h->n; i++) {
        fprintf(to, "%s\n    [%lld, ", i ? "," : "", (long long)h->points[i].step);
        cli_print_json_number(to, h->points[i].train);
        fprintf(to, ", ");
        cli_print_json_number(to, h->points[i].valid);
        fprintf(to, "]");
    }
    fprintf(to, "\n  ]\n}\n");
}

static void print_report(FILE *to, const void *r) { train_print_json(to, r); }

bool train_write_json(const char *path, const train_report *r)
{
    return cli_write_whole("mica train lm", path, print_report, r);
}

bool train_write_svg(const char *path, const train_report *r)
{
    char caption[160];
    snprintf(caption, sizeof caption, "loss, nats a token (%s weights, %lld parameters)",
             r->shape->ternary ? "ternary" : "f32", (long long)r->parameters);
    return train_write_chart("mica train lm", path, r->history, r->options->steps, caption);
}
