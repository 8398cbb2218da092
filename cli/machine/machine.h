/* What several commands say about the machine and the build. */
#ifndef MICA_CLI_MACHINE_H
#define MICA_CLI_MACHINE_H

#include <mica.h>
#include <stdbool.h>

/* Is the device of the engine software that stands for a GPU? Then its times say nothing about one. */
bool cli_is_software(const mica_engine *engine);
/* How much memory an idle engine holds: measured at the first call, or "unavailable". */
const char *cli_rest_text(void);
/* The commit this was built from. */
const char *cli_commit(void);

#endif
