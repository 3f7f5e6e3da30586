/* device/transport.h: the processes of a run. `self` is the world of one; a plugin's table (sodet/transport.h) takes its place. */
#ifndef SD_DEVICE_TRANSPORT_H
#define SD_DEVICE_TRANSPORT_H

#include "core/base/base.h"
#include "sodet/transport.h"

extern const sodet_transport_ops sd_transport_self;

#endif
