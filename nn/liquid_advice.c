/* Advice on the sizes of a liquid network: powers of two, and usual sizes per chip. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "mica_liquid.h"

static const mica_liquid_preset liquid_presets[] = {
    /* clang-format off */
    {"M1",       {32, 64},   {64, 128},   {32, 64},    8192,  2,  50},
    {"M1 Pro",   {64, 128},  {128, 256},  {64, 128},  16384,  4, 100},
    {"M1 Max",   {128, 256}, {256, 512},  {128, 256}, 32768,  8, 200},
    {"M1 Ultra", {256, 512}, {512, 1024}, {256, 512}, 65536, 16, 400},
    /* clang-format on */
};

static bool names_chip(const char *text, const char *word)
{
    for (; *text; text++) {
        size_t n = 0;
        while (word[n] && tolower((unsigned char)text[n]) == word[n]) n++;
        if (!word[n]) return true;
    }
    return false;
}

const mica_liquid_preset *mica_liquid_preset_for(const char *chip)
{
    static const char *const words[] = {"ultra", "max", "pro"};
    for (int i = 0; chip && i < 3; i++)
        if (names_chip(chip, words[i])) return &liquid_presets[3 - i];
    return &liquid_presets[0];
}

size_t mica_liquid_advice(const mica_liquid *given, int64_t batch, char *buffer, size_t cap)
{
    mica_liquid all = {.struct_size = sizeof all}; /* networks that mica_liquid_check refuses get advice too */
    const bool read = given && mica_struct_read("liquid_advice: mica_liquid", &all, sizeof all, given) == MICA_OK;
    const mica_liquid *net = read ? &all : NULL;
    const bool wired = net && net->wiring;
    const bool backbone = net && net->cell == MICA_LIQUID_CFC && !wired && net->backbone_layers > 0;
    const struct {
        const char *what;
        int64_t size;
    } sizes[] = {{"units", net && !wired ? net->units : 0},
                 {"units of the wiring", wired ? mica_wiring_get(net->wiring)->units : 0},
                 {"backbone units", backbone ? net->backbone_units : 0},
                 {"batch", batch}};
    size_t length = 0;
    if (cap > 0) buffer[0] = '\0';
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t below = 1;
        while (below <= sizes[i].size / 2) below *= 2;
        if (sizes[i].size < 1 || sizes[i].size == below) continue;
        const int n = snprintf(length < cap ? buffer + length : NULL, length < cap ? cap - length : 0,
                               "%s: %lld is not a power of two; %lld or %lld fills vectors and tiles\n", sizes[i].what,
                               (long long)sizes[i].size, (long long)below, (long long)(2 * below));
        length += n > 0 ? (size_t)n : 0;
    }
    return length;
}
