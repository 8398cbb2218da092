/* See metal_lower.h. */
#include "backend/metal/metal_lower.h"

#include <string.h>

#include "backend/family_launch.h"
#include "base/alloc.h"
#include "kernels/common/gpu_view.h"
#include "plan/planner.h"

/* Estimated ns of a dispatch on the smallest GPU: bytes / 60 + operations / 1000 of the step, divided by
 * its dispatches, plus 2000. Used only to decide when to commit. */
static uint64_t step_cost(const mica__step *step, uint32_t dispatches)
{
    const uint64_t bytes = (step->bytes_read + step->bytes_written) / 60;
    return (bytes + step->flops / 1000) / (dispatches ? dispatches : 1) + 2000;
}

static mica__mtl_size size_of(const uint32_t n[3]) { return (mica__mtl_size){n[0], n[1], n[2]}; }

/* --------------------------------------------------------------- the CPU --- */

static mica_status lower_cpu(mica__plan *plan, mica__step *step, mica__metal_code *code, const char *why)
{
    mica__text note;
    char text[96];
    MICA_TRY(mica__backend_cpu.prepare_step(plan, step));
    mica__step *cpu = mica__arena_copy(&plan->arena, step, sizeof *step);
    mica__text_init(&note, text, sizeof text);
    mica__text_add(&note, "on the CPU: %s", why);
    step->note = mica__arena_copy(&plan->arena, text, sizeof text);
    if (!cpu || !step->note) return mica__fail_memory("metal: a step", sizeof *step);
    code->cpu = cpu;
    return MICA_OK;
}

/* ---------------------------------------------------- generated kernels ---- */

static bool is_float(double value) { return (double)(float)value == value; }

static const char *dtype_refused(const mica__gpu_limits *limits, int32_t dtype)
{
    if (dtype == MICA_F64) return "Metal has no f64";
    return dtype == MICA_BF16 && !limits->bfloat ? "this GPU's Metal has no bfloat" : NULL;
}

/* The reason why the CPU must run a kernel; NULL: the GPU can run it. The first index out of range is
 * the error, so one threadgroup checks all indices. An iota whose start or step is not a float is
 * computed in doubles. */
static const char *kernel_refused(const mica__metal_device *device, const mica__kernel *k)
{
    if (mica__msl_checks(k) && k->fold < k->n_inst) return "checks indices in a reduction";
    if (mica__msl_checks(k) && mica__kernel_outer(k) > MICA__MSL_MAX_CHECKED)
        return "checks more indices than one threadgroup should";
    for (uint32_t i = 0; i < k->n_inst; i++) {
        const mica__kinst *inst = &k->inst[i];
        const char *why = dtype_refused(&device->limits, (int32_t)inst->dtype);
        if (why) return why;
        if (inst->code == MICA__K_IOTA && mica__is_float(inst->dtype) &&
            !(is_float(inst->value.f) && is_float(inst->step.f)))
            return "counts in doubles";
    }
    return NULL;
}

/* The same for a node of a graph. The scratch of a family is planned for the GPU, so a node that the GPU
 * cannot run must not be its epilogue. */
static bool node_is_refused(const mica__gpu_limits *limits, const mica__gnode *node)
{
    const bool counts = node->op == MICA__OP_IOTA && mica__is_float((mica_dtype)node->spec.dtype);
    const mica__attr_iota *iota = counts ? node->attr : NULL;
    if (dtype_refused(limits, node->spec.dtype)) return true;
    if (iota) return !(is_float(iota->start.f) && is_float(iota->step.f));
    return node->op == MICA__OP_CHECK_INDEX && mica__spec_size(&node->spec) > MICA__MSL_MAX_CHECKED;
}

bool mica__metal_can_follow(const mica__gpu_limits *limits, const mica__graph *g, uint32_t family, uint32_t node)
{
    const mica__gnode *f = &g->node[family];
    bool on_cpu = dtype_refused(limits, f->spec.dtype);
    for (uint32_t i = 0; i < f->n_in; i++) on_cpu |= node_is_refused(limits, &g->node[f->in[i]]);
    return on_cpu || !node_is_refused(limits, &g->node[node]);
}

typedef struct elements_work {
    int64_t results, cores;
} elements_work;

