#!/usr/bin/env bash
# O-13 in training: a cut picture among good ones. stop: the run ends, the picture is named once. skip: the epoch goes on, and at its end the
# picture is named, once, whatever the number of loader threads, and where the run was cut and resumed.
. "$SODET_SOURCE/tests/data/lib"

printf '[data]\ntrain = shapes\n[dataset.shapes]\ncount = 12\nsize = 64\n' >"$dir/shapes.ini"
run data export shapes.ini --split train --output files
truncate -s 400 "$dir/files/000004.png" && truncate -s 300 "$dir/files/000009.png"
cat >"$dir/x.ini" <<'INI'
[run]
devices = ref
seed = 3
[input]
size = 64
[backbone]
plugin = tinyssd
width = 0.1
[head]
plugin = ssd
[loss]
plugin = multibox
[data]
train = files
[dataset.files]
plugin = coco
annotations = files/annotations.json
[schedule]
total = 2
[train]
batch = 3
INI
run train x.ini data.workers=4 run.output=stop
expect stop 1 "a damaged or unsupported PNG"
expect stop 1 "sodet data check lists all that is wrong, [data] bad_files = skip leaves it out"
[ "$(grep -o '0000[0-9]*.png' "$dir/out" | sort -u | wc -l)" = 1 ] || { echo "stop: not one picture is named"; cat "$dir/out"; failed=1; }
run data check x.ini
expect "check before training" 1 "error undecodable: pictures that cannot be decoded (2)"
for workers in 1 4; do
    run train x.ini data.bad_files=skip data.workers=$workers run.output=skip$workers
    expect "skip, $workers" 0 "epoch 1: 2 pictures could not be read and others stood in: 000004.png, 000009.png"
    expect "skip, $workers" 0 "epoch 2: 2 pictures could not be read and others stood in: 000004.png, 000009.png"
    [ "$(grep -c 'could not be read' "$dir/skip$workers/log.txt")" = 2 ] || { echo "not once an epoch"; cat "$dir/out"; failed=1; }
done
cmp "$dir/skip1/last.safetensors" "$dir/skip4/last.safetensors" || { echo "the weights depend on the loader threads"; failed=1; }
# Cut inside the first epoch and resumed: the same weights, and both parts together name both pictures.
run train x.ini data.bad_files=skip run.output=cut train.max_steps=2
expect cut 0 ""
run train x.ini data.bad_files=skip run.output=cut run.resume=cut
expect resumed 0 "epoch 2: 2 pictures could not be read and others stood in: 000004.png, 000009.png"
for n in 000004.png 000009.png; do
    [ "$(grep 'epoch 1.*could not be read' "$dir/cut/log.txt" | grep -c $n)" = 1 ] || { echo "$n is not named once in epoch 1"; cat "$dir/cut/log.txt"; failed=1; }
done
cmp "$dir/skip1/last.safetensors" "$dir/cut/last.safetensors" || { echo "the weights depend on the cut"; failed=1; }
run train x.ini data.bad_files=skip data.val=files run.output=val train.max_steps=1
expect "validation" 0 "validation: 2 pictures could not be read and were left out, first 000004.png"
run train x.ini data.bad_files=skip data.shuffle=no run.output=still train.max_steps=4
expect "without shuffling" 0 "epoch 1: 2 pictures could not be read and were left blank: 000004.png, 000009.png"
[ $failed = 0 ] && echo "o_13 in training: all as expected"
exit $failed
