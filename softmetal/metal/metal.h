/* The Metal objects as C structs, shared by the files of this folder. Each mtl_x.c
 * owns the classes that it defines; this header declares what other files need of them.
 *
 * Encoding only records commands. The device's thread (mtl_execute.c) runs them later,
 * in an order that SM_EXEC chooses among those that Metal allows. */
#ifndef SOFTMETAL_METAL_H
#define SOFTMETAL_METAL_H

#include "core.h"
#include "objc/objc_runtime.h"

typedef struct mtl_size {
    unsigned long width, height, depth;
} mtl_size;

typedef struct ns_range {
    unsigned long location, length;
} ns_range;

enum {
    MTL_SET_BYTES_LIMIT = 4096,
    MTL_THREADGROUP_MULTIPLE = 16,
    MTL_CONSTANT_ALIGNMENT = 4, /* of the offset of a buffer in constant memory, on GPUs of Apple */
    MTL_QUEUE_BUFFERS = 64
};

/* ---- errors ---------------------------------------------------------------------- */

enum {
    MTL_LIBRARY_UNSUPPORTED = 1,
    MTL_LIBRARY_INTERNAL = 2,
    MTL_LIBRARY_COMPILE_FAILURE = 3,
    MTL_FUNCTION_NOT_FOUND = 5
};
typedef enum mtl_command_error {
    MTL_ERROR_NONE = 0,
    MTL_ERROR_INTERNAL = 1,
    MTL_ERROR_TIMEOUT = 2,
    MTL_ERROR_PAGE_FAULT = 3,
    MTL_ERROR_ACCESS_REVOKED = 4,
    MTL_ERROR_NOT_PERMITTED = 7,
    MTL_ERROR_OUT_OF_MEMORY = 8,
    MTL_ERROR_INVALID_RESOURCE = 9,
    MTL_ERROR_DEVICE_REMOVED = 11,
} mtl_command_error;

extern sm_string sm_library_domain, sm_command_domain, sm_archive_domain, sm_capture_domain, sm_counter_domain;

/* ---- faults (mtl_fault.c) ---------------------------------------------------------- */

typedef enum sm_fault_kind {
    SM_FAULT_DEVICE,
    SM_FAULT_COMPILE,
    SM_FAULT_PIPELINE,
    SM_FAULT_BUFFER,
    SM_FAULT_QUEUE,
    SM_FAULT_FENCE,
    SM_FAULT_COMMAND_BUFFER,
    SM_FAULT_COMMAND,
    SM_FAULT_KINDS
} sm_fault_kind;

/* Counts one more event of the kind; returns whether it must fail. *code: the error of a command buffer. */
bool sm_fault(sm_fault_kind kind, mtl_command_error *code);
/* Returns whether the device has been removed. */
bool sm_device_removed(void);

/* ---- the device (mtl_device.c) ----------------------------------------------------- */

extern sm_object sm_the_device;
/* Adds to or subtracts from currentAllocatedSize; false: over the limit. */
bool sm_device_reserve(size_t bytes);
void sm_device_unreserve(size_t bytes);
id sm_device_of(id self, SEL selector);

/* Methods of the device that create objects, each in the file that defines the class. */
id sm_device_queue(id self, SEL s);
id sm_device_queue_of(id self, SEL s, unsigned long limit);
id sm_device_buffer(id self, SEL s, unsigned long length, unsigned long options);
id sm_device_buffer_of(id self, SEL s, const void *bytes, unsigned long length, unsigned long options);
id sm_device_buffer_around(id self, SEL s, void *bytes, unsigned long length, unsigned long options, const sm_block *b);
ns_range sm_device_heap_size(id self, SEL s, unsigned long length, unsigned long options);
id sm_device_heap(id self, SEL s, id descriptor);
id sm_device_event(id self, SEL s);
id sm_device_shared_event(id self, SEL s);
id sm_device_fence(id self, SEL s);
id sm_device_samples(id self, SEL s, id descriptor, id *error);
id sm_device_counter_sets(id self, SEL s);
void sm_device_timestamps(id self, SEL s, uint64_t *cpu, uint64_t *gpu);
id sm_device_residency_set(id self, SEL s, id descriptor, id *error);
id sm_device_archive(id self, SEL s, id descriptor, id *error);
void sm_library_later(id device, SEL s, id source, id options, const sm_block *handler);
void sm_device_pipeline_later(id self, SEL s, id function, const sm_block *handler);
id sm_library_from_compiled(id device, SEL s, id what, id *error);
id sm_library_default(id device, SEL s);
id sm_device_pipeline(id self, SEL s, id function, id *error);
id sm_device_pipeline_reflected(id self, SEL s, id function, unsigned long options, id *reflection, id *error);
id sm_device_pipeline_described(id self, SEL s, id descriptor, unsigned long options, id *reflection, id *error);

