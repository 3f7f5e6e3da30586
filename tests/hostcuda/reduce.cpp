// Reductions over ranks. Their order is that of the ranks, so that every rank has the same bits: sums of real numbers are made in double
// and rounded once, as the CPU's group does (core/device/host_group.h).
#include "room.h"

#include <cmath>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nccl.h>

namespace
{

template <class T> struct as_number {
    using wide = std::conditional_t<std::is_floating_point_v<T>, double, T>;
    static wide read(T v)
    {
        return v;
    }
    static T write(wide v)
    {
        return static_cast<T>(v);
    }
};
template <> struct as_number<__half> {
    using wide = double;
    static double read(__half v)
    {
        return static_cast<double>(__half2float(v));
    }
    static __half write(double v)
    {
        return __double2half(v);
    }
};
template <> struct as_number<__nv_bfloat16> {
    using wide = double;
    static double read(__nv_bfloat16 v)
    {
        return static_cast<double>(__bfloat162float(v));
    }
    static __nv_bfloat16 write(double v)
    {
        return __double2bfloat16(v);
    }
};

template <class W> W combine(int op, W a, W b)
{
    if constexpr (std::is_integral_v<W>) {
        using bits = std::make_unsigned_t<W>; // sums wrap
        return op == ncclSum                ? static_cast<W>(static_cast<bits>(static_cast<bits>(a) + static_cast<bits>(b)))
               : (op == ncclMax) == (a > b) ? a
                                            : b;
    } else {
        return op == ncclSum ? a + b : op == ncclMax ? std::fmax(a, b) : std::fmin(a, b);
    }
}

template <class T> void reduce(int op, int ranks, const void *const *in, void *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        auto sum = as_number<T>::read(static_cast<const T *>(in[0])[i]);
        for (int r = 1; r < ranks; r++)
            sum = combine(op, sum, as_number<T>::read(static_cast<const T *>(in[r])[i]));
        static_cast<T *>(out)[i] = as_number<T>::write(sum);
    }
}

} // namespace

size_t hc_type_size(int type)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
        return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
        return 8;
    default:
        return 0;
    }
}

bool hc_reduce(int type, int op, int ranks, const void *const *in, void *out, size_t n)
{
    if (op != ncclSum && op != ncclMax && op != ncclMin)
        return false;
    switch (type) {
    case ncclInt8:
        reduce<int8_t>(op, ranks, in, out, n);
        return true;
    case ncclUint8:
        reduce<uint8_t>(op, ranks, in, out, n);
        return true;
    case ncclInt32:
        reduce<int32_t>(op, ranks, in, out, n);
        return true;
    case ncclUint32:
        reduce<uint32_t>(op, ranks, in, out, n);
        return true;
    case ncclInt64:
        reduce<int64_t>(op, ranks, in, out, n);
        return true;
    case ncclUint64:
        reduce<uint64_t>(op, ranks, in, out, n);
        return true;
    case ncclFloat16:
        reduce<__half>(op, ranks, in, out, n);
        return true;
    case ncclBfloat16:
        reduce<__nv_bfloat16>(op, ranks, in, out, n);
        return true;
    case ncclFloat32:
        reduce<float>(op, ranks, in, out, n);
        return true;
    case ncclFloat64:
        reduce<double>(op, ranks, in, out, n);
        return true;
    default:
        return false;
    }
}
