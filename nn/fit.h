/* The state of a training loop, shared by the files that run, save and resume it. */
#ifndef MICA_NN_FIT_H
#define MICA_NN_FIT_H

#include "mica_nn.h"

struct mica_fit {
    mica_trainer *trainer;
    mica_fit_options options;
    mica_fit_state state;
    mica_fit_point *points;
    size_t room;            /* capacity of points                          */
    double loss_sum;        /* training losses since the last point        */
    int64_t loss_count;
    double started;         /* when mica_fit_run was called, in seconds    */
    double seconds_before;  /* training time of the runs that were resumed */
};

/* Appends a point and updates which one is best. */
mica_status mica__fit_add_point(mica_fit *f, mica_fit_point p);
/* Writes the checkpoint of options.checkpoint. */
mica_status mica__fit_save(mica_fit *f);

#endif