/* Several elements per thread only if that leaves at least two threadgroups per core. */
static bool leaves_enough_groups(const mica__gpu_shape *s, const void *work)
{
    const elements_work *w = work;
    return s->k == 1 || w->results >= (int64_t)s->k * s->simds * 32 * 2 * w->cores;
}

mica__msl_shape mica__metal_shape(const mica__gpu_limits *limits, int64_t results)
{
    const elements_work work = {results, mica__gpu_cores(limits)};
    const mica__gpu_shape *one = mica__gpu_pick(limits, MICA__KNOB_ELEMENTS, leaves_enough_groups, &work),
                          *fold = mica__gpu_pick(limits, MICA__KNOB_FOLD, NULL, NULL),
                          *long_fold = mica__gpu_pick(limits, MICA__KNOB_LONG_FOLD, NULL, NULL);
    mica__msl_shape shape = mica__msl_usual; /* for any device: fit_threads reduces the threads */
    if (one) shape.threads = limits->simd_width * one->simds, shape.each = one->k;
    if (fold) shape.fold_threads = limits->simd_width * fold->simds, shape.fold_each = fold->k;
    if (long_fold) shape.part = long_fold->k, shape.parts = long_fold->m;
    return shape;
}

/* Halves the threads until the compiled kernel allows them; a power of two stays a power of two. */
static void fit_threads(const mica__pipeline *p, mica__msl_launch *launch)
{
    while (launch->threads > p->max_threads && launch->threads > 1) {
        launch->threads /= 2;
        if (!launch->by_group) launch->groups[0] *= 2;
    }
}

/* The text of a kernel: whole, the first or second stage of a long reduction, or an epilogue. */
typedef enum emit_form { EMIT_WHOLE, EMIT_PARTS, EMIT_JOIN, EMIT_EPILOGUE } emit_form;

static mica_status emit_kernel(const mica__kernel *k, const mica__msl_shape *shape, emit_form form, uint32_t scratch,
                               mica__text *text, mica__msl_launch *launch)
{
    if (form == EMIT_EPILOGUE) return mica__emit_msl_epilogue(k, text, launch);
    if (form == EMIT_WHOLE) return mica__emit_msl(k, shape, "mica_kernel", text, launch);
    return mica__emit_msl_parts(k, shape, form == EMIT_PARTS ? 1 : 2, scratch, "mica_kernel", text, launch);
}

/* The caller frees *out, also after a failure. shape: NULL for an epilogue. */
static mica_status emit_text(const mica__kernel *k, const mica__msl_shape *shape, emit_form form, uint32_t scratch,
                             char **out, mica__msl_launch *launch)
{
    mica__text text;
    mica__text_init(&text, NULL, 0);
    MICA_TRY(emit_kernel(k, shape, form, scratch, &text, NULL));
    char *buffer = mica__alloc(text.length + 1);
    if (!buffer) return mica__fail_memory("metal: a kernel's text", text.length + 1);
    mica__text_init(&text, buffer, text.length + 1);
    *out = buffer;
    return emit_kernel(k, shape, form, scratch, &text, launch);
}

static mica_status lower_launch(mica__plan *plan, const mica__step *step, const mica__msl_launch *launch,
                                mica__metal_dispatch *d)
{
    mica__metal_slot *slot = mica__arena_array(&plan->arena, launch->n_buffer + 2u, sizeof *slot);
    d->bytes =
        launch->n_word ? mica__arena_copy(&plan->arena, launch->word, launch->n_word * sizeof *launch->word) : NULL;
    if (plan->arena.failed) return mica__fail_memory("metal: a kernel's operands", sizeof *launch);
    for (uint32_t i = 0; i < launch->n_buffer; i++) slot[i] = (mica__metal_slot){launch->block[i], launch->offset[i]};
    d->slot = slot;
    d->n_slot = launch->n_buffer;
    if (launch->checks) {
        slot[d->n_slot++] = (mica__metal_slot){MICA__METAL_FAULT, 0};
        d->op = MICA__OP_CHECK_INDEX;
    }
    d->bytes_at = d->n_slot;
    d->n_bytes = launch->n_word * sizeof *launch->word;
    d->groups = size_of(launch->groups);
    d->threads = (mica__mtl_size){launch->threads, 1, 1};
    d->cost_ns = step_cost(step, 1);
    return MICA_OK;
}

