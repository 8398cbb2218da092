/* Wirings: the same synapses and signs as the reference package for the same seed, compared by
 * hashes of its matrices (FNV-1a over one byte per entry, row-major).
 *
 * runs: check */
#include <mica_liquid.h>
#include <string.h>

#include "api.h"

static uint64_t fnv(const int8_t *matrix, int64_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < n; i++) h = (h ^ (uint8_t)matrix[i]) * 0x100000001b3u;
    return h;
}

static int64_t count(const int8_t *matrix, int64_t n)
{
    int64_t c = 0;
    for (int64_t i = 0; i < n; i++) c += matrix[i] != 0;
    return c;
}

static const struct {
    const char *text;
    bool no_self;
    int64_t inputs, synapses, sensory;
    uint64_t hash, sensory_hash;
} known[] = {
    {"full:8", false, 4, 64, 32, 0xc09fcc22d1d6eb05, 0xc7bf7d7c989bc949},
    {"full:16@7", true, 3, 240, 48, 0xc2204666cb5e39cb, 0xc1c063955446477f},
    {"full:50", false, 20, 2500, 1000, 0xc38f8eb94355469f, 0x5607c23209c34a3f},
    {"random:8,8,0.5", false, 4, 32, 16, 0x3c36f43e6d8cae6d, 0xb1e45096e3139fc5},
    {"random:16,16,0.75@42", false, 8, 64, 32, 0xa6775b1439e9109b, 0xfd6c0762e735c863},
    {"random:120,120,0.3", false, 8, 10080, 672, 0xfbede88de7f5b451, 0x3c43e84949ac22eb}, /* tail of a shuffle */
    {"random:50,50,0", false, 20, 2500, 1000, 0x4b2c6d0c872baca9, 0xa813aba5ba987c57},
    {"ncp:10,10,8,6,6,4,6", false, 8, 112, 48, 0xdc82c0c1b84ee3b7, 0xc0c8848aeefbbdbf},
    {"ncp:18,12,1,6,4,4,6", false, 2, 88, 20, 0xad6d9eb47cbd1e87, 0xf6476ead27b66bfd}, /* the draw misses neurons */
    {"ncp:12,8,4,4,4,6,4@5", false, 16, 72, 64, 0xf6eab2de68281f53, 0x517ac61b06bc873b},
    {"autoncp:16,4", false, 8, 28, 32, 0x92ccd89dc4b109cf, 0xf392df0e4dd3943d},
    {"autoncp:28,4", false, 20, 84, 140, 0x4b073af24d9dfe27, 0xedc909b538a341c9},
    {"autoncp:28,10", false, 8, 70, 40, 0x09420621cb91ee57, 0x343f7b38aad8ff2b},
    {"autoncp:64,8,0.75@1", false, 4, 225, 43, 0x5f2aa22c60c3b6a8, 0x716d6d6dc359b32e},
    {"autoncp:8,2,0.9", false, 1, 8, 4, 0x26105daccb8ad083, 0x3cd02a862a574321},
};

TEST(wirings_are_those_of_the_reference)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        test_case("%s", known[i].text);
        for (int again = 0; again < 2; again++) { /* built twice, with the same result */
            mica_wiring *w;
            CHECK_MSG(mica_wiring_parse(known[i].text, known[i].inputs, &w) == MICA_OK, "%s", mica_last_error());
            if (known[i].no_self) {
                mica_wiring_options o = *mica_wiring_get(w);
                o.self_connections = false;
                mica_wiring_free(w);
                CHECK_MSG(mica_wiring_new(&o, &w) == MICA_OK, "%s", mica_last_error());
            }
            const int64_t units = mica_wiring_get(w)->units;
            EXPECT_INT(count(mica_wiring_synapses(w), units * units), known[i].synapses);
            EXPECT_INT(count(mica_wiring_sensory(w), known[i].inputs * units), known[i].sensory);
            EXPECT(fnv(mica_wiring_synapses(w), units * units) == known[i].hash);
            EXPECT(fnv(mica_wiring_sensory(w), known[i].inputs * units) == known[i].sensory_hash);
            mica_wiring_free(w);
        }
    }
}

