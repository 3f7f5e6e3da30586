/* Stochastic gradient descent with momentum, in torch.optim.SGD's sequence. */
#include "core/train/optimizer.h"

static const char *const state_names[] = {"momentum", NULL};

static uint32_t n_state(const sd_optimizer_cfg *c)
{
    return c->momentum > 0 ? 1 : 0;
}

static void hyper(const sd_optimizer_cfg *c, double lr, uint64_t t, float *out)
{
    (void)t;
    out[0] = (float)lr;
    out[1] = (float)c->momentum;
    out[2] = (float)c->weight_decay;
}

static sodet_value build(sodet_graph *g, const sd_optimizer_cfg *c, const sodet_update *u, const sodet_value *state)
{
    return sodet_sgd_update(g, u, c->momentum > 0 ? state[0] : SODET_NONE, c->nesterov);
}

const sd_optimizer sd_sgd = {"sgd", state_names, 3, n_state, hyper, build};
