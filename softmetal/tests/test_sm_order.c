/* The order of execution: events, fences, handlers, the modes of SM_EXEC. Also injected faults. */
#include "sm_kit.h"

#include <pthread.h>

static const char *const modes[] = {"async", "early", "late", "shuffle"};

static void set_mode(const char *mode)
{
    test_case("SM_EXEC=%s", mode);
    setenv("SM_EXEC", mode, 1);
}

#define EACH_MODE for (size_t m_ = 0; m_ < 4 ? set_mode(modes[m_]), true : (setenv("SM_EXEC", "async", 1), false); m_++)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int scheduled, completed;
static void note(host_block *block, id commands)
{
    pthread_mutex_lock(&lock); /* the committing thread may hold this lock */
    ++*(int *)block->context[0];
    if (block->context[0] == (void *)&completed) EXPECT(ASK(unsigned long, commands, "status") >= 4);
    pthread_mutex_unlock(&lock);
}

TEST(handlers_run_on_a_thread_of_their_own)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    EACH_MODE
    {
        scheduled = completed = 0;
        id commands = ASK(id, kit.queue, "commandBuffer");
        host_block on_schedule = host_make_block((void (*)(void))note, &scheduled);
        host_block on_end = host_make_block((void (*)(void))note, &completed);
        SEND(void, commands, "addScheduledHandler:", (void *), &on_schedule);
        SEND(void, commands, "addCompletedHandler:", (void *), &on_end);
        SEND(void, commands, "addCompletedHandler:", (void *), &on_end);
        pthread_mutex_lock(&lock);
        ASK(void, commands, "commit");
        pthread_mutex_unlock(&lock);
        ASK(void, commands, "waitUntilCompleted");
        EXPECT_INT(scheduled, 1);
        EXPECT_INT(completed, 2);
    }
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

TEST(command_buffers_of_a_queue_in_order_whatever_the_mode)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    EACH_MODE
    {
        memset(kit.in, 0, KIT_N * sizeof *kit.in);
        id last = NULL;
        for (int i = 0; i < 10; i++) last = kit_submit(&kit, kit.queue, i % 2 ? kit.add_one : kit.copy, kit.a, kit.b);
        ASK(void, last, "waitUntilCompleted");
        EXPECT(kit.in[7] == 5 && kit.out[7] == 4); /* tracked buffers: each copy sees the earlier additions */
    }
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

TEST(late_means_after_the_demand)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    setenv("SM_EXEC", "late", 1);
    setenv("SM_LATE", "1000", 1);
    id commands = kit_submit(&kit, kit.queue, kit.add_one, kit.a, NULL);
    EXPECT(kit.in[5] == 5); /* no thread has waited for it yet */
    ASK(void, commands, "waitUntilCompleted");
    EXPECT(kit.in[5] == 6);
    unsetenv("SM_LATE");
    setenv("SM_EXEC", "early", 1);
    commands = kit_submit(&kit, kit.queue, kit.add_one, kit.a, NULL);
    EXPECT(kit.in[5] == 7); /* it ran before commit returned */
    EXPECT_INT(ASK(unsigned long, commands, "status"), 4);
    ASK(void, commands, "waitUntilCompleted"); /* until the handler thread has released it too */
    setenv("SM_EXEC", "async", 1);
    kit_close(&kit);
}

static int notices;
static void note_value(host_block *block, id event, uint64_t value)
{
    (void)event;
    __atomic_fetch_add((int *)block->context[0], (int)value, __ATOMIC_SEQ_CST);
}

