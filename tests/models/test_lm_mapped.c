/* The file of a model becomes shorter between two tokens: an error status if it is mapped, no
 * effect if it was read. */
#include "lm_tiny.h"

static void feed_and_cut(bool no_mmap, bool lazy)
{
    const tiny t = {.name = "cut",
                    .arch = "llama",
                    .layers = 2,
                    .hidden = 64,
                    .heads = 4,
                    .kv_heads = 2,
                    .dim = 16,
                    .ffn = 128,
                    .vocab = 64,
                    .context = 32,
                    .format = "F32",
                    .theta = 10000};
    tiny_model *m = tiny_new(&t);
    mica_engine *e = tiny_engine(2);
    mica_lm *lm = NULL;
    mica_lm_session *session = NULL;
    mica_lm_options o;
    const float *logits = NULL;
    const int32_t token = 7;
    mica_lm_options_init(&o);
    o.no_mmap = no_mmap;
    o.lazy = lazy;
    test_case("%s%s", no_mmap ? "read" : "mapped", lazy ? ", lazy" : "");
    CHECK_OK(mica_lm_open(e, m->path, &o, &lm));
    CHECK_OK(mica_lm_session_open(lm, NULL, &session));
    CHECK_OK(mica_lm_feed(session, &token, 1, &logits));
    CHECK(truncate(m->path, 64) == 0);
    for (int i = 0; i < 3; i++) {
        const mica_status status = mica_lm_feed(session, &token, 1, &logits);
        EXPECT_INT(status, no_mmap ? MICA_OK : MICA_ERR_FILE);
        if (!no_mmap) EXPECT_MSG(strstr(mica_last_error(), "was changed while it was in use"), "%s", mica_last_error());
    }
    mica_lm_session_close(session);
    mica_lm_close(lm);
    mica_close(e);
    tiny_free(m);
}

TEST(a_mapped_model_that_became_shorter) { feed_and_cut(false, false); }
TEST(the_same_before_weights_are_packed) { feed_and_cut(false, true); }
TEST(a_model_that_was_read) { feed_and_cut(true, false); }
