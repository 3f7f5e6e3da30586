#!/usr/bin/env bash
# sodet summary: totals that papers and systems print, per-layer lines that add up to them, the plan, and what it refuses.
. "$SODET_SOURCE/tests/cli/lib"
conf=$SODET_SOURCE/conf
same() { checks=$((checks + 1)); [ "$1" = "$2" ] || bad "\"$1\" is not \"$2\""; }
number() { grep -o "\"$1\": [0-9]*" <<<"$out" | tail -n 1 | sed 's/.*: //'; }
added() { grep -o "^  {\"path\".*" <<<"$out" | grep -o "\"$1\": [0-9]*" | awk '{ s += $2 } END { printf "%.0f", s }'; }

# Without data and device. The counts are those of spec tables (caffe's SSD300 on VOC; d2l's TinySSD has 1,010,376 with one class).
run summary "$conf/ssd300_vgg16_voc.ini" --no-plan
is_code 0; err_empty
out_has "26,285,486"; out_has "31.37 G"; out_has "input 300x300, batch 1, 20 classes"
checks=$((checks + 1))
grep -qE '^backbone/conv1_2 +conv2d 3x3 +64x300x300 +36,928 +3.32 G$' <<<"$out" || bad "the line of conv1_2 is not as expected"
[[ $out == *"memory on"* ]] && bad "--no-plan prints a plan"
run summary "$conf/ssd300_vgg16_voc.ini" --no-plan --json
is_code 0
same "$(number parameters)" 26285486
same "$(added parameters)" 26285486
same "$(added macs)" "$(number macs)"
same "$(added flops)" "$(number flops)"
same "$(number classes)" 20
macs=$(number macs)
run summary "$conf/ssd300_vgg16_voc.ini" --no-plan --json --batch 3
same "$(number macs)" $((3 * macs))
same "$(number parameters)" 26285486
run summary "$conf/tinyssd_shapes.ini" --no-plan --json --classes 1 input.size=256x256
same "$(number parameters)" 1010376
# A tower that five levels share counts its parameters once (SimpleAICV prints 36,723,992 for 20 classes with P6 from C5).
run summary "$conf/retinanet_r50_fpn_coco.ini" --no-plan --json --classes 20 neck.extra_from=c5 input.size=600x600
is_code 0
same "$(number parameters)" 36723992
same "$(added parameters)" 36723992
out_has '"path": "head/cls/conv00"'; out_has '"uses": 5'

# The plan.
small="backbone.width=0.25 run.threads=1 train.batch=4"
run summary "$conf/tinyssd_shapes.ini" $small --verbose
is_code 0
out_has "memory on cpu:0"; out_has "inference, batch 1: "; out_has "training, batch 4: "; out_has "implementation"; out_has "nChw"
run summary "$conf/tinyssd_shapes.ini" $small --json
is_code 0
plan=$out
checks=$((checks + 1))
python=$(command -v python3)
if [ -n "$python" ]; then
    "$python" - "$plan" <<'P' || bad "the plan's parts do not add up"
import json, sys
d = json.loads(sys.argv[1])
for use in ("inference", "training"):
    u = d["plan"][use]
    assert u["total"] == sum(u[k] for k in ("parameters", "frozen", "gradients", "state", "activations", "own")), u
assert d["plan"]["training"]["gradients"] == d["plan"]["training"]["parameters"] > 4 * d["parameters"] * 0.99
assert d["plan"]["inference"]["gradients"] == 0 and d["plan"]["training"]["batch"] == 4
P
fi
# What is planned is what a program then takes (bench makes one).
run bench "$conf/tinyssd_shapes.ini" $small --detections --seconds 0.05 --json
is_code 0
planned=$(number planned_bytes)
checks=$((checks + 1)); [[ $plan == *"\"total\": $planned}, \"training\""* ]] || bad "bench plans $planned bytes, summary something else"
run summary "$conf/tinyssd_shapes.ini" $small run.devices=ref:x2 optimizer.accumulate=2 optimizer.ema=0.9
is_code 0
out_has "memory on each device, as on ref:0"; out_has "training, batch 2: "

both=$out
run summary "$conf/tinyssd_shapes.ini" $small run.devices=ref:x2 optimizer.accumulate=2 optimizer.ema=0.9 --plan; is_code 0
checks=$((checks + 1)); [ "$out" = "$both" ] || bad "--plan prints something else"
run summary "$conf/tinyssd_shapes.ini" --plan --no-plan; refused "one of them"
# [data] pixels = device: room for a batch of the largest picture is part of the plan, as far as annotations tell sizes.
own() { sed -n "s/.*\"$1\": {[^}]*\"own\": \([0-9]*\).*/\1/p" <<<"$out"; }
pixels="$small run.devices=ref data.pixels=device dataset.shapes_val.size=64"
run summary "$conf/tinyssd_shapes.ini" $pixels dataset.shapes_train.size=64 --json; is_code 0
inference=$(own inference) training=$(own training) batch=$(sed -n 's/.*"training": {"batch": \([0-9]*\).*/\1/p' <<<"$out")
checks=$((checks + 1)); [ "$(grep -o '"picture_bytes": 12288, "pictures_unknown": 0, ' <<<"$out" | wc -l)" -eq 2 ] || bad "no room of 12288 bytes each"
run summary "$conf/tinyssd_shapes.ini" $pixels dataset.shapes_train.size=256 --json; is_code 0
line="pictures of 256x256 for 64x64"
checks=$((checks + 2))
[ "$(own training)" -eq $((training + batch * (256 * 256 - 64 * 64) * 3)) ] || bad "training takes $(own training) bytes, $training with small pictures"
[ "$(own inference)" -eq "$inference" ] || bad "inference takes $(own inference) bytes, $inference before"
run summary "$conf/tinyssd_shapes.ini" $pixels dataset.shapes_train.size=256; is_code 0
out_has "  training, pixels made on the device: pictures of up to 0.19 MiB, "
printf '[run]\nbase = %s\n[data]\ntrain = one\nval =\npixels = device\n[dataset.one]\nplugin = csv\nneed_pictures = no\nfile = one.csv\n' "$conf/tinyssd_shapes.ini" >csv.ini
printf 'a.png,1,2,30,40,thing\n' >one.csv
run summary csv.ini run.devices=ref --classes 1; is_code 0
out_has "training, pixels made on the device: 1 pictures whose annotations do not tell their size are not counted and may be larger"
run summary csv.ini run.devices=ref --classes 1 dataset.one.file=none.csv; is_code 0
out_has "training, pixels made on the device: pictures are not counted, since the data cannot be asked: "; out_has "none.csv"
run summary; refused "which configuration?"
run summary none.ini; refused "none.ini"
run summary "$conf/tinyssd_shapes.ini" run.devices=none; refused "no plugin backend/none.so"
run summary "$conf/tinyssd_shapes.ini" --batch 0; refused "--batch 0"
run summary "$conf/tinyssd_shapes.ini" --classes many; refused "--classes many"
run summary "$conf/tinyssd_shapes.ini" input.size=7x7 --no-plan; is_code 2
run summary "$conf/tinyssd_shapes.ini" more.txt; refused "more.txt"
run summary "$conf/retinanet_r50_fpn_coco.ini" --no-plan; refused "the number of classes is needed (--classes N"
finish 60
