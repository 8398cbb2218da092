/* SM_COVER=file. The compiler puts a flag into each basic block of a kernel's code. When
 * the kernel is closed, or the process ends, the file is extended by a line "module PATH" and
 * a line "0 ADDRESS" or "1 ADDRESS" for each block: whether it ran, and its address in that
 * shared library. Its line tables map the address to the text (tools/shader_coverage.sh). */
#include "cover.h"

#include "../msl/text.h"
#include "../settings/settings.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sm_kernel *covered;

void sm_cover_start(sm_kernel *kernel)
{
    kernel->cover = dlsym(kernel->handle, "sm_kernel_cover");
    if (!kernel->cover) return;
    pthread_mutex_lock(&lock);
    kernel->cover_next = covered;
    covered = kernel;
    pthread_mutex_unlock(&lock);
}

static void write_blocks(const sm_kernel *kernel)
{
    const char *path = sm_setting_text(SM_SET_COVER);
    const sm_cover *c = kernel->cover;
    if (!path || !c->blocks) return;
    sm_text text = {0};
    sm_text_print(&text, "module %s\n", kernel->path);
    for (size_t i = 0; c->ran + i < c->ran_end; i++)
        sm_text_print(&text, "%d 0x%lx\n", c->ran[i] != 0, c->blocks[2 * i] - (unsigned long)kernel->base);
    const int file = text.failed ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    /* one write call: other processes append to the file too */
    if (file >= 0 && write(file, text.bytes, text.length) != (ssize_t)text.length)
        (void)!write(2, "softmetal: SM_COVER: not written\n", 33);
    if (file >= 0) close(file);
    sm_text_free(&text);
}

void sm_cover_end(sm_kernel *kernel)
{
    if (!kernel->cover) return;
    pthread_mutex_lock(&lock);
    sm_kernel **link = &covered;
    while (*link && *link != kernel) link = &(*link)->cover_next;
    if (*link) *link = kernel->cover_next;
    pthread_mutex_unlock(&lock);
    write_blocks(kernel);
}

__attribute__((destructor)) static void write_the_rest(void)
{
    pthread_mutex_lock(&lock);
    for (const sm_kernel *k = covered; k; k = k->cover_next) write_blocks(k);
    covered = NULL;
    pthread_mutex_unlock(&lock);
}
