/* Runs programs. The first runs of a program start a new process each; after that one process stays loaded and forks
 * (tools/stay.c), which takes a third of the time. A new process is still started where that does not work (a
 * program of another machine under qemu-user, a static program, no memory), and while another thread uses the loaded
 * process. */
#include "programs.h"

#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
extern const char sm_stay_start[], sm_stay_end[];

enum { PROGRAMS = 4, ALONE = 2, PATH_ROOM = 1200 };

typedef struct staying {
    char program[PATH_ROOM];
    pthread_mutex_t lock;
    int runs;
    pid_t process, owner; /* 0: not started */
    int socket;
    bool is_bad;
} staying;

static staying programs[PROGRAMS];
static pthread_mutex_t programs_lock = PTHREAD_MUTEX_INITIALIZER;

static int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128; }

static bool wait_for(pid_t child, int *status)
{
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR) return false;
    return true;
}

static int run_alone(const char *const *words, const char *errors)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions)) return -1;
    pid_t child;
    bool good = !posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) &&
                !posix_spawn_file_actions_addopen(&actions, 1, errors, O_WRONLY | O_CREAT | O_TRUNC, 0666) &&
                !posix_spawn_file_actions_adddup2(&actions, 1, 2) &&
                !posix_spawn(&child, words[0], &actions, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    return good && wait_for(child, &status) ? exit_code(status) : -1;
}

/* ---- one that stays ---- */

static bool send_all(int socket, const void *bytes, size_t length)
{
    for (const char *at = bytes; length > 0;) {
        const ssize_t n = send(socket, at, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        length -= (size_t)n;
    }
    return true;
}

static bool hear(int socket, int *value)
{
    char *at = (char *)value;
    for (size_t left = sizeof *value; left > 0;) {
        const ssize_t n = read(socket, at, left);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        left -= (size_t)n;
    }
    return true;
}

/* A child of fork() inherits the socket but must not use it. While it lives, closing alone does not end the process. */
static void stop_resident(staying *s)
{
    if (s->process == 0) return;
    const bool mine = s->owner == getpid();
    if (mine) shutdown(s->socket, SHUT_RDWR);
    close(s->socket);
    if (mine) wait_for(s->process, &(int){0});
    s->process = 0;
}

__attribute__((destructor)) static void end_all(void)
{
    for (int i = 0; i < PROGRAMS; i++) stop_resident(&programs[i]);
}

/* The environment with the preloaded file added. */
static char **environment_with(const char *preload)
{
    int count = 0;
    while (environ[count]) count++;
    char **list = calloc((size_t)count + 3, sizeof *list);
    static char stay[] = "SM_STAY=1";
    if (!list) return NULL;
    memcpy(list, environ, (size_t)count * sizeof *list);
    list[count] = (char *)(uintptr_t)preload;
    list[count + 1] = stay;
    return list;
}

static bool spawn_resident(staying *s, int end, const char *preload)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions)) return false;
    char version[] = "--version", *words[] = {s->program, version, NULL}; /* harmless if it does not stay */
    char **environment = environment_with(preload);
    const bool good = environment && !posix_spawn_file_actions_adddup2(&actions, end, 0) &&
                      !posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) &&
                      !posix_spawn_file_actions_adddup2(&actions, 1, 2) &&
                      !posix_spawn(&s->process, s->program, &actions, NULL, words, environment);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    if (!good) s->process = 0;
    return good;
}

/* For a script the shell would stay loaded. */
static bool is_machine_code(const char *program)
{
    char magic[4] = "";
    const int file = open(program, O_RDONLY | O_CLOEXEC);
    const bool read_it = file >= 0 && read(file, magic, sizeof magic) == (ssize_t)sizeof magic;
    if (file >= 0) close(file);
    return read_it && memcmp(magic, "\177ELF", sizeof magic) == 0;
}

static bool start_resident(staying *s, const char *folder)
{
    char preload[PATH_ROOM + 64], name[33];
    const size_t length = (size_t)(sm_stay_end - sm_stay_start);
    sm_hash hash;
    sm_hash_start(&hash);
    sm_hash_add(&hash, sm_stay_start, length);
    sm_hash_name(&hash, name);
    const int n = snprintf(preload, sizeof preload, "LD_PRELOAD=%s/stay-%s.so", folder, name);
    const char *path = strchr(preload, '=') + 1;
    int ends[2], hello;
    if (getenv("LD_PRELOAD") || n >= (int)sizeof preload || *path != '/' || !is_machine_code(s->program)) return false;
    if (access(path, R_OK) && !sm_file_write(path, sm_stay_start, length)) return false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return false;
    const bool good = spawn_resident(s, ends[1], preload);
    close(ends[1]);
    s->socket = ends[0];
    s->owner = getpid();
    if (!good) close(ends[0]);
    return good && hear(s->socket, &hello);
}

/* Returns -1 if it did not run. */
static int ask(staying *s, const char *const *words, const char *errors)
{
    char *here = getcwd(NULL, 0);
    sm_text text = {0};
    uint32_t length = 0;
    int status = -1;
    sm_text_add(&text, (const char *)&length, sizeof length);
    sm_text_add(&text, here ? here : "/", here ? strlen(here) + 1 : 2);
    sm_text_add(&text, errors, strlen(errors) + 1);
    for (; *words; words++) sm_text_add(&text, *words, strlen(*words) + 1);
    const bool whole = here && !text.failed;
    if (whole) {
        length = (uint32_t)(text.length - sizeof length);
        memcpy(text.bytes, &length, sizeof length);
        if (!send_all(s->socket, text.bytes, text.length) || !hear(s->socket, &status)) s->is_bad = true;
    }
    sm_text_free(&text);
    free(here);
    return whole && !s->is_bad && status != -1 ? exit_code(status) : -1;
}

static staying *find_resident(const char *program)
{
    staying *found = NULL;
    pthread_mutex_lock(&programs_lock);
    for (int i = 0; i < PROGRAMS && !found && strlen(program) < PATH_ROOM; i++) {
        staying *s = &programs[i];
        if (!s->program[0]) {
            pthread_mutex_init(&s->lock, NULL);
            strcpy(s->program, program);
        }
        if (!strcmp(s->program, program)) found = s;
    }
    pthread_mutex_unlock(&programs_lock);
    return found;
}

int sm_run_program(const char *const *words, const char *errors, const char *folder)
{
    staying *s = find_resident(words[0]);
    int code = -1;
    if (s && pthread_mutex_trylock(&s->lock) == 0) {
        if (s->process && s->owner != getpid()) stop_resident(s);
        if (!s->is_bad && s->runs++ >= ALONE) {
            if (!s->process) s->is_bad = !start_resident(s, folder);
            if (!s->is_bad) code = ask(s, words, errors);
        }
        if (s->is_bad) stop_resident(s);
        pthread_mutex_unlock(&s->lock);
    }
    return code >= 0 ? code : run_alone(words, errors);
}
