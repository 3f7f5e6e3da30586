#!/usr/bin/env bash
# What `sodet detect` takes and makes: folders, lists, frames from a pipe; CSV, drawings of small pictures, things cut out; broken pictures.
. "$SODET_SOURCE/tests/cli/lib"
conf=$SODET_SOURCE/conf/tinyssd_shapes.ini
small="backbone.width=0.1 run.threads=1 data.workers=1 train.batch=4 data.train_limit=8 data.val_limit=4"
run train "$conf" $small train.max_steps=2 run.output=run
is_code 0
run data export "$conf" $small --output pictures
is_code 0
net=run/last.safetensors
same() { checks=$((checks + 1)); [ "$1" = "$2" ] || bad "\"${1:0:400}\" is not \"${2:0:400}\""; }
names() { cut -f 1 <<<"$out" | uniq; }
feed() { # file arguments: as run, with the file on the standard input
    local input=$1
    shift
    "$sodet" "$@" >"$work/.out" 2>"$work/.err" <"$input"
    code=$? out=$(cat "$work/.out") err=$(cat "$work/.err") line="sodet $* <$input"
}
side() { od -An -tu1 -j "$2" -N 4 "$1" | awk '{ print $1 * 16777216 + $2 * 65536 + $3 * 256 + $4 }'; }
size() { echo "$(side "$1" 16)x$(side "$1" 20)"; }
ppm() { # file width height: any colours
    { printf 'P6\n%d %d\n255\n' "$2" "$3"; seq 100000 | md5sum | head -c 32; seq 1 99999999 | head -c $(($2 * $3 * 3 - 32)); } >"$1"
}

# A folder: sorted, with its folders, called by paths below it; hidden files, others and a link back are left out; a link to a file counts.
mkdir -p tree/b tree/.git tree/B
cp pictures/000001.png tree/z.png
cp pictures/000002.png tree/b/c.PNG
cp pictures/000003.png "tree/B/two words.png"
cp pictures/000004.png tree/.hidden.png
cp pictures/000004.png tree/.git/x.png
echo text >tree/notes.md
ln -s .. tree/b/back
ln -s ../pictures/000004.png tree/a.png
run detect $net tree --threshold 1; is_code 0
same "$(names)" "$(printf 'B/two words.png\na.png\nb/c.PNG\nz.png')"
run detect run tree/ --threshold 0 --draw drawn --crop cut --out found.json --json; is_code 0
same "$(cd drawn && find . -type f | sort | tr '\n' ' ')" "./B/two words.png ./a.png ./b/c.png ./z.png "
checks=$((checks + 1)); grep -q '"file_name": "B/two words.png"' found.json || bad "found.json lacks a folder's name"
objects=$(grep -o '"score"' <<<"$out" | wc -l)
same "$(ls cut | wc -l)" "$objects"
checks=$((checks + 1)); [ "$objects" -gt 4 ] || bad "only $objects objects"
checks=$((checks + 1)); [ "$(ls cut | grep -c -E '^00000[1-4]-[0-9]{3}-(two_words|a|c|z)-[a-z]+\.png$')" = "$objects" ] || bad "names in cut: $(ls cut | head -3)"
# What is cut out has the size of its box, to the pixel.
first=$(ls cut/000001-001-*.png)
box=$(grep -o '"box": \[[^]]*' <<<"$out" | head -n 1 | tr -d '"box:[,')
same "$(size "$first")" "$(awk '{ x = int($1); y = int($2); r = int($3); b = int($4); r += r < $3; b += b < $4; print (r - x) "x" (b - y) }' <<<"$box")"
mkdir empty
run detect $net empty; refused "empty: no picture lies in this folder" ".jpg"
cp $net kept.safetensors
run detect kept.safetensors tree --out kept.safetensors; refused "--out kept.safetensors: would replace kept.safetensors, which is read; name another"
run detect $net pictures/000001.png --out pictures/../pictures/000001.png; refused "would replace pictures/000001.png"
run eval run --detections-out $net --weights $net; refused "--detections-out $net: would replace $net"
run report $net --csv $net; refused "--csv $net: would replace $net"
same "$(md5sum <kept.safetensors)" "$(md5sum <$net)"
mkfifo pipe.png
run detect $net pipe.png; is_code 1; err_has "pipe.png: not a regular file; a picture is expected"
run detect $net tree --draw tree; refused "--draw tree: the drawing would replace the picture"
run detect $net tree --crop tree/b; refused "--crop tree/b: the picture tree/b/c.PNG lies there"
# Two folders with the same names: paths tell them apart, and nothing is written over.
run detect $net pictures tree pictures/000001.png --threshold 1; is_code 0
same "$(names | head -n 5 | tail -n 1)" "B/two words.png"
mkdir copy && cp pictures/00000[12].png copy
run detect $net pictures copy --threshold 1 --draw both; is_code 0
same "$(names | sed -n '1p;5p' | tr '\n' ' ')" "pictures/000001.png copy/000001.png "
same "$(ls both | wc -l)" 6

# A list: relative to itself, comments and blank lines left out, carriage returns and a byte order mark too.
mkdir lists
printf '\xef\xbb\xbf# first\r\n../pictures/000003.png\r\n\n   \n  ../pictures/000001.png  \n#x.png\n%s/pictures/000002.png' "$work" >lists/some.txt
run detect $net lists/some.txt --threshold 1; is_code 0
same "$(names)" "$(printf '../pictures/000003.png\n../pictures/000001.png\n%s/pictures/000002.png' "$work")"
run detect $net lists/some.txt pictures/000004.png --threshold 1 --draw listed; is_code 0
same "$(ls listed | tr '\n' ' ')" "000001.png 000002.png 000003.png 000004.png "
printf 'ok\n' >lists/wrong.txt
run detect $net lists/wrong.txt; refused "lists/wrong.txt:1: lists/ok: there is no such picture"
printf '\n../pictures\n' >lists/wrong.txt
run detect $net lists/wrong.txt; refused "lists/wrong.txt:2: lists/../pictures: is a folder"
printf '# nothing\n' >lists/wrong.txt
run detect $net lists/wrong.txt; refused "names no picture"
printf 'a\0b\n' >lists/wrong.txt
run detect $net lists/wrong.txt; refused "no text"
run detect $net none.txt; refused "none.txt: there is no such picture"

