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
finish 10
