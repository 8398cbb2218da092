/* A kernel as Metal shader text.
 *
 * One thread computes one element of the outer loops and walks the folded ones
 * itself. The text of an op is its msl column in ops.def; what begins with
 * mica_ comes from the preamble that the Metal backend puts in front. f16 and
 * bf16 are computed in float and rounded after every op, as on the CPU, so that
 * fused and unfused results agree. */
#include "codegen/kernel.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "graph/scalar.h"

/* Metal gives a kernel 31 buffers. */
enum { MSL_MAX_BUFFERS = 31 };

/* Threads in a row of the grid where one dimension cannot count them all. */
#define MSL_GRID_ROW ((int64_t)1 << 30)

static const char *const msl_memory_type[MICA__DTYPE_COUNT] = {
    [MICA_BOOL] = "bool", [MICA_U8] = "uchar", [MICA_I8] = "char",     [MICA_U16] = "ushort",
    [MICA_I16] = "short", [MICA_U32] = "uint", [MICA_I32] = "int",     [MICA_U64] = "ulong",
    [MICA_I64] = "long",  [MICA_F16] = "half", [MICA_BF16] = "bfloat", [MICA_F32] = "float",
};

typedef struct msl_writer {
    const mica__kernel *k;
    mica__text *text;
    uint32_t buffer[MSL_MAX_BUFFERS]; /* the first access of each buffer              */
    bool written[MSL_MAX_BUFFERS];
    uint32_t n_buffer;
    const char *index;                /* uint, or ulong where uint cannot count       */
} msl_writer;

static const char *msl_value_type(mica_dtype dtype) { return mica__is_float(dtype) ? "float" : msl_memory_type[dtype]; }

static bool msl_is_half(mica_dtype dtype) { return dtype == MICA_F16 || dtype == MICA_BF16; }

/* ------------------------------------------------------------ literals ---- */

/* As bits: every float must read back the same, or a fused kernel and its
 * reference disagree for no visible reason. */
static void msl_float(float value, mica__text *text)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    mica__text_add(text, "as_type<float>(0x%08" PRIx32 "u)", bits);
}

static void msl_constant(mica_dtype dtype, mica__number value, mica__text *text)
{
    if (mica__is_float(dtype)) msl_float((float)mica__round_f64(dtype, value.f), text);
    else if (dtype == MICA_BOOL) mica__text_add(text, "%s", value.i ? "true" : "false");
    else if (dtype == MICA_U64) mica__text_add(text, "%" PRIu64 "ul", (uint64_t)value.i);
    else if (value.i == INT64_MIN) mica__text_add(text, "long(0x8000000000000000ul)");
    else if (dtype == MICA_I64) mica__text_add(text, "%" PRId64 "l", value.i);
    else mica__text_add(text, "%s(%" PRId64 ")", msl_memory_type[dtype], value.i);
}

/* --------------------------------------------------------- expressions ---- */

/* The template with $0 $1 $2 replaced by operand[] and $a by the attribute. */
static void msl_expand(const char *template, const char operand[][32], const mica__kinst *inst, mica__text *text)
{
    for (const char *p = template; *p; p++) {
        if (p[0] != '$') {
            mica__text_add(text, "%c", *p);
        } else if (*++p != 'a') {
            mica__text_add(text, "%s", operand[*p - '0']);
        } else if (inst->op == MICA__OP_CHECK_INDEX) {
            mica__text_add(text, "%" PRId64 "l", ((const mica__attr_index *)inst->attr)->size);
        } else {
            msl_float((float)((const mica__attr_value *)inst->attr)->value, text);
        }
    }
}

