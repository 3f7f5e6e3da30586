/* device/transport.h: the processes of a run. `self` is the world of one; a plugin's table (sodet/transport.h) takes its place. */
#ifndef SD_DEVICE_TRANSPORT_H
#define SD_DEVICE_TRANSPORT_H

#include "core/base/base.h"
#include "sodet/backend.h"
#include "sodet/transport.h"

extern const sodet_transport_ops sd_transport_self;

typedef struct sd_world { /* processes, each of which drives some devices */
    const sodet_transport_ops *ops;
    void *self; /* open */
    sodet_transport_info info;
} sd_world;
typedef struct sd_world_group {
    void *group;           /* the backend's; NULL: there is one device in all */
    uint32_t first, world; /* rank of this process's first device, and devices in all */
} sd_world_group;
/* One group of all devices of all processes, of which this one drives n; every process calls it. The backend's open() of the devices comes
 * next, with ranks from `first` on. A backend whose groups are of one process refuses others, on every process. */
sodet_status sd_world_join(const sd_world *w, const sodet_backend_ops *ops, const void *backend, const char *name, uint32_t n,
                           sd_world_group *out, sodet_err *err);

#endif
