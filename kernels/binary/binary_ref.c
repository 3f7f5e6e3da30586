#include "kernels/broadcast.h"
#include "kernels/reference.h"

static SODET_REAL real_value(uint32_t kind, SODET_REAL a, SODET_REAL b)
{
    switch (kind) {
    case SODET_BINARY_ADD:
        return a + b;
    case SODET_BINARY_SUB:
        return a - b;
    case SODET_BINARY_MUL:
        return a * b;
    case SODET_BINARY_DIV:
        return a / b;
    case SODET_BINARY_MIN:
        return isnan(a) || a < b ? a : b;
    case SODET_BINARY_MAX:
        return isnan(a) || a > b ? a : b;
    default:
        return (SODET_REAL)pow((double)a, (double)b);
    }
}

static int32_t int_value(uint32_t kind, int32_t a, int32_t b)
{
    int64_t x = a, y = b, q = 0;
    if (kind == SODET_BINARY_DIV || kind == SODET_BINARY_MOD) {
        if (b == 0)
            return 0;
        q = x / y;
        if (x % y != 0 && (x < 0) != (y < 0))
            q--;
    }
    switch (kind) {
    case SODET_BINARY_ADD:
        return (int32_t)(uint32_t)(x + y);
    case SODET_BINARY_SUB:
        return (int32_t)(uint32_t)(x - y);
    case SODET_BINARY_MUL:
        return (int32_t)(uint32_t)(x * y);
    case SODET_BINARY_DIV:
        return (int32_t)(uint32_t)q;
    case SODET_BINARY_MIN:
        return a < b ? a : b;
    case SODET_BINARY_MAX:
        return a > b ? a : b;
    default:
        return (int32_t)(x - q * y);
    }
}

static void forward(const sodet_kernel_args *args)
{
    uint32_t kind = ((const sodet_binary_attr *)args->attr)->kind;
    const sodet_tensor *a = &args->in[0], *b = &args->in[1], *y = &args->out[0];
    int64_t n = sodet_elements(&y->shape);
    for (int64_t i = 0; i < n; i++) {
        int64_t ia = broadcast_element(&a->shape, &y->shape, i), ib = broadcast_element(&b->shape, &y->shape, i);
        if (y->shape.dtype == SODET_I32)
            ((int32_t *)y->data)[i] = int_value(kind, ((const int32_t *)a->data)[ia], ((const int32_t *)b->data)[ib]);
        else
            ((SODET_REAL *)y->data)[i] = real_value(kind, ((const SODET_REAL *)a->data)[ia], ((const SODET_REAL *)b->data)[ib]);
    }
}

const sodet_ref_kernel SODET_REF(binary)[] = {forward};