/* d is the next dispatch of code. */
static mica_status lower_kernel(const mica__metal_device *device, mica__plan *plan, const mica__step *step,
                                const mica__kernel *k, emit_form form, mica__metal_code *code, mica__metal_dispatch *d)
{
    mica__msl_launch *launch = mica__arena_alloc(&plan->arena, sizeof *launch);
    char *text = NULL;
    if (!launch) return mica__fail_memory("metal: a kernel", sizeof *launch);
    const mica__msl_shape shape = mica__metal_shape(&device->limits, mica__kernel_outer(k));
    mica_status status = emit_text(k, &shape, form, step->workspace, &text, launch);
    char name[64];
    mica__text label;
    mica__text_init(&label, name, sizeof name);
    mica__step_name(plan, step, &label);
    const mica__pipeline_source source = {.text = text, .kernel = "mica_kernel", .label = name};
    if (status == MICA_OK) status = mica__pipeline_get(device, &source, &d->pipeline);
    mica__free(text);
    MICA_TRY(status);
    if (code->n == 0) code->dispatch = d;
    code->n++;
    fit_threads(d->pipeline, launch);
    return lower_launch(plan, step, launch, d);
}

/* A long reduction to few results takes two dispatches, any other kernel one. */
static mica_status lower_kernels(const mica__metal_device *device, mica__plan *plan, const mica__step *step,
                                 const mica__kernel *k, mica__metal_code *code)
{
    const int64_t results = mica__kernel_outer(k);
    const mica__msl_shape shape = mica__metal_shape(&device->limits, results);
    const int64_t parts = mica__msl_fold_parts(&shape, results, mica__kernel_folded(k));
    const bool folds = k->fold < k->n_inst && step->workspace != MICA__NO_BLOCK && parts > 1 &&
                       (size_t)(results * parts) * sizeof(int64_t) <= step->workspace_bytes;
    mica__metal_dispatch *d = mica__arena_array(&plan->arena, 2, sizeof *d);
    if (!d) return mica__fail_memory("metal: a kernel", sizeof *d);
    if (!folds) return lower_kernel(device, plan, step, k, EMIT_WHOLE, code, d);
    MICA_TRY(lower_kernel(device, plan, step, k, EMIT_PARTS, code, &d[0]));
    d[1].barrier = true;
    return lower_kernel(device, plan, step, k, EMIT_JOIN, code, &d[1]);
}

/* -------------------------------------------------------------- families --- */

static const char *operand_refused(const mica__gpu_limits *limits, const mica__family *family, const mica__spec *spec)
{
    const bool its_own = spec->dtype == MICA_F64 && family && family->gpu_f64;
    return its_own ? NULL : dtype_refused(limits, spec->dtype);
}

/* Gets the dispatches of a family on a device with these limits; list->refused is the reason if it has none. */
static mica_status query_family(const mica__gpu_limits *limits, mica__op op, const mica__gpu_launch *asked,
                                mica__gpu_list *list)
{
    const mica__family *family = mica__family_get(op);
    const char *why = operand_refused(limits, family, &asked->out->spec);
    for (uint32_t i = 0; !why && i < asked->n_in; i++) why = operand_refused(limits, family, &asked->in[i].spec);
    if (why) return mica__gpu_refuse(list, why);
    if (!family || !family->gpu) return mica__gpu_refuse(list, "no GPU kernel for it yet");
    if (mica__spec_size(&asked->out->spec) == 0) return mica__gpu_refuse(list, "nothing to do");
    mica__gpu_launch launch = *asked;
    launch.gpu = limits;
    MICA_TRY(family->gpu(&launch, list));
    if (list->failed) return mica__fail_memory("metal: a family's dispatches", sizeof *list->dispatch);
    return MICA_OK;
}

static mica_status check_dispatch(const mica__gpu_dispatch *d, uint32_t n_in)
{
    bool fits =
        d->n_binding + (d->params ? 1u : 0u) <= MICA__GPU_MAX_BINDINGS && d->n_constant <= MICA__GPU_MAX_CONSTANTS;
    for (uint32_t i = 0; fits && i < d->n_binding; i++)
        fits = d->binding[i].source != MICA__GPU_IN || d->binding[i].operand < n_in;
    return fits ? MICA_OK : mica__fail(MICA_ERR_INTERNAL, "metal: %s: a dispatch exceeds a limit of gpu.h", d->kernel);
}

