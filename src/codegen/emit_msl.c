/* See emit_msl.h.
 *
 * One thread computes one element of the outer loops, or a few contiguous ones, whose
 * index it computes once. The thread walks the folded loops itself. If those are long,
 * a threadgroup walks them and combines the values of its threads as a tree. The choice
 * depends on sizes and strides only, so the order of a sum depends only on the shape.
 * A long fold of few results is two kernels: one folds parts, one folds the partial
 * results. The text of an op is its msl column in ops.def; functions that start with
 * mica_ are in mica_msl.h. f16 and bf16 are computed in float and rounded after every
 * op, as on the CPU, so that fused and unfused results agree.
 *
 * A kernel that checks indices is one threadgroup that walks all elements, so that it
 * can find the first of several bad indices. */
#include "codegen/emit_msl.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "codegen/msl_text.h"
#include "graph/scalar.h"

enum {
    MSL_SHARED_FOLD = 64, /* folded elements from which a group is faster           */
    MSL_ENOUGH = 4096     /* outer elements that keep a GPU busy, one per thread    */
};

const mica__msl_shape mica__msl_usual = {
    .threads = 256, .each = 1, .fold_threads = 256, .fold_each = 1, .part = 8192, .parts = 256};

/* Threads in a row of the grid if one dimension is too small for all threads. */
#define MSL_GRID_ROW ((int64_t)1 << 30)

/* ---------------------------------------------------------------- folds --- */

/* Prints `into` = op(first, second) of the fold. */
static void msl_combine(mica__msl_writer *w, const char *into, const char *first, const char *second)
{
    const mica__kinst *fold = &w->k->inst[w->k->fold];
    char operand[3][32] = {"", "", ""};
    mica__text text;
    mica__text_init(&text, operand[0], sizeof operand[0]);
    mica__text_add(&text, "%s", first);
    mica__text_init(&text, operand[1], sizeof operand[1]);
    mica__text_add(&text, "%s", second);
    mica__text_add(w->text, "%s = %s(", into, mica__msl_value_type(fold->dtype));
    mica__msl_expand(w, mica__op_get((uint16_t)fold->op)->msl, (const char(*)[32])operand, fold);
    mica__text_add(w->text, ");\n");
}

static void msl_fold(mica__msl_writer *w)
{
    const mica__kernel *k = w->k;
    const mica__kinst *fold = &k->inst[k->fold];
    const char *type = mica__msl_value_type(fold->dtype);
    char value[32];
    mica__text text;
    mica__text_init(&text, value, sizeof value);
    mica__text_add(&text, "%s(v%u)", type, fold->arg[0]);
    mica__text_add(w->text, "    %s acc = ", type);
    mica__msl_constant(w, mica__is_float(fold->dtype) ? MICA_F32 : fold->dtype,
                       mica__scalar_identity(fold->op, fold->in_dtype));
    mica__text_add(w->text, ";\n    for (%s j = %s; j < ", w->index,
                   w->stage == 1    ? "first + lane"
                   : w->shared_fold ? "lane"
                                    : "0");
    if (w->stage == 1) mica__text_add(w->text, "end");
    else mica__msl_size(w, w->stage == 2 ? w->parts : mica__kernel_folded(k));
    mica__text_add(w->text, "; j += %s) {\n", w->shared_fold ? "lanes" : "1");
    if (w->stage != 2) mica__msl_loop_indices(w, k->ndim - k->n_fold, k->ndim, "j", "        ");
    for (uint32_t i = 0; i < k->fold && w->stage != 2; i++) mica__msl_inst(w, i, "        ");
    if (w->stage == 2) {
        mica__text_add(w->text, "        const %s v%u = parts[at * ", type, fold->arg[0]);
        mica__msl_size(w, w->parts);
        mica__text_add(w->text, " + j];\n");
    }
    mica__text_add(w->text, "        ");
    msl_combine(w, "acc", "acc", value);
    mica__text_add(w->text, "    }\n");
    if (!w->shared_fold) return;
    mica__text_add(w->text, "    part[lane] = acc;\n");
    mica__text_add(w->text, "    for (uint half_of = lanes / 2; half_of > 0; half_of /= 2) {\n");
    mica__text_add(w->text, "        threadgroup_barrier(mem_flags::mem_threadgroup);\n        if (lane < half_of) ");
    msl_combine(w, "part[lane]", "part[lane]", "part[lane + half_of]");
    mica__text_add(w->text, "    }\n    if (lane > 0) return;\n    acc = part[0];\n");
}

