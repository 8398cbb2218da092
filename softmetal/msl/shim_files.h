/* The shim's headers, embedded in the library (shim_data.S). */
#ifndef SOFTMETAL_SHIM_FILES_H
#define SOFTMETAL_SHIM_FILES_H

typedef struct sm_shim_file {
    const char *name; /* NULL: the end */
    const char *start, *end;
} sm_shim_file;

extern const sm_shim_file sm_shim_files[];

#endif
