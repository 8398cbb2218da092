/* Helpers for the tests of liquid networks: the recipe for the parameters and inputs of the
 * reference values, and networks from a short description. */
#ifndef MICA_TEST_LIQUID_KIT_H
#define MICA_TEST_LIQUID_KIT_H

#include <math.h>
#include <mica_liquid.h>

#include "api.h"

/* The stream that parameters (seed 1) and inputs (seed 99) are drawn from. */
static UNUSED double lcg_next(uint32_t *x)
{
    *x = 1664525u * *x + 1013904223u;
    return (double)(*x >> 8) / 16777216.0;
}

static UNUSED bool ends_in(const char *name, const char *tail)
{
    const size_t n = strlen(name), k = strlen(tail);
    return n >= k && strcmp(name + n - k, tail) == 0 && (n == k || name[n - k - 1] == '.');
}

/* The range that the recipe draws a parameter from; false: it comes from the wiring. */
static UNUSED bool recipe_range(const char *name, double *low, double *high)
{
    static const struct {
        const char *tail;
        double low, high;
    } ranges[] = {{"gleak", 0.001, 1},     {"vleak", -0.2, 0.2},  {"cm", 0.4, 0.6},        {"sigma", 3, 8},
                  {"mu", 0.3, 0.8},        {"w", 0.001, 1},       {"sensory_sigma", 3, 8}, {"sensory_mu", 0.3, 0.8},
                  {"sensory_w", 0.001, 1}, {"input_w", 0.5, 1.5}, {"output_w", 0.5, 1.5},  {"input_b", -0.1, 0.1},
                  {"output_b", -0.1, 0.1}, {"A", 0.5, 1.5}};
    if (ends_in(name, "erev") || ends_in(name, "sensory_erev")) return false;
    *low = -0.5, *high = 0.5;
    for (size_t i = 0; i < COUNT(ranges); i++)
        if (ends_in(name, ranges[i].tail)) *low = ranges[i].low, *high = ranges[i].high;
    return true;
}

/* n numbers of a stream as f32 or f64. */
static UNUSED mica_array *lcg_array(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, uint32_t *stream,
                                    double low, double high)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    double *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++) values[i] = low + (high - low) * lcg_next(stream);
    mica_array *x = mica_cast(s, mica_from_data(s, MICA_F64, ndim, shape, values), dtype);
    free(values);
    EXPECT_OK(mica_eval(s, &x, 1));
    return x;
}

/* The parameters of a network with the recipe's values. */
static UNUSED mica_params *recipe_params(mica_scope *s, const mica_liquid *net, mica_dtype dtype)
{
    mica_params *p;
    uint32_t stream = 1;
    double low, high;
    EXPECT_OK(mica_params_new(&p));
    EXPECT_OK(mica_liquid_params(s, net, dtype, 7, p));
    for (size_t i = 0; i < mica_params_count(p); i++) {
        mica_array *old = mica_params_at(p, i);
        if (!recipe_range(mica_params_name(p, i), &low, &high)) continue;
        mica_array *x = lcg_array(s, dtype, mica_array_ndim(old), mica_array_shape(old), &stream, low, high);
        EXPECT_OK(mica_params_set(p, i, x));
    }
    return p;
}

static UNUSED mica_array *recipe_input(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape)
{
    uint32_t stream = 99;
    return lcg_array(s, dtype, ndim, shape, &stream, -1, 1);
}

/* A CfC of 3 inputs and 6 units with a backbone of 8. */
static UNUSED mica_liquid small_cfc(void)
{
    mica_liquid net;
    mica_liquid_init(&net, MICA_LIQUID_CFC);
    net.inputs = 3, net.units = 6, net.backbone_units = 8;
    return net;
}

static UNUSED mica_liquid small_ltc(void)
{
    mica_liquid net;
    mica_liquid_init(&net, MICA_LIQUID_LTC);
    net.inputs = 3, net.units = 6;
    return net;
}

#endif
