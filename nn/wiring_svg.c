/* Draws a wiring as SVG. Columns are the inputs and the layers, in the order in which a signal passes. Neurons are
 * numbered dots. Synapses are thin curves, drawn before the dots, so that 64 neurons stay readable. Synapses within a
 * layer are drawn as arcs beside it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "wiring.h"

enum { SVG_ROW = 16, SVG_COLUMN = 220, SVG_MARGIN = 60, SVG_HEAD = 56, SVG_FOOT = 34, SVG_MOST_ROWS = 44 };

typedef struct svg_text {
    char *buffer;
    size_t cap, length;
} svg_text;

static void MICA_PRINTF(2, 3) svg_put(svg_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const bool room = t->length < t->cap;
    const int n = vsnprintf(room ? t->buffer + t->length : NULL, room ? t->cap - t->length : 0, format, args);
    va_end(args);
    if (n > 0) t->length += (size_t)n;
}

/* A length or coordinate in tenths. Formatted here because printf depends on the program's locale. */
typedef struct svg_number {
    char text[MICA_NUMBER_TEXT];
} svg_number;

static svg_number svg_tenths(double x)
{
    svg_number n;
    (void)mica_number_print(nearbyint(10 * x) / 10, n.text, sizeof n.text);
    return n;
}

typedef struct svg_place {
    double x, y;
} svg_place;

typedef struct svg_sheet {
    svg_text *to;
    const mica_wiring *w;
    svg_place *unit, *input;
    double height, dot;
} svg_sheet;

/* Positions of n dots in a column; many dots use two half-columns. */
static void svg_column(svg_sheet *p, svg_place *place, int64_t n, double x)
{
    const int64_t sides = n > SVG_MOST_ROWS ? 2 : 1, rows = (n + sides - 1) / sides;
    const double step = fmin(2 * SVG_ROW, p->height / (double)rows);
    const double top = (double)SVG_HEAD + (p->height - step * (double)(rows - 1)) / 2;
    for (int64_t i = 0; i < n; i++)
        place[i] = (svg_place){x + (sides == 2 ? (i % 2 ? 14 : -14) : 0), top + step * (double)(i / sides)};
}

static int64_t svg_layers(const mica_wiring *w, int64_t *tallest)
{
    int64_t layers = 0, first, n;
    for (*tallest = w->o.inputs; mica_wiring_layer(w, layers, &first, &n); layers++)
        if (n > *tallest) *tallest = n;
    return layers;
}

static void svg_curve(svg_sheet *p, svg_place a, svg_place b, svg_place c, svg_place d, const char *colour)
{
    svg_put(p->to, "<path d=\"M%s %sC%s %s %s %s %s %s\" stroke=\"%s\"/>\n", svg_tenths(a.x).text, svg_tenths(a.y).text,
            svg_tenths(b.x).text, svg_tenths(b.y).text, svg_tenths(c.x).text, svg_tenths(c.y).text,
            svg_tenths(d.x).text, svg_tenths(d.y).text, colour);
}

static void svg_synapse(svg_sheet *p, svg_place a, svg_place b, int8_t sign)
{
    const char *colour = sign > 0 ? "#1f77b4" : "#d62728";
    if (fabs(a.x - b.x) > (double)SVG_COLUMN / 2) {
        const double half = (b.x - a.x) / 2;
        svg_curve(p, a, (svg_place){a.x + half, a.y}, (svg_place){b.x - half, b.y}, b, colour);
        return;
    }
    /* within a column: an arc to the right that starts above and ends below a dot */
    const double bow = 18 + fmin(70, fabs(a.y - b.y) / 2);
    svg_curve(p, (svg_place){a.x, a.y - 2}, (svg_place){a.x + bow, a.y - 4}, (svg_place){b.x + bow, b.y + 4},
              (svg_place){b.x, b.y + 2}, colour);
}

static void svg_synapses(svg_sheet *p, const svg_place *from, int64_t n_from, const int8_t *matrix)
{
    const int64_t units = p->w->o.units;
    for (int64_t i = 0; i < n_from; i++)
        for (int64_t u = 0; u < units; u++)
            if (matrix[i * units + u]) svg_synapse(p, from[i], p->unit[u], matrix[i * units + u]);
}

static void svg_dots(svg_sheet *p, const svg_place *place, int64_t n, int64_t number, const char *colour)
{
    const svg_number size = svg_tenths(p->dot);
    for (int64_t i = 0; i < n; i++) {
        const svg_number x = svg_tenths(place[i].x);
        svg_put(p->to,
                "<circle cx=\"%s\" cy=\"%s\" r=\"%s\" fill=\"%s\"/><text x=\"%s\" y=\"%s\" "
                "font-size=\"%s\">%lld</text>\n",
                x.text, svg_tenths(place[i].y).text, size.text, colour, x.text,
                svg_tenths(place[i].y + 0.35 * p->dot).text, size.text, (long long)(number + i));
    }
}

