/* The part of the Objective-C runtime and of Foundation that a program which drives Metal uses. */
#include "host.h"
#include "test.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char said[2048];

/* Returns the number of failures since the last call; said holds the last error message. */
static long failures(void) { return host.failures(said, sizeof said); }

TEST(selectors_and_classes)
{
    CHECK(host_open());
    EXPECT(host.selector("setBuffer:offset:atIndex:") == host.selector("setBuffer:offset:atIndex:"));
    EXPECT(host.selector("a") != host.selector("b"));
    EXPECT(host.class("NSString") != NULL);
    EXPECT(host.class("NSNoSuchThing") == NULL);
    EXPECT(host.class("MTLBuffer") == NULL); /* a protocol, not a class */
    id string = host.class("NSString");
    EXPECT(SEND(BOOL, string, "instancesRespondToSelector:", (SEL), host.selector("UTF8String")));
    EXPECT(!SEND(BOOL, string, "instancesRespondToSelector:", (SEL), host.selector("nonsense")));
    EXPECT_INT(failures(), 0);
}

/* SM_WITHOUT hides classes and selectors, as on an older system. A method that was called before is cached. */
TEST(hidden_classes_and_selectors)
{
    CHECK(host_open());
    setenv("SM_WITHOUT", "MTLResidencySetDescriptor,setMathMode:", 1);
    id options = ASK(id, host.class("MTLCompileOptions"), "new");
    EXPECT(host.class("MTLResidencySetDescriptor") == NULL);
    EXPECT(host.class("MTLResidencySet") == NULL && host.class("MTLComputePassDescriptor") != NULL);
    EXPECT(!SEND(BOOL, options, "respondsToSelector:", (SEL), host.selector("setMathMode:")));
    EXPECT(SEND(BOOL, options, "respondsToSelector:", (SEL), host.selector("mathMode")));
    EXPECT_INT(failures(), 0);
    SEND(void, options, "setMathMode:", (long), 0l);
    EXPECT_INT(failures(), 1);
    unsetenv("SM_WITHOUT");
    EXPECT(host.class("MTLResidencySetDescriptor") != NULL);
    EXPECT(SEND(BOOL, options, "respondsToSelector:", (SEL), host.selector("setMathMode:")));
    host_release(options);
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

/* An unknown selector prints a line and returns zero; the program continues. */
TEST(unknown_selectors_answer_zero_and_are_counted)
{
    CHECK(host_open());
    id device = host.default_device();
    EXPECT_INT(failures(), 0);
    EXPECT(SEND(id, device, "newTextureWithDescriptor:", (id), device) == NULL);
    EXPECT(ASK(double, device, "nonsense") == 0);
    EXPECT_INT(failures(), 2);
    EXPECT_STR(said, "-[SMDevice nonsense]: unrecognized selector: not implemented by softmetal");
    EXPECT(ASK(id, host.class("NSString"), "nonsense") == NULL);
    EXPECT_INT(failures(), 1);
    EXPECT_STR(said, "+[NSString nonsense]: unrecognized selector: not implemented by softmetal");
    EXPECT(!SEND(BOOL, device, "respondsToSelector:", (SEL), host.selector("newTextureWithDescriptor:")));
    EXPECT(SEND(BOOL, device, "respondsToSelector:", (SEL), host.selector("newCommandQueue")));
    EXPECT(SEND(BOOL, device, "isKindOfClass:", (id), host.class("NSObject")));
    EXPECT(ASK(id, NULL, "nonsense") == NULL);
    EXPECT_INT(failures(), 0);
#if defined(__x86_64__)
    ASK_STRUCT(mtl_size, NULL, "maxThreadsPerThreadgroup");
    EXPECT_INT(failures(), 1);
    EXPECT_STR(said, "maxThreadsPerThreadgroup was sent to nil: its struct result is unchanged");
#endif
}

TEST(classes_answer_for_themselves)
{
    CHECK(host_open());
    void *pool = host.push();
    id array = host.class("NSArray"), mutable = host.class("NSMutableArray"), object = host.class("NSObject");
    id empty = ASK(id, mutable, "array");
    EXPECT(ASK(id, mutable, "class") == mutable && ASK(id, empty, "class") == mutable);
    EXPECT(ASK(id, mutable, "superclass") == array && ASK(id, empty, "superclass") == array);
    EXPECT(ASK(id, array, "superclass") == object && ASK(id, object, "superclass") == NULL);
    EXPECT(SEND(BOOL, mutable, "isSubclassOfClass:", (id), array));
    EXPECT(!SEND(BOOL, array, "isSubclassOfClass:", (id), mutable));
    EXPECT(SEND(BOOL, empty, "isKindOfClass:", (id), array) && !SEND(BOOL, empty, "isMemberOfClass:", (id), array));
    EXPECT(!SEND(BOOL, empty, "isKindOfClass:", (id), host.class("NSString")));
    EXPECT_STR(host_text(ASK(id, array, "description")), "NSArray");
    EXPECT(SEND(BOOL, array, "respondsToSelector:", (SEL), host.selector("arrayWithObject:")));
    EXPECT(!SEND(BOOL, array, "respondsToSelector:", (SEL), host.selector("addObject:")));
    EXPECT(!SEND(BOOL, empty, "respondsToSelector:", (SEL), host.selector("arrayWithObject:")));
    host_release(array); /* classes have no reference count */
    EXPECT(ASK(id, array, "retain") == array);
    EXPECT_INT(failures(), 0);
    host.pop(pool);
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
    EXPECT(SEND(BOOL, device, "conformsToProtocol:", (id), protocol("NSObject")));
    id buffer = host_buffer(device, 16), event = ASK(id, device, "newSharedEvent");
    EXPECT(SEND(BOOL, buffer, "conformsToProtocol:", (id), protocol("MTLResource")));
    EXPECT(SEND(BOOL, buffer, "conformsToProtocol:", (id), protocol("MTLAllocation")));
    EXPECT(!SEND(BOOL, buffer, "conformsToProtocol:", (id), protocol("NSCopying")));
    EXPECT(SEND(BOOL, event, "conformsToProtocol:", (id), protocol("MTLEvent")));
    EXPECT(SEND(BOOL, host.class("MTLHeapDescriptor"), "conformsToProtocol:", (id), protocol("NSCopying")));
    EXPECT(protocol("MTLTexture") == NULL && protocol("MTL") == NULL && protocol("") == NULL && protocol(NULL) == NULL);
    EXPECT(!SEND(BOOL, device, "conformsToProtocol:", (id), NULL));
    EXPECT(protocol("MTLDevice") == protocol("MTLDevice"));
    host_release(buffer);
    host_release(event);
    EXPECT_INT(failures(), 0);
}

/* A copy is another object with the same values; changes of one do not affect the other. */
TEST(copies)
{
    CHECK(host_open());
    const int before = host.alive(NULL);
    static const struct {
        const char *class, *get, *set;
    } words[] = {
        {"MTLHeapDescriptor", "size", "setSize:"},
        {"MTLComputePipelineDescriptor", "maxTotalThreadsPerThreadgroup", "setMaxTotalThreadsPerThreadgroup:"},
        {"MTLCompileOptions", "languageVersion", "setLanguageVersion:"},
        {"MTLCommandBufferDescriptor", "errorOptions", "setErrorOptions:"},
        {"MTLCounterSampleBufferDescriptor", "sampleCount", "setSampleCount:"},
        {"MTLComputePassDescriptor", "dispatchType", "setDispatchType:"},
        {"MTLResidencySetDescriptor", "initialCapacity", "setInitialCapacity:"},
        {"MTLCaptureDescriptor", "destination", "setDestination:"},
        {"MTLFunctionDescriptor", "options", "setOptions:"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        test_case("%s", words[i].class);
        void *pool = host.push();
        id one = ASK(id, host.class(words[i].class), "new");
        const bool labelled = SEND(BOOL, one, "respondsToSelector:", (SEL), host.selector("setLabel:"));
        if (labelled) SEND(void, one, "setLabel:", (id), host_string("label"));
        SEND(void, one, words[i].set, (unsigned long), 1ul);
        id two = ASK(id, one, "copy");
        SEND(void, one, words[i].set, (unsigned long), 2ul);
        EXPECT(two != one && ASK(id, two, "class") == host.class(words[i].class));
        EXPECT_INT(ASK(unsigned long, two, words[i].get), 1);
        EXPECT_INT(ASK(unsigned long, two, "retainCount"), 1);
        host_release(one);
        if (labelled) EXPECT_STR(host_text(ASK(id, two, "label")), "label");
        host_release(two);
        host.pop(pool);
        EXPECT_INT(host.alive(NULL), before);
    }
    EXPECT_INT(failures(), 0);
}

TEST(copies_of_what_they_hold)
{
    CHECK(host_open());
    const int before = host.alive(NULL);
    void *pool = host.push();
    id text = host_string("a"), list = SEND(id, host.class("NSMutableArray"), "arrayWithObject:", (id), text);
    id fixed = ASK(id, list, "copy"), same = ASK(id, fixed, "copy"), other = ASK(id, fixed, "mutableCopy");
    SEND(void, other, "addObject:", (id), text);
    ASK(void, list, "removeAllObjects");
    EXPECT(fixed == same && ASK(unsigned long, fixed, "count") == 1 && ASK(unsigned long, other, "count") == 2);
    EXPECT(!SEND(BOOL, fixed, "respondsToSelector:", (SEL), host.selector("addObject:")));
    id url = SEND(id, host.class("NSURL"), "fileURLWithPath:", (id), host_string("/tmp/x"));
    id archive = ASK(id, host.class("MTLBinaryArchiveDescriptor"), "new");
    SEND(void, archive, "setUrl:", (id), url);
    id copied = ASK(id, archive, "copy");
    host_release(archive);
    EXPECT(ASK(id, copied, "url") == url);
    /* A change of the dictionary after it was set does not affect the options. */
    id macros = ASK(id, host.class("NSMutableDictionary"), "dictionary");
    SEND(void, macros, "setObject:forKey:", (id, id), text, host_string("A"));
    id options = ASK(id, host.class("MTLCompileOptions"), "new");
    SEND(void, options, "setPreprocessorMacros:", (id), macros);
    SEND(void, macros, "setObject:forKey:", (id, id), text, host_string("B"));
    EXPECT_INT(ASK(unsigned long, ASK(id, options, "preprocessorMacros"), "count"), 1);
    /* The attachments of a pass belong to its descriptor. */
    id pass = ASK(id, host.class("MTLComputePassDescriptor"), "new"), pass_copy = ASK(id, pass, "copy");
    id first = SEND(id, ASK(id, pass, "sampleBufferAttachments"), "objectAtIndexedSubscript:", (unsigned long), 0ul);
    id second =
        SEND(id, ASK(id, pass_copy, "sampleBufferAttachments"), "objectAtIndexedSubscript:", (unsigned long), 0ul);
    SEND(void, first, "setStartOfEncoderSampleIndex:", (unsigned long), 3ul);
    EXPECT(first != second && ASK(unsigned long, second, "startOfEncoderSampleIndex") == ~0ul);
    id values = ASK(id, host.class("MTLFunctionConstantValues"), "new"), values_copy = ASK(id, values, "copy");
    EXPECT(values != values_copy);
    id all[] = {fixed, same, other, copied, options, pass, pass_copy, values, values_copy};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) host_release(all[i]);
    host.pop(pool);
    EXPECT_INT(host.alive(NULL), before);
    EXPECT_INT(failures(), 0);
}

/* SELECTORS.md has a row for each class with the selectors that it implements. The test generates the rows. */
typedef struct row {
    char text[8192];
    size_t length;
} row;

static void add(row *to, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int more = vsnprintf(to->text + to->length, sizeof to->text - to->length, format, list);
    va_end(list);
    if (more > 0) to->length += (size_t)more < sizeof to->text - to->length ? (size_t)more : 0;
}

static struct lists {
    const id *(*classes)(unsigned *);
    const id *(*methods)(id, unsigned *);
    SEL (*selector)(id);
    const char *(*selector_name)(SEL);
    const char *(*class_name)(id);
    id (*class_of)(id), (*above)(id);
} lists;

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void add_selectors(row *to, id class)
{
    unsigned count = 0;
    const id *methods = lists.methods(class, &count);
    const char *names[128];
    for (unsigned i = 0; i < count && i < 128; i++) names[i] = lists.selector_name(lists.selector(methods[i]));
    qsort(names, count, sizeof *names, by_name);
    for (unsigned i = 0; i < count; i++) add(to, "%s`%s`", i == 0 ? "" : " ", names[i]);
    add(to, " |");
    union {
        const id *given;
        void *ours;
    } as = {methods};
    free(as.ours);
}

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = file == NULL ? NULL : calloc(1, 1 << 16);
    if (text != NULL) text[fread(text, 1, (1 << 16) - 1, file)] = 0;
    if (file != NULL) fclose(file);
    return text;
}

