#!/usr/bin/env bash
# What is refused says what it is about and what to do; what was taken without a word is refused or said.
. "$SODET_SOURCE/tests/cli/lib"
conf=$SODET_SOURCE/conf/tinyssd_shapes.ini
picture=$SODET_SOURCE/tests/data/pictures/grey.jpg
small="backbone.width=0.1 run.threads=1 data.workers=1 data.train_limit=3 data.val_limit=2 eval.every=0"
parts >a.ini

run ""; refused "the command is an empty word"
run check ""; refused "an argument is an empty word"
run summary best.safetensors; refused "best.safetensors: is a checkpoint" "config.ini"
run train last.safetensors; refused "--resume goes on"
run check a.ini run.seed=18446744073709551615; refused "outside [0, 9007199254740992]"
run check a.ini train.batch=99999999999999999999; refused "outside [1, 1000000]"
run check a.ini train.max_steps=99999999999999999999; refused "outside [0, 4294967295]"
run check a.ini schedule.total=1e30; refused "outside [0, 1000000000000]"
run check a.ini schedule.warmup_iterations=1e18; refused "outside [0, 1000000000000]"
run check a.ini schedule.total=1e-300; refused "no step would be made"
{ parts; printf '[dataset.]\nplugin = voc\n'; } >b.ini
run check b.ini; refused "[dataset.]: no name behind the dot; write [dataset.mine]"
{ parts; printf '[train]\nnosuch = 1\n'; } >b.ini
run check b.ini; refused "[train] nosuch = 1: unknown key; the keys here are batch, val_batch"

run train "$conf" $small train.batch=4 train.max_steps=1 run.output=run
is_code 0; err_has "batch: 3 pictures at most, in the place of train.batch = 4: no more can share one"
run train "$conf" $small train.batch=3 train.max_steps=1 run.output=run2
is_code 0; checks=$((checks + 1)); [[ $err != *"in the place of train.batch"* ]] || bad "a full batch is no smaller one"
run detect nosuch "$picture"; refused "nosuch: no such file or folder; they come first"
run detect "$picture" "$picture"; refused "grey.jpg: is no checkpoint"
run detect run "$picture" data.classes=x,y; refused "data.classes=x,y: the classes are those that run was trained with"
checks=$((checks + 1))
(ulimit -f 100 && "$sodet" train "$conf" $small train.batch=3 train.max_steps=1 run.output=limited >/dev/null 2>limit.err) && bad "a limit on files that was no limit"
grep -q "no file may have more than 102400 bytes here; raise that limit (ulimit -f)" limit.err || bad "the limit is not named: $(cat limit.err)"

mkdir -p set
cp "$picture" set/
printf 'grey.jpg,1,1,9,9,dog\ngrey.jpg,1,1,9,9,dog,cat\n' >set/rows.csv
printf '[data]\ntrain = c\n[dataset.c]\nplugin = csv\nfile = set/rows.csv\n[transform]\ntrain = resize\n' >csv.ini
run data check csv.ini; is_code 1; out_has "rows.csv:2: 7 fields, 6 are expected"
printf 'path,x1,y1,x2,y2,class,note\ngrey.jpg,1,1,9,9,dog,good\ngrey.jpg,1,1,9,9,dog,good,more\n' >set/rows.csv
printf 'columns = path, x1, y1, x2, y2, class\n' | sed -i '/^file/r /dev/stdin' csv.ini
run data check csv.ini; is_code 1; out_has "rows.csv:3: 8 fields, 7 are expected"

# COCO's twelve numbers of detections that are called otherwise
printf '{"images": [{"id": 1, "file_name": "val/a.jpg"}], "annotations": [], "categories": [{"id": 1, "name": "dog"}]}' >gt.json
hit='"category_id": 1, "bbox": [0, 0, 4, 4], "score": 0.5'
printf '{"images": [{"id": 7, "file_name": "a.jpg"}], "categories": [{"id": 1, "name": "dog"}], "annotations": [{"image_id": 7, %s}]}' "$hit" >dv.json
run eval --detections dv.json --ground-truth gt.json; err_has 'detection 1 is of "a.jpg" (image 7)'; err_has 'the first is "val/a.jpg"'; err_has "make the names equal"
printf '[{"image_id": 5, %s}]' "$hit" >dv.json
run eval --detections dv.json --ground-truth gt.json; err_has "image 5, an id that the ground truth does not have (its first is 1)"
finish 45
