/* Counter sample buffers: one counter set, "timestamp", sampled at the two ends of a
 * pass through MTLComputePassDescriptor. Timestamps are nanoseconds of sm_now. */
#include "metal/metal.h"

#include <stdlib.h>
#include <string.h>

sm_string sm_counter_domain = SM_STRING("MTLCounterErrorDomain");
static sm_string timestamp_name = SM_STRING("GPUTimestamp"), timestamp_set_name = SM_STRING("timestamp");
SM_API sm_string *const MTLCounterErrorDomain = &sm_counter_domain;
SM_API sm_string *const MTLCommonCounterTimestamp = &timestamp_name;
SM_API sm_string *const MTLCommonCounterSetTimestamp = &timestamp_set_name;

static const sm_method counters_no_methods[] = {SM_METHODS_END};

/* ---- the one counter and the one set -------------------------------------------------------- */

static sm_object the_counter = {&sm_mtl_counter, -1}, the_set = {&sm_mtl_counter_set, -1};

static id counter_name(id self, SEL s) { return &timestamp_name; }
static const sm_method counter_methods[] = {SM_METHOD("name", counter_name), SM_METHODS_END};
SM_CLASS(sm_mtl_counter, "MTLCounter", &sm_ns_object, sm_object, NULL, counter_methods, counters_no_methods,
         "MTLCounter", false);

static id set_name(id self, SEL s) { return &timestamp_set_name; }
static id array_of(id item) { return objc_autorelease(sm_array_new(&sm_ns_array, &item, 1)); }
static id set_counters(id self, SEL s) { return array_of(&the_counter); }
static const sm_method set_methods[] = {SM_METHOD("name", set_name), SM_METHOD("counters", set_counters),
                                        SM_METHODS_END};
SM_CLASS(sm_mtl_counter_set, "MTLCounterSet", &sm_ns_object, sm_object, NULL, set_methods, counters_no_methods,
         "MTLCounterSet", false);

id sm_device_counter_sets(id self, SEL s) { return array_of(&the_set); }

void sm_device_timestamps(id self, SEL s, uint64_t *cpu, uint64_t *gpu)
{
    const uint64_t now = (uint64_t)(sm_now() * 1e9);
    if (cpu != NULL) *cpu = now;
    if (gpu != NULL) *gpu = now;
}

/* ---- sample buffers ---------------------------------------------------------------------------- */

typedef struct mtl_samples_descriptor {
    mtl_labelled base;
    id set;
    unsigned long storage, count;
} mtl_samples_descriptor;

static void samples_descriptor_destroy(id object)
{
    objc_release(((mtl_samples_descriptor *)object)->set);
    sm_labelled_destroy(object);
}
static id samples_get_set(mtl_samples_descriptor *self, SEL s) { return self->set; }
static void samples_set_set(mtl_samples_descriptor *self, SEL s, id set) { sm_set(&self->set, set); }
static unsigned long samples_get_storage(mtl_samples_descriptor *self, SEL s) { return self->storage; }
static void samples_set_storage(mtl_samples_descriptor *self, SEL s, unsigned long v) { self->storage = v; }
static unsigned long samples_get_count(mtl_samples_descriptor *self, SEL s) { return self->count; }
static void samples_set_count(mtl_samples_descriptor *self, SEL s, unsigned long v) { self->count = v; }
static id samples_descriptor_copy(const mtl_samples_descriptor *self, SEL s)
{
    mtl_samples_descriptor *copy = sm_copy_labelled(self);
    if (copy != NULL) objc_retain(copy->set);
    return copy;
}
static const sm_method samples_descriptor_methods[] = {
    SM_LABEL_METHODS,
    SM_COPY_METHODS(samples_descriptor_copy),
    SM_METHOD("counterSet", samples_get_set),
    SM_METHOD("setCounterSet:", samples_set_set),
    SM_METHOD("storageMode", samples_get_storage),
    SM_METHOD("setStorageMode:", samples_set_storage),
    SM_METHOD("sampleCount", samples_get_count),
    SM_METHOD("setSampleCount:", samples_set_count),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_samples_descriptor, "MTLCounterSampleBufferDescriptor", &sm_ns_object, mtl_samples_descriptor,
         samples_descriptor_destroy, samples_descriptor_methods, counters_no_methods, "NSCopying", true);