TEST(layers_of_a_wiring)
{
    mica_wiring *w;
    int64_t first, n;
    CHECK_OK(mica_wiring_parse("autoncp:16,4", 8, &w));
    const int64_t want[3][2] = {{8, 8}, {4, 4}, {0, 4}}; /* inter, command, motor */
    for (int64_t l = 0; l < 3; l++) {
        EXPECT(mica_wiring_layer(w, l, &first, &n));
        EXPECT_INT(first, want[l][0]);
        EXPECT_INT(n, want[l][1]);
    }
    EXPECT(!mica_wiring_layer(w, 3, &first, &n));
    mica_wiring_free(w);
    CHECK_OK(mica_wiring_parse("full:5,2", 3, &w));
    EXPECT(mica_wiring_layer(w, 0, &first, &n));
    EXPECT_INT(n, 5);
    EXPECT(!mica_wiring_layer(w, 1, &first, &n));
    EXPECT_INT(mica_wiring_get(w)->outputs, 2);
    mica_wiring_free(w);
}

TEST(figures_of_a_wiring)
{
    mica_wiring *w;
    mica_wiring_stats t = {.struct_size = sizeof t};
    CHECK_OK(mica_wiring_parse("full:8", 4, &w));
    EXPECT_OK(mica_wiring_measure(w, &t));
    EXPECT_INT(t.synapses, 64);
    EXPECT_INT(t.sensory, 32);
    EXPECT_INT(t.excitatory + t.inhibitory, 96);
    EXPECT_CLOSE(t.sparsity, 0, 0, 0);
    EXPECT_INT(t.max_in, 8);
    EXPECT_INT(t.components, 1);
    EXPECT_INT(t.largest, 8);
    EXPECT_CLOSE(t.mean_path, 56 / 64.0, 1e-12, 0); /* one step to each other neuron, 0 to itself */
    mica_wiring_free(w);

    /* Three layers of one neuron: inter -> command -> motor, and command to itself. */
    CHECK_OK(mica_wiring_parse("ncp:1,1,1,1,1,1,1", 1, &w));
    EXPECT_OK(mica_wiring_measure(w, &t));
    EXPECT_INT(t.synapses, 3);
    EXPECT_INT(t.components, 3);
    EXPECT_INT(t.largest, 1);
    EXPECT_INT(t.max_in, 2);
    EXPECT_INT(t.max_out, 2);
    EXPECT_CLOSE(t.mean_degree, 1, 0, 0);
    EXPECT_CLOSE(t.mean_path, (0 + 1 + 2 + 0 + 1 + 0) / 6.0, 1e-12, 0);
    mica_wiring_free(w);
}

TEST(a_picture_of_a_wiring)
{
    mica_wiring *w;
    CHECK_OK(mica_wiring_parse("autoncp:64,8", 70, &w)); /* inputs in two half-columns */
    const size_t length = mica_wiring_svg(w, NULL, 0);
    char *text = malloc(length + 1), part[40];
    EXPECT_INT(mica_wiring_svg(w, text, length + 1), length);
    EXPECT(strncmp(text, "<svg ", 5) == 0 && strcmp(text + length - 7, "</svg>\n") == 0);
    EXPECT_INT(mica_wiring_svg(w, part, sizeof part), length); /* cut, as snprintf does */
    EXPECT_INT(strlen(part), sizeof part - 1);
    int64_t curves = 0, dots = 0;
    for (const char *at = text; (at = strstr(at, "<path")); at++) curves++;
    for (const char *at = text; (at = strstr(at, "<circle")); at++) dots++;
    mica_wiring_stats t = {.struct_size = sizeof t};
    EXPECT_OK(mica_wiring_measure(w, &t));
    EXPECT_INT(curves, t.synapses + t.sensory);
    EXPECT_INT(dots, 134);
    free(text);
    mica_wiring_free(w);
}

