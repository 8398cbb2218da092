/* How kernels are compiled: each shader once by the front end; with IEEE arithmetic and the precise
 * functions, also where a text names no variant. SM_MATH=fuzz of softmetal makes fast functions inexact, so
 * a missing option or namespace gives wrong numbers here. */
#include <math.h>
#include <stdlib.h>

#include "backend/metal/shaders.h"
#include "metal_kit.h"

enum { N = 64 };

/* The functions that are less exact in namespace fast (Metal Shading Language Specification, ULP tables). */
static const char *const with_variants[] = {"acos",  "acosh", "asin",   "asinh", "atan",  "atan2", "atanh",  "cos",
                                            "cosh",  "cospi", "divide", "exp",   "exp10", "exp2",  "fmod",   "log",
                                            "log10", "log2",  "pow",    "powr",  "rsqrt", "sin",   "sincos", "sinh",
                                            "sinpi", "sqrt",  "tan",    "tanh",  "tanpi"};

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':' ||
           c == '.';
}

/* Deletes comments, which may mention functions. */
static void blank_comments(char *text)
{
    for (char *at = strstr(text, "/*"); at; at = strstr(at, "/*")) {
        char *end = strstr(at, "*/");
        while (at < end + 2) *at++ = ' ';
    }
}

static void expect_variants(const char *file, char *text)
{
    blank_comments(text);
    for (size_t i = 0; i < COUNT(with_variants); i++) {
        const size_t length = strlen(with_variants[i]);
        for (const char *at = strstr(text, with_variants[i]); at; at = strstr(at + 1, with_variants[i]))
            EXPECT_MSG(at[length] != '(' || (at > text && is_name(at[-1])), "%s: %.40s has no namespace", file, at);
    }
}

TEST(shaders_name_the_variant_of_each_function)
{
    for (size_t i = 0; mica__shader_name(i); i++) {
        mica__text text;
        mica__text_init(&text, NULL, 0);
        CHECK(mica__shader_text(mica__shader_name(i), &text) == MICA_OK);
        char *bytes = malloc(text.length + 1);
        CHECK(bytes);
        mica__text_init(&text, bytes, text.length + 1);
        CHECK(mica__shader_text(mica__shader_name(i), &text) == MICA_OK);
        expect_variants(mica__shader_name(i), bytes);
        free(bytes);
    }
}

/* Runs a pipeline over the N floats of a page. */
static bool run(const mica__metal_device *d, const mica__pipeline *p, float *page, size_t bytes)
{
    void *pool = mica__objc.pool_push();
    mica__id queue = MICA__SEND0(mica__id, d->device, newCommandQueue);
    mica__id buffer = MICA__SEND4(mica__id, d->device, newBufferWithBytesNoCopy, void *, page, unsigned long, bytes,
                                  unsigned long, 0, void *, NULL);
    mica__id commands = MICA__SEND0(mica__id, queue, commandBuffer);
    mica__id encoder = MICA__SEND1(mica__id, commands, computeEncoder, unsigned long, 0);
    MICA__SEND1(void, encoder, setPipeline, mica__id, p->state);
    MICA__SEND3(void, encoder, setBuffer, mica__id, buffer, unsigned long, 0, unsigned long, 0);
    MICA__SEND2(void, encoder, dispatch, mica__mtl_size, ((mica__mtl_size){1, 1, 1}), mica__mtl_size,
                ((mica__mtl_size){N, 1, 1}));
    MICA__SEND0(void, encoder, endEncoding);
    MICA__SEND0(void, commands, commit);
    MICA__SEND0(void, commands, waitUntilCompleted);
    const bool good = MICA__SEND0(unsigned long, commands, status) == MICA__MTL_COMPLETED;
    mica__objc.release(buffer);
    mica__objc.release(queue);
    mica__objc.pool_pop(pool);
    return good;
}

/* A text that names no variant gets the precise one: by setMathFloatingPointFunctions:, or on systems without it by
 * setFastMathEnabled:. */
