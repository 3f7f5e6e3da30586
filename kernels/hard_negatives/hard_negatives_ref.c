#include "kernels/reference.h"

static int harder(SODET_REAL a, SODET_REAL b)
{
    return isnan(a) ? !isnan(b) : !isnan(b) && a > b;
}

static void forward(const sodet_kernel_args *a)
{
    const sodet_hard_negatives_attr *attr = a->attr;
    int64_t images = a->in[0].shape.dim[0], n = a->in[0].shape.dim[1];
    for (int64_t b = 0; b < images; b++) {
        const SODET_REAL *loss = ref_in(a, 0) + b * n;
        const int32_t *index = (const int32_t *)a->in[1].data + b * n;
        SODET_REAL *keep = ref_out(a, 0) + b * n;
        double positives = 0;
        for (int64_t i = 0; i < n; i++) {
            keep[i] = (SODET_REAL)(index[i] >= 0);
            positives += index[i] >= 0;
        }
        double take = floor(attr->ratio * positives);
        take = take < attr->least ? attr->least : take;
        take = attr->most > 0 && take > attr->most ? attr->most : take;
        for (; take >= 1; take--) {
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++)
                if (index[i] == -1 && keep[i] == 0 && (best < 0 || harder(loss[i], loss[best])))
                    best = i;
            if (best < 0)
                break;
            keep[best] = 1;
        }
    }
}

const sodet_ref_kernel SODET_REF(hard_negatives)[] = {forward};
