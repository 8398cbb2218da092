/* Libraries from source, their functions, function constants and compile options. */
#include "metal/metal.h"
#include "settings/settings.h"
#include "softmetal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sm_string sm_library_domain = SM_STRING("MTLLibraryErrorDomain");
SM_API sm_string *const MTLLibraryErrorDomain = &sm_library_domain;

static const sm_method no_class_methods[] = {SM_METHODS_END};

/* ---- MTLCompileOptions ------------------------------------------------------------------ */

typedef struct mtl_compile_options {
    sm_object object;
    sm_dictionary *macros;
    unsigned long language;
    BOOL fast_math;
    long math_mode; /* 0 safe, 1 relaxed, 2 fast */
    long float_functions; /* 0 fast, 1 precise */
    unsigned long optimisation;
    BOOL invariance, logging;
} mtl_compile_options;

static id options_init(mtl_compile_options *self, SEL s)
{
    self->fast_math = 1;
    self->math_mode = 2;
    return self;
}

static void options_destroy(id self) { objc_release(((mtl_compile_options *)self)->macros); }
static id options_macros(mtl_compile_options *self, SEL s) { return self->macros; }
static void options_set_macros(mtl_compile_options *self, SEL s, id macros)
{
    id slot = self->macros;
    sm_set_copy(&slot, macros);
    self->macros = slot;
}
static id options_copy(const mtl_compile_options *self, SEL s)
{
    mtl_compile_options *copy = sm_copy(self);
    if (copy != NULL) objc_retain(copy->macros);
    return copy;
}
static void options_set_fast(mtl_compile_options *self, SEL s, BOOL fast)
{
    self->fast_math = fast;
    self->math_mode = fast ? 2 : 0;
    self->float_functions = fast ? 0 : 1;
}
/* The mode is about arithmetic only; functions stay fast until mathFloatingPointFunctions is set. */
static void options_set_mode(mtl_compile_options *self, SEL s, long mode)
{
    self->math_mode = mode;
    self->fast_math = mode == 2;
}

#define OPTION(type, field)                                                                   \
    static type options_get_##field(mtl_compile_options *self, SEL s) { return self->field; } \
    static void options_put_##field(mtl_compile_options *self, SEL s, type value) { self->field = value; }
OPTION(unsigned long, language)
OPTION(unsigned long, optimisation)
OPTION(long, float_functions)
OPTION(BOOL, invariance)
OPTION(BOOL, logging) /* ignored: logs of kernels are not collected */
static BOOL options_fast(mtl_compile_options *self, SEL s) { return self->fast_math; }
static long options_mode(mtl_compile_options *self, SEL s) { return self->math_mode; }

static const sm_method options_methods[] = {
    SM_METHOD("init", options_init),
    SM_COPY_METHODS(options_copy),
    SM_METHOD("preprocessorMacros", options_macros),
    SM_METHOD("setPreprocessorMacros:", options_set_macros),
    SM_METHOD("fastMathEnabled", options_fast),
    SM_METHOD("setFastMathEnabled:", options_set_fast),
    SM_METHOD("mathMode", options_mode),
    SM_METHOD("setMathMode:", options_set_mode),
    SM_METHOD("mathFloatingPointFunctions", options_get_float_functions),
    SM_METHOD("setMathFloatingPointFunctions:", options_put_float_functions),
    SM_METHOD("languageVersion", options_get_language),
    SM_METHOD("setLanguageVersion:", options_put_language),
    SM_METHOD("optimizationLevel", options_get_optimisation),
    SM_METHOD("setOptimizationLevel:", options_put_optimisation),
    SM_METHOD("preserveInvariance", options_get_invariance),
    SM_METHOD("setPreserveInvariance:", options_put_invariance),
    SM_METHOD("enableLogging", options_get_logging),
    SM_METHOD("setEnableLogging:", options_put_logging),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_compile_options, "MTLCompileOptions", &sm_ns_object, mtl_compile_options, options_destroy,
         options_methods, no_class_methods, "NSCopying", true);