/* Many classes have a label as their first member. */
typedef struct mtl_labelled {
    sm_object object;
    sm_string *label;
} mtl_labelled;

id sm_label(mtl_labelled *self, SEL selector);
void sm_set_label(mtl_labelled *self, SEL selector, id label);
void sm_labelled_destroy(id self);
id sm_copy_labelled(const void *object); /* sm_copy; also retains the label */
const char *sm_label_text(const mtl_labelled *self); /* "" if there is no label */
#define SM_LABEL_METHODS SM_METHOD("label", sm_label), SM_METHOD("setLabel:", sm_set_label)

/* ---- resources (mtl_resource.c) ---------------------------------------------------- */

typedef struct mtl_heap mtl_heap;

typedef struct mtl_buffer {
    mtl_labelled base;
    unsigned long options;
    unsigned char *address;
    size_t length, mapped; /* mapped: bytes from sm_memory_open, 0 if the memory has another owner */
    mtl_heap *heap;
    size_t heap_offset;
    sm_block *deallocator; /* void (^)(void *pointer, NSUInteger length) */
    uint64_t serial;       /* unique among the resources of the process */
} mtl_buffer;

/* Returns whether the buffer with this serial still exists. Unretained references can outlive it. */
bool sm_buffer_alive(uint64_t serial);
/* Returns whether Metal orders the passes that use the buffer. */
bool sm_buffer_tracked(const mtl_buffer *buffer);
id sm_buffer_in_heap(const char *call, mtl_heap *heap, unsigned char *memory, size_t offset, size_t length,
                     unsigned long options);
void sm_heap_free_range(mtl_heap *heap, size_t offset, size_t length); /* also releases the heap once */
id sm_buffer_new(const char *call, unsigned long length, unsigned long options, const void *bytes);

/* ---- libraries and pipelines -------------------------------------------------------- */

typedef struct mtl_library {
    mtl_labelled base;
    sm_library *core;
    uint64_t hash; /* hash of the text and its options, for archives */
} mtl_library;

typedef struct mtl_constant {
    char *name; /* NULL: identified by index */
    int index, width;
    sm_type type;
    unsigned char value[32];
} mtl_constant;

typedef struct mtl_constant_values {
    sm_object object;
    mtl_constant *values;
    int count, capacity;
} mtl_constant_values;

typedef struct mtl_function {
    mtl_labelled base;
    mtl_library *library;
    sm_string *name;
    sm_string *called;              /* value of its property name: name, or the name of its specialisation */
    mtl_constant_values *constants; /* a copy, or NULL */
} mtl_function;

/* MTLFunctionDescriptor: the properties of a requested function. */
typedef struct mtl_function_descriptor {
    sm_object object;
    id name, special_name, values, archives;
    unsigned long options;
} mtl_function_descriptor;

typedef struct mtl_pipeline {
    mtl_labelled base;
    mtl_function *function;
    sm_kernel *kernel;
    sm_kernel_facts facts;
    sm_function description;
} mtl_pipeline;

id sm_library_from_source(id device, SEL selector, id source, id options, id *error);
uint64_t sm_function_hash(const mtl_function *function);
id sm_pipeline_descriptor_function(id descriptor); /* nil: no descriptor, or no function set */
/* mtl_archive.c: returns whether one of the archives contains the function. */
bool sm_archives_have(id archives, const mtl_function *function);

/* ---- events ------------------------------------------------------------------------- */

typedef struct mtl_event {
    mtl_labelled base;
    bool shared;
    uint64_t value; /* guarded by the lock of mtl_execute.c */
    struct mtl_notice *notices;
} mtl_event;

