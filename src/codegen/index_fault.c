/* See index_fault.h. */
#include "codegen/index_fault.h"

void mica__index_fault_note(mica__index_fault *fault, int64_t position, int64_t index, bool is_unsigned, int64_t size)
{
    while (atomic_flag_test_and_set_explicit(&fault->lock, memory_order_acquire)) {
    }
    if (!fault->set || position < fault->position) {
        fault->set = true;
        fault->position = position;
        fault->index = index;
        fault->is_unsigned = is_unsigned;
        fault->size = size;
    }
    atomic_flag_clear_explicit(&fault->lock, memory_order_release);
}

mica_status mica__index_fault_status(const mica__index_fault *fault)
{
    if (!fault->set) return MICA_OK;
    const long long first = -(long long)fault->size, last = (long long)fault->size - 1;
    if (fault->is_unsigned && fault->index < 0)
        return mica__fail(MICA_ERR_INDEX, "check_index: index %llu is outside %lld ... %lld",
                          (unsigned long long)fault->index, first, last);
    return mica__fail(MICA_ERR_INDEX, "check_index: index %lld is outside %lld ... %lld", (long long)fault->index,
                      first, last);
}
