/* Limits the size of the disk cache. */
#ifndef SOFTMETAL_CACHE_H
#define SOFTMETAL_CACHE_H

/* Deletes the older half of the files if there are too many. */
void sm_cache_trim(const char *root);

#endif
