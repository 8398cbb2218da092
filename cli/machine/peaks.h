/* The measured peaks of this machine. They are cached in a file, so that they are
 * measured once per machine. */
#ifndef MICA_CLI_PEAKS_H
#define MICA_CLI_PEAKS_H

#include <mica.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/json.h"

/* Prints the peaks for an engine with `threads` threads, as a table or as a JSON object. */
void cli_print_peaks(FILE *to, const mica_peaks *peaks, int threads);
void cli_print_peaks_json(cli_json *j, const char *key, const mica_peaks *peaks, int threads);

/* The peaks of this machine for the threads of the engine: from the cache file, or measured
 * now (two seconds) and written there. Set peaks->struct_size first. False: unavailable. */
bool cli_machine_peaks(mica_engine *engine, mica_peaks *peaks);
/* Writes the cache file. Its name depends on the CPU, the threads and the version of mica. It is in
 * the folder MICA_CACHE, or in mica/ in the user's cache folder; MICA_CACHE=off: no file. */
void cli_peaks_save(const mica_engine *engine, const mica_peaks *peaks);

/* Percentage of the DRAM bandwidth when the same `bytes` are read repeatedly at `gbs` GB/s.
 * NaN with *in_cache true: the bytes stay in a cache, so the percentage has no meaning. */
double cli_dram_percent(double bytes, double gbs, const mica_peaks *peaks, bool *in_cache);

#endif
