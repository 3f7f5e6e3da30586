#!/usr/bin/env bash
# labels: big
# Whole runs on virtual GPUs (tests/hostcuda): recipes learn, 16 bits recover from an overflow, a run goes on with another number of
# devices, a checkpoint is the same for every backend.
. "$SODET_SOURCE/tests/hostcuda/backend/lib"

# ---- the seed's recipes ----
run train "$ini" $quarter run.devices=cpu run.output=cpu --max-steps 24; is_code 0
run train "$ini" $quarter run.devices=cuda_host run.output=one --max-steps 24; is_code 0
run train "$ini" $quarter run.devices=cuda_host:0,1,2,3 run.output=four --max-steps 24; is_code 0
near cpu one 1e-3 12 # by the end a ReLU gate or two is set otherwise
near cpu one 2e-2 24
near cpu four 2e-2 24
err_has "devices: cuda_host:0 replica 0"; err_has "cuda_host:3 replica 3"; err_has "efficiency 0."; err_has "waiting for the slowest"
grep -q '"step": 24, .*"devices": \[{"name": "cuda_host:0 replica 0", .*"efficiency": 0\.[0-9]*, "reduction_exposed"' four/metrics.jsonl || bad "no figures of the devices: $(tail -n 1 four/metrics.jsonl)"
checks=$((checks + 1)); [ "$(awk 'NR == 1 { a = $1 } { b = $1 } END { print (b < 0.75 * a) }' <(losses four))" = 1 ] || bad "nothing was learned: $(losses four | tr '\n' ' ')"
pair() { # name, virtual GPUs, arguments
    local name=$1 gpus=$2
    shift 2
    run train "$@" run.devices=cpu run.output="$name-cpu" --max-steps 4; is_code 0
    run train "$@" "run.devices=cuda_host:$gpus" run.output="$name-gpu" --max-steps 4; is_code 0
    near "$name-cpu" "$name-gpu" 1e-3 4
}
pair retinanet 0,1 "$conf/retinanet_r18_fpn_shapes.ini" $tiny backbone.width=0.25 neck.width=0.125 head.width=0.125
# Dropout draws by the place in the device's batch: one device has the CPU's masks.
pair ssd300 0 "$conf/ssd300_vgg16_voc.ini" data.train=drawn dataset.drawn.plugin=shapes dataset.drawn.count=8 "data.classes=triangle, cross, diamond, star, ring, circle" backbone.width=0.125 neck.width=0.125 train.batch=2 train.log_every=1 data.val= data.workers=1 run.threads=1 optimizer.lr=1e-4

# ---- 16 bits ----
run train "$ini" $quarter run.devices=cuda_host run.precision=bf16 run.output=bf16 --max-steps 12; is_code 0
near cpu bf16 0.05 12
run train "$ini" $quarter run.devices=cuda_host:0,1 run.precision=fp16 optimizer.loss_scale=1e7 run.output=fp16 --max-steps 24; is_code 0
err_has "was skipped: a gradient overflowed with loss_scale 1e+07"
checks=$((checks + 1)); [ "$(awk 'NR == 1 { a = $1 } { b = $1 } END { print (b < 0.9 * a) }' <(losses fp16))" = 1 ] || bad "fp16 did not recover: $(losses fp16 | tr '\n' ' ')"
run train "$ini" $quarter run.devices=cuda_host run.precision=fp16 optimizer.loss_scaling=static optimizer.loss_scale=1e8 optimizer.loss_scale_skips=4 run.output=never --max-steps 24
is_code 1; err_has "4 steps in a row were skipped"; err_has "loss_scaling = dynamic"
checks=$((checks + 1)); [ -s never/last.safetensors ] || bad "no checkpoint is left of a run whose gradients overflow"

# ---- resuming with another number of devices, and on another backend ----
run train "$ini" $quarter run.devices=cuda_host:0,1 run.output=cut --max-steps 12; is_code 0
run train "$ini" $quarter run.devices=cuda_host:0,1,2,3 run.output=cut --resume cut --max-steps 18; is_code 0
run train "$ini" $quarter run.devices=cpu run.output=cut --resume cut --max-steps 24; is_code 0
near four cut 2e-2 24
run eval cut/last.safetensors data.val=shapes_val run.devices=cpu --json; is_code 0
on_cpu=$(map_of)
run eval cut/last.safetensors data.val=shapes_val run.devices=cuda_host:0,1,2 --json; is_code 0
same_map "$on_cpu"
finish 33
