/* Numbers as text, from inside: mica_number_parse and mica_number_print are mica.h's. */
#ifndef MICA_BASE_NUMBER_H
#define MICA_BASE_NUMBER_H

#include "mica.h"

/* As mica_number_print, with the digits that the value has as an f32. */
const char *mica__number_print_f32(float value, char at[MICA_NUMBER_TEXT]);

#endif
