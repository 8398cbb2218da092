#include "kernels/matmul/matmul.h"
mica_status mica__matmul_cpu(const mica__launch *launch) { return mica__matmul_ref(launch); }
