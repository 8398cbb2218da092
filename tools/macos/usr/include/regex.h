/* See tools/macos/README.md. */
#ifndef MICA_MACOS_REGEX_H
#define MICA_MACOS_REGEX_H
#include <sys/types.h>

typedef int64_t regoff_t;
typedef struct {
    int re_magic;
    size_t re_nsub;
    const char *re_endp;
    struct re_guts *re_g;
} regex_t;
typedef struct {
    regoff_t rm_so, rm_eo;
} regmatch_t;

#define REG_EXTENDED 1
#define REG_NOSUB 4

int regcomp(regex_t *regex, const char *pattern, int flags);
size_t regerror(int code, const regex_t *regex, char *to, size_t cap);
int regexec(const regex_t *regex, const char *text, size_t n, regmatch_t *match, int flags);
void regfree(regex_t *regex);

#endif
