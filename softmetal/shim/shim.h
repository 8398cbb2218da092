/* Metal's standard library for clang on a CPU; this file includes all of it, to be
 * precompiled. Names that Apple's headers do not have begin with sm_. Every function here
 * is inlined and has no debug lines, so that errors are always reported at a line of the
 * kernel. */
#include "abi.h"
#include "macros.h"

#define device
#define thread
#define constant const
#define threadgroup_imageblock sm_not_supported
#define ray_data sm_not_supported
#define object_data sm_not_supported
#define coherent(scope)
#define volatile_coherent

#include "checked.h"

/* A function without debug lines: its instructions belong to the line of the call. */
#define SM_X __attribute__((nodebug))
/* What a GPU does in one operation, or in a sequence with a known price. Counted builds (softmetal/count) keep the
 * call and recognise it by its name. SM_LANE_OP: depends on other lanes; SM_PURE_OP: on its arguments only. */
#if defined(SM_COUNTED)
#define SM_LANE_OP __attribute__((nodebug, noinline))
#define SM_PURE_OP __attribute__((nodebug, noinline, __const__))
#else
#define SM_LANE_OP SM_X
#define SM_PURE_OP SM_X
#endif
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#include "traits.h"
#include "bfloat.h"
#include "vector.h"
#include "matrix.h"
#include "math.h"
#include "integer.h"
#include "each.h"
#include "atomic.h"
#include "simd.h"
#include "simd_matrix.h"
#include "internals.h"
#include "entry.h"
#pragma clang attribute pop
#undef SM_X
#undef SM_LANE_OP
#undef SM_PURE_OP
