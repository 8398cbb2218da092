/* Internals of Jinja templates: the syntax tree, values, and their functions. */
#ifndef MICA_TEXT_JINJA_BUILD_H
#define MICA_TEXT_JINJA_BUILD_H

#include <stdint.h>

#include "base/status.h"
#include "text/jinja.h"

enum {
    MICA__JINJA_TEXT = 1 << 20,     /* bytes of a template                */
    /* A bracket needs up to 1.2 KB of stack in the parser, a level up to 0.4 KB in the
     * renderer. Each of these limits must fit a stack of 64 KB. */
    MICA__JINJA_NESTING = 30,       /* brackets, blocks, calls            */
    MICA__JINJA_LEVELS = 90,        /* nested blocks, macros and expressions, while rendering */
    MICA__JINJA_STEPS = 2000000,    /* steps of rendering: one per node, one per 64 bytes or elements read */
    MICA__JINJA_CHAIN = 300,        /* operators in a row; a + b + c has 2 */
    MICA__JINJA_MEMORY = 64 << 20,  /* bytes of values, and of the text; more for long chats */
    MICA__JINJA_MACROS = 16,        /* nested macro calls                 */
    MICA__JINJA_ARGS = 8
};

typedef enum mica__jop {
    /* statements */
    MICA__J_TEXT,   /* text                                                   */
    MICA__J_PRINT,  /* a                                                      */
    MICA__J_FOR,    /* for list in a if b: body, else other                   */
    MICA__J_COND,   /* if a: body, else other; number 1: other is an elif     */
    MICA__J_SET,    /* list = a, or text.attribute = a, or list = body        */
    MICA__J_BLOCK,  /* body                                                   */
    MICA__J_MACRO,  /* text(list): body; `a` of a list entry is its default   */
    MICA__J_BREAK,
    MICA__J_CONTINUE,
    /* expressions */
    MICA__J_STRING, /* text                                                   */
    MICA__J_NUMBER, /* number                                                 */
    MICA__J_BOOL,   /* number                                                 */
    MICA__J_NONE,
    MICA__J_NAME,   /* text                                                   */
    MICA__J_LIST,   /* list                                                   */
    MICA__J_DICT,   /* list: key, value, key, value ...                       */
    MICA__J_ATTR,   /* a.text                                                 */
    MICA__J_ITEM,   /* a[b]                                                   */
    MICA__J_SLICE,  /* a[list], three nodes, each may be MICA__J_NONE         */
    MICA__J_CALL,   /* a(list), `name` is set for named arguments             */
    MICA__J_FILTER, /* a | text(list)                                         */
    MICA__J_TEST,   /* a is text(list); number 1: a is not text(list)         */
    MICA__J_NOT,    /* not a                                                  */
    MICA__J_MINUS,  /* -a; number 1: +a                                       */
    MICA__J_AND,
    MICA__J_OR,
    MICA__J_BINARY, /* a op b; number: the op, a mica__jbinary                */
    MICA__J_CHOICE  /* a if b else other                                      */
} mica__jop;

typedef enum mica__jbinary {
    MICA__JB_EQ,
    MICA__JB_NE,
    MICA__JB_LT,
    MICA__JB_LE,
    MICA__JB_GT,
    MICA__JB_GE,
    MICA__JB_IN,
    MICA__JB_NOT_IN,
    MICA__JB_JOIN, /* ~ */
    MICA__JB_ADD,
    MICA__JB_SUB,
    MICA__JB_MUL,
    MICA__JB_DIV,
    MICA__JB_FLOOR,
    MICA__JB_MOD
} mica__jbinary;

typedef struct mica__jnode {
    mica__jop op;
    int line;
    const char *text, *name;
    size_t length, name_length;
    int64_t number;
    struct mica__jnode *a, *b, *list, *body, *other, *next;
} mica__jnode;

struct mica__jinja {
    mica__jnode *body;
};

/* ---------------------------------------------------------------- values --- */

typedef enum mica__jkind {
    MICA__JV_UNDEFINED,
    MICA__JV_NONE,
    MICA__JV_BOOL,
    MICA__JV_INT,
    MICA__JV_STRING,
    MICA__JV_LIST,
    MICA__JV_DICT,
    MICA__JV_FUNCTION /* n: which function */
} mica__jkind;

typedef struct mica__jvalue {
    mica__jkind kind;
    int64_t n; /* bool, int, function; the length of a string or a list */
    union {
        const char *text;
        const struct mica__jvalue *items;
        struct mica__jdict *dict;
        const struct mica__jnode *macro; /* of a function that is a macro */
    } as;
} mica__jvalue;

typedef struct mica__jdict {
    mica__jvalue *keys, *values;
    size_t n, cap;
    bool space; /* created by namespace(): its attributes can be set */
} mica__jdict;

