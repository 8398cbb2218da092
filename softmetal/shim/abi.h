/* The interface between a compiled kernel and the runtime. It is included by the C code of
 * the library and by the C++ code of kernels, which has no libc headers: plain types only. */
#ifndef SOFTMETAL_ABI_H
#define SOFTMETAL_ABI_H

#define SM_ABI_VERSION 4

enum {
    SM_FLAG_DEVICE = 1, /* flags of a barrier: the memory that it orders */
    SM_FLAG_THREADGROUP = 2,
    SM_SLOT = 64, /* maximum bytes that a lane contributes to an exchange */
};

/* Values that all threads of a threadgroup share. */
typedef struct sm_group {
    unsigned origin[3];   /* thread_position_in_grid of its first thread */
    unsigned position[3]; /* threadgroup_position_in_grid */
    unsigned size[3];     /* threads_per_threadgroup: smaller at the edge of a grid */
    unsigned full[3];     /* dispatch_threads_per_threadgroup */
    unsigned grid[3];     /* threads_per_grid */
    unsigned groups[3];   /* threadgroups_per_grid */
    unsigned threads;
    void *const *buffers;
    void *const *locals;
} sm_group;

typedef struct sm_thread {
    unsigned position[3]; /* in the threadgroup */
    unsigned index;
    const sm_group *group;
} sm_thread;

/* One exchange: the values of the lanes of a simdgroup that reached the same call site. */
typedef struct sm_record {
    unsigned mask; /* bit i: lane i took part */
    unsigned lane; /* the calling lane; set for each caller */
    int done;      /* result is set: the first lane that returns from the exchange computes it for all */
    unsigned random; /* a random number for this exchange, for SM_MATH=fuzz */
    union {
        unsigned char bytes[SM_SLOT];
        double align;
    } slots[32], result[32];
} sm_record;

typedef struct sm_runtime {
    sm_record *(*exchange)(const void *value, unsigned size, unsigned line);
    void (*barrier)(unsigned flags, unsigned line);
    void (*simd_barrier)(unsigned flags, unsigned line);
    unsigned (*lane)(void);
    /* Used by checked builds and, the first, by builds with lockstep. */
    void (*access)(const void *address, unsigned long size, int kind, const void *pc); /* kind: SM_ACCESS_* */
    void (*arithmetic)(const char *what, const char *file, unsigned line, unsigned column);
    unsigned (*random)(void); /* SM_MATH=fuzz */
    /* Not used by checked builds. Returns the address of the current thread's pointer to the top of its second stack.
     * clang puts variables there that are indexed or whose address is taken. So an index outside an array, which is
     * harmless on a GPU if the value is unused, overwrites neither saved registers nor return addresses. */
    void **(*arrays)(void);
    /* Used by counted builds only. site: where the kernel called the operation; of an access: the number of the
     * instruction, or SM_SITE_*. */
    sm_record *(*exchange_from)(const void *value, unsigned size, const void *site);
    void (*barrier_from)(unsigned flags, unsigned line, const void *site);
    void (*simd_barrier_from)(unsigned flags, unsigned line, const void *site);
    void (*count_access)(const void *address, unsigned size, int kind, unsigned site); /* kind: SM_ACCESS_* */
} sm_runtime;

enum { SM_SITE_MATRIX = 0, SM_SITE_ATOMIC = 1, SM_SITE_FIRST = 2 /* the first site of an instruction */ };

enum { SM_ACCESS_READ = 0, SM_ACCESS_WRITE = 1, SM_ACCESS_ATOMIC = 2 };

typedef struct sm_module_argument {
    int kind; /* 0 buffer, 1 threadgroup */
    int index;
    int needed; /* 0: a function constant removes the argument */
    int constant; /* a buffer of the address space constant */
} sm_module_argument;

/* Builds with SM_COVER: for each basic block a flag (it ran), and two words: its address and its flags. */
typedef struct sm_cover {
    const unsigned char *ran, *ran_end;
    const unsigned long *blocks;
} sm_cover;

/* Builds with SM_COUNT: what each basic block costs (softmetal/count). The counters of the current thread are at
 * *thread, one for each block; the runtime changes it with the thread. */
typedef struct sm_count_module {
    unsigned blocks, classes, sites, rules;
    unsigned registers;    /* 16-bit registers live at the widest point */
    unsigned thread_bytes; /* arrays of a thread that are not in registers */
    unsigned **thread;
    const unsigned *operations; /* [blocks][classes] */
    const unsigned *applied;    /* [rules]: how often a rule applies in the text of the kernel */
} sm_count_module;

typedef struct sm_module {
    int version;
    void (*entry)(const sm_thread *thread);
    const sm_runtime **runtime;
    const sm_module_argument *arguments;
    int arguments_count;
    int max_threads; /* value of the attribute, or 0 */
    /* Indices of the buffers whose address the optimised code uses; NULL: it uses no buffer. */
    const unsigned char *used, *used_end;
    /* Not 0 after loading: the initial value of a program-scope constant called a function of lanes, or did undefined
     * arithmetic. */
    const int *misused;
} sm_module;

#endif
