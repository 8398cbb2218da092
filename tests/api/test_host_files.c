/* mica_text_read and temporary files: what is refused, what is removed and what is kept. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "files.h"

TEST(a_text_is_read_whole)
{
    char *text = NULL;
    size_t n = 0;
    const char *path = write_bytes("text", "one\0two", 7);
    CHECK_OK(mica_text_read(path, 7, &text, &n));
    EXPECT(n == 7 && memcmp(text, "one\0two", 8) == 0);
    mica_text_free(text);
    CHECK_OK(mica_text_read(path, 0, &text, &n));
    EXPECT_INT(n, 7);
    mica_text_free(text);
    EXPECT_FAILS(mica_text_read(path, 6, &text, &n), MICA_ERR_FILE, "more than 6 bytes");
    EXPECT(text == NULL && n == 0);
    path = write_text("text", "");
    CHECK_OK(mica_text_read(path, 1, &text, &n));
    EXPECT(n == 0 && text && text[0] == '\0');
    mica_text_free(text);
    mica_text_free(NULL);
    unlink(path);
}

TEST(what_has_no_end_is_refused)
{
    char *text = NULL;
    size_t n = 0;
    EXPECT_FAILS(mica_text_read("/dev/zero", 0, &text, &n), MICA_ERR_FILE, "is a device, not a file");
    EXPECT_FAILS(mica_text_read(folder_path(), 0, &text, &n), MICA_ERR_FILE, "is a folder, not a file");
    EXPECT_FAILS(mica_text_read(file_path("none"), 0, &text, &n), MICA_ERR_FILE, "cannot open it");
    EXPECT_FAILS(mica_text_read(NULL, 0, &text, &n), MICA_ERR_ARGUMENT, "path is NULL");
    EXPECT_FAILS(mica_text_read("x", 0, NULL, &n), MICA_ERR_ARGUMENT, "text is NULL");
    EXPECT_FAILS(mica_text_read("x", 0, &text, NULL), MICA_ERR_ARGUMENT, "length is NULL");
    const char *pipe = file_path("pipe");
    CHECK(mkfifo(pipe, 0666) == 0);
    CHECK_OK(mica_text_read(pipe, 0, &text, &n)); /* no writer: does not wait */
    EXPECT_INT(n, 0);
    mica_text_free(text);
    unlink(pipe);
}

/* A child writes this number of bytes to a pipe, after a delay. */
static void read_from_writer(size_t bytes, uint64_t limit, mica_status want)
{
    char *text = NULL;
    size_t n = 0;
    int ready[2];
    const char *path = file_path("pipe");
    CHECK(mkfifo(path, 0666) == 0 && pipe(ready) == 0);
    const int keep = open(path, O_RDONLY | O_NONBLOCK); /* so that the writer can open it */
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGPIPE, SIG_DFL);
        const int fd = open(path, O_WRONLY);
        char block[1000];
        memset(block, 'x', sizeof block);
        if (write(ready[1], "r", 1) != 1) _exit(1);
        usleep(100000);
        close(keep);
        for (size_t left = bytes; left; left -= left < sizeof block ? left : sizeof block)
            if (write(fd, block, left < sizeof block ? left : sizeof block) < 0) _exit(0);
        _exit(0);
    }
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
    const mica_status status = mica_text_read(path, limit, &text, &n);
    EXPECT_MSG(status == want, "status %d, not %d: %s", (int)status, (int)want, mica_last_error());
    if (want == MICA_OK) EXPECT_INT(n, bytes);
    mica_text_free(text);
    close(keep);
    close(ready[0]);
    close(ready[1]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    unlink(path);
}

TEST(a_pipe_is_read_up_to_the_limit)
{
    read_from_writer(100, 1000, MICA_OK);
    read_from_writer(300000, 0, MICA_OK);
    read_from_writer(300000, 200000, MICA_ERR_FILE);
}

/* ------------------------------------------------------------- temporaries --- */

static pid_t dead_process(void)
{
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    return child;
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

TEST(files_of_dead_processes_are_removed)
{
    char path[700], name[800], left[800], locked[800], alive[800];
    int fd;
    const pid_t dead = dead_process();
    snprintf(path, sizeof path, "%s", file_path("model"));
    snprintf(left, sizeof left, "model.%ld-0.tmp", (long)dead);
    snprintf(left, sizeof left, "%s", write_text(left, "left"));
    snprintf(alive, sizeof alive, "model.%ld-0.tmp", (long)getppid());
    snprintf(alive, sizeof alive, "%s", write_text(alive, "alive"));
    snprintf(locked, sizeof locked, "model.%ld-1.tmp", (long)dead);
    snprintf(locked, sizeof locked, "%s", write_text(locked, "in another namespace"));
    CHECK_OK(mica_temporary_create(locked, name, sizeof name, &fd)); /* holds its own lock, under another name */
    CHECK(rename(name, locked) == 0);
    const char *const others[] = {write_text("model.7-.tmp", "x"), write_text("model.tmp", "x")};
    int mine;
    char created[800];
    CHECK_OK(mica_temporary_create(path, created, sizeof created, &mine));
    EXPECT(!exists(left));
    EXPECT(exists(alive));
    EXPECT(exists(locked));
    EXPECT(exists(others[0]) && exists(others[1]));
    EXPECT(exists(created));
    mica_remove_temporaries();
    EXPECT(!exists(created));
    close(mine);
    close(fd);
    mica_temporary_done(created);
    mica_temporary_done(name);
    mica_temporary_done(NULL);
    unlink(alive), unlink(locked), unlink(file_path("model.7-.tmp")), unlink(file_path("model.tmp"));
    EXPECT_FAILS(mica_temporary_create(path, name, 8, &fd), MICA_ERR_ARGUMENT, "does not fit into 8 bytes");
    EXPECT_FAILS(mica_temporary_create(file_path("no/where"), name, sizeof name, &fd), MICA_ERR_FILE, "cannot create");
    EXPECT_FAILS(mica_temporary_create(NULL, name, sizeof name, &fd), MICA_ERR_ARGUMENT, "path is NULL");
}

/* After mica_temporary_done the library no longer removes the file. */
TEST(a_finished_file_stays)
{
    char name[800];
    int fd;
    CHECK_OK(mica_temporary_create(file_path("done"), name, sizeof name, &fd));
    close(fd);
    mica_temporary_done(name);
    mica_remove_temporaries();
    EXPECT(exists(name));
    unlink(name);
}

TEST(a_writer_leaves_nothing)
{
    const int before = files_there();
    for (int finish = 0; finish < 2; finish++) {
        mica_writer *w = NULL;
        CHECK_OK(mica_writer_open(file_path("w.gguf"), "gguf", &w));
        if (finish) EXPECT_OK(mica_writer_finish(w, NULL, NULL));
        else mica_writer_abandon(w);
    }
    mica_remove_temporaries();
    EXPECT(exists(file_path("w.gguf")));
    unlink(file_path("w.gguf"));
    EXPECT_INT(files_there(), before);
}
