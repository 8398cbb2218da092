/* Facts about the machine and the build that several commands print. */
#ifndef MICA_CLI_MACHINE_H
#define MICA_CLI_MACHINE_H

#include <mica.h>
#include <stdbool.h>

/* True if the device is a software GPU. Its times are not those of a GPU. */
bool cli_is_software(const mica_engine *engine);
/* The memory of an idle engine as text, measured at the first call, or "unavailable". */
const char *cli_idle_memory_text(void);
/* The commit that this program was built from. */
const char *cli_commit(void);

#endif
