#include "core/device/pool.h"

enum { PIECE = 1 << 20 }; /* elements */

typedef struct look {
    bool frozen;
    uint64_t (*sum)[SD_ARENA_COUNT]; /* [replicas] */
} look;

static bool counts(const look *l, uint32_t arena)
{
    return arena != SD_ARENA_GRAD && (l->frozen || arena != SD_ARENA_FROZEN);
}

static sodet_status add_up(sd_replica *r, void *context, sodet_err *err)
{
    look *l = context;
    char *piece = sd_room(PIECE, r->real_size);
    sodet_status s = piece ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: room to compare the devices' weights in");
    for (uint32_t a = 0; a < SD_ARENA_COUNT && s == SODET_OK; a++) {
        uint64_t h = SD_FNV_START;
        for (uint64_t at = 0, n; counts(l, a) && at < r->arena[a].elements && s == SODET_OK; at += n) {
            n = r->arena[a].elements - at < PIECE ? r->arena[a].elements - at : PIECE;
            s = r->ops->download(r->device, r->arena[a].memory, at * r->real_size, piece, n * r->real_size, err);
            h = s == SODET_OK ? sd_fnv1a64(piece, n * r->real_size, h) : h;
        }
        l->sum[r->index][a] = h;
    }
    sd_free(piece);
    return s;
}

sodet_status sd_device_pool_agree(sd_device_pool *pool, bool frozen, sodet_err *err)
{
    const uint32_t n = sd_device_pool_count(pool);
    if (n == 1)
        return SODET_OK;
    look l = {frozen, sd_alloc(n, sizeof *l.sum)};
    if (!l.sum)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the checksums of %u devices", n);
    sd_log(SD_LOG_DEBUG, "comparing the weights of %u devices", n);
    sodet_status s = sd_device_pool_run(pool, add_up, &l, err);
    for (uint32_t i = 1; i < n && s == SODET_OK; i++)
        for (uint32_t a = 0; a < SD_ARENA_COUNT && s == SODET_OK; a++)
            if (l.sum[i][a] != l.sum[0][a])
                s = SODET_FAIL(
                    err, SODET_E_DEVICE,
                    "%s of %s: not those of %s (checksums %016llx and %016llx): they do not train one network any more. "
                    "The last checkpoint is from before; where it happens again, one of the two has faulty memory or a faulty link",
                    sd_arena_names[a], sd_device_pool_replica(pool, i)->name, sd_device_pool_replica(pool, 0)->name,
                    (unsigned long long)l.sum[i][a], (unsigned long long)l.sum[0][a]);
    sd_free(l.sum);
    return s;
}