TEST(events_order_queues_and_the_host)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id other = ASK(id, kit.device, "newCommandQueue"), event = ASK(id, kit.device, "newSharedEvent");
    id listener = ASK(id, host.class("MTLSharedEventListener"), "new");
    uint64_t value = 0;
    EACH_MODE
    {
        for (int i = 0; i < KIT_N; i++) kit.in[i] = 1, kit.out[i] = -1;
        notices = 0;
        host_block block = host_make_block((void (*)(void))note_value, &notices);
        SEND(void, event, "notifyListener:atValue:block:", (id, uint64_t, void *), listener, value + 2, &block);
        id second = ASK(id, other, "commandBuffer"); /* copies the result of the first one */
        SEND(void, second, "encodeWaitForEvent:value:", (id, uint64_t), event, value + 2);
        id encoder = ASK(id, second, "computeCommandEncoder");
        kit_bind(encoder, kit.copy, kit.a, kit.b);
        kit_dispatch(encoder, KIT_N, 32);
        ASK(void, encoder, "endEncoding");
        ASK(void, second, "commit");
        id one = ASK(id, kit.queue, "commandBuffer"); /* waits for the host */
        SEND(void, one, "encodeWaitForEvent:value:", (id, uint64_t), event, value + 1);
        encoder = ASK(id, one, "computeCommandEncoder");
        kit_bind(encoder, kit.add_one, kit.a, NULL);
        kit_dispatch(encoder, KIT_N, 32);
        ASK(void, encoder, "endEncoding");
        SEND(void, one, "encodeSignalEvent:value:", (id, uint64_t), event, value + 2);
        ASK(void, one, "commit");
        EXPECT(ASK(uint64_t, event, "signaledValue") == value);
        EXPECT(!SEND(BOOL, event, "waitUntilSignaledValue:timeoutMS:", (uint64_t, uint64_t), value + 2, (uint64_t)1));
        SEND(void, event, "setSignaledValue:", (uint64_t), value + 1);
        EXPECT(
            SEND(BOOL, event, "waitUntilSignaledValue:timeoutMS:", (uint64_t, uint64_t), value + 2, (uint64_t)100000));
        ASK(void, second, "waitUntilCompleted");
        EXPECT_STR(host_error_text(ASK(id, second, "error")), "");
        EXPECT(kit.out[9] == 2);
        value += 2;
        EXPECT_INT(__atomic_load_n(&notices, __ATOMIC_SEQ_CST), value); /* called before the handlers of the second */
    }
    host_release(other);
    host_release(event);
    host_release(listener);
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

/* Two passes that use untracked buffers: with a fence the second always sees the
 * first; without one the shuffle finds an order in which it does not. */
static int stale_results(metal_kit *kit, id a, id b, bool fenced)
{
    int stale = 0;
    float *in = host_contents(a), *out = host_contents(b);
    for (int round = 0; round < 24; round++) {
        in[0] = 0, out[0] = -1;
        id fence = ASK(id, kit->device, "newFence"), commands = ASK(id, kit->queue, "commandBuffer");
        id encoder = ASK(id, commands, "computeCommandEncoder");
        kit_bind(encoder, kit->add_one, a, NULL);
        kit_dispatch(encoder, KIT_N, 32);
        if (fenced) SEND(void, encoder, "updateFence:", (id), fence);
        ASK(void, encoder, "endEncoding");
        encoder = ASK(id, commands, "computeCommandEncoder");
        if (fenced) SEND(void, encoder, "waitForFence:", (id), fence);
        kit_bind(encoder, kit->copy, a, b);
        kit_dispatch(encoder, KIT_N, 32);
        ASK(void, encoder, "endEncoding");
        EXPECT_INT(kit_finish(commands), 4);
        stale += !(out[0] == 1);
        host_release(fence);
    }
    return stale;
}

TEST(a_missing_fence_shows_in_shuffle)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    static const char make[] = "newBufferWithLength:options:";
    id a = SEND(id, kit.device, make, (unsigned long, unsigned long), 256ul, 0x100ul);
    id b = SEND(id, kit.device, make, (unsigned long, unsigned long), 256ul, 0x100ul);
    EXPECT_INT(stale_results(&kit, a, b, false), 0);
    setenv("SM_EXEC", "shuffle", 1);
    EXPECT_INT(stale_results(&kit, a, b, true), 0);
    EXPECT_INT(stale_results(&kit, kit.a, kit.b, false), 0); /* tracked: Metal orders them itself */
    EXPECT(stale_results(&kit, a, b, false) > 0);
    setenv("SM_EXEC", "async", 1);
    host_release(a);
    host_release(b);
    kit_close(&kit);
}

