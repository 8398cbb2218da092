/* Writes the C++ text: the tokens with their edits. The text between tokens (blanks,
 * newlines, line markers) is always kept, also where tokens are deleted, so that
 * the compiler's messages and the debug lines are those of the .metal file. */
#include "msl.h"

#include <stdlib.h>
#include <string.h>

static int by_place(const void *a, const void *b)
{
    const msl_edit *x = a, *y = b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : (x->last < y->last) - (x->last > y->last);
}

static void render(const msl_unit *unit, const msl_edit *edits, int count, sm_text *out)
{
    const msl_tokens *t = &unit->tokens;
    uint32_t at = 0;
    int next = 0;
    for (int i = 0; i < t->count; i++) {
        const msl_token *token = &t->list[i];
        sm_text_add(out, t->text + at, token->at - at);
        at = token->at + token->length;
        while (next < count && edits[next].first < i) next++; /* inside an applied edit */
        if (next < count && edits[next].first == i) {
            sm_text_add(out, edits[next].text, strlen(edits[next].text));
            for (int last = edits[next].last; i < last;) {
                token = &t->list[++i];
                sm_text_add(out, t->text + at, token->at - at);
                at = token->at + token->length;
            }
        } else {
            sm_text_add(out, t->text + token->at, token->length);
        }
    }
}

static void constant_text(const msl_constant *c, bool checking, const char *value, sm_text *out)
{
    const char *type = c->type_text, *name = c->facts.name;
    /* Without a value: an undefined variable. If the kernel reads it, loading fails with its name. */
    if (checking) sm_text_print(out, "extern const %s %s;", type, name);
    else if (value) sm_text_print(out, "static constexpr %s %s = %s;", type, name, value);
    else sm_text_print(out, "extern const %s %s __asm__(\"sm_unset_%s\");", type, name, name);
}

static const char *answer(const msl_unit *unit, int question, const char *const *values)
{
    for (int i = 0; i < unit->constants_count; i++)
        if (msl_is(&unit->tokens, question + 2, unit->constants[i].facts.name))
            return !values || values[i] ? "true" : "false";
    return NULL;
}

bool msl_emit(const msl_unit *unit, const char *const *values, sm_text *out)
{
    int count = unit->edits_count, more = unit->constants_count + unit->questions_count;
    msl_edit *edits = malloc((size_t)(count + more + 1) * sizeof *edits);
    sm_text *texts = calloc((size_t)unit->constants_count + 1, sizeof *texts);
    if (edits && texts) {
        if (count) memcpy(edits, unit->edits, (size_t)count * sizeof *edits);
        for (int i = 0; i < unit->constants_count; i++) {
            const msl_constant *c = &unit->constants[i];
            constant_text(c, !values, values ? values[i] : NULL, &texts[i]);
            out->failed |= texts[i].failed;
            edits[count++] = (msl_edit){c->first, c->last, texts[i].bytes ? texts[i].bytes : ""};
        }
        for (int i = 0; i < unit->questions_count; i++) {
            const char *text = answer(unit, unit->questions[i], values);
            if (text) edits[count++] = (msl_edit){unit->questions[i], unit->questions[i] + 3, text};
        }
        qsort(edits, (size_t)count, sizeof *edits, by_place);
        render(unit, edits, count, out);
    } else {
        out->failed = true;
    }
    for (int i = 0; texts && i < unit->constants_count; i++) sm_text_free(&texts[i]);
    free(texts);
    free(edits);
    return !out->failed;
}

void msl_emit_entry(const msl_unit *unit, const msl_name *name, sm_text *out)
{
    const msl_kernel *kernel = &unit->kernels[name->kernel];
    sm_text_print(out, "\n# 1 \"entry\"\nnamespace { constexpr auto sm_target = ");
    const char *rest = name->target + strcspn(name->target, " <(");
    if (name->signature) sm_text_print(out, "static_cast<%s>(&::%s); }\n", name->signature, kernel->name);
    else sm_text_print(out, "&::%s%s; }\n", kernel->name, rest);
    const char *limit = kernel->max_threads ? kernel->max_threads : "0";
    if (kernel->header && kernel->max_threads && *rest == ' ') rest++;
    bool depends = kernel->header && kernel->max_threads && *rest == '<'; /* may depend on template parameters */
    if (depends) sm_text_print(out, "%s constexpr int sm_limit = (%s);\n", kernel->header, limit);
    if (depends) sm_text_print(out, "namespace { constexpr int sm_threads = sm_limit%s; }\n", rest);
    sm_text_print(out, "SM_ENTRY(%s", depends ? "sm_threads" : kernel->header ? "0" : limit);
    for (int i = 0; i < kernel->count; i++) sm_text_print(out, ", %s", kernel->parameters[i].tag);
    sm_text_print(out, ")\n");
}