/* Metal has these for floats only; on integers they are trivial. */
static const char *msl_template(const mica__kinst *inst)
{
    const bool is_float = mica__is_float(inst->in_dtype);
    switch ((int)inst->op) {
    case MICA__OP_FLOOR:
    case MICA__OP_CEIL:
    case MICA__OP_ROUND: return is_float ? mica__op_get((uint16_t)inst->op)->msl : "$0";
    case MICA__OP_ABS: return inst->in_dtype == MICA_BOOL ? "$0" : mica__op_get((uint16_t)inst->op)->msl;
    case MICA__OP_ISNAN:
    case MICA__OP_ISINF: return is_float ? mica__op_get((uint16_t)inst->op)->msl : "false";
    case MICA__OP_ISFINITE: return is_float ? mica__op_get((uint16_t)inst->op)->msl : "true";
    default: return mica__op_get((uint16_t)inst->op)->msl;
    }
}

static void msl_cast(const mica__kinst *inst, const char *operand, mica__text *text)
{
    const char *type = msl_memory_type[inst->dtype];
    if (inst->dtype == MICA_BOOL) mica__text_add(text, "%s != 0", operand);
    else if (inst->dtype == MICA_F32) mica__text_add(text, "float(%s)", operand);
    else if (!msl_is_half(inst->dtype)) mica__text_add(text, "mica_cast<%s>(%s)", type, operand);
    else if (mica__is_float(inst->in_dtype)) mica__text_add(text, "float(%s(%s))", type, operand);
    else mica__text_add(text, "float(mica_cast<%s>(%s))", type, operand);
}

static void msl_map(const msl_writer *w, const mica__kinst *inst)
{
    char operand[3][32] = {{0}};
    for (uint32_t i = 0; i < inst->n_arg; i++) {
        mica__text name;
        mica__text_init(&name, operand[i], sizeof operand[i]);
        mica__text_add(&name, "v%u", inst->arg[i]);
    }
    if (inst->op == MICA__OP_CAST) {
        msl_cast(inst, operand[0], w->text);
        return;
    }
    /* C rounds nothing and promotes narrow integers: bring the result back to
     * its dtype. */
    const bool half = msl_is_half(inst->dtype), narrow = !mica__is_float(inst->dtype);
    if (half) mica__text_add(w->text, "float(%s(", msl_memory_type[inst->dtype]);
    else if (narrow) mica__text_add(w->text, "%s(", msl_memory_type[inst->dtype]);
    msl_expand(msl_template(inst), (const char(*)[32])operand, inst, w->text);
    mica__text_add(w->text, "%s", half ? "))" : narrow ? ")" : "");
}

static void msl_address(const msl_writer *w, const mica__access *a)
{
    bool any = false;
    if (a->offset) {
        mica__text_add(w->text, "%" PRId64, a->offset);
        any = true;
    }
    for (int d = 0; d < w->k->ndim; d++) {
        const int64_t s = a->strides[d];
        if (s == 0) continue;
        /* unsigned arithmetic wraps, so a negative stride comes out right */
        const char *sign = s < 0 ? (any ? " - " : "-") : (any ? " + " : "");
        const uint64_t size = s < 0 ? 0 - (uint64_t)s : (uint64_t)s;
        if (size == 1) mica__text_add(w->text, "%si%d", sign, d);
        else mica__text_add(w->text, "%s%" PRIu64 " * i%d", sign, size, d);
        any = true;
    }
    if (!any) mica__text_add(w->text, "0");
}

static uint32_t msl_buffer_of(const msl_writer *w, const mica__access *a)
{
    for (uint32_t i = 0; i < w->n_buffer; i++) {
        const mica__access *b = &w->k->access[w->buffer[i]];
        if (b->block == a->block && b->dtype == a->dtype) return i;
    }
    return w->n_buffer;
}

static void msl_element(const msl_writer *w, const mica__access *a)
{
    mica__text_add(w->text, "b%u[", msl_buffer_of(w, a));
    msl_address(w, a);
    mica__text_add(w->text, "]");
}

/* --------------------------------------------------------- instructions --- */

