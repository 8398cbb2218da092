/* The Metal classes that compute programs in C++ use, with the names of metal-cpp
 * (Foundation.hpp). SELECTORS.md lists what else the objects understand: a method that is
 * missing here is one more line. */
#ifndef SOFTMETAL_CPP_METAL_HPP
#define SOFTMETAL_CPP_METAL_HPP

#include "../Foundation/Foundation.hpp"

extern "C" void *MTLCreateSystemDefaultDevice(void);
extern "C" void *MTLCopyAllDevices(void);

namespace MTL {

struct Size {
    NS::UInteger width, height, depth;
    Size() = default;
    Size(NS::UInteger x, NS::UInteger y, NS::UInteger z) : width(x), height(y), depth(z) {}
    static Size Make(NS::UInteger x, NS::UInteger y, NS::UInteger z) { return Size(x, y, z); }
};

using ResourceOptions = NS::UInteger;
constexpr ResourceOptions ResourceStorageModeShared = 0, ResourceStorageModeManaged = 16,
                          ResourceStorageModePrivate = 32, ResourceHazardTrackingModeUntracked = 256;
enum LanguageVersion : NS::UInteger {
    LanguageVersion2_4 = 0x20004,
    LanguageVersion3_0 = 0x30000,
    LanguageVersion3_1 = 0x30001,
    LanguageVersion3_2 = 0x30002
};
enum MathMode : NS::Integer { MathModeSafe = 0, MathModeRelaxed = 1, MathModeFast = 2 };
enum MathFloatingPointFunctions : NS::Integer {
    MathFloatingPointFunctionsFast = 0,
    MathFloatingPointFunctionsPrecise = 1
};
enum CommandBufferStatus : NS::UInteger {
    CommandBufferStatusNotEnqueued = 0,
    CommandBufferStatusEnqueued = 1,
    CommandBufferStatusCommitted = 2,
    CommandBufferStatusScheduled = 3,
    CommandBufferStatusCompleted = 4,
    CommandBufferStatusError = 5
};
enum DispatchType : NS::UInteger { DispatchTypeSerial = 0, DispatchTypeConcurrent = 1 };
enum BarrierScope : NS::UInteger { BarrierScopeBuffers = 1 };
enum GPUFamily : NS::Integer { GPUFamilyApple7 = 1007, GPUFamilyApple8 = 1008, GPUFamilyApple9 = 1009 };

template <class Class> class Labelled : public NS::Referencing<Class, NS::Object> {
public:
    NS::String *label() const { return softmetal::send<NS::String *>(this, "label"); }
    void setLabel(const NS::String *text) { softmetal::send<void>(this, "setLabel:", text); }
};

class Buffer : public Labelled<Buffer> {
public:
    void *contents() { return softmetal::send<void *>(this, "contents"); }
    NS::UInteger length() const { return softmetal::send<NS::UInteger>(this, "length"); }
    void didModifyRange(NS::Range range) { softmetal::send<void>(this, "didModifyRange:", range); }
};

class CompileOptions : public NS::Referencing<CompileOptions, NS::Object> {
public:
    static CompileOptions *alloc() { return softmetal::make<CompileOptions>("MTLCompileOptions"); }
    CompileOptions *init() { return softmetal::send<CompileOptions *>(this, "init"); }
    void setFastMathEnabled(bool fast) { softmetal::send<void>(this, "setFastMathEnabled:", fast); }
    void setMathMode(MathMode mode) { softmetal::send<void>(this, "setMathMode:", mode); }
    void setMathFloatingPointFunctions(MathFloatingPointFunctions functions)
    {
        softmetal::send<void>(this, "setMathFloatingPointFunctions:", functions);
    }
    void setLanguageVersion(LanguageVersion version) { softmetal::send<void>(this, "setLanguageVersion:", version); }
    void setPreprocessorMacros(const NS::Dictionary *macros)
    {
        softmetal::send<void>(this, "setPreprocessorMacros:", macros);
    }
};

class Function : public Labelled<Function> {
public:
    NS::String *name() const { return softmetal::send<NS::String *>(this, "name"); }
};

class Library : public Labelled<Library> {
public:
    Function *newFunction(const NS::String *name)
    {
        return softmetal::send<Function *>(this, "newFunctionWithName:", name);
    }
    NS::Array *functionNames() const { return softmetal::send<NS::Array *>(this, "functionNames"); }
};

class ComputePipelineState : public NS::Referencing<ComputePipelineState, NS::Object> {
public:
    NS::UInteger maxTotalThreadsPerThreadgroup() const
    {
        return softmetal::send<NS::UInteger>(this, "maxTotalThreadsPerThreadgroup");
    }
    NS::UInteger threadExecutionWidth() const { return softmetal::send<NS::UInteger>(this, "threadExecutionWidth"); }
    NS::UInteger staticThreadgroupMemoryLength() const
    {
        return softmetal::send<NS::UInteger>(this, "staticThreadgroupMemoryLength");
    }
};

class ComputeCommandEncoder : public Labelled<ComputeCommandEncoder> {
public:
    void setComputePipelineState(const ComputePipelineState *state)
    {
        softmetal::send<void>(this, "setComputePipelineState:", state);
    }
    void setBuffer(const Buffer *buffer, NS::UInteger offset, NS::UInteger index)
    {
        softmetal::send<void>(this, "setBuffer:offset:atIndex:", buffer, offset, index);
    }
    void setBytes(const void *bytes, NS::UInteger length, NS::UInteger index)
    {
        softmetal::send<void>(this, "setBytes:length:atIndex:", bytes, length, index);
    }
    void setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index)
    {
        softmetal::send<void>(this, "setThreadgroupMemoryLength:atIndex:", length, index);
    }
    void dispatchThreads(Size threads, Size group)
    {
        softmetal::send<void>(this, "dispatchThreads:threadsPerThreadgroup:", threads, group);
    }
    void dispatchThreadgroups(Size groups, Size group)
    {
        softmetal::send<void>(this, "dispatchThreadgroups:threadsPerThreadgroup:", groups, group);
    }
    void memoryBarrier(BarrierScope scope) { softmetal::send<void>(this, "memoryBarrierWithScope:", scope); }
    void endEncoding() { softmetal::send<void>(this, "endEncoding"); }
};

