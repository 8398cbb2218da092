/* The text of the shim's headers, so that the library needs no separate files. */
#define SHIM(name, file)                                 \
    .globl sm_shim_##name##_start;                   \
    .hidden sm_shim_##name##_start;                  \
    .globl sm_shim_##name##_end;                     \
    .hidden sm_shim_##name##_end;                    \
    sm_shim_##name##_start: .incbin file;      \
    sm_shim_##name##_end: .byte 0;

    .section .rodata
#include "shim_files.def"

    .section .note.GNU-stack, "", %progbits
