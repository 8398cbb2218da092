/* The table of the headers in shim_data.S. */
#include "shim_files.h"

#define SHIM(name, file) extern const char sm_shim_##name##_start[], sm_shim_##name##_end[];
#include "shim_files.def"
#undef SHIM

const sm_shim_file sm_shim_files[] = {
#define SHIM(name, file) {file, sm_shim_##name##_start, sm_shim_##name##_end},
#include "shim_files.def"
#undef SHIM
    {0, 0, 0}};