/* ---- MTLLibrary ------------------------------------------------------------------------- */

static uint64_t hash_more(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < length; i++) hash = (hash ^ b[i]) * 1099511628211u;
    return hash;
}

/* Macros are strings or numbers. The strings are owned by the caller's autorelease pool. */
static bool read_macros(const sm_dictionary *macros, sm_define *defines, const char **problem)
{
    for (unsigned long i = 0; i < macros->keys->count; i++) {
        id value = macros->values->items[i];
        if (sm_is_a(value, &sm_ns_number)) {
            const sm_number *n = value;
            value =
                objc_autorelease(n->is_real ? sm_string_format("%.9g", n->real) : sm_string_format("%lld", n->integer));
        }
        defines[i] = (sm_define){sm_string_bytes(macros->keys->items[i]), sm_string_bytes(value)};
        if (defines[i].name == NULL || defines[i].value == NULL) {
            *problem = "preprocessorMacros: a name is not a string, or a value is neither a string nor a number";
            return false;
        }
    }
    return true;
}

static uint64_t library_hash(const char *text, const sm_options *options)
{
    uint64_t hash = hash_more(14695981039346656037u, text, strlen(text));
    hash = hash_more(hash, &options->fast_math, sizeof options->fast_math);
    hash = hash_more(hash, &options->functions, sizeof options->functions);
    hash = hash_more(hash, &options->language_version, sizeof options->language_version);
    for (int i = 0; i < options->defines_count; i++) {
        hash = hash_more(hash, options->defines[i].name, strlen(options->defines[i].name) + 1);
        hash = hash_more(hash, options->defines[i].value, strlen(options->defines[i].value) + 1);
    }
    return hash;
}

/* SM_LINT=1: also refuse what Apple's compiler would refuse. */
static bool linted(void) { return sm_setting_flag(SM_SET_LINT); }

static id library_open(const char *text, const mtl_compile_options *options, id *error)
{
    enum { MACROS = 256 };
    sm_define defines[MACROS];
    sm_options core = {.defines = defines, .fast_math = true};
    const char *problem = NULL;
    if (options != NULL) {
        core.fast_math = options->fast_math != 0;
        core.functions = options->float_functions == 0 ? SM_FUNCTIONS_FAST : SM_FUNCTIONS_PRECISE;
        core.language_version = (int)options->language;
        const unsigned long count = options->macros == NULL ? 0 : options->macros->keys->count;
        if (count > MACROS) problem = "preprocessorMacros: more than 256 macros";
        else if (count > 0 && read_macros(options->macros, defines, &problem)) core.defines_count = (int)count;
    }
    if (problem == NULL && sm_fault(SM_FAULT_COMPILE, NULL))
        problem = "program_source:1:1: error: injected by SM_FAULT";
    if (problem != NULL) {
        sm_set_error(error, &sm_library_domain, MTL_LIBRARY_COMPILE_FAILURE, problem);
        return NULL;
    }

    mtl_library *library = NULL;
    char *message = linted() ? sm_lint_library(text, strlen(text), &core) : NULL;
    sm_library *opened = message != NULL ? NULL : sm_library_open(text, strlen(text), &core, &message);
    if (opened != NULL) library = sm_new(&sm_mtl_library);
    if (library != NULL) {
        library->core = opened;
        library->hash = library_hash(text, &core);
        /* As in Metal, warnings are returned as an error together with a library. */
        if (message != NULL) sm_set_error(error, &sm_library_domain, 4, message);
    } else {
        sm_library_close(opened);
        sm_set_error(error, &sm_library_domain, MTL_LIBRARY_COMPILE_FAILURE,
                     message == NULL ? "out of memory" : message);
    }
    free(message);
    return library;
}