id sm_device_samples(id self, SEL s, id given, id *error)
{
    if (error != NULL) *error = NULL;
    const mtl_samples_descriptor *descriptor = sm_is_a(given, &sm_mtl_samples_descriptor) ? given : NULL;
    /* Apple GPUs allow 32 KB of samples. */
    enum { SAMPLES_LIMIT = 4096 };
    if (descriptor == NULL || descriptor->set != &the_set || descriptor->count == 0 ||
        descriptor->count > SAMPLES_LIMIT) {
        sm_failed("%s: the counter set must be timestamp, with 1 to 4096 samples", sel_getName(s));
        sm_set_error(error, &sm_counter_domain, 2, "the counter set must be timestamp, with 1 to 4096 samples");
        return NULL;
    }
    mtl_samples *samples = sm_new(&sm_mtl_samples);
    if (samples == NULL) return NULL;
    samples->count = descriptor->count;
    samples->base.label = objc_retain(descriptor->base.label);
    samples->values = malloc(samples->count * sizeof *samples->values);
    if (samples->values == NULL) {
        objc_release(samples);
        return NULL;
    }
    memset(samples->values, 0xff, samples->count * sizeof *samples->values); /* MTLCounterErrorValue */
    return samples;
}

static void samples_destroy(id object)
{
    free(((mtl_samples *)object)->values);
    sm_labelled_destroy(object);
}
static unsigned long samples_count(mtl_samples *self, SEL s) { return self->count; }
static id samples_resolve(mtl_samples *self, SEL s, ns_range range)
{
    if (range.location > self->count || range.length > self->count - range.location) {
        sm_failed("-[MTLCounterSampleBuffer %s]: samples %lu to %lu of %lu", sel_getName(s), range.location,
                  range.location + range.length, self->count);
        return NULL;
    }
    sm_data *data = sm_new(&sm_ns_data);
    if (data == NULL) return NULL;
    data->length = range.length * sizeof *self->values;
    data->bytes = malloc(data->length + 1);
    if (data->bytes != NULL) memcpy(data->bytes, self->values + range.location, data->length);
    else data->length = 0;
    return objc_autorelease(data);
}
static const sm_method samples_methods[] = {
    SM_METHOD("label", sm_label),
    SM_METHOD("sampleCount", samples_count),
    SM_METHOD("resolveCounterRange:", samples_resolve),
    SM_METHOD("device", sm_device_of),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_samples, "MTLCounterSampleBuffer", &sm_ns_object, mtl_samples, samples_destroy, samples_methods,
         counters_no_methods, "MTLCounterSampleBuffer", false);

/* ---- MTLComputePassDescriptor -------------------------------------------------------------------- */

typedef struct mtl_pass_attachment {
    sm_object object;
    id samples;
    unsigned long start, end;
} mtl_pass_attachment;

typedef struct mtl_pass_attachments {
    sm_object object;
    mtl_pass_attachment *first;
} mtl_pass_attachments;

typedef struct mtl_pass_descriptor {
    sm_object object;
    unsigned long type;
    mtl_pass_attachments *attachments;
} mtl_pass_descriptor;

static void attachment_destroy(id object) { objc_release(((mtl_pass_attachment *)object)->samples); }
static id attachment_samples(mtl_pass_attachment *a, SEL s) { return a->samples; }
static void attachment_set_samples(mtl_pass_attachment *a, SEL s, id samples) { sm_set(&a->samples, samples); }
static unsigned long attachment_start(mtl_pass_attachment *a, SEL s) { return a->start; }
static void attachment_set_start(mtl_pass_attachment *a, SEL s, unsigned long v) { a->start = v; }
static unsigned long attachment_end(mtl_pass_attachment *a, SEL s) { return a->end; }
static void attachment_set_end(mtl_pass_attachment *a, SEL s, unsigned long v) { a->end = v; }
static id attachment_copy(const mtl_pass_attachment *self, SEL s)
{
    mtl_pass_attachment *copy = sm_copy(self);
    if (copy != NULL) objc_retain(copy->samples);
    return copy;
}
static const sm_method attachment_methods[] = {
    SM_COPY_METHODS(attachment_copy),
    SM_METHOD("sampleBuffer", attachment_samples),
    SM_METHOD("setSampleBuffer:", attachment_set_samples),
    SM_METHOD("startOfEncoderSampleIndex", attachment_start),
    SM_METHOD("setStartOfEncoderSampleIndex:", attachment_set_start),
    SM_METHOD("endOfEncoderSampleIndex", attachment_end),
    SM_METHOD("setEndOfEncoderSampleIndex:", attachment_set_end),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_pass_attachment, "MTLComputePassSampleBufferAttachmentDescriptor", &sm_ns_object, mtl_pass_attachment,
         attachment_destroy, attachment_methods, counters_no_methods, "NSCopying", false);

