#!/usr/bin/env bash
# labels: big
# [backend.cuda] deterministic = yes: two runs leave the same bytes, and the log says what it costs.
. "$SODET_SOURCE/tests/hostcuda/backend/lib"
for name in a b; do
    run train "$ini" $quarter run.devices=cuda_host:0,1 backend.cuda_host.deterministic=yes "run.output=$name" --max-steps 3; is_code 0
    err_has "deterministic = yes: of "; err_has "take a later engine of cuDNN than its first choice"
done
checks=$((checks + 2))
[[ $err =~ gradients,\ ([0-9]+)\ take ]] && [ "${BASH_REMATCH[1]}" -gt 0 ] || bad "no convolution takes another engine"
[ "$(losses a)" = "$(losses b)" ] && cmp a/last.safetensors b/last.safetensors || bad "two runs differ"
run train "$ini" $quarter run.devices=cuda_host run.output=c --max-steps 1; is_code 0
checks=$((checks + 1)); [[ $err != *deterministic* ]] || bad "it is said though nobody asked"
# What it costs is measured: engine 70 stands in for 20, whichever of them is slow.
one=(run.devices=cuda_host backend.cuda_host.deterministic=yes --max-steps 1)
costs() { # engine that is slow, what of the two times awk must find true
    HC_CUDNN_SLOW=$1:8 run train "$ini" $quarter "${one[@]}" "run.output=slow$1"; is_code 0
    checks=$((checks + 1))
    [[ $err =~ "which takes "([0-9.]+)" ms where the first choice takes "([0-9.]+) ]] &&
        awk -v taken="${BASH_REMATCH[1]}" -v first="${BASH_REMATCH[2]}" "BEGIN { exit !($2) }" || bad "with engine $1 slow, not $2: $err"
}
costs 70 "taken > 3 * first"
costs 20 "taken < first / 3"
HC_FAIL=cudaMalloc:8 run train "$ini" $quarter "${one[@]}" run.output=full; is_code 0; err_has "which may be slower: there was no room on the device to measure it"
HC_FAIL=cudnnBackendExecute:1 run train "$ini" $quarter "${one[@]}" run.output=fails; is_code 2; err_has "deterministic: what it costs"
finish 18
