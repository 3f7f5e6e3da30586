#!/usr/bin/env bash
# sodet data check and draw; O-13: a cut picture among good ones is listed, once, and the exit code says so.
set -u
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
failed=0
expect() { # expect WHAT CODE TEXT
    grep -qF -- "$3" "$dir/out" && [ "$code" = "$2" ] && return
    echo "$1: exit code $code (expected $2), expected \"$3\" in:"
    cat "$dir/out"
    failed=1
}
run() { "$SODET_BIN" "$@" >"$dir/out" 2>&1; code=$?; }

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
[ $failed = 0 ] && echo "data: all as expected"
exit $failed
