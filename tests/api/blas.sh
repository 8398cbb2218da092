#!/usr/bin/env bash
# Large products by a BLAS library (MICA_ACCELERATE), as on macOS by Accelerate. The library is
# built here; its cblas_sgemm counts its calls. f32, f16 and bf16 products in several layouts must
# be correct, and the large ones must call it.
. tests/check.sh

if [ -n "${SANITIZE:-}" ]; then
    skip 'a library loaded late, without the sanitizers of the rest'
    finish
fi

cat > "$work/blas.c" << 'EOF'
int blas_calls;
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc)
{
    blas_calls += order == 101 && beta == 0.0f ? 1 : 1000;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int p = 0; p < k; p++)
                sum += (ta == 111 ? a[i * lda + p] : a[p * lda + i]) * (tb == 111 ? b[p * ldb + j] : b[j * ldb + p]);
            c[i * ldc + j] = alpha * sum;
        }
}
EOF

# Prints each wrong product, then the number of calls that the library counted.
cat > "$work/user.c" << 'EOF'
#include <dlfcn.h>
#include <math.h>
#include <mica.h>
#include <stdio.h>
#include <stdlib.h>

static float data[2 * 80 * 80];

/* gelu(x w^T) + 1 of (2, rows, k) and (cols, k), in float from the rounded operands and in dtype. */
static int product(mica_engine *e, mica_dtype dtype, int64_t rows, int64_t cols, int64_t k, double tolerance)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_from_data(s, MICA_F32, 3, (int64_t[]){2, rows, k}, data);
    mica_array *w = mica_from_data(s, MICA_F32, 2, (int64_t[]){cols, k}, data + 7);
    x = mica_cast(s, x, dtype);
    w = mica_cast(s, w, dtype);
    mica_array *y = mica_matmul(s, x, mica_transpose(s, w));
    y = mica_cast(s, mica_add(s, mica_gelu(s, y), mica_scalar(s, 1.0)), MICA_F32);
    mica_array *all[3] = {y, mica_cast(s, x, MICA_F32), mica_cast(s, w, MICA_F32)};
    int wrong = 0;
    if (mica_eval(s, all, 3) != MICA_OK) {
        printf("%s\n", mica_last_error());
        wrong = 1;
    } else {
        const float *py = mica_data_f32(all[0]), *px = mica_data_f32(all[1]), *pw = mica_data_f32(all[2]);
        for (int64_t i = 0; i < 2 * rows; i++)
            for (int64_t j = 0; j < cols; j++) {
                double sum = 0;
                for (int64_t p = 0; p < k; p++) sum += (double)px[i * k + p] * (double)pw[j * k + p];
                const double want = 0.5 * sum * (1 + erf(sum * sqrt(0.5))) + 1;
                wrong += !(fabs((double)py[i * cols + j] - want) <= tolerance * (1 + fabs(want)));
            }
    }
    mica_scope_end(s);
    if (wrong) printf("dtype %d: %d wrong\n", (int)dtype, wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    mica_engine *e;
    if (mica_open(NULL, &e) != MICA_OK) return fprintf(stderr, "%s\n", mica_last_error()), 2;
    for (int i = 0; i < (int)(sizeof data / sizeof *data); i++) data[i] = (float)(i * 37 % 101 - 50) / 101.0f;
    int wrong = product(e, MICA_F32, 70, 75, 77, 1e-5);
    wrong += product(e, MICA_F16, 70, 75, 77, 4e-3);
    wrong += product(e, MICA_BF16, 70, 75, 77, 3e-2);
    wrong += product(e, MICA_F16, 3, 75, 77, 4e-3) + product(e, MICA_F16, 9, 9, 9, 4e-3); /* too small for it */
    mica_close(e);
    void *library = argc > 1 ? dlopen(argv[1], RTLD_LAZY) : NULL;
    const int *calls = library ? dlsym(library, "blas_calls") : NULL;
    printf("calls %d\n", calls ? *calls : 0);
    return wrong != 0;
}
EOF
check 'compile a BLAS' $CC -O2 -shared -fPIC "$work/blas.c" -o "$work/libblas.so"
check 'compile a user' $CC -std=gnu11 -O2 -Iinclude "$work/user.c" "$BUILD/libmica.a" -lm -lpthread -ldl -o "$work/user"

run env MICA_ACCELERATE=0 "$work/user" "$work/libblas.so"
check "products without it are right ($out $err)" test "$status" = 0
check 'MICA_ACCELERATE=0: not called' contains "$out" 'calls 0'
run env MICA_ACCELERATE="$work/libblas.so" "$work/user" "$work/libblas.so"
check "products with it are right ($out $err)" test "$status" = 0
# two batches with the same w are one product
check "called for each large product ($out)" test "${out##*calls }" = 3

run env MICA_ACCELERATE="$work/libblas.so" "$BUILD/mica" doctor
check 'doctor names the BLAS' contains "$out" "BLAS: large f32, f16 and bf16 products by cblas_sgemm of $work/libblas.so"
run env MICA_ACCELERATE=0 "$BUILD/mica" doctor
check 'doctor reports that it is off' contains "$out" 'BLAS: not used: switched off'
run env MICA_ACCELERATE="$work/none.so" "$work/user"
check 'a library that is not there: refused' test "$status" = 2
check 'a library that is not there: one error message' contains "$err" "MICA_ACCELERATE is \"$work/none.so\""
run env MICA_ACCELERATE=libm.so.6 "$work/user"
if [ "$(uname -s)" = Linux ]; then
    check 'a library without cblas_sgemm: refused' contains "$err" 'libm.so.6 has no cblas_sgemm'
else
    skip 'a library without cblas_sgemm: libm.so.6 is of Linux'
fi
finish