typedef struct mtl_fence {
    mtl_labelled base;
    atomic_bool updated; /* an encoder updates it, or has updated it */
} mtl_fence;

/* Call with the lock held. Passes the notifications that are due to the handler thread. */
void sm_event_notify(mtl_event *event);

/* ---- counters ------------------------------------------------------------------------- */

typedef struct mtl_samples {
    mtl_labelled base;
    unsigned long count;
    uint64_t *values;
} mtl_samples;

/* ---- commands (mtl_command_buffer.c, mtl_compute.c, mtl_blit.c) ------------------------ */

typedef enum mtl_command_kind {
    MTL_COMMAND_DISPATCH,
    MTL_COMMAND_INDIRECT, /* a dispatch whose threadgroup counts are read from a buffer */
    MTL_COMMAND_COPY,
    MTL_COMMAND_FILL,
    MTL_COMMAND_BARRIER,
} mtl_command_kind;

typedef struct mtl_command {
    mtl_command_kind kind;
    union {
        struct {
            mtl_pipeline *pipeline; /* retained by the command buffer */
            sm_dispatch dispatch;
            const unsigned char *indirect;
        } run;
        struct {
            unsigned char *to;
            const unsigned char *from; /* NULL: fill */
            size_t length;
            unsigned char value;
        } move;
        struct {
            const void *address; /* NULL: everything */
            size_t length;
        } barrier;
    } as;
} mtl_command;

typedef enum mtl_pass_kind { MTL_PASS_COMPUTE, MTL_PASS_BLIT, MTL_PASS_WAIT, MTL_PASS_SIGNAL } mtl_pass_kind;

/* A fence of a pass, or a barrier between passes of a queue. */
typedef struct mtl_pass_fence {
    mtl_fence *fence;
    bool update; /* false: wait */
} mtl_pass_fence;

typedef struct mtl_pass {
    mtl_pass_kind kind;
    bool concurrent, ran;
    sm_string *label;
    mtl_command *commands;
    size_t count, capacity;
    mtl_event *event; /* for MTL_PASS_WAIT and _SIGNAL */
    uint64_t value;
    mtl_pass_fence *fences;
    size_t fences_count, fences_capacity;
    mtl_buffer **tracked; /* buffers whose hazards Metal tracks between passes */
    size_t tracked_count, tracked_capacity;
    mtl_samples *samples;
    unsigned long sample_start, sample_end; /* ~0ul: no sample */
} mtl_pass;

/* mtl_counters.c; false: the object is not an MTLComputePassDescriptor. */
bool sm_pass_descriptor_concurrent(id descriptor, bool *concurrent);
void sm_pass_descriptor_apply(id descriptor, mtl_pass *pass);

typedef struct mtl_queue {
    mtl_labelled base;
    unsigned long limit; /* maximum number of command buffers that have not completed */
    unsigned long open;  /* current number of them; guarded by the lock of mtl_execute.c */
    sm_array *residency;
} mtl_queue;

typedef enum mtl_status {
    MTL_NOT_ENQUEUED,
    MTL_ENQUEUED,
    MTL_COMMITTED,
    MTL_SCHEDULED,
    MTL_COMPLETED,
    MTL_FAILED,
} mtl_status;

typedef struct mtl_used {
    mtl_buffer *buffer;
    uint64_t serial;
} mtl_used;

typedef struct mtl_bytes mtl_bytes; /* memory of setBytes, a linked list */

typedef struct mtl_command_buffer {
    mtl_labelled base;
    mtl_queue *queue;
    bool retained, enqueued, committed, handled, counted;
    mtl_status status; /* once committed, this and the following fields are guarded by the lock of mtl_execute.c */
    sm_error *error;
    char *problem; /* the reason of the failure, until it has completed */
    mtl_command_error problem_code;
    double start, end, kernel_start, kernel_end;
    uint64_t serial;
    mtl_pass *passes;
    size_t count, capacity, done; /* done: number of passes that have run */
    id encoder;                   /* the open encoder, not retained, or NULL */
    mtl_used *used;
    size_t used_count, used_capacity;
    sm_array *kept; /* pipelines, events and buffers that must live until it has run */
    mtl_bytes *bytes;
    char *invalid; /* the first broken rule while encoding, or NULL */
    sm_block **scheduled, **completed;
    size_t scheduled_count, scheduled_capacity, completed_count, completed_capacity;
    bool is_faulty; /* fault injection: fails with fault */
    mtl_command_error fault;
    struct mtl_command_buffer *next; /* next in the list of mtl_execute.c */
} mtl_command_buffer;

