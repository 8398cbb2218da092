/* See index_fault.h. */
#include "codegen/index_fault.h"

#include "graph/op.h"

void mica__index_fault_record(mica__index_fault *fault, int64_t position, int64_t index, bool is_unsigned,
                              const mica__attr_index *attr)
{
    while (atomic_flag_test_and_set_explicit(&fault->lock, memory_order_acquire)) {
    }
    if (!fault->set || position < fault->position) {
        fault->set = true;
        fault->position = position;
        fault->index = index;
        fault->is_unsigned = is_unsigned;
        fault->size = attr->size;
        fault->caller = attr->caller;
    }
    atomic_flag_clear_explicit(&fault->lock, memory_order_release);
}

mica_status mica__index_fault_status(const mica__index_fault *fault)
{
    if (!fault->set) return MICA_OK;
    if (fault->caller == MICA__CALLER_RANDOM_CATEGORICAL)
        return mica__fail(MICA_ERR_INDEX, "random_categorical: the logits of row %lld are all -inf, or one is NaN",
                          (long long)fault->position);
    const char *op = mica__index_caller_name(fault->caller, "check_index");
    const long long first = -(long long)fault->size, last = (long long)fault->size - 1;
    if (fault->is_unsigned && fault->index < 0)
        return mica__fail(MICA_ERR_INDEX, "%s: index %llu is outside %lld ... %lld", op,
                          (unsigned long long)fault->index, first, last);
    return mica__fail(MICA_ERR_INDEX, "%s: index %lld is outside %lld ... %lld", op, (long long)fault->index, first,
                      last);
}