static void msl_iota(const msl_writer *w, const mica__kinst *inst)
{
    const char *type = msl_value_type(inst->dtype);
    if (mica__is_float(inst->dtype)) {
        mica__text_add(w->text, msl_is_half(inst->dtype) ? "float(%s(fma(" : "fma(", msl_memory_type[inst->dtype]);
        msl_float((float)inst->step.f, w->text);
        mica__text_add(w->text, ", float(long(");
        msl_address(w, &w->k->access[inst->access]);
        mica__text_add(w->text, ")), ");
        msl_float((float)inst->value.f, w->text);
        mica__text_add(w->text, msl_is_half(inst->dtype) ? ")))" : ")");
        return;
    }
    mica__text_add(w->text, "%s(%" PRId64 "l + %" PRId64 "l * long(", type, inst->value.i, inst->step.i);
    msl_address(w, &w->k->access[inst->access]);
    mica__text_add(w->text, "))");
}

static void msl_inst(const msl_writer *w, uint32_t number, const char *indent)
{
    const mica__kinst *inst = &w->k->inst[number];
    const mica__access *a = &w->k->access[inst->access];
    mica__text *text = w->text;
    if (inst->code == MICA__K_STORE) {
        mica__text_add(text, "%s", indent);
        msl_element(w, a);
        mica__text_add(text, msl_is_half(a->dtype) ? " = %s(v%u);\n" : " = %.0sv%u;\n", msl_memory_type[a->dtype],
                       inst->arg[0]);
        return;
    }
    mica__text_add(text, "%sconst %s v%u = ", indent, msl_value_type(inst->dtype), number);
    switch (inst->code) {
    case MICA__K_CONST: msl_constant(inst->dtype, inst->value, text); break;
    case MICA__K_IOTA: msl_iota(w, inst); break;
    case MICA__K_LOAD:
        mica__text_add(text, msl_is_half(a->dtype) ? "float(" : "");
        msl_element(w, a);
        mica__text_add(text, msl_is_half(a->dtype) ? ")" : "");
        break;
    case MICA__K_FOLD:
        mica__text_add(text, msl_is_half(inst->dtype) ? "float(%s(acc))" : "acc", msl_memory_type[inst->dtype]);
        break;
    default: msl_map(w, inst); break;
    }
    mica__text_add(text, ";\n");
}

/* const uint i0 = ..., for loops [first, last) of element `flat` */
static void msl_loop_indices(const msl_writer *w, int first, int last, const char *flat, const char *indent)
{
    int64_t below = 1;
    for (int d = last; d-- > first; below *= w->k->size[d]) {
        mica__text_add(w->text, "%sconst %s i%d = %s", indent, w->index, d, flat);
        if (below > 1) mica__text_add(w->text, " / %" PRId64, below);
        if (d > first) mica__text_add(w->text, " %% %" PRId64, w->k->size[d]);
        mica__text_add(w->text, ";\n");
    }
}

static void msl_fold(const msl_writer *w)
{
    const mica__kernel *k = w->k;
    const mica__kinst *fold = &k->inst[k->fold];
    const char *type = msl_value_type(fold->dtype);
    mica__text_add(w->text, "    %s acc = ", type);
    msl_constant(mica__is_float(fold->dtype) ? MICA_F32 : fold->dtype, mica__scalar_identity(fold->op, fold->in_dtype),
                 w->text);
    mica__text_add(w->text, ";\n    for (%s j = 0; j < %" PRId64 "; j++) {\n", w->index, mica__kernel_folded(k));
    msl_loop_indices(w, k->ndim - k->n_fold, k->ndim, "j", "        ");
    for (uint32_t i = 0; i < k->fold; i++) msl_inst(w, i, "        ");
    char operand[3][32] = {"acc", "", ""};
    mica__text value;
    mica__text_init(&value, operand[1], sizeof operand[1]);
    mica__text_add(&value, "%s(v%u)", type, fold->arg[0]);
    mica__text_add(w->text, "        acc = ");
    msl_expand(mica__op_get((uint16_t)fold->op)->msl, (const char(*)[32])operand, fold, w->text);
    mica__text_add(w->text, ";\n    }\n");
}

/* ---------------------------------------------------------------- head ---- */

