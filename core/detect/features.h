/* detect/features.h: the inside of sodet_features, for the core. */
#ifndef SD_DETECT_FEATURES_H
#define SD_DETECT_FEATURES_H

#include "core/base/base.h"
#include "sodet/detection.h"

enum { SD_MAX_LEVELS = 16 };
struct sodet_features {
    uint32_t n;
    sodet_value map[SD_MAX_LEVELS];
    uint32_t stride[SD_MAX_LEVELS];
};

#endif