/* ---------------------------------------------------------------- head ---- */

/* The element with the lowest address of an access. */
static int64_t msl_lowest(const mica__kernel *k, const mica__access *a)
{
    int64_t at = a->offset;
    for (int d = 0; d < k->ndim; d++)
        if (a->strides[d] < 0) at += (k->size[d] - 1) * a->strides[d];
    return at;
}

/* The farthest element of any access, as a bound on unsigned indices. */
static int64_t msl_reach(const mica__kernel *k)
{
    int64_t most = mica__max_i64(mica__kernel_outer(k), mica__kernel_folded(k));
    for (uint32_t i = 0; i < k->n_access; i++) {
        const mica__access *a = &k->access[i];
        int64_t at = a->offset - mica__min_i64(0, msl_lowest(k, a));
        for (int d = 0; d < k->ndim; d++)
            if (a->strides[d] > 0) at += (k->size[d] - 1) * a->strides[d];
        most = mica__max_i64(most, at);
    }
    return most;
}

static mica_status msl_collect(mica__msl_writer *w)
{
    const mica__kernel *k = w->k;
    for (uint32_t i = 0; i < k->n_inst; i++)
        if (k->inst[i].dtype == MICA_F64 || k->inst[i].in_dtype == MICA_F64)
            return mica__fail(MICA_ERR_UNSUPPORTED, "msl: Metal has no f64");
    const uint32_t begin = w->epilogue ? 1 : w->stage == 2 ? k->fold : 0, end = w->stage == 1 ? k->fold : k->n_inst;
    for (uint32_t i = begin; i < end; i++) {
        const mica__kinst *inst = &k->inst[i];
        if (inst->code != MICA__K_LOAD && inst->code != MICA__K_STORE) continue;
        const uint32_t at = mica__msl_buffer_of(w, &k->access[inst->access]);
        if (at == MICA__MSL_MAX_BUFFERS)
            return mica__fail(MICA_ERR_UNSUPPORTED, "msl: more than %d buffers in one kernel", MICA__MSL_MAX_BUFFERS);
        if (at == w->n_buffer) w->buffer[w->n_buffer++] = inst->access;
        w->lowest[at] = mica__min_i64(w->lowest[at], msl_lowest(k, &k->access[inst->access]));
        if (inst->code == MICA__K_STORE) w->written[at] = true;
    }
    return MICA_OK;
}

/* Does a threadgroup fold one row together? Faster if rows are long, and are either
 * contiguous or few. */
static bool msl_is_shared(const mica__kernel *k)
{
    if (k->fold == k->n_inst || mica__kernel_folded(k) < MSL_SHARED_FOLD) return false;
    const int64_t outer = mica__kernel_outer(k);
    if (outer > UINT32_MAX) return false;
    for (uint32_t i = 0; i < k->fold; i++)
        if (k->inst[i].code == MICA__K_LOAD && k->access[k->inst[i].access].strides[k->ndim - 1] == 1) return true;
    return outer < MSL_ENOUGH;
}

/* Elements per thread: more than 1 if all accesses are contiguous or constant and all threads get equally many. */
static uint32_t msl_each(const mica__msl_writer *w)
{
    const mica__kernel *k = w->k;
    const uint32_t each = w->shape->each;
    if (k->fold < k->n_inst || w->checks || k->ndim == 0 || k->size[k->ndim - 1] % each != 0) return 1;
    for (uint32_t i = 0; i < k->n_inst; i++) {
        const mica__kcode code = k->inst[i].code;
        const int64_t step = k->access[k->inst[i].access].strides[k->ndim - 1];
        if ((code == MICA__K_LOAD || code == MICA__K_STORE) && step != 0 && step != 1) return 1;
    }
    return msl_reach(k) > INT32_MAX ? 1 : each; /* indices past the last element must not wrap */
}

int64_t mica__msl_fold_parts(const mica__msl_shape *shape, int64_t results, int64_t folded)
{
    return mica__max_i64(1, results > 0 ? mica__min_i64(folded / shape->part, shape->parts / results) : 1);
}

static int64_t msl_part_size(const mica__msl_writer *w)
{
    return (mica__kernel_folded(w->k) + w->parts - 1) / w->parts;
}

bool mica__msl_checks(const mica__kernel *k)
{
    for (uint32_t i = 0; i < k->n_inst; i++)
        if (k->inst[i].code == MICA__K_MAP && k->inst[i].op == MICA__OP_CHECK_INDEX) return true;
    return false;
}