/* Records the first broken rule; the command buffer will fail with this error message. */
void sm_invalid(mtl_command_buffer *buffer, const char *format, ...) SM_PRINTF(2);
/* Makes room for one more element of *items. Out of memory: returns false and invalidates the buffer. */
bool sm_room_for(mtl_command_buffer *buffer, void *items, size_t count, size_t *capacity, size_t size);
mtl_pass *sm_pass_add(mtl_command_buffer *buffer, mtl_pass_kind kind);
mtl_command *sm_command_add(mtl_command_buffer *buffer, size_t pass, mtl_command_kind kind);
/* Records that the command buffer uses the resource: retains it, or at least stores its serial. */
void sm_use(mtl_command_buffer *buffer, size_t pass, mtl_buffer *resource);
void sm_keep(mtl_command_buffer *buffer, id object);
void *sm_bytes_add(mtl_command_buffer *buffer, const void *bytes, size_t length);

/* The common first members of compute and blit encoders. */
typedef struct mtl_encoder {
    sm_object object;
    mtl_command_buffer *buffer;
    size_t pass;
    bool ended;
    const char *name; /* "compute encoder", for messages */
} mtl_encoder;

bool sm_encoder_open(mtl_encoder *encoder, SEL selector); /* false, with an error message: the encoder has ended */
/* +1: an encoder with a new pass at the end of the buffer. */
id sm_encoder_begin(const sm_class *class, mtl_command_buffer *buffer, mtl_pass_kind kind, const char *name);
id sm_compute_encoder_new(mtl_command_buffer *buffer, bool concurrent);
id sm_blit_encoder_new(mtl_command_buffer *buffer);
/* Checks that offset and length are inside the buffer; if not, the command buffer becomes invalid. */
bool sm_check_range(mtl_encoder *encoder, SEL selector, mtl_buffer *buffer, size_t offset, size_t length);

/* ---- capture (mtl_capture.c) ---------------------------------------------------------------- */

typedef struct sm_capture_request {
    id what; /* a queue or the device */
    const char *path;
    long destination;
} sm_capture_request;

/* mtl_archive.c; false: the object is not an MTLCaptureDescriptor. */
bool sm_capture_asked(id descriptor, sm_capture_request *request);
/* Records a committed command buffer. */
void sm_capture_note(const mtl_command_buffer *buffer);

/* ---- execution (mtl_execute.c) ---------------------------------------------------------- */

void sm_lock(void);
void sm_unlock(void);
/* Call with the lock held. Wakes the threads that wait for a change of state. */
void sm_wake(void);
/* Call with the lock held. Waits for a change until the deadline (seconds of sm_now; 0: none). False: timed out. */
bool sm_wait_change(double deadline);
/* Call with the lock held. A thread waits for results, so the late mode has to run. */
void sm_demand(void);
double sm_now(void);
void sm_enqueue(mtl_command_buffer *buffer);
void sm_submit(mtl_command_buffer *buffer);
bool sm_on_handler_thread(void);
bool sm_shuffled(void);
uint64_t sm_random(void); /* for shuffles; from SM_SEED */
/* mtl_run.c: runs one pass. Returns NULL, or an error message (to be freed) with its code. */
char *sm_run_pass(mtl_pass *pass, mtl_command_error *code);

/* ---- handlers (mtl_handlers.c): called on a thread of their own, later ---------------------- */

void *sm_handler_main(void *nothing);
/* Call these three with the lock held; they take over a reference to the block. */
void sm_call_handler(sm_block *block, mtl_command_buffer *buffer);
void sm_call_handled(mtl_command_buffer *buffer); /* marks the buffer as handled, after all its handlers */
void sm_call_notice(sm_block *block, mtl_event *event, uint64_t value);
/* Queues the call handler(object, error) for the handler thread. */
void sm_hand_over(const sm_block *handler, id object, id error);

#endif
