/* The trampolines without the runtime: arguments and results of any signature must arrive
 * unchanged. The lookup is replaced here, so that methods of unusual signatures can be tested. */
#include "test.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

typedef struct triple {
    unsigned long a, b, c;
} triple;
typedef struct pair {
    unsigned long a, b;
} pair;
typedef struct floats {
    float a, b, c, d;
} floats;
typedef struct big {
    uint64_t word[6];
} big;
typedef struct mixed {
    double real;
    long integer;
} mixed;

typedef void (*method)(void);
void sm_zero_method(void), sm_zero_struct(void), sm_zero_real(void);
method sm_objc_lookup(void *receiver, const char *selector);
method sm_objc_lookup_struct(void *receiver, const char *selector);
method sm_objc_lookup_real(void *receiver, const char *selector);
#if defined(__x86_64__)
void objc_msgSend_stret(void), objc_msgSend_fpret(void);
#else
#define objc_msgSend_stret objc_msgSend
#endif
void objc_msgSend(void);
/* Called through volatile pointers: gcc refuses a visible call through an incompatible function type. */
static void (*volatile send)(void) = objc_msgSend, (*volatile send_struct)(void) = objc_msgSend_stret;

static int self_object; /* its address must arrive as self */
static const char *expected_selector;
static int calls;

static bool arrived(void *self, const char *selector)
{
    calls++;
    return self == &self_object && selector == expected_selector;
}

static double mix(void *self, const char *s, triple t, double d, triple u, float f, unsigned char byte)
{
    EXPECT(arrived(self, s));
    EXPECT(t.a == 1 && t.b == 2 && t.c == 3 && u.a == 4 && u.b == 5 && u.c == 6 && byte == 200);
    return d + (double)f;
}

static triple give_triple(void *self, const char *s, long a, triple t)
{
    EXPECT(arrived(self, s));
    return (triple){t.c + (unsigned long)a, t.b, t.a};
}

static pair give_pair(void *self, const char *s, pair range, int n)
{
    EXPECT(arrived(self, s));
    return (pair){range.b + (unsigned long)n, range.a};
}

static floats give_floats(void *self, const char *s, floats v)
{
    EXPECT(arrived(self, s));
    return (floats){v.d, v.c, v.b, v.a};
}

static mixed give_mixed(void *self, const char *s, mixed m)
{
    EXPECT(arrived(self, s));
    return (mixed){m.real * 2, m.integer * 2};
}

static long many(void *self, const char *s, int a, int b, int c, int d, int e, int f, big stack, int g)
{
    EXPECT(arrived(self, s));
    EXPECT(a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7);
    long sum = 0;
    for (int i = 0; i < 6; i++) sum += (long)stack.word[i];
    return sum;
}

static double ten(void *self, const char *s, double a, double b, double c, double d, double e, double f, double g,
                  double h, double i, double j)
{
    EXPECT(arrived(self, s));
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}

#if defined(__x86_64__)
static long double give_real(void *self, const char *s, long double a, double b)
{
    EXPECT(arrived(self, s));
    return a * (long double)b;
}
#endif

static long variadic(void *self, const char *s, int count, ...)
{
    EXPECT(arrived(self, s));
    va_list list;
    va_start(list, count);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += va_arg(list, double);
    va_end(list);
    return (long)sum;
}

#define METHOD(name) {#name, (method)(name)}
static const struct {
    const char *name;
    method function;
} methods[] = {
    METHOD(mix),        METHOD(give_triple), METHOD(give_pair), METHOD(give_floats),
    METHOD(give_mixed), METHOD(many),        METHOD(ten),       METHOD(variadic),
#if defined(__x86_64__)
    METHOD(give_real),
#endif
};

/* Changes many registers, as a real lookup may. */
method sm_objc_lookup(void *receiver, const char *selector)
{
    if (receiver == NULL) return sm_zero_method;
    volatile double noise[16];
    volatile long more[16];
    for (int i = 0; i < 16; i++) noise[i] = i * 1.5, more[i] = i * 7;
    double sum = 0;
    for (int i = 0; i < 16; i++) sum += noise[i] * (double)more[i];
    for (size_t i = 0; sum > 0 && i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, selector) == 0) return methods[i].function;
    return sm_zero_method;
}