static id concurrent(metal_kit *kit, bool barrier)
{
    id commands = ASK(id, kit->queue, "commandBuffer");
    id encoder = SEND(id, commands, "computeCommandEncoderWithDispatchType:", (unsigned long), 1ul);
    kit_bind(encoder, kit->add_one, kit->a, NULL);
    kit_dispatch(encoder, KIT_N, 32);
    if (barrier) SEND(void, encoder, "memoryBarrierWithScope:", (unsigned long), 1ul);
    kit_bind(encoder, kit->copy, kit->a, kit->b);
    kit_dispatch(encoder, KIT_N, 32);
    ASK(void, encoder, "endEncoding");
    kit_finish(commands);
    return commands;
}

TEST(a_missing_barrier_shows_in_shuffle_and_under_the_checker)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    setenv("SM_EXEC", "shuffle", 1);
    int stale = 0, stale_with_barrier = 0;
    for (int round = 0; round < 24; round++) {
        kit.in[0] = 0;
        concurrent(&kit, false);
        stale += !(kit.out[0] == 1);
        kit.in[0] = 0;
        concurrent(&kit, true);
        stale_with_barrier += !(kit.out[0] == 1);
    }
    setenv("SM_EXEC", "async", 1);
    EXPECT(stale > 0);
    EXPECT_INT(stale_with_barrier, 0);
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);

    setenv("SM_CHECK", "1", 1);
    if (kit_open(&kit)) {
        EXPECT_INT(ASK(unsigned long, concurrent(&kit, true), "status"), 4);
        id commands = concurrent(&kit, false);
        EXPECT_INT(ASK(unsigned long, commands, "status"), 5);
        EXPECT_MSG(strstr(host_error_text(ASK(id, commands, "error")), "barrier") != NULL, "%s",
                   host_error_text(ASK(id, commands, "error")));
        kit_close(&kit);
    }
    unsetenv("SM_CHECK");
}

TEST(a_queue_has_a_limit)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id queue = SEND(id, kit.device, "newCommandQueueWithMaxCommandBufferCount:", (unsigned long), 2ul);
    EACH_MODE
    {
        void *pool = host.push();
        id last = NULL;
        for (int i = 0; i < 6; i++) { /* the third waits for one of the first two */
            last = kit_submit(&kit, queue, kit.add_one, kit.a, NULL);
            EXPECT(last != NULL);
        }
        ASK(void, last, "waitUntilCompleted");
        host.pop(pool);
    }
    EXPECT(kit.in[0] == 24);
    host_release(queue);
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

typedef struct worker {
    metal_kit *kit;
    id queue, buffer;
    bool right;
} worker;

static void *work(void *given)
{
    worker *w = given;
    float *values = host_contents(w->buffer);
    w->right = true;
    for (int round = 1; round <= 20; round++) {
        void *pool = host.push();
        id first = kit_submit(w->kit, w->queue, w->kit->add_one, w->buffer, NULL);
        id second = kit_submit(w->kit, w->queue, w->kit->add_one, w->buffer, NULL);
        ASK(void, second, "waitUntilCompleted");
        w->right &= values[1] == (float)(2 * round) && ASK(unsigned long, first, "status") == 4;
        host.pop(pool);
    }
    return NULL;
}

TEST(several_threads_with_queues_of_their_own)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    enum { WORKERS = 4 };
    EACH_MODE
    {
        pthread_t threads[WORKERS];
        worker workers[WORKERS];
        for (int i = 0; i < WORKERS; i++) {
            workers[i] = (worker){&kit, ASK(id, kit.device, "newCommandQueue"), host_buffer(kit.device, 256), false};
            CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < WORKERS; i++) {
            pthread_join(threads[i], NULL);
            EXPECT(workers[i].right);
            host_release(workers[i].queue);
            host_release(workers[i].buffer);
        }
    }
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

