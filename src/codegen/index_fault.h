/* Records an index out of range that a thread finds inside a kernel. Kernels cannot
 * stop half way: they record the fault and continue, and the caller of the run checks
 * afterwards. Of several faults the first one in the array is kept, independent of the
 * order of threads. */
#ifndef MICA_CODEGEN_INDEX_FAULT_H
#define MICA_CODEGEN_INDEX_FAULT_H

#include <stdatomic.h>

#include "base/status.h"
#include "graph/attrs.h"

typedef struct mica__index_fault {
    atomic_flag lock;
    bool set;
    bool is_unsigned;   /* index holds the bits of a u64             */
    int64_t position;   /* flat, in the order of the kernel's loops  */
    int64_t index;
    int64_t size;       /* valid indices were -size ... size - 1     */
    int64_t caller;     /* mica__index_caller                        */
} mica__index_fault;

#define MICA__INDEX_FAULT_NONE {.lock = ATOMIC_FLAG_INIT}

void mica__index_fault_record(mica__index_fault *fault, int64_t position, int64_t index, bool is_unsigned,
                              const mica__attr_index *attr);
/* MICA_ERR_INDEX with the index and the range, if a fault was recorded. Call after all
 * threads have left the kernel. */
mica_status mica__index_fault_status(const mica__index_fault *fault);

#endif
