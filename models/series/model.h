/* A series model from inside. */
#ifndef MICA_MODELS_SERIES_MODEL_H
#define MICA_MODELS_SERIES_MODEL_H

#include "series.h"

struct mica_series_model {
    mica_series_net net;     /* net.wiring is the model's own                       */
    char *wiring_text;
    mica_wiring *wiring;
    mica_liquid liquid;      /* of the cells of mica_liquid.h                       */
    mica_layer recurrent;    /* of the others                                       */
    mica_layer readout;      /* theirs: a liquid network has its projection         */
    int64_t outputs;
    mica_recipe *recipe;
    mica_params *params;
};

/* The description as a text without quotes, and back. */
mica_status mica__series_net_print(const mica_series_net *net, char *text, size_t room);
/* wiring (room bytes): where the name of the wiring goes. */
mica_status mica__series_net_parse(const char *text, size_t length, mica_series_net *net, char *wiring, size_t room);

#endif
