#!/usr/bin/env bash
# labels: big
# Whole runs on virtual GPUs (tests/hostcuda): recipes learn, 16 bits recover from an overflow, a run goes on with another number of
# devices, a checkpoint is the same for every backend; which devices may be named (O-39); what running out of memory says (O-40); the last
# batch that is smaller than the number of devices (O-36); a device without objects (O-37).
. "$SODET_SOURCE/tests/cli/lib"
conf=$SODET_SOURCE/conf
tiny="input.size=64x64 dataset.shapes_train.size=64 dataset.shapes_train.count=64 dataset.shapes_val.size=64 dataset.shapes_val.count=16 train.batch=8 train.log_every=1 data.val= data.workers=1 run.threads=1"
losses() { grep -o '"loss": [^,}]*' "$1/metrics.jsonl" | sed 's/.*: //'; }
near() { # two runs, allowed share of the loss in each step, number of steps
    checks=$((checks + 1))
    paste <(losses "$1") <(losses "$2") | head -n "$4" | awk -v most="$3" -v least="$4" '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (!(d <= most)) bad = 1; n++ } END { exit bad || n < least }' ||
        bad "losses of $1 and $2 differ by more than $3: $(paste <(losses "$1") <(losses "$2") | tr '\n' ';')"
}
ini=$conf/tinyssd_shapes.ini
quarter="$tiny backbone.width=0.25"

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
on_cpu=$(grep -o '"mAP": [^,}]*' <<<"$out")
run eval cut/last.safetensors data.val=shapes_val run.devices=cuda_host:0,1,2 --json; is_code 0
checks=$((checks + 1)); [ -n "$on_cpu" ] && [ "$on_cpu" = "$(grep -o '"mAP": [^,}]*' <<<"$out")" ] || bad "cpu and cuda_host evaluate the same weights otherwise: $on_cpu"

# ---- O-36, O-37: three pictures and four devices; pictures without objects ----
run train "$ini" $quarter dataset.shapes_train.count=3 run.devices=cuda_host:0,1,2,3 run.output=o36 --max-steps 3; is_code 0
run train "$ini" $quarter dataset.shapes_train.count=3 run.devices=cpu run.output=o36-cpu --max-steps 3; is_code 0
near o36-cpu o36 1e-3 3
run train "$ini" $quarter "data.classes=circle" data.unknown_class=skip train.batch=2 run.devices=cuda_host:0,1 run.timeout=60 run.output=o37 --max-steps 12; is_code 0

# ---- O-39: which devices ----
for wrong in "0,0|named twice" "7|no device 7" "0,|nothing behind" "a|no index" "-1|no index" "|nothing behind the colon"; do
    run train "$ini" $quarter "run.devices=cuda_host:${wrong%|*}" run.output=o39; is_code 2; err_has "${wrong#*|}"
done
checks=$((checks + 1)); [ ! -e o39 ] || bad "a run that names no device has left a folder"
run train "$ini" $quarter "run.devices=cuda_host:3, 1" run.output=o39 --max-steps 1; is_code 0; err_has "cuda_host:3"
HC_DEVICES=0 run train "$ini" $quarter run.devices=cuda_host run.output=none; is_code 2; err_has "devices = cpu"

# ---- O-40: out of memory ----
HC_MEM_MB=120 run train "$ini" $quarter input.size=256x256 backbone.width=1 train.batch=64 run.devices=cuda_host run.output=o40
is_code 2; err_has "MiB free"; err_has "train.batch ="
fits=$(grep -o 'train.batch = [0-9]* fits' <<<"$err" | grep -o '[0-9]*')
checks=$((checks + 1)); [ -n "$fits" ] && [ "$fits" -lt 64 ] || bad "no batch is said to fit"
HC_MEM_MB=120 run train "$ini" $quarter input.size=256x256 backbone.width=1 train.batch="${fits:-1}" run.devices=cuda_host run.output=o40 --max-steps 1; is_code 0
finish 59
