/* Metal from plain C. The Objective-C runtime is loaded at run time; objc_msgSend is called
 * through typed pointers; selectors are looked up once. The code is the same for macOS and
 * for softmetal, a library with the same symbols.
 *
 * Objects are mica__id with manual reference counts: the caller releases the result of a
 * method whose name begins with new or alloc; any other result is valid until the
 * autorelease pool of the thread is popped. */
#ifndef MICA_BACKEND_METAL_OBJC_H
#define MICA_BACKEND_METAL_OBJC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef void *mica__id;
typedef void *mica__sel;

typedef struct mica__mtl_size {
    unsigned long width, height, depth;
} mica__mtl_size;

typedef struct mica__ns_range {
    unsigned long location, length;
} mica__ns_range;

/* clang-format off */
#define MICA__SELECTORS(X)                                                                             \
    /* Foundation */                                                                                   \
    X(alloc, "alloc") X(init, "init") X(count, "count") X(objectAtIndex, "objectAtIndex:")             \
    X(respondsToSelector, "respondsToSelector:")                                                       \
    X(initWithUTF8String, "initWithUTF8String:") X(UTF8String, "UTF8String") X(unsignedIntValue, "unsignedIntValue") \
    X(localizedDescription, "localizedDescription") X(code, "code")                                    \
    X(fileURLWithPath, "fileURLWithPath:")                                                             \
    /* device */                                                                                       \
    X(name, "name") X(supportsFamily, "supportsFamily:")                                               \
    X(maxThreadsPerThreadgroup, "maxThreadsPerThreadgroup")                                            \
    X(maxThreadgroupMemoryLength, "maxThreadgroupMemoryLength")                                        \
    X(maxBufferLength, "maxBufferLength")                                                              \
    X(recommendedMaxWorkingSetSize, "recommendedMaxWorkingSetSize")                                    \
    X(hasUnifiedMemory, "hasUnifiedMemory")                                                            \
    X(newCommandQueue, "newCommandQueue")                                                              \
    X(newFence, "newFence")                                                                            \
    X(newBufferWithBytesNoCopy, "newBufferWithBytesNoCopy:length:options:deallocator:")                \
    X(newLibraryWithSource, "newLibraryWithSource:options:error:")                                     \
    X(newPipelineWithDescriptor, "newComputePipelineStateWithDescriptor:options:reflection:error:")    \
    X(newBinaryArchive, "newBinaryArchiveWithDescriptor:error:")                                       \
    X(newResidencySet, "newResidencySetWithDescriptor:error:")                                         \
    /* compile options, library, constants, pipeline */                                                \
    X(setFastMathEnabled, "setFastMathEnabled:") X(setMathMode, "setMathMode:")                        \
    X(setMathFunctions, "setMathFloatingPointFunctions:")                                              \
    X(setLanguageVersion, "setLanguageVersion:")                                                       \
    X(newFunctionWithName, "newFunctionWithName:")                                                     \
    X(newFunctionWithConstants, "newFunctionWithName:constantValues:error:")                           \
    X(setConstantValue, "setConstantValue:type:atIndex:")                                              \
    X(maxTotalThreadsPerThreadgroup, "maxTotalThreadsPerThreadgroup")                                  \
    X(threadExecutionWidth, "threadExecutionWidth")                                                    \
    X(setComputeFunction, "setComputeFunction:") X(setBinaryArchives, "setBinaryArchives:")            \
    X(setUrl, "setUrl:") X(serializeToURL, "serializeToURL:error:")                                    \
    X(addComputePipeline, "addComputePipelineFunctionsWithDescriptor:error:")                          \
    X(arrayWithObject, "arrayWithObject:")                                                             \
    /* queue, command buffer */                                                                        \
    X(commandBuffer, "commandBufferWithUnretainedReferences")                                          \
    X(computeEncoder, "computeCommandEncoderWithDispatchType:")                                        \
    X(commit, "commit") X(waitUntilCompleted, "waitUntilCompleted") X(status, "status")                \
    X(error, "error") X(GPUStartTime, "GPUStartTime") X(GPUEndTime, "GPUEndTime")                      \
    X(setLabel, "setLabel:") X(addResidencySet, "addResidencySet:")                                    \
    X(removeResidencySet, "removeResidencySet:")                                                       \
    /* encoder */                                                                                      \
    X(setPipeline, "setComputePipelineState:") X(setBuffer, "setBuffer:offset:atIndex:")               \
    X(setBytes, "setBytes:length:atIndex:")                                                            \
    X(dispatch, "dispatchThreadgroups:threadsPerThreadgroup:")                                         \
    X(memoryBarrier, "memoryBarrierWithScope:")                                                        \
    X(waitForFence, "waitForFence:") X(updateFence, "updateFence:")                                    \
    X(endEncoding, "endEncoding")                                                                      \
    /* counter samples */                                                                              \
    X(supportsCounterSampling, "supportsCounterSampling:") X(counterSets, "counterSets")               \
    X(newCounterSampleBuffer, "newCounterSampleBufferWithDescriptor:error:")                           \
    X(setCounterSet, "setCounterSet:") X(setStorageMode, "setStorageMode:")                            \
    X(setSampleCount, "setSampleCount:") X(sampleTimestamps, "sampleTimestamps:gpuTimestamp:")         \
    X(computePassDescriptor, "computePassDescriptor") X(setDispatchType, "setDispatchType:")           \
    X(sampleBufferAttachments, "sampleBufferAttachments")                                              \
    X(objectAtIndexedSubscript, "objectAtIndexedSubscript:") X(setSampleBuffer, "setSampleBuffer:")    \
    X(setStartOfEncoder, "setStartOfEncoderSampleIndex:")                                              \
    X(setEndOfEncoder, "setEndOfEncoderSampleIndex:")                                                  \
    X(computeEncoderDescribed, "computeCommandEncoderWithDescriptor:")                                 \
    X(resolveCounterRange, "resolveCounterRange:") X(bytes, "bytes") X(length, "length")               \
    X(pushDebugGroup, "pushDebugGroup:") X(popDebugGroup, "popDebugGroup")                             \
    /* residency set */                                                                                \
    X(addAllocation, "addAllocation:") X(removeAllocation, "removeAllocation:")                        \
    X(requestResidency, "requestResidency") X(setInitialCapacity, "setInitialCapacity:")               \
    /* capture */                                                                                      \
    X(sharedCaptureManager, "sharedCaptureManager") X(setCaptureObject, "setCaptureObject:")           \
    X(setDestination, "setDestination:") X(setOutputURL, "setOutputURL:")                              \
    X(startCapture, "startCaptureWithDescriptor:error:") X(stopCapture, "stopCapture")