/* The farthest element any access touches, as a bound on unsigned indices. */
static int64_t msl_reach(const mica__kernel *k)
{
    int64_t most = mica__max_i64(mica__kernel_outer(k), mica__kernel_folded(k));
    for (uint32_t i = 0; i < k->n_access; i++) {
        int64_t at = k->access[i].offset;
        for (int d = 0; d < k->ndim; d++)
            if (k->access[i].strides[d] > 0) at += (k->size[d] - 1) * k->access[i].strides[d];
        most = mica__max_i64(most, at);
    }
    return most;
}

static mica_status msl_collect(msl_writer *w)
{
    const mica__kernel *k = w->k;
    for (uint32_t i = 0; i < k->n_inst; i++)
        if (k->inst[i].dtype == MICA_F64 || k->inst[i].in_dtype == MICA_F64)
            return mica__fail(MICA_ERR_UNSUPPORTED, "msl: Metal has no f64");
    for (uint32_t i = 0; i < k->n_inst; i++) {
        const mica__kinst *inst = &k->inst[i];
        if (inst->code != MICA__K_LOAD && inst->code != MICA__K_STORE) continue;
        const uint32_t at = msl_buffer_of(w, &k->access[inst->access]);
        if (at == MSL_MAX_BUFFERS)
            return mica__fail(MICA_ERR_UNSUPPORTED, "msl: more than %d buffers in one kernel", MSL_MAX_BUFFERS);
        if (at == w->n_buffer) w->buffer[w->n_buffer++] = inst->access;
        if (inst->code == MICA__K_STORE) w->written[at] = true;
    }
    return MICA_OK;
}

static void msl_head(const msl_writer *w, const char *name)
{
    const mica__kernel *k = w->k;
    const int64_t outer = mica__kernel_outer(k);
    const bool rows = outer > UINT32_MAX;
    mica__text_add(w->text, "/* grid: one thread for each of %" PRId64 " elements, row-major over (", outer);
    for (int d = 0; d < k->ndim - k->n_fold; d++) mica__text_add(w->text, "%s%" PRId64, d ? ", " : "", k->size[d]);
    mica__text_add(w->text, ")%s%s\n", k->fold < k->n_inst ? "; each walks its folded elements" : "",
                   rows ? ", in rows of 2^30" : "");
    mica__text_add(w->text, " * threadgroup memory: none\n");
    mica__text_add(w->text, " * divides: nothing; threads past the last element return */\n");
    mica__text_add(w->text, "kernel void %s(", name);
    for (uint32_t i = 0; i < w->n_buffer; i++)
        mica__text_add(w->text, "device %s%s *b%u [[buffer(%u)]],\n    ", w->written[i] ? "" : "const ",
                       msl_memory_type[k->access[w->buffer[i]].dtype], i, i);
    mica__text_add(w->text, "%s at [[thread_position_in_grid]])\n{\n", rows ? "uint2" : "uint");
    if (rows) mica__text_add(w->text, "    const ulong i = ulong(at.y) * %" PRId64 " + at.x;\n", MSL_GRID_ROW);
    else mica__text_add(w->text, "    const %s i = at;\n", w->index);
    mica__text_add(w->text, "    if (i >= %" PRId64 ") return;\n", outer);
}

mica_status mica__emit_msl(const mica__kernel *k, const char *name, mica__text *text)
{
    msl_writer w = {.k = k, .text = text};
    MICA_TRY(msl_collect(&w));
    w.index = msl_reach(k) <= UINT32_MAX ? "uint" : "ulong";
    const bool folds = k->fold < k->n_inst;
    msl_head(&w, name);
    msl_loop_indices(&w, 0, k->ndim - k->n_fold, "i", "    ");
    if (folds) msl_fold(&w);
    for (uint32_t i = folds ? k->fold : 0; i < k->n_inst; i++) msl_inst(&w, i, "    ");
    mica__text_add(text, "}\n");
    return MICA_OK;
}
