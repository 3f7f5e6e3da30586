#!/usr/bin/env bash
# labels: big
# O-35: what was trained on a GPU goes on without one: evaluated and resumed on the CPU; asking for the GPU that is not there is refused.
# (The real libraries without a driver: tests/cuda/o_35_no_gpu.sh.)
. "$SODET_SOURCE/tests/hostcuda/backend/lib"
run train "$ini" $quarter run.devices=cuda_host run.output=gpu --max-steps 2; is_code 0
run eval gpu/last.safetensors data.val=shapes_val run.devices=cuda_host --json; is_code 0
with=$(map_of)
export HC_DEVICES=0
run train "$ini" $quarter run.devices=cuda_host run.output=none; is_code 2; err_has "devices = cpu"
run eval gpu/last.safetensors data.val=shapes_val run.devices=cpu --json; is_code 0
same_map "$with"
run train "$ini" $quarter run.devices=cpu run.output=gpu --resume gpu --max-steps 3; is_code 0
run doctor; out_has "cuda_host"
finish 8