static void attachments_destroy(id object) { objc_release(((mtl_pass_attachments *)object)->first); }
static id attachments_at(mtl_pass_attachments *self, SEL s, unsigned long index)
{
    if (index == 0) return self->first;
    sm_failed("-[MTLComputePassDescriptor sampleBufferAttachments] %s: index %lu; must be 0", sel_getName(s), index);
    return NULL;
}
static const sm_method attachments_methods[] = {SM_METHOD("objectAtIndexedSubscript:", attachments_at), SM_METHODS_END};
SM_CLASS(sm_mtl_pass_attachments, "MTLComputePassSampleBufferAttachmentDescriptorArray", &sm_ns_object,
         mtl_pass_attachments, attachments_destroy, attachments_methods, counters_no_methods, NULL, false);

static void pass_descriptor_destroy(id object) { objc_release(((mtl_pass_descriptor *)object)->attachments); }
static id pass_descriptor_init(mtl_pass_descriptor *self, SEL s)
{
    if (self == NULL) return NULL;
    self->attachments = sm_new(&sm_mtl_pass_attachments);
    if (self->attachments == NULL) return self;
    self->attachments->first = sm_new(&sm_mtl_pass_attachment);
    if (self->attachments->first != NULL) self->attachments->first->start = self->attachments->first->end = ~0ul;
    return self;
}
static id pass_descriptor_make(id class, SEL s)
{
    return objc_autorelease(pass_descriptor_init(sm_new(&sm_mtl_pass_descriptor), s));
}
static unsigned long pass_descriptor_type(mtl_pass_descriptor *self, SEL s) { return self->type; }
static void pass_descriptor_set_type(mtl_pass_descriptor *self, SEL s, unsigned long t) { self->type = t; }
static id pass_descriptor_attachments(mtl_pass_descriptor *self, SEL s) { return self->attachments; }
/* The descriptor owns its attachments, so the copy gets new ones with the same values. */
static id pass_descriptor_copy(const mtl_pass_descriptor *self, SEL s)
{
    mtl_pass_descriptor *copy = sm_copy(self);
    if (copy == NULL || self->attachments == NULL) return copy;
    copy->attachments = sm_copy(self->attachments);
    if (copy->attachments != NULL && self->attachments->first != NULL)
        copy->attachments->first = attachment_copy(self->attachments->first, s);
    return copy;
}
static const sm_method pass_descriptor_methods[] = {
    SM_METHOD("init", pass_descriptor_init),
    SM_COPY_METHODS(pass_descriptor_copy),
    SM_METHOD("dispatchType", pass_descriptor_type),
    SM_METHOD("setDispatchType:", pass_descriptor_set_type),
    SM_METHOD("sampleBufferAttachments", pass_descriptor_attachments),
    SM_METHODS_END,
};
static const sm_method pass_descriptor_class_methods[] = {SM_METHOD("computePassDescriptor", pass_descriptor_make),
                                                          SM_METHODS_END};
SM_CLASS(sm_mtl_pass_descriptor, "MTLComputePassDescriptor", &sm_ns_object, mtl_pass_descriptor,
         pass_descriptor_destroy, pass_descriptor_methods, pass_descriptor_class_methods, "NSCopying", true);

bool sm_pass_descriptor_concurrent(id descriptor, bool *concurrent)
{
    if (!sm_is_a(descriptor, &sm_mtl_pass_descriptor)) return false;
    *concurrent = ((mtl_pass_descriptor *)descriptor)->type == 1;
    return true;
}

void sm_pass_descriptor_apply(id descriptor, mtl_pass *pass)
{
    const mtl_pass_attachments *all = ((mtl_pass_descriptor *)descriptor)->attachments;
    const mtl_pass_attachment *one = all == NULL ? NULL : all->first;
    if (one == NULL || !sm_is_a(one->samples, &sm_mtl_samples)) return;
    pass->samples = objc_retain(one->samples);
    pass->sample_start = one->start;
    pass->sample_end = one->end;
}
