/* The losses of a training run as a picture. */
#include <math.h>
#include <string.h>

#include "train_run.h"

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

typedef struct loss_chart {
    const train_history *history;
    int64_t steps;
    const char *caption;
} loss_chart;

static svg_scale svg_scale_of(const loss_chart *r)
{
    svg_scale c = {(double)(r->steps > 0 ? r->steps : 1), INFINITY, -INFINITY};
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

bool train_write_chart(const char *command, const char *path, const train_history *h, int64_t steps,
                       const char *caption)
{
    return cli_write_whole(command, path, print_chart, &(loss_chart){h, steps, caption});
}
