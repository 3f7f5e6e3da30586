#!/usr/bin/env bash
# A plugin's own operator on GPUs: neck/swish (tests/api/example/swish) trains on two virtual GPUs as on the CPU, evaluates and resumes; and
# every file beside a plugin that is not what it should be is refused in a sentence, before any of its code runs where that can be told.
. "$SODET_SOURCE/tests/hostcuda/backend/lib"
made=$SODET_BUILD/tests/plugins
net="$quarter neck.plugin=swish"
run train "$ini" $net run.devices=cpu run.output=cpu --max-steps 2; is_code 0
run train "$ini" $net run.devices=cuda_host:0,1 run.output=two --max-steps 2; is_code 0
near cpu two 1e-5 2
run train "$ini" $net run.devices=cuda_host:0,1 run.output=half run.precision=bf16 --max-steps 2; is_code 0
near cpu half 1e-2 2
run train "$ini" $net run.devices=cuda_host:1 run.output=two --resume two --max-steps 3; is_code 0
run eval two/last.safetensors data.val=shapes_val run.devices=cuda_host --json; is_code 0
with=$(map_of)
run eval two/last.safetensors data.val=shapes_val run.devices=cpu --json; is_code 0
same_map "$with"

# What it was built for is not this device: the file's own probe, in the right device's context.
HC_FAIL=cudaFuncGetAttributes:1:209 run summary "$ini" $net run.devices=cuda_host
refused "neck/level0: " "swish.cuda_host.so: has no code for device 0, of compute capability 9.0 (cudaErrorNoKernelImageForDevice)" \
    "nvcc -arch=sm_90 (CMAKE_CUDA_ARCHITECTURES=90), or write devices = cpu"
HC_FAIL=cudaFuncGetAttributes:1:3 run summary "$ini" $net run.devices=cuda_host
refused "swish.cuda_host.so: initialization error (cudaErrorInitializationError)"

# A folder of its own for each case: the plugin, and beside it what `cc` makes of the fixture with these definitions.
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$SODET_BUILD/CMakeCache.txt")
number=0
folder() {
    number=$((number + 1))
    mkdir -p "$work/case$number/neck"
    cp "$made/neck/swish.so" "$work/case$number/neck/"
    beside=$work/case$number/neck/swish.cuda_host.so
}
look() { SODET_PLUGIN_PATH=$work/case$number:$SODET_PLUGIN_PATH OWN_TRACE=$work/trace run summary "$ini" $net run.devices=cuda_host; }
fixture() { # definitions
    rm -f "$work/trace"
    folder
    "$compiler" -std=c11 -Wall -Wextra -Werror -shared -fPIC -I"$SODET_SOURCE/include" "$@" -o "$beside" \
        "$SODET_SOURCE/tests/hostcuda/backend/own_fixture.c" 2>log || { cat log; exit 1; }
    look
}
ran() { checks=$((checks + 1)); [ -e "$work/trace" ] || bad "its code should have run"; }
ran_not() { checks=$((checks + 1)); [ ! -e "$work/trace" ] || bad "its code ran before it was refused"; }

folder # nothing beside the plugin; that of another folder, or of the working directory, is not taken
mkdir -p neck
cp "$made/neck/swish.cuda_host.so" neck/
cp "$made/neck/swish.cuda_host.so" .
look
refused "neck/level0: operator swish of the plugin neck/swish has no kernels for the backend cuda_host: there is no file $beside" \
    "build it (sodet/cuda.h), or write devices = cpu"
SODET_PLUGIN_PATH=$work/case$number:$SODET_PLUGIN_PATH run summary "$ini" $net run.devices=cpu; is_code 0
ln -s "$made/neck/swish.cuda_host.so" "$beside" # a link that stands there is what somebody put there
look; is_code 0
folder
echo "no library" >"$beside"
look
refused "$beside: " "shared object"
fixture -DCASE_SYMBOL=another; refused "$beside: " "sodet_cuda_desc"; ran_not
fixture -DCASE_MAGIC=0x12345678; refused "$beside: its sodet_cuda_desc begins with 0x12345678, not with 0x43444f53: not a descriptor of kernels for CUDA"; ran_not
fixture -DCASE_MAJOR=7; refused "$beside: built for plugin ABI 7.0, this sodet (" "build the plugin again against its headers"; ran_not
fixture -DCASE_SIZE=40; refused "$beside: its descriptor says 40 bytes" "use SODET_CUDA_PLUGIN(...)"; ran_not
fixture -DCASE_UNDEFINED; refused "$beside: needs a newer sodet: it calls sodet_of_tomorrow"
fixture -DCASE_NEWER_PART; refused "$beside: needs a newer sodet: it was built for ABI" "part of its sodet_cuda_desc"; ran
fixture -DCASE_NEWER_OP; refused "$beside: needs a newer sodet: row 0 of its operators"
fixture -DCASE_NEWER_KERNEL; refused "$beside: needs a newer sodet: part 0 of operator swish"
fixture -DCASE_PLUGIN='"relu"'; refused "$beside: says that it belongs to the plugin relu" "must agree"
fixture -DCASE_STRIDE=8; refused "$beside: its sodet_cuda_desc is not whole"
fixture -DCASE_OP='"gelu"'; refused "$beside: has no operator swish; add it to the table" "devices = cpu"
fixture -DCASE_PARTS=2; refused "$beside: has 2 parts of operator swish, the plugin has 3; build both from the same sources"
fixture -DCASE_NO_GRADIENT; refused "$beside: has no kernel for part 2 of operator swish; devices = cpu"
fixture -DCASE_PROBE=222; refused "$beside: has no code for device 0, of compute capability 9.0"
fixture; is_code 0 # newer and longer, but nothing of that is used
ran
# Known by its path, the plugin is looked for beside that.
run summary "$ini" $quarter neck.plugin="$made/neck/swish.so" run.devices=cuda_host; is_code 0
cp "$made/neck/swish.so" alone.so
run summary "$ini" $quarter neck.plugin=./alone.so run.devices=cuda_host; refused "calls itself swish"
finish 75
