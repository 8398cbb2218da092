/* The library that is preloaded into programs (tools/stay.c), so that softmetal needs no separate file. */
    .section .rodata
    .globl sm_stay_start, sm_stay_end
    .hidden sm_stay_start, sm_stay_end
sm_stay_start: .incbin "stay.so"
sm_stay_end: .byte 0

    .section .note.GNU-stack, "", %progbits
