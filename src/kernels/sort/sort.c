/* Stable merge sort of pairs. If only the first few elements of a long row are wanted, one pass
 * over the row keeps them in order instead. */
#include "kernels/order.h"
#include "kernels/sort/sort.h"
#include "kernels/walk.h"

typedef struct sort_pair {
    uint64_t key;
    int64_t index;
} sort_pair;

enum {
    SORT_RUN = 16,       /* sorted by insertion before merging                       */
    SORT_TASKS = 16,     /* rows that are sorted at the same time, at most           */
    SORT_FEW = 32        /* largest k for which selection is faster than sorting     */
};

typedef struct sort_job {
    const mica__launch *launch;
    bool indices;
    bool select;         /* ARGSORT may keep only the first k                        */
    int64_t rows, tasks;
} sort_job;

static void sort_insert_runs(sort_pair *pairs, int64_t n)
{
    for (int64_t first = 0; first < n; first += SORT_RUN) {
        const int64_t end = mica__min_i64(first + SORT_RUN, n);
        for (int64_t i = first + 1; i < end; i++) {
            const sort_pair pair = pairs[i];
            int64_t j = i;
            for (; j > first && pairs[j - 1].key > pair.key; j--) pairs[j] = pairs[j - 1];
            pairs[j] = pair;
        }
    }
}

/* If keys are equal, the left pair is first: this makes the sort stable. */
static void sort_merge(sort_pair *to, const sort_pair *left, int64_t n_left, const sort_pair *right, int64_t n_right)
{
    int64_t i = 0, j = 0;
    while (i < n_left && j < n_right) *to++ = right[j].key < left[i].key ? right[j++] : left[i++];
    while (i < n_left) *to++ = left[i++];
    while (j < n_right) *to++ = right[j++];
}

/* Returns the buffer that has the sorted pairs: pairs or spare. */
static const sort_pair *sort_pairs(sort_pair *pairs, sort_pair *spare, int64_t n)
{
    sort_insert_runs(pairs, n);
    for (int64_t width = SORT_RUN; width < n; width *= 2) {
        for (int64_t first = 0; first < n; first += 2 * width) {
            const int64_t middle = mica__min_i64(first + width, n), end = mica__min_i64(middle + width, n);
            sort_merge(spare + first, pairs + first, middle - first, pairs + middle, end - middle);
        }
        sort_pair *swap = pairs;
        pairs = spare;
        spare = swap;
    }
    return pairs;
}

static uint64_t sort_key(mica_dtype dtype, const char *row, int64_t offset, bool descending)
{
    const uint64_t key = mica__order_key(dtype, row, offset);
    return descending ? ~key : key;
}

static void sort_select(sort_pair *first, int64_t k, mica_dtype dtype, const char *row, int64_t n, int64_t step,
                        bool descending)
{
    int64_t have = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = sort_key(dtype, row, i * step, descending);
        if (have == k && key >= first[k - 1].key) continue;
        int64_t j = have < k ? have++ : k - 1;
        for (; j > 0 && first[j - 1].key > key; j--) first[j] = first[j - 1];
        first[j] = (sort_pair){key, i};
    }
}

static void sort_row(const sort_job *job, sort_pair *pairs, const char *from, int64_t row)
{
    const mica__tensor *x = &job->launch->in[0], *out = job->launch->out;
    const bool descending = ((const mica__attr_sort *)job->launch->attr)->descending != 0;
    const mica_dtype dtype = mica__dtype_of(x);
    const int64_t n = mica__row_size(&x->spec), step = mica__row_stride(x), k = mica__row_size(&out->spec);
    const size_t size = mica_dtype_size(dtype);
    const sort_pair *sorted = pairs;
    if (job->select && k > 0 && k <= SORT_FEW && k < n / 4) {
        sort_select(pairs, k, dtype, from, n, step, descending);
    } else {
        for (int64_t i = 0; i < n; i++) pairs[i] = (sort_pair){sort_key(dtype, from, i * step, descending), i};
        sorted = sort_pairs(pairs, pairs + n, n);
    }
    for (int64_t i = 0; i < k; i++) {
        char *to = mica__element(out, row * k + i);
        if (job->indices) memcpy(to, &sorted[i].index, sizeof(int64_t));
        else memcpy(to, from + sorted[i].index * step * (int64_t)size, size);
    }
}

static int64_t sort_tasks(const mica__spec *x)
{
    /* At most 16 MiB of pairs, but at least one row. */
    const int64_t n = mica__max_i64(1, mica__row_size(x));
    const int64_t most = mica__max_i64(1, ((int64_t)1 << 19) / n);
    return mica__min_i64(mica__min_i64(SORT_TASKS, most), mica__max_i64(1, mica__row_count(x)));
}

static void sort_task(void *context, int64_t task)
{
    const sort_job *job = context;
    const mica__tensor *x = &job->launch->in[0];
    const int64_t each = job->rows / job->tasks, more = job->rows % job->tasks; /* the first `more` have one more */
    const int64_t begin = task * each + mica__min_i64(task, more), end = begin + each + (task < more);
    sort_pair *pairs = (sort_pair *)job->launch->workspace + task * 2 * mica__row_size(&x->spec);
    mica__walk walk;
    mica__walk_rows(&walk, x, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&walk))
        sort_row(job, pairs, mica__element(x, walk.offset), row);
}

static mica_status sort_run(const mica__launch *launch, bool indices, bool fast)
{
    const mica__spec *x = &launch->in[0].spec;
    if (mica__spec_size(x) == 0) return MICA_OK;
    sort_job job = {launch, indices, indices && fast, mica__row_count(x), sort_tasks(x)};
    mica__pool_run(fast ? launch->pool : NULL, job.tasks, sort_task, &job);
    return MICA_OK;
}

size_t mica__sort_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out)
{
    (void)n_in;
    (void)attr;
    (void)out;
    const size_t pairs = 2 * (size_t)sort_tasks(&in[0].spec);
    size_t nbytes;
    /* The product overflows only for rows that cannot be in memory. */
    return mica__mul_size((size_t)mica__row_size(&in[0].spec), pairs * sizeof(sort_pair), &nbytes) ? nbytes : SIZE_MAX;
}

mica_status mica__sort_ref(const mica__launch *launch) { return sort_run(launch, false, false); }
mica_status mica__argsort_ref(const mica__launch *launch) { return sort_run(launch, true, false); }
mica_status mica__sort_cpu(const mica__launch *launch) { return sort_run(launch, false, true); }
mica_status mica__argsort_cpu(const mica__launch *launch) { return sort_run(launch, true, true); }
