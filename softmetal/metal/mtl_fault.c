/* Fault injection, for the tests of programs that must survive failures.
 *
 * SM_FAULT, or sm_inject, is a comma-separated list of KIND=N or KIND=N+ (the N-th, or
 * every one from the N-th on; counted from 1) and command=N:ERROR. KIND is device,
 * compile, pipeline, buffer, queue, fence, commandbuffer, command, removed or watchdog. */
#include "metal/metal.h"
#include "settings/settings.h"
#include "softmetal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rule {
    sm_fault_kind kind;
    long at;
    bool onwards;
    mtl_command_error code;
} rule;

enum { RULES = 16 };

static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static rule rules[RULES];
static int rules_count;
static long seen[SM_FAULT_KINDS];
static bool was_read, removed;

static const struct {
    const char *name;
    sm_fault_kind kind;
    mtl_command_error code;
} kinds[] = {
    /* clang-format off */
    {"device",        SM_FAULT_DEVICE,         MTL_ERROR_NONE},
    {"compile",       SM_FAULT_COMPILE,        MTL_ERROR_NONE},
    {"pipeline",      SM_FAULT_PIPELINE,       MTL_ERROR_NONE},
    {"buffer",        SM_FAULT_BUFFER,         MTL_ERROR_NONE},
    {"queue",         SM_FAULT_QUEUE,          MTL_ERROR_NONE},
    {"command",       SM_FAULT_COMMAND,        MTL_ERROR_INTERNAL},
    {"fence",         SM_FAULT_FENCE,          MTL_ERROR_NONE},
    {"commandbuffer", SM_FAULT_COMMAND_BUFFER, MTL_ERROR_NONE},
    {"watchdog",      SM_FAULT_COMMAND,        MTL_ERROR_TIMEOUT},
    {"removed",       SM_FAULT_COMMAND,        MTL_ERROR_DEVICE_REMOVED},
    /* clang-format on */
};

static const struct {
    const char *name;
    mtl_command_error code;
} codes[] = {
    /* clang-format off */
    {"internal",     MTL_ERROR_INTERNAL},
    {"timeout",      MTL_ERROR_TIMEOUT},
    {"pagefault",    MTL_ERROR_PAGE_FAULT},
    {"revoked",      MTL_ERROR_ACCESS_REVOKED},
    {"notpermitted", MTL_ERROR_NOT_PERMITTED},
    {"memory",       MTL_ERROR_OUT_OF_MEMORY},
    {"invalid",      MTL_ERROR_INVALID_RESOURCE},
    {"removed",      MTL_ERROR_DEVICE_REMOVED},
    /* clang-format on */
};

static bool read_code(const char *text, size_t length, mtl_command_error *code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strlen(codes[i].name) == length && memcmp(codes[i].name, text, length) == 0) {
            *code = codes[i].code;
            return true;
        }
    return false;
}

static bool read_rule(const char *text, size_t length, rule *r)
{
    char word[64];
    if (length >= sizeof word) return false;
    memcpy(word, text, length);
    word[length] = 0;
    char *value = strchr(word, '=');
    if (value == NULL) return false;
    *value++ = 0;
    size_t k = 0;
    while (k < sizeof kinds / sizeof *kinds && strcmp(kinds[k].name, word) != 0) k++;
    if (k == sizeof kinds / sizeof *kinds) return false;
    char *end = NULL;
    *r = (rule){kinds[k].kind, strtol(value, &end, 10), false, kinds[k].code};
    if (end == value || r->at < 1) return false;
    if (*end == '+') r->onwards = true, end++;
    if (*end == ':' && r->kind == SM_FAULT_COMMAND) {
        if (!read_code(end + 1, strlen(end + 1), &r->code)) return false;
        end += strlen(end);
    }
    return *end == 0;
}

static int read_rules(const char *text)
{
    rules_count = 0;
    memset(seen, 0, sizeof seen);
    removed = false;
    was_read = true;
    while (text != NULL && *text != 0) {
        const size_t length = strcspn(text, ",");
        if (rules_count == RULES || !read_rule(text, length, &rules[rules_count])) {
            rules_count = 0;
            return -1;
        }
        rules_count++;
        text += length + (text[length] == ',');
    }
    return 0;
}

int sm_inject(const char *faults)
{
    pthread_mutex_lock(&fault_lock);
    const int result = read_rules(faults);
    pthread_mutex_unlock(&fault_lock);
    return result;
}

static void read_environment(void)
{
    const char *text = sm_setting_text(SM_SET_FAULT);
    if (read_rules(text) != 0)
        sm_failed("SM_FAULT=%s is not understood (softmetal/README.md); no fault is injected", text);
}

bool sm_fault(sm_fault_kind kind, mtl_command_error *code)
{
    bool failing = false;
    pthread_mutex_lock(&fault_lock);
    if (!was_read) read_environment();
    const long now = ++seen[kind];
    for (int i = 0; i < rules_count && !failing; i++) {
        failing = rules[i].kind == kind && (now == rules[i].at || (rules[i].onwards && now > rules[i].at));
        if (failing && code != NULL) *code = rules[i].code;
        if (failing && rules[i].code == MTL_ERROR_DEVICE_REMOVED) removed = true;
    }
    pthread_mutex_unlock(&fault_lock);
    return failing;
}

bool sm_device_removed(void)
{
    pthread_mutex_lock(&fault_lock);
    const bool gone = removed;
    pthread_mutex_unlock(&fault_lock);
    return gone;
}