/* The state of a rendering: current line and depth, and the remaining budget. */
typedef struct mica__jrun {
    mica__arena *arena;
    size_t steps, limit, start; /* steps left; limit in bytes; bytes in the arena at the start */
    int line, depth;
} mica__jrun;

/* Sets the error message "chat template, line N: ..." and returns code. */
mica_status mica__jinja_fail(mica_status code, int line, const char *fmt, ...) MICA_PRINTF(3, 4);
/* Allocates from the arena within the limit of the run. out_pointer is the address of a
 * pointer of any type; it is set to NULL, or not at all, if the call fails. */
mica_status mica__jinja_alloc(mica__jrun *run, size_t nbytes, void *out_pointer);

/* Charges the steps for reading n bytes or elements: one per 64. */
mica_status mica__jinja_charge(mica__jrun *run, int64_t n);

/* White space as Python has it: White_Space and U+001C to U+001F. */
bool mica__jinja_space(uint32_t c);

mica__jvalue mica__jv_string(const char *text, size_t n);
mica__jvalue mica__jv_int(int64_t n);
mica__jvalue mica__jv_bool(bool b);
bool mica__jv_is_text(const mica__jvalue *v, const char *text);
bool mica__jv_is_true(const mica__jvalue *v);
mica_status mica__jv_equal(mica__jrun *run, const mica__jvalue *a, const mica__jvalue *b, bool *same);
const char *mica__jv_kind(const mica__jvalue *v); /* for error messages: "a string" */
/* The value as printed text; lists, dicts and functions are refused. */
mica_status mica__jv_text(mica__jrun *run, const mica__jvalue *v, mica__jvalue *out);
mica_status mica__jv_json(mica__jrun *run, const mica__jvalue *v, int64_t indent, mica__jvalue *out);
/* The elements of a list, the keys of a dict, the characters of a string, nothing of what is undefined. `what` begins
 * the error message for anything else. */
mica_status mica__jv_list(mica__jrun *run, const char *what, const mica__jvalue *v, mica__jvalue *out);
mica_status mica__jv_join(mica__jrun *run, const mica__jvalue *a, const mica__jvalue *b, mica__jvalue *out);
/* *at is the first position >= from where part begins in s, or -1. */
mica_status mica__jv_find(mica__jrun *run, const mica__jvalue *s, const mica__jvalue *part, int64_t from, int64_t *at);
/* The number of bytes or elements, for mica__jinja_charge; 0 for scalars. */
int64_t mica__jv_size(const mica__jvalue *v);
mica_status mica__jv_binary(mica__jrun *run, mica__jbinary op, const mica__jvalue *a, const mica__jvalue *b,
                            mica__jvalue *out);
mica_status mica__jv_item(mica__jrun *run, const mica__jvalue *a, const mica__jvalue *key, mica__jvalue *out);
/* part[3]: from, to, step; MICA__JV_NONE if left out. */
mica_status mica__jv_slice(mica__jrun *run, const mica__jvalue *a, const mica__jvalue *part, mica__jvalue *out);
mica_status mica__jv_dict_new(mica__jrun *run, mica__jvalue *out);
mica_status mica__jv_dict_set(mica__jrun *run, mica__jdict *dict, const mica__jvalue *key, const mica__jvalue *value);
/* MICA__JV_UNDEFINED if the key is missing. */
mica__jvalue mica__jv_dict_get(const mica__jdict *dict, const mica__jvalue *key);

/* -------------------------------------------------- filters, tests, methods -- */

typedef struct mica__jargs {
    mica__jvalue v[MICA__JINJA_ARGS];
    const char *name[MICA__JINJA_ARGS]; /* of named arguments, not NUL-terminated */
    size_t name_length[MICA__JINJA_ARGS];
    int n;
} mica__jargs;

typedef mica_status mica__jinja_call(mica__jrun *run, const mica__jvalue *v, const mica__jargs *args,
                                     mica__jvalue *out);
/* These call filters and tests by name (jinja_select.c). */
mica__jinja_call mica__jinja_select, mica__jinja_reject, mica__jinja_selectattr, mica__jinja_rejectattr,
    mica__jinja_map;

/* MICA_ERR_UNSUPPORTED for an unknown name. Names are checked while rendering, not while
 * parsing: many templates have branches for tools that a chat never reaches. */
mica_status mica__jinja_filter(mica__jrun *run, const char *name, size_t n, const mica__jvalue *v,
                               const mica__jargs *args, mica__jvalue *out);
mica_status mica__jinja_test(mica__jrun *run, const char *name, size_t n, const mica__jvalue *v,
                             const mica__jargs *args, bool *out);
mica_status mica__jinja_method(mica__jrun *run, const char *name, size_t n, const mica__jvalue *v,
                               const mica__jargs *args, mica__jvalue *out);

#endif
