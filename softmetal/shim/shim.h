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
