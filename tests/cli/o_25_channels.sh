#!/usr/bin/env bash
# O-25, by what comes out: a network that wants BGR, on pictures whose red and blue were exchanged, trains, evaluates and detects number for
# number as the same network that wants RGB does on the pictures themselves; a picture whose channels are wrong gives something else.
. "$SODET_SOURCE/tests/cli/lib"
small="backbone.width=0.1 run.threads=1 data.workers=1 train.batch=4 train.max_steps=3 train.log_every=1 input.size=64 transform.train=hflip,resize"
same() { checks=$((checks + 1)); [ -n "$1" ] && [ "$1" = "$2" ] || bad "\"${1:0:400}\" is not \"${2:0:400}\""; }
ppm() { # colourful 64 x 64 number $1; order: the sequence of channels
    awk -v n="$1" -v order="$2" 'BEGIN {
        printf "P6\\n64 64\\n255\\n"
        for (y = 0; y < 64; y++) for (x = 0; x < 64; x++) {
            inside = x >= 8 * n && x < 8 * n + 24 && y >= 20 && y < 44
            c["r"] = inside ? 230 : (x * 3 + n * 31) % 120; c["g"] = (y * 3 + n) % 140; c["b"] = inside ? 20 : (x + 2 * y) % 256
            for (k = 1; k <= 3; k++) printf "\\%03o", c[substr(order, k, 1)]
        } }'
}
for order in rgb bgr; do
    mkdir $order
    for n in 1 2 3 4; do
        printf '%b' "$(ppm $n $order)" >$order/$n.ppm
        echo "$n.ppm,$((8 * n)),20,$((8 * n + 24)),44,$([ $n -lt 3 ] && echo a || echo b)"
    done >$order/boxes.csv
    printf '[run]\nbase = tinyssd_shapes.ini\nname = %s\n[input]\nchannels = %s\nmean = 123, 117, 104\nstd = 50, 60, 70\n[data]\nclasses = a, b\ntrain = d\nval = d\n[dataset.d]\nplugin = csv\nfile = %s/boxes.csv\n' \
        $order $order $order >$order.ini
done
cp -r "$SODET_SOURCE"/conf/tinyssd_shapes.ini "$SODET_SOURCE"/conf/model "$SODET_SOURCE"/conf/data "$SODET_SOURCE"/conf/schedule .
cmp -s rgb/1.ppm bgr/1.ppm && { echo "the pictures do not differ"; exit 1; }
figures() { sed -E '/"devices"/d; s/"(images_per_second|data_wait|seconds)": [^,}]*//g' "$1"/metrics.jsonl; }
for order in rgb bgr; do
    run train $order.ini $small run.output=${order}_run; is_code 0
    run eval ${order}_run/last.safetensors --detections-out $order.json run.threads=1; is_code 0
    run detect ${order}_run/last.safetensors $order --threshold 0 run.threads=1; is_code 0
    printf '%s' "$out" >$order.table
    run detect ${order}_run/last.safetensors $order --threshold 0 --out $order.found.json run.threads=1; is_code 0
done
line="rgb and bgr"
same "$(figures rgb_run)" "$(figures bgr_run)"
same "$(<rgb.json)" "$(<bgr.json)"
same "$(<rgb.table)" "$(<bgr.table)"
checks=$((checks + 1)); [ "$(wc -l <rgb.table)" -gt 20 ] || bad "only $(wc -l <rgb.table) detections"
# What evaluation found is what detection found: scores of the first picture, falling.
scores() { grep -o '"score": [0-9.e+-]*' "$1" | awk '{ printf "%.5f\n", $2 }' | sort -rn; }
same "$(scores rgb.json | head -n 50)" "$(scores rgb.found.json | head -n 50)"
# A mix-up does not go unnoticed: another order, or another mean, than the weights were trained with is refused.
run detect rgb_run/last.safetensors bgr --threshold 0 run.threads=1; is_code 0
checks=$((checks + 1)); [ "$out" != "$(<rgb.table)" ] || bad "the order of the channels makes no difference"
run detect rgb_run/last.safetensors rgb input.channels=bgr; refused "channels"
run detect rgb_run/last.safetensors rgb input.mean=104,117,123; refused "mean"
run eval rgb_run/last.safetensors input.std=1,1,1; refused "std"
finish 24
