/* See differential.h. Case C of seed S is the same input on every machine, whatever the number of processes. Processes,
 * not threads: a crash of one ends neither the count nor the report of its input. */
#include "differential.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

enum { MAX_JOBS = 64, MAX_FAILURES = 10, MAX_CORPUS = 256, PROGRESS_SECONDS = 30 };

/* One process; shared with the parent, which reads the counts while the process runs. */
typedef struct differ_counts {
    uint64_t current; /* the case */
    uint64_t inputs, accepted, refused, failed, reasons[DIFFER_REASONS];
} differ_counts;

struct differ {
    const differ_program *program;
    volatile differ_counts *counts;
    uint64_t seed, index;
    bool failed; /* in this case */
    const char *file; /* instead of a case */
};

static differ_bytes corpus[MAX_CORPUS];
static unsigned n_corpus;

/* ----------------------------------------------------------------- bytes --- */

void differ_put(differ_bytes *b, const void *data, size_t n)
{
    if (n > b->cap - b->n) {
        b->cap = 2 * (b->cap + n) + 64;
        b->data = realloc(b->data, b->cap);
        if (!b->data) abort();
    }
    if (n) memcpy(b->data + b->n, data, n);
    b->n += n;
}

void differ_format(differ_bytes *b, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    differ_put(b, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

void differ_utf8(differ_bytes *b, uint32_t c)
{
    if (c < 0x80) {
        differ_byte(b, c);
        return;
    }
    const int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    differ_byte(b, first[n] | c >> (6 * (n - 1)));
    for (int i = n - 2; i >= 0; i--) differ_byte(b, 0x80 | (c >> (6 * i) & 63));
}

size_t differ_first(const void *a, size_t n, const void *b, size_t m)
{
    size_t i = 0;
    while (i < n && i < m && ((const uint8_t *)a)[i] == ((const uint8_t *)b)[i]) i++;
    return i;
}

static void remove_bytes(differ_bytes *b, size_t at, size_t n)
{
    memmove(b->data + at, b->data + at + n, b->n - at - n);
    b->n -= n;
}

/* Inserts bytes; they must not be part of b. */
static void insert_bytes(differ_bytes *b, size_t at, const void *data, size_t n)
{
    const size_t tail = b->n - at;
    differ_put(b, data, n);
    memmove(b->data + at + n, b->data + at, tail);
    if (n) memcpy(b->data + at, data, n);
}

/* One to four changes: a bit, a byte, bytes removed, bytes repeated, the end cut off. */
static void mutate(uint64_t *random, differ_bytes *b)
{
    uint8_t piece[16];
    for (unsigned k = 1 + differ_below(random, 4); k > 0; k--) {
        const size_t at = b->n ? differ_below(random, (unsigned)b->n) : 0;
        const size_t room = b->n - at;
        size_t n = 1 + differ_below(random, sizeof piece);
        if (n > room) n = room;
        switch (room ? differ_below(random, 7) : 2) {
        case 0: b->data[at] ^= (uint8_t)(1u << differ_below(random, 8)); break;
        case 1: b->data[at] = (uint8_t)parity_random(random); break;
        case 2: piece[0] = (uint8_t)parity_random(random), insert_bytes(b, at, piece, 1); break;
        case 3: remove_bytes(b, at, n); break;
        case 4: memcpy(piece, b->data + at, n), insert_bytes(b, at, piece, n); break;
        case 5: b->data[at] = b->data[differ_below(random, (unsigned)b->n)]; break;
        default:
            if (differ_one_in(random, 4)) b->n = at;
            break;
        }
    }
}

/* ---------------------------------------------------------------- inputs --- */

static void read_file(const char *path, differ_bytes *out)
{
    uint8_t part[4096];
    FILE *file = fopen(path, "rb");
    out->n = 0;
    for (size_t n; file && (n = fread(part, 1, sizeof part, file)) > 0;) differ_put(out, part, n);
    if (!file || ferror(file)) {
        printf("cannot read %s: %s\n", path, strerror(errno));
        exit(1);
    }
    fclose(file);
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

/* In the order of their names, so that a case is the same input everywhere. */
static void read_corpus(const char *name)
{
    char folder[256], path[600];
    struct dirent **entries;
    if (!name) return;
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name);
    const int n = scandir(folder, &entries, NULL, by_name);
    if (n < 0) {
        printf("cannot read %s: run this from the root of the project\n", folder);
        exit(1);
    }
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && n_corpus < MAX_CORPUS) read_file(path, &corpus[n_corpus++]);
        free(entries[i]);
    }
    free(entries);
}

