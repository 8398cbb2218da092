/* Coefficients of the polynomials that both C (simd/functions.h, simd/wide.h, kernels/random) and Metal
 * (codegen/mica_msl.h, random.metal) evaluate, and Horner's scheme. Preprocessor text only, so that C, C++ and Metal
 * can include it. Coefficients are decimal with enough digits for their bits: hexadecimal floats are not in C++14.
 * Lists have the highest power first. A polynomial that only one side uses stays where it is used. */
#ifndef MICA_SIMD_POLYNOMIALS_H
#define MICA_SIMD_POLYNOMIALS_H

/* POLY(n, MUL_ADD, CONSTANT, x, list): the polynomial of x with the n coefficients of the list. MUL_ADD(a, b, c) is
 * a * b + c, CONSTANT(c) a coefficient in the type of x. */
#define POLY(n, MUL_ADD, CONSTANT, x, ...) POLY_##n(MUL_ADD, CONSTANT, x, __VA_ARGS__)
#define POLY_3(M, C, x, a, ...) POLY_STEP_2(M, C, x, C(a), __VA_ARGS__)
#define POLY_4(M, C, x, a, ...) POLY_STEP_3(M, C, x, C(a), __VA_ARGS__)
#define POLY_5(M, C, x, a, ...) POLY_STEP_4(M, C, x, C(a), __VA_ARGS__)
#define POLY_6(M, C, x, a, ...) POLY_STEP_5(M, C, x, C(a), __VA_ARGS__)
#define POLY_7(M, C, x, a, ...) POLY_STEP_6(M, C, x, C(a), __VA_ARGS__)
#define POLY_8(M, C, x, a, ...) POLY_STEP_7(M, C, x, C(a), __VA_ARGS__)
#define POLY_9(M, C, x, a, ...) POLY_STEP_8(M, C, x, C(a), __VA_ARGS__)
#define POLY_10(M, C, x, a, ...) POLY_STEP_9(M, C, x, C(a), __VA_ARGS__)
#define POLY_11(M, C, x, a, ...) POLY_STEP_10(M, C, x, C(a), __VA_ARGS__)
#define POLY_12(M, C, x, a, ...) POLY_STEP_11(M, C, x, C(a), __VA_ARGS__)
/* p * x^n + the polynomial of the next n coefficients. */
#define POLY_STEP_1(M, C, x, p, a) M(p, x, C(a))
#define POLY_STEP_2(M, C, x, p, a, ...) POLY_STEP_1(M, C, x, M(p, x, C(a)), __VA_ARGS__)
#define POLY_STEP_3(M, C, x, p, a, ...) POLY_STEP_2(M, C, x, M(p, x, C(a)), __VA_ARGS__)
#define POLY_STEP_4(M, C, x, p, a, ...) POLY_STEP_3(M, C, x, M(p, x, C(a)), __VA_ARGS__)
#define POLY_STEP_5(M, C, x, p, a, ...) POLY_STEP_4(M, C, x, M(p, x, C(a)), __VA_ARGS__)
#define POLY_STEP_6(M, C, x, p, a, ...) POLY_STEP_5(M, C, x, M(p, x, C(a)), __VA_ARGS__)
#define POLY_STEP_7(M, C, x, p, a, ...) POLY_STEP_6(M, C, x, M(p, x, C(a)), __VA_ARGS__)
#define POLY_STEP_8(M, C, x, p, a, ...) POLY_STEP_7(M, C, x, M(p, x, C(a)), __VA_ARGS__)
#define POLY_STEP_9(M, C, x, p, a, ...) POLY_STEP_8(M, C, x, M(p, x, C(a)), __VA_ARGS__)
#define POLY_STEP_10(M, C, x, p, a, ...) POLY_STEP_9(M, C, x, M(p, x, C(a)), __VA_ARGS__)
#define POLY_STEP_11(M, C, x, p, a, ...) POLY_STEP_10(M, C, x, M(p, x, C(a)), __VA_ARGS__)

