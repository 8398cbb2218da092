/* Synapses on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_SYNAPSES_PARAMS_H
#define MICA_KERNELS_SYNAPSES_PARAMS_H

/* Function constants of synapses.metal. */
#define MICA_SYNAPSES_DTYPE 0
#define MICA_SYNAPSES_LISTED 1
#define MICA_SYNAPSES_TOGETHER 2

/* synapses_lists_backward_x: 32 KB of sums. */
enum { SYNAPSES_SOURCES = 64, SYNAPSES_LISTS_SIMDS = 4 };

/* Strides of an operand (row, col); start: offset of element (0, 0) from the lowest address. */
typedef struct mica_plane {
    int64_t start, row, col;
} mica_plane;
MICA_LAYOUT(mica_plane, 24);

typedef struct mica_synapses_params {
    mica_plane x;                /* (n, sources)                                 */
    mica_plane param[4];         /* sigma, mu, drive, weight (rows, cols); with
                                  * lists a row is one synapse                   */
    mica_plane source, first;    /* lists: rows                                  */
    mica_plane ct;               /* gradient: (n, cols) of the drive sums        */
    int64_t ct_half;             /* stride from the drive sums to the weight sums */
    uint32_t n, sources, rows, cols;
} mica_synapses_params;
MICA_LAYOUT(mica_synapses_params, 216);

#endif
