/* Lowering of products with block formats (quant_*.metal): round x, then multiply few rows of x by simdgroups, many by
 * tiles. Codes with block scales always use simdgroups: their sums are exact only within a block. */
#include "kernels/common/gpu_view.h"
#include "kernels/index/index_gpu.h"
#include "kernels/qmatmul/qmatmul.h"
#include "kernels/qmatmul/qmatmul_gpu.h"
#include "quant/quant_blocks.h"

#include "kernels/qmatmul/qmatmul_params.h"

enum {
    QGPU_FEW = 8,               /* most rows of x that use simdgroups                    */
    QGPU_PANEL = 16,            /* rows of a block of MICA_ formats                      */
    QGPU_EXACT = (1 << 24) / 254 /* most columns whose sum of codes fits a float exactly  */
};

enum {
#define X(name, code) KIND_##name = (code),
    MICA_QMATMUL_KINDS(X)
#undef X
};
#define X(name, code) _Static_assert(MICA_##name == (code), #name);
MICA_QMATMUL_ACTS(X)
#undef X
_Static_assert((int)KIND_BITS == (int)MICA__CODES_BITS && (int)KIND_TWO_BITS == (int)MICA__CODES_TWO_BITS &&
                   (int)KIND_TRITS == (int)MICA__CODES_TRITS,
               "kinds of codes");

/* The first function constants of quant_matrix.metal. */
typedef struct qgpu_format {
    uint32_t kind;
    int32_t block, bytes, scale, codes, a, b, c;
} qgpu_format;

static bool qgpu_format_of(const mica__attr_quant *attr, qgpu_format *f)
{
    const mica__quant_id id = (mica__quant_id)attr->format;
    const mica__ternary_layout *t = mica__ternary_layout_of(id);
    const mica__small_layout *s = mica__small_layout_of(id);
    if (t) {
        *f = (qgpu_format){t->kind, t->block, t->bytes, t->scale, t->codes, t->span, t->stride, t->high_first};
        if (t->kind == KIND_TRITS) f->a = t->run[0], f->b = t->run[1], f->c = t->run[2];
        return true;
    }
    if (s) {
        *f = (qgpu_format){KIND_SMALL, 32, s->bytes, 0, s->low, s->bits, s->min, s->high};
        return true;
    }
    const mica__quant *q = mica__quant_get(id);
    const int block = q ? q->block : 1, bytes = q ? (int)q->bytes : 1;
    *f = (qgpu_format){.block = block, .bytes = bytes};
    switch (id) {
    case MICA__QUANT_Q8_0: f->kind = KIND_Q8_0; return true;
    case MICA__QUANT_Q4_K: f->kind = KIND_K45, f->a = 4; return true;
    case MICA__QUANT_Q5_K: f->kind = KIND_K45, f->a = 5; return true;
    case MICA__QUANT_Q6_K: f->kind = KIND_Q6_K; return true;
    case MICA__QUANT_HF_TERNARY: f->kind = KIND_HF; return true;
    case MICA__QUANT_MICA_T2: f->kind = KIND_T2; return true;
    case MICA__QUANT_MICA_Q8: f->kind = KIND_PANEL8; return true;
    case MICA__QUANT_MICA_T1: f->kind = KIND_T1; return true;
    case MICA__QUANT_AFFINE:
        f->kind = KIND_AFFINE, f->a = (int32_t)attr->bits, f->b = (int32_t)attr->group;
        return true;
    case MICA__QUANT_F32: f->kind = KIND_PLAIN, f->a = 32; return true;
    case MICA__QUANT_F16: f->kind = KIND_PLAIN, f->a = 16; return true;
    case MICA__QUANT_BF16: f->kind = KIND_PLAIN, f->a = 8; return true;
    default: return false;
    }
}

/* State of one launch. matrix: the number of its first operand. */
typedef struct qgpu_job {
    const mica__gpu_launch *l;
    mica__gpu_list *list;
    const mica__attr_quant *attr;
    qgpu_format format;
    mica_qmatmul_params p;
    int64_t codes, acts;        /* offsets in the workspace                              */
} qgpu_job;

static bool qgpu_begin(qgpu_job *job, const mica__gpu_launch *l, mica__gpu_list *list)
{
    const mica__attr_quant *attr = l->attr;
    *job = (qgpu_job){.l = l, .list = list, .attr = attr};
    if (!mica__gpu_counts(l) || !qgpu_format_of(attr, &job->format)) return false;
    const mica__quant *q = mica__quant_get((mica__quant_id)attr->format);
    job->p = (mica_qmatmul_params){.rows = (uint32_t)attr->rows, .cols = (uint32_t)attr->cols};
    const mica__quant_matrix m = mica__quant_matrix_of(attr, -1);
    if (q && q->tail) job->p.tail = mica__quant_matrix_nbytes(&m) - q->tail;
    return true;
}

