/* The measured peaks of this machine: printed, and kept in a cache file so that they
 * are measured once per machine. */
#ifndef MICA_CLI_PEAKS_H
#define MICA_CLI_PEAKS_H

#include <mica.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/json.h"

/* Peaks for an engine of so many threads, as a table and as a JSON object. */
void cli_print_peaks(FILE *to, const mica_peaks *peaks, int threads);
void cli_print_peaks_json(cli_json *j, const char *key, const mica_peaks *peaks, int threads);

/* The peaks of this machine for the threads of the engine: from the cache file, or measured
 * now (two seconds) and written there. Set peaks->struct_size first. False: unavailable. */
bool cli_machine_peaks(mica_engine *engine, mica_peaks *peaks);
/* Keeps what was measured. The file depends on the CPU, the threads and the version of mica,
 * and is in the folder MICA_CACHE, or mica/ in the user's cache folder; MICA_CACHE=off: nowhere. */
void cli_peaks_keep(const mica_engine *engine, const mica_peaks *peaks);

/* The share of the DRAM bandwidth, in percent, that reading `bytes` again and again at so many
 * GB/s is. NaN and *in_cache true: the bytes stay in a cache, so that the share means nothing. */
double cli_dram_percent(double bytes, double gbs, const mica_peaks *peaks, bool *in_cache);

#endif