TEST(faults_on_demand)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    test_case("texts that are not understood");
    EXPECT_INT(host.inject("buffer"), -1);
    EXPECT_INT(host.inject("buffer=0"), -1);
    EXPECT_INT(host.inject("command=1:nonsense"), -1);
    EXPECT_INT(host.inject("nonsense=1"), -1);
    test_case("the second buffer");
    EXPECT_INT(host.inject("buffer=2"), 0);
    id one = host_buffer(kit.device, 64), two = host_buffer(kit.device, 64), three = host_buffer(kit.device, 64);
    EXPECT(one != NULL && two == NULL && three != NULL);
    host_release(one);
    host_release(three);
    test_case("the compiler and pipelines");
    EXPECT_INT(host.inject("compile=1,pipeline=1,queue=1,device=1"), 0);
    id error = NULL;
    EXPECT(host_library(kit.device, kit_source, &error) == NULL && strstr(host_error_text(error), "injected") != NULL);
    EXPECT(host_pipeline(kit.device, kit.library, "copy", &error) == NULL && error != NULL);
    EXPECT(ASK(id, kit.device, "newCommandQueue") == NULL);
    EXPECT(host.default_device() == NULL);
    test_case("fences and command buffers");
    EXPECT_INT(host.inject("fence=1,commandbuffer=1"), 0);
    EXPECT(ASK(id, kit.device, "newFence") == NULL);
    EXPECT(ASK(id, kit.queue, "commandBuffer") == NULL);
    id fence = ASK(id, kit.device, "newFence");
    EXPECT(fence != NULL);
    host_release(fence);
    static const struct {
        const char *text;
        long code;
    } commands[] = {{"command=2:timeout", 2},
                    {"watchdog=2", 2},
                    {"command=2:memory", 8},
                    {"command=2:pagefault", 3},
                    {"command=2", 1}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        test_case("%s", commands[i].text);
        EXPECT_INT(host.inject(commands[i].text), 0);
        for (int n = 1; n <= 3; n++) {
            kit.in[0] = 0;
            id buffer = kit_submit(&kit, kit.queue, kit.add_one, kit.a, NULL);
            ASK(void, buffer, "waitUntilCompleted");
            EXPECT_INT(ASK(unsigned long, buffer, "status"), n == 2 ? 5 : 4);
            if (n == 2) EXPECT_INT(ASK(long, ASK(id, buffer, "error"), "code"), commands[i].code);
            EXPECT(kit.in[0] == (n == 2 ? 0 : 1));
        }
    }
    test_case("the device is taken away");
    EXPECT_INT(host.inject("removed=1"), 0);
    for (int n = 0; n < 2; n++) {
        id buffer = kit_submit(&kit, kit.queue, kit.add_one, kit.a, NULL);
        ASK(void, buffer, "waitUntilCompleted");
        EXPECT_INT(ASK(long, ASK(id, buffer, "error"), "code"), 11);
    }
    EXPECT(host_buffer(kit.device, 64) == NULL);
    EXPECT(host.default_device() == NULL);
    host.inject(NULL);
    EXPECT(host.default_device() != NULL);
    kit_failures(&kit);
    kit_close(&kit);
}

TEST(a_failed_signal_does_not_block_for_ever)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id event = ASK(id, kit.device, "newEvent"), other = ASK(id, kit.device, "newCommandQueue");
    host.inject("command=1:timeout");
    id failing = ASK(id, kit.queue, "commandBuffer"), waiting = ASK(id, other, "commandBuffer");
    SEND(void, failing, "encodeSignalEvent:value:", (id, uint64_t), event, (uint64_t)1);
    SEND(void, waiting, "encodeWaitForEvent:value:", (id, uint64_t), event, (uint64_t)1);
    ASK(void, failing, "commit");
    EXPECT_INT(kit_finish(waiting), 4);
    host.inject(NULL);
    host_release(event);
    host_release(other);
    kit_close(&kit);
}

TEST(an_unsignalled_event_times_out)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    setenv("SM_STALL", "0.05", 1);
    id event = ASK(id, kit.device, "newEvent"), commands = ASK(id, kit.queue, "commandBuffer");
    SEND(void, commands, "encodeWaitForEvent:value:", (id, uint64_t), event, (uint64_t)1);
    EXPECT_INT(kit_finish(commands), 5);
    EXPECT_INT(ASK(long, ASK(id, commands, "error"), "code"), 2);
    unsetenv("SM_STALL");
    kit_failures(&kit);
    id good = kit_submit(&kit, kit.queue, kit.add_one, kit.a, NULL);
    ASK(void, good, "waitUntilCompleted");
    EXPECT_INT(ASK(unsigned long, good, "status"), 4);
    EXPECT_INT(kit_failures(&kit), 0);
    host_release(event);
    kit_close(&kit);
}
