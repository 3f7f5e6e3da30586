#!/usr/bin/env bash
# What labelling tools export, as the README's table says it: each is recognised, with every picture and box; and what sodet data adopt says
# about a folder that can be read in two ways, about files it cannot use, and about a request that is not one.
. "$SODET_SOURCE/tests/data/lib"

printf '[data]\ntrain = shapes\nval = other\n[dataset.shapes]\ncount = 6\nsize = 64\n[dataset.other]\nplugin = shapes\ncount = 3\nsize = 64\nseed = 9\n' >"$dir/shapes.ini"
for layout in voc coco yolo; do
    run data convert shapes.ini --to $layout --output $layout
    expect "convert to $layout" 0 "val: 3 pictures"
done
boxes=$(sed -n 's/.*train: 6 pictures, \([0-9]*\) objects.*/\1/p' "$dir/out")
cd "$dir" || exit 1
pictures_of() { cp yolo/images/train/*.png "$1"; }
labels_of() { cp yolo/labels/train/*.txt "$1"; }
xml_of() { cp voc/Annotations/train_*.xml "$1"; }
names() { sed -n "s/^  [0-9]*: '\(.*\)'/\1/p" yolo/data.yaml; }
json_of() { # set, prefix of file names
    sed "s#\"file_name\": \"images/#\"file_name\": \"$2#" "coco/annotations/instances_$1.json"
}

mkdir -p labelimg_voc && pictures_of labelimg_voc && xml_of labelimg_voc
mkdir -p labelimg_yolo && pictures_of labelimg_yolo && labels_of labelimg_yolo && names >labelimg_yolo/classes.txt
mkdir -p makesense_voc && pictures_of makesense_voc && xml_of makesense_voc
mkdir -p cvat_voc/{JPEGImages,Annotations,ImageSets/Main} && pictures_of cvat_voc/JPEGImages && xml_of cvat_voc/Annotations
(cd voc/Annotations && ls train_*.xml | sed 's/.xml//') >cvat_voc/ImageSets/Main/default.txt
echo '# label:color_rgb:parts:actions' >cvat_voc/labelmap.txt
mkdir -p cvat_coco/{annotations,images/default} && pictures_of cvat_coco/images/default && json_of train "" >cvat_coco/annotations/instances_default.json
mkdir -p cvat_yolo/obj_train_data && pictures_of cvat_yolo/obj_train_data && labels_of cvat_yolo/obj_train_data && names >cvat_yolo/obj.names
(cd cvat_yolo && ls obj_train_data/*.png | sed 's#^#data/#' >train.txt && printf 'classes = 6\ntrain = data/train.txt\nnames = data/obj.names\n' >obj.data)
mkdir -p cvat_ultralytics/{images,labels}/train && pictures_of cvat_ultralytics/images/train && labels_of cvat_ultralytics/labels/train
{ echo "names:"; names | awk '{ printf "  %d: %s\n", NR - 1, $0 }'; printf 'path: .\ntrain: train.txt\n'; } >cvat_ultralytics/data.yaml
(cd cvat_ultralytics && ls images/train/*.png | sed 's#^#data/#' >train.txt)
mkdir -p studio_yolo/{images,labels} && pictures_of studio_yolo/images && labels_of studio_yolo/labels && names >studio_yolo/classes.txt
echo '{"categories": [{"id": 0, "name": "x"}], "info": {}}' >studio_yolo/notes.json
mkdir -p studio_coco/images && pictures_of studio_coco/images && json_of train images/ >studio_coco/result.json
mkdir -p studio_voc/{Annotations,images} && pictures_of studio_voc/images && xml_of studio_voc/Annotations
for tool in voc coco yolo; do mkdir -p roboflow_$tool && echo "Exported from a project." | tee roboflow_$tool/README.{roboflow,dataset}.txt >/dev/null; done
mkdir -p roboflow_{coco,voc,yolo}/{train,valid}
for set in train valid; do
    from=${set/valid/val}
    cp yolo/images/$from/*.png roboflow_coco/$set && json_of $from "" >roboflow_coco/$set/_annotations.coco.json
    cp yolo/images/$from/*.png roboflow_voc/$set && cp voc/Annotations/${from}_*.xml roboflow_voc/$set
    mkdir -p roboflow_yolo/$set/{images,labels} && cp yolo/images/$from/*.png roboflow_yolo/$set/images && cp yolo/labels/$from/*.txt roboflow_yolo/$set/labels
done
printf 'train: ../train/images\nval: ../valid/images\n\nnc: %d\nnames: [%s]\n' "$(names | wc -l)" "$(names | sed "s/.*/'&'/" | paste -sd, | sed 's/,/, /g')" >roboflow_yolo/data.yaml

while read -r folder layout; do
    run data adopt $folder
    expect "$folder" 0 "layout $layout"
    expect "$folder" 0 "6 images, $boxes objects"
    case $folder in
    roboflow*) expect "$folder" 0 "3 images, " ;;
    *) expect "$folder" 0 "5 to train, 1 to validate" ;;
    esac
    grep -q "could also" out && { echo "$folder: sees what is not there"; cat out; failed=1; }
    run data check $folder.ini
    expect "check of $folder" 0 "0 errors of 0 kinds"
