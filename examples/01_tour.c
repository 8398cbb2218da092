/* A tour: build a graph, differentiate it, evaluate both, read the numbers. */
#include <mica.h>
#include <stdio.h>

int main(void)
{
    mica_engine *e;
    if (mica_open(NULL, &e) != MICA_OK) {
        fprintf(stderr, "%s\n", mica_last_error());
        return 1;
    }

    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_random_normal(s, MICA_F32, 2, (int64_t[]){32, 64}, 7);
    mica_array *w = mica_random_normal(s, MICA_F32, 2, (int64_t[]){64, 16}, 8);
    mica_array *y = mica_gelu(s, mica_matmul(s, x, w));
    mica_array *loss = mica_mean(s, mica_square(s, y), NULL, 0, false);
    mica_array *grad = NULL;

    /* The gradient is a graph too; nothing has run yet. Then one plan computes both. */
    mica_status status = mica_grad(s, loss, &w, 1, &grad);
    if (status == MICA_OK) status = mica_eval(s, (mica_array *[]){loss, grad}, 2);
    if (status == MICA_OK)
        printf("loss %.5f, its gradient at w[0][0] %.5f\n", mica_data_f32(loss)[0], mica_data_f32(grad)[0]);
    else fprintf(stderr, "%s\n", mica_last_error());

    mica_scope_end(s); /* frees every array made through it */
    mica_close(e);
    return status == MICA_OK ? 0 : 1;
}
