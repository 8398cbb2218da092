/* SM_COVER=file: which blocks of a kernel's code ran. */
#ifndef SOFTMETAL_COVER_H
#define SOFTMETAL_COVER_H

#include "kernel.h"

/* To be written when it ends, or the process does. */
void sm_cover_start(sm_kernel *kernel);
void sm_cover_end(sm_kernel *kernel);

#endif