static bool msl_is_tall(const mica__kernel *k) { return mica__kernel_outer(k) > UINT32_MAX; }

static void msl_comment(const mica__msl_writer *w)
{
    if (w->checks) mica__text_add(w->text, "/* grid: one threadgroup for all elements\n");
    else if (w->each > 1) mica__text_add(w->text, "/* grid: one thread for %u elements of the outer loops\n", w->each);
    else
        mica__text_add(w->text, "/* grid: one %s for each element of the outer loops%s\n",
                       w->shared_fold ? "threadgroup" : "thread", msl_is_tall(w->k) ? ", in rows of 2^30" : "");
    mica__text_add(w->text, " * threadgroup memory: %s\n",
                   w->shared_fold ? "one value a thread"
                   : w->checks    ? "a number a thread"
                                  : "none");
    if (w->checks || w->shared_fold)
        mica__text_add(w->text, " * divides: nothing; %sat most %u%s */\n", w->checks ? "" : "a power of two threads, ",
                       w->shape->fold_threads, w->checks ? " threads" : "");
    else
        mica__text_add(w->text, " * divides: %s; threads past the last element return */\n",
                       w->each > 1 ? "the elements by those of a thread" : "nothing");
}

static void msl_head(mica__msl_writer *w, const char *name)
{
    const mica__kernel *k = w->k;
    const bool tall = msl_is_tall(k);
    msl_comment(w);
    mica__text_add(w->text, "kernel void %s(", name);
    for (uint32_t i = 0; i < w->n_buffer; i++)
        mica__text_add(w->text, "device %s%s *b%u [[buffer(%u)]],\n    ", w->written[i] ? "" : "const ",
                       mica__msl_memory_type[k->access[w->buffer[i]].dtype], i, i);
    if (w->stage > 0)
        mica__text_add(w->text, "device %s%s *parts [[buffer(%u)]],\n    ", w->stage == 1 ? "" : "const ",
                       mica__msl_value_type(k->inst[k->fold].dtype), w->n_buffer);
    if (w->checks) mica__text_add(w->text, "device mica_index_fault *fault [[buffer(%u)]],\n    ", w->n_buffer);
    mica__text_add(w->text, "constant uint *p [[buffer(%u)]],\n    ", w->n_buffer + (w->stage > 0 || w->checks));
    if (w->shared_fold) {
        mica__text_add(w->text, "uint at [[threadgroup_position_in_grid]],\n    uint lane "
                                "[[thread_index_in_threadgroup]],\n    uint lanes [[threads_per_threadgroup]])\n{\n");
        mica__text_add(w->text, "    threadgroup %s part[%u];\n", mica__msl_value_type(k->inst[k->fold].dtype),
                       w->shape->fold_threads);
        if (w->stage != 1) {
            mica__text_add(w->text, "    const %s i = at;\n", w->index);
            return;
        }
        mica__text_add(w->text, "    const %s i = at / ", w->index);
        mica__msl_size(w, w->parts);
        mica__text_add(w->text, ", first = at %% ");
        mica__msl_size(w, w->parts);
        mica__text_add(w->text, " * ");
        mica__msl_size(w, msl_part_size(w));
        mica__text_add(w->text, ", end = min(first + ");
        mica__msl_size(w, msl_part_size(w));
        mica__text_add(w->text, ", ");
        mica__msl_size(w, mica__kernel_folded(k));
        mica__text_add(w->text, ");\n");
        return;
    }
    if (w->checks) {
        mica__text_add(w->text, "uint lane [[thread_index_in_threadgroup]],\n    uint lanes "
                                "[[threads_per_threadgroup]])\n{\n");
        mica__text_add(w->text, "    threadgroup uint first[%u];\n    mica_bad_index bad = {~0u, 0u, 0, 0};\n",
                       w->shape->fold_threads);
        mica__text_add(w->text, "    for (uint i = lane; i < ");
        mica__msl_size(w, mica__kernel_outer(k));
        mica__text_add(w->text, "; i += lanes) {\n");
        return;
    }
    mica__text_add(w->text, "%s at [[thread_position_in_grid]])\n{\n", tall ? "uint2" : "uint");
    if (tall) mica__text_add(w->text, "    const ulong i = ulong(at.y) * %" PRId64 " + at.x;\n", MSL_GRID_ROW);
    else if (w->each > 1) mica__text_add(w->text, "    const uint i = at * %u;\n", w->each);
    else mica__text_add(w->text, "    const %s i = at;\n", w->index);
    mica__text_add(w->text, "    if (i >= ");
    mica__msl_size(w, mica__kernel_outer(k));
    mica__text_add(w->text, ") return;\n");
}

