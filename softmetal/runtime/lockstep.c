/* Lockstep: the lanes of a simdgroup access threadgroup memory in step, as on a GPU.
 *
 * A GPU runs one instruction for all lanes of a simdgroup. So kernels of others let lanes use
 * threadgroup memory of each other without a simdgroup_barrier: a lane overwrites what the others
 * have just read, or reads what another has just written. Our lanes are fibers, and one would run
 * ahead. Kernels with threadgroup memory therefore call sm_engine_keep_step before each access
 * (msl/build.c), and here the lanes wait for each other where the order matters:
 *
 *     a store  after a load of the simdgroup      every lane has loaded before one overwrites
 *     a load   after a store of the simdgroup     every lane has stored before one reads
 *     a store  after a store at another place     no lane overwrites a later value with an earlier one
 *
 * "After" is since the lanes last met: there, at a simd operation or at a barrier. Lanes that wait at
 * different places continue in the order of the code (release_lanes in engine.c). A phase that only loads or that
 * only stores at one place costs one call for each access. Different simdgroups are not ordered, as on a GPU. */
#include "engine.h"

static bool is_within(const void *address, const char *start, size_t length)
{
    return (uintptr_t)address - (uintptr_t)start < length;
}

void sm_engine_keep_step(sm_engine *e, const void *address, bool write, const void *site)
{
    if (!is_within(address, e->statics, e->statics_length) && !is_within(address, e->local_memory, e->local_total))
        return;
    const unsigned s = e->current / SM_SIMD_WIDTH;
    const bool elsewhere = write && e->stored[s] && e->store_site[s] != site;
    if ((write ? e->loaded[s] : e->stored[s]) || elsewhere) sm_engine_meet(e, site);
    if (write) {
        e->stored[s] = true;
        e->store_site[s] = site;
    } else {
        e->loaded[s] = true;
    }
}
