/* void sm_switch(void **save, void *to): saves the current stack pointer in *save and
 * continues on the stack `to`. Callee-saved registers are stored on the stack. */
#if defined(__x86_64__)
    .text
    .globl sm_switch
    .hidden sm_switch
    .type sm_switch, @function
sm_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size sm_switch, . - sm_switch
#endif
    .section .note.GNU-stack, "", %progbits