class CommandBuffer : public Labelled<CommandBuffer> {
public:
    ComputeCommandEncoder *computeCommandEncoder()
    {
        return softmetal::send<ComputeCommandEncoder *>(this, "computeCommandEncoder");
    }
    ComputeCommandEncoder *computeCommandEncoder(DispatchType type)
    {
        return softmetal::send<ComputeCommandEncoder *>(this, "computeCommandEncoderWithDispatchType:", type);
    }
    void commit() { softmetal::send<void>(this, "commit"); }
    void waitUntilCompleted() { softmetal::send<void>(this, "waitUntilCompleted"); }
    CommandBufferStatus status() const { return softmetal::send<CommandBufferStatus>(this, "status"); }
    NS::Error *error() const { return softmetal::send<NS::Error *>(this, "error"); }
    double GPUStartTime() const { return softmetal::send<double>(this, "GPUStartTime"); }
    double GPUEndTime() const { return softmetal::send<double>(this, "GPUEndTime"); }
};

class CommandQueue : public Labelled<CommandQueue> {
public:
    CommandBuffer *commandBuffer() { return softmetal::send<CommandBuffer *>(this, "commandBuffer"); }
};

class Device : public NS::Referencing<Device, NS::Object> {
public:
    NS::String *name() const { return softmetal::send<NS::String *>(this, "name"); }
    Size maxThreadsPerThreadgroup() const { return softmetal::send<Size>(this, "maxThreadsPerThreadgroup"); }
    bool hasUnifiedMemory() const { return softmetal::send<bool>(this, "hasUnifiedMemory"); }
    bool supportsFamily(GPUFamily family) { return softmetal::send<bool>(this, "supportsFamily:", family); }
    std::uint64_t recommendedMaxWorkingSetSize() const
    {
        return softmetal::send<std::uint64_t>(this, "recommendedMaxWorkingSetSize");
    }
    CommandQueue *newCommandQueue() { return softmetal::send<CommandQueue *>(this, "newCommandQueue"); }
    Buffer *newBuffer(NS::UInteger length, ResourceOptions options)
    {
        return softmetal::send<Buffer *>(this, "newBufferWithLength:options:", length, options);
    }
    Buffer *newBuffer(const void *bytes, NS::UInteger length, ResourceOptions options)
    {
        return softmetal::send<Buffer *>(this, "newBufferWithBytes:length:options:", bytes, length, options);
    }
    Library *newLibrary(const NS::String *source, const CompileOptions *options, NS::Error **error)
    {
        return softmetal::send<Library *>(this, "newLibraryWithSource:options:error:", source, options, error);
    }
    Library *newDefaultLibrary() { return softmetal::send<Library *>(this, "newDefaultLibrary"); }
    ComputePipelineState *newComputePipelineState(const Function *function, NS::Error **error)
    {
        return softmetal::send<ComputePipelineState *>(this, "newComputePipelineStateWithFunction:error:", function,
                                                       error);
    }
};

inline Device *CreateSystemDefaultDevice() { return static_cast<Device *>(MTLCreateSystemDefaultDevice()); }
inline NS::Array *CopyAllDevices() { return static_cast<NS::Array *>(MTLCopyAllDevices()); }

} // namespace MTL

#endif