static void qgpu_constants(const qgpu_job *job, mica__gpu_dispatch *d, int64_t act)
{
    const qgpu_format *f = &job->format;
    const mica__gpu_launch *l = job->l;
    mica__gpu_constant_uint(d, MICA_QMATMUL_KIND, f->kind);
    mica__gpu_constant_int(d, MICA_QMATMUL_BLOCK, f->block);
    mica__gpu_constant_int(d, MICA_QMATMUL_BYTES, f->bytes);
    mica__gpu_constant_int(d, MICA_QMATMUL_SCALE_PLACE, f->scale);
    mica__gpu_constant_int(d, MICA_QMATMUL_CODE_PLACE, f->codes);
    mica__gpu_constant_int(d, MICA_QMATMUL_LAYOUT_A, f->a);
    mica__gpu_constant_int(d, MICA_QMATMUL_LAYOUT_B, f->b);
    mica__gpu_constant_int(d, MICA_QMATMUL_LAYOUT_C, f->c);
    mica__gpu_constant_uint(d, MICA_QMATMUL_SCALE_TYPE, l->n_in > 2 ? (uint32_t)l->in[2].spec.dtype : 0);
    mica__gpu_constant_bool(d, MICA_QMATMUL_SCALE_DIVIDES, job->attr->scale_divides != 0);
    mica__gpu_constant_uint(d, MICA_QMATMUL_ACT, (uint32_t)act);
}

/* Binds the matrix, its scales and biases, or a placeholder for those that are absent. */
static void qgpu_bind_matrix(const qgpu_job *job, mica__gpu_dispatch *d, bool biases)
{
    const uint32_t n = job->l->n_in;
    mica__gpu_bind_in(d, 1, 0);
    mica__gpu_bind_in(d, n > 2 ? 2 : 1, 0);
    if (biases) mica__gpu_bind_in(d, n > 3 ? 3 : 1, 0);
}

mica__gpu_rounded mica__gpu_round_place(mica__gpu_list *list, int64_t rows, int64_t cols, int64_t act)
{
    const uint32_t blocks = mica__gpu_parts(cols, MICA__ACT_BLOCK); /* zero padding up to whole blocks of any format */
    mica__gpu_rounded r = {.pitch = blocks * MICA__ACT_BLOCK, .each = act == MICA_ACT_BLOCK256 ? 1 + blocks : 1};
    if (act != MICA_ACT_NONE) r.codes = mica__gpu_workspace(list, (size_t)rows * r.pitch);
    r.scales = mica__gpu_workspace(list, (size_t)rows * r.each * sizeof(float));
    return r;
}

bool mica__gpu_shares_rounded(const mica__graph *g, const mica__step *earlier, const mica__step *later, bool of_result)
{
    const mica__gnode *a = &g->node[earlier->node[0]], *b = &g->node[later->node[0]];
    const mica__attr_quant *second = b->attr;
    if (b->op != MICA__OP_QMATMUL || second->act == MICA_ACT_NONE) return false;
    if (of_result) {
        const mica__spec *y = &earlier->out[0].spec;
        return (a->op == MICA__OP_RMS_NORM || a->op == MICA__OP_LAYER_NORM) && second->act == MICA_ACT_TOKEN &&
               y->dtype == MICA_F32 && mica__row_size(y) == second->cols;
    }
    const mica__attr_quant *first = a->attr;
    return a->op == MICA__OP_QMATMUL && first->act == second->act && first->cols == second->cols;
}

static void qgpu_round(qgpu_job *job)
{
    const mica_qmatmul_params *p = &job->p;
    if (job->l->rounded) return;
    mica__gpu_dispatch *d = mica__gpu_add(job->list, "quant_rows", "quant_round");
    mica__gpu_constant_uint(d, MICA_QMATMUL_ACT, (uint32_t)job->attr->act);
    mica__gpu_operand(d, job->l, 0);
    mica__gpu_bind_workspace(d, job->codes);
    mica__gpu_bind_workspace(d, job->acts);
    mica__gpu_params(job->list, d, p, sizeof *p);
    const mica__gpu_shape *shape = mica__gpu_pick(job->l->gpu, MICA__KNOB_QUANT_ROUND, NULL, NULL);
    mica__gpu_grid(d, p->count, 1, 1,
                   shape ? mica__gpu_shape_threads(job->l->gpu, shape, p->cols) : job->l->gpu->simd_width, 1, 1);
}

/* The kernel that computes by rows of the matrix, and its rows per simdgroup or, for panels, per threadgroup. */
static const char *qgpu_line_kernel(const qgpu_job *job, bool codes, uint32_t *rows, bool *panels)
{
    const uint32_t kind = job->format.kind;
    const bool ternary = kind == KIND_T2 || kind == KIND_T1;
    *panels = (codes && ternary) || kind == KIND_PANEL8;
    *rows = *panels ? QGPU_PANEL : codes && kind == KIND_HF ? 4 : 1;
    if (kind == KIND_PANEL8) return "quant_panel8";
    if (!codes) return "quant_values";
    return ternary ? "quant_panels" : kind == KIND_HF ? "quant_hf" : "quant_codes";
}

