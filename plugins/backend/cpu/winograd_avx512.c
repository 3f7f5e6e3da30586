#if defined(__x86_64__)
#define LANES 16
#include "plugins/backend/cpu/winograd_lanes.h"

const cpu_winograd_code cpu_winograd_avx512 = {.lanes = LANES,
                                               .least_panel = LEAST_PANEL,
                                               .most_panel = 14,
                                               .unit_bytes = 1 << 20,
                                               .least_tiles = 56,
                                               .weights = weight_tile,
                                               .unit = run_unit,
                                               .gradient_bytes = 4 << 20,
                                               .gradient_unit = gradient_unit,
                                               .gradient_weights = gradient_weights};
#else
typedef int nothing_here;
#endif
