/* AdamW (Loshchilov and Hutter 2019), in torch.optim.AdamW's sequence: Adam with the decay apart from the gradient. */
#include "core/train/optimizer.h"

static const char *const state_names[] = {"first", "second", NULL};

static uint32_t n_state(const sd_optimizer_cfg *c)
{
    return sd_adam.n_state(c);
}

static void hyper(const sd_optimizer_cfg *c, double lr, uint64_t t, float *out)
{
    sd_adam.hyper(c, lr, t, out);
}

static sodet_value build(sodet_graph *g, const sd_optimizer_cfg *c, const sodet_update *u, const sodet_value *state)
{
    (void)c;
    return sodet_adam_update(g, u, state[0], state[1], 1);
}

const sd_optimizer sd_adamw = {"adamw", state_names, 7, n_state, hyper, build};