static void msl_describe(const mica__msl_writer *w, mica__msl_launch *launch)
{
    const mica__kernel *k = w->k;
    *launch = (mica__msl_launch){.n_buffer = w->n_buffer, .n_word = w->n_word, .groups = {1, 1, 1}};
    memcpy(launch->word, w->word, w->n_word * sizeof *w->word);
    for (uint32_t i = 0; i < w->n_buffer; i++) {
        const mica__access *a = &k->access[w->buffer[i]];
        launch->block[i] = a->block;
        launch->offset[i] = w->lowest[i] * (int64_t)mica_dtype_size(a->dtype);
    }
    launch->checks = w->checks;
}

static void msl_grid(const mica__msl_writer *w, mica__msl_launch *launch)
{
    const mica__kernel *k = w->k;
    const int64_t outer = mica__kernel_outer(k), folded = mica__kernel_folded(k);
    launch->by_group = w->checks || w->shared_fold;
    launch->threads = launch->by_group ? w->shape->fold_threads : w->shape->threads;
    if (w->shared_fold) {
        const int64_t row = w->stage == 2 ? w->parts : folded, each = w->shape->fold_each;
        while (launch->threads / 2 * each >= row && launch->threads > 1) launch->threads /= 2;
        launch->groups[0] = (uint32_t)(w->stage == 1 ? outer * w->parts : outer);
    } else if (msl_is_tall(k)) {
        launch->groups[0] = (uint32_t)(MSL_GRID_ROW / launch->threads);
        launch->groups[1] = (uint32_t)((outer + MSL_GRID_ROW - 1) / MSL_GRID_ROW);
    } else {
        const int64_t busy = outer / w->each; /* threads that have elements */
        while (launch->threads / 2 >= busy && launch->threads > 32) launch->threads /= 2;
        if (!w->checks) launch->groups[0] = (uint32_t)((busy + launch->threads - 1) / launch->threads);
    }
}

static mica_status msl_kernel(mica__msl_writer *w, const char *name, mica__msl_launch *launch)
{
    const mica__kernel *k = w->k;
    mica__text *text = w->text;
    MICA_TRY(msl_collect(w));
    w->wide = msl_reach(k) > UINT32_MAX;
    w->index = w->wide ? "ulong" : "uint";
    w->shared_fold = msl_is_shared(k);
    const bool folds = k->fold < k->n_inst;
    w->checks = mica__msl_checks(k);
    if (w->checks && (folds || mica__kernel_outer(k) > MICA__MSL_MAX_CHECKED))
        return mica__fail(MICA_ERR_UNSUPPORTED, "msl: indices are checked in a reduction, or are too many");
    w->each = msl_each(w);
    const char *indent = w->checks || w->each > 1 ? "        " : "    ";
    msl_head(w, name);
    mica__msl_loop_indices(w, 0, k->ndim - k->n_fold, "i", w->checks ? indent : "    ");
    if (w->each > 1)
        mica__text_add(text, "    for (uint e = 0; e < %u; e++) {\n        const uint i%d = begin + e;\n", w->each,
                       k->ndim - 1);
    if (folds) msl_fold(w);
    if (w->stage == 1) mica__text_add(text, "    parts[at] = acc;\n");
    else
        for (uint32_t i = folds ? k->fold : 0; i < k->n_inst; i++) mica__msl_inst(w, i, indent);
    mica__text_add(text, "%s%s}\n", w->checks || w->each > 1 ? "    }\n" : "",
                   w->checks ? "    mica_note_index(fault, bad, first, lane, lanes);\n" : "");
    if (w->n_word > MICA__MSL_MAX_WORDS)
        return mica__fail(MICA_ERR_UNSUPPORTED, "msl: a kernel needs %u words, at most %d are allowed", w->n_word,
                          MICA__MSL_MAX_WORDS);
    if (launch) msl_describe(w, launch), msl_grid(w, launch);
    return MICA_OK;
}

mica_status mica__emit_msl(const mica__kernel *k, const mica__msl_shape *shape, const char *name, mica__text *text,
                           mica__msl_launch *launch)
{
    return msl_kernel(&(mica__msl_writer){.k = k, .text = text, .shape = shape}, name, launch);
}

