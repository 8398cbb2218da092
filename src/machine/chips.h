/* Apple's chips, from one table (chips.def). Everything that depends on the chip looks its figures up here; no other
 * code compares the name of a chip. A figure that was not published is unknown. */
#ifndef MICA_MACHINE_CHIPS_H
#define MICA_MACHINE_CHIPS_H

#include <stddef.h>

#include "base/status.h"
#include "base/text.h"

/* Where a figure comes from (chips.def explains each): X(name, text). */
#define MICA_CHIP_SOURCES(X)                  \
    X(NONE, "unknown")                        \
    X(APPLE, "Apple's specifications")        \
    X(BENCH, "philipturner/metal-benchmarks") \
    X(FLOPS, "published f32 flops")           \
    X(SPEED, "published speed of the memory") \
    X(PRESS, "press, not confirmed by Apple") \
    X(DIE, "published analyses of the die")
typedef enum mica__chip_source {
#define X(name, text) MICA__SOURCE_##name,
    MICA_CHIP_SOURCES(X)
#undef X
} mica__chip_source;

typedef struct mica__chip_figure {
    double full, reduced;       /* of the variant with the most and with the fewest cores; 0: unknown */
    mica__chip_source source;
} mica__chip_figure;

typedef struct mica__chip_row {
    const char *name;
    int family;                 /* of Metal: 7 is apple7                                    */
    mica__chip_figure cores, mhz, gbs, slc;
} mica__chip_row;

/* A chip with one number of cores. 0: unknown. */
typedef struct mica__chip {
    const char *name;           /* as in the table; valid forever                           */
    int family;
    double cores;
    double hz;                  /* of the GPU                                               */
    double memory_rate;         /* bytes a second of DRAM, as specified                     */
    double slc_bytes;           /* system level cache                                       */
} mica__chip;

size_t mica__chip_count(void);
const mica__chip_row *mica__chip_at(size_t i); /* i < mica__chip_count() */
const char *mica__chip_source_text(mica__chip_source source);

/* Finds a chip by name: "M4 Max", "m4-max", "Apple M4 Max", the smaller variant as "M4 Max 32". Without a number of
 * cores it is the largest variant. MICA_ERR_ARGUMENT for an unknown name (the message lists the known ones) and for a
 * number of cores that the chip does not come with. */
mica_status mica__chip_find(const char *name, mica__chip *chip);
/* MICA_ERR_UNSUPPORTED, naming the figure, if one that the cost model needs is unknown. */
mica_status mica__chip_check(const mica__chip *chip);

#endif
