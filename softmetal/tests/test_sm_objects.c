/* The runtime and Foundation, as far as a program that drives Metal meets them. */
#include "host.h"
#include "test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char said[2048];

/* How many failures since the last call; their last text is in said. */
static long failures(void) { return host.failures(said, sizeof said); }

TEST(selectors_and_classes)
{
    CHECK(host_open());
    EXPECT(host.selector("setBuffer:offset:atIndex:") == host.selector("setBuffer:offset:atIndex:"));
    EXPECT(host.selector("a") != host.selector("b"));
    EXPECT(host.class("NSString") != NULL);
    EXPECT(host.class("NSNoSuchThing") == NULL);
    EXPECT(host.class("MTLBuffer") == NULL); /* a protocol, not a class one can name */
    id string = host.class("NSString");
    EXPECT(SEND(BOOL, string, "instancesRespondToSelector:", (SEL), host.selector("UTF8String")));
    EXPECT(!SEND(BOOL, string, "instancesRespondToSelector:", (SEL), host.selector("nonsense")));
    EXPECT_INT(failures(), 0);
}

TEST(references)
{
    CHECK(host_open());
    const int before = host.alive(NULL);
    id object = ASK(id, ASK(id, host.class("NSObject"), "alloc"), "init");
    EXPECT_INT(ASK(unsigned long, object, "retainCount"), 1);
    EXPECT(ASK(id, object, "retain") == object);
    EXPECT_INT(ASK(unsigned long, object, "retainCount"), 2);
    host_release(object);
    EXPECT_INT(host.alive(NULL), before + 1);
    host_release(object);
    EXPECT_INT(host.alive(NULL), before);
    void *outer = host.push();
    id one = ASK(id, host.class("NSObject"), "new");
    EXPECT(ASK(id, one, "autorelease") == one);
    void *inner = host.push();
    host_string("text");
    EXPECT_INT(host.alive(NULL), before + 2);
    host.pop(inner);
    EXPECT_INT(host.alive(NULL), before + 1);
    id pool = ASK(id, ASK(id, host.class("NSAutoreleasePool"), "alloc"), "init");
    host_string("more");
    ASK(void, pool, "drain");
    host.pop(outer);
    EXPECT_INT(host.alive(NULL), before);
    EXPECT_INT(failures(), 0);
    host.pop((void *)1000);
    EXPECT_INT(failures(), 1);
}

static void *make_strings(void *nothing)
{
    for (int i = 0; i < 100; i++) host_string("no pool");
    return nothing;
}

TEST(a_thread_without_a_pool_releases_at_its_end)
{
    CHECK(host_open());
    const int before = host.alive("NSString");
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, make_strings, NULL), 0);
    pthread_join(thread, NULL);
    EXPECT_INT(host.alive("NSString"), before);
}

TEST(strings)
{
    CHECK(host_open());
    void *pool = host.push();
    id text = host_string("gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82");
    EXPECT_INT(ASK(unsigned long, text, "length"), 7);
    EXPECT_INT(SEND(unsigned long, text, "lengthOfBytesUsingEncoding:", (unsigned long), 4ul), 11);
    EXPECT(SEND(BOOL, text, "isEqualToString:", (id), host_string(host_text(text))));
    EXPECT(!SEND(BOOL, text, "isEqualToString:", (id), host_string("other")));
    EXPECT(!SEND(BOOL, text, "isEqualToString:", (id), NULL));
    id part = SEND(id, ASK(id, host.class("NSString"), "alloc"),
                   "initWithBytes:length:encoding:", (const char *, unsigned long, unsigned long), "abcdef", 3ul, 4ul);
    EXPECT_STR(host_text(part), "abc");
    host_release(part);
    EXPECT_INT(failures(), 0);
    EXPECT(host_string(NULL) == NULL);
    EXPECT_INT(failures(), 1);
    host.pop(pool);
}

