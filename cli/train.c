/* mica train: what can be trained. */
#include <string.h>

#include "cli.h"

int cli_train(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "lm") == 0) return cli_train_lm(argc - 1, argv + 1);
    if (argc > 1) fprintf(stderr, "mica train: '%s' cannot be trained; there is 'mica train lm'\n", argv[1]);
    else fprintf(stderr, "mica train: what? There is 'mica train lm --text FILE', and 'mica train lm --help'\n");
    return CLI_USAGE;
}
