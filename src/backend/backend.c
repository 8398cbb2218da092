/* The list of backends. */
#include "backend/backend.h"

#include <string.h>

const mica__backend *const mica__backends[] = {&mica__backend_metal, &mica__backend_cpu, &mica__backend_ref, NULL};

const mica__backend *mica__backend_find(const char *name)
{
    for (size_t i = 0; name && mica__backends[i]; i++)
        if (strcmp(mica__backends[i]->name, name) == 0) return mica__backends[i];
    return NULL;
}