id sm_library_from_source(id device, SEL s, id source, id options, id *error)
{
    if (error != NULL) *error = NULL;
    const char *text = sm_string_bytes(source);
    const char *problem = NULL;
    if (sm_device_removed()) problem = "the device was removed";
    else if (text == NULL) problem = "the source is not a string";
    else if (options != NULL && !sm_is_a(options, &sm_mtl_compile_options))
        problem = "the options are not an MTLCompileOptions";
    if (problem == NULL) return library_open(text, options, error);
    sm_failed("%s: %s", sel_getName(s), problem);
    sm_set_error(error, &sm_library_domain, MTL_LIBRARY_INTERNAL, problem);
    return NULL;
}

/* Compiles at once; the handler is called on the handler thread. */
void sm_library_later(id device, SEL s, id source, id options, const sm_block *handler)
{
    id error = NULL, library = sm_library_from_source(device, s, source, options, &error);
    sm_hand_over(handler, library, error);
    objc_release(library);
}

id sm_library_from_compiled(id device, SEL s, id what, id *error)
{
    sm_set_error(error, &sm_library_domain, MTL_LIBRARY_UNSUPPORTED,
                 "softmetal has no compiled libraries: use newLibraryWithSource:options:error:");
    return NULL;
}
id sm_library_default(id device, SEL s) { return NULL; }

static void library_destroy(id object)
{
    mtl_library *self = object;
    sm_library_close(self->core);
    sm_labelled_destroy(self);
}

static id library_names(mtl_library *self, SEL s)
{
    sm_array *names = sm_array_new(&sm_ns_array, NULL, 0);
    const int count = sm_library_kernels(self->core);
    for (int i = 0; names != NULL && i < count; i++) {
        const char *name = sm_library_kernel(self->core, i);
        sm_string *string = sm_string_new(name, strlen(name));
        sm_array_add(names, string);
        objc_release(string);
    }
    return objc_autorelease(names);
}

static unsigned long library_zero(id self, SEL s) { return 0; }

/* ---- MTLFunctionConstantValues ----------------------------------------------------------- */

/* MTLDataType: the scalar, then its vectors of 2, 3, 4. */
static const struct {
    unsigned long first;
    sm_type type;
    size_t size;
} data_types[] = {
    {3, SM_FLOAT, 4}, {16, SM_HALF, 2},  {29, SM_INT, 4},  {33, SM_UINT, 4}, {37, SM_SHORT, 2}, {41, SM_USHORT, 2},
    {45, SM_CHAR, 1}, {49, SM_UCHAR, 1}, {53, SM_BOOL, 1}, {81, SM_LONG, 8}, {85, SM_ULONG, 8}, {121, SM_BFLOAT, 2},
};

static bool values_add(mtl_constant_values *self, const mtl_constant *value)
{
    for (int i = 0; i < self->count; i++) {
        mtl_constant *c = &self->values[i];
        const bool same = c->name == NULL ? value->name == NULL && c->index == value->index
                                          : value->name != NULL && strcmp(c->name, value->name) == 0;
        if (same) {
            free(c->name);
            *c = *value;
            return true;
        }
    }
    if (self->count == self->capacity) {
        const int capacity = self->capacity == 0 ? 8 : self->capacity * 2;
        mtl_constant *values = realloc(self->values, (size_t)capacity * sizeof *values);
        if (values == NULL) return false;
        self->values = values;
        self->capacity = capacity;
    }
    self->values[self->count++] = *value;
    return true;
}

