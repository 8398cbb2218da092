/* What a compiled kernel and the runtime know of each other. Read by the C of the
 * library and by the C++ of kernels, which has no libc header: plain types only. */
#ifndef SOFTMETAL_ABI_H
#define SOFTMETAL_ABI_H

#define SM_ABI_VERSION 3

enum {
    SM_FLAG_DEVICE = 1, /* of barriers: which memory they order */
    SM_FLAG_THREADGROUP = 2,
    SM_SLOT = 64, /* bytes a lane can put into an exchange */
};

/* The same for all threads of a threadgroup. */
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

/* What the lanes of a simdgroup that came to one place gave each other. */
typedef struct sm_record {
    unsigned mask; /* who took part */
    unsigned lane; /* who asks: filled in for the caller */
    int done;      /* result is filled in: the first lane to see the record computes it for all */
    unsigned random; /* a number of this exchange, for SM_MATH=fuzz */
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
    /* The checked build only. */
    void (*access)(const void *address, unsigned long size, int kind, const void *pc); /* kind: SM_ACCESS_* */
    void (*arithmetic)(const char *what, const char *file, unsigned line, unsigned column);
    unsigned (*random)(void); /* SM_MATH=fuzz */
    /* Not in the checked build: where the current thread keeps the top of its second stack. clang puts there what is
     * indexed or pointed to, so that an index outside of an array (harmless on a GPU when nobody uses what it hits)
     * overwrites neither saved registers nor return addresses. */
    void **(*arrays)(void);
} sm_runtime;

enum { SM_ACCESS_READ = 0, SM_ACCESS_WRITE = 1, SM_ACCESS_ATOMIC = 2 };

typedef struct sm_module_argument {
    int kind; /* 0 buffer, 1 threadgroup */
    int index;
    int needed; /* 0: a function constant says it is not there */
} sm_module_argument;

/* A build with SM_COVER: for each block of code whether it ran, and two words, its address and flags. */
typedef struct sm_cover {
    const unsigned char *ran, *ran_end;
    const unsigned long *blocks;
} sm_cover;

typedef struct sm_module {
    int version;
    void (*entry)(const sm_thread *thread);
    const sm_runtime **runtime;
    const sm_module_argument *arguments;
    int arguments_count;
    int max_threads; /* of the attribute, or 0 */
    /* Indices of the buffers whose address is used by what is left after optimisation; NULL: by none. */
    const unsigned char *used, *used_end;
} sm_module;

#endif
