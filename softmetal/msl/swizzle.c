/* Writes for each swizzle a call that reads it (sm_g_xy), a call that returns an
 * assignable reference (sm_r_xy), and a property for places where the translation cannot
 * distinguish the word from a name of the program. Assigning to a swizzle that names an
 * element twice does not compile. */
#include "swizzle.h"

static void one(const char *names, const int *pick, int count, sm_text *out)
{
    char word[5] = {0};
    bool twice = false;
    for (int i = 0; i < count; i++) {
        word[i] = names[pick[i]];
        for (int k = 0; k < i; k++) twice |= pick[k] == pick[i];
    }
    if (count == 1) {
        sm_text_print(out,
                      "__attribute__((nodebug)) constexpr T sm_g_%s() const { return %c; }\n__attribute__((nodebug)) "
                      "void sm_p_%s(T v) { %c = v; }\n",
                      word, "xyzw"[pick[0]], word, "xyzw"[pick[0]]);
        sm_text_print(out, "__declspec(property(get = sm_g_%s, put = sm_p_%s)) T %s;\n", word, word, word);
        return;
    }
    sm_text_print(out, "__attribute__((nodebug)) constexpr vec<T, %d> sm_g_%s() const { return vec<T, %d>(", count,
                  word, count);
    for (int i = 0; i < count; i++) sm_text_print(out, "%s%c", i ? ", " : "", "xyzw"[pick[i]]);
    sm_text_print(out, "); }\n__attribute__((nodebug)) sm_swizzled<T, %d> sm_r_%s() { ", count, word);
    if (twice)
        sm_text_print(out, "static_assert(sizeof(T) == 0, \"a swizzle that is assigned to names an element twice\"); ");
    sm_text_print(out, "return {{");
    for (int i = 0; i < count; i++) sm_text_print(out, "%s&%c", i ? ", " : "", "xyzw"[pick[i]]);
    sm_text_print(out, "}}; }\n__attribute__((nodebug)) void sm_p_%s(vec<T, %d> v) { sm_r_%s() = v; }\n", word, count,
                  word);
    sm_text_print(out, "__declspec(property(get = sm_g_%s, put = sm_p_%s)) vec<T, %d> %s;\n", word, word, count, word);
}

void sm_swizzles(int width, sm_text *out)
{
    static const char *const sets[] = {"xyzw", "rgba"};
    for (int set = 0; set < 2; set++) {
        for (int count = set ? 1 : 2; count <= 4; count++) {
            int total = 1;
            for (int i = 0; i < count; i++) total *= width;
            for (int number = 0; number < total; number++) {
                int pick[4], rest = number;
                for (int i = 0; i < count; i++, rest /= width) pick[i] = rest % width;
                one(sets[set], pick, count, out);
            }
        }
    }
}
