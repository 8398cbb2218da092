/* How a kernel family runs on a GPU: a pure function translates one launch into a few
 * dispatches, once, when a plan is made. Its input is the operands without memory
 * (mica__tensor.data is NULL) and the limits of a device, so tests can call it for any
 * device. The backend replays the dispatches. This header has no Metal type.
 *
 *   static mica_status softmax_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
 *   {
 *       if (dtype is f64) return mica__gpu_refuse(list, "Metal has no f64");
 *       const softmax_params p = {...};
 *       mica__gpu_dispatch *d = mica__gpu_add(list, "softmax", "softmax_rows");
 *       mica__gpu_constant_uint(d, MICA_SOFTMAX_DTYPE, dtype); [[function_constant(MICA_SOFTMAX_DTYPE)]]
 *       mica__gpu_bind_in(d, 0, 0);              [[buffer(0)]]
 *       mica__gpu_bind_out(d, 0);                [[buffer(1)]]
 *       mica__gpu_params(list, d, &p, sizeof p); [[buffer(2)]], `constant softmax_params &`
 *       mica__gpu_grid(d, rows, 1, 1, 256, 1, 1);
 *       return MICA_OK;
 *   }
 *
 * Shaders: src/kernels/<family>/<shader>.metal, one row in kernels/shaders.def; they may
 * #include "x" of any other row, by file name. A header shared with C
 * (<family>_params.h) defines the function constant numbers, the enumerations used by both sides and the
 * parameter structs, with fixed-width types only (both languages have int32_t,
 * uint32_t, int64_t, float) and includes <stdint.h> unless __METAL_VERSION__ is
 * defined. Memory is only aligned to its element size, because a view may begin at any element. */
#ifndef MICA_KERNELS_GPU_H
#define MICA_KERNELS_GPU_H

#include "base/arena.h"
#include "kernels/gpu_tune.h"
#include "kernels/launch.h"

/* Capabilities of a device. */
struct mica__gpu_limits {
    char name[64];
    uint32_t family;            /* 7 = M1, 8 = M2, 9 = M3 and M4, 10 = M5; 0: unknown     */
    uint32_t cores;             /* 0: unknown                                            */
    uint32_t max_threads;       /* of a threadgroup; a pipeline may have fewer           */
    uint32_t threadgroup_bytes; /* memory of a threadgroup: 32 KB                        */
    uint32_t simd_width;        /* 32                                                    */
    bool bfloat;                /* the type bfloat exists; else unpack bf16 bits */
    bool simdgroup_matrix;
    bool software;              /* no GPU: softmetal                                     */
    uint64_t max_buffer_bytes, budget_bytes;
    mica__gpu_tuning tuning;    /* measured shapes; zeros: use the rules                     */
};

enum {
    MICA__GPU_MAX_BINDINGS = 31,
    MICA__GPU_MAX_CONSTANTS = 16,
    MICA__GPU_MAX_PARAMS = 4096 /* bytes                                                 */
};

struct mica__gpu_launch {
    const mica__gpu_limits *gpu;
    const mica__tensor *in;     /* data is NULL                                          */
    uint32_t n_in;
    const mica__tensor *out;    /* row-major                                             */
    const void *attr;
    bool rounded;               /* QMATMUL: rounded x is already in the workspace (qmatmul_gpu.h) */
    bool rounds;                /* norms: store rounded rows in the workspace            */
};

/* The memory that a kernel buffer is bound to. */
typedef enum mica__gpu_source {
    MICA__GPU_IN,
    MICA__GPU_OUT,
    MICA__GPU_WORKSPACE,
    MICA__GPU_FAULT             /* a mica_fault of the launch (kernels/common/common_params.h) */
} mica__gpu_source;

typedef struct mica__gpu_binding {
    mica__gpu_source source;
    uint32_t operand;           /* IN                                                    */
    int64_t offset;             /* bytes from the first element, or into the workspace   */
} mica__gpu_binding;

typedef enum mica__gpu_type { MICA__GPU_BOOL, MICA__GPU_INT, MICA__GPU_UINT, MICA__GPU_FLOAT } mica__gpu_type;

