/* Gradients of ops that move elements: each is the transpose of the op. */
#include "graph/vjp_util.h"

MICA__VJP_RULE(reshape)
{
    grads[0] = vjp_reshape_like(s, ct, y->in[0]);
    return MICA_OK;
}

MICA__VJP_RULE(permute)
{
    const mica__attr_permute *attr = y->attr;
    int back[MICA_MAX_DIMS];
    for (int d = 0; d < y->spec.ndim; d++) back[attr->axes[d]] = d;
    grads[0] = mica_permute(s, ct, back);
    return MICA_OK;
}

MICA__VJP_RULE(broadcast)
{
    grads[0] = mica__sum_to(s, ct, &y->in[0]->spec);
    return MICA_OK;
}

/* A pad: puts the elements back where they were taken from, with zeros between. */
MICA__VJP_RULE(slice)
{
    const mica__attr_slice *attr = y->attr;
    const mica__spec *in = &y->in[0]->spec;
    if (mica__spec_size(&y->spec) == 0) return MICA_OK;
    mica__attr_pad pad = {0};
    for (int d = 0; d < in->ndim; d++) {
        const int64_t size = attr->size[d], first = attr->start[d], last = first + (size - 1) * attr->step[d];
        const int64_t low = first < last ? first : last, high = first < last ? last : first;
        if (last < first) ct = mica_flip(s, ct, d);
        pad.low[d] = low;
        pad.high[d] = in->shape[d] - 1 - high;
        if (size > 1) pad.interior[d] = (high - low) / (size - 1) - 1; /* |step| - 1 */
    }
    grads[0] = mica__build1(s, MICA__OP_PAD, ct, &pad, sizeof pad);
    return MICA_OK;
}

/* Element i is at low + i * (interior + 1); one that was cropped gets 0. */
MICA__VJP_RULE(pad)
{
    const mica__attr_pad *attr = y->attr;
    const mica__spec *in = &y->in[0]->spec;
    if (mica__spec_size(in) == 0) return MICA_OK;
    mica__attr_pad undo = {0};
    bool cut = false;
    int64_t start[MICA_MAX_DIMS], stop[MICA_MAX_DIMS], step[MICA_MAX_DIMS];
    for (int d = 0; d < in->ndim; d++) {
        if (attr->low[d] < 0) undo.low[d] = -attr->low[d];
        if (attr->high[d] < 0) undo.high[d] = -attr->high[d];
        cut |= attr->low[d] < 0 || attr->high[d] < 0;
        step[d] = attr->interior[d] + 1;
        start[d] = attr->low[d] > 0 ? attr->low[d] : 0;
        stop[d] = start[d] + (in->shape[d] - 1) * step[d] + 1;
    }
    if (cut) ct = mica__build1(s, MICA__OP_PAD, ct, &undo, sizeof undo);
    grads[0] = mica_slice(s, ct, start, stop, step);
    return MICA_OK;
}

/* Windows overlap: an element gets the sum over all windows that contain it. */
MICA__VJP_RULE(window)
{
    mica__attr_window attr = *(const mica__attr_window *)y->attr;
    attr.full = y->in[0]->spec.shape[attr.axis];
    grads[0] = mica__build1(s, MICA__OP_UNWINDOW, ct, &attr, sizeof attr);
    return MICA_OK;
}

MICA__VJP_RULE(unwindow)
{
    mica__attr_window attr = *(const mica__attr_window *)y->attr;
    attr.full = 0;
    grads[0] = mica__build1(s, MICA__OP_WINDOW, ct, &attr, sizeof attr);
    return MICA_OK;
}

MICA__VJP_RULE(concat)
{
    const int axis = (int)((const mica__attr_axis *)y->attr)->axis;
    int64_t at = 0;
    for (uint32_t i = 0; i < y->n_in; i++) {
        const int64_t size = y->in[i]->spec.shape[axis];
        grads[i] = mica_slice_axis(s, ct, axis, at, at + size, 1);
        at += size;
    }
    return MICA_OK;
}
