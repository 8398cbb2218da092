/* See tools/macos/README.md. */
#ifndef MICA_MACOS_INTTYPES_H
#define MICA_MACOS_INTTYPES_H
#include <stdint.h>

#define PRId8 "hhd"
#define PRIu8 "hhu"
#define PRId16 "hd"
#define PRIu16 "hu"
#define PRId32 "d"
#define PRIu32 "u"
#define PRIx32 "x"
#define PRId64 "lld"
#define PRIi64 "lli"
#define PRIu64 "llu"
#define PRIx64 "llx"
#define PRIX64 "llX"
#define PRIuPTR "lu"
#define PRIxPTR "lx"
#define SCNd64 "lld"
#define SCNu64 "llu"
#define SCNx64 "llx"

#endif