mica_status mica__emit_msl_parts(const mica__kernel *k, const mica__msl_shape *shape, int stage, uint32_t scratch,
                                 const char *name, mica__text *text, mica__msl_launch *launch)
{
    const int64_t parts = mica__msl_fold_parts(shape, mica__kernel_outer(k), mica__kernel_folded(k));
    MICA_TRY(msl_kernel(&(mica__msl_writer){.k = k, .text = text, .shape = shape, .stage = stage, .parts = parts}, name,
                        launch));
    if (!launch) return MICA_OK;
    launch->block[launch->n_buffer] = scratch;
    launch->offset[launch->n_buffer++] = 0;
    return MICA_OK;
}

/* ------------------------------------------------------------- epilogues --- */

enum { MSL_EPILOGUE_BUFFERS = 20, MSL_FAMILY_LEAST = 3, MSL_FAMILY_MOST = 8 };

const char *mica__msl_epilogue_refused(const mica__kernel *k)
{
    if (mica__msl_checks(k)) return "checks indices";
    uint32_t buffers = 0;
    if (k->fold < k->n_inst || k->inst[0].code != MICA__K_LOAD || k->inst[k->n_inst - 1].code != MICA__K_STORE)
        return "folds";
    if (!mica__is_float(k->inst[0].dtype)) return "is not on floats";
    if (msl_reach(k) > UINT32_MAX) return "needs indices of more than 32 bits";
    const mica__access *a = &k->access[k->inst[0].access];
    int64_t below = 1;
    for (int d = k->ndim; d-- > 0; below *= k->size[d])
        if (a->offset != 0 || (k->size[d] > 1 && a->strides[d] != below)) return "reads the result in another order";
    for (uint32_t i = 1; i < k->n_inst; i++)
        buffers += k->inst[i].code == MICA__K_LOAD || k->inst[i].code == MICA__K_STORE;
    return buffers > MSL_EPILOGUE_BUFFERS ? "has too many operands" : NULL;
}

/* Prints the operands: device const float *NAME0, ... first: number of the first buffer of a kernel; negative: the
 * operands of a function, without buffer numbers. */
static void msl_epilogue_operands(mica__msl_writer *w, const char *name, int first)
{
    for (uint32_t i = 0; i < w->n_buffer; i++) {
        mica__text_add(w->text, ", device %s%s *%s%u", w->written[i] ? "" : "const ",
                       mica__msl_memory_type[w->k->access[w->buffer[i]].dtype], name, i);
        if (first >= 0) mica__text_add(w->text, " [[buffer(%u)]]", (uint32_t)first + i);
    }
}

mica_status mica__emit_msl_epilogue(const mica__kernel *k, mica__text *text, mica__msl_launch *launch)
{
    mica__msl_writer w = {.k = k, .text = text, .index = "uint", .epilogue = true};
    const char *refused = mica__msl_epilogue_refused(k);
    if (refused) return mica__fail(MICA_ERR_UNSUPPORTED, "msl: the epilogue %s", refused);
    MICA_TRY(msl_collect(&w));
    mica__text_add(text, "inline float mica_epilogue(uint i, float value, constant uint *p");
    msl_epilogue_operands(&w, "b", -1);
    mica__text_add(text, ")\n{\n");
    mica__msl_loop_indices(&w, 0, k->ndim, "i", "    ");
    for (uint32_t i = 0; i < k->n_inst; i++) mica__msl_inst(&w, i, "    ");
    mica__text_add(text, "    return float(v%u);\n", k->inst[k->n_inst - 1].arg[0]);
    mica__text_add(text, "}\n#define MICA_EPILOGUE_OPERANDS");
    for (uint32_t i = 0; i < w.n_buffer; i++) mica__text_add(text, ", mica_e%u", i);
    for (int n = MSL_FAMILY_LEAST; n <= MSL_FAMILY_MOST; n++) {
        mica__text_add(text, "\n#define MICA_EPILOGUE_%d", n);
        msl_epilogue_operands(&w, "mica_e", n);
    }
    mica__text_add(text, "\n");
    if (w.n_word > MICA__MSL_MAX_WORDS)
        return mica__fail(MICA_ERR_UNSUPPORTED, "msl: an epilogue needs %u words, at most %d are allowed", w.n_word,
                          MICA__MSL_MAX_WORDS);
    if (launch) msl_describe(&w, launch);
    return MICA_OK;
}
