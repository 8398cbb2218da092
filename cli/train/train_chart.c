/* Draws the losses of a training run as SVG. */
#include <math.h>
#include <string.h>

#include "train/train_run.h"

enum { SVG_WIDTH = 720, SVG_HEIGHT = 400, SVG_LEFT = 56, SVG_RIGHT = 24, SVG_TOP = 40, SVG_BOTTOM = 48 };

typedef struct svg_scale {
    double x_most, low, high;
    bool log; /* logarithmic axis, if the highest loss is over 20 times the lowest */
} svg_scale;

static double svg_x(const svg_scale *c, double step)
{
    return (double)SVG_LEFT + step / c->x_most * (SVG_WIDTH - SVG_LEFT - SVG_RIGHT);
}

static double svg_y(const svg_scale *c, double loss)
{
    const double above = c->log ? log(c->high / loss) / log(c->high / c->low) : (c->high - loss) / (c->high - c->low);
    return (double)SVG_TOP + above * (SVG_HEIGHT - SVG_TOP - SVG_BOTTOM);
}

static void extend_range(svg_scale *c, double value)
{
    if (!isfinite(value)) return;
    if (value < c->low) c->low = value;
    if (value > c->high) c->high = value;
}

typedef struct loss_chart {
    const mica_fit_state *history;
    int64_t steps;
    const char *caption;
} loss_chart;

/* The largest of 1, 2, 5, 10, 20, ... that does not exceed x, with a relative tolerance of 1e-9. */
static double svg_round_number(double x)
{
    const double ten = pow(10, floor(log10(x) + 1e-9)), part = x / ten + 1e-9;
    return ten * (part >= 5 ? 5 : part >= 2 ? 2 : 1);
}

/* The next number of that series. */
static double svg_next_round(double x)
{
    const double ten = pow(10, floor(log10(x) + 1e-9));
    return x / ten > 4.5 ? 10 * ten : x / ten > 1.5 ? 5 * ten : 2 * ten;
}

static svg_scale svg_scale_of(const loss_chart *r)
{
    svg_scale c = {.x_most = (double)(r->steps > 0 ? r->steps : 1), .low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < r->history->n_points; i++) {
        extend_range(&c, r->history->points[i].train);
        extend_range(&c, r->history->points[i].valid);
    }
    if (c.low > c.high) c.low = 0, c.high = 1; /* no losses yet */
    c.log = c.low > 0 && c.high > 20 * c.low;
    if (c.log) {
        c.low = svg_round_number(c.low);
        c.high = svg_next_round(svg_round_number(c.high));
        return c;
    }
    if (c.low > 0 && c.low < 0.5 * c.high) c.low = 0;
    if (!(c.high - c.low > 1e-6 * fabs(c.high))) c.low -= 0.5, c.high += 0.5;
    const double step = svg_next_round(svg_round_number((c.high - c.low) / 6));
    c.low = step * floor(c.low / step + 1e-9);
    c.high = step * ceil(c.high / step - 1e-9);
    return c;
}

static void svg_level(FILE *to, const svg_scale *c, double v)
{
    const double y = svg_y(c, v);
    fprintf(to,
            "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>"
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
            SVG_LEFT, SVG_WIDTH - SVG_RIGHT, y, y, SVG_LEFT - 8, y + 4, v);
}

static void svg_grid(FILE *to, const svg_scale *c)
{
    enum { MOST = 9 };
    if (c->log) { /* lines at 1, 2, 5, 10; over many decades only powers of ten, or every second one, ... */
        const double tens = log10(c->high / c->low);
        const bool few = tens < 3;
        const int each = 1 + (int)(tens / (double)MOST);
        double v = few ? c->low : pow(10, ceil(log10(c->low) - 1e-9));
        for (; v < c->high * (1 + 1e-9); v = few ? svg_next_round(v) : v * pow(10, each)) svg_level(to, c, v);
    } else {
        const double step = svg_next_round(svg_round_number((c->high - c->low) / 6));
        const int lines = (int)((c->high - c->low) / step + 0.5);
        for (int i = 0; i <= lines; i++) svg_level(to, c, c->low + i * step);
    }
    const double step = c->x_most > 6 ? svg_next_round(svg_round_number(c->x_most / 6)) : 1;
    for (double x = 0; x <= c->x_most; x += step)
        fprintf(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", svg_x(c, x),
                SVG_HEIGHT - SVG_BOTTOM + 18, x);
    fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n", (SVG_LEFT + SVG_WIDTH - SVG_RIGHT) / 2,
            SVG_HEIGHT - 10);
}

static void svg_line(FILE *to, const svg_scale *c, const mica_fit_state *h, bool valid, const char *colour)
{
    fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" points=\"", colour);
    for (size_t i = 0; i < h->n_points; i++) {
        const double v = valid ? h->points[i].valid : h->points[i].train;
        if (isfinite(v)) fprintf(to, "%.1f,%.1f ", svg_x(c, (double)h->points[i].step), svg_y(c, v));
    }
    fprintf(to, "\"/>\n");
}

static void print_chart(FILE *to, const void *chart)
{
    const loss_chart *r = chart;
    const svg_scale c = svg_scale_of(r);
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            SVG_WIDTH, SVG_HEIGHT, SVG_WIDTH, SVG_HEIGHT);
    svg_grid(to, &c);
    svg_line(to, &c, r->history, false, "#7a9cc6");
    svg_line(to, &c, r->history, true, "#c0392b");
    fprintf(to,
            "<text x=\"%d\" y=\"22\"><tspan fill=\"#7a9cc6\">training</tspan>, "
            "<tspan fill=\"#c0392b\">validation</tspan>: %s</text>\n",
            SVG_LEFT, r->caption);
    if (r->history->best_step >= 0)
        fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#c0392b\"/>\n",
                svg_x(&c, (double)r->history->best_step), svg_y(&c, r->history->best));
    fprintf(to, "</svg>\n");
}

bool train_write_chart(const char *command, const char *path, const mica_fit_state *h, int64_t steps,
                       const char *caption)
{
    return cli_write_whole(command, path, print_chart, &(loss_chart){h, steps, caption});
}
