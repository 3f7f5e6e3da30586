#!/usr/bin/env bash
# Evaluation is spread over all devices of [run] devices: however many there are and however the rest of a batch falls to them, what is found
# is the same, in `sodet eval` and in the evaluations of a training run: on the reference backend to the last bit; cpu takes its algorithms
# by the size of a device's share, as it does for another val_batch, so there the figures agree and the last bits may not.
. "$SODET_SOURCE/tests/cli/lib"
small="backbone.width=0.25 input.size=64x64 dataset.shapes_train.size=64 dataset.shapes_train.count=24 dataset.shapes_val.size=64 dataset.shapes_val.count=13 train.batch=6 train.val_batch=5 data.workers=1 run.threads=1"
figure() { grep -o "\"$1\": [^,}]*" | tail -n 1 | sed 's/.*: //'; }
near() { # what, figure, figure
    checks=$((checks + 1))
    awk "BEGIN { exit !($2 > 0 && ($2 - $3) ^ 2 < 1e-8) }" || bad "$1: mAP $2 and $3"
}
run train "$SODET_SOURCE/conf/tinyssd_shapes.ini" $small run.devices=cpu:x3 run.output=run --max-steps 12; is_code 0
trained=$(figure voc/mAP <run/metrics.jsonl)
for devices in ref ref:x2 ref:x4 ref:x7; do # seven: some have no picture of a batch
    run eval run/last.safetensors run.devices=$devices --detections-out $devices.json --json; is_code 0
    checks=$((checks + 1)); cmp -s ref.json $devices.json || bad "$devices finds something else than ref"
    near "$devices and the run on cpu:x3" "$(figure mAP <<<"$out")" "$trained"
done
for devices in cpu cpu:x2 cpu:x7; do
    run eval run/last.safetensors run.devices=$devices --json; is_code 0
    near "$devices and the run on cpu:x3" "$(figure mAP <<<"$out")" "$trained"
done
checks=$((checks + 1)); [ "$(grep -o '"image_id"' ref.json | wc -l)" -gt 20 ] || bad "too few detections to compare"
finish 19
