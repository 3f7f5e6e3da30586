#!/usr/bin/env bash
# O-35: a machine without a GPU. The program and its core know nothing of NVIDIA's libraries; asking for a GPU that is not there, or whose
# driver, cuDNN or NCCL cannot be used, is one sentence and exit code 2. SODET_CUDA_STUBS: the toolkit's folder with a driver that only
# pretends (tests that need it are left out if it is not there).
. "$SODET_SOURCE/tests/cli/lib"
unset CUDA_VISIBLE_DEVICES
ini=$SODET_SOURCE/conf/tinyssd_shapes.ini
small="backbone.width=0.1 input.size=64x64 dataset.shapes_train.count=8 dataset.shapes_val.count=2 train.batch=4 schedule.total=1 checkpoint.keep=1"

checks=$((checks + 1))
line="ldd"
! ldd "$sodet" "$(dirname "$sodet")/../lib/libsodet.so" | grep -iE 'cuda|cudnn|nccl|cublas|nvrtc' || bad "the program or its core is linked to NVIDIA's libraries"

run --version; is_code 0; out_has "(backend cuda)"; out_has "cuDNN 9."
# CPU runs load none of them.
LD_DEBUG=libs LD_DEBUG_OUTPUT=$work/loaded run train "$ini" $small run.output=cpu; is_code 0
checks=$((checks + 1)); ! cat loaded.* | grep -qE 'libcuda|libcudnn|libnccl' || bad "a run on the CPU looked for NVIDIA's libraries"

if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then
    skip "there is a GPU" 4
else
    run train "$ini" $small --gpus 0 run.output=gpu; is_code 2; err_has "no usable CUDA device"; err_has "devices = cpu"
    checks=$((checks + 1)); [ ! -e gpu ] || bad "a run that cannot be has left a folder"
    run eval cpu/last.safetensors run.devices=cuda:all; is_code 2; err_has "no usable CUDA device"
fi
if [ -e "${SODET_CUDA_STUBS:-}/libcuda.so" ]; then
    mkdir stub && ln -s "$SODET_CUDA_STUBS/libcuda.so" stub/libcuda.so.1
    LD_LIBRARY_PATH=$work/stub run train "$ini" $small --gpus 0 run.output=gpu; is_code 2; err_has "stub"; err_has "devices = cpu"
else
    skip "no stub of a driver" 3
fi

# cuDNN of no use: not one, and one without what is needed.
mkdir broken old && : >broken/libcudnn.so.9
LD_LIBRARY_PATH=$work/broken run train "$ini" $small --gpus 0 run.output=gpu; is_code 2; err_has "libcudnn.so.9"
if command -v cc >/dev/null && echo 'int nothing;' >old.c && cc -shared -fPIC -o old/libcudnn.so.9 old.c 2>/dev/null; then
    LD_LIBRARY_PATH=$work/old run train "$ini" $small --gpus 0 run.output=gpu; is_code 2; err_has "cudnn"; err_has "another release"
else
    skip "no compiler" 3
fi
finish 19
