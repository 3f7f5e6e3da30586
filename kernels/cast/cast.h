/* cast: x in another type. F32 to I32 cuts towards zero; what does not fit becomes the nearest int32, NaN becomes 0. No derivative. Exact. */
#ifndef SODET_KERNELS_CAST_H
#define SODET_KERNELS_CAST_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_cast_attr {
    uint32_t dtype; /* SODET_F32 | SODET_I32 */
} sodet_cast_attr;

/* x itself if it has the type. */
SODET_EXPORT sodet_value sodet_cast(sodet_graph *g, sodet_value x, uint32_t dtype);

#ifdef __cplusplus
}
#endif
#endif