static mica_status qgpu_lines(qgpu_job *job, bool codes)
{
    const mica_qmatmul_params *p = &job->p;
    const mica__gpu_limits *gpu = job->l->gpu;
    uint32_t rows;
    bool panels;
    const char *kernel = qgpu_line_kernel(job, codes, &rows, &panels);
    const mica__gpu_shape *shape =
        mica__gpu_pick(gpu, panels ? MICA__KNOB_QMATVEC_PANEL : MICA__KNOB_QMATVEC, NULL, NULL);
    if (!shape) return mica__gpu_refuse(job->list, "threadgroups too small");
    mica__gpu_dispatch *d = mica__gpu_add(job->list, codes ? "quant_codes" : "quant_values", kernel);
    qgpu_constants(job, d, job->attr->act);
    qgpu_bind_matrix(job, d, !codes);
    if (!codes) mica__gpu_operand(d, job->l, 0);
    mica__gpu_bind_workspace(d, job->codes);
    mica__gpu_bind_workspace(d, job->acts);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(job->list, d, p, sizeof *p);
    mica__gpu_grid(d, mica__gpu_parts(mica__gpu_parts(p->rows, rows), panels ? 1 : shape->simds),
                   mica__gpu_parts(p->count, shape->n), 1, gpu->simd_width, shape->simds, 1);
    d->barrier = !job->l->rounded;
    d->finishes = true;
    return MICA_OK;
}

static void qgpu_tile(qgpu_job *job, const mica__gpu_shape *tile, bool exact)
{
    const mica_qmatmul_params *p = &job->p;
    mica__gpu_dispatch *d = mica__gpu_add(job->list, "quant_tile", tile->name);
    qgpu_constants(job, d, job->attr->act);
    mica__gpu_constant_bool(d, MICA_QMATMUL_EXACT, exact);
    qgpu_bind_matrix(job, d, true);
    mica__gpu_operand(d, job->l, 0);
    mica__gpu_bind_workspace(d, job->codes);
    mica__gpu_bind_workspace(d, job->acts);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(job->list, d, p, sizeof *p);
    mica__gpu_grid(d, mica__gpu_parts(p->rows, tile->n), mica__gpu_parts(p->count, tile->m), 1,
                   tile->simds * job->l->gpu->simd_width, 1, 1);
    d->barrier = !job->l->rounded;
    d->finishes = true;
}

mica_status mica__qmatmul_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const mica__tensor *x = &l->in[0];
    qgpu_job job;
    if (!qgpu_begin(&job, l, list)) return mica__gpu_refuse(list, "a format the GPU does not read");
    mica_qmatmul_params *p = &job.p;
    p->x = mica__gpu_rows(x);
    p->step = mica__row_stride(x);
    p->count = (uint32_t)mica__row_count(&x->spec);
    p->n = (uint32_t)mica__row_size(&x->spec);
    const mica__gpu_rounded rounded = mica__gpu_round_place(list, p->count, p->cols, job.attr->act);
    p->pitch = rounded.pitch;
    p->acts = rounded.each;
    job.codes = rounded.codes;
    job.acts = rounded.scales;
    const mica__gpu_limits *gpu = l->gpu;
    const uint32_t kind = job.format.kind;
    const bool codes = job.attr->act != MICA_ACT_NONE && mica__quant_has_codes((mica__quant_id)job.attr->format);
    const bool one_scale =
        kind == KIND_HF || kind == KIND_T2 || kind == KIND_T1 || (kind <= KIND_TRITS && job.format.scale < 0);
    const bool exact = codes && one_scale && job.attr->act == MICA_ACT_TOKEN && p->cols <= QGPU_EXACT;
    const mica__gpu_shape *tile = p->count > QGPU_FEW && (exact || !codes)
                                      ? mica__gpu_pick_tile(gpu, MICA__KNOB_QMATMUL, p->count, p->rows, 1)
                                      : NULL;
    qgpu_round(&job);
    if (!tile) return qgpu_lines(&job, codes);
    qgpu_tile(&job, tile, exact);
    return MICA_OK;
}

mica_status mica__qrows_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    qgpu_job job;
    if (!qgpu_begin(&job, l, list)) return mica__gpu_refuse(list, "a format the GPU does not read");
    mica_qmatmul_params *p = &job.p;
    p->x = mica__gpu_view(&l->in[0]);
    p->count = (uint32_t)mica__spec_size(&l->in[0].spec);
    mica__gpu_check_indices(l, list, 0, p->rows, MICA__CALLER_QUANT_ROWS);
    mica__gpu_dispatch *d = mica__gpu_add(list, "quant_rows", "quant_rows");
    qgpu_constants(&job, d, 0);
    mica__gpu_operand(d, l, 0);
    qgpu_bind_matrix(&job, d, true);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, p, sizeof *p);
    mica__gpu_grid_flat(d, l->gpu, (int64_t)p->count * p->cols);
    return MICA_OK;
}
