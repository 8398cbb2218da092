/* mica train lm: what a run leaves besides its checkpoints: its history, run.json and
 * the picture of its losses. */
#include <errno.h>
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

typedef struct json_object {
    FILE *to;
    bool started;
} json_object;

static void json_key(json_object *j, const char *key)
{
    fprintf(j->to, "%s\n  \"%s\": ", j->started ? "," : "{", key);
    j->started = true;
}

static void json_text(json_object *j, const char *key, const char *text)
{
    json_key(j, key);
    if (text) cli_print_json(j->to, text, strlen(text));
    else fprintf(j->to, "null");
}

static void json_number(json_object *j, const char *key, double value)
{
    json_key(j, key);
    cli_print_json_number(j->to, value);
}

static void json_options(json_object *j, const train_report *r)
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
    json_text(j, "text", o->text);
    json_text(j, "weights", m->ternary ? "ternary" : "f32");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) json_number(j, numbers[i].key, numbers[i].value);
}

/* Nats a token to bits a byte of the validation part. */
static double bits_per_byte(const train_report *r, double loss)
{
    return loss / log(2) * (double)(r->text->n - r->text->n_train) / (double)r->text->valid_bytes;
}

void train_print_json(FILE *to, const train_report *r)
{
    json_object j = {to, false};
    const train_history *h = r->history;
    json_text(&j, "mica", mica_version());
    json_text(&j, "commit", cli_commit());
    json_text(&j, "state", r->state);
    json_number(&j, "step", (double)r->step);
    json_options(&j, r);
    json_number(&j, "seconds", h->seconds);
    json_number(&j, "tokens_per_second", r->tokens_per_second);
    json_number(&j, "best_step", h->best_step >= 0 ? (double)h->best_step : NAN);
    json_number(&j, "best_valid_loss", h->best_step >= 0 ? h->best : NAN);
    json_number(&j, "valid_loss", r->final_valid);
    json_number(&j, "valid_bits_per_byte", bits_per_byte(r, r->final_valid));
    json_text(&j, "model", r->model);
    json_number(&j, "model_bytes", r->model ? (double)r->model_bytes : NAN);
    json_key(&j, "history");
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

/* A file that appears whole or not at all. */
static bool write_whole(const char *path, void (*print)(FILE *to, const train_report *r), const train_report *r)
{
    const size_t n = strlen(path) + sizeof ".new";
    char *beside = malloc(n);
    if (beside) snprintf(beside, n, "%s.new", path);
    FILE *to = beside ? fopen(beside, "w") : NULL;
    bool good = to != NULL;
    if (to) {
        print(to, r);
        good = !ferror(to);
        if (fclose(to) != 0) good = false;
        if (good) good = rename(beside, path) == 0;
    }
    if (!good) {
        fprintf(stderr, "mica train lm: cannot write '%s': %s\n", path, strerror(errno));
        if (beside) remove(beside);
    }
    free(beside);
    return good;
}

bool train_write_json(const char *path, const train_report *r) { return write_whole(path, train_print_json, r); }

/* --------------------------------------------------------------- loss.svg --- */

enum { SVG_WIDTH = 720, SVG_HEIGHT = 400, SVG_LEFT = 56, SVG_RIGHT = 24, SVG_TOP = 40, SVG_BOTTOM = 48 };

typedef struct svg_scale {
    double x_most, low, high;
} svg_scale;

static double svg_x(const svg_scale *c, double step)
{
    return (double)SVG_LEFT + step / c->x_most * (SVG_WIDTH - SVG_LEFT - SVG_RIGHT);
}

static double svg_y(const svg_scale *c, double loss)
{
    return (double)SVG_TOP + (c->high - loss) / (c->high - c->low) * (SVG_HEIGHT - SVG_TOP - SVG_BOTTOM);
}

static void svg_see(svg_scale *c, double value)
{
    if (!isfinite(value)) return;
    if (value < c->low) c->low = value;
    if (value > c->high) c->high = value;
}

static svg_scale svg_scale_of(const train_report *r)
{
    svg_scale c = {(double)(r->options->steps > 0 ? r->options->steps : 1), INFINITY, -INFINITY};
    for (size_t i = 0; i < r->history->n; i++) {
        svg_see(&c, r->history->points[i].train);
        svg_see(&c, r->history->points[i].valid);
    }
    if (!(c.low < c.high)) c.low = 0, c.high = 1;
    c.low = floor(2 * c.low) / 2;
    c.high = ceil(2 * c.high) / 2;
    if (c.low >= c.high) c.high = c.low + 1;
    return c;
}

static void svg_grid(FILE *to, const svg_scale *c)
{
    const double span = c->high - c->low;
    const int lines = span > 6 || span != span ? 4 : (int)(span / (span > 3 ? 1 : 0.5)); /* low and high are halves */
    for (int i = 0; i <= lines; i++) {
        const double v = c->low + span * i / lines, y = svg_y(c, v);
        fprintf(to,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n",
                SVG_LEFT, SVG_WIDTH - SVG_RIGHT, y, y, SVG_LEFT - 8, y + 4, v);
    }
    for (int i = 0; i <= 4; i++)
        fprintf(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", svg_x(c, c->x_most * i / 4),
                SVG_HEIGHT - SVG_BOTTOM + 18, c->x_most * i / 4);
    fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n", (SVG_LEFT + SVG_WIDTH - SVG_RIGHT) / 2,
            SVG_HEIGHT - 10);
}

static void svg_line(FILE *to, const svg_scale *c, const train_history *h, bool valid, const char *colour)
{
    fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" points=\"", colour);
    for (size_t i = 0; i < h->n; i++) {
        const double v = valid ? h->points[i].valid : h->points[i].train;
        if (isfinite(v)) fprintf(to, "%.1f,%.1f ", svg_x(c, (double)h->points[i].step), svg_y(c, v));
    }
    fprintf(to, "\"/>\n");
}

static void print_svg(FILE *to, const train_report *r)
{
    const svg_scale c = svg_scale_of(r);
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            SVG_WIDTH, SVG_HEIGHT, SVG_WIDTH, SVG_HEIGHT);
    svg_grid(to, &c);
    svg_line(to, &c, r->history, false, "#7a9cc6");
    svg_line(to, &c, r->history, true, "#c0392b");
    fprintf(to,
            "<text x=\"%d\" y=\"22\">loss, nats a token: <tspan fill=\"#7a9cc6\">training</tspan>, "
            "<tspan fill=\"#c0392b\">validation</tspan> (%s weights, %lld parameters)</text>\n",
            SVG_LEFT, r->shape->ternary ? "ternary" : "f32", (long long)r->parameters);
    if (r->history->best_step >= 0)
        fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#c0392b\"/>\n",
                svg_x(&c, (double)r->history->best_step), svg_y(&c, r->history->best));
    fprintf(to, "</svg>\n");
}

bool train_write_svg(const char *path, const train_report *r) { return write_whole(path, print_svg, r); }
