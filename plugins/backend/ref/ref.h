/* backend/ref/ref.h: what the two files of the reference backend share. */
#ifndef REF_H
#define REF_H

#include "core/base/base.h"
#include "core/device/host_group.h"
#include "kernels/kernels.h"
#include "sodet/backend.h"

enum { REF_FLOAT = 0, REF_DOUBLE = 1 };
typedef struct ref_cfg {
    uint32_t precision;
} ref_cfg;

typedef struct ref_device {
    const ref_cfg *cfg;
    uint32_t real_size, rank, world;
    sd_host_group *group;
    double in_runs; /* seconds */
} ref_device;

/* ref.c: bytes of a value, as this device stores it. */
uint64_t ref_bytes(const ref_device *d, const sodet_shape *s);
/* ref.c: the kernel of a node; NULL for a view or a collective, which the backend carries out itself. */
sodet_status ref_kernel_of(const ref_device *d, const sodet_node *n, sodet_ref_kernel *out, sodet_err *err);

sodet_status ref_prepare(void *device, const sodet_graph *g, sodet_plan *out, sodet_err *err);
void ref_discard(void *device, sodet_plan *plan);
sodet_status ref_bind(void *device, sodet_plan *plan, const sodet_binding *b, void **program, sodet_err *err);
void ref_unbind(void *program);
void *ref_address(void *program, sodet_value v);
sodet_status ref_run(void *program, const sodet_run *r, sodet_err *err);

#endif
