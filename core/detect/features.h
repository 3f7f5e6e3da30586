/* detect/features.h: the inside of sodet_features, for the core. */
#ifndef SD_DETECT_FEATURES_H
#define SD_DETECT_FEATURES_H

#include "core/base/base.h"
#include "sodet/detection.h"

struct sodet_features {
    uint32_t n;
    sodet_value map[SODET_MAX_LEVELS];
    uint32_t stride[SODET_MAX_LEVELS];
};

#endif
