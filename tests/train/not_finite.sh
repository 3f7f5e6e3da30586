#!/bin/bash
# A step that is not finite changes nothing: the run ends with exit code 1 and a message that names the pictures and the layer, and leaves
# a checkpoint of the step before, from which a run with a lower rate goes on. (Decay times rate is 10^4, so weights overflow in some ten steps.)
. "$SODET_SOURCE/tests/train/lib"
train() {
    "$SODET_BIN" train "$SODET_SOURCE/conf/tinyssd_shapes.ini" run.threads=1 backbone.width=0.125 input.size=64x64 dataset.shapes_train.count=8 \
        dataset.shapes_train.size=64 data.val= transform.train=resize train.batch=4 checkpoint.every=0 schedule.type=constant schedule.warmup=none \
        schedule.warmup_iterations=0 schedule.warmup_epochs=0 schedule.total=30 "run.output=$work/run" "$@" 2>"$work/err" >"$work/out"
}

# The tensors of a checkpoint: what follows the header, whose length stands in the first 8 bytes.
tensors() {
    tail -c +$((9 + $(od -An -t u8 -N 8 "$1"))) "$1"
}

train optimizer.lr=1000 optimizer.weight_decay=10 run.overwrite=yes
[ $? = 1 ] || fail "exit code of a run that diverges: $(cat "$work/err")"
step=$(sed -n 's/.*step \([0-9]*\): the .* is not finite.*/\1/p' "$work/err")
[ "${step:-0}" -gt 1 ] || fail "no step is named: $(cat "$work/err")"
grep -q "the first that is not finite is the [a-z]* of [a-z]*/.*; pictures of the batch: shapes-1-" "$work/err" || fail "who: $(cat "$work/err")"
[ -f "$work/run/last.safetensors" ] || fail "no checkpoint"

# What was left is the state before that step, whatever its forward pass did to running statistics.
mv "$work/run/last.safetensors" "$work/left"
rm -rf "$work/run"
train optimizer.lr=1000 optimizer.weight_decay=10 train.max_steps=$((step - 1))
[ $? = 0 ] || fail "the steps before it: $(cat "$work/err")"
cmp <(tensors "$work/left") <(tensors "$work/run/last.safetensors") || fail "the state after the failure is not that before the step"

# It can be resumed, and fails in the same step again.
mv "$work/left" "$work/run/last.safetensors"
train optimizer.lr=1000 optimizer.weight_decay=10 "run.resume=$work/run"
[ $? = 1 ] || fail "the resumed run should fail"
grep -q "step $step: the .* is not finite" "$work/err" || fail "resumed: $(cat "$work/err")"
[ $failed = 0 ] && echo "not finite at step $step: named, nothing changed, can be resumed"
exit $failed