#if defined(__x86_64__)
method sm_objc_lookup_real(void *receiver, const char *selector)
{
    return receiver == NULL ? sm_zero_real : sm_objc_lookup(receiver, selector);
}
method sm_objc_lookup_struct(void *receiver, const char *selector)
{
    return receiver == NULL ? sm_zero_struct : sm_objc_lookup(receiver, selector);
}
#endif

#include "objc/objc_trampoline.c"

#define SENDS(result, through, name, types, ...) \
    (expected_selector = name, ((result(*) types)through)(&self_object, expected_selector, __VA_ARGS__))

TEST(arguments_and_results_arrive)
{
    const triple t = {1, 2, 3}, u = {4, 5, 6};
    EXPECT(SENDS(double, send, "mix", (void *, const char *, triple, double, triple, float, unsigned char), t, 1.5, u,
                 2.25f, 200) == 3.75);
    const triple r = SENDS(triple, send_struct, "give_triple", (void *, const char *, long, triple), 10l, t);
    EXPECT(r.a == 13 && r.b == 2 && r.c == 1);
    const pair p = SENDS(pair, send, "give_pair", (void *, const char *, pair, int), ((pair){7, 8}), 2);
    EXPECT(p.a == 10 && p.b == 7);
    const floats f = SENDS(floats, send, "give_floats", (void *, const char *, floats), ((floats){1, 2, 3, 4}));
    EXPECT(f.a == 4 && f.b == 3 && f.c == 2 && f.d == 1);
    const mixed m = SENDS(mixed, send, "give_mixed", (void *, const char *, mixed), ((mixed){0.5, 21}));
    EXPECT(m.real == 1 && m.integer == 42);
    const big b = {{1, 10, 100, 1000, 10000, 100000}};
    EXPECT_INT(SENDS(long, send, "many", (void *, const char *, int, int, int, int, int, int, big, int), 1, 2, 3, 4, 5,
                     6, b, 7),
               111111);
    EXPECT(SENDS(double, send, "ten",
                 (void *, const char *, double, double, double, double, double, double, double, double, double, double),
                 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0) == 385);
    EXPECT_INT(SENDS(long, send, "variadic", (void *, const char *, int, ...), 3, 1.0, 2.0, 4.0), 7);
    EXPECT_INT(calls, 8);
}

TEST(nil_answers_zero)
{
    EXPECT(((void *(*)(void *, const char *))send)(NULL, "many") == NULL);
    EXPECT(((double (*)(void *, const char *, double))send)(NULL, "ten", 3.0) == 0);
    const pair p = ((pair(*)(void *, const char *, pair))send)(NULL, "give_pair", (pair){3, 4});
    EXPECT(p.a == 0 && p.b == 0);
    const floats f = ((floats(*)(void *, const char *, floats))send)(NULL, "give_floats", (floats){1, 2, 3, 4});
    EXPECT(f.a == 0 && f.b == 0 && f.c == 0 && f.d == 0);
}

#if defined(__x86_64__)
/* A long double is returned in st0. More calls than the eight registers of that stack show that none is left there. */
TEST(long_doubles_are_returned)
{
    static void (*volatile send_real)(void) = objc_msgSend_fpret;
    for (int i = 0; i < 10; i++) {
        EXPECT(SENDS(long double, send_real, "give_real", (void *, const char *, long double, double), 1.5L, 4.0) == 6);
        EXPECT(((long double (*)(void *, const char *, long double))send_real)(NULL, "give_real", 1.5L) == 0);
    }
}

/* The result is the struct's address, which a caller may use. */
TEST(nil_leaves_a_large_struct_alone)
{
    triple t = {1, 2, 3};
    triple *place = ((triple * (*)(triple *, void *, const char *)) send_struct)(&t, NULL, "give_triple");
    EXPECT(place == &t && t.a == 1 && t.b == 2 && t.c == 3);
}
#endif
