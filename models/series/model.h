/* The structure of a series model. */
#ifndef MICA_MODELS_SERIES_MODEL_H
#define MICA_MODELS_SERIES_MODEL_H

#include "series.h"

struct mica_series_model {
    mica_series_net net;     /* net.wiring is owned by the model                    */
    char *wiring_text;
    mica_wiring *wiring;
    mica_liquid liquid;      /* for the cells of mica_liquid.h                         */
    mica_layer recurrent;    /* for the other cells                                    */
    mica_layer readout;      /* for the other cells; a liquid network has a projection */
    int64_t outputs;
    mica_recipe *recipe;
    mica_params *params;
};

/* Prints the description as text without quotes, and parses it. */
mica_status mica__series_net_print(const mica_series_net *net, char *text, size_t room);
/* wiring (room bytes) receives the name of the wiring. */
mica_status mica__series_net_parse(const char *text, size_t length, mica_series_net *net, char *wiring, size_t room);

#endif
