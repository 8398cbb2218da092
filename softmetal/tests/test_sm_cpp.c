/* Programs written for metal-cpp: cpp/vector_add.cpp is compiled against the headers in
 * softmetal/cpp, linked with the library of this build and run.
 * runs: unsanitized */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Runs a command; out holds the beginning of what it prints. Returns its exit code. */
static int run(const char *command, char *out, size_t size)
{
    FILE *pipe = popen(command, "r");
    if (!pipe) return -1;
    const size_t read = fread(out, 1, size - 1, pipe);
    out[read] = 0;
    while (fgetc(pipe) != EOF) {
    } /* a program that cannot write would fail */
    return pclose(pipe);
}

TEST(a_program_for_metal_cpp_adds_vectors)
{
    const char *build = getenv("BUILD"), *compiler = getenv("CXX");
    char out[2000], command[4096], folder[] = "/tmp/softmetal-cpp-XXXXXX";
    if (getenv("QEMU_LD_PREFIX")) SKIP("the compiler is for another machine");
    if (!build) build = "build";
    if (!compiler) compiler = "c++";
    snprintf(command, sizeof command, "%s --version 2>&1", compiler);
    if (run(command, out, sizeof out)) SKIP("there is no C++ compiler (%s)", compiler);
    CHECK(mkdtemp(folder));
    snprintf(command, sizeof command,
             "%s -std=c++17 -Wall -Wextra -Werror -O1 -Isoftmetal/cpp softmetal/tests/cpp/vector_add.cpp -o %s/add "
             "-L%s -lsoftmetal -Wl,-rpath,\"$(cd %s && pwd)\" 2>&1",
             compiler, folder, build, build);
    if (EXPECT_MSG(run(command, out, sizeof out) == 0, "%s", out)) {
        snprintf(command, sizeof command, "%s/add 2>&1", folder);
        const int code = run(command, out, sizeof out);
        EXPECT_MSG(code == 0 && strcmp(out, "1000 sums are right\n") == 0, "exit code %d: %s", code, out);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    EXPECT(run(command, out, sizeof out) == 0);
}
