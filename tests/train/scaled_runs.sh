#!/usr/bin/env bash
# labels: big
# A factor on the loss that is a power of two changes no bit of a float32 run but in what the factor itself is: losses, norms and weights are
# those of the run without it. A run that is cut goes on with its factor.
. "$SODET_SOURCE/tests/cli/lib"
conf=$SODET_SOURCE/conf/tinyssd_shapes.ini
small="backbone.width=0.25 input.size=96x96 dataset.shapes_train.size=96 dataset.shapes_train.count=64 dataset.shapes_val.size=96 dataset.shapes_val.count=8 run.threads=1 data.workers=1 train.batch=8 train.log_every=1 data.val= schedule.total=3 optimizer.clip_norm=1"
numbers() { grep -o '"\(loss\|grad_norm\)": [^,}]*' "$1/metrics.jsonl"; }
weights() { tail -c 20000 "$1/last.safetensors"; }
run train "$conf" $small run.output=none; is_code 0
checks=$((checks + 1)); ! grep -q loss_scale none/metrics.jsonl || bad "a run without a factor names one"
run train "$conf" $small run.output=static optimizer.loss_scaling=static optimizer.loss_scale=4096; is_code 0
checks=$((checks + 2))
[ "$(numbers none)" = "$(numbers static)" ] || bad "a factor of 4096 changes losses or norms"
cmp -s <(weights none) <(weights static) || bad "a factor of 4096 changes weights"
run train "$conf" $small run.output=dynamic optimizer.loss_scaling=dynamic optimizer.loss_scale=256 optimizer.loss_scale_window=5 optimizer.accumulate=2 schedule.total=6; is_code 0
run train "$conf" $small run.output=plain optimizer.accumulate=2 schedule.total=6; is_code 0
checks=$((checks + 2))
[ "$(numbers plain)" = "$(numbers dynamic)" ] || bad "a growing factor changes losses or norms"
[ "$(grep -o '"loss_scale": [^,]*' dynamic/metrics.jsonl | tail -1)" = '"loss_scale": 4096' ] || bad "24 steps, a window of 5: the factor should be 4096: $(tail -1 dynamic/metrics.jsonl)"
run train "$conf" $small run.output=cut optimizer.loss_scaling=dynamic optimizer.loss_scale=256 optimizer.loss_scale_window=5 optimizer.accumulate=2 schedule.total=6 --max-steps 7; is_code 0
run train "$conf" $small run.output=cut optimizer.loss_scaling=dynamic optimizer.loss_scale=256 optimizer.loss_scale_window=5 optimizer.accumulate=2 schedule.total=6 --resume cut; is_code 0
checks=$((checks + 1)); cmp -s <(weights cut) <(weights dynamic) || bad "a resumed run ends elsewhere"
finish 12