/* The element-wise ops after a family. */
typedef struct family_epilogue {
    const mica__kernel *k;      /* NULL: none                                            */
    char *text;                 /* to compile into the family's last kernel; NULL: none  */
    mica__msl_launch *launch;
    const char *apart;          /* why it is a separate kernel; NULL: it is not          */
} family_epilogue;

/* The dispatches of a launch with their pipelines. */
typedef struct family_fit {
    mica__gpu_list list;
    mica__pipeline **pipeline;
    uint32_t n;                 /* pipelines in the list */
    bool again;                 /* they were compiled before, when scratch was planned */
} family_fit;

static void drop_fit(family_fit *fit)
{
    while (fit->n > 0) mica__pipeline_drop(fit->pipeline[--fit->n]);
}

/* Sets e->apart if the last dispatch cannot include the epilogue. */
static void check_epilogue_room(family_epilogue *e, const mica__gpu_list *list)
{
    if (!e->text || e->apart || list->n == 0) return;
    const mica__gpu_dispatch *last = &list->dispatch[list->n - 1];
    if (!last->finishes) e->apart = "no place for it in the kernel";
    else if (last->n_binding + 1 + e->launch->n_buffer > MICA__GPU_MAX_BINDINGS ||
             last->params_bytes + e->launch->n_word * sizeof *e->launch->word > MICA__GPU_MAX_PARAMS)
        e->apart = "too many operands";
}

/* Compiles the dispatches in the list. *over: the first dispatch with more threads per threadgroup than
 * its compiled kernel allows, NULL if there is none; *most: the smallest limit of such a kernel. */
static mica_status fit_compile(const mica__metal_device *device, family_fit *fit, uint32_t n_in,
                               family_epilogue *epilogue, const mica__gpu_dispatch **over, uint32_t *most)
{
    *over = NULL;
    check_epilogue_room(epilogue, &fit->list);
    fit->pipeline = mica__arena_array(fit->list.arena, fit->list.n + 1, sizeof(mica__pipeline *));
    if (!fit->pipeline) return mica__fail_memory("metal: a step", sizeof fit->pipeline);
    for (uint32_t i = 0; i < fit->list.n; i++) {
        const mica__gpu_dispatch *d = &fit->list.dispatch[i];
        const mica__pipeline_source source = {.shader = d->shader,
                                              .text = d->finishes && !epilogue->apart ? epilogue->text : NULL,
                                              .kernel = d->kernel,
                                              .again = fit->again,
                                              .constant = d->constant,
                                              .n_constant = d->n_constant};
        MICA_TRY(check_dispatch(d, n_in));
        MICA_TRY(mica__pipeline_get(device, &source, &fit->pipeline[i]));
        fit->n++;
        const uint32_t may = fit->pipeline[i]->max_threads;
        if ((uint64_t)d->threads[0] * d->threads[1] * d->threads[2] <= may) continue;
        *most = *over && *most < may ? *most : may;
        *over = *over ? *over : d;
    }
    return MICA_OK;
}

static mica_status fit_refuse(family_fit *fit, const mica__gpu_dispatch *d, uint32_t may)
{
    mica__text text;
    char why[96];
    mica__text_init(&text, why, sizeof why);
    mica__text_add(&text, "%s wants %u threads in a group, may have %u", d->kernel,
                   d->threads[0] * d->threads[1] * d->threads[2], may);
    const char *kept = mica__arena_copy(fit->list.arena, why, sizeof why);
    return kept ? mica__gpu_refuse(&fit->list, kept) : mica__fail_memory("metal: a step", sizeof why);
}

/* Finds the dispatches of a launch with threadgroups that the compiled kernels allow. A kernel that
 * uses many registers allows fewer threads than the device, which is known only after it is compiled.
 * The family is then lowered again for a device with that limit. The CPU runs the step if the limit is
 * below a simdgroup or the family has no smaller shape. The caller drops the pipelines, also on failure. */