# Frames from a pipe are what the same pixels in a file are.
ppm one.ppm 70 50
ppm two.ppm 70 50
tail -c 10500 one.ppm >raw
head -c 10500 pictures/000001.png /dev/zero 2>/dev/null | tail -c 10500 >other
{ printf 'P6\n70 50\n255\n'; cat other; } >two.ppm
cat raw other raw >three
run detect $net one.ppm two.ppm one.ppm --threshold 0 run.threads=1; is_code 0
want=$(awk 'BEGIN { n = 0 } $1 != last { n++ } { last = $1; sub(/^[^\t]*/, sprintf("frame-%06d", n)); print }' <<<"$out")
for batch in 1 2 3 7; do
    feed three detect $net - --size 70x50 --threshold 0 --batch $batch run.threads=1; is_code 0
    same "$out" "$want"
done
err_has "3 pictures"
cat three | "$sodet" detect $net - --size 70x50 --threshold 0 --draw frames --crop pieces --out f.json --csv >f.csv 2>err; code=$? err=$(cat err) line="a pipe"
is_code 0
same "$(ls frames | tr '\n' ' ')" "frame-000001.png frame-000002.png frame-000003.png "
checks=$((checks + 1)); grep -q '"file_name": "frame-000003", "width": 70, "height": 50' f.json || bad "f.json lacks the third frame"
same "$(ls pieces | wc -l)" "$(($(wc -l <f.csv) - 1))"
# A frame cut short is said, with those before it done; so is an input without any.
head -c 25000 three >short
feed short detect $net - --size 70x50 --threshold 1; is_code 1
same "$(names)" "$(printf 'frame-000001\nframe-000002')"
err_has "frame-000003: the input ended after 4000 of its 10500 bytes"; err_has "1 of 3 pictures could not be read"
feed short detect $net - --size 70x50 --json --batch 2; is_code 1
out_has '"broken": 1'; out_has '{"file": "frame-000003", "error": "frame-000003: the input ended'
feed /dev/null detect $net - --size 70x50; is_code 1; out_empty; err_has "ended before the first frame"
run detect $net -; refused "add --size WxH"
run detect $net - --size 70; is_code 1
run detect $net - --size 70y50; refused "--size 70y50 is no size"
run detect $net - --size 0x50; refused "--size 0x50"
run detect $net - pictures --size 70x50; refused "cannot be mixed"
run detect $net pictures --size 70x50; refused "write - instead of pictures"

# CSV: one line each, quoted; the figures are those of JSON.
cp pictures/000001.png 'a,"b".png'
run detect $net 'a,"b".png' pictures/000002.png --threshold 0 --json; is_code 0
want=$(grep -o '"label": [^}]*' <<<"$out" | sed 's/"[a-z]*": //g; s/[][" ]//g')
run detect $net 'a,"b".png' pictures/000002.png --threshold 0 --csv; is_code 0
same "$(head -n 1 <<<"$out")" "file,label,name,score,x1,y1,x2,y2"
same "$(tail -n +2 <<<"$out" | sed 's/^"a,""b"".png",//; s/^pictures.000002.png,//')" "$want"
checks=$((checks + 1)); [ "$(grep -c '^"a,""b"".png",[0-5],[a-z]*,0\.' <<<"$out")" -gt 0 ] || bad "no line of the quoted name"
run detect $net pictures --threshold 1 --csv; is_code 0
same "$out" "file,label,name,score,x1,y1,x2,y2"
run detect $net pictures --csv --json; refused "one form at a time"

# Drawings of small pictures are enlarged until names can be read, of others not.
ppm tiny.ppm 20 10
run detect $net tiny.ppm pictures/000001.png --threshold 0 --draw large; is_code 0
same "$(size large/tiny.png) $(size large/000001.png)" "120x60 128x128"

# Pictures of the world's test suites: whatever is broken is named, in its place, and the rest is done.
odd=${SODET_SHARED:-}/data/odd-images
if [ -d "$odd/broken" ]; then
    run detect $net "$odd" --json; is_code 1
    want=$(cd "$odd" && find . -type f -iregex '.*\.\(jpe?g\|png\|bmp\|tga\|p[pg]m\)' | sed 's/..//' | LC_ALL=C sort)
    same "$(grep -o '{"file": "[^"]*' <<<"$out" | sed 's/.*"//')" "$want"
    said=$(grep -c '"error": ' <<<"$out")
    err_has "$said of $(wc -l <<<"$want") pictures could not be read"
    same "$(grep -c '^sodet detect: /' <<<"$err")" "$said"
    checks=$((checks + 1)); [ "$said" -ge 20 ] && [ "$said" -le 40 ] && [ "$(wc -l <<<"$want")" -ge 400 ] || bad "$said of $(wc -l <<<"$want") were found broken"
    run detect $net "$odd/names-with-special-characters" "$odd/exif-orientation/recurser/Portrait_8.jpg" --threshold 0.9 --draw odd --crop odd_cut; is_code 0
    same "$(find odd -type f | wc -l)" "$(names | wc -l)"
else
    skip "no $odd" 8
fi
finish 104
