/* The capture manager. As on a Mac a program can capture only with METAL_CAPTURE_ENABLED=1 in its environment,
 * and only into a document that does not exist yet. The document is a folder with one text file,
 * softmetal.txt: a line for each command buffer, encoder and dispatch that was committed. */
#include "metal/metal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

sm_string sm_capture_domain = SM_STRING("MTLCaptureError");
SM_API sm_string *const MTLCaptureErrorDomain = &sm_capture_domain;

enum { CAPTURE_NOT_SUPPORTED = 1, CAPTURE_ALREADY = 2, CAPTURE_DESCRIPTOR = 3, CAPTURE_DOCUMENT = 2 };

static struct {
    pthread_mutex_t lock;
    FILE *file; /* NULL: no capture is running */
    id what;
} capture = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool capture_enabled(void)
{
    const char *text = getenv("METAL_CAPTURE_ENABLED");
    return text != NULL && strcmp(text, "1") == 0;
}

static sm_object the_capture_manager = {&sm_mtl_capture_manager, -1};
static id capture_shared(id class, SEL s) { return &the_capture_manager; }
static BOOL capture_supports(id self, SEL s, long destination)
{
    return destination == CAPTURE_DOCUMENT && capture_enabled();
}
static BOOL capture_runs(id self, SEL s)
{
    pthread_mutex_lock(&capture.lock);
    const BOOL runs = capture.file != NULL;
    pthread_mutex_unlock(&capture.lock);
    return runs;
}

/* Call with the lock held. Returns NULL, or an error message. */
static const char *capture_open(const sm_capture_request *request, long *code)
{
    char text[1200];
    *code = CAPTURE_DESCRIPTOR;
    if (request->what != (id)&sm_the_device && !sm_is_a(request->what, &sm_mtl_queue))
        return "the capture object is neither the device nor a command queue";
    if (request->path == NULL || request->destination != CAPTURE_DOCUMENT)
        return "it needs MTLCaptureDestinationGPUTraceDocument and an output URL";
    *code = CAPTURE_ALREADY;
    if (capture.file != NULL) return "another capture is running";
    *code = CAPTURE_NOT_SUPPORTED;
    if (!capture_enabled()) return "capturing is not enabled: set METAL_CAPTURE_ENABLED=1";
    *code = CAPTURE_DESCRIPTOR;
    if (mkdir(request->path, 0777) != 0) return strerror(errno);
    if (snprintf(text, sizeof text, "%s/softmetal.txt", request->path) < (int)sizeof text)
        capture.file = fopen(text, "w");
    if (capture.file == NULL) return "the document cannot be written";
    fprintf(capture.file, "softmetal: Metal in software, no GPU\n");
    capture.what = objc_retain(request->what);
    return NULL;
}

static BOOL capture_start(id self, SEL s, id descriptor, id *error)
{
    sm_capture_request request;
    long code = CAPTURE_DESCRIPTOR;
    if (error != NULL) *error = NULL;
    if (!sm_capture_asked(descriptor, &request)) {
        sm_failed("-[MTLCaptureManager %s]: the descriptor is not an MTLCaptureDescriptor", sel_getName(s));
        sm_set_error(error, &sm_capture_domain, code, "the descriptor is not an MTLCaptureDescriptor");
        return 0;
    }
    pthread_mutex_lock(&capture.lock);
    const char *why = capture_open(&request, &code);
    pthread_mutex_unlock(&capture.lock);
    if (why != NULL) sm_set_error(error, &sm_capture_domain, code, why);
    return why == NULL;
}

static void capture_stop(id self, SEL s)
{
    pthread_mutex_lock(&capture.lock);
    if (capture.file == NULL) {
        sm_failed("-[MTLCaptureManager %s]: no capture is running", sel_getName(s));
    } else {
        if (fclose(capture.file) != 0) sm_failed("-[MTLCaptureManager %s]: %s", sel_getName(s), strerror(errno));
        objc_release(capture.what);
        capture.file = NULL;
    }
    pthread_mutex_unlock(&capture.lock);
}

static void note_pass(const mtl_pass *pass)
{
    const char *label = sm_string_bytes(pass->label);
    fprintf(capture.file, "  encoder \"%s\"\n", label == NULL ? "" : label);
    for (size_t i = 0; i < pass->count; i++) {
        const mtl_command *c = &pass->commands[i];
        if (c->kind == MTL_COMMAND_DISPATCH)
            fprintf(capture.file, "    dispatch %s \"%s\"\n", c->as.run.pipeline->description.name,
                    sm_label_text(&c->as.run.pipeline->base));
    }
}

void sm_capture_note(const mtl_command_buffer *buffer)
{
    pthread_mutex_lock(&capture.lock);
    if (capture.file != NULL && (capture.what == (id)&sm_the_device || capture.what == (id)buffer->queue)) {
        fprintf(capture.file, "command buffer \"%s\"\n", sm_label_text(&buffer->base));
        for (size_t i = 0; i < buffer->count; i++)
            if (buffer->passes[i].kind <= MTL_PASS_BLIT) note_pass(&buffer->passes[i]);
    }
    pthread_mutex_unlock(&capture.lock);
}

static const sm_method capture_methods[] = {
    SM_METHOD("supportsDestination:", capture_supports),
    SM_METHOD("startCaptureWithDescriptor:error:", capture_start),
    SM_METHOD("stopCapture", capture_stop),
    SM_METHOD("isCapturing", capture_runs),
    SM_METHODS_END,
};
static const sm_method capture_class_methods[] = {SM_METHOD("sharedCaptureManager", capture_shared), SM_METHODS_END};
SM_CLASS(sm_mtl_capture_manager, "MTLCaptureManager", &sm_ns_object, sm_object, NULL, capture_methods,
         capture_class_methods, NULL, true);
