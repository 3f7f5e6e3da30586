/* Kernels of plugins' own operators: from <name>.cuda.so beside the plugin (sodet/cuda.h). */
#include <string.h>

#include "core/plugin/part.h"
#include "plugins/backend/cuda/cuda.h"

/* The shortest tables there ever were: those of ABI 0.0. */
#define LEAST_PART   (offsetof(sodet_cuda_part, probe) + sizeof(void *))
#define LEAST_OP     (offsetof(sodet_cuda_op, kernel) + sizeof(void *))
#define LEAST_KERNEL (offsetof(sodet_cuda_kernel, launch) + sizeof(void *))

static const sd_desc_form form = {.symbol = "sodet_cuda_desc",
                                  .what = "kernels for CUDA",
                                  .macro = "SODET_CUDA_PLUGIN",
                                  .magic = SODET_CUDA_MAGIC,
                                  .least = LEAST_PART,
                                  .size = sizeof(sodet_cuda_part)};

static sodet_status check_tables(const sd_part *part, sodet_err *err)
{
    const sodet_cuda_part *d = part->desc;
    if (!d->plugin || strcmp(d->plugin, part->owner->desc.name) != 0)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: says that it belongs to the plugin %s; the names of both files and the two inside must agree", part->path,
                          d->plugin ? d->plugin : "(none)");
    if (!d->ops || !d->probe || d->op_size < LEAST_OP || d->kernel_size < LEAST_KERNEL)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: its sodet_cuda_desc is not whole; SODET_CUDA_PLUGIN(...) writes it", part->path);
    return SODET_OK;
}

static sodet_status find_op(const sd_part *part, const sodet_op *op, sodet_cuda_op *out, sodet_err *err)
{
    const sodet_cuda_part *d = part->desc;
    for (uint32_t i = 0; i < d->n_ops; i++) {
        *out = (sodet_cuda_op){0};
        if (!sd_copy_known(out, sizeof *out, (const char *)d->ops + (size_t)i * d->op_size, d->op_size))
            return SODET_FAIL(err, SODET_E_INVALID,
                              "%s: needs a newer sodet: row %u of its operators uses a field that this one does not know", part->path, i);
        if (!out->name || strcmp(out->name, op->name) != 0)
            continue;
        if (out->n_parts != op->n_parts || !out->kernel)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: has %u parts of operator %s, the plugin has %u; build both from the same sources",
                              part->path, out->kernel ? out->n_parts : 0, op->name, op->n_parts);
        return SODET_OK;
    }
    return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                      "%s: has no operator %s; add it to the table that SODET_CUDA_PLUGIN is given, or write devices = cpu", part->path,
                      op->name);
}

static sodet_status check_device(const cuda_device *d, const sd_part *part, sodet_err *err)
{
    const cudaError_t e = (cudaError_t)((const sodet_cuda_part *)part->desc)->probe();
    int major = 0, minor = 0;
    if (e == cudaSuccess)
        return SODET_OK;
    if (e != cudaErrorNoKernelImageForDevice && e != cudaErrorUnsupportedPtxVersion)
        return cuda_failed(e, part->path, err);
    cudaError_t asked = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d->index);
    if (asked == cudaSuccess)
        asked = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, d->index);
    if (asked != cudaSuccess)
        return cuda_failed(asked, "asking for the compute capability", err);
    return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                      "%s: has no code for device %d, of compute capability %d.%d (%s); build it with nvcc -arch=sm_%d%d "
                      "(CMAKE_CUDA_ARCHITECTURES=%d%d), or write devices = cpu",
                      part->path, d->index, major, minor, cudaGetErrorName(e), major, minor, major, minor);
}

sodet_status cuda_own_kernel(cuda_plan *p, const sodet_node *n, const sodet_cuda_kernel **out, sodet_err *err)
{
    const sd_part *part;
    sodet_cuda_op op;
    sodet_status s = sd_plugin_part(n->op, SODET_CUDA_NAME, "sodet/cuda.h", &form, &part, err);
    if (s == SODET_OK)
        s = check_tables(part, err);
    if (s == SODET_OK)
        s = find_op(part, n->op, &op, err);
    if (s == SODET_OK)
        s = check_device(p->device, part, err);
    if (s != SODET_OK)
        return s;
    const uint32_t size = ((const sodet_cuda_part *)part->desc)->kernel_size;
    sodet_cuda_kernel *k = sd_pool_alloc(&p->pool, sizeof *k);
    if (!k)
        return cuda_out_of_memory(err);
    if (n->part < op.n_parts && !sd_copy_known(k, sizeof *k, (const char *)op.kernel + (size_t)n->part * size, size))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: needs a newer sodet: part %u of operator %s uses a field that this one does not know",
                          part->path, n->part, n->op->name);
    if (n->part >= op.n_parts || !k->launch)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                          "%s: has no kernel for part %u of operator %s; devices = cpu runs what the plugin has for it", part->path,
                          n->part, n->op->name);
    *out = k;
    return SODET_OK;
}
