/* kernels.h: the tables made from ops.def, for the core (descriptions) and for the backends (entries). */
#ifndef SODET_KERNELS_H
#define SODET_KERNELS_H

#include "sodet/graph.h"

/* Row numbers: SODET_OP_conv2d, ... from 1. */
enum {
    SODET_OP_none = 0,
#define OP(name, parts) SODET_OP_##name,
#include "kernels/ops.def"
#undef OP
    SODET_OP_COUNT
};

#define OP(name, parts) extern const sodet_op sodet_op_##name;
#include "kernels/ops.def"
#undef OP

/* <op>_ref.c is compiled twice, once with SODET_REAL float and once double, and defines
 *     const sodet_ref_kernel SODET_REF(conv2d)[] = {forward, backward_data, backward_weight};            one entry per part */
#ifdef SODET_REAL_IS_double
#define SODET_REF(name) sodet_ref64_##name
#else
#define SODET_REF(name) sodet_ref32_##name
#endif
#define OP(name, parts)                                                                                                                    \
    extern const sodet_ref_kernel sodet_ref32_##name[parts];                                                                               \
    extern const sodet_ref_kernel sodet_ref64_##name[parts];
#include "kernels/ops.def"
#undef OP

/* <op>_cpu.c defines
 *     const sodet_cpu_kernel sodet_cpu_<op>[] = {{...}, ...};                                            one entry per part
 * or, where oneDNN does the work, what plugins/backend/cpu/cpu.h asks for instead. An entry with run == NULL is unsupported. */

#endif
