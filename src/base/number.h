/* Numbers as text, internal part; mica_number_parse and mica_number_print are declared in mica.h. */
#ifndef MICA_BASE_NUMBER_H
#define MICA_BASE_NUMBER_H

#include "mica.h"

/* Like mica_number_print, but with only as many digits as an f32 needs to be read back exactly. */
const char *mica__number_print_f32(float value, char at[MICA_NUMBER_TEXT]);

#endif
