/* The compiler process that stays loaded (msl/programs.c): it dies, a child of fork() inherits it, messages belong to
 * their run, the working directory changes. Each text is new, so that it is not in the disk cache. */
#include "runner.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Compiles a new text whose kernel writes the value. */
static sm_kernel *compile(float value)
{
    static int count;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    char text[400];
    snprintf(text, sizeof text,
             "kernel void give(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
             "{ y[i] = i == %ld && i == %ld && i == %d ? %d : %g; }\n",
             (long)now.tv_sec, now.tv_nsec, (int)getpid(), count++, (double)value);
    char *message = NULL;
    sm_library *library = sm_library_open(text, strlen(text), NULL, &message);
    sm_kernel *kernel = library ? sm_kernel_build(library, "give", NULL, 0, &message) : NULL;
    sm_kernel_facts facts = {.from_cache = true};
    if (kernel) sm_kernel_describe(kernel, &facts);
    EXPECT_MSG(kernel && !facts.from_cache, "%s", message ? message : "not compiled");
    sm_library_close(library);
    free(message);
    return kernel;
}

/* Returns the value that the kernel wrote, or -1. */
static float compile_and_run(float value)
{
    float y[1] = {-1};
    runner r = {.kernel = compile(value)};
    runner_buffer(&r, 0, y, sizeof y);
    if (r.kernel) runner_run(&r, (uint32_t[3]){1, 1, 1}, (uint32_t[3]){1, 1, 1});
    runner_close(&r);
    return y[0];
}

TEST(a_child_has_its_own)
{
    if (!runner_usable()) return;
    for (int i = 0; i < 2; i++) EXPECT(compile_and_run((float)i + 1) == (float)i + 1);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) _exit(compile(3) && compile(4) ? 0 : 1); /* without running: it has no worker threads */
    const float here = compile_and_run(5);
    int status = -1;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    EXPECT(here == 5.0f && compile_and_run(6) == 6.0f);
}

/* A process can end while its child, which inherited the socket, still runs. */
TEST(ends_before_its_child)
{
    if (!runner_usable()) return;
    int ends[2], status = -1;
    CHECK(pipe(ends) == 0);
    fflush(stdout);
    const pid_t process = fork();
    if (process == 0) {
        close(ends[1]);
        for (int i = 0; i < 3; i++) sm_kernel_close(compile((float)i));
        if (fork() == 0) { /* runs until this test closes the pipe */
            char byte;
            _exit(read(ends[0], &byte, 1) != 0);
        }
        exit(0);
    }
    close(ends[0]);
    const struct timespec moment = {.tv_nsec = 20000000};
    for (int i = 0; i < 3000 && waitpid(process, &status, WNOHANG) == 0; i++) nanosleep(&moment, NULL);
    EXPECT_MSG(status == 0, "it ended with %d", status);
    close(ends[1]);
    if (status == -1) kill(process, SIGKILL);
}

TEST(messages_are_of_their_run)
{
    if (!runner_usable()) return;
    char *message = NULL;
    for (int i = 0; i < 3; i++) {
        char text[100];
        snprintf(text, sizeof text, "kernel void f(device float *y [[buffer(0)]]) { y[0] = missing_%d; }", i);
        sm_library *library = sm_library_open(text, strlen(text), NULL, &message);
        snprintf(text, sizeof text, "missing_%d", i);
        EXPECT_MSG(!library && message && strstr(message, text), "%s", message ? message : "no message");
        sm_library_close(library);
        free(message);
        message = NULL;
    }
    EXPECT(compile_and_run(8) == 8.0f);
}

TEST(another_folder)
{
    if (!runner_usable()) return;
    for (int i = 0; i < 2; i++) EXPECT(compile_and_run((float)i + 10) == (float)i + 10);
    char folder[] = "/tmp/softmetal-programs-XXXXXX", file[80];
    char *before = getcwd(NULL, 0), *message = NULL;
    CHECK(before && mkdtemp(folder) && chdir(folder) == 0);
    FILE *header = fopen("here.h", "w");
    if (header) fprintf(header, "constant float here = 2;\n"), fclose(header);
    static const char text[] = "#include \"here.h\"\nkernel void f(device float *y [[buffer(0)]]) { y[0] = here; }";
    const sm_options options = {.include = "."};
    sm_library *library = sm_library_open(text, strlen(text), &options, &message);
    EXPECT_MSG(library != NULL, "%s", message ? message : "no message");
    sm_library_close(library);
    free(message);
    snprintf(file, sizeof file, "%s/here.h", folder);
    unlink(file);
    EXPECT(chdir(before) == 0 && rmdir(folder) == 0);
    free(before);
}

/* Returns the number of killed children; -1: this Linux does not list children. */
static int kill_children(void)
{
    char path[64], line[400] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    if (!fgets(line, sizeof line, file)) line[0] = '\0';
    fclose(file);
    int killed = 0;
    char *at = line;
    for (long child; (child = strtol(at, &at, 10)) > 0;) killed += kill((pid_t)child, SIGKILL) == 0;
    return killed;
}

/* Must be the last test: after the resident process has died, each run starts a new process. */
TEST(stays_and_dies)
{
    if (!runner_usable()) return;
    for (int i = 0; i < 3; i++) EXPECT(compile_and_run((float)i + 0.5f) == (float)i + 0.5f);
    const bool cannot = getenv("QEMU_LD_PREFIX") || getenv("LD_PRELOAD"); /* then programs.c keeps no process */
    const int killed = kill_children();
    EXPECT_MSG(cannot || killed != 0, "no program has stayed");
    for (int i = 0; i < 2; i++) EXPECT(compile_and_run((float)i + 7) == (float)i + 7);
}
