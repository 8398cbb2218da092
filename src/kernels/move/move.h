/* PAD, CONCAT and UNWINDOW. The first two copy bytes: every dtype is exact,
 * including NaN payloads. UNWINDOW adds all window elements of one result element
 * in double or 64 bits and rounds or wraps once. */
#ifndef MICA_KERNELS_MOVE_H
#define MICA_KERNELS_MOVE_H

#include "kernels/launch.h"

mica_status mica__pad_ref(const mica__launch *launch);
mica_status mica__concat_ref(const mica__launch *launch);
mica_status mica__unwindow_ref(const mica__launch *launch);
mica_status mica__pad_cpu(const mica__launch *launch);
mica_status mica__pad_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
mica_status mica__concat_cpu(const mica__launch *launch);
mica_status mica__concat_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
mica_status mica__unwindow_cpu(const mica__launch *launch);
mica_status mica__unwindow_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);

/* The padding element, as bytes of its dtype. */
void mica__pad_value(const mica__launch *launch, char value[8]);
/* Elements begin ... end-1 of UNWINDOW's result. */
void mica__unwindow_elements(const void *launch, int64_t begin, int64_t end);

#endif
