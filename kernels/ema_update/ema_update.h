/* ema_update: average = decay average + (1 - decay) p, over a whole arena. A decay of 0 takes p as it is, whatever the average was,
 * NaN too: so an average begins anew.
 *
 * Inputs: 0 average [P] F32, 1 p [P] F32, 2 decay F32, one element, 3 ok F32, one element (absent: 1; 0 or NaN: nothing changes).
 * Output: 0 new average (in place). Tolerance against the reference: 1 unit in the last place. */
#ifndef SODET_KERNELS_EMA_UPDATE_H
#define SODET_KERNELS_EMA_UPDATE_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

SODET_EXPORT sodet_value sodet_ema_update(sodet_graph *g, sodet_value average, sodet_value p, sodet_value decay, sodet_value ok);

#ifdef __cplusplus
}
#endif
#endif
