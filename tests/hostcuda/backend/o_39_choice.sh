#!/usr/bin/env bash
# labels: big
# O-39: which GPUs: indices that are wrong are refused before anything is made; those that are right are used, in their order.
. "$SODET_SOURCE/tests/hostcuda/backend/lib"
for wrong in "0,0|named twice" "7|no device 7" "0,|nothing behind" "a|no index" "-1|no index" "|nothing behind the colon"; do
    run train "$ini" $quarter "run.devices=cuda_host:${wrong%|*}" run.output=o39; is_code 2; err_has "${wrong#*|}"
done
checks=$((checks + 1)); [ ! -e o39 ] || bad "a run that names no device has left a folder"
run train "$ini" $quarter "run.devices=cuda_host:3, 1" run.output=o39 --max-steps 1; is_code 0; err_has "cuda_host:3"
finish 15