static mica_status find_family_dispatches(const mica__metal_device *device, mica__op op, const mica__gpu_launch *asked,
                                          mica__arena *arena, family_epilogue *epilogue, bool again, family_fit *fit)
{
    mica__gpu_limits limits = device->limits;
    const mica__gpu_dispatch *first = NULL; /* the first dispatch that was too large */
    uint32_t may = 0;
    for (;;) {
        const mica__gpu_dispatch *over;
        uint32_t most = 0;
        *fit = (family_fit){.list.arena = arena, .again = again};
        MICA_TRY(query_family(&limits, op, asked, &fit->list));
        if (fit->list.refused && first) return fit_refuse(fit, first, may);
        MICA_TRY(fit_compile(device, fit, asked->n_in, epilogue, &over, &most));
        if (!over) return MICA_OK;
        drop_fit(fit);
        if (epilogue->text && !epilogue->apart) { /* the planned scratch assumes no epilogue */
            epilogue->apart = "too few threads";
            continue;
        }
        if (!first) first = over, may = most; /* the arena keeps earlier lists */
        if (most < limits.simd_width || most >= limits.max_threads) return fit_refuse(fit, over, most);
        limits.max_threads = most;
    }
}

static mica_status lower_dispatch(mica__plan *plan, const mica__step *step, const mica__family_code *family,
                                  const mica__gpu_dispatch *from, mica__metal_dispatch *d)
{
    mica__metal_slot *slot = mica__arena_array(&plan->arena, from->n_binding + 1, sizeof *slot);
    if (!slot) return mica__fail_memory("metal: a kernel's operands", sizeof *slot);
    for (uint32_t i = 0; i < from->n_binding; i++) {
        const mica__gpu_binding *b = &from->binding[i];
        const uint32_t tensor = b->source == MICA__GPU_IN ? b->operand : family->n_in;
        if (b->source == MICA__GPU_FAULT) slot[i] = (mica__metal_slot){MICA__METAL_FAULT, 0};
        else if (b->source == MICA__GPU_WORKSPACE) slot[i] = (mica__metal_slot){step->workspace, b->offset};
        else slot[i] = (mica__metal_slot){family->place[tensor].block, family->place[tensor].nbytes + b->offset};
    }
    d->slot = slot;
    d->n_slot = d->bytes_at = from->n_binding;
    d->bytes = from->params;
    d->n_bytes = from->params_bytes;
    d->groups = size_of(from->groups);
    d->threads = size_of(from->threads);
    d->barrier = from->barrier;
    d->op = (uint16_t)family->family->op;
    return MICA_OK;
}

/* Appends the operands and numbers of the epilogue to those of the kernel that includes it. */
static mica_status epilogue_bind(mica__plan *plan, const mica__msl_launch *e, mica__metal_dispatch *d)
{
    const size_t words = e->n_word * sizeof *e->word;
    mica__metal_slot *slot = mica__arena_array(&plan->arena, d->n_slot + e->n_buffer + 1, sizeof *slot);
    char *bytes = mica__arena_alloc(&plan->arena, d->n_bytes + words);
    if (!slot || !bytes) return mica__fail_memory("metal: an epilogue", d->n_bytes + words);
    memcpy(slot, d->slot, d->n_slot * sizeof *slot);
    for (uint32_t i = 0; i < e->n_buffer; i++) slot[d->n_slot + i] = (mica__metal_slot){e->block[i], e->offset[i]};
    memcpy(bytes, d->bytes, d->n_bytes);
    memcpy(bytes + d->n_bytes, e->word, words);
    d->slot = slot;
    d->n_slot += e->n_buffer;
    d->bytes = bytes;
    d->n_bytes += words;
    return MICA_OK;
}

/* Moves the pipelines into code->dispatch, which has room for one more dispatch (the epilogue). */
static mica_status lower_fit(mica__plan *plan, mica__step *step, const mica__family_code *family, family_fit *fit,
                             const family_epilogue *epilogue, mica__metal_code *code)
{
    const mica__gpu_list *list = &fit->list;
    if (list->workspace > 0 && (step->workspace == MICA__NO_BLOCK || step->workspace_bytes < list->workspace))
        return mica__fail(MICA_ERR_INTERNAL, "metal: %s: scratch of %zu bytes was not planned",
                          mica__op_get((uint16_t)family->family->op)->name, list->workspace);
    code->dispatch = mica__arena_array(&plan->arena, list->n + 2, sizeof *code->dispatch);
    if (!code->dispatch) return mica__fail_memory("metal: a step", sizeof *code->dispatch);
    for (uint32_t i = 0; i < list->n; i++) {
        MICA_TRY(lower_dispatch(plan, step, family, &list->dispatch[i], &code->dispatch[i]));
        code->dispatch[i].cost_ns = step_cost(step, list->n);
    }
    if (epilogue->text && !epilogue->apart)
        MICA_TRY(epilogue_bind(plan, epilogue->launch, &code->dispatch[list->n - 1]));
    for (uint32_t i = 0; i < list->n; i++) code->dispatch[i].pipeline = fit->pipeline[i];
    code->n = list->n;
    fit->n = 0;
    return MICA_OK;
}

