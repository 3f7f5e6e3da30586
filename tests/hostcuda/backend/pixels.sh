#!/usr/bin/env bash
# labels: big
# [data] pixels = device in whole runs: it learns as with pixels of the host, on virtual GPUs, the CPU and the reference, in 16 bits; the
# same losses for any number of workers, and from a checkpoint; evaluation; a chain that the device cannot do is refused, and by whom.
. "$SODET_SOURCE/tests/cli/lib"
ini=$SODET_SOURCE/conf/tinyssd_shapes.ini
# Pictures of 80 pixels, so that there is something to resize; the second chain is SSD's.
quarter="input.size=64x64 backbone.width=0.25 dataset.shapes_train.size=80 dataset.shapes_train.count=40 dataset.shapes_val.size=72 dataset.shapes_val.count=16 train.batch=8 train.log_every=1 data.val= data.workers=1 run.threads=1"
losses() { grep -o '"loss": [^,}]*' "$1/metrics.jsonl" | sed 's/.*: //'; }
near() { # two runs, allowed share of the loss in each step, number of steps
    checks=$((checks + 1))
    paste <(losses "$1") <(losses "$2") | head -n "$4" | awk -v most="$3" -v least="$4" '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (!(d <= most)) bad = 1; n++ } END { exit bad || n < least }' ||
        bad "losses of $1 and $2 differ by more than $3: $(paste <(losses "$1") <(losses "$2") | tr '\n' ';')"
}
equal() { # two runs
    checks=$((checks + 1))
    [ -n "$(losses "$1")" ] && [ "$(losses "$1")" = "$(losses "$2")" ] || bad "losses of $1 and $2 are not the same: $(paste <(losses "$1") <(losses "$2") | tr '\n' ';')"
}
ssd="transform.train=photometric,expand,ssd_crop,hflip,resize transform.expand.plugin=expand transform.ssd_crop.plugin=ssd_crop"

# ---- what is refused ----
run train "$ini" $quarter transform.photometric.centre=mean data.pixels=device run.devices=cuda_host run.output=refused --max-steps 1
is_code 2; err_has "transform photometric: it looks at the pixels, which [data] pixels = device does not do for it; set pixels = host"
run train "$ini" $quarter data.val=shapes_val "transform.val=resize,again" transform.again.plugin=resize transform.again.size=32x32 data.pixels=device run.devices=cuda_host run.output=refused --max-steps 1
is_code 2; err_has "transform again: it resizes a second time"
checks=$((checks + 1)); [ ! -e refused ] || bad "a run that was refused has left a folder"

# ---- the same steps ----
run train "$ini" $quarter run.devices=cpu run.output=host --max-steps 6; is_code 0
checks=$((checks + 1)); [[ $err != *"pixels: made on"* ]] || bad "pixels of the host are said to be the device's"
for device in cpu ref cuda_host cuda_host:0,1,2; do
    steps=6; [ "$device" != ref ] || steps=2
    run train "$ini" $quarter "run.devices=$device" data.pixels=device "run.output=on-$device" --max-steps $steps; is_code 0
    err_has "pixels: made on the device, which has 0.1 MiB for pictures of a batch, each of 0.02 MiB at most"
    near host "on-$device" 1e-3 $steps
done
run train "$ini" $quarter $ssd run.devices=cpu run.output=ssd-host --max-steps 8; is_code 0
run train "$ini" $quarter $ssd run.devices=cuda_host:0,1 data.pixels=device run.output=ssd --max-steps 8; is_code 0
near ssd-host ssd 1e-3 8
run train "$ini" $quarter $ssd run.devices=cuda_host data.pixels=device run.precision=bf16 run.output=bf16 --max-steps 4; is_code 0
near ssd-host bf16 0.05 4

# ---- workers, resuming ----
run train "$ini" $quarter $ssd run.devices=cuda_host:0,1 data.pixels=device data.workers=3 run.output=workers --max-steps 8; is_code 0
equal ssd workers
run train "$ini" $quarter $ssd run.devices=cuda_host:0,1 data.pixels=device run.output=cut --max-steps 5; is_code 0
run train "$ini" $quarter $ssd run.devices=cuda_host:0,1 data.pixels=device run.output=cut --resume cut --max-steps 8; is_code 0
equal ssd cut
run train "$ini" $quarter $ssd run.devices=cpu data.pixels=host run.output=other --resume cut --max-steps 9; is_code 0
err_has "data.pixels = host (was device)"

# ---- three pictures and four devices; evaluation and detection with the run's configuration ----
run train "$ini" $quarter dataset.shapes_train.count=3 run.devices=cuda_host:0,1,2,3 data.pixels=device run.output=few --max-steps 2; is_code 0
run train "$ini" $quarter dataset.shapes_train.count=3 run.devices=cpu run.output=few-host --max-steps 2; is_code 0
near few-host few 1e-3 2
map() { grep -o '"mAP": [^,}]*' <<<"$out" | sed 's/.*: //'; }
run eval on-cpu/last.safetensors data.val=shapes_val data.pixels=host run.devices=cpu --json; is_code 0; want=$(map)
run eval on-cpu/last.safetensors data.val=shapes_val run.devices=cuda_host --json; is_code 0
checks=$((checks + 1)); awk -v a="$(map)" -v b="$want" 'BEGIN { exit !(a > 0 && b > 0 && a - b < 1e-3 && b - a < 1e-3) }' || bad "evaluated with pixels of the device: $(map), of the host: $want"

finish 37
