/* cli/network.h: what summary and bench share: the network of a configuration, without weights and, if it can be, without data. */
#ifndef SD_CLI_NETWORK_H
#define SD_CLI_NETWORK_H

#include "core/cli/cli.h"
#include "core/detect/model.h"

typedef struct sd_cli_network {
    sd_config *cfg;
    const sd_core_cfg *core;
    uint32_t n_classes;
    sd_model *model;
} sd_cli_network;

/* The number of classes: --classes N, else [data] classes, else the data sets are opened and asked. */
sodet_status sd_cli_network_open(sd_cli *cli, sd_cli_network *out, sodet_err *err);
void sd_cli_network_close(sd_cli_network *n); /* accepts a zeroed one */

/* The training graph as a step runs it: differentiated, and bound to `segments`, which are made from it if they are empty. */
sodet_status sd_cli_training_graph(const sd_cli_network *n, uint32_t world, const sd_model_shape *shape, sd_segments *segments,
                                   sodet_graph **out, sodet_err *err);
/* The inference graph likewise: optimised and bound; segments are made before that if they are empty. */
sodet_status sd_cli_inference_graph(const sd_cli_network *n, const sd_model_shape *shape, sd_segments *segments, sodet_graph **out,
                                    sodet_err *err);

/* "26,285,486" */
const char *sd_cli_count(uint64_t n, char text[32]);
/* "31.37 G", "155.52 M", "" for 0 */
const char *sd_cli_amount(double n, char text[32]);

#endif