static mica_status epilogue_begin(mica__plan *plan, mica__kernel *k, family_epilogue *e)
{
    *e = (family_epilogue){.k = k};
    if (!k) return MICA_OK;
    e->apart = mica__msl_epilogue_refused(k);
    if (e->apart) return MICA_OK;
    e->launch = mica__arena_alloc(&plan->arena, sizeof *e->launch);
    if (!e->launch) return mica__fail_memory("metal: an epilogue", sizeof *e->launch);
    return emit_text(k, NULL, EMIT_EPILOGUE, MICA__NO_BLOCK, &e->text, e->launch);
}

/* Lowers an epilogue that the family's kernel cannot include, as a separate dispatch. */
static mica_status lower_separate_epilogue(const mica__metal_device *device, mica__plan *plan, mica__step *step,
                                           const family_epilogue *e, mica__metal_code *code)
{
    mica__text note;
    char text[96];
    mica__text_init(&note, text, sizeof text);
    mica__text_add(&note, "epilogue apart: %s", e->apart);
    step->note = mica__arena_copy(&plan->arena, text, sizeof text);
    if (!step->note) return mica__fail_memory("metal: a step", sizeof text);
    mica__metal_dispatch *d = &code->dispatch[code->n];
    MICA_TRY(lower_kernel(device, plan, step, e->k, EMIT_WHOLE, code, d));
    d->barrier = true;
    return MICA_OK;
}

/* True if the scratch is the same for any limit of threads. Then nothing has to be compiled to plan it;
 * such a kernel would not be used if an epilogue is compiled into it later. */
static bool scratch_is_known(const mica__metal_device *device, mica__op op, const mica__gpu_launch *asked,
                             mica__arena *arena, size_t *nbytes)
{
    mica__gpu_limits least = device->limits;
    mica__gpu_list most = {.arena = arena}, few = {.arena = arena};
    least.max_threads = least.simd_width;
    if (query_family(&device->limits, op, asked, &most) != MICA_OK || query_family(&least, op, asked, &few) != MICA_OK)
        return false;
    if (most.refused) return true;
    if (few.refused || few.workspace != most.workspace) return false;
    *nbytes = most.workspace;
    return true;
}

/* Sets how the launch uses rounded rows in shared scratch (mica__target.can_share_scratch). */
static void set_rounded_rows(const mica__plan *plan, const mica__step *step, mica__gpu_launch *asked)
{
    const mica__op op = (mica__op)plan->graph->node[step->node[0]].op;
    const mica__metal_code *from = step->scratch_from == MICA__NO_NODE ? NULL : plan->step[step->scratch_from].code;
    asked->rounded = from && from->shares_rounded;
    asked->rounds = (op == MICA__OP_RMS_NORM || op == MICA__OP_LAYER_NORM) && step->workspace != MICA__NO_BLOCK;
}

/* Lowers the family and its epilogue to dispatches. */
static mica_status family_lower(const mica__metal_device *device, mica__plan *plan, mica__step *step,
                                const mica__family_code *family, family_epilogue *epilogue, mica__metal_code *code)
{
    const mica__op op = family->family->op;
    mica__gpu_launch asked = {
        .in = family->tensor, .n_in = family->n_in, .out = &family->tensor[family->n_in], .attr = family->attr};
    family_fit fit;
    size_t unused;
    const bool again = !scratch_is_known(device, op, &asked, &plan->arena, &unused);
    set_rounded_rows(plan, step, &asked);
    mica_status status = find_family_dispatches(device, op, &asked, &plan->arena, epilogue, again, &fit);
    if (status == MICA_OK && asked.rounds && epilogue->apart) { /* a separate epilogue runs after the rounding */
        drop_fit(&fit);
        asked.rounds = false;
        status = find_family_dispatches(device, op, &asked, &plan->arena, epilogue, again, &fit);
    }
    if (status == MICA_OK)
        status = fit.list.refused ? lower_cpu(plan, step, code, fit.list.refused)
                                  : lower_fit(plan, step, family, &fit, epilogue, code);
    drop_fit(&fit);
    if (status != MICA_OK || code->cpu) return status;
    code->found = asked.rounded;
    code->shares_rounded = asked.rounds || op == MICA__OP_QMATMUL;
    if (epilogue->apart) return lower_separate_epilogue(device, plan, step, epilogue, code);
    step->note = asked.rounds ? "rounded for the products" : asked.rounded ? "x is rounded" : NULL;
    return MICA_OK;
}