/* The first cases are the files of the corpus. Of the others five in eight are generated, two generated and mutated,
 * one is a mutated file. */
static void make_case(const differ_program *p, uint64_t seed, uint64_t index, differ_bytes *out)
{
    out->n = 0;
    if (index < n_corpus) {
        differ_put(out, corpus[index].data, corpus[index].n);
        return;
    }
    uint64_t random = mica__hash_u64(mica__hash_u64(seed) + index);
    const unsigned kind = differ_below(&random, 8);
    if (kind == 7 && n_corpus) {
        const differ_bytes *file = &corpus[differ_below(&random, n_corpus)];
        if (file->n <= 1 << 14) differ_put(out, file->data, file->n);
    } else p->generate(&random, out);
    if (kind >= 5) mutate(&random, out);
}

/* ---------------------------------------------------------------- counts --- */

void differ_agree(differ *d, bool accepted)
{
    d->counts->inputs++;
    if (accepted) d->counts->accepted++;
    else d->counts->refused++;
}

void differ_listed(differ *d, int reason)
{
    d->counts->inputs++;
    d->counts->reasons[reason]++;
}

/* Writes an input where its failure can be repeated from. */
static void write_input(const differ_program *p, uint64_t seed, uint64_t index, const differ_bytes *input)
{
    char path[512];
    const char *build = getenv("BUILD");
    snprintf(path, sizeof path, "%s", build && *build ? build : "build");
    (void)mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/differential", build && *build ? build : "build");
    (void)mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/differential/%s-%llu-%llu", build && *build ? build : "build", p->name,
             (unsigned long long)seed, (unsigned long long)index);
    FILE *file = fopen(path, "wb");
    const bool good = file && fwrite(input->data, 1, input->n, file) == input->n;
    if (file && fclose(file) == 0 && good) printf("    input in %s\n", path);
    else printf("    the input could not be written to %s: %s\n", path, strerror(errno));
}

