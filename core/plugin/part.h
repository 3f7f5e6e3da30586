/* plugin/part.h: what a plugin brings for one backend: kernels of its own operators in a file beside it, <name>.<backend>.so beside
 * <name>.so, so that the plugin itself needs none of that backend's libraries.
 *
 * The file is looked for in the folder that the plugin was loaded from and nowhere else; nothing that a checkpoint or a configuration says
 * can name another. A part is loaded once and stays until the process ends. Any thread. */
#ifndef SD_PLUGIN_PART_H
#define SD_PLUGIN_PART_H

#include "core/plugin/load.h"
#include "core/plugin/plugin.h"
#include "sodet/op.h"

typedef struct sd_part {
    const sd_plugin *owner;
    const char *path; /* of the part, absolute */
    const void *desc; /* the file's own, over zeros where it is older; [form->size] */
} sd_part;

/* The part for `backend` of the plugin whose operator this is. Refused in a sentence that names the operator and the file: an operator that
 * is in no plugin, a plugin without such a file (both UNSUPPORTED), a file that is none. `header`: the public one that says how the file
 * is made. */
sodet_status sd_plugin_part(const sodet_op *op, const char *backend, const char *header, const sd_desc_form *form, const sd_part **out,
                            sodet_err *err);

#endif
