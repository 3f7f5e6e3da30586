#!/usr/bin/env bash
# labels: big
# O-40: out of memory: the message has the numbers, and a batch that does fit.
. "$SODET_SOURCE/tests/hostcuda/backend/lib"
HC_MEM_MB=120 run train "$ini" $quarter input.size=256x256 backbone.width=1 train.batch=64 run.devices=cuda_host run.output=o40
is_code 2; err_has "MiB free"; err_has "train.batch ="
fits=$(grep -o 'train.batch = [0-9]* fits' <<<"$err" | grep -o '[0-9]*')
checks=$((checks + 1)); [ -n "$fits" ] && [ "$fits" -lt 64 ] || bad "no batch is said to fit"
HC_MEM_MB=120 run train "$ini" $quarter input.size=256x256 backbone.width=1 train.batch="${fits:-1}" run.devices=cuda_host run.output=o40 --max-steps 1; is_code 0
finish 5
