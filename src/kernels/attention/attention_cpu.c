#include "kernels/attention/attention.h"
mica_status mica__attention_cpu(const mica__launch *launch) { return mica__attention_ref(launch); }
