/* Runs a fuzzer's inputs without libFuzzer, so that each `make test` runs them with any
 * compiler: every file of tests/fuzz/corpus/NAME/ (fuzz_NAME is the program), which also
 * holds inputs that once failed, then pseudo-random inputs from a fixed seed. An input
 * fails by crashing, as under libFuzzer.
 *
 *     build/tests/fuzz/fuzz_NAME [COUNT | FILE...] */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_RANDOM_BYTES = 512, DEFAULT_RANDOM_INPUTS = 1000 };

/* In a heap block of exactly its size, so that ASan reports a read past its end. */
static void run_input(const uint8_t *bytes, size_t size)
{
    uint8_t *input = malloc(size ? size : 1);
    if (!input) abort();
    if (size) memcpy(input, bytes, size);
    LLVMFuzzerTestOneInput(input, size);
    free(input);
}

static bool run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        printf("cannot open %s\n", path);
        return false;
    }
    uint8_t *bytes = NULL;
    size_t size = 0, cap = 0;
    do {
        cap = cap ? 2 * cap : 4096;
        uint8_t *grown = realloc(bytes, cap);
        if (!grown) abort();
        bytes = grown;
        size += fread(bytes + size, 1, cap - size, file);
    } while (size == cap);
    const bool complete = !ferror(file);
    fclose(file);
    if (complete) run_input(bytes, size);
    else printf("cannot read %s\n", path);
    free(bytes);
    return complete;
}

/* splitmix64: the same inputs on every machine and in every run. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void run_random(long count)
{
    uint8_t bytes[MAX_RANDOM_BYTES];
    uint64_t state = 1;
    for (long i = 0; i < count; i++) {
        const size_t size = (size_t)(next_random(&state) % (MAX_RANDOM_BYTES + 1));
        for (size_t k = 0; k < size; k++) bytes[k] = (uint8_t)next_random(&state);
        run_input(bytes, size);
    }
}

/* A fuzzer need not have a corpus; false only if a file of it cannot be read. */
static bool run_corpus(const char *program, long *n_files)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    if (strncmp(name, "fuzz_", 5) == 0) name += 5;
    char folder[512], path[1024];
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name);
    DIR *dir = opendir(folder);
    bool good = true;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        good = run_file(path) && good;
        ++*n_files;
    }
    if (dir) closedir(dir);
    return good;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool good = true;
    long n_files = 0, n_random = DEFAULT_RANDOM_INPUTS;
    char *end = NULL;
    if (argc == 2) n_random = strtol(argv[1], &end, 10);
    if (argc > 1 && !(end && *end == '\0')) {
        n_random = 0;
        for (int i = 1; i < argc; i++) good = run_file(argv[i]) && good;
        n_files = argc - 1;
    } else {
        good = run_corpus(argv[0], &n_files);
    }
    run_random(n_random);
    printf("%ld files and %ld random inputs\n", n_files, n_random);
    printf("%d passed, %d failed, 0 skipped\n", good, !good);
    return good ? 0 : 1;
}
