/* See tools/macos/README.md. */
#ifndef MICA_MACOS_STDLIB_H
#define MICA_MACOS_STDLIB_H
#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

void abort(void) __attribute__((noreturn));
int abs(int x);
int atexit(void (*run)(void));
double atof(const char *text);
int atoi(const char *text);
void *bsearch(const void *key, const void *base, size_t n, size_t size, int (*compare)(const void *, const void *));
void *calloc(size_t n, size_t size);
void exit(int code) __attribute__((noreturn));
void free(void *p);
char *getenv(const char *name);
int getloadavg(double *to, int n);
long labs(long x);
long long llabs(long long x);
void *malloc(size_t nbytes);
char *mkdtemp(char *path);
int mkstemp(char *path);
int posix_memalign(void **out, size_t align, size_t nbytes);
int putenv(char *entry);
void qsort(void *base, size_t n, size_t size, int (*compare)(const void *, const void *));
void *realloc(void *p, size_t nbytes);
char *realpath(const char *path, char *to);
int setenv(const char *name, const char *value, int replace);
double strtod(const char *text, char **end);
float strtof(const char *text, char **end);
long strtol(const char *text, char **end, int base);
long long strtoll(const char *text, char **end, int base);
unsigned long strtoul(const char *text, char **end, int base);
unsigned long long strtoull(const char *text, char **end, int base);
int system(const char *command);
int unsetenv(const char *name);

#endif
