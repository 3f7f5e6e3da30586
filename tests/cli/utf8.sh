#!/usr/bin/env bash
# Text that is no UTF-8 is refused where it is read; names of files may hold any bytes, and JSON stays JSON.
. "$SODET_SOURCE/tests/cli/lib"
is_json() { checks=$((checks + 1)); python3 -c 'import json, sys; json.loads(sys.stdin.buffer.read().decode("utf-8"))' <<<"$out" || bad "is no JSON: ${out:0:300}"; }
bad_name=$'c\xe9t'

parts >a.ini
sed 's/^\[run\]/[run]\nname = caf\xe9/' a.ini >latin.ini
grep -q $'caf\xe9' latin.ini || printf '[run]\nname = caf\xe9\n' >latin.ini
run check latin.ini; refused "is the byte 0xe9, which is no UTF-8; save the file as UTF-8"
run check a.ini "run.name=$bad_name"; refused "command line: run.name="

mkdir -p set
cp "$SODET_SOURCE"/tests/data/pictures/grey.jpg set/
picture=grey
echo "0 0.5 0.5 0.4 0.4" >"set/$picture.txt"
printf 'dog\n%s\n' "$bad_name" >set/classes.txt
yolo() { printf '[data]\ntrain = y\n[dataset.y]\nplugin = yolo\nroot = set\n%s\n[transform]\ntrain = resize\n' "$1"; }
yolo "names = set/classes.txt" >yolo.ini
run data check yolo.ini; refused "classes.txt:2: the class name"; err_has "save the file as UTF-8"
printf 'names:\n  - dog\n  - %s\n' "$bad_name" >set/data.yaml
yolo "names = set/data.yaml" >yolo.ini
run data check yolo.ini; refused "data.yaml:3: names: a name that is no UTF-8"
printf 'dog\n%s\n' "$bad_name" >names.txt
yolo "" >yolo.ini
run data check yolo.ini data.classes=@names.txt; refused "names.txt:2:"; err_has "is no UTF-8"

printf '%s.jpg,1,1,9,9,%s\n' "$picture" "$bad_name" >set/rows.csv
printf '[data]\ntrain = c\n[dataset.c]\nplugin = csv\nfile = set/rows.csv\n[transform]\ntrain = resize\n' >csv.ini
run data check csv.ini; refused "rows.csv:1: the class name"
printf '{"images": [{"id": 1, "file_name": "%s.jpg", "width": 9, "height": 9}],\n"annotations": [], "categories": [{"id": 1, "name": "%s"}]}' \
    "$picture" "$bad_name" >set/coco.json
printf '[data]\ntrain = c\n[dataset.c]\nplugin = coco\npictures = set\nannotations = set/coco.json\n[transform]\ntrain = resize\n' >coco.ini
run data check coco.ini; refused "coco.json, line 2"; err_has "the byte 0xe9 in a string is no UTF-8"

# Names of files
conf=$SODET_SOURCE/conf/tinyssd_shapes.ini
run train "$conf" backbone.width=0.1 run.threads=1 data.workers=1 train.batch=4 data.train_limit=8 data.val_limit=4 train.max_steps=1 \
    run.output=run eval.every=0
is_code 0
cp "set/$picture.jpg" "$bad_name.jpg"
run detect run "$bad_name.jpg" --json; is_code 0; is_json; out_has 'c\\xe9t.jpg'
run detect run "$bad_name.jpg" set/nosuch.jpg; refused "set/nosuch.jpg: there is no such picture"
finish 30