done <<'TOOLS'
labelimg_voc voc
labelimg_yolo yolo
makesense_voc voc
cvat_voc voc
cvat_coco coco
cvat_yolo yolo
cvat_ultralytics yolo
studio_yolo yolo
studio_coco coco
studio_voc voc
roboflow_coco coco
roboflow_voc voc
roboflow_yolo yolo
TOOLS

# Two layouts in one folder: the first is taken, the other is told, with the way to it.
cp -r labelimg_voc two && labels_of two && names >two/classes.txt
run data adopt two --output two.ini
expect "two layouts" 0 "layout voc"
expect "two layouts" 0 "it could also be read as yolo: 6 images, $boxes objects; --layout yolo takes that"
run data adopt two --output two_yolo.ini --layout yolo
expect "the other one" 0 "layout yolo"
grep -q "could also" out && { echo "tells what was decided"; failed=1; }
run data adopt two --output three.ini --layout foo
expect "no such layout" 2 "data adopt: --layout foo: expected one of voc, coco, yolo, csv"
# A damaged JSON is told whatever it is called; one that is something else is not.
cp -r cvat_coco damaged && mv damaged/annotations/instances_default.json damaged/labels.json && truncate -s -100 damaged/labels.json
echo '{"images": "of another kind"}' >damaged/settings.json
run data adopt damaged
expect "a damaged JSON" 2 "labels.json"
expect "a damaged JSON" 2 "mend it, export it again, or remove it"
grep -q settings.json out && { echo "speaks of settings.json"; cat out; failed=1; }
run data adopt
expect "no folder" 2 "data adopt: which folder of pictures and labels? usage: sodet data adopt FOLDER"
run data adopt two labelimg_voc
expect "two folders" 2 "data adopt: one folder at a time"
run data adopt two.ini
expect "an INI" 2 "data adopt: takes a folder of pictures and labels, no configuration"
# YAML that is more than a list of names is refused, not guessed at.
yaml() { # text for printf, sentence
    # shellcheck disable=SC2059
    printf "$1" >cvat_ultralytics/data.yaml
    run data adopt cvat_ultralytics --output y.ini --layout yolo
    expect "$1" 2 "$2"
}
yaml 'nc: 7\nnames: [a, b, c, d, e, f]\n' "data.yaml:1: nc: 7, but names has 6"
yaml 'names: *all\n' "data.yaml:1: names: one value where the list of the classes is expected"
yaml 'names: cat\n' "data.yaml:1: names: one value where the list of the classes is expected"
yaml 'names:\n- &a cat\n- *a\n' "data.yaml:2: names: anchors, aliases, tags, block scalars"
yaml 'names:\n- *a\n' "data.yaml:2: names: anchors, aliases, tags, block scalars"
yaml 'names:\n- |\n  cat\n' "data.yaml:2: names: anchors, aliases, tags, block scalars"
yaml 'names: {cat: 0, dog: 1}\n' "data.yaml:1: names: a key in the place of a name"
yaml 'names:\n- name: cat\n' "data.yaml:2: names: a key in the place of a name"
yaml 'names:\n  0: a: b\n' "data.yaml:2: names: a key in the place of a name"
yaml 'names: ["a\n", b]\n' "a quote is not closed on its line"
yaml 'names: [a, "", b]\n' "an empty name; its place is the number of a class"
yaml 'names:\n- a\n-\n- b\n' "data.yaml:3: names: an empty name"
yaml "names: ['a' b]\n" "text behind a name"
yaml 'names: ["\\q"]\n' 'an escape behind \ that has no meaning here'
cat >cvat_ultralytics/data.yaml <<'YAML'
names: # of all
  '0': 'it''s'
  1: "caf\xe9 \"\u20ac"
  2: a:b # c
  3: d
  4: '#e'
  5: f
nc: 6
YAML
run data adopt cvat_ultralytics --output y.ini
expect "quotes" 0 "layout yolo"
printf "it's\ncaf\xc3\xa9 \"\xe2\x82\xac\na:b\nd\n#e\nf\n" | cmp - y-names.txt || { echo "quoted names:"; cat y-names.txt; failed=1; }
[ $failed = 0 ] && echo "adopt_tools: all as expected"
exit $failed