static const char *svg_layer_name(const mica_wiring *w, int64_t layer)
{
    static const char *const names[] = {"inter", "command", "motor"};
    const bool ncp = w->o.kind == MICA_WIRING_NCP || w->o.kind == MICA_WIRING_AUTO_NCP;
    return ncp ? names[layer] : "units";
}

static void svg_draw(svg_sheet *p, int64_t layers)
{
    static const char *const colours[] = {"#c7e9c0", "#fdd0a2", "#dadaeb"};
    const mica_wiring *w = p->w;
    const int64_t width = 2 * SVG_MARGIN + SVG_COLUMN * layers + 60;
    int64_t first, n, excitatory = 0, all = 0;
    for (int64_t i = 0; i < w->o.units * w->o.units; i++) all += w->synapse[i] != 0, excitatory += w->synapse[i] > 0;
    for (int64_t i = 0; i < w->o.inputs * w->o.units; i++) all += w->sensory[i] != 0, excitatory += w->sensory[i] > 0;
    svg_put(p->to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %lld %.0f\" font-family=\"sans-serif\" "
            "text-anchor=\"middle\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<g fill=\"none\" stroke-width=\"0.8\" stroke-opacity=\"0.55\">\n",
            (long long)width, (double)(SVG_HEAD + SVG_FOOT + SVG_ROW) + p->height);
    svg_synapses(p, p->input, w->o.inputs, w->sensory);
    svg_synapses(p, p->unit, w->o.units, w->synapse);
    svg_put(p->to, "</g>\n<g stroke=\"none\">\n");
    svg_dots(p, p->input, w->o.inputs, 0, "#e0e0e0");
    svg_put(p->to, "<text x=\"%.0f\" y=\"30\" font-size=\"14\">inputs (%lld)</text>\n", p->input[0].x,
            (long long)w->o.inputs);
    for (int64_t l = 0; l < layers && mica_wiring_layer(w, l, &first, &n); l++) {
        svg_dots(p, p->unit + first, n, first, colours[l]);
        svg_put(p->to, "<text x=\"%.0f\" y=\"30\" font-size=\"14\">%s (%lld)</text>\n",
                (double)(SVG_MARGIN + SVG_COLUMN * (l + 1)), svg_layer_name(w, l), (long long)n);
    }
    svg_put(p->to,
            "<text x=\"%lld\" y=\"%.0f\" font-size=\"13\"><tspan fill=\"#1f77b4\">%lld excitatory</tspan> and "
            "<tspan fill=\"#d62728\">%lld inhibitory</tspan> synapses</text>\n</g>\n</svg>\n",
            (long long)(width / 2), (double)(SVG_HEAD + SVG_FOOT) + p->height, (long long)excitatory,
            (long long)(all - excitatory));
}

size_t mica_wiring_svg(const mica_wiring *wiring, char *buffer, size_t cap)
{
    if (!wiring || (cap > 0 && !buffer)) {
        mica_fail(MICA_ERR_ARGUMENT, "wiring_svg: no wiring");
        return 0;
    }
    svg_text text = {buffer, cap, 0};
    svg_sheet sheet = {.to = &text, .w = wiring, .dot = 7};
    int64_t tallest, first, n;
    const int64_t layers = svg_layers(wiring, &tallest);
    sheet.unit = malloc((size_t)wiring->o.units * sizeof *sheet.unit);
    sheet.input = malloc((size_t)wiring->o.inputs * sizeof *sheet.input);
    if (sheet.unit && sheet.input) {
        const int64_t rows = tallest > SVG_MOST_ROWS ? (tallest + 1) / 2 : tallest;
        sheet.height = fmax(160, (double)(SVG_ROW * rows));
        svg_column(&sheet, sheet.input, wiring->o.inputs, SVG_MARGIN);
        for (int64_t l = 0; l < layers && mica_wiring_layer(wiring, l, &first, &n); l++)
            svg_column(&sheet, sheet.unit + first, n, (double)(SVG_MARGIN + SVG_COLUMN * (l + 1)));
        svg_draw(&sheet, layers);
    } else (void)mica_fail(MICA_ERR_MEMORY, "out of memory: the picture of a wiring");
    free(sheet.unit);
    free(sheet.input);
    return text.length;
}
