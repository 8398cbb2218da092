/* objc_msgSend: finds the method and jumps to it with every argument where the
 * caller put it. This works for any signature, because it changes no register that can
 * hold an argument and restores the stack: x86-64 rdi rsi rdx rcx r8 r9, rax (the number
 * of vector registers of a variadic call) and xmm0-7; aarch64 x0-x8 and q0-q7.
 *
 * On x86-64 a struct over 16 bytes is returned through a pointer in rdi, which moves
 * the receiver to rsi: objc_msgSend_stret. On aarch64 that pointer is x8 and the symbol
 * does not exist, as in Apple's runtime. A message to nil leaves the struct unchanged, also
 * as in Apple's runtime (its compiler clears it, a C program has to): sm_zero_struct.
 * objc_msgSend_fpret is for methods that return a long double, which is in st0.
 *
 * sm_zero_method is the method of nil and of unknown selectors: it clears every register
 * that can hold a result. */
#if defined(__x86_64__)

#define SEND(name, lookup, receiver, selector) \
    ".globl " name "\n"                        \
    ".type " name ", @function\n"              \
    ".p2align 4\n" name ":\n"                  \
    "    .cfi_startproc\n"                     \
    "    push %rbp\n"                          \
    "    .cfi_def_cfa_offset 16\n"             \
    "    .cfi_offset %rbp, -16\n"              \
    "    mov %rsp, %rbp\n"                     \
    "    .cfi_def_cfa_register %rbp\n"         \
    "    sub $192, %rsp\n"                     \
    "    mov %rdi, (%rsp)\n"                   \
    "    mov %rsi, 8(%rsp)\n"                  \
    "    mov %rdx, 16(%rsp)\n"                 \
    "    mov %rcx, 24(%rsp)\n"                 \
    "    mov %r8, 32(%rsp)\n"                  \
    "    mov %r9, 40(%rsp)\n"                  \
    "    mov %rax, 48(%rsp)\n"                 \
    "    movups %xmm0, 64(%rsp)\n"             \
    "    movups %xmm1, 80(%rsp)\n"             \
    "    movups %xmm2, 96(%rsp)\n"             \
    "    movups %xmm3, 112(%rsp)\n"            \
    "    movups %xmm4, 128(%rsp)\n"            \
    "    movups %xmm5, 144(%rsp)\n"            \
    "    movups %xmm6, 160(%rsp)\n"            \
    "    movups %xmm7, 176(%rsp)\n"            \
    "    mov " receiver ", %rdi\n"             \
    "    mov " selector ", %rsi\n"             \
    "    call " lookup "\n"                    \
    "    mov %rax, %r11\n"                     \
    "    mov (%rsp), %rdi\n"                   \
    "    mov 8(%rsp), %rsi\n"                  \
    "    mov 16(%rsp), %rdx\n"                 \
    "    mov 24(%rsp), %rcx\n"                 \
    "    mov 32(%rsp), %r8\n"                  \
    "    mov 40(%rsp), %r9\n"                  \
    "    mov 48(%rsp), %rax\n"                 \
    "    movups 64(%rsp), %xmm0\n"             \
    "    movups 80(%rsp), %xmm1\n"             \
    "    movups 96(%rsp), %xmm2\n"             \
    "    movups 112(%rsp), %xmm3\n"            \
    "    movups 128(%rsp), %xmm4\n"            \
    "    movups 144(%rsp), %xmm5\n"            \
    "    movups 160(%rsp), %xmm6\n"            \
    "    movups 176(%rsp), %xmm7\n"            \
    "    leave\n"                              \
    "    .cfi_def_cfa %rsp, 8\n"               \
    "    jmp *%r11\n"                          \
    "    .cfi_endproc\n"                       \
    ".size " name ", . - " name "\n"

/* The lookup reads its arguments from the stack, where they were saved: moving one
 * register into the other could overwrite the second. */
__asm__(".text\n" SEND("objc_msgSend", "sm_objc_lookup", "(%rsp)", "8(%rsp)"));
__asm__(".text\n" SEND("objc_msgSend_fpret", "sm_objc_lookup_real", "(%rsp)", "8(%rsp)"));
__asm__(".text\n" SEND("objc_msgSend_stret", "sm_objc_lookup_struct", "8(%rsp)", "16(%rsp)"));
__asm__(".text\n"
        ".globl sm_zero_method\n"
        ".hidden sm_zero_method\n"
        ".type sm_zero_method, @function\n"
        "sm_zero_method:\n"
        "    xor %eax, %eax\n"
        "    xor %edx, %edx\n"
        "    xorps %xmm0, %xmm0\n"
        "    xorps %xmm1, %xmm1\n"
        "    ret\n"
        ".size sm_zero_method, . - sm_zero_method\n"
        ".globl sm_zero_real\n"
        ".hidden sm_zero_real\n"
        ".type sm_zero_real, @function\n"
        "sm_zero_real:\n"
        "    fldz\n"
        "    ret\n"
        ".size sm_zero_real, . - sm_zero_real\n"
        ".globl sm_zero_struct\n"
        ".hidden sm_zero_struct\n"
        ".type sm_zero_struct, @function\n"
        "sm_zero_struct:\n"
        "    mov %rdi, %rax\n"
        "    ret\n"
        ".size sm_zero_struct, . - sm_zero_struct\n");

#elif defined(__aarch64__)

__asm__(".text\n"
        ".globl objc_msgSend\n"
        ".type objc_msgSend, %function\n"
        ".p2align 4\n"
        "objc_msgSend:\n"
        "    stp x29, x30, [sp, #-224]!\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n"
        "    stp x2, x3, [sp, #32]\n"
        "    stp x4, x5, [sp, #48]\n"
        "    stp x6, x7, [sp, #64]\n"
        "    str x8, [sp, #80]\n"
        "    stp q0, q1, [sp, #96]\n"
        "    stp q2, q3, [sp, #128]\n"
        "    stp q4, q5, [sp, #160]\n"
        "    stp q6, q7, [sp, #192]\n"
        "    bl sm_objc_lookup\n"
        "    mov x16, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x2, x3, [sp, #32]\n"
        "    ldp x4, x5, [sp, #48]\n"
        "    ldp x6, x7, [sp, #64]\n"
        "    ldr x8, [sp, #80]\n"
        "    ldp q0, q1, [sp, #96]\n"
        "    ldp q2, q3, [sp, #128]\n"
        "    ldp q4, q5, [sp, #160]\n"
        "    ldp q6, q7, [sp, #192]\n"
        "    ldp x29, x30, [sp], #224\n"
        "    br x16\n"
        ".size objc_msgSend, . - objc_msgSend\n"
        ".globl sm_zero_method\n"
        ".hidden sm_zero_method\n"
        ".type sm_zero_method, %function\n"
        "sm_zero_method:\n"
        "    mov x0, #0\n"
        "    mov x1, #0\n"
        "    movi v0.2d, #0\n"
        "    movi v1.2d, #0\n"
        "    movi v2.2d, #0\n"
        "    movi v3.2d, #0\n"
        "    ret\n"
        ".size sm_zero_method, . - sm_zero_method\n");

#else
#error "softmetal runs on x86-64 and aarch64"
#endif

__asm__(".section .note.GNU-stack,\"\"\n.text\n");