static mica_status lower_family(const mica__metal_device *device, mica__plan *plan, mica__step *step,
                                mica__metal_code *code)
{
    const mica__family_code *family;
    family_epilogue epilogue;
    mica__kernel *k;
    MICA_TRY(mica__kernel_build(plan, step, &plan->arena, &k));
    const char *refused = k ? kernel_refused(device, k) : NULL;
    if (refused) return lower_cpu(plan, step, code, refused);
    MICA_TRY(mica__family_prepare(plan, step, &family));
    mica_status status = epilogue_begin(plan, k, &epilogue);
    if (status == MICA_OK) status = family_lower(device, plan, step, family, &epilogue, code);
    mica__free(epilogue.text);
    return status;
}

size_t mica__metal_workspace(const mica__metal_device *device, mica__op op, const mica__operand *in, uint32_t n_in,
                             const void *attr, const mica__spec *out)
{
    mica__arena arena;
    mica__arena_init(&arena);
    size_t nbytes = mica__family_workspace(op, in, n_in, attr, out);
    mica__tensor *tensor = mica__arena_array(&arena, n_in + 1, sizeof *tensor);
    for (uint32_t i = 0; tensor && i < n_in; i++) {
        tensor[i].spec = in[i].spec;
        memcpy(tensor[i].strides, in[i].strides, sizeof in[i].strides);
    }
    if (tensor) {
        tensor[n_in].spec = *out;
        mica__row_major(out, tensor[n_in].strides);
        const mica__gpu_launch asked = {.in = tensor, .n_in = n_in, .out = &tensor[n_in], .attr = attr};
        family_fit fit;
        family_epilogue none = {.k = NULL};
        /* The scratch depends on the limit of threads, which is known only after compiling. A failure occurs
         * again, and is reported, when the step is lowered. */
        if (!scratch_is_known(device, op, &asked, &arena, &nbytes)) {
            const mica_status status = find_family_dispatches(device, op, &asked, &arena, &none, false, &fit);
            if (status == MICA_OK && !fit.list.refused) nbytes = fit.list.workspace;
            if (status == MICA_ERR_MEMORY) nbytes = SIZE_MAX;
            drop_fit(&fit);
        }
    }
    if (arena.failed) nbytes = SIZE_MAX;
    mica__arena_free(&arena);
    return nbytes;
}

/* ------------------------------------------------------------------ steps -- */

mica_status mica__metal_lower(const mica__metal_device *device, mica__plan *plan, mica__step *step)
{
    mica__kernel *k = NULL;
    mica__metal_code *code = mica__arena_alloc(&plan->arena, sizeof *code);
    if (!code) return mica__fail_memory("metal: a step", sizeof *code);
    mica_status status = MICA_OK;
    if (step->kind == MICA__STEP_FAMILY) {
        status = lower_family(device, plan, step, code);
    } else {
        MICA_TRY(mica__kernel_build(plan, step, &plan->arena, &k));
        const char *refused = kernel_refused(device, k);
        if (refused) status = lower_cpu(plan, step, code, refused);
        else if (mica__kernel_outer(k) > 0) status = lower_kernels(device, plan, step, k, code);
    }
    step->code = code;
    return status;
}

void mica__metal_code_free(mica__plan *plan)
{
    for (uint32_t i = 0; i < plan->n_step; i++) {
        mica__step *step = &plan->step[i];
        if (step->kind == MICA__STEP_SCAN) mica__metal_code_free(step->body);
        mica__metal_code *code = step->kind == MICA__STEP_SCAN ? NULL : step->code;
        for (uint32_t j = 0; code && j < code->n; j++) mica__pipeline_drop(code->dispatch[j].pipeline);
        step->code = NULL;
    }
}
