/* The n-th allocation of the library fails while a model is opened and used: a status is returned,
 * nothing leaks, and the next try works.
 *
 * runs: metal-unsanitized, arm, faults */
#include "base/alloc.h"
#include "lm_tiny.h"

static const tiny small = {.name = "small",
                           .arch = "bitnet-b1.58",
                           .layers = 1,
                           .hidden = 128,
                           .heads = 2,
                           .kv_heads = 1,
                           .dim = 64,
                           .ffn = 128,
                           .vocab = 40,
                           .context = 16,
                           .relu2 = true,
                           .sub_norms = true,
                           .ternary = true,
                           .theta = 1e4,
                           .format = "I2_S"};

/* Everything from opening to closing; *digest is the last logits' sum. */
static mica_status use_model(mica_engine *e, const char *path, double *digest)
{
    static const int32_t ids[] = {1, 2, 3, 4, 5};
    mica_lm *lm = NULL;
    mica_lm_session *session = NULL;
    const float *logits = NULL;
    float losses[4];
    *digest = 0;
    mica_status status = mica_lm_open(e, path, NULL, &lm);
    if (status == MICA_OK) status = mica_lm_session_open(lm, NULL, &session);
    if (status == MICA_OK) status = mica_lm_feed(session, ids, 4, &logits);
    if (status == MICA_OK) status = mica_lm_feed(session, ids + 4, 1, &logits);
    for (int i = 0; i < small.vocab && status == MICA_OK; i++) *digest += (double)logits[i];
    if (status == MICA_OK) status = mica_lm_score(session, ids, 5, losses);
    for (int i = 0; i < 4 && status == MICA_OK; i++) *digest += (double)losses[i];
    mica_lm_session_close(session);
    mica_lm_close(lm);
    return status;
}

TEST(each_allocation_fails_once)
{
    enum { FAULTS = 600 };
    tiny_model *m = tiny_new(&small);
    double clean = 0, digest = 0;
    uint64_t allocations = 0;
    for (int i = 0; i < 2; i++) {
        mica_engine *e = tiny_engine(1);
        const uint64_t before = mica__alloc_count();
        CHECK_OK(use_model(e, m->path, &clean));
        allocations = mica__alloc_count() - before;
        mica_close(e);
    }
    CHECK(allocations > 50);
    uint64_t survived = 0, tried = 0;
    for (uint64_t n = 1; n <= allocations; n += 1 + allocations / FAULTS, tried++) {
        const int64_t live = live_blocks();
        mica_engine *e = tiny_engine(1);
        mica__alloc_fail_at(n);
        const mica_status status = use_model(e, m->path, &digest);
        mica__alloc_fail_at(0);
        if (status == MICA_OK) {
            survived++;
            EXPECT_MSG(digest == clean, "allocation %d failed unnoticed, and the results differ", (int)n);
        } else {
            EXPECT_MSG(status == MICA_ERR_MEMORY, "allocation %d: status %d, %s", (int)n, (int)status,
                       mica_last_error());
        }
        EXPECT_MSG(use_model(e, m->path, &digest) == MICA_OK && digest == clean, "after allocation %d failed", (int)n);
        mica_close(e);
        EXPECT_MSG(live_blocks() == live, "allocation %d failed: %d blocks leaked", (int)n,
                   (int)(live_blocks() - live));
    }
    EXPECT_MSG(survived * 4 <= tried, "%d of %d failures went unnoticed", (int)survived, (int)tried);
    tiny_free(m);
}
