#!/usr/bin/env bash
# sodet data show: a sheet of samples with boxes and matched anchors; what does not train has none; the same bytes every time.
. "$SODET_SOURCE/tests/data/lib"

# The three boxes of anchors.sh: two have anchors of IoU 0.5 and more, the third is claimed by one.
three_boxes
cat >>"$dir/x.ini" <<'INI'
[transform]
train = hflip, resize
[transform.hflip]
probability = 1
INI
side() { od -An -tu1 -j$1 -N4 "$2" | awk '{ print $1 * 16777216 + $2 * 65536 + $3 * 256 + $4 }'; }
run data show x.ini
expect "a sheet" 0 "show.png: 3 of 3 samples of train, 3 objects"
# Two columns of 384 with gaps of 8; two rows with captions of 12.
[ "$(side 16 "$dir/show.png") $(side 20 "$dir/show.png")" = "792 816" ] || { echo "the sheet's size"; file "$dir/show.png"; failed=1; }
run data show x.ini --anchors --out a.png
expect "anchors" 0 "a.png: 3 of 3 samples of train, 3 objects, 3 of them with anchors"
cmp -s "$dir/a.png" "$dir/show.png" && { echo "anchors do not show"; failed=1; }
run data show x.ini --anchors --out b.png
cmp "$dir/a.png" "$dir/b.png" || { echo "another picture the second time"; failed=1; }
run data show x.ini --anchors --out val.png --split val
expect "the other chain" 0 "samples of val"
cmp -s "$dir/a.png" "$dir/val.png" && { echo "the chain of val is that of train"; failed=1; }
run data show x.ini --anchors head.claim=none
expect "nothing is claimed" 0 "3 objects, 2 of them with anchors"
run data show x.ini --anchors data.min_side=10
expect "too small to train" 0 "3 objects, 2 of them with anchors"
run data show x.ini --count 1
expect "one" 0 "1 of 3 samples of train, 1 objects"
[ "$(side 16 "$dir/show.png") $(side 20 "$dir/show.png")" = "400 412" ] || { echo "the size of a sheet of one"; file "$dir/show.png"; failed=1; }
run data show shapes.ini --anchors
[ "$code" != 0 ] && grep -q "backbone" "$dir/out" || { echo "no network"; cat "$dir/out"; failed=1; }
run data show x.ini --count 5000
expect "too many" 2 "a sheet has room for 400"
run data show x.ini --out no/such/x.png
expect "no folder" 2 "no/such/x.png: nothing can be written"
[ $failed = 0 ] && echo "show: all as expected"
exit $failed
