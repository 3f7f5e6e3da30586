#!/usr/bin/env bash
# sodet data adopt on folders that have faults: labels of a split that are damaged, pictures and annotations that cannot be read, names that
# an INI or a list cannot say, a disk that is full. What is taken is taken whole, or the file is named; of what fails nothing is left.
. "$SODET_SOURCE/tests/data/lib"

printf '[data]\ntrain = shapes\nval = other\n[dataset.shapes]\ncount = 6\nsize = 64\n[dataset.other]\nplugin = shapes\ncount = 3\nsize = 64\nseed = 9\n' >"$dir/shapes.ini"
for layout in voc coco yolo csv; do
    run data convert shapes.ini --to $layout --output $layout
    expect "convert to $layout" 0 "val: 3 pictures"
done
cd "$dir" || exit 1
says() { grep -qF -- "$2" out || { echo "$1: expected \"$2\" in:"; cat out; failed=1; }; }
silent() { ! grep -qF -- "$2" out || { echo "$1: did not expect \"$2\" in:"; cat out; failed=1; }; }
nothing_left() { # what, stem
    for f in "$2".ini "$2"-*; do [ ! -e "$f" ] || { echo "$1: leaves $f"; failed=1; }; done
}
json_of() { sed "s#\"file_name\": \"images/#\"file_name\": \"$2#" "coco/annotations/instances_$1.json"; }
one_set() { # coco, one JSON and six pictures
    mkdir -p "$1/images" && cp yolo/images/train/*.png "$1/images" && json_of train images/ >"$1/result.json"
}

# ---- damaged labels of a split ----
robo() {
    local set
    rm -rf robo robo.ini && mkdir -p robo/{train,valid,test}
    cp yolo/images/train/*.png robo/train && json_of train "" >robo/train/_annotations.coco.json
    for set in valid test; do cp yolo/images/val/*.png robo/$set && json_of val "" >robo/$set/_annotations.coco.json; done
}
robo
run data adopt robo
expect "three sets" 0 "the test set is left out: 3 pictures; to evaluate on it: dataset.val.annotations=robo/test/_annotations.coco.json"
for set in train valid; do
    for text in '{"images":[' '' '{"info": {"year": 2024' '{"images": [], "annotations": []}'; do
        robo
        printf '%s' "$text" >robo/$set/_annotations.coco.json
        run data adopt robo
        expect "$set is \"$text\"" 2 "robo/$set/_annotations.coco.json"
        expect "$set is \"$text\"" 2 "mend it, export it again, or remove it"
        nothing_left "$set is \"$text\"" robo
    done
done
robo
: >robo/test/_annotations.coco.json
run data adopt robo
expect "test is empty" 0 "the test set is left out (robo/test/_annotations.coco.json); it cannot be read: "
rm -r robo.ini robo/test
run data adopt robo
expect "two sets" 0 "layout coco"
silent "two sets" "left out"
for layout in voc yolo; do
    if [ $layout = voc ]; then
        mkdir -p sets_voc/{train,valid,test}
        for set in train:train valid:val test:val; do
            cp yolo/images/${set#*:}/*.png sets_voc/${set%:*} && cp voc/Annotations/${set#*:}_*.xml sets_voc/${set%:*}
        done
    else
        cp -r yolo sets_yolo && rm sets_yolo/data.ini && cp -r sets_yolo/images/{val,test} && cp -r sets_yolo/labels/{val,test}
    fi
    run data adopt sets_$layout
    expect "three sets, $layout" 0 "the test set is left out: 3 pictures; to evaluate on it: dataset.val.$([ $layout = voc ] && echo root=sets_voc/test || echo split=test)"
done
# Names that say less: what is no JSON beside what is COCO's is damaged; captions and settings are something else.
mkdir -p plain/annotations && cp yolo/images/*/*.png plain && json_of train "" >plain/annotations/train.json && json_of val "" >plain/annotations/val.json
echo '{"images": [], "annotations": []}' >plain/annotations/captions_train.json
echo '{"lr": 1}' >plain/train_settings.json
run data adopt plain
expect "captions" 0 "6 images"
printf '{"info": {"y' >plain/annotations/val.json
run data adopt plain --output cut.ini
expect "val.json is cut" 2 "plain/annotations/val.json"
one_set open && printf '{"images":[' >open/result.json
run data adopt open
expect "one JSON that is cut" 2 "open/result.json, line 1, byte 11: expected an object '{', found the end of the file; mend it"
mkdir cvat && cp yolo/images/train/*.png cvat && printf '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n</annotations>\n' >cvat/annotations.xml
run data adopt cvat
expect "CVAT for images" 2 "voc: annotations.xml is CVAT's own format, which is not read; export as PASCAL VOC, COCO or YOLO"
one_set loose && json_of val images/ >loose/val.json
run data adopt loose
expect "val.json beside labels of all" 0 "left out: loose/val.json"
echo 'not json' >one_val.json && one_set lone && mv one_val.json lone/val_notes.json
run data adopt lone --layout yolo
expect "no yolo" 2 "no layout is recognised; yolo: "
# csv: val.csv that is none, and test.csv, which is before it in the order of names.
cp -r csv rows && rm rows/data.ini && cp rows/val.csv rows/test.csv
run data adopt rows
expect "rows" 0 "the test set is left out: 3 pictures; to evaluate on it: dataset.val.file=rows/test.csv"
grep -q '^file = rows/val.csv' rows.ini || { echo "csv: validates on another set"; cat rows.ini; failed=1; }
for set in train val; do
    cp -r csv rows_$set && rm rows_$set/data.ini && echo 'a,b' >rows_$set/$set.csv
    run data adopt rows_$set
    expect "$set.csv is none" 2 "rows_$set/$set.csv: has neither path,x1,y1,x2,y2,class nor a header"
    nothing_left "$set.csv is none" rows_$set
done

# ---- what cannot be read stays in sight ----
in_lists() { # stem, name
    [ "$(cat "$1-train.txt" "$1-val.txt" | grep -cxF -- "$2")" = 1 ] || { echo "$1: $2 is not in the lists"; failed=1; }
    grep -qx 'bad_files = skip' "$1.ini" || { echo "$1.ini does not skip"; failed=1; }
}
named() { # stem, kind, count, names ...
    local stem=$1 kind=$2 count=$3
    shift 3
    run data check "$stem.ini"
    expect "check of $stem" 0 "note $kind: "
    says "check of $stem" "($count)"
    for name; do says "check of $stem" "$name"; done
}
mkdir xml && cp yolo/images/train/*.png xml && cp voc/Annotations/train_*.xml xml
truncate -s -40 xml/train_000001.xml
sed -i '0,/<xmin>[^<]*/s//<xmin>nan/' xml/train_000002.xml
sed -i '0,/<ymax>[^<]*<.ymax>/s///' xml/train_000003.xml
printf '\xff' | dd of=xml/train_000004.xml bs=1 seek=30 conv=notrunc status=none
for i in 7 8 9 10; do cp yolo/images/val/val_000001.png xml/unseen_$i.png; done
run data adopt xml
expect "damaged .xml" 0 "4 images skipped: "
says "damaged .xml" "what cannot be read (4) stays in the set"
says "damaged .xml" "4 pictures have no .xml and are left out: unseen_10.png, unseen_7.png, unseen_8.png, ..."
for i in 1 2 3 4; do in_lists xml train_00000$i; done
named xml annotation 4 train_000001.xml train_000002.xml train_000003.xml train_000004.xml
run train xml.ini train.max_steps=1 input.size=64 train.batch=1 eval.at=1 run.output=run
expect "training beside damaged .xml" 0 ""
cp voc/Annotations/train_000004.xml xml && rm xml/train_000005.png xml/unseen* && run data adopt xml --output gone.ini
expect "a missing picture, voc" 0 "what cannot be read (4)"
silent "a missing picture, voc" "no .xml"
named gone missing 1 train_000005

# One missing picture, a folder and a pipe in the place of one: the same with a split and without.
one_set image
rm image/images/train_000001.png image/images/train_000002.png image/images/train_000003.png
mkdir image/images/train_000002.png && mkfifo image/images/train_000003.png
run data adopt image
expect "missing pictures, coco" 0 "3 pictures cannot be opened: "
says "missing pictures, coco" "image/images/train_000001.png: cannot be opened: No such file or directory"
says "missing pictures, coco" "no split was there: 5 to train, 1 to validate"
for i in 1 2 3; do in_lists image images/train_00000$i.png; done
named image missing 3 train_000001.png train_000002.png train_000003.png
robo
rm robo/valid/val_000002.png robo/train/train_000001.png
run data adopt robo
expect "missing pictures, coco with a split" 0 "2 pictures cannot be opened: "
grep -q '^pictures' robo.ini && { echo "robo: pictures were looked for elsewhere"; failed=1; }
named robo missing 2 val_000002.png train_000001.png
# The first one missing does not hide where the others are.
mkdir -p apart/images && cp yolo/images/train/*.png apart/images && rm apart/images/train_000001.png && json_of train "" >apart/result.json
run data adopt apart
expect "the first is missing" 0 "1 picture cannot be opened: "
named apart missing 1 train_000001.png
# None is there: Label Studio's Windows paths, or the place they were uploaded to.
# shellcheck disable=SC1003 # backslashes for sed and JSON
for where in 'images\\\\' 'http://localhost:8080/data/upload/1/'; do
    rm -rf studio && one_set studio && json_of train "$where" >studio/result.json
    run data adopt studio
    expect "paths $where" 2 "studio: none of the 6 pictures to train can be opened; the first: "
    says "paths $where" "correct their names in the annotations"
    nothing_left "paths $where" studio
done
rm -rf studio && one_set studio && json_of train 'images/' | sed '0,/images.train_000001/s//images\\\\train_000001/' >studio/result.json
run data adopt studio
expect "one of Windows' paths" 0 "1 picture cannot be opened: "
named studio missing 1 'images\train_000001.png'
# csv and yolo
cp -r csv line && rm line/data.ini line/val.csv && sed -i '2s/,[0-9.]*,/,x,/' line/train.csv
run data adopt line
expect "a bad row" 0 "1 image skipped: "
named line annotation 1 "line/train.csv"

# ---- names ----
for name in 'a ;b' 'photos #2' "it's" 'a = b' 'back\slash' ' [x]'; do
    cp -r image "$name" && rm -rf "$name"/images/train_00000[123].png
    run data adopt "$name"
    expect "folder $name" 0 "to validate"
    run data check "$name.ini"
    expect "check of folder $name" 0 "0 errors"
    grep -qxF -e "name = $name" -e "name = \"$name\"" "$name.ini" || { echo "$name.ini: another name"; cat "$name.ini"; failed=1; }
    run check "$name.ini"
    expect "configuration of folder $name" 0 "name = "
done
refused() { # what, stem of the INI, sentences ...
    local what=$1 stem=$2
    shift 2
    for sentence; do expect "$what" 2 "$sentence"; done
    nothing_left "$what" "$stem"
}
one_set odd && mv odd $'line\nbreak'
run data adopt $'line\nbreak' --output lf.ini
refused "a folder with a line break" lf 'line\x0abreak' "a line break or another control character, which an INI cannot say; rename or move it"
one_set both && mv both "'it' and \"that\""
run data adopt "'it' and \"that\"" --output both.ini
refused "both quotes" both "the name holds both \" and ', which an INI cannot say"
long=$(printf 'x%.0s' {1..240})
mkdir -p "$long/$long/$long/$long" && one_set "$long/$long/$long/$long/y"
run data adopt "$long/$long/$long/$long/y" --output long.ini
refused "a long path" long "the name holds more than 800 bytes with its folders"
one_set bom && mv bom/images/train_000001.png $'bom/images/\xef\xbb\xbfa.png' && sed -i '0,/images.train_000001/s//\xef\xbb\xbfa/' bom/result.json && mv bom/images/*a.png bom
run data adopt bom
refused "what a list loses" bom "data adopt: bom.ini would not say what was found, so it is not left there: "
for text in 'a\nb' '\u001b[1m' "$(printf 'y%.0s' {1..256})"; do
    rm -rf classy && one_set classy && json_of train images/ | TEXT=$text perl -pe 's/"name": "circle"/"name": "$ENV{TEXT}"/' >classy/result.json
    run data adopt classy
    refused "class $text" classy "classy: class 1, \"" "rename it in the annotations (layout coco, result.json)"
done
rm -rf classy && one_set classy && json_of train images/ | TEXT="$(printf 'y%.0s' {1..255})" perl -pe 's/"name": "circle"/"name": "$ENV{TEXT}"/' >classy/result.json
run data adopt classy
expect "a class of 255 bytes" 0 "to validate"
mkdir wordy && cp xml/train_00000[46]* wordy && sed -i "0,/<name>[a-z]*</s//<name>$(printf 'z%.0s' {1..240})</" wordy/train_000006.xml
run data adopt wordy
expect "a class of 240 bytes in VOC's layout" 0 "to validate"
mkdir broken && cp yolo/images/train/*.png broken && cp voc/Annotations/train_*.xml broken
mv broken/train_000001.png $'broken/a\nb.png' && mv broken/train_000001.xml $'broken/a\nb.xml'
run data adopt broken
refused "a picture with a line break" broken 'broken: picture "a\x0ab": its name holds a line break'
mv $'broken/a\nb.png' 'broken/ a.png' && mv $'broken/a\nb.xml' 'broken/ a.xml'
run data adopt broken
refused "a picture with a blank" broken 'broken: picture " a": its name begins or ends with a blank'
one_set twice && sed 's/train_000002.png/train_000001.png/' studio/result.json >twice/result.json
sed -i 's#images.*train_000001#images/train_000001#' twice/result.json
run data adopt twice
refused "one file_name twice" twice 'twice: picture "images/train_000001.png" is there twice'

# ---- places ----
run data adopt lone --output no/such/x.ini
expect "no such place" 2 "no/such/x-train.txt"
(ulimit -f 1 && trap '' XFSZ && "$SODET_BIN" data adopt lone --output full.ini) >out 2>&1
code=$?
refused "a full disk" full "full.ini: "
: >kept-names.txt
run data adopt lone --output kept.ini
expect "names that are there" 2 "kept-names.txt is there already"
[ $failed = 0 ] && echo "adopt_faults: all as expected"
exit $failed
