#!/usr/bin/env bash
# What is done with a trained network: eval in its three forms, detect with all it writes, wrong requests.
. "$SODET_SOURCE/tests/cli/lib"
conf=$SODET_SOURCE/conf/tinyssd_shapes.ini
small="backbone.width=0.1 run.threads=1 data.workers=1 train.batch=4 data.train_limit=8 data.val_limit=6"
run train "$conf" $small schedule.total=2 run.output=run
is_code 0
best=run/best.safetensors
[ -f $best ] || best=run/last.safetensors
logged=$(grep -o '"voc/mAP": [^,}]*' run/metrics.jsonl | tail -n 1)
logged=${logged#*: }

# The same number in all forms, and the one that training logged.
same() { checks=$((checks + 1)); [ "$1" = "$2" ] || bad "\"$1\" is not \"$2\""; }
number() { grep -o "\"$1\": [^,}]*" <<<"$out" | head -n 1 | sed 's/.*: //'; }
run eval "$conf" $small --weights run/last.safetensors --json; is_code 0
same "$(number mAP)" "$logged"
same "$(number images)" 6
run eval run/last.safetensors --json; is_code 0
same "$(number mAP)" "$logged"
run eval run --json; is_code 0 # a run's folder: its best.safetensors
run eval run/last.safetensors --evaluator voc,coco --json; is_code 0
same "$(number voc/mAP)" "$logged"
out_has '"coco/AP": '
run eval run/last.safetensors; is_code 0
out_has "mAP @ IoU=0.50"; out_has "AP for star"; err_has "6 pictures"
run eval run/last.safetensors data.val_limit=2 --detections-out d.json --json; is_code 0
same "$(number images)" 2
checks=$((checks + 1)); grep -q '"score"' d.json || bad "d.json holds no detection"

run eval; refused "which weights?"
run eval "$conf"; refused "which weights?"
run eval $best x.txt; refused "x.txt: one argument too many"
run eval $best --detections d.json; refused "not both"
run eval --detections d.json; refused "--ground-truth is missing"
run eval none.safetensors; refused "none.safetensors"
run eval $best --evaluator kitti; refused "kitti"
run eval "$conf" --weights $best; refused "backbone/block0/conv1/weight"
run eval "$conf" $small --weights $best input.std=1,1,1; refused "was trained with 64 64 64; write [input] std = 64 64 64"
run eval "$conf" $small --weights $best input.channels=bgr; refused "[input] channels = bgr" "was trained with rgb"
run eval $best data.val=; refused "[data] val" "names no data set"
head -c 5000 run/last.safetensors >cut.safetensors
run eval cut.safetensors; refused "cut.safetensors"

# A checkpoint does not make files be loaded, read or written: a plugin by its path, a base, a place of the machine's.
altered() { # sed's command: the checkpoint with another configuration of the same length, and with the checksum that it then has
    sed "$1" run/last.safetensors >altered.safetensors
    run eval altered.safetensors
    local sum
    read -ra sum <<<"$(grep -oE '\b[0-9a-f]{16}\b' <<<"$err" | tail -n 2 | tr '\n' ' ')"
    [ ${#sum[@]} = 2 ] && sed -i "s|${sum[1]}|${sum[0]}|" altered.safetensors
}
run data export "$conf" $small --output one data.val_limit=1; is_code 0
altered 's|plugin = shapes|plugin = ./shap|g'
run eval altered.safetensors; refused "[dataset.shapes_val] plugin = ./shap: a checkpoint does not make a file be loaded" "dataset.shapes_val.plugin=./shap"
run eval altered.safetensors dataset.shapes_val.plugin=./shap; refused "shap: cannot open"
run detect altered.safetensors one/000001.png; is_code 0 # which needs no data set
altered 's|plugin = tinyssd|plugin = ./nyssd|'
run detect altered.safetensors one/000001.png; refused "[backbone] plugin = ./nyssd: a checkpoint does not make a file be loaded"
altered 's|name = tinyssd_shapes|base = /etc/passwd   |'
run detect altered.safetensors one/000001.png; refused "[run] base = /etc/passwd" "do not trust the file"
altered 's|train = shapes_train|train = ./s.so/train|'
run detect altered.safetensors one/000001.png; refused "a label is no path"

# Weights that are not finite: the first number behind the header is a bias of the backbone.
cp run/last.safetensors altered.safetensors
printf '\377\377\377\177' | dd of=altered.safetensors bs=1 seek=$((8 + $(od -An -t u8 -N 8 altered.safetensors))) conv=notrunc status=none
run eval altered.safetensors; refused "damaged: checksum"
read -ra sum <<<"$(grep -oE '\b[0-9a-f]{16}\b' <<<"$err" | tail -n 2 | tr '\n' ' ')"
sed -i "s|${sum[1]}|${sum[0]}|" altered.safetensors
run detect altered.safetensors one/000001.png; refused "backbone/block0/conv1/bias" "not finite"

# detect: lines, drawings, JSON and a result file that eval counts to the same number.
run data export "$conf" $small --output pictures; is_code 0
run detect run/last.safetensors pictures/*.png --threshold 0 --draw drawn --out found.json
is_code 0
out_has $'pictures/000001.png\t'
err_has "6 pictures"; err_has "drawn in drawn"
for i in 1 2 3 4 5 6; do
    checks=$((checks + 1))
    cmp -s "pictures/00000$i.png" "drawn/00000$i.png"
    [ $? -eq 1 ] || bad "drawn/00000$i.png is missing or has nothing drawn in"
done
run eval --detections found.json --ground-truth pictures/annotations.json --evaluator voc --json; is_code 0
checks=$((checks + 1))
awk -v a="$(number mAP)" -v b="$logged" 'BEGIN { exit !(a - b < 1e-6 && b - a < 1e-6) }' || bad "mAP $(number mAP) of the result file, $logged in training"
run detect "$conf" $small --weights run/last.safetensors pictures/000001.png --threshold 0 --batch 4; is_code 0
out_has $'pictures/000001.png\t'
run detect run/last.safetensors pictures/*.png --threshold 1; is_code 0
same "$out" "$(printf 'pictures/00000%d.png\tnothing\n' 1 2 3 4 5 6)"
run detect run/last.safetensors pictures/*.png --json; is_code 0
out_has '"broken": 0, "pictures": ['; out_has '{"file": "pictures/000006.png", "width": 128, "height": 128, "detections": ['
run detect run pictures/000001.png; is_code 0
run detect run/last.safetensors pictures/*.png run.devices=ref --quiet; is_code 0; err_empty

# Broken pictures: in the middle, at the end, alone.
echo "no picture" >broken.jpg
head -c 700 pictures/000002.png >cut.png
: >empty.png
run detect run/last.safetensors pictures/000001.png broken.jpg pictures/000002.png cut.png --threshold 0 --json
is_code 1
out_has '"broken": 2'; out_has '{"file": "broken.jpg", "error": "'; out_has '{"file": "pictures/000002.png", "width": 128'
err_has "sodet detect: broken.jpg: "; err_has "sodet detect: cut.png: "; err_has "2 of 4 pictures could not be read"
run detect run/last.safetensors empty.png; is_code 1; out_empty; err_has "empty.png"
run detect run/last.safetensors broken.jpg pictures/000001.png --out part.json --draw part; is_code 1
checks=$((checks + 1)); [ -f part.json ] && [ -f part/000001.png ] && [ ! -e part/broken.png ] || bad "part.json and part/ are not what they should be"

# Two folders with equal names: nothing is written over.
mkdir other && cp pictures/000001.png other/
run detect run/last.safetensors pictures/000001.png other/000001.png --draw both --out both.json; is_code 0
checks=$((checks + 1)); [ "$(ls both | tr '\n' ' ')" = "000001_000001.png 000002_000001.png " ] || bad "both/ holds $(ls both)"
checks=$((checks + 1)); grep -q '"file_name": "other/000001.png"' both.json || bad "both.json does not tell the pictures apart"

run detect; refused "which weights? usage: sodet detect"
run detect pictures/000001.png; refused "which weights?"
run detect run/last.safetensors; refused "which pictures?"
run detect pictures pictures/000001.png; refused "pictures"
run detect run/last.safetensors none.png pictures/000001.png; refused "none.png: there is no such picture"
run detect run/last.safetensors pictures/*.png --threshold 50%; refused "--threshold 50%"
run detect run/last.safetensors pictures/*.png --threshold nan; refused "--threshold nan"
run detect run/last.safetensors pictures/*.png --draw pictures; refused "would replace the picture pictures/000001.png"
run detect run/last.safetensors pictures/*.png --batch 0; refused "--batch 0"
run detect run/last.safetensors pictures/*.png --tresh 1; refused "unknown flag --tresh"
run detect run/last.safetensors pictures/*.png run.devices=gpu; refused "no plugin backend/gpu.so"
run detect run/last.safetensors pictures/000001.png --out none/d.json; refused "none/d.json: nothing can be written in the folder none"
run detect run/last.safetensors pictures/000001.png --out pictures; refused "pictures: is a folder"
run detect run/last.safetensors pictures/000001.png --draw broken.jpg; refused "broken.jpg"
run eval run/last.safetensors --detections-out none/d.json; refused "none/d.json"
run detect "$conf" pictures/000001.png; refused "which weights?"
finish 108