static void values_set(mtl_constant_values *self, SEL s, const void *bytes, unsigned long type, int index,
                       const char *name)
{
    for (size_t i = 0; bytes != NULL && i < sizeof data_types / sizeof *data_types; i++) {
        if (type < data_types[i].first || type > data_types[i].first + 3) continue;
        mtl_constant value = {NULL, index, (int)(type - data_types[i].first) + 1, data_types[i].type, {0}};
        memcpy(value.value, bytes, data_types[i].size * (size_t)value.width);
        if (name != NULL) value.name = strdup(name);
        if ((name == NULL || value.name != NULL) && values_add(self, &value)) return;
        free(value.name);
        sm_failed("-[MTLFunctionConstantValues %s]: out of memory", sel_getName(s));
        return;
    }
    sm_failed("-[MTLFunctionConstantValues %s]: %s (MTLDataType %lu)", sel_getName(s),
              bytes == NULL ? "the value is NULL" : "a type that function constants cannot have", type);
}

static void values_at_index(mtl_constant_values *self, SEL s, const void *bytes, unsigned long type,
                            unsigned long index)
{
    values_set(self, s, bytes, type, (int)index, NULL);
}

static void values_named(mtl_constant_values *self, SEL s, const void *bytes, unsigned long type, id name)
{
    const char *text = sm_string_bytes(name);
    if (text == NULL) sm_failed("-[MTLFunctionConstantValues %s]: the name is not a string", sel_getName(s));
    else values_set(self, s, bytes, type, -1, text);
}

static void values_range(mtl_constant_values *self, SEL s, const void *bytes, unsigned long type, ns_range range)
{
    size_t size = 0;
    for (size_t i = 0; i < sizeof data_types / sizeof *data_types; i++)
        if (type >= data_types[i].first && type <= data_types[i].first + 3)
            size = data_types[i].size * (type - data_types[i].first + 1 == 3 ? 4 : type - data_types[i].first + 1);
    for (unsigned long i = 0; i < range.length; i++)
        values_set(self, s, bytes == NULL ? NULL : (const char *)bytes + i * size, type, (int)(range.location + i),
                   NULL);
}

static void values_reset(mtl_constant_values *self, SEL s)
{
    for (int i = 0; i < self->count; i++) free(self->values[i].name);
    self->count = 0;
}

static void values_destroy(id self)
{
    values_reset(self, NULL);
    free(((mtl_constant_values *)self)->values);
}

static mtl_constant_values *values_copy(const mtl_constant_values *from)
{
    mtl_constant_values *copy = sm_new(&sm_mtl_function_constant_values);
    for (int i = 0; copy != NULL && i < from->count; i++) {
        mtl_constant value = from->values[i];
        if (value.name != NULL) value.name = strdup(value.name);
        if ((value.name == NULL && from->values[i].name != NULL) || !values_add(copy, &value)) {
            free(value.name);
            objc_release(copy);
            return NULL;
        }
    }
    return copy;
}

static id values_copied(const mtl_constant_values *self, SEL s) { return values_copy(self); }

static const sm_method values_methods[] = {
    SM_COPY_METHODS(values_copied),
    SM_METHOD("setConstantValue:type:atIndex:", values_at_index),
    SM_METHOD("setConstantValue:type:withName:", values_named),
    SM_METHOD("setConstantValues:type:withRange:", values_range),
    SM_METHOD("reset", values_reset),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_function_constant_values, "MTLFunctionConstantValues", &sm_ns_object, mtl_constant_values,
         values_destroy, values_methods, no_class_methods, "NSCopying", true);

/* ---- MTLFunction -------------------------------------------------------------------------- */

static mtl_function *function_new(mtl_library *library, sm_string *name, const mtl_constant_values *values)
{
    mtl_function *self = sm_new(&sm_mtl_function);
    if (self == NULL) return NULL;
    self->library = objc_retain(library);
    self->name = objc_retain(name);
    self->called = objc_retain(name);
    if (values == NULL || (self->constants = values_copy(values)) != NULL) return self;
    objc_release(self);
    return NULL;
}

static id library_function(mtl_library *self, SEL s, id name)
{
    sm_function found;
    const char *text = sm_string_bytes(name);
    if (text == NULL || !sm_library_function(self->core, text, &found)) return NULL;
    return function_new(self, name, NULL);
}