TEST(wirings_that_cannot_be)
{
    mica_wiring *w;
    mica_wiring_options o;
    const char *const bad[] = {"",
                               "full",
                               "full:",
                               "full:x",
                               "full:0",
                               "full:3,4",
                               "random:8,8",
                               "random:8,8,1",
                               "random:8,8,-1",
                               "autoncp:16",
                               "autoncp:6,4",
                               "autoncp:16,4,2",
                               "autoncp:16,4,0",
                               "ncp:1,2,3",
                               "ncp:1,1,1,2,1,1,1",
                               "full:8@",
                               "full:8@x",
                               "full:8,4 ",
                               "autoncp:16,4@9999999999",
                               "full:99999",
                               "cfc:8,4",
                               "ncp:1,1,1,1,2,1,1",
                               "full:8,4,0,1"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        test_case("%s", bad[i]);
        EXPECT_FAILS(mica_wiring_parse(bad[i], 4, &w), MICA_ERR_ARGUMENT, "wiring: ");
        EXPECT(w == NULL);
    }
    test_case("arguments");
    EXPECT_FAILS(mica_wiring_parse("full:8", 0, &w), MICA_ERR_ARGUMENT, "0 inputs");
    EXPECT_FAILS(mica_wiring_parse("full:8", 4, NULL), MICA_ERR_ARGUMENT, "out");
    EXPECT_FAILS(mica_wiring_new(NULL, &w), MICA_ERR_ARGUMENT, "options");
    mica_wiring_options_init(&o, (mica_wiring_kind)9);
    o.units = o.inputs = 3;
    EXPECT_FAILS(mica_wiring_new(&o, &w), MICA_ERR_ARGUMENT, "kind 9");
    EXPECT_FAILS(mica_wiring_measure(NULL, NULL), MICA_ERR_ARGUMENT, "wiring_measure");
    EXPECT_INT(mica_wiring_svg(NULL, NULL, 0), 0);
    EXPECT(!mica_wiring_get(NULL) && !mica_wiring_synapses(NULL) && !mica_wiring_sensory(NULL));
    mica_wiring_options_init(NULL, MICA_WIRING_FULL);
    mica_wiring_free(NULL);
}

/* ----------------------------------------------------------------- advice ---- */

TEST(advice_on_sizes)
{
    static const struct {
        const char *chip;
        int64_t units;
    } presets[] = {{NULL, 64}, {"Apple M2", 64}, {"Apple M1 Pro", 128}, {"m1 MAX", 256}, {"Apple M1 Ultra", 512}};
    for (size_t i = 0; i < COUNT(presets); i++)
        EXPECT_INT(mica_liquid_preset_for(presets[i].chip)->units[0], presets[i].units);
    char text[256], part[8];
    mica_wiring *w;
    mica_liquid net;
    mica_liquid_init(&net, MICA_LIQUID_CFC);
    net.inputs = 3, net.units = 48, net.backbone_units = 100;
    const size_t length = mica_liquid_advice(&net, 1, text, sizeof text);
    EXPECT_INT(length, strlen(text));
    EXPECT(strstr(text, "units: 48 is not a power of two; 32 or 64"));
    EXPECT(strstr(text, "backbone units: 100 is not a power of two; 64 or 128"));
    EXPECT(!strstr(text, "batch"));
    EXPECT_INT(mica_liquid_advice(&net, 1, part, sizeof part), length); /* cut, as snprintf does */
    EXPECT_INT(strlen(part), sizeof part - 1);
    EXPECT_INT(mica_liquid_advice(&net, 1, NULL, 0), length);
    net.units = 64, net.backbone_units = 128;
    EXPECT_INT(mica_liquid_advice(&net, 32, text, sizeof text), 0);
    CHECK_OK(mica_wiring_parse("autoncp:20,2", 3, &w));
    net.wiring = w;
    EXPECT(mica_liquid_advice(&net, 32, text, sizeof text) > 0 && strstr(text, "units of the wiring: 20"));
    mica_wiring_free(w);
    EXPECT(mica_liquid_advice(NULL, 3, text, sizeof text) > 0 && strstr(text, "batch: 3"));
}
