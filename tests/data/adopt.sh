#!/usr/bin/env bash
# sodet data adopt: own pictures to training in three commands, for each layout, with names as people have them; and what is refused.
. "$SODET_SOURCE/tests/data/lib"

cat >"$dir/shapes.ini" <<INI
[run]
name = x
[data]
train = shapes
val = other
[dataset.shapes]
count = 12
[dataset.other]
plugin = shapes
count = 5
seed = 9
INI
# With a split and without: found, checked, trained for a step.
for layout in voc coco yolo csv; do
    run data convert shapes.ini --to $layout --output "both $layout.v1"
    expect "convert to $layout" 0 "val: 5 pictures"
    rm "$dir/both $layout.v1/data.ini"
    run data adopt "both $layout.v1" --output $layout.ini
    expect "adopt $layout" 0 "layout $layout"
    expect "adopt $layout" 0 "12 images"
    expect "adopt $layout" 0 "5 images"
    run data check $layout.ini
    expect "check $layout" 0 "5 pictures decoded, 0 broken"
    run check $layout.ini
    expect "configuration of $layout" 0 "total ="

    run data convert shapes.ini --to $layout --output one_$layout --split train
    rm "$dir/one_$layout/data.ini"
    run data adopt one_$layout --share 0.25
    expect "adopt $layout without a split" 0 "9 to train, 3 to validate, by the pictures' content, seed 1"
    run data check one_$layout.ini
    expect "check $layout, split" 0 "3 pictures decoded, 0 broken"
    [ "$(cat "$dir/one_$layout-train.txt" "$dir/one_$layout-val.txt" | sort -u | wc -l)" = 12 ] || { echo "$layout: lists overlap"; failed=1; }
done
run train one_yolo.ini train.max_steps=1 input.size=64 train.batch=2 eval.at=1 run.output=run
[ $code = 0 ] || { echo "train: $code"; cat "$dir/out"; failed=1; }

# The same content in other places and under other seeds; duplicates stay together.
cp -r "$dir/one_yolo" "$dir/again"
run data adopt again --share 0.25
cmp "$dir/one_yolo-val.txt" "$dir/again-val.txt" || { echo "the split depends on the place"; failed=1; }
run data adopt again --share 0.25 --split-seed 2 --output other.ini
cmp -s "$dir/other-val.txt" "$dir/again-val.txt" && { echo "the seed does not matter"; failed=1; }
run data adopt again
expect "an INI that is there" 2 "again-train.txt is there already"
for i in 1 2 3 4 5 6; do
    cp "$dir/again/images/train/train_00000$i.png" "$dir/again/images/train/copy $i.v1.PNG"
    cp "$dir/again/labels/train/train_00000$i.txt" "$dir/again/labels/train/copy $i.v1.txt"
done
run data adopt again --output copies.ini --share 0.4
expect "copies" 0 "to validate"
for i in 1 2 3 4 5 6; do
    n=$(grep -cE "/(train_00000$i.png|copy $i.v1.PNG)$" "$dir/copies-val.txt")
    [ "$n" = 1 ] && { echo "copy $i is on both sides"; failed=1; }
done

# Broken things are said and left out: a class number too large, labels without a picture, a box over the edge.
echo "9 0.5 0.5 0.1 0.1" >"$dir/again/labels/train/train_000001.txt"
printf '0 0.5 0.5 0.1 0.1\r\n' >"$dir/again/labels/train/lost.txt"
printf '0 0.01 0.5 0.1 0.1\r\n' >"$dir/again/labels/train/train_000002.txt"
: >"$dir/again/labels/train/train_000003.txt"
run data adopt again --output broken.ini
expect "a broken folder" 0 "2 images skipped: "
expect "a broken folder" 0 "1 box reaches over the picture's edge"
grep -q "^bad_files = skip" "$dir/broken.ini" || { echo "broken.ini does not skip"; failed=1; }
expect "a broken folder" 0 "what cannot be read (2) stays in the set"
run data check broken.ini
expect "check of a broken folder" 0 "train_000001.txt: line 1: class 9: outside"
expect "check of a broken folder" 0 "labels/train/lost.txt: no picture of that name"
expect "check of a broken folder" 0 "0 errors"
echo "no such picture" >>"$dir/broken-val.txt"
run data check broken.ini
expect "a stale list" 2 "no such picture: no sample has that name; correct or remove the line"

mkdir -p "$dir/nothing/deep" && cp "$dir/one_csv/images/"*1.png "$dir/nothing/deep"
run data adopt nothing
expect "nothing recognised" 2 "pictures, but no layout is recognised; voc: no .xml; coco: no .json"
[ -e "$dir/nothing.ini" ] && { echo "an INI was written for nothing"; failed=1; }
run data adopt lost
expect "no folder" 2 "lost: no such folder"
run data adopt one_csv --share 1.5 --output y.ini
expect "a share" 2 "--share 1.5: a number between 0 and 1"
run data adopt one_csv --layout voc --output y.ini
expect "one layout alone" 2 "voc: no .xml"

if [ -d "${SODET_SHARED:-/nonexistent}/data/dental-xray" ]; then
    run data adopt "$SODET_SHARED/data/dental-xray" --output teeth.ini
    expect "real data" 0 "layout voc"
    expect "real data" 0 "458 images"
    expect "real data" 0 "the test set is left out: 99 pictures; to evaluate on it: dataset.val.split=test"
    grep -qx "classes = Cavity, Fillings, Impacted Tooth, Implant" "$dir/teeth.ini" || { echo "classes of the real data"; cat "$dir/teeth.ini"; failed=1; }
else
    echo "skipped: data/dental-xray is not there"
fi
[ $failed = 0 ] && echo "adopt: all as expected"
exit $failed