static id library_function_with(mtl_library *self, SEL s, id name, mtl_constant_values *values, id *error)
{
    if (error != NULL) *error = NULL;
    sm_function found;
    const char *text = sm_string_bytes(name);
    if (text == NULL || !sm_library_function(self->core, text, &found)) {
        sm_string *why = sm_string_format("Function %s was not found in the library", text == NULL ? "(nil)" : text);
        sm_set_error(error, &sm_library_domain, MTL_FUNCTION_NOT_FOUND, sm_string_bytes(why));
        objc_release(why);
        return NULL;
    }
    if (values == NULL) {
        sm_failed("-[MTLLibrary %s]: the constant values are nil", sel_getName(s));
        return NULL;
    }
    return function_new(self, name, values);
}

static id library_function_described(mtl_library *self, SEL s, const mtl_function_descriptor *wanted, id *error)
{
    if (wanted == NULL) {
        sm_failed("-[MTLLibrary %s]: the descriptor is nil", sel_getName(s));
        return NULL;
    }
    mtl_constant_values *none = wanted->values == NULL ? sm_new(&sm_mtl_function_constant_values) : NULL;
    mtl_function *found = library_function_with(self, s, wanted->name, none == NULL ? wanted->values : none, error);
    objc_release(none);
    if (found == NULL || wanted->special_name == NULL) return found;
    objc_release(found->called);
    found->called = objc_retain(wanted->special_name);
    return found;
}

static const sm_method library_methods[] = {
    SM_LABEL_METHODS,
    SM_METHOD("functionNames", library_names),
    SM_METHOD("newFunctionWithName:", library_function),
    SM_METHOD("newFunctionWithName:constantValues:error:", library_function_with),
    SM_METHOD("newFunctionWithDescriptor:error:", library_function_described),
    SM_METHOD("type", library_zero),
    SM_METHOD("installName", library_zero),
    SM_METHOD("device", sm_device_of),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_library, "MTLLibrary", &sm_ns_object, mtl_library, library_destroy, library_methods, no_class_methods,
         "MTLLibrary", false);

typedef struct mtl_function_constant {
    sm_object object;
    sm_string *name;
    unsigned long type, index;
} mtl_function_constant;

static void constant_destroy(id self) { objc_release(((mtl_function_constant *)self)->name); }
static id constant_name(mtl_function_constant *self, SEL s) { return self->name; }
static unsigned long constant_type(mtl_function_constant *self, SEL s) { return self->type; }
static unsigned long constant_index(mtl_function_constant *self, SEL s) { return self->index; }
/* It is unknown which function uses which constant, so none is reported as required. */
static BOOL constant_required(mtl_function_constant *self, SEL s) { return 0; }
static const sm_method constant_methods[] = {
    SM_METHOD("name", constant_name),
    SM_METHOD("type", constant_type),
    SM_METHOD("index", constant_index),
    SM_METHOD("required", constant_required),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_function_constant, "MTLFunctionConstant", &sm_ns_object, mtl_function_constant, constant_destroy,
         constant_methods, no_class_methods, NULL, false);

static id function_constants(mtl_function *self, SEL s)
{
    const sm_function_constant *constants = NULL;
    const int count = sm_library_constants(self->library->core, &constants);
    sm_dictionary *all = sm_dictionary_new(&sm_ns_dictionary);
    for (int i = 0; all != NULL && i < count; i++) {
        mtl_function_constant *one = sm_new(&sm_mtl_function_constant);
        if (one == NULL) break;
        one->name = sm_string_new(constants[i].name, strlen(constants[i].name));
        one->index = (unsigned long)constants[i].index;
        for (size_t t = 0; t < sizeof data_types / sizeof *data_types; t++)
            if (data_types[t].type == constants[i].type)
                one->type = data_types[t].first + (unsigned long)constants[i].width - 1;
        sm_dictionary_set(all, one->name, one);
        objc_release(one);
    }
    return objc_autorelease(all);
}

