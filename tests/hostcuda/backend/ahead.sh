#!/usr/bin/env bash
# labels: big
# A step is begun on the devices before the host knows what became of the one before it. Whether it looks in between (a checkpoint after every
# step makes it look) changes no bit: not of losses, weights and running statistics, not where steps are skipped for an overflow. A step that
# is not finite changes nothing, though another one was begun behind it, and its pictures and its layer are named.
. "$SODET_SOURCE/tests/cli/lib"
ini=$SODET_SOURCE/conf/tinyssd_shapes.ini
tiny="run.threads=1 backbone.width=0.125 input.size=64x64 dataset.shapes_train.count=8 dataset.shapes_train.size=64 data.val= data.workers=1 transform.train=resize train.batch=4 train.log_every=1 checkpoint.every=0"
tensors() { tail -c +$((9 + $(od -An -t u8 -N 8 "$1/last.safetensors"))) "$1/last.safetensors"; }
numbers() { grep -o '"\(loss\|grad_norm\|loss_scale\|skipped\)": [^,}]*' "$1/metrics.jsonl"; }
same() { # two runs
    checks=$((checks + 2))
    [ "$(numbers "$1")" = "$(numbers "$2")" ] || bad "$1 and $2: other numbers: $(diff <(numbers "$1") <(numbers "$2"))"
    cmp -s <(tensors "$1") <(tensors "$2") || bad "$1 and $2: other weights or statistics"
}
for what in "fp32 run.devices=cuda_host:0,1" "fp16 run.devices=cuda_host run.precision=fp16 optimizer.loss_scale=1e7 optimizer.loss_scale_window=3" \
    "sums run.devices=cuda_host run.precision=fp16 optimizer.loss_scale=1e7 optimizer.loss_scale_window=2 optimizer.accumulate=2"; do
    name=${what%% *}
    run train "$ini" $tiny ${what#* } run.output=$name schedule.total=20 --max-steps 14; is_code 0
    run train "$ini" $tiny ${what#* } run.output=$name-looked checkpoint.every=1 checkpoint.unit=iterations schedule.total=20 --max-steps 14; is_code 0
    same $name $name-looked
done
for name in fp16 sums; do
    checks=$((checks + 2))
    [ "$(grep -c 'was skipped' $name/log.txt)" -ge 2 ] || bad "$name: nothing was skipped: $(cat $name/log.txt)"
    [ "$(grep -c '"grad_norm": [0-9]' $name/metrics.jsonl)" -ge 2 ] || bad "$name: it did not recover: $(cat $name/metrics.jsonl)"
done
wild="optimizer.lr=1000 optimizer.weight_decay=10 schedule.type=constant schedule.warmup=none schedule.warmup_iterations=0 schedule.warmup_epochs=0"
for devices in cuda_host cuda_host:0,1; do
    run train "$ini" $tiny $wild run.devices=$devices run.output=wild-$devices --max-steps 30; is_code 1
    err_has "pictures of the batch: shapes-1-"
    [ $devices = cuda_host ] && err_has "the first that is not finite is the "
    step=$(sed -n 's/.*step \([0-9]*\): the .* is not finite.*/\1/p' <<<"$err" | head -n 1)
    run train "$ini" $tiny $wild run.devices=$devices run.output=tame-$devices --max-steps $((${step:-1} - 1)); is_code 0
    checks=$((checks + 1)); cmp -s <(tensors wild-$devices) <(tensors tame-$devices) || bad "$devices: what is left is not the state before step $step"
done
# A signal within a step that was begun behind another: that one is finished, the new one was never there.
many="run.devices=cuda_host:0,1 optimizer.accumulate=8 schedule.unit=iterations schedule.total=1000"
for k in 1 3; do
    rm -rf within straight
    "$sodet" train "$ini" $tiny $many run.output=within >within.out 2>within.err &
    child=$!
    for ((i = 0; i < 3000; i++)); do grep -q "step 2/" within.err && break; sleep 0.01; done
    sleep "0.$k"
    kill -TERM $child
    wait $child
    code=$?
    checks=$((checks + 1)); [ $code = 143 ] || bad "a signal within a step: not 143: $(cat within.err)"
    steps=$(sed -n 's/^stopped after \([0-9]*\) steps.*/\1/p' within.out)
    run train "$ini" $tiny $many run.output=straight --max-steps "${steps:-1}"; is_code 0
    same within straight
done
finish 33
