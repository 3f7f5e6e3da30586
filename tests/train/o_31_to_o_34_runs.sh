#!/bin/bash
# Field cases of spec/field-cases.md that concern whole runs:
#   O-31  other classes: run.init takes what fits and lists what it did not; resume is refused and shows both class lists; nothing that
#         fits at all is an error
#   O-32  the rate after resume is that of the uncut run, warm-up does not start again, and the weights are the same bytes
#   O-33  a folder that cannot be written to fails before the first step
#   O-34  a second run into the folder of the first is refused before a file is touched; resume goes on; overwrite leaves nothing of the old
. "$SODET_SOURCE/tests/train/lib"
train() {
    "$SODET_BIN" train "$SODET_SOURCE/conf/tinyssd_shapes.ini" run.threads=1 backbone.width=0.125 input.size=64x64 dataset.shapes_train.count=8 \
        dataset.shapes_train.size=64 data.val= transform.train=resize train.batch=4 train.log_every=1 "$@" 2>"$work/err" >"$work/out"
}
rates() { # of the training lines of a metrics.jsonl, one a line
    sed -n 's/.*"lr": \([^,]*\), "loss".*/\1/p' "$1"
}

# O-34
train run.output="$work/a" schedule.total=1 || fail "first run: $(cat "$work/err")"
before=$(cd "$work/a" && sha256sum ./*)
train run.output="$work/a" schedule.total=1
[ $? = 2 ] || fail "O-34: the second run should be refused with 2"
grep -q "run.resume" "$work/err" && grep -q "run.overwrite" "$work/err" || fail "O-34: remedies: $(cat "$work/err")"
[ "$before" = "$(cd "$work/a" && sha256sum ./*)" ] || fail "O-34: the refused run touched files"
train run.output="$work/a" schedule.total=2 run.resume="$work/a" || fail "O-34: resume: $(cat "$work/err")"
grep -q "^done after 4 steps" "$work/out" || fail "O-34: resume did not go on: $(cat "$work/out")"
[ "$(grep -c '"step": [1-4],.*"loss"' "$work/a/metrics.jsonl")" = 4 ] || fail "O-34: metrics after resume"
touch "$work/a/notes.txt"
train run.output="$work/a" schedule.total=1 run.overwrite=yes checkpoint.every=0 || fail "O-34: overwrite: $(cat "$work/err")"
ls "$work/a"/step-* >/dev/null 2>&1 && fail "O-34: overwrite left old checkpoints"
[ "$(grep -c '"loss"' "$work/a/metrics.jsonl")" = 2 ] || fail "O-34: overwrite left old metrics"
[ -f "$work/a/notes.txt" ] || fail "O-34: overwrite removed a file that is not the run's"

# O-33: read-only and full (the kill is in tests/train/resume.c and tests/store)
if [ "$(id -u)" != 0 ]; then
    mkdir "$work/ro" && chmod a-w "$work/ro"
    train run.output="$work/ro/run" schedule.total=1
    [ $? = 2 ] || fail "O-33: a folder without write permission: $(cat "$work/err")"
fi
train run.output=/proc/sodet schedule.total=1
[ $? = 2 ] || fail "O-33: a folder that cannot be made: $(cat "$work/err")"
grep -q "/proc/sodet" "$work/err" || fail "O-33: the message names the folder: $(cat "$work/err")"

# O-32: milestones 8 and 11 of 12 epochs, cut after epoch 9 (from 0), warm-up in the first
o32() {
    train schedule.type=multistep schedule.total=12 schedule.milestones=8,11 schedule.factor=0.1 optimizer.lr=0.01 schedule.warmup=linear \
        schedule.warmup_iterations=3 schedule.warmup_epochs=0 schedule.warmup_factor=0.1 checkpoint.every=0 "$@"
}
o32 run.output="$work/straight" || fail "O-32: straight: $(cat "$work/err")"
o32 run.output="$work/cut" train.max_steps=20 || fail "O-32: cut: $(cat "$work/err")"
o32 run.output="$work/cut" run.resume="$work/cut/last.safetensors" || fail "O-32: resumed: $(cat "$work/err")"
rates "$work/straight/metrics.jsonl" >"$work/rates"
rates "$work/cut/metrics.jsonl" | cmp - "$work/rates" || fail "O-32: rates differ"
awk 'NR > 3 && NR <= 16 && ($1 < 0.00999 || $1 > 0.01001) || NR > 16 && NR <= 22 && ($1 < 0.000999 || $1 > 0.001001) ||
     NR > 22 && ($1 < 0.0000999 || $1 > 0.0001001) { bad = 1 } END { exit bad || NR != 24 }' "$work/rates" || fail "O-32: rates: $(tr '\n' ' ' <"$work/rates")"
cmp "$work/straight/last.safetensors" "$work/cut/last.safetensors" || fail "O-32: weights differ"

# O-31: six classes trained, two wanted
train run.output="$work/two" schedule.total=1 run.init="$work/straight/last.safetensors" data.classes=circle,ring data.unknown_class=skip ||
    fail "O-31: init: $(cat "$work/err")"
grep -q "head/cls/0/weight" "$work/err" || fail "O-31: the class branch should be named as fresh: $(cat "$work/err")"
grep -q "head/box" "$work/err" && fail "O-31: the box branch fits: $(cat "$work/err")"
grep -q '"step": 1,' "$work/two/metrics.jsonl" || fail "O-31: steps begin at 1"
train run.output="$work/two2" run.resume="$work/straight/last.safetensors" data.classes=circle,ring data.unknown_class=skip
[ $? = 2 ] || fail "O-31: resume with other classes should be refused"
grep -q "circle,.*star" "$work/err" && grep -q "circle,ring" "$work/err" || fail "O-31: both class lists: $(cat "$work/err")"
"$SODET_BIN" train "$SODET_SOURCE/conf/retinanet_r18_fpn_shapes.ini" run.output="$work/other" run.init="$work/straight/last.safetensors" \
    dataset.shapes_train.count=8 data.val= run.threads=1 backbone.width=0.1 neck.width=0.1 head.width=0.1 2>"$work/err" >"$work/out"
[ $? = 2 ] || fail "O-31: nothing fits: $(cat "$work/err")"
grep -q "nothing in .* fits" "$work/err" || fail "O-31: nothing fits: $(cat "$work/err")"
[ -e "$work/other" ] && fail "O-31: a run that never began left a folder"
[ $failed = 0 ] && echo "O-31 to O-34: as they should be"
exit $failed
