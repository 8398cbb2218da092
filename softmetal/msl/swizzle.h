/* Generates the swizzles of vectors (.xy, .bgra, ...). */
#ifndef SOFTMETAL_SWIZZLE_H
#define SOFTMETAL_SWIZZLE_H

#include "text.h"

/* Writes the members of the shim's vec<T, width>. */
void sm_swizzles(int width, sm_text *out);

#endif
