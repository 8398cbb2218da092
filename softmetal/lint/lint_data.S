/* The text of lint_header.h, so that the library needs no separate file. */
    .section .rodata
    .globl sm_lint_header_start, sm_lint_header_end
    .hidden sm_lint_header_start, sm_lint_header_end
sm_lint_header_start: .incbin "softmetal/lint/lint_header.h"
sm_lint_header_end: .byte 0

    .section .note.GNU-stack, "", %progbits
