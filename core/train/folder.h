/* train/folder.h: the folder of a run: config.ini (resolved, with places), log.txt, metrics.jsonl, last.safetensors, best.safetensors,
 * step-<n>.safetensors, curve.png, report.html, events.out.tfevents.sodet. What an earlier run left is never overwritten in silence. */
#ifndef SD_TRAIN_FOLDER_H
#define SD_TRAIN_FOLDER_H

#include "core/config/config.h"
#include "core/store/checkpoint.h"

/* [run] output, else the folder of what is resumed, else runs/<name>; the pool's. */
char *sd_run_folder(const sd_config *cfg, sd_pool *pool);
/* The folder that a run's folder or checkpoint means: the path itself, or where that is no folder, the one that holds it; the pool's. */
char *sd_run_folder_of(const char *path, sd_pool *pool);
/* Whether the checkpoint or folder that is resumed belongs to this folder. A run that goes on in another folder is new to that one. */
bool sd_run_goes_on_in(const char *resume, const char *folder);
/* Touches nothing: the same refusal as below, so that it comes before the work. */
sodet_status sd_run_folder_check(const sd_config *cfg, const char *folder, bool resumed, sodet_err *err);
/* Makes the folder and takes it: *lock >= 0 is closed when the run is over, and until then another process that wants to train there is
 * refused (-1: the file system has no locks, which is said). If it holds files of a run: an error that offers resume, another output and overwrite; with [run] overwrite these
 * files (no others) are removed. A run that is resumed goes on in it. Writes config.ini: the values that count from here on. */
sodet_status sd_run_folder_take(const sd_config *cfg, const char *folder, bool resumed, int *lock, sodet_err *err);

/* path: a checkpoint, or a run's folder: then last.safetensors, or where that is not complete, the
 * complete one with the most steps; incomplete ones are skipped with a warning. */
sodet_status sd_run_find_checkpoint(const char *path, sd_checkpoint **out, sodet_err *err);
/* Removes all but the `keep` newest step-<n>.safetensors; 0: keeps all. */
void sd_run_prune(const char *folder, uint32_t keep);

#endif
