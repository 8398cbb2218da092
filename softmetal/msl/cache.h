/* The disk cache does not grow for ever. */
#ifndef SOFTMETAL_CACHE_H
#define SOFTMETAL_CACHE_H

/* Deletes the older half of a cache of too many files. */
void sm_cache_trim(const char *root);

#endif
