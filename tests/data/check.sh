#!/usr/bin/env bash
# sodet data check: a set in which everything is wrong once, every kind of finding in it, alone; clean sets give no errors.
# labels: threads
. "$SODET_SOURCE/tests/data/lib"

pictures=$SODET_SOURCE/tests/data/pictures
cat >"$dir/shapes.ini" <<INI
[data]
train = shapes
val = other
[dataset.shapes]
count = 9
[dataset.other]
plugin = shapes
count = 5
seed = 9
INI
run data check shapes.ini --json
expect "drawn pictures" 0 '"errors": 0'
expect "drawn pictures" 0 '{"name": "val", "pictures": 5, "decoded": 5, "broken": 0,'
run data check shapes.ini data.val=other,shapes
expect "train is in val" 1 "error leak: pictures that are in two sets (9)"
run data check shapes.ini data.val=shapes
expect "val = train, in so many words" 0 "note leak: pictures that are in two sets (9)"

# kind ERROR COUNT: a finding of --json, and one of its examples.
kind() {
    grep -qF "{\"kind\": \"$1\", \"error\": $2, \"count\": $3," "$dir/out" || { echo "$1: expected $3, error $2, in:"; cat "$dir/out"; failed=1; }
    [ $# -lt 4 ] || grep -qF -- "$4" "$dir/out" || { echo "$1: expected $4 in:"; cat "$dir/out"; failed=1; }
}
run data export shapes.ini --output files --split train
f=$dir/files
mv "$f/000001.png" "$f/a.png" && mv "$f/000002.png" "$f/cut.png" && mv "$f/000003.png" "$f/size.png" && mv "$f/000004.png" "$f/boxes.png"
mv "$f/000005.png" "$f/empty.png" && mv "$f/000006.png" "$f/v.png" && mv "$f/000007.png" "$f/unknown.png"
truncate -s 700 "$f/cut.png"
cp "$f/a.png" "$f/copy.png" && cp "$f/a.png" "$f/leak.png" && ln "$f/boxes.png" "$f/link.png"
cp "$pictures/orientation-6.jpg" "$f/turned.jpg" && cp "$pictures/orientation-8.jpg" "$f/stored.jpg"
{ printf 'P6\n600 100\n255\n'; head -c 180000 /dev/zero; } >"$f/wide.ppm"
box() { printf '{"id": %d, "image_id": %d, "category_id": %d, "bbox": [%s], "iscrowd": 0}%s\n' "$1" "$2" "$3" "$4" "${5-,}"; }
picture() { printf '{"id": %d, "file_name": "%s", "width": %d, "height": %d}%s\n' "$1" "$2" "$3" "$4" "${5-,}"; }
categories='"categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "sea lion"}, {"id": 3, "name": "Sea-Lion"}, {"id": 4, "name": "bird"}, {"id": 5, "name": "brid"}]'
{
    echo '{"images": ['
    picture 1 a.png 128 128
    picture 2 missing.png 128 128
    picture 3 cut.png 128 128
    picture 4 size.png 64 64
    picture 5 boxes.png 128 128
    picture 6 a.png 128 128
    picture 7 copy.png 128 128
    picture 8 empty.png 128 128
    picture 9 wide.ppm 600 100
    picture 10 turned.jpg 40 24
    picture 11 stored.jpg 24 40
    picture 12 unknown.png 128 128
    picture 13 link.png 128 128 ""
    echo '], "annotations": ['
    for i in 1 2 3 4 6 7 9 13; do box $i $i 1 "10, 10, 40, 40"; done
    box 20 5 1 "30, 30, 0, 20"
    box 21 5 1 "50, 30, -20, 20"
    box 22 5 1 "10, 10, 1e39, 20"
    box 23 5 1 "200, 10, 20, 20"
    box 24 5 1 "100, 100, 33, 20"
    box 25 5 1 "100, 40, 28.4, 20"
    box 26 5 2 "10, 60, 3, 8"
    box 27 5 3 "10, 10, 100, 8"
    box 28 5 1 "20, 20, 30, 30"
    box 29 5 1 "20, 20, 30, 30"
    box 30 5 2 "20, 20, 30, 30"
    box 31 12 5 "20, 20, 30, 30"
    box 32 10 1 "0, 0, 24, 20"
    box 33 11 1 "0, 0, 24, 20" ""
    echo "], $categories}"
} >"$f/train.json"
{
    echo '{"images": ['
    picture 1 v.png 128 128
    picture 2 leak.png 128 128 ""
    echo '], "annotations": ['
    box 1 1 1 "10, 10, 40, 40"
    box 2 2 2 "10, 10, 40, 40" ""
    echo "], $categories}"
} >"$f/val.json"
cat >"$dir/faults.ini" <<INI
[input]
size = 64
[data]
classes = cat, sea lion, Sea-Lion, bird
train = train
val = val
[dataset.train]
plugin = coco
annotations = files/train.json
[dataset.val]
plugin = coco
annotations = files/val.json
INI
run data check faults.ini --json
cp "$dir/out" "$dir/first"
[ "$code" = 1 ] || { echo "exit code $code"; failed=1; }
kind missing true 1 'files/missing.png", "value": "cannot be opened'
kind undecodable true 1 'files/cut.png'
kind size true 2 '{"set": "train", "file": "size.png", "value": "64x64", "expected": "128x128"}'
kind size true 2 '"value": "24x40, labelled without its EXIF orientation", "expected": "40x24"'
kind unknown_class true 1 '"object": 1, "class": "brid", "expected": "one of the list: \"bird\"?"'
kind not_finite true 1 '"object": 3, "class": "cat", "value": "10 10 inf 30"'
kind no_area true 2 '"object": 2, "class": "cat", "value": "50 30 30 50", "expected": "x1 < x2 and y1 < y2"'
kind outside true 1 '"object": 4, "class": "cat", "value": "200 10 220 30", "expected": "inside 128x128"'
kind over_edge false 1 '"object": 5, "class": "cat", "value": "100 100 133 120"'
kind same_file true 2 '"file": "a.png", "value": "the same as a.png"'
kind same_file true 2 '"file": "link.png", "value": "the same as boxes.png"'
kind copy false 2 '"file": "copy.png", "value": "the same as a.png"'
kind leak true 1 '{"set": "val", "file": "leak.png", "value": "also in train: a.png"}'
kind same_box false 1 '"object": 10, "class": "cat", "value": "20 20 50 50", "expected": "once; object 9 is the same"'
kind tiny false 1 '"object": 7, "class": "sea lion", "value": "10 60 13 68, 1.5 x 4 in the input"}'
kind class_names false 1 '\"sea lion\" and \"Sea-Lion\"'
kind absent_class false 3 '{"set": "train", "file": "train", "value": "bird"}'
kind empty false 1 '"file": "empty.png"'
kind orientation false 2 'orientation 6, upright 40x24'
kind picture_shape false 1 '"value": "600x100"'
kind box_shape false 1 '"object": 8, "class": "Sea-Lion"'
for n in 1 2 3 8; do
    run data check faults.ini --json run.threads=$n
    cmp "$dir/first" "$dir/out" || { echo "$n threads find other things"; failed=1; }
done
run data check faults.ini
expect "for a person" 1 "train: 11 pictures decoded, 2 broken"
expect "for a person" 1 "train: boxes.png: object 2 (cat): 50 30 30 50; expected x1 < x2 and y1 < y2"
expect "for a person" 1 "12 errors of 9 kinds, 14 notes of 10 kinds"
[ "$(grep -c '^  -> ' "$dir/out")" = 19 ] || { echo "a kind without a remedy:"; cat "$dir/out"; failed=1; }
run data check faults.ini --examples 1
expect "one example" 1 "  and 1 more"
expect "the first example" 1 "  train: a.png: the same as a.png"
grep -q "link.png: the same" "$dir/out" && { echo "the second example comes first"; cat "$dir/out"; failed=1; }
if command -v script >/dev/null; then # how far it is, where the error stream is a terminal; nothing of it elsewhere
    (cd "$dir" && script -qec "'$SODET_BIN' data check shapes.ini >/dev/null" /dev/null) </dev/null >"$dir/terminal" 2>&1
    grep -q "0/14 pictures" "$dir/terminal" || { echo "no progress on a terminal"; cat "$dir/terminal"; failed=1; }
    run data check faults.ini --quiet
    grep -q "/15 pictures" "$dir/out" && { echo "progress that nobody wants"; failed=1; }
fi
run data check faults.ini --split val
expect "one set" 0 "0 errors of 0 kinds"
run data check faults.ini --split vla
expect "no such set" 2 "--split vla: expected train or val"

# What the configuration passes over is a note; what it refuses is an error.
run data check faults.ini --json data.bad_boxes=drop data.bad_files=skip data.unknown_class=skip
kind missing false 1
kind undecodable false 1
kind unknown_class false 1
kind not_finite false 1
kind no_area false 2
kind outside false 1
kind size true 2
run data check faults.ini --json data.bad_boxes=fail
kind over_edge true 1
run data check faults.ini --json data.ignore_orientation=yes
kind orientation false 2 'sodet leaves them as stored'
kind size true 2 '"value": "40x24, labelled without its EXIF orientation", "expected": "24x40"'

# A damaged annotation, one without its picture, a class number that is too large, a list with a line twice.
mkdir -p "$dir/voc/Annotations" "$dir/voc/JPEGImages" "$dir/voc/ImageSets"
xml() { echo "<annotation><size><width>128</width><height>128</height></size><object><name>$1</name><bndbox><xmin>11</xmin><ymin>11</ymin><xmax>50</xmax><ymax>50</ymax></bndbox></object></annotation>"; }
for n in good lost cut; do xml cat >"$dir/voc/Annotations/$n.xml"; done
sed -i 's/<name>.*//' "$dir/voc/Annotations/cut.xml"
cp "$f/v.png" "$dir/voc/JPEGImages/good.png" && cp "$f/boxes.png" "$dir/voc/JPEGImages/cut.png" && cp "$f/empty.png" "$dir/voc/JPEGImages/bare.png"
printf 'good\nlost\ncut\ngood\nbare\n' >"$dir/voc/ImageSets/all.txt"
printf '[data]\nclasses = cat\ntrain = voc\n[dataset.voc]\nroot = voc\nsplit = all\n' >"$dir/voc.ini"
run data check voc.ini --json
kind missing true 2 'no picture of that name'
kind annotation true 1 'voc/Annotations/cut.xml'
kind same_file true 1 '"file": "good"'
mkdir -p "$dir/yolo/images" "$dir/yolo/labels"
for n in a v empty; do cp "$f/$n.png" "$dir/yolo/images"; done
echo "0 0.5 0.5 0.1 0.1" >"$dir/yolo/labels/a.txt"
echo "2 0.5 0.5 0.1 0.1" >"$dir/yolo/labels/v.txt"
printf '[data]\ntrain = yolo\n[dataset.yolo]\nroot = yolo\nclasses = cat, dog\n' >"$dir/yolo.ini"
run data check yolo.ini --json
kind annotation true 1 '/labels/v.txt", "value": "line 1: class 2: outside the 2 names'
kind empty false 1 'yolo/images/empty.png'

# What is wrong with a row of a CSV file is said once, with its line.
printf 'v.png,1,2,3,4,cat\nlost.png,1,2,3,4,cat\nempty.png,1,2,3x,4,cat\n' >"$dir/files/rows.csv"
printf '[data]\ntrain = d\n[dataset.d]\nplugin = csv\nfile = files/rows.csv\n' >"$dir/rows.ini"
run data check rows.ini --json
kind missing true 1 'files/rows.csv:2", "value": "'
kind annotation true 1 'files/rows.csv:3", "value": "x2 \"3x\": a number is expected'
[ "$(grep -o 'rows.csv' "$dir/out" | wc -l)" = 2 ] || { echo "files are named twice:"; cat "$dir/out"; failed=1; }

# Annotations behind a named pipe are refused, not waited for; a list of classes that names none is no list.
mkfifo "$dir/pipe.json" "$dir/pipe.ini"
printf '[data]\ntrain = d\n[dataset.d]\nplugin = coco\nannotations = pipe.json\n' >"$dir/piped.ini"
run data check piped.ini
expect "a pipe of annotations" 2 "pipe.json: is a named pipe, a file is needed"
run data check pipe.ini
expect "a pipe as INI" 2 "pipe.ini: is a named pipe, a file is needed"
run data check yolo.ini data.classes=
expect "no classes" 2 "[data] classes"
expect "no classes" 2 "names no class; write a, b, c or @names.txt, or leave the key out"

# Real sets.
shared=${SODET_SHARED:-/nonexistent}/data
if [ -d "$shared/dental-xray" ]; then
    printf '[data]\ntrain = a\nval = b\n[dataset.a]\nplugin = dentist\nroot = %s\n[dataset.b]\nplugin = dentist\nroot = %s\nsplit = val\n' "$shared/dental-xray" "$shared/dental-xray" >"$dir/teeth.ini"
    run data check teeth.ini
    expect "dental-xray" 0 "0 errors of 0 kinds"
else
    echo "skipped: data/dental-xray is not there"
fi
if [ -d "$shared/bccd" ]; then
    printf '[data]\nclasses = RBC, WBC, Platelets\ntrain = a\nval = b\n[dataset.a]\nplugin = voc\nroot = %s\nsplit = train\n[dataset.b]\nplugin = voc\nroot = %s\nsplit = val\n' "$shared/bccd" "$shared/bccd" >"$dir/cells.ini"
    run data check cells.ini
    expect "bccd" 0 "0 errors of 0 kinds"
else
    echo "skipped: data/bccd is not there"
fi
[ $failed = 0 ] && echo "check: all as expected"
exit $failed