TEST(collections_numbers_urls)
{
    CHECK(host_open());
    void *pool = host.push();
    id items[] = {host_string("a"), host_string("b")}, keys[] = {host_string("x"), host_string("y")};
    id array = SEND(id, host.class("NSArray"), "arrayWithObjects:count:", (const id *, unsigned long), items, 2ul);
    EXPECT_INT(ASK(unsigned long, array, "count"), 2);
    EXPECT(SEND(id, array, "objectAtIndex:", (unsigned long), 1ul) == items[1]);
    EXPECT_INT(failures(), 0);
    EXPECT(SEND(id, array, "objectAtIndex:", (unsigned long), 2ul) == NULL);
    EXPECT_INT(failures(), 1);
    id map = SEND(id, host.class("NSMutableDictionary"),
                  "dictionaryWithObjects:forKeys:count:", (const id *, const id *, unsigned long), items, keys, 2ul);
    SEND(void, map, "setObject:forKey:", (id, id), items[0], host_string("y"));
    EXPECT_INT(ASK(unsigned long, map, "count"), 2);
    EXPECT(SEND(id, map, "objectForKey:", (id), host_string("y")) == items[0]);
    EXPECT(SEND(id, map, "objectForKey:", (id), host_string("z")) == NULL);
    id number = SEND(id, host.class("NSNumber"), "numberWithDouble:", (double), 2.5);
    EXPECT(ASK(double, number, "doubleValue") == 2.5 && ASK(int, number, "intValue") == 2);
    number = SEND(id, host.class("NSNumber"), "numberWithBool:", (BOOL), 1);
    EXPECT(ASK(BOOL, number, "boolValue"));
    id url = SEND(id, host.class("NSURL"), "fileURLWithPath:", (id), host_string("/tmp/x"));
    EXPECT_STR(host_text(ASK(id, url, "path")), "/tmp/x");
    EXPECT_STR(host_text(ASK(id, url, "absoluteString")), "file:///tmp/x");
    EXPECT_INT(failures(), 0);
    host.pop(pool);
}

typedef struct version {
    long major, minor, patch;
} version;

TEST(process_information)
{
    CHECK(host_open());
    id info = ASK(id, host.class("NSProcessInfo"), "processInfo");
    const version v = ASK_STRUCT(version, info, "operatingSystemVersion");
    EXPECT(v.major >= 13 && v.minor >= 0 && v.patch >= 0);
    const version later = {v.major + 1, 0, 0};
    EXPECT(SEND(BOOL, info, "isOperatingSystemAtLeastVersion:", (version), v));
    EXPECT(!SEND(BOOL, info, "isOperatingSystemAtLeastVersion:", (version), later));
    EXPECT(ASK(unsigned long long, info, "physicalMemory") > 0);
    EXPECT_INT(ASK(long, info, "thermalState"), 0);
}

/* The whole point: a clear line, zero, and the program goes on. */
TEST(unknown_selectors_answer_zero_and_are_counted)
{
    CHECK(host_open());
    id device = host.default_device();
    EXPECT_INT(failures(), 0);
    EXPECT(SEND(id, device, "newTextureWithDescriptor:", (id), device) == NULL);
    EXPECT(ASK(double, device, "nonsense") == 0);
    EXPECT_INT(failures(), 2);
    EXPECT_STR(said, "-[SMDevice nonsense]: this selector is not known to softmetal");
    EXPECT(ASK(id, host.class("NSString"), "nonsense") == NULL);
    EXPECT_INT(failures(), 1);
    EXPECT_STR(said, "+[NSString nonsense]: this selector is not known to softmetal");
    EXPECT(!SEND(BOOL, device, "respondsToSelector:", (SEL), host.selector("newTextureWithDescriptor:")));
    EXPECT(SEND(BOOL, device, "respondsToSelector:", (SEL), host.selector("newCommandQueue")));
    EXPECT(SEND(BOOL, device, "isKindOfClass:", (id), host.class("NSObject")));
    EXPECT(ASK(id, NULL, "nonsense") == NULL);
    EXPECT_INT(failures(), 0);
}

TEST(protocols)
{
    CHECK(host_open());
    id (*protocol)(const char *);
    void *symbol = host_symbol("objc_getProtocol");
    memcpy(&protocol, &symbol, sizeof symbol);
    id device = host.default_device();
    EXPECT(SEND(BOOL, device, "conformsToProtocol:", (id), protocol("MTLDevice")));
    EXPECT(!SEND(BOOL, device, "conformsToProtocol:", (id), protocol("MTLBuffer")));
}

