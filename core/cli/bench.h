/* cli/bench.h: what the files of `sodet bench` share. */
#ifndef SD_CLI_BENCH_H
#define SD_CLI_BENCH_H

#include "core/cli/cli.h"

enum { SD_BENCH_LEAST = 5, SD_BENCH_WARM = 3 }; /* steps that are measured at least, and made before that */

/* Sorts, for the next. */
void sd_bench_sort(double *times, uint64_t n);
/* q = 0.5: the median, between two where there is no middle one. n > 0. */
double sd_bench_quantile(const double *sorted, uint64_t n, double q);
void sd_bench_number(sd_text *json, const char *key, double value); /* , "key": value */

/* `sodet bench x.ini evaluator` */
sodet_status sd_bench_evaluator(sd_cli *cli, double seconds, sodet_err *err);
/* `sodet bench x.ini [training] --estimate DEVICE`; batch 0: the recipe's, of inference 1. */
sodet_status sd_bench_estimate(sd_cli *cli, const char *name, bool training, uint32_t batch, sodet_err *err);

#endif
