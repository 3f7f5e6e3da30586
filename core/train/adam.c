/* Adam (Kingma and Ba 2015), in torch.optim.Adam's sequence; weight decay is L2 in the gradient. */
#include "core/train/optimizer.h"

#include <math.h>

static const char *const state_names[] = {"first", "second", NULL};

static uint32_t n_state(const sd_optimizer_cfg *c)
{
    (void)c;
    return 2;
}

static void hyper(const sd_optimizer_cfg *c, double lr, uint64_t t, float *out)
{
    out[0] = (float)lr;
    out[1] = (float)c->betas.v[0];
    out[2] = (float)c->betas.v[1];
    out[3] = (float)c->eps;
    out[4] = (float)c->weight_decay;
    out[5] = (float)(1 - pow(c->betas.v[0], (double)t));
    out[6] = (float)(1 - pow(c->betas.v[1], (double)t));
}

static sodet_value build(sodet_graph *g, const sd_optimizer_cfg *c, const sodet_update *u, const sodet_value *state)
{
    (void)c;
    return sodet_adam_update(g, u, state[0], state[1], 0);
}

const sd_optimizer sd_adam = {"adam", state_names, 7, n_state, hyper, build};
