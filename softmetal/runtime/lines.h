/* Maps an address of a kernel's code to the line of its .metal text. */
#ifndef SOFTMETAL_LINES_H
#define SOFTMETAL_LINES_H

#include "engine.h"
#include "kernel.h"

bool sm_in_module(const sm_kernel *kernel, const void *pc);

/* "file:12" for the instruction before pc, or "" if it is unknown. */
void sm_line_of(const sm_kernel *kernel, const void *pc, char *text, size_t room);

/* ", 4 bytes after the end of buffer 2 (1024 bytes)" for an address close to a buffer of the dispatch, else "". */
const char *sm_buffer_near(const sm_engine *engine, const void *address, char *text, size_t room);

#endif