static void function_destroy(id object)
{
    mtl_function *self = object;
    objc_release(self->library);
    objc_release(self->name);
    objc_release(self->called);
    objc_release(self->constants);
    sm_labelled_destroy(self);
}
static id function_name(mtl_function *self, SEL s) { return self->called; }
static unsigned long function_type(id self, SEL s) { return 3; } /* kernel */

uint64_t sm_function_hash(const mtl_function *self)
{
    const char *name = sm_string_bytes(self->name);
    uint64_t hash = hash_more(self->library->hash, name, strlen(name) + 1);
    for (int i = 0; self->constants != NULL && i < self->constants->count; i++) {
        const mtl_constant *c = &self->constants->values[i];
        if (c->name != NULL) hash = hash_more(hash, c->name, strlen(c->name));
        hash = hash_more(hash, &c->index, sizeof c->index);
        hash = hash_more(hash, &c->type, sizeof c->type);
        hash = hash_more(hash, c->value, sizeof c->value);
    }
    return hash;
}

static const sm_method function_methods[] = {
    SM_LABEL_METHODS,
    SM_METHOD("name", function_name),
    SM_METHOD("functionType", function_type),
    SM_METHOD("functionConstantsDictionary", function_constants),
    SM_METHOD("device", sm_device_of),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_function, "MTLFunction", &sm_ns_object, mtl_function, function_destroy, function_methods,
         no_class_methods, "MTLFunction", false);

/* ---- MTLFunctionDescriptor ------------------------------------------------------------------ */

static void wanted_destroy(id object)
{
    mtl_function_descriptor *self = object;
    objc_release(self->name);
    objc_release(self->special_name);
    objc_release(self->values);
    objc_release(self->archives);
}
static id wanted_make(id class, SEL s) { return objc_autorelease(sm_new(&sm_mtl_function_descriptor)); }
#define WANTED(field)                                                                          \
    static id wanted_get_##field(mtl_function_descriptor *self, SEL s) { return self->field; } \
    static void wanted_put_##field(mtl_function_descriptor *self, SEL s, id value) { sm_set_copy(&self->field, value); }
WANTED(name)
WANTED(special_name)
WANTED(values)
WANTED(archives)
static unsigned long wanted_options(mtl_function_descriptor *self, SEL s) { return self->options; }
static void wanted_set_options(mtl_function_descriptor *self, SEL s, unsigned long value) { self->options = value; }

static id wanted_copy(const mtl_function_descriptor *self, SEL s)
{
    mtl_function_descriptor *copy = sm_copy(self);
    if (copy == NULL) return NULL;
    objc_retain(copy->name);
    objc_retain(copy->special_name);
    objc_retain(copy->values);
    objc_retain(copy->archives);
    return copy;
}
static const sm_method wanted_class_methods[] = {SM_METHOD("functionDescriptor", wanted_make), SM_METHODS_END};
static const sm_method wanted_methods[] = {
    SM_METHOD("name", wanted_get_name),
    SM_METHOD("setName:", wanted_put_name),
    SM_METHOD("specializedName", wanted_get_special_name),
    SM_METHOD("setSpecializedName:", wanted_put_special_name),
    SM_METHOD("constantValues", wanted_get_values),
    SM_METHOD("setConstantValues:", wanted_put_values),
    SM_METHOD("binaryArchives", wanted_get_archives),
    SM_METHOD("setBinaryArchives:", wanted_put_archives),
    SM_METHOD("options", wanted_options),
    SM_METHOD("setOptions:", wanted_set_options),
    SM_COPY_METHODS(wanted_copy),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_function_descriptor, "MTLFunctionDescriptor", &sm_ns_object, mtl_function_descriptor, wanted_destroy,
         wanted_methods, wanted_class_methods, "NSCopying", true);
