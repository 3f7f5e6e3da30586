/* report/peak.h: how many multiplications and additions of float32 this machine can do at most, measured. */
#ifndef SD_REPORT_PEAK_H
#define SD_REPORT_PEAK_H

#include "core/base/base.h"

/* Operations a second (a multiply-add is two) of n_threads threads that do nothing else, with the widest registers there are. Each
 * thread's best millisecond of 0.2 s counts, since whatever else runs can only make one worse. At most 256 threads. */
double sd_peak_flops(uint32_t n_threads);

#endif
