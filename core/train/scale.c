#include "core/train/scale.h"

#include "sodet/backend.h"

static const double least = 1.0 / 1024, most = 16777216;

static uint32_t kind(const sd_core_cfg *core)
{
    const uint32_t given = core->optimizer.loss_scaling;
    if (given != SD_SCALING_AUTO)
        return given;
    return core->run.precision == SODET_PRECISION_FP16 ? SD_SCALING_DYNAMIC : SD_SCALING_NONE;
}

bool sd_loss_scaled(const sd_core_cfg *core)
{
    return kind(core) != SD_SCALING_NONE;
}

double sd_loss_scale_begin(const sd_core_cfg *core, sd_loss_scale *s)
{
    if (!sd_loss_scaled(core))
        return 1;
    if (!(s->factor > 0) || kind(core) == SD_SCALING_STATIC)
        s->factor = core->optimizer.loss_scale;
    return s->factor;
}

sodet_status sd_loss_scale_step(const sd_core_cfg *core, sd_loss_scale *s, bool finite, sodet_err *err)
{
    const bool moves = kind(core) == SD_SCALING_DYNAMIC;
    if (finite) {
        s->in_row = 0;
        if (++s->good >= core->optimizer.loss_scale_window && moves && s->factor < most) {
            s->factor *= 2;
            s->good = 0;
        }
        return SODET_OK;
    }
    s->good = 0;
    s->skipped++;
    if (moves && s->factor > least)
        s->factor /= 2;
    if (++s->in_row < core->optimizer.loss_scale_skips)
        return SODET_OK;
    return SODET_FAIL(
        err, SODET_E_INVALID,
        "%llu steps in a row were skipped because a gradient overflowed, the last with loss_scale = %g; precision = bf16 has no such "
        "range, else begin with a lower optimizer.lr%s",
        (unsigned long long)s->in_row, moves ? s->factor * 2 : s->factor,
        moves ? "" : ", a lower optimizer.loss_scale, or loss_scaling = dynamic");
}
