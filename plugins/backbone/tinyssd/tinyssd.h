/* The two networks that go by the name of TinySSD. */
#ifndef TINYSSD_H
#define TINYSSD_H

#include "sodet/detection.h"

enum { TINYSSD_D2L, TINYSSD_PAPER };
typedef struct tinyssd_cfg {
    uint32_t variant;
    double width;
} tinyssd_cfg;

void tinyssd_paper(const tinyssd_cfg *cfg, sodet_graph *g, sodet_value image, sodet_features *out);

#endif
