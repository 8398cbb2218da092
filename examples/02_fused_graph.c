/* Builds a small network layer as a lazy graph. Prints its plan (which ops share a kernel, how much memory it needs)
 * and the result with the number of kernels and the planned and measured peak memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mica.h"

static int fail(const char *what)
{
    fprintf(stderr, "fused_graph: %s: %s\n", what, mica_last_error());
    return 1;
}

static int show_plan(mica_scope *s, mica_array *const *out, size_t n)
{
    size_t length;
    if (mica_plan_text(s, out, n, MICA_DUMP_PLAN, NULL, 0, &length) != MICA_OK) return fail("plan");
    char *text = malloc(length + 1);
    if (!text) {
        fprintf(stderr, "fused_graph: no memory for %zu bytes of text\n", length);
        return 1;
    }
    const mica_status status = mica_plan_text(s, out, n, MICA_DUMP_PLAN, text, length + 1, NULL);
    if (status == MICA_OK) fputs(text, stdout);
    free(text);
    return status == MICA_OK ? 0 : fail("plan");
}

static int show(mica_engine *e, mica_scope *s)
{
    /* a layer, a residual, a norm and a score for each of 64 rows */
    mica_array *x = mica_random_normal(s, MICA_F32, 2, (int64_t[]){64, 256}, 1);
    mica_array *w = mica_random_normal(s, MICA_F32, 2, (int64_t[]){256, 256}, 2);
    mica_array *b = mica_random_normal(s, MICA_F32, 1, (int64_t[]){256}, 3);
    mica_array *given[] = {x, w, b};
    if (mica_eval(s, given, 3) != MICA_OK) return fail("inputs");

    mica_array *hidden = mica_gelu(s, mica_add(s, mica_matmul(s, x, w), b));
    mica_array *y = mica_rms_norm(s, mica_add(s, mica_mul(s, hidden, mica_scalar(s, 0.5)), x), NULL, 1e-5);
    mica_array *score = mica_mean(s, mica_square(s, mica_tanh(s, y)), (int[]){1}, 1, false);

    puts("y = rms_norm(0.5 * gelu(x w + b) + x);  score = mean(tanh(y)^2) of each row");
    printf("x (64, 256), w (256, 256), b (256), f32, backend %s, %d threads\n\n", mica_engine_backend(e),
           mica_engine_threads(e));
    if (show_plan(s, &score, 1) != 0) return 1;

    mica_plan_info plan = {.struct_size = sizeof plan};
    if (mica_plan_query(s, &score, 1, &plan) != MICA_OK) return fail("plan");
    mica_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    mica_engine_reset_peak(e);
    mica_engine_stats(e, &before);
    if (mica_eval(s, &score, 1) != MICA_OK) return fail("eval");
    mica_engine_stats(e, &after);

    const float *v = mica_data_f32(score);
    if (!v) return fail("data");
    printf("\nscore[0 ... 3] = %.6f %.6f %.6f %.6f\n", (double)v[0], (double)v[1], (double)v[2], (double)v[3]);
    printf("%" PRIu64 " ops in %" PRIu64 " kernels; planned peak %" PRIu64 " B, measured peak %" PRIu64 " B\n",
           plan.nodes, after.kernels - before.kernels, plan.peak_bytes, after.bytes_peak - before.bytes_in_use);
    return 0;
}

int main(void)
{
    mica_engine *e;
    if (mica_open(NULL, &e) != MICA_OK) return fail("open");
    mica_scope *s = mica_scope_begin(e);
    const int result = show(e, s);
    mica_scope_end(s);
    mica_close(e);
    return result;
}
