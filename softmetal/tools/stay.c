/* Preloaded into clang and lld (msl/programs.c). Starting them is mostly loading 200 MB of libraries. So one process
 * loads them, stops before main() and forks for each command line that it receives. Not part of libsoftmetal, which
 * contains it as bytes.
 *
 * A request is its length, then strings: the working directory, the file for messages, the arguments. The answer
 * is the status of waitpid. The socket is standard input. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

static int receive(void *bytes, size_t length)
{
    for (char *at = bytes; length > 0;) {
        const ssize_t n = read(0, at, length);
        if (n <= 0) return 0;
        at += n;
        length -= (size_t)n;
    }
    return 1;
}

static void answer(int value)
{
    if (write(0, &value, sizeof value) != (ssize_t)sizeof value) _exit(0);
}

static const char *next(const char *text) { return text + strlen(text) + 1; }

/* In the child: sets the working directory and the outputs of the request. Returns its arguments, followed by the
 * environment, as main() expects it. */
static char **settle(char *request, size_t length, int *count)
{
    const char *errors = next(request);
    const int out = open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0666), in = open("/dev/null", O_RDONLY);
    size_t room = length + 2, n = 0;
    for (char **e = environ; *e; e++) room++;
    char **list = calloc(room, sizeof *list);
    if (chdir(request) || out < 0 || in < 0 || !list) _exit(127);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(127);
    close(in);
    close(out);
    for (char *at = request + (next(errors) - request); at < request + length; at += strlen(at) + 1) list[n++] = at;
    *count = (int)n++;
    for (char **e = environ; *e; e++) list[n++] = *e;
    return list;
}

/* Returns in the children only. */
static char **serve(int *count)
{
    unsetenv("LD_PRELOAD");
    unsetenv("SM_STAY");
    answer(0);
    for (;;) {
        uint32_t length;
        if (!receive(&length, sizeof length)) _exit(0);
        char *request = calloc(1, (size_t)length + 1);
        if (!request || !receive(request, length)) _exit(0);
        const pid_t child = fork();
        if (child == 0) return settle(request, length, count);
        int status = -1;
        if (child > 0 && waitpid(child, &status, 0) != child) status = -1;
        free(request);
        answer(status);
    }
}

int __libc_start_main(main_function *program, int count, char **arguments, void (*before)(void), void (*after)(void),
                      void (*loader)(void), void *stack);
__attribute__((visibility("default"))) int __libc_start_main(main_function *program, int count, char **arguments,
                                                             void (*before)(void), void (*after)(void),
                                                             void (*loader)(void), void *stack)
{
    start_function *real;
    void *symbol = dlsym(RTLD_NEXT, "__libc_start_main");
    memcpy(&real, &symbol, sizeof real);
    if (getenv("SM_STAY")) arguments = serve(&count);
    return real(program, count, arguments, before, after, loader, stack);
}
