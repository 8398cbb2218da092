/* SM_COVER=file: records which basic blocks of a kernel's code ran. */
#ifndef SOFTMETAL_COVER_H
#define SOFTMETAL_COVER_H

#include "kernel.h"

/* Registers the kernel; its coverage is written when it is closed or the process ends. */
void sm_cover_start(sm_kernel *kernel);
void sm_cover_end(sm_kernel *kernel);

#endif