/* Six coefficients in pairs (Estrin): a shorter dependency chain than POLY(6, ...). z is x * x. */
#define POLY_PAIRS_6(M, C, x, z, ...) POLY_PAIRS(M, C, x, z, __VA_ARGS__)
#define POLY_PAIRS(M, C, x, z, a, b, c, d, e, f) M(M(M(x, C(a), C(b)), z, M(x, C(c), C(d))), z, M(x, C(e), C(f)))

/* CONSTANT for literals of the type of x; for a list of doubles as floats. MUL_ADD that rounds twice. */
#define POLY_SCALAR(c) c
#define POLY_FLOAT(c) c##f
#define POLY_MUL_ADD(a, b, c) ((a) * (b) + (c))

/* ---------------------------------------------------------------- constants -- */

/* Adding 1.5 * 2^23 leaves the rounded integer in the low bits. Adding b to the constant adds b to that integer. With
 * b = the exponent bias, a shift by 23 moves the sum into the exponent field. */
#define POLY_MAGIC 12582912.0f
#define POLY_LOG2_E 1.442695f
#define POLY_LN2 0.6931472f
/* ln 2 in two parts; the first has so few bits that an exponent times it is exact. */
#define POLY_LN2_HIGH 0.69314575f
#define POLY_LN2_LOW 1.4286068e-06f
/* The same with fewer bits, as in Cephes: the second part is negative. */
#define POLY_CEPHES_LN2_HIGH 0.693359375f
#define POLY_CEPHES_LN2_LOW -2.12194440e-4f

/* ------------------------------------------------------------ exp and log -- */

/* (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2; e^r has a relative error of 2^-28. */
#define POLY_EXP 0.0013846086f, 0.008369726f, 0.041668043f, 0.16666512f, 0.49999994f
/* (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2; e^r - 1 has a relative error of 2^-26. */
#define POLY_EXPM1 0.00023779318f, 0.0013926988f, 0.008327085f, 0.041666538f, 0.16666688f, 0.5f
/* (2^r - 1) / r for |r| <= 1/2. */
#define POLY_EXP2 0.00015356058f, 0.0013391789f, 0.009618446f, 0.055503596f, 0.24022648f, 0.6931472f
/* (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f from sqrt 1/2 to sqrt 2. */
#define POLY_LOG \
    -0.07867054f, 0.1288573f, -0.13127992f, 0.14180598f, -0.16624567f, 0.20002311f, -0.2500081f, 0.33333316f
/* (log(1 + x) - x + x^2 / 2) / x^3 for 1 + x from sqrt 1/2 to sqrt 2 (the logf of Cephes). */
#define POLY_LOG_CEPHES                                                                                            \
    7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f, \
        2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f

/* ------------------------------------------------- sigmoids, erf and gelu -- */

/* 1.7159 tanh(2 x / 3) = x (1 + P(x^2)) below 1. */
#define POLY_LECUN_TANH -0.00010501268f, 0.0009037345f, -0.005383964f, 0.030120114f, -0.16947094f, 0.14393333f
/* 2 / 3 * 2 log2 e and 1.7159, each in two floats. */
#define POLY_LECUN_SCALE 1.9235934f
#define POLY_LECUN_SCALE_LOW -1.4056924e-08f
#define POLY_LECUN_TOP 1.7159f
#define POLY_LECUN_TOP_LOW 5.569458e-08f
/* log(1 + e^x) = log 2 + x / 2 + x^2 P(x^2) for |x| < 1. */
#define POLY_SOFTPLUS 1.7063721e-06f, -2.5950005e-05f, 0.00034706166f, -0.005208311f, 0.125f
/* log(1 + e) / e for e from 0 to 1 / e. */
#define POLY_SOFTPLUS_FAR 0.05288371f, -0.13059986f, 0.19204809f, -0.249071f, 0.33328223f, -0.49999905f, 1.0f
/* erf x = x (1 + P(x^2)) below 0.9. */
#define POLY_ERF 8.75336e-05f, -0.0008223098f, 0.0052068434f, -0.026860977f, 0.112837024f, -0.37612632f, 0.12837917f
/* 1 - erf x = e^Q(x) from 0.9 on. */
#define POLY_ERF_FAR \
    0.00019718146f, -0.003055605f, 0.022277078f, -0.104037344f, -0.63705975f, -1.1277496f, -0.00017749718f
