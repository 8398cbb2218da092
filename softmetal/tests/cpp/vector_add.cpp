/* A program for metal-cpp: adds two vectors on the GPU and checks the sums. Nothing in it is
 * about softmetal; test_sm_cpp.c compiles it against softmetal/cpp and runs it. */
#define NS_PRIVATE_IMPLEMENTATION
#define MTL_PRIVATE_IMPLEMENTATION
#define CA_PRIVATE_IMPLEMENTATION
#include <Foundation/Foundation.hpp>
#include <Metal/Metal.hpp>
#include <QuartzCore/QuartzCore.hpp>

#include <cstdio>

static const char source[] = R"(
#include <metal_stdlib>
using namespace metal;
kernel void add(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                device float *sum [[buffer(2)]], constant float &factor [[buffer(3)]],
                uint i [[thread_position_in_grid]])
{
    sum[i] = factor * a[i] + b[i];
}
)";

static const NS::UInteger count = 1000;

static int fail(const char *what, NS::Error *error)
{
    std::printf("%s: %s\n", what, error ? error->localizedDescription()->utf8String() : "no error");
    return 1;
}

static int run(MTL::Device *device)
{
    NS::Error *error = nullptr;
    auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
    options->setMathMode(MTL::MathModeSafe);
    auto library = NS::TransferPtr(
        device->newLibrary(NS::String::string(source, NS::UTF8StringEncoding), options.get(), &error));
    if (!library) return fail("library", error);
    auto function = NS::TransferPtr(library->newFunction(NS::String::string("add", NS::UTF8StringEncoding)));
    auto pipeline = NS::TransferPtr(device->newComputePipelineState(function.get(), &error));
    if (!pipeline) return fail("pipeline", error);
    auto queue = NS::TransferPtr(device->newCommandQueue());

    NS::SharedPtr<MTL::Buffer> buffers[3];
    for (auto &buffer : buffers)
        buffer = NS::TransferPtr(device->newBuffer(count * sizeof(float), MTL::ResourceStorageModeShared));
    float *a = static_cast<float *>(buffers[0]->contents()), *b = static_cast<float *>(buffers[1]->contents());
    for (NS::UInteger i = 0; i < count; i++) {
        a[i] = static_cast<float>(i);
        b[i] = 0.5f;
    }

    MTL::CommandBuffer *commands = queue->commandBuffer();
    MTL::ComputeCommandEncoder *encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline.get());
    for (NS::UInteger i = 0; i < 3; i++) encoder->setBuffer(buffers[i].get(), 0, i);
    const float factor = 2.0f;
    encoder->setBytes(&factor, sizeof factor, 3);
    NS::UInteger width = pipeline->maxTotalThreadsPerThreadgroup();
    if (width > device->maxThreadsPerThreadgroup().width) width = device->maxThreadsPerThreadgroup().width;
    encoder->dispatchThreads(MTL::Size(count, 1, 1), MTL::Size::Make(width, 1, 1));
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    if (commands->status() != MTL::CommandBufferStatusCompleted) return fail("commands", commands->error());

    const float *sum = static_cast<const float *>(buffers[2]->contents());
    for (NS::UInteger i = 0; i < count; i++)
        if (sum[i] != 2.0f * a[i] + b[i]) {
            std::printf("sum[%lu] is %g\n", static_cast<unsigned long>(i), static_cast<double>(sum[i]));
            return 1;
        }
    std::printf("%lu sums are right\n", static_cast<unsigned long>(count));
    return 0;
}

int main()
{
    NS::AutoreleasePool *pool = NS::AutoreleasePool::alloc()->init();
    MTL::Device *device = MTL::CreateSystemDefaultDevice();
    const int code = device ? run(device) : fail("device", nullptr);
    if (device) device->release();
    pool->release();
    return code;
}
