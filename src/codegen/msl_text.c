/* See msl_text.h. */
#include "codegen/msl_text.h"

#include <inttypes.h>
#include <string.h>

#include "graph/scalar.h"

const char *const mica__msl_memory_type[MICA__DTYPE_COUNT] = {
    [MICA_BOOL] = "bool", [MICA_U8] = "uchar", [MICA_I8] = "char",     [MICA_U16] = "ushort",
    [MICA_I16] = "short", [MICA_U32] = "uint", [MICA_I32] = "int",     [MICA_U64] = "ulong",
    [MICA_I64] = "long",  [MICA_F16] = "half", [MICA_BF16] = "bfloat", [MICA_F32] = "float",
};

const char *mica__msl_value_type(mica_dtype dtype)
{
    return mica__is_float(dtype) ? "float" : mica__msl_memory_type[dtype];
}

bool mica__msl_is_half(mica_dtype dtype) { return dtype == MICA_F16 || dtype == MICA_BF16; }

/* ------------------------------------------------------------- numbers ---- */

static uint32_t msl_word(mica__msl_writer *w, uint32_t bits)
{
    if (w->n_word < MICA__MSL_MAX_WORDS) w->word[w->n_word] = bits;
    return w->n_word++;
}

void mica__msl_size(mica__msl_writer *w, int64_t value)
{
    if (w->wide) mica__text_add(w->text, "%" PRIu64 "ul", (uint64_t)value);
    else mica__text_add(w->text, "p[%u]", msl_word(w, (uint32_t)value));
}

void mica__msl_constant(mica__msl_writer *w, mica_dtype dtype, mica__number value)
{
    if (mica__is_float(dtype)) {
        const float rounded = (float)mica__round_f64(dtype, value.f);
        uint32_t bits;
        memcpy(&bits, &rounded, sizeof bits);
        mica__text_add(w->text, "as_type<float>(p[%u])", msl_word(w, bits));
    } else if (mica_dtype_size(dtype) == 8) {
        const uint32_t low = msl_word(w, (uint32_t)value.i), high = msl_word(w, (uint32_t)((uint64_t)value.i >> 32));
        mica__text_add(w->text, "%s(ulong(p[%u]) << 32 | p[%u])", mica__msl_memory_type[dtype], high, low);
    } else {
        mica__text_add(w->text, "%s(p[%u])", mica__msl_memory_type[dtype], msl_word(w, (uint32_t)value.i));
    }
}

/* --------------------------------------------------------- expressions ---- */

void mica__msl_expand(mica__msl_writer *w, const char *template, const char operand[][32], const mica__kinst *inst)
{
    mica__text *text = w->text;
    for (const char *p = template; *p; p++) {
        if (p[0] != '$') {
            mica__text_add(text, "%c", *p);
        } else if (*++p != 'a' && *p != 'b') {
            mica__text_add(text, "%s", operand[*p - '0']);
        } else if (inst->op == MICA__OP_CHECK_INDEX) {
            const mica__attr_index *attr = inst->attr;
            mica__text_add(text, "%" PRId64 "l, %" PRId64 "u, i, &bad", attr->size, attr->caller);
        } else {
            const double value = ((const mica__attr_value *)inst->attr)->value, first = (double)(float)value;
            mica__msl_constant(w, MICA_F32, (mica__number){.f = *p == 'a' ? first : value - first});
        }
    }
}

/* Metal has these functions for floats only; on integers they are trivial. */
static const char *msl_template(const mica__kinst *inst)
{
    const mica__op_info *info = mica__op_get((uint16_t)inst->op);
    const bool is_float = mica__is_float(inst->in_dtype);
    if (info->ctor == MICA__CTOR_WHOLE) return is_float ? info->msl : "$0";
    switch ((int)inst->op) {
    case MICA__OP_ABS: return inst->in_dtype == MICA_BOOL ? "$0" : info->msl;
    case MICA__OP_ISNAN:
    case MICA__OP_ISINF: return is_float ? info->msl : "false";
    case MICA__OP_ISFINITE: return is_float ? info->msl : "true";
    default: return info->msl;
    }
}

static void msl_cast(const mica__kinst *inst, const char *operand, mica__text *text)
{
    const char *type = mica__msl_memory_type[inst->dtype];
    if (inst->dtype == MICA_BOOL) mica__text_add(text, "%s != 0", operand);
    else if (inst->dtype == MICA_F32) mica__text_add(text, "float(%s)", operand);
    else if (!mica__msl_is_half(inst->dtype)) mica__text_add(text, "mica_cast<%s>(%s)", type, operand);
    else if (mica__is_float(inst->in_dtype)) mica__text_add(text, "float(%s(%s))", type, operand);
    else mica__text_add(text, "float(mica_cast<%s>(%s))", type, operand);
}

