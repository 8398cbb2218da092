/* mica train: what can be trained. */
#include <string.h>

#include "core/cli.h"

int cli_train(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "lm") == 0) return cli_train_lm(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "ncp") == 0) return cli_train_ncp(argc - 1, argv + 1);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        printf("mica train lm --text FILE ...                a language model with ternary weights on a text\n"
               "mica train ncp --data FILE --target COL ...  a liquid network, a GRU or an LSTM on time series\n\n"
               "Each lists its options with --help. From nothing to predictions in five lines:\n\n"
               "  mica data irregular -o uneven.csv\n"
               "  mica train ncp --data uneven.csv --target speed --time time --epochs 10 --out try\n"
               "  mica predict try uneven.csv -o out.csv\n"
               "  head -n 3 out.csv\n"
               "  mica train ncp --data uneven.csv --target speed --time time --cell gru --epochs 10 --out try-gru\n");
        return CLI_OK;
    }
    if (argc > 1) fprintf(stderr, "mica train: '%s' cannot be trained; there are 'lm' and 'ncp'\n", argv[1]);
    else fprintf(stderr, "mica train: what? There are 'mica train lm' and 'mica train ncp', each with --help\n");
    return CLI_USAGE;
}
