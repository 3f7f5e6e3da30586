#!/usr/bin/env bash
# O-12, O-14, O-15 and O-42 as sodet data check meets them: turned pictures, grey and four-channel ones, a giant claim, one bad file among
# many with several threads.
. "$SODET_SOURCE/tests/data/lib"

pictures=$SODET_SOURCE/tests/data/pictures
coco() { # FILE, then a line "name width height box" for each picture
    local file=$1 i=0 images="" boxes=""
    while read -r name width height box; do
        i=$((i + 1))
        images+="${images:+,}{\"id\":$i,\"file_name\":\"$name\",\"width\":$width,\"height\":$height}"
        boxes+="${boxes:+,}{\"id\":$i,\"image_id\":$i,\"category_id\":1,\"bbox\":[$box]}"
    done
    echo "{\"images\":[$images],\"annotations\":[$boxes],\"categories\":[{\"id\":1,\"name\":\"dog\"}]}" >"$dir/$file"
    printf '[data]\ntrain = d\n[dataset.d]\nplugin = coco\nannotations = %s\npictures = %s\n' "$file" "${2-.}" >"$dir/${file%.json}.ini"
}

# O-12: the box is in the upright frame, and fits there alone; what sodet does with the tag is said.
for o in 1 2 3 4 5 6 7 8; do echo "orientation-$o.jpg 40 24 30,4,9,9"; done | coco upright.json "$pictures"
run data check upright.ini
expect "upright" 0 "0 errors of 0 kinds"
expect "upright" 0 "note orientation: pictures with an EXIF orientation (7)"
expect "upright" 0 "sodet turns pictures upright"
run data check upright.ini data.ignore_orientation=yes
expect "as stored" 1 "error size: annotations made for another size than the picture has (4)"
expect "as stored" 1 "error outside: boxes that lie outside their picture (4)"

# O-14: whatever the file's channels, three are delivered.
printf 'grey.jpg 8 8 1,1,6,6\ncmyk.jpg 8 8 1,1,6,6\ncmyk-adobe.jpg 8 8 1,1,6,6\nycck-adobe.jpg 8 8 1,1,6,6\n' | coco channels.json "$pictures"
run data check channels.ini
expect "channels" 0 "train: 4 pictures decoded, 0 broken"

# O-15: 18 bytes that claim 23040 x 23040 pixels.
printf '\0\0\2\0\0\0\0\0\0\0\0\0\0\132\0\132\40\10' >"$dir/bomb.jpg"
echo 'bomb.jpg 23040 23040 1,1,6,6' | coco bomb.json
run data check bomb.ini
expect "a giant claim" 1 "bomb.jpg: claims 23040x23040 pixels, more than the limit of 268435456"

# O-42: one damaged annotation among many, eight threads: it is named, the rest is done.
mkdir -p "$dir/voc/Annotations" "$dir/voc/JPEGImages"
for i in $(seq 100); do
    cp "$pictures/grey.jpg" "$dir/voc/JPEGImages/$i.jpg"
    echo "<annotation><size><width>8</width><height>8</height></size><object><name>dog</name><bndbox><xmin>2</xmin><ymin>2</ymin><xmax>7</xmax><ymax>7</ymax></bndbox></object></annotation>" >"$dir/voc/Annotations/$i.xml"
done
sed -i 's/<ymax>7/<ymax>7px/' "$dir/voc/Annotations/57.xml"
printf '[data]\nclasses = dog\ntrain = voc\n[dataset.voc]\nroot = voc\n' >"$dir/voc.ini"
run data check voc.ini run.threads=8
expect "one among many" 1 "train: 99 pictures decoded, 1 broken"
expect "one among many" 1 'Annotations/57.xml: line 1: object 1: <ymax> is "7px"'
[ $failed = 0 ] && echo "o_12_to_15 and o_42: all as expected"
exit $failed
