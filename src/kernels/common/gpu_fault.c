/* Turns the fault of a kernel into the error message that the CPU families return for it. */
#include <inttypes.h>

#include "codegen/index_fault.h"
#include "kernels/common/common_params.h"
#include "kernels/gpu.h"
#include "kernels/synapses/synapses.h"

mica_status mica__gpu_fault_status(mica__op op, const mica_fault *f)
{
    if (!f->set) return MICA_OK;
    switch ((int)op) {
    case MICA__OP_CHECK_INDEX: {
        const mica__index_fault fault = {.set = true,
                                         .is_unsigned = f->kind & 1,
                                         .caller = f->kind >> 1,
                                         .position = f->position,
                                         .index = f->index,
                                         .size = f->size};
        return mica__index_fault_status(&fault);
    }
    case MICA__OP_UPDATE:
        return mica__fail(MICA_ERR_INDEX,
                          "update: positions %" PRId64 " to %" PRId64 " of an axis of %" PRId64 " of the state",
                          f->index, (int64_t)((uint64_t)f->index + (uint64_t)f->position - 1), f->size);
    case MICA__OP_ATTENTION_CACHED:
        return mica__fail(MICA_ERR_INDEX, "attention_cached: length %" PRId64 " of a cache of %" PRId64 " keys",
                          f->index, f->size);
    case MICA__OP_SYNAPSES:
    case MICA__OP_SYNAPSES_GRAD:
        return f->kind ? mica__synapses_bad_first(f->position, f->index, f->size)
                       : mica__synapses_bad_source(f->index, f->size);
    default:
        return mica__fail(MICA_ERR_INDEX,
                          "%s: index %" PRId64 " at position %" PRId64 " is outside -%" PRId64 " ... %" PRId64,
                          mica__index_caller_name(f->kind, mica__op_get((uint16_t)op)->name), f->index, f->position,
                          f->size, f->size - 1);
    }
}
