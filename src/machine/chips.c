/* See chips.h. */
#include "machine/chips.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const mica__chip_row chips[] = {
#define F(full, reduced, source) {full, reduced, MICA__SOURCE_##source}
#define MICA_CHIP(...) {__VA_ARGS__},
#include "machine/chips.def"
#undef MICA_CHIP
#undef F
};
enum { N_CHIPS = sizeof chips / sizeof chips[0] };

size_t mica__chip_count(void) { return N_CHIPS; }
const mica__chip_row *mica__chip_at(size_t i) { return &chips[i]; }

const char *mica__chip_source_text(mica__chip_source source)
{
    static const char *const texts[] = {
#define X(name, text) [MICA__SOURCE_##name] = text,
        MICA_CHIP_SOURCES(X)
#undef X
    };
    return texts[source];
}

static bool is_gap(char c) { return c == ' ' || c == '-' || c == '_'; }

/* The rest of `text` after `name`, or NULL. Case and the kind of gap do not matter. */
static const char *skip_name(const char *text, const char *name)
{
    for (; *name; name++) {
        if (is_gap(*name)) {
            if (!is_gap(*text)) return NULL;
        } else if (tolower((unsigned char)*text) != tolower((unsigned char)*name)) return NULL;
        text++;
    }
    return text;
}

static mica_status fail_unknown(const char *name)
{
    char buffer[512];
    mica__text list;
    mica__text_init(&list, buffer, sizeof buffer);
    for (size_t i = 0; i < N_CHIPS; i++) mica__text_add(&list, "%s%s", i ? ", " : "", chips[i].name);
    return mica__fail(MICA_ERR_ARGUMENT, "chip: there is no '%.60s'; known are %s", name, buffer);
}

static mica__chip variant_of(const mica__chip_row *row, bool reduced)
{
#define FIGURE(field) (reduced ? row->field.reduced : row->field.full)
    return (mica__chip){.name = row->name,
                        .family = row->family,
                        .cores = FIGURE(cores),
                        .hz = FIGURE(mhz) * 1e6,
                        .memory_rate = FIGURE(gbs) * 1e9,
                        .slc_bytes = FIGURE(slc) * (1 << 20)};
#undef FIGURE
}

mica_status mica__chip_find(const char *name, mica__chip *chip)
{
    if (!name) return mica__fail(MICA_ERR_ARGUMENT, "chip: the name is NULL");
    const mica__chip_row *found = NULL;
    const char *rest = "", *text = skip_name(name, "Apple ");
    if (!text) text = name;
    for (size_t i = 0; i < N_CHIPS; i++) { /* the longest name that fits: "M4 Max" is not "M4" */
        const char *after = skip_name(text, chips[i].name);
        if (!after || (*after && !is_gap(*after))) continue;
        if (found && strlen(chips[i].name) < strlen(found->name)) continue;
        found = &chips[i];
        rest = after;
    }
    if (!found) return fail_unknown(name);
    if (!*rest) {
        *chip = variant_of(found, false);
        return MICA_OK;
    }
    char *end;
    const long cores = strtol(rest + 1, &end, 10);
    if (end == rest + 1 || *end) return fail_unknown(name);
    const bool full = (double)cores == found->cores.full;
    if (!full && (double)cores != found->cores.reduced)
        return mica__fail(MICA_ERR_ARGUMENT, "chip: there is no %s with %ld GPU cores; it has %g or %g", found->name,
                          cores, found->cores.full, found->cores.reduced);
    *chip = variant_of(found, !full);
    return MICA_OK;
}

mica_status mica__chip_check(const mica__chip *chip)
{
    const char *missing = chip->cores <= 0         ? "the number of GPU cores"
                          : chip->hz <= 0          ? "the clock of the GPU"
                          : chip->memory_rate <= 0 ? "the bandwidth of the memory"
                                                   : NULL;
    if (!missing) return MICA_OK;
    return mica__fail(MICA_ERR_UNSUPPORTED, "chip: %s of %s is unknown, so no time can be modelled", missing,
                      chip->name);
}
