#!/usr/bin/env bash
# Two trainings do not write into one folder, whatever the second one is asked to do; a process that is killed leaves it free.
. "$SODET_SOURCE/tests/train/lib"
ini=$SODET_SOURCE/conf/tinyssd_shapes.ini
small="run.threads=1 input.size=64x64 backbone.width=0.125 dataset.shapes_train.count=8 dataset.shapes_train.size=64 dataset.shapes_val.count=2 dataset.shapes_val.size=64 train.batch=4 train.log_every=1 data.workers=1 data.val="
train() { "$SODET_BIN" train "$ini" $small "$@" 2>"$work/err" >"$work/out"; }
"$SODET_BIN" train "$ini" $small schedule.total=100000 run.output="$work/run" checkpoint.every=1 2>"$work/first.err" >/dev/null &
first=$!
trap 'kill -9 $first 2>/dev/null; rm -rf "$work"' EXIT
for ((i = 0; i < 600; i++)); do [ -s "$work/run/last.safetensors" ] && break; sleep 0.1; done
[ -s "$work/run/last.safetensors" ] || fail "the first training did not come to a checkpoint: $(cat "$work/first.err")"
for second in run.overwrite=yes "run.resume=$work/run"; do
    train run.output="$work/run" $second --max-steps 1
    [ $? = 2 ] || fail "$second: a second training should be refused with 2: $(cat "$work/err")"
    grep -qF "another process trains into this folder" "$work/err" || fail "$second: $(cat "$work/err")"
    kill -0 $first || fail "$second: the first training ended"
done
kill -9 $first
wait $first 2>/dev/null
train run.output="$work/run" run.overwrite=yes --max-steps 1 || fail "the folder stays taken: $(cat "$work/err")"
exit $failed
