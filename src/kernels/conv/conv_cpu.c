#include "kernels/conv/conv.h"
mica_status mica__conv_cpu(const mica__launch *launch) { return mica__conv_ref(launch); }