/* clang-format on */

typedef struct mica__objc_table {
    void (*send)(void);         /* objc_msgSend; cast to the type of the method          */
    void (*send_stret)(void);   /* for results of more than 16 bytes; on arm64 equal to send */
    mica__id (*get_class)(const char *name);
    void *(*pool_push)(void);
    void (*pool_pop)(void *pool);
    mica__id (*retain)(mica__id object);
    void (*release)(mica__id object);
    mica__id (*default_device)(void);
    mica__id (*all_devices)(void); /* NULL: only the default device is available        */
    bool software;              /* the library is softmetal                              */
    struct {
#define X(field, text) mica__sel field;
        MICA__SELECTORS(X)
#undef X
    } sel;
} mica__objc_table;

extern mica__objc_table mica__objc;

/* Sends a message; R is the type of the result, A to D those of the arguments. */
#define MICA__SEND0(R, object, field) (((R(*)(mica__id, mica__sel))mica__objc.send)((object), mica__objc.sel.field))
#define MICA__SEND1(R, object, field, A, a) \
    (((R(*)(mica__id, mica__sel, A))mica__objc.send)((object), mica__objc.sel.field, (a)))
#define MICA__SEND2(R, object, field, A, a, B, b) \
    (((R(*)(mica__id, mica__sel, A, B))mica__objc.send)((object), mica__objc.sel.field, (a), (b)))
#define MICA__SEND3(R, object, field, A, a, B, b, C, c) \
    (((R(*)(mica__id, mica__sel, A, B, C))mica__objc.send)((object), mica__objc.sel.field, (a), (b), (c)))
#define MICA__SEND4(R, object, field, A, a, B, b, C, c, D, d) \
    (((R(*)(mica__id, mica__sel, A, B, C, D))mica__objc.send)((object), mica__objc.sel.field, (a), (b), (c), (d)))
#define MICA__RESPONDS(object, field) MICA__SEND1(bool, object, respondsToSelector, mica__sel, mica__objc.sel.field)

/* Loads the runtime and Metal, once. Returns NULL, or why they cannot be loaded. Thread-safe. */
const char *mica__objc_load(void);

/* An NSString that the caller releases; NULL: out of memory. */
mica__id mica__objc_string(const char *text);
/* Copies the description of an NSError to a buffer; "unknown error" for nil. */
const char *mica__objc_error_text(mica__id error, char *buffer, size_t cap);

#endif
