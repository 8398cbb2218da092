/* The swizzles of vectors (.xy, .bgra, ...), written by a loop. */
#ifndef SOFTMETAL_SWIZZLE_H
#define SOFTMETAL_SWIZZLE_H

#include "text.h"

/* The members of the shim's vec<T, width>. */
void sm_swizzles(int width, sm_text *out);

#endif
