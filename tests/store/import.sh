#!/bin/bash
# `sodet import`: weights of another system by a name map; what does not fit is refused or listed. Uses the trained TinySSD where it is.
set -u
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
fail=0
check() { [ "$2" -eq 0 ] || { echo "FAILED: $1"; cat "$dir/err"; fail=1; }; }
weights=$SODET_SHARED/data/weights/tinyssd-d2l/raw/net_50
map=$SODET_SOURCE/conf/maps/tinyssd_d2l.map
if [ ! -f "$weights.f32" ]; then echo "SKIPPED: the trained TinySSD weights are not there"; exit 0; fi
printf '[run]\nbase = %s\n[data]\nclasses = banana\n' "$SODET_SOURCE/conf/model/tinyssd_d2l.ini" >"$dir/d2l.ini"
run() { "$SODET_BIN" import "$@" >"$dir/out" 2>"$dir/err"; }

run "$dir/d2l.ini" "$weights.f32" --index "$weights.tsv" --map "$map" --out "$dir/a.sodet"; check "import" $?
grep -q ": 92 of 92 tensors, 1010376 parameters$" "$dir/out"; check "everything was taken ($(cat "$dir/out"))" $?
[ ! -s "$dir/err" ]; check "nothing is left over" $?
run "$dir/d2l.ini" "$weights.f32" --index "$weights.tsv" --map "$map" --out "$dir/b.sodet"; cmp -s "$dir/a.sodet" "$dir/b.sodet"; check "twice the same bytes" $?
run --list "$dir/a.sodet"; grep -q "^backbone/block0/conv2/weight f32 16x16x3x3$" "$dir/out"; check "--list" $?
run "$dir/d2l.ini" "$dir/a.sodet" --out "$dir/c.sodet"; cmp -s "$dir/a.sodet" "$dir/c.sodet"; check "a checkpoint imports as itself" $?

run "$dir/d2l.ini" "$weights.f32" --index "$weights.tsv" --out "$dir/x"; [ $? -eq 2 ]; check "without a map: exit 2" $?
grep -q "nothing in it fits" "$dir/err"; check "without a map: says so" $?
[ ! -e "$dir/x" ]; check "without a map: nothing is written" $?

# Two classes more: the class branch has other shapes.
sed 's/banana/banana, apple, pear/' "$dir/d2l.ini" >"$dir/three.ini"
run "$dir/three.ini" "$dir/a.sodet" --out "$dir/x"; [ $? -eq 2 ]; check "other classes: exit 2" $?
grep -q '"head/cls/0/weight": \[8, 64, 3, 3\] in the file, \[16, 64, 3, 3\] here; 10 of 92' "$dir/err"; check "other classes: both shapes" $?
run "$dir/three.ini" "$dir/a.sodet" --partial --out "$dir/x"; check "--partial" $?
grep -q ": 82 of 92 tensors" "$dir/out"; check "--partial takes the rest" $?
[ "$(grep -c '^skipped  head/cls/' "$dir/err")" -eq 10 ]; check "--partial lists what was skipped" $?

sed 's/blk_3.4/blk_3.5/' "$map" >"$dir/typo.map"
run "$dir/d2l.ini" "$weights.f32" --index "$weights.tsv" --map "$dir/typo.map" --out "$dir/y"; [ $? -eq 2 ]; check "a hole in the map: exit 2" $?
grep -q '"backbone/block5/norm2/.*": not in the file; 4 of 92' "$dir/err"; check "a hole in the map: named" $?
echo 'no arrow' >"$dir/bad.map"
run "$dir/d2l.ini" "$weights.f32" --index "$weights.tsv" --map "$dir/bad.map" --out "$dir/y"; grep -q 'bad.map:1: "no arrow"' "$dir/err"; check "a bad map is named" $?
[ $fail -eq 0 ] && echo "import: all checks passed"
exit $fail