/* gelu x = x (1/2 + x P(x^2)) for |x| < 1/2. */
#define POLY_GELU -0.0011457088f, 0.00997111f, -0.06649066f, 0.3989423f
/* R of vf_gelu_far is first + low + w times this; first has few bits. */
#define POLY_GELU_FAR                                                                                             \
    0.022672031f, 0.0087581035f, -0.051249795f, -0.05571403f, 0.06026772f, 0.24158797f, 0.37304497f, 0.38713738f, \
        0.3039483f
#define POLY_GELU_FAR_FIRST 0.18882132f
#define POLY_GELU_FAR_LOW 3.3152986e-08f
/* gelu_tanh: the base-2 exponent is x (a + b x^2) (1 + c). */
#define POLY_GELU_TANH_A -2.3007393f
#define POLY_GELU_TANH_B -0.10287756f
#define POLY_GELU_TANH_C 0.00063845125f
/* erfinv x = x P(w - 2.5) with w = -log(1 - x^2) below 4.5. Double. */
#define POLY_ERFINV                                                                                 \
    -9.997184659921974e-09, 2.0673964062341753e-08, 4.780383242871377e-07, -3.4397295926981373e-06, \
        -5.002102358259742e-06, 0.00021828064396561104, -0.0012526955178506, -0.004177331217759972, \
        0.24664027152053433, 1.5014093519893188
/* erfinv x = x Q(sqrt w - 3) from w = 4.5 on. Double. */
#define POLY_ERFINV_FAR                                                                               \
    -1.4738414853797086e-05, -4.408168789975512e-06, 0.00017545477401090877, -0.00031623193824124895, \
        -0.00012214148726860763, 0.0014961771744322534, -0.003568654608500999, 0.0056830025853545785, \
        -0.007642345597153742, 0.009445668107461353, 1.0016752166336267, 2.8329767970309594

/* --------------------------------------------------------- random numbers -- */

/* The x that a standard normal number exceeds with probability p: PPND7 of Wichura, "Algorithm AS 241", 1988. Quotients
 * of polynomials, of 0.180625 - q^2 (q = 1/2 - p <= 0.425), of r - 1.6 (r = sqrt(-log p) <= 5), and of r - 5. */
#define POLY_NORMAL_MIDDLE_TOP 5.9109374720e1f, 1.5929113202e2f, 5.0434271938e1f, 3.3871327179f
#define POLY_NORMAL_MIDDLE_BOTTOM 6.7187563600e1f, 7.8757757664e1f, 1.7895169469e1f, 1.0f
#define POLY_NORMAL_TAIL_TOP 1.7023821103e-1f, 1.3067284816f, 2.7568153900f, 1.4234372777f
#define POLY_NORMAL_TAIL_BOTTOM 1.2021132975e-1f, 7.3700164250e-1f, 1.0f
#define POLY_NORMAL_END_TOP 1.7337203997e-2f, 4.2868294337e-1f, 3.0812263860f, 6.6579051150f
#define POLY_NORMAL_END_BOTTOM 1.2258202635e-2f, 2.4197894225e-1f, 1.0f
/* log(x Q(x) / phi(x)) / t with t = 1 / x^2: the asymptotic series, to 1e-6 for x >= 8. */
#define POLY_NORMAL_BEYOND 88.25f, -12.333333f, 2.5f, -1.0f

#endif