void differ_fail(differ *d, const char *fmt, ...)
{
    char text[2000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    d->counts->inputs++;
    d->counts->failed++;
    if (d->failed) return; /* one message a case */
    d->failed = true;
    if (d->file) printf("DIFFERS %s %s: %s\n", d->program->name, d->file, text);
    else
        printf("DIFFERS %s --seed %llu --case %llu: %s\n", d->program->name, (unsigned long long)d->seed,
               (unsigned long long)d->index, text);
    fflush(stdout);
}

/* Runs one case in a block of exactly its size, so that ASan reports a read past its end. */
static void run_bytes(differ *d, const differ_bytes *input)
{
    uint8_t *exact = malloc(input->n ? input->n : 1);
    if (!exact) abort();
    if (input->n) memcpy(exact, input->data, input->n);
    d->failed = false;
    const uint64_t before = d->counts->inputs;
    d->program->compare(d, exact, input->n);
    if (d->counts->inputs == before) differ_agree(d, false);
    free(exact);
    if (d->failed && !d->file) write_input(d->program, d->seed, d->index, input);
}

/* Process `job` of `jobs`: every case whose number is job modulo jobs, until its share of inputs is reached. */
static void run_job(differ *d, uint64_t runs, unsigned job, unsigned jobs)
{
    differ_bytes input = {0};
    const uint64_t share = runs / jobs + (job < runs % jobs);
    if (d->program->begin) d->program->begin();
    int failures = 0; /* cases */
    for (uint64_t index = job; d->counts->inputs < share && failures < MAX_FAILURES; index += jobs) {
        d->counts->current = d->index = index;
        make_case(d->program, d->seed, index, &input);
        run_bytes(d, &input);
        failures += d->failed;
    }
    free(input.data);
}

/* ---------------------------------------------------------------- report --- */

static differ_counts total_of(const volatile differ_counts *counts, unsigned jobs)
{
    differ_counts sum = {0};
    for (unsigned i = 0; i < jobs; i++) {
        sum.inputs += counts[i].inputs;
        sum.accepted += counts[i].accepted;
        sum.refused += counts[i].refused;
        sum.failed += counts[i].failed;
        for (int k = 0; k < DIFFER_REASONS; k++) sum.reasons[k] += counts[i].reasons[k];
    }
    return sum;
}

static void report(const differ_program *p, const differ_counts *sum, uint64_t seed, double seconds)
{
    printf("%s against %s, seed %llu: %llu inputs in %.0f s\n", p->name, p->peer, (unsigned long long)seed,
           (unsigned long long)sum->inputs, seconds);
    printf("  %12llu accepted by both, with equal values\n", (unsigned long long)sum->accepted);
    printf("  %12llu refused by both\n", (unsigned long long)sum->refused);
    for (int i = 0; i < p->n_reasons; i++)
        printf("  %12llu %s: %s\n", (unsigned long long)sum->reasons[i], p->reasons[i].name, p->reasons[i].why);
    printf("  %12llu not listed\n", (unsigned long long)sum->failed);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits for all processes and prints progress; the number of those that did not end by themselves. */
static int wait_for_jobs(const differ_program *p, volatile differ_counts *counts, const pid_t *pids, unsigned jobs,
                         uint64_t runs, uint64_t seed)
{
    int crashed = 0;
    const double start = now();
    double said = start;
    for (unsigned left = jobs; left > 0;) {
        int status;
        const pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0) {
            const struct timespec pause = {0, 20000000};
            nanosleep(&pause, NULL);
            if (now() - said >= PROGRESS_SECONDS) {
                said = now();
                printf("%s: %llu of %llu inputs, %.0f s\n", p->name, (unsigned long long)total_of(counts, jobs).inputs,
                       (unsigned long long)runs, said - start);
            }
            continue;
        }
        left--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        crashed++;
        for (unsigned i = 0; i < jobs; i++)
            if (pids[i] == pid) {
                differ_bytes input = {0};
                printf("CRASH %s --seed %llu --case %llu: %s %d\n", p->name, (unsigned long long)seed,
                       (unsigned long long)counts[i].current, WIFSIGNALED(status) ? "signal" : "exit code",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
                make_case(p, seed, counts[i].current, &input);
                write_input(p, seed, counts[i].current, &input);
                free(input.data);
            }
    }
    return crashed;
}

static int run_all(const differ_program *p, uint64_t runs, uint64_t seed, unsigned jobs)
{
    pid_t pids[MAX_JOBS];
    const double start = now();
    volatile differ_counts *counts =
        mmap(NULL, jobs * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED) abort();
    for (unsigned i = 0; i < jobs; i++) {
        pids[i] = fork();
        if (pids[i] < 0) abort();
        if (pids[i] == 0) {
            differ d = {.program = p, .counts = &counts[i], .seed = seed};
            run_job(&d, runs, i, jobs);
            fflush(stdout);
            _exit(0);
        }
    }
    const int crashed = wait_for_jobs(p, counts, pids, jobs, runs, seed);
    const differ_counts sum = total_of(counts, jobs);
    report(p, &sum, seed, now() - start);
    return crashed == 0 && sum.failed == 0;
}

/* Repeats one case, or runs files. */
static int run_some(const differ_program *p, uint64_t seed, const uint64_t *index, char **files, int n_files)
{
    differ_counts counts = {0};
    differ_bytes input = {0};
    differ d = {.program = p, .counts = &counts, .seed = seed};
    if (p->begin) p->begin();
    if (index) {
        d.index = *index;
        make_case(p, seed, *index, &input);
        run_bytes(&d, &input);
    }
    for (int i = 0; i < n_files; i++) {
        d.file = files[i];
        read_file(files[i], &input);
        run_bytes(&d, &input);
    }
    report(p, &counts, seed, 0);
    free(input.data);
    return counts.failed == 0;
}

int differ_main(const differ_program *program, int argc, char **argv)
{
    uint64_t runs = 20000, seed = 1, jobs = 2, one = 0;
    const struct {
        const char *name;
        uint64_t *value;
    } options[] = {{"--runs", &runs}, {"--seed", &seed}, {"--jobs", &jobs}, {"--case", &one}};
    bool only = false;
    int at = 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        char *end = argv[at + 1];
        bool known = false;
        for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
            if (strcmp(argv[at], options[i].name) == 0) {
                *options[i].value = strtoull(argv[at + 1], &end, 10);
                known = true;
                only |= options[i].value == &one;
            }
        if (!known || *end || end == argv[at + 1]) break;
    }
    if ((at < argc && argv[at][0] == '-') || jobs < 1 || jobs > MAX_JOBS) {
        printf("usage: diff_%s [--runs N] [--seed S] [--jobs 1..%d] [--case C | FILE...]\n", program->name, MAX_JOBS);
        return 2;
    }
    read_corpus(program->corpus);
    const bool good = only || at < argc ? run_some(program, seed, only ? &one : NULL, argv + at, argc - at)
                                        : run_all(program, runs, seed, (unsigned)jobs);
    printf("%d passed, %d failed, 0 skipped\n", good, !good);
    return good ? 0 : 1;
}
