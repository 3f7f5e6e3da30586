#!/usr/bin/env bash
# Several devices: with statistics of their own (train.norm=local) what is evaluated while they train is what the checkpoint finds, on any
# number of devices, and a run that is cut goes on with the same figures. Their weights are compared once for all files of a step.
. "$SODET_SOURCE/tests/cli/lib"
ini=$SODET_SOURCE/conf/tinyssd_shapes.ini
tiny="run.threads=1 run.devices=cpu:x3 backbone.width=0.125 input.size=64x64 dataset.shapes_train.count=18 dataset.shapes_train.size=64 dataset.shapes_val.count=30 dataset.shapes_val.size=64
    data.workers=1 transform.train=resize train.batch=6 train.log_every=1 checkpoint.every=0 schedule.total=4 schedule.warmup=none"
found() { grep -o '"voc/mAP": [^,}]*' "$1/metrics.jsonl" | sed 's/.*: //'; }
run train "$ini" $tiny train.norm=local run.output=local; is_code 0
checks=$((checks + 1)); [ "$(found local | sort -u | wc -l)" -gt 2 ] || bad "figures that say nothing: $(found local)"
for devices in cpu cpu:x3; do
    run eval local/last.safetensors data.val=shapes_val run.devices=$devices --json; is_code 0
    checks=$((checks + 1)); [ "$(grep -o '"mAP": [^,}]*' <<<"$out" | sed 's/.*: //')" = "$(found local | tail -n 1)" ] || bad "$devices finds otherwise than the run did, $(found local | tail -n 1)"
done
for steps in 4 6 11 12; do
    run train "$ini" $tiny train.norm=local run.output=cut --max-steps $steps $([ $steps = 4 ] || echo --resume cut); is_code 0
done
checks=$((checks + 1)); [ "$(grep -o '"state/best":[^,}]*' <(head -c 8000 local/last.safetensors | tr -d '\0'))" = "$(grep -o '"state/best":[^,}]*' <(head -c 8000 cut/last.safetensors | tr -d '\0'))" ] || bad "cut and resumed, another best figure: $(found local) and $(found cut)"
# At the start, and at the end of each of two epochs, the first of which is the best so far.
run train "$ini" $tiny run.output=compared schedule.total=2 checkpoint.every=1 --verbose; is_code 0
checks=$((checks + 2))
[ -s compared/best.safetensors ] || bad "no best.safetensors"
[ "$(grep -c 'comparing the weights of 3 devices' <<<"$err")" -eq 3 ] || bad "the devices were compared $(grep -c 'comparing the weights' <<<"$err") times, not 3"
finish 14
