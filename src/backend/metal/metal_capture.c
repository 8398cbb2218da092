/* MICA_CAPTURE: writes everything that the queue of an engine runs, from open to close, to a
 * .gputrace file for Xcode. */
#include "backend/metal/metal_work.h"
#include "base/env.h"

enum { CAPTURE_DOCUMENT = 2 /* MTLCaptureDestinationGPUTraceDocument */ };

static mica__id capture_manager(void)
{
    mica__id class = mica__objc.get_class("MTLCaptureManager");
    return class ? MICA__SEND0(mica__id, class, sharedCaptureManager) : NULL;
}

static bool capture_begin(mica__id manager, mica__id queue, const char *path, mica__id *error)
{
    mica__id class = mica__objc.get_class("MTLCaptureDescriptor"), text = mica__objc_string(path);
    mica__id made = class ? MICA__SEND0(mica__id, class, alloc) : NULL;
    mica__id descriptor = made ? MICA__SEND0(mica__id, made, init) : NULL;
    bool begun = false;
    if (descriptor && text) {
        mica__id url = MICA__SEND1(mica__id, mica__objc.get_class("NSURL"), fileURLWithPath, mica__id, text);
        MICA__SEND1(void, descriptor, setCaptureObject, mica__id, queue);
        MICA__SEND1(void, descriptor, setDestination, long, CAPTURE_DOCUMENT);
        MICA__SEND1(void, descriptor, setOutputURL, mica__id, url);
        begun = MICA__SEND2(bool, manager, startCapture, mica__id, descriptor, mica__id *, error);
    }
    mica__objc.release(descriptor);
    mica__objc.release(text);
    return begun;
}

mica_status mica__metal_capture(mica__id queue, bool *begun)
{
    const char *path = mica__env(MICA__ENV_CAPTURE);
    char why[200];
    mica__id error = NULL;
    *begun = false;
    if (!path) return MICA_OK;
    void *pool = mica__objc.pool_push();
    mica__id manager = capture_manager();
    *begun = manager && capture_begin(manager, queue, path, &error);
    const mica_status status =
        *begun ? MICA_OK
               : mica__fail(MICA_ERR_UNSUPPORTED, "open: MICA_CAPTURE: cannot capture to %.200s: %s", path,
                            manager ? mica__objc_error_text(error, why, sizeof why) : "Metal has no capture manager");
    mica__objc.pool_pop(pool);
    return status;
}

void mica__metal_capture_end(void)
{
    void *pool = mica__objc.pool_push();
    MICA__SEND0(void, capture_manager(), stopCapture);
    mica__objc.pool_pop(pool);
}
