/* What is preloaded into programs that stay (tools/stay.c), so that the library needs no file of its own. */
    .section .rodata
    .globl sm_stay_start, sm_stay_end
    .hidden sm_stay_start, sm_stay_end
sm_stay_start: .incbin "stay.so"
sm_stay_end: .byte 0

    .section .note.GNU-stack, "", %progbits