static int copied, disposed;
static void copy_helper(void *to, const void *from)
{
    (void)to, (void)from;
    copied++;
}
static void dispose_helper(const void *block)
{
    (void)block;
    disposed++;
}

TEST(blocks)
{
    CHECK(host_open());
    void *(*block_copy)(const void *);
    void (*block_release)(const void *);
    void *symbol = host_symbol("_Block_copy");
    memcpy(&block_copy, &symbol, sizeof symbol);
    symbol = host_symbol("_Block_release");
    memcpy(&block_release, &symbol, sizeof symbol);
    static const struct {
        unsigned long reserved, size;
        void (*copy)(void *, const void *);
        void (*dispose)(const void *);
    } descriptor = {0, sizeof(host_block), copy_helper, dispose_helper};
    int marker = 0;
    host_block block = {host.stack_block, 1 << 25, 0, NULL, &descriptor, {&marker, NULL, NULL, NULL}};
    host_block *first = block_copy(&block), *second = block_copy(first);
    EXPECT(first != &block && second == first && first->context[0] == &marker);
    EXPECT_INT(copied, 1);
    block_release(first);
    EXPECT_INT(disposed, 0);
    block_release(second);
    EXPECT_INT(disposed, 1);
    host_block global = {host.global_block, 1 << 28, 0, NULL, &descriptor, {NULL, NULL, NULL, NULL}};
    EXPECT(block_copy(&global) == &global);
    block_release(&global);
    EXPECT_INT(disposed, 1);
}

/* What clang makes of a variable marked __block that two blocks share. */
typedef struct shared_int {
    void *isa;
    struct shared_int *here;
    int32_t flags, size;
    void (*copy)(void *, void *);
    void (*dispose)(void *);
    int value;
} shared_int;

static int shared_disposed;
static void shared_copy(void *to, void *from) { ((shared_int *)to)->value = ((shared_int *)from)->value; }
static void shared_dispose(void *variable)
{
    (void)variable;
    shared_disposed++;
}

TEST(variables_of_blocks)
{
    CHECK(host_open());
    void (*assign)(void *, const void *, int), (*dispose)(const void *, int);
    void *symbol = host_symbol("_Block_object_assign");
    memcpy(&assign, &symbol, sizeof symbol);
    symbol = host_symbol("_Block_object_dispose");
    memcpy(&dispose, &symbol, sizeof symbol);

    enum { OBJECT = 3, BLOCK = 7, SHARED = 8, INSIDE = 128 };
    shared_disposed = 0;
    shared_int frame = {NULL, &frame, 1 << 25, sizeof frame, shared_copy, shared_dispose, 41};
    shared_int *one = NULL, *two = NULL;
    assign(&one, &frame, SHARED);
    EXPECT(one != NULL && one != &frame && frame.here == one && one->here == one);
    one->value = 42;
    assign(&two, &frame, SHARED);
    EXPECT(two == one && frame.here->value == 42);
    dispose(one, SHARED);
    dispose(two, SHARED);
    EXPECT_INT(shared_disposed, 0); /* the frame has it still */
    dispose(&frame, SHARED);
    EXPECT_INT(shared_disposed, 1);

    id array = ASK(id, host.class("NSMutableArray"), "new");
    id field = NULL;
    assign(&field, array, OBJECT);
    EXPECT(field == array);
    EXPECT_INT(ASK(unsigned long, array, "retainCount"), 2);
    dispose(array, OBJECT);
    assign(&field, array, OBJECT | INSIDE);
    EXPECT_INT(ASK(unsigned long, array, "retainCount"), 1);
    dispose(array, OBJECT | INSIDE);
    EXPECT_INT(ASK(unsigned long, array, "retainCount"), 1);
    host_release(array);

    static const struct {
        unsigned long reserved, size;
    } descriptor = {0, sizeof(host_block)};
    host_block block = {host.stack_block, 0, 0, NULL, &descriptor, {NULL, NULL, NULL, NULL}};
    host_block *held = NULL;
    assign(&held, &block, BLOCK);
    EXPECT(held != NULL && held != &block);
    dispose(held, BLOCK);
}
