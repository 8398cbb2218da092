/* The table of chips, and the time that the model gives counts on a chip: each part of the GPU alone, compared with the
 * division written out by hand.
 *
 * runs: check, arm */
#include <stdio.h>
#include <string.h>

#include "cost/gpu_model.h"
#include "api.h"
#include "test.h"

static mica__chip chip_of(const char *name)
{
    mica__chip chip = {0};
    EXPECT_OK(mica__chip_find(name, &chip));
    return chip;
}

/* All shares 1 and no launch, so that times are plain divisions. */
static const mica__gpu_fit ideal = {.alu = 1, .memory = 1, .launch = 0};

static mica__gpu_estimate model(const mica__gpu_counts *counts, const char *chip, const mica__gpu_fit *fit)
{
    mica__gpu_estimate estimate = {0};
    const mica__chip found = chip_of(chip);
    EXPECT_OK(mica__gpu_model(counts, &found, fit, &estimate));
    return estimate;
}

TEST(every_chip_is_found_by_its_name)
{
    for (size_t i = 0; i < mica__chip_count(); i++) {
        const mica__chip_row *row = mica__chip_at(i);
        test_case("%s", row->name);
        const mica__chip chip = chip_of(row->name);
        EXPECT_STR(chip.name, row->name);
        EXPECT(chip.cores == row->cores.full);
        char smaller[64];
        snprintf(smaller, sizeof smaller, "Apple %s %g", row->name, row->cores.reduced);
        EXPECT(chip_of(smaller).cores == row->cores.reduced);
    }
}

TEST(figures_are_unknown_exactly_where_they_have_no_source)
{
    for (size_t i = 0; i < mica__chip_count(); i++) {
        const mica__chip_row *row = mica__chip_at(i);
        const mica__chip_figure *figures[] = {&row->cores, &row->mhz, &row->gbs, &row->slc};
        test_case("%s", row->name);
        EXPECT(row->family >= 7);
        for (int f = 0; f < 4; f++) {
            const bool known = figures[f]->source != MICA__SOURCE_NONE;
            EXPECT((figures[f]->full > 0) == known && (figures[f]->reduced > 0) == known);
            EXPECT(figures[f]->full >= figures[f]->reduced);
            EXPECT(strlen(mica__chip_source_text(figures[f]->source)) > 0);
        }
    }
}

TEST(spelling_does_not_matter)
{
    EXPECT_STR(chip_of("m4-max").name, "M4 Max");
    EXPECT_STR(chip_of("Apple M4 Max").name, "M4 Max");
    EXPECT_STR(chip_of("M4_MAX-32").name, "M4 Max");
    EXPECT(chip_of("M4 Max 32").memory_rate == 410e9);
    EXPECT_STR(chip_of("m4").name, "M4");
}

TEST(unknown_chips_are_refused_with_the_list)
{
    mica__chip chip;
    EXPECT_FAILS(mica__chip_find("M9", &chip), MICA_ERR_ARGUMENT, "there is no 'M9'; known are A14");
    EXPECT_FAILS(mica__chip_find("M4 Maximum", &chip), MICA_ERR_ARGUMENT, "M5 Max");
    EXPECT_FAILS(mica__chip_find("", &chip), MICA_ERR_ARGUMENT, "there is no ''");
    EXPECT_FAILS(mica__chip_find(NULL, &chip), MICA_ERR_ARGUMENT, "NULL");
    EXPECT_FAILS(mica__chip_find("M4 Max 33", &chip), MICA_ERR_ARGUMENT, "it has 40 or 32");
    mica__gpu_estimate estimate;
    chip = chip_of("A14");
    EXPECT_FAILS(mica__gpu_model(&(mica__gpu_counts){0}, &chip, NULL, &estimate), MICA_ERR_UNSUPPORTED,
                 "the clock of the GPU of A14 is unknown");
}

TEST(each_part_takes_its_work_divided_by_its_rate)
{
    const mica__gpu_counts counts = {.issue_cycles = 3e9,
                                     .slow_cycles = 4e9,
                                     .sum_cycles = 7e9,
                                     .line_bytes = 5e9,
                                     .unique_bytes = 2e9,
                                     .local_cycles = 1e9,
                                     .simdgroups = 1e6};
    const double m1 = 8 * 1278e6, m3 = 10 * 1380e6;
    mica__gpu_estimate e = model(&counts, "M1", &ideal);
    EXPECT_CLOSE(e.part[MICA__ROOF_ALU], 7e9 / (4 * m1), 1e-12, 0); /* nothing overlaps before family 9 */
    EXPECT_CLOSE(e.part[MICA__ROOF_L1], 5e9 / (64 * m1), 1e-12, 0);
    EXPECT_CLOSE(e.part[MICA__ROOF_L2], 2e9 / (32 * m1), 1e-12, 0);
    EXPECT_CLOSE(e.part[MICA__ROOF_SLC], 2e9 / (16 * m1), 1e-12, 0);
    EXPECT_CLOSE(e.part[MICA__ROOF_DRAM], 2e9 / 68.3e9, 1e-12, 0);
    EXPECT_CLOSE(e.part[MICA__ROOF_LOCAL], 1e9 / m1, 1e-12, 0);
    EXPECT_INT(e.bound, MICA__ROOF_ALU);
    EXPECT_CLOSE(e.seconds, e.part[MICA__ROOF_ALU], 1e-12, 0);
    e = model(&counts, "M3", &ideal);
    EXPECT_CLOSE(e.part[MICA__ROOF_ALU], 4e9 / (4 * m3), 1e-12, 0);
}

TEST(the_slowest_part_bounds_the_kernel)
{
    static const struct {
        mica__gpu_counts counts;
        mica__gpu_roof bound;
    } rows[] = {
        {{.issue_cycles = 1e9, .slow_cycles = 1e9, .sum_cycles = 1e9}, MICA__ROOF_ALU},
        {{.line_bytes = 1e9}, MICA__ROOF_L1},
        {{.unique_bytes = 1e9}, MICA__ROOF_DRAM},
        {{.local_cycles = 1e9}, MICA__ROOF_LOCAL},
        {{.issue_cycles = 1, .sum_cycles = 1}, MICA__ROOF_LAUNCH},
    };
    const mica__gpu_fit fit = {.alu = 1, .memory = 1, .launch = 5e-6};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mica__gpu_counts counts = rows[i].counts;
        counts.simdgroups = 1e6;
        const mica__gpu_estimate e = model(&counts, "M2 Max", &fit);
        test_case("%s", mica__gpu_roof_name(rows[i].bound));
        EXPECT_INT(e.bound, rows[i].bound);
        EXPECT(e.seconds >= 5e-6);
    }
}

TEST(few_simdgroups_leave_schedulers_idle)
{
    mica__gpu_counts counts = {.sum_cycles = 1e9, .simdgroups = 8 * 12}; /* 12 a core of an M1, 24 keep it busy */
    mica__gpu_estimate e = model(&counts, "M1", &ideal);
    EXPECT_CLOSE(e.occupancy, 0.5, 1e-12, 0);
    EXPECT_CLOSE(e.seconds, 2 * e.part[MICA__ROOF_ALU], 1e-12, 0);
    counts.simdgroups = 1e6;
    counts.resident = 6; /* many are launched, but registers leave room for 6 */
    e = model(&counts, "M1", &ideal);
    EXPECT_CLOSE(e.occupancy, 0.25, 1e-12, 0);
    counts.resident = 0; /* unknown */
    EXPECT_CLOSE(model(&counts, "M1", &ideal).occupancy, 1, 1e-12, 0);
}