static void msl_map(mica__msl_writer *w, const mica__kinst *inst)
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
    /* Metal computes in float and promotes narrow integers: convert the result to
     * its dtype. */
    const bool half = mica__msl_is_half(inst->dtype), narrow = !mica__is_float(inst->dtype);
    if (half) mica__text_add(w->text, "float(%s(", mica__msl_memory_type[inst->dtype]);
    else if (narrow) mica__text_add(w->text, "%s(", mica__msl_memory_type[inst->dtype]);
    mica__msl_expand(w, msl_template(inst), (const char(*)[32])operand, inst);
    mica__text_add(w->text, "%s", half ? "))" : narrow ? ")" : "");
}

static void msl_address(mica__msl_writer *w, const mica__access *a, int64_t lowest)
{
    bool any = false;
    if (a->offset != lowest) {
        mica__msl_size(w, a->offset - lowest);
        any = true;
    }
    for (int d = 0; d < w->k->ndim; d++) {
        if (a->strides[d] == 0) continue;
        mica__text_add(w->text, "%si%d", any ? " + " : "", d);
        any = true;
        if (a->strides[d] == 1) continue;
        mica__text_add(w->text, " * ");
        mica__msl_size(w, a->strides[d]);
    }
    if (!any) mica__text_add(w->text, "0");
}

uint32_t mica__msl_buffer_of(const mica__msl_writer *w, const mica__access *a)
{
    for (uint32_t i = 0; i < w->n_buffer; i++) {
        const mica__access *b = &w->k->access[w->buffer[i]];
        if (b->block == a->block && b->dtype == a->dtype) return i;
    }
    return w->n_buffer;
}

static void msl_element(mica__msl_writer *w, const mica__access *a)
{
    const uint32_t buffer = mica__msl_buffer_of(w, a);
    mica__text_add(w->text, "b%u[", buffer);
    msl_address(w, a, w->lowest[buffer]);
    mica__text_add(w->text, "]");
}

/* --------------------------------------------------------- instructions --- */

static void msl_iota(mica__msl_writer *w, const mica__kinst *inst)
{
    const char *type = mica__msl_value_type(inst->dtype);
    if (mica__is_float(inst->dtype)) {
        const bool half = mica__msl_is_half(inst->dtype);
        mica__text_add(w->text, half ? "float(%s(mica_iota(long(" : "mica_iota(long(",
                       mica__msl_memory_type[inst->dtype]);
        msl_address(w, &w->k->access[inst->access], 0);
        mica__text_add(w->text, "), ");
        mica__msl_constant(w, MICA_F32, inst->step);
        mica__text_add(w->text, ", ");
        mica__msl_constant(w, MICA_F32, inst->value);
        mica__text_add(w->text, half ? ")))" : ")");
        return;
    }
    mica__text_add(w->text, "%s(", type);
    mica__msl_constant(w, MICA_I64, inst->value);
    mica__text_add(w->text, " + ");
    mica__msl_constant(w, MICA_I64, inst->step);
    mica__text_add(w->text, " * long(");
    msl_address(w, &w->k->access[inst->access], 0);
    mica__text_add(w->text, "))");
}

void mica__msl_inst(mica__msl_writer *w, uint32_t number, const char *indent)
{
    const mica__kinst *inst = &w->k->inst[number];
    const mica__access *a = &w->k->access[inst->access];
    mica__text *text = w->text;
    if (inst->code == MICA__K_STORE) {
        mica__text_add(text, "%s", indent);
        msl_element(w, a);
        mica__text_add(text, mica__msl_is_half(a->dtype) ? " = %s(v%u);\n" : " = %.0sv%u;\n",
                       mica__msl_memory_type[a->dtype], inst->arg[0]);
        return;
    }
    mica__text_add(text, "%sconst %s v%u = ", indent, mica__msl_value_type(inst->dtype), number);
    if (w->epilogue && number == 0) {
        mica__text_add(text, "value;\n");
        return;
    }
    switch (inst->code) {
    case MICA__K_CONST: mica__msl_constant(w, inst->dtype, inst->value); break;
    case MICA__K_IOTA: msl_iota(w, inst); break;
    case MICA__K_LOAD:
        mica__text_add(text, mica__msl_is_half(a->dtype) ? "float(" : "");
        msl_element(w, a);
        mica__text_add(text, mica__msl_is_half(a->dtype) ? ")" : "");
        break;
    case MICA__K_FOLD:
        mica__text_add(text, mica__msl_is_half(inst->dtype) ? "float(%s(acc))" : "acc",
                       mica__msl_memory_type[inst->dtype]);
        break;
    default: msl_map(w, inst); break;
    }
    mica__text_add(text, ";\n");
}

void mica__msl_loop_indices(mica__msl_writer *w, int first, int last, const char *flat, const char *indent)
{
    int64_t below = 1;
    for (int d = last; d-- > first; below *= w->k->size[d]) {
        mica__text_add(w->text, "%sconst %s ", indent, w->index);
        if (w->each > 1 && d == last - 1) mica__text_add(w->text, "begin = %s", flat);
        else mica__text_add(w->text, "i%d = %s", d, flat);
        if (d < last - 1) {
            mica__text_add(w->text, " / ");
            mica__msl_size(w, below);
        }
        if (d > first) {
            mica__text_add(w->text, " %% ");
            mica__msl_size(w, w->k->size[d]);
        }
        mica__text_add(w->text, ";\n");
    }
}
