#!/usr/bin/env bash
# sodet data check and draw; O-13: a cut picture among good ones is listed, once, and the exit code says so.
. "$SODET_SOURCE/tests/data/lib"

cat >"$dir/shapes.ini" <<INI
[run]
name = x
[data]
train = shapes
val = shapes
[dataset.shapes]
count = 6
[transform]
train = hflip, resize
[transform.resize]
size = 96
INI
run data check "$dir/shapes.ini"
expect check 0 "6 pictures decoded, 0 broken"
run data draw "$dir/shapes.ini" --split train --output "$dir/drawn" --count 4
expect draw 0 "4 pictures"
[ "$(ls "$dir/drawn" | wc -l)" = 4 ] && [ "$(head -c 4 "$dir/drawn/000004.png" | tail -c 3)" = PNG ] || { echo "draw: no four PNG files"; failed=1; }
run data check
expect "no INI" 2 "data"
run data look "$dir/shapes.ini"
expect "unknown verb" 2 "sodet data check x.ini"
run data draw "$dir/shapes.ini"
expect "no folder" 2 "--output FOLDER is missing"

# The same pictures as files, one of them cut in half.
run data export "$dir/shapes.ini" --output "$dir/files"
expect export 0 "6 pictures"
cat >"$dir/files.ini" <<INI
[run]
name = y
[data]
val = files
[dataset.files]
plugin = coco
annotations = files/annotations.json
INI
run data check "$dir/files.ini"
expect "check of files" 0 "6 pictures decoded, 0 broken"
size=$(stat -c %s "$dir/files/000003.png")
truncate -s $((size / 2)) "$dir/files/000003.png"
run data check "$dir/files.ini"
expect "check of a cut file" 1 "5 pictures decoded, 1 broken"
[ "$(grep -c 000003.png "$dir/out")" = 1 ] || { echo "the cut file is not named once"; cat "$dir/out"; failed=1; }
rm "$dir/files/000005.png"
run data check "$dir/files.ini"
expect "check of a lost file" 1 "4 pictures decoded, 2 broken"

# A conversion that fails leaves nothing that blocks the next, whether the folder was there or not.
for there in no yes; do
    [ $there = no ] || mkdir "$dir/tries"
    run data convert "$dir/files.ini" --to voc --output "$dir/tries"
    expect "convert with a lost picture" 1 "000005.png"
    [ $there = no ] && [ -e "$dir/tries" ] && { echo "convert left a folder"; failed=1; }
    [ -z "$(ls -A "$dir/tries" 2>/dev/null)" ] || { echo "convert left: $(ls -A "$dir/tries")"; failed=1; }
done
mkdir -p "$dir/tries/.unfinished/JPEGImages" && echo half >"$dir/tries/.unfinished/JPEGImages/a.png" # of one that was killed
sed -i '/000005.png/d' "$dir/files/annotations.json"
sed -i 's/"image_id": 5,/"image_id": 1,/' "$dir/files/annotations.json"
run data convert "$dir/files.ini" --to voc --output "$dir/tries" --section files
expect "convert again" 0 "files: 5 pictures"
[ ! -e "$dir/tries/.unfinished" ] && [ "$(ls "$dir/tries/JPEGImages" | wc -l)" = 5 ] || { echo "convert again: $(ls -A "$dir/tries")"; failed=1; }

# Drawn pictures into every layout; what comes out is read by its own data.ini, and goes into another layout.
for layout in voc coco yolo csv; do
    run data convert "$dir/shapes.ini" --to $layout --output "$dir/$layout" --split train
    expect "convert to $layout" 0 "train: 6 pictures"
    run data check "$dir/$layout/data.ini"
    expect "check of $layout" 0 "6 pictures decoded, 0 broken"
    run data convert "$dir/$layout/data.ini" --to coco --output "$dir/$layout.again" --section train --pictures leave
    expect "convert from $layout" 0 "train: 6 pictures"
    sed 's/"file_name": "[^"]*"/"file_name": ""/' "$dir/$layout.again/annotations/instances_train.json" >"$dir/$layout.json"
    cmp "$dir/voc.json" "$dir/$layout.json" || { echo "$layout: other objects than voc's"; failed=1; }
done
run data convert "$dir/shapes.ini" --to yolo --output "$dir/left" --pictures link
expect "links to drawn pictures" 1 "use --pictures copy"
run data convert "$dir/shapes.ini" --to darknet --output "$dir/left"
expect "unknown layout" 2 "--to darknet: expected one of voc, coco, yolo, csv"
run data convert "$dir/shapes.ini" --to voc --output "$dir/left" --section lost
expect "unknown section" 2 "there is no [dataset.lost]"
run data convert "$dir/shapes.ini" --to voc --output "$dir/voc"
expect "a folder in use" 2 "is not empty"
[ $failed = 0 ] && echo "data: all as expected"
exit $failed