TEST(functions_without_a_namespace_are_precise)
{
    SKIP_WITHOUT_METAL();
    if (!softmetal("sm_inject")) SKIP("not softmetal");
    const char *why = NULL;
    const mica__metal_device *d = mica__metal_get(&why);
    static const char *const texts[] = {
        "kernel void remainders(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
        "{ x[i] = fmod(x[i], 0.1f); }\n",
        "/* an older system */\n"
        "kernel void remainders(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
        "{ x[i] = fmod(x[i], 0.1f); }\n"};
    void *memory = NULL;
    CHECK_INT(posix_memalign(&memory, 16384, 16384), 0);
    float *page = memory;
    for (int old = 0; old < 2; old++) {
        test_case("%s", old ? "without setMathMode:" : "with setMathFloatingPointFunctions:");
        mica__pipeline *p = NULL;
        setenv("SM_MATH", "fuzz", 1);
        if (old) setenv("SM_WITHOUT", "setMathMode:,setMathFloatingPointFunctions:", 1);
        const mica__pipeline_source source = {.text = texts[old], .kernel = "remainders"};
        const mica_status status = mica__pipeline_get(d, &source, &p);
        for (int i = 0; i < N; i++) page[i] = (float)(i + 1) * 0.1f;
        if (EXPECT_MSG(status == MICA_OK, "%s", mica_last_error()) && EXPECT(run(d, p, page, 16384)))
            for (int i = 0; i < N; i++) EXPECT_CLOSE(page[i], fmodf((float)(i + 1) * 0.1f, 0.1f), 0, 0);
        mica__pipeline_drop(p);
        unsetenv("SM_WITHOUT");
        unsetenv("SM_MATH");
    }
    free(page);
}

/* Pipelines with other constants or of another kernel do not compile the text of their shader again. */
TEST(pipelines_of_a_shader_share_its_library)
{
    SKIP_WITHOUT_METAL();
    const char *why = NULL;
    const mica__metal_device *d = mica__metal_get(&why);
    mica__pipeline_trim();
    if (!inject("compile=2+")) SKIP("not softmetal"); /* the second library would fail */
    static const struct {
        const char *shader, *kernel;
        uint32_t bytes;
        bool good;
    } wanted[] = {{"move", "move_copy", 4, true},
                  {"move", "move_copy", 2, true},
                  {"move", "move_pad", 4, true},
                  {"sort", "sort_block", 4, false}};
    mica__pipeline *made[COUNT(wanted)] = {NULL};
    for (size_t i = 0; i < COUNT(wanted); i++) {
        test_case("%s, %u bytes", wanted[i].kernel, wanted[i].bytes);
        const mica__gpu_constant constants[] = {{.index = 0, .type = MICA__GPU_UINT, .bits = wanted[i].bytes},
                                                {.index = 1, .type = MICA__GPU_UINT, .bits = MICA_F32}};
        const mica__pipeline_source source = {
            .shader = wanted[i].shader, .kernel = wanted[i].kernel, .constant = constants, .n_constant = 2};
        const mica_status status = mica__pipeline_get(d, &source, &made[i]);
        EXPECT_MSG((status == MICA_OK) == wanted[i].good, "%s", status == MICA_OK ? "compiled" : mica_last_error());
    }
    inject(NULL);
    for (size_t i = 0; i < COUNT(wanted); i++) mica__pipeline_drop(made[i]);
}

/* Remainders are exact on every backend. */
TEST(remainders_are_exact)
{
    SKIP_WITHOUT_METAL();
    mica_engine *engines[2] = {open_on("metal"), open_on("ref")};
    float got[2][N];
    setenv("SM_MATH", "fuzz", 1);
    for (int i = 0; i < 2; i++) {
        mica_scope *s = mica_scope_begin(engines[i]);
        mica_array *x = mica_mul(s, mica_arange(s, MICA_F32, 1, N + 1, 1), mica_scalar(s, 0.1f));
        mica_array *y = mica_mod(s, x, mica_scalar(s, 0.1f));
        EXPECT_MSG(mica_eval(s, &y, 1) == MICA_OK, "%s", mica_last_error());
        memcpy(got[i], mica_data_f32(y), sizeof got[i]);
        mica_scope_end(s);
        mica_close(engines[i]);
    }
    unsetenv("SM_MATH");
    for (int i = 0; i < N; i++) EXPECT_CLOSE(got[0][i], got[1][i], 0, 0);
}