typedef struct mica__gpu_constant {
    uint32_t index;
    mica__gpu_type type;
    uint32_t bits;              /* BOOL: 0 or 1                                          */
} mica__gpu_constant;

typedef struct mica__gpu_dispatch {
    const char *shader;         /* row in shaders.def: the file without .metal           */
    const char *kernel;
    mica__gpu_constant constant[MICA__GPU_MAX_CONSTANTS];
    uint32_t n_constant;
    mica__gpu_binding binding[MICA__GPU_MAX_BINDINGS]; /* number i is [[buffer(i)]]      */
    uint32_t n_binding;
    const void *params;         /* [[buffer(n_binding)]]; NULL: none                     */
    size_t params_bytes;
    uint32_t groups[3], threads[3]; /* threadgroups of the grid; threads of a threadgroup */
    bool barrier;               /* wait for the writes of earlier dispatches of the list */
    bool finishes;              /* last of its list; stores each element of the result once with store_result
                                 * (common.metal), so an epilogue may be compiled into it */
} mica__gpu_dispatch;

struct mica__gpu_list {
    mica__arena *arena;         /* for data that lives as long as the plan               */
    mica__gpu_dispatch *dispatch;
    uint32_t n, capacity;
    size_t workspace;           /* bytes handed out by mica__gpu_workspace               */
    const char *refused;        /* why the CPU must run it; NULL: the GPU runs it        */
    bool failed;                /* out of memory, or over a limit of this header         */
    mica__gpu_dispatch spare;   /* dummy that a failed list writes to                    */
};

/* A mica__gpu_lower (launch.h) writes the dispatches of one launch. It is deterministic. It is never called for results
 * without elements. A status other than MICA_OK means a bug in the lowering: for a case that the GPU cannot run, call
 * mica__gpu_refuse. */

/* Never NULL: after a failure it returns a dummy dispatch that is never run. */
mica__gpu_dispatch *mica__gpu_add(mica__gpu_list *list, const char *shader, const char *kernel);
void mica__gpu_bind_in(mica__gpu_dispatch *d, uint32_t operand, int64_t offset);
void mica__gpu_bind_out(mica__gpu_dispatch *d, int64_t offset);
void mica__gpu_bind_workspace(mica__gpu_dispatch *d, int64_t offset);
/* The fault is zero before the run. A kernel that reads an index out of range sets it, writes nothing out of bounds and
 * continues. The code that waits for the run calls mica__gpu_fault_status. */
void mica__gpu_bind_fault(mica__gpu_dispatch *d);
/* Call after the last binding. Copies params. */
void mica__gpu_params(mica__gpu_list *list, mica__gpu_dispatch *d, const void *params, size_t nbytes);
void mica__gpu_constant_bool(mica__gpu_dispatch *d, uint32_t index, bool value);
void mica__gpu_constant_int(mica__gpu_dispatch *d, uint32_t index, int32_t value);
void mica__gpu_constant_uint(mica__gpu_dispatch *d, uint32_t index, uint32_t value);
void mica__gpu_constant_float(mica__gpu_dispatch *d, uint32_t index, float value);
/* Number of threadgroups, then threads per threadgroup. */
void mica__gpu_grid(mica__gpu_dispatch *d, uint32_t groups_x, uint32_t groups_y, uint32_t groups_z, uint32_t threads_x,
                    uint32_t threads_y, uint32_t threads_z);
/* Reserves nbytes of scratch, 256-byte aligned; returns their offset. */
int64_t mica__gpu_workspace(mica__gpu_list *list, size_t nbytes);
/* MICA_ERR_INDEX with the error message of the CPU family, if the fault of a launch of op is set. */
struct mica_fault;
mica_status mica__gpu_fault_status(mica__op op, const struct mica_fault *fault);
/* Makes the CPU family run this launch. Drops the dispatches. Always MICA_OK. */
mica_status mica__gpu_refuse(mica__gpu_list *list, const char *why);

#endif
