/* Loss terms: what sodet_emit_loss collects for sd_graph_backward. */
#include <string.h>

#include "core/graph/internal.h"
#include "sodet/detection.h"

void sd_graph_add_loss(sodet_graph *g, const char *name, sodet_value scalar)
{
    if (g->failure.code != SODET_OK)
        return;
    sodet_err err = SODET_ERR_INIT;
    char text[64];
    sodet_shape shape = sodet_shape_of(g, scalar);
    if (sodet_elements(&shape) != 1) {
        sodet_graph_fail(g, SODET_E_INVALID, "loss term %s is %s, expected a scalar", name, sd_shape_text(&shape, text));
        return;
    }
    const char *copy = sd_pool_strdup(&g->pool, name);
    if (!copy || sd_grow(&g->losses, &g->losses_capacity, g->n_losses + 1, sizeof *g->losses, &err) != SODET_OK) {
        sodet_graph_fail(g, SODET_E_MEMORY, "no memory for loss term %s", name);
        return;
    }
    g->losses[g->n_losses++] = (sd_loss_term){copy, scalar};
}

void sodet_emit_loss(sodet_graph *g, const char *name, const sodet_targets *t, sodet_value per_image, double factor)
{
    sodet_value weighted = sodet_mul(g, per_image, t->weight);
    sodet_value sum = sodet_sum(g, weighted, 0);
    sd_graph_add_loss(g, name, factor == 1 ? sum : sodet_mul(g, sum, sodet_scalar(g, factor)));
}

void sodet_emit_loss_mean(sodet_graph *g, const char *name, const sodet_targets *t, sodet_value per_image, double factor)
{
    sodet_targets mean = *t;
    mean.weight = t->share;
    sodet_emit_loss(g, name, &mean, per_image, factor);
}
