/* See gpu_model.h. The rates of a core are those that philipturner/metal-benchmarks measured for families 7 and 8. */
#include "cost/gpu_model.h"

#include <math.h>

static const double schedulers = 4;       /* of a core; each issues one instruction of 32 lanes a cycle */
static const double l1_bytes = 64;        /* a core and cycle                                           */
static const double l2_bytes = 32;        /* a core and cycle                                           */
static const double slc_bytes = 16;       /* a core and cycle; 15 to 20 seen                            */
static const double busy_simdgroups = 24; /* of a core: with fewer, dependent instructions leave gaps   */
enum { OVERLAP_FAMILY = 9 };              /* from this family on, the slow pipe overlaps with the others */

/* What tools/calibrate_gpu_model.py prints; tests/e2e/gpu_model.sh compares. */
const mica__gpu_fit mica__gpu_default_fit = {.alu = 0.86, .memory = 0.80, .launch = 8e-6};

const char *mica__gpu_roof_name(mica__gpu_roof roof)
{
    static const char *const names[] = {
        [MICA__ROOF_ALU] = "ALU",       [MICA__ROOF_L1] = "L1",     [MICA__ROOF_L2] = "L2",
        [MICA__ROOF_SLC] = "SLC",       [MICA__ROOF_DRAM] = "DRAM", [MICA__ROOF_LOCAL] = "threadgroup memory",
        [MICA__ROOF_LAUNCH] = "launch",
    };
    return names[roof];
}

/* Simdgroups of all cores at a time, as a share of what keeps the schedulers busy. */
static double occupancy_of(const mica__gpu_counts *counts, const mica__chip *chip)
{
    double a_core = counts->simdgroups / chip->cores;
    if (counts->resident > 0) a_core = fmin(a_core, counts->resident);
    return fmin(1, a_core / busy_simdgroups);
}

mica_status mica__gpu_model(const mica__gpu_counts *counts, const mica__chip *chip, const mica__gpu_fit *fit,
                            mica__gpu_estimate *estimate)
{
    const mica_status status = mica__chip_check(chip);
    if (status != MICA_OK) return status;
    if (!fit) fit = &mica__gpu_default_fit;
    *estimate = (mica__gpu_estimate){.occupancy = occupancy_of(counts, chip)};

    const double core_cycles = chip->cores * chip->hz; /* a second, of all cores */
    const double cycles =
        chip->family >= OVERLAP_FAMILY ? fmax(counts->issue_cycles, counts->slow_cycles) : counts->sum_cycles;
    double *part = estimate->part;
    part[MICA__ROOF_ALU] = cycles / (core_cycles * schedulers * fit->alu);
    part[MICA__ROOF_L1] = counts->line_bytes / (core_cycles * l1_bytes);
    part[MICA__ROOF_LOCAL] = counts->local_cycles / core_cycles;
    /* What an earlier dispatch left in a cache is not modelled: each level below L1 delivers each byte once. */
    part[MICA__ROOF_L2] = counts->unique_bytes / (core_cycles * l2_bytes);
    part[MICA__ROOF_SLC] = counts->unique_bytes / (core_cycles * slc_bytes);
    part[MICA__ROOF_DRAM] = counts->unique_bytes / (chip->memory_rate * fit->memory);

    double longest = 0;
    for (int i = 0; i < MICA__ROOF_LAUNCH; i++) {
        if (part[i] <= longest) continue;
        longest = part[i];
        estimate->bound = (mica__gpu_roof)i;
    }
    if (estimate->occupancy > 0) longest /= estimate->occupancy;
    part[MICA__ROOF_LAUNCH] = fit->launch;
    if (fit->launch > longest) estimate->bound = MICA__ROOF_LAUNCH;
    estimate->seconds = longest + fit->launch;
    return MICA_OK;
}