TEST(every_selector_is_documented)
{
    CHECK(host_open());
    const struct {
        const char *name;
        void *slot;
    } functions[] = {{"objc_copyClassList", &lists.classes}, {"class_copyMethodList", &lists.methods},
                     {"method_getName", &lists.selector},    {"sel_getName", &lists.selector_name},
                     {"class_getName", &lists.class_name},   {"object_getClass", &lists.class_of},
                     {"class_getSuperclass", &lists.above}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = host_symbol(functions[i].name);
        CHECK_MSG(symbol != NULL, "%s", functions[i].name);
        memcpy(functions[i].slot, &symbol, sizeof symbol);
    }
    char *document = read_all("softmetal/SELECTORS.md");
    CHECK_MSG(document != NULL, "softmetal/SELECTORS.md is not there");
    unsigned count = 0, rows = 0;
    const id *classes = lists.classes(&count);
    for (unsigned i = 0; i < count; i++) {
        static row line;
        line.length = 0;
        add(&line, "\n| `%s` | ", lists.class_name(classes[i]));
        add_selectors(&line, classes[i]);
        add(&line, " ");
        id meta = lists.class_of(classes[i]); /* NSObject's class methods are in the root metaclass */
        add_selectors(&line, classes[i] == host.class("NSObject") ? lists.above(meta) : meta);
        test_case("%s", lists.class_name(classes[i]));
        EXPECT_MSG(strstr(document, line.text) != NULL, "SELECTORS.md should have the row%s", line.text);
    }
    for (const char *at = document; (at = strstr(at, "\n| `")) != NULL; at++) rows++;
    EXPECT_MSG(rows == count, "SELECTORS.md has %u rows for %u classes", rows, count);
    union {
        const id *given;
        void *ours;
    } as = {classes};
    free(as.ours);
    free(document);
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

/* The struct that clang generates for a __block variable that two blocks share. */
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
    EXPECT_INT(shared_disposed, 0); /* the frame still holds a reference */
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
